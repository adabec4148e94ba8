/* Conversions with scales: all codes back and forth, and packing against a search for the nearest code. */
#include "matrix/elements.h"
#include "support/operate.h"

#include <math.h>

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

/* The nearest code by trying all of them; ties to the even code; beyond the largest: `beyond`. */
static uint32_t nearest(enum element e, double value, uint32_t beyond)
{
    const uint32_t sign_bit = 1u << (element_bits(e) - 1), sign = signbit(value) ? sign_bit : 0;
    const double a = fabs(value);
    uint32_t best = 0;
    double largest = 0, step = 0;
    for (uint32_t c = 0; c < sign_bit; c++) {
        const double v = element_value(e, c);
        if (!isfinite(v)) continue;
        if (v > largest) step = v - largest, largest = v;
        const double d = fabs(v - a), had = fabs(element_value(e, best) - a);
        if (d < had || (d == had && c % 2 == 0)) best = c;
    }
    const bool wide = e == ELEMENT_E4M3 || e == ELEMENT_E5M2;
    if (a != a || (wide && a >= largest + step / 2) || isinf(a)) return sign | beyond;
    return sign | best;
}

static double draw(struct test *t, enum element e)
{
    const double v = element_value(e, (uint32_t)rnd_below(t, 1 << element_bits(e))),
                 n = element_value(e, (uint32_t)rnd_below(t, 1 << element_bits(e)));
    switch (rnd_below(t, 4)) {
    case 0: return v;
    case 1: return (v + n) / 2;                                           /* midpoints of neighbours among them */
    case 2: return rnd_normal(t) * 4;
    default: return ldexp(rnd_normal(t), (int)rnd_between(t, -20, 20));
    }
}

static void packing_takes_the_nearest_code(struct test *t)
{
    static const struct { uint32_t opcode; enum element e; uint32_t beyond; } packs[] = {
        { 573, ELEMENT_E2M1, 7 }, { 565, ELEMENT_E4M3, 0x7f }, { 566, ELEMENT_E5M2, 0x7c } };
    for (size_t i = 0; i < 3; i++) {
        struct operated o;
        if (!operate_open(&o, t)) return;
        for (int n = 0; n < 200; n++) {
            const enum element e = packs[i].e;
            const bool four = e == ELEMENT_E2M1;
            const uint32_t place = (uint32_t)rnd_below(t, four ? 4 : 2), bits = four ? 4 : 8;
            const int scale = (int)rnd_between(t, -10, 10);
            double values[2][LANES];
            for (uint32_t l = 0; l < LANES; l++) {
                for (int k = 0; k < 2; k++) {
                    values[k][l] = (double)(float)draw(t, e);
                    if (values[k][l] != values[k][l]) values[k][l] = 1;
                    o.wave->vgpr[2 + k][l] = bits_of((float)ldexp(values[k][l], scale));
                }
                o.wave->vgpr[4][l] = bits_of((float)ldexp(1.75, scale));  /* the exponent alone counts */
                o.wave->vgpr[8][l] = 0xdeadbeef;
            }
            const uint32_t word[2] = { 0x34u << 26 | packs[i].opcode << 16 | (four ? place << 13 : place << 14) | 8,
                                       (V + 2) | (V + 3) << 9 | (V + 4) << 18 };
            if (!operate(&o, t, word, 2)) break;
            for (uint32_t l = 0; l < LANES; l++) {
                const uint32_t code = nearest(e, values[0][l], packs[i].beyond)
                                      | nearest(e, values[1][l], packs[i].beyond) << bits;
                const uint32_t first = 2 * bits * place, ones = (1u << 2 * bits) - 1;
                const uint32_t want = (0xdeadbeef & ~(ones << first)) | code << first;
                if (o.wave->vgpr[8][l] == want) continue;
                FAIL(t, "%.9g and %.9g: %08x, not %08x", values[0][l], values[1][l], o.wave->vgpr[8][l], want);
                break;
            }
        }
        operate_close(&o);
    }
}

