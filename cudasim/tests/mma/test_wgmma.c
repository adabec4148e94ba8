/* wgmma.mma_async: every type, many N, A in shared memory and in registers, every layout, against a reference on the
 * host. */
#include "tests/support/harness.h"
#include "tests/reference/wgmma_reference.h"

#include <stdlib.h>

enum { MOST_N = 256, IMAGE = 160 * 1024, BASE = 1024, THREADS = 128, MOST_REGISTERS = 128 };

struct form {
    const char *words;
    uint16_t bits;
    enum element a, b;
    enum result d;
    bool sparse, saturate;
};

/*      k and types                     bits  A       B       D      sparse saturate */
static const struct form forms[] = {
    { "k16.f32.f16.f16",                16,   E_F16,  E_F16,  R_F32, false, false },
    { "k16.f16.f16.f16",                16,   E_F16,  E_F16,  R_F16, false, false },
    { "k16.f32.bf16.bf16",              16,   E_BF16, E_BF16, R_F32, false, false },
    { "k8.f32.tf32.tf32",               32,   E_TF32, E_TF32, R_F32, false, false },
    { "k32.f32.e4m3.e4m3",              8,    E_E4M3, E_E4M3, R_F32, false, false },
    { "k32.f32.e4m3.e5m2",              8,    E_E4M3, E_E5M2, R_F32, false, false },
    { "k32.f32.e5m2.e4m3",              8,    E_E5M2, E_E4M3, R_F32, false, false },
    { "k32.f32.e5m2.e5m2",              8,    E_E5M2, E_E5M2, R_F32, false, false },
    { "k32.f16.e4m3.e4m3",              8,    E_E4M3, E_E4M3, R_F16, false, false },
    { "k32.f16.e4m3.e5m2",              8,    E_E4M3, E_E5M2, R_F16, false, false },
    { "k32.f16.e5m2.e4m3",              8,    E_E5M2, E_E4M3, R_F16, false, false },
    { "k32.f16.e5m2.e5m2",              8,    E_E5M2, E_E5M2, R_F16, false, false },
    { "k32.s32.s8.s8",                  8,    E_S8,   E_S8,   R_S32, false, false },
    { "k32.s32.s8.u8",                  8,    E_S8,   E_U8,   R_S32, false, false },
    { "k32.s32.u8.s8",                  8,    E_U8,   E_S8,   R_S32, false, false },
    { "k32.s32.u8.u8",                  8,    E_U8,   E_U8,   R_S32, false, false },
    { "k32.satfinite.s32.s8.s8",        8,    E_S8,   E_S8,   R_S32, false, true },
    { "k32.s32.u8.s8.satfinite",        8,    E_U8,   E_S8,   R_S32, false, true },
    { "k256.s32.b1.b1.and.popc",        32,   E_B1,   E_B1,   R_S32, false, false },
    { "k32.f32.f16.f16",                16,   E_F16,  E_F16,  R_F32, true,  false },
    { "k32.f16.f16.f16",                16,   E_F16,  E_F16,  R_F16, true,  false },
    { "k32.f32.bf16.bf16",              16,   E_BF16, E_BF16, R_F32, true,  false },
    { "k16.f32.tf32.tf32",              32,   E_TF32, E_TF32, R_F32, true,  false },
    { "k64.f32.e4m3.e5m2",              8,    E_E4M3, E_E5M2, R_F32, true,  false },
    { "k64.f16.e5m2.e4m3",              8,    E_E5M2, E_E4M3, R_F16, true,  false },
    { "k64.s32.s8.u8",                  8,    E_S8,   E_U8,   R_S32, true,  false },
    { "k64.s32.u8.u8.satfinite",        8,    E_U8,   E_U8,   R_S32, true,  true },
};
enum { FORMS = sizeof forms / sizeof forms[0] };

