/* bsm_plan_describe on a GPU. */
#include "cuda_select.h"

#include <stdio.h>

static void describe_order(const struct bsmi_product *p, const struct bsmi_cuda_multiply *c, char *text, size_t bytes)
{
    const bool cut = c->a.as_it_is && p->a.element == BSM_FP32;
    if (c->lowering == NULL) snprintf(text, bytes, "the portable one");
    else if (c->int8_fallback >= 0)
        snprintf(text, bytes, "exact in s32 if the scales of every row span 3 powers of two and its sums fit fp32, "
                              "else tensor cores along K in fp32");
    else if (c->a.form == BSMI_FORM_REQUANTIZED)
        snprintf(text, bytes, "tensor cores along each 256 columns of K, added in fp32");
    else if (c->gemm >= 0 && bsmi_gemm_has_k_parts(&bsmi_gemm_instances[c->gemm]))
        snprintf(text, bytes, "tensor cores along each of %d parts of K in fp32, parts added",
                 bsmi_gemm_instances[c->gemm].k_parts);
    else if (c->parts > 1)
        snprintf(text, bytes, "tensor cores along each of %d parts of K in fp32, parts ascending%s", c->parts,
                 c->split_k ? " in an epilogue of their own" : "");
    else
        snprintf(text, bytes, "tensor cores along K%s in fp32%s", c->a.terms * c->b.terms > 1 ? ", term by term," : "",
                 cut ? ", operands cut to tf32" : "");
}

/* "as stored", "as stored (MN-major, by the descriptor)", "as stored (by cp.async, 8 bytes each)", "repacked with
 * scales converted to 128x4", ... */
static void describe_form(const struct bsmi_cuda_multiply *c, const struct bsmi_cuda_operand *o, bool is_mn_major,
                          char *text, size_t bytes)
{
    static const char *const forms[] = {
        [BSMI_FORM_AS_STORED] = "as stored",
        [BSMI_FORM_DEQUANTIZED] = "dequantized",
        [BSMI_FORM_REPACKED] = "repacked",
        [BSMI_FORM_REQUANTIZED] = "requantized to e4m3",
        [BSMI_FORM_IN_KERNEL] = "dequantized in the kernel",
    };
    const bool codes = bsmi_cuda_multiplies_codes(c);
    const int64_t late_rows = c->late_rows[o == &c->b];
    char note[40] = "";
    if (is_mn_major) snprintf(note, sizeof note, " (MN-major, by the descriptor)");
    if (o->copy_size > 0) snprintf(note, sizeof note, " (by cp.async, %d bytes each)", o->copy_size);
    if (late_rows > 0) snprintf(note, sizeof note, " (%lld late rows)", (long long)late_rows);
    if (c->int8_fallback >= 0)
        snprintf(text, bytes, "as int8 rows, else dequantized for %s", bsmi_gemm_instances[c->int8_fallback].name);
    else
        snprintf(text, bytes, "%s%s%s%s", forms[o->form], note, codes ? " with " : "",
                 codes ? bsmi_codes_scales_name(o->codes.scales) : "");
}

size_t bsmi_cuda_describe_plan(const struct bsmi_product *p, const struct bsmi_cuda_multiply *c,
                               const struct bsmi_cuda_multiply *prepacked, const char *reason, char *text, size_t bytes)
{
    char tile[64] = "an element a thread", expected[96] = "", a_form[96], b_form[96], order[160];
    describe_order(p, c, order, sizeof order);
    const struct bsmi_k_major *k = &c->k_major;
    describe_form(c, &c->a, p->a.major == BSM_MAJOR_MN && !k->a, a_form, sizeof a_form);
    describe_form(c, &c->b, p->b.major == BSM_MAJOR_MN && !k->b, b_form, sizeof b_form);
    if (c->gemm >= 0) {
        const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[c->gemm];
        snprintf(tile, sizeof tile, "tiles of %d x %d, clusters of %d x %d", g->tile_rows, g->tile_columns,
                 g->cluster_rows, g->cluster_columns);
    }
    if (c->expected_nanoseconds > 0)
        snprintf(expected, sizeof expected, " (%lld %s, %lld %s, about %.3g us)", (long long)c->tiles,
                 c->tiles == 1 ? "tile" : "tiles", (long long)c->waves, c->waves == 1 ? "wave" : "waves",
                 c->expected_nanoseconds / 1000);
    const int length =
        snprintf(text, bytes,
                 "cuda, kernel %s, %s, A (%s) %s, B (%s) %s, %s, workspace %zu bytes, "
                 "order: %s; chosen because: %s%s%s%s",
                 bsmi_cuda_kernel_name(c->gemm + 1), tile, bsm_format_get((int)p->a.format)->name, a_form,
                 bsm_format_get((int)p->b.format)->name, b_form,
                 c->direct ? "D finished by the same kernel" : "D by an epilogue of its own", c->workspace_bytes, order,
                 reason, expected, prepacked->gemm < 0 ? "" : "; with prepacked B: ",
                 prepacked->gemm < 0 ? "" : bsmi_cuda_kernel_name(prepacked->gemm + 1));
    return length < 0 ? 0 : (size_t)length;
}
