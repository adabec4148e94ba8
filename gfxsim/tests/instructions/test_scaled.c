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

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(packing_takes_the_nearest_code), TEST(all_codes_are_unpacked),
                                              TEST(six_bits) };
    return TEST_MAIN(argc, argv, cases);
}
