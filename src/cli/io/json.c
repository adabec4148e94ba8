/* JSON out. */
#include "cli/cli.h"
#include "mask.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct cli_json cli_json_to(FILE *file) { return (struct cli_json){ .file = file }; }

static void print_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (int bytes; *text != '\0'; text += bytes) {
        const int32_t c = mask_character(text, &bytes);
        if (c < 0) fputs("\\ufffd", file);                         /* JSON is UTF-8 */
        else if (c == '"' || c == '\\') fprintf(file, "\\%c", (int)c);
        else if (mask_is_unseen(c)) fprintf(file, "\\u%04x", (unsigned)c);
        else fwrite(text, 1, (size_t)bytes, file);
    }
    fputc('"', file);
}

/* Comma, line break and key before a value. */
static void start_value(struct cli_json *json, const char *key)
{
    if (json->depth == 0) return;
    fprintf(json->file, "%s\n%*s", json->empty[json->depth] ? "" : ",", 2 * json->depth, "");
    json->empty[json->depth] = false;
    if (key == NULL) return;
    print_string(json->file, key);
    fprintf(json->file, ": ");
}

static void open_bracket(struct cli_json *json, const char *key, char bracket)
{
    start_value(json, key);
    fputc(bracket, json->file);
    json->depth++;
    json->empty[json->depth] = true;
    json->closers[json->depth] = bracket == '{' ? '}' : ']';
}

void cli_json_object(struct cli_json *json, const char *key) { open_bracket(json, key, '{'); }
void cli_json_array(struct cli_json *json, const char *key) { open_bracket(json, key, '['); }

void cli_json_end(struct cli_json *json)
{
    const bool empty = json->empty[json->depth];
    const char closer = json->closers[json->depth];
    json->depth--;
    if (!empty) fprintf(json->file, "\n%*s", 2 * json->depth, "");
    fputc(closer, json->file);
    if (json->depth == 0) fputc('\n', json->file);
}

void cli_json_text(struct cli_json *json, const char *key, const char *value)
{
    start_value(json, key);
    if (value == NULL) fprintf(json->file, "null");
    else print_string(json->file, value);
}

void cli_json_integer(struct cli_json *json, const char *key, int64_t value)
{
    start_value(json, key);
    fprintf(json->file, "%" PRId64, value);
}

/* The shortest of 6, 9 and 17 digits that reads back to the same number. */
void cli_json_number(struct cli_json *json, const char *key, double value)
{
    static const int digits[] = { 6, 9, 17 };
    char text[40];
    start_value(json, key);
    if (!isfinite(value)) {
        fprintf(json->file, "null");
        return;
    }
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "%.*g", digits[i], value);
        if (!(strtod(text, NULL) < value) && !(strtod(text, NULL) > value)) break;
    }
    fprintf(json->file, "%s", text);
}

void cli_json_boolean(struct cli_json *json, const char *key, bool value)
{
    start_value(json, key);
    fprintf(json->file, value ? "true" : "false");
}