/* One product: what is written in the instruction, and its operands. */
struct run {
    const struct form *form;
    struct shape shape;
    bool a_in_registers, accumulate;
    uint32_t selector;
    struct placement a, b;
    uint32_t a_code[64 * 64], b_code[MOST_N * 64], column[64 * 64], d[64 * MOST_N];
    uint32_t registers[MOST_REGISTERS + 5][THREADS]; /* D, A, metadata: as the threads hold them */
    uint8_t image[IMAGE];                            /* shared memory from BASE on */
};

/* ---- operands ---- */

/* Codes: small whole numbers, all bits at random, or exponents far apart with now and then an infinity or NaN. */
enum data { DATA_SMALL, DATA_RANDOM, DATA_WIDE, DATA_KINDS };

static uint32_t random_code(struct test *t, enum element e, enum data data)
{
    const uint32_t bits = element_bits(e), mask = bits == 32 ? UINT32_MAX : (1u << bits) - 1;
    const uint32_t code = (uint32_t)rnd(t) & mask;
    if (e == E_B1 || e == E_S8 || e == E_U8)
        return data == DATA_WIDE && (code & 1) != 0 ? (code & 2 ? mask >> 1 : mask ^ (mask >> 1)) : code;
    static const uint32_t mantissa[] = { 10, 7, 23, 3, 2 }, width[] = { 5, 8, 8, 4, 5 },
                          bias[] = { 15, 127, 127, 7, 15 };
    const uint32_t m = mantissa[e], sign = code & (1u << (bits - 1)), exponent_mask = (1u << width[e]) - 1;
    uint32_t exponent = code >> m & exponent_mask;
    if (data == DATA_SMALL) return sign | (bias[e] + (uint32_t)rnd_below(t, 3)) << m | (code & (1u << (m - 1)));
    if (data == DATA_RANDOM) exponent = bias[e] - 3 + (uint32_t)rnd_below(t, 6);
    if (data == DATA_WIDE && exponent == exponent_mask && rnd_below(t, 40) != 0) exponent--;
    if (data == DATA_WIDE && rnd_below(t, 4) == 0) exponent = bias[e] > 20 ? bias[e] - 20 : 0;
    return sign | exponent << m | (code & ((1u << m) - 1));
}

static uint32_t random_accumulator(struct test *t, enum result d, enum data data)
{
    const uint32_t code = (uint32_t)rnd(t);
    if (d == R_S32)
        return data == DATA_WIDE ? (code & 1 ? 0x7fffff00u | (code >> 8 & 255) : 0x80000000u | (code >> 8 & 255))
                                 : code >> 8;
    if (d == R_F16)
        return data == DATA_WIDE && rnd_below(t, 50) == 0
                   ? 0x7c00
                   : random_code(t, E_F16, data) & (data == DATA_WIDE ? 0xbfff : 0xffff);
    const uint32_t bits = random_code(t, E_BF16, data) << 16;
    return data == DATA_SMALL || (bits & 0x7f800000) == 0x7f800000 ? bits : bits | (code & 0xffff);
}

/* ---- layouts ---- */

static uint32_t align(uint32_t x, uint32_t to) { return (x + to - 1) / to * to; }

