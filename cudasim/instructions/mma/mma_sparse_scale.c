/* Matrix multiply-and-accumulate of a warp with a sparse A of 4, 6 or 8 bits (PTX ISA 9.7.14.6.3, block scaling
 * 9.7.14.3): mma.sp::ordered_metadata of the kinds f8f6f4, mxf8f6f4, mxf4 and mxf4nvf4.
 *
 * A scale covers as many elements of A as in the dense instruction, so twice as many columns.  The products of the
 * elements that A has are summed as the dense instruction sums its own: that is assumed, no source says it. */
#include "block_scale.h"
#include "instructions/table/families.h"
#include "sparse.h"

enum { D, A, B, C, METADATA, SELECTOR, SCALE_A, SELECT_A, SCALE_B, SELECT_B }; /* operands */
enum { BYTES_K = 64, NIBBLES_K = 128, GROUPS = NIBBLES_K / TENSOR_FP4_SPARSE_GROUP };

struct form {
    struct sparse_form sparse;
    struct scale_form scale;
};

static trap begin(struct warp *w, const struct insn *in, uint8_t column[FRAGMENT_ROWS][SPARSE_MOST_K / 2],
                  uint8_t scale_a[FRAGMENT_ROWS][MOST_SCALES], uint8_t scale_b[FRAGMENT_COLUMNS][MOST_SCALES])
{
    const struct form *f = in->data;
    trap t = sparse_columns(w, in, &f->sparse, METADATA, column);
    if (t == TRAP_NONE && f->scale.count != 0) t = scales_read(w, in, &f->scale, FRAGMENT_ROWS, scale_a);
    if (t == TRAP_NONE && f->scale.count != 0) t = scales_read(w, in, &f->scale, FRAGMENT_COLUMNS, scale_b);
    return t;
}

/* mma.sp.kind::f8f6f4, kind::mxf8f6f4   d = c + (a * scale) * (b * scale) over the columns that A has, an element in
 * each byte */
static trap op_sparse_bytes(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const struct form *f = in->data;
    const struct machine *machine = w->cta->cluster->grid->machine;
    const enum tensor_format fa = tensor_format_of((enum ptx_type)in->type[1]),
                             fb = tensor_format_of((enum ptx_type)in->type[2]);
    const bool half = in->type[0] == T_F16;
    uint8_t column[FRAGMENT_ROWS][SPARSE_MOST_K / 2];
    uint8_t scale_a[FRAGMENT_ROWS][MOST_SCALES], scale_b[FRAGMENT_COLUMNS][MOST_SCALES];
    bool nan_a[FRAGMENT_ROWS] = { false }, nan_b[FRAGMENT_COLUMNS] = { false };
    const trap t = begin(w, in, column, scale_a, scale_b);
    if (t != TRAP_NONE) return t;
    const struct tensor_model model =
        tensor_model_of(machine->options.tensor_core, machine->device->sm, TENSOR_MMA_SYNC, fa, fb, half, BYTES_K);
    uint32_t code[FRAGMENT_ROWS * BYTES_K];
    uint64_t value[FRAGMENT_ROWS * FRAGMENT_COLUMNS];
    TENSOR_STORAGE(storage_a, FRAGMENT_ROWS, BYTES_K);
    TENSOR_STORAGE(storage_b, FRAGMENT_COLUMNS, BYTES_K);
    struct tensor_panel a = TENSOR_PANEL(storage_a), b = TENSOR_PANEL(storage_b);
    fragment_read(w, &in->operand[A], FRAGMENT_ROWS, 8, BYTES_K / 2, code);
    codes_of_bytes(fa, code, FRAGMENT_ROWS * BYTES_K / 2);
    tensor_clear(&a, FRAGMENT_ROWS, BYTES_K);
    for (uint32_t row = 0; row < FRAGMENT_ROWS; row++)
        for (uint32_t e = 0; e < BYTES_K / 2; e++)
            tensor_set(&a, row, column[row][e], fa, code[row * (BYTES_K / 2) + e]);
    fragment_read(w, &in->operand[B], FRAGMENT_COLUMNS, 8, BYTES_K, code);
    codes_of_bytes(fb, code, FRAGMENT_COLUMNS * BYTES_K);
    fragment_decode(&b, &model, fb, code, FRAGMENT_COLUMNS, BYTES_K);
    if (f->scale.count != 0) scales_apply(&a, scale_a, nan_a), scales_apply(&b, scale_b, nan_b);
    accumulator_read(w, &in->operand[C], FRAGMENT_ROWS, half, value);
    for (uint32_t i = 0; i < FRAGMENT_ROWS; i++)
        for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j++) {
            uint64_t *d = &value[i * FRAGMENT_COLUMNS + j];
            *d = nan_a[i] || nan_b[j] ? SCALED_NAN : tensor_dot(&model, &a, i, &b, j, (uint32_t)*d);
        }
    accumulator_write(w, &in->operand[D], half, value);
    return TRAP_NONE;
}

static void set_scales(struct tensor_fp4 *panel, const struct scale_form *f, uint8_t scale[][MOST_SCALES])
{
    for (uint32_t i = 0; i < panel->rows; i++)
        for (uint32_t g = 0; g < GROUPS; g++) tensor_fp4_scale(panel, i, g, f->format, scale[i][g * f->count / GROUPS]);
}

