/* JSON texts, read by yyjson (third_party) with the context's memory.
 *
 * A document's values are looked at through yyjson's inline functions; its other functions stay inside json.c, so that the library
 * has no symbol of theirs. */
#ifndef BSMI_JSON_H
#define BSMI_JSON_H

#include "core/core.h"

#include <yyjson/yyjson.h>

struct bsmi_json { yyjson_doc *document; const bsm_context *context; };

/* Strict JSON whose top is an object; `what` is what the text is, for the sentence: "the header".
 * Errors: BSM_EFILE (names the byte), BSM_ENOMEM; json then holds nothing. */
bsm_status bsmi_json_read(const bsm_context *context, const char *what, const char *text, size_t bytes, struct bsmi_json *json);
void bsmi_json_free(struct bsmi_json *json);

/* Of a value that is a string: whether a NUL is inside, which no name here may have. */
static inline bool bsmi_json_has_nul(yyjson_val *text) { return strlen(yyjson_get_str(text)) != yyjson_get_len(text); }

/* "a number", "a text" ...: what a value is, for sentences. */
const char *bsmi_json_kind(yyjson_val *value);

#endif
