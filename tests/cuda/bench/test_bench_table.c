/* The table of bench_gpu: ratios, verdicts, JSON, text and drawing, from rows with known times. */
#include "test.h"
#include "bench/gpu/table.h"

#include <math.h>
#include <stdlib.h>

static struct way way_with(int rounds, const double *seconds)
{
    struct way way = { .contender = { .rounds = rounds } };
    memcpy(way.contender.seconds, seconds, (size_t)rounds * sizeof *seconds);
    return way;
}

static struct table *table_of(int rows)
{
    static struct table table;
    table =
        (struct table){ .machine = "a GPU <1>", .date = "2026-11-21", .commit = "abc", .peers = "peers: \"none\"",
                        .rounds = 3 };
    const struct way ours = way_with(3, (double[]){ 2e-3, 1e-3, 4e-3 }),
                     theirs = way_with(3, (double[]){ 3e-3, 4e-3, 4e-3 });
    const struct loop_state state = { true, 1700, 690, true }, none = { .known = false };
    for (int i = 0; i < rows; i++)
        row_times(table_row(&table, (enum section)(i % SECTIONS), "MXFP8", "1x2x3", "peer & co"), &ours, &theirs,
                  &state, &none);
    return &table;
}

static void ratios_are_of_medians_and_of_rounds(struct test *t)
{
    const struct row *row = &table_of(1)->rows[0];
    CHECK(t, row->served && fabs(row->ours - 2e-3) < 1e-12 && fabs(row->theirs - 4e-3) < 1e-12);
    CHECK(t, fabs(row->ratio - 2) < 1e-12);    /* 4 over 2 */
    CHECK(t, fabs(row->paired - 1.5) < 1e-12); /* the median of 1.5, 4 and 1 */
    CHECK(t, row->state.mhz > 1699 && !row->their_state.known);
}

static void verdicts_follow_the_goals(struct test *t)
{
    struct row row = { .section = SECTION_PREPARED };
    CHECK(t, strcmp(row_verdict(&row), "") == 0); /* no figure */
    row_values(&row, 1, 0.89);
    CHECK(t, strcmp(row_verdict(&row), "below") == 0);
    row_values(&row, 1, 0.9);
    CHECK(t, strcmp(row_verdict(&row), "reach") == 0);
    row_values(&row, 1, 1);
    CHECK(t, strcmp(row_verdict(&row), "aim") == 0);
    row_values(&row, 1, NAN);
    CHECK(t, strcmp(row_verdict(&row), "below") == 0);
    row.section = SECTION_ERROR;
    row_values(&row, 1.5, 1); /* 1.5 times cuBLAS's error is just enough */
    CHECK(t, strcmp(row_verdict(&row), "reach") == 0);
    row.section = SECTION_PARTS;
    CHECK(t, strcmp(row_verdict(&row), "") == 0);
}

/* What a writer wrote; free() it. */
static char *written(const struct table *table, void (*write)(const struct table *, FILE *))
{
    enum { ROOM = 1 << 20 };
    char *text = calloc(1, ROOM);
    FILE *file = tmpfile();
    write(table, file);
    rewind(file);
    if (text == NULL || fread(text, 1, ROOM - 1, file) == 0) exit(1);
    fclose(file);
    return text;
}

static int count_of(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) count++;
    return count;
}

static void every_row_is_written(struct test *t)
{
    struct table *table = table_of(2 * SECTIONS);
    snprintf(table_row(table, SECTION_TRITON, "MXFP6", "1x2x3", "not served by it")->about, 8, "kernel");
    char *text = written(table, table_print), *json = written(table, table_json);
    CHECK(t, count_of(text, "peer & co") == 2 * SECTIONS && count_of(text, "not served") == 2);
    CHECK(t, count_of(json, "\"work\"") == 2 * SECTIONS + 1 && count_of(json, "\"served\": false") == 1);
    CHECK(t, count_of(json, "\"peers\": \"peers: \\\"none\\\"\"") == 1);
    CHECK(t, count_of(json, "\"ours_error\": 0.002") == 2
                 && count_of(json, "\"ours_seconds\": 0.002") == 2 * SECTIONS - 2);
    free(text), free(json);
}

static void bars_end_at_their_ratio(struct test *t)
{
    struct table *table = table_of(0);
    row_values(table_row(table, SECTION_PREPARED, "one", "s", "p"), 1, 1.0);
    row_values(table_row(table, SECTION_PREPARED, "two", "s", "p"), 1, 2.0);
    row_values(table_row(table, SECTION_PREPARED, "half", "s", "p"), 1, 0.5);
    row_values(table_row(table, SECTION_PREPARED, "nothing", "s", "p"), 1, NAN);
    table_row(table, SECTION_PREPARED, "unserved", "s", "p");
    char *svg = written(table, table_picture);
    double x[3] = { 0 }, width[3] = { 0 };
    int bars = 0;
    for (const char *at = strstr(svg, "<rect x="); at != NULL; at = strstr(at + 1, "<rect x=")) {
        double left, wide;
        char colour[16] = "";
        if (sscanf(at, "<rect x=\"%lf\" y=\"%*f\" width=\"%lf\" height=\"11\" fill=\"%7s", &left, &wide, colour) == 3
            && bars < 3)
            x[bars] = left, width[bars] = wide, bars++;
    }
    CHECK(t, bars == 3 && count_of(svg, "nothing") == 0 && count_of(svg, "unserved") == 0);
    /* a factor of two either way */
    CHECK(t, fabs(width[0]) < 0.02 && width[1] > 10 && fabs(width[1] - width[2]) < 0.03);
    CHECK(t, fabs(x[1] - x[0]) < 0.02 && fabs(x[2] + width[2] - x[0]) < 0.03);
    CHECK(t, count_of(svg, "a GPU &lt;1&gt;") > 0 && strstr(svg, "</svg>") != NULL);
    free(svg);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(ratios_are_of_medians_and_of_rounds),
                                              TEST(verdicts_follow_the_goals), TEST(every_row_is_written),
                                              TEST(bars_end_at_their_ratio) };
    return TEST_MAIN(argc, argv, cases);
}
