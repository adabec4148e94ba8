/* Checkpoints written piece by piece: what is announced, and the file it goes to.
 *
 * The tensors' order in the file is not that of their announcement: wider numbers come first, so that all are
 * aligned. */
#include "writer.h"

#include <inttypes.h>
#include <limits.h>
#include <sys/statvfs.h>

/* Making ---------------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), end = strlen(ending);
    return length > end && strcmp(text + length - end, ending) == 0;
}

static bsm_status check_files(const bsm_writer_files *files)
{
    if (files == NULL) return BSM_OK;
    const char *lacks = files->reads == NULL         ? "reads"
                        : files->make_folder == NULL ? "make_folder"
                        : files->create == NULL      ? "create"
                        : files->write == NULL       ? "write"
                                                     : NULL;
    return lacks == NULL ? BSM_OK : bsmi_fail(BSM_EINVAL, "options->files->%s is NULL: give all four functions", lacks);
}

static bsm_status check_options(const bsm_writer_options *options)
{
    if (options->model != NULL && options->model[0] == '\0') return bsmi_fail(BSM_EINVAL, "options->model is empty");
    if (options->metadata_count < 0)
        return bsmi_fail(BSM_EINVAL, "options->metadata_count=%" PRId64 " is negative", options->metadata_count);
    if (options->metadata_count > 0 && options->metadata == NULL)
        return bsmi_fail(BSM_EINVAL, "options->metadata is NULL with metadata_count=%" PRId64, options->metadata_count);
    for (int64_t i = 0; i < options->metadata_count; i++)
        if (options->metadata[i].key == NULL || options->metadata[i].value == NULL)
            return bsmi_fail(BSM_EINVAL, "options->metadata[%" PRId64 "].%s is NULL", i,
                             options->metadata[i].key == NULL ? "key" : "value");
    return check_files(options->files);
}

static bsm_status copy_metadata(bsm_writer *w, const bsm_writer_options *options)
{
    bsm_status status = BSM_OK;
    for (int64_t i = 0; status == BSM_OK && i < options->metadata_count; i++) {
        status = bsmi_texts_add(w->context, &w->metadata, options->metadata[i].key);
        if (status == BSM_OK) status = bsmi_texts_add(w->context, &w->metadata, options->metadata[i].value);
    }
    if (status != BSM_OK || options->metadata_count > 0 || w->kind == BSM_CHECKPOINT_GGUF) return status;
    status = bsmi_texts_add(w->context, &w->metadata, "format");
    return status == BSM_OK ? bsmi_texts_add(w->context, &w->metadata, "pt") : status;
}

static bsm_status fill(bsm_writer *w, const char *path, const bsm_writer_options *options)
{
    w->kind = ends_with(path, ".gguf") ? BSM_CHECKPOINT_GGUF : BSM_CHECKPOINT_SAFETENSORS;
    w->is_folder = w->kind == BSM_CHECKPOINT_SAFETENSORS && !ends_with(path, ".safetensors");
    bsmi_outputs_start(&w->outputs, w->context, options->files);
    w->output = bsmi_join_text(w->context, path, strlen(path), "");
    w->path = bsmi_join_text(w->context, path, strlen(path), w->is_folder ? "/model.safetensors" : "");
    if (options->model != NULL) w->input = bsmi_join_text(w->context, options->model, strlen(options->model), "");
    if (w->output == NULL || w->path == NULL || (options->model != NULL && w->input == NULL))
        return bsmi_fail(BSM_ENOMEM, "no memory for a path");
    w->model = (struct bsmi_model){
        .context = w->context, .outputs = &w->outputs, .input = w->input, .output = w->output
    };
    return copy_metadata(w, options);
}

bsm_status bsm_writer_create(bsm_context *context, const char *path, const bsm_writer_options *options,
                             bsm_writer **writer)
{
    bsm_writer_options known = { .struct_size = sizeof known };
    if (writer == NULL) return bsmi_fail(BSM_EINVAL, "writer is NULL");
    *writer = NULL;
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if (path == NULL || path[0] == '\0') return bsmi_fail(BSM_EINVAL, "path is %s", path == NULL ? "NULL" : "empty");
    if (strlen(path) + 64 > PATH_MAX) return bsmi_fail(BSM_EIO, "%.64s...: too long a name", path);
    bsm_status status = options != NULL ? bsmi_read_struct("options", options, &known, sizeof known) : BSM_OK;
    if (status == BSM_OK) status = check_options(&known);
    if (status != BSM_OK) return status;
    bsm_writer *made = bsmi_allocate(context, sizeof *made);
    if (made == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a writer");
    *made = (bsm_writer){ .context = context };
    status = fill(made, path, &known);
    if (status == BSM_OK) *writer = made;
    else bsm_writer_destroy(made);
    return status;
}

static void forget_tensors(bsm_writer *w, int64_t from)
{
    for (int64_t i = from; i < w->count; i++) bsmi_release_text(w->context, w->tensors[i].name);
    w->count = from;
}

void bsm_writer_destroy(bsm_writer *w)
{
    if (w == NULL) return;
    bsm_context *context = w->context;
    bsmi_outputs_end(&w->outputs);
    bsmi_model_free(&w->model);
    forget_tensors(w, 0);
    bsmi_release(context, w->tensors, (size_t)w->room * sizeof *w->tensors);
    for (int64_t i = 0; i < w->weight_count; i++) bsmi_release_text(context, w->weights[i].name);
    bsmi_release(context, w->weights, (size_t)w->weight_room * sizeof *w->weights);
    bsmi_release(context, w->others, (size_t)w->other_room * sizeof *w->others);
    bsmi_texts_free(context, &w->metadata);
    bsmi_release_text(context, w->output);
    bsmi_release_text(context, w->path);
    bsmi_release_text(context, w->input);
    bsmi_release(context, w, sizeof *w);
}

/* Announcing ------------------------------------------------------------------------------------------------------ */

