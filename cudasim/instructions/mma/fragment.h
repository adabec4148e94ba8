/* Fragments: how the lanes of a warp hold the matrices of mma (PTX ISA 9.7.14.5, "Matrix Fragments for ...").
 *
 * With g = lane / 4, t = lane % 4 and E elements in a register of A or B, element j of register r is
 *     A of 16 rows: row g + 8 (r % 2), k = (r / 2) 4E + t E + j
 *     A of 8 rows, B: row (of A) or column (of B) g, k = r 4E + t E + j
 *     C, D: element i is in row g + 8 (i / 2), column 2 t + i % 2; of f16, two are in a register
 * for every shape and type but m8n8k4 with f16.  Single bits are moved as words of 32: k counts words. */
#ifndef CUDASIM_INSTRUCTIONS_MMA_FRAGMENT_H
#define CUDASIM_INSTRUCTIONS_MMA_FRAGMENT_H

#include "machine/core/machine.h"
#include "machine/mma/tensor_core.h"

enum { FRAGMENT_COLUMNS = 8, FRAGMENT_ROWS = 16 };

/* code[row * length + k] of an operand A (8 or 16 rows) or B (8 "rows": its columns); bits: of an element, 4, 8, 16 or
 * 32. */
void fragment_read(const struct warp *w, const struct operand *o, uint32_t rows, uint32_t bits, uint32_t length,
                   uint32_t *code);
/* The same for f64: a register is an element. */
void fragment_read_wide(const struct warp *w, const struct operand *o, uint32_t rows, uint32_t length, uint64_t *code);

/* value[row * 8 + column] of C, and into D. */
void accumulator_read(const struct warp *w, const struct operand *o, uint32_t rows, bool half, uint64_t *value);
void accumulator_write(const struct warp *w, const struct operand *o, bool half, const uint64_t *value);

/* The format of a type; only for types that have one. */
enum tensor_format tensor_format_of(enum ptx_type type);
/* Decodes code[row * length + k]. */
void fragment_decode(struct tensor_panel *panel, const struct tensor_model *model, enum tensor_format format,
                     const uint32_t *code, uint32_t rows, uint32_t length);
/* The same for s8, u8, s4, u4. */
void fragment_integers(int16_t *value, enum ptx_type type, const uint32_t *code, uint32_t count);

/* f64: a * b + c, rounded once; a NaN is the one that f64 arithmetic gives. */
uint64_t fused_f64(uint64_t a, uint64_t b, uint64_t c, enum rounding rounding);

/* M and K of the shape in the row's pattern. */
void shape_of(const struct row *row, uint32_t *m, uint32_t *k);

#endif
