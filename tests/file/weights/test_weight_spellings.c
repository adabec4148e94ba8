/* Weights in further spellings: fp8 with 16-bit scales or with scales of 128 x 128, packed MXFP6, and torchao's
 * tensors, element by element against the bytes. */
#include "counted.h"
#include "made_checkpoint.h"

#include <math.h>

/* Codes and scales by their own definitions ------------------------------------------------------------------------ */

static uint32_t nibble(const unsigned char *codes, int64_t i) { return codes[i / 2] >> 4 * (i % 2) & 15u; }

/* Four codes of 6 bits in three bytes, the first in the low bits. */
static uint32_t six(const unsigned char *codes, int64_t i)
{
    const unsigned char *b = codes + i / 4 * 3;
    const uint32_t word = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16;
    return word >> 6 * (i % 4) & 63u;
}

static uint32_t byte(const unsigned char *codes, int64_t i) { return codes[i]; }
static uint32_t byte_of_six(const unsigned char *codes, int64_t i) { return codes[i] & 63u; }

/* cuBLAS: blocks of 128 rows x 4 scales, each of 32 lines with the scales of rows r, r + 32, r + 64 and r + 96. */
static int64_t swizzled(int64_t row, int64_t column, int64_t columns)
{
    const int64_t block = row / 128 * ((columns + 3) / 4) + column / 4, inside = row % 128;
    return block * 512 + inside % 32 * 16 + inside / 32 * 4 + column % 4;
}

static int64_t linear(int64_t row, int64_t column, int64_t columns) { return row * columns + column; }

static void check_all(struct test *t, const bsm_matrix *m, const unsigned char *codes,
                      uint32_t (*code_at)(const unsigned char *codes, int64_t i), const unsigned char *scales,
                      int64_t (*scale_at)(int64_t row, int64_t column, int64_t columns), int block)
{
    const int64_t across = m->columns / block;
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t k = 0; k < m->columns; k++) {
            uint32_t code = 99;
            uint8_t scale = 0;
            CHECK_OR_RETURN(t, bsm_matrix_get_code(m, 0, r, k, &code) == BSM_OK);
            CHECK_OR_RETURN(t, code == code_at(codes, r * m->columns + k));
            CHECK_OR_RETURN(t, bsm_matrix_get_scale(m, 0, r, k / block, &scale) == BSM_OK);
            CHECK_OR_RETURN(t, scale == scales[scale_at(r, k / block, across)]);
        }
}

/* fp8 -------------------------------------------------------------------------------------------------------------- */

static void check_tile(struct test *t, const bsm_weight *w, int64_t i, int64_t j, float scale)
{
    bsm_matrix tile;
    CHECK_OR_RETURN(t, bsm_weight_tile(w, 0, i, j, &tile) == BSM_OK && tile.tensor_scale != NULL);
    CHECK(t,
          memcmp(tile.tensor_scale, &scale, sizeof scale) == 0 && tile.tensor_scale_use == BSM_TENSOR_SCALE_MULTIPLIES);
}

static void sixteen_bit_scales(struct test *t)
{
    static const uint16_t bf16[] = { 0x3f80, 0x3a12, 0x0001, 0x7f7f }, fp16[] = { 0x3c00, 0x0001, 0x83ff, 0x7bff };
    static const float of_bf16[] = { 1, 0x1.24p-11f, 0x1p-133f, 0x1.fep127f };
    static const float of_fp16[] = { 1, 0x1p-24f, -0x1.ff8p-15f, 65504 };
    start();
    ADD("a.weight_scale", BF16, bf16, 4, 1);
    ADD("b.weight_scale", F16, fp16, 4);
    ADD("c.weight_scale", BF16, &bf16[1], 1);
    ADD("a.weight", F8_E4M3, NULL, 4, 20);
    ADD("b.weight", F8_E5M2, NULL, 4, 20);
    ADD("c.weight", F8_E4M3, NULL, 3, 20);
    finish(t, BSM_CHECKPOINT_SAFETENSORS);
    const bsm_weight a = weight_called(t, "a", BSM_CONVENTION_MODELOPT, BSM_FORMAT_E4M3);
    const bsm_weight b = weight_called(t, "b", BSM_CONVENTION_MODELOPT, BSM_FORMAT_E5M2);
    const bsm_weight c = weight_called(t, "c", BSM_CONVENTION_MODELOPT, BSM_FORMAT_E4M3);
    CHECK(t, a.tile_rows == 1 && a.tile_columns == 20 && b.tile_rows == 1);
    for (int i = 0; i < 4; i++) check_tile(t, &a, i, 0, of_bf16[i]), check_tile(t, &b, i, 0, of_fp16[i]);
    CHECK(t, c.tile_rows == 0 && c.matrix.tensor_scale != NULL && memcmp(c.matrix.tensor_scale, &of_bf16[1], 4) == 0);
    end();
}

