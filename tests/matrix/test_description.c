/* The rules of bsm_matrix: each broken one gives its status and a sentence that names the field; sizes; batches. */
#include "test.h"

#include "blockscale.h"
#include "matrix/matrix.h"
#include "matrix/rows.h"

static _Alignas(64) unsigned char memory[8192];
static float one = 1;

static bsm_matrix good(void)
{
    return (bsm_matrix){ .struct_size = sizeof(bsm_matrix), .format = BSM_MXFP4, .rows = 4, .columns = 64,
                         .data = memory,
                         .scales = memory + 4096, .tensor_scale = &one };
}

static void expect(struct test *t, int line, const bsm_matrix *m, bsm_status want, const char *words)
{
    const bsm_status got = bsm_matrix_check(m);
    if (got != want) test_fail(t, __FILE__, line, "status %d, want %d: %s", (int)got, (int)want, bsm_last_error());
    else if (got != BSM_OK && strstr(bsm_last_error(), words) == NULL)
        test_fail(t, __FILE__, line, "sentence \"%s\" lacks \"%s\"", bsm_last_error(), words);
}
/* One field changed in a good description. */
#define EXPECT(change, status, words) \
    do { bsm_matrix m = good(); change; expect(t, __LINE__, &m, status, words); } while (0)

static void rules_are_enforced_by_name(struct test *t)
{
    EXPECT((void)0, BSM_OK, "");
    CHECK(t, bsm_matrix_check(NULL) == BSM_EINVAL && strstr(bsm_last_error(), "matrix is NULL") != NULL);
    EXPECT(m.struct_size = 0, BSM_EINVAL, "struct_size is 0");
    EXPECT(m.format = BSM_FORMAT_NONE, BSM_EINVAL, "format=0");
    EXPECT(m.format = BSM_FORMAT_COUNT, BSM_EINVAL, "format=17");
    EXPECT(m.packing = BSM_PACKING_COUNT, BSM_EINVAL, "packing=6");
    EXPECT(m.packing = BSM_PACKING_BIT_STREAM, BSM_EINVAL, "packing=bit_stream does not go with mxfp4");
    EXPECT((m.format = BSM_MXFP8_E4M3, m.packing = BSM_PACKING_LOW_FIRST), BSM_EINVAL, "low_first");
    EXPECT((m.format = BSM_FORMAT_BF16, m.packing = BSM_PACKING_BYTES, m.scales = NULL), BSM_EINVAL, "bytes");
    EXPECT((m.format = BSM_MXFP4_BLOCK16, m.packing = BSM_PACKING_GGUF), BSM_EINVAL, "gguf");
    EXPECT(m.rows = -1, BSM_EINVAL, "rows=-1");
    EXPECT(m.columns = -5, BSM_EINVAL, "columns=-5");
    EXPECT(m.batch = -2, BSM_EINVAL, "batch=-2");
    EXPECT(m.pitch = 63, BSM_EINVAL, "pitch=63");
    EXPECT(m.major = BSM_MAJOR_COUNT, BSM_EINVAL, "major=2");
    EXPECT(m.major = BSM_MAJOR_MN, BSM_OK, "");
    EXPECT((m.major = BSM_MAJOR_MN, m.pitch = 2), BSM_EINVAL, "pitch=2: it counts elements and must be >= rows=4");
    EXPECT((m.major = BSM_MAJOR_MN, m.pitch = 4), BSM_OK, "");
    EXPECT((m.major = BSM_MAJOR_MN, m.pitch = 5), BSM_EALIGN, "so that a column starts on a byte");
    EXPECT((m.major = BSM_MAJOR_MN, m.rows = INT64_MAX), BSM_EOVERFLOW, "rows=");
    EXPECT((m.major = BSM_MAJOR_MN, m.packing = BSM_PACKING_GGUF, m.scale_layout.kind = BSM_LAYOUT_GGUF_MXFP4,
            m.scales = NULL),
           BSM_EINVAL, "major=mn: packing gguf has blocks along K");
    EXPECT(m.pitch = 65, BSM_EALIGN, "pitch=65");
    EXPECT((m.columns = 33, m.pitch = 33), BSM_EALIGN, "pitch=33");
    EXPECT((m.format = BSM_MXFP6_E3M2, m.pitch = 66), BSM_EALIGN, "multiple of 4");
    EXPECT((m.packing = BSM_PACKING_BYTES, m.pitch = 65), BSM_OK, "");
    EXPECT((m.batch = 2, m.batch_pitch = 63), BSM_EINVAL, "batch_pitch=63");
    EXPECT((m.batch = 2, m.batch_pitch = 257), BSM_EALIGN, "batch_pitch=257");
    EXPECT((m.batch = 2, m.scale_batch_pitch = 1), BSM_EINVAL, "scale_batch_pitch=1");
    EXPECT((m.batch = 1, m.batch_pitch = 1, m.scale_batch_pitch = 1), BSM_OK, "");
    EXPECT(m.data = NULL, BSM_EINVAL, "data is NULL");
    EXPECT(m.scales = NULL, BSM_EINVAL, "scales is NULL");
    EXPECT((m.rows = 0, m.data = NULL, m.scales = NULL), BSM_OK, "");
    EXPECT((m.columns = 0, m.data = NULL, m.scales = NULL), BSM_OK, "");
    EXPECT(m.format = BSM_FORMAT_E4M3, BSM_EINVAL, "has no scales");
    EXPECT((m.format = BSM_FORMAT_FP32, m.scales = NULL, m.data = memory + 2), BSM_EALIGN, "data=");
    EXPECT((m.format = BSM_FORMAT_BF16, m.scales = NULL, m.data = memory + 2), BSM_OK, "");
    EXPECT((m.format = BSM_FORMAT_BF16, m.scales = NULL, m.data = memory + 1), BSM_EALIGN, "data=");
    EXPECT(m.data = memory + 1, BSM_OK, "");
    EXPECT(m.tensor_scale = (float *)(void *)(memory + 1), BSM_EALIGN, "tensor_scale=");
    EXPECT(m.tensor_scale_use = (bsm_tensor_scale_use)2, BSM_EINVAL, "tensor_scale_use=2");
    EXPECT(m.scale_layout.kind = BSM_LAYOUT_COUNT, BSM_EINVAL, "scale_layout.kind=11");
    EXPECT(m.scale_layout.kind = BSM_LAYOUT_TILES, BSM_EINVAL, "matrix->scale_layout");
    EXPECT(m.scale_layout.pitch = 1, BSM_EINVAL, "matrix->scale_layout");
    EXPECT(m.scale_layout.kind = BSM_LAYOUT_GGUF_MXFP4, BSM_EINVAL, "packing gguf");
    EXPECT(m.packing = BSM_PACKING_GGUF, BSM_EINVAL, "goes with layout");
    EXPECT((m.packing = BSM_PACKING_GGUF, m.scale_layout.kind = BSM_LAYOUT_GGUF_NVFP4), BSM_EINVAL, "goes with layout");
    EXPECT((m.packing = BSM_PACKING_GGUF, m.scale_layout.kind = BSM_LAYOUT_GGUF_MXFP4), BSM_EINVAL,
           "scales must be data");
    EXPECT((m.packing = BSM_PACKING_GGUF, m.scale_layout.kind = BSM_LAYOUT_GGUF_MXFP4, m.scales = m.data), BSM_OK, "");
    EXPECT((m.packing = BSM_PACKING_GGUF, m.scale_layout.kind = BSM_LAYOUT_GGUF_MXFP4, m.scales = NULL), BSM_OK, "");
    EXPECT((m.packing = BSM_PACKING_GGUF, m.scale_layout = (bsm_scale_layout){ BSM_LAYOUT_GGUF_MXFP4, 35, 0, 0 },
            m.scales = NULL),
           BSM_EINVAL, "34 bytes apart");
    EXPECT((m.packing = BSM_PACKING_GGUF, m.scale_layout.kind = BSM_LAYOUT_GGUF_MXFP4, m.scales = NULL, m.pitch = 80),
           BSM_EALIGN, "multiple of 32");
    EXPECT((m.rows = INT64_MAX / 4, m.columns = 1 << 20), BSM_EOVERFLOW, "rows=");
    EXPECT(m.columns = INT64_MAX, BSM_EOVERFLOW, "columns=");
    EXPECT((m.pitch = INT64_MAX - 1, m.rows = 3), BSM_EOVERFLOW, "rows=");
    EXPECT((m.batch = INT64_MAX / 64, m.batch_pitch = 1 << 20), BSM_EOVERFLOW, "batch=");
}

