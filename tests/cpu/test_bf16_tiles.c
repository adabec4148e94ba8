/* Panels of bf16 tiles, and the exponents of their rows, against values decoded by the tests' own arithmetic: number *
 * 2^-exponent, exactly.  Operands end where a page faults; panels are exactly as large as they have to be. */
#include "naive.h"
#include "resolved.h"

#include "core/core.h"
#include "cpu/pack.h"
#include "cpu/row_exponents.h"
#include "matrix/matrix.h"

#include <math.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include "cpu/x86/bf16/bf16_tiles_avx512.h"
#define PACKERS (bsmi_cpu_detect(BSM_CPU_ALL) & BSM_CPU_AVX512)
#else                                     /* exponents of rows are there on every machine */
static size_t bsmi_bf16_panel_bytes(int sixteens, int terms, int64_t length)
{
    return (size_t)sixteens * (size_t)terms * (size_t)length;
}
#define bsmi_bf16_row_tiles_avx512(part, sixteens, terms, tiles) abort()
#define bsmi_bf16_column_tiles_avx512(part, sixteens, terms, tiles) abort()
#define bsmi_bf16_row_tiles_vbmi(part, sixteens, terms, tiles) abort()
#define bsmi_bf16_column_tiles_vbmi(part, sixteens, terms, tiles) abort()
#define PACKERS 0
#endif

enum { MOST_COLUMNS = 2100, POISON = 0x5a };

static const bsm_scale_layout layouts[] = {
    { .kind = BSM_LAYOUT_LINEAR }, { .kind = BSM_LAYOUT_LINEAR, .pitch = 211 }, { .kind = BSM_LAYOUT_128X4 },
    { .kind = BSM_LAYOUT_8X4 }, { .kind = BSM_LAYOUT_TILES, .tile_rows = 64, .tile_columns = 2 },
    { .kind = BSM_LAYOUT_CDNA4_16 }, { .kind = BSM_LAYOUT_CDNA4_32 }, { .kind = BSM_LAYOUT_AITER },
    { .kind = BSM_LAYOUT_DEEPGEMM },
};

static bool runs(struct test *t)
{
    const bool there = PACKERS != 0;
    if (!there) test_skip(t, "this machine has no AVX-512");
    return there;
}

static const bsm_format_info *format_of(const struct operand *o) { return bsm_format_get((int)o->m.format); }

static uint32_t code_at(const struct operand *o, int64_t batch, int64_t row, int64_t k)
{
    uint32_t code = 0;
    if (bsm_matrix_get_code(&o->m, batch, row, k, &code) != BSM_OK) abort();
    return code;
}

static uint8_t scale_at(const struct operand *o, int64_t batch, int64_t row, int64_t s)
{
    uint8_t code = 0;
    if (bsm_matrix_get_scale(&o->m, batch, row, s, &code) != BSM_OK) abort();
    return code;
}

/* Exponents, by another way -----------------------------------------------------------------------------------------*/

static bool block_has_numbers(const struct operand *o, int64_t batch, int64_t row, int64_t first, int64_t end)
{
    for (int64_t k = first; k < end; k++)
        if (naive_element(format_of(o)->element, code_at(o, batch, row, k)) != 0) return true;
    return false;
}

