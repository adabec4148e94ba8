/* blockscale inspect: what a checkpoint holds, what it costs, and how far it is from another one. */
#include "cli/plot/histogram.h"
#include "cli/checkpoint/merge_scales.h"
#include "cli/checkpoint/weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *input, *against, *match, *svg;
    bool tensors;
};

static const struct settings defaults = { .match = "*" };

static const struct cli_option options[] = {
    { "CHECKPOINT", 0, NULL, "a .safetensors or GGUF file, an index of shards, or a folder with one of them",
      CLI_TEXT(struct settings, input), .required = true },
    { "--against", 'a', "ORIGINAL", "a checkpoint with weights of the same names: signal to noise against it",
      CLI_TEXT(struct settings, against) },
    { "--match", 'm', "PATTERNS", "only names that match: shell patterns, separated by commas",
      CLI_TEXT(struct settings, match) },
    { "--tensors", 0, NULL, "every tensor as the file lists it, instead of weights",
      CLI_FLAG(struct settings, tensors) },
    { "--svg", 0, "FILE", "draws how often each scale occurs", CLI_TEXT(struct settings, svg) },
    { .name = NULL }
};

/* What is known of one weight. */
struct line {
    bsm_weight weight;
    double signal, noise, snr_db;
    int64_t not_finite; /* numbers that are not compared */
    bool compared;
};

struct inspection {
    const struct settings *settings;
    bsm_checkpoint *checkpoint, *original;
    struct line *lines;
    int64_t count, wrong, not_read; /* shown; that lie; of kinds that nothing here reads */
    int64_t changed;                /* weights that are other numbers than in the original: the sums are theirs */
    double signal, noise;
    int64_t e8m0[256], ue4m3[256];
    struct merge_scales apart; /* groups of weights that programs fuse, with tensor scales that differ */
};

/* Comparing -------------------------------------------------------------------------------------------------------- */

/* Adds to a line's signal and noise, over numbers that are finite on both sides. */
static void add_noise(const float *got, const float *want, int64_t count, struct line *line)
{
    for (int64_t i = 0; i < count; i++) {
        const double x = (double)want[i], difference = (double)got[i] - x;
        if (!isfinite(difference)) {
            line->not_finite++;
            continue;
        }
        line->signal += x * x;
        line->noise += difference * difference;
    }
}

/* Weights that are the same numbers are in no sum: what quantize of a checkpoint counts too. */
static void add_line(struct inspection *all, const struct line *line)
{
    if (!weights_changed(line->signal, line->noise)) return;
    all->changed++;
    all->signal += line->signal;
    all->noise += line->noise;
}

static double decibels(double signal, double noise) { return 10 * log10(signal / noise); }
static double overall(const struct inspection *all)
{
    return all->changed > 0 ? decibels(all->signal, all->noise) : (double)INFINITY;
}

/* Numbers of one matrix of a weight, row by row as the blocks run. */
static int values_of(struct cli *cli, const bsm_weight *weight, int64_t batch, bool transposed, float *values)
{
    const bsm_matrix *m = &weight->matrix;
    if (!transposed) return weights_values(cli, weight, batch, values);
    float *own = cli_memory(cli, m->rows * m->columns, sizeof *own);
    const int result = weights_values(cli, weight, batch, own);
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t c = 0; c < m->columns; c++) values[c * m->rows + r] = own[r * m->columns + c];
    free(own);
    return result;
}

static int compare_numbers(struct cli *cli, struct line *line, const bsm_weight *original, bool transposed)
{
    const bsm_matrix *m = &line->weight.matrix;
    float *got = cli_memory(cli, m->rows * m->columns, sizeof *got),
          *want = cli_memory(cli, m->rows * m->columns, sizeof *want);
    int result = CLI_DONE;
    for (int64_t b = 0; result == CLI_DONE && b < (m->batch > 1 ? m->batch : 1); b++) {
        result = values_of(cli, &line->weight, b, false, got);
        if (result == CLI_DONE) result = values_of(cli, original, b, transposed, want);
        if (result == CLI_DONE) add_noise(got, want, m->rows * m->columns, line);
    }
    free(got);
    free(want);
    line->compared = result == CLI_DONE;
    return result;
}