static void all_codes_are_unpacked(struct test *t)
{
    static const struct { uint32_t opcode; enum element e; } unpacks[] = { { 575, ELEMENT_E2M1 }, { 569, ELEMENT_E4M3 },
                                                                          { 570, ELEMENT_E5M2 } };
    for (size_t i = 0; i < 3; i++) {
        struct operated o;
        if (!operate_open(&o, t)) return;
        const uint32_t bits = element_bits(unpacks[i].e);
        for (uint32_t first = 0; first < 256; first += LANES) {
            for (uint32_t l = 0; l < LANES; l++) o.wave->vgpr[2][l] = first + l, o.wave->vgpr[3][l] = bits_of(8.0f);
            if (!operate_vop3(&o, t, unpacks[i].opcode, 8, V + 2, V + 3, 0)) break;
            for (uint32_t l = 0; l < LANES; l++) {
                const float want = (float)(8 * element_value(unpacks[i].e, (first + l) & ((1u << bits) - 1)));
                float got;
                memcpy(&got, &o.wave->vgpr[8][l], 4);
                CHECK(t, got == want || (got != got && want != want));
            }
        }
        operate_close(&o);
    }
}

/* 32 numbers of 6 bits, in order; of two sources of 16 fp32, interleaved. */
static void six_bits(struct test *t)
{
    static const struct { uint32_t opcode; enum element e; bool two;
    } packs[] = { { 601, ELEMENT_E2M3, false },
                  { 603, ELEMENT_E3M2, false },
                  { 594, ELEMENT_E2M3, true },
                  { 595, ELEMENT_E3M2, true } };
    for (size_t i = 0; i < 4; i++) {
        struct operated o;
        if (!operate_open(&o, t)) return;
        double value[32][LANES];
        for (uint32_t l = 0; l < LANES; l++)
            for (uint32_t k = 0; k < 32; k++) {
                uint32_t bits = bits_of((float)draw(t, packs[i].e)) & 0xffff0000;
                if ((bits & 0x7f800000) == 0x7f800000) bits = 0;
                float f;
                memcpy(&f, &bits, 4);
                value[k][l] = (double)f;
                if (packs[i].two) o.wave->vgpr[16 + k / 2 + 16 * (k % 2)][l] = bits;
                else o.wave->vgpr[16 + k / 2][l] |= k % 2 == 0 ? bits >> 16 : bits;
                o.wave->vgpr[4][l] = bits_of(1.0f);
            }
        const bool ok = packs[i].two ? operate_vop3(&o, t, packs[i].opcode, 8, V + 16, V + 32, V + 4)
                                     : operate_vop3(&o, t, packs[i].opcode, 8, V + 16, V + 4, 0);
        for (uint32_t l = 0; l < LANES && ok; l++)
            for (uint32_t k = 0; k < 32; k++) {
                uint32_t code = 0;
                for (uint32_t b = 0; b < 6; b++)
                    code |= (o.wave->vgpr[8 + (6 * k + b) / 32][l] >> (6 * k + b) % 32 & 1) << b;
                if (code != nearest(packs[i].e, value[k][l], 31))
                    FAIL(t, "number %u, %.9g: code %u", k, value[k][l], code);
            }
        operate_close(&o);
    }
}

/* Bits of the random number that count: as many as fp32's mantissa has more than the code's. */
static int dropped(enum element e)
{
    return 23 - (e == ELEMENT_E2M1 ? 1 : e == ELEMENT_E4M3 || e == ELEMENT_E2M3 ? 3 : 2);
}

/* The code below a value or the one above, by how far it lies between them. */
static uint32_t stochastic(enum element e, double value, uint32_t random, uint32_t beyond)
{
    const uint32_t sign_bit = 1u << (element_bits(e) - 1), sign = signbit(value) ? sign_bit : 0;
    const double a = fabs(value);
    uint32_t below = 0;
    while (below + 1 < sign_bit && isfinite(element_value(e, below + 1)) && element_value(e, below + 1) <= a) below++;
    const bool last = below + 1 == sign_bit || !isfinite(element_value(e, below + 1));
    const double low = element_value(e, below),
                 step = last ? low - element_value(e, below - 1) : element_value(e, below + 1) - low;
    if (last && a >= low + step) return sign | beyond;
    const uint64_t between = (uint64_t)floor(ldexp((a - low) / step, dropped(e)));
    const bool up = between + (random >> (32 - dropped(e))) >= UINT64_C(1) << dropped(e);
    return sign | (!up ? below : last ? beyond : below + 1);
}

