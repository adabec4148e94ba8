/* Matrix instructions of a warp: mma.sync and mma.sp in every form of the table, with operands of several manners;
 * ldmatrix, stmatrix, movmatrix; wmma from memory to memory.  A CTA of one warp does one set of operands; register r of
 * lane l lies at (set * registers + r) * 32 + l in units of its width. */
#include <string.h>

#include "families.h"
#include "calibrate/forms/forms.h"
#include "calibrate/forms/text.h"

enum { SETS = 64 };

/* ---- operands ---- */

/* How the numbers of a case are drawn. */
enum manner { ANYTHING, NEAR_ONE, SMALL, LARGE, CANCELLING, WITH_ZEROS, UNDERFLOWING, MANNERS };
static const char *const manner_name[] = { "any bits", "near 1", "subnormals", "the largest", "cancellation",
                                           "zeros beside large numbers", "underflow" };

static const struct { enum ptx_type type; int exponent, fraction, low; } layouts[] = {
    { T_F16, 5, 10, 0 }, { T_BF16, 8, 7, 0 }, { T_TF32, 8, 10, 13 }, { T_E4M3, 4, 3, 0 }, { T_E5M2, 5, 2, 0 },
      { T_F32, 8, 23, 0 },
    { T_F64, 11, 52, 0 },
};

static int width_of(enum ptx_type type)
{
    return type == T_S4 || type == T_U4 ? 4 : type == T_B1 ? 1 : type == T_TF32 ? 32 : (int)type_bits(type);
}

/* Element number `n` of its operand: pairs of neighbours cancel where that is asked for. */
static uint64_t draw(enum ptx_type type, enum manner manner, uint64_t *state, uint32_t n)
{
    const uint64_t any = calibration_random(state);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (layouts[i].type != type || manner == ANYTHING) continue;
        const int e = layouts[i].exponent, f = layouts[i].fraction, middle = (1 << (e - 1)) - 1, below = e < 5 ? 3 : 6;
        const uint64_t fraction = any >> 8 & ((UINT64_C(1) << f) - 1), top = (UINT64_C(1) << e) - 2;
        uint64_t sign = any & 1, exponent = (uint64_t)(middle - below) + (any >> 1 & 7) % (uint64_t)(below + 3);
        if (manner == SMALL) exponent = any >> 4 & 1;
        if (manner == LARGE) exponent = top - (any >> 4 & 1);
        if (manner == CANCELLING) sign = n & 1, exponent = (uint64_t)middle;
        if (manner == WITH_ZEROS && (any >> 4 & 3) == 0) return sign << (e + f) << layouts[i].low;
        if (manner == WITH_ZEROS && (any >> 4 & 3) == 1) exponent = top;
        if (manner == UNDERFLOWING) exponent = (uint64_t)(middle - (1 << (e - 2)) - (e == 8 ? 10 : 2)) + (any >> 4 & 3);
        return ((sign << e | exponent) << f | fraction) << layouts[i].low;
    }
    return manner == LARGE && type != T_S32 ? (any & 1 ? UINT64_C(0x8080808080808080) : UINT64_C(0x7f7f7f7f7f7f7f7f))
         : manner == LARGE ? INT32_MAX + (any & 1) : any;
}

/* data[0] of a case; data[1]: 0 dense, 1 sparse, 2 sparse of tf32. */
struct shape { enum ptx_type a, b, c; uint32_t na, nb, nc; enum manner manner; };
static uint64_t pack(const struct shape *s)
{
    return (uint64_t)s->a | (uint64_t)s->b << 8 | (uint64_t)s->c << 16 | (uint64_t)s->na << 24 | (uint64_t)s->nb << 32 |
           (uint64_t)s->nc << 40 | (uint64_t)s->manner << 48;
}
static struct shape unpack(uint64_t data)
{
    return (struct shape){ (enum ptx_type)(data & 255),       (enum ptx_type)(data >> 8 & 255),
                           (enum ptx_type)(data >> 16 & 255), (uint32_t)(data >> 24 & 255),
                           (uint32_t)(data >> 32 & 255),      (uint32_t)(data >> 40 & 255),
                           (enum manner)(data >> 48 & 255) };
}

