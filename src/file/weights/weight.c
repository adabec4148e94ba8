/* Weights among tensors: which tensor holds a matrix's codes, which others belong to it, and the description that
 * follows. */
#include "weight_look.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>

static const char *const names[BSM_CONVENTION_COUNT] = {
    "none", "plain", "gpt_oss", "modelopt", "compressed_tensors", "deepseek", "gguf", "torchao"
};

const char *bsm_convention_name(int convention)
{
    return convention >= 0 && convention < BSM_CONVENTION_COUNT ? names[convention] : NULL;
}

int bsm_convention_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < BSM_CONVENTION_COUNT; i++)
        if (strcasecmp(name, names[i]) == 0) return i;
    return -1;
}

/* Conventions ------------------------------------------------------------------------------------------------------ */

/* gpt-oss: codes [..., rows, blocks, 16], scales [..., rows, blocks]. */
static bsm_status try_gpt_oss(struct bsmi_look *look, const char *codes_ending, const char *scales_ending)
{
    bsm_weight *w = look->weight;
    bsm_tensor *t = &look->codes, scales;
    int64_t index;
    if (t->type != BSM_TENSOR_U8 || !bsmi_takes_ending(look, codes_ending)
        || !bsmi_find_part(look, scales_ending, &scales, &index))
        return BSM_OK;
    w->convention = BSM_CONVENTION_GPT_OSS;
    if (!bsmi_is_e8m0(scales.type)) return bsmi_scale_of_another_kind(look, &scales);
    if (t->rank < 3 || t->shape[t->rank - 1] != 16)
        return bsmi_fail(BSM_EFILE, "tensor %.200s (%s): blocks of 16 bytes are wanted in the last dimension", t->name,
                         bsmi_shape_text(t).text);
    w->matrix.format = BSM_MXFP4;
    t->rank--; /* the blocks of a row lie one behind the other */
    const bsm_status status = bsmi_read_shape(look, 32);
    w->gate_up_interleaved = bsmi_name_ends(w->name, (size_t)w->name_length, "gate_up_proj") ||
                             bsmi_name_ends(w->name, (size_t)w->name_length, "mlp1_weight");
    return status == BSM_OK ? bsmi_attach_block_scales(look, &scales, index, t->rank - 1) : status;
}

/* MXFP6A16: rows of 24 bytes for each scale of 32 numbers, four in three bytes; MXFP4 has 16. */
static bool is_packed_e2m3(const struct bsmi_look *look, const bsm_tensor *scales)
{
    const bsm_tensor *t = &look->codes;
    return t->type == BSM_TENSOR_U8 && bsmi_is_e8m0(scales->type) && t->rank == 2 && scales->rank == 2
           && t->shape[0] == scales->shape[0] && t->shape[1] % 24 == 0 && t->shape[1] > 0
           && t->shape[1] / 24 == scales->shape[1];
}

static bsm_status try_compressed_tensors(struct bsmi_look *look)
{
    bsm_weight *w = look->weight;
    bsm_tensor scales;
    int64_t index;
    bool scaled;
    const bool codes = look->codes.type == BSM_TENSOR_U8 || look->codes.type == BSM_TENSOR_F4; /* I32: int4, not ours */
    if (!codes || look->codes.rank < 2 || !bsmi_takes_ending(look, ".weight_packed")) return BSM_OK;
    w->convention = BSM_CONVENTION_COMPRESSED_TENSORS;
    if (!bsmi_find_part(look, ".weight_scale", &scales, &index))
        return bsmi_fail(BSM_EFILE, "tensor %.200s has no scales: %.*s.weight_scale is wanted", look->codes.name,
                         (int)w->name_length, w->name);
    if (is_packed_e2m3(look, &scales)) {
        w->matrix.format = BSM_MXFP6_E2M3;
        look->codes.shape[1] /= 3; /* runs of three bytes */
        const bsm_status status = bsmi_read_shape(look, 4);
        return status == BSM_OK ? bsmi_attach_block_scales(look, &scales, index, 1) : status;
    }
    bsm_status status = bsmi_take_block_scales(look, &scales, index, &scaled);
    if (status == BSM_OK && !scaled) status = bsmi_scale_of_another_kind(look, &scales);
    if (status == BSM_OK)
        status = bsmi_attach_optional_tensor_scale(look, ".weight_global_scale", BSM_TENSOR_SCALE_DIVIDES);
    bsmi_note_input_scale(look, ".input_global_scale");
    return status;
}