/* Each code of an MN-major matrix where the header says, and nowhere else; sizes; names. */
static void codes_of_columns(struct test *t)
{
    static const struct { bsm_format format; int bits; int64_t pitch; } kinds[] = {
        { BSM_MXFP4, 4, 8 }, { BSM_MXFP6_E2M3, 6, 8 }, { BSM_MXFP8_E4M3, 8, 7 }, { BSM_FORMAT_BF16, 16, 9 } };
    enum { ROWS = 7, COLUMNS = 33 };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const int64_t pitch_bits = kinds[i].pitch * kinds[i].bits;
        bsm_matrix m = { .struct_size = sizeof m, .format = kinds[i].format, .major = BSM_MAJOR_MN, .rows = ROWS,
                         .columns = COLUMNS, .data = memory, .pitch = kinds[i].pitch,
                         .scales = kinds[i].bits < 16 ? memory + 4096 : NULL };
        int64_t bytes = 0;
        CHECK(t, bsm_matrix_data_bytes(&m, &bytes) == BSM_OK
                     && bytes == ((COLUMNS - 1) * pitch_bits + ROWS * kinds[i].bits + 7) / 8);
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t k = 0; k < COLUMNS; k++) {
                const uint32_t want = (uint32_t)(1 + r * 5 + k * 3) % (1u << (kinds[i].bits - 1));
                uint32_t got = 0, code = 0;
                CHECK(t, bsm_matrix_set_code(&m, 0, r, k, want) == BSM_OK);
                CHECK(t, bsm_matrix_get_code(&m, 0, r, k, &code) == BSM_OK && code == want);
                const int64_t first = k * pitch_bits + r * kinds[i].bits;
                for (int bit = 0; bit < kinds[i].bits; bit++)
                    got |= (uint32_t)(memory[(first + bit) / 8] >> (first + bit) % 8 & 1) << bit;
                if (got != want) FAIL(t, "%d bits: (%d, %d) is %x", kinds[i].bits, (int)r, (int)k, (unsigned)got);
            }
    }
    CHECK(t, strcmp(bsm_major_name(BSM_MAJOR_MN), "mn") == 0 && bsm_major_name(BSM_MAJOR_COUNT) == NULL);
    CHECK(t, bsm_major_from_name("K") == BSM_MAJOR_K && bsm_major_from_name("n") == -1
                 && bsm_major_from_name(NULL) == -1);
}

