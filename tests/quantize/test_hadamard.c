/* Hadamard rotation: against the matrix's definition, back again, what it leaves alone, and what is refused. */
#include "blockscale.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

static bsm_context *context;

static bsm_real_matrix view(bsm_real type, void *data, int64_t rows, int64_t columns, int64_t row_stride,
                            int64_t column_stride)
{
    return (bsm_real_matrix){ .struct_size = sizeof(bsm_real_matrix),
                              .type = type,
                              .rows = rows,
                              .columns = columns,
                              .data = data,
                              .row_stride = row_stride,
                              .column_stride = column_stride };
}

static int hadamard_sign(int i, int j) { return __builtin_popcount((unsigned)(i & j)) % 2 != 0 ? -1 : 1; }

static void random_signs(struct test *t, int8_t *signs)
{
    for (int i = 0; i < 128; i++) signs[i] = rnd_below(t, 2) != 0 ? 1 : -1;
}

/* Whole numbers: sums are exact, so only the factor and the last rounding differ from the definition by less than an
 * ulp. */
static void by_definition(struct test *t)
{
    enum { ROWS = 3, COLUMNS = 384 };
    static float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    int8_t signs[128];
    for (int size = 16; size <= 128; size *= 2)
        for (int inverse = 0; inverse < 2; inverse++)
            for (int threads = 1; threads <= 3; threads += 2) {
                random_signs(t, signs);
                for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)rnd_below(t, 2001) - 1000;
                const bsm_real_matrix from = view(BSM_REAL_FP32, x, ROWS, COLUMNS, COLUMNS, 1),
                                      to = view(BSM_REAL_FP32, y, ROWS, COLUMNS, COLUMNS, 1);
                CHECK(t, bsm_context_set_threads(context, threads) == BSM_OK);
                CHECK_OR_RETURN(t, bsm_hadamard(context, &from, size, signs, inverse != 0, &to) == BSM_OK);
                for (int r = 0; r < ROWS; r++)
                    for (int k = 0; k < COLUMNS; k++) {
                        const int start = k / size * size, i = k % size;
                        long sum = 0;
                        for (int j = 0; j < size; j++)
                            sum += (long)x[r * COLUMNS + start + j] * hadamard_sign(i, j) * (inverse ? 1 : signs[j]);
                        const float want = (float)((double)sum * (1 / sqrt(size)) * (inverse ? signs[i] : 1)),
                                    got = y[r * COLUMNS + k];
                        CHECK_OR_RETURN(t, !(got < want) && !(got > want));
                    }
            }
}

/* There and back is where it was, to rounding; in place too; and a product of two rotated vectors is the product. */
static void there_and_back(struct test *t)
{
    enum { COLUMNS = 256 };
    float x[COLUMNS], w[COLUMNS], rotated[COLUMNS], other[COLUMNS], back[COLUMNS];
    int8_t signs[128];
    for (int size = 16; size <= 128; size *= 2) {
        double plain = 0, turned = 0;
        random_signs(t, signs);
        for (int i = 0; i < COLUMNS; i++) x[i] = (float)rnd_normal(t), w[i] = (float)rnd_normal(t);
        memcpy(other, w, sizeof other);
        const bsm_real_matrix a = view(BSM_REAL_FP32, x, 1, COLUMNS, COLUMNS, 1),
                              b = view(BSM_REAL_FP32, rotated, 1, COLUMNS, COLUMNS, 1);
        const bsm_real_matrix c = view(BSM_REAL_FP32, back, 1, COLUMNS, COLUMNS, 1),
                              d = view(BSM_REAL_FP32, other, 1, COLUMNS, COLUMNS, 1);
        CHECK(t, bsm_hadamard(context, &a, size, signs, false, &b) == BSM_OK &&
                     bsm_hadamard(context, &b, size, signs, true, &c) == BSM_OK);
        CHECK(t, bsm_hadamard(context, &d, size, signs, false, &d) == BSM_OK);
        for (int i = 0; i < COLUMNS; i++) {
            CHECK(t, fabsf(back[i] - x[i]) <= 4e-7f * 4);
            plain += (double)x[i] * (double)w[i];
            turned += (double)rotated[i] * (double)other[i];
        }
        CHECK(t, fabs(plain - turned) < 1e-4);
    }
}

