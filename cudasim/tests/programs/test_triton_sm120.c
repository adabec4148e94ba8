/* A block-scaled product that Triton compiled for sm_120a, tl.dot_scaled of e2m1 by e2m1 with a scale of ue8m0 for 32
 * elements: right within the bound of the model, bitwise where sums are exact, under 100 schedules with all checks.
 * The PTX lies in the folder ptx/ of CUDASIM_SHARED, beside the project; without it the tests are skipped. */
#include "tests/reference/block_scaled_reference.h"
#include "tests/support/harness.h"
#include "machine/core/global_memory.h"

#include <math.h>
#include <stdlib.h>

#define FILE_NAME CUDASIM_SHARED "/ptx/triton_sm120_e2m1_e2m1_block32.ptx"
enum { TILE = 128, THREADS = 128, SHARED_BYTES = 16896, BLOCK = 32, STEP_K = 64 };

/* NULL where there is none: the test is skipped. */
static char *ptx_text(struct test *t)
{
    FILE *file = fopen(FILE_NAME, "rb");
    if (file == NULL) {
        test_skip(t, "no ../shared");
        return NULL;
    }
    enum { MOST = 1 << 20 };
    char *text = calloc(1, MOST);
    if (text == NULL || fread(text, 1, MOST - 1, file) == 0) abort();
    fclose(file);
    return text;
}

struct product {
    uint32_t m, n, k;
    uint8_t *a, *b, *scale_a, *scale_b; /* codes two in a byte, row by row; B by its columns */
    float *c;
};

static struct product product_open(uint32_t m, uint32_t n, uint32_t k)
{
    struct product p = { .m = m, .n = n, .k = k };
    p.a = malloc((size_t)m * k / 2), p.b = malloc((size_t)n * k / 2);
    p.scale_a = malloc((size_t)m * k / BLOCK), p.scale_b = malloc((size_t)n * k / BLOCK);
    p.c = malloc((size_t)m * n * sizeof *p.c);
    if (p.a == NULL || p.b == NULL || p.scale_a == NULL || p.scale_b == NULL || p.c == NULL) abort();
    return p;
}
static void product_close(struct product *p) { free(p->a), free(p->b), free(p->scale_a), free(p->scale_b), free(p->c); }

static void fill_codes(struct test *t, bool integers, uint8_t *codes, size_t count)
{
    static const uint8_t integer[12] = { 0, 2, 4, 5, 6, 7, 8, 10, 12, 13, 14, 15 }; /* 0, 1, 2, 3, 4, 6, and negative */
    for (size_t i = 0; i < count; i++)
        codes[i] = integers ? (uint8_t)(integer[rnd_below(t, 12)] | integer[rnd_below(t, 12)] << 4) : (uint8_t)rnd(t);
}
static void fill_scales(struct test *t, int spread, uint8_t *scales, size_t count)
{
    for (size_t i = 0; i < count; i++)
        scales[i] = (uint8_t)(127 + rnd_between(t, spread < 0 ? spread : 0, spread < 0 ? -spread : spread));
}

/* spread: scales are 2^0 to 2^spread, or (below 0) 2^spread to 2^-spread. */
static void fill(struct test *t, struct product *p, bool integers, int spread)
{
    fill_codes(t, integers, p->a, (size_t)p->m * p->k / 2);
    fill_codes(t, integers, p->b, (size_t)p->n * p->k / 2);
    fill_scales(t, spread, p->scale_a, (size_t)p->m * p->k / BLOCK);
    fill_scales(t, spread, p->scale_b, (size_t)p->n * p->k / BLOCK);
}

/* True if it ran without a report. */
static bool run(struct sim *sim, struct product *p)
{
    const size_t bytes = (size_t)p->m * p->n * sizeof *p->c;
    memset(p->c, 0xff, bytes);
    const uint64_t parameters[10] = { sim_buffer(sim, p->a, (size_t)p->m * p->k / 2),
                                      sim_buffer(sim, p->b, (size_t)p->n * p->k / 2),
                                      sim_buffer(sim, p->scale_a, (size_t)p->m * p->k / BLOCK),
                                      sim_buffer(sim, p->scale_b, (size_t)p->n * p->k / BLOCK),
                                      sim_buffer(sim, p->c, bytes),
                                      p->m,
                                      p->n,
                                      p->k };
    const bool ran = sim_run(sim, "k10", p->m / TILE * (p->n / TILE), THREADS, SHARED_BYTES, parameters, 10);
    sim_read(sim, parameters[4], p->c, bytes);
    for (int i = 0; i < 5; i++) global_release(&sim->machine.memory, parameters[i]);
    return ran;
}

/* ---- what should come out ---- */

