/* blockscale dequantize: the files of a quantized matrix back into real numbers. */
#include "matrices.h"

#include <inttypes.h>
#include <stdlib.h>

struct settings { const char *note, *output; int type; };

static const struct settings defaults = { .type = CLI_TYPE_FP32 };

static const char *type_name(int value) { return cli_types.name(value); }
static int type_from_name(const char *name) { return cli_types.from_name(name); }
static const struct cli_choices output_types = { type_name, type_from_name, CLI_TYPE_FP32, CLI_TYPE_FP64 + 1 };

static const struct cli_option options[] = {
    { "NOTE.json", 0, NULL, "the note that blockscale quantize wrote; it names the other files", CLI_TEXT(struct settings, note),
      .required = true },
    { "--output", 'o', "X.npy", "where the numbers go", CLI_TEXT(struct settings, output), .required = true },
    { "--type", 0, "TYPE", "of the numbers, fp32 unless given; each is rounded once from the exact value",
      CLI_CHOICE(struct settings, type, &output_types) },
    { .name = NULL }
};

static bsm_npy_type file_type(bsm_real type)
{
    switch (type) {
    case BSM_REAL_FP16: return BSM_NPY_FP16;
    case BSM_REAL_BF16: return BSM_NPY_WORDS;
    case BSM_REAL_FP64: return BSM_NPY_FP64;
    default: return BSM_NPY_FP32;
    }
}

static void report(const struct cli *cli, const struct settings *s, const struct cli_quantized *q)
{
    const char *format = bsm_format_get((int)q->matrix.format)->name, *type = type_name(s->type);
    if (!cli->json) {
        printf("%s: %" PRId64 " x %" PRId64 " %s, from %s\n", s->output, q->matrix.rows, q->matrix.columns, type, format);
        return;
    }
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "output", s->output);
    cli_json_text(&json, "format", format);
    cli_json_text(&json, "type", type);
    cli_json_integer(&json, "rows", q->matrix.rows);
    cli_json_integer(&json, "columns", q->matrix.columns);
    cli_json_end(&json);
}

static int run(struct cli *cli, const void *given)
{
    const struct settings *s = given;
    static const bsm_real types[] = { [CLI_TYPE_FP32] = BSM_REAL_FP32,
                                      [CLI_TYPE_FP16] = BSM_REAL_FP16,
                                      [CLI_TYPE_BF16] = BSM_REAL_BF16,
                                      [CLI_TYPE_FP64] = BSM_REAL_FP64 };
    struct cli_quantized q;
    int result = cli_load_quantized(cli, s->note, &q);
    if (result != CLI_DONE) return result;
    const int64_t shape[2] = { q.matrix.rows, q.matrix.columns };
    struct cli_real real = { .type = types[s->type], .rows = shape[0], .columns = shape[1] };
    real.data = cli_memory(cli, shape[0] * shape[1], (int64_t)bsm_real_bytes((int)real.type));
    const bsm_real_matrix view = cli_real_view(&real);
    const bsm_status status = bsm_dequantize(cli->context, &q.matrix, &view);
    result = status == BSM_OK ? cli_output_npy(cli, s->output, file_type(real.type), 2, shape, real.data)
                              : cli_library_failed(cli, s->note, status);
    if (result == CLI_DONE) report(cli, s, &q);
    free(real.data);
    cli_quantized_free(cli, &q);
    return result;
}

const struct cli_verb cli_verb_dequantize = {
    .name = "dequantize",
    .summary = "the files of a quantized matrix back into an .npy matrix",
    .usage = "NOTE.json -o X.npy [options]",
    .about = "Each number is element * scale * tensor scale, exact, rounded once to the type that is asked for. bf16 is written as "
             "ml_dtypes does: np.load('X.npy').view(ml_dtypes.bfloat16).",
    .example = "blockscale quantize random:64x256 -o W --format nvfp4\nblockscale dequantize W.json -o X.npy",
    .options = options,
    .defaults = &defaults,
    .settings_bytes = sizeof defaults,
    .run = run,
};
