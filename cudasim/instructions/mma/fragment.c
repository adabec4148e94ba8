/* Registers to matrices and back: see fragment.h. */
#include "fragment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "instructions/arithmetic/real.h"
#include "machine/mma/tensor_core.h"

/* Row and first k of a register. */
static void place(uint32_t rows, uint32_t lane, uint32_t r, uint32_t each, uint32_t *row, uint32_t *k)
{
    const uint32_t step = rows == 16 ? r / 2 : r;
    *row = lane / 4 + (rows == 16 ? r % 2 * 8 : 0);
    *k = (step * 4 + lane % 4) * each;
}

void fragment_read(const struct warp *w, const struct operand *o, uint32_t rows, uint32_t bits, uint32_t length,
                   uint32_t *code)
{
    const uint32_t each = 32 / bits, mask = (uint32_t)bits_mask(bits);
    for (uint32_t r = 0; r < o->count; r++) {
        const uint64_t *value = source_row(w, &o->element[r]);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            uint32_t row, k;
            place(rows, lane, r, each, &row, &k);
            for (uint32_t j = 0; j < each; j++) code[row * length + k + j] = (uint32_t)value[lane] >> (bits * j) & mask;
        }
    }
}

void fragment_read_wide(const struct warp *w, const struct operand *o, uint32_t rows, uint32_t length, uint64_t *code)
{
    for (uint32_t r = 0; r < o->count; r++) {
        const uint64_t *value = source_row(w, &o->element[r]);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            uint32_t row, k;
            place(rows, lane, r, 1, &row, &k);
            code[row * length + k] = value[lane];
        }
    }
}

static uint32_t accumulator_index(uint32_t lane, uint32_t i)
{
    return (lane / 4 + i / 2 * 8) * FRAGMENT_COLUMNS + lane % 4 * 2 + i % 2;
}

void accumulator_read(const struct warp *w, const struct operand *o, uint32_t rows, bool half, uint64_t *value)
{
    for (uint32_t i = 0; i < rows / 4; i++) {
        const uint64_t *row = source_row(w, &o->element[half ? i / 2 : i]);
        for (uint32_t lane = 0; lane < LANES; lane++)
            value[accumulator_index(lane, i)] = half ? row[lane] >> 16 * (i % 2) & 0xffff : row[lane];
    }
}

void accumulator_write(const struct warp *w, const struct operand *o, bool half, const uint64_t *value)
{
    for (uint32_t r = 0; r < o->count; r++) {
        uint64_t *row = register_row(w, o->element[r].slot);
        for (uint32_t lane = 0; lane < LANES; lane++)
            row[lane] = half ? value[accumulator_index(lane, 2 * r)] | value[accumulator_index(lane, 2 * r + 1)] << 16
                             : value[accumulator_index(lane, r)];
    }
}

enum tensor_format tensor_format_of(enum ptx_type type)
{
    switch (type) {
    case T_BF16: return TENSOR_BF16;
    case T_TF32: return TENSOR_TF32;
    case T_E5M2: return TENSOR_E5M2;
    case T_E4M3: return TENSOR_E4M3;
    case T_E3M2: return TENSOR_E3M2;
    case T_E2M3: return TENSOR_E2M3;
    case T_E2M1: return TENSOR_E2M1;
    default: return TENSOR_F16;
    }
}

void fragment_decode(struct tensor_panel *panel, const struct tensor_model *model, enum tensor_format format,
                     const uint32_t *code, uint32_t rows, uint32_t length)
{
    const bool late = model->late_add && !model->plain;
    tensor_clear(panel, rows, length);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t k = 0; k < length; k++)
            tensor_set(panel, i, late ? tensor_late_position(k, length) : k, format, code[i * length + k]);
}

void fragment_integers(int16_t *value, enum ptx_type type, const uint32_t *code, uint32_t count)
{
    const uint32_t bits = type == T_S4 || type == T_U4 ? 4 : 8;
    const bool is_signed = type == T_S4 || type == T_S8;
    for (uint32_t i = 0; i < count; i++)
        value[i] = (int16_t)(is_signed ? sign_extend(code[i], bits) : (int64_t)code[i]);
}

uint64_t fused_f64(uint64_t a, uint64_t b, uint64_t c, enum rounding rounding)
{
    const uint64_t quiet = UINT64_C(1) << 51;
    /* as fma.f64 */
    if (is_nan64(b) || is_nan64(c) || is_nan64(a)) return (is_nan64(b) ? b : is_nan64(c) ? c : a) | quiet;
    if (rounding <= ROUND_RN) {
        const double d = fma(bits_f64(a), bits_f64(b), bits_f64(c));
        return d != d ? real_f64.nan : f64_bits(d);
    }
    const struct real x = real_unpack(&real_f64, a, false), y = real_unpack(&real_f64, b, false),
                      z = real_unpack(&real_f64, c, false);
    const struct real product = real_multiply(&x, &y), sum = real_add(&product, &z, rounding);
    return real_pack(&real_f64, &sum, rounding, false);
}

void shape_of(const struct row *row, uint32_t *m, uint32_t *k)
{
    const char *at = strstr(row->pattern, ".m");
    while (at != NULL && (at[2] < '0' || at[2] > '9')) at = strstr(at + 1, ".m");
    *m = *k = 0;
    if (at == NULL) return;
    *m = (uint32_t)strtoul(at + 2, NULL, 10);
    at = strchr(at, 'k');
    if (at != NULL) *k = (uint32_t)strtoul(at + 1, NULL, 10);
}
