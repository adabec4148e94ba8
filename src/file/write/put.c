/* What comes after a checkpoint's announcements: its bytes, and the end. */
#include "writer.h"

#include <inttypes.h>
#include <math.h>

/* Bytes ----------------------------------------------------------------------------------------------------------- */

/* An error of writing ends the writer: what lies in the file is not known any more. */
static bsm_status ended_by(bsm_writer *w, bsm_status status)
{
    if (status != BSM_OK) w->state = BSMI_WRITER_FAILED;
    return status;
}

static bsm_status put(bsm_writer *w, int64_t index, const void *data, int64_t bytes)
{
    static const unsigned char zeros[BSMI_GGUF_ALIGNMENT];
    struct bsmi_written_tensor *t = &w->tensors[index];
    const int64_t all = t->tensor.bytes;
    if (bytes < 0) return bsmi_fail(BSM_EINVAL, "bytes=%" PRId64 " is negative", bytes);
    if (data == NULL && bytes > 0) return bsmi_fail(BSM_EINVAL, "data is NULL with bytes=%" PRId64, bytes);
    if (bytes > all - t->done)
        return bsmi_fail(BSM_EINVAL,
                         "tensor %.200s: bytes=%" PRId64 ", but of the %" PRId64 " that were announced %" PRId64
                         " are left",
                         t->name, bytes, all, all - t->done);
    bsm_status status =
        bytes > 0 ? bsmi_output_write(&w->outputs, w->file, t->offset + t->done, data, (size_t)bytes) : BSM_OK;
    t->done += bytes;
    const int64_t padding = t->done == all && bytes > 0 ? bsmi_writer_padded(w, all) - all : 0;
    if (status == BSM_OK && padding > 0)
        status = bsmi_output_write(&w->outputs, w->file, t->offset + all, zeros, (size_t)padding);
    return ended_by(w, status);
}

bsm_status bsm_writer_put(bsm_writer *w, int64_t number, const void *data, int64_t bytes)
{
    const bsm_status status = bsmi_writer_check(w, BSMI_WRITER_WRITING);
    if (status != BSM_OK) return status;
    if (number < 0 || number >= w->other_count)
        return bsmi_fail(BSM_EINVAL, "number=%" PRId64 "; %" PRId64 " tensors were announced", number, w->other_count);
    return put(w, w->others[number], data, bytes);
}

/* Weights --------------------------------------------------------------------------------------------------------- */

/* The description as it was given out: only pointers are the caller's. */
static bsm_status check_description(const struct bsmi_written_weight *weight, const bsm_matrix *m)
{
    const bsm_matrix *want = &weight->matrix;
    const struct { const char *name; int64_t is, wanted; } fields[] = {
        { "format", (int64_t)m->format, (int64_t)want->format },
        { "packing", (int64_t)m->packing, (int64_t)want->packing },
        { "major", (int64_t)m->major, (int64_t)want->major },
        { "rows", m->rows, want->rows },
        { "columns", m->columns, want->columns },
        { "pitch", m->pitch, want->pitch },
        { "scale_layout.kind", (int64_t)m->scale_layout.kind, (int64_t)want->scale_layout.kind },
        { "scale_layout.pitch", m->scale_layout.pitch, want->scale_layout.pitch },
        { "tensor_scale_use", (int64_t)m->tensor_scale_use, (int64_t)want->tensor_scale_use },
        { "batch", BSMI_MAX(m->batch, 1), BSMI_MAX(want->batch, 1) },
        { "batch_pitch", m->batch_pitch, want->batch_pitch },
        { "scale_batch_pitch", m->scale_batch_pitch, want->scale_batch_pitch },
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].is != fields[i].wanted)
            return bsmi_fail(BSM_EINVAL,
                             "weight %.200s: matrix->%s=%" PRId64 "; %" PRId64 " is wanted, as bsm_writer_add_weight "
                             "described the matrix",
                             weight->name, fields[i].name, fields[i].is, fields[i].wanted);
    return BSM_OK;
}

static bsm_status check_scale(const struct bsmi_written_weight *weight, const char *name, bool given, bool announced)
{
    if (given == announced) return BSM_OK;
    return bsmi_fail(BSM_EINVAL, "weight %.200s: %s is %s; it was announced %s one", weight->name, name,
                     given ? "given" : "NULL", announced ? "with" : "without");
}

static bsm_status check_matrix(const struct bsmi_written_weight *weight, const bsm_matrix *m, const float *input_scale)
{
    bsm_status status = check_description(weight, m);
    if (status == BSM_OK)
        status = check_scale(weight, "matrix->tensor_scale", m->tensor_scale != NULL, weight->tensor_scale >= 0);
    if (status == BSM_OK) status = check_scale(weight, "input_scale", input_scale != NULL, weight->input_scale >= 0);
    if (status != BSM_OK) return status;
    status = bsm_matrix_check(m);
    if (status != BSM_OK) return bsmi_fail(status, "weight %.200s: %s", weight->name, bsm_last_error());
    if (m->tensor_scale == NULL || (isfinite(*m->tensor_scale) && *m->tensor_scale > 0)) return BSM_OK;
    return bsmi_fail(BSM_EINVAL, "weight %.200s: *matrix->tensor_scale=%g; a tensor scale is finite and > 0",
                     weight->name, (double)*m->tensor_scale);
}

