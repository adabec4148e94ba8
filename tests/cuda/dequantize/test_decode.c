/* bsmi_decode and bsmi_decode_plain against the library's own decoding: every format, packing and layout, all codes,
 * and the rows that do not fit 2^0. */
#include "cuda/harness/device.h"
#include "cuda/params/int8.h"

#include "core/core.h"
#include "cuda/gemm/plain_dequantization.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_CTAS = 64 };

struct decoded {
    uint16_t *numbers;
    int32_t *exponents;
    uint32_t flags[MOST_CTAS];
    bool plainly;                         /* by bsmi_decode_plain, without gaps between rows */
    int64_t padded, pitch;
    int terms;
};

static double bf16(uint16_t code) { return (double)bsmi_bf16_to_float(code); }

/* In one launch with an operand in front of it, or behind it, or alone. */
enum company { ALONE, FIRST, SECOND };

static struct bsmi_decode_operand operand(struct test *t, const struct twin *twin, bool only_exponent_zero,
                                          int64_t padded, int64_t pitch)
{
    const int64_t rows = twin->resolved.rows * twin->resolved.batch;
    struct bsmi_decode_operand o = {
        .source = twin->device, .decoded = device_fill(t, 0xa5, (size_t)(rows * pitch * 2), 0), .pitch = pitch,
        .batch_pitch = twin->resolved.rows * pitch, .padded_columns = padded, .only_exponent_zero = only_exponent_zero,
    };
    if (twin->resolved.scale != BSM_E8M0) return o;
    o.exponents = device_fill(t, 0xa5, (size_t)rows * sizeof *o.exponents, 0);
    o.fallback = device_fill(t, 0xa5, MOST_CTAS * sizeof *o.fallback, 0);
    return o;
}

/* Multiprocessors decide how many rows a CTA takes.  Returns the CTAs of operand `mine`. */
static int64_t launch_plainly(struct test *t, const struct bsmi_decode_parameters *general, int mine,
                              enum company company)
{
    struct bsmi_decode_plain_parameters p = { .first_ctas = 0 };
    int64_t ctas[2];
    const bool first = mine == 0 || company != ALONE, second = mine == 1 || company != ALONE;
    if (!bsmi_cuda_decode_plainly(general, first, second, (int)rnd_between(t, 1, 4), &p, ctas)
        || ctas[mine] > MOST_CTAS) {
        FAIL(t, "an operand that lies plainly: %lld CTAs and %lld", (long long)ctas[0], (long long)ctas[1]);
        return 0;
    }
    return device_launch(t, "bsmi_decode_plain", (int)(ctas[0] + ctas[1]), BSMI_DECODE_PLAIN_THREADS, &p) ? ctas[mine]
                                                                                                          : 0;
}

static bool run(struct test *t, const struct twin *twin, bool only_exponent_zero, enum company company,
                struct decoded *d)
{
    const struct bsmi_matrix *m = &twin->resolved;
    const int64_t rows = m->rows * m->batch;
    const int mine = company == SECOND;
    d->terms = m->element == BSM_FP16 ? 2 : 1;
    d->padded = bsmi_round_up(m->columns, 64), d->pitch = d->padded * d->terms + (d->plainly ? 0 : 64);
    const size_t bytes = (size_t)(rows * d->pitch * 2);
    struct bsmi_conditional_decode_parameters given = { .decode.first_ctas = company == SECOND ? 1 : 2 };
    struct bsmi_decode_operand *operands = given.decode.operands;
    operands[mine] = operand(t, twin, only_exponent_zero, d->padded, d->pitch);
    if (company != ALONE) operands[1 - mine] = operand(t, twin, !only_exponent_zero, d->padded, d->pitch);
    int64_t ctas = 2;
    if (d->plainly) ctas = launch_plainly(t, &given.decode, mine, company);
    else if (!device_launch(t, "bsmi_decode", company == ALONE ? 2 : 3, BSMI_DECODE_THREADS, &given)) ctas = 0;
    if (ctas == 0) return false;
    d->numbers = malloc(bytes);
    d->exponents = calloc((size_t)rows, sizeof *d->exponents);
    device_read(t, d->numbers, operands[mine].decoded, bytes);
    if (m->scale != BSM_E8M0) return true;
    device_read(t, d->exponents, operands[mine].exponents, (size_t)rows * sizeof *d->exponents);
    device_read(t, d->flags, operands[mine].fallback, (size_t)ctas * sizeof d->flags[0]);
    return true;
}

static void release(struct decoded *d) { free(d->numbers), free(d->exponents); }

