/* Digits: int8_digits_avx512.h. */
#if defined(__x86_64__)
#include "int8_digits_avx512.h"

#include "core/core.h"
#include "cpu/code_rows.h"

enum { LEAST_FIELD = 127 - 60, MOST_FIELD = 127 + 60, MANTISSA_BITS = 23, SUM_BITS = 24 };

/* Even (or odd) columns of a slice. */
struct half { __m512 numbers, magnitudes; };

AVX512_INLINE struct half make_half(__m512i bits)
{
    return (struct half){ _mm512_castsi512_ps(bits), _mm512_abs_ps(_mm512_castsi512_ps(bits)) };
}

/* Nonzero magnitudes that leave the range; NaN does. */
AVX512_INLINE __mmask16 out_of_range(__m512 magnitudes)
{
    const __m512i bits = _mm512_castps_si512(magnitudes),
                  above = _mm512_sub_epi32(bits, _mm512_set1_epi32(LEAST_FIELD << MANTISSA_BITS));
    return _mm512_mask_cmpgt_epu32_mask(_mm512_test_epi32_mask(bits, bits), above,
                                        _mm512_set1_epi32((MOST_FIELD - LEAST_FIELD) << MANTISSA_BITS));
}

/* The larger one of two sums of 16. */
AVX512_INLINE float larger_sum(__m512 a, __m512 b)
{
    const __m256 eights[2] = {
        _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)),
        _mm256_add_ps(_mm512_castps512_ps256(b), _mm512_extractf32x8_ps(b, 1)),
    };
    const __m256 pairs = _mm256_hadd_ps(eights[0], eights[1]);       /* in each half two of a, two of b */
    const __m128 fours = _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1)),
                 sums = _mm_hadd_ps(fours, fours);
    return _mm_cvtss_f32(_mm_max_ss(sums, _mm_movehdup_ps(sums)));
}

/* The exponent field of the least power of two that will do as unit.  The sum is rounded: by less than 2^-10 of it. */
static inline int unit_field(float sum)
{
    const float most = BSMI_MAX(sum * (12 * (1 + 0x1p-10F)), 0x1p-60F);
    const int up = (int)((bsmi_float_bits(most) + (1u << MANTISSA_BITS) - 1) >> MANTISSA_BITS);
    return up - SUM_BITS;
}

static inline float of_field(int field) { return bsmi_float_from_bits((uint32_t)field << MANTISSA_BITS); }

/* The powers of two that all of the integers are multiples of are put into the unit: the fewer digits there are. */
AVX512_INLINE int common_twos(__m512i even, __m512i odd)
{
    const uint32_t bits = (uint32_t)_mm512_reduce_or_epi32(_mm512_or_si512(even, odd));
    return bits == 0 ? 0 : __builtin_ctz(bits);
}

/* Digits of 16 integers of slice s, to[digit]; returns how many. */
AVX512_INLINE int store_digits(__m512i integers, int s, int8_t (*to)[BSMI_GROUP / 2])
{
    const __m512i half = _mm512_set1_epi32(128), next = _mm512_srai_epi32(_mm512_add_epi32(integers, half), 8),
                  last = _mm512_srai_epi32(_mm512_add_epi32(next, half), 8);
    _mm_store_si128((__m128i *)(void *)(to[0] + 16 * s), _mm512_cvtepi32_epi8(integers));
    _mm_store_si128((__m128i *)(void *)(to[1] + 16 * s), _mm512_cvtepi32_epi8(next));
    _mm_store_si128((__m128i *)(void *)(to[2] + 16 * s), _mm512_cvtepi32_epi8(last));
    return _mm512_test_epi32_mask(last, last) != 0 ? 3 : _mm512_test_epi32_mask(next, next) != 0 ? 2 : 1;
}

