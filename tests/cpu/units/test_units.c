/* The emulated units against this machine's, bit for bit. */
#include "dot_products.h"
#include "emulated_tiles.h"
#include "float_steps.h"
#include "test.h"

#include "core/core.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Numbers ---------------------------------------------------------------------------------------------------------- */

/* Where numbers of a kind lie: operands' exponents, and the sums'. */
static const struct kind {
    const char *name;
    int low, high, sum_low, sum_high;
    uint16_t mask;                        /* of the operands' bits that may be set */
} kinds[] = {
    { "near 1", -3, 3, -6, 6, 0xffff },             { "far apart", -40, 40, -90, 90, 0xffff },
    { "ties", 0, 1, 24, 26, 0xffe0 },               { "ties of the second product", -1, 12, 24, 26, 0xfff0 },
    { "products around 2^-126", -65, -61, -126, -122, 0xffff },
    { "few bits around 2^-126", -65, -61, -126, -124, 0xfff0 },
    { "subnormal sums", -70, -60, -127, -120, 0xffff }, { "subnormal operands", -127, -100, -30, -20, 0xffff },
    { "operands and sums subnormal", -127, 4, -127, -115, 0xffff },
    { "overflow", 60, 64, 120, 127, 0xffff },       { "infinities", 61, 128, 124, 128, 0xff80 },
    { "all bits", -127, 128, -127, 128, 0xffff },
};
enum { KINDS = sizeof kinds / sizeof kinds[0], ALL_BITS = KINDS - 1 };

/* -127: zeros and subnormal numbers, 128: infinities and NaN. */
static uint32_t some_bits(struct test *t, int low, int high)
{
    return (uint32_t)rnd(t) << 31 | (uint32_t)(rnd_between(t, low, high) + 127) << 23 | (uint32_t)(rnd(t) >> 41);
}

static uint16_t some_bf16(struct test *t, const struct kind *kind)
{
    if (rnd_below(t, 40) == 0) return (uint16_t)(rnd(t) << 15);                              /* a zero */
    return (uint16_t)(some_bits(t, kind->low, kind->high) >> 16) & kind->mask;
}

static float some_sum(struct test *t, const struct kind *kind)
{
    return fp32_of_bits(rnd_below(t, 20) == 0 ? (uint32_t)rnd(t) << 31 : some_bits(t, kind->sum_low, kind->sum_high));
}

static bool same(float x, float y) { return (isnan(x) && isnan(y)) || bits_of_fp32(x) == bits_of_fp32(y); }

/* The steps -------------------------------------------------------------------------------------------------------- */

/* What is below 2^-126 in 24 bits is a zero, what rounds to it stays. */
static void underflow_is_seen_after_rounding(struct test *t)
{
    const float edge = 0x1p-126f;                                     /* 24 bits below it: steps of 2^-150 */
    CHECK(t, same(flushing_fma(-0x1p-75f, 0x1p-76f, edge), edge));                     /* a tie, to even */
    CHECK(t, same(flushing_fma(-0x1.02p-75f, 0x1p-76f, edge), 0));                     /* more than half off */
    CHECK(t, same(flushing_fma(-0x1.fep-76f, 0x1p-76f, edge), edge));
    CHECK(t, same(flushing_fma(0x1.02p-75f, 0x1p-76f, -edge), -0.0f));
    CHECK(t, same(flushing_fma(-0x1p-100f, 0x1p-100f, edge), edge) && same(flushing_fma(-1, 0x1p-126f, edge), 0));
    CHECK(t, same(flushing_fma(0x1.fffffep-100f, 0x1p-27f, 0), 0) && same(flushing_add(0x1p-125f, -0x1.8p-126f), 0));
    CHECK(t, same(flushing_add(-0x1p-125f, 0x1.8p-126f), -0.0f) && same(flushing_add(edge, 0x1p-127f), edge));
}

