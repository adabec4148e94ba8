/* The head of a .safetensors file.
 *
 * Source: the format's README: 8 bytes with the length of the header, little-endian; the header, a JSON object that
 * starts with '{' and may end in blanks: for each tensor its dtype, shape and the bytes [begin, end) of the data behind
 * the header; the data without holes.  "__metadata__" is an object of texts.  Every byte may be a lie: each is checked
 * before it is believed. */
#include "file/io/json.h"
#include "file/io/kind.h"
#include "file/tensors/tensors.h"

#include <inttypes.h>

enum { LENGTH_BYTES = 8 };

/* One tensor ------------------------------------------------------------------------------------------------------- */

static bsm_status wrong_kind(const char *name, const char *key, const char *wanted, yyjson_val *value)
{
    return bsmi_fail(BSM_EFILE, "tensor %.200s: \"%s\" is %s; %s is wanted", name, key, bsmi_json_kind(value), wanted);
}

static bsm_status read_type(struct bsmi_tensor *t, yyjson_val *value)
{
    if (!yyjson_is_str(value)) return wrong_kind(t->name, "dtype", "a text", value);
    const int type = bsmi_tensor_type_from_safetensors(yyjson_get_str(value));
    if (type < 0 || bsmi_json_has_nul(value))
        return bsmi_fail(BSM_EUNSUPPORTED, "tensor %.200s: \"dtype\": \"%.40s\" is no type that is known", t->name,
                         yyjson_get_str(value));
    t->type = (bsm_tensor_type)type;
    return BSM_OK;
}

/* A whole number of at most 63 bits. */
static bsm_status read_whole(const char *name, const char *key, yyjson_val *value, int64_t *number)
{
    if (!yyjson_is_num(value)) return wrong_kind(name, key, "a list of whole numbers", value);
    if (yyjson_is_sint(value)) return bsmi_fail(BSM_EFILE, "tensor %.200s: \"%s\" has a negative number", name, key);
    if (yyjson_is_real(value))
        return bsmi_fail(BSM_EFILE, "tensor %.200s: \"%s\" has a number that is not whole, or beyond 64 bits", name,
                         key);
    if (yyjson_get_uint(value) > INT64_MAX)
        return bsmi_fail(BSM_EFILE, "tensor %.200s: \"%s\" has a number that does not fit 63 bits", name, key);
    *number = (int64_t)yyjson_get_uint(value);
    return BSM_OK;
}

static bsm_status read_shape(struct bsmi_tensor *t, yyjson_val *value)
{
    size_t i, rank;
    yyjson_val *dimension;
    if (!yyjson_is_arr(value)) return wrong_kind(t->name, "shape", "a list", value);
    if (yyjson_arr_size(value) > BSM_TENSOR_MAX_RANK)
        return bsmi_fail(BSM_EUNSUPPORTED, "tensor %.200s: has %zu dimensions; read are up to %d", t->name,
                         yyjson_arr_size(value), BSM_TENSOR_MAX_RANK);
    yyjson_arr_foreach(value, i, rank, dimension) {
        const bsm_status status = read_whole(t->name, "shape", dimension, &t->shape[i]);
        if (status != BSM_OK) return status;
    }
    t->rank = (int)rank;
    return BSM_OK;
}

static bsm_status read_place(struct bsmi_tensor *t, yyjson_val *value)
{
    int64_t end = 0;
    if (!yyjson_is_arr(value)) return wrong_kind(t->name, "data_offsets", "a list of two numbers", value);
    if (yyjson_arr_size(value) != 2)
        return bsmi_fail(BSM_EFILE, "tensor %.200s: \"data_offsets\" has %zu numbers, not two", t->name,
                         yyjson_arr_size(value));
    bsm_status status = read_whole(t->name, "data_offsets", yyjson_arr_get(value, 0), &t->offset);
    if (status == BSM_OK) status = read_whole(t->name, "data_offsets", yyjson_arr_get(value, 1), &end);
    if (status != BSM_OK) return status;
    if (end < t->offset)
        return bsmi_fail(BSM_EFILE, "tensor %.200s: \"data_offsets\" end at %" PRId64 ", before they begin at %" PRId64,
                         t->name, end, t->offset);
    t->bytes = end - t->offset;
    return BSM_OK;
}

