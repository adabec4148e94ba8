/* Writing checkpoints: the request checked, the head of either kind, the whole file. */
#include "file/io/json.h"
#include "file/io/replace.h"
#include "file/tensors/sort.h"
#include "file/tensors/tensors.h"
#include "json_text.h"
#include "writer.h"

#include <inttypes.h>

void bsmi_sink_put(struct bsmi_sink *sink, const void *bytes, size_t count)
{
    if (count > 0 && sink->room >= count && sink->used <= sink->room - count)
        memcpy(sink->into + sink->used, bytes, count);
    sink->used += count;
}

/* safetensors ------------------------------------------------------------------------------------------------------ */

static void put_word(struct bsmi_sink *sink, const char *word) { bsmi_sink_put(sink, word, strlen(word)); }

static void put_tensor(struct bsmi_json_writer *json, const bsm_tensor *t, int64_t offset)
{
    bsmi_json_open(json, t->name, '{');
    bsmi_json_text(json, "dtype", bsm_tensor_type_name((int)t->type));
    bsmi_json_open(json, "shape", '[');
    for (int i = 0; i < t->rank; i++) bsmi_json_integer(json, NULL, t->shape[i]);
    bsmi_json_close(json, ']');
    bsmi_json_open(json, "data_offsets", '[');
    bsmi_json_integer(json, NULL, offset);
    bsmi_json_integer(json, NULL, offset + t->bytes);
    bsmi_json_close(json, ']');
    bsmi_json_close(json, '}');
}

static void put_metadata(struct bsmi_json_writer *json, const struct bsmi_header_request *request)
{
    bsmi_json_open(json, "__metadata__", '{');
    for (int64_t i = 0; i < request->metadata_count; i++)
        bsmi_json_text(json, request->metadata[i].key, request->metadata[i].value);
    bsmi_json_close(json, '}');
}

/* The length is written over once the header is there; blanks align the data to 8 bytes. */
void bsmi_safetensors_header(const struct bsmi_header_request *request, struct bsmi_sink *sink)
{
    unsigned char length[8] = { 0 };
    int64_t offset = 0;
    struct bsmi_json_writer json = { .sink = sink };
    bsmi_sink_put(sink, length, sizeof length);
    bsmi_json_open(&json, NULL, '{');
    if (request->metadata_count > 0) put_metadata(&json, request);
    for (int64_t i = 0; i < request->count; i++) {
        put_tensor(&json, &request->tensors[i], offset);
        offset += request->tensors[i].bytes;
    }
    bsmi_json_close(&json, '}');
    while (sink->used % 8 != 0) put_word(sink, " ");
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)(sink->used - 8) >> 8 * i);
    if (sink->room >= sizeof length) memcpy(sink->into, length, sizeof length);
}

/* GGUF ------------------------------------------------------------------------------------------------------------- */

static void put_number(struct bsmi_sink *sink, uint64_t number, int bytes)
{
    unsigned char little[8];
    for (int i = 0; i < bytes; i++) little[i] = (unsigned char)(number >> 8 * i);
    bsmi_sink_put(sink, little, (size_t)bytes);
}

static void put_text(struct bsmi_sink *sink, const char *text)
{
    put_number(sink, strlen(text), 8);
    put_word(sink, text);
}

static int gguf_type(const bsm_tensor *t)
{
    return t->type == BSM_TENSOR_OTHER ? t->gguf_type : bsmi_tensor_type_to_gguf(t->type);
}

void bsmi_gguf_header(const struct bsmi_header_request *request, struct bsmi_sink *sink)
{
    enum { VERSION = 3, STRING = 8 };
    int64_t offset = 0;
    put_word(sink, "GGUF");
    put_number(sink, VERSION, 4);
    put_number(sink, (uint64_t)request->count, 8);
    put_number(sink, (uint64_t)request->metadata_count, 8);
    for (int64_t i = 0; i < request->metadata_count; i++) {
        put_text(sink, request->metadata[i].key);
        put_number(sink, STRING, 4);
        put_text(sink, request->metadata[i].value);
    }
    for (int64_t i = 0; i < request->count; i++) {
        const bsm_tensor *t = &request->tensors[i];
        put_text(sink, t->name);
        put_number(sink, (uint64_t)t->rank, 4);
        for (int d = t->rank - 1; d >= 0; d--) put_number(sink, (uint64_t)t->shape[d], 8);
        put_number(sink, (uint64_t)gguf_type(t), 4);
        put_number(sink, (uint64_t)offset, 8);
        offset = bsmi_round_up(offset + t->bytes, BSMI_GGUF_ALIGNMENT);
    }
    while (sink->used % BSMI_GGUF_ALIGNMENT != 0) put_number(sink, 0, 1);
}

