/* Matrix multiply-and-accumulate of a warp with a sparse A (PTX ISA 9.7.14.6): mma.sp and mma.sp::ordered_metadata.
 *
 * A holds half of its elements; for each chunk (4 columns; tf32: 2; 4 bits: 8, in pairs) four bits of metadata say
 * which.  Of the four lanes that hold rows g and g + 8, these have the metadata (9.7.14.6.2, figures 119 to 147; the
 * same in ptxas 13.0's reordering for sm_100 and in CuTe's layouts of E), f being the selector:
 *     16 and 32 bits    lane 2 f + i (short K: lane f): chunks 4 i to 4 i + 3, of row g in the low half, of g + 8 in
 *                       the high half
 *     4 and 8 bits      lane 2 f + i: row g + 8 i, eight chunks; long K: lanes 2 and 3 have the next eight */
#include "instructions/table/families.h"
#include "fragment.h"
#include "sparse.h"
#include "machine/core/report.h"
#include "machine/mma/tensor_core.h"

#include <string.h>

enum { D, A, B, C, METADATA, SELECTOR }; /* operands */
enum { MOST_K = SPARSE_MOST_K };

static uint32_t nibble(const struct sparse_form *f, const uint64_t *metadata, uint32_t row, uint32_t chunk)
{
    const uint32_t group = row % 8 * 4, high = row / 8;
    if (f->bits >= 16)
        return metadata[group + (f->single ? f->selector : 2 * f->selector + chunk / 4)] >> (16 * high + chunk % 4 * 4)
               & 15;
    return metadata[group + 2 * (f->selector + chunk / 8) + high] >> (chunk % 8 * 4) & 15;
}

/* The column of element e of a row of A, or -1: no such metadata.  A compressor that finds nothing in a chunk leaves 0
 * in its metadata and zeros in A: these may stand anywhere. */
static int column_of(const struct sparse_form *f, const uint64_t *metadata, uint32_t row, uint32_t e, bool zero)
{
    enum { FIRST_OF_TWO = 4, SECOND_OF_TWO = 14 };
    if (f->bits == 32) {
        const uint32_t code = nibble(f, metadata, row, e);
        if (code == 0 && zero) return (int)(2 * e);
        return code == FIRST_OF_TWO ? (int)(2 * e) : code == SECOND_OF_TWO ? (int)(2 * e + 1) : -1;
    }
    const uint32_t unit = f->bits == 4 ? 2 : 1, index = e / unit; /* 4 bits: a pair of neighbours has one index */
    const uint32_t code = nibble(f, metadata, row, index / 2), first = code & 3, second = code >> 2;
    if (code == 0 && zero) return (int)(index / 2 * 4 * unit + e % unit);
    if (first == second || (f->ordered && first > second)) return -1;
    return (int)((index / 2 * 4 + (index % 2 == 0 ? first : second)) * unit + e % unit);
}

trap sparse_columns(struct warp *w, const struct insn *in, const struct sparse_form *f, int operand,
                    uint8_t column[FRAGMENT_ROWS][MOST_K / 2])
{
    const uint64_t *metadata = source(w, in, operand);
    uint32_t code[FRAGMENT_ROWS * MOST_K / 2];
    fragment_read(w, &in->operand[A], FRAGMENT_ROWS, f->bits, f->length / 2, code);
    for (uint32_t row = 0; row < FRAGMENT_ROWS; row++)
        for (uint32_t e = 0; e < f->length / 2; e++) {
            const int at = column_of(f, metadata, row, e, code[row * (f->length / 2) + e] == 0);
            if (at < 0)
                return warp_fault(w, in, row % 8 * 4, REPORT_ILLEGAL,
                                  "has metadata that has no meaning%s: the index of element %u of row %u of A",
                                  f->ordered ? " (the indices of a chunk must rise)" : "", e, row);
            column[row][e] = (uint8_t)at;
        }
    return TRAP_NONE;
}