static const struct {
    const char *name;
    bsm_status (*read)(struct bsmi_tensor *t, yyjson_val *value);
} fields[] = {
    { "dtype", read_type },
    { "shape", read_shape },
    { "data_offsets", read_place },
};
enum { FIELD_COUNT = sizeof fields / sizeof fields[0] };

static bsm_status check_size(const struct bsmi_tensor *t)
{
    int64_t wanted;
    const bsm_status status =
        bsmi_tensor_bytes(BSM_EFILE, t->name, t->rank, t->shape, bsmi_tensor_type_block(t->type), false, &wanted);
    if (status != BSM_OK || wanted == t->bytes) return status;
    return bsmi_fail(BSM_EFILE,
                     "tensor %.200s: its shape and dtype need %" PRId64 " bytes, its \"data_offsets\" have %" PRId64,
                     t->name, wanted, t->bytes);
}

static bsm_status read_tensor(struct bsmi_tensor *t, yyjson_val *entry)
{
    bool seen[FIELD_COUNT] = { false };
    size_t i, count;
    yyjson_val *key, *value;
    t->gguf_type = -1;
    if (!yyjson_is_obj(entry))
        return bsmi_fail(BSM_EFILE, "tensor %.200s: is %s; an object is wanted", t->name, bsmi_json_kind(entry));
    yyjson_obj_foreach(entry, i, count, key, value) {
        int field = 0;
        while (field < FIELD_COUNT && !yyjson_equals_str(key, fields[field].name)) field++;
        if (field == FIELD_COUNT)
            return bsmi_fail(BSM_EFILE, "tensor %.200s: has a key \"%.40s\"; it has dtype, shape and data_offsets",
                             t->name, yyjson_get_str(key));
        if (seen[field])
            return bsmi_fail(BSM_EFILE, "tensor %.200s: has the key \"%s\" twice", t->name, fields[field].name);
        seen[field] = true;
        const bsm_status status = fields[field].read(t, value);
        if (status != BSM_OK) return status;
    }
    for (int field = 0; field < FIELD_COUNT; field++)
        if (!seen[field])
            return bsmi_fail(BSM_EFILE, "tensor %.200s: lacks the key \"%s\"", t->name, fields[field].name);
    return check_size(t);
}

/* The whole header ------------------------------------------------------------------------------------------------- */

static bool is_metadata(yyjson_val *key) { return yyjson_equals_str(key, "__metadata__"); }

/* What the list must have room for. */
struct counts {
    int64_t tensors, metadata;
    size_t text;
    bool has_metadata;
};

static bsm_status count_metadata(yyjson_val *object, struct counts *counts)
{
    size_t i, n;
    yyjson_val *key, *value;
    if (counts->has_metadata) return bsmi_fail(BSM_EFILE, "the header has \"__metadata__\" twice");
    counts->has_metadata = true;
    if (!yyjson_is_obj(object))
        return bsmi_fail(BSM_EFILE, "\"__metadata__\" is %s; an object of texts is wanted", bsmi_json_kind(object));
    yyjson_obj_foreach(object, i, n, key, value) {
        if (!yyjson_is_str(value))
            return bsmi_fail(BSM_EFILE, "\"__metadata__\": \"%.100s\" is %s; a text is wanted", yyjson_get_str(key),
                             bsmi_json_kind(value));
        if (bsmi_json_has_nul(key) || bsmi_json_has_nul(value))
            return bsmi_fail(BSM_EFILE, "\"__metadata__\": \"%.100s\" or its text holds a NUL", yyjson_get_str(key));
        counts->metadata++;
        counts->text += yyjson_get_len(key) + yyjson_get_len(value) + 2;
    }
    return BSM_OK;
}

static bsm_status count_all(yyjson_val *header, struct counts *counts)
{
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(header, i, n, key, value) {
        if (is_metadata(key)) {
            const bsm_status status = count_metadata(value, counts);
            if (status != BSM_OK) return status;
            continue;
        }
        if (yyjson_get_len(key) == 0) return bsmi_fail(BSM_EFILE, "a tensor has no name");
        if (bsmi_json_has_nul(key))
            return bsmi_fail(BSM_EFILE, "tensor %.200s: its name holds a NUL", yyjson_get_str(key));
        counts->tensors++;
        counts->text += yyjson_get_len(key) + 1;
    }
    return BSM_OK;
}

