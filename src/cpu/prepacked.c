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

/* The kernel's panels; bytes 0: it has none. */
static struct bsmi_b_panels panels_of(const struct bsmi_kernel *kernel)
{
    const struct bsmi_microkernel *micro = kernel->microkernel;
    if (micro == NULL) return kernel->panels == NULL ? (struct bsmi_b_panels){ 0 } : *kernel->panels;
    return (struct bsmi_b_panels){ micro->columns, micro->chunk, micro->prepacks_b ? micro->b_bytes : 0,
                                   micro->row_exponents, micro->pack_b };
}

/* What panels depend on besides B: exponents of rows on whether A is bf16, others on exact blocks or on nothing. */
static int shared_of(const struct bsmi_kernel *kernel, const struct bsmi_product *p)
{
    if (kernel->microkernel == NULL) return 0;
    return kernel->microkernel->row_exponents ? p->a.element == BSM_BF16 : bsmi_exact_block_length(&p->a, &p->b);
}

static struct header header_of(const struct bsmi_kernel *kernel, const struct bsmi_product *p)
{
    struct header h = { .format = (int32_t)p->b.format, .exact_block = shared_of(kernel, p), .rows = p->b.rows,
                        .columns = p->b.columns, .batch = p->b.batch, .split = split_of(p) };
    memcpy(h.magic, magic, sizeof magic);
    strncpy(h.kernel, kernel->name, sizeof h.kernel - 1);
    return h;
}

static int64_t panels_of_matrix(const struct bsmi_b_panels *panels, const struct bsmi_product *p)
{
    return bsmi_ceil_div(p->n, panels->columns) * bsmi_ceil_div(p->k, panels->chunk);
}

size_t bsmi_prepacked_bytes(const struct bsmi_kernel *kernel, const struct bsmi_product *p)
{
    const struct bsmi_b_panels panels = panels_of(kernel);
    int64_t bytes;
    if (panels.bytes == 0 || p->column_groups > 0) return 0;
    if (bsmi_mul_overflows(panels_of_matrix(&panels, p), (int64_t)panels.bytes, &bytes)) return 0;
    if (bsmi_mul_overflows(bytes, p->b.batch, &bytes)) return 0;
    if (bsmi_add_overflows(bytes, (int64_t)sizeof(struct header), &bytes)) return 0;
    return (size_t)bytes;
}

struct packing {
    struct bsmi_b_panels panels;
    const struct bsmi_product *product;
    struct bsmi_operand b;
    int exact_block;
    unsigned char *to;
    int64_t strips;
};

enum { MOST_COLUMNS = 64 };               /* of kernels that prepack B */

/* One strip of columns of one matrix: of all its panels one stretch, K ascending. */
static void pack_strip(void *argument, int64_t index, int worker)
{
    const struct packing *packing = argument;
    const struct bsmi_product *p = packing->product;
    const struct bsmi_b_panels *panels = &packing->panels;
    const int64_t batch = index / packing->strips, first = index % packing->strips * panels->columns;
    unsigned char *to = packing->to + (size_t)(index * bsmi_ceil_div(p->k, panels->chunk)) * panels->bytes;
    (void)worker;
    const int64_t count = BSMI_MIN(panels->columns, p->n - first), split = split_of(p);
    int16_t exponents[MOST_COLUMNS];
    if (panels->row_exponents)
        bsmi_row_exponents(&packing->b, p->a.element == BSM_BF16, batch, first, count, split, p->k, exponents);
    for (int64_t k = 0; k < p->k; k += panels->chunk, to += panels->bytes) {
        const struct bsmi_part part = { packing->b, batch, first, count, split, k, BSMI_MIN(panels->chunk, p->k - k),
                                        panels->row_exponents ? exponents : NULL };
        panels->pack(&part, packing->exact_block, to);
    }
}

void bsmi_prepacked_make(const struct bsmi_kernel *kernel, const struct bsmi_product *p, const struct bsmi_operand *b,
                         int threads, void *prepacked)
{
    const struct header header = header_of(kernel, p);
    struct packing packing = { .panels = panels_of(kernel), .product = p, .b = *b,
                               .exact_block = bsmi_exact_block_length(&p->a, &p->b),
                               .to = (unsigned char *)prepacked + sizeof header };
    packing.strips = bsmi_ceil_div(p->n, packing.panels.columns);
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
    const struct bsmi_b_panels panels = panels_of(kernel);
    *matrix_bytes = (size_t)panels_of_matrix(&panels, p) * panels.bytes;
    return (const unsigned char *)p->b_panels + sizeof wanted;
}
