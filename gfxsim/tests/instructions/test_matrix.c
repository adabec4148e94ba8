/* Matrix instructions: the place of each element and scale, every format; sums in three models; scales 0 and 255. */
#include "matrix/elements.h"
#include "matrix/sums.h"
#include "support/operate.h"

#include <math.h>

struct shape { uint32_t opcode; int dim, k; bool any; enum element a, b; };
static const struct shape shapes[] = {
    { 53, 16, 32, false, ELEMENT_BF16, ELEMENT_BF16 }, { 55, 32, 16, false, ELEMENT_BF16, ELEMENT_BF16 },
    { 84, 16, 32, false, ELEMENT_F16, ELEMENT_F16 },   { 85, 32, 16, false, ELEMENT_F16, ELEMENT_F16 },
    { 97, 16, 16, false, ELEMENT_BF16, ELEMENT_BF16 }, { 76, 32, 8, false, ELEMENT_F16, ELEMENT_F16 },
    { 114, 16, 32, false, ELEMENT_E4M3, ELEMENT_E5M2 }, { 117, 32, 16, false, ELEMENT_E5M2, ELEMENT_E4M3 } };

/* Element (row, k) of an operand: the lane and the bit of its registers. */
static void place(const struct shape *s, enum element e, int row, int k, uint32_t *lane, uint32_t *bit)
{
    const int parts = 64 / s->dim, own = s->k / parts;
    int q = k / own, i = k % own;
    if (s->any && element_bits(e) == 8) {
        const int half = k / (s->k / 2);
        q = k % (s->k / 2) / 16, i = 16 * half + k % 16;
    }
    *lane = (uint32_t)(row + s->dim * q), *bit = (uint32_t)i * element_bits(e);
}

static void store(struct operated *o, uint32_t first, uint32_t lane, uint32_t bit, uint32_t code, uint32_t bits)
{
    for (uint32_t b = 0; b < bits; b++)
        o->wave->vgpr[first + (bit + b) / 32][lane] |= (code >> b & 1) << (bit + b) % 32;
}

/* Small whole numbers of the format. */
static uint32_t small_code(struct test *t, enum element e)
{
    for (;;) {
        const uint32_t code = (uint32_t)rnd_below(t, 1 << element_bits(e));
        const double v = element_value(e, code);
        if (fabs(v) <= 4 && v == nearbyint(v)) return code;
    }
}

static float result(const struct operated *o, const struct shape *s, uint32_t first, int m, int n)
{
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (int r = 0; r < s->dim * s->dim / 64; r++) {
            const int q = (int)lane / s->dim, row = s->dim == 16 ? 4 * q + r : 8 * (r / 4) + 4 * q + r % 4;
            float f;
            memcpy(&f, &o->wave->vgpr[first + (uint32_t)r][lane], 4);
            if (row == m && (int)lane % s->dim == n) return f;
        }
    return NAN;
}

static void multiply(struct test *t, const struct shape *s, enum rounding rounding, uint32_t byte_a, uint32_t byte_b)
{
    struct operated o;
    static double a[32][128], b[32][128];
    if (!operate_open(&o, t)) return;
    o.sim.machine.options.rounding = rounding;
    const float c = (float)rnd_between(t, -100, 100);
    for (uint32_t r = 64; r < 64 + 16; r++)
        for (uint32_t l = 0; l < LANES; l++) memcpy(&o.wave->vgpr[r][l], &c, 4);
    for (int r = 0; r < s->dim; r++)
        for (int k = 0; k < s->k; k++) {
            uint32_t lane, bit;
            const uint32_t ca = small_code(t, s->a), cb = small_code(t, s->b);
            place(s, s->a, r, k, &lane, &bit);
            store(&o, 16, lane, bit, ca, element_bits(s->a));
            place(s, s->b, r, k, &lane, &bit);
            store(&o, 24, lane, bit, cb, element_bits(s->b));
            a[r][k] = element_value(s->a, ca), b[r][k] = element_value(s->b, cb);
        }
    for (int r = 0; r < s->dim && s->any; r++)
        for (int block = 0; block < s->k / 32; block++) {
            const int ea = (int)rnd_between(t, -3, 3), eb = (int)rnd_between(t, -3, 3);
            o.wave->vgpr[4][r + s->dim * block] = 0xa5a5a5a5 ^ ((uint32_t)(127 + ea) ^ 0xa5) << 8 * byte_a;
            o.wave->vgpr[5][r + s->dim * block] = 0x5a5a5a5a ^ ((uint32_t)(127 + eb) ^ 0x5a) << 8 * byte_b;
            for (int k = 32 * block; k < 32 * block + 32; k++)
                a[r][k] = ldexp(a[r][k], ea), b[r][k] = ldexp(b[r][k], eb);
        }
    const uint32_t w = 0xd3800000 | s->opcode << 16 | 32, v = (V + 16) | (V + 24) << 9 | (V + 64) << 18;
    const uint32_t plain[2] = { w, v };
    const uint32_t scaled[4] = { 0xd3ac0000 | (byte_a & 1) << 11 | (byte_b & 1) << 12,
                                 (V + 4) | (V + 5) << 9 | (byte_a >> 1) << 27 | (byte_b >> 1) << 28,
                                 w | (uint32_t)s->a << 8 | 1u << 11, v | (uint32_t)s->b << 29 };
    if (operate(&o, t, s->any ? scaled : plain, s->any ? 4 : 2))
        for (int m = 0; m < s->dim; m++)
            for (int n = 0; n < s->dim; n++) {
                double want = (double)c;
                for (int k = 0; k < s->k; k++) want += a[m][k] * b[n][k];
                if (result(&o, s, 32, m, n) == (float)want) continue;
                FAIL(t, "opcode %u, formats %d %d, bytes %u %u: %d,%d is %.9g, not %.9g", s->opcode, s->a, s->b, byte_a,
                     byte_b, m, n, (double)result(&o, s, 32, m, n), want);
                operate_close(&o);
                return;
            }
    operate_close(&o);
}