static int compare(struct cli *cli, struct inspection *all, struct line *line)
{
    char name[4096];
    bsm_weight original = { .struct_size = sizeof original };
    const bsm_matrix *m = &line->weight.matrix, *o = &original.matrix;
    snprintf(name, sizeof name, "%.*s", (int)line->weight.name_length, line->weight.name);
    if (bsm_checkpoint_find_weight(all->original, name, &original) != BSM_OK
        || original.convention == BSM_CONVENTION_NONE)
        return CLI_DONE;
    const bool transposed =
        weights_is_transposed(all->checkpoint, &line->weight) && original.convention == BSM_CONVENTION_PLAIN;
    const int64_t rows = transposed ? o->columns : o->rows, columns = transposed ? o->rows : o->columns;
    if (rows != m->rows || columns != m->columns || o->batch != m->batch)
        return cli_bad_input(cli, "%s: is %" PRId64 " x %" PRId64 ", in the original %" PRId64 " x %" PRId64, name,
                             m->rows, m->columns, rows, columns);
    const int result = compare_numbers(cli, line, &original, transposed);
    line->snr_db = decibels(line->signal, line->noise);
    add_line(all, line);
    return result;
}

/* Looking ---------------------------------------------------------------------------------------------------------- */

static int look(struct cli *cli, struct inspection *all, int64_t index)
{
    struct line *line = &all->lines[all->count];
    const bsm_tensor tensor = weights_tensor(all->checkpoint, index);
    line->weight = (bsm_weight){ .struct_size = sizeof line->weight };
    const bsm_status status = bsm_checkpoint_weight(all->checkpoint, index, &line->weight);
    if (status == BSM_EUNSUPPORTED) {
        cli_note(cli, "%s", bsm_last_error());
        all->not_read++;
        return CLI_DONE;
    }
    if (status != BSM_OK) {
        cli_library_failed(cli, NULL, status);
        all->wrong++;
        return CLI_DONE;
    }
    if (line->weight.convention == BSM_CONVENTION_NONE ||
        !(weights_match(all->settings->match, line->weight.name, line->weight.name_length) ||
          weights_match(all->settings->match, tensor.name, (int64_t)strlen(tensor.name))))
        return CLI_DONE;
    const bsm_scale scale = bsm_format_get((int)line->weight.matrix.format)->scale;
    if (scale == BSM_E8M0) weights_count_scales(&line->weight, all->e8m0);
    if (scale == BSM_UE4M3) weights_count_scales(&line->weight, all->ue4m3);
    all->count++;
    if (all->original != NULL && compare(cli, all, line) != CLI_DONE)
        all->wrong++; /* said; the others are looked at all the same */
    return CLI_DONE;
}

/* Reports ---------------------------------------------------------------------------------------------------------- */

static void shape_text(const int64_t *shape, int rank, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < rank; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64, i > 0 ? "x" : "", shape[i]);
}

static void weight_shape(const bsm_weight *w, char *text, size_t room)
{
    const int64_t shape[3] = { w->matrix.batch, w->matrix.rows, w->matrix.columns };
    const int first = w->matrix.batch > 1 ? 0 : 1;
    shape_text(shape + first, 3 - first, text, room);
}

