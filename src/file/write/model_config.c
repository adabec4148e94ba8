/* The files beside a model's weights that say how they are quantized, see model.h. */
#include "file/io/file.h"
#include "file/io/json.h"
#include "model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lists of modules that are left as they are make a config.json long: a few megabytes, with hundreds of experts a
 * layer. */
enum { MOST_BYTES = 8 << 20 };

struct text { char *at; size_t bytes; };

static void release(struct bsmi_model *model, struct text *text)
{
    bsmi_release(model->context, text->at, text->bytes);
    *text = (struct text){ NULL, 0 };
}

/* What `put` writes: counted first. */
static bsm_status make_text(struct bsmi_model *model, const struct bsmi_quantization *q,
                            void (*put)(struct bsmi_json_writer *json, const struct bsmi_quantization *q),
                            struct text *text)
{
    struct bsmi_sink counted = { NULL, 0, 0 };
    struct bsmi_json_writer json = { .sink = &counted };
    put(&json, q);
    struct bsmi_sink sink = { bsmi_allocate(model->context, counted.used), counted.used, 0 };
    if (sink.into == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a configuration of %zu bytes", counted.used);
    json = (struct bsmi_json_writer){ .sink = &sink };
    put(&json, q);
    *text = (struct text){ (char *)sink.into, sink.used };
    return BSM_OK;
}

/* The bytes of an open file; at is not NULL, also where there are none. */
static bsm_status read_bytes(struct bsmi_model *model, const char *path, int descriptor, uint64_t bytes,
                             struct text *text)
{
    if (bytes > MOST_BYTES)
        return bsmi_fail(BSM_EFILE,
                         "%.256s: is no configuration: it has %" PRIu64 " bytes, and a configuration has at most %d",
                         path, bytes, MOST_BYTES);
    const bsm_status status = bsmi_outputs_read(model->outputs, path);
    if (status != BSM_OK) return status;
    text->bytes = (size_t)bytes + 1;
    text->at = bsmi_allocate(model->context, text->bytes);
    if (text->at == NULL) return bsmi_fail(BSM_ENOMEM, "%.256s: no memory for its %" PRIu64 " bytes", path, bytes);
    return bsmi_read_exactly(descriptor, path, text->at, (size_t)bytes);
}

/* Reads the model's own configuration, with a byte more behind it; one that is not there is an empty object. */
static bsm_status read_text(struct bsmi_model *model, const char *path, struct text *text)
{
    struct stat there;
    int descriptor;
    uint64_t bytes;
    errno = 0;
    if (stat(path, &there) != 0 && errno != ENOENT) return bsmi_fail_with_errno(path, "cannot be read");
    if (errno == ENOENT) return BSM_OK;
    bsm_status status = bsmi_open_file(path, &descriptor, &bytes);
    if (status != BSM_OK) return status;
    status = read_bytes(model, path, descriptor, bytes, text);
    close(descriptor);
    return status;
}

static bsm_status write_file(struct bsmi_model *model, const char *name, const struct bsmi_json_edited *edited)
{
    struct bsmi_output *output;
    char *path = bsmi_join_path(model->context, model->output, name);
    if (path == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a path");
    bsm_status status = bsmi_outputs_create(model->outputs, path, &output);
    if (status == BSM_OK) status = bsmi_output_write(model->outputs, output, 0, edited->text, edited->bytes);
    bsmi_release_text(model->context, path);
    return status;
}

/* The model's own config.json, or an empty one, with another quantization_config (NULL: with none). */
static bsm_status write_config(struct bsmi_model *model, const struct text *value)
{
    static char empty[] = "{}";
    struct text own = { NULL, 0 };
    struct bsmi_json_edited edited = { .text = NULL };
    bsm_status status = model->input != NULL ? bsmi_model_find_folder(model) : BSM_OK;
    char *path = status != BSM_OK          ? NULL
                 : model->folder == NULL ? bsmi_join_text(model->context, "config.json", 11, "")
                                           : bsmi_join_path(model->context, model->folder, "config.json");
    if (status == BSM_OK && path == NULL) status = bsmi_fail(BSM_ENOMEM, "no memory for a path");
    if (status == BSM_OK && model->folder != NULL) status = read_text(model, path, &own);
    const struct text before = own.at != NULL ? (struct text){ own.at, own.bytes - 1 } : (struct text){ empty, 2 };
    if (status == BSM_OK)
        status = bsmi_json_edit(model->context, path, before.at, before.bytes, "quantization_config",
                                value != NULL ? value->at : NULL, value != NULL ? value->bytes : 0, &edited);
    if (status == BSM_OK && edited.members > 0) status = write_file(model, "config.json", &edited);
    bsmi_json_edited_free(model->context, &edited);
    release(model, &own);
    bsmi_release_text(model->context, path);
    return status;
}

static bsm_status write_hf_quant_config(struct bsmi_model *model, const struct bsmi_quantization *q)
{
    static const char name[] = "hf_quant_config.json";
    struct text text = { NULL, 0 };
    struct bsmi_json_edited edited = { .text = NULL };
    bsm_status status = make_text(model, q, bsmi_quantization_hf_quant_config, &text);
    if (status != BSM_OK) return status;
    status = bsmi_json_edit(model->context, name, text.at, text.bytes, NULL, NULL, 0, &edited);
    if (status == BSM_OK) status = write_file(model, name, &edited);
    bsmi_json_edited_free(model->context, &edited);
    release(model, &text);
    return status;
}

static bsm_status note_no_words(struct bsmi_model *model, const struct bsmi_quantization *q)
{
    char note[160];
    const bsm_format_info *info = bsm_format_get((int)q->format);
    snprintf(note, sizeof note, "no config.json is written: %s has no words for %s",
             bsm_convention_name((int)q->convention), info != NULL ? info->name : "several formats at once");
    return bsmi_texts_add(model->context, &model->notes, note);
}

bsm_status bsmi_model_configure(struct bsmi_model *model, const struct bsmi_quantization *q)
{
    struct text value = { NULL, 0 };
    if (q->convention == BSM_CONVENTION_NONE) return write_config(model, NULL);
    if (!bsmi_quantization_has_words(q)) return note_no_words(model, q);
    bsm_status status = make_text(model, q, bsmi_quantization_config, &value);
    if (status != BSM_OK) return status;
    status = write_config(model, &value);
    release(model, &value);
    if (status == BSM_OK && q->convention == BSM_CONVENTION_MODELOPT) status = write_hf_quant_config(model, q);
    return status;
}