/* The exact value of an element as a double. */
static double value_of(const struct twin *twin, int64_t batch, int64_t row, int64_t k)
{
    uint32_t code;
    uint8_t scale = 0;
    (void)bsm_matrix_get_code(&twin->host, batch, row, k, &code);
    if (twin->resolved.block != 0)
        (void)bsm_matrix_get_scale(&twin->host, batch, row, k / twin->resolved.block, &scale);
    return (double)bsm_element_decode(twin->resolved.element, code)
           * (double)bsm_scale_decode(twin->resolved.scale, scale);
}

/* The range of the row as decode.cu tells it; false if it holds nothing but zeros and NaN scales. */
static bool row_range(const struct twin *twin, int64_t batch, int64_t row, int *least, int *most)
{
    const struct bsmi_matrix *m = &twin->resolved;
    const bsm_element_info *info = bsm_element_get((int)m->element);
    const int smallest = m->element == BSM_INT8 ? -6 : 1 - info->bias - info->mantissa_bits;
    const int largest = m->element == BSM_INT8 ? 1 : ilogb(info->max_value);
    *least = 1000, *most = -1000;
    for (int64_t k = 0; k < m->columns; k += 8) {
        uint8_t scale;
        bool nonzero = false;
        (void)bsm_matrix_get_scale(&twin->host, batch, row, k / m->block, &scale);
        for (int64_t i = k; i < BSMI_MIN(k + 8, m->columns); i++) {
            uint32_t code;
            (void)bsm_matrix_get_code(&twin->host, batch, row, i, &code);
            nonzero |= !((double)bsm_element_decode(m->element, code) == 0);
        }
        if (!nonzero || scale == 255) continue;
        *least = BSMI_MIN(*least, scale - 127 + smallest);
        *most = BSMI_MAX(*most, scale - 127 + largest);
    }
    return *least <= *most;
}

static void check_number(struct test *t, const char *what, const struct decoded *d, const uint16_t *row, int64_t k,
                         double want)
{
    double got = -0.0;                    /* the zero that changes no sign */
    for (int term = 0; term < d->terms; term++) got += bf16(row[term * d->padded + k]);
    const bool right = isnan(want) ? isnan(got) : got == want && signbit(got) == signbit(want);
    if (!right) FAIL(t, "%s: column %lld is %a, not %a", what, (long long)k, got, want);
    if (d->terms == 2 && (bf16(row[k]) == 0) != (bf16(row[d->padded + k]) == 0))
        FAIL(t, "%s: column %lld: one term alone is zero", what, (long long)k);
}

static void check_by(struct test *t, const char *what, const struct twin *twin, bool only_exponent_zero,
                     enum company company, bool plainly)
{
    struct decoded d = { .plainly = plainly };
    const struct bsmi_matrix *m = &twin->resolved;
    if (!run(t, twin, only_exponent_zero, company, &d)) return;
    uint32_t fallback = 0;
    for (int64_t b = 0; b < m->batch; b++)
        for (int64_t r = 0; r < m->rows; r++) {
            const int64_t number = b * m->rows + r;
            const uint16_t *row = d.numbers + number * d.pitch;
            int least, most, exponent = 0;
            bool out = false;
            if (m->scale == BSM_E8M0 && row_range(twin, b, r, &least, &most) && (least < -40 || most > 40)) {
                exponent = (int)floor((least + most) / 2.0);
                out = most - least > 80 || only_exponent_zero;
            }
            fallback += out;
            if (d.exponents[number] != (out ? BSMI_ROW_FALLBACK : exponent))
                FAIL(t, "%s: row %lld has exponent %d, not %d", what, (long long)number, d.exponents[number],
                     out ? BSMI_ROW_FALLBACK : exponent);
            for (int64_t k = 0; k < m->columns; k++)
                check_number(t, what, &d, row, k, out ? 0 : ldexp(value_of(twin, b, r, k), -exponent));
            for (int64_t k = m->columns; k < d.padded; k++)
                for (int term = 0; term < d.terms; term++)
                    if (row[term * d.padded + k] != 0)
                        FAIL(t, "%s: row %lld: padding column %lld is not 0", what, (long long)number, (long long)k);
            for (int64_t k = d.padded * d.terms; k < d.pitch; k++)
                if (row[k] != 0xa5a5)
                    FAIL(t, "%s: row %lld: column %lld behind the row was written", what, (long long)number,
                         (long long)k);
        }
    uint32_t flags = 0, ctas = 0;         /* rows' CTAs, one each or fewer */
    for (int i = 0; i < MOST_CTAS; i++) flags += d.flags[i] != 0, ctas += d.flags[i];
    if (m->scale == BSM_E8M0) CHECK(t, flags == ctas && (fallback > 0) == (flags > 0) && flags <= fallback);
    release(&d);
}

static void check(struct test *t, const char *what, const struct twin *twin, bool only_exponent_zero,
                  enum company company)
{
    check_by(t, what, twin, only_exponent_zero, company, false);
}