static int wanted_exponent(const struct operand *o, bool beside_bf16, int64_t batch, int64_t row, int64_t depth)
{
    const bsm_format_info *f = format_of(o);
    double least_element = INFINITY, most_element = 0, least = INFINITY, most = 0;
    if (f->element == BSM_BF16)
        for (int64_t k = 0; k < depth; k++) {
            const double v = naive_element(BSM_BF16, code_at(o, batch, row, k));
            if (v != 0 && fabs(v) < 0x1p-126) return BSMI_FALLBACK_ROW;
        }
    if (f->scale != BSM_E8M0) return 0;
    for (uint32_t code = 0; code < 1u << bsm_element_get((int)f->element)->bits; code++) {
        const double v = fabs(naive_element(f->element, code));
        if (v == 0 || !isfinite(v)) continue;
        least_element = fmin(least_element, v), most_element = fmax(most_element, v);
    }
    for (int64_t s = 0; s * f->block < depth; s++) {
        const uint8_t code = scale_at(o, batch, row, s);
        const int64_t end = s * f->block + f->block < depth ? s * f->block + f->block : depth;
        if (code == 255 || !block_has_numbers(o, batch, row, s * f->block, end)) continue;
        least = fmin(least, least_element * naive_scale(BSM_E8M0, code));
        most = fmax(most, most_element * naive_scale(BSM_E8M0, code));
    }
    if (most == 0 || (least >= 0x1p-40 && most < 0x1p41)) return 0;
    if (beside_bf16 || ilogb(most) - ilogb(least) > 80) return BSMI_FALLBACK_ROW;
    return (int)floor((ilogb(most) + ilogb(least)) / 2.0);
}

static int64_t source_row(int64_t row, int64_t split)
{
    return split == 0 ? row : row % 2 == 0 ? row / 2 : split + row / 2;
}

static void check_exponents(struct test *t, const struct operand *o, const struct bsmi_part *part, bool beside_bf16,
                            int64_t depth, int16_t *exponents)
{
    bsmi_row_exponents(&part->operand, beside_bf16, part->batch, part->first, part->count, part->split, depth,
                       exponents);
    for (int64_t r = 0; r < part->count; r++) {
        const int want =
            wanted_exponent(o, beside_bf16, part->batch, source_row(part->first + r, part->split), depth);
        if (exponents[r] == want) continue;
        FAIL(t, "%s: exponent of row %lld of %lld columns%s is %d, wanted %d", format_of(o)->name,
             (long long)(part->first + r), (long long)depth, beside_bf16 ? " beside bf16" : "", exponents[r], want);
        return;
    }
}

/* Tiles -------------------------------------------------------------------------------------------------------------*/

static double number_at(const uint16_t *panel, int sixteens, int terms, bool column_tiles, int64_t r, int64_t k,
                        int term)
{
    const uint16_t *tile = panel + ((k / 32 * terms + term) * sixteens + r / 16) * 512;
    const uint16_t bits = column_tiles ? tile[k % 32 / 2 * 32 + r % 16 * 2 + k % 2] : tile[r % 16 * 32 + k % 32];
    return naive_element(BSM_BF16, bits);
}

static bool same(double got, double want) { return isnan(want) ? isnan(got) : got == want; }

/* Two terms of one sign, zero only where the number is; NaN or infinite both. */
static bool terms_are_right(double high, double low, double want)
{
    if (!isfinite(want)) return same(high, want) && same(low, want);
    return high + low == want && (want == 0 ? high == 0 && low == 0 : high * want > 0 && low * want > 0);
}

/* Behind the last column, in a block of nvfp4 that has a NaN scale. */
static bool may_be_nan(const struct operand *o, const struct bsmi_part *part, int64_t r, int64_t k)
{
    if (o->m.format != BSM_NVFP4 || r >= part->count || k < part->length || part->length % 16 == 0) return false;
    const int64_t row = source_row(part->first + r, part->split), s = (part->k + part->length - 1) / 16;
    return (part->k + k) / 16 == s && isnan(naive_scale(BSM_UE4M3, scale_at(o, part->batch, row, s)));
}

static double wanted(const struct operand *o, const struct bsmi_part *part, int64_t r, int64_t k)
{
    if (r >= part->count || k >= part->length) return 0;
    const int exponent = part->exponents == NULL ? 0 : part->exponents[r];
    if (exponent == BSMI_FALLBACK_ROW && format_of(o)->block != 0) return 0;
    const double value = operand_value(&o->m, part->batch, source_row(part->first + r, part->split), part->k + k);
    return exponent == BSMI_FALLBACK_ROW ? value : ldexp(value, -exponent);
}

