/* Products D[m][n] = sum over k of A[m][k] B[n][k], with block scales or without, for tests of whole kernels: operands
 * in the forms that kernels take, and what D must be.  Operands of whole numbers have exact sums, so D is compared bit
 * by bit; others are compared with the exact sum within the bound of the published model of tcgen05.mma: each term of
 * an instruction is cut below a fixed number of bits, the sum is rounded toward zero. */
#ifndef CUDASIM_TESTS_REFERENCE_SCALED_PRODUCT_H
#define CUDASIM_TESTS_REFERENCE_SCALED_PRODUCT_H

#include "test.h"

enum element { E_F16, E_BF16, E_TF32, E_S8, E_U8, E_E4M3, E_E5M2, E_E2M3, E_E3M2, E_E2M1, ELEMENTS };
enum kind { KIND_F16, KIND_TF32, KIND_I8, KIND_F8F6F4, KIND_MXF8F6F4, KIND_MXF4, KIND_MXF4NVF4 };
enum scale_type { SCALE_NONE, SCALE_E8M0, SCALE_UE4M3 };
enum product_data { DATA_WHOLE, DATA_WIDE };
enum product_output { OUTPUT_F32, OUTPUT_F16, OUTPUT_S32 };

struct product {
    enum kind kind;
    enum element a_type, b_type;
    enum scale_type scale;
    uint32_t block; /* elements of K that share a scale; 0: none */
    uint32_t m, n, k;
    enum product_data data;
    uint32_t *a, *b;  /* codes: [m][k], [n][k] */
    uint8_t *sa, *sb; /* codes: [m][k / block], [n][k / block] */
};

uint32_t element_bits(enum element type);
double element_value(enum element type, uint32_t code);

/* Random operands of the kinds that `data` says; everything else has been filled in. */
void product_make(struct test *t, struct product *p);
void product_free(struct product *p);

/* Row-major bytes of an operand, packed (4 bits: even elements low).  Rows of `pitch` bytes, at least the packed
 * row. */
uint32_t packed_row_bytes(const struct product *p, bool of_b);
void product_pack(const struct product *p, bool of_b, uint8_t *to, uint32_t pitch);
/* As the kinds f8f6f4 and mxf8f6f4 take elements of less than 8 bits: 16 of them packed at the start of 16 bytes, the
 * rest is never looked at.  Other types: as product_pack. */
uint32_t container_row_bytes(const struct product *p, bool of_b);
void product_pack_containers(const struct product *p, bool of_b, uint8_t *to, uint32_t pitch);
/* Scales in blocks of 128 rows x 4 scales: row r, scale s of a block at (r % 32) * 16 + r / 32 * 4 + s; blocks along K
 * first. */
uint32_t scale_block_bytes(const struct product *p, bool of_b);
void product_pack_scales(const struct product *p, bool of_b, uint8_t *to);

/* D: rows of `pitch` elements of the output's type. */
void product_check(struct test *t, const struct product *p, enum product_output output, const void *d, uint32_t pitch);

#endif
