#include "row_exponents.h"

#include "core/core.h"
#include "matrix/rows.h"

enum { LEAST_EXPONENT = -40, MOST_EXPONENT = 40, NAN_SCALE = 255, BIAS = 127, CODES_AT_ONCE = 256 };

/* Exponents of the smallest nonzero and of the largest magnitude of an element. */
static const struct { int8_t least, most; } element_ranges[BSM_ELEMENT_COUNT] = {
    [BSM_E4M3] = { -9, 8 },  [BSM_E5M2] = { -16, 15 }, [BSM_E3M2] = { -4, 4 },
    [BSM_E2M3] = { -3, 2 },  [BSM_E2M1] = { -1, 2 },   [BSM_INT8] = { -6, 1 },       /* -2 is a code */
};

struct bsmi_scale_bounds bsmi_scale_bounds(bsm_element element)
{
    return (struct bsmi_scale_bounds){ (uint8_t)(BIAS + LEAST_EXPONENT - element_ranges[element].least),
                            (uint8_t)(BIAS + MOST_EXPONENT - element_ranges[element].most) };
}

/* Without a branch: this loop is a vector's.  The code behind NaN's is 0 as a byte. */
static bool any_outside(struct bsmi_scale_bounds bounds, const uint8_t *codes, int64_t count)
{
    uint8_t least = NAN_SCALE, behind_most = 0;
    for (int64_t s = 0; s < count; s++) {
        const uint8_t next = (uint8_t)(codes[s] + 1);
        least = BSMI_MIN(least, codes[s]);
        behind_most = BSMI_MAX(behind_most, next);
    }
    return least < bounds.least || behind_most > bounds.most + 1;
}

bool bsmi_block_is_zero(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t s, int64_t k)
{
    uint8_t codes[32], any = 0;
    const int64_t first = s * m->block, count = BSMI_MIN(m->block, k - first);
    bsmi_row_codes(m, batch, row, first, count, codes);
    for (int64_t i = 0; i < count; i++) any |= codes[i];
    return (m->element == BSM_INT8 ? any : any & ((1 << (m->bits - 1)) - 1)) == 0;
}

/* A scale of a block that is not all zeros, outside the bounds: such rows are seldom. */
static bool leaves_bounds(const struct bsmi_matrix *m, struct bsmi_scale_bounds bounds, int64_t batch, int64_t row,
                          int64_t s, int64_t k)
{
    uint8_t code;
    bsmi_row_scales(m, batch, row, s, 1, &code);
    return any_outside(bounds, &code, 1) && !bsmi_block_is_zero(m, batch, row, s, k);
}

/* The middle of the range of a row that leaves the bounds. */
static int16_t exponent_of_range(const struct bsmi_matrix *m, bool beside_bf16, int64_t batch, int64_t row, int64_t k)
{
    int least = NAN_SCALE, most = 0;
    if (beside_bf16) return BSMI_FALLBACK_ROW;
    for (int64_t s = 0; s * m->block < k; s++) {
        uint8_t code;
        bsmi_row_scales(m, batch, row, s, 1, &code);
        if (code == NAN_SCALE || (code >= least && code <= most) || bsmi_block_is_zero(m, batch, row, s, k)) continue;
        least = BSMI_MIN(least, code), most = BSMI_MAX(most, code);
    }
    least += element_ranges[m->element].least - BIAS, most += element_ranges[m->element].most - BIAS;
    if (most - least > MOST_EXPONENT - LEAST_EXPONENT) return BSMI_FALLBACK_ROW;
    return (int16_t)((least + most + 512) / 2 - 256);                /* rounded down */
}

/* Of a row that has a scale outside. */
static int16_t exponent_of_row(const struct bsmi_matrix *m, bool beside_bf16, int64_t batch, int64_t row, int64_t k)
{
    const struct bsmi_scale_bounds bounds = bsmi_scale_bounds(m->element);
    for (int64_t s = 0; s * m->block < k; s++)
        if (leaves_bounds(m, bounds, batch, row, s, k)) return exponent_of_range(m, beside_bf16, batch, row, k);
    return 0;
}

/* Rows of which some are looked at twice. */
struct rows { const struct bsmi_matrix *m; int64_t batch, first, count, split; };

static const uint8_t *scales_of_row(const struct rows *rows, int64_t r)
{
    return bsmi_scale_pointer(rows->m, rows->batch, bsmi_source_column(rows->first + r, rows->split), 0);
}

