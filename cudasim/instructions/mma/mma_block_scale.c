/* Matrix multiply-and-accumulate of a warp with elements of 4, 6 and 8 bits (PTX ISA 9.7.14.5.14, block scaling
 * 9.7.14.3): mma.sync of the kinds f8f6f4, mxf8f6f4, mxf4 and mxf4nvf4.  Sums follow machine/mma/tensor_core.h and
 * tensor_core_fp4.h. */
#include "block_scale.h"
#include "instructions/table/families.h"
#include "machine/mma/tensor_core.h"

enum { D, A, B, C, SCALE_A, SELECT_A, SCALE_B, SELECT_B }; /* operands */
enum { BYTES_K = 32, NIBBLES_K = 64 };

/* mma.sync.kind::f8f6f4, kind::mxf8f6f4   d = c + (a * scale of its row) * (b * scale of its column), an element in
 * each byte */
static trap op_mma_bytes(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const struct scale_form *f = in->data;
    const struct machine *machine = w->cta->cluster->grid->machine;
    const enum tensor_format fa = tensor_format_of((enum ptx_type)in->type[1]),
                             fb = tensor_format_of((enum ptx_type)in->type[2]);
    const bool half = in->type[0] == T_F16;
    uint8_t scale_a[FRAGMENT_ROWS][MOST_SCALES], scale_b[FRAGMENT_COLUMNS][MOST_SCALES];
    bool nan_a[FRAGMENT_ROWS] = { false }, nan_b[FRAGMENT_COLUMNS] = { false };
    trap t = f->count != 0 ? scales_read(w, in, f, FRAGMENT_ROWS, scale_a) : TRAP_NONE;
    if (t == TRAP_NONE && f->count != 0) t = scales_read(w, in, f, FRAGMENT_COLUMNS, scale_b);
    if (t != TRAP_NONE) return t;
    const struct tensor_model model =
        tensor_model_of(machine->options.tensor_core, machine->device->sm, TENSOR_MMA_SYNC, fa, fb, half, BYTES_K);
    uint32_t code[FRAGMENT_ROWS * BYTES_K];
    uint64_t value[FRAGMENT_ROWS * FRAGMENT_COLUMNS];
    TENSOR_STORAGE(storage_a, FRAGMENT_ROWS, BYTES_K);
    TENSOR_STORAGE(storage_b, FRAGMENT_COLUMNS, BYTES_K);
    struct tensor_panel a = TENSOR_PANEL(storage_a), b = TENSOR_PANEL(storage_b);
    fragment_read(w, &in->operand[A], FRAGMENT_ROWS, 8, BYTES_K, code);
    codes_of_bytes(fa, code, FRAGMENT_ROWS * BYTES_K);
    fragment_decode(&a, &model, fa, code, FRAGMENT_ROWS, BYTES_K);
    fragment_read(w, &in->operand[B], FRAGMENT_COLUMNS, 8, BYTES_K, code);
    codes_of_bytes(fb, code, FRAGMENT_COLUMNS * BYTES_K);
    fragment_decode(&b, &model, fb, code, FRAGMENT_COLUMNS, BYTES_K);
    if (f->count != 0) scales_apply(&a, scale_a, nan_a), scales_apply(&b, scale_b, nan_b);
    accumulator_read(w, &in->operand[C], FRAGMENT_ROWS, half, value);
    for (uint32_t i = 0; i < FRAGMENT_ROWS; i++)
        for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j++) {
            uint64_t *d = &value[i * FRAGMENT_COLUMNS + j];
            *d = nan_a[i] || nan_b[j] ? SCALED_NAN : tensor_dot(&model, &a, i, &b, j, (uint32_t)*d);
        }
    accumulator_write(w, &in->operand[D], half, value);
    return TRAP_NONE;
}

static void read_nibbles(const struct warp *w, const struct operand *o, uint32_t rows, const struct scale_form *f,
                         uint8_t scale[][MOST_SCALES], struct tensor_fp4 *panel)
{
    uint32_t code[FRAGMENT_ROWS * NIBBLES_K];
    const uint32_t groups = NIBBLES_K / TENSOR_FP4_GROUP;
    fragment_read(w, o, rows, 4, NIBBLES_K, code);
    tensor_fp4_clear(panel, rows, groups, TENSOR_FP4_GROUP);
    for (uint32_t i = 0; i < rows; i++) {
        for (uint32_t k = 0; k < NIBBLES_K; k++) tensor_fp4_set(panel, i, k, code[i * NIBBLES_K + k]);
        for (uint32_t g = 0; g < groups; g++) tensor_fp4_scale(panel, i, g, f->format, scale[i][g * f->count / groups]);
    }
}

