/* The largest finite magnitude, a vector of numbers at a time: included behind quantize_template.h, whose vectors it
 * uses, where larger_halves is defined too; afterwards there is bsmi_largest_finite.
 *
 * Numbers grow with their bits.  Infinity's bits and all above become negative when what lies between infinity and the
 * sign is added, and never are the largest. */
typedef int16_t half_words __attribute__((vector_size(4 * LANES)));
typedef uint16_t unsigned_half_words __attribute__((vector_size(4 * LANES)));
typedef struct { words v[4]; } four_words;

INLINE words at(const char *from, int64_t vector)
{
    words v;
    memcpy(&v, from + vector * (int64_t)sizeof v, sizeof v);
    return v;
}

INLINE uint32_t largest_word(four_words most)
{
    const words two = larger(larger(most.v[0], most.v[1]), larger(most.v[2], most.v[3]));
    int32_t largest = two[0];
    for (int i = 1; i < LANES; i++) largest = BSMI_MAX(largest, two[i]);
    return (uint32_t)largest - 0x00800000;
}

/* Of whole fours of vectors of fp32. */
INLINE uint32_t largest_of_fp32(const char *from, int64_t vectors)
{
    four_words most = { { all(0x00800000), all(0x00800000), all(0x00800000), all(0x00800000) } };
    for (int64_t i = 0; i < vectors; i += 4)
        UNROLL for (int j = 0; j < 4; j++) {
            __builtin_prefetch(from + (i + j) * (int64_t)sizeof(words) + AHEAD);
            most.v[j] = larger(most.v[j], plus(magnitude(at(from, i + j)), all(0x00800000)));
        }
    return largest_word(most);
}

/* The same of numbers of 16 bits. */
INLINE uint32_t largest_of_halves(const char *from, int64_t vectors, uint16_t infinity)
{
    const uint16_t above = (uint16_t)(0x8000 - infinity);
    const unsigned_half_words more = (unsigned_half_words){ 0 } + above;
    half_words most[4] = { (half_words)more, (half_words)more, (half_words)more, (half_words)more };
    for (int64_t i = 0; i < vectors; i += 4)
        UNROLL for (int j = 0; j < 4; j++) {
            __builtin_prefetch(from + (i + j) * (int64_t)sizeof(words) + AHEAD);
            const half_words v = (half_words)(((unsigned_half_words)at(from, i + j) & 0x7fff) + more);
            most[j] = (half_words)larger_halves((words)v, (words)most[j]);
        }
    int16_t largest = (int16_t)above;
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < 2 * LANES; i++) largest = BSMI_MAX(largest, most[j][i]);
    return (uint32_t)(uint16_t)largest - above;
}

/* The bits of the largest finite magnitude, in the numbers' own type. */
BSMI_TARGET uint32_t BSMI_QUANTIZE(bsmi_largest_finite)(bsm_real type, const void *numbers, int64_t count)
{
    const char *from = numbers;
    const int64_t bytes = type == BSM_REAL_FP32 ? 4 : 2, vectors = count * bytes / (int64_t)sizeof(words) / 4 * 4;
    const uint32_t infinity = type == BSM_REAL_FP32 ? 0x7f800000 : type == BSM_REAL_BF16 ? 0x7f80 : 0x7c00;
    uint32_t largest = type == BSM_REAL_FP32 ? largest_of_fp32(from, vectors)
                                             : largest_of_halves(from, vectors, (uint16_t)infinity);
    for (int64_t at = vectors * (int64_t)sizeof(words); at < count * bytes; at += bytes) {
        uint32_t bits = 0;
        memcpy(&bits, from + at, (size_t)bytes);
        bits &= type == BSM_REAL_FP32 ? 0x7fffffff : 0x7fff;
        if (bits < infinity) largest = BSMI_MAX(largest, bits);
    }
    return largest;
}