/* Any strides, types and batches: only the named numbers are written. */
static void views(struct test *t)
{
    enum { ROWS = 5, COLUMNS = 32, BATCH = 2 };
    static float x[BATCH * ROWS * COLUMNS], want[BATCH * ROWS * COLUMNS];
    static float turned[BATCH * COLUMNS * 7];
    static uint16_t half[BATCH * ROWS * COLUMNS];
    for (int i = 0; i < BATCH * ROWS * COLUMNS; i++) x[i] = (float)rnd_below(t, 9) - 4;
    bsm_real_matrix from = view(BSM_REAL_FP32, x, ROWS, COLUMNS, COLUMNS, 1),
                    to = view(BSM_REAL_FP32, want, ROWS, COLUMNS, COLUMNS, 1);
    from.batch = to.batch = BATCH, from.batch_stride = to.batch_stride = ROWS * COLUMNS;
    CHECK(t, bsm_hadamard(context, &from, 16, NULL, false, &to) == BSM_OK);
    for (size_t i = 0; i < sizeof turned / sizeof turned[0]; i++) turned[i] = -77;
    bsm_real_matrix columns = view(BSM_REAL_FP32, turned, ROWS, COLUMNS, 1, 7);
    columns.batch = BATCH, columns.batch_stride = COLUMNS * 7;
    CHECK(t, bsm_hadamard(context, &from, 16, NULL, false, &columns) == BSM_OK);
    bsm_real_matrix halves = view(BSM_REAL_FP16, half, ROWS, COLUMNS, COLUMNS, 1);
    halves.batch = BATCH, halves.batch_stride = ROWS * COLUMNS;
    CHECK(t, bsm_hadamard(context, &from, 16, NULL, false, &halves) == BSM_OK);
    for (int b = 0; b < BATCH; b++)
        for (int k = 0; k < COLUMNS; k++)
            for (int r = 0; r < 7; r++) {
                const float got = turned[(b * COLUMNS + k) * 7 + r],
                            expected = r < ROWS ? want[(b * ROWS + r) * COLUMNS + k] : -77;
                CHECK(t, !(got < expected) && !(got > expected));
            }
    for (int i = 0; i < BATCH * ROWS * COLUMNS; i++) /* multiples of 1/4 up to 16: exact in fp16 */
        CHECK(t, fabs((double)bsm_element_decode(BSM_FP16, half[i]) - (double)want[i]) == 0);
    from.rows = to.rows = 0;
    CHECK(t, bsm_hadamard(context, &from, 16, NULL, false, &to) == BSM_OK);
}

static void refused(struct test *t)
{
    float x[64] = { 1 }, y[64];
    int8_t signs[16];
    for (int i = 0; i < 64; i++) y[i] = 7;
    for (int i = 0; i < 16; i++) signs[i] = 1;
    bsm_real_matrix from = view(BSM_REAL_FP32, x, 2, 32, 32, 1), to = view(BSM_REAL_FP32, y, 2, 32, 32, 1);
    static const int sizes[] = { -16, 0, 1, 2, 8, 15, 17, 24, 129, 256, 1 << 30 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        CHECK(t, bsm_hadamard(context, &from, sizes[i], NULL, false, &to) == BSM_EINVAL &&
                     strstr(bsm_last_error(), "16, 32, 64 or 128") != NULL);
    CHECK(t, bsm_hadamard(context, &from, 64, NULL, false, &to) == BSM_EINVAL &&
                 strstr(bsm_last_error(), "columns=32: blocks of size=64") != NULL);
    signs[3] = 0;
    CHECK(t, bsm_hadamard(context, &from, 16, signs, false, &to) == BSM_EINVAL
                 && strstr(bsm_last_error(), "signs[3]=0") != NULL);
    CHECK(t, bsm_hadamard(NULL, &from, 16, NULL, false, &to) == BSM_EINVAL &&
                 bsm_hadamard(context, NULL, 16, NULL, false, &to) == BSM_EINVAL);
    bsm_real_matrix overlapping = view(BSM_REAL_FP32, x + 1, 1, 32, 32, 1);
    from.rows = 1;
    CHECK(t, bsm_hadamard(context, &from, 16, NULL, false, &overlapping) == BSM_EINVAL
                 && strstr(bsm_last_error(), "overlap") != NULL);
    CHECK(t, bsm_hadamard(context, &from, 16, NULL, false, &to) == BSM_EINVAL &&
                 strstr(bsm_last_error(), "the shapes must be equal") != NULL);
    for (int i = 0; i < 64; i++) CHECK(t, !(y[i] < 7) && !(y[i] > 7));
}

int main(int argc, char **argv)
{
    if (bsm_context_create(NULL, &context) != BSM_OK) return 1;
    static const struct test_case cases[] = { TEST(by_definition), TEST(there_and_back), TEST(views), TEST(refused) };
    const int status = TEST_MAIN(argc, argv, cases);
    bsm_context_destroy(context);
    return status;
}
