/* bsm_matmul_exact as a function: strides, shapes, tiles, packings and scale layouts, padding, threads, floating-point
 * modes, failing allocations, and what it refuses. */
#include "counted.h"
#include "exact_help.h"
#include "format/fp_mode.h"

enum { MOST = 80 * 80 };

/* Random finite operands of one shape. */
static void make_pair(struct test *t, bsm_format fa, bsm_format fb, int64_t m, int64_t n, int64_t k, struct operand *a,
                      struct operand *b)
{
    *a = operand_make(fa, m, k), *b = operand_make(fb, n, k);
    operand_fill(t, a, true, 0x30, 0x60), operand_fill(t, b, true, 0x30, 0x60);
}

static void free_pair(struct operand *a, struct operand *b) { operand_free(a), operand_free(b); }

/* Row `row` of a matrix with tight rows and linear scales. */
static bsm_matrix one_row(const bsm_matrix *from, int64_t row)
{
    bsm_matrix m = *from;
    int64_t first, until;
    m.rows = 1;
    bsm_matrix_data_bytes(&m, &first);
    m.rows = row + 1;
    bsm_matrix_data_bytes(&m, &until);
    m.rows = 1;
    m.data = (unsigned char *)from->data + (until - first);
    if (m.scales != NULL) m.scales = (unsigned char *)from->scales + row * bsm_matrix_scale_columns(from);
    return m;
}

/* The products of rows one by one: the judge of everything that has to do with tiles. */
static void one_by_one(struct test *t, bsm_context *context, const struct operand *a, const struct operand *b,
                       bsm_real type, void *data)
{
    const size_t size = bsm_real_bytes((int)type);
    for (int64_t i = 0; i < a->matrix.rows; i++)
        for (int64_t j = 0; j < b->matrix.rows; j++) {
            const bsm_matrix row_a = one_row(&a->matrix, i), row_b = one_row(&b->matrix, j);
            const bsm_real_matrix sum =
                result_of(type, 1, 1, (unsigned char *)data + (size_t)(i * b->matrix.rows + j) * size);
            CHECK(t, bsm_matmul_exact(context, &row_a, &row_b, &sum, NULL) == BSM_OK);
        }
}

static void tiles_and_threads(struct test *t)
{
    static const bsm_format pairs[][2] = { { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_NVFP4, BSM_MXFP4 },
                                           { BSM_FORMAT_FP32, BSM_MXFP6_E3M2 }, { BSM_FORMAT_FP16, BSM_FORMAT_FP16 } };
    static const int64_t shapes[][3] = { { 1, 1, 300 },  { 31, 33, 40 }, { 32, 32, 256 }, { 33, 65, 257 },
                                         { 66, 70, 17 }, { 1, 80, 512 }, { 80, 1, 513 } };
    static const int threads[] = { 1, 2, 3, 7 };
    static uint32_t want[MOST], got[MOST];
    bsm_context *context = context_or_stop(1);
    for (int p = 0; p < 4; p++)
        for (int s = 0; s < 7; s++) {
            const int64_t m = shapes[s][0], n = shapes[s][1];
            struct operand a, b;
            make_pair(t, pairs[p][0], pairs[p][1], m, n, shapes[s][2], &a, &b);
            one_by_one(t, context, &a, &b, BSM_REAL_FP32, want);
            for (int r = 0; r < 4; r++) {
                CHECK(t, bsm_context_set_threads(context, threads[r]) == BSM_OK);
                memset(got, 0xff, sizeof got);
                const bsm_real_matrix sum = result_of(BSM_REAL_FP32, m, n, got);
                CHECK(t, bsm_matmul_exact(context, &a.matrix, &b.matrix, &sum, NULL) == BSM_OK);
                if (memcmp(got, want, (size_t)(m * n) * 4) != 0)
                    FAIL(t, "pair %d shape %d threads %d", p, s, threads[r]);
                CHECK(t, got[m * n] == 0xffffffff);
            }
            free_pair(&a, &b);
        }
    bsm_context_destroy(context);
}

