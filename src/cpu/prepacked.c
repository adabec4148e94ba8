/* B packed once, for many products. */
#include "multiply.h"
#include "core/core.h"
#include "microkernel.h"

#define LL(x) ((long long)(x))

/* What panels begin with. */
struct header {
    char magic[8];
    char kernel[32];                      /* its name, filled up with zeros */
    int32_t format, run;                  /* run: columns of K that share both scales */
    int64_t rows, columns, batch, split;
    unsigned char rest[48];
};
_Static_assert(sizeof(struct header) == 128, "panels behind it are aligned like it");

static const char magic[8] = "bsmpanel";

static int64_t split_of(const struct bsmi_product *p) { return p->gate == BSM_GATE_SPLIT ? p->n / 2 : 0; }

static struct header header_of(const struct bsmi_kernel *kernel, const struct bsmi_product *p)
{
    struct header h = { .format = (int32_t)p->b.format, .run = bsmi_run_length(&p->a, &p->b), .rows = p->b.rows,
                        .columns = p->b.columns, .batch = p->b.batch, .split = split_of(p) };
    memcpy(h.magic, magic, sizeof magic);
    strncpy(h.kernel, kernel->name, sizeof h.kernel - 1);
    return h;
}

static int64_t panels_of_matrix(const struct bsmi_panels *panels, const struct bsmi_product *p)
{
    return bsmi_ceil_div(p->n, panels->columns) * bsmi_ceil_div(p->k, panels->chunk);
}

size_t bsmi_prepacked_bytes(const struct bsmi_kernel *kernel, const struct bsmi_product *p)
{
    int64_t bytes;
    if (kernel->panels == NULL || !kernel->panels->keeps_b) return 0;
    if (bsmi_mul_overflows(panels_of_matrix(kernel->panels, p), (int64_t)kernel->panels->b_bytes, &bytes)) return 0;
    if (bsmi_mul_overflows(bytes, p->b.batch, &bytes)) return 0;
    if (bsmi_add_overflows(bytes, (int64_t)sizeof(struct header), &bytes)) return 0;
    return (size_t)bytes;
}

struct packing {
    const struct bsmi_cpu_multiply *multiply;
    const struct bsmi_product *product;
    unsigned char *panels;
    int64_t strips;
};

/* One strip of columns of one matrix. */
static void pack_strip(void *argument, int64_t index, int worker)
{
    const struct packing *packing = argument;
    const struct bsmi_product *p = packing->product;
    const struct bsmi_cpu_multiply *c = packing->multiply;
    const struct bsmi_panels *panels = c->kernel->panels;
    const int64_t batch = index / packing->strips, first = index % packing->strips * panels->columns;
    unsigned char *to = packing->panels + (size_t)(batch * panels_of_matrix(panels, p)) * panels->b_bytes;
    (void)worker;
    for (int64_t k = 0; k < p->k; k += panels->chunk) {
        const struct bsmi_part part = { { &p->b, c->b_values, c->b_scales }, batch, first, BSMI_MIN(panels->columns, p->n - first),
                                        split_of(p), k, BSMI_MIN(panels->chunk, p->k - k) };
        panels->pack_b(&part, bsmi_run_length(&p->a, &p->b), to + bsmi_panel_offset(panels, p->k, first, k));
    }
}

void bsmi_prepacked_make(const struct bsmi_cpu_multiply *c, const struct bsmi_product *p, void *panels)
{
    const struct header header = header_of(c->kernel, p);
    struct packing packing = { c, p, (unsigned char *)panels + sizeof header, bsmi_ceil_div(p->n, c->kernel->panels->columns) };
    memcpy(panels, &header, sizeof header);
    bsmi_parallel_for(c->threads, packing.strips * p->b.batch, pack_strip, &packing);
}

bsm_status bsmi_prepacked_check(const struct bsmi_product *p)
{
    struct header h;
    if (p->b_panels == NULL) return BSM_OK;
    memcpy(&h, p->b_panels, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0)
        return bsmi_fail(BSM_EINVAL, "product->b_panels=%p does not begin like panels: bsm_plan_pack_b makes them", p->b_panels);
    if (h.format != (int32_t)p->b.format || h.rows != p->b.rows || h.columns != p->b.columns || h.batch != p->b.batch)
        return bsmi_fail(BSM_EINVAL, "product->b_panels was made of %lld matrices of %lld x %lld of format %d, but b is %lld of "
                                     "%lld x %lld of format %d", LL(h.batch), LL(h.rows), LL(h.columns), (int)h.format,
                         LL(p->b.batch), LL(p->b.rows), LL(p->b.columns), (int)p->b.format);
    return BSM_OK;
}

const unsigned char *bsmi_prepacked_for(const struct bsmi_kernel *kernel, const struct bsmi_product *p, size_t *matrix_bytes)
{
    if (p->b_panels == NULL || bsmi_prepacked_bytes(kernel, p) == 0) return NULL;
    const struct header wanted = header_of(kernel, p);
    if (memcmp(p->b_panels, &wanted, sizeof wanted) != 0) return NULL;
    *matrix_bytes = (size_t)panels_of_matrix(kernel->panels, p) * kernel->panels->b_bytes;
    return (const unsigned char *)p->b_panels + sizeof wanted;
}
