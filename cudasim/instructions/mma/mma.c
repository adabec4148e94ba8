/* Matrix multiply-and-accumulate of a warp with dense operands (PTX ISA 9.7.14.5.14): mma.sync, D = A * B + C.
 * Floating-point sums follow the models of machine/mma/tensor_core.h; integers and bits are exact; f64 is a chain of
 * fma, rising k. */
#include <math.h>

#include "instructions/table/families.h"
#include "fragment.h"
#include "instructions/arithmetic/real.h"

enum { D, A, B, C }; /* operands */
enum { MOST_K = 64 };

static uint32_t rows_of(const struct insn *in) { return (uint32_t)(in->detail & 0xffff); }
static uint32_t length_of(const struct insn *in) { return (uint32_t)(in->detail >> 16); }

/* mma.sync with f16, bf16, tf32, e4m3, e5m2   d = c + a * b as the tensor core sums */
static trap op_mma(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const struct machine *machine = w->cta->cluster->grid->machine;
    const uint32_t rows = rows_of(in), length = length_of(in);
    const enum tensor_format fa = tensor_format_of((enum ptx_type)in->type[1]),
                             fb = tensor_format_of((enum ptx_type)in->type[2]);
    const bool half = in->type[0] == T_F16;
    const struct tensor_model model =
        tensor_model_of(machine->options.tensor_core, machine->device->sm, TENSOR_MMA_SYNC, fa, fb, half, length);
    uint32_t code[FRAGMENT_ROWS * MOST_K];
    uint64_t value[FRAGMENT_ROWS * FRAGMENT_COLUMNS];
    TENSOR_STORAGE(storage_a, FRAGMENT_ROWS, MOST_K);
    TENSOR_STORAGE(storage_b, FRAGMENT_COLUMNS, MOST_K);
    struct tensor_panel a = TENSOR_PANEL(storage_a), b = TENSOR_PANEL(storage_b);
    fragment_read(w, &in->operand[A], rows, tensor_format_bits(fa), length, code);
    fragment_decode(&a, &model, fa, code, rows, length);
    fragment_read(w, &in->operand[B], FRAGMENT_COLUMNS, tensor_format_bits(fb), length, code);
    fragment_decode(&b, &model, fb, code, FRAGMENT_COLUMNS, length);
    accumulator_read(w, &in->operand[C], rows, half, value);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j++) {
            uint64_t *d = &value[i * FRAGMENT_COLUMNS + j];
            *d = tensor_dot(&model, &a, i, &b, j, (uint32_t)*d);
        }
    accumulator_write(w, &in->operand[D], half, value);
    return TRAP_NONE;
}

/* mma.sync{.satfinite} with s8, u8, s4, u4   exact; wraps, or stays at the ends of s32 */
static trap op_mma_integer(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const uint32_t rows = rows_of(in), length = length_of(in);
    const enum ptx_type ta = (enum ptx_type)in->type[1], tb = (enum ptx_type)in->type[2];
    const uint32_t bits = ta == T_S4 || ta == T_U4 ? 4 : 8;
    uint32_t code[FRAGMENT_ROWS * MOST_K];
    int16_t a[FRAGMENT_ROWS * MOST_K], b[FRAGMENT_COLUMNS * MOST_K];
    uint64_t value[FRAGMENT_ROWS * FRAGMENT_COLUMNS];
    int32_t d[FRAGMENT_ROWS * FRAGMENT_COLUMNS];
    fragment_read(w, &in->operand[A], rows, bits, length, code);
    fragment_integers(a, ta, code, rows * length);
    fragment_read(w, &in->operand[B], FRAGMENT_COLUMNS, bits, length, code);
    fragment_integers(b, tb, code, FRAGMENT_COLUMNS * length);
    accumulator_read(w, &in->operand[C], rows, false, value);
    for (uint32_t i = 0; i < rows * FRAGMENT_COLUMNS; i++) d[i] = (int32_t)(uint32_t)value[i];
    tensor_multiply_integers(a, rows, b, FRAGMENT_COLUMNS, length, (in->flags & FLAG_SATFINITE) != 0, d);
    for (uint32_t i = 0; i < rows * FRAGMENT_COLUMNS; i++) value[i] = (uint32_t)d[i];
    accumulator_write(w, &in->operand[D], false, value);
    return TRAP_NONE;
}

