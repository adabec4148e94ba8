/* The operands of blockscale matmul: .npy files, notes of quantize, and weights of checkpoints. */
#include "matmul.h"
#include "cli/checkpoint/weights.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What the command line says of one operand. */
struct request {
    const char *letter;                   /* "a" or "b", for the sentences */
    const char *path;
    bsm_format format;
    int type;
    bool transpose;
    bsm_major major;
};

/* Weights of checkpoints ------------------------------------------------------------------------------------------- */

/* CHECKPOINT:WEIGHT, WEIGHT[MATRIX] of a batch. */
struct place { char checkpoint[4096], weight[4096]; int64_t matrix; };

/* A file with an ending of checkpoints, or a folder, may leave out the only weight that it has. */
static bool is_whole_checkpoint(const char *path)
{
    struct stat there;
    if (cli_ends_with(path, ".safetensors") || cli_ends_with(path, ".gguf") || cli_ends_with(path, ".index.json"))
        return true;
    return stat(path, &there) == 0 && S_ISDIR(there.st_mode);
}

static bool is_in_checkpoint(const char *path)
{
    if (strncmp(path, "random:", 7) == 0 || cli_ends_with(path, ".npy")) return false;
    return is_whole_checkpoint(path) || (strchr(path, ':') != NULL && !cli_ends_with(path, ".json"));
}

/* "[12]" at the end of text is taken off; -1 where there is none. */
static int64_t take_number(char *text)
{
    char *bracket = strrchr(text, '[');
    const size_t digits = bracket != NULL ? strspn(bracket + 1, "0123456789") : 0;
    if (digits == 0 || digits > 9 || strcmp(bracket + 1 + digits, "]") != 0) return -1;
    *bracket = '\0';
    return atoll(bracket + 1);
}

static int split(struct cli *cli, const char *path, struct place *place)
{
    const char *colon = is_whole_checkpoint(path) ? NULL : strrchr(path, ':');
    const size_t length = colon != NULL ? (size_t)(colon - path) : strlen(path);
    if (strlen(path) >= sizeof place->weight) return cli_bad_input(cli, "%.64s...: too long a name", path);
    snprintf(place->checkpoint, sizeof place->checkpoint, "%.*s", (int)length, path);
    snprintf(place->weight, sizeof place->weight, "%s", colon != NULL ? colon + 1 : "");
    place->matrix = take_number(place->weight);
    return CLI_DONE;
}

/* The checkpoint's only matrix: the one weight that an unnamed operand can mean. */
static int find_only(struct cli *cli, const bsm_checkpoint *checkpoint, const struct place *place, bsm_weight *only)
{
    int64_t found = 0;
    for (int64_t i = 0; i < bsm_checkpoint_tensor_count(checkpoint); i++) {
        bsm_weight weight;
        if (weights_get(cli, checkpoint, i, &weight) != CLI_DONE) return CLI_BAD_INPUT;
        if (weight.convention == BSM_CONVENTION_NONE) continue;
        if (found++ == 0) *only = weight;
    }
    if (found == 1) return CLI_DONE;
    return cli_bad_input(cli, "%s: has %" PRId64 " weights; name one as %s:WEIGHT (blockscale inspect lists them)",
                         place->checkpoint, found, place->checkpoint);
}

static int find_weight(struct cli *cli, const bsm_checkpoint *checkpoint, const struct place *place, bsm_weight *weight)
{
    *weight = (bsm_weight){ .struct_size = sizeof *weight };
    if (place->weight[0] == '\0') return find_only(cli, checkpoint, place, weight);
    const bsm_status status = bsm_checkpoint_find_weight(checkpoint, place->weight, weight);
    if (status != BSM_OK) return cli_library_failed(cli, place->checkpoint, status);
    if (weight->convention != BSM_CONVENTION_NONE) return CLI_DONE;
    return cli_bad_input(cli, "%s: %s is no matrix (blockscale inspect lists those that are)", place->checkpoint,
                         place->weight);
}

/* Whether the weight has the matrix that is named. */
static int check_matrix(struct cli *cli, const struct place *place, const bsm_weight *weight)
{
    const int64_t batch = weight->matrix.batch > 1 ? weight->matrix.batch : 1;
    if (place->matrix < 0 && batch > 1)
        return cli_bad_input(cli, "%s: is a batch of %" PRId64 " matrices; name one of %s[0] to %s[%" PRId64 "]",
                             place->weight, batch, place->weight, place->weight, batch - 1);
    if (place->matrix >= batch)
        return cli_bad_input(cli, "%s[%" PRId64 "]: there is no such matrix; the last is %s[%" PRId64 "]",
                             place->weight, place->matrix, place->weight, batch - 1);
    return CLI_DONE;
}

/* fp8 with fp32 scales of tiles: no format of products has those, so its numbers are taken, as fp32. */
static int take_tiles(struct cli *cli, const bsm_weight *weight, int64_t batch, struct matmul_operand *o)
{
    const bsm_matrix *m = &weight->matrix;
    o->stored = false;
    o->real = (struct cli_real){ .type = BSM_REAL_FP32, .rows = m->rows, .columns = m->columns,
                                 .array = { .struct_size = sizeof(bsm_npy) } };
    o->real.data = o->real.own = cli_memory(cli, m->rows * m->columns, sizeof(float));
    return weights_values(cli, weight, batch, o->real.own);
}

/* Numbers without codes become a real matrix over the mapped file, and are quantized; others are multiplied as they lie
 * there. */
