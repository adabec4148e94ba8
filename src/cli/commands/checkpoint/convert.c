/* blockscale convert: the same codes and scales under the names of another convention. */
#include "cli/matrices/matrices.h"
#include "cli/checkpoint/merge_scales.h"
#include "cli/checkpoint/rewrite.h"
#include "cli/checkpoint/weights.h"
#include "cli/checkpoint/written.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *input, *output, *merge;
    int convention;
};

static const struct settings defaults = { .convention = BSM_CONVENTION_NONE };

static const struct cli_choices conventions = { bsm_convention_name, bsm_convention_from_name, BSM_CONVENTION_GPT_OSS,
                                                BSM_CONVENTION_COUNT };

static const struct cli_option options[] = {
    { "CHECKPOINT", 0, NULL, "a .safetensors or GGUF file, an index of shards, or a folder with one of them",
      CLI_TEXT(struct settings, input), .required = true },
    { "--output", 'o', "OUT", "OUT.safetensors, OUT.gguf, or a folder with model.safetensors and its config.json",
      CLI_TEXT(struct settings, output), .required = true },
    { "--convention", 0, "WHOSE", "names and types of the tensors; modelopt unless given, gguf for OUT.gguf",
      CLI_CHOICE(struct settings, convention, &conventions) },
    { "--merge-tensor-scales", 0, "GROUPS",
      "nvfp4 weights that programs fuse get one tensor scale, the largest, and block scales rounded to it: default, or "
      "endings of names, as q_proj+k_proj+v_proj,gate_proj+up_proj; none unless given",
      CLI_TEXT(struct settings, merge) },
    { .name = NULL }
};

/* A weight and where it goes. */
struct moved {
    bsm_matrix matrix; /* how its bytes are to lie */
    int64_t number;    /* at the writer */
};

struct job {
    struct rewrite rewrite;
    bsm_convention convention;
    struct moved *moved; /* for each item */
    struct merge_scales merge;
    bool merges;
    struct written written;
    int64_t inverted; /* tensor scales whose reciprocal fp32 does not hold exactly */
};

/* fp32 scales of tiles have no other spelling: they are passed on with their weights. */
static bool takes(const bsm_weight *weight) { return weight->tile_rows == 0; }

/* Tensor scales ---------------------------------------------------------------------------------------------------- */

/* A factor as it is used on the other side. */
static float turned(struct job *job, float value, bool was_divisor, bool is_divisor)
{
    if (was_divisor == is_divisor) return value;
    const float inverse = 1 / value;
    if (fma((double)inverse, (double)value, -1) != 0) job->inverted++;
    return inverse;
}

/* compressed-tensors divides numbers of NVFP4 by it, under a name of its own; everybody else multiplies. */
static bool input_scale_divides(bsm_convention convention, bsm_format format)
{
    return convention == BSM_CONVENTION_COMPRESSED_TENSORS && format == BSM_NVFP4;
}

/* The scale of a weight's input as it is used on the other side. */
static int read_input_scale(struct cli *cli, struct job *job, const bsm_weight *w, float *value)
{
    const bsm_tensor t = weights_tensor(job->rewrite.checkpoint, w->input_scale);
    if (t.type != BSM_TENSOR_F32 || t.bytes != (int64_t)sizeof *value)
        return cli_bad_input(cli, "%s: one fp32 number is wanted", t.name);
    memcpy(value, t.data, sizeof *value);
    *value = turned(job, *value, input_scale_divides(w->convention, w->matrix.format),
                    input_scale_divides(job->convention, w->matrix.format));
    return CLI_DONE;
}

/* Codes ------------------------------------------------------------------------------------------------------------ */

/* GGUF's blocks: `scales` bytes in front, then nibbles in halves of `half` elements. */
struct block {
    int64_t elements, bytes, scales, half;
};
static struct block block_of(bsm_format format)
{
    return format == BSM_NVFP4 ? (struct block){ 64, 36, 4, 8 } : (struct block){ 32, 17, 1, 16 };
}

