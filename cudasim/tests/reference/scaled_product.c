#include "scaled_product.h"

#include <math.h>
#include <stdlib.h>

/* ---- elements ---- */

static const struct format {
    uint8_t bits, exponent, mantissa;
    int16_t bias;
} formats[ELEMENTS] = {
    [E_F16] = { 16, 5, 10, 15 }, [E_BF16] = { 16, 8, 7, 127 }, [E_TF32] = { 32, 8, 23, 127 }, [E_S8] = { 8, 0, 0, 0 },
    [E_U8] = { 8, 0, 0, 0 },     [E_E4M3] = { 8, 4, 3, 7 },    [E_E5M2] = { 8, 5, 2, 15 },    [E_E2M3] = { 6, 2, 3, 1 },
    [E_E3M2] = { 6, 3, 2, 3 },   [E_E2M1] = { 4, 2, 1, 1 },
};

uint32_t element_bits(enum element type) { return formats[type].bits; }

static bool is_integer(enum element type) { return type == E_S8 || type == E_U8; }

static double float_value(const struct format *f, uint32_t code)
{
    const uint32_t exponent = code >> f->mantissa & ((1u << f->exponent) - 1),
                   mantissa = code & ((1u << f->mantissa) - 1);
    const double sign = (code >> (f->bits - 1) & 1) != 0 ? -1 : 1, scale = ldexp(1, -f->mantissa);
    if (exponent == 0) return sign * ldexp(mantissa * scale, 1 - f->bias);
    return sign * ldexp(1 + mantissa * scale, (int)exponent - f->bias);
}

double element_value(enum element type, uint32_t code)
{
    if (type == E_S8) return (int8_t)code;
    if (type == E_U8) return (uint8_t)code;
    return float_value(&formats[type], type == E_TF32 ? code & ~0x1fffu : code);
}

/* The exponent by which the model aligns a finite number: subnormal ones have the least of their format. */
static int model_exponent(double value, int least)
{
    if (value == 0) return -1000;
    const int e = ilogb(value);
    return e < least ? least : e;
}

static double scale_value(enum scale_type type, uint32_t code)
{
    if (type == SCALE_NONE) return 1;
    return type == SCALE_E8M0 ? ldexp(1, (int)code - 127) : float_value(&formats[E_E4M3], code & 0x7f);
}

static int scale_exponent(enum scale_type type, double value)
{
    return type == SCALE_NONE ? 0 : type == SCALE_E8M0 ? ilogb(value) : model_exponent(value, -6);
}

/* ---- operands ---- */

/* The code of a whole number from -3 to 3. */
static uint32_t whole_code(enum element type, int value)
{
    if (is_integer(type)) return (uint32_t)value & 0xff;
    const struct format *f = &formats[type];
    const uint32_t sign = value < 0 ? 1u << (f->bits - 1) : 0, size = (uint32_t)abs(value),
                   one = (uint32_t)f->bias << f->mantissa;
    if (size == 0) return sign;
    return sign | (one + ((size >> 1) << f->mantissa) + (size == 3 ? 1u << (f->mantissa - 1) : 0));
}

static uint32_t wide_code(struct test *t, enum element type)
{
    for (;;) {
        const struct format *f = &formats[type];
        const uint32_t code = (uint32_t)(rnd(t) >> 32) & (f->bits == 32 ? UINT32_MAX : (1u << f->bits) - 1);
        if (is_integer(type)) return code;
        const uint32_t exponent = code >> f->mantissa & ((1u << f->exponent) - 1), size = code & ~(1u << (f->bits - 1));
        if (type == E_E4M3 && size == 0x7f) continue;                         /* NaN */
        if (f->exponent == 5 && exponent == 31) continue;                     /* infinities and NaNs */
        if (f->exponent == 8 && (exponent < 117 || exponent > 137)) continue; /* sums stay in the range of f32 */
        return code;
    }
}

static uint8_t scale_code(struct test *t, const struct product *p)
{
    static const uint8_t whole_ue4m3[] = { 0x38, 0x40, 0x44, 0x48 }; /* 1, 2, 3, 4 */
    if (p->data == DATA_WHOLE)
        return p->scale == SCALE_E8M0 ? (uint8_t)rnd_between(t, 127, 129) : whole_ue4m3[rnd_below(t, 4)];
    /* small enough for D in f16 */
    return p->scale == SCALE_E8M0 ? (uint8_t)rnd_between(t, 112, 122) : (uint8_t)rnd_between(t, 1, 0x48);
}

static uint32_t *make_codes(struct test *t, const struct product *p, enum element type, uint32_t rows)
{
    uint32_t *codes = malloc((size_t)rows * p->k * sizeof *codes);
    if (codes == NULL) abort();
    for (size_t i = 0; i < (size_t)rows * p->k; i++)
        codes[i] = p->data == DATA_WHOLE && !is_integer(type) ? whole_code(type, (int)rnd_between(t, -3, 3))
                                                              : wide_code(t, type);
    return codes;
}

