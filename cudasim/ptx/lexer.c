/* From bytes to tokens. */
#include "ptx/reader.h"

#include <stdlib.h>
#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_name_start(char c) { return is_letter(c) || c == '_' || c == '$' || c == '%'; }
static bool is_name_part(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }
static bool is_word_part(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

static int hex_value(char c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static char peek(const struct reader *r, ptrdiff_t ahead) { return r->end - r->at > ahead ? r->at[ahead] : '\0'; }

static void new_line(struct reader *r)
{
    r->line++;
    r->line_start = r->at + 1;
}

static void fail_here(struct reader *r, const char *sentence)
{
    reader_fail_at(r, r->line, (uint32_t)(r->at - r->line_start) + 1, "%s", sentence);
}

/* Past blanks and comments; false where a comment does not end. */
static bool skip_blanks(struct reader *r)
{
    while (r->at < r->end) {
        const char c = *r->at;
        if (c == '\n') {
            new_line(r);
            r->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            r->at++;
        } else if (c == '/' && peek(r, 1) == '/') {
            while (r->at < r->end && *r->at != '\n') r->at++;
        } else if (c == '/' && peek(r, 1) == '*') {
            const uint32_t line = r->line, column = (uint32_t)(r->at - r->line_start) + 1;
            for (r->at += 2; r->at < r->end && !(*r->at == '*' && peek(r, 1) == '/'); r->at++)
                if (*r->at == '\n') new_line(r);
            if (r->at >= r->end) {
                reader_fail_at(r, line, column, "this comment has no end");
                return false;
            }
            r->at += 2;
        } else {
            return true;
        }
    }
    return true;
}

/* 0f3F800000 or 0d3FF0000000000000: exactly 8 or 16 digits. */
static void read_float_bits(struct reader *r, int digits)
{
    uint64_t bits = 0;
    r->at += 2;
    for (int i = 0; i < digits; i++, r->at++) {
        const int digit = hex_value(peek(r, 0));
        if (digit < 0) {
            fail_here(r, digits == 8 ? "a 0f constant has 8 hexadecimal digits"
                                     : "a 0d constant has 16 hexadecimal digits");
            return;
        }
        bits = bits << 4 | (uint64_t)digit;
    }
    r->token.kind = digits == 8 ? TOKEN_FLOAT32 : TOKEN_FLOAT64;
    r->token.value = bits;
}

static void read_decimal(struct reader *r, const char *stop)
{
    char text[64];
    const size_t length = (size_t)(stop - r->at);
    if (length >= sizeof text) {
        fail_here(r, "this number is too long");
        return;
    }
    memcpy(text, r->at, length);
    text[length] = '\0';
    const double value = strtod(text, NULL);
    memcpy(&r->token.value, &value, sizeof value);
    r->token.kind = TOKEN_DECIMAL;
    r->at = stop;
}

/* The end of digits.digits[e[+-]digits] at r->at, or NULL if it is no such number. */
static const char *decimal_end(const struct reader *r)
{
    const char *at = r->at;
    while (at < r->end && is_digit(*at)) at++;
    const char *point = at;
    if (at < r->end && *at == '.') {
        at++;
        while (at < r->end && is_digit(*at)) at++;
    }
    if (at < r->end && (*at == 'e' || *at == 'E')) {
        const char *exponent = at + 1;
        if (exponent < r->end && (*exponent == '+' || *exponent == '-')) exponent++;
        if (exponent < r->end && is_digit(*exponent)) {
            while (exponent < r->end && is_digit(*exponent)) exponent++;
            at = exponent;
        }
    }
    return at > point ? at : NULL;
}

static void read_number(struct reader *r)
{
    const char second = peek(r, 1);
    if (r->at[0] == '0' && (second == 'f' || second == 'F')) {
        read_float_bits(r, 8);
        return;
    }
    if (r->at[0] == '0' && (second == 'd' || second == 'D')) {
        read_float_bits(r, 16);
        return;
    }
    unsigned base = 10;
    if (r->at[0] == '0' && (second == 'x' || second == 'X')) base = 16;
    else if (r->at[0] == '0' && (second == 'b' || second == 'B')) base = 2;
    else if (r->at[0] == '0' && is_digit(second)) base = 8;
    if (base == 10 || base == 8) {
        const char *stop = decimal_end(r);
        if (stop != NULL) {
            read_decimal(r, stop);
            return;
        }
    }
    if (base == 16 || base == 2) r->at += 2;
    uint64_t value = 0;
    int digits = 0;
    for (; r->at < r->end; r->at++, digits++) {
        const int digit = hex_value(*r->at);
        if (digit < 0 || (unsigned)digit >= base) break;
        if (__builtin_mul_overflow(value, (uint64_t)base, &value)
            || __builtin_add_overflow(value, (uint64_t)digit, &value)) {
            fail_here(r, "this integer does not fit in 64 bits");
            return;
        }
    }
    if (digits == 0 || is_digit(peek(r, 0))) {
        fail_here(r, "a digit of this number is missing or does not belong to its base");
        return;
    }
    if (peek(r, 0) == 'U') {
        r->token.is_unsigned = true;
        r->at++;
    }
    r->token.kind = TOKEN_INTEGER;
    r->token.value = value;
}

static void read_string(struct reader *r)
{
    const char *start = r->at;
    for (r->at++; r->at < r->end && *r->at != '"' && *r->at != '\n'; r->at++)
        if (*r->at == '\\' && peek(r, 1) != '\n' && r->at + 1 < r->end) r->at++;
    if (r->at >= r->end || *r->at != '"') {
        r->at = start;
        fail_here(r, "this string has no end");
        return;
    }
    r->at++;
    r->token.kind = TOKEN_STRING;
}

static void read_punctuation(struct reader *r)
{
    static const struct { char text[3]; char code;
    } pairs[] = {
        { "<<", '<' }, { ">>", '>' }, { "==", 'e' }, { "!=", 'n' },
        { "<=", 'l' }, { ">=", 'g' }, { "&&", 'a' }, { "||", 'o' },
    };
    r->token.kind = TOKEN_PUNCTUATION;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (r->at[0] == pairs[i].text[0] && peek(r, 1) == pairs[i].text[1]) {
            r->token.punctuation = pairs[i].code;
            r->at += 2;
            return;
        }
    const char c = *r->at;
    if (strchr("@,;:[](){}+-*/%=|!~&^?", c) == NULL || c == '\0') {
        /* a single < or > opens and closes the count of a family of registers */
        if (c != '<' && c != '>') {
            fail_here(r, "this character does not belong here");
            return;
        }
        r->token.punctuation = c == '<' ? '\x01' : '\x02';
        r->at++;
        return;
    }
    r->token.punctuation = c;
    r->at++;
}

void token_next(struct reader *r)
{
    r->token = (struct token){ .kind = TOKEN_END, .line = r->line, .column = (uint32_t)(r->at - r->line_start) + 1,
                               .text = r->at };
    if (r->failed || !skip_blanks(r)) return;
    r->token.line = r->line;
    r->token.column = (uint32_t)(r->at - r->line_start) + 1;
    r->token.text = r->at;
    if (r->at >= r->end) return;
    const char c = *r->at;
    if (is_name_start(c)) {
        do r->at++; while (r->at < r->end && is_name_part(*r->at));
        r->token.kind = TOKEN_NAME;
        if (c == '%' && r->at - r->token.text == 1) r->token.kind = TOKEN_PUNCTUATION, r->token.punctuation = '%';
    } else if (c == '.' && is_word_part(peek(r, 1))) {
        r->at++;
        while (r->at < r->end
               && (is_word_part(*r->at) || (*r->at == ':' && peek(r, 1) == ':' && is_word_part(peek(r, 2)))))
            r->at += *r->at == ':' ? 2 : 1;
        r->token.kind = TOKEN_WORD;
    } else if (is_digit(c)) {
        read_number(r);
    } else if (c == '"') {
        read_string(r);
    } else {
        read_punctuation(r);
    }
    r->token.length = (uint32_t)(r->at - r->token.text);
    if (r->failed) r->token.kind = TOKEN_END;
}

bool token_is(const struct reader *r, char punctuation)
{
    return r->token.kind == TOKEN_PUNCTUATION && r->token.punctuation == punctuation;
}

static bool token_reads(const struct reader *r, enum token_kind kind, const char *text)
{
    return r->token.kind == kind && r->token.length == strlen(text)
           && memcmp(r->token.text, text, r->token.length) == 0;
}

bool token_is_word(const struct reader *r, const char *word) { return token_reads(r, TOKEN_WORD, word); }
bool token_is_name(const struct reader *r, const char *name) { return token_reads(r, TOKEN_NAME, name); }

bool token_take(struct reader *r, char punctuation)
{
    if (!token_is(r, punctuation)) return false;
    token_next(r);
    return true;
}

void token_expect(struct reader *r, char punctuation)
{
    if (token_take(r, punctuation)) return;
    if (r->token.kind == TOKEN_END) reader_fail(r, "the text ends where '%c' should stand", punctuation);
    else reader_fail(r, "'%c' should stand here", punctuation);
}

const char *token_expect_name(struct reader *r, const char *what, uint32_t *length)
{
    if (r->token.kind != TOKEN_NAME) {
        reader_fail(r, "%s should stand here", what);
        *length = 0;
        return "";
    }
    *length = r->token.length;
    const char *name = arena_string(&r->module->arena, r->token.text, r->token.length);
    if (name == NULL) {
        reader_fail(r, "no memory left for this module");
        return "";
    }
    token_next(r);
    return name;
}