static uint8_t *fill_registers(uint8_t *to, enum ptx_type type, uint32_t registers, enum manner manner, uint64_t *state)
{
    const int width = width_of(type), bytes = width == 64 ? 8 : 4, each = bytes * 8 / width;
    for (uint32_t n = 0; n < registers * 32; n++, to += bytes) {
        uint64_t value = 0;
        for (int i = 0; i < each; i++)
            value |= (draw(type, manner, state, (uint32_t)i) & (UINT64_MAX >> (64 - width))) << i * width;
        memcpy(to, &value, (size_t)bytes);
    }
    return to;
}

/* Indices that rise, as both kinds of mma.sp take them. */
static uint8_t *fill_metadata(uint8_t *to, bool tf32, uint64_t *state)
{
    static const uint8_t pairs[] = { 4, 8, 9, 12, 13, 14 }, ones[] = { 4, 14 };
    for (int l = 0; l < 32; l++, to += 4) {
        uint32_t value = 0;
        for (int i = 0; i < 8; i++) {
            const uint64_t r = calibration_random(state);
            value |= (uint32_t)(tf32 ? ones[r % 2] : pairs[r % 6]) << 4 * i;
        }
        memcpy(to, &value, 4);
    }
    return to;
}

static void fill(const struct calibration_case *c, uint8_t *input)
{
    const struct shape s = unpack(c->data[0]);
    uint64_t state = c->data[0] * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int set = 0; set < SETS; set++) {
        input = fill_registers(input, s.a, s.na, s.manner, &state);
        input = fill_registers(input, s.b, s.nb, s.manner, &state);
        /* c far below the products now and then, or zero */
        const enum manner of_c = set % 4 == 3 && s.manner != ANYTHING ? SMALL : s.manner;
        input = fill_registers(input, s.c, s.nc, s.manner == UNDERFLOWING && set % 2 == 0 ? WITH_ZEROS : of_c, &state);
        if (c->data[1] != 0) input = fill_metadata(input, c->data[1] == 2, &state);
    }
}

/* ---- mma.sync and mma.sp ---- */

static void vector(FILE *out, const char *list, uint32_t count, uint32_t first)
{
    for (uint32_t i = 0; i < count; i++) fprintf(out, "%s%%%s%u", i == 0 ? "{" : ", ", list, first + i);
    fputs("}", out);
}

enum { D, A, B, C, METADATA, SELECTOR };

static void add_product(struct calibration *c, const struct form *f, enum manner manner, int selector)
{
    struct form_operand o[FORM_OPERANDS];
    const bool sparse = form_operands(&f->in, o) > METADATA, wide = f->in.type[0] == T_F64;
    const uint32_t bytes = wide ? 8 : 4;
    const char *const list = wide ? "d" : "r", *const type = wide ? "f64" : "b32";
    const struct shape s = { (enum ptx_type)f->in.type[1], (enum ptx_type)f->in.type[2], (enum ptx_type)f->in.type[3],
                             (uint32_t)o[A].vector, (uint32_t)o[B].vector, (uint32_t)o[C].vector, manner };
    const uint32_t in = s.na + s.nb + s.nc + sparse, out = (uint32_t)o[D].vector;
    char name[FORM_TEXT + 64];
    struct text t;
    text_open(&t);
    fprintf(t.out,
            ".reg .b32 %%r<48>; .reg .f64 %%d<48>; .reg .b64 %%u<4>; .reg .b32 %%t<4>;\n"
            "ld.param.u64 %%u0, [in]; ld.param.u64 %%u1, [out]; mov.u32 %%t0, %%ctaid.x; "
            "mov.u32 %%t1, %%tid.x;\n"
            "mad.lo.u32 %%t2, %%t0, %u, %%t1; mad.wide.u32 %%u0, %%t2, %u, %%u0;\n"
            "mad.lo.u32 %%t2, %%t0, %u, %%t1; mad.wide.u32 %%u1, %%t2, %u, %%u1;\n",
            in * 32, bytes, out * 32, bytes);
    for (uint32_t i = 0; i < in; i++)
        fprintf(t.out, "ld.global.%s %%%s%u, [%%u0+%u];\n", type, list, i, i * 32 * bytes);
    fprintf(t.out, "%s ", f->text);
    vector(t.out, list, out, 32);
    fputs(", ", t.out);
    vector(t.out, list, s.na, 0);
    fputs(", ", t.out);
    vector(t.out, list, s.nb, s.na);
    fputs(", ", t.out);
    vector(t.out, list, s.nc, s.na + s.nb);
    if (sparse) fprintf(t.out, ", %%%s%u, %d", list, in - 1, selector);
    fputs(";\n", t.out);
    for (uint32_t i = 0; i < out; i++)
        fprintf(t.out, "st.global.%s [%%u1+%u], %%%s%u;\n", type, i * 32 * bytes, list, 32 + i);
    if (sparse) snprintf(name, sizeof name, "%s selector %d, %s", f->text, selector, manner_name[manner]);
    else snprintf(name, sizeof name, "%s, %s", f->text, manner_name[manner]);
    calibration_add(c, &(struct calibration_case){
        .name = name, .form = f->text, .body = text_close(&t), .grid = { SETS },
        .input_bytes = (size_t)SETS * in * 32 * bytes,
        .output_bytes = (size_t)SETS * out * 32 * bytes, .fill = fill,
        .data = { pack(&s), sparse ? 1 + (s.a == T_TF32) : 0 } });
    free(t.bytes);
}

