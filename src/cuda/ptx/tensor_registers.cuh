/* Loads and stores between registers and tensor memory (PTX ISA 9.7.16.8): whole warps, converged, the same address in
 * all threads. Warp w of a CTA reaches the lanes 32 (w % 4) to 32 (w % 4) + 31 alone, and the address says so.
 * Asynchronous: until tcgen05_wait_ld, tcgen05_wait_st.
 *
 * Thread t's register r lies, counted from the address (REPEAT: the .x of the instruction),
 *
 *   shape        registers   in lane                    in column
 *   32X32B       REPEAT      t                          r
 *   16X64B       REPEAT      t / 4 + 8 (t % 2)          2 r + t / 2 % 2
 *   16X128B      2 REPEAT    t / 4 + 8 (r % 2)          4 (r / 2) + t % 4
 *   16X256B      4 REPEAT    t / 4 + 8 (r / 2 % 2)      8 (r / 4) + 2 (t % 4) + r % 2
 *   16x32bx2     REPEAT      t % 16                     r; threads 16 to 31: SECOND + r
 *
 * HALVES: a register holds the low halves of two neighbouring columns, and so reaches twice as many. */
#pragma once

#include "cuda/ptx/tensor_memory.cuh"

enum tcgen05_shape { SHAPE_32X32B, SHAPE_16X64B, SHAPE_16X128B, SHAPE_16X256B };
enum tcgen05_width { WORDS, HALVES };
/* Of f32; ..._NAN: NaN if one of the numbers is. */
enum tcgen05_reduction {
    LD_MIN, LD_MAX, LD_MIN_ABS, LD_MAX_ABS, LD_MIN_NAN, LD_MAX_NAN, LD_MIN_ABS_NAN, LD_MAX_ABS_NAN
};

// clang-format off
template <tcgen05_shape SHAPE> struct tcgen05_shape_words;
template <> struct tcgen05_shape_words<SHAPE_32X32B> {
    static constexpr char text[] = "32x32b";
    enum { registers = 1 };
};
template <> struct tcgen05_shape_words<SHAPE_16X64B> {
    static constexpr char text[] = "16x64b";
    enum { registers = 1 };
};
template <> struct tcgen05_shape_words<SHAPE_16X128B> {
    static constexpr char text[] = "16x128b";
    enum { registers = 2 };
};
template <> struct tcgen05_shape_words<SHAPE_16X256B> {
    static constexpr char text[] = "16x256b";
    enum { registers = 4 };
};
template <tcgen05_width WIDTH> struct tcgen05_width_words;
template <> struct tcgen05_width_words<WORDS>  { static constexpr char ld[] = "", st[] = ""; };
template <> struct tcgen05_width_words<HALVES> { static constexpr char ld[] = ".pack::16b", st[] = ".unpack::16b"; };

template <tcgen05_reduction REDUCTION> struct tcgen05_reduction_words;
template <> struct tcgen05_reduction_words<LD_MIN> { static constexpr char text[] = ".min"; };
template <> struct tcgen05_reduction_words<LD_MAX> { static constexpr char text[] = ".max"; };
template <> struct tcgen05_reduction_words<LD_MIN_ABS> { static constexpr char text[] = ".min.abs"; };
template <> struct tcgen05_reduction_words<LD_MAX_ABS> { static constexpr char text[] = ".max.abs"; };
template <> struct tcgen05_reduction_words<LD_MIN_NAN> { static constexpr char text[] = ".min.NaN"; };
template <> struct tcgen05_reduction_words<LD_MAX_NAN> { static constexpr char text[] = ".max.NaN"; };
template <> struct tcgen05_reduction_words<LD_MIN_ABS_NAN> { static constexpr char text[] = ".min.abs.NaN"; };
template <> struct tcgen05_reduction_words<LD_MAX_ABS_NAN> { static constexpr char text[] = ".max.abs.NaN"; };

