/* Weights found by their names: every convention, element by element against arithmetic on the bytes; parts that do not
 * fit. */
#include "blockscale/matmul.h"
#include "made_checkpoint.h"

#include <math.h>

/* Every code and every scale of a matrix lies at these bytes of two tensors. */
static void check_nibbles(struct test *t, const bsm_matrix *m, const unsigned char *codes, const unsigned char *scales,
                          int block)
{
    const int64_t batch = m->batch == 0 ? 1 : m->batch, columns = m->columns,
                  scale_columns = (columns + block - 1) / block;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t r = 0; r < m->rows; r++)
            for (int64_t k = 0; k < columns; k++) {
                uint32_t code = 99;
                uint8_t scale = 0;
                const int64_t at = (b * m->rows + r) * columns + k;
                CHECK_OR_RETURN(t, bsm_matrix_get_code(m, b, r, k, &code) == BSM_OK);
                CHECK_OR_RETURN(t, code == (codes[at / 2] >> 4 * (at % 2) & 15u));
                CHECK_OR_RETURN(t, bsm_matrix_get_scale(m, b, r, k / block, &scale) == BSM_OK);
                CHECK_OR_RETURN(t, scale == scales[(b * m->rows + r) * scale_columns + k / block]);
            }
}

/* Conventions ------------------------------------------------------------------------------------------------------ */

static void gpt_oss(struct test *t)
{
    for (int way = 0; way < 2; way++) {
        const char *codes = way == 0 ? "l.experts.gate_up_proj_blocks" : "block.0.mlp.mlp1_weight.blocks";
        const char *scales = way == 0 ? "l.experts.gate_up_proj_scales" : "block.0.mlp.mlp1_weight.scales";
        start();
        ADD(codes, U8, NULL, 3, 6, 2, 16);
        ADD(scales, U8, NULL, 3, 6, 2);
        finish(t, BSM_CHECKPOINT_SAFETENSORS);
        const bsm_weight w = weight_called(t, way == 0 ? "l.experts.gate_up_proj" : "block.0.mlp.mlp1_weight",
                                           BSM_CONVENTION_GPT_OSS, BSM_MXFP4);
        CHECK(t, w.matrix.rows == 6 && w.matrix.columns == 64 && w.matrix.batch == 3 && w.gate_up_interleaved
                     && w.tile_rows == 0);
        CHECK(t, w.matrix.data == bytes_of(codes) && w.matrix.scales == bytes_of(scales) && w.tensor_scale == -1);
        check_nibbles(t, &w.matrix, bytes_of(codes), bytes_of(scales), 32);
        for (int half = 0; half < 2; half++) {
            bsm_matrix part;
            CHECK(t, bsm_weight_part(&w, (bsm_weight_half)half, &part) == BSM_OK && part.rows == 3 &&
                         bsm_matrix_check(&part) == BSM_OK);
            for (int64_t b = 0; b < 3; b++)
                for (int64_t r = 0; r < 3; r++)
                    for (int64_t k = 0; k < 64; k++) {
                        uint32_t code, want = 99;
                        uint8_t scale, want_scale;
                        CHECK(t, bsm_matrix_get_code(&part, b, r, k, &code) == BSM_OK
                                     && bsm_matrix_get_code(&w.matrix, b, 2 * r + half, k, &want) == BSM_OK
                                     && code == want);
                        CHECK(t, bsm_matrix_get_scale(&part, b, r, k / 32, &scale) == BSM_OK &&
                                     bsm_matrix_get_scale(&w.matrix, b, 2 * r + half, k / 32, &want_scale) == BSM_OK &&
                                     scale == want_scale);
                    }
            bsm_matrix one;
            CHECK(t, bsm_weight_tile(&w, 2, 0, 0, &one) == BSM_OK && one.rows == 6 && one.batch == 1);
            check_nibbles(t, &one, bytes_of(codes) + 2 * 6 * 32, bytes_of(scales) + 2 * 6 * 2, 32);
        }
        end();
    }
}

