/* Boundary values of each type, and how tuples are drawn from them. */
#include "operands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FULL = 44, CORE = 16 };

/* ---- layout ---- */

size_t result_bytes(enum ptx_type type) { return type == T_PRED ? 1 : type_bytes(type); }

static size_t slot_bytes(enum ptx_type type) { return type == T_B128 ? 16 : 8; }

static const char *next_type(const char *at, enum ptx_type *type)
{
    at += strspn(at, " ");
    const size_t length = strcspn(at, " ");
    *type = type_named(at, length);
    return at + length;
}

void layout_read(struct layout *l, const char *describe, uint32_t tuples)
{
    *l = (struct layout){ .tuples = tuples };
    enum ptx_type type;
    bool results = false;
    for (const char *at = describe; *(at += strspn(at, " ")) != '\0';) {
        if (*at == '>') {
            results = true, at++;
            continue;
        }
        at = next_type(at, &type);
        if (results) {
            const size_t bytes = result_bytes(type);
            l->output_bytes = (l->output_bytes + bytes - 1) / bytes * bytes;
            l->place[l->results] = l->output_bytes;
            l->result[l->results++] = (uint8_t)type;
            l->output_bytes += bytes * tuples;
        } else {
            l->stride = (l->stride + slot_bytes(type) - 1) / slot_bytes(type) * slot_bytes(type);
            l->slot[l->operands] = l->stride;
            l->operand[l->operands++] = (uint8_t)type;
            l->stride += slot_bytes(type);
        }
    }
    for (int i = 0; i < l->operands; i++)
        if (l->operand[i] == T_B128) l->stride = (l->stride + 15) / 16 * 16;
    l->input_bytes = l->stride * tuples;
}

void layout_find(const struct layout *l, size_t at, int *result, uint32_t *tuple)
{
    *result = l->results - 1;
    while (*result > 0 && l->place[*result] > at) --*result;
    *tuple = (uint32_t)((at - l->place[*result]) / result_bytes((enum ptx_type)l->result[*result]));
    if (*tuple >= l->tuples) *tuple = l->tuples - 1;
}

/* ---- values ---- */

struct parts { int count; uint32_t bits; int mantissa, exponent; };   /* of a type: count elements; mantissa 0:
                                                                         integers */

static struct parts parts_of(enum ptx_type type)
{
    switch (type) {
    case T_F16: return (struct parts){ 1, 16, 10, 5 };
    case T_BF16: return (struct parts){ 1, 16, 7, 8 };
    case T_F32: case T_TF32: return (struct parts){ 1, 32, 23, 8 };
    case T_F64: return (struct parts){ 1, 64, 52, 11 };
    case T_F16X2: return (struct parts){ 2, 16, 10, 5 };
    case T_BF16X2: return (struct parts){ 2, 16, 7, 8 };
    case T_F32X2: return (struct parts){ 2, 32, 23, 8 };
    case T_U16X2: case T_S16X2: return (struct parts){ 2, 16, 0, 0 };
    default: return (struct parts){ 1, type_bits(type) > 64 ? 64 : type_bits(type), 0, 0 };
    }
}

static uint64_t integer_value(uint32_t bits, int i)
{
    const uint64_t top = UINT64_C(1) << (bits - 1);
    const uint64_t values[FULL] = { /* CORE */
                                    0,
                                    1,
                                    2,
                                    8,
                                    16,
                                    31,
                                    32,
                                    33,
                                    64,
                                    255,
                                    256,
                                    top - 1,
                                    top,
                                    UINT64_MAX,
                                    0x123456789abcdef5,
                                    0xfedcba9876543210,
                                    3,
                                    5,
                                    7,
                                    15,
                                    17,
                                    24,
                                    40,
                                    63,
                                    65,
                                    127,
                                    128,
                                    129,
                                    0x7fff,
                                    0x8000,
                                    0xffff,
                                    0x10000,
                                    0x7fffff,
                                    0x800000,
                                    0x1000000,
                                    top + 1,
                                    UINT64_MAX - 1,
                                    UINT64_MAX - 31,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    0x55555555aaaaaaaa,
                                    0x00ff00ff0f0f3333,
                                    0x80000001
    };
    return values[i];
}