/* Lists of so many registers: in the text, as outputs and as inputs. */
#define LIST_1 "%0"
#define LIST_2 "%0, %1"
#define LIST_4 "%0, %1, %2, %3"
#define LIST_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define LIST_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define LIST_32 LIST_16 ", " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LIST_64 LIST_32 ", " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LIST_128 LIST_64 ", " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define OUT_1(r, i) "=r"(r[i])
#define OUT_2(r, i) OUT_1(r, i), OUT_1(r, (i) + 1)
#define OUT_4(r, i) OUT_2(r, i), OUT_2(r, (i) + 2)
#define OUT_8(r, i) OUT_4(r, i), OUT_4(r, (i) + 4)
#define OUT_16(r, i) OUT_8(r, i), OUT_8(r, (i) + 8)
#define OUT_32(r, i) OUT_16(r, i), OUT_16(r, (i) + 16)
#define OUT_64(r, i) OUT_32(r, i), OUT_32(r, (i) + 32)
#define OUT_128(r, i) OUT_64(r, i), OUT_64(r, (i) + 64)
#define IN_1(r, i) "r"(r[i])
#define IN_2(r, i) IN_1(r, i), IN_1(r, (i) + 1)
#define IN_4(r, i) IN_2(r, i), IN_2(r, (i) + 2)
#define IN_8(r, i) IN_4(r, i), IN_4(r, (i) + 4)
#define IN_16(r, i) IN_8(r, i), IN_8(r, (i) + 8)
#define IN_32(r, i) IN_16(r, i), IN_16(r, (i) + 16)
#define IN_64(r, i) IN_32(r, i), IN_32(r, (i) + 32)
#define IN_128(r, i) IN_64(r, i), IN_64(r, (i) + 64)

/* The instructions with COUNT registers; P, Q, R, S are the numbers of the operands behind them. */
template <int COUNT> struct tcgen05_registers;
#define TCGEN05_REGISTERS(COUNT, P, Q, R, S) \
    template <> struct tcgen05_registers<COUNT> { \
        template <tcgen05_shape SHAPE, int REPEAT, tcgen05_width WIDTH> \
        __device__ static inline void ld(uint32_t (&r)[COUNT], uint32_t address) \
        { \
            asm volatile("tcgen05.ld.sync.aligned." Q ".x" R S ".b32 {" LIST_##COUNT "}, [" P "];" : OUT_##COUNT(r, 0) \
                         : "r"(address), "C"(tcgen05_shape_words<SHAPE>::text), "n"(REPEAT), \
                         "C"(tcgen05_width_words<WIDTH>::ld)); \
        } \
        template <int SECOND, tcgen05_width WIDTH> \
        __device__ static inline void ld_16x32bx2(uint32_t (&r)[COUNT], uint32_t address) \
        { \
            asm volatile("tcgen05.ld.sync.aligned.16x32bx2.x" R S ".b32 {" LIST_##COUNT "}, [" P "], " Q ";" \
                         : OUT_##COUNT(r, 0) \
                         : "r"(address), "n"(SECOND), "n"(COUNT), "C"(tcgen05_width_words<WIDTH>::ld)); \
        } \
        template <tcgen05_reduction REDUCTION> \
        __device__ static inline void ld_red(uint32_t (&r)[COUNT], uint32_t (&reduced)[1], uint32_t address) \
        { \
            asm volatile("tcgen05.ld.red.sync.aligned.32x32b.x" R S ".f32 {" LIST_##COUNT "}, " P ", [" Q "];" \
                         : OUT_##COUNT(r, 0), "=r"(reduced[0]) \
                         : "r"(address), "n"(COUNT), "C"(tcgen05_reduction_words<REDUCTION>::text)); \
        } \
        template <tcgen05_shape SHAPE, int REPEAT, tcgen05_width WIDTH> \
        __device__ static inline void st(uint32_t address, const uint32_t (&r)[COUNT]) \
        { \
            asm volatile("tcgen05.st.sync.aligned." Q ".x" R S ".b32 [" P "], {" LIST_##COUNT "};" \
                         :: IN_##COUNT(r, 0), \
                         "r"(address), "C"(tcgen05_shape_words<SHAPE>::text), "n"(REPEAT), \
                         "C"(tcgen05_width_words<WIDTH>::st) \
                         : "memory"); \
        } \
        template <int SECOND, tcgen05_width WIDTH> \
        __device__ static inline void st_16x32bx2(uint32_t address, const uint32_t (&r)[COUNT]) \
        { \
            asm volatile("tcgen05.st.sync.aligned.16x32bx2.x" R S ".b32 [" P "], " Q ", {" LIST_##COUNT "};" \
                         :: IN_##COUNT(r, 0), \
                         "r"(address), "n"(SECOND), "n"(COUNT), "C"(tcgen05_width_words<WIDTH>::st) : "memory"); \
        } \
    };