/* e8m0 scales around 1, so that only some rows are special; NaN here and there. */
static void tame_scales(struct test *t, struct twin *twin, int spread)
{
    const struct bsmi_matrix *m = &twin->resolved;
    if (m->scale != BSM_E8M0) return;
    for (int64_t b = 0; b < m->batch; b++)
        for (int64_t r = 0; r < m->rows; r++)
            for (int64_t s = 0; s < m->scale_columns; s++) {
                const uint8_t code = rnd_below(t, 97) == 0 ? 255 : (uint8_t)rnd_between(t, 127 - spread, 127 + spread);
                (void)bsm_matrix_set_scale(&twin->host, b, r, s, code);
            }
}

static void case_of(struct test *t, struct twin_wish wish, int spread)
{
    struct twin twin;
    if (!twin_make(t, &wish, &twin)) return;
    tame_scales(t, &twin, spread);
    twin_upload(t, &wish, &twin);
    check(t, wish_text(&wish), &twin, rnd_below(t, 4) == 0, wish.batch == 2 ? (enum company)rnd_below(t, 3) : ALONE);
    device_free_all(t);
    twin_free(&twin);
}

static bsm_scale_layout layout_of(int kind)
{
    if (kind == NO_LAYOUT) return (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR, .pitch = BSM_PITCH_PADDED_16 };
    bsm_scale_layout layout = { .kind = (bsm_layout)kind };
    if (kind == BSM_LAYOUT_TILES) layout.tile_rows = 5, layout.tile_columns = 3;
    return layout;
}

static void every_format_and_packing(struct test *t)
{
    static const int64_t columns[] = { 1, 7, 31, 64, 65, 100, 192, 333 };
    if (!device_open(t)) return;
    int number = 0;
    for (int format = 1; format < BSM_FORMAT_FP32; format++)
        for (int packing = 0; packing < BSM_PACKING_COUNT; packing++)
            for (int offset = 0; offset < 4; offset++, number++) {
                const bsm_element_info *info = bsm_element_get((int)bsm_format_get(format)->element);
                const struct twin_wish wish = {
                    .format = (bsm_format)format,
                    .packing = (bsm_packing)packing,
                    .rows = 3 + number % 3,
                    .columns = columns[number % 8],
                    .batch = 1 + number % 2,
                    .extra_pitch = number % 5 == 0,
                    .offset = info->bits > 8 ? offset * 2 : offset,
                    .layout = layout_of(packing != BSM_PACKING_GGUF ? BSM_LAYOUT_LINEAR
                                        : format == BSM_MXFP4       ? BSM_LAYOUT_GGUF_MXFP4
                                                                    : BSM_LAYOUT_GGUF_NVFP4),
                };
                case_of(t, wish, 30);
            }
}

/* Aligned rows, so long that codes are copied in advance more than once. */
static void every_fast_path(struct test *t)
{
    if (!device_open(t)) return;
    for (int format = 1; format < BSM_FORMAT_FP32; format++)
        for (int packing = 0; packing < BSM_PACKING_GGUF; packing++)
            case_of(t, (struct twin_wish){ .format = (bsm_format)format, .packing = (bsm_packing)packing, .rows = 3,
                                           .columns = 2048 + 64, .batch = 1 }, 30);
}

static void every_layout(struct test *t)
{
    static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP4, BSM_NVFP4, BSM_MXFP6_E2M3 };
    if (!device_open(t)) return;
    for (int layout = 0; layout < BSM_LAYOUT_COUNT; layout++)
        for (int i = 0; i < 4; i++)
            case_of(t,
                    (struct twin_wish){ .format = formats[i],
                                        .layout = layout_of(layout),
                                        .rows = i == 0 ? 130 : 9,
                                        .columns = 200 + 37 * i,
                                        .batch = 2,
                                        .offset = i % 2 },
                    20);
}

/* All scale codes with all codes: rows of one scale, and of two. */
static void every_scale_with_every_code(struct test *t)
{
    static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP6_E3M2, BSM_MXFP6_E2M3,
                                          BSM_MXFP4,      BSM_MXINT8,     BSM_NVFP4 };
    if (!device_open(t)) return;
    for (int i = 0; i < 7; i++) {
        const struct twin_wish wish = { .format = formats[i],
                                        .packing =
                                            bsm_element_get((int)bsm_format_get((int)formats[i])->element)->bits == 6
                                                ? BSM_PACKING_BYTES
                                                : BSM_PACKING_DEFAULT,
                                        .rows = 256,
                                        .columns = 256,
                                        .batch = 1 };
        struct twin twin;
        if (!twin_make(t, &wish, &twin)) continue;
        const uint32_t mask = (1u << twin.resolved.bits) - 1;
        for (int64_t r = 0; r < 256; r++) {
            for (int64_t k = 0; k < 256; k++) (void)bsm_matrix_set_code(&twin.host, 0, r, k, (uint32_t)k & mask);
            for (int64_t s = 0; s < twin.resolved.scale_columns; s++)
                (void)bsm_matrix_set_scale(&twin.host, 0, r, s, (uint8_t)r);
        }
        twin_upload(t, &wish, &twin);
        check(t, wish_text(&wish), &twin, false, ALONE);
        device_free_all(t);
        twin_free(&twin);
    }
}

