/* Exact arithmetic on binary floating-point numbers of any of PTX's formats, rounded once, in any rounding mode, with
 * or without flushing of subnormals.  Independent of the host's floating-point mode. */
#ifndef CUDASIM_INSTRUCTIONS_ARITHMETIC_REAL_H
#define CUDASIM_INSTRUCTIONS_ARITHMETIC_REAL_H

#include "instructions/table/lanes.h"

struct real_format {
    uint8_t exponent_bits, mantissa_bits;
    bool has_infinity; /* the largest exponent means infinity and NaN, as in IEEE 754; else all but NaN are numbers */
    uint64_t nan;                         /* what operations give */
};
extern const struct real_format real_f16, real_bf16, real_f32, real_f64, real_tf32;
const struct real_format *real_format_of(enum ptx_type type);      /* f16, bf16, f32, f64 (and their x2), tf32; else
                                                                      NULL */

enum real_kind { REAL_ZERO, REAL_FINITE, REAL_INFINITE, REAL_NAN };

/* sign, magnitude * 2^exponent; sticky: and something less than 1 more in the magnitude. */
struct real { enum real_kind kind; bool negative, sticky; int32_t exponent; uint128 magnitude; };

struct real real_unpack(const struct real_format *f, uint64_t bits, bool ftz);
uint64_t real_pack(const struct real_format *f, const struct real *x, enum rounding rounding, bool ftz);

/* The sign of an exact zero sum depends on the rounding. */
struct real real_add(const struct real *a, const struct real *b, enum rounding rounding);
struct real real_multiply(const struct real *a, const struct real *b);
struct real real_divide(const struct real *a, const struct real *b);
struct real real_square_root(const struct real *a);

/* To an integer of `bits` bits, clamped to its range; NaN gives nan. */
uint64_t real_to_integer(const struct real *x, enum rounding rounding, uint32_t bits, bool is_signed, uint64_t nan);
struct real real_from_integer(uint64_t value, uint32_t bits, bool is_signed);
/* To an integral value of the same format. */
struct real real_round_integral(const struct real *x, enum rounding rounding);

static inline float bits_f32(uint64_t bits)
{
    const union { uint32_t u; float f; } v = { .u = (uint32_t)bits };
    return v.f;
}
static inline uint64_t f32_bits(float value)
{
    const union { float f; uint32_t u; } v = { .f = value };
    return v.u;
}
static inline double bits_f64(uint64_t bits)
{
    const union { uint64_t u; double f; } v = { .u = bits };
    return v.f;
}
static inline uint64_t f64_bits(double value)
{
    const union { double f; uint64_t u; } v = { .f = value };
    return v.u;
}
static inline bool is_nan32(uint64_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }
static inline bool is_nan64(uint64_t bits) { return (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000); }
/* Subnormals become zeros of their sign. */
static inline uint64_t flush32(uint64_t bits)
{
    return (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits & UINT32_MAX;
}

#endif
