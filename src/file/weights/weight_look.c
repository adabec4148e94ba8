/* What is shared by the conventions, see weight_look.h. */
#include "weight_look.h"
#include "file/read/wide_scales.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Names ------------------------------------------------------------------------------------------------------------ */

bool bsmi_name_ends(const char *name, size_t length, const char *ending)
{
    const size_t end = strlen(ending);
    return length > end && memcmp(name + length - end, ending, end) == 0;
}

bool bsmi_takes_ending(struct bsmi_look *look, const char *ending)
{
    const char *name = look->codes.name;
    if (!bsmi_name_ends(name, strlen(name), ending)) return false;
    look->weight->name_length = (int64_t)(strlen(name) - strlen(ending));
    return true;
}

/* The tensor that is called as the weight, with an ending; false if there is none. */
bool bsmi_find_part(const struct bsmi_look *look, const char *ending, bsm_tensor *part, int64_t *index)
{
    char name[4096];
    const int length =
        snprintf(name, sizeof name, "%.*s%s", (int)look->weight->name_length, look->weight->name, ending);
    *index = length < (int)sizeof name ? bsm_checkpoint_find(look->checkpoint, name) : -1;
    *part = (bsm_tensor){ .struct_size = sizeof *part };
    return *index >= 0 && bsm_checkpoint_tensor(look->checkpoint, *index, part) == BSM_OK;
}

/* Shapes ----------------------------------------------------------------------------------------------------------- */

struct bsmi_shape_text bsmi_shape_text(const bsm_tensor *t)
{
    struct bsmi_shape_text shape = { "a scalar" };
    size_t used = 0;
    for (int i = 0; i < t->rank; i++)
        used += (size_t)snprintf(shape.text + used, sizeof shape.text - used, "%s%" PRId64, i > 0 ? " x " : "",
                                 t->shape[i]);
    return shape;
}