/* 1 for rows that have a scale outside, else 0.  Rows without a gap between them are looked at as one first. */
static void mark_linear(const struct rows *rows, int64_t blocks, int16_t *marks)
{
    const struct bsmi_scale_bounds bounds = bsmi_scale_bounds(rows->m->element);
    const int64_t last = rows->count - 1;
    if (rows->split == 0 && scales_of_row(rows, last) - scales_of_row(rows, 0) == last * blocks
        && !any_outside(bounds, scales_of_row(rows, 0), rows->count * blocks)) {
        memset(marks, 0, (size_t)rows->count * sizeof *marks);
        return;
    }
    for (int64_t r = 0; r < rows->count; r++) marks[r] = any_outside(bounds, scales_of_row(rows, r), blocks);
}

/* In other layouts scales of a row lie at the same distances from its first one in every row. */
static void mark_any_layout(const struct rows *rows, int64_t blocks, int16_t *marks)
{
    const struct bsmi_matrix *m = rows->m;
    const struct bsmi_scale_bounds bounds = bsmi_scale_bounds(m->element);
    const int64_t origin = bsmi_scale_at(&m->map, 0, m->first_scale);
    memset(marks, 0, (size_t)rows->count * sizeof *marks);
    for (int64_t s = 0, some; s < blocks; s += some) {
        int64_t distances[CODES_AT_ONCE];
        uint8_t codes[CODES_AT_ONCE];
        some = BSMI_MIN(blocks - s, CODES_AT_ONCE);
        for (int64_t i = 0; i < some; i++) distances[i] = bsmi_scale_at(&m->map, 0, m->first_scale + s + i) - origin;
        for (int64_t r = 0; r < rows->count; r++) {
            const uint8_t *const row = scales_of_row(rows, r);
            for (int64_t i = 0; i < some; i++) codes[i] = row[distances[i]];
            marks[r] |= any_outside(bounds, codes, some);
        }
    }
}

static void exponents_of_rows(const struct rows *rows, bool beside_bf16, int64_t k, int16_t *exponents)
{
    const struct bsmi_matrix *m = rows->m;
    const int64_t blocks = bsmi_ceil_div(k, m->block);
    if (m->map.layout.kind == BSM_LAYOUT_LINEAR) mark_linear(rows, blocks, exponents);
    else mark_any_layout(rows, blocks, exponents);
    for (int64_t r = 0; r < rows->count; r++)
        if (exponents[r] != 0)
            exponents[r] = exponent_of_row(m, beside_bf16, rows->batch,
                                           bsmi_source_column(rows->first + r, rows->split), k);
}

/* Twice the bits of a bf16 number less 1, with the highest bit turned: of subnormal numbers, whose bits without the
 * sign are 1 .. 0x7f, these are the least, as signed words, which every vector compares. */
enum { MOST_OF_SUBNORMAL = INT16_MIN + 2 * 0x7f - 1 };
static int16_t turned(uint16_t code) { return (int16_t)(uint16_t)(2 * code + 0x7fff); }

/* Four at a time: one after the other they would wait for one another. */
static bool any_subnormal(const uint16_t *codes, int64_t count)
{
    const int64_t quarter = count / 4;
    const uint16_t *const a = codes, *const b = a + quarter, *const c = b + quarter, *const d = c + quarter;
    int16_t least = INT16_MAX;
    for (int64_t i = 0; i < quarter; i++) {
        const int16_t ab = BSMI_MIN(turned(a[i]), turned(b[i])), cd = BSMI_MIN(turned(c[i]), turned(d[i])),
                      four = BSMI_MIN(ab, cd);
        least = BSMI_MIN(least, four);
    }
    for (int64_t i = 4 * quarter; i < count; i++) {
        const int16_t last = turned(codes[i]);
        least = BSMI_MIN(least, last);
    }
    return least <= MOST_OF_SUBNORMAL;
}

void bsmi_row_exponents(const struct bsmi_operand *operand, bool beside_bf16, int64_t batch, int64_t first,
                        int64_t count, int64_t split, int64_t k, int16_t *exponents)
{
    const struct bsmi_matrix *m = operand->matrix;
    if (count <= 0) return;
    memset(exponents, 0, (size_t)count * sizeof *exponents);
    if (k == 0) return;
    if (m->scale == BSM_E8M0)
        exponents_of_rows(&(struct rows){ m, batch, first, count, split }, beside_bf16, k, exponents);
    for (int64_t r = 0; m->element == BSM_BF16 && r < count; r++) {
        const unsigned char *const row = bsmi_row(m, batch, bsmi_source_column(first + r, split));
        if (any_subnormal((const uint16_t *)(const void *)row, k)) exponents[r] = BSMI_FALLBACK_ROW;
    }
}