/* mma.sync.kind::mxf4, kind::mxf4nvf4   d = c + (a * scale) * (b * scale), two elements in each byte, 2 or 4 scales for
 * 64 */
static trap op_mma_nibbles(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const struct scale_form *f = in->data;
    const bool plain = w->cta->cluster->grid->machine->options.tensor_core == TENSOR_MODE_FP32;
    uint8_t scale_a[FRAGMENT_ROWS][MOST_SCALES], scale_b[FRAGMENT_COLUMNS][MOST_SCALES];
    trap t = scales_read(w, in, f, FRAGMENT_ROWS, scale_a);
    if (t == TRAP_NONE) t = scales_read(w, in, f, FRAGMENT_COLUMNS, scale_b);
    if (t != TRAP_NONE) return t;
    uint64_t value[FRAGMENT_ROWS * FRAGMENT_COLUMNS];
    TENSOR_FP4_STORAGE(storage_a, FRAGMENT_ROWS, NIBBLES_K / TENSOR_FP4_GROUP, TENSOR_FP4_GROUP);
    TENSOR_FP4_STORAGE(storage_b, FRAGMENT_COLUMNS, NIBBLES_K / TENSOR_FP4_GROUP, TENSOR_FP4_GROUP);
    struct tensor_fp4 a = TENSOR_FP4_PANEL(storage_a), b = TENSOR_FP4_PANEL(storage_b);
    read_nibbles(w, &in->operand[A], FRAGMENT_ROWS, f, scale_a, &a);
    read_nibbles(w, &in->operand[B], FRAGMENT_COLUMNS, f, scale_b, &b);
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
    struct scale_form *f = arena_allocate(&module->arena, sizeof *f);
    if (f == NULL) return "no memory";
    *f = scale_form_of(in, SCALE_A, SCALE_B);
    in->data = f;
    return scales_refused(in, f);
}

#define FIVE "e4m3 e5m2 e3m2 e2m3 e2m1"
#define FP8 "e4m3 e5m2"
#define SMALL "e3m2 e2m3 e2m1"
#define SCALES " r:b32{1?} s:u16{2} r:b32{1?} s:u16{2}"
#define TO_F32 "d_:f32{4} s:b32{4} s:b32{2} s:f32{4}"
#define TO_F16 "d_:b32{2} s:b32{4} s:b32{2} s:b32{2}"
#define ROW(words, types, operands, since, targets, run, section) \
    { "mma.sync.aligned." words, types, operands, since, targets, DEMANDS_WHOLE_WARP, run, prepare, section }
#define DENSE(d, a, b, operands, since, targets) \
    ROW("m16n8k32.row.col.kind::f8f6f4.$1.$2.$3.$4", d "; " a "; " b "; " d, operands, since, targets, op_mma_bytes, \
        "9.7.14.5.14 mma")
#define SCALED(words, types, scale_type, run) \
    ROW(words ".$1.$2.$3.$4" scale_type, "f32; " types "; " types "; f32", TO_F32 SCALES, 87, "sm_120f", run, \
        "9.7.14.3 Block Scaling for mma.sync")

static const struct row rows[] = {
    DENSE("f32", FP8, FP8, TO_F32, 86, "sm_100f sm_120f"), DENSE("f16", FP8, FP8, TO_F16, 87, "sm_100f sm_120f"),
    DENSE("f32", FP8, SMALL, TO_F32, 87, "sm_120f"), DENSE("f16", FP8, SMALL, TO_F16, 87, "sm_120f"),
    DENSE("f32", SMALL, FIVE, TO_F32, 87, "sm_120f"), DENSE("f16", SMALL, FIVE, TO_F16, 87, "sm_120f"),
    SCALED("m16n8k32.row.col.kind::mxf8f6f4.block_scale{.scale_vec::1X}", FIVE, ".ue8m0", op_mma_bytes),
    SCALED("m16n8k64.row.col.kind::mxf4.block_scale{.scale_vec::2X}", "e2m1", ".ue8m0", op_mma_nibbles),
    SCALED("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X", "e2m1", ".ue8m0", op_mma_nibbles),
    SCALED("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X", "e2m1", ".ue4m3", op_mma_nibbles),
};

const struct family family_mma_block_scale =
    FAMILY("matrix multiply-and-accumulate of small elements with block scales", rows);