/* A layout in which `rows` x k elements overlap nowhere, from `at` on; strides are packed or somewhat longer. */
static struct placement random_placement(struct test *t, uint32_t bits, uint32_t rows, uint32_t k, bool mn_major,
                                         uint32_t swizzle, uint32_t at, uint32_t *end)
{
    struct placement p = { .mn_major = mn_major, .swizzle = swizzle };
    const uint32_t bytes_k = k * bits / 8, chunks_mn = rows * bits / 128, longer = (uint32_t)rnd_below(t, 3);
    at = align(at, 1024);
    /* a pattern that begins elsewhere */
    if (swizzle != 0 && rnd_below(t, 2) == 0) p.pattern = (uint32_t)rnd_below(t, 8) * 128;
    p.start = at + p.pattern;
    if (!mn_major && swizzle != 0) {
        p.leading = 16 * (uint32_t)rnd_below(t, 0x4000); /* not looked at */
        p.stride = 8 * swizzle + longer * 128;
        p.start += swizzle - bytes_k == 0 ? 0 : 32 * (uint32_t)rnd_below(t, (swizzle - bytes_k) / 32 + 1);
        *end = p.start + (rows / 8) * p.stride + 1024;
    } else if (!mn_major) {
        p.start += 16 * (uint32_t)rnd_below(t, 5);
        const bool chunks_outside = rnd_below(t, 2) == 0;
        p.stride = (chunks_outside ? 128 : 128 * (bytes_k / 16)) + 16 * longer;
        p.leading = (chunks_outside ? p.stride * (rows / 8) : 128) + 16 * (chunks_outside ? longer : 0);
        *end = p.start + p.leading * (bytes_k / 16) + p.stride * (rows / 8) + 128;
    } else if (swizzle == 0) {
        p.stride = 128 + 16 * longer; /* between 16-byte groups of rows */
        p.leading = p.stride * chunks_mn + 16 * longer;
        *end = p.start + p.leading * (k / 8) + 128;
    } else {
        const uint32_t spans = (rows * bits / 8 + swizzle - 1) / swizzle;
        p.stride = 8 * swizzle + longer * 128;
        p.leading = p.stride * (k / 8) + longer * 128;
        *end = p.start + p.leading * spans + 1024;
    }
    return p;
}

/* Swizzles that hold a row of K; -1 at the end. */
static bool swizzle_fits(const struct run *r, bool is_a, bool mn_major, uint32_t swizzle)
{
    const uint32_t k = is_a ? r->shape.a_k : r->shape.k, rows = is_a ? 64 : r->shape.n, bits = r->form->bits;
    if (swizzle == 0) return true;
    return mn_major ? rows * bits / 8 % swizzle == 0 : k * bits / 8 <= swizzle;
}

/* ---- preparing ---- */

static void put(struct run *r, const struct placement *p, uint32_t row, uint32_t k, uint32_t code)
{
    const uint32_t at = place(p, r->form->bits, row, k) - BASE;
    if (at + 4 > IMAGE) abort();
    memcpy(r->image + at, &code, r->form->bits / 8);
}

/* Sparse rows: two of four elements (tf32: one of two), and the metadata that say which (9.7.15.6; CuTe's ELayout for
 * the threads). */
static void choose_columns(struct test *t, struct run *r)
{
    const struct shape *s = &r->shape;
    uint32_t(*metadata)[THREADS] = &r->registers[MOST_REGISTERS + 4];
    for (uint32_t l = 0; l < THREADS; l++) (*metadata)[l] = (uint32_t)rnd(t);
    for (uint32_t row = 0; row < 64; row++)
        for (uint32_t e = 0; e < s->a_k; e++) {
            uint32_t *column = &r->column[row * s->a_k + e];
            const bool tf32 = r->form->bits == 32;
            if (!r->form->sparse) *column = e;
            if (!r->form->sparse || (!tf32 && e % 2 != 0)) continue; /* odd ones with the one before */
            static const uint32_t pairs[] = { 0x4, 0x8, 0xc, 0x9, 0xd, 0xe };
            const uint32_t code = tf32 ? (rnd_below(t, 2) ? 0xe : 0x4) : pairs[rnd_below(t, 6)];
            const uint32_t logical = tf32 ? 2 * e : 2 * e / 4 * 4; /* of the chunk */
            if (tf32) *column = logical + (code == 0xe);
            else column[0] = logical + (code & 3), column[1] = logical + (code >> 2);
            const uint32_t chunk = tf32 ? e : e / 2, quad = row / 16 * 32 + row % 8 * 4, high = row / 8 % 2;
            const uint32_t thread =
                r->form->bits == 8 ? quad + high + 2 * (chunk / 8) : quad + 2 * r->selector + chunk / 4;
            const uint32_t shift = r->form->bits == 8 ? chunk % 8 * 4 : 16 * high + chunk % 4 * 4;
            (*metadata)[thread] = ((*metadata)[thread] & ~(15u << shift)) | code << shift;
        }
}

