/* The numerics of the tensor cores, shared by mma.sync, wgmma and tcgen05.mma.
 *
 * No manual gives them; the models are the published ones, found by test vectors on hardware:
 *   [X] Xie, Wang, Yang, Yang, "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores",
 *       arXiv 2511.10909
 *   [K] Khattak, Mikaitis, "Accurate Models of NVIDIA Tensor Cores", arXiv 2512.07004
 * One fused step takes c and a group of products a[k]*b[k]: the products are exact, all terms are aligned to the
 * largest exponent among them, each is cut toward zero to `fraction_bits` bits behind the point of that exponent, the
 * rest is an exact integer sum, and the sum is rounded once to the output type.  A longer dot product is a chain of
 * such steps.
 *
 * Use: decode the rows of A and the columns of B once (tensor_set), then tensor_multiply, or tensor_dot for one
 * element. */
#ifndef CUDASIM_MACHINE_MMA_TENSOR_CORE_H
#define CUDASIM_MACHINE_MMA_TENSOR_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "machine/core/options.h"

enum tensor_format {
    TENSOR_F16, TENSOR_BF16, TENSOR_TF32, TENSOR_E5M2, TENSOR_E4M3, TENSOR_E3M2, TENSOR_E2M3, TENSOR_E2M1,
    TENSOR_FORMAT_COUNT
};

/* Width of an element's code in bits (tf32: 32, of which the low 13 are not looked at). */
uint32_t tensor_format_bits(enum tensor_format format);

/* A decoded element is significand * 2^exponent: 1 <= |significand| < 2 for normal numbers, smaller with the format's
 * least exponent for subnormal ones, a very small one for zero; an infinity or a NaN is the significand. */
enum { TENSOR_LONGEST = 128, TENSOR_STEP = 8 };           /* elements of a row; rows are padded to a multiple of
                                                             TENSOR_STEP */
#define TENSOR_PADDED(length) (((length) + TENSOR_STEP - 1) / TENSOR_STEP * TENSOR_STEP)

struct tensor_panel {
    uint32_t rows, length;                /* length: padded elements of a row */
    float *significand;                   /* [rows][length] */
    int32_t *exponent;                    /* [rows][length] */
    bool *special;                        /* [rows]: an infinity or a NaN is among them */
};

/* Storage for a panel of at most ROWS x LENGTH elements on the stack or in a struct. */
#define TENSOR_STORAGE(name, ROWS, LENGTH) \
    struct { \
        float significand[(ROWS) * TENSOR_PADDED(LENGTH)]; \
        int32_t exponent[(ROWS) * TENSOR_PADDED(LENGTH)]; \
        bool special[ROWS]; \
    } name
#define TENSOR_PANEL(storage) \
    (struct tensor_panel) \
    { \
        .significand = (storage).significand, .exponent = (storage).exponent, .special = (storage).special \
    }

/* All elements absent: they take no part in any exponent.  length <= TENSOR_LONGEST. */
void tensor_clear(struct tensor_panel *panel, uint32_t rows, uint32_t length);
void tensor_set(struct tensor_panel *panel, uint32_t row, uint32_t k, enum tensor_format format, uint32_t code);
/* Multiplies an element that was set by 2^power: block scales of the ue8m0 kind. */
void tensor_scale(struct tensor_panel *panel, uint32_t row, uint32_t k, int32_t power);

/* ---- models ---- */

enum tensor_instruction { TENSOR_MMA_SYNC, TENSOR_WGMMA, TENSOR_TCGEN05 };
enum tensor_output { TENSOR_TO_F32, TENSOR_TO_F32_E8M13, TENSOR_TO_F16 };

struct tensor_model {
    uint16_t group;                       /* products of one fused step, a multiple of 4; at least the length: all in
                                             one */
    uint16_t fraction_bits;               /* at most 25 */
    enum tensor_output output;            /* F32: toward zero.  E8M13: toward zero, 13 bits of fraction.  F16: to
                                             nearest even */
    bool late_add;                        /* the products are summed from zero; c is added at the end, rounded to
                                             nearest */
    bool plain;                           /* fp32: no model, but d = fma(a[k], b[k], d) in f32, rising k; F16: rounded
                                             at the end */
    int16_t least_exponent;               /* terms are aligned to no smaller exponent than this */
    uint8_t c_down;                       /* c counts as c * 2^-c_down: tcgen05.mma's scale-input-d */
};

/* The model of an instruction on sm_<sm>.  a, b: operands; f16_output: D is f16 (else f32).  k: products of the
 * instruction. */
struct tensor_model tensor_model_of(enum tensor_mode mode, uint32_t sm, enum tensor_instruction instruction,
                                    enum tensor_format a, enum tensor_format b, bool f16_output, uint32_t k);

/* Where element k of `length` stands in a panel for a model with late_add.  Of an fp8 mma.sync for sm_90 and sm_100
 * ptxas 13.0 makes two f16 instructions: the first takes the low two bytes of each register of A and B, the second the
 * high two; then it adds c. */
static inline uint32_t tensor_late_position(uint32_t k, uint32_t length)
{
    return (k & 2) / 2 * (length / 2) + k / 4 * 2 + (k & 1);
}

/* d = c + sum over k of a[k] * b[k]; c and the result are codes of the model's output type (f32, or f16 in the low 16
 * bits). A NaN that comes out is 0x7fffffff or 0x7fff. */
uint32_t tensor_dot(const struct tensor_model *model, const struct tensor_panel *a, uint32_t row_a,
                    const struct tensor_panel *b, uint32_t row_b, uint32_t c);
/* d[i * b->rows + j] = d[...] + dot of row i of A and row j of B, for all i and j. */
void tensor_multiply(const struct tensor_model *model, const struct tensor_panel *a, const struct tensor_panel *b,
                     uint32_t *d);

/* sum * 2^unit as a code.  f32: the bits behind the last are dropped; f16: to nearest, ties to even.  A zero is
 * positive. */
uint32_t tensor_round(enum tensor_output output, int64_t sum, int32_t unit);

/* ---- integers: exact ---- */

/* c + sum, wrapped or (saturate) held at the ends of s32. */
static inline int32_t tensor_accumulate(int32_t c, int64_t sum, bool saturate)
{
    const int64_t exact = c + sum;
    if (saturate) return exact > INT32_MAX ? INT32_MAX : exact < INT32_MIN ? INT32_MIN : (int32_t)exact;
    return (int32_t)(uint32_t)(uint64_t)exact;
}
/* d[i * rows_b + j] += dot of a[i][0..k-1] and b[j][0..k-1], |a|, |b| <= 255. */
void tensor_multiply_integers(const int16_t *a, uint32_t rows_a, const int16_t *b, uint32_t rows_b, uint32_t k,
                              bool saturate, int32_t *d);

#endif