/* Element k of a block: its byte behind the scales, and how far up its nibble is. */
static int64_t block_byte(const struct block *b, int64_t k)
{
    return b->scales + k / (2 * b->half) * b->half + k % b->half;
}
static int block_shift(const struct block *b, int64_t k) { return k / b->half % 2 == 0 ? 0 : 4; }

static void into_blocks(const struct block *b, int64_t blocks, const unsigned char *codes, const unsigned char *scales,
                        unsigned char *out)
{
    for (int64_t i = 0; i < blocks; i++, codes += b->elements / 2, scales += b->scales, out += b->bytes) {
        memcpy(out, scales, (size_t)b->scales);
        for (int64_t k = 0; k < b->elements; k++)
            out[block_byte(b, k)] |= (unsigned char)((codes[k / 2] >> (k % 2 == 0 ? 0 : 4) & 15) << block_shift(b, k));
    }
}

static void out_of_blocks(const struct block *b, int64_t blocks, const unsigned char *in, unsigned char *codes,
                          unsigned char *scales)
{
    for (int64_t i = 0; i < blocks; i++, codes += b->elements / 2, scales += b->scales, in += b->bytes) {
        memcpy(scales, in, (size_t)b->scales);
        for (int64_t k = 0; k < b->elements; k++)
            codes[k / 2] |= (unsigned char)((in[block_byte(b, k)] >> block_shift(b, k) & 15) << (k % 2 == 0 ? 0 : 4));
    }
}

/* Codes and scales on their way into another packing; memory that is the command's own is to be freed. */
struct repacked {
    const void *codes, *scales; /* linear, unless both packings are GGUF's */
    void *own_codes, *own_scales, *blocks;
};

static void repacked_free(struct repacked *r)
{
    free(r->own_codes);
    free(r->own_scales);
    free(r->blocks);
}

/* Codes and scales out of GGUF's blocks. */
static void unpack(const struct cli *cli, const bsm_weight *w, const struct block *block, struct repacked *r)
{
    const int64_t blocks = weights_numbers(w) / block->elements;
    r->codes = r->own_codes = cli_memory(cli, blocks, block->elements / 2);
    r->scales = r->own_scales = cli_memory(cli, blocks, block->scales);
    out_of_blocks(block, blocks, w->matrix.data, r->own_codes, r->own_scales);
}

/* Scales row by row, and codes packed as files have them: torchao may have 128 x 4 blocks of scales, and 6-bit codes in
 * bytes. */
static int make_usual(struct cli *cli, const bsm_weight *w, struct repacked *r)
{
    bsm_matrix usual = w->matrix;
    int64_t bytes = 0;
    usual.packing = BSM_PACKING_DEFAULT;
    usual.scale_layout = (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR };
    if (w->matrix.scale_layout.kind != BSM_LAYOUT_LINEAR) {
        bsm_matrix_scale_bytes(&usual, &bytes);
        r->scales = r->own_scales = usual.scales = cli_memory(cli, bytes, 1);
        for (int64_t i = 0; i < bytes; i++) {
            const int64_t columns = bsm_matrix_scale_columns(&usual);
            bsm_matrix_get_scale(&w->matrix, 0, i / columns, i % columns, (uint8_t *)usual.scales + i);
        }
    }
    if (w->matrix.packing == BSM_PACKING_DEFAULT) return CLI_DONE;
    bsm_matrix_data_bytes(&usual, &bytes);
    r->codes = r->own_codes = usual.data = cli_memory(cli, bytes, 1);
    for (int64_t b = 0; b < (usual.batch > 1 ? usual.batch : 1); b++)
        for (int64_t i = 0; i < usual.rows * usual.columns; i++) {
            uint32_t code = 0;
            bsm_status status = bsm_matrix_get_code(&w->matrix, b, i / usual.columns, i % usual.columns, &code);
            if (status == BSM_OK) status = bsm_matrix_set_code(&usual, b, i / usual.columns, i % usual.columns, code);
            if (status != BSM_OK) return cli_library_failed(cli, rewrite_name_of(w).text, status);
        }
    return CLI_DONE;
}