bsm_status bsmi_writer_check(const bsm_writer *w, enum bsmi_writer_state state)
{
    static const char *const has[] = { "has not begun: bsm_writer_begin comes first",
                                       "has begun: nothing more can be announced", "is finished", "failed" };
    if (w == NULL) return bsmi_fail(BSM_EINVAL, "writer is NULL");
    return w->state == state ? BSM_OK : bsmi_fail(BSM_EINVAL, "writer: %.200s %s", w->output, has[w->state]);
}

/* An announced tensor under this name, which the writer owns from now on, also after an error. */
static bsm_status add(bsm_writer *w, char *name, const bsm_tensor *tensor, int64_t *index)
{
    struct bsmi_written_tensor *tensors = NULL;
    if (name != NULL) tensors = bsmi_with_room(w->context, w->tensors, &w->room, w->count, sizeof *tensors);
    if (tensors == NULL) {
        bsmi_release_text(w->context, name);
        return bsmi_fail(BSM_ENOMEM, "no memory for a list of %" PRId64 " tensors", w->count + 1);
    }
    w->tensors = tensors;
    tensors[w->count] = (struct bsmi_written_tensor){ .tensor = *tensor, .name = name };
    tensors[w->count].tensor.struct_size = sizeof *tensor;
    tensors[w->count].tensor.name = name;
    tensors[w->count].tensor.data = NULL;
    *index = w->count++;
    return BSM_OK;
}

/* A part of a weight: the name is the weight's, with an ending. */
static bsm_status add_part(bsm_writer *w, const char *name, const char *ending, const bsm_tensor *tensor,
                           int64_t *index)
{
    return add(w, bsmi_join_text(w->context, name, strlen(name), ending), tensor, index);
}

static bsm_status add_parts(bsm_writer *w, const bsm_writer_weight *weight, const struct bsmi_spelling *s,
                            struct bsmi_written_weight *written)
{
    bsm_tensor codes, scales;
    const bsm_tensor number = bsmi_spelling_fp32(s);
    bsm_status status = bsmi_spelling_codes(s, &written->matrix, &codes);
    if (status == BSM_OK) status = bsmi_spelling_scales(s, &written->matrix, &scales);
    if (status != BSM_OK) return bsmi_fail(status, "weight %.200s: %s", weight->name, bsm_last_error());
    if (weight->input_scale)
        status = add_part(w, weight->name, bsmi_spelling_input_scale(s), &number, &written->input_scale);
    if (status == BSM_OK) status = add_part(w, weight->name, s->codes, &codes, &written->codes);
    if (status == BSM_OK && s->scales != NULL)
        status = add_part(w, weight->name, s->scales, &scales, &written->scales);
    if (status == BSM_OK && weight->tensor_scale)
        status = add_part(w, weight->name, s->tensor_scale, &number, &written->tensor_scale);
    return status;
}

static bsm_status check_weight(const bsm_writer *w, const bsm_writer_weight *weight)
{
    if (weight->name == NULL || weight->name[0] == '\0')
        return bsmi_fail(BSM_EINVAL, "weight->name is %s", weight->name == NULL ? "NULL" : "empty");
    const bsm_status status = bsm_writer_check_format(weight->convention, weight->format);
    if (status != BSM_OK) return bsmi_fail(status, "weight %.200s: %s", weight->name, bsm_last_error());
    const struct bsmi_spelling *s = bsmi_spelling_find(weight->convention, weight->format);
    const bool gguf = weight->convention == BSM_CONVENTION_GGUF;
    if (gguf != (w->kind == BSM_CHECKPOINT_GGUF))
        return bsmi_fail(BSM_EINVAL, "weight %.200s: convention=%s goes with an output called X%s, not with %.200s",
                         weight->name, bsm_convention_name((int)weight->convention),
                         gguf ? ".gguf" : ".safetensors or a folder", w->output);
    if (weight->columns % bsmi_spelling_row_unit(s) != 0)
        return bsmi_fail(BSM_EINVAL, "weight %.200s: columns=%" PRId64 " are not whole %s of %" PRId64, weight->name,
                         weight->columns, bsmi_spelling_row_unit(s) == 4 ? "groups" : "blocks",
                         bsmi_spelling_row_unit(s));
    if (weight->tensor_scale && s->tensor_scale == NULL)
        return bsmi_fail(BSM_EINVAL, "weight %.200s: tensor_scale is true, but %s of %s has none", weight->name,
                         bsm_format_get((int)weight->format)->name, bsm_convention_name((int)weight->convention));
    return BSM_OK;
}