static void print_weights(const struct inspection *all)
{
    static const struct cli_column columns[] = { { "weight", CLI_LEFT }, { "written as", CLI_LEFT },
                                                 { "format", CLI_LEFT }, { "shape", CLI_RIGHT },
                                                 { "bits", CLI_RIGHT },  { "tensor scale", CLI_RIGHT },
                                                 { "snr dB", CLI_RIGHT } };
    struct cli_table *table = cli_table_new(columns, all->original != NULL ? 7 : 6);
    for (int64_t i = 0; i < all->count; i++) {
        const struct line *line = &all->lines[i];
        const bsm_weight *w = &line->weight;
        char shape[96];
        weight_shape(w, shape, sizeof shape);
        cli_table_cell(table, "%.*s", (int)w->name_length, w->name);
        cli_table_cell(table, "%s", bsm_convention_name((int)w->convention));
        cli_table_cell(table, "%s", weights_format(w).text);
        cli_table_cell(table, "%s", shape);
        cli_table_cell(table, "%.2f", weights_bits(w));
        if (w->tile_rows > 0) cli_table_cell(table, "tiles");
        else if (w->matrix.tensor_scale == NULL) cli_table_cell(table, "-");
        else
            cli_table_cell(table, "%s%.6g", w->matrix.tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES ? "1/" : "",
                           (double)*w->matrix.tensor_scale);
        if (all->original == NULL) continue;
        if (line->compared) cli_table_cell(table, "%.2f", line->snr_db);
        else cli_table_cell(table, "not there");
    }
    cli_table_print(table, stdout);
    cli_table_free(table);
}

static void print_tensors(const struct inspection *all)
{
    static const struct cli_column columns[] = {
        { "tensor", CLI_LEFT }, { "type", CLI_LEFT }, { "shape", CLI_RIGHT }, { "bytes", CLI_RIGHT }
    };
    struct cli_table *table = cli_table_new(columns, 4);
    for (int64_t i = 0; i < bsm_checkpoint_tensor_count(all->checkpoint); i++) {
        const bsm_tensor t = weights_tensor(all->checkpoint, i);
        const char *word = bsm_tensor_type_name((int)t.type),
                   *type = word != NULL ? word : bsm_gguf_type_name(t.gguf_type);
        char shape[192];
        if (!weights_match(all->settings->match, t.name, (int64_t)strlen(t.name))) continue;
        shape_text(t.shape, t.rank, shape, sizeof shape);
        cli_table_cell(table, "%s", t.name);
        if (type != NULL) cli_table_cell(table, "%s", type);
        else cli_table_cell(table, "gguf %d", t.gguf_type);
        cli_table_cell(table, "%s", t.rank == 0 ? "scalar" : shape);
        cli_table_cell(table, "%" PRId64, t.bytes);
    }
    cli_table_print(table, stdout);
    cli_table_free(table);
}

static int64_t bytes_of_all(const bsm_checkpoint *checkpoint)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < bsm_checkpoint_tensor_count(checkpoint); i++) bytes += weights_tensor(checkpoint, i).bytes;
    return bytes;
}

static bool any(const int64_t *histogram)
{
    for (int i = 0; i < 256; i++)
        if (histogram[i] > 0) return true;
    return false;
}

/* In GGUF files every matrix has its own, and nobody fuses them. */
static void find_apart(const struct cli *cli, struct inspection *all)
{
    const bsm_weight **weights = cli_memory(cli, all->count + 1, sizeof *weights);
    const bool gguf = bsm_checkpoint_get_kind(all->checkpoint) == BSM_CHECKPOINT_GGUF;
    for (int64_t i = 0; i < all->count; i++) weights[i] = &all->lines[i].weight;
    merge_scales_find(cli, weights, all->count, gguf ? "" : fused_usual, &all->apart);
    free(weights);
}

static void print_apart(const struct inspection *all)
{
    if (all->apart.fused.count == 0) return;
    printf("tensor scales differ in ");
    fused_print(&all->apart.fused, stdout);
    printf(": programs that fuse them keep the largest alone;\n"
           "blockscale convert --merge-tensor-scales default merges them\n");
}

static void print_overall(const struct inspection *all)
{
    int64_t compared = 0;
    for (int64_t i = 0; i < all->count; i++) compared += all->lines[i].compared;
    if (all->changed > 0)
        printf("signal to noise of the %" PRId64 " weight%s that changed %.2f dB; %" PRId64 " %s the same numbers\n",
               all->changed, all->changed == 1 ? "" : "s", overall(all), compared - all->changed,
               compared - all->changed == 1 ? "has" : "have");
    else if (compared > 0) printf("every number that was compared is exact\n");
}