/* Rows whose scales span more and more; blocks of zeros have code 0, as the quantizer writes it. */
static void spans(struct test *t)
{
    if (!device_open(t)) return;
    const struct twin_wish wish = { .format = BSM_MXFP4, .rows = 200, .columns = 96, .batch = 1 };
    struct twin twin;
    CHECK_OR_RETURN(t, twin_make(t, &wish, &twin));
    for (int64_t r = 0; r < 200; r++) {
        for (int64_t k = 0; k < 32; k++) (void)bsm_matrix_set_code(&twin.host, 0, r, 32 + k, r % 2 == 0 ? 0 : 8);
        (void)bsm_matrix_set_scale(&twin.host, 0, r, 0, (uint8_t)(r < 100 ? 127 - r / 2 : 20));
        (void)bsm_matrix_set_scale(&twin.host, 0, r, 1, 0);
        (void)bsm_matrix_set_scale(&twin.host, 0, r, 2, (uint8_t)(r < 100 ? 127 + r / 2 : r - 80));
    }
    twin_upload(t, &wish, &twin);
    check(t, "spans", &twin, false, FIRST);
    check(t, "spans, exponent 0 only", &twin, true, SECOND);
    device_free_all(t);
    twin_free(&twin);
}

/* All 65,536 codes of fp16 and of bf16. */
static void every_wide_code(struct test *t)
{
    static const bsm_format formats[] = { BSM_FORMAT_FP16, BSM_FORMAT_BF16 };
    if (!device_open(t)) return;
    for (int i = 0; i < 2; i++) {
        const struct twin_wish wish = { .format = formats[i], .rows = 64, .columns = 1024, .batch = 1 };
        struct twin twin;
        CHECK_OR_RETURN(t, twin_make(t, &wish, &twin));
        for (int64_t k = 0; k < 65536; k++) ((uint16_t *)twin.host.data)[k] = (uint16_t)k;
        twin_upload(t, &wish, &twin);
        check(t, wish_text(&wish), &twin, false, ALONE);
        device_free_all(t);
        twin_free(&twin);
    }
}

/* More rows than CTAs have groups, and rows of all widths of a group. */
static void long_rows(struct test *t)
{
    if (!device_open(t)) return;
    const int64_t rows = device_is_real() ? 700 : 5;
    static const int64_t columns[] = { 1030, 2048, 4100, 9000 };
    for (int i = 0; i < 4; i++) {
        case_of(t, (struct twin_wish){ .format = BSM_MXFP4, .rows = rows, .columns = columns[i], .batch = 1 }, 42);
        case_of(t, (struct twin_wish){ .format = BSM_MXFP8_E4M3, .rows = rows, .columns = columns[i], .batch = 1 }, 40);
    }
}

/* Operands that lie plainly: every path, rows that want exponents and fallback rows among others, and a CTA of one row
 * and of several. */
static void plain_operands(struct test *t)
{
    static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP6_E3M2, BSM_MXFP6_E2M3,
                                          BSM_MXFP4,      BSM_MXINT8,     BSM_NVFP4 };
    static const int64_t columns[] = { 64, 320, 128, 2112, 192 };
    if (!device_open(t)) return;
    for (int number = 0; number < 28; number++) {
        const bool bands = number % 4 == 3;
        const struct twin_wish wish = { .format = formats[number % 7],
                                        .layout = layout_of(bands ? BSM_LAYOUT_128X4 : BSM_LAYOUT_LINEAR),
                                        .rows = number == 7 ? 140 : 5 + number, .columns = columns[number % 5],
                                        .batch = bands ? 1 : 1 + number % 2 };
        struct twin twin;
        CHECK_OR_RETURN(t, twin_make(t, &wish, &twin));
        tame_scales(t, &twin, number % 3 == 0 ? 44 : 15);
        twin_upload(t, &wish, &twin);
        check_by(t, wish_text(&wish), &twin, number % 5 == 0, (enum company)(number % 3), true);
        device_free_all(t);
        twin_free(&twin);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_format_and_packing), TEST(every_fast_path), TEST(every_layout),
                                              TEST(every_scale_with_every_code), TEST(spans), TEST(every_wide_code),
                                              TEST(long_rows), TEST(plain_operands) };
    return TEST_MAIN(argc, argv, cases);
}