static void modelopt_and_compressed_tensors(struct test *t)
{
    const float scale = 0.0625f, input = 2;
    for (int way = 0; way < 2; way++) {
        const char *codes = way == 0 ? "m.q.weight" : "m.q.weight_packed",
                   *global = way == 0 ? "m.q.weight_scale_2" : "m.q.weight_global_scale";
        const char *inputs = way == 0 ? "m.q.input_scale" : "m.q.input_global_scale";
        start();
        if (way == 0) {
            add(global, BSM_TENSOR_F32, 0, NULL, &scale);
            add(inputs, BSM_TENSOR_F32, 0, NULL, &input);
        } else {
            ADD(global, F32, &scale, 1);
            ADD(inputs, F32, &input, 1);
        }
        ADD(codes, U8, NULL, 5, 24);
        ADD("m.q.weight_scale", F8_E4M3, NULL, 5, 3);
        finish(t, BSM_CHECKPOINT_SAFETENSORS);
        const bsm_weight w =
            weight_called(t, "m.q", way == 0 ? BSM_CONVENTION_MODELOPT : BSM_CONVENTION_COMPRESSED_TENSORS, BSM_NVFP4);
        CHECK(t, w.matrix.rows == 5 && w.matrix.columns == 48 && w.matrix.batch == 1 && !w.gate_up_interleaved);
        CHECK(t, w.matrix.tensor_scale != NULL && memcmp(w.matrix.tensor_scale, &scale, sizeof scale) == 0);
        CHECK(t, (const void *)w.matrix.tensor_scale == bytes_of(global));
        CHECK(t, w.matrix.tensor_scale_use == (way == 0 ? BSM_TENSOR_SCALE_MULTIPLIES : BSM_TENSOR_SCALE_DIVIDES));
        CHECK(t, w.input_scale == bsm_checkpoint_find(made.checkpoint, inputs) &&
                     w.scales == bsm_checkpoint_find(made.checkpoint, "m.q.weight_scale"));
        check_nibbles(t, &w.matrix, bytes_of(codes), bytes_of("m.q.weight_scale"), 16);
        end();
    }
}