static void elements_are_in_their_places(struct test *t)
{
    for (int rounding = 0; rounding < 3; rounding++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            multiply(t, &shapes[i], (enum rounding)rounding, 0, 0);
}

/* Whole numbers of 8 bits, all of them, with C. */
static void whole_numbers(struct test *t)
{
    static const struct shape whole[] = { { 54, 16, 64, false, ELEMENT_I8, ELEMENT_I8 },
                                          { 56, 32, 32, false, ELEMENT_I8, ELEMENT_I8 },
                                          { 87, 16, 32, false, ELEMENT_I8, ELEMENT_I8 },
                                          { 86, 32, 16, false, ELEMENT_I8, ELEMENT_I8 } };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        const struct shape *s = &whole[i];
        static int32_t a[32][64], b[32][64];
        struct operated o;
        if (!operate_open(&o, t)) return;
        for (int r = 0; r < s->dim; r++)
            for (int k = 0; k < s->k; k++) {
                uint32_t lane, bit;
                a[r][k] = (int32_t)rnd_between(t, -128, 127), b[r][k] = (int32_t)rnd_between(t, -128, 127);
                place(s, s->a, r, k, &lane, &bit);
                store(&o, 16, lane, bit, (uint32_t)a[r][k] & 255, 8);
                store(&o, 24, lane, bit, (uint32_t)b[r][k] & 255, 8);
            }
        for (uint32_t r = 0; r < 16; r++)
            for (uint32_t l = 0; l < LANES; l++) o.wave->vgpr[64 + r][l] = 1000000007;
        const uint32_t word[2] = { 0xd3800000 | s->opcode << 16 | 32, (V + 16) | (V + 24) << 9 | (V + 64) << 18 };
        if (operate(&o, t, word, 2))
            for (int m = 0; m < s->dim; m++)
                for (int n = 0; n < s->dim; n++) {
                    int32_t want = 1000000007, got;
                    for (int k = 0; k < s->k; k++) want += a[m][k] * b[n][k];
                    const float f = result(&o, s, 32, m, n);
                    memcpy(&got, &f, 4);
                    CHECK(t, got == want);
                }
        operate_close(&o);
    }
}

/* Every pair of formats, each byte of the scales. */
static void scales_are_in_their_places(struct test *t)
{
    for (int pair = 0; pair < 25; pair++)
        for (int wide = 0; wide < 2; wide++) {
            const struct shape s = { wide ? 46u : 45u, wide ? 32 : 16, wide ? 64 : 128, true, (enum element)(pair / 5),
                                     (enum element)(pair % 5) };
            multiply(t, &s, (enum rounding)(pair % 3), (uint32_t)pair % 4, (uint32_t)(pair / 3) % 4);
        }
}