static void odd_rounding(struct test *t)
{
    CHECK(t, same(odd_sum(1, 0x1p-60f), 0x1.000002p0f) && same(odd_sum(1, -0x1p-60f), 0x1.fffffep-1f));
    CHECK(t, same(odd_sum(1, 0x1p-149f), 1) && same(odd_sum(0x1.000002p0f, 0x1p-24f), 0x1.000002p0f));
    CHECK(t, same(odd_sum(0x1.000004p0f, 0x1p-24f), 0x1.000006p0f) && same(odd_sum(3, 4), 7));
    CHECK(t, same(odd_sum(0x1.fffffep127f, 0x1p100f), 0x1.fffffep127f));
    CHECK(t, same(odd_sum(0x1p127f, 0x1p127f), INFINITY) && isnan(odd_sum(INFINITY, -INFINITY)));
    CHECK(t, same(odd_product(0x1.fep-64f, 0x1.fep-64f), 0x1.fc04p-127f * 0) && same(odd_sum(1, -1), 0));
    CHECK(t, same(odd_product(-0x1p-64f, 0x1p-62f), -0x1p-126f) && same(odd_product(0x1p-63f, -0x1p-64f), -0.0f));
    CHECK(t, same(odd_product(0x1p64f, -0x1p64f), -INFINITY) && isnan(odd_product(INFINITY, 0)));
}

/* Dot products of x86 ---------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#include <immintrin.h>

enum { LANES = 16, ROUNDS = 20000 };

__attribute__((target("avx512f,avx512bf16"))) static void vdpbf16ps(float *sums, const uint16_t *a, const uint16_t *b)
{
    const __m512bh x = (__m512bh)_mm512_loadu_si512(a), y = (__m512bh)_mm512_loadu_si512(b);
    _mm512_storeu_ps(sums, _mm512_dpbf16_ps(_mm512_loadu_ps(sums), x, y));
}

static void compare_lanes(struct test *t, const char *kind, const float *sums, const uint16_t *a, const uint16_t *b)
{
    float got[LANES];
    memcpy(got, sums, sizeof got);
    vdpbf16ps(got, a, b);
    for (int i = 0; i < LANES; i++) {
        const float want = emulated_vdpbf16ps(sums[i], a + 2 * i, b + 2 * i);
        if (!same(want, got[i]))
            FAIL(t, "%s: %a + %a * %a + %a * %a is %a, emulated %a", kind, (double)sums[i],
                 (double)fp32_of_bf16(a[2 * i]), (double)fp32_of_bf16(b[2 * i]), (double)fp32_of_bf16(a[2 * i + 1]),
                 (double)fp32_of_bf16(b[2 * i + 1]), (double)got[i], (double)want);
    }
}

static void dot_products_of_bf16(struct test *t)
{
    if ((bsmi_cpu_detect(BSM_CPU_ALL) & BSM_CPU_AVX512_BF16) == 0) { test_skip(t, "no AVX512_BF16"); return; }
    uint16_t a[2 * LANES], b[2 * LANES];
    float sums[LANES];
    for (int n = 0; n < KINDS * ROUNDS; n++) {
        const struct kind *kind = &kinds[n % KINDS];
        for (int i = 0; i < 2 * LANES; i++) a[i] = some_bf16(t, kind), b[i] = some_bf16(t, kind);
        for (int i = 0; i < LANES; i++) {
            sums[i] = some_sum(t, kind);
            if (rnd_below(t, 3) == 0)                                 /* what the first product leaves is small */
                sums[i] = -fp32_of_bf16(a[2 * i + 1]) * fp32_of_bf16(b[2 * i + 1]);
            if (rnd_below(t, 9) == 0) sums[i] = copysignf(0x1p-126f, sums[i]);
        }
        compare_lanes(t, kind->name, sums, a, b);
    }
}

/* Tiles ------------------------------------------------------------------------------------------------------------ */

enum { SUMS, A, B };
struct shapes { int rows, columns, words; };              /* of the sums; of a row of A, which are rows of B */
struct memory { uint8_t bytes[3][16][64]; };

static void configure(uint8_t bytes[64], const struct shapes *s)
{
    const int rows[3] = { s->rows, s->rows, s->words }, row_bytes[3] = { 4 * s->columns, 4 * s->words, 4 * s->columns };
    memset(bytes, 0, 64);
    bytes[0] = 1;
    for (int i = 0; i < 3; i++) bytes[48 + i] = (uint8_t)rows[i], bytes[16 + 2 * i] = (uint8_t)row_bytes[i];
}