/* What writes a matrix, or reads one otherwise than as an operand. */
static void only_operands_are_mn_major(struct test *t)
{
    float numbers[4 * 64] = { 0 };
    const bsm_real_matrix real = { .struct_size = sizeof real, .rows = 4, .columns = 64, .data = numbers,
                                   .row_stride = 64, .column_stride = 1 };
    bsm_matrix m = good();
    bsm_context *context = NULL;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    m.major = BSM_MAJOR_MN;
    CHECK(t, bsm_quantize(context, &real, NULL, &m, NULL) == BSM_EUNSUPPORTED
                 && strstr(bsm_last_error(), "destination->major=mn") != NULL);
    CHECK(t, bsm_dequantize(context, &m, &real) == BSM_EUNSUPPORTED
                 && strstr(bsm_last_error(), "source->major=mn") != NULL);
    bsm_context_destroy(context);
}

#define EXPECT_SPARSE(change, status, words) \
    do { \
        bsm_sparse_matrix s = { .matrix = good(), .sparsity = BSM_SPARSITY_2_4, .metadata = memory }; \
        s.matrix.struct_size = sizeof s; \
        change; \
        expect(t, __LINE__, &s.matrix, status, words); \
    } while (0)

static void rules_of_sparse_matrices(struct test *t)
{
    EXPECT_SPARSE((void)0, BSM_OK, "");
    EXPECT_SPARSE(s.sparsity = BSM_SPARSITY_COUNT, BSM_EINVAL, "sparsity=3");
    EXPECT_SPARSE(s.sparsity = BSM_SPARSITY_NONE, BSM_EINVAL, "metadata is given, but sparsity is none");
    EXPECT_SPARSE(s.metadata = NULL, BSM_EINVAL, "metadata is NULL, but sparsity is 2:4");
    EXPECT_SPARSE(s.matrix.columns = 62, BSM_EINVAL, "columns=62: with sparsity 2:4");
    EXPECT_SPARSE(s.matrix.pitch = 30, BSM_EINVAL, "pitch=30: it counts elements and must be >= columns/2=32");
    EXPECT_SPARSE(s.matrix.pitch = 32, BSM_OK, "");
    EXPECT_SPARSE(s.matrix.major = BSM_MAJOR_MN, BSM_EUNSUPPORTED, "sparse matrices are K-major");
    EXPECT_SPARSE(s.matrix.packing = BSM_PACKING_GGUF, BSM_EINVAL, "packing gguf has no metadata");
    EXPECT_SPARSE(s.metadata_pitch = 7, BSM_EINVAL, "metadata_pitch=7: it counts bytes and must be >= 8");
    EXPECT_SPARSE(s.metadata_pitch = INT64_MAX, BSM_EOVERFLOW, "rows=");
    EXPECT_SPARSE((s.sparsity = BSM_SPARSITY_4_8_PAIRS, s.matrix.format = BSM_MXFP8_E4M3), BSM_EINVAL,
                  "sparsity=4:8 is for elements of 4 bits, kept in pairs; mxfp8_e4m3 has 8");
}

