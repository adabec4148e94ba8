/* The head of a GGUF file.
 *
 * Source: ggml, include/gguf.h (versions 2 and 3 differ in byte order alone): "GGUF", a version, the numbers of tensors
 * and of keys, the keys
 * with values of 13 types, then for each tensor its name, dimensions (the fastest first), type and offset; the data,
 * aligned. Every byte may be a lie: each is checked before it is believed. */
#include "file/tensors/tensors.h"

#include <inttypes.h>

enum { MAX_DIMENSIONS = 4, SMALLEST_TENSOR = 24, SMALLEST_KEY = 13 }; /* bytes that an entry takes at least */
enum { TYPE_UINT32 = 4, TYPE_BOOL = 7, TYPE_STRING = 8, TYPE_ARRAY = 9, TYPE_COUNT = 13 };
static const int value_bytes[TYPE_COUNT] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

struct cursor {
    const unsigned char *file;
    size_t count, at;
};

/* A text inside the file, without a NUL behind it. */
struct text {
    const char *start;
    size_t length;
};

static bsm_status take(struct cursor *c, const char *what, size_t bytes, const unsigned char **start)
{
    if (bytes > c->count - c->at)
        return bsmi_fail(BSM_EFILE, "the file ends inside %s, at byte %zu: %zu bytes are wanted there, %zu are left",
                         what, c->at, bytes, c->count - c->at);
    *start = c->file + c->at;
    c->at += bytes;
    return BSM_OK;
}

static bsm_status take_number(struct cursor *c, const char *what, int bytes, uint64_t *number)
{
    const unsigned char *start = NULL;
    const bsm_status status = take(c, what, (size_t)bytes, &start);
    *number = 0;
    for (int i = 0; status == BSM_OK && i < bytes; i++) *number |= (uint64_t)start[i] << 8 * i;
    return status;
}

static bsm_status take_text(struct cursor *c, const char *what, struct text *text)
{
    uint64_t length;
    const unsigned char *start = NULL;
    bsm_status status = take_number(c, what, 8, &length);
    if (status == BSM_OK) status = take(c, what, length, &start);
    *text = (struct text){ (const char *)start, (size_t)length };
    return status;
}

static bool is(struct text text, const char *word)
{
    return text.length == strlen(word) && memcmp(text.start, word, text.length) == 0;
}
static bool has_nul(struct text text) { return text.length > 0 && memchr(text.start, 0, text.length) != NULL; }
static int shown(struct text text) { return (int)BSMI_MIN(text.length, (size_t)200); }

/* Keys ------------------------------------------------------------------------------------------------------------- */

/* What is collected while walking: first counts, then texts. */
struct head {
    uint64_t alignment;
    bool alignment_seen;
    int64_t metadata;
    size_t text;
    struct bsmi_tensor_list *list; /* NULL: only counted */
    char *into;
};

static const char *keep(struct head *head, struct text text)
{
    char *kept = head->into;
    if (text.length > 0) memcpy(kept, text.start, text.length);
    kept[text.length] = '\0';
    head->into += text.length + 1;
    return kept;
}

/* Keys and texts that a C string can hold are metadata. */
static void note_text(struct head *head, struct text key, struct text value)
{
    if (has_nul(key) || has_nul(value)) return;
    if (head->list != NULL) {
        head->list->metadata[head->metadata].key = keep(head, key);
        head->list->metadata[head->metadata].value = keep(head, value);
    }
    head->metadata++;
    head->text += key.length + value.length + 2;
}

static bsm_status note_alignment(struct head *head, uint64_t type, uint64_t value)
{
    if (head->alignment_seen && head->list == NULL)
        return bsmi_fail(BSM_EFILE, "the key general.alignment is there twice");
    if (type != TYPE_UINT32)
        return bsmi_fail(BSM_EFILE, "general.alignment has type %" PRIu64 "; a uint32 is wanted", type);
    if (value == 0 || (value & (value - 1)) != 0)
        return bsmi_fail(BSM_EFILE, "general.alignment is %" PRIu64 "; a power of two is wanted", value);
    head->alignment = value;
    head->alignment_seen = true;
    return BSM_OK;
}