/* Every stride that a result may have, on both results, with everything between the elements untouched. */
static void strides(struct test *t)
{
    static const struct { int64_t row, column; } cases[] = { { 7, 1 },  { 1, 5 },   { 20, 3 }, { -7, 1 },
                                                             { 7, -1 }, { -9, -1 }, { 2, -11 } };
    enum { M = 5, N = 7, ROOM = 400, MIDDLE = 200 };
    static uint64_t want[M * N], want_magnitude[M * N];
    bsm_context *context = context_or_stop(2);
    struct operand a, b;
    make_pair(t, BSM_MXFP4, BSM_FORMAT_BF16, M, N, 50, &a, &b);
    for (int type = 0; type < BSM_REAL_COUNT; type++) {
        const bsm_real_matrix tight = result_of((bsm_real)type, M, N, want);
        const bsm_real_matrix tight_magnitude = result_of((bsm_real)type, M, N, want_magnitude);
        CHECK(t, bsm_matmul_exact(context, &a.matrix, &b.matrix, &tight, &tight_magnitude) == BSM_OK);
        for (int c = 0; c < 7; c++) {
            static uint64_t room[2][ROOM];
            memset(room, 0xff, sizeof room);
            const size_t size = bsm_real_bytes(type);
            bsm_real_matrix sum = result_of((bsm_real)type, M, N, (unsigned char *)room[0] + MIDDLE * size),
                            magnitude = sum;
            sum.row_stride = cases[c].row, sum.column_stride = cases[c].column;
            magnitude.data = (unsigned char *)room[1] + MIDDLE * size;
            magnitude.row_stride = cases[6 - c].row, magnitude.column_stride = cases[6 - c].column;
            CHECK(t, bsm_matmul_exact(context, &a.matrix, &b.matrix, &sum, &magnitude) == BSM_OK);
            int64_t untouched = 0;
            for (int i = 0; i < M; i++)
                for (int j = 0; j < N; j++) {
                    CHECK(t, load_bits((bsm_real)type, sum.data, i * sum.row_stride + j * sum.column_stride)
                                 == load_bits((bsm_real)type, want, i * N + j));
                    CHECK(t, load_bits((bsm_real)type, magnitude.data,
                                       i * magnitude.row_stride + j * magnitude.column_stride)
                                 == load_bits((bsm_real)type, want_magnitude, i * N + j));
                }
            const uint64_t poison = UINT64_MAX >> (64 - 8 * size);
            for (int which = 0; which < 2; which++)
                for (int64_t i = 0; i < ROOM; i++) untouched += load_bits((bsm_real)type, room[which], i) == poison;
            CHECK(t, untouched == 2 * (ROOM - M * N));
        }
    }
    free_pair(&a, &b);
    bsm_context_destroy(context);
}

/* Packings and layouts --------------------------------------------------------------------------------------------- */

struct storage { bsm_format format; bsm_packing packing; bsm_scale_layout layout; int64_t extra_pitch; };

static const struct storage storages[] = {
    { BSM_MXFP4, BSM_PACKING_LOW_FIRST, { .kind = BSM_LAYOUT_LINEAR }, 0 },
    { BSM_MXFP4, BSM_PACKING_HIGH_FIRST, { .kind = BSM_LAYOUT_128X4 }, 0 },
    { BSM_MXFP4, BSM_PACKING_BYTES, { .kind = BSM_LAYOUT_8X4 }, 5 },
    { BSM_MXFP4, BSM_PACKING_GGUF, { .kind = BSM_LAYOUT_GGUF_MXFP4 }, 0 },
    { BSM_NVFP4, BSM_PACKING_GGUF, { .kind = BSM_LAYOUT_GGUF_NVFP4 }, 64 },
    { BSM_NVFP4, BSM_PACKING_DEFAULT, { .kind = BSM_LAYOUT_128X4 }, 2 },
    { BSM_MXFP6_E2M3, BSM_PACKING_BIT_STREAM, { .kind = BSM_LAYOUT_TILES, .tile_rows = 3, .tile_columns = 2 }, 4 },
    { BSM_MXFP6_E3M2, BSM_PACKING_BYTES, { .kind = BSM_LAYOUT_LINEAR, .pitch = BSM_PITCH_PADDED_16 }, 1 },
    { BSM_MXFP8_E4M3, BSM_PACKING_DEFAULT, { .kind = BSM_LAYOUT_CDNA4_16 }, 3 },
    { BSM_MXFP8_E5M2, BSM_PACKING_BYTES, { .kind = BSM_LAYOUT_CDNA4_32 }, 0 },
    { BSM_MXINT8, BSM_PACKING_DEFAULT, { .kind = BSM_LAYOUT_AITER }, 0 },
    { BSM_MXFP4_BLOCK16, BSM_PACKING_DEFAULT, { .kind = BSM_LAYOUT_DEEPGEMM }, 0 },
    { BSM_MXFP8_E4M3, BSM_PACKING_DEFAULT, { .kind = BSM_LAYOUT_LINEAR, .pitch = 37 }, 0 },
    { BSM_FORMAT_FP16, BSM_PACKING_DEFAULT, { .kind = BSM_LAYOUT_LINEAR }, 1 },
    { BSM_FORMAT_FP32, BSM_PACKING_DEFAULT, { .kind = BSM_LAYOUT_LINEAR }, 3 },
};
enum { STORAGES = sizeof storages / sizeof storages[0] };