/* The packers; those of bytes want AVX512_VBMI. */
static bool has_vbmi(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512vbmi") != 0;
#else
    return false;
#endif
}

static void pack(const struct bsmi_part *part, int sixteens, int terms, bool vbmi, bool column_tiles, uint16_t *panel)
{
    if (vbmi && column_tiles) bsmi_bf16_column_tiles_vbmi(part, sixteens, terms, panel);
    else if (vbmi) bsmi_bf16_row_tiles_vbmi(part, sixteens, terms, panel);
    else if (column_tiles) bsmi_bf16_column_tiles_avx512(part, sixteens, terms, panel);
    else bsmi_bf16_row_tiles_avx512(part, sixteens, terms, panel);
}

static void check_panel(struct test *t, const struct operand *o, const struct bsmi_part *part, int sixteens, bool vbmi,
                        bool column_tiles)
{
    const int terms = bsmi_bf16_terms(format_of(o)->element);
    const size_t bytes = bsmi_bf16_panel_bytes(sixteens, terms, part->length);
    uint16_t *panel = guarded_at_end(bytes, 64, POISON);
    pack(part, sixteens, terms, vbmi, column_tiles, panel);
    for (int64_t r = 0; r < 16 * sixteens; r++)
        for (int64_t k = 0; k < (part->length + 31) / 32 * 32; k++) {
            const double want = wanted(o, part, r, k),
                         first = number_at(panel, sixteens, terms, column_tiles, r, k, 0),
                         second = terms == 2 ? number_at(panel, sixteens, terms, column_tiles, r, k, 1) : 0;
            if (terms == 2 ? terms_are_right(first, second, want) : same(first, want)) continue;
            if (may_be_nan(o, part, r, k)) continue;
            FAIL(t, "%s, packing %d, layout %d, %s tiles%s of %lld x %lld from (%lld, %lld): [%lld, %lld] is %a%+a, "
                 "wanted %a", format_of(o)->name, (int)o->m.packing, (int)o->m.scale_layout.kind,
                 column_tiles ? "column" : "row", vbmi ? " by VBMI" : "", (long long)part->count,
                 (long long)part->length, (long long)part->first, (long long)part->k, (long long)r, (long long)k,
                 first, second, want);
            guarded_free(panel);
            return;
        }
    guarded_free(panel);
}

static void check_packers(struct test *t, const struct operand *o, const struct bsmi_part *part, int sixteens,
                          bool column_tiles)
{
    check_panel(t, o, part, sixteens, false, column_tiles);
    if (has_vbmi()) check_panel(t, o, part, sixteens, true, column_tiles);
}

static void check_part(struct test *t, const struct operand *o, struct bsmi_part *part, bool beside_bf16, int sixteens)
{
    int16_t *exponents = malloc((size_t)part->count * sizeof *exponents + 1);
    check_exponents(t, o, part, beside_bf16, o->m.columns, exponents);
    part->exponents = exponents;
    check_packers(t, o, part, sixteens, false);
    check_packers(t, o, part, sixteens, true);
    part->exponents = NULL;
    free(exponents);
}

/* Cases -------------------------------------------------------------------------------------------------------------*/

