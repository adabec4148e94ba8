/* The older matrix instructions of a warp (PTX ISA 9.7.14.4): wmma.load, wmma.store, wmma.mma.
 *
 * Which lane holds which element is unspecified.  Here matrices are cut into blocks of the shapes of mma.sync, held as
 * there (fragment.h): A by rows, B by columns, C and D by rows and then columns; where a fragment has room for more
 * elements than the matrix has, they repeat.  The sums are those of mma.sync with the same k. */
#include "instructions/table/families.h"
#include "fragment.h"
#include "instructions/memory/memory.h"
#include "instructions/arithmetic/real.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"
#include "machine/mma/tensor_core.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 32, MOST_K = 16 }; /* rows or columns of a matrix, k of a floating-point one */
enum { ROW_ALIGNMENT = 16 };     /* bytes, of each row in memory, at most */

/* k, and the width of an element of A and B, in units that are moved as one: words where elements are narrower than
 * bytes. */
struct wmma_form {
    uint32_t m, n, k, bits;
};
struct place {
    uint32_t row, column;
}; /* A: row, k; B: k, column */

static uint32_t block_rows(const struct wmma_form *f) { return f->m < 16 ? 8 : 16; }

static struct place place_a(const struct wmma_form *f, uint32_t lane, uint32_t i)
{
    const uint32_t rows = block_rows(f), per_block = rows * f->k / LANES, each = f->bits > 32 ? 1 : 32 / f->bits;
    const uint32_t block = i / per_block % (f->m / rows), r = i % per_block / each, step = rows == 16 ? r / 2 : r;
    return (struct place){ block * rows + lane / 4 + (rows == 16 ? r % 2 * 8 : 0),
                           (step * 4 + lane % 4) * each + i % each };
}
static struct place place_b(const struct wmma_form *f, uint32_t lane, uint32_t i)
{
    const uint32_t per_block = 8 * f->k / LANES, each = f->bits > 32 ? 1 : 32 / f->bits;
    const uint32_t block = i / per_block % (f->n / 8), r = i % per_block / each;
    return (struct place){ (r * 4 + lane % 4) * each + i % each, block * 8 + lane / 4 };
}
static struct place place_c(const struct wmma_form *f, uint32_t lane, uint32_t i)
{
    const uint32_t rows = block_rows(f), per_block = rows / 4, block = i / per_block, j = i % per_block,
                   columns = f->n / 8;
    return (struct place){ block / columns * rows + lane / 4 + j / 2 * 8, block % columns * 8 + lane % 4 * 2 + j % 2 };
}

/* ---- elements of a fragment ---- */

static uint32_t elements(const struct operand *o, uint32_t bits)
{
    return bits > 32 ? o->count : o->count * (32 / bits);
}

static uint64_t get(const struct warp *w, const struct operand *o, uint32_t bits, uint32_t lane, uint32_t i)
{
    if (bits >= 32) return source_row(w, &o->element[i])[lane];
    const uint32_t each = 32 / bits;
    return source_row(w, &o->element[i / each])[lane] >> (bits * (i % each)) & bits_mask(bits);
}
static void put(const struct warp *w, const struct operand *o, uint32_t bits, uint32_t lane, uint32_t i, uint64_t value)
{
    if (bits >= 32) {
        register_row(w, o->element[i].slot)[lane] = value;
        return;
    }
    const uint32_t each = 32 / bits, shift = bits * (i % each);
    uint64_t *row = register_row(w, o->element[i / each].slot);
    row[lane] = i % each == 0 ? value : (row[lane] & bits_mask(shift)) | value << shift;
}

/* ---- memory ---- */

enum which { MATRIX_A = 'a', MATRIX_B = 'b', MATRIX_C = 'c', MATRIX_D = 'd' };

/* in->data of loads and stores. */
struct transfer {
    struct wmma_form form;
    enum which which;
    bool column_major;
    uint32_t packed;         /* elements of the type in a unit: 8 (4 bits), 32 (one bit), else 1 */
    uint32_t default_stride; /* elements */
};

