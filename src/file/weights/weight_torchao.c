/* torchao's tensors as flatten_tensor_state_dict of torchao 0.18 stores them: X._weight_qdata with X._weight_scale.
 *
 * Scales may lie row by row or in cuBLAS' blocks of 128 x 4 ("swizzled"), which their shapes tell apart: swizzled ones
 * for M rows of S scales are said to be [32 ceil(M / 128), 16 ceil(S / 4)].  Formats follow from types and shapes; of
 * 6-bit codes, one in a byte, the metadata alone says which they are. */
#include "weight_look.h"

#include <stdio.h>

/* What the file says of the tensor: JSON under the weight's own name. */
static const char *said_of(const struct bsmi_look *look)
{
    char key[4096];
    const bsm_weight *w = look->weight;
    const int length = snprintf(key, sizeof key, "%.*s.weight", (int)w->name_length, w->name);
    return length < (int)sizeof key ? bsm_checkpoint_metadata(look->checkpoint, key) : NULL;
}

static bsm_status refuse(const struct bsmi_look *look, const bsm_tensor *scales)
{
    static const char *const kinds[] = { "Int8Tensor", "Int4TilePackedTo4dTensor", "Int4PlainInt32Tensor", "Int4Tensor",
                                         "IntxUnpackedToInt8Tensor" };
    const char *said = said_of(look), *kind = "of another kind";
    for (size_t i = 0; said != NULL && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strstr(said, kinds[i]) != NULL) kind = kinds[i];
    return bsmi_fail(
        BSM_EUNSUPPORTED,
        "tensor %.200s (%s) with scales %.200s is a tensor of torchao's, %s: NVFP4Tensor, MXTensor and Float8Tensor "
        "are read",
        look->codes.name, bsm_tensor_type_name((int)look->codes.type), scales->name, kind);
}

/* The 6-bit element that the metadata names. */
static bsm_format six_bits(const struct bsmi_look *look)
{
    const char *said = said_of(look);
    if (said != NULL && strstr(said, "\"fp6_e2m3\"") != NULL) return BSM_MXFP6_E2M3;
    return said != NULL && strstr(said, "\"fp6_e3m2\"") != NULL ? BSM_MXFP6_E3M2 : BSM_FORMAT_NONE;
}

static bool is_swizzled(const struct bsmi_look *look, const bsm_tensor *scales)
{
    const bsm_matrix *m = &look->weight->matrix;
    return m->batch == 1 && look->codes.rank == 2 && scales->rank == 2
           && scales->shape[0] == 32 * bsmi_ceil_div(m->rows, 128)
           && scales->shape[1] == 16 * bsmi_ceil_div(bsm_matrix_scale_columns(m), 4);
}

static bsm_status take_scales(struct bsmi_look *look, const bsm_tensor *scales, int64_t index)
{
    if (!is_swizzled(look, scales)) return bsmi_attach_block_scales(look, scales, index, look->codes.rank - 1);
    look->weight->matrix.scale_layout.kind = BSM_LAYOUT_128X4;
    look->weight->matrix.scales = (void *)(uintptr_t)scales->data;
    look->weight->scales = index;
    return BSM_OK;
}

/* Whether so many of the codes' last dimension share a scale, in whichever layout: 16 bytes of 4-bit codes, 32 of wider
 * ones. */
static bool has_bytes_per_scale(const struct bsmi_look *look, const bsm_tensor *scales, int64_t bytes)
{
    const bsm_tensor *t = &look->codes;
    const int64_t columns = bsmi_ceil_div(t->shape[t->rank - 1], bytes), rows = t->shape[t->rank - 2];
    if (scales->rank == t->rank && scales->shape[t->rank - 1] == columns && scales->shape[t->rank - 2] == rows)
        return true;
    return t->rank == 2 && scales->rank == 2 && scales->shape[0] == 32 * bsmi_ceil_div(rows, 128) &&
           scales->shape[1] == 16 * bsmi_ceil_div(columns, 4);
}

/* A format for byte codes with scales of one byte; NONE: none of them. */
static bsm_format format_of(const struct bsmi_look *look, const bsm_tensor *scales)
{
    switch (look->codes.type) {
    case BSM_TENSOR_F8_E4M3: return scales->type == BSM_TENSOR_F8_E8M0 ? BSM_MXFP8_E4M3 : BSM_FORMAT_NONE;
    case BSM_TENSOR_F8_E5M2: return scales->type == BSM_TENSOR_F8_E8M0 ? BSM_MXFP8_E5M2 : BSM_FORMAT_NONE;
    case BSM_TENSOR_F4:
    case BSM_TENSOR_U8: break;
    default: return BSM_FORMAT_NONE;
    }
    if (scales->type == BSM_TENSOR_F8_E4M3) return BSM_NVFP4;
    if (scales->type != BSM_TENSOR_F8_E8M0) return BSM_FORMAT_NONE;
    if (look->codes.type == BSM_TENSOR_U8 && has_bytes_per_scale(look, scales, 32) && six_bits(look) != BSM_FORMAT_NONE)
        return six_bits(look);
    return has_bytes_per_scale(look, scales, look->codes.type == BSM_TENSOR_U8 ? 16 : 32) ? BSM_MXFP4 : BSM_FORMAT_NONE;
}

/* The tensor scale of an NVFP4Tensor: none, one, or one for each matrix of the batch. */
static bsm_status take_tensor_scale(struct bsmi_look *look)
{
    bsm_tensor t;
    int64_t index;
    bsm_weight *w = look->weight;
    if (!bsmi_find_part(look, "._weight_per_tensor_scale", &t, &index)) return BSM_OK;
    if (bsmi_count_of(&t) == 1) return bsmi_attach_tensor_scale(look, &t, index, BSM_TENSOR_SCALE_MULTIPLIES);
    if (bsmi_count_of(&t) != w->matrix.batch)
        return bsmi_misfit(look, &t, "one scale is wanted, or one for each matrix");
    return bsmi_attach_tiles(look, &t, index, w->matrix.rows, w->matrix.columns);
}

bsm_status bsmi_try_torchao(struct bsmi_look *look)
{
    bsm_weight *w = look->weight;
    bsm_tensor scales;
    int64_t index;
    if (look->codes.rank < 2 || !bsmi_takes_ending(look, "._weight_qdata") ||
        !bsmi_find_part(look, "._weight_scale", &scales, &index))
        return BSM_OK;
    w->convention = BSM_CONVENTION_TORCHAO;
    const bool fp8 = look->codes.type == BSM_TENSOR_F8_E4M3 || look->codes.type == BSM_TENSOR_F8_E5M2;
    if (fp8 && scales.type == BSM_TENSOR_F32) return bsmi_take_wide_scales(look, &scales, index);
    w->matrix.format = format_of(look, &scales);
    if (w->matrix.format == BSM_FORMAT_NONE) return refuse(look, &scales);
    const bool six = w->matrix.format == BSM_MXFP6_E2M3 || w->matrix.format == BSM_MXFP6_E3M2;
    if (six) w->matrix.packing = BSM_PACKING_BYTES;
    bsm_status status = bsmi_read_shape(look, look->codes.type == BSM_TENSOR_U8 && !six ? 2 : 1);
    if (status == BSM_OK) status = take_scales(look, &scales, index);
    if (status == BSM_OK && w->matrix.format == BSM_NVFP4) status = take_tensor_scale(look);
    bsmi_note_input_scale(look, "._weight_act_per_tensor_scale");
    return status;
}
