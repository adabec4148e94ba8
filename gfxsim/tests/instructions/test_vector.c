/* Vector and scalar arithmetic against second statements of what it does, at the bounds and at random. */
#include "support/operate.h"

#include <math.h>

static const uint32_t edges[] = { 0, 1, 2, 31, 32, 33, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000,
                                  0xffffffff, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x4f800000,
                                  0x4f000000, 0xcf000000, 0x00000001, 0x80000001 };

static uint32_t draw(struct test *t)
{
    return rnd_below(t, 2) == 0 ? (uint32_t)rnd(t) : edges[rnd_below(t, (int64_t)(sizeof edges / sizeof edges[0]))];
}

static float real(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* Bit by bit, by definition. */
static uint32_t field(uint32_t a, uint32_t b, uint32_t c, bool is_signed)
{
    const uint32_t width = c % 32, offset = b % 32;
    uint32_t result = 0;
    for (uint32_t i = 0; i < 32 && width > 0; i++) {
        const uint32_t k = i < width ? i : width - 1, at = offset + k;
        const bool beyond = at > 31, bit = beyond ? is_signed && (a >> 31) != 0 : (a >> at & 1) != 0;
        if (bit && (i < width || is_signed)) result |= 1u << i;
    }
    return result;
}
static uint32_t permuted(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t s = c >> 8 * i & 0xff;
        const uint32_t words[2] = { b, a };
        uint32_t byte = 0xff;
        if (s < 8) byte = words[s / 4] >> 8 * (s % 4) & 0xff;
        else if (s < 12) byte = (words[(s - 8) / 2] >> ((s - 8) % 2 != 0 ? 31 : 15) & 1) * 0xff;
        else if (s == 12) byte = 0;
        result |= byte << 8 * i;
    }
    return result;
}
static uint32_t ordered(uint32_t a, uint32_t b, uint32_t c)               /* median, signed */
{
    int32_t v[3] = { (int32_t)a, (int32_t)b, (int32_t)c };
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++)
            if (v[k] > v[k + 1]) {
                const int32_t held = v[k];
                v[k] = v[k + 1], v[k + 1] = held;
            }
    return (uint32_t)v[1];
}
static uint32_t counted(uint32_t a, uint32_t b)
{
    for (int i = 0; i < 32; i++) b += a >> i & 1;
    return b;
}

enum operation { BFE_U, BFE_I, BFI, ALIGNBIT, MED3_I, PERM, ADD3, LSHL_ADD, AND_OR, XAD, MUL_HI_I, MUL_HI_U, BCNT,
                 BITOP };
static uint32_t wanted(enum operation how, uint32_t a, uint32_t b, uint32_t c)
{
    switch (how) {
    case BFE_U: return field(a, b, c, false);
    case BFE_I: return field(a, b, c, true);
    case BFI: return c ^ ((b ^ c) & a);
    case ALIGNBIT: return c % 32 == 0 ? b : b >> c % 32 | a << (32 - c % 32);
    case MED3_I: return ordered(a, b, c);
    case PERM: return permuted(a, b, c);
    case ADD3: return a + b + c;
    case LSHL_ADD: return a * (1u << b % 32) + c;
    case AND_OR: return ~(~a | ~b) | c;
    case XAD: return ((a | b) & ~(a & b)) + c;
    case MUL_HI_I: return (uint32_t)(((int64_t)(int32_t)a * (int32_t)b) >> 32);
    case MUL_HI_U: return (uint32_t)(((uint64_t)a * b) >> 32);
    default: return counted(a, b);
    }
}
static const struct { uint32_t opcode; enum operation how; int sources; } vops[] = {
    { 456, BFE_U, 3 }, { 457, BFE_I, 3 }, { 458, BFI, 3 }, { 462, ALIGNBIT, 3 }, { 471, MED3_I, 3 }, { 493, PERM, 3 },
    { 511, ADD3, 3 }, { 509, LSHL_ADD, 3 }, { 513, AND_OR, 3 }, { 499, XAD, 3 }, { 647, MUL_HI_I, 2 },
      { 646, MUL_HI_U, 2 },
    { 651, BCNT, 2 } };