static struct place place_of(const struct transfer *x, uint32_t lane, uint32_t i)
{
    return x->which == MATRIX_A   ? place_a(&x->form, lane, i)
           : x->which == MATRIX_B ? place_b(&x->form, lane, i)
                                  : place_c(&x->form, lane, i);
}

static trap check_uniform(struct warp *w, const struct insn *in, const uint64_t *value, const char *what)
{
    for (uint32_t l = 1; l < LANES; l++)
        if (value[l] != value[0])
            return warp_fault(w, in, l, REPORT_DIVERGENCE, "has the %s 0x%llx in this lane and 0x%llx in lane 0", what,
                              (unsigned long long)value[l], (unsigned long long)value[0]);
    return TRAP_NONE;
}

/* Moves unit i of all lanes; `base` and `pitch` are bytes. */
static trap move_unit(struct warp *w, const struct insn *in, const struct operand *o, uint64_t base, uint64_t pitch,
                      uint32_t i, bool store)
{
    const struct transfer *x = in->data;
    const uint32_t bits = x->form.bits;
    struct access a = { .space = (enum space)in->space, .bytes = bits / 8, .reads = !store, .writes = store };
    for (uint32_t l = 0; l < LANES; l++) {
        const struct place at = place_of(x, l, i);
        a.address[l] =
            base + (x->column_major ? at.column * pitch + at.row * a.bytes : at.row * pitch + at.column * a.bytes);
    }
    const trap t = memory_access(w, in, UINT32_MAX, &a);
    if (t != TRAP_NONE) return t;
    for (uint32_t l = 0; l < LANES; l++) {
        if (store) store_bytes(a.host[l], a.bytes, get(w, o, bits, l, i));
        else put(w, o, bits, l, i, load_bytes(a.host[l], a.bytes));
    }
    return TRAP_NONE;
}

static trap transfer(struct warp *w, const struct insn *in, const struct operand *o, const struct operand *address,
                     bool store)
{
    const struct transfer *x = in->data;
    uint64_t base[LANES];
    address_lanes(w, address, UINT32_MAX, base);
    trap t = check_uniform(w, in, base, "address");
    uint64_t stride = x->default_stride;
    if (t == TRAP_NONE && in->operand[2].kind != OPERAND_NONE) {
        const uint64_t *row = source(w, in, 2);
        t = check_uniform(w, in, row, "stride");
        stride = row[0] & UINT32_MAX;
    }
    if (t != TRAP_NONE) return t;
    if (stride < x->default_stride)
        return warp_fault(w, in, 0, REPORT_ILLEGAL,
                          "has a stride of %llu elements; a row or column of the matrix has %u",
                          (unsigned long long)stride, x->default_stride);
    const uint64_t pitch = stride * x->form.bits / 8 / x->packed;
    const uint32_t fragment = o->count * (x->form.bits > 32 ? 8 : 4),
                   align = fragment < ROW_ALIGNMENT ? fragment : ROW_ALIGNMENT;
    if (base[0] % align != 0 || pitch % align != 0 || stride % x->packed != 0)
        return warp_fault(
            w, in, 0, REPORT_MISALIGNED,
            "has rows at address 0x%llx and every %llu elements of %u bits on; each must begin at a multiple of %u "
            "bytes",
            (unsigned long long)base[0], (unsigned long long)stride, x->form.bits / x->packed, align);
    for (uint32_t i = 0; i < elements(o, x->form.bits) && t == TRAP_NONE; i++)
        t = move_unit(w, in, o, base[0], pitch, i, store);
    return t;
}

/* wmma.load.a/b/c d, [a]{, stride} */
static trap op_wmma_load(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    return transfer(w, in, &in->operand[0], &in->operand[1], false);
}
/* wmma.store.d [a], b{, stride} */
static trap op_wmma_store(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    return transfer(w, in, &in->operand[1], &in->operand[0], true);
}

/* ---- products ---- */

enum { D, A, B, C };

