/* The units in plain C: single steps, what machines gave, this machine's units bit for bit, and misuse of tiles. */
#include "cases.h"
#include "float_steps.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* What machines gave ----------------------------------------------------------------------------------------------- */

static void compare_digests(struct test *t, const struct units *units)
{
    for (int i = 0; i < KINDS; i++) {
        const struct kind *kind = &kinds[i];
        if (units->vdpbf16ps != NULL && digest_of_vectors(units->vdpbf16ps, kind) != given_vectors[i])
            FAIL(t, "vdpbf16ps %s, %s", units->name, kind->name);
        if (units->bfmmla != NULL && digest_of_matrices(units->bfmmla, kind) != given_matrices[i])
            FAIL(t, "bfmmla %s, %s", units->name, kind->name);
        if (units->tiles != NULL && digest_of_tiles(units->tiles, kind, false) != given_tiles[i])
            FAIL(t, "tdpbf16ps %s, %s", units->name, kind->name);
    }
    if (units->tiles != NULL) CHECK(t, digest_of_tiles(units->tiles, &kinds[ALL_BITS], true) == given_tiles_of_bytes);
}

static void what_machines_gave(struct test *t)
{
    const struct units here = units_of_this_machine();
    compare_digests(t, &emulated_units);
    compare_digests(t, &here);
}

/* smmla of Arm: rows of eight bytes, and sums that wrap. */
static void sums_of_bytes(struct test *t)
{
    const int8_t a[16] = { 1, 2, 3, 4, 5, 6, 7, 8, -128, -128, 127, 0, 0, 0, 0, 1 };
    const int8_t b[16] = { 1, 1, 1, 1, 1, 1, 1, 1, -128, 127, -1, 0, 0, 0, 0, 2 };
    int32_t sums[4] = { 10, 20, 30, INT32_MAX };
    emulated_units.smmla(sums, a, b);
    CHECK(t, sums[0] == 46 && sums[1] == 20 - 128 + 254 - 3 + 16 && sums[2] == 30 - 128);
    CHECK(t, sums[3] == INT32_MIN + (16384 - 16256 - 127 + 2 - 1));
}

/* This machine's --------------------------------------------------------------------------------------------------- */

enum { ROUNDS = 20000, TILE_ROUNDS = 200 };

static void vectors_of_bf16(struct test *t)
{
    const struct units here = units_of_this_machine();
    if (here.vdpbf16ps == NULL) { test_skip(t, "no AVX512_BF16"); return; }
    for (int n = 0; n < KINDS * ROUNDS; n++) {
        const struct kind *kind = &kinds[n % KINDS];
        float sums[LANES], want[LANES], got[LANES];
        uint16_t a[2 * LANES], b[2 * LANES];
        draw_vectors(t, kind, sums, a, b);
        memcpy(want, sums, sizeof want), memcpy(got, sums, sizeof got);
        emulated_units.vdpbf16ps(want, a, b);
        here.vdpbf16ps(got, a, b);
        for (int i = 0; i < LANES; i++)
            if (!same(want[i], got[i]))
                FAIL(t, "%s: %a + %a * %a + %a * %a is %a, emulated %a", kind->name, (double)sums[i],
                     (double)fp32_of_bf16(a[2 * i]), (double)fp32_of_bf16(b[2 * i]),
                     (double)fp32_of_bf16(a[2 * i + 1]), (double)fp32_of_bf16(b[2 * i + 1]), (double)got[i],
                     (double)want[i]);
    }
}

static void matrices_of_bf16(struct test *t)
{
    const struct units here = units_of_this_machine();
    if (here.bfmmla == NULL) { test_skip(t, "no FEAT_BF16"); return; }
    for (int n = 0; n < KINDS * ROUNDS / 4; n++) {
        const struct kind *kind = &kinds[n % KINDS];
        float sums[4], want[4], got[4];
        uint16_t a[8], b[8];
        draw_matrix(t, kind, sums, a, b);
        memcpy(want, sums, sizeof want), memcpy(got, sums, sizeof got);
        emulated_units.bfmmla(want, a, b);
        here.bfmmla(got, a, b);
        for (int i = 0; i < 4; i++)
            if (!same(want[i], got[i]))
                FAIL(t, "%s: sums[%d] from %a is %a, emulated %a", kind->name, i, (double)sums[i], (double)got[i],
                     (double)want[i]);
    }
}

static void matrices_of_bytes(struct test *t)
{
    const struct units here = units_of_this_machine();
    if (here.smmla == NULL) { test_skip(t, "no FEAT_I8MM"); return; }
    for (int n = 0; n < ROUNDS; n++) {
        int8_t a[16], b[16];
        int32_t want[4], got[4];
        draw_bytes(t, want, a, b);
        memcpy(got, want, sizeof got);
        emulated_units.smmla(want, a, b);
        here.smmla(got, a, b);
        CHECK(t, memcmp(want, got, sizeof want) == 0);
    }
}