static void stochastic_rounding(struct test *t)
{
    static const struct { uint32_t opcode; enum element e; uint32_t beyond; bool scaled; } packs[] = {
        { 567, ELEMENT_E4M3, 0x7f, true }, { 568, ELEMENT_E5M2, 0x7c, true }, { 676, ELEMENT_E4M3, 0x7f, false },
        { 677, ELEMENT_E5M2, 0x7c, false }, { 574, ELEMENT_E2M1, 7, true } };
    for (size_t i = 0; i < 5; i++) {
        struct operated o;
        if (!operate_open(&o, t)) return;
        const enum element e = packs[i].e;
        const bool four = e == ELEMENT_E2M1;
        for (int n = 0; n < 200; n++) {
            const uint32_t place = (uint32_t)rnd_below(t, 4), seeds = four ? 4 : 3;
            const int scale = packs[i].scaled ? (int)rnd_between(t, -10, 10) : 0;
            double values[2][LANES];
            uint32_t random[LANES];
            for (uint32_t l = 0; l < LANES; l++) {
                for (int k = 0; k < 2; k++) {
                    values[k][l] = (double)(float)draw(t, e);
                    if (!isfinite(values[k][l])) values[k][l] = 1;
                    if (k == 0 || four) o.wave->vgpr[2 + k][l] = bits_of((float)ldexp(values[k][l], scale));
                }
                o.wave->vgpr[seeds][l] = random[l] = (uint32_t)rnd(t);
                o.wave->vgpr[5][l] = bits_of((float)ldexp(1.5, scale));
                o.wave->vgpr[8][l] = 0xdeadbeef;
            }
            const uint32_t word[2] = { 0x34u << 26 | packs[i].opcode << 16 | place << 13 | 8,
                                       (V + 2) | (V + seeds) << 9 | (packs[i].scaled ? (V + 5) << 18 : 0) };
            if (!operate(&o, t, word, 2)) break;
            for (uint32_t l = 0; l < LANES; l++) {
                uint32_t code = stochastic(e, values[0][l], random[l], packs[i].beyond);
                if (four) code |= stochastic(e, values[1][l], random[l], packs[i].beyond) << 4;
                const uint32_t want = (0xdeadbeef & ~(0xffu << 8 * place)) | code << 8 * place;
                if (o.wave->vgpr[8][l] == want) continue;
                FAIL(t, "opcode %u: %.9g, %08x: %08x, not %08x", packs[i].opcode, values[0][l], random[l],
                     o.wave->vgpr[8][l], want);
                break;
            }
        }
        operate_close(&o);
    }
}

/* bf16 and fp16 at random, by the two numbers around a value; all bits of the random number zero cut, all ones raise
 * whatever is not exact. */
static void stochastic_halves(struct test *t)
{
    static const struct { uint32_t opcode; enum element e; int dropped; } packs[] = { { 679, ELEMENT_BF16, 16 },
                                                                                     { 678, ELEMENT_F16, 13 } };
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (int n = 0; n < 400; n++) {
        const size_t i = (size_t)n % 2;
        const uint32_t place = (uint32_t)rnd_below(t, 2);
        for (uint32_t l = 0; l < LANES; l++) {
            o.wave->vgpr[2][l] = bits_of((float)(rnd_normal(t) * 100));
            o.wave->vgpr[3][l] = rnd_below(t, 4) == 0 ? 0 : (uint32_t)rnd(t);
            o.wave->vgpr[8][l] = 0xdeadbeef;
        }
        const uint32_t word[2] = { 0x34u << 26 | packs[i].opcode << 16 | place << 14 | 8, (V + 2) | (V + 3) << 9 };
        if (!operate(&o, t, word, 2)) break;
        for (uint32_t l = 0; l < LANES; l++) {
            float f;
            memcpy(&f, &o.wave->vgpr[2][l], 4);
            uint32_t below = 0;
            for (uint32_t bit = 1u << 14; bit != 0; bit >>= 1)
                if (element_value(packs[i].e, below | bit) <= fabs((double)f)) below |= bit;
            const double low = element_value(packs[i].e, below), high = element_value(packs[i].e, below + 1);
            const uint64_t between = (uint64_t)floor(ldexp((fabs((double)f) - low) / (high - low), packs[i].dropped));
            const bool up = (between + (o.wave->vgpr[3][l] >> (32 - packs[i].dropped))) >> packs[i].dropped != 0;
            const uint32_t half = (below + up) | (f < 0 ? 0x8000 : 0);
            const uint32_t want = (0xdeadbeef & ~(0xffffu << 16 * place)) | half << 16 * place;
            if (o.wave->vgpr[8][l] == want) continue;
            FAIL(t, "opcode %u: %.9g: %08x, not %08x", packs[i].opcode, (double)f, o.wave->vgpr[8][l], want);
            break;
        }
    }
    operate_close(&o);
}

