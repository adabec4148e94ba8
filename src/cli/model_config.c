/* The files beside a model's weights, see model_config.h.
 *
 * Sources of keys and words: ModelOpt's hf_quant_config.json and the quantization_config of Hugging Face's config.json, as ModelOpt
 * and compressed-tensors write them. */
#include "model_config.h"
#include "json_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Lists of modules that are left as they are make a config.json long: a few megabytes, with hundreds of experts a layer. */
enum { MOST_BYTES = 8 << 20 };

/* How the two projects call a format. */
static const struct spelled {
    bsm_format format;
    const char *algorithm, *packed;
    int bits, group;
    const char *strategy;
} words[] = {
    { BSM_NVFP4, "NVFP4", "nvfp4-pack-quantized", 4, 16, "tensor_group" },
    { BSM_MXFP4, "MXFP4", "mxfp4-pack-quantized", 4, 32, "group" },
    { BSM_MXFP8_E4M3, "MXFP8", "mxfp8-quantized", 8, 32, "group" },
    { BSM_FORMAT_E4M3, "FP8", "float-quantized", 8, 0, "tensor" },
};

static const struct spelled *find(bsm_format format)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].format == format) return &words[i];
    return NULL;
}

struct config {
    yyjson_alc memory;
    yyjson_mut_doc *doc;
    const struct spelled *words;
    char **left;
    int left_count;
};

static void add_left(const struct config *c, yyjson_mut_val *object, const char *key)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(c->doc, object, key);
    for (int i = 0; i < c->left_count; i++) yyjson_mut_arr_add_str(c->doc, list, c->left[i]);
}