/* The same codes and scales in every storage, on both sides, ragged K; 0x00 and then 0xff (NaN scales, among others)
 * wherever nothing is stored.  The judge reads them through the calls for single codes. */
static void packings_layouts_and_padding(struct test *t)
{
    static const int64_t depths[] = { 1, 31, 33, 77, 129 };
    enum { M = 35, N = 3 };
    bsm_context *context = context_or_stop(1);
    for (int s = 0; s < STORAGES; s++)
        for (int d = 0; d < 5; d++) {
            const struct storage *from = &storages[s];
            uint32_t first[2][M * N] = { { 0 } };
            struct operand b = operand_make(BSM_MXFP8_E4M3, N, depths[d]);
            operand_fill(t, &b, true, 120, 130);
            operand_decode(&b);
            for (int fill = 0; fill < 2; fill++) {
                struct test same = *t;                        /* the same random codes */
                struct operand a = operand_make_packed(from->format, M, depths[d], from->packing, from->layout,
                                                       from->extra_pitch, fill * 255);
                operand_fill(&same, &a, true, 1, 100);
                operand_decode(&a);
                uint32_t sums[M * N], turned[M * N];
                const bsm_real_matrix sum = result_of(BSM_REAL_FP32, M, N, sums),
                                      other = result_of(BSM_REAL_FP32, N, M, turned);
                CHECK(t, bsm_matmul_exact(context, &a.matrix, &b.matrix, &sum, NULL) == BSM_OK);
                CHECK(t, bsm_matmul_exact(context, &b.matrix, &a.matrix, &other, NULL) == BSM_OK);
                for (int64_t i = 0; i < M; i++)
                    for (int64_t j = 0; j < N; j++) {
                        if (!product_is_right(&a, i, &b, j, false, BSM_REAL_FP32, sums[i * N + j])
                            || turned[j * M + i] != sums[i * N + j])
                            FAIL(t, "storage %d, K=%d, fill %d, (%d, %d)", s, (int)depths[d], fill, (int)i, (int)j);
                    }
                memcpy(first[fill], sums, sizeof sums);
                operand_free(&a);
            }
            CHECK(t, memcmp(first[0], first[1], sizeof first[0]) == 0);
            operand_free(&b);
        }
    bsm_context_destroy(context);
}

/* Zero sizes, and scales that have no part ------------------------------------------------------------------------- */

static void zero_sizes(struct test *t)
{
    bsm_context *context = context_or_stop(1);
    for (int format = 1; format < BSM_FORMAT_COUNT; format++) {
        uint32_t sums[6] = { 1, 2, 3, 4, 5, 6 }, magnitudes[6] = { 1, 2, 3, 4, 5, 6 };
        bsm_matrix a = { .struct_size = sizeof a, .format = (bsm_format)format, .rows = 2 }, b = a;
        b.rows = 3;
        bsm_real_matrix sum = result_of(BSM_REAL_FP32, 2, 3, sums),
                        magnitude = result_of(BSM_REAL_FP32, 2, 3, magnitudes);
        CHECK(t, bsm_matmul_exact(context, &a, &b, &sum, &magnitude) == BSM_OK);           /* K = 0 */
        for (int i = 0; i < 6; i++) CHECK(t, sums[i] == 0 && magnitudes[i] == 0);

        b.rows = 0, sum.columns = 0, sum.data = NULL;                                      /* N = 0 */
        CHECK(t, bsm_matmul_exact(context, &a, &b, &sum, NULL) == BSM_OK);
        a.rows = 0, b.rows = 3, sum.rows = 0, sum.columns = 3;                             /* M = 0 */
        CHECK(t, bsm_matmul_exact(context, &a, &b, &sum, NULL) == BSM_OK);
    }
    bsm_context_destroy(context);
}