static void add_form(struct calibration *c, const struct form *f)
{
    struct form_operand o[FORM_OPERANDS];
    const bool sparse = form_operands(&f->in, o) > METADATA;
    const enum ptx_type a = (enum ptx_type)f->in.type[1];
    const bool integer = a == T_S8 || a == T_U8 || a == T_S4 || a == T_U4 || a == T_B1;
    for (int manner = 0; manner < MANNERS; manner++) {
        if (integer && manner != ANYTHING && manner != LARGE) continue;
        add_product(c, f, (enum manner)manner, 0);
        if (!sparse || manner != NEAR_ONE + integer * (LARGE - NEAR_ONE)) continue;
        for (int selector = 1; selector < 4; selector++) {
            add_product(c, f, (enum manner)manner, selector);
            if (!calibration_reads(&c->cases[c->count - 1])) calibration_drop(c, c->count - 1);
        }
    }
}

/* ---- matrices in shared memory ---- */

/* The input: 4 KiB for shared memory, then an offset for each of 32 lanes and 4 KiB of registers. */
enum { TILE = 4096, OFFSETS = TILE, REGISTERS = TILE + 128 };

static void fill_tile(const struct calibration_case *c, uint8_t *input)
{
    uint64_t state = 5;
    for (size_t i = 0; i < c->input_bytes; i++) input[i] = (uint8_t)(calibration_random(&state) >> 8);
    for (uint32_t l = 0; l < 32; l++) {
        const uint32_t offset = (l * 37 + 11) % 128 * 32;    /* no two alike, 16-byte steps apart in every other row */
        const uint32_t at = offset + (l & 1) * 16;
        memcpy(input + OFFSETS + 4 * l, &at, 4);
    }
}

static void add_matrix_form(struct calibration *c, const struct form *f)
{
    const bool load = strncmp(f->text, "ldmatrix", 8) == 0, store = strncmp(f->text, "stmatrix", 8) == 0;
    const bool generic = strstr(f->text, ".shared") == NULL;
    const uint32_t count = strstr(f->text, ".x4") != NULL ? 4 : strstr(f->text, ".x2") != NULL ? 2 : 1;
    struct text t;
    text_open(&t);
    fputs(".reg .b32 %r<16>; .reg .b64 %u<6>; .reg .pred %p; .shared .align 16 .b8 tile[4096];\n"
          "ld.param.u64 %u0, [in]; ld.param.u64 %u1, [out]; mov.u32 %r8, %tid.x; mad.wide.u32 %u2, %r8, 4, %u0;\n"
          "mad.wide.u32 %u3, %r8, 4, %u1; mov.u32 %r9, tile; ld.global.u32 %r10, [%u2+4096]; add.u32 %r10, %r10, %r9;\n"
          "mad.lo.u32 %r11, %r8, 4, %r9; mov.u32 %r12, 0;\n"
          "FILL: ld.global.u32 %r13, [%u2]; st.shared.u32 [%r11], %r13; add.u64 %u2, %u2, 128; "
          "add.u32 %r11, %r11, 128;\n"
          "add.u32 %r12, %r12, 1; setp.lt.u32 %p, %r12, 32; @%p bra FILL;\n"
          "bar.sync 0; cvt.u64.u32 %u4, %r10; cvta.shared.u64 %u4, %u4;\n", t.out);
    for (uint32_t i = 0; i < 4; i++) fprintf(t.out, "ld.global.u32 %%r%u, [%%u2+%u];\n", i, 128 + 128 * i);
    if (load) {
        fprintf(t.out, "%s ", f->text);
        vector(t.out, "r", count, 0);
        fprintf(t.out, ", [%s];\n", generic ? "%u4" : "%r10");
    } else if (store) {
        fprintf(t.out, "%s [%s], ", f->text, generic ? "%u4" : "%r10");
        vector(t.out, "r", count, 0);
        fputs(";\n", t.out);
    } else {
        fprintf(t.out, "%s %%r0, %%r1;\n", f->text);
    }
    for (uint32_t i = 0; i < 4; i++) fprintf(t.out, "st.global.u32 [%%u3+%u], %%r%u;\n", 128 * i, i);
    fputs("bar.sync 0; mad.lo.u32 %r11, %r8, 4, %r9; mov.u32 %r12, 0;\n"
          "BACK: ld.shared.u32 %r13, [%r11]; st.global.u32 [%u3+512], %r13; add.u64 %u3, %u3, 128; "
          "add.u32 %r11, %r11, 128;\n"
          "add.u32 %r12, %r12, 1; setp.lt.u32 %p, %r12, 32; @%p bra BACK;\n", t.out);
    calibration_add(c, &(struct calibration_case){ .name = f->text, .form = f->text, .body = text_close(&t),
                                                   .input_bytes = REGISTERS + 512, .output_bytes = 512 + TILE,
                                                   .fill = fill_tile });
    free(t.bytes);
}

