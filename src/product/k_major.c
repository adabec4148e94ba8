/* MN-major operands, for kernels that read K-major ones. */
#include "k_major.h"

#include "core/core.h"
#include "matrix/packing.h"
#include "matrix/transpose.h"

enum {
    ALIGNMENT = 256,                      /* of a copy: what workspaces of GPUs have */
    COLUMNS = 128                         /* rows of the copy begin at multiples of them: of at least 64 bytes, and TMA
                                             takes whole 128 columns where it pads codes to bytes */
};

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
           || bsmi_mul_overflows(from->batch, to->batch_bytes, bytes) || *bytes > INT64_MAX / 8;
}

bsm_status bsmi_k_major_prepare(const struct bsmi_product *p, bool copies_a, bool copies_b, struct bsmi_k_major *k)
{
    struct bsmi_matrix copy;
    int64_t a_bytes = 0, b_bytes = 0;
    *k = (struct bsmi_k_major){ .a = copies_a && p->a.major == BSM_MAJOR_MN,
                                .b = copies_b && p->b.major == BSM_MAJOR_MN };
    const struct { const char *name; const struct bsmi_matrix *m; bool copied; int64_t *bytes; } operands[] = {
        { "a", &p->a, k->a, &a_bytes }, { "b", &p->b, k->b, &b_bytes } };
    for (int i = 0; i < 2; i++)
        if (operands[i].copied && describe_copy(operands[i].m, NULL, &copy, operands[i].bytes))
            return bsmi_fail(BSM_EOVERFLOW, "%s->major=mn: its K-major copy has more bytes than an int64_t counts",
                             operands[i].name);
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

void bsmi_k_major_copy(const struct bsmi_matrix *from, const struct bsmi_matrix *to, int threads)
{
    struct copy copy = { from, to };
    bsmi_parallel_for(threads, bsmi_transpose_pieces(from), copy_piece, &copy);
}
