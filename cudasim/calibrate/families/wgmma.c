/* wgmma: products of every form with A in shared memory and in registers, every layout, every N for some types, sparse
 * metadata; operands around 1, whole, and of any bits.  Shared memory holds codes at random: a descriptor finds
 * operands everywhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "families.h"

enum {
    THREADS = 128, ROW = 4 * THREADS,                           /* bytes of a register of all threads */
    A_AT = 128 * ROW, METADATA_AT = A_AT + 4 * ROW, IMAGE_AT = METADATA_AT + ROW,
    B_IN_IMAGE = 9 * 1024, IMAGE = B_IN_IMAGE + 34 * 1024, INPUT = IMAGE_AT + IMAGE
};

enum element { F16, BF16, TF32, E4M3, E5M2, S8, U8, B1 };
enum data { NEAR_ONE, WHOLE, ANY_BITS, DATA_KINDS };
static const char *const data_names[] = { "near 1", "whole", "any bits" };

struct form { const char *words; enum element a, b; char d; bool sparse; };       /* d: 'f' f32, 'h' f16, 's' s32 */
static const struct form forms[] = {
    { "k16.f32.f16.f16", F16, F16, 'f', false },           { "k16.f16.f16.f16", F16, F16, 'h', false },
    { "k16.f32.bf16.bf16", BF16, BF16, 'f', false },       { "k8.f32.tf32.tf32", TF32, TF32, 'f', false },
    { "k32.f32.e4m3.e4m3", E4M3, E4M3, 'f', false },       { "k32.f32.e4m3.e5m2", E4M3, E5M2, 'f', false },
    { "k32.f32.e5m2.e4m3", E5M2, E4M3, 'f', false },       { "k32.f32.e5m2.e5m2", E5M2, E5M2, 'f', false },
    { "k32.f16.e4m3.e4m3", E4M3, E4M3, 'h', false },       { "k32.f16.e4m3.e5m2", E4M3, E5M2, 'h', false },
    { "k32.f16.e5m2.e4m3", E5M2, E4M3, 'h', false },       { "k32.f16.e5m2.e5m2", E5M2, E5M2, 'h', false },
    { "k32.s32.s8.s8", S8, S8, 's', false },               { "k32.s32.s8.u8", S8, U8, 's', false },
    { "k32.s32.u8.s8", U8, S8, 's', false },               { "k32.s32.u8.u8", U8, U8, 's', false },
    { "k32.s32.s8.s8.satfinite", S8, S8, 's', false },     { "k32.s32.s8.u8.satfinite", S8, U8, 's', false },
    { "k32.s32.u8.s8.satfinite", U8, S8, 's', false },     { "k32.s32.u8.u8.satfinite", U8, U8, 's', false },
    { "k256.s32.b1.b1.and.popc", B1, B1, 's', false },
    { "k32.f32.f16.f16", F16, F16, 'f', true },            { "k32.f16.f16.f16", F16, F16, 'h', true },
    { "k32.f32.bf16.bf16", BF16, BF16, 'f', true },        { "k16.f32.tf32.tf32", TF32, TF32, 'f', true },
    { "k64.f32.e4m3.e4m3", E4M3, E4M3, 'f', true },        { "k64.f32.e4m3.e5m2", E4M3, E5M2, 'f', true },
    { "k64.f32.e5m2.e4m3", E5M2, E4M3, 'f', true },        { "k64.f32.e5m2.e5m2", E5M2, E5M2, 'f', true },
    { "k64.f16.e4m3.e4m3", E4M3, E4M3, 'h', true },        { "k64.f16.e4m3.e5m2", E4M3, E5M2, 'h', true },
    { "k64.f16.e5m2.e4m3", E5M2, E4M3, 'h', true },        { "k64.f16.e5m2.e5m2", E5M2, E5M2, 'h', true },
    { "k64.s32.s8.s8", S8, S8, 's', true },                { "k64.s32.s8.u8", S8, U8, 's', true },
    { "k64.s32.u8.s8", U8, S8, 's', true },                { "k64.s32.u8.u8", U8, U8, 's', true },
    { "k64.s32.s8.s8.satfinite", S8, S8, 's', true },      { "k64.s32.s8.u8.satfinite", S8, U8, 's', true },
    { "k64.s32.u8.s8.satfinite", U8, S8, 's', true },      { "k64.s32.u8.u8.satfinite", U8, U8, 's', true },
};
enum { FORMS = sizeof forms / sizeof forms[0] };

