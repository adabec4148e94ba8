/* Matrix units behind one interface. */
#include "units.h"

#include "core/core.h"
#include "dot_products.h"
#include "emulated_tiles.h"

void configure_tiles(uint8_t bytes[64], const struct shapes *s)
{
    const int rows[3] = { s->rows, s->rows, s->words }, row_bytes[3] = { 4 * s->columns, 4 * s->words, 4 * s->columns };
    memset(bytes, 0, 64);
    bytes[0] = 1;
    for (int i = 0; i < 3; i++) bytes[48 + i] = (uint8_t)rows[i], bytes[16 + 2 * i] = (uint8_t)row_bytes[i];
}

/* In plain C ------------------------------------------------------------------------------------------------------- */

static void vdpbf16ps_in_c(float *sums, const uint16_t *a, const uint16_t *b) { emulated_vdpbf16ps_512(sums, a, b); }

static void tiles_in_c(const struct shapes *s, bool integers, struct memory *m)
{
    uint8_t bytes[64];
    configure_tiles(bytes, s);
    emulated_ldtilecfg(bytes);
    for (int i = 0; i < 3; i++) emulated_tileloadd(i, m->bytes[i], 64);
    if (integers) emulated_tdpbssd(SUMS, A, B);
    else emulated_tdpbf16ps(SUMS, A, B);
    emulated_tilestored(SUMS, m->bytes[SUMS], 64);
    emulated_tilerelease();
}

static void use_tiles_in_c(const uint8_t configuration[64], enum use use)
{
    emulated_ldtilecfg(configuration);
    if (use == ZERO_AN_ABSENT_TILE) emulated_tilezero(5);
    if (use == MULTIPLY) emulated_tdpbf16ps(SUMS, A, B);
    if (use != USE_RELEASED) return;
    emulated_tilerelease();
    emulated_tilezero(SUMS);
}

const struct units emulated_units = {
    .name = "emulated", .vdpbf16ps = vdpbf16ps_in_c, .bfmmla = emulated_bfmmla, .smmla = emulated_smmla,
    .tiles = tiles_in_c, .use_tiles = use_tiles_in_c,
};

/* This machine's --------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx512f,avx512bf16"))) static void vdpbf16ps(float *sums, const uint16_t *a, const uint16_t *b)
{
    const __m512bh x = (__m512bh)_mm512_loadu_si512(a), y = (__m512bh)_mm512_loadu_si512(b);
    _mm512_storeu_ps(sums, _mm512_dpbf16_ps(_mm512_loadu_ps(sums), x, y));
}

/* By assembler: gcc 12's intrinsics tell it of 8 of the 64 bytes that ldtilecfg reads. */
#define TILES __attribute__((target("amx-tile,amx-bf16,amx-int8")))
#define LOAD(tile, from) __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(from), "r"(64L) : "memory")
TILES static void configure(const uint8_t bytes[64])
{
    __asm__ volatile("ldtilecfg %0" : : "m"(*(const uint8_t(*)[64])bytes));
}
TILES static void multiply_bf16(void) { __asm__ volatile("tdpbf16ps %tmm2, %tmm1, %tmm0"); }
TILES static void release(void) { __asm__ volatile("tilerelease"); }

TILES static void tiles(const struct shapes *s, bool integers, struct memory *m)
{
    uint8_t bytes[64];
    configure_tiles(bytes, s);
    configure(bytes);
    LOAD(0, m->bytes[SUMS]);
    LOAD(1, m->bytes[A]);
    LOAD(2, m->bytes[B]);
    if (integers) __asm__ volatile("tdpbssd %tmm2, %tmm1, %tmm0");
    else multiply_bf16();
    __asm__ volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(m->bytes[SUMS]), "r"(64L) : "memory");
    release();
}

TILES static void use_tiles(const uint8_t configuration[64], enum use use)
{
    configure(configuration);
    if (use == ZERO_AN_ABSENT_TILE) __asm__ volatile("tilezero %tmm5");
    if (use == MULTIPLY) multiply_bf16();
    if (use != USE_RELEASED) return;
    release();
    __asm__ volatile("tilezero %tmm0");
}

struct units units_of_this_machine(void)
{
    const uint32_t features = bsmi_cpu_detect(BSM_CPU_ALL);
    struct units found = { .name = "this machine" };
    if ((features & BSM_CPU_AVX512_BF16) != 0) found.vdpbf16ps = vdpbf16ps;
    if ((features & BSM_CPU_AMX) != 0) found.tiles = tiles, found.use_tiles = use_tiles;
    return found;
}
#elif defined(__aarch64__)
#include <arm_neon.h>

/* By their names in the assembler: no flag and no header needs to know them. */
static void bfmmla(float *sums, const uint16_t *a, const uint16_t *b)
{
    float32x4_t s = vld1q_f32(sums);
    const uint16x8_t x = vld1q_u16(a), y = vld1q_u16(b);
    __asm__(".arch armv8.2-a+bf16\n\tbfmmla %[s].4s, %[x].8h, %[y].8h" : [s] "+w"(s) : [x] "w"(x), [y] "w"(y));
    vst1q_f32(sums, s);
}

static void smmla(int32_t *sums, const int8_t *a, const int8_t *b)
{
    int32x4_t s = vld1q_s32(sums);
    const int8x16_t x = vld1q_s8(a), y = vld1q_s8(b);
    __asm__(".arch armv8.2-a+i8mm\n\tsmmla %[s].4s, %[x].16b, %[y].16b" : [s] "+w"(s) : [x] "w"(x), [y] "w"(y));
    vst1q_s32(sums, s);
}

struct units units_of_this_machine(void)
{
    const uint32_t features = bsmi_cpu_detect(BSM_CPU_ALL);
    struct units found = { .name = "this machine" };
    if ((features & BSM_CPU_BF16) != 0) found.bfmmla = bfmmla;
    if ((features & BSM_CPU_I8MM) != 0) found.smmla = smmla;
    return found;
}
#else
struct units units_of_this_machine(void) { return (struct units){ .name = "this machine" }; }
#endif