/* mma.sp with f16, bf16, tf32, e4m3, e5m2   d = c + a * b over the columns that A has */
static trap op_mma_sparse(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const struct sparse_form *f = in->data;
    const struct machine *machine = w->cta->cluster->grid->machine;
    uint8_t column[FRAGMENT_ROWS][MOST_K / 2];
    trap t = sparse_columns(w, in, f, METADATA, column);
    if (t != TRAP_NONE) return t;
    const enum tensor_format fa = tensor_format_of((enum ptx_type)in->type[1]),
                             fb = tensor_format_of((enum ptx_type)in->type[2]);
    const bool half = in->type[0] == T_F16;
    const struct tensor_model model =
        tensor_model_of(machine->options.tensor_core, machine->device->sm, TENSOR_MMA_SYNC, fa, fb, half, f->length);
    uint32_t code[FRAGMENT_ROWS * MOST_K];
    uint64_t value[FRAGMENT_ROWS * FRAGMENT_COLUMNS];
    TENSOR_STORAGE(storage_a, FRAGMENT_ROWS, MOST_K / 2);
    TENSOR_STORAGE(storage_b, FRAGMENT_COLUMNS, MOST_K / 2);
    struct tensor_panel a = TENSOR_PANEL(storage_a), b = TENSOR_PANEL(storage_b);
    fragment_read(w, &in->operand[A], FRAGMENT_ROWS, f->bits, f->length / 2, code);
    tensor_clear(&a, FRAGMENT_ROWS, f->length);
    for (uint32_t row = 0; row < FRAGMENT_ROWS; row++)
        for (uint32_t e = 0; e < f->length / 2; e++)
            tensor_set(&a, row, column[row][e], fa, code[row * (f->length / 2) + e]);
    fragment_read(w, &in->operand[B], FRAGMENT_COLUMNS, f->bits, f->length, code);
    fragment_decode(&b, &model, fb, code, FRAGMENT_COLUMNS, f->length);
    accumulator_read(w, &in->operand[C], FRAGMENT_ROWS, half, value);
    for (uint32_t i = 0; i < FRAGMENT_ROWS; i++)
        for (uint32_t j = 0; j < FRAGMENT_COLUMNS; j++) {
            uint64_t *d = &value[i * FRAGMENT_COLUMNS + j];
            *d = tensor_dot(&model, &a, i, &b, j, (uint32_t)*d);
        }
    accumulator_write(w, &in->operand[D], half, value);
    return TRAP_NONE;
}

/* mma.sp{.satfinite} with s8, u8, s4, u4   exact */
static trap op_mma_sparse_integer(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)lanes;
    const struct sparse_form *f = in->data;
    const uint32_t kept = f->length / 2;
    uint8_t column[FRAGMENT_ROWS][MOST_K / 2];
    trap t = sparse_columns(w, in, f, METADATA, column);
    if (t != TRAP_NONE) return t;
    uint32_t code[FRAGMENT_ROWS * MOST_K];
    int16_t packed[FRAGMENT_ROWS * MOST_K / 2], a[FRAGMENT_ROWS * MOST_K], b[FRAGMENT_COLUMNS * MOST_K];
    uint64_t value[FRAGMENT_ROWS * FRAGMENT_COLUMNS];
    int32_t d[FRAGMENT_ROWS * FRAGMENT_COLUMNS];
    fragment_read(w, &in->operand[A], FRAGMENT_ROWS, f->bits, kept, code);
    fragment_integers(packed, (enum ptx_type)in->type[1], code, FRAGMENT_ROWS * kept);
    memset(a, 0, sizeof a);
    for (uint32_t row = 0; row < FRAGMENT_ROWS; row++)
        for (uint32_t e = 0; e < kept; e++) a[row * f->length + column[row][e]] = packed[row * kept + e];
    fragment_read(w, &in->operand[B], FRAGMENT_COLUMNS, f->bits, f->length, code);
    fragment_integers(b, (enum ptx_type)in->type[2], code, FRAGMENT_COLUMNS * f->length);
    accumulator_read(w, &in->operand[C], FRAGMENT_ROWS, false, value);
    for (uint32_t i = 0; i < FRAGMENT_ROWS * FRAGMENT_COLUMNS; i++) d[i] = (int32_t)(uint32_t)value[i];
    tensor_multiply_integers(a, FRAGMENT_ROWS, b, FRAGMENT_COLUMNS, f->length, (in->flags & FLAG_SATFINITE) != 0, d);
    for (uint32_t i = 0; i < FRAGMENT_ROWS * FRAGMENT_COLUMNS; i++) value[i] = (uint32_t)d[i];
    accumulator_write(w, &in->operand[D], false, value);
    return TRAP_NONE;
}

/* "the sparsity selector must be": below 4 where one lane has the metadata, below 2 where two have, 0 where all
 * have. */
