/* JSON by yyjson.  It is compiled here, and all of its functions are static: a program may have a yyjson of its own. */
#define YYJSON_DISABLE_UTILS        1
#define YYJSON_DISABLE_INCR_READER  1
#define YYJSON_DISABLE_NON_STANDARD 1
#define yyjson_api                  static
#include <yyjson/yyjson.c>

#include "json.h"

/* Memory: the context's allocator wants the size back, so it stands in front of each block. */

enum { HEAD = BSMI_ALIGNMENT };

static void *json_allocate(void *user, size_t bytes)
{
    const bsm_context *context = user;
    size_t whole;
    unsigned char *block = __builtin_add_overflow(bytes, (size_t)HEAD, &whole) ? NULL : bsmi_allocate(context, whole);
    if (block == NULL) return NULL;
    memcpy(block, &whole, sizeof whole);
    return block + HEAD;
}

static void json_release(void *user, void *memory)
{
    size_t whole;
    if (memory == NULL) return;
    memcpy(&whole, (unsigned char *)memory - HEAD, sizeof whole);
    bsmi_release(user, (unsigned char *)memory - HEAD, whole);
}

static void *json_resize(void *user, void *memory, size_t old_bytes, size_t bytes)
{
    void *moved = json_allocate(user, bytes);
    if (moved == NULL) return NULL;
    memcpy(moved, memory, BSMI_MIN(old_bytes, bytes));
    json_release(user, memory);
    return moved;
}

static yyjson_alc memory_of(const bsm_context *context)
{
    return (yyjson_alc){ json_allocate, json_resize, json_release, (void *)(uintptr_t)context };
}

/* Reading ---------------------------------------------------------------------------------------------------------- */

static bsm_status no_memory(const char *what, size_t bytes)
{
    return bsmi_fail(BSM_ENOMEM, "no memory for reading %s of %zu bytes", what, bytes);
}

static yyjson_doc *parse(const bsm_context *context, const char *text, size_t bytes, yyjson_read_err *error)
{
    const yyjson_alc memory = memory_of(context);
    return yyjson_read_opts((char *)(uintptr_t)text, bytes, YYJSON_READ_NOFLAG, &memory, error);
}

bsm_status bsmi_json_read(const bsm_context *context, const char *what, const char *text, size_t bytes,
                          struct bsmi_json *json)
{
    yyjson_read_err error;
    *json = (struct bsmi_json){ NULL, context };
    if (bytes == 0) return bsmi_fail(BSM_EFILE, "%s is empty: a JSON object is wanted", what);
    json->document = parse(context, text, bytes, &error);
    if (json->document == NULL && error.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) return no_memory(what, bytes);
    if (json->document == NULL)
        return bsmi_fail(BSM_EFILE, "byte %zu of %s is no JSON: %s", error.pos, what, error.msg);
    yyjson_val *top = yyjson_doc_get_root(json->document);
    if (yyjson_is_obj(top)) return BSM_OK;
    const char *kind = bsmi_json_kind(top);
    bsmi_json_free(json);
    return bsmi_fail(BSM_EFILE, "%s is %s: a JSON object is wanted", what, kind);
}

void bsmi_json_free(struct bsmi_json *json)
{
    yyjson_doc_free(json->document);
    json->document = NULL;
}

const char *bsmi_json_kind(yyjson_val *value)
{
    if (yyjson_is_str(value)) return "a text";
    if (yyjson_is_num(value)) return "a number";
    if (yyjson_is_bool(value)) return "true or false";
    if (yyjson_is_arr(value)) return "a list";
    if (yyjson_is_obj(value)) return "an object";
    return "null";
}

/* Editing ---------------------------------------------------------------------------------------------------------- */

/* Lists and objects in one another; brackets inside texts do not count. */
static int depth_of(const char *text, size_t bytes)
{
    int depth = 0, deepest = 0;
    bool inside = false;
    for (size_t i = 0; i < bytes; i++) {
        if (inside && text[i] == '\\') i++;
        else if (text[i] == '"') inside = !inside;
        else if (inside) continue;
        else if ((text[i] == '[' || text[i] == '{') && ++depth > deepest) deepest = depth;
        else if (text[i] == ']' || text[i] == '}') depth--;
    }
    return deepest;
}

/* A document that can be changed, from the text of an object. */
static bsm_status read_editable(const bsm_context *context, const char *path, const char *text, size_t bytes,
                                yyjson_mut_doc **document)
{
    yyjson_read_err error;
    const yyjson_alc memory = memory_of(context);
    const int depth = depth_of(text, bytes);
    if (depth > BSMI_JSON_DEPTH)
        return bsmi_fail(BSM_EFILE, "%.256s: has lists and objects %d deep in one another; read are up to %d", path,
                         depth, BSMI_JSON_DEPTH);
    yyjson_doc *read = parse(context, text, bytes, &error);
    if (read == NULL && error.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) return no_memory(path, bytes);
    if (read == NULL) return bsmi_fail(BSM_EFILE, "%.256s: byte %zu is no JSON: %s", path, error.pos, error.msg);
    const bool object = yyjson_is_obj(yyjson_doc_get_root(read));
    *document = object ? yyjson_doc_mut_copy(read, &memory) : NULL;
    yyjson_doc_free(read);
    if (!object) return bsmi_fail(BSM_EFILE, "%.256s: a JSON object is wanted", path);
    return *document != NULL ? BSM_OK : no_memory(path, bytes);
}

/* Removes the member, and puts `value` (NULL: none) behind the others. */
static bsm_status set_member(const bsm_context *context, yyjson_mut_doc *document, const char *key, const char *value,
                             size_t value_bytes)
{
    yyjson_read_err error;
    yyjson_mut_val *top = yyjson_mut_doc_get_root(document);
    yyjson_mut_obj_remove_key(top, key);
    if (value == NULL) return BSM_OK;
    yyjson_doc *read = parse(context, value, value_bytes, &error);
    if (read == NULL && error.code != YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return bsmi_fail(BSM_EINVAL, "a name is no UTF-8: %s", error.msg);
    yyjson_mut_val *copy = read == NULL ? NULL : yyjson_val_mut_copy(document, yyjson_doc_get_root(read));
    yyjson_doc_free(read);
    return copy != NULL && yyjson_mut_obj_add_val(document, top, key, copy) ? BSM_OK : no_memory(key, value_bytes);
}

bsm_status bsmi_json_edit(const bsm_context *context, const char *path, const char *text, size_t bytes, const char *key,
                          const char *value, size_t value_bytes, struct bsmi_json_edited *edited)
{
    yyjson_mut_doc *document = NULL;
    const yyjson_alc memory = memory_of(context);
    *edited = (struct bsmi_json_edited){ .text = NULL };
    bsm_status status = read_editable(context, path, text, bytes, &document);
    if (status == BSM_OK && key != NULL) status = set_member(context, document, key, value, value_bytes);
    if (status == BSM_OK) {
        const yyjson_write_flag how = YYJSON_WRITE_PRETTY_TWO_SPACES | YYJSON_WRITE_NEWLINE_AT_END;
        edited->members = yyjson_mut_obj_size(yyjson_mut_doc_get_root(document));
        edited->text = yyjson_mut_write_opts(document, how, &memory, &edited->bytes, NULL);
        if (edited->text == NULL) status = bsmi_fail(BSM_ENOMEM, "%.256s: no memory for its text", path);
    }
    yyjson_mut_doc_free(document);
    return status;
}

void bsmi_json_edited_free(const bsm_context *context, struct bsmi_json_edited *edited)
{
    json_release((void *)(uintptr_t)context, edited->text);
    edited->text = NULL;
}
