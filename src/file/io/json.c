/* JSON by yyjson.  It is compiled here, and all of its functions are static: a program may have a yyjson of its own. */
#define YYJSON_DISABLE_WRITER       1
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

bsm_status bsmi_json_read(const bsm_context *context, const char *what, const char *text, size_t bytes, struct bsmi_json *json)
{
    const yyjson_alc memory = { json_allocate, json_resize, json_release, (void *)(uintptr_t)context };
    yyjson_read_err error;
    *json = (struct bsmi_json){ NULL, context };
    if (bytes == 0) return bsmi_fail(BSM_EFILE, "%s is empty: a JSON object is wanted", what);
    json->document = yyjson_read_opts((char *)(uintptr_t)text, bytes, YYJSON_READ_NOFLAG, &memory, &error);
    if (json->document == NULL && error.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return bsmi_fail(BSM_ENOMEM, "no memory for reading %s of %zu bytes", what, bytes);
    if (json->document == NULL) return bsmi_fail(BSM_EFILE, "byte %zu of %s is no JSON: %s", error.pos, what, error.msg);
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