/* Block scales under the tensor scale of the weight's group, which *tensor_scale becomes. */
static int merge_scales(struct cli *cli, struct job *job, int64_t i, struct repacked *r, float *tensor_scale)
{
    const bsm_matrix *m = &job->rewrite.items[i].weight.matrix;
    uint8_t *scales = cli_memory(cli, m->rows, bsm_matrix_scale_columns(m));
    free(r->own_scales);
    r->scales = r->own_scales = scales;
    return merge_scales_of(cli, &job->merge, &job->rewrite, i, scales, tensor_scale);
}

/* The weight's bytes in the packing of `to`, whose pointers are set, and its tensor scale as it was or merged. */
static int repack(struct cli *cli, struct job *job, int64_t i, bsm_matrix *to, struct repacked *r, float *tensor_scale)
{
    const bsm_weight *w = &job->rewrite.items[i].weight;
    const bool was_gguf = w->matrix.packing == BSM_PACKING_GGUF, is_gguf = to->packing == BSM_PACKING_GGUF;
    const bool merged = job->merges && job->merge.largest[i] != NULL, moves = merged || was_gguf != is_gguf;
    const struct block block = block_of(w->matrix.format);
    *r = (struct repacked){ .codes = w->matrix.data, .scales = w->matrix.scales };
    if (moves && (was_gguf || is_gguf) && w->matrix.columns % block.elements != 0)
        return cli_bad_input(cli, "%s: rows of %" PRId64 " numbers are not whole blocks of %" PRId64,
                             rewrite_name_of(w).text, w->matrix.columns, block.elements);
    if (!was_gguf && make_usual(cli, w, r) != CLI_DONE) return CLI_BAD_INPUT;
    if (moves && was_gguf) unpack(cli, w, &block, r);
    if (merged && merge_scales(cli, job, i, r, tensor_scale) != CLI_DONE) return CLI_BAD_INPUT;
    if (moves && is_gguf) {
        const int64_t blocks = weights_numbers(w) / block.elements;
        r->blocks = cli_memory(cli, blocks, block.bytes);
        into_blocks(&block, blocks, r->codes, r->scales, r->blocks);
        r->codes = r->scales = r->blocks;
    }
    to->data = (void *)(uintptr_t)r->codes;
    to->scales = (void *)(uintptr_t)r->scales;
    return CLI_DONE;
}

/* Weights ---------------------------------------------------------------------------------------------------------- */

static int announce(struct job *job, int64_t i)
{
    const bsm_weight *w = &job->rewrite.items[i].weight;
    const bsm_matrix *m = &w->matrix;
    const struct rewrite_name name = rewrite_name_of(w);
    struct writer *writer = &job->rewrite.writer;
    const bsm_writer_weight weight = {
        .struct_size = sizeof weight, .name = name.text, .convention = job->convention, .format = m->format,
        .batch = m->batch, .rows = m->rows, .columns = m->columns, .tensor_scale = m->tensor_scale != NULL,
        .input_scale = w->input_scale >= 0
    };
    struct moved *moved = &job->moved[i];
    return writer_check(writer, bsm_writer_add_weight(writer->writer, &weight, &moved->number, &moved->matrix));
}