/* Slice `slice`; returns those of its numbers that leave the range. */
AVX512_INLINE __mmask16 make_slice(__m512i numbers, int64_t slice, struct bsmi_digits *d)
{
    const struct half even = make_half(_mm512_slli_epi32(numbers, 16)),
                      odd = make_half(_mm512_and_si512(numbers, _mm512_set1_epi32((int)0xffff0000)));
    const int64_t g = slice / BSMI_GROUP_SLICES;
    const int s = (int)(slice % BSMI_GROUP_SLICES), field = unit_field(larger_sum(even.magnitudes, odd.magnitudes));
    const __m512 per_unit = _mm512_set1_ps(of_field(2 * 127 - field)), e = _mm512_mul_ps(even.numbers, per_unit),
                 o = _mm512_mul_ps(odd.numbers, per_unit);
    const __m512i integers[2] = { _mm512_cvtps_epi32(e), _mm512_cvtps_epi32(o) };
    const bool exact = (_mm512_cmp_ps_mask(_mm512_cvtepi32_ps(integers[0]), e, _CMP_EQ_OQ)
                        & _mm512_cmp_ps_mask(_mm512_cvtepi32_ps(integers[1]), o, _CMP_EQ_OQ)) == 0xffff;
    const int twos = exact ? common_twos(integers[0], integers[1]) : 0;
    const __m512i small[2] = { _mm512_srai_epi32(integers[0], (unsigned)twos),
                               _mm512_srai_epi32(integers[1], (unsigned)twos) };
    const int counts[2] = { store_digits(small[0], s, d->digits[g][0]), store_digits(small[1], s, d->digits[g][1]) };
    _mm512_store_ps(d->numbers[slice][0], even.numbers);
    _mm512_store_ps(d->numbers[slice][1], odd.numbers);
    d->offsets[slice] = -BSMI_OFFSET_OF_FP4 * _mm512_reduce_add_epi32(_mm512_add_epi32(small[0], small[1]));
    d->half_units[slice] = of_field(field + twos - 1);
    d->hard[g] = (uint8_t)((s == 0 ? 0 : d->hard[g]) | (exact ? 0 : 1) << s);
    d->counts[g] = (uint8_t)BSMI_MAX(s == 0 ? 1 : d->counts[g], exact ? BSMI_MAX(counts[0], counts[1]) : 1);
    return (__mmask16)(out_of_range(even.magnitudes) | out_of_range(odd.magnitudes));
}

/* Slices that the rows were made ready for, from `first` on. */
AVX512_INLINE void make_slices(enum bsmi_bf16_kind kind, int64_t first, struct bsmi_digits *d, bool *good)
{
    const struct bsmi_bf16_rows *const rows = &d->rows;
    const int64_t slices = bsmi_ceil_div(rows->part.length, BSMI_SLICE);
    const __m512i table = _mm512_load_si512(rows->table);
    __m512i largest = _mm512_setzero_si512();
    unsigned bad = rows->nan_scales;
    for (int64_t s = 0; s < slices; s++)
        bad |= make_slice(kind == BSMI_BF16_OF_BF16
                              ? bf16_load_wide(rows, false, 0, s)
                              : bf16_decode_row(kind, rows, 0, s, rows->codes[0] + s * bf16_slice_bytes(kind), table,
                                                &largest),
                          first + s, d);
    if (bf16_kind_has_specials(kind)) bad |= fp8_has_specials(kind, largest);
    *good &= bad == 0;
}

AVX512 static bool make_chunk(int64_t first, struct bsmi_digits *d)
{
    bool good = true;
    BSMI_BY_BF16_KIND(d->rows.kind, make_slices, first, d, &good)
    return good;
}

AVX512 bool bsmi_digits_make(const struct bsmi_tile *tile, int64_t k, int64_t length, struct bsmi_digits *d)
{
    bool good = true;
    int64_t slices = 0;
    for (int64_t c = 0; c < length; c += BSMI_ROW_CHUNK) {
        const struct bsmi_part part = { tile->a, tile->a_batch, tile->row, 1, 0, k + c,
                                        BSMI_MIN(BSMI_ROW_CHUNK, length - c), NULL };
        bsmi_bf16_rows_make(&part, 0, false, &d->rows);
        good &= make_chunk(c / BSMI_SLICE, d);
        slices = c / BSMI_SLICE + bsmi_ceil_div(part.length, BSMI_SLICE);
    }
    for (; slices % BSMI_GROUP_SLICES != 0; slices++) make_slice(_mm512_setzero_si512(), slices, d);
    return good;
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
