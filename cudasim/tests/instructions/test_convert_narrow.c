/* cvt of the small formats: decoders on all codes, encoders around every boundary, against the nearest value of a table
 * in the test. */
#include <math.h>
#include <stdlib.h>

#include "tests/support/harness.h"

struct format { const char *name; int bits, exponent, mantissa; uint32_t largest, nan; const char *device, *decoder; };
static const struct format formats[] = {
    { "e4m3x2", 8, 4, 3, 0x7e, 0x7f, "sm_90a", "cvt.rn.f16x2.e4m3x2" },
      { "e5m2x2", 8, 5, 2, 0x7b, 0x7f, "sm_90a", "cvt.rn.f16x2.e5m2x2" },
    { "e3m2x2", 6, 3, 2, 0x1f, 0x1f, "sm_100a", "cvt.rn.f16x2.e3m2x2" },
      { "e2m3x2", 6, 2, 3, 0x1f, 0x1f, "sm_120a", "cvt.rn.f16x2.e2m3x2" },
    { "e2m1x2", 4, 2, 1, 0x07, 0x07, "sm_103a", "cvt.rn.f16x2.e2m1x2" },
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* NaN and infinity only where the format has them. */
static double value_of(const struct format *f, uint32_t code)
{
    const uint32_t magnitude = code & ((1u << (f->bits - 1)) - 1), exponent = magnitude >> f->mantissa,
                   mantissa = magnitude & ((1u << f->mantissa) - 1);
    const int bias = (1 << (f->exponent - 1)) - 1;
    double x = exponent == 0 ? ldexp(mantissa, 1 - bias - f->mantissa)
                             : ldexp(mantissa + (1u << f->mantissa), (int)exponent - bias - f->mantissa);
    if (magnitude > f->largest) x = f->exponent == 5 && mantissa == 0 ? (double)INFINITY : (double)NAN;
    return code >> (f->bits - 1) & 1 ? -x : x;
}

/* The code of the nearest magnitude by trying all; of two as near the even one. */
static uint32_t nearest(const struct format *f, double x)
{
    if (isnan(x)) return f->nan;
    uint32_t best = 0;
    for (uint32_t code = 1; code <= f->largest; code++) {
        const double now = fabs(fabs(x) - value_of(f, code)), before = fabs(fabs(x) - value_of(f, best));
        if (now < before || (now <= before && (code & 1) == 0)) best = code;
    }
    if (fabs(x) >= value_of(f, f->largest)) best = f->largest;        /* differences of far larger numbers are not
                                                                         exact */
    return best | (signbit(x) ? 1u << (f->bits - 1) : 0);
}

static double half_value(uint32_t bits)
{
    const uint32_t exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double x = exponent == 0 ? ldexp(mantissa, -24) : ldexp(mantissa + 1024, (int)exponent - 25);
    if (exponent == 31) x = mantissa == 0 ? (double)INFINITY : (double)NAN;
    return bits >> 15 ? -x : x;
}

/* Runs `instruction` (operands %r1, or %f1 and %f2; result %r9, %rs9 or a byte) on pairs of words. */
static uint32_t *convert(struct test *t, const char *device, const char *text, const uint32_t (*in)[2], uint32_t count)
{
    char body[1024];
    struct sim sim;
    snprintf(body, sizeof body,
             ".reg .b8 %%b9, %%b1, %%b2; mov.u32 %%r20, %%ctaid.x; mov.u32 %%r21, %%ntid.x; mov.u32 %%r22, %%tid.x;\n"
             "mad.lo.u32 %%r20, %%r20, %%r21, %%r22; setp.ge.u32 %%p1, %%r20, %u; @%%p1 exit;\n"
             "mul.wide.u32 %%rd1, %%r20, 8; add.u64 %%rd1, %%rd1, %%rd60; ld.global.v2.u32 {%%r1, %%r2}, [%%rd1];\n"
             "mov.b32 %%f1, %%r1; mov.b32 %%f2, %%r2; cvt.u16.u32 %%rs1, %%r1;\n%s\n"
             "mul.wide.u32 %%rd2, %%r20, 4; add.u64 %%rd2, %%rd2, %%rd61; st.global.u32 [%%rd2], %%r9;\n",
             count, text);
    if (!sim_open(t, &sim, device, body)) return NULL;
    uint32_t *got = malloc(count * sizeof *got);
    const uint64_t buffers[2] = { sim_buffer(&sim, in, count * sizeof *in),
                                  sim_buffer(&sim, NULL, count * sizeof *got) };
    sim_launch(t, &sim, "k", (count + 255) / 256, 256, buffers, 2);
    sim_read(&sim, buffers[1], got, count * sizeof *got);
    sim_close(&sim);
    return got;
}

static void decoders_know_all_codes(struct test *t)
{
    static uint32_t in[65536][2];
    for (uint32_t i = 0; i < 65536; i++) in[i][0] = i;
    for (int k = 0; k < FORMATS; k++)
        for (int relu = 0; relu < 2; relu++) {
            const struct format *f = &formats[k];
            char text[256];
            if (f->bits == 4)
                snprintf(text, sizeof text, "cvt.u8.u16 %%b1, %%rs1; cvt.rn%s.f16x2.e2m1x2 %%r9, %%b1;",
                         relu ? ".relu" : "");
            else snprintf(text, sizeof text, "cvt.rn%s.f16x2.%s %%r9, %%rs1;", relu ? ".relu" : "", f->name);
            const uint32_t count = f->bits == 4 ? 256 : 65536, mask = (1u << f->bits) - 1, step = f->bits == 4 ? 4 : 8;
            uint32_t *got = convert(t, f->device, text, (const uint32_t (*)[2])in, count);
            for (uint32_t i = 0; got != NULL && i < count; i++)
                for (uint32_t half = 0; half < 2; half++) {
                    const double want = value_of(f, i >> half * step & mask);
                    const uint32_t bits = got[i] >> 16 * half & 0xffff;
                    const bool same = isnan(want) ? bits == 0x7fff
                                      : relu && signbit(want)
                                          ? bits == 0
                                          : half_value(bits) == want && (bits >> 15 != 0) == (signbit(want) != 0);
                    if (!same) FAIL(t, "%s: code 0x%x gives 0x%x", text, i, bits);
                }
            free(got);
        }
}

static uint32_t float_bits(double x)
{
    const float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

/* Every value, every middle between two, and the floats beside them; both signs; the ends of fp32. */
static uint32_t boundaries(const struct format *f, uint32_t *out)
{
    uint32_t n = 0;
    static const uint32_t ends[] = { 0,          1,          0x007fffff, 0x00800000, 0x7f7fffff,
                                     0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff, 0x3f800000 };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) out[n++] = ends[i], out[n++] = ends[i] | 0x80000000;
    for (uint32_t code = 0; code <= f->largest; code++) {
        const double here = value_of(f, code),
                     next = code < f->largest ? value_of(f, code + 1) : 2 * here - value_of(f, code - 1);
        const uint32_t at[2] = { float_bits(here), float_bits((here + next) / 2) };
        for (int i = 0; i < 2; i++)
            for (uint32_t off = 0; off < 3; off++)
                if (at[i] + off >= 1) out[n++] = at[i] + off - 1, out[n++] = (at[i] + off - 1) | 0x80000000;
    }
    return n;
}

static double float_value(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return (double)f;
}

static void encoders_round_to_nearest(struct test *t)
{
    static uint32_t list[8192], in[8192][2];
    for (int k = 0; k < FORMATS; k++)
        for (int relu = 0; relu < 2; relu++) {
            const struct format *f = &formats[k];
            const uint32_t count = boundaries(f, list), step = f->bits == 4 ? 4 : 8;
            for (uint32_t i = 0; i < count; i++) in[i][0] = list[i], in[i][1] = list[(i * 7 + 3) % count];
            char text[256];
            if (f->bits == 4)
                snprintf(text, sizeof text, "cvt.rn.satfinite%s.e2m1x2.f32 %%b9, %%f1, %%f2; cvt.u32.u8 %%r9, %%b9;",
                         relu ? ".relu" : "");
            else
                snprintf(text, sizeof text, "cvt.rn.satfinite%s.%s.f32 %%rs9, %%f1, %%f2; cvt.u32.u16 %%r9, %%rs9;",
                         relu ? ".relu" : "", f->name);
            uint32_t *got = convert(t, f->device, text, (const uint32_t (*)[2])in, count);
            for (uint32_t i = 0; got != NULL && i < count; i++)
                for (uint32_t half = 0; half < 2; half++) {
                    const double x = float_value(in[i][1 - half]);
                    const uint32_t want = relu && signbit(x) && !isnan(x) ? 0 : nearest(f, x);
                    const uint32_t code = got[i] >> half * step & ((1u << step) - 1);
                    if (code != want) FAIL(t, "%s: %a gives 0x%x, not 0x%x", text, x, code, want);
                }
            free(got);
        }
}

/* All 65536 f16 values in each half. */
static void encoders_of_f16(struct test *t)
{
    static uint32_t in[65536][2];
    for (uint32_t i = 0; i < 65536; i++) in[i][0] = i | (i * 40503u & 0xffff) << 16;
    for (int k = 0; k < FORMATS; k++) {
        const struct format *f = &formats[k];
        if (f->bits == 6) continue;
        const uint32_t step = f->bits == 4 ? 4 : 8;
        char text[256];
        if (f->bits == 4)
            snprintf(text, sizeof text, "cvt.rn.satfinite.e2m1x2.f16x2 %%b9, %%r1; cvt.u32.u8 %%r9, %%b9;");
        else snprintf(text, sizeof text, "cvt.rn.satfinite.%s.f16x2 %%rs9, %%r1; cvt.u32.u16 %%r9, %%rs9;", f->name);
        uint32_t *got = convert(t, f->device, text, (const uint32_t (*)[2])in, 65536);
        for (uint32_t i = 0; got != NULL && i < 65536; i++)
            for (uint32_t half = 0; half < 2; half++) {
                const double x = half_value(in[i][0] >> 16 * half & 0xffff);
                const uint32_t code = got[i] >> half * step & ((1u << step) - 1);
                if (code != nearest(f, x)) FAIL(t, "%s: %a gives 0x%x, not 0x%x", text, x, code, nearest(f, x));
            }
        free(got);
    }
}

/* Between f16 and bf16, where no rounding is written: to nearest even. */
static void halves_of_two_kinds(struct test *t)
{
    static const char *const forms[][2] = { { "cvt.bf16.f16", "cvt.rn.bf16.f16" },
                                            { "cvt.f16.bf16", "cvt.rn.f16.bf16" } };
    static uint32_t in[65536][2];
    for (uint32_t i = 0; i < 65536; i++) in[i][0] = i;
    for (int f = 0; f < 2; f++) {
        uint32_t *got[2];
        for (int named = 0; named < 2; named++) {
            char text[128];
            snprintf(text, sizeof text, "%s %%rs9, %%rs1; cvt.u32.u16 %%r9, %%rs9;", forms[f][named]);
            got[named] = convert(t, "sm_90a", text, (const uint32_t (*)[2])in, 65536);
        }
        if (got[0] != NULL && got[1] != NULL) CHECK(t, memcmp(got[0], got[1], 65536 * sizeof *got[0]) == 0);
        if (f == 0 && got[0] != NULL)
            CHECK(t, got[0][0x3c04] == 0x3f80 && got[0][0x3c05] == 0x3f81 && got[0][0x3c0c] == 0x3f82);
        free(got[0]), free(got[1]);
    }
    struct sim sim;
    sim_refused(t, &sim, "sm_90a", "cvt.bf16.f64 %rs9, %fd1;");
}

/* ue8m0: the power of two at or below, or at or above; 2^-127 and 2^127 are the ends. */
static void powers_of_two(struct test *t)
{
    static const char *const roundings[] = { "rz", "rz.satfinite", "rp", "rp.satfinite" };
    static uint32_t in[4096][2];
    uint32_t count = 0;
    for (uint32_t e = 0; e < 256; e++)
        for (uint32_t i = 0; i < 8; i++) {
            static const uint32_t mantissas[] = { 0, 1, 0x3fffff, 0x400000, 0x400001, 0x7fffff, 0x7f0000, 0x10000 };
            in[count][0] = e << 23 | mantissas[i] | (i & 1) << 31;
            in[count][1] = in[count][0] ^ 0x80000000;
            count++;
        }
    for (int r = 0; r < 4; r++) {
        char text[256];
        snprintf(text, sizeof text, "cvt.%s.ue8m0x2.f32 %%rs9, %%f1, %%f2; cvt.u32.u16 %%r9, %%rs9;", roundings[r]);
        uint32_t *got = convert(t, "sm_100a", text, (const uint32_t (*)[2])in, count);
        for (uint32_t i = 0; got != NULL && i < count; i++) {
            const double x = fabs(float_value(in[i][0]));
            uint32_t want = 0;
            if (isnan(x)) want = 0xff;
            else if (r < 2) while (want < 255 && ldexp(1, (int)want + 1 - 127) <= x) want++;
            else while (want < 255 && ldexp(1, (int)want - 127) < x) want++;
            if ((r & 1) != 0 && want == 255 && !isnan(x)) want = 254;
            if (got[i] != (want << 8 | want)) FAIL(t, "%s of %a: 0x%x, not 0x%x twice", roundings[r], x, got[i], want);
        }
        free(got);
        snprintf(text, sizeof text, "cvt.%s.ue8m0x2.bf16x2 %%rs9, %%r1; cvt.u32.u16 %%r9, %%rs9;", roundings[r]);
        uint32_t *halves = convert(t, "sm_120a", text, (const uint32_t (*)[2])in, count);
        for (uint32_t i = 0; halves != NULL && i < count; i++)
            for (uint32_t half = 0; half < 2; half++) {
                const double x = fabs(float_value(half ? in[i][0] & 0xffff0000 : in[i][0] << 16));
                uint32_t want = 0;
                if (isnan(x)) want = 0xff;
                else if (r < 2) while (want < 255 && ldexp(1, (int)want + 1 - 127) <= x) want++;
                else while (want < 255 && ldexp(1, (int)want - 127) < x) want++;
                if ((r & 1) != 0 && want == 255 && !isnan(x)) want = 254;
                if ((halves[i] >> 8 * half & 0xff) != want)
                    FAIL(t, "%s of bf16 %a: 0x%x, not 0x%x", roundings[r], x, halves[i], want);
            }
        free(halves);
    }
    static uint32_t codes[65536][2];
    for (uint32_t i = 0; i < 65536; i++) codes[i][0] = i;
    uint32_t *back = convert(t, "sm_100a", "cvt.rn.bf16x2.ue8m0x2 %r9, %rs1;", (const uint32_t (*)[2])codes, 65536);
    for (uint32_t i = 0; back != NULL && i < 65536; i++)
        for (uint32_t half = 0; half < 2; half++) {
            const uint32_t code = i >> 8 * half & 0xff, bits = back[i] >> 16 * half & 0xffff;
            if (code == 255 ? bits != 0x7fff : float_value(bits << 16) != ldexp(1, (int)code - 127))
                FAIL(t, "ue8m0 0x%x gives 0x%x", code, bits);
        }
    free(back);
}

static void tf32_keeps_ten_bits(struct test *t)
{
    static uint32_t in[4096][2];
    uint32_t count = 0;
    for (uint32_t e = 0; e < 256; e += e < 3 || e > 250 ? 1 : 17)
        for (uint32_t i = 0; i < 12; i++) {
            static const uint32_t mantissas[] = { 0,      0xfff,  0x1000, 0x1001,   0x1fff,   0x2000,
                                                  0x2fff, 0x3000, 0x3001, 0x7fefff, 0x7ff000, 0x7fffff };
            in[count++][0] = e << 23 | mantissas[i];
            in[count++][0] = e << 23 | mantissas[i] | 0x80000000;
        }
    static const char *const roundings[] = { "rna", "rn", "rz", "rna.satfinite", "rn.satfinite", "rz.relu" };
    for (int r = 0; r < 6; r++) {
        char text[128];
        snprintf(text, sizeof text, "cvt.%s.tf32.f32 %%r9, %%f1;", roundings[r]);
        uint32_t *got = convert(t, "sm_100a", text, (const uint32_t (*)[2])in, count);
        for (uint32_t i = 0; got != NULL && i < count; i++) {
            const uint32_t bits = in[i][0], low = bits & 0x1fff, even = bits >> 13 & 1;
            uint32_t want = bits & ~0x1fffu;
            const bool up = r == 0 || r == 3   ? low >= 0x1000
                            : r == 1 || r == 4 ? low > 0x1000 || (low == 0x1000 && even)
                                               : false;
            if (up) want += 0x2000;
            if ((r == 3 || r == 4) && (want & 0x7fffffff) == 0x7f800000) want -= 0x2000;
            if (r == 5 && bits >> 31) want = 0;
            if ((bits & 0x7fffffff) > 0x7f800000) want = 0x7fffffff;
            if (got[i] != want) FAIL(t, "%s of 0x%x: 0x%x, not 0x%x", roundings[r], bits, got[i], want);
        }
        free(got);
    }
}

static void forms_that_a_target_lacks(struct test *t)
{
    static const struct { const char *device, *text; } refused[] = {
        { "sm_90a", "cvt.rn.satfinite.e2m3x2.f32 %rs9, %f1, %f2;" }, { "sm_90a", "cvt.rp.ue8m0x2.f32 %rs9, %f1, %f2;" },
        { "sm_90a", "cvt.rn.satfinite.tf32.f32 %r9, %f1;" },         { "sm_100a", "cvt.rn.e4m3x2.f32 %rs9, %f1, %f2;" },
        { "sm_100a", "cvt.rz.satfinite.e4m3x2.f32 %rs9, %f1, %f2;" }, { "sm_100a", "cvt.rn.bf16x2.e4m3x2 %r9, %rs1;" },
        { "sm_100a", "cvt.rs.f16x2.f32 %r9, %f1, %f2, %r3;" },
          { "sm_100a", "cvt.rn.satfinite.e2m3x2.f16x2 %rs9, %r1;" },
        { "sm_100a", "cvt.rn.ue8m0x2.f32 %rs9, %f1, %f2;" },         { "sm_100a", "cvt.rna.relu.tf32.f32 %r9, %f1;" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct sim sim;
        CHECK(t, sim_refused(t, &sim, refused[i].device, refused[i].text));
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(decoders_know_all_codes), TEST(encoders_round_to_nearest), TEST(encoders_of_f16),
        TEST(halves_of_two_kinds),     TEST(powers_of_two),
        TEST(tf32_keeps_ten_bits),       TEST(forms_that_a_target_lacks),
    };
    return TEST_MAIN(argc, argv, cases);
}