/* The request ------------------------------------------------------------------------------------------------------ */

static bsm_status check_type(bsm_checkpoint_kind kind, const bsm_tensor *t, struct bsmi_tensor_block *block)
{
    bsm_tensor_type type;
    const char *name;
    const char *word = bsm_tensor_type_name((int)t->type);
    if (kind == BSM_CHECKPOINT_SAFETENSORS && t->type == BSM_TENSOR_OTHER) word = bsm_gguf_type_name(t->gguf_type);
    *block = (struct bsmi_tensor_block){ 1, 1 };
    if ((int)t->type < 0 || t->type >= BSM_TENSOR_TYPE_COUNT)
        return bsmi_fail(BSM_EINVAL, "tensor %.200s: type=%d is no type of tensors", t->name, (int)t->type);
    if (kind == BSM_CHECKPOINT_SAFETENSORS && !bsmi_tensor_type_in_safetensors(t->type))
        return bsmi_fail(BSM_EINVAL, "tensor %.200s: .safetensors files have no type %s", t->name,
                         word != NULL ? word : "OTHER");
    if (kind == BSM_CHECKPOINT_SAFETENSORS) {
        *block = bsmi_tensor_type_block(t->type);
        return BSM_OK;
    }
    const int number = gguf_type(t);
    if (number < 0 || !bsmi_tensor_type_from_gguf((uint32_t)number, &type, block, &name) || type != t->type)
        return bsmi_fail(BSM_EINVAL, "tensor %.200s: GGUF files have no type %s with number %d", t->name,
                         word != NULL ? word : "OTHER", number);
    return BSM_OK;
}

bsm_status bsmi_tensor_check(bsm_checkpoint_kind kind, bsm_tensor *t)
{
    struct bsmi_tensor_block block;
    int64_t bytes;
    if (t->name == NULL || t->name[0] == '\0')
        return bsmi_fail(BSM_EINVAL, "a tensor's name is %s", t->name == NULL ? "NULL" : "empty");
    if (kind == BSM_CHECKPOINT_SAFETENSORS && strcmp(t->name, "__metadata__") == 0)
        return bsmi_fail(BSM_EINVAL, "tensor __metadata__: this name means something else in .safetensors files");
    const int most = kind == BSM_CHECKPOINT_GGUF ? 4 : BSM_TENSOR_MAX_RANK;
    if (t->rank < 0 || t->rank > most)
        return bsmi_fail(BSM_EINVAL, "tensor %.200s: rank=%d; 0 to %d is wanted", t->name, t->rank, most);
    for (int i = 0; i < t->rank; i++)
        if (t->shape[i] < 0)
            return bsmi_fail(BSM_EINVAL, "tensor %.200s: shape[%d]=%" PRId64 " is negative", t->name, i, t->shape[i]);
    bsm_status status = check_type(kind, t, &block);
    if (status == BSM_OK)
        status = bsmi_tensor_bytes(BSM_EINVAL, t->name, t->rank, t->shape, block, kind == BSM_CHECKPOINT_GGUF, &bytes);
    if (status != BSM_OK) return status;
    if (t->bytes != 0 && t->bytes != bytes)
        return bsmi_fail(BSM_EINVAL, "tensor %.200s: bytes=%" PRId64 ", but its shape and type need %" PRId64, t->name,
                         t->bytes, bytes);
    t->bytes = bytes;
    return BSM_OK;
}

/* Reads one tensor of the caller's into *t, and its size into t->bytes. */
static bsm_status read_tensor(bsm_checkpoint_kind kind, const bsm_tensor *given, bsm_tensor *t)
{
    const bsm_status status = bsmi_read_struct("tensors[]", given, t, sizeof *t);
    return status == BSM_OK ? bsmi_tensor_check(kind, t) : status;
}