/* Tiles 0, 1 and 2.  By assembler: gcc 12's intrinsics tell it of 8 of the 64 bytes that ldtilecfg reads. */
#define TILES __attribute__((target("amx-tile,amx-bf16,amx-int8")))
#define LOAD(tile, from) __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(from), "r"(64L) : "memory")
TILES static void load_configuration(const uint8_t bytes[64])
{
    __asm__ volatile("ldtilecfg %0" : : "m"(*(const uint8_t(*)[64])bytes));
}
TILES static void multiply_bf16(void) { __asm__ volatile("tdpbf16ps %tmm2, %tmm1, %tmm0"); }
TILES static void release(void) { __asm__ volatile("tilerelease"); }

/* Loads the three tiles, multiplies and writes all of the sums' tile, what lies behind its rows and columns too. */
TILES static void multiply_on_hardware(const struct shapes *s, bool integers, struct memory *m)
{
    uint8_t bytes[64];
    configure(bytes, s);
    load_configuration(bytes);
    LOAD(0, m->bytes[SUMS]);
    LOAD(1, m->bytes[A]);
    LOAD(2, m->bytes[B]);
    if (integers) __asm__ volatile("tdpbssd %tmm2, %tmm1, %tmm0");
    else multiply_bf16();
    __asm__ volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(m->bytes[SUMS]), "r"(64L) : "memory");
    release();
}

static void multiply_emulated(const struct shapes *s, bool integers, struct memory *m)
{
    uint8_t bytes[64];
    configure(bytes, s);
    emulated_ldtilecfg(bytes);
    for (int i = 0; i < 3; i++) emulated_tileloadd(i, m->bytes[i], 64);
    if (integers) emulated_tdpbssd(SUMS, A, B);
    else emulated_tdpbf16ps(SUMS, A, B);
    emulated_tilestored(SUMS, m->bytes[SUMS], 64);
    emulated_tilerelease();
}

static void fill_tiles(struct test *t, const struct kind *kind, struct memory *m)
{
    for (int row = 0; row < 16; row++)
        for (int i = 0; i < 64; i += 2) {
            const uint16_t a = some_bf16(t, kind), b = some_bf16(t, kind);
            memcpy(&m->bytes[A][row][i], &a, sizeof a), memcpy(&m->bytes[B][row][i], &b, sizeof b);
            if (i % 4 != 0) continue;
            const float sum = rnd_below(t, 9) == 0 ? copysignf(0x1p-126f, some_sum(t, kind)) : some_sum(t, kind);
            memcpy(&m->bytes[SUMS][row][i], &sum, sizeof sum);
        }
}

/* Sums that the dot product leaves little of, or ties. */
static void cancel_sums(struct test *t, const struct shapes *s, struct memory *m)
{
    struct memory dots = *m;
    memset(dots.bytes[SUMS], 0, sizeof dots.bytes[SUMS]);
    multiply_emulated(s, false, &dots);
    for (int row = 0; row < s->rows; row++)
        for (int i = 0; i < s->columns; i++) {
            float sum;
            memcpy(&sum, &dots.bytes[SUMS][row][4 * i], sizeof sum);
            sum = rnd_below(t, 2) == 0 ? -sum : nextafterf(-sum, sum);
            memcpy(&m->bytes[SUMS][row][4 * i], &sum, sizeof sum);
        }
}

static void compare_tiles(struct test *t, const char *kind, const struct shapes *s, bool integers,
                          const struct memory *m)
{
    struct memory want = *m, got = *m;
    multiply_emulated(s, integers, &want);
    multiply_on_hardware(s, integers, &got);
    for (int row = 0; row < 16; row++)
        for (int i = 0; i < 16; i++) {
            float x, y;
            memcpy(&x, &want.bytes[SUMS][row][4 * i], sizeof x), memcpy(&y, &got.bytes[SUMS][row][4 * i], sizeof y);
            if (!(integers ? bits_of_fp32(x) == bits_of_fp32(y) : same(x, y)))
                FAIL(t, "%s, %d x %d x %d words: S[%d, %d] is %a (%08x), emulated %a (%08x)", kind, s->rows, s->columns,
                     s->words, row, i, (double)y, (unsigned)bits_of_fp32(y), (double)x, (unsigned)bits_of_fp32(x));
        }
}

