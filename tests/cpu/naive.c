#include "naive.h"

#include <math.h>
#include <stdlib.h>

/* Operands --------------------------------------------------------------------------------------------------------- */

void shape_in_any_way(struct test *t, struct shape *s, const bsm_scale_layout *layouts, int count)
{
    static const bsm_packing four[] = { BSM_PACKING_LOW_FIRST, BSM_PACKING_HIGH_FIRST, BSM_PACKING_BYTES,
                                        BSM_PACKING_GGUF };
    const bsm_format_info *f = bsm_format_get((int)s->format);
    const int bits = bsm_element_get((int)f->element)->bits;
    if (bits == 4) s->packing = four[rnd_below(t, s->format == BSM_MXFP4 || s->format == BSM_NVFP4 ? 4 : 3)];
    if (bits == 6) s->packing = rnd_below(t, 2) == 0 ? BSM_PACKING_BIT_STREAM : BSM_PACKING_BYTES;
    if (f->block != 0) s->layout = layouts[rnd_below(t, count)];
    if (s->packing == BSM_PACKING_GGUF)
        s->layout =
            (bsm_scale_layout){ .kind = s->format == BSM_MXFP4 ? BSM_LAYOUT_GGUF_MXFP4 : BSM_LAYOUT_GGUF_NVFP4 };
    if (rnd_below(t, 2) == 0) s->extra_pitch = 64;
}

/* Legal ones, repeatable; all there are, rows beginning elsewhere. */
static void make_metadata(bsm_sparse_matrix *s, bsm_sparsity sparsity)
{
    static const unsigned char legal[] = { 0x4, 0x8, 0x9, 0xc, 0xd, 0xe };
    const int64_t groups = s->matrix.columns / (sparsity == BSM_SPARSITY_2_4 ? 4 : 8);
    s->matrix.struct_size = sizeof *s;
    s->sparsity = sparsity, s->metadata_pitch = (groups + 1) / 2 + 1;
    const int64_t bytes = (s->matrix.batch == 0 ? 1 : s->matrix.batch) * s->matrix.rows * s->metadata_pitch;
    unsigned char *at = s->metadata = guarded_at_end((size_t)bytes, 1, 0);
    for (int64_t i = 0; i < bytes; i++) at[i] = (unsigned char)(legal[i * 7 % 6] | legal[(i * 5 + i / 6) % 6] << 4);
}

struct operand operand_make(const struct shape *s, int poison)
{
    struct operand o = { .sparse.matrix = { .struct_size = sizeof(bsm_matrix), .format = s->format, .rows = s->rows,
                                            .columns = s->columns, .batch = s->batch, .packing = s->packing,
                                            .scale_layout = s->layout, .major = s->major } };
    const int64_t width = s->major == BSM_MAJOR_MN ? s->rows : s->columns,
                  height = s->major == BSM_MAJOR_MN ? s->columns : s->rows;
    if (s->sparsity != BSM_SPARSITY_NONE) make_metadata(&o.sparse, s->sparsity);
    if (s->extra_pitch != 0) o.m.pitch = (width + 63) / 64 * 64 + s->extra_pitch;
    if (s->extra_batch_pitch != 0) {
        const int64_t pitch = o.m.pitch != 0 ? o.m.pitch : (width + 63) / 64 * 64;
        o.m.pitch = pitch;
        o.m.batch_pitch = pitch * height + s->extra_batch_pitch;
    }
    int64_t data_bytes = 0, scale_bytes = 0;
    if (bsm_matrix_data_bytes(&o.m, &data_bytes) != BSM_OK || bsm_matrix_scale_bytes(&o.m, &scale_bytes) != BSM_OK) {
        fprintf(stderr, "operand: %s\n", bsm_last_error());
        exit(1);
    }
    o.data_bytes = (size_t)data_bytes, o.scale_bytes = (size_t)scale_bytes;
    const int bits = bsm_element_get((int)bsm_format_get((int)s->format)->element)->bits;
    o.m.data = guarded_at_end(o.data_bytes, bits > 8 ? (size_t)bits / 8 : 1, poison);
    if (o.scale_bytes > 0) o.m.scales = guarded_at_end(o.scale_bytes, 1, poison);
    return o;
}