/* ---- wmma: from memory to memory ---- */

struct wmma_form { const char *shape, *ab, *c, *d, *words; int m, n, k, na, nb; bool only_row_col; const char *head; };

static void fill_wmma(const struct calibration_case *c, uint8_t *input)
{
    static const enum ptx_type types[] = { T_F16, T_BF16, T_TF32, T_S8, T_F64, T_F32, T_S32 };
    uint64_t state = 77;
    for (int part = 0; part < 3; part++, input += 8192) {
        const enum ptx_type type = types[part == 2 ? c->data[1] : c->data[0]];
        const int width = width_of(type);
        for (uint32_t n = 0; n < 8192 * 8 / (uint32_t)width; n++) {
            const uint64_t value = draw(type, type == T_S8 || type == T_S32 ? ANYTHING : NEAR_ONE, &state, n);
            memcpy(input + (size_t)n * (size_t)width / 8, &value, (size_t)width / 8);
        }
    }
}

static int registers_of(const char *type, const struct wmma_form *f)
{
    const int elements = f->m * f->n / 32;
    return strcmp(type, "f16") == 0 ? elements / 2 : elements;
}

static void add_wmma(struct calibration *c, const struct wmma_form *f, int layout)
{
    const char *const la = layout & 1 ? "col" : "row", *const lb = layout & 2 ? "col" : "row";
    const char *const lc = layout & 4 ? "col" : "row";
    const bool wide = strcmp(f->ab, "f64") == 0;
    const char *const list = wide ? "d" : "r";
    char forms[512], name[256];
    struct text t;
    text_open(&t);
    fputs(".reg .b32 %r<64>; .reg .f64 %d<64>; .reg .b64 %u<4>; ld.param.u64 %u0, [in]; ld.param.u64 %u1, [out];\n",
          t.out);
    const int part = 8192, at[] = { 0, 8, 16, 32 };
    snprintf(forms, sizeof forms,
             "wmma.load.a.sync.aligned.%s.%s.global.%s wmma.load.b.sync.aligned.%s.%s.global.%s "
             "wmma.load.c.sync.aligned.%s.%s.global.%s wmma.mma%s.sync.aligned.%s.%s.%s%s "
             "wmma.store.d.sync.aligned.%s.%s.global.%s",
             la, f->shape, f->ab, lb, f->shape, f->ab, lc, f->shape, f->c, f->head, la, lb, f->shape, f->words, lc,
             f->shape, f->d);
    char copy[512], *form[5], *next = copy;
    memcpy(copy, forms, sizeof copy);
    for (int i = 0; i < 5; i++)
        form[i] = next, next = strchr(next, ' '), next = next == NULL ? NULL : (*next = '\0', next + 1);
    const int count[] = { f->na, f->nb, registers_of(f->c, f), registers_of(f->d, f) };
    for (int i = 0; i < 3; i++) {
        fprintf(t.out, "%s ", form[i]);
        vector(t.out, list, (uint32_t)count[i], (uint32_t)at[i]);
        fprintf(t.out, ", [%%u0+%d];\n", i * part);
    }
    fprintf(t.out, "%s ", form[3]);
    vector(t.out, list, (uint32_t)count[3], (uint32_t)at[3]);
    for (int i = 0; i < 3; i++) fputs(", ", t.out), vector(t.out, list, (uint32_t)count[i], (uint32_t)at[i]);
    fprintf(t.out, ";\n%s [%%u1], ", form[4]);
    vector(t.out, list, (uint32_t)count[3], (uint32_t)at[3]);
    fputs(";\n", t.out);
    snprintf(name, sizeof name, "%s, C and D by %s", form[3], lc);
    static const char *const types[] = { "f16", "bf16", "tf32", "s8", "f64", "f32", "s32" };
    uint64_t of[2] = { 3, 6 };
    for (uint64_t i = 0; i < 7; i++) {
        if (strcmp(types[i], f->ab) == 0) of[0] = i;
        if (strcmp(types[i], f->c) == 0) of[1] = i;
    }
    const int bytes = wide ? 8 : strcmp(f->d, "f16") == 0 ? 2 : 4;
    calibration_add(c, &(struct calibration_case){ .name = name, .form = forms, .body = text_close(&t),
                                                   .input_bytes = 3 * (size_t)part,
                                                   .output_bytes = (size_t)(f->m * f->n * bytes), .fill = fill_wmma,
                                                   .data = { of[0], of[1] } });
    free(t.bytes);
}

