/* blockscale quantize: a real matrix into codes, scales and a note, with statistics. */
#include "cli/checkpoint/fused.h"
#include "cli/matrices/matrices.h"
#include "cli/plot/histogram.h"
#include "cli/matrices/layout_map.h"
#include "quantize_checkpoint.h"
#include "cli/matrices/silent.h"
#include "cli/checkpoint/weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *input, *output;
    bsm_format format;
    bsm_recipe recipe;
    bsm_scale_layout layout;
    bsm_packing packing;
    bsm_major major;
    bsm_sparsity sparsity;
    struct cli_tensor_scale tensor_scale;
    bool packed, divides, transpose, no_saturate, squares;
    float clamp_low, clamp_high;
    int64_t smallest_scale;
    int type, rounding, nonfinite, convention, preset;
    const char *include, *exclude, *share;
};

static const struct settings defaults = { .type = CLI_TYPE_AUTO };

static const char *const rounding_names[] = { "nearest", "stochastic", NULL };
static const char *rounding_name(int value) { return value >= 0 && value < 2 ? rounding_names[value] : NULL; }
static int rounding_from_name(const char *name) { return cli_name_index(rounding_names, name); }
static const struct cli_choices roundings = { rounding_name, rounding_from_name, 0, 2 };

static const char *const nonfinite_names[] = { "propagate", "saturate", NULL };
static const char *nonfinite_name(int value) { return value >= 0 && value < 2 ? nonfinite_names[value] : NULL; }
static int nonfinite_from_name(const char *name) { return cli_name_index(nonfinite_names, name); }
static const struct cli_choices nonfinites = { nonfinite_name, nonfinite_from_name, 0, 2 };

static const struct cli_choices presets = { bsm_preset_name, bsm_preset_from_name, 0, BSM_PRESET_COUNT };

static const struct cli_choices conventions = { bsm_convention_name, bsm_convention_from_name, BSM_CONVENTION_GPT_OSS,
                                                BSM_CONVENTION_COUNT };

