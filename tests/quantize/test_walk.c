/* The way through a matrix: every element once, in pieces of whole blocks, dealt out by the shape alone; also where
 * there are more elements than 32 bits count. */
#include "quantize/walk/walk.h"
#include "test.h"

#include <stdlib.h>

/* Marks every piece of a shape and checks that all columns of all rows were covered once. */
static void check_cover(struct test *t, struct bsmi_shape shape)
{
    const struct bsmi_walk walk = bsmi_walk_make(shape);
    const int64_t pieces = (shape.columns + BSMI_PIECE - 1) / BSMI_PIECE, count = shape.batch * shape.rows * pieces;
    unsigned char *seen = calloc((size_t)count + 1, 1);
    if (seen == NULL) abort();
    CHECK(t, walk.tasks <= BSMI_WALK_TASKS && (count == 0) == (walk.tasks == 0));
    for (int64_t task = 0; task < walk.tasks; task++) {
        struct bsmi_walk_place place = bsmi_walk_start(&walk, task);
        struct bsmi_piece piece;
        int64_t found = 0;
        while (bsmi_walk_next(&walk, &place, &piece)) {
            found++;
            CHECK_OR_RETURN(t,
                            piece.batch >= 0 && piece.batch < shape.batch && piece.row >= 0 && piece.row < shape.rows);
            CHECK_OR_RETURN(t, piece.k >= 0 && piece.k < shape.columns && piece.k % BSMI_PIECE == 0);
            CHECK(t, piece.count == (shape.columns - piece.k < BSMI_PIECE ? shape.columns - piece.k : BSMI_PIECE));
            seen[(piece.batch * shape.rows + piece.row) * pieces + piece.k / BSMI_PIECE]++;
        }
        CHECK(t, found > 0);
    }
    for (int64_t i = 0; i < count; i++)
        if (seen[i] != 1) FAIL(t, "piece %" PRId64 " was visited %d times", i, seen[i]);
    free(seen);
}

static void every_piece_once(struct test *t)
{
    static const struct bsmi_shape shapes[] = { { 1, 1, 1 },     { 16, 256, 1 },   { 17, 257, 1 }, { 33, 8192, 2 },
                                                { 32, 8193, 1 }, { 20, 16385, 3 }, { 1, 1, 5000 }, { 9000, 3, 1 },
                                                { 0, 5, 3 },     { 5, 0, 3 } };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check_cover(t, shapes[i]);
    for (int i = 0; i < 200; i++)
        check_cover(t, (struct bsmi_shape){ rnd_between(t, 1, 200), rnd_between(t, 1, 30000), rnd_between(t, 1, 6) });
}

/* The first piece of the first task and the last of the last one, where a 32-bit product would have wrapped. */
static void shapes_beyond_2_31(struct test *t)
{
    static const struct bsmi_shape shapes[] = { { 70000, 70000, 1 },
                                                { (int64_t)1 << 33, 40, 1 },
                                                { 3, (int64_t)1 << 35, 1 },
                                                { 5, 300, (int64_t)1 << 40 },
                                                { (int64_t)1 << 20, (int64_t)1 << 20, (int64_t)1 << 10 } };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const struct bsmi_walk walk = bsmi_walk_make(shapes[i]);
        struct bsmi_walk_place place = bsmi_walk_start(&walk, 0);
        struct bsmi_piece piece;
        CHECK(t, walk.tasks > 1 && walk.tasks <= BSMI_WALK_TASKS);
        CHECK(t, bsmi_walk_next(&walk, &place, &piece) && piece.batch == 0 && piece.row == 0 && piece.k == 0);
        /* Straight to the last unit: the tasks before it are as long. */
        place = bsmi_walk_start(&walk, walk.tasks - 1);
        CHECK(t, place.end_unit == walk.units && place.unit < place.end_unit);
        place.unit = place.end_unit - 1;
        int64_t batch = -1, row = -1, end = -1;
        while (bsmi_walk_next(&walk, &place, &piece)) batch = piece.batch, row = piece.row, end = piece.k + piece.count;
        CHECK(t, batch == shapes[i].batch - 1 && row == shapes[i].rows - 1 && end == shapes[i].columns);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_piece_once), TEST(shapes_beyond_2_31) };
    return TEST_MAIN(argc, argv, cases);
}