/* Codes and scales of every kind that the names allow: the format that comes out. */
static void formats(struct test *t)
{
    static const struct {
        const char *codes;
        bsm_tensor_type type;
        int64_t columns;
        bsm_tensor_type scale;
        int64_t scales;
        bsm_format format;
    } rows[] = {
        { "m.weight", BSM_TENSOR_U8, 32, BSM_TENSOR_U8, 2, BSM_MXFP4 },
        { "m.weight", BSM_TENSOR_U8, 32, BSM_TENSOR_F8_E8M0, 2, BSM_MXFP4 },
        { "m.weight", BSM_TENSOR_F4, 64, BSM_TENSOR_F8_E8M0, 2, BSM_MXFP4 },
        { "m.weight", BSM_TENSOR_F4, 64, BSM_TENSOR_F8_E4M3, 4, BSM_NVFP4 },
        { "m.weight_packed", BSM_TENSOR_U8, 32, BSM_TENSOR_U8, 2, BSM_MXFP4 },
        { "m.weight", BSM_TENSOR_F8_E4M3, 64, BSM_TENSOR_U8, 2, BSM_MXFP8_E4M3 },
        { "m.weight", BSM_TENSOR_F8_E5M2, 48, BSM_TENSOR_U8, 2, BSM_MXFP8_E5M2 },
        { "m.weight", BSM_TENSOR_F6_E2M3, 64, BSM_TENSOR_U8, 2, BSM_MXFP6_E2M3 },
        { "m.weight", BSM_TENSOR_F6_E3M2, 64, BSM_TENSOR_F8_E8M0, 2, BSM_MXFP6_E3M2 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start();
        add(rows[i].codes, rows[i].type, 2, (const int64_t[]){ 4, rows[i].columns }, NULL);
        add("m.weight_scale", rows[i].scale, 2, (const int64_t[]){ 4, rows[i].scales }, NULL);
        finish(t, BSM_CHECKPOINT_SAFETENSORS);
        const bsm_convention convention =
            strcmp(rows[i].codes, "m.weight") == 0 ? BSM_CONVENTION_MODELOPT : BSM_CONVENTION_COMPRESSED_TENSORS;
        const bsm_weight w = weight_called(t, "m", convention, rows[i].format);
        CHECK(t, w.matrix.rows == 4 && w.matrix.columns == (rows[i].columns == 32 ? 64 : rows[i].columns) &&
                     w.matrix.tensor_scale == NULL);
        end();
    }
}

/* Value (r, k) of a tiled weight, by the tile that holds it; and what the scale's index says. */
static void check_tiles(struct test *t, const bsm_weight *w, int64_t tile_rows, int64_t tile_columns,
                        const unsigned char *codes, const float *scales)
{
    const int64_t across = (w->matrix.columns + tile_columns - 1) / tile_columns,
                  down = (w->matrix.rows + tile_rows - 1) / tile_rows;
    bsm_matrix tile;
    CHECK(t, w->tile_rows == tile_rows && w->tile_columns == tile_columns && w->matrix.tensor_scale == NULL);
    for (int64_t i = 0; i < down; i++)
        for (int64_t j = 0; j < across; j++) {
            CHECK_OR_RETURN(t, bsm_weight_tile(w, 0, i, j, &tile) == BSM_OK && bsm_matrix_check(&tile) == BSM_OK);
            CHECK(t,
                  tile.tensor_scale == &scales[i * across + j] && tile.tensor_scale_use == BSM_TENSOR_SCALE_MULTIPLIES);
            CHECK(t, tile.rows == (i + 1 < down ? tile_rows : w->matrix.rows - i * tile_rows));
            CHECK(t, tile.columns == (j + 1 < across ? tile_columns : w->matrix.columns - j * tile_columns));
            for (int n = 0; n < 50; n++) {
                const int64_t r = rnd_below(t, tile.rows), k = rnd_below(t, tile.columns);
                uint32_t code = 0;
                CHECK(t, bsm_matrix_get_code(&tile, 0, r, k, &code) == BSM_OK);
                CHECK(t, code == codes[(i * tile_rows + r) * w->matrix.columns + j * tile_columns + k]);
            }
        }
    CHECK(t,
          bsm_weight_tile(w, 0, down, 0, &tile) == BSM_EINVAL && bsm_weight_tile(w, 0, 0, across, &tile) == BSM_EINVAL);
    CHECK(t, bsm_weight_tile(w, 0, -1, 0, &tile) == BSM_EINVAL && bsm_weight_tile(w, 1, 0, 0, &tile) == BSM_EINVAL);
}

static void deepseek_and_row_scales(struct test *t)
{
    static float scales[130];
    for (int i = 0; i < 130; i++) scales[i] = (float)(i + 1);
    start();
    ADD("a.weight_scale_inv", F32, scales, 2, 3);
    ADD("b.weight_scale", F32, scales, 130, 1);
    ADD("c.weight_scale", F32, scales, 1);
    ADD("a.weight", F8_E4M3, NULL, 130, 300);
    ADD("b.weight", F8_E4M3, NULL, 130, 20);
    ADD("c.weight", F8_E5M2, NULL, 3, 20);
    finish(t, BSM_CHECKPOINT_SAFETENSORS);
    const bsm_weight a = weight_called(t, "a", BSM_CONVENTION_DEEPSEEK, BSM_FORMAT_E4M3);
    check_tiles(t, &a, 128, 128, bytes_of("a.weight"), (const float *)(const void *)bytes_of("a.weight_scale_inv"));
    const bsm_weight b = weight_called(t, "b", BSM_CONVENTION_MODELOPT, BSM_FORMAT_E4M3);
    check_tiles(t, &b, 1, 20, bytes_of("b.weight"), (const float *)(const void *)bytes_of("b.weight_scale"));
    const bsm_weight c = weight_called(t, "c", BSM_CONVENTION_MODELOPT, BSM_FORMAT_E5M2);
    CHECK(t, c.tile_rows == 0 && c.matrix.tensor_scale != NULL
                 && memcmp(c.matrix.tensor_scale, scales, sizeof scales[0]) == 0);
    end();
}

static void gguf(struct test *t)
{
    static const float scales[] = { 0.5f, 0.25f };
    start();
    ADD("blk.0.up.weight", NVFP4, NULL, 3, 128);
    ADD("blk.0.up.scale", F32, scales, 1);
    ADD("blk.0.exps.weight", NVFP4, NULL, 2, 3, 64);
    ADD("blk.0.exps.scale", F32, scales, 2);
    ADD("down.weight", MXFP4, NULL, 2, 2, 64);
    ADD("norm", F32, NULL, 7);
    ADD("embed", BF16, NULL, 4, 8);
    finish(t, BSM_CHECKPOINT_GGUF);
    const bsm_weight up = weight_called(t, "blk.0.up", BSM_CONVENTION_GGUF, BSM_NVFP4);
    const unsigned char *bytes = bytes_of("blk.0.up.weight");
    CHECK(t, up.matrix.rows == 3 && up.matrix.columns == 128
                 && (const void *)up.matrix.tensor_scale == bytes_of("blk.0.up.scale"));
    for (int64_t r = 0; r < 3; r++)
        for (int64_t k = 0; k < 128; k++) {
            const unsigned char *block = bytes + (r * 2 + k / 64) * 36;
            const int64_t sub = k % 64 / 16, j = k % 16;
            uint32_t code = 99;
            uint8_t scale;
            CHECK(t, bsm_matrix_get_code(&up.matrix, 0, r, k, &code) == BSM_OK &&
                         code == (block[4 + 8 * sub + j % 8] >> (j < 8 ? 0 : 4) & 15u));
            CHECK(t, bsm_matrix_get_scale(&up.matrix, 0, r, k / 16, &scale) == BSM_OK && scale == block[sub]);
        }
    const bsm_weight experts = weight_called(t, "blk.0.exps", BSM_CONVENTION_GGUF, BSM_NVFP4);
    bsm_matrix one;
    CHECK(t, experts.matrix.batch == 2 && experts.tile_rows == 3 && experts.tile_columns == 64
                 && experts.matrix.tensor_scale == NULL);
    CHECK(t, bsm_weight_tile(&experts, 1, 0, 0, &one) == BSM_OK && one.batch == 1 && bsm_matrix_check(&one) == BSM_OK);
    CHECK(t, one.data == bytes_of("blk.0.exps.weight") + 3 * 36 && one.scales == one.data &&
                 memcmp(one.tensor_scale, &scales[1], 4) == 0);
    const bsm_weight down = weight_called(t, "down", BSM_CONVENTION_GGUF, BSM_MXFP4);
    CHECK(t, down.matrix.batch == 2 && down.matrix.tensor_scale == NULL && down.tile_rows == 0);
    const bsm_weight embed = weight_called(t, "embed", BSM_CONVENTION_PLAIN, BSM_FORMAT_BF16);
    CHECK(t, embed.matrix.rows == 4 && embed.matrix.columns == 8);
    bsm_weight none = { .struct_size = sizeof none };
    CHECK(t, bsm_checkpoint_weight(made.checkpoint, bsm_checkpoint_find(made.checkpoint, "norm"), &none) == BSM_OK);
    CHECK(t, none.convention == BSM_CONVENTION_NONE);
    end();
}

/* What is no weight, and names that only look like one. */
static void others(struct test *t)
{
    static const char *const none[] = { "ids",      "x.weight_packed", "x.weight_shape", "norm.weight",
                                        "y_blocks", "z.weight",        "q.weight_scale" };
    start();
    ADD("ids", I64, NULL, 4, 4);
    ADD("q.weight_scale", F32, NULL, 4, 4);
    ADD("x.weight_packed", I32, NULL, 4, 4);
    ADD("norm.weight", BF16, NULL, 64);
    ADD("x.weight_shape", I16, NULL, 2);
    ADD("y_blocks", U8, NULL, 4, 2, 16);
    ADD("z.weight", U8, NULL, 4, 16);
    finish(t, BSM_CHECKPOINT_SAFETENSORS);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        bsm_weight weight = { .struct_size = sizeof weight };
        CHECK(t, bsm_checkpoint_find_weight(made.checkpoint, none[i], &weight) == BSM_OK);
        if (weight.convention != BSM_CONVENTION_NONE) FAIL(t, "%s: convention %d", none[i], (int)weight.convention);
        CHECK(t, weight.name_length == (int64_t)strlen(none[i]));
        bsm_matrix matrix;
        CHECK(t, bsm_weight_tile(&weight, 0, 0, 0, &matrix) == BSM_EINVAL);
    }
    end();
}

