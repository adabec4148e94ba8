/* Elements of at most 8 bits by way of fp16: every element but int8 is an fp16 number times a power of two, and its code's bits are
 * that number's, moved.  vcvtph2ps then gives fp32, subnormal numbers included, without the penalty that fp32 subnormals have. */
#ifndef BSMI_HALVES_H
#define BSMI_HALVES_H

#include "code_rows.h"
#include "panels.h"

struct bsmi_half_form {
    uint16_t magnitude, sign;             /* masks of a code */
    int magnitude_shift, sign_shift;      /* to their places in an fp16 number */
    uint16_t nan;                         /* the magnitude that is NaN and would not become one; 0: there is none */
    float factor;                         /* value = fp16 number * factor */
};

static const struct bsmi_half_form bsmi_half_forms[BSM_ELEMENT_COUNT] = {
    [BSM_E4M3] = { 0x7f, 0x80, 7, 8,  0x7f, 0x1p8F },
    [BSM_E5M2] = { 0x7f, 0x80, 8, 8,  0,    1 },
    [BSM_E3M2] = { 0x1f, 0x20, 8, 10, 0,    0x1p12F },
    [BSM_E2M3] = { 0x1f, 0x20, 7, 10, 0,    0x1p14F },
    [BSM_E2M1] = { 0x07, 0x08, 9, 12, 0,    0x1p14F },
    [BSM_INT8] = { 0,    0,    0, 0,  0,    0x1p-6F },
};

/* With e8m0 scales of at most 2^111 scale * factor stays within fp32, and element times scale, below 2^16 * 2^111 (e5m2), too; it
 * is a multiple of 2^-143 and has at most 12 bits, hence exact. */
enum { BSMI_MOST_SCALE_OF_HALVES = 111 + 127 };

static inline bool bsmi_halves_fit(const struct bsmi_part *a, const struct bsmi_part *b)
{
    return bsmi_part_e8m0_at_most(a, BSMI_MOST_SCALE_OF_HALVES) && bsmi_part_e8m0_at_most(b, BSMI_MOST_SCALE_OF_HALVES);
}

/* What terms are packed with: elements of at most 8 bits, as bytes, and the factors of their blocks; wider ones are unscaled. */
struct bsmi_terms_source {
    struct bsmi_half_form form;
    bool integers;
    int64_t block;                        /* columns that share a factor */
};

static inline struct bsmi_terms_source bsmi_terms_source(const struct bsmi_part *part)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    return (struct bsmi_terms_source){ bsmi_half_forms[m->element], m->element == BSM_INT8, m->block == 0 ? BSMI_CHUNK : m->block };
}

/* Factors of the part's blocks, [block][row], for `width` rows. */
static inline void bsmi_make_factors(const struct bsmi_part *part, const struct bsmi_terms_source *s, int width, float *factors)
{
    const int64_t blocks = bsmi_ceil_div(part->length, s->block);
    const bool scaled = part->operand.matrix->block != 0;
    if (scaled) bsmi_scale_rows(part, (int)s->block, width, factors);
    for (int64_t i = 0; i < blocks * width; i++) factors[i] = scaled ? factors[i] * s->form.factor : s->form.factor;
}

#endif