static bsm_status take_modelopt(struct bsmi_look *look, const bsm_tensor *scales, int64_t index)
{
    bool scaled;
    look->weight->convention = BSM_CONVENTION_MODELOPT;
    bsmi_note_input_scale(look, ".input_scale");
    bsm_status status = bsmi_take_block_scales(look, scales, index, &scaled);
    if (status == BSM_OK && !scaled) return bsmi_take_wide_scales(look, scales, index);
    if (status == BSM_OK)
        status = bsmi_attach_optional_tensor_scale(look, ".weight_scale_2", BSM_TENSOR_SCALE_MULTIPLIES);
    return status;
}

/* One fp32 scale for each 128 x 128, of each matrix. */
static bsm_status take_deepseek(struct bsmi_look *look, const bsm_tensor *scales, int64_t index)
{
    look->weight->convention = BSM_CONVENTION_DEEPSEEK;
    const bsm_status status = bsmi_read_fp8_codes(look, scales);
    if (status != BSM_OK) return status;
    if (scales->rank != look->codes.rank || !bsmi_are_scales_of_tiles(look, scales))
        return bsmi_misfit(look, scales, "a scale for each 128 x 128 numbers is wanted");
    return bsmi_attach_tiles(look, scales, index, BSMI_FP8_TILE, BSMI_FP8_TILE);
}

static bsm_status try_weight(struct bsmi_look *look)
{
    bsm_tensor scales;
    int64_t index, per;
    if (look->codes.rank < 2 || bsmi_element_of(look->codes.type, &per) < 0 || !bsmi_takes_ending(look, ".weight"))
        return BSM_OK;
    if (bsmi_find_part(look, ".weight_scale_inv", &scales, &index)) return take_deepseek(look, &scales, index);
    if (bsmi_find_part(look, ".weight_scale", &scales, &index)) return take_modelopt(look, &scales, index);
    return BSM_OK;
}

static bsm_status try_gguf(struct bsmi_look *look)
{
    bsm_weight *w = look->weight;
    bsm_tensor *t = &look->codes, scale;
    int64_t index;
    if (t->type != BSM_TENSOR_MXFP4 && t->type != BSM_TENSOR_NVFP4) return BSM_OK;
    const bool nvfp4 = t->type == BSM_TENSOR_NVFP4;
    w->convention = BSM_CONVENTION_GGUF;
    w->matrix.format = nvfp4 ? BSM_NVFP4 : BSM_MXFP4;
    w->matrix.packing = BSM_PACKING_GGUF;
    w->matrix.scale_layout.kind = nvfp4 ? BSM_LAYOUT_GGUF_NVFP4 : BSM_LAYOUT_GGUF_MXFP4;
    if (t->rank == 1) t->shape[1] = t->shape[0], t->shape[0] = 1, t->rank = 2;
    const bsm_status status = bsmi_read_shape(look, 1);
    w->matrix.scales = (void *)(uintptr_t)t->data;
    bsmi_takes_ending(look, ".weight");
    if (status != BSM_OK || !nvfp4) return status;
    bsmi_note_input_scale(look, ".input_scale");
    if (!bsmi_find_part(look, ".scale", &scale, &index)) return BSM_OK;
    if (bsmi_count_of(&scale) == 1) return bsmi_attach_tensor_scale(look, &scale, index, BSM_TENSOR_SCALE_MULTIPLIES);
    if (bsmi_count_of(&scale) != w->matrix.batch)
        return bsmi_misfit(look, &scale, "one scale is wanted, or one for each matrix");
    return bsmi_attach_tiles(look, &scale, index, w->matrix.rows, w->matrix.columns);
}

static bsm_status try_plain(struct bsmi_look *look)
{
    static const struct {
        bsm_tensor_type type;
        bsm_format format;
    } formats[] = {
        { BSM_TENSOR_F32, BSM_FORMAT_FP32 },     { BSM_TENSOR_F16, BSM_FORMAT_FP16 },
          { BSM_TENSOR_BF16, BSM_FORMAT_BF16 },
        { BSM_TENSOR_F8_E4M3, BSM_FORMAT_E4M3 }, { BSM_TENSOR_F8_E5M2, BSM_FORMAT_E5M2 },
    };
    for (size_t i = 0; look->codes.rank >= 2 && i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].type == look->codes.type) {
            look->weight->convention = BSM_CONVENTION_PLAIN;
            look->weight->matrix.format = formats[i].format;
            bsmi_takes_ending(look, ".weight");
            return bsmi_read_shape(look, 1);
        }
    return BSM_OK;
}

