/* Constant expressions: 64-bit integers as in C, floats only alone (with a sign). */
#include "ptx/reader.h"

#include <string.h>

enum { MAX_NESTING = 64 };

static struct constant read_level(struct reader *r, int level, int nesting);

static struct constant integer(uint64_t bits, bool is_unsigned)
{
    return (struct constant){ .bits = bits, .is_unsigned = is_unsigned, .kind = TOKEN_INTEGER };
}

bool constant_follows(const struct reader *r)
{
    const enum token_kind kind = r->token.kind;
    return kind == TOKEN_INTEGER || kind == TOKEN_FLOAT32 || kind == TOKEN_FLOAT64 || kind == TOKEN_DECIMAL
           || token_is(r, '-') || token_is(r, '(') || token_is(r, '~') || token_is(r, '!') || token_is(r, '+')
           || token_is_name(r, "WARP_SZ");
}

static struct constant read_literal(struct reader *r)
{
    struct constant c = { .kind = r->token.kind, .bits = r->token.value, .is_unsigned = r->token.is_unsigned };
    if (c.kind == TOKEN_INTEGER && c.bits > INT64_MAX) c.is_unsigned = true;
    c.is_float = c.kind != TOKEN_INTEGER;
    if (c.kind == TOKEN_FLOAT32) {
        const uint32_t bits = (uint32_t)c.bits;
        float value;
        memcpy(&value, &bits, sizeof value);
        c.real = (double)value;
    } else if (c.is_float) {
        memcpy(&c.real, &c.bits, sizeof c.real);
    }
    token_next(r);
    return c;
}

static struct constant read_unary(struct reader *r, int nesting)
{
    if (nesting > MAX_NESTING) {
        reader_fail(r, "this expression is nested deeper than %d", MAX_NESTING);
        return integer(0, false);
    }
    if (token_take(r, '+')) return read_unary(r, nesting + 1);
    if (token_take(r, '(')) {
        /* casts (.s64) and (.u64) */
        if (token_is_word(r, ".s64") || token_is_word(r, ".u64")) {
            const bool is_unsigned = token_is_word(r, ".u64");
            token_next(r);
            token_expect(r, ')');
            struct constant c = read_unary(r, nesting + 1);
            if (c.is_float) reader_fail(r, "a float cannot be cast to an integer in a constant expression");
            c.is_unsigned = is_unsigned;
            return c;
        }
        const struct constant c = read_level(r, 0, nesting + 1);
        token_expect(r, ')');
        return c;
    }
    if (token_is(r, '-') || token_is(r, '~') || token_is(r, '!')) {
        const char operation = r->token.punctuation;
        token_next(r);
        struct constant c = read_unary(r, nesting + 1);
        if (operation == '-' && c.is_float) {
            c.bits ^= c.kind == TOKEN_FLOAT32 ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
            c.real = -c.real;
        } else if (c.is_float) {
            reader_fail(r, "'%c' needs an integer", operation);
        } else {
            c.bits = operation == '-' ? 0 - c.bits : operation == '~' ? ~c.bits : c.bits == 0;
        }
        return c;
    }
    if (token_is_name(r, "WARP_SZ")) {
        token_next(r);
        return integer(LANES, false);
    }
    if (!constant_follows(r)) {
        reader_fail(r, "a constant should stand here");
        return integer(0, false);
    }
    return read_literal(r);
}

/* Binary operators by rising precedence; codes as in struct token. */
static const char *const levels[] = { "o", "a", "|", "^", "&", "en", "\x01\x02lg", "<>", "+-", "*/%" };
enum { LEVELS = sizeof levels / sizeof levels[0] };

static bool divide(struct reader *r, char operation, struct constant a, struct constant b, uint64_t *result)
{
    if (b.bits == 0) {
        reader_fail(r, "division by zero in a constant expression");
        return false;
    }
    if (a.is_unsigned || b.is_unsigned) {
        *result = operation == '/' ? a.bits / b.bits : a.bits % b.bits;
    } else if (b.bits == UINT64_MAX) {
        *result = operation == '/' ? 0 - a.bits : 0;
    } else {
        const int64_t x = (int64_t)a.bits, y = (int64_t)b.bits;
        *result = (uint64_t)(operation == '/' ? x / y : x % y);
    }
    return true;
}

static uint64_t shift_right(struct constant a, uint64_t by)
{
    if (a.is_unsigned) return by > 63 ? 0 : a.bits >> by;
    return (uint64_t)((int64_t)a.bits >> (by > 63 ? 63 : by));
}

