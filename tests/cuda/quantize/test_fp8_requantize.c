/* bsmi_requantize_fp8 against the definition in include/blockscale/matmul.h: every format, packing and layout, all
 * codes, rows of any scale. */
#include "cuda/harness/device.h"

#include "core/core.h"
#include "cuda/params/fp8_requantize.h"

#include <math.h>
#include <stdlib.h>

/* c of the header. */
static int fold_of(bsm_element element)
{
    switch (element) {
    case BSM_E5M2: return 7;
    case BSM_E2M3: return -5;
    case BSM_E3M2: return -4;
    case BSM_E2M1: return -6;
    default: return 0;
    }
}

struct requantized { unsigned char *codes; int32_t *exponents; int64_t row_bytes; };

static struct bsmi_requantize_fp8_operand operand(struct test *t, const struct twin *twin, const struct requantized *x)
{
    const struct bsmi_matrix *m = &twin->resolved;
    return (struct bsmi_requantize_fp8_operand){
        .source = twin->device, .codes = device_fill(t, 0xa5, (size_t)(m->batch * m->rows * x->row_bytes), 0),
        .row_bytes = x->row_bytes,
        .batch_bytes = m->rows * x->row_bytes,
        .exponents = device_fill(t, 0xa5, (size_t)(m->batch * m->rows) * sizeof(int32_t), 0),
    };
}

/* As the first operand or the second, the same matrix in the other place. */
static bool run(struct test *t, const struct twin *twin, bool second, struct requantized *x)
{
    const struct bsmi_matrix *m = &twin->resolved;
    x->row_bytes = bsmi_round_up(m->columns, 128) + 128;
    const struct bsmi_requantize_fp8_operand mine = operand(t, twin, x), beside = operand(t, twin, x);
    const struct bsmi_requantize_fp8_parameters p = { { second ? beside : mine, second ? mine : beside } };
    if (!device_launch(t, "bsmi_requantize_fp8", 2, BSMI_REQUANTIZE_FP8_THREADS, &p)) return false;
    const size_t codes = (size_t)(m->batch * mine.batch_bytes), rows = (size_t)(m->batch * m->rows);
    x->codes = malloc(codes), x->exponents = malloc(rows * sizeof(int32_t));
    device_read(t, x->codes, mine.codes, codes);
    device_read(t, x->exponents, mine.exponents, rows * sizeof(int32_t));
    return true;
}

static uint8_t scale_at(const struct twin *twin, int64_t b, int64_t r, int64_t s)
{
    uint8_t scale = 0;
    if (s < twin->resolved.scale_columns) (void)bsm_matrix_get_scale(&twin->host, b, r, s, &scale);
    return scale;
}

/* The power of two of a row. */
static int exponent_of_row(const struct twin *twin, int64_t b, int64_t r)
{
    int most = 0;
    for (int64_t s = 0; s < twin->resolved.scale_columns; s++) {
        const int scale = scale_at(twin, b, r, s);
        if (scale != 255 && scale > most) most = scale;
    }
    return most - 127 + fold_of(twin->resolved.element);
}

/* What the code of an element becomes under its row's power of two. */
static uint32_t refolded_code(const struct twin *twin, int64_t b, int64_t r, int64_t k, int exponent)
{
    uint32_t code;
    const uint8_t scale = scale_at(twin, b, r, k / 32);
    (void)bsm_matrix_get_code(&twin->host, b, r, k, &code);
    const double element = (double)bsm_element_decode(twin->resolved.element, code);
    if (scale == 255 || !isfinite(element)) return 0x7f;
    return bsm_element_encode(BSM_E4M3, ldexp(element, scale - 127 - exponent), BSM_ROUND_NEAREST_EVEN, true, 0);
}

static void check_row(struct test *t, const char *what, const struct twin *twin, const struct requantized *x, int64_t b,
                      int64_t r)
{
    const struct bsmi_matrix *m = &twin->resolved;
    const int64_t number = b * m->rows + r;
    const unsigned char *codes = x->codes + number * x->row_bytes;
    const int exponent = exponent_of_row(twin, b, r);
    bool any = false;
    for (int64_t k = 0; k < x->row_bytes; k++) {
        const bool padding = k >= m->columns;
        uint32_t want = 0, found = codes[k];
        if (!padding) want = refolded_code(twin, b, r, k, exponent);
        if (padding && scale_at(twin, b, r, k / 32) == 255) continue;     /* of a block that is NaN: anything */
        if ((want & 0x7f) == 0x7f) want = 0x7f, found &= 0x7f;
        any |= !padding && (want & 0x7f) != 0;
        if (found != want)
            FAIL(t, "%s: row %lld column %lld is 0x%02x, not 0x%02x", what, (long long)number, (long long)k, codes[k],
                 want);
    }
    if (x->exponents[number] != (any ? exponent : 0))
        FAIL(t, "%s: row %lld has exponent %d, not %d", what, (long long)number, x->exponents[number],
             any ? exponent : 0);
}

static void check(struct test *t, const char *what, const struct twin *twin, bool second)
{
    struct requantized x;
    if (!run(t, twin, second, &x)) return;
    for (int64_t b = 0; b < twin->resolved.batch; b++)
        for (int64_t r = 0; r < twin->resolved.rows; r++) check_row(t, what, twin, &x, b, r);
    free(x.codes), free(x.exponents);
}