static uint64_t float_value(const struct parts *p, int i)
{
    const uint64_t hidden = UINT64_C(1) << p->mantissa, ones = hidden - 1, sign = UINT64_C(1) << (p->bits - 1),
                   infinity = ((UINT64_C(1) << p->exponent) - 1) << p->mantissa,
                   one = ((UINT64_C(1) << (p->exponent - 1)) - 1) << p->mantissa, quiet = hidden >> 1;
    const uint64_t two = one + hidden;
    const uint64_t values[FULL] = { 0, sign, 1, sign | ones, hidden, one, sign | one, one + 1, sign | (one + quiet),
                                    infinity - 1, sign | (infinity - 1),
                                    /* CORE */
                                    infinity, sign | infinity, infinity | quiet | 5, sign | infinity | 1,
                                    two + quiet + 2, sign | 1, 2, ones, sign | hidden, hidden + 1, 2 * hidden, one - 1,
                                    one - hidden, sign | (one - hidden), one + ones, two, sign | two, two + quiet,
                                    one + quiet / 2, infinity - hidden, infinity - 2 * hidden + 3, one / 2,
                                    one / 2 + quiet + 1, one + one / 2, sign | (one + one / 2 + quiet - 1),
                                    infinity | quiet, sign | infinity | quiet, infinity | ones, sign | infinity | ones,
                                    infinity | (quiet - 1), (one + 5 * hidden) | (quiet / 2 + quiet),
                                    sign | (one + 8 * hidden) | 1, (one - 3 * hidden) | (ones ^ 2) };
    return values[i];
}

/* Short mantissas (ties of narrower types), give or take one unit; exponents near zero as often as any. */
static uint64_t random_float(const struct parts *p, uint64_t *state)
{
    const uint64_t r = calibration_random(state), ones = (UINT64_C(1) << p->mantissa) - 1,
                   exponents = (UINT64_C(1) << p->exponent) - 1, bias = exponents / 2;
    uint64_t mantissa = calibration_random(state) & ones, exponent = r & exponents;
    if ((r >> 60 & 3) != 0) mantissa &= ~((UINT64_C(1) << ((r >> 40) % (unsigned)p->mantissa)) - 1);
    if ((r >> 62 & 1) != 0) exponent = bias + (r >> 32 & 31) - 16;
    if (p->exponent == 5) exponent &= exponents;
    else if ((r >> 58 & 3) == 3) exponent = bias + (r >> 32 & 127) % 80 - 27;
    /* where f32 becomes subnormal */
    else if (p->bits == 64 && (r >> 58 & 3) == 2) exponent = bias - 126 + (r >> 32 & 31) - 26;
    uint64_t value = (exponent & exponents) << p->mantissa | mantissa;
    value += (r >> 20 & 3) == 1 ? 1 : (r >> 20 & 3) == 2 ? UINT64_MAX : 0;
    return (value & ((UINT64_C(1) << (p->bits - 1)) - 1)) | (r >> 57 & 1) << (p->bits - 1);
}

static uint64_t random_integer(uint32_t bits, uint64_t *state)
{
    const uint64_t r = calibration_random(state), value = calibration_random(state) >> (64 - bits) >> (r % bits);
    return (r >> 32 & 3) == 0 ? ~value : value;
}

static uint64_t element(const struct parts *p, int index, uint64_t *state)
{
    if (index >= 0) return p->mantissa != 0 ? float_value(p, index) : integer_value(p->bits, index);
    return p->mantissa != 0 ? random_float(p, state) : random_integer(p->bits, state);
}

/* Value `index` of the type's boundary values; -1: a random one.  The halves of a packed type run through other orders
 * of the same values, so that all pairs of indices give all pairs of values in each half. */
static uint64_t value_of(enum ptx_type type, int index, uint64_t *state)
{
    const struct parts p = parts_of(type);
    if (p.bits == 1) return index >= 0 ? (uint64_t)index & 1 : calibration_random(state) & 1;
    const uint64_t mask = bits_mask(p.bits);
    uint64_t value = element(&p, index, state) & mask;
    const int other = index < 0 ? -1 : (index * 7 + 13) % FULL;
    if (p.count == 2) value |= (element(&p, other, state) & mask) << p.bits;
    return value;
}

/* ---- tuples ---- */

static uint32_t sources(const struct layout *l, enum ptx_type *only)
{
    uint32_t count = 0;
    for (int i = 0; i < l->operands; i++)
        if (l->operand[i] != T_PRED) count++, *only = (enum ptx_type)l->operand[i];
    return count;
}

/* All values of 16 bits; of pairs of 16 bits each value in each half. */
static bool exhaustive(enum ptx_type type)
{
    const struct parts p = parts_of(type);
    return p.bits == 16;
}

uint32_t layout_tuples(const char *describe)
{
    struct layout l;
    enum ptx_type only = T_NONE;
    layout_read(&l, describe, 1);
    switch (sources(&l, &only)) {
    case 0: case 1: return exhaustive(only) ? 65536 : type_bits(only) <= 8 ? 1024 : 16384;
    case 2: return 2048;
    default: return 6144;
    }
}

static uint64_t single(enum ptx_type type, uint32_t t, uint64_t *state)
{
    const uint32_t bits = parts_of(type).bits;
    if (exhaustive(type))
        return (uint64_t)t | (parts_of(type).count == 2 ? (uint64_t)((t * 40503u + 77) & 0xffff) << 16 : 0);
    if (bits <= 8) return t;
    return value_of(type, t < FULL ? (int)t : -1, state);
}