static float half_value(uint64_t code)
{
    const struct real x = real_unpack(&real_f16, code, false);
    return bits_f32(real_pack(&real_f32, &x, ROUND_RN, false));
}
static uint64_t half_code(uint64_t f32)
{
    const struct real x = real_unpack(&real_f32, f32, false);
    return real_pack(&real_f16, &x, ROUND_RN, false);
}

/* wmma.mma with f16, bf16, tf32.  Of mixed types, an f16 C is widened, an f16 D is rounded to nearest after the sum in
 * f32. */
static trap op_wmma_float(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const struct wmma_form *f = in->data;
    const struct machine *machine = w->cta->cluster->grid->machine;
    const enum tensor_format format = tensor_format_of((enum ptx_type)in->type[1]);
    const bool half_d = in->operand[D].count == 4, half_c = in->operand[C].count == 4, half = half_d && half_c;
    const uint32_t width = tensor_format_bits(format);
    struct tensor_model model =
        tensor_model_of(machine->options.tensor_core, machine->device->sm, TENSOR_MMA_SYNC, format, format, half, f->k);
    if (format == TENSOR_TF32) model.group = 4;                                   /* two steps, as an H200's results
                                                                                     show */
    TENSOR_STORAGE(storage_a, MOST, MOST_K);
    TENSOR_STORAGE(storage_b, MOST, MOST_K);
    struct tensor_panel a = TENSOR_PANEL(storage_a), b = TENSOR_PANEL(storage_b);
    tensor_clear(&a, f->m, f->k);
    tensor_clear(&b, f->n, f->k);
    for (uint32_t l = 0; l < LANES; l++) {
        for (uint32_t i = 0; i < elements(&in->operand[A], width); i++) {
            const struct place at = place_a(f, l, i);
            tensor_set(&a, at.row, at.column, format, (uint32_t)get(w, &in->operand[A], width, l, i));
        }
        for (uint32_t i = 0; i < elements(&in->operand[B], width); i++) {
            const struct place at = place_b(f, l, i);
            tensor_set(&b, at.column, at.row, format, (uint32_t)get(w, &in->operand[B], width, l, i));
        }
    }
    uint64_t d[LANES][8];
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t i = 0; i < 8; i++) {
            const struct place at = place_c(f, l, i);
            uint64_t c = get(w, &in->operand[C], half_c ? 16 : 32, l, i);
            if (half_c && !half) c = f32_bits(half_value(c));
            d[l][i] = tensor_dot(&model, &a, at.row, &b, at.column, (uint32_t)c);
            if (half_d && !half) d[l][i] = half_code(d[l][i]);
        }
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t i = 0; i < 8; i++) put(w, &in->operand[D], half_d ? 16 : 32, l, i, d[l][i]);
    return TRAP_NONE;
}

/* wmma.mma{.satfinite} with s8, u8, s4, u4, b1   exact */
static trap op_wmma_integer(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const struct wmma_form *f = in->data;
    const enum ptx_type type = (enum ptx_type)in->type[1];
    const bool is_and = insn_has(in, ".and"), saturate = (in->flags & FLAG_SATFINITE) != 0;
    const uint32_t each = f->bits == 32 ? (type == T_B1 ? 1 : 8) : 1; /* of 4 bits: eight in a unit */
    static const struct {
        uint8_t bits;
        bool is_signed;
    } kinds[] = { { 8, false }, { 8, true }, { 4, false }, { 4, true } };
    const uint32_t kind = type == T_U8 ? 0 : type == T_S8 ? 1 : type == T_U4 ? 2 : 3;
    uint32_t a[MOST][MOST_K], b[MOST][MOST_K];
    for (uint32_t l = 0; l < LANES; l++) {
        for (uint32_t i = 0; i < elements(&in->operand[A], f->bits); i++) {
            const struct place at = place_a(f, l, i);
            a[at.row][at.column] = (uint32_t)get(w, &in->operand[A], f->bits, l, i);
        }
        for (uint32_t i = 0; i < elements(&in->operand[B], f->bits); i++) {
            const struct place at = place_b(f, l, i);
            b[at.column][at.row] = (uint32_t)get(w, &in->operand[B], f->bits, l, i);
        }
    }
    uint32_t d[LANES][8];
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t i = 0; i < in->operand[C].count; i++) {
            const struct place at = place_c(f, l, i);
            int64_t sum = 0;
            for (uint32_t k = 0; k < f->k; k++) {
                const uint32_t x = a[at.row][k], y = b[at.column][k];
                if (type == T_B1) sum += __builtin_popcount(is_and ? x & y : x ^ y);
                for (uint32_t e = 0; e < each && type != T_B1; e++) {
                    const uint32_t bits = kinds[kind].bits;
                    const int64_t p = (int64_t)(x >> e * bits & bits_mask(bits)),
                                  q = (int64_t)(y >> e * bits & bits_mask(bits));
                    sum +=
                        kinds[kind].is_signed ? sign_extend((uint64_t)p, bits) * sign_extend((uint64_t)q, bits) : p * q;
                }
            }
            const int32_t c = (int32_t)(uint32_t)get(w, &in->operand[C], 32, l, i);
            d[l][i] = (uint32_t)tensor_accumulate(c, sum, saturate);
        }
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t i = 0; i < in->operand[D].count; i++) put(w, &in->operand[D], 32, l, i, d[l][i]);
    return TRAP_NONE;
}