static void tile_products(struct test *t, bool integers)
{
    struct memory m;
    for (int n = 0; n < KINDS * 200; n++) {
        const struct kind *kind = integers ? &kinds[ALL_BITS] : &kinds[n % KINDS];
        const struct shapes full = { 16, 16, 16 }, some = { (int)rnd_between(t, 1, 16), (int)rnd_between(t, 1, 16),
                                                            (int)rnd_between(t, 1, 16) };
        const struct shapes *s = rnd_below(t, 2) == 0 ? &full : &some;
        fill_tiles(t, kind, &m);
        if (!integers && rnd_below(t, 3) == 0) cancel_sums(t, s, &m);
        compare_tiles(t, kind->name, s, integers, &m);
    }
}

static void every_shape(struct test *t, bool integers)
{
    struct memory m;
    fill_tiles(t, &kinds[integers ? ALL_BITS : 0], &m);
    for (int i = 0; i < 16 * 16 * 16; i++) {
        const struct shapes s = { 1 + i % 16, 1 + i / 16 % 16, 1 + i / 256 };
        compare_tiles(t, "every shape", &s, integers, &m);
    }
}

static bool has_tiles(struct test *t)
{
    if ((bsmi_cpu_detect(BSM_CPU_ALL) & BSM_CPU_AMX) != 0) return true;
    test_skip(t, "no AMX");
    return false;
}

static void tiles_of_bf16(struct test *t)
{
    if (!has_tiles(t)) return;
    every_shape(t, false);
    tile_products(t, false);
}

static void tiles_of_bytes(struct test *t)
{
    if (!has_tiles(t)) return;
    every_shape(t, true);
    tile_products(t, true);
}

/* What hardware refuses -------------------------------------------------------------------------------------------- */

/* Uses of tiles that end a program: bytes of the configuration changed, and a use of tiles then. */
enum use { ONLY_CONFIGURE, ZERO_AN_ABSENT_TILE, MULTIPLY, USE_RELEASED };
static const struct {
    const char *says;                     /* the emulation */
    enum use use;
    int byte, value;                      /* of the configuration; -1: none */
} refused[] = {
    { "palettes are 0 and 1", ONLY_CONFIGURE, 0, 2 },
    { "reserved bytes", ONLY_CONFIGURE, 2, 1 },
    { "reserved bytes", ONLY_CONFIGURE, 63, 1 },
    { "reserved bytes", ONLY_CONFIGURE, 32, 1 },
    { "at most 16 rows", ONLY_CONFIGURE, 48 + A, 17 },
    { "at most 16 rows", ONLY_CONFIGURE, 16 + 2 * A, 68 },
    { "both zero or neither", ONLY_CONFIGURE, 48 + A, 0 },
    { "both zero or neither", ONLY_CONFIGURE, 16 + 2 * B, 0 },
    { "no such tile", ZERO_AN_ABSENT_TILE, -1, 0 },
    { "not configured", MULTIPLY, 0, 0 },
    { "as many rows", MULTIPLY, 48 + A, 15 },
    { "as long as", MULTIPLY, 16 + 2 * B, 60 },
    { "four bytes of the first", MULTIPLY, 48 + B, 15 },
    { "whole words", MULTIPLY, 16 + 2 * A, 62 },
    { "not configured", USE_RELEASED, -1, 0 },
};
enum { REFUSED = sizeof refused / sizeof refused[0], ABSENT = 5 };

static void make_refused(uint8_t bytes[64], int i)
{
    configure(bytes, &(struct shapes){ 16, 16, 16 });
    if (refused[i].byte >= 0) bytes[refused[i].byte] = (uint8_t)refused[i].value;
    if (bytes[0] == 0) memset(bytes, 0, 64);
}

static void misuse_emulation(int i)
{
    uint8_t bytes[64];
    make_refused(bytes, i);
    emulated_ldtilecfg(bytes);
    if (refused[i].use == ZERO_AN_ABSENT_TILE) emulated_tilezero(ABSENT);
    if (refused[i].use == MULTIPLY) emulated_tdpbf16ps(SUMS, A, B);
    if (refused[i].use != USE_RELEASED) return;
    emulated_tilerelease();
    emulated_tilezero(SUMS);
}