static bsm_status take_array(struct cursor *c, struct text key)
{
    uint64_t type, count;
    const unsigned char *start;
    struct text text;
    bsm_status status = take_number(c, "an array's type", 4, &type);
    if (status == BSM_OK) status = take_number(c, "an array's length", 8, &count);
    if (status != BSM_OK) return status;
    if (type >= TYPE_COUNT || type == TYPE_ARRAY)
        return bsmi_fail(BSM_EUNSUPPORTED, "key %.*s: an array of type %" PRIu64 "%s", shown(key), key.start, type,
                         type == TYPE_ARRAY ? ", arrays" : ", which is not known");
    const size_t least = type == TYPE_STRING ? 8 : (size_t)value_bytes[type];
    if (count > (c->count - c->at) / least)
        return bsmi_fail(BSM_EFILE, "key %.*s: an array of %" PRIu64 " values does not fit what is left of the file",
                         shown(key), key.start, count);
    if (type != TYPE_STRING) return take(c, "an array", (size_t)count * least, &start);
    for (uint64_t i = 0; status == BSM_OK && i < count; i++) status = take_text(c, "a text of an array", &text);
    return status;
}

static bsm_status take_key(struct cursor *c, struct head *head)
{
    struct text key, text;
    uint64_t type, value = 0;
    bsm_status status = take_text(c, "a key", &key);
    if (status == BSM_OK && key.length == 0) return bsmi_fail(BSM_EFILE, "a key has no name, before byte %zu", c->at);
    if (status == BSM_OK) status = take_number(c, "a key's type", 4, &type);
    if (status != BSM_OK) return status;
    if (type >= TYPE_COUNT)
        return bsmi_fail(BSM_EUNSUPPORTED, "key %.*s: type %" PRIu64 " is not known", shown(key), key.start, type);
    if (type == TYPE_ARRAY) return take_array(c, key);
    if (type == TYPE_STRING) {
        status = take_text(c, "a text", &text);
        if (status == BSM_OK) note_text(head, key, text);
    } else {
        status = take_number(c, "a key's value", value_bytes[type], &value);
        if (status == BSM_OK && type == TYPE_BOOL && value > 1)
            return bsmi_fail(BSM_EFILE, "key %.*s: a bool is %" PRIu64 ", neither 0 nor 1", shown(key), key.start,
                             value);
    }
    return status == BSM_OK && is(key, "general.alignment")
               ? note_alignment(head, type, type == TYPE_STRING ? 0 : value)
               : status;
}

/* Tensors ---------------------------------------------------------------------------------------------------------- */

static bsm_status take_shape(struct cursor *c, struct text name, struct bsmi_tensor *t)
{
    uint64_t rank, size;
    bsm_status status = take_number(c, "a tensor's dimensions", 4, &rank);
    if (status != BSM_OK) return status;
    if (rank > MAX_DIMENSIONS)
        return bsmi_fail(BSM_EFILE, "tensor %.*s: has %" PRIu64 " dimensions; the format has up to %d", shown(name),
                         name.start, rank, MAX_DIMENSIONS);
    t->rank = (int)rank;
    for (int i = t->rank - 1; i >= 0; i--) {
        status = take_number(c, "a tensor's dimensions", 8, &size);
        if (status != BSM_OK) return status;
        if (size > INT64_MAX)
            return bsmi_fail(BSM_EFILE, "tensor %.*s: a dimension is %" PRIu64 ", which does not fit 63 bits",
                             shown(name), name.start, size);
        t->shape[i] = (int64_t)size;
    }
    return BSM_OK;
}

/* `t` is filled but for its data; the name is kept if there is a list. */
static bsm_status take_tensor(struct cursor *c, struct head *head, struct bsmi_tensor *t)
{
    struct text name;
    uint64_t type, offset;
    struct bsmi_tensor_block block;
    const char *type_name;
    bsm_status status = take_text(c, "a tensor's name", &name);
    if (status != BSM_OK) return status;
    if (name.length == 0) return bsmi_fail(BSM_EFILE, "a tensor has no name, before byte %zu", c->at);
    if (has_nul(name)) return bsmi_fail(BSM_EFILE, "tensor %.*s: its name holds a NUL", shown(name), name.start);
    head->text += name.length + 1;
    status = take_shape(c, name, t);
    if (status == BSM_OK) status = take_number(c, "a tensor's type", 4, &type);
    if (status == BSM_OK) status = take_number(c, "a tensor's offset", 8, &offset);
    if (status != BSM_OK || head->list == NULL) return status;
    t->name = keep(head, name);
    t->gguf_type = (int)type;
    if (!bsmi_tensor_type_from_gguf((uint32_t)type, &t->type, &block, &type_name))
        return bsmi_fail(BSM_EUNSUPPORTED, "tensor %.200s: type %" PRIu64 " of GGUF is not known", t->name, type);
    if (offset % head->alignment != 0)
        return bsmi_fail(BSM_EFILE, "tensor %.200s: offset %" PRIu64 " is no multiple of the alignment, %" PRIu64,
                         t->name, offset, head->alignment);
    if (offset > INT64_MAX)
        return bsmi_fail(BSM_EFILE, "tensor %.200s: offset %" PRIu64 " does not fit 63 bits", t->name, offset);
    t->offset = (int64_t)offset;
    return bsmi_tensor_bytes(BSM_EFILE, t->name, t->rank, t->shape, block, true, &t->bytes);
}