bsm_status bsm_writer_add_weight(bsm_writer *w, const bsm_writer_weight *given, int64_t *number, bsm_matrix *matrix)
{
    bsm_writer_weight weight;
    bsm_status status = bsmi_writer_check(w, BSMI_WRITER_ANNOUNCING);
    if (status != BSM_OK) return status;
    if (given == NULL || number == NULL || matrix == NULL)
        return bsmi_fail(BSM_EINVAL, "%s is NULL", given == NULL ? "weight" : number == NULL ? "number" : "matrix");
    status = bsmi_read_struct("weight", given, &weight, sizeof weight);
    if (status == BSM_OK) status = check_weight(w, &weight);
    if (status != BSM_OK) return status;
    struct bsmi_written_weight *weights =
        bsmi_with_room(w->context, w->weights, &w->weight_room, w->weight_count, sizeof *weights);
    if (weights == NULL)
        return bsmi_fail(BSM_ENOMEM, "no memory for a list of %" PRId64 " weights", w->weight_count + 1);
    w->weights = weights;
    const struct bsmi_spelling *s = bsmi_spelling_find(weight.convention, weight.format);
    struct bsmi_written_weight written = { .convention = weight.convention, .scales = -1, .tensor_scale = -1,
                                           .input_scale = -1 };
    written.matrix = bsmi_spelling_matrix(s, weight.batch, weight.rows, weight.columns);
    const int64_t before = w->count;
    written.name = bsmi_join_text(w->context, weight.name, strlen(weight.name), "");
    status = written.name != NULL ? add_parts(w, &weight, s, &written) : bsmi_fail(BSM_ENOMEM, "no memory for a name");
    if (status != BSM_OK) {
        forget_tensors(w, before);
        bsmi_release_text(w->context, written.name);
        return status;
    }
    *number = w->weight_count;
    *matrix = written.matrix;
    weights[w->weight_count++] = written;
    return BSM_OK;
}

