/* Scales in e8m0 of 16 rows of B as it is stored, for kernels of one row: whether they need no exponents of rows
 * (row_exponents.h) is seen on the way. */
#ifndef BSMI_ONE_ROW_STORED_SCALES_H
#define BSMI_ONE_ROW_STORED_SCALES_H

#include "core/core.h"
#include "cpu/bf16_sums.h"
#include "cpu/code_rows.h"
#include "cpu/x86/bf16/bf16_columns_avx512.h"

enum { BSMI_NAN_SCALE = 255 };

struct bsmi_stored_scales {
    const struct bsmi_tile *tile;
    struct bsmi_scale_bounds bounds;
    void *exponents;                      /* memory for exponents of rows */
    bool known;                           /* that they are 0, wherever scales are */
};

/* Of a strip, as bytes: the largest distance from the least code that stays in bounds, and the largest code. */
struct bsmi_seen_scales { __m512i above, most; };

/* Codes of 16 blocks of 16 rows, from `block` on: four a word, [block / 4][row].  Those behind the last of `blocks` are
 * in bounds. */
AVX512_INLINE void bsmi_load_stored_scales(const struct bsmi_stored_scales *s, const uint8_t *const *rows,
                                           int64_t block, int64_t blocks, struct bsmi_seen_scales *seen,
                                           __m512i fours[4])
{
    const __m512i least = _mm512_set1_epi8((char)s->bounds.least);
    load_fours(rows, block, fours);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const int64_t left = BSMI_MAX(0, blocks - block - 4 * i);
        if (left < 4)
            fours[i] = _mm512_mask_blend_epi8(0x1111111111111111ULL * ((1u << left) - 1), least, fours[i]);
        seen->above = _mm512_max_epu8(seen->above, _mm512_sub_epi8(fours[i], least));
        seen->most = _mm512_max_epu8(seen->most, fours[i]);
    }
}

/* Whether scales leave it at exponents that are 0.  Those out of bounds may be of blocks of zeros. */
AVX512_INLINE bool bsmi_stored_scales_will_do(struct bsmi_stored_scales *s, const struct bsmi_seen_scales *seen)
{
    const int width = s->bounds.most - s->bounds.least;
    if (_mm512_cmpgt_epu8_mask(seen->above, _mm512_set1_epi8((char)width)) == 0) return true;
    if (_mm512_cmpeq_epi8_mask(seen->most, _mm512_set1_epi8((char)BSMI_NAN_SCALE)) != 0) return false;
    if (!s->known) s->known = bsmi_bf16_find_exponents(s->tile, s->exponents).b == NULL;
    return s->known;
}

#endif
