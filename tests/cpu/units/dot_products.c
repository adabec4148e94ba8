/* Dot products in vector registers. */
#include "dot_products.h"

#include "float_steps.h"

float emulated_vdpbf16ps(float sum, const uint16_t a[2], const uint16_t b[2])
{
    sum = flushing_fma(fp32_of_bf16(a[1]), fp32_of_bf16(b[1]), sum);
    return flushing_fma(fp32_of_bf16(a[0]), fp32_of_bf16(b[0]), sum);
}

void emulated_vdpbf16ps_512(float sums[16], const void *a, const void *b)
{
    uint16_t x[32], y[32];
    memcpy(x, a, sizeof x), memcpy(y, b, sizeof y);
    for (int i = 0; i < 16; i++) sums[i] = emulated_vdpbf16ps(sums[i], x + 2 * i, y + 2 * i);
}

void emulated_bfmmla(float sums[4], const uint16_t a[8], const uint16_t b[8])
{
    for (int i = 0; i < 4; i++)
        for (int pair = 0; pair < 2; pair++) {
            const uint16_t *x = a + i / 2 * 4 + pair * 2, *y = b + i % 2 * 4 + pair * 2;
            const float first = odd_product(fp32_of_bf16(x[0]), fp32_of_bf16(y[0]));
            const float second = odd_product(fp32_of_bf16(x[1]), fp32_of_bf16(y[1]));
            sums[i] = odd_sum(sums[i], odd_sum(first, second));
        }
}

void emulated_smmla(int32_t sums[4], const int8_t a[16], const int8_t b[16])
{
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 8; k++)
            sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)(a[i / 2 * 8 + k] * b[i % 2 * 8 + k]));
}