TCGEN05_REGISTERS(1, "%1", "%2", "%3", "%4")
TCGEN05_REGISTERS(2, "%2", "%3", "%4", "%5")
TCGEN05_REGISTERS(4, "%4", "%5", "%6", "%7")
TCGEN05_REGISTERS(8, "%8", "%9", "%10", "%11")
TCGEN05_REGISTERS(16, "%16", "%17", "%18", "%19")
TCGEN05_REGISTERS(32, "%32", "%33", "%34", "%35")
TCGEN05_REGISTERS(64, "%64", "%65", "%66", "%67")
TCGEN05_REGISTERS(128, "%128", "%129", "%130", "%131")
#undef TCGEN05_REGISTERS
#undef LIST_1
#undef OUT_1
#undef IN_1
#undef LIST_2
#undef OUT_2
#undef IN_2
#undef LIST_4
#undef OUT_4
#undef IN_4
#undef LIST_8
#undef OUT_8
#undef IN_8
#undef LIST_16
#undef OUT_16
#undef IN_16
#undef LIST_32
#undef OUT_32
#undef IN_32
#undef LIST_64
#undef OUT_64
#undef IN_64
#undef LIST_128
#undef OUT_128
#undef IN_128
// clang-format on

template <tcgen05_shape SHAPE, int REPEAT, tcgen05_width WIDTH = WORDS, int COUNT>
__device__ static inline void tcgen05_ld(uint32_t (&r)[COUNT], uint32_t address)
{
    static_assert(COUNT == REPEAT * tcgen05_shape_words<SHAPE>::registers, "as many registers as the shape has");
    tcgen05_registers<COUNT>::template ld<SHAPE, REPEAT, WIDTH>(r, address);
}
template <tcgen05_shape SHAPE, int REPEAT, tcgen05_width WIDTH = WORDS, int COUNT>
__device__ static inline void tcgen05_st(uint32_t address, const uint32_t (&r)[COUNT])
{
    static_assert(COUNT == REPEAT * tcgen05_shape_words<SHAPE>::registers, "as many registers as the shape has");
    tcgen05_registers<COUNT>::template st<SHAPE, REPEAT, WIDTH>(address, r);
}
template <int SECOND, tcgen05_width WIDTH = WORDS, int COUNT>
__device__ static inline void tcgen05_ld_16x32bx2(uint32_t (&r)[COUNT], uint32_t address)
{
    tcgen05_registers<COUNT>::template ld_16x32bx2<SECOND, WIDTH>(r, address);
}
template <int SECOND, tcgen05_width WIDTH = WORDS, int COUNT>
__device__ static inline void tcgen05_st_16x32bx2(uint32_t address, const uint32_t (&r)[COUNT])
{
    tcgen05_registers<COUNT>::template st_16x32bx2<SECOND, WIDTH>(address, r);
}

/* tcgen05.ld.red, shape 32X32B of 2 columns or more, and the least or the largest of the thread's numbers (sm_103a
 * alone). */
template <tcgen05_reduction REDUCTION, int COUNT>
__device__ static inline void tcgen05_ld_red(uint32_t (&r)[COUNT], uint32_t (&reduced)[1], uint32_t address)
{
    tcgen05_registers<COUNT>::template ld_red<REDUCTION>(r, reduced, address);
}