static void fill(struct test *t, struct run *r, enum data data)
{
    const struct shape *s = &r->shape;
    choose_columns(t, r);
    for (uint32_t i = 0; i < 64 * s->a_k; i++) r->a_code[i] = random_code(t, s->a, data);
    for (uint32_t i = 0; i < s->n * s->k; i++) r->b_code[i] = random_code(t, s->b, data);
    for (uint32_t i = 0; i < 64 * s->n; i++) r->d[i] = random_accumulator(t, s->d, data);
    for (int i = 0; i < IMAGE; i += 8) memset(r->image + i, (int)rnd_below(t, 256), 8);
    for (uint32_t row = 0; row < 64; row++)
        for (uint32_t e = 0; e < s->a_k; e++) {
            const uint32_t code = r->a_code[row * s->a_k + e];
            const struct holder h = holder_of_a(r->form->bits, row, e);
            uint32_t *to = &r->registers[MOST_REGISTERS + h.index][h.thread];
            const uint32_t mask = r->form->bits == 32 ? UINT32_MAX : ((1u << r->form->bits) - 1) << h.shift;
            *to = (*to & ~mask) | code << h.shift;
            if (!r->a_in_registers) put(r, &r->a, row, e, code);
        }
    for (uint32_t n = 0; n < s->n; n++)
        for (uint32_t k = 0; k < s->k; k++) put(r, &r->b, n, k, r->b_code[n * s->k + k]);
    memset(r->registers, 0, sizeof(uint32_t) * MOST_REGISTERS * THREADS);
    for (uint32_t row = 0; row < 64; row++)
        for (uint32_t n = 0; n < s->n; n++) {
            const struct holder h = holder_of_d(s->d, row, n);
            r->registers[h.index][h.thread] |= r->d[row * s->n + n] << h.shift;
        }
}

/* ---- the kernel ---- */

static void list(char *text, size_t size, const char *name, uint32_t count)
{
    size_t used = (size_t)snprintf(text, size, "{");
    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s%u", i == 0 ? "" : ", ", name, i);
    snprintf(text + used, size - used, "}");
}

