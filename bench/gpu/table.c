/* The table's rows, as text and as JSON, see table.h. */
#include "table.h"
#include "cli/cli.h"

#include <math.h>

static const double microseconds = 1e6, per_million = 1e9; /* errors are printed in 1e-9 */

const struct section_about table_sections[SECTIONS] = {
    [SECTION_PREPARED] = { "against cuBLAS on the same values in bf16, dequantized beforehand; in turn", "us", microseconds, 0.9,
                           1.0 },
    [SECTION_DEQUANTIZED] = { "against dequantizing and cuBLAS, timed together; in turn", "us", microseconds, 1.0, 1.1 },
    [SECTION_TRITON] = { "against Triton's dot_scaled, the best of several tiles; in turn", "us", microseconds, 3.0, 3.3 },
    [SECTION_SETTLED_PREPARED] = { "against cuBLAS on bf16, each by itself at its own clock", "us", microseconds, 0.9, 1.0 },
    [SECTION_SETTLED_DEQUANTIZED] = { "against dequantizing and cuBLAS, each by itself at its own clock", "us", microseconds, 1.0,
                                      1.1 },
    [SECTION_FAST] = { "BSM_COMPUTE_FAST against cuBLAS on the same values in bf16; in turn", "us", microseconds, 1.4, 1.55 },
    [SECTION_SETTLED_FAST] = { "BSM_COMPUTE_FAST against cuBLAS on bf16, each by itself at its own clock", "us", microseconds, 1.4, 1.55 },
    [SECTION_FAST_FP8] = { "BSM_COMPUTE_FAST against cuBLASLt on fp8 with one scale for a matrix; in turn", "us", microseconds, 0.9, 1.0 },
    [SECTION_SETTLED_FAST_FP8] = { "BSM_COMPUTE_FAST against cuBLASLt on fp8 with one scale for a matrix, each by itself at its own clock", "us",
                                   microseconds, 0.9, 1.0 },
    [SECTION_SMALL] = { "few rows, against dequantizing and cuBLAS, timed together; in turn", "us", microseconds, 1.0, 1.2 },
    [SECTION_SMALL_PREPACKED] = { "weights packed once, few rows against dequantizing and cuBLAS, timed together; in turn", "us", microseconds, 1.0, 1.2 },
    [SECTION_SMALL_PREPARED] = { "few rows, against cuBLAS on bf16 dequantized beforehand; in turn", "us", microseconds, 0, 0 },
    [SECTION_TOKENS] = { "1 to 16 rows, against cuBLAS on bf16 dequantized beforehand; in turn", "us", microseconds, 3.5, 4.2 },
    [SECTION_TENS] = { "32 and 64 rows, against cuBLAS on bf16 dequantized beforehand; in turn", "us", microseconds, 2.8, 3.5 },
    [SECTION_SHORT] = { "1 to 64 rows, 2880x2880, against cuBLAS on bf16 dequantized beforehand; in turn", "us", microseconds, 2.0, 3.0 },
    [SECTION_ERROR] = { "largest |D - exact| over the sum of |a||b|, 4096 elements, D fp32", "1e-9", per_million, 1 / 1.5, 1.0 },
    [SECTION_QUANTIZE] = { "quantizing along K, against a device copy of the same bytes", "us", microseconds, 0.85, 0.92 },
    [SECTION_QUANTIZE_BOTH] = { "quantizing rows and the transposed copy, against a device copy of the same bytes", "us", microseconds, 0.80,
                                0.90 },
    [SECTION_CONVERT] = { "scale layouts, against a device copy of the same bytes", "us", microseconds, 0.80, 0.90 },
    [SECTION_PARTS] = { "parts: what a product consists of; in turn", "us", microseconds, 0, 0 },
};

struct row *table_row(struct table *table, enum section section, const char *work, const char *shape, const char *peer)
{
    if (table->count == TABLE_ROWS) gpu_stop("more than %d rows", TABLE_ROWS);
    struct row *row = &table->rows[table->count++];
    *row = (struct row){ .section = section };
    snprintf(row->work, sizeof row->work, "%s", work);
    snprintf(row->shape, sizeof row->shape, "%s", shape);
    snprintf(row->peer, sizeof row->peer, "%s", peer);
    return row;
}

void row_values(struct row *row, double ours, double theirs)
{
    row->served = true;
    row->ours = ours, row->theirs = theirs;
    row->ratio = ours <= theirs && ours >= theirs ? 1 : theirs / ours;      /* both errors may be 0 */
}

void row_times(struct row *row, const struct way *ours, const struct way *theirs, const struct loop_state *state,
               const struct loop_state *their_state)
{
    row_values(row, measure_median(&ours->contender), measure_median(&theirs->contender));
    row->paired = measure_paired_ratio(&theirs->contender, &ours->contender);
    row->state = *state, row->their_state = *their_state;
}

const char *row_verdict(const struct row *row)
{
    const struct section_about *about = &table_sections[row->section];
    if (!row->served || about->reach <= 0) return "";
    return row->ratio >= about->aim ? "aim" : row->ratio >= about->reach ? "reach" : "below";
}

/* Text ------------------------------------------------------------------------------------------------------------------------- */

static void state_text(const struct loop_state *state, char *text, size_t room)
{
    text[0] = '\0';
    if (state->known) snprintf(text, room, "%.0f MHz %.0f W%s", state->mhz, state->watts, state->power_capped ? " capped" : "");
}