/* Is this tensor a scale of another one? */
static bool is_scale(const struct bsmi_look *look)
{
    static const char *const endings[] = { "_scale",     "_scales",  ".scale",       ".scales",
                                           "_scale_inv", "_scale_2", "_global_scale" };
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (bsmi_name_ends(look->codes.name, strlen(look->codes.name), endings[i])) return true;
    return false;
}

/* The first convention that knows the tensor. */
static bsm_status recognize(struct bsmi_look *look)
{
    bsm_weight *w = look->weight;
    bsm_status status = is_scale(look) ? BSM_OK : try_gguf(look);
    if (is_scale(look)) return status;
    if (status == BSM_OK && w->convention == BSM_CONVENTION_NONE) status = try_gpt_oss(look, "_blocks", "_scales");
    if (status == BSM_OK && w->convention == BSM_CONVENTION_NONE) status = try_gpt_oss(look, ".blocks", ".scales");
    if (status == BSM_OK && w->convention == BSM_CONVENTION_NONE) status = try_compressed_tensors(look);
    if (status == BSM_OK && w->convention == BSM_CONVENTION_NONE) status = bsmi_try_torchao(look);
    if (status == BSM_OK && w->convention == BSM_CONVENTION_NONE) status = try_weight(look);
    if (status == BSM_OK && w->convention == BSM_CONVENTION_NONE) status = try_plain(look);
    return status;
}

/* The caller's struct ---------------------------------------------------------------------------------------------- */

static bsm_status check_struct(const bsm_weight *weight)
{
    if (weight == NULL) return bsmi_fail(BSM_EINVAL, "weight is NULL");
    if (weight->struct_size < sizeof *weight || weight->struct_size > 65536)
        return bsmi_fail(BSM_EINVAL, "weight->struct_size is %zu: set it to sizeof(bsm_weight), %zu",
                         weight->struct_size, sizeof *weight);
    return BSM_OK;
}

bsm_status bsm_checkpoint_weight(const bsm_checkpoint *checkpoint, int64_t index, bsm_weight *weight)
{
    bsm_status status = check_struct(weight);
    if (status != BSM_OK) return status;
    const size_t size = weight->struct_size;
    struct bsmi_look look = { .checkpoint = checkpoint, .codes = { .struct_size = sizeof(bsm_tensor) },
                              .weight = weight };
    memset(weight, 0, size);
    weight->struct_size = size;
    weight->scales = weight->tensor_scale = weight->input_scale = -1;
    status = bsm_checkpoint_tensor(checkpoint, index, &look.codes);
    if (status != BSM_OK) return status;
    weight->codes = index;
    weight->name = look.codes.name;
    weight->name_length = (int64_t)strlen(weight->name);
    weight->matrix.struct_size = sizeof weight->matrix;
    weight->matrix.data = (void *)(uintptr_t)look.codes.data;
    status = recognize(&look);
    if (status != BSM_OK) return status;
    if (weight->convention == BSM_CONVENTION_NONE) {
        weight->name_length = (int64_t)strlen(weight->name);
        return BSM_OK;
    }
    status = bsm_matrix_check(&weight->matrix);
    return status == BSM_OK ? BSM_OK : bsmi_fail(status, "tensor %.200s: %s", look.codes.name, bsm_last_error());
}

bsm_status bsm_checkpoint_find_weight(const bsm_checkpoint *checkpoint, const char *name, bsm_weight *weight)
{
    static const char *const endings[] = { "", ".weight_packed", ".weight", "_blocks", ".blocks", "._weight_qdata" };
    char full[4096];
    const bsm_status status = check_struct(weight);
    if (status != BSM_OK) return status;
    if (checkpoint == NULL || name == NULL)
        return bsmi_fail(BSM_EINVAL, "%s is NULL", checkpoint == NULL ? "checkpoint" : "name");
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (snprintf(full, sizeof full, "%s%s", name, endings[i]) >= (int)sizeof full) continue;
        const int64_t index = bsm_checkpoint_find(checkpoint, full);
        if (index >= 0) return bsm_checkpoint_weight(checkpoint, index, weight);
    }
    return bsmi_fail(BSM_EINVAL, "the checkpoint has no weight called %.200s", name);
}