bsm_status bsm_writer_add_tensor(bsm_writer *w, const bsm_tensor *given, int64_t *number)
{
    bsm_tensor tensor;
    int64_t index = 0;
    bsm_status status = bsmi_writer_check(w, BSMI_WRITER_ANNOUNCING);
    if (status != BSM_OK) return status;
    if (given == NULL || number == NULL)
        return bsmi_fail(BSM_EINVAL, "%s is NULL", given == NULL ? "tensor" : "number");
    status = bsmi_read_struct("tensor", given, &tensor, sizeof tensor);
    if (status != BSM_OK) return status;
    status = bsmi_tensor_check(w->kind, &tensor);
    if (status != BSM_OK) return bsmi_fail(status, "%.256s: %s", w->output, bsm_last_error());
    int64_t *others = bsmi_with_room(w->context, w->others, &w->other_room, w->other_count, sizeof *others);
    if (others == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a list of %" PRId64 " tensors", w->count + 1);
    w->others = others;
    status = add(w, bsmi_join_text(w->context, tensor.name, strlen(tensor.name), ""), &tensor, &index);
    if (status != BSM_OK) return status;
    w->tensors[index].is_other = true;
    *number = w->other_count;
    others[w->other_count++] = index;
    return BSM_OK;
}

/* Places ---------------------------------------------------------------------------------------------------------- */

int64_t bsmi_writer_padded(const bsm_writer *w, int64_t bytes)
{
    if (w->kind != BSM_CHECKPOINT_GGUF || bytes > INT64_MAX - BSMI_GGUF_ALIGNMENT) return bytes;
    return bsmi_round_up(bytes, BSMI_GGUF_ALIGNMENT);
}

int64_t bsm_writer_bytes(const bsm_writer *w)
{
    int64_t bytes = 0;
    for (int64_t i = 0; w != NULL && i < w->count; i++)
        if (bsmi_add_overflows(bytes, bsmi_writer_padded(w, w->tensors[i].tensor.bytes), &bytes)) return INT64_MAX;
    return bytes;
}

const char *bsm_writer_path(const bsm_writer *w) { return w == NULL ? NULL : w->path; }

/* Bytes of a number, or 1. */
static int width_of(const bsm_tensor *tensor)
{
    const int bits = bsm_tensor_type_bits((int)tensor->type);
    return bits > 8 ? bits / 8 : 1;
}

/* The tensors in the order of the file: numbers of them, and their descriptions. */
struct order { int64_t *numbers; bsm_tensor *tensors; size_t bytes; };

static bsm_status find_order(const bsm_writer *w, struct order *order)
{
    int64_t used = 0;
    order->bytes = (size_t)w->count * (sizeof *order->tensors + sizeof *order->numbers) + 1;
    order->tensors = bsmi_allocate(w->context, order->bytes);
    if (order->tensors == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a list of %" PRId64 " tensors", w->count);
    order->numbers = (int64_t *)(void *)(order->tensors + w->count);
    for (int width = 8; width >= 1; width /= 2)
        for (int64_t i = 0; i < w->count; i++)
            if (width_of(&w->tensors[i].tensor) == width) {
                order->tensors[used] = w->tensors[i].tensor;
                order->numbers[used++] = i;
            }
    return BSM_OK;
}

static bsm_status make_header(const bsm_writer *w, const bsm_tensor *ordered, void **header, size_t *header_bytes)
{
    const int64_t pairs = w->metadata.count / 2;
    const size_t bytes = (size_t)pairs * sizeof(bsm_metadata) + 1;
    bsm_metadata *metadata = bsmi_allocate(w->context, bytes);
    if (metadata == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for %" PRId64 " texts", pairs);
    for (int64_t i = 0; i < pairs; i++)
        metadata[i] = (bsm_metadata){ w->metadata.items[2 * i], w->metadata.items[2 * i + 1] };
    const bsm_status status =
        bsm_checkpoint_header(w->context, w->kind, ordered, w->count, metadata, pairs, header, header_bytes);
    bsmi_release(w->context, metadata, bytes);
    return status == BSM_OK ? BSM_OK : bsmi_fail(status, "%.256s: %s", w->output, bsm_last_error());
}

/* The head, and from it where every tensor lies. */
static bsm_status place_tensors(bsm_writer *w, void **header, size_t *header_bytes)
{
    struct order order = { .bytes = 0 };
    bsm_status status = find_order(w, &order);
    if (status != BSM_OK) return status;
    status = make_header(w, order.tensors, header, header_bytes);
    int64_t offset = (int64_t)*header_bytes;
    for (int64_t i = 0; status == BSM_OK && i < w->count; i++) {
        struct bsmi_written_tensor *t = &w->tensors[order.numbers[i]];
        t->offset = offset;
        offset += bsmi_writer_padded(w, t->tensor.bytes);
    }
    bsmi_release(w->context, order.tensors, order.bytes);
    return status;
}

/* Opening --------------------------------------------------------------------------------------------------------- */

static bsm_status check_room(const bsm_writer *w, int64_t wanted)
{
    struct statvfs disk;
    char folder[PATH_MAX];
    const char *slash = strrchr(w->path, '/');
    const size_t length = slash == NULL ? 0 : (size_t)(slash - w->path) + 1;
    memcpy(folder, w->path, length);
    memcpy(folder + length, ".", 2);
    if (statvfs(folder, &disk) != 0) return BSM_OK; /* opening the file will say why */
    const uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if ((uint64_t)wanted <= room) return BSM_OK;
    return bsmi_fail(
        BSM_EIO, "%.256s: needs %" PRId64 " bytes, but its disk has room for %" PRIu64 "; make room and run this again",
        w->output, wanted, room);
}

static bsm_status open_file(bsm_writer *w, const void *header, size_t header_bytes)
{
    bsm_status status = w->is_folder ? bsmi_outputs_make_folder(&w->outputs, w->output) : BSM_OK;
    if (status == BSM_OK) status = check_room(w, (int64_t)header_bytes + bsm_writer_bytes(w));
    if (status == BSM_OK) status = bsmi_outputs_create(&w->outputs, w->path, &w->file);
    return status == BSM_OK ? bsmi_output_write(&w->outputs, w->file, 0, header, header_bytes) : status;
}

bsm_status bsm_writer_begin(bsm_writer *w)
{
    void *header = NULL;
    size_t header_bytes = 0;
    bsm_status status = bsmi_writer_check(w, BSMI_WRITER_ANNOUNCING);
    if (status != BSM_OK) return status;
    status = place_tensors(w, &header, &header_bytes);
    if (status == BSM_OK) status = open_file(w, header, header_bytes);
    bsm_header_release(w->context, header, header_bytes);
    w->state = status == BSM_OK ? BSMI_WRITER_WRITING : BSMI_WRITER_FAILED;
    return status;
}