static void print_row(struct cli_table *out, const struct row *row)
{
    const struct section_about *about = &table_sections[row->section];
    char state[48];
    state_text(&row->state, state, sizeof state);
    cli_table_cell(out, "%s", row->work);
    cli_table_cell(out, "%s", row->shape);
    if (row->served) {
        cli_table_cell(out, "%.2f", row->ours * about->scale);
        cli_table_cell(out, "%.2f", row->theirs * about->scale);
        cli_table_cell(out, "%.3f", row->ratio);
        if (row->paired > 0) cli_table_cell(out, "%.3f", row->paired);
        else cli_table_cell(out, " ");
    } else {
        for (int i = 0; i < 4; i++) cli_table_cell(out, i == 0 ? "not served" : " ");
    }
    cli_table_cell(out, "%s", row_verdict(row));
    cli_table_cell(out, "%s", row->peer);
    cli_table_cell(out, "%s", row->about);
    cli_table_cell(out, "%s", state);
}

static void print_section(const struct table *table, enum section section, FILE *file)
{
    static const struct cli_column columns[] = { { "work", CLI_LEFT },       { "shape", CLI_LEFT },   { "ours", CLI_RIGHT },
                                                 { "peer", CLI_RIGHT },      { "ratio", CLI_RIGHT },  { "paired", CLI_RIGHT },
                                                 { "is", CLI_LEFT },         { "peer is", CLI_LEFT }, { "ours is", CLI_LEFT },
                                                 { "during ours", CLI_LEFT } };
    const struct section_about *about = &table_sections[section];
    int count = 0, below = 0;
    struct cli_table *out = cli_table_new(columns, (int)(sizeof columns / sizeof columns[0]));
    for (int i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];
        if (row->section != section) continue;
        print_row(out, row);
        count++, below += row_verdict(row)[0] == 'b';
    }
    if (count > 0) {
        fprintf(file, "\n%s (%s", about->title, about->unit);
        if (about->reach > 0) fprintf(file, "; reach %.2f, aim %.2f; %d of %d below reach", about->reach, about->aim, below, count);
        fprintf(file, ")\n");
        cli_table_print(out, file);
    }
    cli_table_free(out);
}

void table_print(const struct table *table, FILE *file)
{
    fprintf(file, "%s\n%s, blockscale at %s; %s\n", table->machine, table->date, table->commit, table->peers);
    if (table->lacks[0] != '\0') fprintf(file, "lacks: %s\n", table->lacks);
    fprintf(
        file,
        "medians of %d rounds%s; ratio: the peer's over ours, so above 1 ours is better; paired: median of the rounds' ratios\n",
        table->rounds, table->quick ? " (quick: fewer works and variants)" : "");
    for (int s = 0; s < SECTIONS; s++) print_section(table, (enum section)s, file);
}

/* JSON ------------------------------------------------------------------------------------------------------------------------- */

static void json_state(struct cli_json *json, const char *key, const struct loop_state *state)
{
    if (!state->known) return;
    cli_json_object(json, key);
    cli_json_number(json, "sm_mhz", state->mhz);
    cli_json_number(json, "watts", state->watts);
    cli_json_boolean(json, "power_capped", state->power_capped);
    cli_json_end(json);
}

static void json_row(struct cli_json *json, const struct row *row)
{
    const bool is_error = row->section == SECTION_ERROR;
    cli_json_object(json, NULL);
    cli_json_text(json, "work", row->work);
    cli_json_text(json, "shape", row->shape);
    cli_json_text(json, "peer", row->peer);
    cli_json_text(json, "about", row->about);
    cli_json_boolean(json, "served", row->served);
    if (row->served) {
        cli_json_number(json, is_error ? "ours_error" : "ours_seconds", row->ours);
        cli_json_number(json, is_error ? "peer_error" : "peer_seconds", row->theirs);
        cli_json_number(json, "ratio", row->ratio);
        if (row->paired > 0) cli_json_number(json, "paired_ratio", row->paired);
        if (row_verdict(row)[0] != '\0') cli_json_text(json, "verdict", row_verdict(row));
    }
    json_state(json, "during_ours", &row->state);
    json_state(json, "during_peer", &row->their_state);
    cli_json_end(json);
}

void table_json(const struct table *table, FILE *file)
{
    struct cli_json json = cli_json_to(file);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "machine", table->machine);
    cli_json_text(&json, "date", table->date);
    cli_json_text(&json, "commit", table->commit);
    cli_json_text(&json, "peers", table->peers);
    cli_json_text(&json, "lacks", table->lacks);
    cli_json_integer(&json, "rounds", table->rounds);
    cli_json_boolean(&json, "quick", table->quick);
    cli_json_array(&json, "sections");
    for (int s = 0; s < SECTIONS; s++) {
        const struct section_about *about = &table_sections[s];
        cli_json_object(&json, NULL);
        cli_json_text(&json, "title", about->title);
        cli_json_number(&json, "reach", about->reach);
        cli_json_number(&json, "aim", about->aim);
        cli_json_array(&json, "rows");
        for (int i = 0; i < table->count; i++)
            if (table->rows[i].section == (enum section)s) json_row(&json, &table->rows[i]);
        cli_json_end(&json);
        cli_json_end(&json);
    }
    cli_json_end(&json);
    cli_json_end(&json);
}
