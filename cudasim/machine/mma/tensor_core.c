/* Fused dot products of the tensor cores: see tensor_core.h. */
#include "tensor_core.h"

#include <math.h>
#include <string.h>

/* A zero takes no part in the alignment, whatever it is multiplied with: measured on an H200. */
enum { ZERO_EXPONENT = -20000, ABSENT = -100000, LEAST_EXPONENT = -133 };

/* ---- elements ---- */

enum special_codes { IEEE, ONE_NAN, FINITE };              /* all-ones exponent: Inf and NaN; one NaN code; numbers */

/*                            width  exponent  fraction  bias  ignored low bits  special */
static const struct { uint8_t width, exponent, fraction, bias, ignored; enum special_codes special;
} formats[TENSOR_FORMAT_COUNT] = {
    [TENSOR_F16]  = {         16,    5,        10,       15,   0,                IEEE },
    [TENSOR_BF16] = {         16,    8,        7,        127,  0,                IEEE },
    [TENSOR_TF32] = {         32,    8,        10,       127,  13,               IEEE },
    [TENSOR_E5M2] = {         8,     5,        2,        15,   0,                IEEE },
    [TENSOR_E4M3] = {         8,     4,        3,        7,    0,                ONE_NAN },
    [TENSOR_E3M2] = {         6,     3,        2,        3,    0,                FINITE },
    [TENSOR_E2M3] = {         6,     2,        3,        1,    0,                FINITE },
    [TENSOR_E2M1] = {         4,     2,        1,        1,    0,                FINITE },
};

uint32_t tensor_format_bits(enum tensor_format format) { return formats[format].width; }

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void tensor_clear(struct tensor_panel *panel, uint32_t rows, uint32_t length)
{
    panel->rows = rows;
    panel->length = TENSOR_PADDED(length);
    for (uint32_t i = 0; i < rows * panel->length; i++) {
        panel->significand[i] = 0;
        panel->exponent[i] = ABSENT;
    }
    memset(panel->special, 0, rows * sizeof *panel->special);
}

void tensor_set(struct tensor_panel *panel, uint32_t row, uint32_t k, enum tensor_format format, uint32_t code)
{
    code >>= formats[format].ignored;
    const uint32_t fraction_bits = formats[format].fraction, highest = (1u << formats[format].exponent) - 1;
    const uint32_t fraction = code & ((1u << fraction_bits) - 1), exponent = code >> fraction_bits & highest;
    const uint32_t sign = (code >> (fraction_bits + formats[format].exponent) & 1) << 31;
    const size_t at = (size_t)row * panel->length + k;
    const enum special_codes special = formats[format].special;
    if ((special == IEEE && exponent == highest) ||
        (special == ONE_NAN && exponent == highest && fraction == (1u << fraction_bits) - 1)) {
        const bool infinite = special == IEEE && fraction == 0;
        panel->special[row] = true;
        panel->significand[at] = float_of(sign | (infinite ? 0x7f800000u : 0x7fc00000u));
        panel->exponent[at] = 0;
        return;
    }
    const uint32_t aligned = fraction << (23 - fraction_bits);
    if (exponent != 0) {
        panel->significand[at] = float_of(sign | 0x3f800000u | aligned);
        panel->exponent[at] = (int32_t)exponent - formats[format].bias;
        return;
    }
    const float below_one = float_of(0x3f800000u | aligned) - 1.0f;
    panel->significand[at] = float_of(bits_of(below_one) | sign);
    panel->exponent[at] = fraction == 0 ? ZERO_EXPONENT : 1 - formats[format].bias;
}

void tensor_scale(struct tensor_panel *panel, uint32_t row, uint32_t k, int32_t power)
{
    panel->exponent[(size_t)row * panel->length + k] += power;
}

/* ---- the output types ---- */

enum { NAN_F32 = 0x7fffffff, NAN_F16 = 0x7fff };

/* A finite accumulator as sign, magnitude * 2^(exponent - fraction bits); exponent as for elements. */
struct accumulator { bool negative, nan, infinite; int32_t exponent; uint32_t magnitude, fraction_bits; };