/* mma.sp.kind::mxf4, kind::mxf4nvf4   the same of e2m1, two in each byte; pairs of neighbours are kept */
static trap op_sparse_nibbles(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const struct form *f = in->data;
    const bool plain = w->cta->cluster->grid->machine->options.tensor_core == TENSOR_MODE_FP32;
    uint8_t column[FRAGMENT_ROWS][SPARSE_MOST_K / 2];
    uint8_t scale_a[FRAGMENT_ROWS][MOST_SCALES], scale_b[FRAGMENT_COLUMNS][MOST_SCALES];
    const trap t = begin(w, in, column, scale_a, scale_b);
    if (t != TRAP_NONE) return t;
    uint32_t code[FRAGMENT_ROWS * NIBBLES_K];
    uint64_t value[FRAGMENT_ROWS * FRAGMENT_COLUMNS];
    TENSOR_FP4_STORAGE(storage_a, FRAGMENT_ROWS, GROUPS, TENSOR_FP4_SPARSE_GROUP);
    TENSOR_FP4_STORAGE(storage_b, FRAGMENT_COLUMNS, GROUPS, TENSOR_FP4_SPARSE_GROUP);
    struct tensor_fp4 a = TENSOR_FP4_PANEL(storage_a), b = TENSOR_FP4_PANEL(storage_b);
    tensor_fp4_clear(&a, FRAGMENT_ROWS, GROUPS, TENSOR_FP4_SPARSE_GROUP);
    tensor_fp4_clear(&b, FRAGMENT_COLUMNS, GROUPS, TENSOR_FP4_SPARSE_GROUP);
    fragment_read(w, &in->operand[A], FRAGMENT_ROWS, 4, NIBBLES_K / 2, code);
    for (uint32_t row = 0; row < FRAGMENT_ROWS; row++)
        for (uint32_t e = 0; e < NIBBLES_K / 2; e++)
            tensor_fp4_set(&a, row, column[row][e], code[row * (NIBBLES_K / 2) + e]);
    fragment_read(w, &in->operand[B], FRAGMENT_COLUMNS, 4, NIBBLES_K, code);
    for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j++)
        for (uint32_t k = 0; k < NIBBLES_K; k++) tensor_fp4_set(&b, j, k, code[j * NIBBLES_K + k]);
    set_scales(&a, &f->scale, scale_a);
    set_scales(&b, &f->scale, scale_b);
    accumulator_read(w, &in->operand[C], FRAGMENT_ROWS, false, value);
    for (uint32_t i = 0; i < FRAGMENT_ROWS; i++)
        for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j++) {
            uint64_t *d = &value[i * FRAGMENT_COLUMNS + j];
            *d = tensor_fp4_dot(&a, i, &b, j, (uint32_t)*d, plain);
        }
    accumulator_write(w, &in->operand[D], false, value);
    return TRAP_NONE;
}

/* ---- rows ---- */

static const char *prepare(struct module *module, struct insn *in)
{
    struct form *f = arena_allocate(&module->arena, sizeof *f);
    if (f == NULL) return "no memory";
    if (module->sm < 120)
        return "before sm_120 this is made of other operations, and no source says in which order it sums";
    in->data = f;
    f->scale = scale_form_of(in, SCALE_A, SCALE_B);
    const char *const why = sparse_prepare(&f->sparse, in, in->row->run == op_sparse_nibbles ? 4 : 8, SELECTOR);
    return why != NULL ? why : scales_refused(in, &f->scale);
}

#define FIVE "e4m3 e5m2 e3m2 e2m3 e2m1"
#define FP8 "e4m3 e5m2"
#define SMALL "e3m2 e2m3 e2m1"
#define SCALES " r:b32{1?} s:u16{2} r:b32{1?} s:u16{2}"
#define TO_F32 "d_:f32{4} s:b32{4} s:b32{4} s:f32{4} s:b32 i:u32"
#define TO_F16 "d_:b32{2} s:b32{4} s:b32{4} s:b32{2} s:b32 i:u32"
#define ROW(words, types, operands, since, targets, run, section) \
    { \
        "mma.sp::ordered_metadata.sync.aligned." words, types, operands, since, targets, DEMANDS_WHOLE_WARP, run, \
            prepare, section \
    }
#define PLAIN(d, a, b, operands, since, targets) \
    ROW("m16n8k64.row.col.kind::f8f6f4.$1.$2.$3.$4", d "; " a "; " b "; " d, operands, since, targets, \
        op_sparse_bytes, "9.7.14.6.3 mma.sp")
#define SCALED(words, types, scale_type, targets, run) \
    ROW(words ".$1.$2.$3.$4" scale_type, "f32; " types "; " types "; f32", TO_F32 SCALES, 87, targets, run, \
        "9.7.14.3 Block Scaling for mma.sync")

static const struct row rows[] = {
    PLAIN("f32", FP8, FP8, TO_F32, 86, "sm_100f sm_120f"),
    PLAIN("f16", FP8, FP8, TO_F16, 87, "sm_120f"),
    PLAIN("f32", FP8, SMALL, TO_F32, 87, "sm_120f"),
    PLAIN("f16", FP8, SMALL, TO_F16, 87, "sm_120f"),
    PLAIN("f32", SMALL, FIVE, TO_F32, 87, "sm_120f"),
    PLAIN("f16", SMALL, FIVE, TO_F16, 87, "sm_120f"),
    SCALED("m16n8k64.row.col.kind::mxf8f6f4.block_scale{.scale_vec::1X}", FIVE, ".ue8m0", "sm_120f", op_sparse_bytes),
    SCALED("m16n8k128.row.col.kind::mxf4.block_scale{.scale_vec::2X}", "e2m1", ".ue8m0", "sm_120a sm_121a",
           op_sparse_nibbles),
    SCALED("m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X", "e2m1", ".ue8m0", "sm_120a sm_121a",
           op_sparse_nibbles),
    SCALED("m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X", "e2m1", ".ue4m3", "sm_120a sm_121a",
           op_sparse_nibbles),
};

const struct family family_mma_sparse_scale =
    FAMILY("matrix multiply-and-accumulate with a sparse A of small elements", rows);
