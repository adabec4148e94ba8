/* Weights among tensors: which tensor holds a matrix's codes, which others belong to it, and the description that follows. */
#include "core/core.h"

#include "blockscale/weight.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>

static const char *const names[BSM_CONVENTION_COUNT] = { "none",     "plain", "gpt_oss", "modelopt", "compressed_tensors",
                                                         "deepseek", "gguf" };

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

/* What is being looked at: the tensor of the codes and, once found, the weight. */
struct look {
    const bsm_checkpoint *checkpoint;
    bsm_tensor codes;
    bsm_weight *weight;
};

/* Names ----------------------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *name, size_t length, const char *ending)
{
    const size_t end = strlen(ending);
    return length > end && memcmp(name + length - end, ending, end) == 0;
}

static bool takes_ending(struct look *look, const char *ending)
{
    const char *name = look->codes.name;
    if (!ends_with(name, strlen(name), ending)) return false;
    look->weight->name_length = (int64_t)(strlen(name) - strlen(ending));
    return true;
}

/* The tensor that is called as the weight, with an ending; false if there is none. */
static bool find_part(const struct look *look, const char *ending, bsm_tensor *part, int64_t *index)
{
    char name[4096];
    const int length = snprintf(name, sizeof name, "%.*s%s", (int)look->weight->name_length, look->weight->name, ending);
    *index = length < (int)sizeof name ? bsm_checkpoint_find(look->checkpoint, name) : -1;
    *part = (bsm_tensor){ .struct_size = sizeof *part };
    return *index >= 0 && bsm_checkpoint_tensor(look->checkpoint, *index, part) == BSM_OK;
}

/* Shapes ---------------------------------------------------------------------------------------------------------------- */

/* "2 x 3", for sentences. */
struct shape_text {
    char text[192];
};
static struct shape_text shape_of(const bsm_tensor *t)
{
    struct shape_text shape = { "a scalar" };
    size_t used = 0;
    for (int i = 0; i < t->rank; i++)
        used += (size_t)snprintf(shape.text + used, sizeof shape.text - used, "%s%" PRId64, i > 0 ? " x " : "", t->shape[i]);
    return shape;
}

static bsm_status misfit(const struct look *look, const bsm_tensor *part, const char *wanted)
{
    return bsmi_fail(BSM_EFILE, "tensor %.200s (%s) does not fit tensor %.200s (%s): %s", part->name, shape_of(part).text,
                     look->codes.name, shape_of(&look->codes).text, wanted);
}

/* Sizes of a tensor whose numbers exist multiply without overflow; those of an empty one may not. */
static bool product_of(const int64_t *shape, int count, int64_t *product)
{
    *product = 1;
    for (int i = 0; i < count; i++)
        if (bsmi_mul_overflows(*product, shape[i], product)) return false;
    return true;
}

/* Rows, columns and batch from the codes' shape; `per` numbers lie in one of the last dimension. */
static bsm_status read_shape(struct look *look, int64_t per)
{
    const bsm_tensor *t = &look->codes;
    bsm_matrix *m = &look->weight->matrix;
    m->rows = t->shape[t->rank - 2];
    if (!product_of(t->shape, t->rank - 2, &m->batch) || bsmi_mul_overflows(t->shape[t->rank - 1], per, &m->columns))
        return bsmi_fail(BSM_EFILE, "tensor %.200s (%s): the shape is too large", t->name, shape_of(t).text);
    if (m->batch == 0) m->rows = 0, m->batch = 1; /* no matrices: an empty one */
    return BSM_OK;
}

/* Scales ---------------------------------------------------------------------------------------------------------------- */

/* Linear scales [..., rows, ceil(columns / block)] beside codes of the same leading dimensions. */
static bsm_status check_block_scales(const struct look *look, const bsm_tensor *scales, int leading)
{
    const bsm_matrix *m = &look->weight->matrix;
    bool fits = scales->rank == leading + 1 && scales->shape[leading] == bsm_matrix_scale_columns(m);
    for (int i = 0; fits && i < leading; i++) fits = scales->shape[i] == look->codes.shape[i];
    if (fits) return BSM_OK;
    char wanted[96];
    snprintf(wanted, sizeof wanted, "a scale for each %d numbers of a row is wanted, %" PRId64 " in a row",
             bsm_format_get((int)m->format)->block, bsm_matrix_scale_columns(m));
    return misfit(look, scales, wanted);
}

