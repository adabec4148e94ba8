/* Which instructions this CPU and operating system allow. */
#include "core.h"

/* needs: what kernels of the feature use besides, so that its name alone in a mask leaves them. */
enum {
    AVX2_NEEDS = BSM_CPU_FMA, AVX512_NEEDS = AVX2_NEEDS | BSM_CPU_AVX2,
    UNITS_NEED = AVX512_NEEDS | BSM_CPU_AVX512 | BSM_CPU_AVX512_VNNI,
};
static const struct { const char *name; uint32_t bit, needs; } features[] = {
    { "fma", BSM_CPU_FMA, 0 },
    { "avx2", BSM_CPU_AVX2, AVX2_NEEDS },
    { "avx512", BSM_CPU_AVX512, AVX512_NEEDS },
    { "avx512_vnni", BSM_CPU_AVX512_VNNI, AVX512_NEEDS | BSM_CPU_AVX512 },
    { "dotprod", BSM_CPU_DOTPROD, 0 },
    { "i8mm", BSM_CPU_I8MM, 0 },
    { "avx512_bf16", BSM_CPU_AVX512_BF16, UNITS_NEED },
    { "amx", BSM_CPU_AMX, UNITS_NEED },
    { "bf16", BSM_CPU_BF16, 0 },
};
enum { FEATURE_COUNT = sizeof features / sizeof features[0] };

const char *bsm_cpu_feature_name(uint32_t bit)
{
    for (int i = 0; i < FEATURE_COUNT; i++)
        if (features[i].bit == bit) return features[i].name;
    return NULL;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>

/* Which registers the operating system keeps: XCR0.  By its bytes: xgetbv has an intrinsic under a feature's flag
 * alone. */
static unsigned kept_registers(void)
{
    unsigned low, high;
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

#ifdef BSMI_EMULATED_UNITS
/* A build for tests: matrix units are emulated (tests/cpu/units) wherever what packs for them is there. */
static bool has_tile_unit(void) { return true; }
static bool may_use_tiles(void) { return true; }
static bool has_bf16_dot_products(void) { return true; }
#else
static bool has_tile_unit(void)
{
    enum { TILES = 1 << 17 | 1 << 18 };                       /* of XCR0: their configuration and their data */
    enum { AMX = 1 << 22 | 1 << 24 | 1 << 25 };               /* of CPUID 7.0's EDX: AMX-BF16, AMX-TILE, AMX-INT8 */
    unsigned a, b, c, d;
    return (kept_registers() & TILES) == TILES && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & AMX) == AMX;
}

#if defined(__linux__)
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool tiles_granted;

static void ask_for_tiles(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };     /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA */
    tiles_granted = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

/* Linux keeps the tiles' data, 8 KiB a thread, of programs alone that asked for it; it refuses where a thread's stack
 * for signals has no room for it (Documentation/arch/x86/xstate.rst).  Asked once, so that all contexts agree. */
static bool may_use_tiles(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, ask_for_tiles) == 0 && tiles_granted;
}
#else
static bool may_use_tiles(void) { return false; }
#endif

/* Of CPUID 7.1. */
static bool has_bf16_dot_products(void)
{
    enum { AVX512_BF16 = 1 << 5 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & AVX512_BF16) != 0;
}
#endif

/* Not __builtin_cpu_supports: some compilers' runtime libraries have it and fill nothing in. */
static uint32_t found_by_cpuid(void)
{
    enum { YMM = 0x06, ZMM = 0xe6 };                          /* of XCR0, the registers below included */
    enum { OSXSAVE = 1 << 27, AVX512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ };
    unsigned a, b, c, d, extended_b = 0, extended_c = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & OSXSAVE) == 0 || (c & bit_AVX) == 0) return 0;
    const unsigned kept = kept_registers();
    if ((kept & YMM) != YMM) return 0;
    const bool fma = (c & bit_FMA) != 0, f16c = (c & bit_F16C) != 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) extended_b = b, extended_c = c;
    const bool zmm = (kept & ZMM) == ZMM, avx512vl = (extended_b & bit_AVX512VL) != 0;
    uint32_t found = 0;
    if (fma) found |= BSM_CPU_FMA;
    if ((extended_b & bit_AVX2) != 0 && f16c) found |= BSM_CPU_AVX2;
    if (zmm && (extended_b & AVX512) == AVX512 && avx512vl) found |= BSM_CPU_AVX512;
    if (zmm && (extended_c & bit_AVX512VNNI) != 0) found |= BSM_CPU_AVX512_VNNI;
    if (zmm && has_bf16_dot_products()) found |= BSM_CPU_AVX512_BF16;
    /* What packs tiles needs AVX512_VBMI, which every CPU with AMX has. */
    if (zmm && (extended_c & bit_AVX512VBMI) != 0 && has_tile_unit()) found |= BSM_CPU_AMX;
    return found;
}

uint32_t bsmi_cpu_detect(uint32_t wanted)
{
    const uint32_t found = found_by_cpuid() & wanted;
    return (found & BSM_CPU_AMX) != 0 && !may_use_tiles() ? found & ~(uint32_t)BSM_CPU_AMX : found;
}
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

uint32_t bsmi_cpu_detect(uint32_t wanted)
{
    uint32_t found = 0;
    if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) found |= BSM_CPU_DOTPROD;
    if ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0) found |= BSM_CPU_I8MM;
    if ((getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0) found |= BSM_CPU_BF16;
    return found & wanted;
}
#else
uint32_t bsmi_cpu_detect(uint32_t wanted) { return (void)wanted, 0; }
#endif

bool bsmi_cpu_parse(const char *list, uint32_t *allowed)
{
    *allowed = 0;
    for (const char *word = list; *word != '\0';) {
        const size_t length = strcspn(word, ",");
        uint32_t bit = 0;
        for (int i = 0; i < FEATURE_COUNT; i++)
            if (strlen(features[i].name) == length && memcmp(features[i].name, word, length) == 0)
                bit = features[i].bit | features[i].needs;
        if (bit == 0 && !(length == 4 && memcmp(word, "none", 4) == 0)) {
            bsmi_fail(BSM_EINVAL,
                      "BLOCKSCALE_CPU=%s: \"%.*s\" is no feature; known are fma, avx2, avx512, avx512_vnni, dotprod, "
                      "i8mm, avx512_bf16, amx, bf16, none",
                      list, (int)length, word);
            return false;
        }
        *allowed |= bit;
        word += length + (word[length] == ',');
    }
    return true;
}
