/* Whether two regions share a byte: the answer against marks on every byte, against going through all rows where they
 * are too far apart to be marked, and its time where there are millions of rows. */
#include "core/core.h"
#include "matrix/reals.h"
#include "matrix/regions.h"
#include "matrix/written.h"
#include "test.h"

#include <time.h>

enum { ROOM = 1 << 14 };

static bool marks_meet(const struct bsmi_region *x, const struct bsmi_region *y)
{
    static unsigned char marks[ROOM];
    memset(marks, 0, sizeof marks);
    for (int64_t b = 0; b < x->batch; b++)
        for (int64_t i = 0; i < x->rows; i++)
            memset(marks + x->start + b * x->batch_stride + i * x->row_stride, 1, (size_t)x->row_bytes);
    for (int64_t b = 0; b < y->batch; b++)
        for (int64_t i = 0; i < y->rows; i++)
            if (memchr(marks + y->start + b * y->batch_stride + i * y->row_stride, 1, (size_t)y->row_bytes) != NULL)
                return true;
    return false;
}

static void describe(const struct bsmi_region *r, char *text, size_t bytes)
{
    snprintf(text, bytes, "%" PRIu64 ": %" PRId64 " x %" PRId64 " + %" PRId64 " x %" PRId64 ", %" PRId64 " bytes",
             (uint64_t)r->start, r->batch, r->batch_stride, r->rows, r->row_stride, r->row_bytes);
}

static bool agrees(struct test *t, const struct bsmi_region *x, const struct bsmi_region *y, bool meet)
{
    char first[128], second[128];
    if (bsmi_regions_meet(x, y) == meet && bsmi_regions_meet(y, x) == meet) return true;
    describe(x, first, sizeof first), describe(y, second, sizeof second);
    return FAIL(t, "seed %" PRIu64 ": (%s) and (%s) %s", t->seed, first, second, meet ? "meet" : "do not meet"), false;
}

static struct bsmi_region small_region(struct test *t, const struct bsmi_region *like)
{
    struct bsmi_region r = { "r",
                             (uintptr_t)(1 + rnd_below(t, 400)),
                             1 + rnd_below(t, 6),
                             rnd_below(t, 120),
                             1 + rnd_below(t, 7),
                             rnd_below(t, 60),
                             1 + rnd_below(t, 12) };
    if (like != NULL && rnd_below(t, 2) == 0) r.batch_stride = like->batch_stride;
    if (like != NULL && rnd_below(t, 2) == 0) r.row_stride = like->row_stride;
    if (rnd_below(t, 8) == 0) r.row_stride = r.batch_stride;
    return r;
}

/* Every kind: rows in matrices, matrices in rows, stretches over one another, strides of 0, of both alike, of one
 * alone. */
static void small_regions(struct test *t)
{
    int met = 0, apart = 0, inside = 0;
    for (int i = 0; i < 300000; i++) {
        const struct bsmi_region x = small_region(t, NULL), y = small_region(t, &x);
        const bool meet = marks_meet(&x, &y);
        if (!agrees(t, &x, &y, meet)) return;
        const int64_t end =
            (int64_t)x.start + (x.batch - 1) * x.batch_stride + (x.rows - 1) * x.row_stride + x.row_bytes;
        met += meet, apart += !meet, inside += !meet && y.start > x.start && (int64_t)y.start < end;
    }
    CHECK(t, met > 20000 && apart > 20000 && inside > 5000);
}

/* All starts of y, so that stretches which just touch are among them. */
static void every_distance(struct test *t)
{
    for (int i = 0; i < 150; i++) {
        struct bsmi_region x = small_region(t, NULL), y = small_region(t, &x);
        x.start = 1500;
        for (y.start = 1; y.start < 3000; y.start++)
            if (!agrees(t, &x, &y, marks_meet(&x, &y))) return;
    }
}

static bool rows_meet(const struct bsmi_region *x, const struct bsmi_region *y)
{
    for (int64_t bx = 0; bx < x->batch; bx++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t by = 0; by < y->batch; by++)
                for (int64_t j = 0; j < y->rows; j++) {
                    const int64_t apart = (int64_t)(x->start - y->start) + bx * x->batch_stride + i * x->row_stride
                                        - by * y->batch_stride - j * y->row_stride;
                    if (apart < y->row_bytes && -apart < x->row_bytes) return true;
                }
    return false;
}

static struct bsmi_region large_region(struct test *t)
{
    const int64_t scale = (int64_t)1 << rnd_below(t, 54);
    return (struct bsmi_region){ "r",
                                 (uintptr_t)1 << 60,
                                 1 + rnd_below(t, 9),
                                 1 + (int64_t)(rnd(t) % (uint64_t)scale),
                                 1 + rnd_below(t, 9),
                                 1 + (int64_t)(rnd(t) % (uint64_t)scale),
                                 1 + (int64_t)(rnd(t) % (uint64_t)(scale / 64 + 1)) };
}