static bsm_status put_whole(bsm_writer *w, int64_t index, const void *data)
{
    return index < 0 ? BSM_OK : put(w, index, data, w->tensors[index].tensor.bytes);
}

bsm_status bsm_writer_put_weight(bsm_writer *w, int64_t number, const bsm_matrix *given, const float *input_scale)
{
    bsm_matrix m;
    bsm_status status = bsmi_writer_check(w, BSMI_WRITER_WRITING);
    if (status != BSM_OK) return status;
    if (number < 0 || number >= w->weight_count)
        return bsmi_fail(BSM_EINVAL, "number=%" PRId64 "; %" PRId64 " weights were announced", number, w->weight_count);
    if (given == NULL) return bsmi_fail(BSM_EINVAL, "matrix is NULL");
    const struct bsmi_written_weight *weight = &w->weights[number];
    status = bsmi_read_struct("matrix", given, &m, sizeof m);
    if (status == BSM_OK) status = check_matrix(weight, &m, input_scale);
    if (status == BSM_OK) status = put_whole(w, weight->input_scale, input_scale);
    if (status == BSM_OK) status = put_whole(w, weight->codes, m.data);
    if (status == BSM_OK) status = put_whole(w, weight->scales, m.scales);
    return status == BSM_OK ? put_whole(w, weight->tensor_scale, m.tensor_scale) : status;
}

/* The end --------------------------------------------------------------------------------------------------------- */

static bsm_status check_complete(const bsm_writer *w)
{
    for (int64_t i = 0; i < w->count; i++)
        if (w->tensors[i].done < w->tensors[i].tensor.bytes)
            return bsmi_fail(BSM_EINVAL, "tensor %.200s: of %" PRId64 " bytes %" PRId64 " were put", w->tensors[i].name,
                             w->tensors[i].tensor.bytes, w->tensors[i].done);
    return BSM_OK;
}

/* A tensor of two dimensions called X.weight is what models call a linear module X. */
static bsm_status find_left(const bsm_writer *w, struct bsmi_texts *left)
{
    static const char ending[] = ".weight";
    bsm_status status = BSM_OK;
    for (int64_t i = 0; status == BSM_OK && i < w->other_count; i++) {
        const bsm_tensor *t = &w->tensors[w->others[i]].tensor;
        const size_t length = strlen(t->name), end = sizeof ending - 1;
        if (t->rank != 2 || length <= end || strcmp(t->name + length - end, ending) != 0) continue;
        char *module = bsmi_join_text(w->context, t->name, length - end, "");
        status =
            module != NULL ? bsmi_texts_add(w->context, left, module) : bsmi_fail(BSM_ENOMEM, "no memory for a name");
        bsmi_release_text(w->context, module);
    }
    return status;
}

/* What the configuration is to say; weights of several formats or conventions have no words. */
static bsm_status describe(const bsm_writer *w, struct bsmi_quantization *q)
{
    *q = (struct bsmi_quantization){ .convention = BSM_CONVENTION_NONE };
    for (int64_t i = 0; i < w->weight_count; i++) {
        const struct bsmi_written_weight *weight = &w->weights[i];
        if (i == 0) {
            q->convention = weight->convention;
            q->format = weight->matrix.format;
            q->input_scales = true;
        }
        if (weight->matrix.format != q->format || weight->convention != q->convention) q->format = BSM_FORMAT_NONE;
        if (weight->input_scale < 0) q->input_scales = false;
        if (strcmp(weight->name, "lm_head") == 0) q->head = true;
    }
    return find_left(w, &q->left);
}

static bsm_status write_model(bsm_writer *w)
{
    struct bsmi_quantization q;
    if (!w->is_folder) return BSM_OK;
    bsm_status status = describe(w, &q);
    if (status == BSM_OK) status = bsmi_model_configure(&w->model, &q);
    bsmi_texts_free(w->context, &q.left);
    return status == BSM_OK ? bsmi_model_copy_files(&w->model) : status;
}

bsm_status bsm_writer_finish(bsm_writer *w)
{
    bsm_status status = bsmi_writer_check(w, BSMI_WRITER_WRITING);
    if (status != BSM_OK) return status;
    status = check_complete(w);
    if (status == BSM_OK) status = write_model(w);
    if (status == BSM_OK) status = bsmi_outputs_finish(&w->outputs);
    w->state = status == BSM_OK ? BSMI_WRITER_FINISHED : BSMI_WRITER_FAILED;
    return status;
}

const char *bsm_writer_copied(const bsm_writer *w, int64_t index)
{
    return w == NULL ? NULL : bsmi_texts_get(&w->model.copied, index);
}

const char *bsm_writer_not_copied(const bsm_writer *w, int64_t index)
{
    return w == NULL ? NULL : bsmi_texts_get(&w->model.not_copied, index);
}

const char *bsm_writer_note(const bsm_writer *w, int64_t index)
{
    return w == NULL ? NULL : bsmi_texts_get(&w->model.notes, index);
}
