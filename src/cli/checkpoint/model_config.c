/* The files beside a model's weights, see model_config.h. */
#include "model_config.h"
#include "cli/io/json_file.h"
#include "model_files.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Lists of modules that are left as they are make a config.json long: a few megabytes, with hundreds of experts a layer. */
enum { MOST_BYTES = 8 << 20 };

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

static int write_hf_quant_config(struct cli *cli, const char *output, const struct quantization *quantization)
{
    const yyjson_alc memory = cli_yyjson_memory(cli);
    yyjson_mut_doc *doc = yyjson_mut_doc_new(&memory);
    yyjson_mut_doc_set_root(doc, quantization_hf_quant_config(doc, quantization));
    const int result = write_document(cli, output, "hf_quant_config.json", doc);
    yyjson_mut_doc_free(doc);
    return result;
}

/* The model's own config.json as a document that can be changed; an empty one where there is none. */
static int read_config(struct cli *cli, const char *input, yyjson_mut_doc **doc)
{
    char path[4096 + 64] = "";
    struct stat there;
    const yyjson_alc memory = cli_yyjson_memory(cli);
    struct model_folder folder;
    if (input != NULL && model_folder_of(cli, input, &folder) != CLI_DONE) return CLI_BAD_INPUT;
    if (input != NULL) snprintf(path, sizeof path, "%s/config.json", folder.path);
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

static int write_config(struct cli *cli, const char *input, const char *output, const struct quantization *quantization)
{
    yyjson_mut_doc *doc;
    int result = read_config(cli, input, &doc);
    if (result != CLI_DONE) return result;
    yyjson_mut_val *top = yyjson_mut_doc_get_root(doc);
    yyjson_mut_obj_remove_key(top, "quantization_config");
    yyjson_mut_obj_add_val(doc, top, "quantization_config", quantization_config(doc, quantization));
    result = write_document(cli, output, "config.json", doc);
    yyjson_mut_doc_free(doc);
    return result;
}

int model_config_write(struct cli *cli, const char *input, const char *output, const struct quantization *quantization)
{
    if (!quantization_has_words(quantization)) {
        const bsm_format_info *info = bsm_format_get((int)quantization->format);
        cli_note(cli, "no config.json is written: %s has no words for %s", bsm_convention_name((int)quantization->convention),
                 info != NULL ? info->name : "several formats at once");
        return CLI_DONE;
    }
    int result = write_config(cli, input, output, quantization);
    if (result == CLI_DONE && quantization->convention == BSM_CONVENTION_MODELOPT)
        result = write_hf_quant_config(cli, output, quantization);
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