static struct block_matrix matrix(const uint8_t *codes, const uint8_t *scales, uint32_t k)
{
    return (struct block_matrix){ .format = TENSOR_E2M1,
                                  .scale = TENSOR_UE8M0,
                                  .block = BLOCK,
                                  .codes = codes,
                                  .scales = scales,
                                  .pitch = k / 2,
                                  .scale_pitch = k / BLOCK };
}

/* Instructions of 64 elements, rising k, from zero. */
static uint32_t chain(const struct block_matrix *a, size_t i, const struct block_matrix *b, size_t j, uint32_t k)
{
    uint32_t c = 0;
    for (uint32_t from = 0; from < k; from += STEP_K) {
        uint32_t x[STEP_K], y[STEP_K], sx[2], sy[2];
        for (uint32_t e = 0; e < STEP_K; e++) x[e] = block_code(a, i, from + e), y[e] = block_code(b, j, from + e);
        for (uint32_t s = 0; s < 2; s++) {
            sx[s] = a->scales[i * a->scale_pitch + from / BLOCK + s];
            sy[s] = b->scales[j * b->scale_pitch + from / BLOCK + s];
        }
        c = block_model_fp4(x, y, TENSOR_UE8M0, sx, sy, STEP_K, BLOCK, c);
    }
    return c;
}

static void compare(struct test *t, const struct product *p, bool exact)
{
    const struct block_matrix a = matrix(p->a, p->scale_a, p->k), b = matrix(p->b, p->scale_b, p->k);
    for (uint32_t i = 0; i < p->m; i++)
        for (uint32_t j = 0; j < p->n; j++) {
            if (!exact && (i + j) % 7 != 0) continue; /* the model's chain takes time */
            const struct block_sum s = block_dot(&a, i, &b, j, p->k);
            const float got = p->c[(size_t)i * p->n + j], bound = (float)block_bound(&s, p->k / STEP_K, 4, 35);
            uint32_t bits;
            memcpy(&bits, &got, 4);
            if (exact ? got != (float)s.sum : !(fabsl((long double)got - s.sum) <= (long double)bound))
                FAIL(t, "c[%u][%u] is %a, exact %La, bound %a", i, j, (double)got, s.sum, (double)bound);
            if (!exact && bits != chain(&a, i, &b, j, p->k))
                FAIL(t, "c[%u][%u] is 0x%x, not 0x%x", i, j, bits, chain(&a, i, &b, j, p->k));
        }
}

static void check(struct test *t, uint32_t m, uint32_t n, uint32_t k, bool integers, int spread, uint32_t schedules)
{
    char *text = ptx_text(t);
    struct sim sim;
    if (text == NULL) return;
    if (sim_open(t, &sim, "sm_120a", text)) {
        struct product p = product_open(m, n, k);
        sim.machine.options.schedules = schedules;
        fill(t, &p, integers, spread);
        if (run(&sim, &p)) compare(t, &p, integers);
        else FAIL(t, "%s", sim.report.text);
        product_close(&p);
        sim_close(&sim);
    }
    free(text);
}

static void integers_are_exact(struct test *t)
{
    check(t, 128, 128, 128, true, 2, 1);
    check(t, 256, 128, 384, true, 1, 1);
    check(t, 128, 384, 256, true, 2, 1);
}
static void sums_are_those_of_the_model(struct test *t)
{
    check(t, 128, 128, 512, false, -8, 1);
    check(t, 256, 256, 128, false, -60, 1);
}
static void all_schedules_agree(struct test *t)
{
    check(t, 128, 128, 256, true, 2, 100);
    check(t, 128, 256, 128, false, -8, 100);
}

/* ---- planted bugs: one barrier or wait of the kernel is taken away ---- */

static bool blank(char *text, const char *statement, int which)
{
    for (char *at = text; (at = strstr(at, statement)) != NULL; at++)
        if (which-- == 0) {
            for (; *at != ';'; at++) *at = ' ';
            *at = ' ';
            return true;
        }
    return false;
}

static void missing_waits_are_found(struct test *t)
{
    static const char *const statements[] = { "bar.sync", "cp.async.wait_group" };
    int found = 0;
    for (int s = 0; s < 2; s++)
        for (int which = 0;; which++) {
            char *text = ptx_text(t);
            struct sim sim;
            if (text == NULL) return;
            const bool more = blank(text, statements[s], which);
            if (more && sim_open(t, &sim, "sm_120a", text)) {
                struct product p = product_open(128, 128, 256);
                sim.machine.options.schedules = 3;
                fill(t, &p, true, 2);
                if (!run(&sim, &p)) found++;
                else FAIL(t, "without %s number %d: no report", statements[s], which);
                product_close(&p);
                sim_close(&sim);
            }
            free(text);
            if (!more) break;
        }
    CHECK(t, found == 14); /* so many does the kernel have */
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(integers_are_exact),
        TEST(sums_are_those_of_the_model),
        TEST(all_schedules_agree),
        TEST(missing_waits_are_found),
    };
    return TEST_MAIN(argc, argv, cases);
}
