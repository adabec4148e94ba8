/* What is written must not overlap itself: the rule against marks on every byte. */
#include "matrix/matrix.h"
#include "matrix/reals.h"
#include "matrix/written.h"
#include "test.h"

enum { ROOM = 4096 };

/* Marks [start, start + bytes); true if something was marked before. */
static bool mark(unsigned char *marks, int64_t start, int64_t bytes)
{
    bool again = false;
    for (int64_t i = start; i < start + bytes; i++) again |= marks[i]++ != 0;
    return again;
}

static bool reals_overlap(const bsm_real_matrix *r)
{
    unsigned char marks[ROOM] = { 0 };
    bool again = false;
    for (int64_t b = 0; b < r->batch; b++)
        for (int64_t i = 0; i < r->rows; i++)
            for (int64_t j = 0; j < r->columns; j++)
                again |= mark(marks, ROOM / 2 + b * r->batch_stride + i * r->row_stride + j * r->column_stride, 1);
    return again;
}

/* Nothing that overlaps is accepted, and of what does not, all orders in which dimensions can be nested. */
static void reals(struct test *t)
{
    static float numbers[ROOM];
    int accepted = 0, refused = 0;
    for (int i = 0; i < 60000; i++) {
        const bsm_real_matrix given = { sizeof given,          BSM_REAL_FP32,       rnd_below(t, 5),
                                        rnd_below(t, 5),       numbers + ROOM / 2,  rnd_between(t, -20, 20),
                                        rnd_between(t, -9, 9), 1 + rnd_below(t, 4), rnd_between(t, -80, 80) };
        struct bsmi_reals r;
        CHECK_OR_RETURN(t, bsmi_reals_resolve("r", &given, &r) == BSM_OK);
        const bool overlaps = reals_overlap(&given), refuses = bsmi_reals_check_written("r", &r) != BSM_OK;
        if (overlaps && !refuses) FAIL(t, "seed %" PRIu64 ", case %d: accepted, but it overlaps", t->seed, i);
        accepted += !refuses, refused += overlaps;
    }
    CHECK(t, accepted > 1000 && refused > 1000);
    static const struct { int64_t column, row, batch;
    } nested[] = {
        /* 3 columns, 4 rows, 5 matrices */
        { 1, 3, 12 }, { 1, 15, 3 },  { 4, 1, 12 },   { 20, 1, 4 },   { 5, 15, 1 },
        { 20, 5, 1 }, { -1, 3, 12 }, { 1, -3, -12 }, { 2, 100, -7 },
    };
    for (size_t i = 0; i < sizeof nested / sizeof nested[0]; i++) {
        const bsm_real_matrix given = {
            sizeof given, BSM_REAL_FP32, 4, 3, numbers + ROOM / 2, nested[i].row, nested[i].column, 5, nested[i].batch
        };
        struct bsmi_reals r;
        CHECK_OR_RETURN(t, bsmi_reals_resolve("r", &given, &r) == BSM_OK);
        CHECK(t, !reals_overlap(&given) && bsmi_reals_check_written("r", &r) == BSM_OK);
    }
}

static bool matrix_overlaps(const struct bsmi_matrix *m)
{
    unsigned char marks[2][ROOM] = { { 0 } };
    bool again = false;
    for (int64_t b = 0; b < m->batch; b++) {
        for (int64_t i = 0; i < m->rows; i++)
            again |= mark(marks[0], b * m->batch_bytes + i * m->row_bytes, bsmi_row_used_bytes(m));
        if (m->scale == BSM_UNSCALED || m->packing == BSM_PACKING_GGUF) continue;
        for (int64_t i = 0; i < m->map.padded_rows; i++)
            for (int64_t s = 0; s < m->map.padded_columns; s++)
                again |= mark(marks[1], b * m->scale_batch_bytes + bsmi_scale_at(&m->map, i, s), 1);
    }
    return again;
}

static void matrices(struct test *t)
{
    static const bsm_format formats[] = { BSM_MXFP4, BSM_NVFP4, BSM_MXFP6_E2M3, BSM_MXFP8_E4M3, BSM_FORMAT_FP16 };
    static _Alignas(64) unsigned char memory[64];
    int accepted = 0, refused = 0;
    for (int i = 0; i < 20000; i++) {
        const int64_t columns = 1 + rnd_below(t, 70), rows = 1 + rnd_below(t, 4), unit = 4;
        bsm_matrix given = { .struct_size = sizeof given, .format = formats[rnd_below(t, 5)], .rows = rows,
                             .columns = columns, .data = memory,
                             .batch = 1 + rnd_below(t, 3) };
        if (rnd_below(t, 2) != 0) given.pitch = (columns + unit - 1) / unit * unit + unit * rnd_below(t, 30);
        if (rnd_below(t, 2) != 0) given.batch_pitch = (columns + unit - 1) / unit * unit + unit * rnd_below(t, 70);
        if (given.format != BSM_FORMAT_FP16) {
            given.scales = memory;
            if (rnd_below(t, 3) == 0) given.scale_layout.kind = BSM_LAYOUT_8X4;
            else if (rnd_below(t, 2) == 0) given.scale_layout.pitch = 5 + rnd_below(t, 12);
            if (rnd_below(t, 2) != 0) given.scale_batch_pitch = 5 + rnd_below(t, 64);
        }
        struct bsmi_matrix m;
        if (bsmi_matrix_resolve("m", &given, &m) != BSM_OK) continue;
        const bool overlaps = matrix_overlaps(&m), refuses = bsmi_matrix_check_written("m", &m) != BSM_OK;
        if (overlaps && !refuses) FAIL(t, "seed %" PRIu64 ", case %d: accepted, but it overlaps", t->seed, i);
        accepted += !refuses, refused += overlaps;
    }
    CHECK(t, accepted > 1000 && refused > 1000);
}

/* Rows of two matrices that alternate are accepted, and the sentence names the pitch that is too short. */
static void interleaved_rows_and_sentences(struct test *t)
{
    static _Alignas(64) unsigned char memory[64];
    bsm_matrix given = { .struct_size = sizeof given, .format = BSM_MXFP4, .rows = 3, .columns = 64, .data = memory,
                         .scales = memory,
                         .batch = 2, .pitch = 128, .batch_pitch = 64, .scale_layout = { .pitch = 4 },
                         .scale_batch_pitch = 2 };
    struct bsmi_matrix m;
    CHECK_OR_RETURN(t, bsmi_matrix_resolve("m", &given, &m) == BSM_OK);
    CHECK(t, bsmi_matrix_check_written("m", &m) == BSM_OK);
    given.pitch = 96;
    CHECK_OR_RETURN(t, bsmi_matrix_resolve("m", &given, &m) == BSM_OK);
    CHECK(t, bsmi_matrix_check_written("m", &m) == BSM_EINVAL && strncmp(bsm_last_error(), "m->pitch: ", 10) == 0);
    given.pitch = 128, given.scale_layout.pitch = 3;
    CHECK_OR_RETURN(t, bsmi_matrix_resolve("m", &given, &m) == BSM_OK);
    CHECK(t, bsmi_matrix_check_written("m", &m) == BSM_EINVAL
                 && strncmp(bsm_last_error(), "m->scale_layout.pitch: ", 23) == 0);
    given.rows = 0;
    CHECK_OR_RETURN(t, bsmi_matrix_resolve("m", &given, &m) == BSM_OK);
    CHECK(t, bsmi_matrix_check_written("m", &m) == BSM_OK);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(reals), TEST(matrices), TEST(interleaved_rows_and_sentences) };
    return TEST_MAIN(argc, argv, cases);
}
