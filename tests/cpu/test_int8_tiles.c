/* Tiles of int8 by AMX against tiles of bf16, bit for bit: what may go as int8 goes as int8, what may not does not, and
 * nobody can tell from the sums.  Where units are emulated the number of int8's products says which way a tile went. */
#include "two_kernels.h"

#include "core/core.h"

enum { USUAL = 127 };

static const bsm_format formats[] = { BSM_MXFP4, BSM_MXFP4_BLOCK16, BSM_MXFP6_E2M3, BSM_MXINT8 };
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* Binades that a row of the format may span. */
static int span_of(bsm_format format)
{
    const bsm_element element = bsm_format_get((int)format)->element;
    return element == BSM_E2M1 ? 3 : element == BSM_E2M3 ? 1 : 0;
}

/* Nothing to compare on machines without the unit. */
static bool skipped(struct test *t)
{
    if (kernel_named("int8_tiles_amx") != NULL) return false;
    test_skip(t, "this machine has no AMX");
    return true;
}

/* Operands --------------------------------------------------------------------------------------------------------- */

/* Scales from `base` on that span so many binades, both ends among them where there are two blocks. */
static void set_span(struct test *t, struct operand *o, int64_t row, int base, int span)
{
    const int64_t blocks = blocks_of(o), low = rnd_below(t, blocks), high = (low + 1) % blocks;
    for (int64_t s = 0; s < blocks; s++)
        set_scale(t, o, row, s, base + (s == low ? 0 : s == high ? span : (int)rnd_between(t, 0, span)));
}

/* Every code, scales of rows as far apart as they may be. */
static struct operand operand_of(struct test *t, const struct shape *shape)
{
    struct operand o = operand_make(shape, 0xff);
    operand_fill(t, &o, false);
    for (int64_t r = 0; r < o.m.rows; r++)
        set_span(t, &o, r, USUAL + (int)rnd_between(t, -9, 9), span_of(shape->format));
    return o;
}

static struct operand plain(struct test *t, bsm_format format, int64_t rows, int64_t k)
{
    return operand_of(t, &(struct shape){ .format = format, .rows = rows, .columns = k });
}

/* Tiles ------------------------------------------------------------------------------------------------------------ */

/* Both ways; as_int8: which of them the tile should go. */
static void check_tile(struct test *t, const struct operand *a, const struct operand *b, struct where at, bool as_int8)
{
    const enum way way = compare_kernels(t, "bf16_tiles_amx", "int8_tiles_amx", a, b, at);
    if (way != UNKNOWN && (way == AS_INT8) != as_int8)
        FAIL(t, "%s x %s, K=%lld: %s as int8", bsm_format_get((int)a->m.format)->name,
             bsm_format_get((int)b->m.format)->name, (long long)a->m.columns, as_int8 ? "did not go" : "went");
}

static void check(struct test *t, struct operand *a, struct operand *b, bool as_int8)
{
    check_tile(t, a, b, (struct where){ 0 }, as_int8);
}

static void free_both(struct operand *a, struct operand *b) { operand_free(a), operand_free(b); }

/* Cases ------------------------------------------------------------------------------------------------------------ */

/* Every pair, ragged everywhere, in any packing and layout. */
static void every_pair(struct test *t)
{
    static const bsm_scale_layout layouts[] = { { .kind = BSM_LAYOUT_LINEAR }, { .kind = BSM_LAYOUT_128X4 } };
    static const int64_t depths[] = { 1, 2, 15, 31, 32, 33, 63, 64, 65, 97, 128, 160, 191, 255, 300, 512 };
    if (skipped(t)) return;
    for (int pair = 0; pair < FORMATS * FORMATS; pair++)
        for (int i = 0; i < 8; i++) {
            const int64_t k = depths[rnd_below(t, 16)];
            struct where at = { rnd_below(t, 3), rnd_below(t, 2) * 2, 0, rnd_below(t, 2) == 0 };
            struct shape of_a = { .format = formats[pair / FORMATS], .rows = at.first_row + rnd_between(t, 1, 70),
                                  .columns = k },
                         of_b = { .format = formats[pair % FORMATS], .rows = at.first_column + rnd_between(t, 1, 70),
                                  .columns = k };
            shape_in_any_way(t, &of_a, layouts, 2), shape_in_any_way(t, &of_b, layouts, 2);
            if (rnd_below(t, 3) == 0) of_b.rows += of_b.rows % 2, at.split = of_b.rows / 2;
            struct operand a = operand_of(t, &of_a), b = operand_of(t, &of_b);
            check_tile(t, &a, &b, at, true);
            free_both(&a, &b);
        }
}

