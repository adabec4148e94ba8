/* Combinations that products ran with, seen where the host launches them. */
#include "combinations.h"

#include "core/core.h"
#include "cuda/driver/launch.h"
#include "cuda/gemm/multiply.h"

#include <stdlib.h>
#include <string.h>

uint32_t combinations_ran[COMBINATIONS];
bool combinations_dry;
int combinations_last[2];

/* Of this thread's call: whether it is one of the tests' (contexts test themselves when they are made), and whether
 * operands went to bsmi_decode_plain. */
static _Thread_local bool asked, plainly;

/* Numbers -------------------------------------------------------------------------------------------------- */

int combination_number(const struct combination *c)
{
    int number = c->role;
    number = number * FORM_COUNT + c->form;
    number = number * 16 + c->format;
    number = number * 8 + c->packing;
    number = number * COMBINATION_LAYOUTS + c->layout;
    number = number * COMBINATION_KS + c->k;
    return number * 2 + c->apart;
}

static int take(int *number, int base)
{
    const int digit = *number % base;
    *number /= base;
    return digit;
}

struct combination combination_of(int number)
{
    struct combination c;
    c.apart = take(&number, 2), c.k = take(&number, COMBINATION_KS), c.layout = take(&number, COMBINATION_LAYOUTS);
    c.packing = take(&number, 8), c.format = take(&number, 16), c.form = take(&number, FORM_COUNT), c.role = number;
    return c;
}

const char *combination_form_name(int form)
{
    static const char *const names[FORM_CODES] = {
        "as it is, by cuda_simt",
        "rows as they are",
        "rows repacked",
        "decoded plainly",
        "decoded",
        "in the kernel, own scales",
        "in the kernel, scales plainly",
        "in the kernel, scales",
        "in registers",
        "panels",
        "integers",
        "requantized",
    };
    static const char *const kinds[] = { "mxf8f6f4", "mxf4", "mxf4nvf4" };
    static char text[96];
    if (form < FORM_CODES) return names[form];
    const int of_codes = form - FORM_CODES;
    snprintf(text, sizeof text, "%s%s, %s", kinds[of_codes / 8], of_codes / 4 % 2 != 0 ? ", repacked" : "",
             bsmi_codes_scales_name((enum bsmi_codes_scales)(of_codes % 4)));
    return text;
}

void combination_print(FILE *to, const struct combination *c)
{
    static const char *const layouts[] = { "no scales", "linear", "linear apart", "128x4", "other layouts", "gguf" };
    static const char *const ks[] = { "K of 64", "K of 16", "ragged K" };
    fprintf(to, "%c, %s, %s, %s, %s, %s, %s", c->role == 0 ? 'A' : 'B', combination_form_name(c->form),
            bsm_format_get(c->format)->name, bsm_packing_name(c->packing), layouts[c->layout], ks[c->k],
            c->apart ? "apart" : "tight");
}

/* What the host chose -------------------------------------------------------------------------------------- */

static int form_of(const struct bsmi_cuda_multiply *c, const struct bsmi_cuda_operand *o)
{
    const struct bsmi_gemm_instance *g = c->gemm < 0 ? NULL : &bsmi_gemm_instances[c->gemm];
    if (g == NULL) return FORM_SIMT;
    if (o->form == BSMI_FORM_REQUANTIZED) return FORM_REQUANTIZEED;
    if (bsmi_cuda_multiplies_codes(c))
        return FORM_CODES + ((int)g->operands - BSMI_OPERANDS_MXF8F6F4) * 8 + (o->form == BSMI_FORM_REPACKED) * 4 +
               (int)o->codes.scales;
    if (c->int8_fallback >= 0) return FORM_INTEGERS;
    if (o->form == BSMI_FORM_AS_STORED) return FORM_ROWS_AS_THEY_ARE;
    if (o->form == BSMI_FORM_REPACKED) return FORM_REPACKED;
    if (o->form == BSMI_FORM_DEQUANTIZED) return plainly ? FORM_DECODED_PLAINLY : FORM_DECODED;
    if (bsmi_gemm_reads_prepacked(g)) return FORM_PANELS;
    if (o->any_scales) return FORM_REGISTERS;
    return o->own_scales ? FORM_OWN_SCALES : plainly ? FORM_SCALES_PLAINLY : FORM_SCALES;
}

static int layout_of(const struct bsmi_matrix *m)
{
    if (m->block == 0) return SCALES_NONE;
    switch (m->map.layout.kind) {
    case BSM_LAYOUT_LINEAR: return m->map.layout.pitch == m->scale_columns ? SCALES_LINEAR : SCALES_APART;
    case BSM_LAYOUT_128X4: return SCALES_128X4;
    case BSM_LAYOUT_GGUF_MXFP4:
    case BSM_LAYOUT_GGUF_NVFP4: return SCALES_GGUF;
    default: return SCALES_OTHERS;
    }
}

static bool lies_apart(const struct bsmi_matrix *m)
{
    return m->packing != BSM_PACKING_GGUF &&
           m->row_bytes != bsmi_ceil_div(m->columns * (m->packing == BSM_PACKING_BYTES ? 8 : m->bits), 8);
}

static int number_of(int role, const struct bsmi_cuda_multiply *c, const struct bsmi_cuda_operand *o,
                     const struct bsmi_matrix *m)
{
    const struct combination combination = {
        .role = role,
        .form = form_of(c, o),
        .format = (int)m->format,
        .packing = (int)m->packing,
        .layout = layout_of(m),
        .k = m->columns % 64 == 0   ? K_64
             : m->columns % 16 == 0 ? K_16
                                    : K_RAGGED,
        .apart = lies_apart(m),
    };
    return combination_number(&combination);
}