static void tensor_scales_have_no_part(struct test *t)
{
    static float three = 3, tenth = 0.1f;
    bsm_context *context = context_or_stop(1);
    for (int format = 1; format < BSM_FORMAT_COUNT; format++) {
        struct operand a, b;
        uint32_t plain[4], scaled[4];
        make_pair(t, (bsm_format)format, (bsm_format)format, 2, 2, 40, &a, &b);
        const bsm_real_matrix sum = result_of(BSM_REAL_FP32, 2, 2, plain),
                              other = result_of(BSM_REAL_FP32, 2, 2, scaled);
        CHECK(t, bsm_matmul_exact(context, &a.matrix, &b.matrix, &sum, NULL) == BSM_OK);
        a.matrix.tensor_scale = &three, b.matrix.tensor_scale = &tenth;
        b.matrix.tensor_scale_use = BSM_TENSOR_SCALE_DIVIDES;
        CHECK(t, bsm_matmul_exact(context, &a.matrix, &b.matrix, &other, NULL) == BSM_OK);
        CHECK(t, memcmp(plain, scaled, sizeof plain) == 0);
        free_pair(&a, &b);
    }
    bsm_context_destroy(context);
}

/* The caller's surroundings ---------------------------------------------------------------------------------------- */

static void floating_point_modes(struct test *t)
{
    static const bsm_format formats[] = { BSM_FORMAT_FP16, BSM_FORMAT_FP32, BSM_FORMAT_BF16, BSM_MXFP8_E5M2,
                                          BSM_NVFP4 };
    bsm_context *context = context_or_stop(2);
    for (int f = 0; f < 5; f++) {
        struct operand a, b;
        uint16_t want[35 * 3], got[35 * 3];
        make_pair(t, formats[f], BSM_FORMAT_FP16, 35, 3, 20, &a, &b);
        for (int64_t k = 0; k < 20; k++) operand_set(&a, 0, k, 1), operand_set(&b, 0, k, 3);          /* subnormals */
        const bsm_real_matrix sum = result_of(BSM_REAL_FP16, 35, 3, want), other = result_of(BSM_REAL_FP16, 35, 3, got);
        CHECK(t, bsm_matmul_exact(context, &a.matrix, &b.matrix, &sum, NULL) == BSM_OK);
        for (int mode = 0; mode < fp_mode_count; mode++) {
            const struct fp_mode_state before = fp_mode_enter(mode);
            const int direction = fegetround();
            const bsm_status status = bsm_matmul_exact(context, &a.matrix, &b.matrix, &other, NULL);
            const int direction_after = fegetround();
            fp_mode_leave(before);
            CHECK(t, status == BSM_OK && direction == direction_after);
            if (memcmp(want, got, sizeof want) != 0)
                FAIL(t, "%s, mode %s", bsm_format_get((int)formats[f])->name, fp_mode_name(mode));
        }
        free_pair(&a, &b);
    }
    bsm_context_destroy(context);
}

static void failing_allocations(struct test *t)
{
    struct counted counted = { .fail_at = 0 };
    const bsm_allocator allocator = counted_allocator(&counted);
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 2, .allocator = &allocator };
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(&options, &context) == BSM_OK);
    struct operand a, b;
    static uint32_t want[40 * 40], got[40 * 40], other[40 * 40];
    make_pair(t, BSM_MXFP8_E4M3, BSM_NVFP4, 40, 40, 50, &a, &b);
    const bsm_real_matrix first = result_of(BSM_REAL_FP32, 40, 40, want), sum = result_of(BSM_REAL_FP32, 40, 40, got);
    const bsm_real_matrix magnitude = result_of(BSM_REAL_FP32, 40, 40, other);

    const int64_t before = counted.calls, live = counted.live;
    CHECK(t, bsm_matmul_exact(context, &a.matrix, &b.matrix, &first, NULL) == BSM_OK);
    const int64_t needed = counted.calls - before;
    CHECK(t, needed > 0 && counted.live == live);
    for (int forever = 0; forever < 2; forever++)
        for (int64_t n = 1; n <= needed; n++) {
            memset(got, 0xff, sizeof got), memset(other, 0xff, sizeof other);
            counted.fail_at = counted.calls + n, counted.forever = forever != 0;
            CHECK(t, bsm_matmul_exact(context, &a.matrix, &b.matrix, &sum, &magnitude) == BSM_ENOMEM);
            for (int i = 0; i < 40 * 40; i++) CHECK(t, got[i] == 0xffffffff && other[i] == 0xffffffff);
            CHECK(t, counted.live == live);
            counted.fail_at = 0;
            CHECK(t, bsm_matmul_exact(context, &a.matrix, &b.matrix, &sum, &magnitude) == BSM_OK);
            CHECK(t, memcmp(want, got, sizeof want) == 0 && counted.live == live);
        }
    free_pair(&a, &b);
    bsm_context_destroy(context);
    CHECK(t, counted.live == 0 && counted.errors == 0);
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

