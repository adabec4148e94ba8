/* Operands for units. */
#include "cases.h"

#include "float_steps.h"

#include <math.h>

const struct kind kinds[KINDS] = {
    { "near 1", -3, 3, -6, 6, 0xffff },
    { "far apart", -40, 40, -90, 90, 0xffff },
    { "ties", 0, 1, 24, 26, 0xffe0 },
    { "ties of the second product", -1, 12, 24, 26, 0xfff0 },
    { "products around 2^-126", -65, -61, -126, -122, 0xffff },
    { "few bits around 2^-126", -65, -61, -126, -124, 0xfff0 },
    { "subnormal sums", -70, -60, -127, -120, 0xffff },
    { "subnormal operands", -127, -100, -30, -20, 0xffff },
    { "operands and sums subnormal", -127, 4, -127, -115, 0xffff },
    { "overflow", 60, 64, 120, 127, 0xffff },
    { "infinities", 61, 128, 124, 128, 0xff80 },
    { "all bits", -127, 128, -127, 128, 0xffff },
};

/* Exponent -127: zeros and subnormal numbers, 128: infinities and NaN. */
static uint32_t some_bits(struct test *t, int low, int high)
{
    const uint32_t exponent = (uint32_t)(rnd_between(t, low, high) + 127), sign = (uint32_t)rnd_below(t, 2);
    return sign << 31 | exponent << 23 | (uint32_t)(rnd(t) >> 41);
}

uint16_t some_bf16(struct test *t, const struct kind *kind)
{
    if (rnd_below(t, 40) == 0) return (uint16_t)(rnd_below(t, 2) << 15);                     /* a zero */
    return (uint16_t)(some_bits(t, kind->low, kind->high) >> 16) & kind->mask;
}

/* Now and then a zero, or 2^-126 itself. */
float some_sum(struct test *t, const struct kind *kind)
{
    const uint32_t bits = some_bits(t, kind->sum_low, kind->sum_high);
    const int64_t which = rnd_below(t, 20);
    return which == 0 ? copysignf(0, fp32_of_bits(bits)) : which <= 2 ? copysignf(0x1p-126f, fp32_of_bits(bits))
                                                                      : fp32_of_bits(bits);
}

bool same(float x, float y) { return (isnan(x) && isnan(y)) || bits_of_fp32(x) == bits_of_fp32(y); }

void draw_vectors(struct test *t, const struct kind *kind, float *sums, uint16_t *a, uint16_t *b)
{
    for (int i = 0; i < 2 * LANES; i++) a[i] = some_bf16(t, kind), b[i] = some_bf16(t, kind);
    for (int i = 0; i < LANES; i++) {
        sums[i] = some_sum(t, kind);
        if (rnd_below(t, 3) == 0)                                     /* what the first product leaves is small */
            sums[i] = -fp32_of_bf16(a[2 * i + 1]) * fp32_of_bf16(b[2 * i + 1]);
    }
}

void draw_matrix(struct test *t, const struct kind *kind, float *sums, uint16_t *a, uint16_t *b)
{
    for (int i = 0; i < 8; i++) a[i] = some_bf16(t, kind), b[i] = some_bf16(t, kind);
    for (int i = 0; i < 4; i++) {
        sums[i] = some_sum(t, kind);
        if (rnd_below(t, 3) == 0) sums[i] = -fp32_of_bf16(a[i / 2 * 4]) * fp32_of_bf16(b[i % 2 * 4]);
    }
}

struct shapes draw_shapes(struct test *t)
{
    if (rnd_below(t, 2) == 0) return (struct shapes){ 16, 16, 16 };
    const int rows = (int)rnd_between(t, 1, 16), columns = (int)rnd_between(t, 1, 16);
    return (struct shapes){ rows, columns, (int)rnd_between(t, 1, 16) };
}

/* A sum of which the products leave nothing, or little. */
static float opposite_sum(struct test *t, const struct memory *m, const struct shapes *s, int row, int column)
{
    float sum = 0;
    for (int k = 0; k < 2 * s->words; k++) {
        uint16_t a, b;
        memcpy(&a, &m->bytes[A][row][2 * k], sizeof a);
        memcpy(&b, &m->bytes[B][k / 2][4 * column + k % 2 * 2], sizeof b);
        sum -= fp32_of_bf16(a) * fp32_of_bf16(b);
    }
    return rnd_below(t, 2) == 0 ? sum : nextafterf(sum, 0);
}