static bsm_status attach_block_scales(struct look *look, const bsm_tensor *scales, int64_t index, int leading)
{
    look->weight->scales = index;
    look->weight->matrix.scales = (void *)(uintptr_t)scales->data;
    return check_block_scales(look, scales, leading);
}

static int64_t count_of(const bsm_tensor *t)
{
    int64_t count;
    return product_of(t->shape, t->rank, &count) ? count : -1;
}

static bsm_status check_floats(const struct look *look, const bsm_tensor *t)
{
    if (t->type != BSM_TENSOR_F32)
        return bsmi_fail(BSM_EUNSUPPORTED, "tensor %.200s, a scale of %.200s: fp32 is wanted, not %s", t->name, look->codes.name,
                         bsm_tensor_type_name((int)t->type));
    if ((uintptr_t)t->data % sizeof(float) != 0)
        return bsmi_fail(BSM_EALIGN,
                         "tensor %.200s: its fp32 numbers lie unaligned in the file; write it again, wider numbers first", t->name);
    return BSM_OK;
}

/* One fp32 number for the whole weight. */
static bsm_status attach_tensor_scale(struct look *look, const bsm_tensor *t, int64_t index, bsm_tensor_scale_use use)
{
    const bsm_status status = check_floats(look, t);
    if (status != BSM_OK) return status;
    if (count_of(t) != 1) return misfit(look, t, "one number is wanted");
    const float value = *(const float *)t->data;
    if (!(isfinite(value) && value > 0))
        return bsmi_fail(BSM_EFILE, "tensor %.200s is %g: a tensor scale is finite and > 0", t->name, (double)value);
    look->weight->tensor_scale = index;
    look->weight->matrix.tensor_scale = (float *)(uintptr_t)t->data;
    look->weight->matrix.tensor_scale_use = use;
    return BSM_OK;
}

static bsm_status attach_optional_tensor_scale(struct look *look, const char *ending, bsm_tensor_scale_use use)
{
    bsm_tensor t;
    int64_t index;
    return find_part(look, ending, &t, &index) ? attach_tensor_scale(look, &t, index, use) : BSM_OK;
}

static void note_input_scale(struct look *look, const char *ending)
{
    bsm_tensor t;
    if (!find_part(look, ending, &t, &look->weight->input_scale)) look->weight->input_scale = -1;
}

/* fp32 scales of tiles, row by row for each matrix; the shape was checked. */
static bsm_status attach_tiles(struct look *look, const bsm_tensor *t, int64_t index, int64_t tile_rows, int64_t tile_columns)
{
    bsm_weight *w = look->weight;
    const bsm_status status = check_floats(look, t);
    if (status != BSM_OK) return status;
    w->tensor_scale = index;
    w->tile_rows = BSMI_MAX(tile_rows, 1);
    w->tile_columns = BSMI_MAX(tile_columns, 1);
    w->tile_scales = t->data;
    w->tile_row_pitch = bsmi_ceil_div(w->matrix.columns, w->tile_columns);
    w->tile_batch_pitch = bsmi_ceil_div(w->matrix.rows, w->tile_rows) * w->tile_row_pitch;
    return BSM_OK;
}

/* Conventions ------------------------------------------------------------------------------------------------------------ */

static bool is_e8m0(bsm_tensor_type type) { return type == BSM_TENSOR_U8 || type == BSM_TENSOR_F8_E8M0; }

/* What codes are: most files keep two e2m1 codes in a U8.  -1: no element here. */
static int element_of(bsm_tensor_type type, int64_t *per)
{
    *per = type == BSM_TENSOR_U8 ? 2 : 1;
    switch (type) {
    case BSM_TENSOR_U8:
    case BSM_TENSOR_F4: return BSM_E2M1;
    case BSM_TENSOR_F6_E2M3: return BSM_E2M3;
    case BSM_TENSOR_F6_E3M2: return BSM_E3M2;
    case BSM_TENSOR_F8_E4M3: return BSM_E4M3;
    case BSM_TENSOR_F8_E5M2: return BSM_E5M2;
    default: return -1;
    }
}