static void compare_tiles(struct test *t, const struct units *here, const char *kind, const struct shapes *s,
                          bool integers, const struct memory *m)
{
    struct memory want = *m, got = *m;
    emulated_units.tiles(s, integers, &want);
    here->tiles(s, integers, &got);
    for (int row = 0; row < 16; row++)
        for (int i = 0; i < 16; i++) {
            float x, y;
            memcpy(&x, &want.bytes[SUMS][row][4 * i], sizeof x), memcpy(&y, &got.bytes[SUMS][row][4 * i], sizeof y);
            if (!(integers ? bits_of_fp32(x) == bits_of_fp32(y) : same(x, y)))
                FAIL(t, "%s, %d x %d x %d words: S[%d, %d] is %a (%08x), emulated %a (%08x)", kind, s->rows, s->columns,
                     s->words, row, i, (double)y, (unsigned)bits_of_fp32(y), (double)x, (unsigned)bits_of_fp32(x));
        }
}

static void compare_all_tiles(struct test *t, bool integers)
{
    const struct units here = units_of_this_machine();
    struct memory m;
    if (here.tiles == NULL) { test_skip(t, "no AMX"); return; }
    draw_tiles(t, &kinds[integers ? ALL_BITS : 0], &(struct shapes){ 16, 16, 16 }, integers, &m);
    for (int i = 0; i < 16 * 16 * 16; i++) {
        const struct shapes s = { 1 + i % 16, 1 + i / 16 % 16, 1 + i / 256 };
        compare_tiles(t, &here, "every shape", &s, integers, &m);
    }
    for (int n = 0; n < KINDS * TILE_ROUNDS; n++) {
        const struct kind *kind = &kinds[integers ? ALL_BITS : n % KINDS];
        const struct shapes s = draw_shapes(t);
        draw_tiles(t, kind, &s, integers, &m);
        compare_tiles(t, &here, kind->name, &s, integers, &m);
    }
}

static void tiles_of_bf16(struct test *t) { compare_all_tiles(t, false); }
static void tiles_of_bytes(struct test *t) { compare_all_tiles(t, true); }

/* Misuse of tiles -------------------------------------------------------------------------------------------------- */

/* Uses of tiles that end a program: bytes of a configuration changed, and a use of tiles then. */
static const struct refused {
    const char *says;                     /* the emulation */
    enum use use;
    int byte, value;                      /* of the configuration; -1: none */
} refused[] = {
    { "palettes are 0 and 1", NO_USE, 0, 2 },
    { "reserved bytes", NO_USE, 2, 1 },
    { "reserved bytes", NO_USE, 63, 1 },
    { "reserved bytes", NO_USE, 32, 1 },
    { "at most 16 rows", NO_USE, 48 + A, 17 },
    { "at most 16 rows", NO_USE, 16 + 2 * A, 68 },
    { "both zero or neither", NO_USE, 48 + A, 0 },
    { "both zero or neither", NO_USE, 16 + 2 * B, 0 },
    { "no such tile", ZERO_AN_ABSENT_TILE, -1, 0 },
    { "not configured", USE_RELEASED, -1, 0 },
    { "as many rows", MULTIPLY, 48 + A, 15 },
    { "as long as", MULTIPLY, 16 + 2 * B, 60 },
    { "four bytes of the first", MULTIPLY, 48 + B, 15 },
    { "whole words", MULTIPLY, 16 + 2 * A, 62 },
};
enum { REFUSED = sizeof refused / sizeof refused[0] };

/* Runs it in a child; the signal that ended it, and what it wrote to stderr. */
static int signal_of(struct test *t, use_function *use_tiles, const struct refused *r, char *said, size_t bytes)
{
    int ends[2], status = 0;
    uint8_t configuration[64];
    configure_tiles(configuration, &(struct shapes){ 16, 16, 16 });
    if (r->byte >= 0) configuration[r->byte] = (uint8_t)r->value;
    said[0] = '\0';
    if (pipe(ends) != 0) { FAIL(t, "no pipe"); return 0; }
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        use_tiles(configuration, r->use);
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
    const struct units here = units_of_this_machine();
    char said[256];
    for (const struct refused *r = refused; r < refused + REFUSED; r++) {
        if (signal_of(t, emulated_units.use_tiles, r, said, sizeof said) != SIGABRT || strstr(said, r->says) == NULL)
            FAIL(t, "%s: the emulation said \"%s\"", r->says, said);
        if (here.use_tiles == NULL) continue;
        const int got = signal_of(t, here.use_tiles, r, said, sizeof said);
        if (got != SIGSEGV && got != SIGILL) FAIL(t, "%s: this machine gave signal %d", r->says, got);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(underflow_is_seen_after_rounding),
        TEST(odd_rounding),
        TEST(what_machines_gave),
        TEST(sums_of_bytes),
        TEST(vectors_of_bf16),
        TEST(matrices_of_bf16),
        TEST(matrices_of_bytes),
        TEST(tiles_of_bf16),
        TEST(tiles_of_bytes),
        TEST(misused_tiles_end_the_program),
    };
    return TEST_MAIN(argc, argv, cases);
}