static void tiles_in_every_spelling(struct test *t)
{
    static const uint16_t bf16[] = { 0x3f80, 0x4000, 0x4040, 0x4080 };
    static const float fp32[] = { 1, 2, 3, 4 };
    static const char *const names[] = { "a", "b", "c" };
    start();
    ADD("a.weight_scale", F32, fp32, 2, 2);       /* compressed-tensors' FP8_BLOCK */
    ADD("b.weight_scale", F32, fp32, 2, 1, 2, 1); /* ModelOpt's FP8_PB_WO */
    ADD("c.weight_scale_inv", BF16, bf16, 2, 2);
    ADD("a.weight", F8_E4M3, NULL, 130, 140);
    ADD("b.weight", F8_E4M3, NULL, 130, 140);
    ADD("c.weight", F8_E4M3, NULL, 130, 140);
    finish(t, BSM_CHECKPOINT_SAFETENSORS);
    for (int i = 0; i < 3; i++) {
        const bsm_weight w =
            weight_called(t, names[i], i == 2 ? BSM_CONVENTION_DEEPSEEK : BSM_CONVENTION_MODELOPT, BSM_FORMAT_E4M3);
        CHECK(t, w.tile_rows == 128 && w.tile_columns == 128);
        for (int j = 0; j < 4; j++) check_tile(t, &w, j / 2, j % 2, fp32[j]);
    }
    end();
}

/* Every call that takes memory fails once: nothing is kept. */
static void no_memory_for_wider_scales(struct test *t)
{
    start();
    ADD("a.weight_scale", BF16, NULL, 4, 1);
    ADD("a.weight", F8_E4M3, NULL, 4, 20);
    finish(t, BSM_CHECKPOINT_SAFETENSORS);
    end();
    for (int64_t at = 1;; at++) {
        struct counted counted = { .calls = 0 };
        const bsm_allocator allocator = counted_allocator(&counted);
        const bsm_context_options options = { .struct_size = sizeof options, .threads = 1, .allocator = &allocator };
        bsm_context *own;
        bsm_checkpoint *checkpoint;
        CHECK_OR_RETURN(t, bsm_context_create(&options, &own) == BSM_OK);
        counted.fail_at = counted.calls + at;
        const bsm_status status = bsm_checkpoint_parse(own, made.file, made.bytes, &checkpoint);
        CHECK(t, status == BSM_OK || (status == BSM_ENOMEM && checkpoint == NULL));
        bsm_checkpoint_close(checkpoint);
        bsm_context_destroy(own);
        CHECK(t, counted.live == 0 && counted.errors == 0);
        if (status == BSM_OK) break;
        CHECK_OR_RETURN(t, at < 100);
    }
}

/* MXFP6 ------------------------------------------------------------------------------------------------------------ */

static void packed_e2m3(struct test *t)
{
    start();
    ADD("m.weight_packed", U8, NULL, 5, 72);
    ADD("m.weight_scale", U8, NULL, 5, 3);
    finish(t, BSM_CHECKPOINT_SAFETENSORS);
    const bsm_weight w = weight_called(t, "m", BSM_CONVENTION_COMPRESSED_TENSORS, BSM_MXFP6_E2M3);
    CHECK(t, w.matrix.rows == 5 && w.matrix.columns == 96);
    check_all(t, &w.matrix, bytes_of("m.weight_packed"), six, bytes_of("m.weight_scale"), linear, 32);
    end();
}

/* torchao ---------------------------------------------------------------------------------------------------------- */

static void torchao(struct test *t)
{
    static const float scale = 0.25f, input = 8;
    static const float rows[] = { 1, 2, 3, 4, 5 };
    start();
    ADD("a._weight_per_tensor_scale", F32, &scale, 1);
    made.tensors[0].rank = 0;
    ADD("a._weight_act_per_tensor_scale", F32, &input, 1);
    ADD("e._weight_scale", F32, rows, 5, 1);
    ADD("a._weight_scale", F8_E4M3, NULL, 5, 4);
    ADD("a._weight_qdata", U8, NULL, 5, 32);
    ADD("e._weight_qdata", F8_E4M3, NULL, 5, 64);
    finish(t, BSM_CHECKPOINT_SAFETENSORS);
    const bsm_weight a = weight_called(t, "a", BSM_CONVENTION_TORCHAO, BSM_NVFP4);
    CHECK(t, a.matrix.rows == 5 && a.matrix.columns == 64 && *a.matrix.tensor_scale == scale && a.input_scale >= 0);
    check_all(t, &a.matrix, bytes_of("a._weight_qdata"), nibble, bytes_of("a._weight_scale"), linear, 16);
    const bsm_weight e = weight_called(t, "e", BSM_CONVENTION_TORCHAO, BSM_FORMAT_E4M3);
    for (int i = 0; i < 5; i++) check_tile(t, &e, i, 0, rows[i]);
    end();
    start();
    ADD("b._weight_qdata", F8_E5M2, NULL, 5, 64);
    ADD("b._weight_scale", F8_E8M0, NULL, 5, 2);
    ADD("c._weight_qdata", U8, NULL, 5, 32);
    ADD("c._weight_scale", F8_E8M0, NULL, 5, 2);
    finish(t, BSM_CHECKPOINT_SAFETENSORS);
    const bsm_weight b = weight_called(t, "b", BSM_CONVENTION_TORCHAO, BSM_MXFP8_E5M2);
    const bsm_weight c = weight_called(t, "c", BSM_CONVENTION_TORCHAO, BSM_MXFP4);
    check_all(t, &b.matrix, bytes_of("b._weight_qdata"), byte, bytes_of("b._weight_scale"), linear, 32);
    check_all(t, &c.matrix, bytes_of("c._weight_qdata"), nibble, bytes_of("c._weight_scale"), linear, 32);
    end();
}