/* The format with this element and scale, e8m0 in blocks of 32; NONE if there is none. */
static bsm_format format_of(int element, bsm_scale scale)
{
    for (int i = 1; i < BSM_FORMAT_COUNT; i++) {
        const bsm_format_info *info = bsm_format_get(i);
        if ((int)info->element == element && info->scale == scale && !(scale == BSM_E8M0 && info->block == 16))
            return (bsm_format)i;
    }
    return BSM_FORMAT_NONE;
}

static bsm_status scale_of_another_kind(const struct look *look, const bsm_tensor *scales)
{
    return bsmi_fail(BSM_EUNSUPPORTED, "tensor %.200s of type %s with scales %.200s of type %s: no format here has both",
                     look->codes.name, bsm_tensor_type_name((int)look->codes.type), scales->name,
                     bsm_tensor_type_name((int)scales->type));
}

/* Codes with block scales of one byte beside them; *scaled is false where the scales are of another kind. */
static bsm_status take_block_scales(struct look *look, const bsm_tensor *scales, int64_t index, bool *scaled)
{
    int64_t per;
    const int element = element_of(look->codes.type, &per);
    const bool e4m3 = scales->type == BSM_TENSOR_F8_E4M3;
    *scaled = element >= 0 && (e4m3 || is_e8m0(scales->type));
    if (!*scaled) return BSM_OK;
    look->weight->matrix.format = e4m3 && element != BSM_E2M1 ? BSM_FORMAT_NONE : format_of(element, e4m3 ? BSM_UE4M3 : BSM_E8M0);
    if (look->weight->matrix.format == BSM_FORMAT_NONE) return scale_of_another_kind(look, scales);
    const bsm_status status = read_shape(look, per);
    return status == BSM_OK ? attach_block_scales(look, scales, index, look->codes.rank - 1) : status;
}

/* gpt-oss: codes [..., rows, blocks, 16], scales [..., rows, blocks]. */
static bsm_status try_gpt_oss(struct look *look, const char *codes_ending, const char *scales_ending)
{
    bsm_weight *w = look->weight;
    bsm_tensor *t = &look->codes, scales;
    int64_t index;
    if (t->type != BSM_TENSOR_U8 || !takes_ending(look, codes_ending) || !find_part(look, scales_ending, &scales, &index))
        return BSM_OK;
    w->convention = BSM_CONVENTION_GPT_OSS;
    if (!is_e8m0(scales.type)) return scale_of_another_kind(look, &scales);
    if (t->rank < 3 || t->shape[t->rank - 1] != 16)
        return bsmi_fail(BSM_EFILE, "tensor %.200s (%s): blocks of 16 bytes are wanted in the last dimension", t->name,
                         shape_of(t).text);
    w->matrix.format = BSM_MXFP4;
    t->rank--; /* the blocks of a row lie one behind the other */
    const bsm_status status = read_shape(look, 32);
    w->gate_up_interleaved =
        ends_with(w->name, (size_t)w->name_length, "gate_up_proj") || ends_with(w->name, (size_t)w->name_length, "mlp1_weight");
    return status == BSM_OK ? attach_block_scales(look, &scales, index, t->rank - 1) : status;
}

static bsm_status try_compressed_tensors(struct look *look)
{
    bsm_weight *w = look->weight;
    bsm_tensor scales;
    int64_t index;
    bool scaled;
    const bool codes = look->codes.type == BSM_TENSOR_U8 || look->codes.type == BSM_TENSOR_F4; /* I32: int4, not ours */
    if (!codes || look->codes.rank < 2 || !takes_ending(look, ".weight_packed")) return BSM_OK;
    w->convention = BSM_CONVENTION_COMPRESSED_TENSORS;
    if (!find_part(look, ".weight_scale", &scales, &index))
        return bsmi_fail(BSM_EFILE, "tensor %.200s has no scales: %.*s.weight_scale is wanted", look->codes.name,
                         (int)w->name_length, w->name);
    bsm_status status = take_block_scales(look, &scales, index, &scaled);
    if (status == BSM_OK && !scaled) status = scale_of_another_kind(look, &scales);
    if (status == BSM_OK) status = attach_optional_tensor_scale(look, ".weight_global_scale", BSM_TENSOR_SCALE_DIVIDES);
    note_input_scale(look, ".input_global_scale");
    return status;
}