/* Scales of a row around one of its own: mostly near 1, some rows far out, some spanning much, some all zeros. */
static void set_scales(struct test *t, struct twin *twin)
{
    const struct bsmi_matrix *m = &twin->resolved;
    for (int64_t b = 0; b < m->batch; b++)
        for (int64_t r = 0; r < m->rows; r++) {
            const int kind = (int)rnd_below(t, 8), around = kind == 0 ? (int)rnd_between(t, 0, 254) : 127,
                      spread = kind == 1   ? 120
                               : kind == 2 ? 0
                                           : 12;
            for (int64_t s = 0; s < m->scale_columns; s++) {
                const int64_t scale = BSMI_MAX(0, BSMI_MIN(254, around + rnd_between(t, -spread, spread)));
                (void)bsm_matrix_set_scale(&twin->host, b, r, s,
                                           rnd_below(t, 61) == 0 ? 255
                                           : kind == 3           ? 0
                                                                 : (uint8_t)scale);
            }
            for (int64_t k = 0; k < m->columns && kind == 3; k++) (void)bsm_matrix_set_code(&twin->host, b, r, k, 0);
        }
}

static void case_of(struct test *t, struct twin_wish wish, bool second)
{
    struct twin twin;
    if (!twin_make(t, &wish, &twin)) return;
    set_scales(t, &twin);
    twin_upload(t, &wish, &twin);
    check(t, wish_text(&wish), &twin, second);
    device_free_all(t);
    twin_free(&twin);
}

static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP6_E2M3, BSM_MXFP6_E3M2, BSM_MXFP4 };

static void every_format_and_packing(struct test *t)
{
    static const int64_t columns[] = { 1, 40, 128, 192, 512, 650 };
    if (!device_open(t)) return;
    int number = 0;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
        for (int packing = 0; packing < BSM_PACKING_COUNT; packing++)
            for (int offset = 0; offset < 2; offset++, number++) {
                const bool gguf = packing == BSM_PACKING_GGUF;
                case_of(t,
                        (struct twin_wish){ .format = formats[f],
                                            .packing = (bsm_packing)packing,
                                            .rows = 3 + number % 15,
                                            .columns = columns[number % 6],
                                            .batch = 1 + number % 2,
                                            .extra_pitch = number % 5 == 0,
                                            .offset = offset * 3,
                                            .layout.kind = gguf ? BSM_LAYOUT_GGUF_MXFP4 : BSM_LAYOUT_LINEAR },
                        number % 3 == 0);
            }
}

/* Long enough for 16 codes to be loaded at once, four times 128 columns and some more. */
static void long_rows(struct test *t)
{
    if (!device_open(t)) return;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
        for (int packing = 0; packing < BSM_PACKING_GGUF; packing++)
            case_of(t, (struct twin_wish){ .format = formats[f], .packing = (bsm_packing)packing, .rows = 11,
                                           .columns = 1152, .batch = 1 }, f % 2 == 0);
}

static void every_layout(struct test *t)
{
    if (!device_open(t)) return;
    for (int layout = 0; layout < BSM_LAYOUT_COUNT; layout++) {
        struct twin_wish wish = { .format = layout % 2 == 0 ? BSM_MXFP8_E4M3 : BSM_MXFP4,
                                  .packing = layout % 2 == 0 ? BSM_PACKING_DEFAULT : BSM_PACKING_LOW_FIRST,
                                  .layout.kind = (bsm_layout)layout, .rows = 21, .columns = 608, .batch = 2 };
        if (layout == NO_LAYOUT) wish.layout = (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR,
                                                                   .pitch = BSM_PITCH_PADDED_16 };
        if (layout == BSM_LAYOUT_TILES) wish.layout.tile_rows = 5, wish.layout.tile_columns = 3;
        case_of(t, wish, layout % 3 == 0);
    }
}

/* Every code under every distance from the largest scale of its row: column k of row d has code k, blocks 1 .. 3 of
 * four a scale d smaller. */
static void every_code_at_every_distance(struct test *t)
{
    if (!device_open(t)) return;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        const struct twin_wish wish = { .format = formats[f], .packing = BSM_PACKING_BYTES, .rows = 28, .columns = 384,
                                        .batch = 1 };
        struct twin twin;
        if (!twin_make(t, &wish, &twin)) continue;
        for (int64_t r = 0; r < 28; r++) {
            for (int64_t k = 0; k < 384; k++) {
                const uint32_t codes = 1u << twin.resolved.bits,
                               code = (uint32_t)(k / 128 * 96 + (k % 128 < 32 ? 0 : k % 128 - 32)) & (codes - 1);
                (void)bsm_matrix_set_code(&twin.host, 0, r, k, code);
            }
            for (int64_t s = 0; s < 12; s++)
                (void)bsm_matrix_set_scale(&twin.host, 0, r, s, (uint8_t)(s % 4 == 0 ? 130 : 130 - r));
        }
        twin_upload(t, &wish, &twin);
        check(t, wish_text(&wish), &twin, false);
        device_free_all(t);
        twin_free(&twin);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_format_and_packing), TEST(long_rows), TEST(every_layout),
                                              TEST(every_code_at_every_distance) };
    return TEST_MAIN(argc, argv, cases);
}