struct operand operand_of_columns(const bsm_matrix *m, int64_t first, int64_t columns)
{
    const int block = bsm_format_get((int)m->format)->block,
              bits = bsm_element_get((int)bsm_format_get((int)m->format)->element)->bits;
    struct operand o = operand_make(&(struct shape){ .format = m->format, .rows = m->rows, .columns = columns,
                                                     .packing = bits == 4   ? BSM_PACKING_LOW_FIRST
                                                                : bits == 6 ? BSM_PACKING_BIT_STREAM
                                                                            : BSM_PACKING_DEFAULT }, 0);
    uint32_t code = 0;
    uint8_t scale = 0;
    for (int64_t r = 0; r < m->rows; r++) {
        for (int64_t k = 0; k < columns; k++)
            if (bsm_matrix_get_code(m, 0, r, first + k, &code) != BSM_OK
                || bsm_matrix_set_code(&o.m, 0, r, k, code) != BSM_OK) exit(1);
        for (int64_t s = 0; block != 0 && s * block < columns; s++)
            if (bsm_matrix_get_scale(m, 0, r, first / block + s, &scale) != BSM_OK
                || bsm_matrix_set_scale(&o.m, 0, r, s, scale) != BSM_OK) exit(1);
    }
    return o;
}

struct operand operand_turned(const struct operand *from, bsm_packing packing, int64_t extra_pitch)
{
    struct operand o = operand_make(&(struct shape){ .format = from->m.format, .rows = from->m.rows,
                                                     .columns = from->m.columns, .batch = from->m.batch,
                                                     .packing = packing, .layout = from->m.scale_layout,
                                                     .extra_pitch = extra_pitch, .major = BSM_MAJOR_MN }, 0xff);
    uint32_t code = 0;
    for (int64_t b = 0; b < (from->m.batch == 0 ? 1 : from->m.batch); b++)
        for (int64_t r = 0; r < from->m.rows; r++)
            for (int64_t k = 0; k < from->m.columns; k++)
                if (bsm_matrix_get_code(&from->m, b, r, k, &code) != BSM_OK
                    || bsm_matrix_set_code(&o.m, b, r, k, code) != BSM_OK) exit(1);
    if (o.scale_bytes > 0) memcpy(o.m.scales, from->m.scales, o.scale_bytes);
    o.m.tensor_scale = from->m.tensor_scale, o.m.tensor_scale_use = from->m.tensor_scale_use;
    return o;
}

struct operand operand_filled(struct test *t, bsm_format format, int64_t rows, int64_t columns, int64_t batch)
{
    const bool scaled = bsm_format_get((int)format)->block != 0;
    struct operand o = operand_make(&(struct shape){ .format = format, .rows = rows, .columns = columns, .batch = batch,
                                                     .layout.kind = scaled ? BSM_LAYOUT_128X4 : BSM_LAYOUT_LINEAR },
                                    0xff);
    operand_fill(t, &o, false);
    return o;
}

void operand_turn(struct operand *o)
{
    const struct operand turned = operand_turned(o, BSM_PACKING_DEFAULT, 64);
    operand_free(o);
    *o = turned;
}

struct operand operand_expanded(const struct operand *from)
{
    const int block = bsm_format_get((int)from->m.format)->block;
    struct operand o = operand_make(&(struct shape){ .format = from->m.format, .rows = from->m.rows,
                                                     .columns = from->m.columns, .batch = from->m.batch }, 0xff);
    uint32_t code = 0;
    uint8_t scale = 0;
    for (int64_t b = 0; b < (from->m.batch == 0 ? 1 : from->m.batch); b++)
        for (int64_t r = 0; r < from->m.rows; r++) {
            for (int64_t k = 0; k < from->m.columns; k++)
                if (bsm_matrix_get_code(&from->m, b, r, k, &code) != BSM_OK
                    || bsm_matrix_set_code(&o.m, b, r, k, code) != BSM_OK) exit(1);
            for (int64_t s = 0; block != 0 && s * block < from->m.columns; s++)
                if (bsm_matrix_get_scale(&from->m, b, r, s / 2, &scale) != BSM_OK
                    || bsm_matrix_set_scale(&o.m, b, r, s, scale) != BSM_OK) exit(1);
        }
    o.m.tensor_scale = from->m.tensor_scale, o.m.tensor_scale_use = from->m.tensor_scale_use;
    return o;
}

void operand_free(struct operand *o)
{
    if (o->sparse.metadata != NULL) guarded_free(o->sparse.metadata);
    guarded_free(o->m.data);
    if (o->scale_bytes > 0) guarded_free(o->m.scales);
    free(o->data_copy);
    free(o->scale_copy);
}