/* e4m3 or e5m2 with one fp32 scale, or one for each row. */
static bsm_status take_wide_scales(struct look *look, const bsm_tensor *scales, int64_t index)
{
    int64_t per;
    const int element = element_of(look->codes.type, &per);
    bsm_matrix *m = &look->weight->matrix;
    if (element != BSM_E4M3 && element != BSM_E5M2) return scale_of_another_kind(look, scales);
    m->format = element == BSM_E4M3 ? BSM_FORMAT_E4M3 : BSM_FORMAT_E5M2;
    const bsm_status status = read_shape(look, 1);
    if (status != BSM_OK) return status;
    if (count_of(scales) == 1) return attach_tensor_scale(look, scales, index, BSM_TENSOR_SCALE_MULTIPLIES);
    int64_t rows;
    if (bsmi_mul_overflows(m->batch, m->rows, &rows) || count_of(scales) != rows)
        return misfit(look, scales, "one scale is wanted, or one for each row");
    return attach_tiles(look, scales, index, 1, m->columns);
}

static bsm_status take_modelopt(struct look *look, const bsm_tensor *scales, int64_t index)
{
    bool scaled;
    look->weight->convention = BSM_CONVENTION_MODELOPT;
    note_input_scale(look, ".input_scale");
    bsm_status status = take_block_scales(look, scales, index, &scaled);
    if (status == BSM_OK && !scaled) return take_wide_scales(look, scales, index);
    if (status == BSM_OK) status = attach_optional_tensor_scale(look, ".weight_scale_2", BSM_TENSOR_SCALE_MULTIPLIES);
    return status;
}

/* One fp32 scale for each 128 x 128, of each matrix. */
static bsm_status take_deepseek(struct look *look, const bsm_tensor *scales, int64_t index)
{
    enum { TILE = 128 };
    int64_t per;
    const bsm_tensor *t = &look->codes;
    const int element = element_of(t->type, &per);
    look->weight->convention = BSM_CONVENTION_DEEPSEEK;
    if (element != BSM_E4M3 && element != BSM_E5M2) return scale_of_another_kind(look, scales);
    look->weight->matrix.format = element == BSM_E4M3 ? BSM_FORMAT_E4M3 : BSM_FORMAT_E5M2;
    const bsm_status status = read_shape(look, 1);
    if (status != BSM_OK) return status;
    bool fits = scales->rank == t->rank;
    for (int i = 0; fits && i < t->rank; i++)
        fits = scales->shape[i] == (i < t->rank - 2 ? t->shape[i] : bsmi_ceil_div(t->shape[i], TILE));
    return fits ? attach_tiles(look, scales, index, TILE, TILE)
                : misfit(look, scales, "a scale for each 128 x 128 numbers is wanted");
}

static bsm_status try_weight(struct look *look)
{
    bsm_tensor scales;
    int64_t index, per;
    if (look->codes.rank < 2 || element_of(look->codes.type, &per) < 0 || !takes_ending(look, ".weight")) return BSM_OK;
    if (find_part(look, ".weight_scale_inv", &scales, &index)) return take_deepseek(look, &scales, index);
    if (find_part(look, ".weight_scale", &scales, &index)) return take_modelopt(look, &scales, index);
    return BSM_OK;
}

static bsm_status try_gguf(struct look *look)
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
    const bsm_status status = read_shape(look, 1);
    w->matrix.scales = (void *)(uintptr_t)t->data;
    takes_ending(look, ".weight");
    if (status != BSM_OK || !nvfp4) return status;
    note_input_scale(look, ".input_scale");
    if (!find_part(look, ".scale", &scale, &index)) return BSM_OK;
    if (count_of(&scale) == 1) return attach_tensor_scale(look, &scale, index, BSM_TENSOR_SCALE_MULTIPLIES);
    if (count_of(&scale) != w->matrix.batch) return misfit(look, &scale, "one scale is wanted, or one for each matrix");
    return attach_tiles(look, &scale, index, w->matrix.rows, w->matrix.columns);
}

