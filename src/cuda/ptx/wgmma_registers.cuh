/* wgmma (PTX ISA 9.7.15) with its first operand in registers: bf16 products of warpgroups into fp32 registers, the
 * second operand from shared memory as wgmma.cuh says.
 *
 * The first operand, 64 x 16 (9.7.15.5.1.1): thread t has rows t / 32 * 16 + t % 32 / 4, in a[0] and a[2], and that +
 * 8, in a[1] and a[3]; columns t % 4 * 2 and that + 1, in a[0] and a[1], and 8 columns further, in a[2] and a[3].
 * Nothing may write to these registers until a wait says that the products are made. */
#pragma once

#include "wgmma.cuh"

/* The half of a descriptor that is the same wherever the tile lies; b is the other one. */
#define WGMMA_DESCRIPTOR_HIGH "0x40000040"

/* d[64 x N] = a[64 x 16] b[N x 16]^T + d  (9.7.15.5.2). */
template <int N> struct wgmma_bf16_registers;

// clang-format off

template <> struct wgmma_bf16_registers<16> {
    __device__ static inline void multiply(float (&d)[8], const uint32_t *a, uint32_t b)
    {
        asm volatile("{\n.reg .b64 q;\nmov.b64 q, {%12, " WGMMA_DESCRIPTOR_HIGH "};\n"
            "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {"
            "%0, %1, %2, %3, %4, %5, %6, %7"
            "}, {%8, %9, %10, %11}, q, 1, 1, 1, 0;\n}"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b));
    }
};

template <> struct wgmma_bf16_registers<32> {
    __device__ static inline void multiply(float (&d)[16], const uint32_t *a, uint32_t b)
    {
        asm volatile("{\n.reg .b64 q;\nmov.b64 q, {%20, " WGMMA_DESCRIPTOR_HIGH "};\n"
            "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
            "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
            "}, {%16, %17, %18, %19}, q, 1, 1, 1, 0;\n}"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
              "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b));
    }
};

template <> struct wgmma_bf16_registers<64> {
    __device__ static inline void multiply(float (&d)[32], const uint32_t *a, uint32_t b)
    {
        asm volatile("{\n.reg .b64 q;\nmov.b64 q, {%36, " WGMMA_DESCRIPTOR_HIGH "};\n"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
            "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
            "%23, %24, %25, %26, %27, %28, %29, %30, %31"
            "}, {%32, %33, %34, %35}, q, 1, 1, 1, 0;\n}"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
              "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
              "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
              "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b));
    }
};

// clang-format on
