/* A thread an element: what clang makes of arithmetic in all types. */
#include "device.h"

typedef _Float16 half2 __attribute__((ext_vector_type(2)));
typedef short short2 __attribute__((ext_vector_type(2)));
typedef u16 ushort2 __attribute__((ext_vector_type(2)));

KERNEL(packed_shorts)
{
    ELEMENT(short2, 8);
    o[0] = x + y, o[1] = x - y, o[2] = x * y, o[3] = x << (y & 15);
    o[4] = __builtin_elementwise_max(x, y), o[5] = __builtin_elementwise_min(x, y);
    o[6] = x >> (y & 15), o[7] = __builtin_elementwise_add_sat(x, y);
}
KERNEL(packed_unsigned)
{
    ELEMENT(ushort2, 6);
    o[0] = x >> (y & 15), o[1] = __builtin_elementwise_max(x, y), o[2] = __builtin_elementwise_min(x, y);
    o[3] = __builtin_elementwise_sub_sat(x, y), o[4] = x * y + y, o[5] = __builtin_elementwise_add_sat(x, y.yx);
}
KERNEL(packed_halves)
{
    ELEMENT(half2, 6);
    o[0] = x + y, o[1] = x * y, o[2] = __builtin_elementwise_fma(x, y, x), o[3] = __builtin_elementwise_max(x, y);
    o[4] = __builtin_elementwise_min(x, y), o[5] = x - y.yx;
}
KERNEL(halves)
{
    ELEMENT(_Float16, 6);
    o[0] = x + y, o[1] = x * y, o[2] = x / y, o[3] = x < y ? x : -y, o[4] = (_Float16)((float)x * 3.5f + (float)y);
    o[5] = (_Float16)(int)x;
}
KERNEL(shorts)
{
    ELEMENT(short, 8);
    const u16 ux = (u16)x, uy = (u16)y;
    o[0] = (short)(ux + uy), o[1] = (short)(ux * uy), o[2] = x >> (y & 15), o[3] = x < y ? x : y;
    o[4] = (short)(ux / (uy | 1)), o[5] = x % (short)(y | 1), o[6] = (short)(ux * uy + 3);
    o[7] = (short)(ux >> (y & 7));
}
KERNEL(bytes)
{
    ELEMENT(u8, 4);
    o[0] = (u8)((x << 3 | x >> 5) ^ (x * 37)), o[1] = (u8)(x + y > 255 ? 255 : x + y), o[2] = x > y ? x - y : y - x;
    o[3] = (u8)(x / (y | 1));
}
KERNEL(integers)
{
    ELEMENT(int, 8);
    const u32 ux = (u32)x, uy = (u32)y;
    o[0] = (int)(ux / (uy | 1)), o[1] = x % (y | 1), o[2] = (int)(ux << (uy & 31) | ux >> (-uy & 31));
    o[3] = __builtin_popcount(ux) + __builtin_clz(ux | 1) + __builtin_ctz(ux | 1u << 31);
    o[4] = (int)__builtin_elementwise_add_sat(ux, uy), o[5] = __builtin_elementwise_sub_sat(x, y);
    o[6] = (int)__builtin_bitreverse32(ux) ^ (int)__builtin_bswap32(uy), o[7] = (int)((u64)ux * uy >> 32);
}
KERNEL(longs)
{
    ELEMENT(u64, 8);
    o[0] = x * y, o[1] = (u64)((long)x / (long)(y | 1)), o[2] = x % (y | 1), o[3] = x << (y & 63);
    o[4] = (long)x > (long)y ? x : y, o[6] = x - y, o[7] = (u64)((long)x >> (y & 63));
    o[5] = (u64)(__builtin_popcountll(x) + __builtin_clzll(y | 1) + __builtin_ctzll(x | 1ull << 63));
}
KERNEL(doubles)
{
    ELEMENT(double, 8);
    o[0] = x + y, o[1] = x * y, o[2] = x / y, o[3] = x < y ? x : y, o[4] = __builtin_sqrt(x * x + 1);
    o[5] = (double)(float)x, o[6] = (double)(int)x, o[7] = __builtin_floor(x) - __builtin_trunc(y);
}
KERNEL(floats)
{
    ELEMENT(float, 8);
    o[0] = x / y, o[1] = __builtin_sqrtf(x * x), o[2] = __builtin_floorf(x), o[3] = 1 / x;
    o[4] = __builtin_rintf(y) + __builtin_ceilf(x), o[5] = __builtin_ldexpf(x, (int)y & 7);
    o[6] = __builtin_fmaf(x, y, x), o[7] = x > y ? x : y;
}
KERNEL(divisions)
{
    ELEMENT(float, 2);
    o[0] = x / y, o[1] = 1 / x;
}
KERNEL(wide_divisions)
{
    ELEMENT(double, 2);
    o[0] = x / y, o[1] = 1 / x;
}
KERNEL(transcendental)
{
    ELEMENT(float, 4);
    const float a = __builtin_fabsf(x) + 0.125f;
    o[0] = __builtin_logf(a), o[1] = __builtin_exp2f(y), o[2] = __builtin_log10f(a), o[3] = __builtin_expf(y);
}
KERNEL(brains)
{
    ELEMENT(__bf16, 3);
    o[0] = x + y, o[1] = x * y, o[2] = x / y;
}