static bsm_status try_plain(struct look *look)
{
    static const struct {
        bsm_tensor_type type;
        bsm_format format;
    } formats[] = {
        { BSM_TENSOR_F32, BSM_FORMAT_FP32 },     { BSM_TENSOR_F16, BSM_FORMAT_FP16 },     { BSM_TENSOR_BF16, BSM_FORMAT_BF16 },
        { BSM_TENSOR_F8_E4M3, BSM_FORMAT_E4M3 }, { BSM_TENSOR_F8_E5M2, BSM_FORMAT_E5M2 },
    };
    for (size_t i = 0; look->codes.rank >= 2 && i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].type == look->codes.type) {
            look->weight->convention = BSM_CONVENTION_PLAIN;
            look->weight->matrix.format = formats[i].format;
            takes_ending(look, ".weight");
            return read_shape(look, 1);
        }
    return BSM_OK;
}

/* Is this tensor a scale of another one? */
static bool is_scale(const struct look *look)
{
    static const char *const endings[] = { "_scale", "_scales", ".scale", ".scales", "_scale_inv", "_scale_2", "_global_scale" };
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (ends_with(look->codes.name, strlen(look->codes.name), endings[i])) return true;
    return false;
}

/* The first convention that knows the tensor. */
static bsm_status recognize(struct look *look)
{
    bsm_weight *w = look->weight;
    bsm_status status = is_scale(look) ? BSM_OK : try_gguf(look);
    if (is_scale(look)) return status;
    if (status == BSM_OK && w->convention == BSM_CONVENTION_NONE) status = try_gpt_oss(look, "_blocks", "_scales");
    if (status == BSM_OK && w->convention == BSM_CONVENTION_NONE) status = try_gpt_oss(look, ".blocks", ".scales");
    if (status == BSM_OK && w->convention == BSM_CONVENTION_NONE) status = try_compressed_tensors(look);
    if (status == BSM_OK && w->convention == BSM_CONVENTION_NONE) status = try_weight(look);
    if (status == BSM_OK && w->convention == BSM_CONVENTION_NONE) status = try_plain(look);
    return status;
}

/* The caller's struct --------------------------------------------------------------------------------------------------- */

static bsm_status check_struct(const bsm_weight *weight)
{
    if (weight == NULL) return bsmi_fail(BSM_EINVAL, "weight is NULL");
    if (weight->struct_size < sizeof *weight || weight->struct_size > 65536)
        return bsmi_fail(BSM_EINVAL, "weight->struct_size is %zu: set it to sizeof(bsm_weight), %zu", weight->struct_size,
                         sizeof *weight);
    return BSM_OK;
}

bsm_status bsm_checkpoint_weight(const bsm_checkpoint *checkpoint, int64_t index, bsm_weight *weight)
{
    bsm_status status = check_struct(weight);
    if (status != BSM_OK) return status;
    const size_t size = weight->struct_size;
    struct look look = { .checkpoint = checkpoint, .codes = { .struct_size = sizeof(bsm_tensor) }, .weight = weight };
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
    static const char *const endings[] = { "", ".weight_packed", ".weight", "_blocks", ".blocks" };
    char full[4096];
    const bsm_status status = check_struct(weight);
    if (status != BSM_OK) return status;
    if (checkpoint == NULL || name == NULL) return bsmi_fail(BSM_EINVAL, "%s is NULL", checkpoint == NULL ? "checkpoint" : "name");
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (snprintf(full, sizeof full, "%s%s", name, endings[i]) >= (int)sizeof full) continue;
        const int64_t index = bsm_checkpoint_find(checkpoint, full);
        if (index >= 0) return bsm_checkpoint_weight(checkpoint, index, weight);
    }
    return bsmi_fail(BSM_EINVAL, "the checkpoint has no weight called %.200s", name);
}