static void fill(struct operated *o, struct test *t, uint32_t first, uint32_t count)
{
    for (uint32_t r = first; r < first + count; r++)
        for (int l = 0; l < LANES; l++) o->wave->vgpr[r][l] = draw(t);
}

static void integers_are_as_defined(struct test *t)
{
    struct operated o;
    for (size_t i = 0; operate_open(&o, t) && i < 40 * sizeof vops / sizeof vops[0]; i++) {
        const size_t k = i / 40;
        fill(&o, t, 2, 3);
        if (vops[k].how == PERM && i % 2 == 0)
            for (int l = 0; l < LANES; l++) o.wave->vgpr[4][l] &= 0x0f0f0f0f;
        if (!operate_vop3(&o, t, vops[k].opcode, 8, V + 2, V + 3, vops[k].sources == 3 ? V + 4 : 0)) break;
        for (int l = 0; l < LANES; l++) {
            const uint32_t a = o.wave->vgpr[2][l], b = o.wave->vgpr[3][l], c = o.wave->vgpr[4][l],
                           want = wanted(vops[k].how, a, b, c);
            if (o.wave->vgpr[8][l] == want) continue;
            FAIL(t, "opcode %u of %08x %08x %08x is %08x, not %08x", vops[k].opcode, a, b, c, o.wave->vgpr[8][l], want);
            break;
        }
        operate_close(&o);
    }
    operate_close(&o);
}

/* Every truth table: bit S0*4 + S1*2 + S2 of it. */
static void bitop3_looks_up(struct test *t)
{
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (uint32_t table = 0; table < 256; table++) {
        fill(&o, t, 2, 3);
        const uint32_t word[2] = { 0x34u << 26 | 564u << 16 | (table >> 3 & 7) << 8 | 8,
                                   (V + 2) | (V + 3) << 9 | (V + 4) << 18 | (table & 7) << 29 | (table >> 6) << 27 };
        if (!operate(&o, t, word, 2)) break;
        for (int bit = 0; bit < 32; bit++) {
            const uint32_t at = (o.wave->vgpr[2][5] >> bit & 1) << 2 | (o.wave->vgpr[3][5] >> bit & 1) << 1
                                | (o.wave->vgpr[4][5] >> bit & 1);
            CHECK(t, (o.wave->vgpr[8][5] >> bit & 1) == (table >> at & 1));
        }
    }
    operate_close(&o);
}

static void wide_integers(struct test *t)
{
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (int i = 0; i < 200; i++) {
        fill(&o, t, 2, 6);
        const uint32_t shift = (uint32_t)i % 8;
        struct wave *w = o.wave;
        if (!operate_vop3(&o, t, 520, 8, V + 2, 128 + shift, V + 4)) break;
        const uint64_t a = w->vgpr[2][9] | (uint64_t)w->vgpr[3][9] << 32,
                       c = w->vgpr[4][9] | (uint64_t)w->vgpr[5][9] << 32;
        CHECK(t, (w->vgpr[8][9] | (uint64_t)w->vgpr[9][9] << 32) == (a << (shift <= 4 ? shift : 0)) + c);
        /* v_mad_i64_i32 v[8:9], s[10:11], v2, v3, v[4:5] */
        const uint32_t word[2] = { 0x34u << 26 | 489u << 16 | 10u << 8 | 8, (V + 2) | (V + 3) << 9 | (V + 4) << 18 };
        if (!operate(&o, t, word, 2)) break;
        __extension__ typedef __int128 wide;
        const wide sum = (wide)(int64_t)(int32_t)w->vgpr[2][9] * (int32_t)w->vgpr[3][9] + (int64_t)c;
        CHECK(t, (w->vgpr[8][9] | (uint64_t)w->vgpr[9][9] << 32) == (uint64_t)sum);
        CHECK(t, (w->sgpr[10] >> 9 & 1) == (sum != (int64_t)sum));
    }
    operate_close(&o);
}