/* Index of operand i of tuple t, or -1.  First all triples of CORE (or, of two operands, none), then all pairs of
 * FULL. */
static int index_of(uint32_t operands, uint32_t t, int i, uint64_t *state)
{
    if (operands > 2) {
        if (t < CORE * CORE * CORE) {
            const uint32_t digits[] = { t / (CORE * CORE), t / CORE % CORE, t % CORE };
            return (int)(i < 3 ? digits[i] : calibration_random(state) % CORE);
        }
        t -= CORE * CORE * CORE;
    }
    if (t >= FULL * FULL) return -1;
    if (i < 2) return (int)(i == 0 ? t / FULL : t % FULL);
    return calibration_random(state) % 4 == 0 ? -1 : (int)(calibration_random(state) % FULL);
}

/* -(a b).  Where c nearly cancels a * b, one rounding shows.  Of two NaN the first counts, with its sign; C leaves both
 * open. */
static uint64_t cancelling(enum ptx_type type, uint64_t a, uint64_t b)
{
    if (type == T_F64) {
        const uint64_t sign = UINT64_C(1) << 63, quiet = UINT64_C(1) << 51;
        double x, y;
        memcpy(&x, &a, 8), memcpy(&y, &b, 8);
        if (isnan(x) || isnan(y)) return ((isnan(x) ? a : b) | quiet) ^ sign;
        x *= y;
        memcpy(&a, &x, 8);
        return a ^ sign;
    }
    const uint32_t sign = UINT32_C(1) << 31, quiet = UINT32_C(1) << 22;
    uint32_t bits = (uint32_t)a, bits_b = (uint32_t)b;
    float x, y;
    memcpy(&x, &bits, 4), memcpy(&y, &bits_b, 4);
    if (isnan(x) || isnan(y)) return ((isnan(x) ? bits : bits_b) | quiet) ^ sign;
    x *= y;
    memcpy(&bits, &x, 4);
    return bits ^ sign;
}

static void tuple_fill(const struct layout *l, uint32_t operands, uint32_t t, uint8_t *tuple, uint64_t *state)
{
    uint64_t before[LAYOUT_FIELDS] = { 0 };
    int place = 0;
    for (int i = 0; i < l->operands; i++) {
        const enum ptx_type type = (enum ptx_type)l->operand[i];
        uint64_t value;
        if (type == T_PRED) value = calibration_random(state) >> 33 & 1;
        else if (operands <= 1) value = single(type, t, state);
        else value = value_of(type, index_of(operands, t, place, state), state);
        const bool random_tail = operands > 1 && t >= (operands > 2 ? CORE * CORE * CORE : 0) + FULL * FULL;
        if (random_tail && place == 1 && t % 4 == 1) value = before[0] ^ (t % 8 == 1 ? 0 : 1);
        if (random_tail && place == 2 && t % 4 == 2 && (type == T_F32 || type == T_F64))
            value = cancelling(type, before[0], before[1]);
        if (type != T_PRED) before[place++] = value;
        /* a wider register's upper bits */
        if (type_bits(type) < 64) value |= calibration_random(state) << type_bits(type);
        memcpy(tuple + l->slot[i], &value, 8);
        if (type == T_B128) value = calibration_random(state), memcpy(tuple + l->slot[i] + 8, &value, 8);
    }
}

void operands_fill(const struct calibration_case *c, uint8_t *input)
{
    struct layout l;
    uint64_t state = 0x63616c6962726174;
    enum ptx_type only = T_NONE;
    layout_read(&l, c->describe, c->grid[0] * c->block[0]);
    const uint32_t operands = sources(&l, &only);
    memset(input, 0, c->input_bytes);
    for (uint32_t t = 0; t < l.tuples; t++) tuple_fill(&l, operands, t, input + l.stride * t, &state);
}

void operands_print(const struct layout *l, const uint8_t *input, uint32_t tuple, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < l->operands && used < size; i++) {
        const enum ptx_type type = (enum ptx_type)l->operand[i];
        uint64_t value;
        memcpy(&value, input + l->stride * tuple + l->slot[i], 8);
        value &= bits_mask(type_bits(type));
        used += (size_t)snprintf(text + used, size - used, "%s%#llx", i == 0 ? "" : ", ", (unsigned long long)value);
        double real = 0;
        float single_real;
        if (type == T_F32) memcpy(&single_real, &value, 4), real = (double)single_real;
        if (type == T_F64) memcpy(&real, &value, 8);
        if ((type == T_F32 || type == T_F64) && used < size)
            used += (size_t)snprintf(text + used, size - used, " (%.9g)", real);
    }
}