static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP6_E3M2, BSM_MXFP6_E2M3, BSM_MXFP4,
                                      BSM_MXFP4_BLOCK16, BSM_MXINT8, BSM_NVFP4, BSM_FORMAT_E4M3, BSM_FORMAT_E5M2,
                                      BSM_FORMAT_BF16, BSM_FORMAT_FP16 };
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* Each row has one scale, of blocks that have all codes. */
static void every_code_and_scale(struct test *t)
{
    enum { ROWS = 256, COLUMNS = 256 };
    if (!runs(t)) return;
    for (int i = 0; i < FORMATS; i++) {
        const int block = bsm_format_get((int)formats[i])->block;
        struct operand o =
            operand_make(&(struct shape){ .format = formats[i], .rows = ROWS, .columns = COLUMNS }, 0);
        struct bsmi_matrix m;
        struct tables tables;
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t k = 0; k < COLUMNS; k++) {
                const uint32_t code = (uint32_t)(r * COLUMNS + k);   /* of bf16 and fp16 every one, too */
                CHECK(t, bsm_matrix_set_code(&o.m, 0, r, k,
                                             code & ((1u << bsm_element_get((int)format_of(&o)->element)->bits) - 1))
                             == BSM_OK);
                if (block != 0) CHECK(t, bsm_matrix_set_scale(&o.m, 0, r, k / block, (uint8_t)r) == BSM_OK);
            }
        struct bsmi_part part = { .operand = resolve(t, &o, &m, &tables), .count = ROWS, .length = COLUMNS };
        check_part(t, &o, &part, false, ROWS / 16);
        operand_free(&o);
    }
}

static void set_scales(struct test *t, struct operand *o, int64_t batch, int64_t row, int low, int high, bool nans)
{
    for (int64_t s = 0; s < bsm_matrix_scale_columns(&o->m); s++) {
        const uint8_t code = nans && rnd_below(t, 9) == 0 ? 255 : (uint8_t)rnd_between(t, low, high);
        CHECK(t, bsm_matrix_set_scale(&o->m, batch, row, s, code) == BSM_OK);
    }
}

static void clear_block(struct operand *o, int64_t batch, int64_t row, int64_t s)
{
    const int64_t block = format_of(o)->block;
    for (int64_t k = s * block; k < s * block + block && k < o->m.columns; k++)
        bsm_matrix_set_code(&o->m, batch, row, k, k % 2 == 0 || format_of(o)->element == BSM_INT8 ? 0
                                                  : 1u << (bsm_element_get((int)format_of(o)->element)->bits - 1));
}

/* A normal number of an 8-bit float for any code. */
static uint32_t normal_code(const struct operand *o, uint32_t code)
{
    const uint32_t least = format_of(o)->element == BSM_E4M3 ? 0x08 : 0x04,
                   largest = format_of(o)->element == BSM_E4M3 ? 0x7e : 0x7b;
    return (code & 0x80) | (least + (code & 0x7f) % (largest - least + 1));
}

static bool is_fp8(const struct operand *o)
{
    return format_of(o)->element == BSM_E4M3 || format_of(o)->element == BSM_E5M2;
}

/* Rows of every kind: near 1, with exponents of their own, at both ends of what scales can be, spanning too much; with
 * blocks of zeros whose scale is any; with NaN scales and codes. */
static void fill_rows(struct test *t, struct operand *o)
{
    static const struct { int low, high; } ranges[] = {
        { 120, 134 }, { 90, 160 }, { 0, 60 }, { 200, 254 }, { 0, 254 }, { 0, 0 }, { 254, 254 }, { 40, 115 },
    };
    const bsm_format_info *f = format_of(o);
    const uint64_t codes = (uint64_t)1 << bsm_element_get((int)f->element)->bits;
    const bool normal = is_fp8(o) && rnd_below(t, 2) == 0;       /* all of them, which is a way of its own */
    for (int64_t b = 0; b < (o->m.batch == 0 ? 1 : o->m.batch); b++)
        for (int64_t r = 0; r < o->m.rows; r++) {
            const bool any_code = rnd_below(t, 4) == 0 || codes <= 64;
            const int range = (int)rnd_below(t, 8);
            for (int64_t k = 0; k < o->m.columns; k++) {
                uint32_t code = (uint32_t)(rnd(t) & (codes - 1));
                if (!any_code && f->element != BSM_INT8 && code > 8) code ^= codes > 256 ? 0x0101 : 0x05;
                if (normal) code = normal_code(o, code);
                CHECK(t, bsm_matrix_set_code(&o->m, b, r, k, code) == BSM_OK);
            }
            if (f->block == 0) continue;
            set_scales(t, o, b, r, ranges[range].low, ranges[range].high, rnd_below(t, 5) == 0);
            for (int i = 0; i < 4 && o->m.columns > 0 && rnd_below(t, 2) == 0; i++) {
                const int64_t s = rnd_below(t, bsm_matrix_scale_columns(&o->m));
                clear_block(o, b, r, s);
                CHECK(t, bsm_matrix_set_scale(&o->m, b, r, s, rnd_below(t, 2) == 0 ? 0 : (uint8_t)rnd(t)) == BSM_OK);
            }
        }
}