static uint8_t *make_scales(struct test *t, const struct product *p, uint32_t rows)
{
    if (p->block == 0) return NULL;
    const size_t count = (size_t)rows * (p->k / p->block);
    uint8_t *codes = malloc(count);
    if (codes == NULL) abort();
    for (size_t i = 0; i < count; i++) codes[i] = scale_code(t, p);
    return codes;
}

void product_make(struct test *t, struct product *p)
{
    p->a = make_codes(t, p, p->a_type, p->m), p->b = make_codes(t, p, p->b_type, p->n);
    p->sa = make_scales(t, p, p->m), p->sb = make_scales(t, p, p->n);
}

void product_free(struct product *p) { free(p->a), free(p->b), free(p->sa), free(p->sb); }

/* ---- as kernels take them ---- */

uint32_t packed_row_bytes(const struct product *p, bool of_b)
{
    return (p->k * element_bits(of_b ? p->b_type : p->a_type) + 7) / 8;
}

void product_pack(const struct product *p, bool of_b, uint8_t *to, uint32_t pitch)
{
    const uint32_t rows = of_b ? p->n : p->m, bits = element_bits(of_b ? p->b_type : p->a_type);
    const uint32_t *codes = of_b ? p->b : p->a;
    memset(to, 0, (size_t)rows * pitch);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t k = 0; k < p->k; k++) {
            const uint64_t shifted = (uint64_t)codes[(size_t)i * p->k + k] << k * bits % 8;
            uint8_t *at = to + (size_t)i * pitch + k * bits / 8;
            for (uint32_t byte = 0; byte < (k * bits % 8 + bits + 7) / 8; byte++)
                at[byte] |= (uint8_t)(shifted >> 8 * byte);
        }
}

static bool has_padding(const struct product *p, bool of_b)
{
    return (p->kind == KIND_F8F6F4 || p->kind == KIND_MXF8F6F4) && element_bits(of_b ? p->b_type : p->a_type) < 8;
}

uint32_t container_row_bytes(const struct product *p, bool of_b)
{
    return has_padding(p, of_b) ? p->k : packed_row_bytes(p, of_b);
}

void product_pack_containers(const struct product *p, bool of_b, uint8_t *to, uint32_t pitch)
{
    const uint32_t rows = of_b ? p->n : p->m, row = packed_row_bytes(p, of_b),
                   unit = 2 * element_bits(of_b ? p->b_type : p->a_type);
    if (!has_padding(p, of_b)) {
        product_pack(p, of_b, to, pitch);
        return;
    }
    uint8_t *packed = malloc((size_t)rows * row);
    if (packed == NULL) abort();
    product_pack(p, of_b, packed, row);
    memset(to, 0xa5, (size_t)rows * pitch);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t k = 0; k < p->k / 16; k++)
            memcpy(to + (size_t)i * pitch + 16 * k, packed + (size_t)i * row + unit * k, unit);
    free(packed);
}

uint32_t scale_block_bytes(const struct product *p, bool of_b)
{
    return ((of_b ? p->n : p->m) + 127) / 128 * ((p->k / p->block + 3) / 4) * 512;
}

void product_pack_scales(const struct product *p, bool of_b, uint8_t *to)
{
    const uint32_t rows = of_b ? p->n : p->m, count = p->k / p->block, along = (count + 3) / 4;
    const uint8_t *codes = of_b ? p->sb : p->sa;
    memset(to, 0, scale_block_bytes(p, of_b));
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t s = 0; s < count; s++)
            to[(size_t)512 * (r / 128 * along + s / 4) + r % 32 * 16 + r % 128 / 32 * 4 + s % 4] =
                codes[(size_t)r * count + s];
}

/* ---- what D must be ---- */

/* Values and exponents of an operand's rows, scales apart. */
struct panel {
    double *value, *scale;
    int *exponent, *scale_exponent;
};

static struct panel panel_of(const struct product *p, enum element type, const uint32_t *codes, const uint8_t *scales,
                             uint32_t rows)
{
    const struct format *f = &formats[type];
    const size_t count = (size_t)rows * p->k, blocks = p->block == 0 ? 1 : (size_t)rows * (p->k / p->block);
    struct panel x = { malloc(count * sizeof *x.value), malloc(blocks * sizeof *x.scale),
                       malloc(count * sizeof *x.exponent), malloc(blocks * sizeof *x.scale_exponent) };
    if (x.value == NULL || x.scale == NULL || x.exponent == NULL || x.scale_exponent == NULL) abort();
    for (size_t i = 0; i < count; i++)
        x.value[i] = element_value(type, codes[i]), x.exponent[i] = model_exponent(x.value[i], 1 - f->bias);
    for (size_t i = 0; p->block != 0 && i < blocks; i++)
        x.scale[i] = scale_value(p->scale, scales[i]), x.scale_exponent[i] = scale_exponent(p->scale, x.scale[i]);
    return x;
}