static void wmma(struct calibration *c)
{
#define OF_SHAPE(shape, m, n) \
    { shape, "f16", "f32", "f32", ".f32.f32", m, n, 16, 8, 8, false, "" }, \
    { shape, "f16", "f16", "f16", ".f16.f16", m, n, 16, 8, 8, false, "" }, \
    { shape, "f16", "f16", "f32", ".f32.f16", m, n, 16, 8, 8, false, "" }, \
    { shape, "f16", "f32", "f16", ".f16.f32", m, n, 16, 8, 8, false, "" }, \
    { shape, "bf16", "f32", "f32", ".f32.bf16.bf16.f32", m, n, 16, m / 4, n / 4, false, "" }, \
    { shape, "s8", "s32", "s32", ".s32.s8.s8.s32", m, n, 16, m / 8, n / 8, false, "" }, \
    { shape, "u8", "s32", "s32", ".s32.u8.u8.s32.satfinite", m, n, 16, m / 8, n / 8, false, "" }
    static const struct wmma_form forms[] = {
        OF_SHAPE("m16n16k16", 16, 16), OF_SHAPE("m8n32k16", 8, 32), OF_SHAPE("m32n8k16", 32, 8),
        { "m16n16k8", "tf32", "f32", "f32", ".f32.tf32.tf32.f32", 16, 16, 8, 4, 4, false, "" },
        { "m8n8k4", "f64", "f64", "f64", ".f64.f64.f64.f64", 8, 8, 4, 1, 1, false, "" },
        { "m8n8k32", "s4", "s32", "s32", ".s32.s4.s4.s32", 8, 8, 32, 1, 1, true, "" },
        { "m8n8k32", "u4", "s32", "s32", ".s32.u4.u4.s32.satfinite", 8, 8, 32, 1, 1, true, "" },
        { "m8n8k128", "b1", "s32", "s32", ".s32.b1.b1.s32", 8, 8, 128, 1, 1, true, ".xor.popc" },
        { "m8n8k128", "b1", "s32", "s32", ".s32.b1.b1.s32", 8, 8, 128, 1, 1, true, ".and.popc" },
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        for (int layout = 0; layout < 8; layout++)
            if (!forms[i].only_row_col || (layout & 3) == 2) add_wmma(c, &forms[i], layout);
}

extern const struct family family_mma, family_mma_sparse, family_matrix_memory;

void calibration_family_matrix(struct calibration *c)
{
    for (int i = 0; i < family_mma.count; i++) calibration_row(c, &family_mma.rows[i], 64, add_form);
    for (int i = 0; i < family_mma_sparse.count; i++) calibration_row(c, &family_mma_sparse.rows[i], 64, add_form);
    for (int i = 0; i < family_matrix_memory.count; i++)
        calibration_row(c, &family_matrix_memory.rows[i], 64, add_matrix_form);
    wmma(c);
}