static const struct cli_option options[] = {
    { "X.npy", 0, NULL,
      "the matrix, rows x K, blocks run along K; or random:ROWSxCOLUMNS; or a checkpoint: a .safetensors or "
      "GGUF file, an index of shards, or a folder with one of them",
      CLI_TEXT(struct settings, input), .required = true },
    { "--output", 'o', "NAME",
      "of a matrix: NAME.codes.npy, NAME.scales.npy, NAME.tensor_scale.npy and NAME.json are written; "
      "of a checkpoint, or where NAME ends with .safetensors or .gguf: that file, or folder NAME with "
      "model.safetensors and its config.json",
      CLI_TEXT(struct settings, output), .required = true },
    { "--format", 'f', "FORMAT", "what it becomes", CLI_FORMAT(struct settings, format), .required = true },
    { "--recipe", 0, "RECIPE", "how a block's scale follows from its largest number; mse for mxfp4 unless given",
      CLI_RECIPE(struct settings, recipe) },
    { "--preset", 0, "PROJECT",
      "another project's scales and codes to the bit, instead of a recipe: compared with what its code gives; "
      "flashinfer, and mxfp8 of transformer_engine, are from their sources, not run",
      CLI_CHOICE(struct settings, preset, &presets) },
    { "--layout", 0, "LAYOUT", "where the scales lie, linear unless given", CLI_LAYOUT(struct settings, layout) },
    { "--packed", 0, NULL, "codes of 4 and 6 bits packed, as uint8; else one per byte, as ml_dtypes has them",
      CLI_FLAG(struct settings, packed) },
    { "--packing", 0, "PACKING", "how they are packed; instead of --packed", CLI_PACKING(struct settings, packing) },
    { "--major", 0, "MAJOR",
      "k: codes are stored row by row, rows x K; mn: column by column, K x rows, as weights of x @ w; scales are those "
      "of rows either way",
      CLI_MAJOR(struct settings, major) },
    { "--sparsity", 0, "PATTERN",
      "half of the numbers are kept, the largest ones, and NAME.metadata.npy says which: 2:4, 2 of every 4 of a row; "
      "4:8, of formats of 4 bits, 2 pairs of every 4",
      CLI_SPARSITY(struct settings, sparsity) },
    { "--tensor-scale", 0, "T", "none, computed, or a number; computed for nvfp4, none for the others unless given",
      CLI_TENSOR_SCALE(struct settings, tensor_scale) },
    { "--divides", 0, NULL, "the tensor scale is stored as a divisor", CLI_FLAG(struct settings, divides) },
    { "--rounding", 0, "ROUNDING", "of elements; stochastic starts at --seed",
      CLI_CHOICE(struct settings, rounding, &roundings) },
    { "--nonfinite", 0, "WHAT", "NaN and infinity make the block's scale NaN, or are saturated",
      CLI_CHOICE(struct settings, nonfinite, &nonfinites) },
    { "--clamp-low", 0, "NUMBER", "a block's largest number counts as at least this",
      CLI_FLOAT(struct settings, clamp_low) },
    { "--clamp-high", 0, "NUMBER", "and as at most this: larger ones are cut", CLI_FLOAT(struct settings, clamp_high) },
    { "--smallest-scale", 0, "CODE", "scale codes below it become it, those of zeros too",
      CLI_INTEGER(struct settings, smallest_scale), .low = 0, .high = 254 },
    { "--no-saturate", 0, NULL, "e4m3 and e5m2 without scales: overflow gives NaN or infinity",
      CLI_FLAG(struct settings, no_saturate) },
    { "--squares", 0, NULL, "one scale for 16x16 or 32x32 numbers: a matrix and its transpose become the same numbers",
      CLI_FLAG(struct settings, squares) },
    { "--type", 0, "TYPE", "what X.npy holds: fp64 is rounded to fp32, bf16 reads uint16 too",
      CLI_CHOICE(struct settings, type, &cli_types) },
    { "--transpose", 0, NULL, "X.npy is K x rows", CLI_FLAG(struct settings, transpose) },
    { "--convention", 0, "WHOSE",
      "names and types of a checkpoint's tensors; modelopt unless given, gguf for NAME.gguf",
      CLI_CHOICE(struct settings, convention, &conventions) },
    { "--include", 0, "PATTERNS",
      "weights of a checkpoint that are quantized: shell patterns for names without .weight, separated "
      "by commas; all of two dimensions unless given",
      CLI_TEXT(struct settings, include) },
    { "--share-tensor-scales", 0, "GROUPS",
      "weights of a checkpoint in nvfp4 that get one tensor scale, since programs that fuse them keep one: none, "
      "default, or endings of names, as q_proj+k_proj+v_proj,gate_proj+up_proj; default unless given",
      CLI_TEXT(struct settings, share) },
    { "--exclude", 0, "PATTERNS",
      "weights that stay as they are; *embed*,*lm_head*,*router*,*.gate,*output_layer* unless given",
      CLI_TEXT(struct settings, exclude) },
    { .name = NULL }
};

/* Report ----------------------------------------------------------------------------------------------------------- */

/* 1 of zeros: nothing was lost. */
static double kept_share(const struct cli_quantized *q)
{
    return q->left_out.signal > 0 ? q->left_out.kept / q->left_out.signal : 1;
}

static void print_text(const struct cli_quantized *q, const bsm_quantize_stats *stats, const char *recipe)
{
    const bsm_format_info *info = bsm_format_get((int)q->matrix.format);
    char layout[64];
    layout_text(&q->matrix.scale_layout, layout, sizeof layout);
    printf("%s, %" PRId64 " x %" PRId64 ", %.2f bits per %selement", info->name, q->matrix.rows,
           q->matrix.columns, info->bits_per_element, cli_is_sparse(&q->matrix) ? "kept " : "");
    if (info->scale != BSM_UNSCALED)
        printf(", recipe %s, scales %s in layout %s", recipe, bsm_scale_name((int)info->scale), layout);
    if (cli_is_sparse(&q->matrix))
        printf(", sparse %s\nsum of squares      %.2f %% kept; %" PRId64 " of %" PRId64
               " groups lost a number that is not 0",
               bsm_sparsity_name((int)q->sparse.sparsity), kept_share(q) * 100, q->left_out.cut_groups,
               q->left_out.groups);
    printf("\nelements            %" PRId64 ", largest magnitude %.6g\n", stats->elements, stats->amax);
    if (q->matrix.tensor_scale != NULL)
        printf("tensor scale        %.9g, %s\n", (double)q->tensor_scale,
               q->matrix.tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES ? "divides" : "multiplies");
    if (isinf(stats->snr_db) && stats->nan_blocks > 0)
        printf("signal to noise     none: what is not in a NaN block is exact\n");
    else if (isinf(stats->snr_db)) printf("signal to noise     none: every number is exact\n");
    else printf("signal to noise     %.2f dB\n", stats->snr_db);
    printf("saturated elements  %" PRId64 "\n", stats->saturated_elements);
    if (info->scale == BSM_UNSCALED) return;
    printf("blocks              %" PRId64 " of %d\n", stats->blocks, info->block);
    printf("  flushed to zero   %" PRId64 "\n", stats->flushed_blocks);
    printf("  with NaN scale    %" PRId64 "\n", stats->nan_blocks);
    if (stats->blocks > 0) histogram_print(info->scale, stats->scale_histogram);
}

