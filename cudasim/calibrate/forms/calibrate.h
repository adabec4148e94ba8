/* Calibration: small kernels that run through a driver library, the GPU's or cudasim's, and whose output bytes are
 * compared.
 *
 * A case is an entry of PTX, the bytes it reads and the number of bytes it writes.  A family is a file with a function
 * that adds cases; the list is in families.c.  To add one:
 *
 *     static void fill(const struct calibration_case *c, uint8_t *input) { ... }      the same bytes in every run
 *     void calibration_family_NAME(struct calibration *c)
 *     {
 *         calibration_add(c, &(struct calibration_case){
 *             .name = "ldmatrix x4", .form = "ldmatrix.sync.aligned.m8n8.x4.shared.b16", .body = "...",
 *             .input_bytes = 512, .output_bytes = 512, .fill = fill });
 *     }
 *
 * and a line in families.c and CMakeLists.txt.  Nothing here may depend on time, addresses or the order of threads. */
#ifndef CUDASIM_CALIBRATE_FORMS_CALIBRATE_H
#define CUDASIM_CALIBRATE_FORMS_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CALIBRATION_MAPS = 4 };

/* A tensor map, made by cuTensorMapEncodeTiled: parameter mapN of the entry.  Numbers are those of cuda.h. */
struct calibration_map {
    uint32_t data_type, rank;
    bool in_output;                       /* over the output bytes, not the input bytes */
    uint64_t offset;                      /* of the tensor in them */
    uint64_t size[5], stride[4];          /* elements; bytes */
    uint32_t box[5], element_stride[5];
    uint32_t interleave, swizzle, promotion, fill;
};

/* How near a result must come to the other. */
enum calibration_rule {
    CALIBRATION_BITS,                     /* all bytes equal */
    CALIBRATION_ULP,                      /* numbers of `number` at most `bound` units in the last place apart */
    CALIBRATION_RELATIVE,                 /* difference at most bound * the larger one */
    CALIBRATION_ABSOLUTE,                 /* difference at most bound */
    CALIBRATION_EITHER                    /* relative of numbers above 1, absolute of others */
};

struct calibration_case {
    const char *name;                     /* one of its own; no tab, no newline */
    const char *form;                     /* the instruction that it checks, as written: "add.rn.ftz.f32"; several:
                                             blanks
                                             between */
    /* Text between the braces of
     *     .visible .entry cN(.param .u64 in, .param .u64 out, .param .align 64 .b8 map0[128], ...)
     * registers declared, `ret` left out.  in and out are global addresses, aligned to 256; every .param is there only
     * if used: the maps that .maps counts. */
    const char *body;
    const char *before;                   /* directives of the entry, between its parameters and '{':
                                             ".reqnctapercluster 2, 1, 1";
                                             or NULL */
    const char *module;                   /* declarations before the entry, or NULL; in them and in body, $ stands for a
                                             number of
                                             its own */
    const char *target;                   /* NULL: sm_90a */
    uint32_t version;                     /* of PTX, times 10; 0: 9.0 */
    uint32_t grid[3], block[3];           /* 0 counts as 1; block[0] 0 as 32 */
    uint32_t dynamic_shared;
    uint32_t launches;                    /* so many one behind the other, each but the first a programmatic one; 0
                                             counts as 1 */
    size_t input_bytes, output_bytes;     /* output bytes are 0xa5 before the launch */
    void (*fill)(const struct calibration_case *c, uint8_t *input);   /* NULL: random bytes, the same in every run */
    uint64_t data[2];                     /* the family's own, for fill */
    const void *context;                  /* likewise; must live as long as the list */
    int maps;
    struct calibration_map map[CALIBRATION_MAPS];
    enum calibration_rule rule;
    uint32_t number;                      /* enum ptx_type of the numbers that the rule compares */
    double bound;
    int reach_operand;                    /* only tuples where low <= |this operand| <= high are compared; high 0:
                                             all */
    double low, high;
    const char *describe;                 /* layout of operands and results: see operands.h; NULL: bytes */
    bool scattered;                       /* the results do not lie as described: compared as bytes */
};

struct calibration {
    struct calibration_case *cases;
    uint32_t count, capacity;
};

/* Copies the case with all its texts. */
void calibration_add(struct calibration *c, const struct calibration_case *one);
void calibration_release(struct calibration *c);

/* All families of families.c; only cases whose names contain one of the texts in `only` (A|B|C), if it is not NULL. */
void calibration_collect(struct calibration *c, const char *only);

/* The input of the case. */
void calibration_fill(const struct calibration_case *c, uint8_t *input);
/* Of text, sizes and input: a kept result counts only for the case it was made by. */
uint64_t calibration_identity(const struct calibration_case *c);
/* The whole entry, cN being `number`; free it. */
char *calibration_entry(const struct calibration_case *c, uint32_t number);

uint64_t calibration_hash(uint64_t hash, const void *bytes, size_t size);
uint64_t calibration_random(uint64_t *state);

typedef void calibration_family(struct calibration *c);
extern calibration_family *const calibration_families[];

#endif