static void add_producer(const struct config *c, yyjson_mut_val *object)
{
    char version[32];
    const int number = bsm_version();
    yyjson_mut_val *producer = yyjson_mut_obj_add_obj(c->doc, object, "producer");
    snprintf(version, sizeof version, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
    yyjson_mut_obj_add_str(c->doc, producer, "name", "blockscale");
    yyjson_mut_obj_add_strcpy(c->doc, producer, "version", version);
}

/* What ModelOpt says of the quantization, in both of its places. */
static void add_modelopt(const struct config *c, yyjson_mut_val *object, const char *ignored)
{
    yyjson_mut_obj_add_str(c->doc, object, "quant_algo", c->words->algorithm);
    yyjson_mut_obj_add_null(c->doc, object, "kv_cache_quant_algo");
    if (c->words->group > 0) yyjson_mut_obj_add_int(c->doc, object, "group_size", c->words->group);
    add_left(c, object, ignored);
}

static void add_compressed_tensors(const struct config *c, yyjson_mut_val *object)
{
    yyjson_mut_obj_add_str(c->doc, object, "quant_method", "compressed-tensors");
    yyjson_mut_obj_add_str(c->doc, object, "format", c->words->packed);
    yyjson_mut_obj_add_str(c->doc, object, "quantization_status", "compressed");
    yyjson_mut_val *groups = yyjson_mut_obj_add_obj(c->doc, object, "config_groups");
    yyjson_mut_val *group = yyjson_mut_obj_add_obj(c->doc, groups, "group_0");
    yyjson_mut_val *targets = yyjson_mut_obj_add_arr(c->doc, group, "targets");
    yyjson_mut_arr_add_str(c->doc, targets, "Linear");
    yyjson_mut_val *weights = yyjson_mut_obj_add_obj(c->doc, group, "weights");
    yyjson_mut_obj_add_int(c->doc, weights, "num_bits", c->words->bits);
    yyjson_mut_obj_add_str(c->doc, weights, "type", "float");
    yyjson_mut_obj_add_str(c->doc, weights, "strategy", c->words->strategy);
    if (c->words->group > 0) yyjson_mut_obj_add_int(c->doc, weights, "group_size", c->words->group);
    yyjson_mut_obj_add_bool(c->doc, weights, "symmetric", true);
    yyjson_mut_obj_add_bool(c->doc, weights, "dynamic", false);
    yyjson_mut_obj_add_null(c->doc, group, "input_activations");
    yyjson_mut_obj_add_null(c->doc, group, "output_activations");
    add_left(c, object, "ignore");
}

static int write_document(struct cli *cli, const char *output, const char *name, const yyjson_mut_doc *doc)
{
    char path[4096 + 64];
    size_t length = 0;
    snprintf(path, sizeof path, "%s/%s", output, name);
    char *text = yyjson_mut_write(doc, YYJSON_WRITE_PRETTY_TWO_SPACES | YYJSON_WRITE_NEWLINE_AT_END, &length);
    if (text == NULL) return cli_bad_input(cli, "%s: no memory for its text", path);
    FILE *file = cli_output(cli, path);
    errno = 0;
    const bool good = file != NULL && fwrite(text, 1, length, file) == length && fflush(file) == 0;
    const int reason = errno != 0 ? errno : EIO;
    free(text);
    if (file == NULL) return CLI_BAD_INPUT;
    return good ? CLI_DONE : cli_bad_input(cli, "%s: could not be written: %s", path, strerror(reason));
}

static int write_hf_quant_config(struct cli *cli, const char *output, struct config *c)
{
    c->doc = yyjson_mut_doc_new(&c->memory);
    yyjson_mut_val *top = yyjson_mut_obj(c->doc);
    yyjson_mut_doc_set_root(c->doc, top);
    add_producer(c, top);
    add_modelopt(c, yyjson_mut_obj_add_obj(c->doc, top, "quantization"), "exclude_modules");
    const int result = write_document(cli, output, "hf_quant_config.json", c->doc);
    yyjson_mut_doc_free(c->doc);
    return result;
}

/* The model's own config.json as a document that can be changed; an empty one where there is none. */
static int read_config(struct cli *cli, const char *input, yyjson_mut_doc **doc)
{
    char path[4096 + 64] = "";
    struct stat there;
    const yyjson_alc memory = cli_yyjson_memory(cli);
    if (input != NULL) {
        if (stat(input, &there) != 0) return cli_bad_input(cli, "%s: cannot be read: %s", input, strerror(errno));
        const bool folder = S_ISDIR(there.st_mode);
        const char *slash = strrchr(input, '/');
        const int length = folder ? (int)strlen(input) : slash == NULL ? 1 : (int)(slash - input);
        snprintf(path, sizeof path, "%.*s/config.json", length, folder || slash != NULL ? input : ".");
    }
    *doc = NULL;
    const int reason = path[0] == '\0' ? ENOENT : stat(path, &there) == 0 ? 0 : errno;
    if (reason != 0 && reason != ENOENT) return cli_bad_input(cli, "%s: cannot be read: %s", path, strerror(reason));
    if (reason == ENOENT) {
        *doc = yyjson_mut_doc_new(&memory);
        yyjson_mut_doc_set_root(*doc, yyjson_mut_obj(*doc));
        return CLI_DONE;
    }
    yyjson_doc *read;
    const int result = json_file_read(cli, path, "configuration", MOST_BYTES, &read);
    if (result != CLI_DONE) return result;
    if (yyjson_is_obj(yyjson_doc_get_root(read))) *doc = yyjson_doc_mut_copy(read, &memory);
    yyjson_doc_free(read);
    return *doc != NULL ? CLI_DONE : cli_bad_input(cli, "%s: a JSON object is wanted", path);
}

static int write_config(struct cli *cli, const char *input, const char *output, bsm_convention convention, struct config *c)
{
    int result = read_config(cli, input, &c->doc);
    if (result != CLI_DONE) return result;
    yyjson_mut_val *top = yyjson_mut_doc_get_root(c->doc);
    yyjson_mut_obj_remove_key(top, "quantization_config");
    yyjson_mut_val *object = yyjson_mut_obj_add_obj(c->doc, top, "quantization_config");
    if (convention == BSM_CONVENTION_COMPRESSED_TENSORS) add_compressed_tensors(c, object);
    else {
        yyjson_mut_obj_add_str(c->doc, object, "quant_method", "modelopt");
        add_modelopt(c, object, "ignore");
        add_producer(c, object);
    }
    result = write_document(cli, output, "config.json", c->doc);
    yyjson_mut_doc_free(c->doc);
    return result;
}

int model_config_write(struct cli *cli, const char *input, const char *output, bsm_convention convention, bsm_format format,
                       char **left, int left_count)
{
    struct config config = { .memory = cli_yyjson_memory(cli), .words = find(format), .left = left, .left_count = left_count };
    if (config.words == NULL || (convention != BSM_CONVENTION_MODELOPT && convention != BSM_CONVENTION_COMPRESSED_TENSORS)) {
        const bsm_format_info *info = bsm_format_get((int)format);
        cli_note(cli, "no config.json is written: %s has no words for %s", bsm_convention_name((int)convention),
                 info != NULL ? info->name : "several formats at once");
        return CLI_DONE;
    }
    int result = write_config(cli, input, output, convention, &config);
    if (result == CLI_DONE && convention == BSM_CONVENTION_MODELOPT) result = write_hf_quant_config(cli, output, &config);
    return result;
}

int model_config_remove(struct cli *cli, const char *input, const char *output)
{
    yyjson_mut_doc *doc;
    int result = read_config(cli, input, &doc);
    if (result != CLI_DONE) return result;
    yyjson_mut_val *top = yyjson_mut_doc_get_root(doc);
    yyjson_mut_obj_remove_key(top, "quantization_config");
    if (yyjson_mut_obj_size(top) > 0) result = write_document(cli, output, "config.json", doc);
    yyjson_mut_doc_free(doc);
    return result;
}