/* Parts that lie about each other ---------------------------------------------------------------------------------- */

static void refuse(struct test *t, bsm_status status, const char *words)
{
    bsm_weight weight = { .struct_size = sizeof weight };
    finish(t, BSM_CHECKPOINT_SAFETENSORS);
    const bsm_status got = bsm_checkpoint_find_weight(made.checkpoint, "m", &weight);
    if (got != status || strstr(bsm_last_error(), words) == NULL)
        FAIL(t, "%s: status %d, \"%s\"", words, (int)got, bsm_last_error());
    end();
    start();
}

static void parts_that_do_not_fit(struct test *t)
{
    static const float one = 1, zero = 0, negative = -1, infinite = INFINITY;
    start();
    ADD("m.weight", U8, NULL, 4, 32), ADD("m.weight_scale", F8_E4M3, NULL, 4, 3);
    refuse(
        t, BSM_EFILE,
        "tensor m.weight_scale (4 x 3) does not fit tensor m.weight (4 x 32): a scale for each 16 numbers of a row is "
        "wanted, 4");
    ADD("m.weight", U8, NULL, 4, 32), ADD("m.weight_scale", F8_E4M3, NULL, 5, 4);
    refuse(t, BSM_EFILE, "(5 x 4) does not fit");
    ADD("m.weight", U8, NULL, 4, 32), ADD("m.weight_scale", F8_E4M3, NULL, 16);
    refuse(t, BSM_EFILE, "(16) does not fit");
    ADD("m.weight", U8, NULL, 4, 32), ADD("m.weight_scale", F8_E4M3, NULL, 128, 4);
    refuse(t, BSM_EFILE, "(128 x 4) does not fit");
    ADD("m.weight", U8, NULL, 4, 32), ADD("m.weight_scale", U8, NULL, 4, 4);
    refuse(t, BSM_EFILE, "a scale for each 32 numbers of a row is wanted, 2");
    ADD("m.weight_scale", F32, NULL, 4, 4), ADD("m.weight", U8, NULL, 4, 32);
    refuse(t, BSM_EUNSUPPORTED, "tensor m.weight of type U8 with scales m.weight_scale of type F32");
    ADD("m.weight", F8_E4M3, NULL, 4, 32), ADD("m.weight_scale", F8_E4M3, NULL, 4, 2);
    refuse(t, BSM_EUNSUPPORTED, "no format here has both");
    ADD("m.weight_scale", F64, NULL, 4, 1), ADD("m.weight", F8_E4M3, NULL, 4, 32);
    refuse(t, BSM_EUNSUPPORTED, "tensor m.weight_scale, a scale of m.weight: fp32 is wanted, not F64");
    ADD("m.weight_scale", F32, NULL, 3), ADD("m.weight", F8_E4M3, NULL, 4, 32);
    refuse(t, BSM_EFILE, "one scale is wanted, one for each row, or one for each 128 x 128 numbers");
    ADD("m.weight_scale_inv", F32, NULL, 1, 1), ADD("m.weight", F8_E4M3, NULL, 129, 32);
    refuse(t, BSM_EFILE, "a scale for each 128 x 128 numbers is wanted");
    ADD("m.weight_scale_inv", F32, NULL, 1), ADD("m.weight", F8_E4M3, NULL, 1, 32);
    refuse(t, BSM_EFILE, "a scale for each 128 x 128 numbers is wanted");
    ADD("m.weight_scale_inv", F32, NULL, 1, 1), ADD("m.weight", U8, NULL, 1, 32);
    refuse(t, BSM_EUNSUPPORTED, "no format here has both");
    ADD("m.weight_packed", U8, NULL, 4, 32);
    refuse(t, BSM_EFILE, "tensor m.weight_packed has no scales: m.weight_scale is wanted");
    ADD("m_scales", U8, NULL, 4, 2), ADD("m_blocks", U8, NULL, 4, 2, 15);
    refuse(t, BSM_EFILE, "tensor m_blocks (4 x 2 x 15): blocks of 16 bytes are wanted");
    ADD("m_scales", U8, NULL, 4, 3), ADD("m_blocks", U8, NULL, 4, 2, 16);
    refuse(t, BSM_EFILE, "tensor m_scales (4 x 3) does not fit tensor m_blocks");
    ADD("m_scales", BF16, NULL, 4, 2), ADD("m_blocks", U8, NULL, 4, 2, 16);
    refuse(t, BSM_EUNSUPPORTED, "no format here has both");
    const struct {
        const float *value;
        const char *words;
    } scales[] = { { &zero, "is 0: a tensor scale" },
                   { &negative, "is -1: a tensor scale" },
                   { &infinite, "is inf: a tensor scale" } };
    for (int i = 0; i < 3; i++) {
        ADD("m.weight_scale_2", F32, scales[i].value, 1), ADD("m.weight", U8, NULL, 4, 32),
            ADD("m.weight_scale", F8_E4M3, NULL, 4, 4);
        refuse(t, BSM_EFILE, scales[i].words);
    }
    ADD("m.weight_scale_2", F32, NULL, 2), ADD("m.weight", U8, NULL, 4, 32), ADD("m.weight_scale", F8_E4M3, NULL, 4, 4);
    refuse(t, BSM_EFILE, "one number is wanted");
    ADD("m.weight_scale_2", F64, NULL, 1), ADD("m.weight", U8, NULL, 4, 32), ADD("m.weight_scale", F8_E4M3, NULL, 4, 4);
    refuse(t, BSM_EUNSUPPORTED, "fp32 is wanted, not F64");
    ADD("a", F32, &one, 1);
    refuse(t, BSM_EINVAL, "the checkpoint has no weight called m");
}

