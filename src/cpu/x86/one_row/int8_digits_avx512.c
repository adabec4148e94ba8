/* Digits: int8_digits_avx512.h. */
#if defined(__x86_64__)
#include "int8_digits_avx512.h"

#include "core/core.h"

enum { MANTISSA_BITS = 23, SUM_BITS = 24 };

/* Even (or odd) columns of a slice. */
struct half { __m512 numbers, magnitudes; };

AVX512_INLINE struct half make_half(__m512i bits)
{
    return (struct half){ _mm512_castsi512_ps(bits), _mm512_abs_ps(_mm512_castsi512_ps(bits)) };
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

/* The exponent field of the least power of two that will do as unit, for numbers of the other operand of at most
 * `largest`.  The sum is rounded: by less than 2^-10 of it. */
static inline int unit_field(float sum, float largest)
{
    const float most = BSMI_MAX(sum * (largest * (1 + 0x1p-10F)), 0x1p-60F);
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

/* Even and odd numbers as integers times a unit: the one that numbers of the other operand of at most `largest`
 * allow. */
struct integers {
    __m512i halves[2];
    int unit_field;
    bool exact;                           /* false: the numbers are no such integers */
};

AVX512_INLINE struct integers make_integers(const struct half *even, const struct half *odd, float largest)
{
    const int field = unit_field(larger_sum(even->magnitudes, odd->magnitudes), largest);
    const __m512 per_unit = _mm512_set1_ps(of_field(2 * 127 - field)), e = _mm512_mul_ps(even->numbers, per_unit),
                 o = _mm512_mul_ps(odd->numbers, per_unit);
    const __m512i integers[2] = { _mm512_cvtps_epi32(e), _mm512_cvtps_epi32(o) };
    const bool exact = (_mm512_cmp_ps_mask(_mm512_cvtepi32_ps(integers[0]), e, _CMP_EQ_OQ)
                        & _mm512_cmp_ps_mask(_mm512_cvtepi32_ps(integers[1]), o, _CMP_EQ_OQ)) == 0xffff;
    const int twos = exact ? common_twos(integers[0], integers[1]) : 0;
    return (struct integers){ { _mm512_srai_epi32(integers[0], (unsigned)twos),
                                _mm512_srai_epi32(integers[1], (unsigned)twos) }, field + twos, exact };
}

/* Slice `slice`. */
AVX512_INLINE void make_slice(__m512i numbers, int64_t slice, struct bsmi_digits *d)
{
    const struct half even = make_half(_mm512_slli_epi32(numbers, 16)),
                      odd = make_half(_mm512_and_si512(numbers, _mm512_set1_epi32((int)0xffff0000)));
    const struct integers integers = make_integers(&even, &odd, 12);
    const int64_t g = slice / BSMI_GROUP_SLICES;
    const int s = (int)(slice % BSMI_GROUP_SLICES);
    const int counts[2] = { store_digits(integers.halves[0], s, d->digits[g][0]),
                            store_digits(integers.halves[1], s, d->digits[g][1]) };
    _mm512_store_ps(d->numbers[slice][0], even.numbers);
    _mm512_store_ps(d->numbers[slice][1], odd.numbers);
    d->offsets[slice] =
        -BSMI_OFFSET_OF_FP4 * _mm512_reduce_add_epi32(_mm512_add_epi32(integers.halves[0], integers.halves[1]));
    d->half_units[slice] = of_field(integers.unit_field - 1);
    d->hard[g] = (uint8_t)((s == 0 ? 0 : d->hard[g]) | (integers.exact ? 0 : 1) << s);
    d->counts[g] =
        (uint8_t)BSMI_MAX(s == 0 ? 1 : d->counts[g], integers.exact ? BSMI_MAX(counts[0], counts[1]) : 1);
}

AVX512 bool bsmi_digits_make(const struct bsmi_tile *tile, int64_t k, int64_t length, struct bsmi_upcoming *b,
                             struct bsmi_digits *d)
{
    if (!bsmi_row_numbers_make(tile, k, length, b, &d->row)) return false;
    for (int64_t s = 0; s < bsmi_ceil_div(length, BSMI_GROUP) * BSMI_GROUP_SLICES; s++) {
        bsmi_ask_for_upcoming(b, BSMI_ASK_A_SLICE);
        make_slice(_mm512_load_si512(d->row.numbers[s]), s, d);
    }
    return true;
}

/* The first block of slice `slice`. */
AVX512_INLINE void make_first_block(__m512i numbers, int64_t slice, struct bsmi_first_blocks *d)
{
    const __mmask16 first = 0x00ff;
    const struct half even = make_half(_mm512_maskz_slli_epi32(first, numbers, 16)),
                      odd = make_half(_mm512_maskz_and_epi32(first, numbers, _mm512_set1_epi32((int)0xffff0000)));
    const struct integers integers = make_integers(&even, &odd, 12 * 15);
    int8_t digits[BSMI_DIGITS][BSMI_GROUP / 2];
    d->whole[slice] = integers.exact;
    for (int parity = 0; parity < 2; parity++) {
        d->whole[slice] &= store_digits(integers.halves[parity], 0, digits) <= BSMI_FIRST_DIGITS;
        for (int digit = 0; digit < BSMI_FIRST_DIGITS; digit++)
            memcpy(d->digits[slice][parity][digit], digits[digit], sizeof d->digits[slice][parity][digit]);
        d->offsets[slice][parity] = -BSMI_OFFSET_OF_FP4 * _mm512_reduce_add_epi32(integers.halves[parity]);
    }
    d->half_units[slice] = of_field(integers.unit_field - 1);
}

AVX512 void bsmi_first_blocks_make(const struct bsmi_row_numbers *row, int64_t slices, struct bsmi_upcoming *b,
                                   struct bsmi_first_blocks *blocks)
{
    for (int64_t s = 0; s < slices; s++) {
        bsmi_ask_for_upcoming(b, BSMI_ASK_A_SLICE);
        make_first_block(_mm512_load_si512(row->numbers[s]), s, blocks);
    }
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