bsm_status bsmi_misfit(const struct bsmi_look *look, const bsm_tensor *part, const char *wanted)
{
    return bsmi_fail(BSM_EFILE, "tensor %.200s (%s) does not fit tensor %.200s (%s): %s", part->name,
                     bsmi_shape_text(part).text, look->codes.name, bsmi_shape_text(&look->codes).text, wanted);
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
bsm_status bsmi_read_shape(struct bsmi_look *look, int64_t per)
{
    const bsm_tensor *t = &look->codes;
    bsm_matrix *m = &look->weight->matrix;
    m->rows = t->shape[t->rank - 2];
    if (!product_of(t->shape, t->rank - 2, &m->batch) || bsmi_mul_overflows(t->shape[t->rank - 1], per, &m->columns))
        return bsmi_fail(BSM_EFILE, "tensor %.200s (%s): the shape is too large", t->name, bsmi_shape_text(t).text);
    if (m->batch == 0) m->rows = 0, m->batch = 1; /* no matrices: an empty one */
    return BSM_OK;
}

/* Scales ----------------------------------------------------------------------------------------------------------- */

/* Linear scales [..., rows, ceil(columns / block)] beside codes of the same leading dimensions. */
static bsm_status check_block_scales(const struct bsmi_look *look, const bsm_tensor *scales, int leading)
{
    const bsm_matrix *m = &look->weight->matrix;
    bool fits = scales->rank == leading + 1 && scales->shape[leading] == bsm_matrix_scale_columns(m);
    for (int i = 0; fits && i < leading; i++) fits = scales->shape[i] == look->codes.shape[i];
    if (fits) return BSM_OK;
    char wanted[96];
    snprintf(wanted, sizeof wanted, "a scale for each %d numbers of a row is wanted, %" PRId64 " in a row",
             bsm_format_get((int)m->format)->block, bsm_matrix_scale_columns(m));
    return bsmi_misfit(look, scales, wanted);
}

bsm_status bsmi_attach_block_scales(struct bsmi_look *look, const bsm_tensor *scales, int64_t index, int leading)
{
    look->weight->scales = index;
    look->weight->matrix.scales = (void *)(uintptr_t)scales->data;
    return check_block_scales(look, scales, leading);
}

int64_t bsmi_count_of(const bsm_tensor *t)
{
    int64_t count;
    return product_of(t->shape, t->rank, &count) ? count : -1;
}

/* fp32 scales: those of the file, or 16-bit ones that were made wider when it was opened. */
static bsm_status floats_of(const struct bsmi_look *look, const bsm_tensor *t, int64_t index, const float **floats)
{
    *floats = bsmi_checkpoint_wide(look->checkpoint, index);
    if (*floats != NULL) return BSM_OK;
    *floats = t->data;
    if (t->type != BSM_TENSOR_F32)
        return bsmi_fail(BSM_EUNSUPPORTED, "tensor %.200s, a scale of %.200s: fp32 is wanted, not %s", t->name,
                         look->codes.name, bsm_tensor_type_name((int)t->type));
    if ((uintptr_t)t->data % sizeof(float) != 0)
        return bsmi_fail(BSM_EALIGN,
                         "tensor %.200s: its fp32 numbers lie unaligned in the file; write it again, wider numbers "
                         "first", t->name);
    return BSM_OK;
}

/* One fp32 number for the whole weight. */
bsm_status bsmi_attach_tensor_scale(struct bsmi_look *look, const bsm_tensor *t, int64_t index,
                                    bsm_tensor_scale_use use)
{
    const float *floats;
    const bsm_status status = floats_of(look, t, index, &floats);
    if (status != BSM_OK) return status;
    if (bsmi_count_of(t) != 1) return bsmi_misfit(look, t, "one number is wanted");
    const float value = *floats;
    if (!(isfinite(value) && value > 0))
        return bsmi_fail(BSM_EFILE, "tensor %.200s is %g: a tensor scale is finite and > 0", t->name, (double)value);
    look->weight->tensor_scale = index;
    look->weight->matrix.tensor_scale = (float *)(uintptr_t)floats;
    look->weight->matrix.tensor_scale_use = use;
    return BSM_OK;
}

bsm_status bsmi_attach_optional_tensor_scale(struct bsmi_look *look, const char *ending, bsm_tensor_scale_use use)
{
    bsm_tensor t;
    int64_t index;
    return bsmi_find_part(look, ending, &t, &index) ? bsmi_attach_tensor_scale(look, &t, index, use) : BSM_OK;
}

void bsmi_note_input_scale(struct bsmi_look *look, const char *ending)
{
    bsm_tensor t;
    if (!bsmi_find_part(look, ending, &t, &look->weight->input_scale)) look->weight->input_scale = -1;
}

/* fp32 scales of tiles, row by row for each matrix; the shape was checked. */
bsm_status bsmi_attach_tiles(struct bsmi_look *look, const bsm_tensor *t, int64_t index, int64_t tile_rows,
                             int64_t tile_columns)
{
    bsm_weight *w = look->weight;
    const float *floats;
    const bsm_status status = floats_of(look, t, index, &floats);
    if (status != BSM_OK) return status;
    w->tensor_scale = index;
    w->tile_rows = BSMI_MAX(tile_rows, 1);
    w->tile_columns = BSMI_MAX(tile_columns, 1);
    w->tile_scales = floats;
    w->tile_row_pitch = bsmi_ceil_div(w->matrix.columns, w->tile_columns);
    w->tile_batch_pitch = bsmi_ceil_div(w->matrix.rows, w->tile_rows) * w->tile_row_pitch;
    return BSM_OK;
}

/* Kinds ------------------------------------------------------------------------------------------------------------ */

bool bsmi_is_e8m0(bsm_tensor_type type) { return type == BSM_TENSOR_U8 || type == BSM_TENSOR_F8_E8M0; }

/* What codes are: most files keep two e2m1 codes in a U8.  -1: no element here. */
int bsmi_element_of(bsm_tensor_type type, int64_t *per)
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

bsm_status bsmi_scale_of_another_kind(const struct bsmi_look *look, const bsm_tensor *scales)
{
    return bsmi_fail(BSM_EUNSUPPORTED,
                     "tensor %.200s of type %s with scales %.200s of type %s: no format here has both",
                     look->codes.name, bsm_tensor_type_name((int)look->codes.type), scales->name,
                     bsm_tensor_type_name((int)scales->type));
}

/* Codes with block scales of one byte beside them; *scaled is false where the scales are of another kind. */
bsm_status bsmi_take_block_scales(struct bsmi_look *look, const bsm_tensor *scales, int64_t index, bool *scaled)
{
    int64_t per;
    const int element = bsmi_element_of(look->codes.type, &per);
    const bool e4m3 = scales->type == BSM_TENSOR_F8_E4M3;
    *scaled = element >= 0 && (e4m3 || bsmi_is_e8m0(scales->type));
    if (!*scaled) return BSM_OK;
    look->weight->matrix.format =
        e4m3 && element != BSM_E2M1 ? BSM_FORMAT_NONE : format_of(element, e4m3 ? BSM_UE4M3 : BSM_E8M0);
    if (look->weight->matrix.format == BSM_FORMAT_NONE) return bsmi_scale_of_another_kind(look, scales);
    const bsm_status status = bsmi_read_shape(look, per);
    return status == BSM_OK ? bsmi_attach_block_scales(look, scales, index, look->codes.rank - 1) : status;
}

bool bsmi_are_scales_of_tiles(const struct bsmi_look *look, const bsm_tensor *scales)
{
    const bsm_tensor *t = &look->codes;
    const int64_t down = bsmi_ceil_div(t->shape[t->rank - 2], BSMI_FP8_TILE);
    const int64_t across = bsmi_ceil_div(t->shape[t->rank - 1], BSMI_FP8_TILE);
    const int64_t *s = scales->shape;
    if (t->rank == 2 && scales->rank == 4) return s[0] == down && s[1] == 1 && s[2] == across && s[3] == 1;
    bool fits = scales->rank == t->rank && s[t->rank - 2] == down && s[t->rank - 1] == across;
    for (int i = 0; fits && i < t->rank - 2; i++) fits = s[i] == t->shape[i];
    return fits;
}

bsm_status bsmi_read_fp8_codes(struct bsmi_look *look, const bsm_tensor *scales)
{
    int64_t per;
    const int element = bsmi_element_of(look->codes.type, &per);
    if (element != BSM_E4M3 && element != BSM_E5M2) return bsmi_scale_of_another_kind(look, scales);
    look->weight->matrix.format = element == BSM_E4M3 ? BSM_FORMAT_E4M3 : BSM_FORMAT_E5M2;
    return bsmi_read_shape(look, 1);
}

bsm_status bsmi_take_wide_scales(struct bsmi_look *look, const bsm_tensor *scales, int64_t index)
{
    const bsm_matrix *m = &look->weight->matrix;
    int64_t rows;
    const bsm_status status = bsmi_read_fp8_codes(look, scales);
    if (status != BSM_OK) return status;
    if (bsmi_count_of(scales) == 1) return bsmi_attach_tensor_scale(look, scales, index, BSM_TENSOR_SCALE_MULTIPLIES);
    if (bsmi_are_scales_of_tiles(look, scales))
        return bsmi_attach_tiles(look, scales, index, BSMI_FP8_TILE, BSMI_FP8_TILE);
    if (bsmi_mul_overflows(m->batch, m->rows, &rows) || bsmi_count_of(scales) != rows)
        return bsmi_misfit(look, scales, "one scale is wanted, one for each row, or one for each 128 x 128 numbers");
    return bsmi_attach_tiles(look, scales, index, 1, m->columns);
}