static uint32_t random_code(struct test *t, bsm_element element, bool small)
{
    const bsm_element_info *info = bsm_element_get((int)element);
    for (;;) {
        uint32_t code = (uint32_t)rnd(t) & (uint32_t)(((uint64_t)1 << info->bits) - 1);
        if (small) code = bsm_element_encode(element, (double)rnd_between(t, -4, 4), BSM_ROUND_NEAREST_EVEN, true, 0);
        const double value = naive_element(element, code);
        if (small && fabs(value) > 4) continue;
        if (isnan(value) || isinf(value)) continue;
        if (info->bits >= 16 && fabs(value) > 0x1p15) continue;
        return code;
    }
}

static uint8_t random_scale(struct test *t, bsm_scale scale, bool small)
{
    if (scale == BSM_E8M0) return (uint8_t)(small ? 127 : 127 + rnd_between(t, -4, 4));
    return (uint8_t)(small ? 0x38 : rnd_between(t, 0x10, 0x60));
}

void operand_fill(struct test *t, struct operand *o, bool small)
{
    const bsm_format_info *f = bsm_format_get((int)o->m.format);
    const int64_t batch = o->m.batch == 0 ? 1 : o->m.batch;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t r = 0; r < o->m.rows; r++) {
            for (int64_t k = 0; k < o->m.columns; k++)
                bsm_matrix_set_code(&o->m, b, r, k, random_code(t, f->element, small));
            for (int64_t s = 0; s < bsm_matrix_scale_columns(&o->m); s++)
                bsm_matrix_set_scale(&o->m, b, r, s, random_scale(t, f->scale, small));
        }
}

static void *copy_bytes(const void *from, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    if (bytes > 0) memcpy(copy, from, bytes);
    return copy;
}

void operand_freeze(struct operand *o)
{
    free(o->data_copy);
    free(o->scale_copy);
    o->data_copy = copy_bytes(o->m.data, o->data_bytes);
    o->scale_copy = copy_bytes(o->m.scales, o->scale_bytes);
}

void operand_check_same(struct test *t, const struct operand *o, const char *name)
{
    if (o->data_bytes > 0 && memcmp(o->data_copy, o->m.data, o->data_bytes) != 0) FAIL(t, "%s: data changed", name);
    if (o->scale_bytes > 0 && memcmp(o->scale_copy, o->m.scales, o->scale_bytes) != 0)
        FAIL(t, "%s: scales changed", name);
}

/* Values ----------------------------------------------------------------------------------------------------------- */

double naive_element(bsm_element element, uint32_t code)
{
    static const struct {
        int bits, exponent_bits, fraction_bits, bias;
        bool infinity;
        int nans;
    } forms[BSM_ELEMENT_COUNT] = { [BSM_E4M3] = { 8, 4, 3, 7, false, 1 },   [BSM_E5M2] = { 8, 5, 2, 15, true, 1 },
                                   [BSM_E3M2] = { 6, 3, 2, 3, false, 0 },   [BSM_E2M3] = { 6, 2, 3, 1, false, 0 },
                                   [BSM_E2M1] = { 4, 2, 1, 1, false, 0 },   [BSM_BF16] = { 16, 8, 7, 127, true, 1 },
                                   [BSM_FP16] = { 16, 5, 10, 15, true, 1 }, [BSM_FP32] = { 32, 8, 23, 127, true, 1 } };
    if (element == BSM_INT8) return ((int)(code & 255) - ((code & 128) != 0 ? 256 : 0)) / 64.0;
    const int e_bits = forms[element].exponent_bits, f_bits = forms[element].fraction_bits;
    const int exponent = (int)(code >> f_bits) & ((1 << e_bits) - 1), top = (1 << e_bits) - 1;
    const double fraction = (double)(code & ((1u << f_bits) - 1)) / (double)(1u << f_bits);
    const double sign = (code >> (forms[element].bits - 1) & 1) != 0 ? -1 : 1;
    if (forms[element].infinity && exponent == top) return fraction == 0 ? sign * INFINITY : NAN;
    if (element == BSM_E4M3 && exponent == top && fraction == 0.875) return NAN;
    return sign
           * (exponent == 0 ? ldexp(fraction, 1 - forms[element].bias)
                            : ldexp(1 + fraction, exponent - forms[element].bias));
}

double naive_scale(bsm_scale scale, uint8_t code)
{
    if (scale == BSM_E8M0) return code == 255 ? NAN : ldexp(1, code - 127);
    if (scale == BSM_UE4M3) return naive_element(BSM_E4M3, code & 0x7f);
    return 1;
}

static double scale_of(const bsm_matrix *m, int64_t batch, int64_t row, int64_t column)
{
    const bsm_format_info *f = bsm_format_get((int)m->format);
    uint8_t code = 0;
    if (f->block == 0) return 1;
    bsm_matrix_get_scale(m, batch, row, column / f->block, &code);
    return naive_scale(f->scale, code);
}

