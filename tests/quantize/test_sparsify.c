/* Sparse matrices from real numbers: what is kept, its codes and scales, metadata bit by bit, and the way back; the
 * exact product of sparse operands; bad metadata and what else is refused. */
#include "blockscale.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

static bsm_context *context;

enum { ROWS = 5, COLUMNS = 168, BATCH = 2, MOST = BATCH * ROWS * COLUMNS };

static const struct { bsm_format format; bsm_packing packing; bsm_sparsity sparsity; bsm_layout layout; } kinds[] = {
    { BSM_MXFP8_E4M3, BSM_PACKING_DEFAULT, BSM_SPARSITY_2_4, BSM_LAYOUT_LINEAR },
    { BSM_MXFP6_E3M2, BSM_PACKING_BIT_STREAM, BSM_SPARSITY_2_4, BSM_LAYOUT_128X4 },
    { BSM_MXFP4, BSM_PACKING_LOW_FIRST, BSM_SPARSITY_4_8_PAIRS, BSM_LAYOUT_128X4 },
    { BSM_MXFP4, BSM_PACKING_HIGH_FIRST, BSM_SPARSITY_2_4, BSM_LAYOUT_LINEAR },
    { BSM_MXFP4_BLOCK16, BSM_PACKING_BYTES, BSM_SPARSITY_4_8_PAIRS, BSM_LAYOUT_LINEAR },
    { BSM_NVFP4, BSM_PACKING_LOW_FIRST, BSM_SPARSITY_4_8_PAIRS, BSM_LAYOUT_128X4 },
    { BSM_MXINT8, BSM_PACKING_DEFAULT, BSM_SPARSITY_2_4, BSM_LAYOUT_LINEAR },
    { BSM_FORMAT_E5M2, BSM_PACKING_DEFAULT, BSM_SPARSITY_2_4, BSM_LAYOUT_LINEAR },
    { BSM_FORMAT_BF16, BSM_PACKING_DEFAULT, BSM_SPARSITY_2_4, BSM_LAYOUT_LINEAR },
    { BSM_FORMAT_FP32, BSM_PACKING_DEFAULT, BSM_SPARSITY_2_4, BSM_LAYOUT_LINEAR },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* With memory for MOST elements of any kind. */
struct held {
    union { bsm_matrix m; bsm_sparse_matrix sparse; };
    float tensor_scale;
    unsigned char data[MOST * 4], scales[16384], metadata[MOST];
};

static struct held *hold(int kind, bool sparse)
{
    struct held *h = calloc(1, sizeof *h);
    memset(h->metadata, 0xee, sizeof h->metadata);
    h->tensor_scale = 1;
    h->m = (bsm_matrix){ .struct_size = sizeof h->m, .format = kinds[kind].format, .packing = kinds[kind].packing,
                         .rows = ROWS, .columns = sparse ? COLUMNS : COLUMNS / 2, .batch = BATCH, .data = h->data,
                         .tensor_scale = &h->tensor_scale, .scale_layout = { .kind = kinds[kind].layout } };
    if (bsm_format_get((int)h->m.format)->block != 0) h->m.scales = h->scales;
    if (sparse)
        h->m.struct_size = sizeof h->sparse, h->sparse.sparsity = kinds[kind].sparsity,
        h->sparse.metadata = h->metadata, h->sparse.metadata_pitch = 45, h->sparse.metadata_batch_pitch = 45 * ROWS + 3;
    return h;
}

static bsm_real_matrix view(float *data, int64_t columns)
{
    return (bsm_real_matrix){ .struct_size = sizeof(bsm_real_matrix), .type = BSM_REAL_FP32, .rows = ROWS,
                              .columns = columns, .data = data, .row_stride = columns, .column_stride = 1,
                              .batch = BATCH, .batch_stride = ROWS * columns };
}

/* Small whole numbers, so that groups have zeros and equals; some large ones. */
static void fill(struct test *t, float *x)
{
    for (int i = 0; i < MOST; i++) {
        x[i] = (float)rnd_between(t, -3, 3);
        if (rnd_below(t, 7) == 0) x[i] = (float)rnd_normal(t) * 20;
    }
}

/* By trying all choices: the largest sum of squares, the first of those that are equal in the order of the header. */
static int best_places(const float *x, int unit)
{
    double squares[4] = { 0 };
    int best[2] = { -1, -1 };
    for (int i = 0; i < 4 * unit; i++) squares[i / unit] += (double)x[i] * (double)x[i];
    for (int n = 0; n < 2; n++)
        for (int i = 0; i < 4; i++)
            if (i != best[0] && (best[n] < 0 || squares[i] > squares[best[n]])) best[n] = i;
    return best[0] < best[1] ? best[0] + 4 * best[1] : best[1] + 4 * best[0];
}

struct expected { float kept[MOST / 2], whole[MOST]; bsm_sparsify_stats stats; };

/* Of one source: what is kept, the source with zeros, metadata compared bit by bit. */
static void expect(struct test *t, const float *x, int kind, const struct held *h, struct expected *e)
{
    const int unit = kinds[kind].sparsity == BSM_SPARSITY_2_4 ? 1 : 2, columns = 4 * unit;
    memset(e, 0, sizeof *e);
    for (int row = 0; row < BATCH * ROWS; row++)
        for (int g = 0; g < COLUMNS / columns; g++) {
            const int first = row * COLUMNS + g * columns, places = best_places(x + first, unit);
            const unsigned char *metadata = h->metadata + row / ROWS * (45 * ROWS + 3) + row % ROWS * 45;
            const int64_t cut = e->stats.cut_elements;
            if ((metadata[g / 2] >> (g % 2 != 0 ? 4 : 0) & 15) != places)
                FAIL(t, "kind %d, row %d, group %d: %x, want %x", kind, row, g, metadata[g / 2], places);
            for (int i = 0, kept = 0; i < columns; i++) {
                const float value = x[first + i];
                e->stats.signal += (double)value * (double)value;
                if (i / unit != places % 4 && i / unit != places / 4) {
                    e->stats.cut_elements += value != 0;
                    continue;
                }
                e->stats.kept += (double)value * (double)value;
                e->kept[row * COLUMNS / 2 + g * columns / 2 + kept++] = value;
                e->whole[first + i] = 1;
            }
            e->stats.groups++, e->stats.cut_groups += e->stats.cut_elements != cut;
        }
    for (int row = 0; row < BATCH * ROWS; row++)            /* nothing is written between rows */
        CHECK(t, h->metadata[row / ROWS * (45 * ROWS + 3) + row % ROWS * 45 + (COLUMNS / columns + 1) / 2] == 0xee);
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-12 * fabs(b); }

static void check_stats(struct test *t, const bsm_sparsify_stats *got, const bsm_sparsify_stats *want)
{
    CHECK(t, got->groups == want->groups && got->cut_groups == want->cut_groups
                 && got->cut_elements == want->cut_elements);
    CHECK(t, near(got->signal, want->signal) && near(got->kept, want->kept) && got->kept < got->signal);
}

/* The way back: the kept numbers' own values where they were, zeros elsewhere; and code by code. */
static void check_back(struct test *t, const struct held *sparse, const struct held *dense, const struct expected *e)
{
    static float back[MOST], kept[MOST / 2];
    const bsm_real_matrix to = view(back, COLUMNS), of_kept = view(kept, COLUMNS / 2);
    CHECK_OR_RETURN(t, bsm_dequantize(context, &sparse->m, &to) == BSM_OK);
    CHECK_OR_RETURN(t, bsm_dequantize(context, &dense->m, &of_kept) == BSM_OK);
    int wrong = 0;
    for (int i = 0, k = 0; i < MOST; i++) {
        const bool is_kept = e->whole[i] > 0;
        const float want = is_kept ? kept[k] : 0;
        uint32_t code = 77, of_dense = 0;
        const int64_t batch = i / (ROWS * COLUMNS), row = i / COLUMNS % ROWS;
        if (is_kept)
            CHECK(t, bsm_matrix_get_code(&dense->m, batch, row, k % (COLUMNS / 2), &of_dense) == BSM_OK), k++;
        CHECK(t, bsm_matrix_get_code(&sparse->m, batch, row, i % COLUMNS, &code) == BSM_OK);
        wrong += memcmp(&back[i], &want, sizeof want) != 0 || code != of_dense;
        const bsm_status set = bsm_matrix_set_code(&sparse->m, batch, row, i % COLUMNS, code);
        wrong += set != (is_kept ? BSM_OK : BSM_EINVAL);
    }
    if (wrong != 0) FAIL(t, "%s: %d elements differ", bsm_format_get((int)sparse->m.format)->name, wrong);
}

static void keeps_the_largest(struct test *t)
{
    static float x[MOST];
    static struct expected e;
    for (int kind = 0; kind < KINDS; kind++)
        for (int threads = 1; threads <= 3; threads += 2) {
            struct held *sparse = hold(kind, true), *dense = hold(kind, false);
            bsm_sparsify_stats stats = { .struct_size = sizeof stats };
            bsm_quantize_stats counted = { .struct_size = sizeof counted }, want = counted;
            fill(t, x);
            const bsm_real_matrix from = view(x, COLUMNS), of_kept = view(e.kept, COLUMNS / 2);
            CHECK(t, bsm_context_set_threads(context, threads) == BSM_OK);
            if (bsm_sparsify(context, &from, NULL, &sparse->m, &stats, &counted) != BSM_OK)
                FAIL(t, "%s: %s", bsm_format_get((int)sparse->m.format)->name, bsm_last_error());
            expect(t, x, kind, sparse, &e);
            check_stats(t, &stats, &e.stats);
            CHECK(t, bsm_quantize(context, &of_kept, NULL, &dense->m, &want) == BSM_OK);
            CHECK(t, memcmp(sparse->data, dense->data, sizeof dense->data) == 0
                         && memcmp(sparse->scales, dense->scales, sizeof dense->scales) == 0
                         && memcmp(&counted, &want, sizeof want) == 0);
            CHECK(t, bsm_matrix_check_metadata(&sparse->m) == BSM_OK);
            check_back(t, sparse, dense, &e);
            free(sparse), free(dense);
        }
}

/* NaN and infinity are kept before numbers, and equals from the left. */
static void among_equals(struct test *t)
{
    static const struct { float x[8]; int pairs, metadata; } cases[] = {
        { { 1, 1, -1, 1, 0, 0, 0, 0 }, 0, 0x44 },   { { 1, 2, -2, 2, 0, 0, 0, -1 }, 0, 0xc9 },
        { { 5, 1, NAN, 9, 1, INFINITY, 2, 3 }, 0, 0xde }, { { 3, 3, 4, 0, 0, 5, -1, 4 }, 1, 0x08 },
        { { 1, 1, 1, -1, 0, 1, 0, 0 }, 1, 0x04 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float x[8];
        unsigned char data[4], scales[1], metadata[1] = { 0xff };
        memcpy(x, cases[i].x, sizeof x);
        const bsm_real_matrix from = { .struct_size = sizeof from, .type = BSM_REAL_FP32, .rows = 1, .columns = 8,
                                       .data = x, .row_stride = 8, .column_stride = 1 };
        const bsm_sparse_matrix to = { .matrix = { .struct_size = sizeof to, .format = BSM_MXFP4, .rows = 1,
                                                   .columns = 8, .data = data, .scales = scales },
                                       .sparsity = cases[i].pairs != 0 ? BSM_SPARSITY_4_8_PAIRS : BSM_SPARSITY_2_4,
                                       .metadata = metadata };
        CHECK(t, bsm_sparsify(context, &from, NULL, &to.matrix, NULL, NULL) == BSM_OK);
        if (metadata[0] != cases[i].metadata) FAIL(t, "case %d: %x", (int)i, metadata[0]);
    }
}

/* A dense matrix of the same numbers, by single codes. */
static void copy_dense(struct test *t, const bsm_matrix *from, const bsm_matrix *to)
{
    const int block = bsm_format_get((int)from->format)->block;
    for (int64_t r = 0; r < ROWS; r++) {
        for (int64_t k = 0; k < COLUMNS; k++) {
            uint32_t code = 0;
            CHECK(t, bsm_matrix_get_code(from, 0, r, k, &code) == BSM_OK
                         && bsm_matrix_set_code(to, 0, r, k, code) == BSM_OK);
        }
        for (int64_t s = 0; block != 0 && s * block < COLUMNS; s++) {
            uint8_t scale = 0;
            CHECK(t, bsm_matrix_get_scale(from, 0, r, s / 2, &scale) == BSM_OK
                         && bsm_matrix_set_scale(to, 0, r, s, scale) == BSM_OK);
        }
    }
}

static void exact_product(struct test *t)
{
    static float x[MOST];
    static double sums[3][ROWS * ROWS];
    for (int a = 0; a < KINDS; a++) {
        const int b = (a + 3) % KINDS;
        struct held *sparse[2] = { hold(a, true), hold(b, true) }, *dense[2] = { hold(a, false), hold(b, false) };
        for (int i = 0; i < 2; i++) {
            fill(t, x);
            bsm_real_matrix from = view(x, COLUMNS);
            from.batch = sparse[i]->m.batch = dense[i]->m.batch = 1, dense[i]->m.columns = COLUMNS;
            CHECK(t, bsm_sparsify(context, &from, NULL, &sparse[i]->m, NULL, NULL) == BSM_OK);
            copy_dense(t, &sparse[i]->m, &dense[i]->m);
        }
        for (int i = 0; i < 3; i++) {
            const bsm_real_matrix sum = { .struct_size = sizeof sum, .type = BSM_REAL_FP64, .rows = ROWS,
                                          .columns = ROWS, .data = sums[i], .row_stride = ROWS, .column_stride = 1 };
            CHECK(t, bsm_matmul_exact(context, i > 0 ? &sparse[0]->m : &dense[0]->m,
                                      i > 1 ? &sparse[1]->m : &dense[1]->m, &sum, NULL) == BSM_OK);
            CHECK(t, memcmp(sums[i], sums[0], sizeof sums[0]) == 0);
        }
        for (int i = 0; i < 2; i++) free(sparse[i]), free(dense[i]);
    }
}

static void bad_metadata(struct test *t)
{
    static float x[MOST];
    fill(t, x);
    const bsm_real_matrix real = view(x, COLUMNS);
    struct held *h = hold(2, true);
    CHECK(t, bsm_sparsify(context, &real, NULL, &h->m, NULL, NULL) == BSM_OK);
    for (int value = 0; value < 16; value++) {
        const bool legal = value % 4 < value / 4;
        unsigned char *at = &h->metadata[45 * ROWS + 3 + 2 * 45 + 5];
        *at = (unsigned char)((*at & 0x0f) | value << 4);
        const bsm_status status = bsm_matrix_check_metadata(&h->m);
        CHECK(t, status == (legal ? BSM_OK : BSM_EINVAL));
        if (legal) continue;
        char words[80];
        snprintf(words, sizeof words, "matrix->metadata: group 11 of row 2 of matrix 1 is %d, the places %d and %d",
                 value, value % 4, value / 4);
        if (strstr(bsm_last_error(), words) == NULL) FAIL(t, "%s", bsm_last_error());
        x[0] = 123;
        CHECK(t, bsm_dequantize(context, &h->m, &real) == BSM_EINVAL && x[0] > 122);
        CHECK(t, strstr(bsm_last_error(), "source->metadata: group 11") != NULL);
    }
    h->m.batch = 1, h->sparse.metadata = h->metadata + 45 * ROWS + 3;
    double sum[ROWS * ROWS];
    const bsm_real_matrix to = { .struct_size = sizeof to, .type = BSM_REAL_FP64, .rows = ROWS, .columns = ROWS,
                                 .data = sum, .row_stride = ROWS, .column_stride = 1 };
    CHECK(t, bsm_matmul_exact(context, &h->m, &h->m, &to, NULL) == BSM_EINVAL
                 && strstr(bsm_last_error(), "a->metadata: group 11 of row 2 of matrix 0") != NULL);
    free(h);
}

#define REFUSED(change, status, words) \
    do { \
        struct held *h = hold(2, true); \
        bsm_quantize_options options = { .struct_size = sizeof options }; \
        bsm_real_matrix from = view(x, COLUMNS); \
        change; \
        CHECK(t, bsm_sparsify(context, &from, &options, &h->m, NULL, NULL) == (status)); \
        if (strstr(bsm_last_error(), words) == NULL) FAIL(t, "%s", bsm_last_error()); \
        CHECK(t, h->metadata[0] == 0xee && h->data[0] == 0); \
        free(h); \
    } while (0)

static void what_is_refused(struct test *t)
{
    static float x[MOST];
    REFUSED(h->m.struct_size = sizeof h->m, BSM_EINVAL, "destination->sparsity is none");
    REFUSED((h->sparse.sparsity = BSM_SPARSITY_NONE, h->sparse.metadata = NULL), BSM_EINVAL,
            "destination->sparsity is none");
    REFUSED(h->sparse.metadata = NULL, BSM_EINVAL, "destination->metadata is NULL, but sparsity is 4:8");
    REFUSED(h->m.columns = from.columns = 164, BSM_EINVAL, "columns=164: with sparsity 4:8 they are a multiple of 8");
    REFUSED(from.rows = 4, BSM_EINVAL, "rows");
    REFUSED(h->sparse.metadata_pitch = 10, BSM_EINVAL, "metadata_pitch=10: it counts bytes and must be >= 11");
    REFUSED(h->sparse.metadata_batch_pitch = 10, BSM_EINVAL, "metadata_batch_pitch=10");
    REFUSED(h->sparse.metadata_batch_pitch = 46, BSM_EINVAL,
            "destination->metadata_batch_pitch: elements that are written");
    REFUSED(h->sparse.metadata = h->data + 20, BSM_EINVAL, "destination->metadata=");
    REFUSED(h->sparse.metadata = x, BSM_EINVAL, "overlaps source->data");
    REFUSED(h->m.format = BSM_MXFP8_E4M3; h->m.packing = BSM_PACKING_DEFAULT, BSM_EINVAL, "sparsity=4:8 is for");
    REFUSED(options.block_rows = 32, BSM_EUNSUPPORTED, "options->block_rows=32");
    REFUSED(options.recipe = BSM_RECIPE_COUNT, BSM_EINVAL, "options->recipe");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(keeps_the_largest), TEST(among_equals), TEST(exact_product),
                                              TEST(bad_metadata), TEST(what_is_refused) };
    if (bsm_context_create(NULL, &context) != BSM_OK) return 1;
    const int status = TEST_MAIN(argc, argv, cases);
    bsm_context_destroy(context);
    return status;
}