static int move(struct cli *cli, struct job *job, int64_t i)
{
    const bsm_weight *w = &job->rewrite.items[i].weight;
    struct writer *writer = &job->rewrite.writer;
    bsm_matrix to = job->moved[i].matrix;
    struct repacked repacked;
    float tensor_scale = w->matrix.tensor_scale != NULL ? *w->matrix.tensor_scale : 1, input_scale = 1;
    int result = repack(cli, job, i, &to, &repacked, &tensor_scale);
    if (result == CLI_DONE && w->matrix.tensor_scale != NULL) {
        tensor_scale = turned(job, tensor_scale, w->matrix.tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES,
                              to.tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES);
        to.tensor_scale = &tensor_scale;
    }
    if (result == CLI_DONE && w->input_scale >= 0) result = read_input_scale(cli, job, w, &input_scale);
    if (result == CLI_DONE)
        result = writer_check(writer, bsm_writer_put_weight(writer->writer, job->moved[i].number, &to,
                                                            w->input_scale >= 0 ? &input_scale : NULL));
    repacked_free(&repacked);
    return result;
}

/* Merged scales, and groups that a program would fuse wrongly. */
static void report_merge(const struct job *job)
{
    const bsm_merge_stats *stats = &job->merge.stats;
    if (job->merge.fused.count == 0) return;
    printf(job->merges ? "tensor scales merged: " : "tensor scales differ in ");
    fused_print(&job->merge.fused, stdout);
    if (!job->merges)
        printf(": programs that fuse them keep the largest alone; --merge-tensor-scales default merges them\n");
    else
        printf("; of %" PRId64 " block scales of %" PRId64 " weights %" PRId64
               " were rounded, by at most %.3g of them, %" PRId64 " became 0\n",
               stats->scales, job->merge.weights, stats->rounded_scales, stats->worst_error, stats->flushed_scales);
}

static void report_merge_json(struct cli_json *json, const struct job *job)
{
    const bsm_merge_stats *stats = &job->merge.stats;
    fused_print_json(json, job->merges ? "merged_tensor_scales" : "different_tensor_scales", &job->merge.fused);
    if (!job->merges) return;
    cli_json_integer(json, "merged_scales", stats->scales);
    cli_json_integer(json, "rounded_scales", stats->rounded_scales);
    cli_json_integer(json, "flushed_scales", stats->flushed_scales);
    cli_json_number(json, "worst_error", stats->worst_error);
}

static void report(const struct cli *cli, const struct job *job)
{
    const struct rewrite *r = &job->rewrite;
    if (!cli->json) {
        printf("%s: %" PRId64 " weights as %s writes them, %" PRId64 " tensors passed on\n%" PRId64 " bytes\n",
               bsm_writer_path(r->writer.writer), r->weights, bsm_convention_name((int)job->convention),
               r->count - r->weights, bsm_writer_bytes(r->writer.writer));
        if (job->inverted > 0)
            printf("%" PRId64 " tensor scales became reciprocals that fp32 rounds, by at most 2^-24 of them\n",
                   job->inverted);
        report_merge(job);
        written_print(&job->written);
        return;
    }
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "output", bsm_writer_path(r->writer.writer));
    cli_json_text(&json, "convention", bsm_convention_name((int)job->convention));
    cli_json_integer(&json, "weights", r->weights);
    cli_json_integer(&json, "passed_on", r->count - r->weights);
    cli_json_integer(&json, "rounded_reciprocals", job->inverted);
    cli_json_integer(&json, "bytes", bsm_writer_bytes(r->writer.writer));
    report_merge_json(&json, job);
    written_print_json(&json, &job->written);
    cli_json_end(&json);
}

/* The format that all weights have; NONE where they differ: then no config.json can say it in one word. */
static bsm_format common_format(const struct rewrite *rewrite)
{
    bsm_format format = rewrite->items[0].weight.matrix.format;
    for (int64_t i = 0; i < rewrite->count; i++)
        if (rewrite->items[i].is_weight && rewrite->items[i].weight.matrix.format != format) return BSM_FORMAT_NONE;
    return format;
}

/* Programs ask for a scale of every weight's input, or of none. */
static bool all_have_input_scales(const struct rewrite *rewrite)
{
    for (int64_t i = 0; i < rewrite->count; i++)
        if (rewrite->items[i].is_weight && rewrite->items[i].weight.input_scale < 0) return false;
    return true;
}