static void wrong_arguments(struct test *t)
{
    bsm_weight weight = { .struct_size = 8 };
    bsm_matrix matrix;
    start();
    ADD("m", F32, NULL, 4, 4);
    finish(t, BSM_CHECKPOINT_SAFETENSORS);
    CHECK(t, bsm_checkpoint_weight(made.checkpoint, 0, NULL) == BSM_EINVAL &&
                 bsm_checkpoint_weight(made.checkpoint, 0, &weight) == BSM_EINVAL);
    weight.struct_size = sizeof weight;
    CHECK(t, bsm_checkpoint_weight(made.checkpoint, 1, &weight) == BSM_EINVAL &&
                 bsm_checkpoint_weight(NULL, 0, &weight) == BSM_EINVAL);
    CHECK(t, bsm_checkpoint_find_weight(made.checkpoint, NULL, &weight) == BSM_EINVAL);
    CHECK(t, bsm_checkpoint_weight(made.checkpoint, 0, &weight) == BSM_OK && weight.convention == BSM_CONVENTION_PLAIN);
    CHECK(t, bsm_weight_part(&weight, BSM_WEIGHT_UP, &matrix) == BSM_EUNSUPPORTED &&
                 bsm_weight_part(&weight, (bsm_weight_half)2, &matrix) == BSM_EINVAL);
    CHECK(t, bsm_weight_part(NULL, BSM_WEIGHT_UP, &matrix) == BSM_EINVAL
                 && bsm_weight_tile(&weight, 0, 0, 0, NULL) == BSM_EINVAL);
    for (int i = 0; i < BSM_CONVENTION_COUNT; i++) CHECK(t, bsm_convention_from_name(bsm_convention_name(i)) == i);
    CHECK(t, bsm_convention_name(-1) == NULL && bsm_convention_name(BSM_CONVENTION_COUNT) == NULL &&
                 bsm_convention_from_name(NULL) == -1);
    end();
}