/* Strides up to 2^54, and y where one of its stretches just meets one of x, or just does not. */
static void large_regions(struct test *t)
{
    int met = 0, apart = 0;
    for (int i = 0; i < 20000; i++) {
        struct bsmi_region x = large_region(t), y = large_region(t);
        if (rnd_below(t, 2) == 0) y.batch_stride = x.batch_stride, y.row_stride = x.row_stride;
        const int64_t place = rnd_below(t, x.batch) * x.batch_stride + rnd_below(t, x.rows) * x.row_stride
                            - rnd_below(t, y.batch) * y.batch_stride - rnd_below(t, y.rows) * y.row_stride;
        y.start = x.start + (uintptr_t)place + (uintptr_t)(rnd_below(t, 2) == 0 ? x.row_bytes : -y.row_bytes)
                  + (uintptr_t)rnd_between(t, -1, 1);
        const bool meet = rows_meet(&x, &y);
        if (!agrees(t, &x, &y, meet)) return;
        met += meet, apart += !meet;
    }
    CHECK(t, met > 2000 && apart > 2000);
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Shapes that took up to seconds each when rows were gone through; now a thousand times each in a second of the
 * processor. */
static void millions_of_rows_take_no_time(struct test *t)
{
    const int64_t row = 128, heads = 256, tokens = 4096, two_30 = (int64_t)1 << 30;
    const struct { struct bsmi_region x, y; bool meet;
    } large[] = {
        /* heads interleaved in one buffer of tokens: two thirds and one third of it; the same, but for a byte */
        { { "x", 1 << 20, heads, row, tokens, 3 * heads * row, row },
          { "y", (1 << 20) + 256 * 128, heads, row, tokens, 3 * heads * row, row },
          false },
        { { "x", 1 << 20, heads, row, tokens, 3 * heads * row, row + 1 },
          { "y", (1 << 20) + 256 * 128, heads, row, tokens, 3 * heads * row, row },
          true },
        { { "x", 1 << 20, heads, row * tokens * 2, tokens, 2 * row, row },
          { "y", (1 << 20) + 128, heads, row * tokens * 2, tokens, 2 * row, row },
          false },
        /* 2^30 rows, between those of the other */
        { { "x", 1 << 20, 1, 0, two_30, 64, 32 }, { "y", (1 << 20) + 32, 1, 0, two_30, 64, 32 }, false },
        { { "x", 1 << 20, 1, 0, two_30, 64, 33 }, { "y", (1 << 20) + 32, 1, 0, two_30, 64, 32 }, true },
        /* pitches of 96 and 64: every third and second 32 bytes are apart by 0 or 32 bytes; of 2^20 + 2 and 2^20:
         * apart until they are not */
        { { "x", 1 << 20, 1, 0, two_30, 96, 16 }, { "y", (1 << 20) + 16, 1, 0, two_30, 64, 16 }, false },
        { { "x", 1 << 20, 1, 0, 1 << 18, (1 << 20) + 2, 1 },
          { "y", (1 << 20) + (1 << 19), 1, 0, 1 << 19, 1 << 20, 1 },
          false },
        { { "x", 1 << 20, 1, 0, (1 << 18) + 1, (1 << 20) + 2, 1 },
          { "y", (1 << 20) + (1 << 19), 1, 0, 1 << 19, 1 << 20, 1 },
          true },
        /* batches of matrices with other pitches */
        { { "x", 1 << 20, heads, row * tokens * 4, tokens, 4 * row, row },
          { "y", (1 << 20) + 2 * 128, heads, row * tokens * 4, tokens * 2, 2 * row, row },
          true },
        { { "x", 1 << 20, heads, row * tokens * 4, tokens, 4 * row, row },
          { "y", (1 << 20) + 128, heads, row * tokens * 4, tokens * 2, 2 * row, row },
          false },
    };
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        const double before = processor_seconds();
        for (int repeat = 0; repeat < 500; repeat++)
            if (!agrees(t, &large[i].x, &large[i].y, large[i].meet)) return;
        const double took = processor_seconds() - before;
        if (took > 1) FAIL(t, "case %d: %.3f s for a thousand answers", (int)i, took);
    }
}

/* Strides that the rules allow because nothing is repeated, and reaches up to the last that they allow. */
static void extreme_descriptions(struct test *t)
{
    static float number;
    static const int64_t wild[] = { INT64_MIN, INT64_MIN + 1, INT64_MAX, -1, 0, 1, 2 };
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++)
        for (size_t j = 0; j < sizeof wild / sizeof wild[0]; j++)
            for (size_t k = 0; k < sizeof wild / sizeof wild[0]; k++) {
                const bsm_real_matrix given = {
                    sizeof given, BSM_REAL_FP32, 1, 1, &number, wild[i], wild[j], 1, wild[k]
                };
                struct bsmi_reals r;
                struct bsmi_regions list = { .count = 0 };
                CHECK_OR_RETURN(t, bsmi_reals_resolve("r", &given, &r) == BSM_OK);
                bsmi_regions_add_reals(&list, "r->data", &r);
                CHECK(t, list.count == 1 && list.all[0].start == (uintptr_t)&number && list.all[0].batch == 1
                             && list.all[0].rows == 1 && list.all[0].row_bytes == (int64_t)sizeof number);
                CHECK(t, bsmi_reals_check_written("r", &r) == BSM_OK);
            }
    const int64_t far = INT64_MAX / 4;
    const bsm_real_matrix both_ends = { sizeof both_ends, BSM_REAL_FP32, 2, 2, &number, far - 1, -far, 1, 0 };
    struct bsmi_reals r;
    struct bsmi_regions list = { .count = 0 };
    CHECK_OR_RETURN(t, bsmi_reals_resolve("r", &both_ends, &r) == BSM_OK);
    bsmi_regions_add_reals(&list, "r->data", &r);
    const struct bsmi_region here = { "here", (uintptr_t)&number, 1, 0, 1, 0, 4 };
    bsmi_regions_meet(&list.all[0], &here);                              /* no memory reaches so far: what matters is
                                                                            that nothing overflows */
    CHECK(t, list.count == 1 && bsmi_reals_check_written("r", &r) == BSM_OK);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(small_regions), TEST(every_distance), TEST(large_regions),
                                              TEST(millions_of_rows_take_no_time), TEST(extreme_descriptions) };
    return TEST_MAIN(argc, argv, cases);
}