static int take_matrix(struct cli *cli, const struct place *place, const bsm_weight *weight, struct matmul_operand *o)
{
    bsm_matrix whole;
    const bsm_matrix *matrix = &whole;
    const int64_t batch = place->matrix < 0 ? 0 : place->matrix;
    if (weight->tile_rows > 0) return take_tiles(cli, weight, batch, o);
    const bsm_status status = bsm_weight_tile(weight, batch, 0, 0, &whole);
    if (status != BSM_OK) return cli_library_failed(cli, place->weight, status);
    static const struct { bsm_format format; bsm_real type; } reals[] = {
        { BSM_FORMAT_FP32, BSM_REAL_FP32 }, { BSM_FORMAT_FP16, BSM_REAL_FP16 }, { BSM_FORMAT_BF16, BSM_REAL_BF16 } };
    o->stored = true;
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        if (reals[i].format == matrix->format) o->stored = false, o->real.type = reals[i].type;
    if (o->stored) o->quantized.matrix = *matrix;
    else o->real.rows = matrix->rows, o->real.columns = matrix->columns, o->real.data = matrix->data;
    return CLI_DONE;
}

static int read_weight(struct cli *cli, const struct request *request, struct matmul_operand *o)
{
    struct place *place = cli_memory(cli, 1, (int64_t)sizeof *place);
    bsm_weight weight;
    int result = split(cli, request->path, place);
    if (result == CLI_DONE) result = weights_open(cli, place->checkpoint, &o->checkpoint);
    if (result == CLI_DONE) result = find_weight(cli, o->checkpoint, place, &weight);
    if (result == CLI_DONE) result = check_matrix(cli, place, &weight);
    if (result == CLI_DONE) result = take_matrix(cli, place, &weight, o);
    free(place);
    if (result == CLI_DONE && !o->stored && (request->type != CLI_TYPE_AUTO || request->transpose))
        return cli_wrong_usage(cli,
                               "%s: a checkpoint says its type and shape: --%s-type and --transpose-%s are not for it",
                               request->path, request->letter, request->letter);
    return result;
}

/* Operands --------------------------------------------------------------------------------------------------------- */

void matmul_free_operand(struct cli *cli, struct matmul_operand *o)
{
    if (!o->stored) cli_real_free(cli, &o->real);
    cli_quantized_free(cli, &o->quantized);
    bsm_checkpoint_close(o->checkpoint);
}

static int quantize_operand(struct cli *cli, const struct matmul_settings *s, bsm_format format,
                            struct matmul_operand *o)
{
    const bool scaled = bsm_format_get((int)format)->scale != BSM_UNSCALED;
    const bsm_quantize_options how = { .recipe = scaled ? s->recipe : BSM_RECIPE_DEFAULT };
    struct cli_tensor_scale scale = s->tensor_scale;
    if (format == BSM_FORMAT_FP32 || format == BSM_FORMAT_FP16 || format == BSM_FORMAT_BF16)
        scale.source = CLI_SCALE_NONE;
    int result =
        cli_quantized_new(cli, format, BSM_PACKING_DEFAULT, s->layout, o->real.rows, o->real.columns, &o->quantized);
    if (result == CLI_DONE) result = cli_quantize(cli, o->path, &o->real, scale, how, &o->quantized, &o->stats);
    return result;
}

static int read_operand(struct cli *cli, const struct matmul_settings *s, const struct request *request,
                        struct matmul_operand *o)
{
    const char *letter = request->letter, *path = request->path;
    const bsm_format format = request->format != BSM_FORMAT_NONE ? request->format : s->format;
    const bool described = request->format != BSM_FORMAT_NONE || request->type != CLI_TYPE_AUTO || request->transpose
                           || request->major != BSM_MAJOR_K;
    int result = CLI_DONE;
    const bool weight = is_in_checkpoint(path);
    o->path = path;
    o->stored = !weight && cli_ends_with(path, ".json");
    if (weight) result = read_weight(cli, request, o);
    if (result != CLI_DONE) return result;
    if (o->stored && described)
        return cli_wrong_usage(
            cli,
            "%s is %s, which says its format: --%s-format, --%s-type, --%s-major and --transpose-%s are not for it",
            path, weight ? "a quantized weight" : "a note", letter, letter, letter, letter);
    if (o->stored) return weight ? CLI_DONE : cli_load_quantized(cli, path, &o->quantized);
    if (format == BSM_FORMAT_NONE)
        return cli_wrong_usage(cli, "the format of %s is missing: give --format, or --%s-format", path, letter);
    if (!weight)
        result = cli_read_real(cli, path, request->type, request->transpose, letter[0] == 'a' ? 0 : 1, &o->real);
    if (result == CLI_DONE) result = quantize_operand(cli, s, format, o);
    return result == CLI_DONE && request->major == BSM_MAJOR_MN ? cli_quantized_turn(cli, path, &o->quantized) : result;
}

int matmul_read_operands(struct cli *cli, struct matmul_job *job)
{
    const struct matmul_settings *s = job->settings;
    const struct request first = { "a", s->a, s->a_format, s->a_type, false, s->a_major };
    const struct request second = { "b", s->b, s->b_format, s->b_type, s->transpose_b, s->b_major };
    int result = read_operand(cli, s, &first, &job->a);
    if (result == CLI_DONE) result = read_operand(cli, s, &second, &job->b);
    if (result != CLI_DONE) return result;
    const bsm_matrix *a = &job->a.quantized.matrix, *b = &job->b.quantized.matrix;
    if (a->columns != b->columns)
        return cli_bad_input(cli,
                             "A is %" PRId64 " x %" PRId64 " and B is %" PRId64 " x %" PRId64
                             ": A is M x K and B is N x K, with "
                             "the same K%s",
                             a->rows, a->columns, b->rows, b->columns,
                             !job->b.stored && job->b.checkpoint == NULL && !s->transpose_b && a->columns == b->rows
                                 ? "; --transpose-b is for a B of K x N"
                                 : "");
    return CLI_DONE;
}
