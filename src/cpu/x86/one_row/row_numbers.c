/* One row of A: row_numbers.h. */
#if defined(__x86_64__)
#include "row_numbers.h"

#include "core/core.h"
#include "cpu/code_rows.h"

enum { LEAST_FIELD = 127 - 60, MOST_FIELD = 127 + 60, MANTISSA_BITS = 7 };

/* Nonzero magnitudes that leave the range; NaN does. */
AVX512_INLINE __mmask32 out_of_range(__m512i numbers)
{
    const __m512i bits = _mm512_and_si512(numbers, _mm512_set1_epi16(0x7fff)),
                  above = _mm512_sub_epi16(bits, _mm512_set1_epi16(LEAST_FIELD << MANTISSA_BITS));
    return _mm512_mask_cmpgt_epu16_mask(_mm512_test_epi16_mask(bits, bits), above,
                                        _mm512_set1_epi16((MOST_FIELD - LEAST_FIELD) << MANTISSA_BITS));
}

/* Slices that the rows were made ready for. */
AVX512_INLINE void make_slices(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows,
                               struct bsmi_upcoming *b, uint16_t (*numbers)[BSMI_SLICE], bool *good)
{
    const int64_t slices = bsmi_ceil_div(rows->part.length, BSMI_SLICE);
    const __m512i table = _mm512_load_si512(rows->table);
    __m512i largest = _mm512_setzero_si512();
    __mmask32 bad = rows->nan_scales;
    for (int64_t s = 0; s < slices; s++) {
        const __m512i slice = kind == BSMI_BF16_OF_BF16
                                  ? bf16_load_wide(rows, false, 0, s)
                                  : bf16_decode_row(kind, rows, 0, s, rows->codes[0] + s * bf16_slice_bytes(kind),
                                                    table, &largest);
        bsmi_ask_for_upcoming(b, BSMI_ASK_A_SLICE);
        bad |= out_of_range(slice);
        _mm512_store_si512(numbers[s], slice);
    }
    if (bf16_kind_has_specials(kind)) bad |= fp8_has_specials(kind, largest);
    *good &= bad == 0;
}

AVX512 static bool make_chunk(const struct bsmi_bf16_rows *rows, struct bsmi_upcoming *b,
                              uint16_t (*numbers)[BSMI_SLICE])
{
    bool good = true;
    BSMI_BY_BF16_KIND(rows->kind, make_slices, rows, b, numbers, &good)
    return good;
}

AVX512 bool bsmi_row_numbers_make(const struct bsmi_tile *tile, int64_t k, int64_t length, struct bsmi_upcoming *b,
                                  struct bsmi_row_numbers *row)
{
    bool good = true;
    int64_t slices = 0;
    for (int64_t c = 0; c < length; c += BSMI_ROW_CHUNK) {
        const struct bsmi_part part = { tile->a, tile->a_batch, tile->row, 1, 0, k + c,
                                        BSMI_MIN(BSMI_ROW_CHUNK, length - c), NULL };
        bsmi_bf16_rows_make(&part, 0, false, &row->rows);
        good &= make_chunk(&row->rows, b, row->numbers + c / BSMI_SLICE);
        slices = c / BSMI_SLICE + bsmi_ceil_div(part.length, BSMI_SLICE);
    }
    for (; slices % (BSMI_ROW_GROUP / BSMI_SLICE) != 0; slices++)
        memset(row->numbers[slices], 0, sizeof row->numbers[slices]);
    return good;
}

bool bsmi_row_has_exponent(const struct bsmi_tile *t)
{
    int16_t exponent;
    bsmi_row_exponents(&t->a, t->b.matrix->element == BSM_BF16, t->a_batch, t->row, 1, 0, t->k, &exponent);
    return exponent != 0;
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