static struct constant apply(struct reader *r, char operation, struct constant a, struct constant b)
{
    if (a.is_float || b.is_float) {
        reader_fail(r, "operators of constant expressions need integers");
        return a;
    }
    const bool u = a.is_unsigned || b.is_unsigned;
    const int64_t x = (int64_t)a.bits, y = (int64_t)b.bits;
    const bool less = u ? a.bits < b.bits : x < y;
    uint64_t bits = 0;
    switch (operation) {
    case 'o': bits = a.bits != 0 || b.bits != 0; break;
    case 'a': bits = a.bits != 0 && b.bits != 0; break;
    case '|': bits = a.bits | b.bits; break;
    case '^': bits = a.bits ^ b.bits; break;
    case '&': bits = a.bits & b.bits; break;
    case 'e': bits = a.bits == b.bits; break;
    case 'n': bits = a.bits != b.bits; break;
    case 'l': bits = less || a.bits == b.bits; break;
    case 'g': bits = !less; break;
    case '\x01': bits = less; break;
    case '\x02': bits = !less && a.bits != b.bits; break;
    case '<': bits = b.bits > 63 ? 0 : a.bits << b.bits; break;
    case '>': bits = shift_right(a, b.bits); break;
    case '+': bits = a.bits + b.bits; break;
    case '-': bits = a.bits - b.bits; break;
    case '*': bits = a.bits * b.bits; break;
    default: divide(r, operation, a, b, &bits); break;
    }
    return integer(bits, u);
}

static struct constant read_level(struct reader *r, int level, int nesting)
{
    if (level == LEVELS) return read_unary(r, nesting);
    struct constant a = read_level(r, level + 1, nesting);
    while (r->token.kind == TOKEN_PUNCTUATION && strchr(levels[level], r->token.punctuation) != NULL) {
        const char operation = r->token.punctuation;
        token_next(r);
        a = apply(r, operation, a, read_level(r, level + 1, nesting));
    }
    if (level == 0 && token_take(r, '?')) {
        const struct constant yes = read_level(r, 0, nesting + 1);
        token_expect(r, ':');
        const struct constant no = nesting > MAX_NESTING ? yes : read_level(r, 0, nesting + 1);
        return a.bits != 0 ? yes : no;
    }
    return a;
}

struct constant read_expression(struct reader *r) { return read_level(r, 0, 0); }

int64_t read_integer(struct reader *r, const char *what, int64_t low, int64_t high)
{
    const struct token first = r->token;
    const struct constant c = read_expression(r);
    if (r->failed) return low;
    const int64_t value = (int64_t)c.bits;
    if (c.is_float || value < low || value > high) {
        reader_fail_at(r, first.line, first.column, "%s is an integer from %lld to %lld", what, (long long)low,
                       (long long)high);
        return low;
    }
    return value;
}

const char *constant_as(const struct constant *c, enum ptx_type type, uint64_t *bits)
{
    const char kind = type_kind(type);
    if (!c->is_float) {
        if (kind == 'f' && (type == T_F32 || type == T_F64))
            return "a float constant (0f... or 0d...) should stand here, not an integer";
        *bits = c->bits & bits_mask(type_bits(type));
        return NULL;
    }
    if (kind != 'f' && kind != 'b') return "an integer constant should stand here, not a float";
    if (type_bits(type) == 64) {
        memcpy(bits, &c->real, sizeof *bits);
        return NULL;
    }
    if (type_bits(type) != 32) return "a float constant does not fit the type of this operand";
    const float value = (float)c->real;
    uint32_t single;
    memcpy(&single, &value, sizeof single);
    *bits = c->kind == TOKEN_FLOAT32 ? (uint32_t)c->bits : single;
    return NULL;
}

/* Rows are shared: equal constants have the same row, followed by the link to the next row of the bucket. */
const uint64_t *constant_row(struct reader *r, uint64_t value)
{
    uint64_t **bucket =
        &r->constants[(value ^ value >> 17 ^ value >> 41) % (sizeof r->constants / sizeof r->constants[0])];
    for (uint64_t *row = *bucket; row != NULL; row = (uint64_t *)(uintptr_t)row[LANES])
        if (row[0] == value) return row;
    uint64_t *row = reader_allocate(r, (LANES + 1) * sizeof *row);
    if (row == NULL) return NULL;
    for (int i = 0; i < LANES; i++) row[i] = value;
    row[LANES] = (uint64_t)(uintptr_t)*bucket;
    *bucket = row;
    return row;
}
