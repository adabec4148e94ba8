#include "operate.h"

#include <stdlib.h>

static const char before[] =
    ".version 9.0\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, "
    ".param .u64 p3, .param .u32 n)\n{\n"
    ".reg .b32 %%r<20>; .reg .b64 %%rd<20>; .reg .b16 %%rs<10>; .reg .f32 %%f<10>; .reg .f64 %%fd<10>; "
    ".reg .pred %%p<12>;\n"
    "mov.u32 %%r10, %%ctaid.x; mov.u32 %%r11, %%ntid.x; mov.u32 %%r12, %%tid.x; "
    "mad.lo.u32 %%r13, %%r10, %%r11, %%r12;\n"
    "ld.param.u32 %%r14, [n]; setp.ge.u32 %%p10, %%r13, %%r14; @%%p10 ret; mul.wide.u32 %%rd10, %%r13, 8;\n"
    "ld.param.u64 %%rd11, [p0]; add.u64 %%rd11, %%rd11, %%rd10; ld.global.u64 %%rd1, [%%rd11];\n"
    "ld.param.u64 %%rd12, [p1]; add.u64 %%rd12, %%rd12, %%rd10; ld.global.u64 %%rd2, [%%rd12];\n"
    "ld.param.u64 %%rd13, [p2]; add.u64 %%rd13, %%rd13, %%rd10; ld.global.u64 %%rd3, [%%rd13];\n"
    "ld.param.u64 %%rd14, [p3]; add.u64 %%rd14, %%rd14, %%rd10;\n"
    "ld.global.u32 %%r1, [%%rd11]; ld.global.u32 %%r2, [%%rd12]; ld.global.u32 %%r3, [%%rd13];\n"
    "ld.global.u16 %%rs1, [%%rd11]; ld.global.u16 %%rs2, [%%rd12]; ld.global.u16 %%rs3, [%%rd13];\n"
    "ld.global.f32 %%f1, [%%rd11]; ld.global.f32 %%f2, [%%rd12]; ld.global.f32 %%f3, [%%rd13];\n"
    "ld.global.f64 %%fd1, [%%rd11]; ld.global.f64 %%fd2, [%%rd12]; ld.global.f64 %%fd3, [%%rd13];\n"
    "and.b32 %%r15, %%r1, 1; setp.ne.u32 %%p1, %%r15, 0; and.b32 %%r15, %%r2, 1; setp.ne.u32 %%p2, %%r15, 0;\n"
    "and.b32 %%r15, %%r3, 1; setp.ne.u32 %%p3, %%r15, 0; mov.u64 %%rd15, 0; st.global.u64 [%%rd14], %%rd15;\n%s\n%s\n"
    "ret;\n}\n";

static const char *store(char kind)
{
    switch (kind) {
    case 'd': return "st.global.u64 [%rd14], %rd9;";
    case 'r': return "st.global.u32 [%rd14], %r9;";
    case 's': return "st.global.u16 [%rd14], %rs9;";
    case 'f': return "st.global.f32 [%rd14], %f9;";
    case 'F': return "st.global.f64 [%rd14], %fd9;";
    default: return "selp.u32 %r9, 1, 0, %p9; st.global.u32 [%rd14], %r9;";
    }
}

static void compare(struct test *t, const struct operation *o, const struct operands *in, const uint64_t *got)
{
    for (int i = 0, shown = 0; i < in->count && shown < 3; i++) {
        const uint64_t want = o->want(in->a[i], in->b[i], in->c[i]);
        if (got[i] == want) continue;
        FAIL(t, "%s of %#" PRIx64 ", %#" PRIx64 ", %#" PRIx64 " gives %#" PRIx64 ", not %#" PRIx64, o->text, in->a[i],
             in->b[i], in->c[i], got[i], want);
        shown++;
    }
}

void operate(struct test *t, const char *device, const struct operation *o, const struct operands *in)
{
    enum { BLOCK = 128 };
    char text[8192];
    struct sim sim;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, before, device, o->text, store(o->kind));
#pragma GCC diagnostic pop
    if (!sim_open(t, &sim, device, text)) return;
    const size_t bytes = (size_t)in->count * 8;
    const uint64_t parameters[] = { sim_buffer(&sim, in->a, bytes), sim_buffer(&sim, in->b, bytes),
                                    sim_buffer(&sim, in->c, bytes), sim_buffer(&sim, NULL, bytes),
                                    (uint64_t)in->count };
    sim_launch(t, &sim, "k", ((uint32_t)in->count + BLOCK - 1) / BLOCK, BLOCK, parameters, 5);
    uint64_t *got = malloc(bytes);
    if (got == NULL) abort();
    sim_read(&sim, parameters[3], got, bytes);
    compare(t, o, in, got);
    free(got);
    sim_close(&sim);
}

static int pairs(struct test *t, const uint64_t *values, int count, uint64_t *a, uint64_t *b, uint64_t *c, int most)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count && n < most; j++, n++) {
            a[n] = values[i];
            b[n] = values[j];
            c[n] = rnd_below(t, 4) == 0 ? rnd(t) : values[rnd_below(t, count)];
        }
    return n;
}

int boundary_integers(struct test *t, uint64_t *a, uint64_t *b, uint64_t *c, int most)
{
    uint64_t values[] = {
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        15,
        16,
        17,
        31,
        32,
        33,
        40,
        63,
        64,
        65,
        127,
        128,
        255,
        256,
        0x7fff,
        0x8000,
        0xffff,
        0x10000,
        0x7fffff,
        0x7fffffff,
        0x80000000,
        0xffffffff,
        0x100000000,
        INT64_MAX,
        (uint64_t)INT64_MIN,
        UINT64_MAX,
        UINT64_MAX - 1,
        0x0123456789abcdef,
        0xfedcba9876543210,
        0,
        0,
        0,
        0,
    };
    enum { COUNT = sizeof values / sizeof values[0] };
    for (int i = COUNT - 4; i < COUNT; i++) values[i] = rnd(t);
    return pairs(t, values, COUNT, a, b, c, most);
}

/* zeros, subnormals, the ends of each binade that matters, one, infinities, NaN */
int boundary_floats(struct test *t, uint32_t width, uint64_t *a, uint64_t *b, uint64_t *c, int most)
{
    const uint32_t mantissa = width == 16 ? 10 : width == 32 ? 23 : 52, exponent = width - 1 - mantissa;
    const uint64_t ones = (UINT64_C(1) << mantissa) - 1, top = ((UINT64_C(1) << exponent) - 1) << mantissa,
                   one = ((UINT64_C(1) << (exponent - 1)) - 1) << mantissa;
    uint64_t values[40];
    int n = 0;
    const uint64_t base[] = {
        0,       1,         2,          ones,           ones + 1, ones + 2, 2 * (ones + 1), one - 1,
        one,     one + 1,   one + ones, one + ones + 1, one / 2,  top - 1,  top - ones - 1, top,
        top | 1, top | ones
    };
    for (size_t i = 0; i < sizeof base / sizeof base[0]; i++) {
        values[n++] = base[i];
        values[n++] = base[i] | UINT64_C(1) << (width - 1);
    }
    while (n < 40) values[n++] = rnd(t) & (width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1);
    n = pairs(t, values, n, a, b, c, most);
    for (int i = 0; i < n; i++) c[i] &= width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    return n;
}