/* wmma.mma{.rnd} with f64   a chain of fma, k rising */
static trap op_wmma_f64(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const struct wmma_form *f = in->data;
    uint64_t a[8][4], b[8][4], d[LANES][2];
    for (uint32_t l = 0; l < LANES; l++) {
        const struct place x = place_a(f, l, 0), y = place_b(f, l, 0);
        a[x.row][x.column] = get(w, &in->operand[A], 64, l, 0);
        b[y.column][y.row] = get(w, &in->operand[B], 64, l, 0);
    }
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t i = 0; i < 2; i++) {
            const struct place at = place_c(f, l, i);
            d[l][i] = get(w, &in->operand[C], 64, l, i);
            for (uint32_t k = 0; k < 4; k++)
                d[l][i] = fused_f64(a[at.row][k], b[at.column][k], d[l][i], (enum rounding)in->rounding);
        }
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t i = 0; i < 2; i++) put(w, &in->operand[D], 64, l, i, d[l][i]);
    return TRAP_NONE;
}

/* ---- forms ---- */

static struct wmma_form form_of(const struct row *row, enum ptx_type type)
{
    const char *at = row->pattern;
    do at = strstr(at + 1, "m");
    while (at != NULL && (at[1] < '0' || at[1] > '9'));
    struct wmma_form f = { 0 };
    char *end = NULL;
    if (at != NULL) f.m = (uint32_t)strtoul(at + 1, &end, 10), f.n = (uint32_t)strtoul(end + 1, &end, 10);
    if (at != NULL) f.k = (uint32_t)strtoul(end + 1, NULL, 10);
    f.bits = type == T_F16 || type == T_BF16 ? 16 : type == T_S8 || type == T_U8 ? 8 : type == T_F64 ? 64 : 32;
    if (type == T_S4 || type == T_U4) f.k /= 8;
    if (type == T_B1) f.k /= 32;
    return f;
}

static const char *prepare_transfer(struct module *module, struct insn *in)
{
    struct transfer *x = arena_allocate(&module->arena, sizeof *x);
    if (x == NULL) return "no memory";
    const enum ptx_type type = (enum ptx_type)in->type[0];
    x->form = form_of(in->row, type);
    x->which = insn_has(in, ".a") ? MATRIX_A : insn_has(in, ".b") ? MATRIX_B : insn_has(in, ".c") ? MATRIX_C : MATRIX_D;
    x->column_major = insn_has(in, ".col");
    x->packed = type == T_S4 || type == T_U4 ? 8 : type == T_B1 ? 32 : 1;
    const uint32_t rows = x->which == MATRIX_B ? x->form.k * x->packed : x->form.m;
    const uint32_t columns = x->which == MATRIX_A ? x->form.k * x->packed : x->form.n;
    x->default_stride = x->column_major ? rows : columns;
    if (in->space != SPACE_GENERIC && in->space != SPACE_GLOBAL && in->space != SPACE_SHARED)
        return "only .global and .shared";
    in->data = x;
    return NULL;
}