/* Copies a text, its NUL included; returns where the next one goes. */
static char *keep(char *text, yyjson_val *value, const char **kept)
{
    *kept = text;
    memcpy(text, yyjson_get_str(value), yyjson_get_len(value) + 1);
    return text + yyjson_get_len(value) + 1;
}

static bsm_status fill(yyjson_val *header, struct bsmi_tensor_list *list, char *text)
{
    size_t i, n, j, m;
    yyjson_val *key, *value, *inner_key, *inner;
    struct bsmi_tensor *t = list->tensors;
    bsm_metadata *pair = list->metadata;
    yyjson_obj_foreach(header, i, n, key, value) {
        if (is_metadata(key)) {
            yyjson_obj_foreach(value, j, m, inner_key, inner) {
                text = keep(text, inner_key, &pair->key);
                text = keep(text, inner, &pair->value);
                pair++;
            }
            continue;
        }
        text = keep(text, key, &t->name);
        const bsm_status status = read_tensor(t++, value);
        if (status != BSM_OK) return status;
    }
    return BSM_OK;
}

static bsm_status read_header(const bsm_context *context, const char *header, size_t bytes,
                              struct bsmi_tensor_list *list)
{
    struct bsmi_json json;
    struct counts counts = { 0 };
    char *text = NULL;
    if (header[0] != '{')
        return bsmi_fail(BSM_EFILE, "the header starts with the byte 0x%02x, not with '{'", (unsigned char)header[0]);
    bsm_status status = bsmi_json_read(context, "the header", header, bytes, &json);
    if (status != BSM_OK) return status;
    yyjson_val *top = yyjson_doc_get_root(json.document);
    status = count_all(top, &counts);
    if (status == BSM_OK)
        status = bsmi_tensor_list_make(context, counts.tensors, counts.metadata, counts.text, list, &text);
    if (status == BSM_OK) status = fill(top, list, text);
    bsmi_json_free(&json);
    return status;
}

bsm_status bsmi_safetensors_read(const bsm_context *context, const unsigned char *file, size_t file_bytes,
                                 struct bsmi_tensor_list *list)
{
    uint64_t length = 0;
    *list = (struct bsmi_tensor_list){ .memory = NULL };
    if (file_bytes < LENGTH_BYTES)
        return bsmi_fail(BSM_EFILE, "the file has %zu bytes, a .safetensors file at least %d: it is cut off, or none",
                         file_bytes, LENGTH_BYTES + 2);
    for (int i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)file[i] << 8 * i;
    const bool cut = length > file_bytes - LENGTH_BYTES,
               has_object = file_bytes > LENGTH_BYTES && file[LENGTH_BYTES] == '{';
    const char *kind = cut && !has_object ? bsmi_file_kind(file, file_bytes) : NULL;
    if (kind != NULL) return bsmi_fail(BSM_EFILE, "this is %s; a .safetensors or a GGUF file is wanted", kind);
    if (cut)
        return bsmi_fail(BSM_EFILE,
                         "the header is said to have %" PRIu64
                         " bytes, but the file has only %zu more: it is cut off, or no "
                         ".safetensors file",
                         length, file_bytes - LENGTH_BYTES);
    if (length > BSMI_SAFETENSORS_HEADER)
        return bsmi_fail(BSM_EFILE, "the header is said to have %" PRIu64 " bytes; the format allows %d", length,
                         BSMI_SAFETENSORS_HEADER);
    if (length < 2) return bsmi_fail(BSM_EFILE, "the header is said to have %" PRIu64 " bytes; \"{}\" has two", length);
    const unsigned char *data = file + LENGTH_BYTES + length;
    bsm_status status = read_header(context, (const char *)file + LENGTH_BYTES, (size_t)length, list);
    if (status == BSM_OK)
        status = bsmi_tensor_list_place(list, data, (int64_t)(file_bytes - LENGTH_BYTES - length), true);
    if (status != BSM_OK) bsmi_tensor_list_free(context, list);
    return status;
}