static void poison_last_nibbles(struct operand *o)
{
    const int bits = bsm_element_get((int)format_of(o)->element)->bits;
    if (bits != 4 || o->m.columns % 2 == 0 || o->m.pitch != 0
        || (o->m.packing != BSM_PACKING_LOW_FIRST && o->m.packing != BSM_PACKING_HIGH_FIRST)) return;
    const int64_t bytes = (o->m.columns + 1) / 2;
    for (int64_t r = 0; r < o->m.rows * (o->m.batch == 0 ? 1 : o->m.batch); r++)
        ((uint8_t *)o->m.data)[r * bytes + bytes - 1] |= o->m.packing == BSM_PACKING_HIGH_FIRST ? 0x0f : 0xf0;
}

static void random_parts(struct test *t, bsm_format format)
{
    static const int64_t depths[] = { 1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 127, 128, 200, 512, 513, 2048,
                                      MOST_COLUMNS };
    struct shape shape = { .format = format, .rows = rnd_between(t, 1, 70), .batch = rnd_between(t, 1, 2),
                           .columns = depths[rnd_below(t, sizeof depths / sizeof depths[0])] };
    shape_in_any_way(t, &shape, layouts, sizeof layouts / sizeof layouts[0]);
    if (shape.columns > 512) shape.rows = rnd_between(t, 1, 20);
    struct operand o = operand_make(&shape, 0xff);
    struct bsmi_matrix m;
    struct tables tables;
    fill_rows(t, &o);
    poison_last_nibbles(&o);
    struct bsmi_part part = { .operand = resolve(t, &o, &m, &tables), .batch = rnd_below(t, shape.batch) };
    for (int i = 0; i < 4; i++) {
        part.split = shape.rows % 2 == 0 && rnd_below(t, 3) == 0 ? shape.rows / 2 : 0;
        part.first = rnd_below(t, shape.rows);
        part.count = rnd_between(t, 1, shape.rows - part.first);
        part.k = i == 0 ? 0 : rnd_below(t, shape.columns) / 32 * 32;
        part.length = shape.columns - part.k;
        if (i == 2) part.length = rnd_between(t, 1, part.length);
        if (part.length > 2048) part.length = 2048;
        check_part(t, &o, &part, rnd_below(t, 3) == 0, (int)((part.count + 15) / 16 + rnd_below(t, 2)));
    }
    operand_free(&o);
}

static void parts_of_every_kind(struct test *t)
{
    if (!runs(t)) return;
    for (int i = 0; i < FORMATS; i++)
        for (int n = 0; n < 40; n++) random_parts(t, formats[i]);
}

