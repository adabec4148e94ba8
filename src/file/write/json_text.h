/* JSON texts, written without blanks. */
#ifndef BSMI_JSON_TEXT_H
#define BSMI_JSON_TEXT_H

#include "file/tensors/tensors.h"

/* Puts the commas; key is NULL inside lists and at the top. */
struct bsmi_json_writer { struct bsmi_sink *sink; bool has_values; };

void bsmi_json_open(struct bsmi_json_writer *json, const char *key, char bracket);       /* '{' or '[' */
void bsmi_json_close(struct bsmi_json_writer *json, char bracket);
void bsmi_json_text(struct bsmi_json_writer *json, const char *key, const char *value);
void bsmi_json_integer(struct bsmi_json_writer *json, const char *key, int64_t value);
void bsmi_json_word(struct bsmi_json_writer *json, const char *key, const char *word);   /* true, false, null */

#endif