/* The whole head: twice, first to count and then to keep. */
static bsm_status walk(struct cursor *c, uint64_t tensors, uint64_t keys, struct head *head)
{
    bsm_status status = BSM_OK;
    struct bsmi_tensor spare = { .name = NULL };
    for (uint64_t i = 0; status == BSM_OK && i < keys; i++) status = take_key(c, head);
    for (uint64_t i = 0; status == BSM_OK && i < tensors; i++)
        status = take_tensor(c, head, head->list != NULL ? &head->list->tensors[i] : &spare);
    return status;
}

static bsm_status take_counts(struct cursor *c, uint64_t *tensors, uint64_t *keys)
{
    uint64_t magic, version;
    if (c->count < 24)
        return bsmi_fail(BSM_EFILE, "the file has %zu bytes, a GGUF file at least 24: it is cut off, or none",
                         c->count);
    take_number(c, "the magic", 4, &magic);
    take_number(c, "the version", 4, &version);
    take_number(c, "the number of tensors", 8, tensors);
    take_number(c, "the number of keys", 8, keys);
    if (magic != 0x46554747) return bsmi_fail(BSM_EFILE, "this is no GGUF file: it does not start with GGUF");
    if (version >= 0x1000000 && (version & 0xffff) == 0) return bsmi_fail(BSM_EUNSUPPORTED, "the file is big-endian");
    if (version != 2 && version != 3)
        return bsmi_fail(BSM_EUNSUPPORTED, "version %" PRIu64 " of the GGUF format; known are 2 and 3", version);
    if (*tensors > c->count / SMALLEST_TENSOR)
        return bsmi_fail(BSM_EFILE, "%" PRIu64 " tensors do not fit the file", *tensors);
    if (*keys > c->count / SMALLEST_KEY) return bsmi_fail(BSM_EFILE, "%" PRIu64 " keys do not fit the file", *keys);
    return BSM_OK;
}

static bsm_status place(const struct cursor *c, const struct head *head, struct bsmi_tensor_list *list)
{
    const uint64_t past = (uint64_t)c->at % head->alignment, padding = past == 0 ? 0 : head->alignment - past;
    const bool cut = padding > c->count - c->at;
    if (cut && list->count > 0)
        return bsmi_fail(BSM_EFILE, "the file ends before its data, which starts at byte %" PRIu64, c->at + padding);
    const size_t start = cut ? c->count : c->at + (size_t)padding;
    return bsmi_tensor_list_place(list, c->file + start, (int64_t)(c->count - start), false);
}

bsm_status bsmi_gguf_read(const bsm_context *context, const unsigned char *file, size_t file_bytes,
                          struct bsmi_tensor_list *list)
{
    struct cursor c = { file, file_bytes, 0 };
    struct head counted = { .alignment = BSMI_GGUF_ALIGNMENT };
    uint64_t tensors = 0, keys = 0;
    *list = (struct bsmi_tensor_list){ .memory = NULL };
    bsm_status status = take_counts(&c, &tensors, &keys);
    const size_t start = c.at;
    if (status == BSM_OK) status = walk(&c, tensors, keys, &counted);
    if (status != BSM_OK) return status;
    struct head head = { .alignment = counted.alignment, .list = list };
    status = bsmi_tensor_list_make(context, (int64_t)tensors, counted.metadata, counted.text, list, &head.into);
    if (status != BSM_OK) return status;
    c.at = start;
    status = walk(&c, tensors, keys, &head);
    if (status == BSM_OK) status = place(&c, &head, list);
    if (status != BSM_OK) bsmi_tensor_list_free(context, list);
    return status;
}