/* Half the codes, scales for twice the columns, four bits for each group. */
static void sizes_of_sparse_matrices(struct test *t)
{
    static const struct {
        bsm_format format;
        bsm_sparsity sparsity;
        int64_t columns, data, scales, metadata;
    } sizes[] = {
        { BSM_MXFP4, BSM_SPARSITY_2_4, 132, 4 * 33, 4 * 3, 4 * 17 },
        { BSM_MXFP4, BSM_SPARSITY_4_8_PAIRS, 136, 4 * 34, 4 * 3, 4 * 9 },
        { BSM_NVFP4, BSM_SPARSITY_4_8_PAIRS, 128, 4 * 32, 4 * 4, 4 * 8 },
        { BSM_MXFP8_E4M3, BSM_SPARSITY_2_4, 64, 4 * 32, 4, 4 * 8 },
        { BSM_FORMAT_BF16, BSM_SPARSITY_2_4, 64, 4 * 64, 0, 4 * 8 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t data = -1, scales = -1, metadata = -1;
        bsm_sparse_matrix s = { .matrix = { .struct_size = sizeof s, .format = sizes[i].format, .rows = 4,
                                            .columns = sizes[i].columns }, .sparsity = sizes[i].sparsity };
        const bsm_matrix *m = &s.matrix;
        CHECK(t, bsm_matrix_data_bytes(m, &data) == BSM_OK && bsm_matrix_scale_bytes(m, &scales) == BSM_OK
                     && bsm_matrix_metadata_bytes(m, &metadata) == BSM_OK);
        if (data != sizes[i].data || scales != sizes[i].scales || metadata != sizes[i].metadata)
            FAIL(t, "case %d: %d, %d, %d bytes", (int)i, (int)data, (int)scales, (int)metadata);
        CHECK(t, bsm_matrix_scale_columns(m) * 4 == scales);
        s.metadata_pitch = 40, s.matrix.batch = 2, s.metadata_batch_pitch = 1000;
        CHECK(t, bsm_matrix_metadata_bytes(m, &metadata) == BSM_OK
                     && metadata == 1000 + 3 * 40 + sizes[i].metadata / 4);
        s.sparsity = BSM_SPARSITY_NONE;
        CHECK(t, bsm_matrix_metadata_bytes(m, &metadata) == BSM_OK && metadata == 0);
    }
    CHECK(t, strcmp(bsm_sparsity_name(BSM_SPARSITY_4_8_PAIRS), "4:8") == 0 && bsm_sparsity_name(3) == NULL);
    CHECK(t, bsm_sparsity_from_name("2:4") == BSM_SPARSITY_2_4 && bsm_sparsity_from_name("1:2") == -1
                 && bsm_sparsity_from_name(NULL) == -1);
}

static void sizes_follow_the_packing(struct test *t)
{
    static const struct {
        bsm_format format;
        bsm_packing packing;
        bsm_layout layout;
        int64_t rows, columns, data, scales;
    } sizes[] = {
        { BSM_MXFP4, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR, 3, 33, 51, 6 },
        { BSM_MXFP4, BSM_PACKING_DEFAULT, BSM_LAYOUT_128X4, 129, 2880, 129 * 1440, 2 * 23 * 512 },
        { BSM_MXFP4, BSM_PACKING_BYTES, BSM_LAYOUT_LINEAR, 3, 33, 99, 6 },
        { BSM_NVFP4, BSM_PACKING_HIGH_FIRST, BSM_LAYOUT_8X4, 9, 50, 225, 2 * 32 },
        { BSM_MXFP6_E2M3, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR, 2, 5, 6 + 4, 2 },
        { BSM_MXFP4, BSM_PACKING_GGUF, BSM_LAYOUT_GGUF_MXFP4, 2, 33, 4 * 17, 0 },
        { BSM_NVFP4, BSM_PACKING_GGUF, BSM_LAYOUT_GGUF_NVFP4, 2, 65, 4 * 36, 0 },
        { BSM_FORMAT_FP32, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR, 5, 7, 140, 0 },
        { BSM_FORMAT_BF16, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR, 0, 7, 0, 0 },
        { BSM_MXINT8, BSM_PACKING_DEFAULT, BSM_LAYOUT_LINEAR, 5, 0, 0, 0 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bsm_matrix m = { .struct_size = sizeof m, .format = sizes[i].format, .packing = sizes[i].packing,
                         .rows = sizes[i].rows,
                         .columns = sizes[i].columns, .scale_layout = { .kind = sizes[i].layout } };
        int64_t data = -1, scales = -1;
        CHECK(t, bsm_matrix_data_bytes(&m, &data) == BSM_OK && data == sizes[i].data);
        CHECK(t, bsm_matrix_scale_bytes(&m, &scales) == BSM_OK && scales == sizes[i].scales);
        m.batch = 3;                      /* tight batches follow one another: pitch-rounded rows */
        int64_t more = -1;
        CHECK(t, bsm_matrix_data_bytes(&m, &more) == BSM_OK && more >= 3 * data);
        CHECK(t, bsm_matrix_scale_bytes(&m, &more) == BSM_OK && more == 3 * scales);
    }
}

/* Sizes far beyond 2^31 and 2^32, counted without memory. */
static void large_sizes_are_counted_in_64_bits(struct test *t)
{
    bsm_matrix m = { .struct_size = sizeof m, .format = BSM_NVFP4, .rows = (int64_t)1 << 21,
                     .columns = (int64_t)1 << 14,
                     .scale_layout = { .kind = BSM_LAYOUT_128X4 } };
    int64_t bytes;
    CHECK(t, bsm_matrix_data_bytes(&m, &bytes) == BSM_OK && bytes == (int64_t)1 << 34);
    CHECK(t, bsm_matrix_scale_bytes(&m, &bytes) == BSM_OK && bytes == (int64_t)1 << 31);
    m.data = memory, m.scales = memory;   /* never touched */
    struct bsmi_matrix r;
    CHECK_OR_RETURN(t, bsmi_matrix_resolve("m", &m, &r) == BSM_OK);
    CHECK(t, bsmi_row(&r, 0, m.rows - 1) - r.data == ((int64_t)1 << 34) - ((int64_t)1 << 13));
    m.batch = 5, m.batch_pitch = (int64_t)1 << 36, m.scale_batch_pitch = (int64_t)1 << 33;
    CHECK_OR_RETURN(t, bsmi_matrix_resolve("m", &m, &r) == BSM_OK);
    CHECK(t, bsmi_row(&r, 4, 1) - r.data == 4 * ((int64_t)1 << 35) + ((int64_t)1 << 13));
    CHECK(t, bsmi_scale_pointer(&r, 4, 0, 0) - r.scales == (int64_t)1 << 35);
}

static void batches_and_scales_are_addressed(struct test *t)
{
    bsm_matrix m = good();
    m.batch = 3, m.rows = 2, m.columns = 64, m.scale_batch_pitch = 100, m.batch_pitch = 200;
    memset(memory, 0, sizeof memory);
    for (int b = 0; b < 3; b++)
        for (int row = 0; row < 2; row++) {
            CHECK(t, bsm_matrix_set_scale(&m, b, row, 1, (uint8_t)(10 * b + row + 1)) == BSM_OK);
            CHECK(t, bsm_matrix_set_code(&m, b, row, 3, (uint32_t)(4 * b + row + 1)) == BSM_OK);
            CHECK(t, memory[4096 + 100 * b + 2 * row + 1] == 10 * b + row + 1);
            CHECK(t, memory[100 * b + 32 * row + 1] == (4 * b + row + 1) << 4);
        }
    uint8_t scale;
    CHECK(t, bsm_matrix_get_scale(&m, 3, 0, 0, &scale) == BSM_EINVAL && strstr(bsm_last_error(), "batch=3") != NULL);
    CHECK(t, bsm_matrix_get_scale(&m, 0, 0, 2, &scale) == BSM_EINVAL
                 && strstr(bsm_last_error(), "scale_column=2") != NULL);
    m.scales = NULL, m.format = BSM_FORMAT_E4M3;
    CHECK(t, bsm_matrix_get_scale(&m, 0, 0, 0, &scale) == BSM_EINVAL && strstr(bsm_last_error(), "no scales") != NULL);
    CHECK(t, bsm_matrix_scale_columns(&m) == 0);
    m.format = BSM_NVFP4, m.columns = 33;
    CHECK(t, bsm_matrix_scale_columns(&m) == 3);
}

static void tensor_scales_are_finite_and_positive(struct test *t)
{
    static const uint32_t bad[] = { 0, 0x80000000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001 };
    static const uint32_t fine[] = { 1, 0x007fffff, 0x3f800000, 0x7f7fffff };
    bsm_matrix m = good();
    float value;
    struct bsmi_matrix r;
    m.tensor_scale = &value;
    CHECK_OR_RETURN(t, bsmi_matrix_resolve("m", &m, &r) == BSM_OK);
    float read;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memcpy(&value, &bad[i], 4);
        CHECK(t, bsmi_matrix_tensor_scale("m", &r, &read) == BSM_EINVAL
                     && strstr(bsm_last_error(), "*m->tensor_scale") != NULL);
    }
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        memcpy(&value, &fine[i], 4);
        CHECK(t, bsmi_matrix_tensor_scale("m", &r, &read) == BSM_OK && memcmp(&read, &fine[i], 4) == 0);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case tests[] = {
        TEST(rules_are_enforced_by_name), TEST(codes_of_columns), TEST(only_operands_are_mn_major),
        TEST(rules_of_sparse_matrices), TEST(sizes_of_sparse_matrices), TEST(sizes_follow_the_packing),
        TEST(large_sizes_are_counted_in_64_bits),
        TEST(batches_and_scales_are_addressed), TEST(tensor_scales_are_finite_and_positive),
    };
    return TEST_MAIN(argc, argv, tests);
}