/* mma.sync with b1   d = c + popc(a op b); op: xor, and */
static trap op_mma_bits(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const uint32_t rows = rows_of(in), words = length_of(in) / 32;
    const bool is_and = insn_has(in, ".and");
    uint32_t a[FRAGMENT_ROWS * 8], b[FRAGMENT_COLUMNS * 8];
    uint64_t value[FRAGMENT_ROWS * FRAGMENT_COLUMNS];
    fragment_read(w, &in->operand[A], rows, 32, words, a);
    fragment_read(w, &in->operand[B], FRAGMENT_COLUMNS, 32, words, b);
    accumulator_read(w, &in->operand[C], rows, false, value);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j++) {
            uint32_t count = 0;
            for (uint32_t k = 0; k < words; k++) {
                const uint32_t x = a[i * words + k], y = b[j * words + k];
                count += (uint32_t)__builtin_popcount(is_and ? x & y : x ^ y);
            }
            value[i * FRAGMENT_COLUMNS + j] = (uint32_t)(value[i * FRAGMENT_COLUMNS + j] + count);
        }
    accumulator_write(w, &in->operand[D], false, value);
    return TRAP_NONE;
}

/* mma.sync{.rnd} with f64   d = fma(a[k], b[k], ...), k rising */
static trap op_mma_f64(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const uint32_t rows = rows_of(in), length = length_of(in);
    uint64_t a[FRAGMENT_ROWS * 16], b[FRAGMENT_COLUMNS * 16], value[FRAGMENT_ROWS * FRAGMENT_COLUMNS];
    fragment_read_wide(w, &in->operand[A], rows, length, a);
    fragment_read_wide(w, &in->operand[B], FRAGMENT_COLUMNS, length, b);
    accumulator_read(w, &in->operand[C], rows, false, value);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j++) {
            uint64_t *d = &value[i * FRAGMENT_COLUMNS + j];
            for (uint32_t k = 0; k < length; k++)
                *d = fused_f64(a[i * length + k], b[j * length + k], *d, (enum rounding)in->rounding);
        }
    accumulator_write(w, &in->operand[D], false, value);
    return TRAP_NONE;
}

/* ---- m8n8k4 with f16: lanes 4q..4q+3 and 16+4q..16+4q+3 multiply matrices of their own, q = 0..3 (9.7.14.5.1) ---- */

enum { QUAD_COUNT = 4, QUAD_K = 4, QUAD_N = 8 };

static float half_value(uint64_t code)
{
    const struct real x = real_unpack(&real_f16, code, false);
    return bits_f32(real_pack(&real_f32, &x, ROUND_RN, false));
}
static uint32_t half_code(float value)
{
    const struct real x = real_unpack(&real_f32, f32_bits(value), false);
    return (uint32_t)real_pack(&real_f16, &x, ROUND_RN, false);
}

/* Element i of A or B of a lane: `major` says that the lane holds a row of A or a column of B. */
static void quad_place(bool major, uint32_t lane, uint32_t i, uint32_t *row, uint32_t *k)
{
    const uint32_t high = lane < 16 ? 0 : 4;
    *row = major ? lane % 4 + high : i + high;
    *k = major ? i : lane % 4;
}
static void quad_read(const struct warp *w, const struct operand *o, bool major,
                      float value[QUAD_COUNT][QUAD_N][QUAD_K])
{
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (uint32_t i = 0; i < QUAD_K; i++) {
            uint32_t row, k;
            quad_place(major, lane, i, &row, &k);
            value[lane % 16 / 4][row][k] = half_value(source_row(w, &o->element[i / 2])[lane] >> 16 * (i % 2) & 0xffff);
        }
}
static void quad_accumulator(bool half, uint32_t lane, uint32_t i, uint32_t *row, uint32_t *column)
{
    const uint32_t high = lane < 16 ? 0 : 4;
    *row = half ? lane % 4 + high : (lane & 1) + (i & 2) + high;
    *column = half ? i : (i & 4) + (lane & 2) + (i & 1);
}

/* No tensor core of sm_90 or later has this shape: ptxas 13.0 makes fp32 arithmetic of it, in this order, rounded to
 * nearest. */
