/* The table as text and as JSON. */
#include "bench.h"
#include "cli/cli.h"

static const char *const names[KIND_COUNT] = { "sgemm", "bandwidth", "threads", "copy" };

const char *kind_name(enum kind kind) { return names[kind]; }

double row_ratio(const struct row *row)
{
    return best_of(row->peer, row->rounds) / best_of(row->ours, row->rounds);
}

void row_names(const struct row *row, char *what, char *shape, size_t bytes)
{
    const struct work *w = &row->work;
    const char *a = bsm_format_get((int)w->a)->name, *b = w->kind == KIND_COPY ? NULL : bsm_format_get((int)w->b)->name;
    if (b == NULL) {
        const char *real = bsm_real_name((int)reals_of(w));
        const char *from = (w->how & BACK) != 0 ? a : real, *to = (w->how & BACK) != 0 ? real : a;
        snprintf(what, bytes, "%s -> %s%s", from, to, (w->how & COMPUTED) != 0 ? ", computed" : "");
        snprintf(shape, bytes, "%lldx%lld", (long long)w->m, (long long)w->k);
    } else {
        snprintf(what, bytes, "%s x %s%s", a, b, (w->how & PREPACKED) != 0 ? " prepacked" : "");
        snprintf(shape, bytes, "%lldx%lldx%lld", (long long)w->m, (long long)w->n, (long long)w->k);
    }
}

bsm_real reals_of(const struct work *w) { return (w->how & OF_BF16) != 0 ? BSM_REAL_BF16 : BSM_REAL_FP32; }

int64_t moved_bytes(const struct work *w)
{
    const bsm_matrix m = { .struct_size = sizeof m, .format = w->a, .rows = w->m, .columns = w->k };
    int64_t data = 0, scales = 0;
    bsm_matrix_data_bytes(&m, &data), bsm_matrix_scale_bytes(&m, &scales);
    return w->m * w->k * (int64_t)bsm_real_bytes((int)reals_of(w)) * ((w->how & COMPUTED) != 0 ? 2 : 1) + data + scales;
}

/* Beside what: memcpy with the bytes that it copies, each of which is read and written. */
static void name_of_peer(const struct work *w, char *name, size_t bytes)
{
    if (w->kind == KIND_COPY) snprintf(name, bytes, "memcpy of %.1f MB", 0.5e-6 * (double)moved_bytes(w));
    else snprintf(name, bytes, "%s", w->kind == KIND_SGEMM && w->m == 1 ? "sgemv" : kind_name(w->kind));
}

/* GFLOP/s of a product; GB/s, read and written, of a quantizer. */
static double speed(const struct row *row, const double *seconds)
{
    const struct work *w = &row->work;
    if (w->kind != KIND_COPY) return 2e-9 * (double)w->m * (double)w->n * (double)w->k / best_of(seconds, row->rounds);
    return 1e-9 * (double)moved_bytes(w) / best_of(seconds, row->rounds);
}

void report_text(const struct table *t, FILE *file)
{
    static const struct cli_column columns[] = {
        { "work", CLI_LEFT },   { "shape", CLI_LEFT },   { "beside", CLI_LEFT },
        { "ours", CLI_RIGHT },  { "ratio", CLI_RIGHT },  { "paired", CLI_RIGHT },
        { "reach", CLI_RIGHT }, { "aim", CLI_RIGHT },    { "kernel", CLI_LEFT },
    };
    struct cli_table *table = cli_table_new(columns, 9);
    fprintf(file, "%s (%s), %s, commit %s, load %s at the start\n%d alternating rounds, %d thread%s; peer: %s\n\n",
            t->machine, t->cpu, t->date, t->commit, t->load, t->rounds, t->base, t->base == 1 ? "" : "s",
            t->peer[0] != '\0' ? t->peer : "no BLAS library here: rows beside sgemm are skipped");
    for (int i = 0; i < t->count; i++) {
        const struct row *row = &t->rows[i];
        char what[96], shape[96], beside[48];
        if (!row->measured) continue;
        row_names(row, what, shape, sizeof what);
        name_of_peer(&row->work, beside, sizeof beside);
        cli_table_cell(table, "%s", what);
        cli_table_cell(table, "%s", shape);
        cli_table_cell(table, "%s", beside);
        cli_table_cell(table, "%.1f", speed(row, row->ours));
        cli_table_cell(table, "%.2f", row_ratio(row));
        cli_table_cell(table, "%.2f", paired_ratio(row->peer, row->ours, row->rounds));
        cli_table_cell(table, "%.2f", row->work.reach);
        cli_table_cell(table, "%.2f", row->work.aim);
        cli_table_cell(table, "%s", row->kernel);
    }
    cli_table_print(table, file);
    cli_table_free(table);
    fprintf(file,
            "\nours: GFLOP/s, best round (quantizers: GB/s read and written).  ratio: the peer's time over ours,\n"
            "best over best; paired: median of the rounds' own ratios.  threads: one thread's time over that of\n"
            "several.  bandwidth: the time in which the weights can be read.  memcpy: of half of the bytes that the\n"
            "quantizer reads and writes, so that as many are moved; on one thread.\n");
}

void report_json(const struct table *t, FILE *file)
{
    struct cli_json json = cli_json_to(file);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "machine", t->machine);
    cli_json_text(&json, "cpu", t->cpu);
    cli_json_text(&json, "date", t->date);
    cli_json_text(&json, "commit", t->commit);
    cli_json_text(&json, "load_average", t->load);
    cli_json_text(&json, "peer", t->peer[0] != '\0' ? t->peer : NULL);
    cli_json_integer(&json, "rounds", t->rounds);
    cli_json_integer(&json, "threads", t->base);
    cli_json_array(&json, "rows");
    for (int i = 0; i < t->count; i++) {
        const struct row *row = &t->rows[i];
        char what[96], shape[96];
        if (!row->measured) continue;
        row_names(row, what, shape, sizeof what);
        cli_json_object(&json, NULL);
        cli_json_text(&json, "work", what);
        cli_json_text(&json, "shape", shape);
        cli_json_text(&json, "beside", kind_name(row->work.kind));
        if (row->work.kind == KIND_COPY) cli_json_integer(&json, "copied_bytes", moved_bytes(&row->work) / 2);
        cli_json_text(&json, "kernel", row->kernel);
        cli_json_integer(&json, "threads", row->threads);
        cli_json_number(&json, "speed", speed(row, row->ours));
        cli_json_number(&json, "peer_speed", speed(row, row->peer));
        cli_json_number(&json, "ratio_best", row_ratio(row));
        cli_json_number(&json, "ratio_paired", paired_ratio(row->peer, row->ours, row->rounds));
        cli_json_number(&json, "reach", row->work.reach);
        cli_json_number(&json, "aim", row->work.aim);
        cli_json_end(&json);
    }
    cli_json_end(&json);
    cli_json_end(&json);
}