static const char *prepare_product(struct module *module, struct insn *in)
{
    struct wmma_form *f = arena_allocate(&module->arena, sizeof *f);
    if (f == NULL) return "no memory";
    if (in->type[1] == T_NONE) in->type[1] = T_F16; /* "implicitly set to .f16" */
    *f = form_of(in->row, (enum ptx_type)in->type[1]);
    in->data = f;
    return NULL;
}

/* The layout may stand before or behind the shape. */
#define EITHER(layouts, shape) "(" layouts "." shape "|." shape layouts ")"
#define SPACES "{.global|.shared|.shared::cta}"
#define LOAD(which, layout, shape, type, registers, since, targets) \
    { \
        "wmma.load" which ".sync.aligned" EITHER(layout, shape) SPACES ".$1", type, "d:" registers " a ?s:u32", since, \
            targets, DEMANDS_WHOLE_WARP, op_wmma_load, prepare_transfer, "9.7.14.4.3 wmma.load" \
    }
#define STORE(layout, shape, type, registers, since, targets) \
    { \
        "wmma.store.d.sync.aligned" EITHER(layout, shape) SPACES ".$1", type, "a s:" registers " ?s:u32", since, \
            targets, DEMANDS_WHOLE_WARP, op_wmma_store, prepare_transfer, "9.7.14.4.4 wmma.store" \
    }
#define BOTH(macro, ...) macro(".row", __VA_ARGS__), macro(".col", __VA_ARGS__)
#define LOAD_A(layout, ...) LOAD(".a", layout, __VA_ARGS__)
#define LOAD_B(layout, ...) LOAD(".b", layout, __VA_ARGS__)
#define LOAD_C(layout, ...) LOAD(".c", layout, __VA_ARGS__)
#define MULTIPLICANDS(shape, type, na, nb, since, targets) \
    BOTH(LOAD_A, shape, type, "b32{" na "}", since, targets), BOTH(LOAD_B, shape, type, "b32{" nb "}", since, targets)
#define ACCUMULATORS(shape, type, registers, since, targets) \
    BOTH(LOAD_C, shape, type, registers, since, targets), BOTH(STORE, shape, type, registers, since, targets)
#define PRODUCT(shape, head, words, types, operands, since, targets, run) \
    { \
        "wmma.mma" head ".sync.aligned(.row.row." shape "|.row.col." shape "|.col.row." shape "|.col.col." shape \
        "|." shape ".row.row|." shape ".row.col|." shape ".col.row|." shape ".col.col)" words, \
            types, operands, since, targets, DEMANDS_WHOLE_WARP, run, prepare_product, "9.7.14.4.5 wmma.mma" \
    }
#define ROW_COL(shape, head, words, types, operands, since, targets, run) \
    { "wmma.mma" head ".sync.aligned(.row.col." shape "|." shape ".row.col)" words, types, operands, since, targets, \
      DEMANDS_WHOLE_WARP, run, prepare_product, "9.7.14.4.5 wmma.mma" }
#define F32 "f32{8}"
#define F16 "b32{4}"
#define HALVES(shape, since) \
    MULTIPLICANDS(shape, "f16", "8", "8", since, "sm_70+"), ACCUMULATORS(shape, "f32", F32, since, "sm_70+"), \
        ACCUMULATORS(shape, "f16", F16, since, "sm_70+"), \
        PRODUCT(shape, "", ".$1.$3", "f32; f16; f32", "d_:" F32 " s:b32{8} s:b32{8} s:" F32, since, "sm_70+", \
                op_wmma_float), \
        PRODUCT(shape, "", ".$1.$3", "f32; f16; f16", "d_:" F32 " s:b32{8} s:b32{8} s:" F16, since, "sm_70+", \
                op_wmma_float), \
        PRODUCT(shape, "", ".$1.$3", "f16; f16; f32", "d_:" F16 " s:b32{8} s:b32{8} s:" F32, since, "sm_70+", \
                op_wmma_float), \
        PRODUCT(shape, "", ".$1.$3", "f16; f16; f16", "d_:" F16 " s:b32{8} s:b32{8} s:" F16, since, "sm_70+", \
                op_wmma_float)