static double half_value(uint32_t code)
{
    const uint32_t exponent = code >> 10 & 31, mantissa = code & 0x3ff;
    return exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, (int)exponent - 25);
}

static void conversions_saturate(struct test *t)
{
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (int i = 0; i < 100; i++) {
        fill(&o, t, 2, 1);
        if (!operate_vop3(&o, t, 0x140 + 7, 8, V + 2, 0, 0) || !operate_vop3(&o, t, 0x140 + 8, 9, V + 2, 0, 0)) break;
        for (int l = 0; l < LANES; l++) {
            const double f = (double)real(o.wave->vgpr[2][l]), cut = trunc(f);
            const uint32_t u = !(cut > 0) ? 0 : cut >= 0x1p32 ? UINT32_MAX : (uint32_t)cut;
            const int32_t s = f != f ? 0 : cut >= 0x1p31 ? INT32_MAX : cut <= -0x1p31 ? INT32_MIN : (int32_t)cut;
            if (o.wave->vgpr[8][l] != u || (int32_t)o.wave->vgpr[9][l] != s)
                FAIL(t, "%.9g becomes %u and %d", f, o.wave->vgpr[8][l], (int)o.wave->vgpr[9][l]);
        }
    }
    operate_close(&o);
}

/* v_cvt_f16_f32: no code is nearer, and of two as near the even one is taken; 65520 and more are infinity. */
static void halves_are_the_nearest(struct test *t)
{
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (int i = 0; i < 200; i++) {
        for (int l = 0; l < LANES; l++) {
            const float f = (float)ldexp(rnd_normal(t), (int)rnd_between(t, -27, 16)),
                        cut = (float)rint((double)f * 2048) / 2048;
            memcpy(&o.wave->vgpr[2][l], l % 2 != 0 ? &f : &cut, 4);
        }
        if (!operate_vop3(&o, t, 0x140 + 10, 8, V + 2, 0, 0)) break;
        for (int l = 0; l < LANES; l++) {
            const double f = (double)real(o.wave->vgpr[2][l]);
            const uint32_t code = o.wave->vgpr[8][l], size = code & 0x7fff;
            CHECK(t, code >> 16 == 0 && (code >> 15 != 0) == (signbit(f) != 0));
            CHECK(t, (fabs(f) >= 65520) == (size == 0x7c00));
            if (size >= 0x7bff) continue;
            /* codes of a sign are in order, and so are their values */
            const double own = half_value(size), above = half_value(size + 1),
                         below = size == 0 ? -own : half_value(size - 1), a = fabs(f);
            const bool even = size % 2 == 0;
            CHECK(t, size == 0 || (even ? a - below >= own - a : a - below > own - a));
            CHECK(t, even ? above - a >= a - own : above - a > a - own);
        }
    }
    operate_close(&o);
}

/* The swaps, lane by lane as the manual's pseudocode has them. */
static void lanes_are_swapped(struct test *t)
{
    for (uint32_t block = 16; block <= 32; block *= 2) {
        struct operated o;
        if (!operate_open(&o, t)) return;
        for (uint32_t l = 0; l < LANES; l++) o.wave->vgpr[2][l] = 100 + l, o.wave->vgpr[3][l] = 200 + l;
        const uint32_t word = 0x7e000000 | (block == 16 ? 89u : 90u) << 9 | 2u << 17 | (V + 3);
        if (operate(&o, t, &word, 1))
            for (uint32_t l = 0; l < LANES; l++) {
                const bool upper = l / block % 2 != 0;
                CHECK(t, o.wave->vgpr[2][l] == (upper ? 200 + l - block : 100 + l));
                CHECK(t, o.wave->vgpr[3][l] == (upper ? 200 + l : 100 + l + block));
            }
        operate_close(&o);
    }
}