static struct accumulator accumulator_of(enum tensor_output output, uint32_t code)
{
    const bool half = output == TENSOR_TO_F16;
    const uint32_t fraction_bits = half ? 10 : 23, highest = half ? 31 : 255,
                   exponent = code >> fraction_bits & highest;
    const uint32_t fraction = code & ((1u << fraction_bits) - 1);
    return (struct accumulator){
        .negative = code >> (half ? 15 : 31) & 1,
        .nan = exponent == highest && fraction != 0,
        .infinite = exponent == highest && fraction == 0,
        .exponent = exponent != 0   ? (int32_t)exponent - (half ? 15 : 127)
                    : fraction == 0 ? ZERO_EXPONENT
                    : half          ? -14
                                    : -126,
        .magnitude = fraction | (uint32_t)(exponent != 0) << fraction_bits,
        .fraction_bits = fraction_bits,
    };
}

static uint32_t nan_of(enum tensor_output output) { return output == TENSOR_TO_F16 ? NAN_F16 : NAN_F32; }
static uint32_t infinity_of(enum tensor_output output, bool negative)
{
    return output == TENSOR_TO_F16 ? 0x7c00u | (uint32_t)negative << 15 : 0x7f800000u | (uint32_t)negative << 31;
}

uint32_t tensor_round(enum tensor_output output, int64_t sum, int32_t unit)
{
    const bool half = output == TENSOR_TO_F16, negative = sum < 0;
    const int32_t fraction_bits = half ? 10 : output == TENSOR_TO_F32_E8M13 ? 13 : 23, least = half ? -14 : -126;
    const uint64_t magnitude = negative ? -(uint64_t)sum : (uint64_t)sum;
    if (magnitude == 0) return 0;
    int32_t exponent = 63 - __builtin_clzll(magnitude) + unit;
    if (exponent < least) exponent = least;
    const int32_t drop = exponent - fraction_bits - unit;                         /* bits of the magnitude behind the
                                                                                     last */
    uint64_t kept;
    if (drop <= 0) kept = magnitude << -drop;
    else if (drop > 63) kept = 0;
    else {
        kept = magnitude >> drop;
        const uint64_t rest = magnitude & ((UINT64_C(1) << drop) - 1), middle = UINT64_C(1) << (drop - 1);
        if (half && (rest > middle || (rest == middle && (kept & 1) != 0))) kept++;
    }
    if (kept == 0) return 0;
    if (kept >> (fraction_bits + 1) != 0) kept >>= 1, exponent++;
    if (exponent > (half ? 15 : 127)) return infinity_of(output, negative);
    const bool normal = kept >> fraction_bits != 0;
    const uint32_t width = half ? 10 : 23;
    const uint32_t fraction = (uint32_t)(kept & ((UINT64_C(1) << fraction_bits) - 1))
                              << (width - (uint32_t)fraction_bits);
    const uint32_t biased = normal ? (uint32_t)(exponent - least + 1) : 0;
    return (uint32_t)negative << (half ? 15 : 31) | biased << width | fraction;
}

/* ---- one fused step ---- */

static bool is_absent(int32_t exponent) { return exponent < ABSENT / 2; }

/* NaN and infinities among the terms: true, and the result, if there are any. */
static bool special_sum(enum tensor_output output, const float *sa, const float *sb, const int32_t *ea,
                        const int32_t *eb, uint32_t count, const struct accumulator *c, uint32_t *result)
{
    bool nan = c->nan, plus = c->infinite && !c->negative, minus = c->infinite && c->negative;
    for (uint32_t k = 0; k < count; k++) {
        if (is_absent(ea[k]) || is_absent(eb[k])) continue;
        const float product = sa[k] * sb[k];                                      /* finite significands have finite
                                                                                     products */
        nan |= product != product;
        plus |= product == INFINITY;
        minus |= product == -INFINITY;
    }
    *result = nan || (plus && minus) ? nan_of(output) : infinity_of(output, minus);
    return nan || plus || minus;
}

/* Four lanes at a time. */
typedef float float4 __attribute__((vector_size(16)));
typedef int32_t int4 __attribute__((vector_size(16)));