static void print_text(const struct inspection *all)
{
    const bsm_checkpoint *c = all->checkpoint;
    if (all->settings->tensors) print_tensors(all);
    else print_weights(all);
    printf("\n%s, %d file%s, %" PRId64 " tensors, %" PRId64 " bytes; %" PRId64 " weights shown",
           bsm_checkpoint_kind_name((int)bsm_checkpoint_get_kind(c)), bsm_checkpoint_file_count(c),
           bsm_checkpoint_file_count(c) == 1 ? "" : "s", bsm_checkpoint_tensor_count(c), bytes_of_all(c), all->count);
    if (all->not_read > 0) printf(", %" PRId64 " of kinds that are not read", all->not_read);
    printf("\n");
    if (all->original != NULL) print_overall(all);
    if (!all->settings->tensors) print_apart(all);
    if (!all->settings->tensors && any(all->e8m0)) histogram_print(BSM_E8M0, all->e8m0);
    if (!all->settings->tensors && any(all->ue4m3)) histogram_print(BSM_UE4M3, all->ue4m3);
}

static void print_weight_json(struct cli_json *json, const struct inspection *all, const struct line *line)
{
    const bsm_weight *w = &line->weight;
    char name[4096];
    snprintf(name, sizeof name, "%.*s", (int)w->name_length, w->name);
    cli_json_object(json, NULL);
    cli_json_text(json, "name", name);
    cli_json_text(json, "convention", bsm_convention_name((int)w->convention));
    cli_json_text(json, "format", bsm_format_get((int)w->matrix.format)->name);
    cli_json_integer(json, "batch", w->matrix.batch);
    cli_json_integer(json, "rows", w->matrix.rows);
    cli_json_integer(json, "columns", w->matrix.columns);
    cli_json_number(json, "bits", weights_bits(w));
    if (w->tile_rows > 0) {
        cli_json_integer(json, "tile_rows", w->tile_rows);
        cli_json_integer(json, "tile_columns", w->tile_columns);
    }
    if (w->matrix.tensor_scale != NULL) {
        cli_json_number(json, "tensor_scale", (double)*w->matrix.tensor_scale);
        cli_json_text(json, "tensor_scale_use",
                      w->matrix.tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES ? "divides" : "multiplies");
    }
    if (all->original != NULL) cli_json_number(json, "snr_db", line->compared ? line->snr_db : (double)NAN);
    cli_json_end(json);
}

static void print_histogram_json(struct cli_json *json, const char *name, const int64_t *histogram)
{
    cli_json_object(json, name);
    for (int code = 0; code < 256; code++) {
        char key[8];
        snprintf(key, sizeof key, "%d", code);
        if (histogram[code] > 0) cli_json_integer(json, key, histogram[code]);
    }
    cli_json_end(json);
}

static void print_json(const struct inspection *all)
{
    const bsm_checkpoint *c = all->checkpoint;
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "kind", bsm_checkpoint_kind_name((int)bsm_checkpoint_get_kind(c)));
    cli_json_integer(&json, "files", bsm_checkpoint_file_count(c));
    cli_json_integer(&json, "tensors", bsm_checkpoint_tensor_count(c));
    cli_json_integer(&json, "bytes", bytes_of_all(c));
    cli_json_integer(&json, "wrong", all->wrong);
    cli_json_integer(&json, "not_read", all->not_read);
    if (all->original != NULL) cli_json_number(&json, "snr_db", overall(all));
    if (all->original != NULL) cli_json_integer(&json, "changed", all->changed);
    cli_json_array(&json, "weights");
    for (int64_t i = 0; i < all->count; i++) print_weight_json(&json, all, &all->lines[i]);
    cli_json_end(&json);
    fused_print_json(&json, "different_tensor_scales", &all->apart.fused);
    print_histogram_json(&json, "e8m0_scales", all->e8m0);
    print_histogram_json(&json, "ue4m3_scales", all->ue4m3);
    cli_json_end(&json);
}

