/* Weights packed once, for many products. */
#include "prepacked.h"

#include "core/core.h"
#include "microkernel.h"

#define LL(x) ((long long)(x))

/* What prepacked weights begin with. */
struct header {
    char magic[8];
    char kernel[32];                      /* its name, filled up with zeros */
    int32_t format, exact_block;          /* exact_block: columns of K that share both scales */
    int64_t rows, columns, batch, split;
    unsigned char rest[48];
};
_Static_assert(sizeof(struct header) == 128, "the panels behind it are aligned like it");

static const char magic[8] = "bsmpanel";

static int64_t split_of(const struct bsmi_product *p) { return p->gate == BSM_GATE_SPLIT ? p->n / 2 : 0; }

static struct header header_of(const struct bsmi_kernel *kernel, const struct bsmi_product *p)
{
    /* exponents of rows depend on whether A is bf16 */
    const int shared = kernel->microkernel != NULL && kernel->microkernel->row_exponents
                           ? p->a.element == BSM_BF16
                           : bsmi_exact_block_length(&p->a, &p->b);
    struct header h = { .format = (int32_t)p->b.format, .exact_block = shared,
                        .rows = p->b.rows,
                        .columns = p->b.columns, .batch = p->b.batch, .split = split_of(p) };
    memcpy(h.magic, magic, sizeof magic);
    strncpy(h.kernel, kernel->name, sizeof h.kernel - 1);
    return h;
}

static int64_t panels_of_matrix(const struct bsmi_microkernel *micro, const struct bsmi_product *p)
{
    return bsmi_ceil_div(p->n, micro->columns) * bsmi_ceil_div(p->k, micro->chunk);
}

size_t bsmi_prepacked_bytes(const struct bsmi_kernel *kernel, const struct bsmi_product *p)
{
    const struct bsmi_microkernel *micro = kernel->microkernel;
    int64_t bytes;
    if (micro == NULL || !micro->prepacks_b || p->column_groups > 0) return 0;
    if (bsmi_mul_overflows(panels_of_matrix(micro, p), (int64_t)micro->b_bytes, &bytes)) return 0;
    if (bsmi_mul_overflows(bytes, p->b.batch, &bytes)) return 0;
    if (bsmi_add_overflows(bytes, (int64_t)sizeof(struct header), &bytes)) return 0;
    return (size_t)bytes;
}

struct packing {
    const struct bsmi_microkernel *micro;
    const struct bsmi_product *product;
    struct bsmi_operand b;
    unsigned char *panels;
    int64_t strips;
};

enum { MOST_COLUMNS = 64 };               /* of microkernels that prepack B */

/* One strip of columns of one matrix. */
static void pack_strip(void *argument, int64_t index, int worker)
{
    const struct packing *packing = argument;
    const struct bsmi_product *p = packing->product;
    const struct bsmi_microkernel *micro = packing->micro;
    const int64_t batch = index / packing->strips, first = index % packing->strips * micro->columns;
    unsigned char *to = packing->panels + (size_t)(batch * panels_of_matrix(micro, p)) * micro->b_bytes;
    (void)worker;
    const int64_t count = BSMI_MIN(micro->columns, p->n - first), split = split_of(p);
    int16_t exponents[MOST_COLUMNS];
    if (micro->row_exponents)
        bsmi_row_exponents(&packing->b, p->a.element == BSM_BF16, batch, first, count, split, p->k, exponents);
    for (int64_t k = 0; k < p->k; k += micro->chunk) {
        const struct bsmi_part part = { packing->b, batch, first, count, split, k, BSMI_MIN(micro->chunk, p->k - k),
                                        micro->row_exponents ? exponents : NULL };
        micro->pack_b(&part, bsmi_exact_block_length(&p->a, &p->b), to + bsmi_panel_offset(micro, p->k, first, k));
    }
}

void bsmi_prepacked_make(const struct bsmi_kernel *kernel, const struct bsmi_product *p, const struct bsmi_operand *b,
                         int threads, void *prepacked)
{
    const struct header header = header_of(kernel, p);
    const struct bsmi_microkernel *micro = kernel->microkernel;
    struct packing packing = { micro, p, *b, (unsigned char *)prepacked + sizeof header,
                               bsmi_ceil_div(p->n, micro->columns) };
    memcpy(prepacked, &header, sizeof header);
    bsmi_parallel_for(threads, packing.strips * p->b.batch, pack_strip, &packing);
}

bsm_status bsmi_prepacked_check(const struct bsmi_product *p)
{
    struct header h;
    if (p->b_panels == NULL) return BSM_OK;
    memcpy(&h, p->b_panels, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0)
        return bsmi_fail(BSM_EINVAL,
                         "product->b_panels=%p does not begin like prepacked weights: bsm_plan_pack_b makes them",
                         p->b_panels);
    if (h.format != (int32_t)p->b.format || h.rows != p->b.rows || h.columns != p->b.columns || h.batch != p->b.batch)
        return bsmi_fail(BSM_EINVAL,
                         "product->b_panels was made of %lld matrices of %lld x %lld of format %d, but b is %lld of "
                         "%lld x %lld of format %d",
                         LL(h.batch), LL(h.rows), LL(h.columns), (int)h.format, LL(p->b.batch), LL(p->b.rows),
                         LL(p->b.columns), (int)p->b.format);
    return BSM_OK;
}

const unsigned char *bsmi_prepacked_for(const struct bsmi_kernel *kernel, const struct bsmi_product *p,
                                        size_t *matrix_bytes)
{
    if (p->b_panels == NULL || bsmi_prepacked_bytes(kernel, p) == 0) return NULL;
    const struct header wanted = header_of(kernel, p);
    if (memcmp(p->b_panels, &wanted, sizeof wanted) != 0) return NULL;
    *matrix_bytes = (size_t)panels_of_matrix(kernel->microkernel, p) * kernel->microkernel->b_bytes;
    return (const unsigned char *)p->b_panels + sizeof wanted;
}