static void print_json(const struct cli_quantized *q, const bsm_quantize_stats *stats, const char *recipe,
                       const char *prefix)
{
    const bsm_format_info *info = bsm_format_get((int)q->matrix.format);
    char layout[64], note[4096];
    struct cli_json json = cli_json_to(stdout);
    layout_text(&q->matrix.scale_layout, layout, sizeof layout);
    snprintf(note, sizeof note, "%s.json", prefix);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "note", note);
    cli_json_text(&json, "format", info->name);
    cli_json_integer(&json, "rows", q->matrix.rows);
    cli_json_integer(&json, "columns", q->matrix.columns);
    if (cli_is_sparse(&q->matrix)) {
        cli_json_text(&json, "sparsity", bsm_sparsity_name((int)q->sparse.sparsity));
        cli_json_integer(&json, "groups", q->left_out.groups);
        cli_json_integer(&json, "cut_groups", q->left_out.cut_groups);
        cli_json_integer(&json, "cut_elements", q->left_out.cut_elements);
        cli_json_number(&json, "kept_squares", kept_share(q));
    }
    cli_json_number(&json, "bits_per_element", info->bits_per_element);
    cli_json_text(&json, "recipe", recipe);
    cli_json_text(&json, "scale_layout", info->scale != BSM_UNSCALED ? layout : NULL);
    cli_json_number(&json, "tensor_scale", q->matrix.tensor_scale != NULL ? (double)q->tensor_scale : 1);
    cli_json_integer(&json, "elements", stats->elements);
    cli_json_integer(&json, "saturated_elements", stats->saturated_elements);
    cli_json_number(&json, "amax", stats->amax);
    cli_json_number(&json, "snr_db", stats->snr_db);
    cli_json_integer(&json, "blocks", stats->blocks);
    cli_json_integer(&json, "flushed_blocks", stats->flushed_blocks);
    cli_json_integer(&json, "nan_blocks", stats->nan_blocks);
    cli_json_object(&json, "scale_histogram");
    for (int code = 0; code < 256; code++) {
        char key[8];
        snprintf(key, sizeof key, "%d", code);
        if (stats->scale_histogram[code] > 0) cli_json_integer(&json, key, stats->scale_histogram[code]);
    }
    cli_json_end(&json);
    cli_json_end(&json);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

/* One per byte unless the user wants otherwise; wider codes have one packing only. */
static bsm_packing choose_packing(const struct settings *s)
{
    const int bits = bsm_element_get((int)bsm_format_get((int)s->format)->element)->bits;
    const bool gguf = s->layout.kind == BSM_LAYOUT_GGUF_MXFP4 || s->layout.kind == BSM_LAYOUT_GGUF_NVFP4;
    if (s->packing != BSM_PACKING_DEFAULT) return s->packing;
    return s->packed || bits >= 8 || gguf ? BSM_PACKING_DEFAULT : BSM_PACKING_BYTES;
}

/* Projects that store 448 * 6 / amax. */
static bool preset_divides(int preset)
{
    return preset == BSM_PRESET_TRANSFORMER_ENGINE || preset == BSM_PRESET_COMPRESSED_TENSORS
           || preset == BSM_PRESET_FLASHINFER;
}

/* For weights in mxfp4 the better of two scales, unless something else is asked for: docs/guide/recipes.md has the
 * figures. */