/* A product with what was found: gpt-oss' gates and ups apart are the columns of both together. */
static void products(struct test *t)
{
    enum { M = 2, N = 4, K = 64 };
    float a[M * K], whole[M * N], part[M * N / 2];
    start();
    ADD("e.gate_up_proj_blocks", U8, NULL, 1, N, 2, 16);
    unsigned char scales[N * 2];
    for (int i = 0; i < N * 2; i++) scales[i] = (unsigned char)(120 + rnd_below(t, 8));
    ADD("e.gate_up_proj_scales", U8, scales, 1, N, 2);
    finish(t, BSM_CHECKPOINT_SAFETENSORS);
    const bsm_weight w = weight_called(t, "e.gate_up_proj", BSM_CONVENTION_GPT_OSS, BSM_MXFP4);
    for (int i = 0; i < M * K; i++) a[i] = (float)rnd_below(t, 9) - 4;
    const bsm_matrix left = { .struct_size = sizeof left, .format = BSM_FORMAT_FP32, .rows = M, .columns = K,
                              .data = a };
    bsm_matrix right, out = { .struct_size = sizeof out, .format = BSM_FORMAT_FP32, .rows = M, .columns = N,
                              .data = whole };
    bsm_matmul product = { .struct_size = sizeof product, .a = &left, .b = &w.matrix, .d = &out };
    CHECK(t, bsm_multiply(context, &product) == BSM_OK);
    for (int half = 0; half < 2; half++) {
        CHECK(t, bsm_weight_part(&w, (bsm_weight_half)half, &right) == BSM_OK);
        product.b = &right, out.columns = N / 2, out.data = part;
        CHECK(t, bsm_multiply(context, &product) == BSM_OK);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N / 2; j++)
                CHECK(t, memcmp(&part[i * N / 2 + j], &whole[i * N + 2 * j + half], sizeof part[0]) == 0);
    }
    end();
}

int main(int argc, char **argv)
{
    if (bsm_context_create(NULL, &context) != BSM_OK) return 1;
    static const struct test_case cases[] = {
        TEST(gpt_oss),
        TEST(modelopt_and_compressed_tensors),
        TEST(formats),
        TEST(deepseek_and_row_scales),
        TEST(gguf),
        TEST(others),
        TEST(parts_that_do_not_fit),
        TEST(wrong_arguments),
        TEST(products),
    };
    const int status = TEST_MAIN(argc, argv, cases);
    bsm_context_destroy(context);
    return status;
}