static void panel_free(struct panel *x) { free(x->value), free(x->scale), free(x->exponent), free(x->scale_exponent); }

static bool is_fp4(enum kind kind) { return kind == KIND_MXF4 || kind == KIND_MXF4NVF4; }

static uint32_t instruction_k(enum kind kind)
{
    return kind == KIND_TF32 ? 8 : kind == KIND_F16 ? 16 : is_fp4(kind) ? 64 : 32;
}

/* The exact sum (to the 53 bits of a double, far below the bound) and how far D may lie from it. */
static double exact(const struct product *p, const struct panel *a, uint32_t i, const struct panel *b, uint32_t j,
                    double *bound)
{
    const uint32_t step = instruction_k(p->kind), blocks = p->block == 0 ? 0 : p->k / p->block;
    const int fraction = is_fp4(p->kind) ? 35 : 25, terms = is_fp4(p->kind) ? 5 : (int)step + 1;
    double sum = 0;
    *bound = 0;
    for (uint32_t first = 0; first < p->k; first += step) {
        int top = model_exponent(fabs(sum) + *bound, -126);
        for (uint32_t k = first; k < first + step && k < p->k; k++) {
            const size_t at_a = (size_t)i * p->k + k, at_b = (size_t)j * p->k + k;
            double term = a->value[at_a] * b->value[at_b];
            int e = is_fp4(p->kind) ? 0 : a->exponent[at_a] + b->exponent[at_b];
            if (blocks != 0) {
                const size_t sa = (size_t)i * blocks + k / p->block, sb = (size_t)j * blocks + k / p->block;
                term *= a->scale[sa] * b->scale[sb], e += a->scale_exponent[sa] + b->scale_exponent[sb];
            }
            sum += term;
            if (e > top) top = e;
        }
        *bound += terms * ldexp(1, top - fraction);
        *bound += (fabs(sum) + *bound) * 0x1p-23 + 0x1p-149; /* toward zero: less than a unit in the last place of
                                                                f32 */
    }
    return sum;
}

static int64_t exact_integer(const struct product *p, const struct panel *a, uint32_t i, const struct panel *b,
                             uint32_t j)
{
    int64_t sum = 0;
    for (uint32_t k = 0; k < p->k; k++)
        sum += (int64_t)a->value[(size_t)i * p->k + k] * (int64_t)b->value[(size_t)j * p->k + k];
    return sum;
}

/* To nearest even; NAN where f16 would be infinite. */
static double to_f16(double x)
{
    if (x == 0) return x;
    const int e = ilogb(x) < -14 ? -14 : ilogb(x);
    const double unit = ldexp(1, e - 10), rounded = nearbyint(x / unit) * unit;
    return fabs(rounded) > 65504 ? NAN : rounded;
}

static double output_at(enum product_output output, const void *d, size_t at)
{
    float f;
    int32_t s;
    uint16_t h;
    if (output == OUTPUT_F32) return memcpy(&f, (const char *)d + 4 * at, 4), (double)f;
    if (output == OUTPUT_S32) return memcpy(&s, (const char *)d + 4 * at, 4), (double)s;
    memcpy(&h, (const char *)d + 2 * at, 2);
    return (h & 0x7c00) == 0x7c00 ? (double)NAN : float_value(&formats[E_F16], h);
}

static void check_one(struct test *t, const struct product *p, enum product_output output, double got, double want,
                      double bound, uint32_t i, uint32_t j)
{
    if (p->data == DATA_WHOLE || output == OUTPUT_S32) {
        if (output == OUTPUT_F16) want = to_f16(want);
        if (!(got == want)) FAIL(t, "D[%u][%u] is %.9g, not %.9g (%u x %u x %u)", i, j, got, want, p->m, p->n, p->k);
        return;
    }
    if (output == OUTPUT_F16) {
        if (isnan(got) && fabs(want) + bound >= 65504) return; /* beyond f16 */
        bound += ldexp(1, model_exponent(fabs(want) + bound, -14) - 11);
    }
    if (!(fabs(got - want) <= bound))
        FAIL(t, "D[%u][%u] is %.9g, not within %.3g of %.9g (%u x %u x %u)", i, j, got, bound, want, p->m, p->n, p->k);
}

void product_check(struct test *t, const struct product *p, enum product_output output, const void *d, uint32_t pitch)
{
    struct panel a = panel_of(p, p->a_type, p->a, p->sa, p->m), b = panel_of(p, p->b_type, p->b, p->sb, p->n);
    for (uint32_t i = 0; i < p->m; i++)
        for (uint32_t j = 0; j < p->n; j++) {
            double bound = 0;
            const double want =
                output == OUTPUT_S32 ? (double)exact_integer(p, &a, i, &b, j) : exact(p, &a, i, &b, j, &bound);
            check_one(t, p, output, output_at(output, d, (size_t)i * pitch + j), want, bound, i, j);
        }
    panel_free(&a), panel_free(&b);
}