/* GGUF's order of codes, several stretches of K, several matrices of sums, more rows than are in work at a time. */
static void large_tiles(struct test *t)
{
    static const struct { bsm_format a, b; int64_t rows, columns, k; } sizes[] = {
        { BSM_MXFP4, BSM_MXFP4, 70, 40, 4192 },        { BSM_MXFP4, BSM_MXFP6_E2M3, 35, 300, 2080 },
        { BSM_MXINT8, BSM_MXFP4_BLOCK16, 20, 33, 2144 }, { BSM_MXFP6_E2M3, BSM_MXFP6_E2M3, 150, 290, 256 },
    };
    if (skipped(t)) return;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int in_parts = 0; in_parts < 2; in_parts++) {
            struct shape of_a = { .format = sizes[i].a, .rows = sizes[i].rows, .columns = sizes[i].k },
                         of_b = { .format = sizes[i].b, .rows = sizes[i].columns, .columns = sizes[i].k };
            if (i == 0) {
                of_a.packing = of_b.packing = BSM_PACKING_GGUF;
                of_a.layout.kind = of_b.layout.kind = BSM_LAYOUT_GGUF_MXFP4;
            }
            struct operand a = operand_make(&of_a, 0xff), b = operand_make(&of_b, 0xff);
            operand_fill(t, &a, false), operand_fill(t, &b, false);
            for (int64_t r = 0; r < a.m.rows; r++) set_span(t, &a, r, USUAL, 0);     /* within the bound */
            for (int64_t r = 0; r < b.m.rows; r++) set_span(t, &b, r, USUAL - 3, 0);
            check_tile(t, &a, &b, (struct where){ .in_parts = in_parts != 0 }, true);
            free_both(&a, &b);
        }
}

/* A row of A, or of B, a binade beyond what it may span. */
static void spans(struct test *t)
{
    if (skipped(t)) return;
    for (int i = 0; i < FORMATS; i++)
        for (int side = 0; side < 2; side++)
            for (int more = 0; more < 2; more++) {
                const int64_t k = 64 * rnd_between(t, 1, 4), row = rnd_below(t, 37);
                struct operand a = plain(t, formats[i], 37, k), b = plain(t, formats[FORMATS - 1 - i], 37, k),
                               *const one = side == 0 ? &a : &b;
                set_span(t, one, row, USUAL, span_of(one->m.format) + more);
                for (int64_t s = 0; s < blocks_of(one); s++)          /* no block of zeros: it would not count */
                    set_code(t, one, row, s * bsm_format_get((int)one->m.format)->block, 1);
                check(t, &a, &b, more == 0);
                free_both(&a, &b);
            }
}

/* Blocks of zeros, of either sign, with scales of any size but NaN; NaN even there. */
static void blocks_of_zeros(struct test *t)
{
    static const int codes[] = { 0, 1, 60, 126, 131, 200, 254, 255 };
    if (skipped(t)) return;
    for (int i = 0; i < FORMATS; i++)
        for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++) {
            struct operand a = plain(t, formats[i], 19, 224), b = plain(t, BSM_MXFP4, 35, 224);
            const uint32_t minus = i < 2 ? 8 : i == 2 ? 32 : 0;
            fill_block(t, &a, 3, 2, 0), set_scale(t, &a, 3, 2, codes[c]);
            fill_block(t, &a, 18, 6, minus), set_scale(t, &a, 18, 6, codes[c]);
            fill_block(t, &b, 34, 1, 8), set_scale(t, &b, 34, 1, codes[c]);
            for (int64_t s = 0; s < blocks_of(&a); s++) fill_block(t, &a, 7, s, s % 2 == 0 ? 0 : minus);
            for (int64_t s = 0; s < blocks_of(&a); s++) set_scale(t, &a, 7, s, codes[c]);   /* a row of them */
            check(t, &a, &b, codes[c] != 255);
            free_both(&a, &b);
        }
}

/* Numbers that lie far from 1: rows with exponents of their own; then one row beside them that falls back. */
static void exponents_of_rows(struct test *t)
{
    if (skipped(t)) return;
    for (int i = 0; i < FORMATS * FORMATS; i++)
        for (int fallback = 0; fallback < 3; fallback++) {
            struct operand a = plain(t, formats[i / FORMATS], 40, 160), b = plain(t, formats[i % FORMATS], 34, 160);
            for (int64_t r = 0; r < 40; r += 3)
                set_span(t, &a, r, (int)rnd_between(t, 0, 251), span_of(a.m.format));
            for (int64_t r = 0; r < 34; r += 2)
                set_span(t, &b, r, (int)rnd_between(t, 0, 251), span_of(b.m.format));
            struct operand *const one = fallback == 1 ? &a : &b;
            for (int64_t s = 0; s < 2 && fallback != 0; s++) {
                fill_block(t, one, 5, s, 1);
                set_scale(t, one, 5, s, s == 0 ? 10 : 200);
            }
            check(t, &a, &b, fallback == 0);
            free_both(&a, &b);
        }
}