/* ---- operands ---- */

/*                              bits  mantissa  exponent's bias */
static const struct { uint32_t bits, mantissa, bias;
} formats[] = {
    [F16] = { 16, 10, 15 }, [BF16] = { 16, 7, 127 }, [TF32] = { 32, 23, 127 }, [E4M3] = { 8, 3, 7 },
    [E5M2] = { 8, 2, 15 },  [S8] = { 8, 0, 0 },      [U8] = { 8, 0, 0 },       [B1] = { 32, 0, 0 },
};

static uint32_t code_of(enum element e, enum data data, uint64_t *state)
{
    const uint32_t random = (uint32_t)(calibration_random(state) >> 32), bits = formats[e].bits;
    const uint32_t all = bits == 32 ? UINT32_MAX : (1u << bits) - 1, code = random & all;
    if (e == S8 || e == U8 || e == B1) return data == WHOLE ? code & 3 : code;
    const uint32_t m = formats[e].mantissa, minus = 1u << (bits - 1), top = (minus - 1) >> m << m;
    if (data == WHOLE) return (code & minus) | formats[e].bias << m | (code & (1u << (m - 1)));
    if (data == NEAR_ONE) return (code & (minus | ((1u << m) - 1))) | (formats[e].bias - 3 + (random >> 8) % 6) << m;
    /* Infinities and NaN now and then: they hide what lies in the same row or column */
    return (code & top) == top && calibration_random(state) >> 58 != 0 ? code ^ 1u << m : code;
}

static void codes(uint8_t *to, size_t bytes, enum element e, enum data data, uint64_t *state)
{
    const uint32_t size = formats[e].bits / 8;
    for (size_t i = 0; i < bytes; i += size) {
        const uint32_t code = code_of(e, data, state);
        memcpy(to + i, &code, size);
    }
}

/* Two different indices in each nibble; rising, or (data[1]) in any order.  tf32: 4 or 14. */
static uint32_t metadata(bool tf32, bool any_order, uint64_t *state)
{
    static const uint32_t rising[] = { 4, 8, 12, 9, 13, 14 }, falling[] = { 1, 2, 3, 6, 7, 11 };
    uint32_t word = 0;
    for (int i = 0; i < 8; i++) {
        const uint64_t random = calibration_random(state);
        const uint32_t pair = any_order && random >> 63 != 0 ? falling[(random >> 32) % 6] : rising[(random >> 32) % 6];
        word |= (tf32 ? (random >> 62 & 1 ? 14 : 4) : pair) << (4 * i);
    }
    return word;
}

static void fill(const struct calibration_case *c, uint8_t *input)
{
    const struct form *f = c->context;
    const enum data data = (enum data)(c->data[0] % DATA_KINDS);
    uint64_t state = c->data[0] * 7919 + (uint64_t)(f - forms);
    if (f->d == 's') codes(input, A_AT, B1, ANY_BITS, &state);
    else codes(input, A_AT, f->d == 'h' ? F16 : TF32, data, &state);
    codes(input + A_AT, METADATA_AT - A_AT, f->a, data, &state);
    for (uint32_t i = 0; i < THREADS; i++) {
        const uint32_t word = metadata(f->a == TF32, c->data[1] != 0, &state);
        memcpy(input + METADATA_AT + 4 * i, &word, 4);
    }
    codes(input + IMAGE_AT, B_IN_IMAGE, f->a, data, &state);
    codes(input + IMAGE_AT + B_IN_IMAGE, IMAGE - B_IN_IMAGE, f->b, data, &state);
}