static float quad_dot(const float *a, const float *b, float c, bool half_output)
{
    if (half_output) return (c + fmaf(a[1], b[1], a[0] * b[0])) + fmaf(a[3], b[3], a[2] * b[2]);
    return c + fmaf(a[3], b[3], fmaf(a[2], b[2], fmaf(a[1], b[1], fmaf(a[0], b[0], 0.0f))));
}

/* mma.sync.m8n8k4 with f16   choice[0]: layout of A, choice[1]: of B; 1 row, 2 col */
static trap op_mma_quads(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const bool half_d = in->type[0] == T_F16, half_c = in->type[3] == T_F16;
    float a[QUAD_COUNT][QUAD_N][QUAD_K], b[QUAD_COUNT][QUAD_N][QUAD_K], c[QUAD_COUNT][QUAD_N][QUAD_N];
    quad_read(w, &in->operand[A], in->choice[0] == 1, a);
    quad_read(w, &in->operand[B], in->choice[1] == 2, b);
    uint32_t row, column;
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (uint32_t i = 0; i < 8; i++) {
            quad_accumulator(half_c, lane, i, &row, &column);
            const uint64_t code = source_row(w, &in->operand[C].element[half_c ? i / 2 : i])[lane];
            c[lane % 16 / 4][row][column] = half_c ? half_value(code >> 16 * (i % 2) & 0xffff) : bits_f32(code);
        }
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (uint32_t i = 0; i < 8; i++) {
            quad_accumulator(half_d, lane, i, &row, &column);
            const uint32_t q = lane % 16 / 4;
            const float d = quad_dot(a[q][row], b[q][column], c[q][row][column], half_d);
            uint64_t *to = &register_row(w, in->operand[D].element[half_d ? i / 2 : i].slot)[lane];
            if (half_d) *to = i % 2 == 0 ? half_code(d) : *to | (uint64_t)half_code(d) << 16;
            else *to = d != d ? real_f32.nan : f32_bits(d);
        }
    return TRAP_NONE;
}

/* ---- rows ---- */

static const char *prepare_shape(struct module *module, struct insn *in)
{
    uint32_t m, k;
    (void)module;
    shape_of(in->row, &m, &k);
    in->detail = m | (uint64_t)k << 16;
    return NULL;
}

#define TYPES(d, a, b, c) d "; " a "; " b "; " c
#define FP8 "e4m3 e5m2"
/* Shape, types, registers of D (and C), A and B, first version, targets. */
#define ROW(pattern, types, operands, since, targets, run) \
    { \
        "mma.sync.aligned." pattern, types, operands, since, targets, DEMANDS_WHOLE_WARP, run, prepare_shape, \
            "9.7.14.5.14 mma" \
    }
#define OPERANDS(accumulator, element, nd, na, nb) \
    "d_:" accumulator "{" nd "} s:" element "{" na "} s:" element "{" nb "} s:" accumulator "{" nd "}"
#define TO_F32(shape, a, b, na, nb, since, targets) \
    ROW(shape ".row.col.$1.$2.$3.$4", TYPES("f32", a, b, "f32"), OPERANDS("f32", "b32", "4", na, nb), since, targets, \
        op_mma)
#define TO_F16(shape, a, b, na, nb, since, targets) \
    ROW(shape ".row.col.$1.$2.$3.$4", TYPES("f16", a, b, "f16"), OPERANDS("b32", "b32", "2", na, nb), since, targets, \
        op_mma)
#define INTEGERS(shape, types, nd, na, nb, since, targets) \
    ROW(shape ".row.col{.satfinite}.$1.$2.$3.$4", TYPES("s32", types, types, "s32"), \
        OPERANDS("s32", "b32", nd, na, nb), since, targets, op_mma_integer)
#define BITS(shape, op, nd, na, nb, since, targets) \
    ROW(shape ".row.col.$1.$2.$3.$4" op ".popc", TYPES("s32", "b1", "b1", "s32"), OPERANDS("s32", "b32", nd, na, nb), \
        since, targets, op_mma_bits)