static bsm_recipe recipe_of(const struct settings *s)
{
    const bsm_format_info *info = bsm_format_get((int)s->format);
    const bool mxfp4 = info->element == BSM_E2M1 && info->scale == BSM_E8M0;
    const bool asked = s->recipe != BSM_RECIPE_DEFAULT || s->preset != BSM_PRESET_NONE || s->squares;
    return mxfp4 && !asked ? BSM_RECIPE_MSE : s->recipe;
}

static void warn(const struct cli *cli, const struct settings *s, const struct cli_real *real,
                 const bsm_quantize_options *how, const bsm_quantize_stats *stats)
{
    const bsm_real_matrix source = cli_real_view(real);
    const struct silent found = silent_quantized(&source, how, stats);
    silent_warn_quantized(cli, s->input, &found, s->format, stats);
}

static int quantize(struct cli *cli, const struct settings *s, const struct cli_real *real, struct cli_quantized *q)
{
    const bsm_quantize_options how = { .recipe = recipe_of(s), .rounding = (bsm_rounding)s->rounding, .seed = cli->seed,
                                       .nonfinite = (bsm_nonfinite)s->nonfinite, .no_saturate = s->no_saturate,
                                       .block_rows = s->squares ? bsm_format_get((int)s->format)->block : 0,
                                       .preset = (bsm_preset)s->preset, .clamp_low = s->clamp_low,
                                       .clamp_high = s->clamp_high,
                                       .smallest_scale = (uint8_t)s->smallest_scale };
    const char *recipe =
        s->preset != BSM_PRESET_NONE ? bsm_preset_name(s->preset) : cli_recipe_used(s->format, how.recipe);
    bsm_quantize_stats stats;
    if (s->divides || preset_divides(s->preset)) q->matrix.tensor_scale_use = BSM_TENSOR_SCALE_DIVIDES;
    char *prefix = cli_without_ending(cli, s->output, ".json");
    struct cli_tensor_scale tensor_scale = s->tensor_scale;
    if (s->preset == BSM_PRESET_GGML && tensor_scale.source == CLI_SCALE_USUAL) tensor_scale.source = CLI_SCALE_NONE;
    int result = cli_quantize(cli, s->input, real, tensor_scale, how, q, &stats);
    if (result == CLI_DONE && s->divides && q->matrix.tensor_scale == NULL)
        result =
            cli_wrong_usage(cli, "--divides: there is no tensor scale that could divide; --tensor-scale gives one");
    if (result == CLI_DONE) warn(cli, s, real, &how, &stats);
    if (result == CLI_DONE && s->major == BSM_MAJOR_MN) result = cli_quantized_turn(cli, s->input, q);
    if (result == CLI_DONE) result = cli_store_quantized(cli, prefix, q, recipe);
    if (result == CLI_DONE && cli->json) print_json(q, &stats, recipe, prefix);
    else if (result == CLI_DONE) print_text(q, &stats, recipe);
    free(prefix);
    return result;
}

static int quantize_matrix(struct cli *cli, const struct settings *s)
{
    struct cli_real real;
    struct cli_quantized q;
    if (s->layout.kind != BSM_LAYOUT_LINEAR && bsm_format_get((int)s->format)->block == 0)
        return cli_wrong_usage(cli, "--layout: %s has no block scales that could lie anywhere",
                               bsm_format_get((int)s->format)->name);
    if (s->packed && s->packing != BSM_PACKING_DEFAULT)
        return cli_wrong_usage(cli, "--packed and --packing: give one of them");
    if (s->include != NULL || s->exclude != NULL || s->share != NULL)
        return cli_wrong_usage(cli, "--include, --exclude and --share-tensor-scales are for checkpoints");
    if (s->sparsity != BSM_SPARSITY_NONE && s->major == BSM_MAJOR_MN)
        return cli_wrong_usage(cli, "--sparsity and --major mn: a sparse matrix is stored row by row");
    int result = cli_read_real(cli, s->input, s->type, s->transpose, 0, &real);
    if (result != CLI_DONE) return result;
    result = cli_quantized_new_sparse(cli, s->format, choose_packing(s), s->layout, s->sparsity, real.rows,
                                      real.columns, &q);
    if (result == CLI_DONE) {
        result = quantize(cli, s, &real, &q);
        cli_quantized_free(cli, &q);
    }
    cli_real_free(cli, &real);
    return result;
}