const char *sparse_prepare(struct sparse_form *f, const struct insn *in, uint32_t bits, int operand)
{
    uint32_t m;
    shape_of(in->row, &m, &f->length);
    f->bits = bits;
    f->ordered = insn_has(in, ".sp::ordered_metadata");
    const uint32_t groups = f->length * f->bits / 128; /* 2, 4 (16 and 32 bits: 32 bits of metadata a lane); 2, 4 */
    f->single = f->bits >= 16 && groups == 2;
    const uint32_t choices = f->single ? 4 : f->bits < 16 && groups == 4 ? 1 : 2;
    const int64_t selector = in->operand[operand].value;
    if (selector < 0 || selector >= choices)
        return choices == 4   ? "the sparsity selector is 0, 1, 2 or 3 here"
               : choices == 2 ? "the sparsity selector is 0 or 1 here"
                              : "the sparsity selector is 0 here";
    f->selector = (uint32_t)selector;
    return NULL;
}

static const char *prepare_sparse(struct module *module, struct insn *in)
{
    struct sparse_form *f = arena_allocate(&module->arena, sizeof *f);
    if (f == NULL) return "no memory";
    const enum ptx_type type = (enum ptx_type)in->type[1];
    if ((type == T_E4M3 || type == T_E5M2) && module->sm < 120)
        return "before sm_120 this is made of other operations, and no source says in which order it sums";
    in->data = f;
    const bool small = type == T_S4 || type == T_U4, byte = type == T_S8 || type == T_U8;
    return sparse_prepare(f, in, small ? 4 : byte ? 8 : tensor_format_bits(tensor_format_of(type)), SELECTOR);
}

#define TYPES(d, a, b, c) d "; " a "; " b "; " c
#define FP8 "e4m3 e5m2"
/* Shape, types, registers of D (and C), A and B, first version, targets. */
#define ROW(word, pattern, types, operands, since, targets, run) \
    { "mma" word ".sync.aligned." pattern, types, operands " s:b32 i:u32", since, targets, DEMANDS_WHOLE_WARP, run, \
      prepare_sparse, "9.7.14.6.3 mma.sp" }
#define OPERANDS(accumulator, nd, na, nb) \
    "d_:" accumulator "{" nd "} s:b32{" na "} s:b32{" nb "} s:" accumulator "{" nd "}"
#define TO_F32(word, shape, type, na, nb, since, targets) \
    ROW(word, shape ".row.col.$1.$2.$3.$4", TYPES("f32", type, type, "f32"), OPERANDS("f32", "4", na, nb), since, \
        targets, op_mma_sparse)
#define TO_F16(word, shape, type, na, nb, since, targets) \
    ROW(word, shape ".row.col.$1.$2.$3.$4", TYPES("f16", type, type, "f16"), OPERANDS("b32", "2", na, nb), since, \
        targets, op_mma_sparse)
#define INTEGERS(word, shape, types, na, nb, since, targets) \
    ROW(word, shape ".row.col{.satfinite}.$1.$2.$3.$4", TYPES("s32", types, types, "s32"), \
        OPERANDS("s32", "4", na, nb), since, targets, op_mma_sparse_integer)
#define FORMS(word, since, since_fp8) \
    TO_F32(word, "m16n8k16", "f16", "2", "2", since, "sm_80+"), \
        TO_F16(word, "m16n8k16", "f16", "2", "2", since, "sm_80+"), \
        TO_F32(word, "m16n8k32", "f16", "4", "4", since, "sm_80+"), \
        TO_F16(word, "m16n8k32", "f16", "4", "4", since, "sm_80+"), \
        TO_F32(word, "m16n8k16", "bf16", "2", "2", since, "sm_80+"), \
        TO_F32(word, "m16n8k32", "bf16", "4", "4", since, "sm_80+"), \
        TO_F32(word, "m16n8k8", "tf32", "2", "2", since, "sm_80+"), \
        TO_F32(word, "m16n8k16", "tf32", "4", "4", since, "sm_80+"), \
        TO_F32(word, "m16n8k64", FP8, "4", "4", since_fp8, "sm_89+"), \
        INTEGERS(word, "m16n8k32", "s8 u8", "2", "2", since, "sm_80+"), \
        INTEGERS(word, "m16n8k64", "s8 u8", "4", "4", since, "sm_80+"), \
        INTEGERS(word, "m16n8k64", "s4 u4", "2", "2", since, "sm_80+"), \
        INTEGERS(word, "m16n8k128", "s4 u4", "4", "4", since, "sm_80+")

static const struct row rows[] = {
    FORMS(".sp", 71, 84),
    FORMS(".sp::ordered_metadata", 85, 85),
    TO_F16(".sp::ordered_metadata", "m16n8k64", FP8, "4", "4", 87, "sm_120f"),
};

const struct family family_mma_sparse = FAMILY("matrix multiply-and-accumulate with a sparse A", rows);