static double element_of(const bsm_matrix *m, int64_t batch, int64_t row, int64_t column)
{
    uint32_t code = 0;
    bsm_matrix_get_code(m, batch, row, column, &code);
    return naive_element(bsm_format_get((int)m->format)->element, code);
}

double operand_value(const bsm_matrix *m, int64_t batch, int64_t row, int64_t column)
{
    return element_of(m, batch, row, column) * scale_of(m, batch, row, column);
}

/* Sums ------------------------------------------------------------------------------------------------------------- */

__extension__ typedef __int128 int128;

struct integer_and_exponent { int128 integer; int exponent; };

static struct integer_and_exponent split(double x)
{
    int exponent;
    const double fraction = frexp(x, &exponent);
    return (struct integer_and_exponent){ (int128)(int64_t)ldexp(fraction, 53), exponent - 53 };
}

/* Rounded half to even to a multiple of 2^drop. */
static int128 round_bits(int128 magnitude, int drop)
{
    if (drop <= 0) return magnitude << -drop;
    if (drop > 125) return 0;
    const int128 one = 1, half = one << (drop - 1), rest = magnitude & ((one << drop) - 1), whole = magnitude >> drop;
    return whole + (rest > half || (rest == half && (whole & 1) != 0));
}

static float round_to_float(int128 value, int exponent)
{
    const bool negative = value < 0;
    const int128 magnitude = negative ? -value : value;
    int bits = 0;
    while (bits < 127 && (magnitude >> bits) != 0) bits++;
    /* exponent of the last place kept */
    const int keep = bits + exponent - 24 > -149 ? bits + exponent - 24 : -149;
    const int drop = keep - exponent;
    const double result = ldexp((double)(int64_t)round_bits(magnitude, drop), keep);
    const float rounded = result >= 0x1p128 ? INFINITY : (float)result;
    return negative ? -rounded : rounded;
}

float naive_add(float sum, double term)
{
    if (!isfinite(sum) || !isfinite(term)) return (float)((double)sum + term);
    if (term == 0) return sum + (float)term;
    if (sum == 0) {
        const struct integer_and_exponent x = split(term);
        return round_to_float(x.integer, x.exponent);
    }
    struct integer_and_exponent high = split((double)sum), low = split(term);
    if (high.exponent < low.exponent) { const struct integer_and_exponent swap = high; high = low; low = swap; }
    const int gap = high.exponent - low.exponent;
    if (gap <= 60) {
        const int128 total = high.integer * ((int128)1 << gap) + low.integer;
        return total == 0 ? 0 : round_to_float(total, low.exponent);
    }
    /* low is cut 60 bits below high's last place, and what was cut off is kept as a one. */
    const int shift = gap - 60 < 100 ? gap - 60 : 100;
    const int128 cut = low.integer >> shift, rest = low.integer - cut * ((int128)1 << shift);
    return round_to_float(high.integer * ((int128)1 << 60) + (cut | (rest != 0)), high.exponent - 60);
}

static bool sums_exact_blocks(const bsm_format_info *a, const bsm_format_info *b)
{
    const bool small_a = a->element == BSM_E2M1 || a->element == BSM_E2M3 || a->element == BSM_INT8;
    const bool small_b = b->element == BSM_E2M1 || b->element == BSM_E2M3 || b->element == BSM_INT8;
    return small_a && small_b && a->block != 0 && b->block != 0;
}

float naive_sum(const bsm_matrix *a, int64_t a_batch, int64_t row, const bsm_matrix *b, int64_t b_batch, int64_t column)
{
    const bsm_format_info *fa = bsm_format_get((int)a->format), *fb = bsm_format_get((int)b->format);
    float sum = 0;
    if (!sums_exact_blocks(fa, fb)) {
        for (int64_t k = 0; k < a->columns; k++)
            sum = naive_add(sum, operand_value(a, a_batch, row, k) * operand_value(b, b_batch, column, k));
        return sum;
    }
    const int64_t exact_block = fa->block < fb->block ? fa->block : fb->block;
    for (int64_t k = 0; k < a->columns; k += exact_block) {
        double r = 0;
        for (int64_t i = k; i < k + exact_block && i < a->columns; i++)
            r += element_of(a, a_batch, row, i) * element_of(b, b_batch, column, i);
        sum = naive_add(sum, r * (scale_of(a, a_batch, row, k) * scale_of(b, b_batch, column, k)));
    }
    return sum;
}