#define DOUBLES(shape, nd, na, nb, since, targets) \
    ROW(shape ".row.col.$1.$2.$3.$4{.rn|.rz|.rm|.rp}", TYPES("f64", "f64", "f64", "f64"), \
        OPERANDS("f64", "f64", nd, na, nb), since, targets, op_mma_f64)
#define QUADS(d, c, operands) \
    ROW("m8n8k4(.row|.col)(.row|.col).$1.$2.$3.$4", TYPES(d, "f16", "f16", c), operands, 64, "sm_70+", op_mma_quads)

static const struct row rows[] = {
    QUADS("f16", "f16", "d_:b32{4} s:b32{2} s:b32{2} s:b32{4}"),
    QUADS("f32", "f16", "d_:f32{8} s:b32{2} s:b32{2} s:b32{4}"),
    QUADS("f32", "f32", "d_:f32{8} s:b32{2} s:b32{2} s:f32{8}"),
    TO_F32("m16n8k8", "f16", "f16", "2", "1", 65, "sm_75+"),
    TO_F16("m16n8k8", "f16", "f16", "2", "1", 65, "sm_75+"),
    TO_F32("m16n8k16", "f16", "f16", "4", "2", 70, "sm_80+"),
    TO_F16("m16n8k16", "f16", "f16", "4", "2", 70, "sm_80+"),
    TO_F32("m16n8k8", "bf16", "bf16", "2", "1", 70, "sm_80+"),
    TO_F32("m16n8k16", "bf16", "bf16", "4", "2", 70, "sm_80+"),
    TO_F32("m16n8k4", "tf32", "tf32", "2", "1", 70, "sm_80+"),
    TO_F32("m16n8k8", "tf32", "tf32", "4", "2", 70, "sm_80+"),
    TO_F32("m16n8k32", FP8, FP8, "4", "2", 84, "sm_89+"),
    TO_F16("m16n8k32", FP8, FP8, "4", "2", 87, "sm_89+"),
    TO_F32("m16n8k16", FP8, FP8, "2", "1", 87, "sm_89+"),
    TO_F16("m16n8k16", FP8, FP8, "2", "1", 87, "sm_89+"),
    ROW("m16n8k16.row.col.kind::f8f6f4.$1.$2.$3.$4", TYPES("f32", FP8, FP8, "f32"),
        OPERANDS("f32", "b32", "4", "2", "1"), 87, "sm_100f sm_120f", op_mma),
    ROW("m16n8k16.row.col.kind::f8f6f4.$1.$2.$3.$4", TYPES("f16", FP8, FP8, "f16"),
        OPERANDS("b32", "b32", "2", "2", "1"), 87, "sm_100f sm_120f", op_mma),
    DOUBLES("m8n8k4", "2", "1", "1", 70, "sm_80+"),
    DOUBLES("m16n8k4", "4", "2", "1", 78, "sm_90+"),
    DOUBLES("m16n8k8", "4", "4", "2", 78, "sm_90+"),
    DOUBLES("m16n8k16", "4", "8", "4", 78, "sm_90+"),
    INTEGERS("m8n8k16", "s8 u8", "2", "1", "1", 65, "sm_75+"),
    INTEGERS("m16n8k16", "s8 u8", "4", "2", "1", 70, "sm_80+"),
    INTEGERS("m16n8k32", "s8 u8", "4", "4", "2", 70, "sm_80+"),
    INTEGERS("m8n8k32", "s4 u4", "2", "1", "1", 65, "sm_75+"),
    INTEGERS("m16n8k32", "s4 u4", "4", "2", "1", 70, "sm_80+"),
    INTEGERS("m16n8k64", "s4 u4", "4", "4", "2", 70, "sm_80+"),
    BITS("m8n8k128", ".xor", "2", "1", "1", 70, "sm_75+"),
    BITS("m16n8k128", ".xor", "4", "2", "1", 70, "sm_80+"),
    BITS("m16n8k256", ".xor", "4", "4", "2", 70, "sm_80+"),
    BITS("m8n8k128", ".and", "2", "1", "1", 71, "sm_80+"),
    BITS("m16n8k128", ".and", "4", "2", "1", 71, "sm_80+"),
    BITS("m16n8k256", ".and", "4", "4", "2", 71, "sm_80+"),
};

const struct family family_mma = FAMILY("matrix multiply-and-accumulate of a warp", rows);
