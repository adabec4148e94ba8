/* Operands of register-to-register forms: tuple t of the input is one thread's operands, each in a slot of its own.
 * The slots, and the results' places in the output, follow from a description: "f32 u32 > f32 pred", types of the
 * operands and of the results. */
#ifndef CUDASIM_CALIBRATE_FORMS_OPERANDS_H
#define CUDASIM_CALIBRATE_FORMS_OPERANDS_H

#include "calibrate.h"
#include "ptx/type.h"

enum { LAYOUT_FIELDS = 32 };

/* Results lie one after the other, each as an array over all tuples. */
struct layout {
    uint32_t tuples;
    int operands, results;
    uint8_t operand[LAYOUT_FIELDS], result[LAYOUT_FIELDS];      /* enum ptx_type */
    size_t slot[LAYOUT_FIELDS], stride, input_bytes;            /* of an operand in its tuple */
    size_t place[LAYOUT_FIELDS], output_bytes;                  /* of a result's array */
};

size_t result_bytes(enum ptx_type type);
void layout_read(struct layout *l, const char *describe, uint32_t tuples);

/* How many tuples a form with these operands gets: a multiple of 128. */
uint32_t layout_tuples(const char *describe);

/* The input of a case that has a description, whose tuples are grid * block. */
void operands_fill(const struct calibration_case *c, uint8_t *input);

/* "0x3f800000 (1), 0x2" of tuple t. */
void operands_print(const struct layout *l, const uint8_t *input, uint32_t tuple, char *text, size_t size);
/* Which result and tuple the output byte belongs to. */
void layout_find(const struct layout *l, size_t at, int *result, uint32_t *tuple);

#endif