/* One product of 1 and 1 with the scales that are special: 0 is 2^-127, 255 is NaN. */
static void special_scales(struct test *t)
{
    static const struct { uint8_t a, b; float want; } cases[] = {
        { 127, 127, 32.0f }, { 0, 127, 0x1p-122f }, { 0, 0, 0.0f }, { 255, 0, NAN }, { 127, 255, NAN },
          { 254, 0, 32.0f },
        { 254, 127, INFINITY } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct operated o;
        if (!operate_open(&o, t)) return;
        for (uint32_t l = 0; l < LANES; l++) {
            for (uint32_t r = 0; r < 4; r++)
                o.wave->vgpr[16 + r][l] = o.wave->vgpr[24 + r][l] = l < 16 ? 0x22222222 : 0;
            o.wave->vgpr[4][l] = l < 16 ? cases[i].a : 127, o.wave->vgpr[5][l] = l < 16 ? cases[i].b : 127;
        }
        const uint32_t word[4] = { 0xd3ac0000, (V + 4) | (V + 5) << 9, 0xd3ad0000 | 32 | 4u << 8 | 1u << 11,
                                   (V + 16) | (V + 24) << 9 | 128u << 18 | 4u << 29 };
        const struct shape s = { 45, 16, 128, true, ELEMENT_E2M1, ELEMENT_E2M1 };
        if (operate(&o, t, word, 4)) {
            const float got = result(&o, &s, 32, 3, 5);
            if (!(got == cases[i].want || (got != got && cases[i].want != cases[i].want)))
                FAIL(t, "scales %u and %u: %.9g, not %.9g", cases[i].a, cases[i].b, (double)got, (double)cases[i].want);
        }
        operate_close(&o);
    }
}

/* Sums that need more than fp64: by hand, and cancelled again at random. */
static void exact_sums_round_once(struct test *t)
{
    const double half = 0x1p-24, tiny = 0x1p-300;
    const double up[3] = { 1, half, tiny }, down[3] = { 1, half, -tiny }, even[2] = { 1, half },
                 small[2] = { 0x1p-149, 0x1p-150 }, lost[2] = { 0x1p-150, tiny }, gone[1] = { 0x1p-150 };
    CHECK(t, sum_exact(up, 3) == 1 + 0x1p-23f);
    CHECK(t, sum_exact(down, 3) == 1);
    CHECK(t, sum_exact(even, 2) == 1);
    CHECK(t, sum_exact(small, 2) == 0x1p-148f);
    CHECK(t, sum_exact(lost, 2) == 0x1p-149f);
    CHECK(t, sum_exact(gone, 1) == 0);
    for (int i = 0; i < 2000; i++) {
        double term[21];
        const float left = (float)rnd_normal(t);
        for (int k = 0; k < 10; k++) {
            term[2 * k] = ldexp(rnd_normal(t), (int)rnd_between(t, -250, 250));
            term[2 * k + 1] = -term[2 * k];
        }
        term[20] = (double)left;
        for (int k = 20; k > 0; k--) {
            const int other = (int)rnd_below(t, k + 1);
            const double held = term[k];
            term[k] = term[other], term[other] = held;
        }
        CHECK(t, sum_exact(term, 21) == left);
    }
}

/* 1 as C, 2^-24 from the first product and 2^-25 from the last one: rounded twice it is 1. */
static void a_product_rounds_once(struct test *t)
{
    const struct shape s = { 77, 16, 16, false, ELEMENT_F16, ELEMENT_F16 };
    const uint32_t small = float_to_half(0x1p-12f), smaller = float_to_half(0x1p-13f);
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (int r = 0; r < s.dim; r++)
        for (int last = 0; last < 2; last++) {
            uint32_t lane, bit;
            place(&s, s.a, r, last != 0 ? s.k - 1 : 0, &lane, &bit);
            store(&o, 16, lane, bit, small, 16);
            store(&o, 24, lane, bit, last != 0 ? smaller : small, 16);
        }
    for (uint32_t r = 64; r < 68; r++)
        for (uint32_t l = 0; l < LANES; l++) o.wave->vgpr[r][l] = 0x3f800000;
    const uint32_t word[2] = { 0xd3800000 | s.opcode << 16 | 32, (V + 16) | (V + 24) << 9 | (V + 64) << 18 };
    if (operate(&o, t, word, 2)) CHECK(t, result(&o, &s, 32, 3, 5) == 1 + 0x1p-23f);
    operate_close(&o);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(elements_are_in_their_places), TEST(whole_numbers),
                                              TEST(scales_are_in_their_places), TEST(special_scales),
                                              TEST(exact_sums_round_once), TEST(a_product_rounds_once) };
    return TEST_MAIN(argc, argv, cases);
}