void draw_tiles(struct test *t, const struct kind *kind, const struct shapes *s, bool integers, struct memory *m)
{
    const bool opposite = !integers && rnd_below(t, 3) == 0;
    for (int row = 0; row < 16; row++)
        for (int i = 0; i < 32; i++) {
            const uint16_t a = some_bf16(t, kind), b = some_bf16(t, kind);
            memcpy(&m->bytes[A][row][2 * i], &a, sizeof a), memcpy(&m->bytes[B][row][2 * i], &b, sizeof b);
        }
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 16; column++) {
            const float sum = opposite ? opposite_sum(t, m, s, row, column) : some_sum(t, kind);
            memcpy(&m->bytes[SUMS][row][4 * column], &sum, sizeof sum);
        }
}

void draw_bytes(struct test *t, int32_t *sums, int8_t *a, int8_t *b)
{
    for (int i = 0; i < 16; i++) a[i] = (int8_t)rnd_between(t, -128, 127), b[i] = (int8_t)rnd_between(t, -128, 127);
    for (int i = 0; i < 4; i++) sums[i] = (int32_t)rnd_between(t, INT32_MIN, INT32_MAX);
}

/* Digests ---------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t digest, uint32_t word)
{
    digest = (digest ^ word) * 0x9e3779b97f4a7c15;
    return digest ^ digest >> 32;
}

static uint64_t mix_sums(uint64_t digest, const float *sums, int count)
{
    for (int i = 0; i < count; i++) digest = mix(digest, isnan(sums[i]) ? 0x7fc00000 : bits_of_fp32(sums[i]));
    return digest;
}

uint64_t digest_of_vectors(vectors_function *unit, const struct kind *kind)
{
    struct test t = { .state = 1 };
    uint64_t digest = 0;
    for (int n = 0; n < 2000; n++) {
        float sums[LANES];
        uint16_t a[2 * LANES], b[2 * LANES];
        draw_vectors(&t, kind, sums, a, b);
        unit(sums, a, b);
        digest = mix_sums(digest, sums, LANES);
    }
    return digest;
}

uint64_t digest_of_matrices(matrix_function *unit, const struct kind *kind)
{
    struct test t = { .state = 1 };
    uint64_t digest = 0;
    for (int n = 0; n < 2000; n++) {
        float sums[4];
        uint16_t a[8], b[8];
        draw_matrix(&t, kind, sums, a, b);
        unit(sums, a, b);
        digest = mix_sums(digest, sums, 4);
    }
    return digest;
}

uint64_t digest_of_tiles(tiles_function *unit, const struct kind *kind, bool integers)
{
    struct test t = { .state = 1 };
    uint64_t digest = 0;
    for (int n = 0; n < 50; n++) {
        const struct shapes s = draw_shapes(&t);
        struct memory m;
        draw_tiles(&t, kind, &s, integers, &m);
        unit(&s, integers, &m);
        for (int row = 0; row < 16; row++) {
            float sums[16];
            memcpy(sums, m.bytes[SUMS][row], sizeof sums);
            for (int i = 0; integers && i < 16; i++) digest = mix(digest, bits_of_fp32(sums[i]));
            if (!integers) digest = mix_sums(digest, sums, 16);
        }
    }
    return digest;
}

/* What machines gave ----------------------------------------------------------------------------------------------- */

const uint64_t given_vectors[KINDS] = {
    0x956fdb39cecc8d01, 0x9a24b1c78d303d94, 0x0cad45c59b8e6c6d, 0x2b95bf1a4786c44f,
    0xeffe0a55de8fa6ed, 0xde759b3e2e102e1c, 0xd2463263ddb635d8, 0xeb0a1ae227cd6fec,
    0xdcc4443b83b4e1ac, 0x5853e6e0d1d2568a, 0xe91be94ec7607461, 0x854c180fe51bc3b9,
};
const uint64_t given_matrices[KINDS] = {
    0xbdbd70e0021eff5a, 0xbc937a9213300ded, 0xde74d86b3cbdd72e, 0x4dcfe5601e5b6a5f,
    0x414c53ef8d0f4f7c, 0xf37caaf15b85db33, 0xa2bfc4e652d66fd4, 0x405e0175d4a28a9c,
    0x8da8eac9090ff485, 0x61f289073c0222b9, 0xbeefcc7130aff438, 0x5ab2fd2bd792df5e,
};
const uint64_t given_tiles[KINDS] = {
    0xf05238f017748676, 0xc59b6314d518e6cd, 0x8fe0f8ba4769f48b, 0xf6ce1374500626f6,
    0x0eec99bccf9c264e, 0xdd27dbecdf6a2bc0, 0x5715253943f83e8e, 0xc95901a9b8a594ab,
    0x79b63878ff6ed8e6, 0xd074edf5eb336718, 0xd4f50fa5172cfc12, 0x749cfe7b60d3ae42,
};
const uint64_t given_tiles_of_bytes = 0x9eee146460c8f03f;
