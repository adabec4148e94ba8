/* MN-major and sparse operands, for kernels that read K-major ones with all their elements. */
#include "k_major.h"

#include "core/core.h"
#include "matrix/packing.h"
#include "matrix/rows.h"
#include "matrix/transpose.h"

enum {
    ALIGNMENT = 256,                      /* of a copy: what workspaces of GPUs have */
    COLUMNS = 128                         /* rows of the copy begin at multiples of them: of at least 64 bytes, and TMA
                                             takes whole 128 columns where it pads codes to bytes */
};

/* Scales of the copy, of a sparse operand for each block of all elements, linear and tight behind the codes. */
static bool describe_scales(const struct bsmi_matrix *from, struct bsmi_matrix *to, int64_t *bytes)
{
    const bsm_scale_layout linear = { .kind = BSM_LAYOUT_LINEAR };
    const int64_t at = bsmi_round_up(*bytes, ALIGNMENT);
    int64_t scales;
    to->sparsity = BSM_SPARSITY_NONE, to->metadata = NULL;
    if (from->scale == BSM_UNSCALED) return false;
    if (from->sparsity != BSM_SPARSITY_NONE) to->block = from->block / 2;
    to->scale_columns = bsmi_ceil_div(from->columns, to->block);
    to->scales = (unsigned char *)((uintptr_t)to->data + (uintptr_t)at);
    if (bsmi_scale_map_make("scale_layout", &linear, to->rows, to->scale_columns, &to->map) != BSM_OK) return true;
    to->scale_batch_bytes = to->map.bytes;
    return bsmi_mul_overflows(to->batch, to->map.bytes, &scales) || bsmi_add_overflows(at, scales, bytes)
           || *bytes > INT64_MAX / 8;
}

/* The K-major matrix of the same numbers, whose codes begin at data; true if its bytes cannot be counted. */
static bool describe_copy(const struct bsmi_matrix *from, unsigned char *data, struct bsmi_matrix *to, int64_t *bytes)
{
    *to = *from;
    to->major = BSM_MAJOR_K;
    to->packing = from->bits == 4   ? BSM_PACKING_LOW_FIRST
                  : from->bits == 6 ? BSM_PACKING_BIT_STREAM
                                    : BSM_PACKING_DEFAULT;
    to->data = data;
    to->pitch = bsmi_round_up(from->columns, COLUMNS);
    to->row_bytes = to->pitch / 8 * from->bits;
    return bsmi_mul_overflows(from->rows, to->row_bytes, &to->batch_bytes)
           || bsmi_mul_overflows(from->batch, to->batch_bytes, bytes) || *bytes > INT64_MAX / 8
           || ((from->sparsity != BSM_SPARSITY_NONE || (from->data == NULL && from->scales == NULL))
               && describe_scales(from, to, bytes));
}

static bool is_copied(const struct bsmi_matrix *m)
{
    return m->major == BSM_MAJOR_MN || m->sparsity != BSM_SPARSITY_NONE;
}

bsm_status bsmi_k_major_prepare(const struct bsmi_product *p, bool copies_a, bool copies_b, struct bsmi_k_major *k)
{
    struct bsmi_matrix copy;
    int64_t a_bytes = 0, b_bytes = 0;
    *k = (struct bsmi_k_major){ .a = copies_a && is_copied(&p->a), .b = copies_b && !p->b_alone && is_copied(&p->b),
                                .unpacks_b = copies_b && p->b_alone };
    const struct { const char *name; const struct bsmi_matrix *m; bool copied; int64_t *bytes; } operands[] = {
        { "a", &p->a, k->a, &a_bytes }, { "b", &p->b, k->b, &b_bytes } };
    if (k->unpacks_b && describe_copy(&p->b, NULL, &copy, &b_bytes))
        return bsmi_fail(BSM_EOVERFLOW, "b->data is NULL: its unpacked copy has more bytes than an int64_t counts");
    for (int i = 0; i < 2; i++)
        if (operands[i].copied && describe_copy(operands[i].m, NULL, &copy, operands[i].bytes))
            return bsmi_fail(BSM_EOVERFLOW, "%s->%s: its %s copy has more bytes than an int64_t counts",
                             operands[i].name, operands[i].m->major == BSM_MAJOR_MN ? "major=mn" : "sparsity",
                             operands[i].m->major == BSM_MAJOR_MN ? "K-major" : "dense");
    k->b_at = (size_t)bsmi_round_up(a_bytes, ALIGNMENT);
    k->b_bytes = (size_t)b_bytes;
    k->workspace_bytes = k->b_at + (size_t)bsmi_round_up(b_bytes, ALIGNMENT);
    return BSM_OK;
}

static struct bsmi_matrix copy_at(const struct bsmi_matrix *from, uintptr_t base, size_t at)
{
    struct bsmi_matrix copy;
    int64_t bytes;
    (void)describe_copy(from, (unsigned char *)(base + at), &copy, &bytes);       /* it was counted before */
    return copy;
}

struct bsmi_matrix bsmi_k_major_panels(const struct bsmi_matrix *b, const void *panels)
{
    return copy_at(b, (uintptr_t)panels, 0);
}

struct bsmi_product bsmi_k_major_product(const struct bsmi_k_major *k, const struct bsmi_product *p, void *workspace)
{
    struct bsmi_product read = *p;
    if (k->a) read.a = copy_at(&p->a, (uintptr_t)workspace, k->a_at);
    if (k->unpacks_b) {
        read.b = copy_at(&p->b, (uintptr_t)workspace, k->b_at);
        read.b_panels = NULL, read.b_alone = false;
    }
    if (!k->b) return read;
    read.b = bsmi_k_major_copies_b(k, p) ? copy_at(&p->b, (uintptr_t)workspace, k->b_at)
                                         : bsmi_k_major_panels(&p->b, p->b_panels);
    read.b_panels = NULL;
    return read;
}

struct copy { const struct bsmi_matrix *from, *to; };

static void copy_piece(void *argument, int64_t piece, int worker)
{
    const struct copy *copy = argument;
    (void)worker;
    bsmi_transpose_piece(copy->from, copy->to, piece);
}

/* A row of a sparse operand, zeros and all. */
static void expand_row(void *argument, int64_t index, int worker)
{
    enum { PIECE = 1024 };
    const struct copy *copy = argument;
    const struct bsmi_matrix *from = copy->from, *to = copy->to;
    const int64_t batch = index / from->rows, row = index % from->rows;
    (void)worker;
    if (from->bits > 8) {
        bsmi_sparse_codes(from, batch, row, 0, from->columns, bsmi_row(to, batch, row), (size_t)from->bits / 8);
        return;
    }
    for (int64_t k = 0; k < from->columns; k += PIECE) {
        uint8_t codes[PIECE];
        const int64_t count = BSMI_MIN(from->columns - k, PIECE);
        bsmi_sparse_codes(from, batch, row, k, count, codes, 1);
        bsmi_row_store_codes(to, batch, row, k, count, codes);
    }
    for (int64_t s = 0; s < to->scale_columns; s++)
        *bsmi_scale_pointer(to, batch, row, s) = *bsmi_scale_pointer(from, batch, row, s / 2);
}

void bsmi_k_major_copy(const struct bsmi_matrix *from, const struct bsmi_matrix *to, int threads)
{
    struct copy copy = { from, to };
    if (from->sparsity != BSM_SPARSITY_NONE) {
        if (from->columns > 0) bsmi_parallel_for(threads, from->batch * from->rows, expand_row, &copy);
        return;
    }
    bsmi_parallel_for(threads, bsmi_transpose_pieces(from), copy_piece, &copy);
}