static void fill_rows(struct test *t, struct operand *o, uint32_t code, int scale)
{
    for (int64_t r = 0; r < o->m.rows; r++)
        for (int64_t s = 0; s < blocks_of(o); s++) fill_block(t, o, r, s, code), set_scale(t, o, r, s, scale);
}

/* The bound: largest integers in every place, -128 among them.  1,024 of int8 by int8 make 2^24 exactly. */
static void largest_integers(struct test *t)
{
    static const struct { bsm_format format; uint32_t code, odd; int64_t within, beyond; } sums[] = {
        { BSM_MXINT8, 0x80, 0x81, 1024, 1025 },
        { BSM_MXFP6_E2M3, 0x1f, 0x01, 4640, 4672 },      /* 3,600 a product */
    };
    if (skipped(t)) return;
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        for (int beyond = 0; beyond < 2; beyond++)
            for (int odd = 0; odd < 2; odd++) {
                const int64_t k = beyond ? sums[i].beyond : sums[i].within;
                struct operand a = plain(t, sums[i].format, 3, k), b = plain(t, sums[i].format, 18, k);
                fill_rows(t, &a, sums[i].code, USUAL), fill_rows(t, &b, sums[i].code, 7);
                for (int64_t n = 0; n < 5 && odd; n++)
                    set_code(t, &a, 1, rnd_below(t, k), sums[i].odd), set_code(t, &b, 2, rnd_below(t, k), sums[i].odd);
                check(t, &a, &b, beyond == 0);
                free_both(&a, &b);
            }
}

/* Blocks of shift 3 count 64 times: 56 of 64 are within the bound, 57 are beyond it, where fp32 does not hold the sum
 * that bf16's order comes by. */
static void shifted_integers(struct test *t)
{
    enum { BLOCKS = 64, ONE_HALF = 1, SIX = 7 };
    if (skipped(t)) return;
    for (int high = 56; high <= 57; high++) {
        struct operand a = plain(t, BSM_MXFP4, 17, 32 * BLOCKS), b = plain(t, BSM_MXFP4, 2, 32 * BLOCKS);
        for (int side = 0; side < 2; side++) {
            struct operand *const o = side == 0 ? &a : &b;
            for (int64_t r = 0; r < o->m.rows; r++)
                for (int64_t s = 0; s < BLOCKS; s++) {
                    fill_block(t, o, r, s, s < high ? SIX : ONE_HALF);
                    set_scale(t, o, r, s, s < high ? 103 : 100);
                }
            for (int64_t n = 1; n < 32; n += 2) set_code(t, o, 1, 32 * (BLOCKS - 1) + n, 0);    /* an odd sum */
        }
        check(t, &a, &b, high == 56);
        free_both(&a, &b);
    }
}

/* Products as users ask for them: with any number of threads, where some tiles go as int8 and others do not, every
 * element has one result. */
static void threads_and_kernels(struct test *t)
{
    static const char *const names[] = { "bf16_tiles_amx", "int8_tiles_amx" };
    static const int threads[] = { 1, 2, 8 };
    enum { M = 230, N = 300, K = 200 };
    if (skipped(t)) return;
    bsm_context *context;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    struct operand a = plain(t, BSM_MXFP4, M, K), b = plain(t, BSM_MXFP6_E2M3, N, K), d[2];
    set_span(t, &a, 40, 90, 30);                         /* the rows beside it in its tile go as bf16 */
    for (int i = 0; i < 2; i++)
        d[i] = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N }, 0xff);
    for (int i = 0; i < 2; i++)
        for (int n = 0; n < 3; n++) {
            const bsm_matmul call = { .struct_size = sizeof call, .a = &a.m, .b = &b.m, .d = &d[i].m };
            int kernel = 0;
            while (bsm_kernel_name(kernel) != NULL && strcmp(bsm_kernel_name(kernel), names[i]) != 0) kernel++;
            CHECK(t, bsm_context_force_kernel(context, kernel) == BSM_OK);
            CHECK(t, bsm_context_set_threads(context, threads[n]) == BSM_OK);
            CHECK(t, bsm_multiply(context, &call) == BSM_OK);
            compare_sums(t, &a, &b, N, M * N, d[0].m.data, d[i].m.data);
        }
    free_both(&a, &b), free_both(&d[0], &d[1]);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_pair),       TEST(large_tiles),       TEST(spans),
                                              TEST(blocks_of_zeros),  TEST(exponents_of_rows), TEST(largest_integers),
                                              TEST(shifted_integers), TEST(threads_and_kernels) };
    return TEST_MAIN(argc, argv, cases);
}