struct arguments { bsm_context *context; bsm_matrix a, b; bsm_real_matrix sum, magnitude; };

static void check_refused(struct test *t, struct arguments arguments, bsm_status want, const char *named)
{
    const bsm_status status =
        bsm_matmul_exact(arguments.context, &arguments.a, &arguments.b, &arguments.sum, &arguments.magnitude);
    if (status != want || strstr(bsm_last_error(), named) == NULL)
        FAIL(t, "status %d wanted %d, and \"%s\" in \"%s\"", (int)status, (int)want, named, bsm_last_error());
}

static void refusals(struct test *t)
{
    static double sums[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, magnitudes[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    static const double untouched[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    struct operand a, b;
    make_pair(t, BSM_MXFP8_E4M3, BSM_NVFP4, 3, 3, 40, &a, &b);
    const struct arguments good = { context_or_stop(1), a.matrix, b.matrix, result_of(BSM_REAL_FP64, 3, 3, sums),
                                    result_of(BSM_REAL_FP64, 3, 3, magnitudes) };
    struct arguments bad;
#define REFUSED(change, status, named) (bad = good, change, check_refused(t, bad, status, named))
    REFUSED(bad.context = NULL, BSM_EINVAL, "context");
    REFUSED(bad.a.batch = 2, BSM_EINVAL, "a->batch=2");
    REFUSED(bad.b.batch = 3, BSM_EINVAL, "b->batch=3");
    REFUSED(bad.sum.batch = 2, BSM_EINVAL, "sum->batch=2");
    REFUSED(bad.magnitude.batch = 2, BSM_EINVAL, "magnitude->batch=2");
    REFUSED(bad.a.columns = 39, BSM_EINVAL, "a->columns=39");
    REFUSED(bad.sum.rows = 2, BSM_EINVAL, "sum is 2 x 3");
    REFUSED(bad.sum.columns = 4, BSM_EINVAL, "sum is 3 x 4");
    REFUSED(bad.magnitude.rows = 4, BSM_EINVAL, "magnitude is 4 x 3");
    REFUSED(bad.sum.row_stride = 0, BSM_EINVAL, "sum->row_stride");
    REFUSED(bad.magnitude.column_stride = 0, BSM_EINVAL, "magnitude->column_stride");
    REFUSED(bad.a.format = BSM_FORMAT_NONE, BSM_EINVAL, "a->format");
    REFUSED(bad.b.scales = NULL, BSM_EINVAL, "b->scales");
    REFUSED(bad.sum.struct_size = 0, BSM_EINVAL, "sum->struct_size");
    REFUSED(bad.sum.data = bad.magnitude.data, BSM_EINVAL, "magnitude->data");
    REFUSED(bad.magnitude.data = sums + 1, BSM_EINVAL, "magnitude->data");
    REFUSED(bad.a.data = sums + 8, BSM_EINVAL, "sum->data");
    REFUSED(bad.b.scales = magnitudes, BSM_EINVAL, "magnitude->data");
    REFUSED(bad.sum.data = (unsigned char *)sums + 1, BSM_EALIGN, "sum->data");
    REFUSED(bad.magnitude.type = BSM_REAL_COUNT, BSM_EINVAL, "magnitude->type");
#undef REFUSED
    CHECK(t, bsm_matmul_exact(good.context, NULL, &good.b, &good.sum, NULL) == BSM_EINVAL);
    CHECK(t, bsm_matmul_exact(good.context, &good.a, NULL, &good.sum, NULL) == BSM_EINVAL);
    CHECK(t, bsm_matmul_exact(good.context, &good.a, &good.b, NULL, &good.magnitude) == BSM_EINVAL);
    CHECK(t, memcmp(sums, untouched, sizeof sums) == 0 && memcmp(magnitudes, untouched, sizeof sums) == 0);
    CHECK(t, bsm_matmul_exact(good.context, &good.a, &good.b, &good.sum, &good.magnitude) == BSM_OK);
    bsm_context_destroy(good.context);
    free_pair(&a, &b);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(tiles_and_threads), TEST(strides), TEST(packings_layouts_and_padding), TEST(zero_sizes),
        TEST(tensor_scales_have_no_part),
        TEST(floating_point_modes), TEST(failing_allocations), TEST(refusals),
    };
    return TEST_MAIN(argc, argv, cases);
}
