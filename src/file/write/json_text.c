/* JSON texts, see json_text.h. */
#include "json_text.h"

#include <inttypes.h>
#include <stdio.h>

static void put_character(struct bsmi_sink *sink, char c) { bsmi_sink_put(sink, &c, 1); }

static void put_string(struct bsmi_sink *sink, const char *text)
{
    char escape[8];
    put_character(sink, '"');
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') put_character(sink, '\\');
        if (c >= 0x20) put_character(sink, *text);
        else bsmi_sink_put(sink, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", c));
    }
    put_character(sink, '"');
}

static void start_value(struct bsmi_json_writer *json, const char *key)
{
    if (json->has_values) put_character(json->sink, ',');
    json->has_values = true;
    if (key == NULL) return;
    put_string(json->sink, key);
    put_character(json->sink, ':');
}

void bsmi_json_open(struct bsmi_json_writer *json, const char *key, char bracket)
{
    start_value(json, key);
    put_character(json->sink, bracket);
    json->has_values = false;
}

void bsmi_json_close(struct bsmi_json_writer *json, char bracket)
{
    put_character(json->sink, bracket);
    json->has_values = true;
}

void bsmi_json_text(struct bsmi_json_writer *json, const char *key, const char *value)
{
    start_value(json, key);
    put_string(json->sink, value);
}

void bsmi_json_integer(struct bsmi_json_writer *json, const char *key, int64_t value)
{
    char text[24];
    start_value(json, key);
    bsmi_sink_put(json->sink, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value));
}

void bsmi_json_word(struct bsmi_json_writer *json, const char *key, const char *word)
{
    start_value(json, key);
    bsmi_sink_put(json->sink, word, strlen(word));
}
