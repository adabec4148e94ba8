/* JSON texts, read and written again by yyjson (third_party) with the context's memory.
 *
 * A document's values are looked at through yyjson's inline functions; its other functions stay inside json.c, so that
 * the library has no symbol of theirs. */
#ifndef BSMI_JSON_H
#define BSMI_JSON_H

#include "core/core.h"

#include <yyjson/yyjson.h>

struct bsmi_json { yyjson_doc *document; const bsm_context *context; };

/* Strict JSON whose top is an object; `what` is what the text is, for the sentence: "the header".
 * Errors: BSM_EFILE (names the byte), BSM_ENOMEM; json then holds nothing. */
bsm_status bsmi_json_read(const bsm_context *context, const char *what, const char *text, size_t bytes,
                          struct bsmi_json *json);
void bsmi_json_free(struct bsmi_json *json);

/* Of a value that is a string: whether a NUL is inside, which no name here may have. */
static inline bool bsmi_json_has_nul(yyjson_val *text) { return strlen(yyjson_get_str(text)) != yyjson_get_len(text); }

/* "a number", "a text" ...: what a value is, for sentences. */
const char *bsmi_json_kind(yyjson_val *value);

/* How many lists and objects may lie in one another in a text that is edited: configurations have 5 or so, and each
 * level indents what is written. */
enum { BSMI_JSON_DEPTH = 32 };

struct bsmi_json_edited { char *text; size_t bytes, members; };

/* The object of `text` on lines indented by two blanks; key (NULL: nothing changes) is removed from it, and comes last
 * with the JSON `value` unless that is NULL.  path is for sentences; edited is to be freed.
 * Errors: BSM_EFILE, BSM_EINVAL (value is no JSON), BSM_ENOMEM; edited then holds nothing. */
bsm_status bsmi_json_edit(const bsm_context *context, const char *path, const char *text, size_t bytes, const char *key,
                          const char *value, size_t value_bytes, struct bsmi_json_edited *edited);
void bsmi_json_edited_free(const bsm_context *context, struct bsmi_json_edited *edited);

#endif