static int draw(struct cli *cli, const struct inspection *all)
{
    struct histogram_panel panels[2];
    char subtitle[256];
    int count = 0;
    if (any(all->e8m0)) panels[count++] = (struct histogram_panel){ "e8m0 scales", BSM_E8M0, all->e8m0 };
    if (any(all->ue4m3)) panels[count++] = (struct histogram_panel){ "ue4m3 scales", BSM_UE4M3, all->ue4m3 };
    if (count == 0) return cli_bad_input(cli, "--svg: no weight that was shown has block scales");
    FILE *file = cli_output(cli, all->settings->svg);
    if (file == NULL) return CLI_BAD_INPUT;
    snprintf(subtitle, sizeof subtitle, "%" PRId64 " weights; how many blocks have each scale", all->count);
    histogram_draw(file, all->settings->input, subtitle, panels, count);
    return CLI_DONE;
}

static void warn_not_finite(const struct cli *cli, const struct inspection *all)
{
    const struct line *first = NULL;
    int64_t weights = 0;
    for (int64_t i = 0; i < all->count; i++) {
        const struct line *line = &all->lines[i];
        if (line->not_finite == 0) continue;
        if (weights++ == 0) first = line;
    }
    if (first == NULL) return;
    cli_note(cli,
             "warning: %" PRId64 " weight%s numbers that are not finite here or in the original, which the "
             "comparison does not count; the first is %.*s with %" PRId64,
             weights, weights == 1 ? " holds" : "s hold", (int)first->weight.name_length, first->weight.name,
             first->not_finite);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static int inspect(struct cli *cli, struct inspection *all)
{
    const int64_t count = bsm_checkpoint_tensor_count(all->checkpoint);
    int result = CLI_DONE;
    all->lines = cli_memory(cli, count, sizeof *all->lines);
    for (int64_t i = 0; result == CLI_DONE && i < count; i++) result = look(cli, all, i);
    find_apart(cli, all);
    warn_not_finite(cli, all);
    if (result == CLI_DONE && all->settings->svg != NULL) result = draw(cli, all);
    if (result == CLI_DONE && cli->json) print_json(all);
    else if (result == CLI_DONE) print_text(all);
    merge_scales_free(&all->apart);
    free(all->lines);
    return result == CLI_DONE && all->wrong > 0
               ? cli_bad_input(cli, "%" PRId64 " weights are not as they should be", all->wrong)
               : result;
}

static int run(struct cli *cli, const void *given)
{
    const struct settings *s = given;
    if (s->tensors && (s->against != NULL || s->svg != NULL || cli->json))
        return cli_wrong_usage(cli, "--tensors: lists tensors as text, without --against, --svg and --json");
    struct inspection *all = cli_memory(cli, 1, (int64_t)sizeof *all);
    all->settings = s;
    int result = weights_open(cli, all->settings->input, &all->checkpoint);
    if (result == CLI_DONE && all->settings->against != NULL)
        result = weights_open(cli, all->settings->against, &all->original);
    if (result == CLI_DONE) result = inspect(cli, all);
    bsm_checkpoint_close(all->checkpoint);
    bsm_checkpoint_close(all->original);
    free(all);
    return result;
}

const struct cli_verb cli_verb_inspect = {
    .name = "inspect",
    .summary = "what a checkpoint holds, and how far it is from another one",
    .usage = "CHECKPOINT [options]",
    .about =
        "Lists the weights of a .safetensors or GGUF checkpoint: who writes them so (gpt_oss, modelopt, "
        "compressed_tensors, deepseek, gguf, or plain numbers), their format, shape, bits per number with scales, and "
        "tensor scale; then how often each block scale occurs. With an original, the signal to noise ratio of each "
        "weight against it, by name, and that of all weights whose numbers changed, which is the one that blockscale "
        "quantize gives of a checkpoint.",
    .example = "blockscale quantize random:64x256 -o W.safetensors --format nvfp4\n"
               "blockscale inspect W.safetensors --svg scales.svg",
    .options = options,
    .defaults = &defaults,
    .settings_bytes = sizeof defaults,
    .run = run,
};