/* v_mov_b32_dpp v8, v2: the lane that each lane reads, 64 for none; what reads none keeps its result, or gets 0. */
static uint32_t from_lane(uint32_t control, uint32_t l)
{
    const uint32_t n = control % 16, row = l / 16;
    switch (control / 16) {
    case 0x10: return (l + n) / 16 == row ? l + n : 64;
    case 0x11: return l % 16 < n ? 64 : l - n;
    case 0x12: return 16 * row + (l % 16 + 16 - n) % 16;
    case 0x14: return n == 0 ? 16 * row + 15 - l % 16 : l / 8 * 8 + 7 - l % 8;
    default: return l / 4 * 4 + (control >> 2 * (l % 4)) % 4;
    }
}
static void lanes_move_by_dpp(struct test *t)
{
    static const uint32_t controls[] = { 0x1b, 0x4e, 0x101, 0x10f, 0x111, 0x118, 0x121, 0x12c, 0x140, 0x141 };
    for (size_t i = 0; i < 2 * sizeof controls / sizeof controls[0]; i++) {
        struct operated o;
        if (!operate_open(&o, t)) return;
        const uint32_t control = controls[i / 2], bound = i % 2, masks = 0xb7;        /* rows 0, 1, 3; banks 0, 1, 2 */
        for (uint32_t l = 0; l < LANES; l++) o.wave->vgpr[2][l] = 100 + l, o.wave->vgpr[8][l] = 7;
        const uint32_t word[2] = { 0x7e000000 | 1u << 9 | 8u << 17 | 250,
                                   2 | control << 8 | bound << 19 | masks << 24 };
        if (operate(&o, t, word, 2))
            for (uint32_t l = 0; l < LANES; l++) {
                const uint32_t from = from_lane(control, l);
                const bool on = (0xb >> l / 16 & 1) != 0 && (0x7 >> l % 16 / 4 & 1) != 0;
                CHECK(t, o.wave->vgpr[8][l] == (!on ? 7 : from < 64 ? 100 + from : bound != 0 ? 0 : 7));
            }
        operate_close(&o);
    }
}

/* v_add_u32_sdwa v8, v2, v3: parts in, a part out; the rest zero, its sign, or kept. */
static void parts_by_sdwa(struct test *t)
{
    static const uint32_t first[7] = { 0, 8, 16, 24, 0, 16, 0 }, size[7] = { 8, 8, 8, 8, 16, 16, 32 };
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (uint32_t i = 0; i < 7 * 7 * 3; i++) {
        const uint32_t a = i % 7, d = i / 7 % 7, unused = i / 49, extends = i & 1;
        fill(&o, t, 2, 2);
        for (uint32_t l = 0; l < LANES; l++) o.wave->vgpr[8][l] = 0xdeadbeef;
        const uint32_t word[2] = { 52u << 25 | 8u << 17 | 3u << 9 | 249,
                                   2 | d << 8 | unused << 11 | a << 16 | extends << 19 | 6u << 24 };
        if (!operate(&o, t, word, 2)) break;
        for (uint32_t l = 0; l < LANES; l++) {
            int64_t part = o.wave->vgpr[2][l] >> first[a] & (uint32_t)((UINT64_C(1) << size[a]) - 1);
            if (extends != 0 && part >> (size[a] - 1) != 0) part -= INT64_C(1) << size[a];
            const uint32_t ones = (uint32_t)((UINT64_C(1) << size[d]) - 1),
                           sum = ((uint32_t)part + o.wave->vgpr[3][l]) & ones;
            uint32_t want = sum << first[d];
            if (d < 6 && unused == 2) want |= 0xdeadbeef & ~(ones << first[d]);
            if (d < 6 && unused == 1 && sum >> (size[d] - 1) != 0) want |= ~ones << first[d];
            CHECK(t, o.wave->vgpr[8][l] == want);
        }
    }
    operate_close(&o);
}