static int convert(struct cli *cli, struct job *job, const struct settings *s)
{
    struct rewrite *r = &job->rewrite;
    int result = CLI_DONE;
    job->moved = cli_memory(cli, r->count, sizeof *job->moved);
    for (int64_t i = 0; result == CLI_DONE && i < r->count; i++)
        if (r->items[i].is_weight) result = announce(job, i);
    if (result == CLI_DONE) result = rewrite_begin(r);
    for (int64_t i = 0; result == CLI_DONE && i < r->count; i++)
        if (r->items[i].is_weight) result = move(cli, job, i);
    if (result == CLI_DONE) result = rewrite_finish(r);
    job->written = (struct written){ .writer = &r->writer, .input = s->input, .convention = job->convention };
    job->written.format = common_format(r);
    job->written.input_scales = all_have_input_scales(r);
    if (result == CLI_DONE) report(cli, job);
    return result;
}

static void find_merge(const struct cli *cli, struct job *job, const char *rules)
{
    const struct rewrite *r = &job->rewrite;
    const bsm_weight **weights = cli_memory(cli, r->count + 1, sizeof *weights);
    for (int64_t i = 0; i < r->count; i++)
        if (r->items[i].is_weight) weights[i] = &r->items[i].weight;
    merge_scales_find(cli, weights, r->count, rules, &job->merge);
    free(weights);
}

static int run(struct cli *cli, const void *given)
{
    const struct settings *s = given;
    struct job job = { .convention = (bsm_convention)s->convention };
    const bool gguf = cli_ends_with(s->output, ".gguf");
    if (job.convention == BSM_CONVENTION_NONE) job.convention = gguf ? BSM_CONVENTION_GGUF : BSM_CONVENTION_MODELOPT;
    if (gguf != (job.convention == BSM_CONVENTION_GGUF))
        return cli_wrong_usage(cli, "--convention %s: goes with an output called X%s",
                               bsm_convention_name((int)job.convention), gguf ? ".safetensors, or a folder" : ".gguf");
    const char *rules;
    if (fused_rules(cli, "--merge-tensor-scales", s->merge, &rules) != CLI_DONE) return CLI_WRONG_USAGE;
    job.merges = s->merge != NULL && rules[0] != '\0';
    if (s->merge == NULL && gguf) rules = ""; /* nobody fuses these: ggml multiplies by each tensor scale */
    int result = rewrite_start(cli, s->input, s->output, takes, &job.rewrite);
    if (result == CLI_DONE) result = rewrite_wants_work(cli, s->input, &job.rewrite, 0);
    if (result == CLI_DONE) find_merge(cli, &job, rules);
    if (result == CLI_DONE) result = convert(cli, &job, s);
    merge_scales_free(&job.merge);
    free(job.moved);
    rewrite_end(&job.rewrite);
    return result;
}

const struct cli_verb cli_verb_convert = {
    .name = "convert",
    .summary = "a quantized checkpoint under another project's names",
    .usage = "CHECKPOINT -o OUT [--convention WHOSE] [--merge-tensor-scales GROUPS]",
    .about = "ModelOpt, compressed-tensors, gpt-oss and GGUF keep the same codes and scales under different names, in "
             "different orders of nibbles, and with tensor scales that multiply or divide. Codes and block scales stay "
             "bit for bit; a tensor scale that becomes a reciprocal is rounded to fp32, and said so. Weights with fp32 "
             "scales of tiles or rows, and all other tensors, are passed on as they are.",
    .example = "blockscale quantize random:64x256 -o W.safetensors --format nvfp4\n"
               "blockscale convert W.safetensors -o W.gguf\n"
               "blockscale convert W.gguf -o V.safetensors --convention compressed_tensors",
    .options = options,
    .defaults = &defaults,
    .settings_bytes = sizeof defaults,
    .run = run,
};
