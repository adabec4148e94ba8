/* What the conventions share: the tensors of a weight by their names, and the description that follows from their
 * shapes. */
#ifndef BSMI_WEIGHT_LOOK_H
#define BSMI_WEIGHT_LOOK_H

#include "blockscale/weight.h"
#include "core/core.h"

/* What is being looked at: the tensor of the codes and, once found, the weight. */
struct bsmi_look {
    const bsm_checkpoint *checkpoint;
    bsm_tensor codes;
    bsm_weight *weight;
};

/* Names ------------------------------------------------------------------------------------------------------------ */

bool bsmi_name_ends(const char *name, size_t length, const char *ending);
/* Whether the codes' name ends so; the weight's is what stands before. */
bool bsmi_takes_ending(struct bsmi_look *look, const char *ending);
/* The tensor that is called as the weight, with an ending; false if there is none. */
bool bsmi_find_part(const struct bsmi_look *look, const char *ending, bsm_tensor *part, int64_t *index);

/* Shapes ----------------------------------------------------------------------------------------------------------- */

/* "2 x 3", for sentences. */
struct bsmi_shape_text {
    char text[192];
};
struct bsmi_shape_text bsmi_shape_text(const bsm_tensor *t);
bsm_status bsmi_misfit(const struct bsmi_look *look, const bsm_tensor *part, const char *wanted);
/* Rows, columns and batch from the codes' shape; `per` numbers lie in one of the last dimension. */
bsm_status bsmi_read_shape(struct bsmi_look *look, int64_t per);
int64_t bsmi_count_of(const bsm_tensor *t); /* -1: more than 63 bits count */

/* Scales: each sets what it is about in the weight, or fails with a sentence that names both tensors --------------- */

bool bsmi_is_e8m0(bsm_tensor_type type);
/* What codes are: most files keep two e2m1 codes in a U8.  -1: no element here. */
int bsmi_element_of(bsm_tensor_type type, int64_t *per);
bsm_status bsmi_scale_of_another_kind(const struct bsmi_look *look, const bsm_tensor *scales);

/* Linear scales [..., rows, ceil(columns / block)] beside codes of the same `leading` dimensions. */
bsm_status bsmi_attach_block_scales(struct bsmi_look *look, const bsm_tensor *scales, int64_t index, int leading);
/* One fp32 number for the whole weight; of a part that need not be there. */
bsm_status bsmi_attach_tensor_scale(struct bsmi_look *look, const bsm_tensor *t, int64_t index,
                                    bsm_tensor_scale_use use);
bsm_status bsmi_attach_optional_tensor_scale(struct bsmi_look *look, const char *ending, bsm_tensor_scale_use use);
void bsmi_note_input_scale(struct bsmi_look *look, const char *ending);
/* fp32 scales of tiles, row by row for each matrix; the shape was checked. */
bsm_status bsmi_attach_tiles(struct bsmi_look *look, const bsm_tensor *t, int64_t index, int64_t tile_rows,
                             int64_t tile_columns);

/* Codes with block scales of one byte beside them; *scaled is false where the scales are of another kind. */
bsm_status bsmi_take_block_scales(struct bsmi_look *look, const bsm_tensor *scales, int64_t index, bool *scaled);

/* fp8 with fp32 scales: the tiles that share one have this many rows and columns. */
enum { BSMI_FP8_TILE = 128 };
/* The format of e4m3 or e5m2 codes, and their shape; fails for other codes. */
bsm_status bsmi_read_fp8_codes(struct bsmi_look *look, const bsm_tensor *scales);
/* Whether scales have a number for each tile, [..., rows / 128, columns / 128], or with ones between as ModelOpt has
 * them. */
bool bsmi_are_scales_of_tiles(const struct bsmi_look *look, const bsm_tensor *scales);
/* e4m3 or e5m2 with one fp32 scale, one for each row, or one for each 128 x 128. */
bsm_status bsmi_take_wide_scales(struct bsmi_look *look, const bsm_tensor *scales, int64_t index);

/* Conventions with files of their own: leave the weight as it is where the codes' name is not theirs --------------- */

bsm_status bsmi_try_torchao(struct bsmi_look *look);

#endif