/* ---- layouts ---- */

struct layout {
    bool mn_major;
    uint32_t swizzle;
    uint32_t pattern;
    uint32_t stride_more;
}; /* swizzle in bytes, 0: none */

/* Packed, or with a longer stride; `pattern`: 128-byte rows behind a multiple of 1024 where the swizzle's pattern
 * begins. */
static uint64_t descriptor(const struct layout *l, uint32_t at, uint32_t rows, uint32_t k)
{
    const uint32_t span = l->swizzle == 0 ? 16 : l->swizzle, more = l->stride_more * 128;
    uint32_t leading = 16, stride = 8 * span + more;
    if (!l->mn_major && l->swizzle == 0) stride = 128 + more, leading = stride * (rows / 8);
    if (l->mn_major && l->swizzle == 0) stride = 128 + more, leading = stride * (rows / 8);
    if (l->mn_major && l->swizzle != 0) leading = stride * (k / 8);
    const uint64_t mode = l->swizzle == 0 ? 0 : l->swizzle == 128 ? 1 : l->swizzle == 64 ? 2 : 3;
    return (uint64_t)(at + 128 * l->pattern) >> 4 | (uint64_t)leading >> 4 << 16 | (uint64_t)(stride >> 4) << 32 |
           (uint64_t)(l->swizzle == 0 ? 0 : l->pattern) << 49 | mode << 62;
}

static bool fits(const struct layout *l, uint32_t rows, uint32_t k_bytes, uint32_t bits, bool may_transpose)
{
    if (l->mn_major && !may_transpose) return false;
    if (l->swizzle == 0) return true;
    return l->mn_major ? rows * bits / 8 % l->swizzle == 0 : k_bytes <= l->swizzle;
}

/* ---- cases ---- */

struct product {
    const struct form *form;
    uint32_t n;
    bool a_in_registers, accumulates, a_negated, b_negated, any_order;
    uint32_t selector;
    struct layout a, b;
    enum data data;
    uint32_t seed;
};

static size_t add_list(char *to, size_t size, uint32_t count)
{
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(to + used, size - used, "%s%%d%u", i == 0 ? "{" : ", ", i);
    return used + (size_t)snprintf(to + used, size - used, "}");
}

static const char *layout_name(const struct layout *l, char *text, size_t size)
{
    snprintf(text, size, "%s %u%s%.0u%s", l->mn_major ? "MN" : "K", l->swizzle, l->pattern != 0 ? " base " : "",
             l->pattern, l->stride_more != 0 ? " strided" : "");
    return text;
}