/* v_cvt_pk_fp8_f32 and back, without a scale; a byte, or a half, that SDWA chooses. */
static void without_a_scale(struct test *t)
{
    static const struct { uint32_t pack, one, two; enum element e; uint32_t beyond; } all[] = {
        { 674, 84, 86, ELEMENT_E4M3, 0x7f }, { 675, 85, 87, ELEMENT_E5M2, 0x7c } };
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (int n = 0; n < 200; n++) {
        const size_t i = (size_t)n % 2;
        const uint32_t place = (uint32_t)rnd_below(t, 2);
        double values[2][LANES];
        for (uint32_t l = 0; l < LANES; l++)
            for (int k = 0; k < 2; k++) {
                values[k][l] = (double)(float)draw(t, all[i].e);
                if (values[k][l] != values[k][l]) values[k][l] = 1;
                o.wave->vgpr[2 + k][l] = bits_of((float)values[k][l]), o.wave->vgpr[8][l] = 0xdeadbeef;
            }
        const uint32_t pack[2] = { 0x34u << 26 | all[i].pack << 16 | place << 14 | 8, (V + 2) | (V + 3) << 9 };
        const uint32_t sdwa = 249, part = n % 4 < 2 ? (uint32_t)rnd_below(t, 4) : 4 + place;
        const uint32_t unpack[2] = { 0x7e000000 | 10 << 17 | (part < 4 ? all[i].one : all[i].two) << 9 | sdwa,
                                     part << 16 | 6 << 8 | 8 };
        if (!operate(&o, t, pack, 2)) break;
        for (uint32_t l = 0; l < LANES; l++) {
            const uint32_t code = nearest(all[i].e, values[0][l], all[i].beyond)
                                  | nearest(all[i].e, values[1][l], all[i].beyond) << 8;
            CHECK(t, o.wave->vgpr[8][l] == ((0xdeadbeef & ~(0xffffu << 16 * place)) | code << 16 * place));
        }
        if (!operate(&o, t, unpack, 2)) break;
        for (uint32_t l = 0; l < LANES; l++)
            for (uint32_t k = 0; k < (part < 4 ? 1u : 2u); k++) {
                const uint32_t from = part < 4 ? part : 2 * (part - 4) + k;
                const float want = (float)element_value(all[i].e, o.wave->vgpr[8][l] >> 8 * from & 0xff);
                float got;
                memcpy(&got, &o.wave->vgpr[10 + k][l], 4);
                CHECK(t, got == want || (got != got && want != want));
            }
    }
    operate_close(&o);
}

/* Halves cut towards zero, bytes of rounded numbers, bf16 widened. */
static void other_conversions(struct test *t)
{
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (int n = 0; n < 100; n++) {
        for (uint32_t l = 0; l < LANES; l++) {
            o.wave->vgpr[2][l] = bits_of((float)(rnd_normal(t) * (n % 2 == 0 ? 100 : 100000)));
            o.wave->vgpr[3][l] = (uint32_t)rnd(t), o.wave->vgpr[4][l] = 0xdeadbeef;
        }
        const uint32_t widen = 0x7e000000 | 10 << 17 | 91 << 9 | (V + 3);
        if (!operate_vop3(&o, t, 662, 8, V + 2, V + 2, 0) || !operate_vop3(&o, t, 477, 9, V + 2, V + 3, V + 4)
            || !operate(&o, t, &widen, 1))
            break;
        for (uint32_t l = 0; l < LANES; l++) {
            float f;
            memcpy(&f, &o.wave->vgpr[2][l], 4);
            uint32_t half = 0;
            for (uint32_t bit = 1u << 14; bit != 0; bit >>= 1)
                if ((half | bit) < 0x7c00 && element_value(ELEMENT_F16, half | bit) <= fabs((double)f)) half |= bit;
            half |= f < 0 ? 0x8000 : 0;
            CHECK(t, o.wave->vgpr[8][l] == (half | half << 16));
            const uint32_t shift = 8 * (o.wave->vgpr[3][l] & 3);
            uint32_t byte = 0;
            while (byte < 255 && ((double)byte + 0.5 < (double)f || ((double)byte + 0.5 == (double)f && byte % 2 == 1)))
                byte++;
            CHECK(t, o.wave->vgpr[9][l] == ((0xdeadbeef & ~(0xffu << shift)) | byte << shift));
            CHECK(t, o.wave->vgpr[10][l] == o.wave->vgpr[3][l] << 16);
        }
    }
    operate_close(&o);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(packing_takes_the_nearest_code), TEST(all_codes_are_unpacked),
                                              TEST(six_bits), TEST(stochastic_rounding), TEST(stochastic_halves),
                                              TEST(without_a_scale), TEST(other_conversions) };
    return TEST_MAIN(argc, argv, cases);
}