static void kernel_text(char *text, size_t size, const struct run *r)
{
    const struct shape *s = &r->shape;
    const uint32_t d_count = s->n / (s->d == R_F16 ? 4 : 2);
    char d[2048], rest[64] = "", loads[16384], stores[16384], sparse[16] = "";
    list(d, sizeof d, "%d", d_count);
    if (s->d != R_S32) {
        const int used = snprintf(rest, sizeof rest, ", %d, %d", s->negate_a ? -1 : 1, s->negate_b ? -1 : 1);
        if (r->form->bits == 16) {
            if (r->a_in_registers) snprintf(rest + used, sizeof rest - (size_t)used, ", %d", r->b.mn_major);
            else snprintf(rest + used, sizeof rest - (size_t)used, ", %d, %d", r->a.mn_major, r->b.mn_major);
        }
    }
    if (r->form->sparse) snprintf(sparse, sizeof sparse, " %%a4, %u,", r->selector);
    size_t used = 0;
    for (uint32_t i = 0; i < d_count; i++)
        used += (size_t)snprintf(loads + used, sizeof loads - used, "ld.global.b32 %%d%u, [%%rd8+%u];\n", i,
                                 i * THREADS * 4);
    for (uint32_t i = 0; i < 5; i++)
        used += (size_t)snprintf(loads + used, sizeof loads - used, "ld.global.b32 %%a%u, [%%rd8+%u];\n", i,
                                 (MOST_REGISTERS + i) * THREADS * 4);
    used = 0;
    for (uint32_t i = 0; i < d_count; i++)
        used += (size_t)snprintf(stores + used, sizeof stores - used, "st.global.b32 [%%rd8+%u], %%d%u;\n",
                                 i * THREADS * 4, i);
    snprintf(
        text, size,
        ".version 8.4\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3, .param .u64 p4)\n{\n"
        ".reg .b32 %%d<128>, %%a<5>, %%r<16>; .reg .b64 %%rd<16>; .reg .pred %%p<4>; .shared .align 1024 .b8 s[%d];\n"
        "ld.param.u64 %%rd1, [p0]; ld.param.u64 %%rd2, [p1]; ld.param.u64 %%rd3, [p2]; ld.param.u64 %%rd4, [p3]; "
        "ld.param.u64 %%rd5, [p4];\n"
        "mov.u32 %%r1, %%tid.x; shl.b32 %%r2, %%r1, 4; mov.u32 %%r3, s;\n"
        "COPY: cvt.u64.u32 %%rd6, %%r2; add.u64 %%rd7, %%rd1, %%rd6; ld.global.v4.u32 {%%r4, %%r5, %%r6, %%r7}, "
        "[%%rd7]; add.u32 %%r8, %%r3, %%r2; st.shared.v4.u32 [%%r8], {%%r4, %%r5, %%r6, %%r7}; "
        "add.u32 %%r2, %%r2, 2048; setp.lt.u32 %%p1, %%r2, %d; @%%p1 bra COPY;\n"
        "fence.proxy.async.shared::cta; bar.sync 0;\n"
        "mul.wide.u32 %%rd8, %%r1, 4; add.u64 %%rd8, %%rd8, %%rd2;\n%s"
        "setp.eq.u32 %%p2, %d, 1;\nwgmma.fence.sync.aligned;\nwgmma.mma_async%s.sync.aligned.m64n%u%s %s, %s, %%rd4,%s "
        "%%p2%s;\n"
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
        "mul.wide.u32 %%rd8, %%r1, 4; add.u64 %%rd8, %%rd8, %%rd5;\n%sret;\n}\n",
        IMAGE, IMAGE, loads, r->accumulate, r->form->sparse ? ".sp" : "", s->n, r->form->words, d,
        r->a_in_registers ? "{%a0, %a1, %a2, %a3}" : "%rd3", sparse, rest, stores);
}

static void compare(struct test *t, const struct run *r, uint32_t (*got)[THREADS], const char *what)
{
    uint32_t *want = malloc(sizeof r->d);
    if (want == NULL) abort();
    memcpy(want, r->d, sizeof r->d);
    reference_product(&r->shape, r->a_code, r->column, r->b_code, r->accumulate, want);
    int shown = 0;
    for (uint32_t row = 0; row < 64; row++)
        for (uint32_t n = 0; n < r->shape.n && shown < 3; n++) {
            const struct holder h = holder_of_d(r->shape.d, row, n);
            const uint32_t value = got[h.index][h.thread] >> h.shift & (r->shape.d == R_F16 ? 0xffff : UINT32_MAX);
            if (value == want[row * r->shape.n + n]) continue;
            FAIL(t, "%s: m64n%u%s D[%u][%u] is 0x%08x, not 0x%08x", what, r->shape.n, r->form->words, row, n, value,
                 want[row * r->shape.n + n]);
            shown++;
        }
    free(want);
}

static void run_product(struct test *t, const struct run *r, const char *what)
{
    static char text[65536];
    struct sim sim;
    kernel_text(text, sizeof text, r);
    if (!sim_open(t, &sim, "sm_90a", text)) return;
    static uint32_t got[MOST_REGISTERS][THREADS];
    const uint64_t parameters[] = { sim_buffer(&sim, r->image, IMAGE),
                                    sim_buffer(&sim, r->registers, sizeof r->registers),
                                    r->a_in_registers ? 0 : descriptor(&r->a), descriptor(&r->b),
                                    sim_buffer(&sim, NULL, sizeof got) };
    sim_launch(t, &sim, "k", 1, THREADS, parameters, 5);
    sim_read(&sim, parameters[4], got, sizeof got);
    compare(t, r, got, what);
    sim_close(&sim);
}