/* Forward: where each element of a source lane goes. */
static void transposing_reads(struct test *t)
{
    static const struct { uint32_t opcode, bits; } reads[] = { { 224, 4 }, { 226, 8 }, { 227, 16 } };
    for (size_t i = 0; i < 3; i++) {
        struct operated o;
        if (!operate_open(&o, t)) return;
        const uint32_t bits = reads[i].bits, own = 64 / bits, ones = (1u << bits) - 1;
        uint32_t code[LANES][16], want[LANES][16];
        for (uint32_t b = 0; b < 4096; b++) o.group.lds.data[b] = (uint8_t)rnd(t);
        for (uint32_t l = 0; l < LANES; l++) {
            o.wave->vgpr[1][l] = 8 * ((l * 5) % LANES);
            for (uint32_t j = 0; j < own; j++) {
                uint64_t whole;
                memcpy(&whole, o.group.lds.data + o.wave->vgpr[1][l] + 16, 8);
                code[l][j] = (uint32_t)(whole >> bits * j) & ones;
            }
        }
        for (uint32_t l = 0; l < LANES; l++)
            for (uint32_t j = 0; j < own; j++) {
                const uint32_t s = l % 16, parts = 16 / own;
                want[l / 16 * 16 + own * (s % parts) + j][s / parts] = code[l][j];
            }
        const uint32_t word[2] = { 0x36u << 26 | reads[i].opcode << 17 | 16, 8u << 24 | 1 };
        if (operate(&o, t, word, 2))
            for (uint32_t l = 0; l < LANES; l++)
                for (uint32_t j = 0; j < own; j++) {
                    const uint64_t got = o.wave->vgpr[8][l] | (uint64_t)o.wave->vgpr[9][l] << 32;
                    CHECK(t, ((uint32_t)(got >> bits * j) & ones) == want[l][j]);
                }
        operate_close(&o);
    }
}

/* s_add_u32 and s_addc_u32 are a sum of 64 bits; s_add_i32's SCC is the overflow; s_max sets it on ties. */
static void scalar_carries(struct test *t)
{
    struct operated o;
    if (!operate_open(&o, t)) return;
    for (int i = 0; i < 300; i++) {
        struct wave *w = o.wave;
        for (int k = 2; k < 6; k++) w->sgpr[k] = draw(t);
        static const uint32_t add = 0x80000000 | 8u << 16 | 4u << 8 | 2, addc = 0x82000000 | 9u << 16 | 5u << 8 | 3,
                              add_i = 0x81000000 | 10u << 16 | 4u << 8 | 2,
                              max_i = 0x84000000 | 11u << 16 | 2u << 8 | 2;
        if (!operate(&o, t, &add, 1) || !operate(&o, t, &addc, 1)) break;
        const uint64_t a = w->sgpr[2] | (uint64_t)w->sgpr[3] << 32, b = w->sgpr[4] | (uint64_t)w->sgpr[5] << 32;
        CHECK(t, (w->sgpr[8] | (uint64_t)w->sgpr[9] << 32) == a + b && w->scc == (a + b < a));
        if (!operate(&o, t, &add_i, 1)) break;
        const int64_t sum = (int64_t)(int32_t)w->sgpr[2] + (int32_t)w->sgpr[4];
        CHECK(t, (int32_t)w->sgpr[10] == (int32_t)sum && w->scc == (sum != (int32_t)sum));
        if (!operate(&o, t, &max_i, 1)) break;
        CHECK(t, w->scc && w->sgpr[11] == w->sgpr[2]);
    }
    operate_close(&o);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(integers_are_as_defined), TEST(bitop3_looks_up),
                                              TEST(wide_integers),           TEST(conversions_saturate),
                                              TEST(halves_are_the_nearest),
                                              TEST(lanes_are_swapped), TEST(lanes_move_by_dpp),
                                              TEST(parts_by_sdwa),       TEST(transposing_reads),
                                              TEST(scalar_carries) };
    return TEST_MAIN(argc, argv, cases);
}
