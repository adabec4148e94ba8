#include "formula.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *p;
    const struct formula_values *values;
    bool failed;
};

static int64_t read_sum(struct reader *reader);

static char peek(struct reader *reader)
{
    while (*reader->p == ' ') reader->p++;
    return *reader->p;
}

static bool accept(struct reader *reader, char c) { return peek(reader) == c ? (reader->p++, true) : false; }

static void expect(struct reader *reader, char c) { reader->failed |= !accept(reader, c); }

static int64_t read_word(struct reader *reader)
{
    const struct formula_values *v = reader->values;
    const struct { const char *name; int64_t value;
    } variables[] = {
        { "r", v->r },         { "s", v->s },   { "R", v->R },   { "S", v->S },
        { "pitch", v->pitch }, { "TR", v->TR }, { "TC", v->TC },
    };
    size_t length = 0;
    while (isalpha((unsigned char)reader->p[length])) length++;
    const char *word = reader->p;
    reader->p += length;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (strlen(variables[i].name) == length && strncmp(variables[i].name, word, length) == 0)
            return variables[i].value;
    reader->failed |= length != 4 || strncmp(word, "ceil", length) != 0;
    expect(reader, '(');
    const int64_t dividend = read_word(reader);
    expect(reader, '/');
    const int64_t divisor =
        isdigit((unsigned char)*reader->p) ? strtoll(reader->p, (char **)&reader->p, 10) : read_word(reader);
    expect(reader, ')');
    reader->failed |= divisor <= 0;
    return reader->failed ? 0 : (dividend + divisor - 1) / divisor;
}

static int64_t read_factor(struct reader *reader)
{
    const char c = peek(reader);
    if (isdigit((unsigned char)c)) return strtoll(reader->p, (char **)&reader->p, 10);
    if (isalpha((unsigned char)c)) return read_word(reader);
    expect(reader, '(');
    if (reader->failed) return 0;
    const int64_t value = read_sum(reader);
    expect(reader, ')');
    return value;
}

static int64_t read_product(struct reader *reader)
{
    int64_t value = read_factor(reader);
    while (!reader->failed) {
        if (accept(reader, '*')) {
            value *= read_factor(reader);
        } else if (peek(reader) == '/' || peek(reader) == '%') {
            const char operation = *reader->p++;
            const int64_t divisor = read_factor(reader);
            if (divisor <= 0) reader->failed = true;
            else value = operation == '/' ? value / divisor : value % divisor;
        } else {
            break;
        }
    }
    return value;
}

static int64_t read_sum(struct reader *reader)
{
    int64_t value = read_product(reader);
    while (!reader->failed && accept(reader, '+')) value += read_product(reader);
    return value;
}

bool formula_evaluate(const char *text, const struct formula_values *values, int64_t *result)
{
    struct reader reader = { .p = text, .values = values };
    *result = read_sum(&reader);
    return !reader.failed && (peek(&reader) == '\0' || peek(&reader) == ',');
}