struct variant {
    bool a_in_registers, a_mn, b_mn;
    uint32_t a_swizzle, b_swizzle;
};

static bool one(struct test *t, const struct form *form, uint32_t n, const struct variant *v, enum data data)
{
    static struct run r;
    const uint32_t a_k = 256 / form->bits;
    r = (struct run){ .form = form, .a_in_registers = v->a_in_registers, .accumulate = rnd_below(t, 4) != 0 };
    r.selector = form->bits == 8 ? 0 : (uint32_t)rnd_below(t, 2);
    r.shape = (struct shape){
        .a = form->a, .b = form->b, .d = form->d, .n = n, .a_k = a_k, .k = form->sparse ? 2 * a_k : a_k,
        .saturate = form->saturate
    };
    if (form->d != R_S32) r.shape.negate_a = rnd_below(t, 4) == 0, r.shape.negate_b = rnd_below(t, 4) == 0;
    if (!swizzle_fits(&r, false, v->b_mn, v->b_swizzle)
        || (!v->a_in_registers && !swizzle_fits(&r, true, v->a_mn, v->a_swizzle)))
        return false;
    uint32_t at = BASE;
    if (!v->a_in_registers) r.a = random_placement(t, form->bits, 64, a_k, v->a_mn, v->a_swizzle, at, &at);
    r.b = random_placement(t, form->bits, n, r.shape.k, v->b_mn, v->b_swizzle, at, &at);
    if (at - BASE > IMAGE) return false;
    fill(t, &r, data);
    char what[128];
    snprintf(what, sizeof what, "A %s%s%u, B %s%u",
             v->a_in_registers ? "registers"
             : v->a_mn         ? "M "
                               : "K ",
             v->a_in_registers ? "" : "", v->a_swizzle, v->b_mn ? "N " : "K ", v->b_swizzle);
    run_product(t, &r, what);
    return true;
}

/* Every form with every N of the list; layouts and operands at random. */
static void every_type_and_width(struct test *t)
{
    static const uint32_t widths[] = { 8, 16, 24, 64, 128, 200, 208, 256 };
    static const uint32_t swizzles[] = { 0, 32, 64, 128 };
    for (int f = 0; f < FORMS; f++)
        for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
            if (forms[f].d == R_S32 && widths[i] == 200) continue;
            for (int done = 0; done == 0;) {
                const bool transposable = forms[f].bits == 16;
                const struct variant v = { .a_in_registers = rnd_below(t, 2),
                                           .a_mn = transposable && rnd_below(t, 2),
                                           .b_mn = transposable && rnd_below(t, 2),
                                           .a_swizzle = swizzles[rnd_below(t, 4)],
                                           .b_swizzle = swizzles[rnd_below(t, 4)] };
                done = one(t, &forms[f], widths[i], &v, (enum data)rnd_below(t, DATA_KINDS));
            }
        }
}

/* Every pair of layouts with A and B of each width of element. */
static void every_layout(struct test *t)
{
    static const uint32_t swizzles[] = { 0, 32, 64, 128 };
    static const int some[] = { 2, 3, 5, 15, 18, 21, 22, 23, 25 };
    for (size_t f = 0; f < sizeof some / sizeof some[0]; f++) {
        const struct form *form = &forms[some[f]];
        const int majors = form->bits == 16 ? 2 : 1;
        for (int a = 0; a < 4 * majors; a++)
            for (int b = 0; b < 4 * majors; b++) {
                const struct variant v = {
                    .a_mn = a >= 4, .b_mn = b >= 4, .a_swizzle = swizzles[a % 4], .b_swizzle = swizzles[b % 4]
                };
                one(t, form, 64, &v, DATA_RANDOM);
            }
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_type_and_width), TEST(every_layout) };
    return TEST_MAIN(argc, argv, cases);
}