/* Every place of a slice, and both terms of every block, alone among zeros: a NaN or an infinity must not be missed. */
static void specials_in_every_place(struct test *t)
{
    static const struct { bsm_format format; uint32_t code; } specials[] = {
        { BSM_MXFP8_E4M3, 0x7f }, { BSM_MXFP8_E4M3, 0xff }, { BSM_FORMAT_E4M3, 0x7f }, { BSM_MXFP8_E5M2, 0x7c },
        { BSM_MXFP8_E5M2, 0xfc }, { BSM_MXFP8_E5M2, 0x7d }, { BSM_FORMAT_E5M2, 0xff }, { BSM_FORMAT_FP16, 0x7c00 },
        { BSM_FORMAT_FP16, 0xfc01 }, { BSM_FORMAT_BF16, 0xff80 },
    };
    if (!runs(t)) return;
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        struct operand o = operand_make(&(struct shape){ .format = specials[i].format, .rows = 16, .columns = 64 }, 0);
        struct bsmi_matrix m;
        struct tables tables;
        for (int64_t r = 0; r < 16 && format_of(&o)->block != 0; r++) set_scales(t, &o, 0, r, 127, 127, false);
        struct bsmi_part part = { .operand = resolve(t, &o, &m, &tables), .count = 16, .length = 64 };
        for (int64_t place = 0; place < 16 * 64; place += 1 + place % 3) {
            bsm_matrix_set_code(&o.m, 0, place / 64, place % 64, specials[i].code);
            check_packers(t, &o, &part, 1, place % 2 == 0);
            bsm_matrix_set_code(&o.m, 0, place / 64, place % 64, 0);
        }
        operand_free(&o);
    }
}

/* One number of each kind, in every place of a row. */
static void subnormal_bf16(struct test *t)
{
    static const uint32_t codes[] = { 0x0001, 0x007f, 0x8001, 0x807f, 0x0000, 0x8000, 0x0080, 0x8080, 0x7f7f, 0xffff };
    enum { COLUMNS = 67 };
    struct operand o = operand_make(&(struct shape){ .format = BSM_FORMAT_BF16, .rows = 1, .columns = COLUMNS }, 0x3f);
    struct bsmi_matrix m;
    struct tables tables;
    const struct bsmi_part part = { .operand = resolve(t, &o, &m, &tables), .count = 1 };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        for (int64_t place = 0; place < COLUMNS; place++) {
            int16_t exponent;
            CHECK(t, bsm_matrix_set_code(&o.m, 0, 0, place, codes[i]) == BSM_OK);
            check_exponents(t, &o, &part, false, COLUMNS, &exponent);
            check_exponents(t, &o, &part, false, place, &exponent);
            CHECK(t, exponent == 0);
            CHECK(t, bsm_matrix_set_code(&o.m, 0, 0, place, 0x3f3f) == BSM_OK);
        }
    operand_free(&o);
}

/* At each limit of the range, and one beyond it. */
static void exponents_at_limits(struct test *t)
{
    enum { ROWS = 256, BLOCKS = 3 };
    for (int i = 0; i < FORMATS; i++) {
        const bsm_format_info *f = bsm_format_get((int)formats[i]);
        if (f->scale != BSM_E8M0) continue;
        for (int apart = 0; apart < 256; apart += apart > 50 && apart < 90 ? 1 : 7) {
            struct operand o = operand_make(&(struct shape){ .format = formats[i], .rows = ROWS,
                                                             .columns = BLOCKS * f->block }, 0x11);
            struct bsmi_matrix m;
            struct tables tables;
            int16_t exponents[ROWS];
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t s = 0; s < BLOCKS; s++)
                    bsm_matrix_set_scale(&o.m, 0, r, s, (uint8_t)(s == r % BLOCKS && r + apart < 256 ? r + apart : r));
            const struct bsmi_part part = { .operand = resolve(t, &o, &m, &tables), .count = ROWS };
            check_exponents(t, &o, &part, false, o.m.columns, exponents);
            check_exponents(t, &o, &part, true, o.m.columns - 1, exponents);
            check_exponents(t, &o, &part, false, f->block + 1, exponents);
            check_exponents(t, &o, &part, false, 0, exponents);
            operand_free(&o);
        }
    }
}
int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_code_and_scale), TEST(parts_of_every_kind),
                                              TEST(specials_in_every_place), TEST(subnormal_bf16),
                                              TEST(exponents_at_limits) };
    return TEST_MAIN(argc, argv, cases);
}