#define BF16S(shape, na, nb) \
    MULTIPLICANDS(shape, "bf16", na, nb, 70, "sm_80+"), \
        PRODUCT(shape, "", ".$1.$2.$3.$4", "f32; bf16; bf16; f32", "d_:" F32 " s:b32{" na "} s:b32{" nb "} s:" F32, \
                70, "sm_80+", op_wmma_float)
#define BYTES(shape, type, na, nb) \
    MULTIPLICANDS(shape, type, na, nb, 63, "sm_72+"), \
    PRODUCT(shape, "", ".$1.$2.$3.$4{.satfinite}", "s32; " type "; " type "; s32", \
            "d_:s32{8} s:b32{" na "} s:b32{" nb "} s:s32{8}", 63, "sm_72+", op_wmma_integer)
#define WORDS(shape, type, head, words) \
    LOAD_A(".row", shape, type, "b32{1}", 63, "sm_75+"), LOAD_B(".col", shape, type, "b32{1}", 63, "sm_75+"), \
    ROW_COL(shape, head, words, "s32; " type "; " type "; s32", "d_:s32{2} s:b32{1} s:b32{1} s:s32{2}", 63, "sm_75+", \
            op_wmma_integer)

static const struct row rows[] = {
    HALVES("m16n16k16", 60),
    HALVES("m8n32k16", 61),
    HALVES("m32n8k16", 61),
    BF16S("m16n16k16", "4", "4"),
    BF16S("m8n32k16", "2", "8"),
    BF16S("m32n8k16", "8", "2"),
    MULTIPLICANDS("m16n16k8", "tf32", "4", "4", 70, "sm_80+"),
    ACCUMULATORS("m16n16k8", "f32", F32, 70, "sm_80+"),
    PRODUCT("m16n16k8", "", ".$1.$2.$3.$4", "f32; tf32; tf32; f32", "d_:" F32 " s:b32{4} s:b32{4} s:" F32, 70, "sm_80+",
            op_wmma_float),
    BYTES("m16n16k16", "s8", "2", "2"),
    BYTES("m16n16k16", "u8", "2", "2"),
    BYTES("m8n32k16", "s8", "1", "4"),
    BYTES("m8n32k16", "u8", "1", "4"),
    BYTES("m32n8k16", "s8", "4", "1"),
    BYTES("m32n8k16", "u8", "4", "1"),
    ACCUMULATORS("m16n16k16", "s32", "s32{8}", 63, "sm_72+"),
    ACCUMULATORS("m8n32k16", "s32", "s32{8}", 63, "sm_72+"),
    ACCUMULATORS("m32n8k16", "s32", "s32{8}", 63, "sm_72+"),
    WORDS("m8n8k32", "s4", "", ".$1.$2.$3.$4{.satfinite}"),
    WORDS("m8n8k32", "u4", "", ".$1.$2.$3.$4{.satfinite}"),
    WORDS("m8n8k128", "b1", "(.xor.popc|.and.popc)", ".$1.$2.$3.$4"),
    ACCUMULATORS("m8n8k32", "s32", "s32{2}", 63, "sm_75+"),
    ACCUMULATORS("m8n8k128", "s32", "s32{2}", 63, "sm_75+"),
    BOTH(LOAD_A, "m8n8k4", "f64", "f64{1}", 70, "sm_80+"),
    BOTH(LOAD_B, "m8n8k4", "f64", "f64{1}", 70, "sm_80+"),
    ACCUMULATORS("m8n8k4", "f64", "f64{2}", 70, "sm_80+"),
    PRODUCT("m8n8k4", "", "{.rn|.rz|.rm|.rp}.$1.$2.$3.$4", "f64; f64; f64; f64", "d_:f64{2} s:f64{1} s:f64{1} s:f64{2}",
            70, "sm_80+", op_wmma_f64),
};

const struct family family_wmma = FAMILY("wmma", rows);