static float4 load_floats(const float *from)
{
    float4 v;
    memcpy(&v, from, sizeof v);
    return v;
}
static int4 load_integers(const int32_t *from)
{
    int4 v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* Largest exponent of the products, at least `largest`. */
static int32_t largest_exponent(const int32_t *ea, const int32_t *eb, uint32_t count, int32_t largest)
{
    int4 most = { largest, largest, largest, largest };
    for (uint32_t k = 0; k < count; k += 4) {
        const int4 e = load_integers(ea + k) + load_integers(eb + k), larger = e > most;
        most = (e & larger) | (most & ~larger);
    }
    for (int i = 0; i < 4; i++) largest = most[i] > largest ? most[i] : largest;
    return largest;
}

/* Sum of trunc(a[k] * b[k] * 2^-unit).  A product of significands has at most 22 bits: exact in float, as is its
 * multiple by a power of two; below 2^27, so that sixteen of them fit 32 bits.  A power below those of float is 0. */
static int64_t sum_products(const float *sa, const float *sb, const int32_t *ea, const int32_t *eb, uint32_t count,
                            int32_t unit)
{
    int64_t sum = 0;
    for (uint32_t from = 0; from < count; from += 16) {
        int4 part = { 0 };
        const uint32_t to = count - from < 16 ? count : from + 16;
        for (uint32_t k = from; k < to; k += 4) {
            const int4 biased = load_integers(ea + k) + load_integers(eb + k) - unit + 127,
                       bits = (biased << 23) & (biased > 0);
            float4 scale;
            memcpy(&scale, &bits, sizeof scale);
            part += __builtin_convertvector(load_floats(sa + k) * load_floats(sb + k) * scale, int4);
        }
        for (int i = 0; i < 4; i++) sum += part[i];
    }
    return sum;
}

/* The same where an infinity or a NaN stands beside an absent element: 0 * infinity is no number, but nobody multiplies
 * them. */
static int64_t sum_present(const float *sa, const float *sb, const int32_t *ea, const int32_t *eb, uint32_t count,
                           int32_t unit)
{
    int64_t sum = 0;
    for (uint32_t k = 0; k < count; k++)
        if (!is_absent(ea[k]) && !is_absent(eb[k]))
            sum += (int64_t)ldexp((double)sa[k] * (double)sb[k], ea[k] + eb[k] - unit);
    return sum;
}

/* The usual case in few operations: no special terms, c zero or normal, the result zero or normal.  False: fused_step
 * decides. */
static inline bool usual_step(const struct tensor_model *model, const float *sa, const float *sb, const int32_t *ea,
                              const int32_t *eb, uint32_t count, uint32_t c, uint32_t *d)
{
    const bool half = model->output == TENSOR_TO_F16;
    const uint32_t bits = half ? 10 : 23, highest = half ? 31 : 255, bias = half ? 15 : 127, sign = half ? 15 : 31;
    const uint32_t field = c >> bits & highest, fraction = c & ((1u << bits) - 1);
    if (field == highest || (field == 0 && fraction != 0)) return false;
    const int32_t exponent = field != 0 ? (int32_t)(field - bias) - model->c_down : model->least_exponent;
    const int32_t largest =
        largest_exponent(ea, eb, count, exponent > model->least_exponent ? exponent : model->least_exponent);
    const int32_t unit = largest - model->fraction_bits;
    int64_t sum = sum_products(sa, sb, ea, eb, count, unit);
    const uint64_t significand = (uint64_t)(fraction | (uint32_t)(field != 0) << bits) << 15; /* fraction bits are at
                                                                                                 most 25 */
    const int32_t down = 15 + (int32_t)bits + unit - exponent;
    const int64_t cut = down < 64 ? (int64_t)(significand >> down) : 0;
    sum += c >> sign & 1 ? -cut : cut;
    if (sum == 0) {
        *d = 0;
        return true;
    }
    const uint64_t magnitude = sum < 0 ? -(uint64_t)sum : (uint64_t)sum;
    /* the exponent field */
    const int32_t zeros = __builtin_clzll(magnitude), place = 63 - zeros + unit + (int32_t)bias;
    if (place < 1 || place >= (int32_t)highest) return false;
    const uint64_t top = magnitude << zeros;
    uint32_t kept = (uint32_t)(top >> (63 - bits));
    /* to nearest, ties to even */
    if (half) kept += top << 11 > (UINT64_C(1) << 63) - (kept & 1);
    if (model->output == TENSOR_TO_F32_E8M13) kept &= ~0x3ffu;
    *d = (uint32_t)(sum < 0) << sign | (((uint32_t)(place - 1) << bits) + kept);
    return true;
}

static uint32_t fused_step(const struct tensor_model *model, const float *sa, const float *sb, const int32_t *ea,
                           const int32_t *eb, uint32_t count, bool special, uint32_t c_code)
{
    uint32_t result;
    if (!special && usual_step(model, sa, sb, ea, eb, count, c_code, &result)) return result;
    struct accumulator c = accumulator_of(model->output, c_code);
    c.exponent -= model->c_down;
    if ((special || c.nan || c.infinite) && special_sum(model->output, sa, sb, ea, eb, count, &c, &result))
        return result;
    int32_t largest = c.magnitude != 0 && c.exponent > model->least_exponent ? c.exponent : model->least_exponent;
    largest = largest_exponent(ea, eb, count, largest);
    const int32_t unit = largest - model->fraction_bits;
    int64_t sum = special ? sum_present(sa, sb, ea, eb, count, unit) : sum_products(sa, sb, ea, eb, count, unit);
    const int32_t shift = c.exponent - (int32_t)c.fraction_bits - unit;
    const int64_t cut = shift >= 0    ? (int64_t)c.magnitude << (shift < 32 ? shift : 0)
                        : shift > -32 ? c.magnitude >> -shift
                                      : 0;
    sum += c.negative ? -cut : cut;
    return tensor_round(model->output, sum, unit);
}

/* ---- other ways to sum ---- */

static float half_to_float(uint32_t code)
{
    const struct accumulator c = accumulator_of(TENSOR_TO_F16, code);
    if (c.nan) return float_of(NAN_F32);
    if (c.infinite) return c.negative ? -INFINITY : INFINITY;
    return ldexpf(c.negative ? -(float)c.magnitude : (float)c.magnitude, c.exponent - 10);
}
/* To nearest even. */
static uint32_t float_to_half(float value)
{
    if (value != value) return NAN_F16;
    const uint32_t bits = bits_of(value), sign = bits >> 31;
    if ((bits & 0x7fffffffu) == 0) return sign << 15;
    if (value == INFINITY || value == -INFINITY) return infinity_of(TENSOR_TO_F16, sign != 0);
    const struct accumulator c = accumulator_of(TENSOR_TO_F32, bits);
    const int64_t magnitude = c.magnitude;
    const uint32_t code = tensor_round(TENSOR_TO_F16, sign != 0 ? -magnitude : magnitude, c.exponent - 23);
    return code | sign << 15;
}

static float output_to_float(enum tensor_output output, uint32_t code)
{
    return output == TENSOR_TO_F16 ? half_to_float(code) : float_of(code);
}
static uint32_t float_to_output(enum tensor_output output, float value)
{
    if (output == TENSOR_TO_F16) return float_to_half(value);
    return value != value ? (uint32_t)NAN_F32 : bits_of(value);
}

static uint32_t plain_dot(const struct tensor_model *model, const float *sa, const float *sb, const int32_t *ea,
                          const int32_t *eb, uint32_t length, uint32_t c)
{
    float d = ldexpf(output_to_float(model->output, c), -model->c_down);
    for (uint32_t k = 0; k < length; k++)
        if (!is_absent(ea[k]) && !is_absent(eb[k])) {
            const int32_t exponent = ea[k] + eb[k], half = exponent / 2;          /* a block scale may leave f32's
                                                                                     range, alone */
            d = fmaf(ldexpf(sa[k], half), ldexpf(sb[k], exponent - half), d);
        }
    return float_to_output(model->output, d);
}

/* ---- dot products ---- */

uint32_t tensor_dot(const struct tensor_model *model, const struct tensor_panel *a, uint32_t row_a,
                    const struct tensor_panel *b, uint32_t row_b, uint32_t c)
{
    const float *sa = a->significand + (size_t)row_a * a->length, *sb = b->significand + (size_t)row_b * b->length;
    const int32_t *ea = a->exponent + (size_t)row_a * a->length, *eb = b->exponent + (size_t)row_b * b->length;
    const uint32_t length = a->length;
    const bool special = a->special[row_a] || b->special[row_b];
    if (model->plain) return plain_dot(model, sa, sb, ea, eb, length, c);
    uint32_t d = model->late_add ? 0 : c;
    for (uint32_t k = 0; k < length; k += model->group) {
        const uint32_t count = length - k < model->group ? length - k : model->group;
        d = fused_step(model, sa + k, sb + k, ea + k, eb + k, count, special, d);
    }
    if (!model->late_add) return d;
    return float_to_output(model->output, output_to_float(model->output, d) + output_to_float(model->output, c));
}

void tensor_multiply(const struct tensor_model *model, const struct tensor_panel *a, const struct tensor_panel *b,
                     uint32_t *d)
{
    for (uint32_t i = 0; i < a->rows; i++)
        for (uint32_t j = 0; j < b->rows; j++) d[i * b->rows + j] = tensor_dot(model, a, i, b, j, d[i * b->rows + j]);
}

void tensor_multiply_integers(const int16_t *a, uint32_t rows_a, const int16_t *b, uint32_t rows_b, uint32_t k,
                              bool saturate, int32_t *d)
{
    for (uint32_t i = 0; i < rows_a; i++)
        for (uint32_t j = 0; j < rows_b; j++) {
            const int16_t *x = a + (size_t)i * k, *y = b + (size_t)j * k;
            int64_t sum = 0;
            uint32_t l = 0;
            for (; l + 16 <= k; l += 16) {
                int32_t part = 0;                             /* a fixed count: compilers make vector code of it */
                for (uint32_t n = 0; n < 16; n++) part += x[l + n] * y[l + n];
                sum += part;
            }
            for (; l < k; l++) sum += x[l] * y[l];
            d[i * rows_b + j] = tensor_accumulate(d[i * rows_b + j], sum, saturate);
        }
}

/* ---- which model ---- */

static bool is_fp8(enum tensor_format f) { return f == TENSOR_E4M3 || f == TENSOR_E5M2; }

/*   instruction      sm          operands  group fraction output                     late
 *   mma.sync         all         16 bit    16    25       f32 toward zero, f16 RN    no     [X], [K]
 *   mma.sync         all         tf32      8     25                                  no     [X], [K]
 *   mma.sync         90 to 103   fp8       k / 2 25                                  yes    ptxas: tensor_late_position
 *   mma.sync         120, 121    fp8..fp4  32    25                                  no     [X]
 *   wgmma            90          16, tf32  16, 8 25                                  no     [X], [K]
 *   wgmma            90          fp8       32    13       f32 with 13 bits, f16 RN   no     [X], [K]
 *   tcgen05          100, 103    all       all   25                                  no     [X] */
struct tensor_model tensor_model_of(enum tensor_mode mode, uint32_t sm, enum tensor_instruction instruction,
                                    enum tensor_format a, enum tensor_format b, bool f16_output, uint32_t k)
{
    const bool fp8 = is_fp8(a) && is_fp8(b);
    struct tensor_model model = { .group = (uint16_t)TENSOR_PADDED(k), .fraction_bits = 25,
                                  .least_exponent = LEAST_EXPONENT,
                                  .output = f16_output ? TENSOR_TO_F16 : TENSOR_TO_F32,
                                  .plain = mode == TENSOR_MODE_FP32 };
    if (instruction == TENSOR_WGMMA && fp8) {
        model.fraction_bits = 13;
        if (!f16_output) model.output = TENSOR_TO_F32_E8M13;
    }
    if (instruction == TENSOR_MMA_SYNC && fp8 && sm < 120) {
        model.group = (uint16_t)(k / 2);
        model.late_add = true;
    }
    return model;
}