static void add(struct calibration *c, const struct product *p)
{
    const struct form *f = p->form;
    const uint32_t bits = formats[f->a].bits, a_k = 256 / bits, k = f->sparse ? 2 * a_k : a_k,
                   d_count = p->n / (f->d == 'h' ? 4 : 2);
    const bool real = f->d != 's', transposable = bits == 16;
    if (!fits(&p->b, p->n, k * bits / 8, bits, transposable)) return;
    if (!p->a_in_registers && !fits(&p->a, 64, 32, bits, transposable)) return;
    char *body = malloc(65536), list[2048], rest[64] = "", sparse[32] = "", a[32], name[192], a_layout[48],
         b_layout[48];
    if (body == NULL) abort();
    add_list(list, sizeof list, d_count);
    if (real) {
        const int used = snprintf(rest, sizeof rest, ", %d, %d", p->a_negated ? -1 : 1, p->b_negated ? -1 : 1);
        if (transposable && p->a_in_registers) snprintf(rest + used, sizeof rest - (size_t)used, ", %d", p->b.mn_major);
        if (transposable && !p->a_in_registers)
            snprintf(rest + used, sizeof rest - (size_t)used, ", %d, %d", p->a.mn_major, p->b.mn_major);
    }
    if (f->sparse) snprintf(sparse, sizeof sparse, ", %%a4, %u", p->selector);
    snprintf(a, sizeof a, "%s", p->a_in_registers ? "{%a0, %a1, %a2, %a3}" : "%l6");
    size_t used = (size_t)snprintf(
        body, 65536,
        ".reg .b32 %%d<128>, %%a<5>, %%r<16>; .reg .b64 %%l<16>; .reg .pred %%p<4>; .shared .align 1024 .b8 s[%d];\n"
        "ld.param.u64 %%l0, [in]; ld.param.u64 %%l1, [out]; mov.u32 %%r1, %%tid.x; mov.u32 %%r2, s; "
        "shl.b32 %%r3, %%r1, 2;\n"
        "COPY: cvt.u64.u32 %%l2, %%r3; add.u64 %%l3, %%l0, %%l2; ld.global.u32 %%r4, [%%l3+%d]; "
        "add.u32 %%r5, %%r2, %%r3; st.shared.u32 [%%r5], %%r4; add.u32 %%r3, %%r3, 512; setp.lt.u32 %%p1, %%r3, %d; "
        "@%%p1 bra COPY;\n"
        "fence.proxy.async.shared::cta; bar.sync 0; mul.wide.u32 %%l2, %%r1, 4; add.u64 %%l3, %%l0, %%l2; "
        "add.u64 %%l4, %%l1, %%l2;\n"
        "and.b32 %%r6, %%r2, 0x3ffff; shr.u32 %%r6, %%r6, 4; cvt.u64.u32 %%l5, %%r6; add.u64 %%l6, %%l5, 0x%llx; "
        "add.u64 %%l7, %%l5, 0x%llx;\n",
        IMAGE, IMAGE_AT, IMAGE, (unsigned long long)descriptor(&p->a, 0, 64, a_k),
        (unsigned long long)descriptor(&p->b, B_IN_IMAGE, p->n, k));
    for (uint32_t i = 0; i < d_count; i++)
        used += (size_t)snprintf(body + used, 65536 - used, "ld.global.b32 %%d%u, [%%l3+%u];\n", i, i * ROW);
    for (uint32_t i = 0; i < 5; i++)
        used += (size_t)snprintf(body + used, 65536 - used, "ld.global.b32 %%a%u, [%%l3+%u];\n", i, A_AT + i * ROW);
    used += (size_t)snprintf(body + used, 65536 - used,
                             "wgmma.fence.sync.aligned;\nwgmma.mma_async%s.sync.aligned.m64n%u%s %s, %s, %%l7%s, "
                             "%d%s;\n"
                             "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
                             f->sparse ? ".sp" : "", p->n, f->words, list, a, sparse, p->accumulates, rest);
    for (uint32_t i = 0; i < d_count; i++)
        used += (size_t)snprintf(body + used, 65536 - used, "st.global.b32 [%%l4+%u], %%d%u;\n", i * ROW, i);
    snprintf(name, sizeof name, "wgmma%s m64n%u%s A %s B %s %s %s%s%s%s%s %u", f->sparse ? ".sp" : "", p->n, f->words,
             p->a_in_registers ? "registers" : layout_name(&p->a, a_layout, sizeof a_layout),
             layout_name(&p->b, b_layout, sizeof b_layout), data_names[p->data], p->accumulates ? "+D" : "",
             p->a_negated ? " -A" : "", p->b_negated ? " -B" : "", p->any_order ? " indices in any order" : "",
             f->sparse && p->selector != 0 ? " selector 1" : "", p->seed);
    char form[256];
    snprintf(form, sizeof form,
             "wgmma.mma_async%s.sync.aligned.m64n%u%s wgmma.fence.sync.aligned wgmma.commit_group.sync.aligned "
             "wgmma.wait_group.sync.aligned",
             f->sparse ? ".sp" : "", p->n, f->words);
    calibration_add(c, &(struct calibration_case){ .name = name,
                                                   .form = form,
                                                   .body = body,
                                                   .block = { THREADS },
                                                   .input_bytes = INPUT,
                                                   .output_bytes = (size_t)d_count * ROW,
                                                   .fill = fill,
                                                   .data = { p->seed * DATA_KINDS + p->data, p->any_order },
                                                   .context = f });
    free(body);
}