TILES static void misuse_hardware(int i)
{
    uint8_t bytes[64];
    make_refused(bytes, i);
    load_configuration(bytes);
    if (refused[i].use == ZERO_AN_ABSENT_TILE) __asm__ volatile("tilezero %tmm5");
    if (refused[i].use == MULTIPLY) multiply_bf16();
    if (refused[i].use != USE_RELEASED) return;
    release();
    __asm__ volatile("tilezero %tmm0");
}

/* Runs it in a child, which the signal must end; what the child wrote to stderr. */
static int signal_of(struct test *t, void (*misuse)(int i), int i, char *said, size_t bytes)
{
    int ends[2], status = 0;
    said[0] = '\0';
    if (pipe(ends) != 0) { FAIL(t, "no pipe"); return 0; }
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        misuse(i);
        _exit(0);
    }
    close(ends[1]);
    const ssize_t length = read(ends[0], said, bytes - 1);
    said[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    CHECK(t, child > 0 && waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void misused_tiles_end_the_program(struct test *t)
{
    char said[256];
    for (int i = 0; i < REFUSED; i++)
        if (signal_of(t, misuse_emulation, i, said, sizeof said) != SIGABRT || strstr(said, refused[i].says) == NULL)
            FAIL(t, "case %d (%s): the emulation said \"%s\"", i, refused[i].says, said);
    if ((bsmi_cpu_detect(BSM_CPU_ALL) & BSM_CPU_AMX) == 0) return;
    for (int i = 0; i < REFUSED; i++) {
        const int got = signal_of(t, misuse_hardware, i, said, sizeof said);
        if (got != SIGSEGV && got != SIGILL) FAIL(t, "case %d (%s): hardware gave signal %d", i, refused[i].says, got);
    }
}
#endif

/* Matrix multiplications of Arm ------------------------------------------------------------------------------------ */

#if defined(__aarch64__)
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

static void matrices_of_bf16(struct test *t)
{
    if ((bsmi_cpu_detect(BSM_CPU_ALL) & BSM_CPU_BF16) == 0) { test_skip(t, "no FEAT_BF16"); return; }
    for (int n = 0; n < KINDS * 4000; n++) {
        const struct kind *kind = &kinds[n % KINDS];
        uint16_t a[8], b[8];
        float sums[4], want[4], got[4];
        for (int i = 0; i < 8; i++) a[i] = some_bf16(t, kind), b[i] = some_bf16(t, kind);
        for (int i = 0; i < 4; i++) {
            sums[i] = some_sum(t, kind);
            if (rnd_below(t, 3) == 0) sums[i] = -fp32_of_bf16(a[i / 2 * 4]) * fp32_of_bf16(b[i % 2 * 4]);
        }
        memcpy(want, sums, sizeof want), memcpy(got, sums, sizeof got);
        emulated_bfmmla(want, a, b);
        bfmmla(got, a, b);
        for (int i = 0; i < 4; i++)
            if (!same(want[i], got[i]))
                FAIL(t, "%s: sums[%d] from %a is %a, emulated %a", kind->name, i, (double)sums[i], (double)got[i],
                     (double)want[i]);
    }
}

static void matrices_of_bytes(struct test *t)
{
    if ((bsmi_cpu_detect(BSM_CPU_ALL) & BSM_CPU_I8MM) == 0) { test_skip(t, "no FEAT_I8MM"); return; }
    for (int n = 0; n < 4000; n++) {
        int8_t a[16], b[16];
        int32_t want[4], got[4];
        for (int i = 0; i < 16; i++) a[i] = (int8_t)rnd(t), b[i] = (int8_t)rnd(t);
        for (int i = 0; i < 4; i++) want[i] = got[i] = (int32_t)rnd(t);
        emulated_smmla(want, a, b);
        smmla(got, a, b);
        CHECK(t, memcmp(want, got, sizeof want) == 0);
    }
}
#endif

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(underflow_is_seen_after_rounding),
        TEST(odd_rounding),
#if defined(__x86_64__)
        TEST(dot_products_of_bf16),
        TEST(tiles_of_bf16),
        TEST(tiles_of_bytes),
        TEST(misused_tiles_end_the_program),
#elif defined(__aarch64__)
        TEST(matrices_of_bf16),
        TEST(matrices_of_bytes),
#endif
    };
    return TEST_MAIN(argc, argv, cases);
}
