/* Conversions without scales. */
#include "families.h"
#include "matrix/elements.h"
#include "valu.h"

static uint32_t to_unsigned(float f)
{
    return f != f || f <= -1.0f ? 0 : f >= 4294967296.0f ? UINT32_MAX : (uint32_t)f;
}
static uint32_t to_signed(float f)
{
    return f != f               ? 0
           : f >= 2147483648.0f ? INT32_MAX
           : f < -2147483648.0f ? (uint32_t)INT32_MIN
                                : (uint32_t)(int32_t)f;
}
LANES_OF(v_cvt_f32_i32, as_bits((float)SA))
LANES_OF(v_cvt_f32_u32, as_bits((float)A))
LANES_OF(v_cvt_u32_f32, to_unsigned(FA > -1.0f && FA < 0 ? 0.0f : FA))
LANES_OF(v_cvt_i32_f32, to_signed(FA))
LANES_OF(v_cvt_f16_f32, float_to_half(FA))
LANES_OF(v_cvt_f32_f16, as_bits(half_to_float((uint16_t)A)))
LANES_OF(v_cvt_f32_ubyte0, as_bits((float)(A & 0xff)))
LANES_OF(v_cvt_f32_ubyte1, as_bits((float)(A >> 8 & 0xff)))
LANES_OF(v_cvt_f32_ubyte2, as_bits((float)(A >> 16 & 0xff)))
LANES_OF(v_cvt_f32_ubyte3, as_bits((float)(A >> 24)))

LANES_OF(v_cvt_f32_bf16, A << 16)

static const struct row rows1[] = {
    { "v_cvt_f32_bf16", 91, "d1 s1g", ROW_FLOAT | ROW_FLOATS_OUT, 0, valu_run, v_cvt_f32_bf16 },
    { "v_cvt_f32_i32", 5, "d1 s1", ROW_FLOATS_OUT, 0, valu_run, v_cvt_f32_i32 },
    { "v_cvt_f32_u32", 6, "d1 s1", ROW_FLOATS_OUT, 0, valu_run, v_cvt_f32_u32 },
    { "v_cvt_u32_f32", 7, "d1 s1f", ROW_FLOAT, 0, valu_run, v_cvt_u32_f32 },
    { "v_cvt_i32_f32", 8, "d1 s1f", ROW_FLOAT, 0, valu_run, v_cvt_i32_f32 },
    { "v_cvt_f16_f32", 10, "d1 s1f", ROW_FLOAT, 0, valu_run, v_cvt_f16_f32 },
    { "v_cvt_f32_f16", 11, "d1 s1h", ROW_FLOAT | ROW_FLOATS_OUT, 0, valu_run, v_cvt_f32_f16 },
    { "v_cvt_f32_ubyte0", 17, "d1 s1", ROW_FLOATS_OUT, 0, valu_run, v_cvt_f32_ubyte0 },
    { "v_cvt_f32_ubyte1", 18, "d1 s1", ROW_FLOATS_OUT, 0, valu_run, v_cvt_f32_ubyte1 },
    { "v_cvt_f32_ubyte2", 19, "d1 s1", ROW_FLOATS_OUT, 0, valu_run, v_cvt_f32_ubyte2 },
    { "v_cvt_f32_ubyte3", 20, "d1 s1", ROW_FLOATS_OUT, 0, valu_run, v_cvt_f32_ubyte3 },
};
const struct family family_convert1 = FAMILY("Vector ALU Operations", FORMAT_VOP1, rows1);

LANES_OF(v_cvt_pk_bf16_f32, float_to_bfloat(FA) | (uint32_t)float_to_bfloat(FB) << 16)
LANES_OF(v_cvt_pk_f16_f32, float_to_half(FA) | (uint32_t)float_to_half(FB) << 16)

/* Cut towards zero; what is too large becomes the largest number. */
static uint32_t cut_to_half(float f)
{
    const uint16_t h = float_to_half(f);
    const float back = half_to_float(h);
    return f == f && fabsf(back) > fabsf(f) ? h - 1u : h;
}
LANES_OF(v_cvt_pkrtz_f16_f32, cut_to_half(FA) | cut_to_half(FB) << 16)
/* A byte of C: rounded to nearest even, from 0 to 255. */
static uint32_t to_byte(float f) { return f != f || f <= 0 ? 0 : f >= 255 ? 255 : (uint32_t)rintf(f); }
static void v_cvt_pk_u8_f32(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++) {
        const uint32_t shift = 8 * (B & 3);
        x->d[l] = (C & ~(0xffu << shift)) | to_byte(FA) << shift;
    }
}

static const struct row rows3[] = {
    { "v_cvt_pkrtz_f16_f32", 662, "d1 s1f s1f", ROW_FLOAT, 0, valu_run, v_cvt_pkrtz_f16_f32 },
    { "v_cvt_pk_u8_f32", 477, "d1 s1f s1 s1", ROW_FLOAT, 0, valu_run, v_cvt_pk_u8_f32 },
    { "v_cvt_pk_f16_f32", 615, "d1 s1f s1f", ROW_FLOAT, 0, valu_run, v_cvt_pk_f16_f32 },
    { "v_cvt_pk_bf16_f32", 616, "d1 s1f s1f", ROW_FLOAT, 0, valu_run, v_cvt_pk_bf16_f32 },
};
const struct family family_convert3 = FAMILY("Vector ALU Operations", FORMAT_VOP3, rows3);
