/* blockscale dequantize: the files of a quantized matrix back into real numbers. */
#include "dequantize_checkpoint.h"
#include "cli/matrices/matrices.h"

#include <inttypes.h>
#include <stdlib.h>

struct settings { const char *note, *output; int type; };

static const struct settings defaults = { .type = CLI_TYPE_AUTO };

static const char *type_name(int value) { return cli_types.name(value); }
static int type_from_name(const char *name) { return cli_types.from_name(name); }
static const struct cli_choices output_types = { type_name, type_from_name, CLI_TYPE_FP32, CLI_TYPE_FP64 + 1 };

static const struct cli_option options[] = {
    { "NOTE.json", 0, NULL,
      "the note that blockscale quantize wrote; it names the other files; "
      "or a checkpoint: a .safetensors or GGUF file, an index of shards (X.index.json), or a folder",
      CLI_TEXT(struct settings, note), .required = true },
    { "--output", 'o', "X.npy",
      "where the numbers go; of a checkpoint: X.safetensors, X.gguf, or a folder with "
      "model.safetensors",
      CLI_TEXT(struct settings, output), .required = true },
    { "--type", 0, "TYPE",
      "of the numbers, fp32 unless given (of a checkpoint bf16); each is rounded once from the "
      "exact value",
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
    const char *format = bsm_format_get((int)q->matrix.format)->name,
               *type = type_name(s->type == CLI_TYPE_AUTO ? CLI_TYPE_FP32 : s->type);
    if (!cli->json) {
        printf("%s: %" PRId64 " x %" PRId64 " %s, from %s\n", s->output, q->matrix.rows, q->matrix.columns, type,
               format);
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

static const bsm_real real_types[] = { [CLI_TYPE_FP32] = BSM_REAL_FP32,
                                       [CLI_TYPE_FP16] = BSM_REAL_FP16,
                                       [CLI_TYPE_BF16] = BSM_REAL_BF16,
                                       [CLI_TYPE_FP64] = BSM_REAL_FP64 };

static int dequantize_matrix(struct cli *cli, const struct settings *s)
{
    struct cli_quantized q;
    int result = cli_load_quantized(cli, s->note, &q);
    if (result != CLI_DONE) return result;
    const int64_t shape[2] = { q.matrix.rows, q.matrix.columns };
    struct cli_real real = { .type = real_types[s->type == CLI_TYPE_AUTO ? CLI_TYPE_FP32 : s->type],
                             .rows = shape[0],
                             .columns = shape[1] };
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

static int run(struct cli *cli, const void *given)
{
    const struct settings *s = given;
    const bool note = cli_ends_with(s->note, ".json") && !cli_ends_with(s->note, ".index.json");
    if (note) return dequantize_matrix(cli, s);
    return dequantize_checkpoint(cli, s->note, s->output,
                                 real_types[s->type == CLI_TYPE_AUTO ? CLI_TYPE_BF16 : s->type]);
}

const struct cli_verb cli_verb_dequantize = {
    .name = "dequantize",
    .summary = "the files of a quantized matrix, or a whole checkpoint, back into numbers",
    .usage = "NOTE.json|CHECKPOINT -o X.npy|OUT [options]",
    .about = "Each number is element * scale * tensor scale, exact, rounded once to the type that is asked for. bf16 "
             "is written as ml_dtypes does: np.load('X.npy').view(ml_dtypes.bfloat16). Of a checkpoint, every "
             "quantized weight X becomes X.weight, and "
             "all other tensors are passed on.",
    .example = "blockscale quantize random:64x256 -o W --format nvfp4\nblockscale dequantize W.json -o X.npy\n"
               "blockscale quantize random:64x256 -o V.safetensors --format mxfp4\n"
               "blockscale dequantize V.safetensors -o Y.safetensors --type fp32",
    .options = options,
    .defaults = &defaults,
    .settings_bytes = sizeof defaults,
    .run = run,
};