static void note(const struct bsmi_cuda_multiply *c, const struct bsmi_product *p)
{
    combinations_last[0] = number_of(0, c, &c->a, &p->a), combinations_last[1] = number_of(1, c, &c->b, &p->b);
    for (int i = 0; i < 2 && !combinations_dry; i++)
        __atomic_fetch_add(&combinations_ran[combinations_last[i]], 1, __ATOMIC_RELAXED);
}

/* In the places of the library's ----------------------------------------------------------------------------- */

bsm_status __real_bsm_multiply(bsm_context *, const bsm_matmul *);
bsm_status __wrap_bsm_multiply(bsm_context *context, const bsm_matmul *product);
bsm_status __wrap_bsm_multiply(bsm_context *context, const bsm_matmul *product)
{
    asked = true;
    const bsm_status status = __real_bsm_multiply(context, product);
    asked = false;
    return status;
}

bsm_status __real_bsm_plan_run(const bsm_plan *, const bsm_matmul *, void *, size_t);
bsm_status __wrap_bsm_plan_run(const bsm_plan *plan, const bsm_matmul *product, void *workspace, size_t bytes);
bsm_status __wrap_bsm_plan_run(const bsm_plan *plan, const bsm_matmul *product, void *workspace, size_t bytes)
{
    asked = true;
    const bsm_status status = __real_bsm_plan_run(plan, product, workspace, bytes);
    asked = false;
    return status;
}

bsm_status __real_bsmi_cuda_multiply(bsm_context *, const struct bsmi_cuda_multiply *, const struct bsmi_product *);
bsm_status __wrap_bsmi_cuda_multiply(bsm_context *context, const struct bsmi_cuda_multiply *c,
                                     const struct bsmi_product *p);
bsm_status __wrap_bsmi_cuda_multiply(bsm_context *context, const struct bsmi_cuda_multiply *c,
                                     const struct bsmi_product *p)
{
    plainly = false;
    const bsm_status status = __real_bsmi_cuda_multiply(context, c, p);
    if (status == BSM_OK && asked) note(c, p);
    return status;
}

bsm_status __real_bsmi_cuda_run(bsm_context *, const struct bsmi_cuda_multiply *, const struct bsmi_product *, void *);
bsm_status __wrap_bsmi_cuda_run(bsm_context *context, const struct bsmi_cuda_multiply *c, const struct bsmi_product *p,
                                void *workspace);
bsm_status __wrap_bsmi_cuda_run(bsm_context *context, const struct bsmi_cuda_multiply *c, const struct bsmi_product *p,
                                void *workspace)
{
    plainly = false;
    const bsm_status status = __real_bsmi_cuda_run(context, c, p, workspace);
    if (status == BSM_OK && asked) note(c, p);
    return status;
}

bsm_status __real_bsmi_cuda_launch(struct bsmi_cuda_queue *, enum bsmi_cuda_kernel_id, int64_t, const void *);
bsm_status __wrap_bsmi_cuda_launch(struct bsmi_cuda_queue *queue, enum bsmi_cuda_kernel_id kernel, int64_t pieces,
                                   const void *parameters);
bsm_status __wrap_bsmi_cuda_launch(struct bsmi_cuda_queue *queue, enum bsmi_cuda_kernel_id kernel, int64_t pieces,
                                   const void *parameters)
{
    plainly |= kernel == BSMI_KERNEL_DECODE_PLAIN || kernel == BSMI_KERNEL_DECODE_EARLY;
    return combinations_dry ? BSM_OK : __real_bsmi_cuda_launch(queue, kernel, pieces, parameters);
}

bsm_status __real_bsmi_cuda_launch_early(struct bsmi_cuda_queue *, enum bsmi_cuda_kernel_id, int64_t, const void *);
bsm_status __wrap_bsmi_cuda_launch_early(struct bsmi_cuda_queue *queue, enum bsmi_cuda_kernel_id kernel, int64_t pieces,
                                         const void *parameters);
bsm_status __wrap_bsmi_cuda_launch_early(struct bsmi_cuda_queue *queue, enum bsmi_cuda_kernel_id kernel, int64_t pieces,
                                         const void *parameters)
{
    plainly |= kernel == BSMI_KERNEL_DECODE_PLAIN;
    return combinations_dry ? BSM_OK : __real_bsmi_cuda_launch_early(queue, kernel, pieces, parameters);
}

bsm_status __real_bsmi_cuda_launch_gemm(struct bsmi_cuda_queue *, int, int64_t, const void *);
bsm_status __wrap_bsmi_cuda_launch_gemm(struct bsmi_cuda_queue *queue, int gemm, int64_t tiles, const void *parameters);
bsm_status __wrap_bsmi_cuda_launch_gemm(struct bsmi_cuda_queue *queue, int gemm, int64_t tiles, const void *parameters)
{
    return combinations_dry ? BSM_OK : __real_bsmi_cuda_launch_gemm(queue, gemm, tiles, parameters);
}

/* What ran, for BLOCKSCALE_COMBINATIONS: a number and how often, a line each. */
__attribute__((destructor)) static void append_counts(void)
{
    const char *path = getenv("BLOCKSCALE_COMBINATIONS");
    FILE *file = path == NULL ? NULL : fopen(path, "a");
    for (int i = 0; i < COMBINATIONS && file != NULL; i++)
        if (combinations_ran[i] > 0) fprintf(file, "%d %u\n", i, combinations_ran[i]);
    if (file != NULL) fclose(file);
}