/* Where tensors will lie: sums that fit, and numbers that are aligned. */
static bsm_status check_places(bsm_checkpoint_kind kind, const bsm_tensor *tensors, int64_t count)
{
    const int64_t alignment = kind == BSM_CHECKPOINT_GGUF ? BSMI_GGUF_ALIGNMENT : 1;
    int64_t offset = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t size = BSMI_MAX(bsm_tensor_type_bits((int)tensors[i].type) / 8, 1);
        if (kind == BSM_CHECKPOINT_SAFETENSORS && offset % size != 0 && tensors[i].bytes > 0)
            return bsmi_fail(BSM_EINVAL,
                             "tensor %.200s: would lie at byte %" PRId64 " of the data, not aligned to its %" PRId64
                             " bytes: put tensors of wider numbers first",
                             tensors[i].name, offset, size);
        if (bsmi_add_overflows(offset, tensors[i].bytes, &offset) || offset > INT64_MAX - 2 * alignment)
            return bsmi_fail(BSM_EOVERFLOW, "tensor %.200s: the data up to here has more bytes than 63 bits count",
                             tensors[i].name);
        offset = bsmi_round_up(offset, alignment);
    }
    return BSM_OK;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static bsm_status check_names(const bsm_tensor *tensors, int64_t count, const char **names)
{
    for (int64_t i = 0; i < count; i++) names[i] = tensors[i].name;
    bsmi_sort(names, (size_t)count, sizeof *names, by_text);
    for (int64_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return bsmi_fail(BSM_EINVAL, "two tensors are called %.200s", names[i]);
    return BSM_OK;
}

static bsm_status check_arguments(bsm_context *context, bsm_checkpoint_kind kind, const bsm_tensor *tensors,
                                  int64_t count, const bsm_metadata *metadata, int64_t metadata_count)
{
    enum { MOST = 1 << 28 };
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if ((int)kind < 0 || kind >= BSM_CHECKPOINT_KIND_COUNT)
        return bsmi_fail(BSM_EINVAL, "kind=%d is no kind of checkpoint", (int)kind);
    if (count < 0 || count > MOST) return bsmi_fail(BSM_EINVAL, "count=%" PRId64 "; 0 to %d is wanted", count, MOST);
    if (metadata_count < 0 || metadata_count > MOST)
        return bsmi_fail(BSM_EINVAL, "metadata_count=%" PRId64 "; 0 to %d is wanted", metadata_count, MOST);
    if (tensors == NULL && count > 0) return bsmi_fail(BSM_EINVAL, "tensors is NULL with count=%" PRId64, count);
    if (metadata == NULL && metadata_count > 0)
        return bsmi_fail(BSM_EINVAL, "metadata is NULL with metadata_count=%" PRId64, metadata_count);
    for (int64_t i = 0; i < metadata_count; i++)
        if (metadata[i].key == NULL || metadata[i].value == NULL)
            return bsmi_fail(BSM_EINVAL, "metadata[%" PRId64 "].%s is NULL", i,
                             metadata[i].key == NULL ? "key" : "value");
    return BSM_OK;
}

/* A header of names that are no UTF-8 is no JSON. */
static bsm_status check_header(const bsm_context *context, const unsigned char *header, size_t bytes)
{
    struct bsmi_json json;
    if (bytes - 8 > BSMI_SAFETENSORS_HEADER)
        return bsmi_fail(BSM_EINVAL, "the header has %zu bytes; the format allows %d: use fewer tensors", bytes - 8,
                         BSMI_SAFETENSORS_HEADER);
    const bsm_status status = bsmi_json_read(context, "the header", (const char *)header + 8, bytes - 8, &json);
    if (status == BSM_OK) bsmi_json_free(&json);
    return status == BSM_EFILE ? bsmi_fail(BSM_EINVAL, "a name or a text is no UTF-8: %s", bsm_last_error()) : status;
}

static bsm_status make_header(bsm_context *context, bsm_checkpoint_kind kind, const struct bsmi_header_request *request,
                              void **header, size_t *header_bytes)
{
    void (*const put)(const struct bsmi_header_request *, struct bsmi_sink *) =
        kind == BSM_CHECKPOINT_GGUF ? bsmi_gguf_header : bsmi_safetensors_header;
    struct bsmi_sink counted = { NULL, 0, 0 };
    put(request, &counted);
    struct bsmi_sink sink = { bsmi_allocate(context, counted.used), counted.used, 0 };
    if (sink.into == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a header of %zu bytes", counted.used);
    put(request, &sink);
    const bsm_status status = kind == BSM_CHECKPOINT_SAFETENSORS ? check_header(context, sink.into, sink.used) : BSM_OK;
    if (status != BSM_OK) {
        bsmi_release(context, sink.into, sink.used);
        return status;
    }
    *header = sink.into;
    *header_bytes = sink.used;
    return BSM_OK;
}

/* The tensors in memory of ours, checked: `bytes` of each is its size. */
struct checked {
    bsm_tensor *tensors;
    const char **names;
    void *memory;
    size_t memory_bytes;
};

static bsm_status check_tensors(bsm_context *context, bsm_checkpoint_kind kind, const bsm_tensor *given, int64_t count,
                                struct checked *checked)
{
    checked->memory_bytes = (size_t)count * (sizeof *checked->tensors + sizeof *checked->names) + 1;
    checked->memory = bsmi_allocate(context, checked->memory_bytes);
    if (checked->memory == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a list of %" PRId64 " tensors", count);
    checked->tensors = checked->memory;
    checked->names = (const char **)(void *)(checked->tensors + count);
    bsm_status status = BSM_OK;
    for (int64_t i = 0; status == BSM_OK && i < count; i++)
        status =
            read_tensor(kind, (const bsm_tensor *)(const void *)((const char *)given + (size_t)i * given->struct_size),
                        &checked->tensors[i]);
    if (status == BSM_OK) status = check_places(kind, checked->tensors, count);
    if (status == BSM_OK) status = check_names(checked->tensors, count, checked->names);
    if (status != BSM_OK) bsmi_release(context, checked->memory, checked->memory_bytes);
    return status;
}

bsm_status bsm_checkpoint_header(bsm_context *context, bsm_checkpoint_kind kind, const bsm_tensor *tensors,
                                 int64_t count, const bsm_metadata *metadata, int64_t metadata_count, void **header,
                                 size_t *header_bytes)
{
    struct checked checked;
    bsm_status status = check_arguments(context, kind, tensors, count, metadata, metadata_count);
    if (status == BSM_OK && (header == NULL || header_bytes == NULL))
        return bsmi_fail(BSM_EINVAL, "%s is NULL", header == NULL ? "header" : "header_bytes");
    if (status == BSM_OK) status = check_tensors(context, kind, tensors, count, &checked);
    if (status != BSM_OK) return status;
    const struct bsmi_header_request request = { checked.tensors, count, metadata, metadata_count };
    status = make_header(context, kind, &request, header, header_bytes);
    bsmi_release(context, checked.memory, checked.memory_bytes);
    return status;
}

void bsm_header_release(bsm_context *context, void *header, size_t header_bytes)
{
    if (context != NULL && header != NULL) bsmi_release(context, header, header_bytes);
}

/* Whole files ------------------------------------------------------------------------------------------------------ */

static bsm_status write_pieces(bsm_context *context, const char *path, bsm_checkpoint_kind kind,
                               const struct checked *checked, int64_t count, const void *header, size_t header_bytes)
{
    static const unsigned char zeros[BSMI_GGUF_ALIGNMENT];
    const size_t bytes = (2 * (size_t)count + 1) * sizeof(struct bsmi_piece);
    struct bsmi_piece *pieces = bsmi_allocate(context, bytes);
    if (pieces == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a list of %" PRId64 " tensors", count);
    pieces[0] = (struct bsmi_piece){ header, header_bytes };
    for (int64_t i = 0; i < count; i++) {
        const size_t data = (size_t)checked->tensors[i].bytes;
        pieces[2 * i + 1] = (struct bsmi_piece){ checked->tensors[i].data, data };
        pieces[2 * i + 2] = (struct bsmi_piece){ zeros, kind == BSM_CHECKPOINT_GGUF ? (0 - data) % sizeof zeros : 0 };
    }
    const bsm_status status = bsmi_write_file(path, pieces, (int)(2 * count + 1));
    bsmi_release(context, pieces, bytes);
    return status;
}

bsm_status bsm_checkpoint_write(bsm_context *context, const char *path, bsm_checkpoint_kind kind,
                                const bsm_tensor *tensors, int64_t count, const bsm_metadata *metadata,
                                int64_t metadata_count)
{
    struct checked checked;
    void *header = NULL;
    size_t header_bytes = 0;
    bsm_status status = check_arguments(context, kind, tensors, count, metadata, metadata_count);
    if (status == BSM_OK && (path == NULL || path[0] == '\0'))
        return bsmi_fail(BSM_EINVAL, "path is %s", path == NULL ? "NULL" : "empty");
    if (status == BSM_OK) status = check_tensors(context, kind, tensors, count, &checked);
    if (status != BSM_OK) return status;
    for (int64_t i = 0; status == BSM_OK && i < count; i++)
        if (checked.tensors[i].data == NULL && checked.tensors[i].bytes > 0)
            status = bsmi_fail(BSM_EINVAL, "tensor %.200s: data is NULL, but its shape needs %" PRId64 " bytes",
                               checked.tensors[i].name, checked.tensors[i].bytes);
    const struct bsmi_header_request request = { checked.tensors, count, metadata, metadata_count };
    if (status == BSM_OK) status = make_header(context, kind, &request, &header, &header_bytes);
    if (status == BSM_OK) status = write_pieces(context, path, kind, &checked, count, header, header_bytes);
    if (header != NULL) bsmi_release(context, header, header_bytes);
    bsmi_release(context, checked.memory, checked.memory_bytes);
    return status;
}