/* Into a checkpoint: a whole one, or one matrix. */
static int quantize_into_checkpoint(struct cli *cli, const struct settings *s)
{
    const bool whole = weights_is_checkpoint(s->input);
    struct cli_real real = { .data = NULL };
    if (s->packed || s->divides || s->packing != BSM_PACKING_DEFAULT || s->layout.kind != BSM_LAYOUT_LINEAR ||
        s->major != BSM_MAJOR_K || s->sparsity != BSM_SPARSITY_NONE || s->tensor_scale.source != CLI_SCALE_USUAL)
        return cli_wrong_usage(cli, "--packed, --packing, --major, --sparsity, --layout, --tensor-scale and --divides "
                                    "are for .npy files: --convention says how a checkpoint is written");
    if (whole && (s->transpose || s->type != CLI_TYPE_AUTO))
        return cli_wrong_usage(cli, "--transpose and --type are for .npy files");
    if (!whole && (s->include != NULL || s->exclude != NULL || s->share != NULL))
        return cli_wrong_usage(cli, "--include, --exclude and --share-tensor-scales are for checkpoints");
    const char *share;
    int result = fused_rules(cli, "--share-tensor-scales", s->share, &share);
    if (result == CLI_DONE && !whole) result = cli_read_real(cli, s->input, s->type, s->transpose, 0, &real);
    if (result != CLI_DONE) return result;
    const struct checkpoint_request request = {
        .input = s->input, .output = s->output, .real = whole ? NULL : &real, .format = s->format,
        .convention = (bsm_convention)s->convention, .include = s->include, .exclude = s->exclude, .share = share,
        .how = { .recipe = recipe_of(s), .rounding = (bsm_rounding)s->rounding, .seed = cli->seed,
                 .nonfinite = (bsm_nonfinite)s->nonfinite, .no_saturate = s->no_saturate,
                 .block_rows = s->squares ? bsm_format_get((int)s->format)->block : 0, .preset = (bsm_preset)s->preset,
                 .clamp_low = s->clamp_low, .clamp_high = s->clamp_high, .smallest_scale = (uint8_t)s->smallest_scale },
    };
    result = quantize_checkpoint(cli, &request);
    if (!whole) cli_real_free(cli, &real);
    return result;
}

static int run(struct cli *cli, const void *given)
{
    const struct settings *s = given;
    if (s->squares && bsm_format_get((int)s->format)->block == 0)
        return cli_wrong_usage(cli, "--squares: %s has no block scales", bsm_format_get((int)s->format)->name);
    const bool checkpoint = weights_is_checkpoint(s->input) || cli_ends_with(s->output, ".safetensors") ||
                            cli_ends_with(s->output, ".gguf") || s->convention != BSM_CONVENTION_NONE;
    return checkpoint ? quantize_into_checkpoint(cli, s) : quantize_matrix(cli, s);
}

const struct cli_verb cli_verb_quantize = {
    .name = "quantize",
    .summary = "an .npy matrix, or a whole checkpoint, into codes and scales, with statistics",
    .usage = "X.npy|CHECKPOINT -o NAME --format FORMAT [options]",
    .about =
        "Writes NAME.codes.npy, NAME.scales.npy (formats with block scales), NAME.tensor_scale.npy (where there is "
        "one), NAME.metadata.npy (with --sparsity) and the note NAME.json, which says how they belong together: "
        "blockscale dequantize and blockscale matmul read it. Codes are one per byte, as ml_dtypes has them: "
        "np.load('NAME.codes.npy').view(ml_dtypes.float4_e2m1fn).\n"
        "A checkpoint is quantized weight by weight, with the memory of the codes of two, and written complete or not "
        "at all; tensors that are no chosen weights are passed on. Into a folder go config.json with the words of the "
        "convention and the model's other files, such as the tokenizer's. Weights alone are quantized: scales of "
        "inputs take calibration.",
    .example =
        "blockscale quantize random:64x256 -o W --format nvfp4\n"
        "blockscale quantize random:64x256 -o V --format mxfp4 --packed --layout 128x4\n"
        "blockscale quantize random:64x256 -o model -f mxfp4 --convention compressed_tensors",
    .options = options,
    .defaults = &defaults,
    .settings_bytes = sizeof defaults,
    .run = run,
};