static void torchao_swizzled(struct test *t)
{
    start();
    ADD("a._weight_qdata", U8, NULL, 130, 40); /* 80 columns: 5 scales a row, 2 blocks across and 2 down */
    ADD("a._weight_scale", F8_E4M3, NULL, 64, 32);
    ADD("b._weight_qdata", U8, NULL, 48, 64); /* as many scales as 6-bit codes in bytes would have */
    ADD("b._weight_scale", F8_E8M0, NULL, 32, 16);
    finish(t, BSM_CHECKPOINT_SAFETENSORS);
    const bsm_weight a = weight_called(t, "a", BSM_CONVENTION_TORCHAO, BSM_NVFP4);
    const bsm_weight b = weight_called(t, "b", BSM_CONVENTION_TORCHAO, BSM_MXFP4);
    check_all(t, &a.matrix, bytes_of("a._weight_qdata"), nibble, bytes_of("a._weight_scale"), swizzled, 16);
    check_all(t, &b.matrix, bytes_of("b._weight_qdata"), nibble, bytes_of("b._weight_scale"), swizzled, 32);
    end();
}

/* What refuses the weight m. */
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

static void torchao_by_metadata(struct test *t)
{
    static const char *const said[] = { "{\"_data\": {\"elem_dtype\": \"fp6_e3m2\"}}",
                                        "{\"_data\": {\"elem_dtype\": \"fp6_e2m3\"}}" };
    for (int i = 0; i < 2; i++) {
        const bsm_metadata metadata = { "m.weight", said[i] };
        start();
        made.metadata = &metadata;
        made.metadata_count = 1;
        ADD("m._weight_qdata", U8, NULL, 5, 64);
        ADD("m._weight_scale", F8_E8M0, NULL, 5, 2);
        finish(t, BSM_CHECKPOINT_SAFETENSORS);
        const bsm_weight w = weight_called(t, "m", BSM_CONVENTION_TORCHAO, i == 0 ? BSM_MXFP6_E3M2 : BSM_MXFP6_E2M3);
        check_all(t, &w.matrix, bytes_of("m._weight_qdata"), byte_of_six, bytes_of("m._weight_scale"), linear, 32);
        end();
    }
    start();
    ADD("m._weight_qdata", U8, NULL, 5, 64), ADD("m._weight_scale", F8_E8M0, NULL, 5, 2);
    refuse(t, BSM_EUNSUPPORTED, "a tensor of torchao's, of another kind");
    const bsm_metadata int8 = { "m.weight", "{\"_type\": \"Int8Tensor\"}" };
    made.metadata = &int8;
    made.metadata_count = 1;
    ADD("m._weight_scale", BF16, NULL, 5, 1), ADD("m._weight_qdata", I8, NULL, 5, 64);
    refuse(t, BSM_EUNSUPPORTED, "(I8) with scales m._weight_scale is a tensor of torchao's, Int8Tensor: NVFP4Tensor, "
                                "MXTensor and");
    ADD("m._weight_per_tensor_scale", F32, NULL, 2), ADD("m._weight_qdata", U8, NULL, 5, 32),
        ADD("m._weight_scale", F8_E4M3, NULL, 5, 4);
    made.tensors[0].data = &(const float[]){ 1, 1 };
    refuse(t, BSM_EFILE, "one scale is wanted, or one for each matrix");
    ADD("m._weight_qdata", U8, NULL, 5, 32), ADD("m._weight_scale", F8_E4M3, NULL, 4, 4);
    refuse(t, BSM_EFILE, "a scale for each 16 numbers of a row is wanted");
}

int main(int argc, char **argv)
{
    if (bsm_context_create(NULL, &context) != BSM_OK) return 1;
    static const struct test_case cases[] = {
        TEST(sixteen_bit_scales),
        TEST(tiles_in_every_spelling),
        TEST(no_memory_for_wider_scales),
        TEST(packed_e2m3),
        TEST(torchao),
        TEST(torchao_swizzled),
        TEST(torchao_by_metadata),
    };
    const int status = TEST_MAIN(argc, argv, cases);
    bsm_context_destroy(context);
    return status;
}