static const uint32_t swizzles[] = { 0, 32, 64, 128 };

/* Every form, A in both places, every kind of data; the rest goes through its values. */
static void add_forms(struct calibration *c)
{
    static const uint32_t widths[] = { 8, 64, 16, 128, 24, 256, 32, 208 };
    uint32_t turn = 0;
    for (int i = 0; i < FORMS; i++)
        for (int in_registers = 0; in_registers < 2; in_registers++)
            for (int data = 0; data < DATA_KINDS; data++, turn++) {
                struct product p = { .form = &forms[i],
                                     .n = widths[turn % 8],
                                     .a_in_registers = in_registers,
                                     .accumulates = turn % 5 != 0,
                                     .data = (enum data)data,
                                     .seed = turn };
                if (forms[i].d != 's') p.a_negated = turn % 7 == 3, p.b_negated = turn % 11 == 5;
                if (forms[i].sparse) p.selector = formats[forms[i].a].bits == 8 ? 0 : turn & 1;
                p.a.swizzle = swizzles[turn / 3 % 4];
                p.b.swizzle = swizzles[turn / 5 % 4];
                if (forms[i].sparse && p.b.swizzle == 32) p.b.swizzle = 64; /* a row of B has 64 bytes of K */
                add(c, &p);
            }
}

static void add_layouts(struct calibration *c, const struct form *form)
{
    uint32_t turn = 1000;
    for (int a = 0; a < 8; a++)
        for (int b = 0; b < 8; b++, turn++) {
            struct product p = { .form = form, .n = 64, .data = NEAR_ONE, .seed = turn, .accumulates = true };
            p.a = (struct layout){ a >= 4, swizzles[a % 4],
                                   a % 4 == 0      ? 0
                                   : turn % 3 == 0 ? turn % 8
                                                   : 0,
                                   turn / 2 % 2 };
            p.b = (struct layout){ b >= 4, swizzles[b % 4],
                                   b % 4 == 0      ? 0
                                   : turn % 5 == 0 ? turn % 8
                                                   : 0,
                                   turn / 3 % 2 };
            add(c, &p);
        }
}

static void add_widths(struct calibration *c, const struct form *form)
{
    for (uint32_t n = 8; n <= 256; n += 8) {
        if (form->d == 's' && n > 32 && n % 16 != 0) continue;
        add(c, &(struct product){
                   .form = form, .n = n, .a = { .swizzle = 128 }, .b = { .swizzle = 128 }, .data = NEAR_ONE,
                   .seed = 2000 + n });
    }
}

/* Sparse metadata with indices that fall: the manual forbids equal ones only. */
static void add_orders(struct calibration *c)
{
    for (int i = 0; i < FORMS; i++)
        if (forms[i].sparse && forms[i].a != TF32)
            add(c, &(struct product){ .form = &forms[i],
                                      .n = 16,
                                      .a_in_registers = i % 2 == 0,
                                      .a = { .swizzle = 128 },
                                      .b = { .swizzle = 128 },
                                      .data = NEAR_ONE,
                                      .seed = 3000,
                                      .any_order = true });
}

void calibration_family_wgmma(struct calibration *c)
{
    add_forms(c);
    for (int i = 0; i < FORMS; i++) {
        const struct form *f = &forms[i];
        if (f->d == 'f' && (f->a == BF16 || (f->a == F16 && f->sparse))) add_layouts(c, f);
        if (!f->sparse && (f->a == TF32 || (f->a == E4M3 && f->b == E4M3 && f->d == 'f') || f->a == B1))
            add_layouts(c, f);
        if (!f->sparse && ((f->a == BF16) || (f->a == F16 && f->d == 'h') || (f->a == S8 && f->b == S8)))
            add_widths(c, f);
    }
    add_orders(c);
}
