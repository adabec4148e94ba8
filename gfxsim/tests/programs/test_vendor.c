/* AMD's own products (AITER), whose code objects GFXSIM_AITER names (the folder hsa/gfx950): in MXFP4 (f4gemm), and of
 * fp8 with fp32 scales of 128 (fp8gemm_blockscale).  The arguments are those of AITER's launchers, each in 16 bytes; A
 * by rows, B in blocks of 16 rows and 32 bytes, MXFP4's scales four to a dword. */
#include "support/scaled_product.h"
#include "support/simulate.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>

struct slot { uint64_t value, unused; };
enum slots { D, C, A, B, ALPHA, BETA, STRIDE_D0, STRIDE_D1, STRIDE_C0, STRIDE_C1, STRIDE_A0, STRIDE_A1, STRIDE_B0,
             STRIDE_B1, M, N, K, SCALE_A, SCALE_B, STRIDE_SCALE_A0, STRIDE_SCALE_A1, STRIDE_SCALE_B0, STRIDE_SCALE_B1,
             LOG2_SPLIT, SLOTS };

/* [rows][bytes] to [rows / 16][bytes / 32][2][16][16]. */
static uint8_t *in_blocks(const uint8_t *packed, int rows, int bytes)
{
    uint8_t *out = malloc((size_t)rows * (size_t)bytes);
    for (int r = 0; r < rows && out != NULL; r++)
        for (int i = 0; i < bytes; i++)
            out[((r / 16 * (bytes / 32) + i / 32) * 2 + i / 16 % 2) * 256 + r % 16 * 16 + i % 16]
                = packed[r * bytes + i];
    return out;
}

static void compare(struct test *t, const char *file, const struct side *a, const struct side *b, const uint16_t *d)
{
    int wrong = 0;
    for (int m = 0; m < a->rows && wrong < 3; m++)
        for (int n = 0; n < b->rows && wrong < 3; n++) {
            double magnitudes;
            const double want = product_element(a, b, m, n, &magnitudes);
            const uint16_t bits = d[m * b->rows + n];
            if (bits == float_to_bfloat((float)want)) continue;
            wrong++;
            FAIL(t, "%s: element %d,%d is %.9g, not %.9g", file, m, n, element_value(ELEMENT_BF16, bits), want);
        }
}

static bool put(struct simulation *s, const struct side *a, const struct side *b, bool blocks, struct slot slot[SLOTS])
{
    size_t bytes[4];
    const uint32_t one = 0x3f800000, k = (uint32_t)a->k;
    uint8_t *part[5] = { side_packed(a, false, &bytes[0]), side_packed(b, false, &bytes[1]),
                         side_shuffled_scales(a, &bytes[2]), side_shuffled_scales(b, &bytes[3]), NULL };
    if (blocks) part[4] = in_blocks(part[1], b->rows, b->k / 2);
    memset(slot, 0, SLOTS * sizeof slot[0]);
    slot[A].value = simulation_put(s, part[0], bytes[0]);
    slot[B].value = simulation_put(s, blocks ? part[4] : part[1], bytes[1]);
    slot[SCALE_A].value = simulation_put(s, part[2], bytes[2]);
    slot[SCALE_B].value = simulation_put(s, part[3], bytes[3]);
    slot[D].value = simulation_put(s, NULL, 2 * (size_t)a->rows * (size_t)b->rows);
    slot[ALPHA].value = one;
    slot[STRIDE_C0].value = (uint32_t)b->rows, slot[STRIDE_A0].value = slot[STRIDE_B0].value = k;
    slot[STRIDE_SCALE_A0].value = slot[STRIDE_SCALE_B0].value = k / 32;
    slot[M].value = (uint32_t)a->rows, slot[N].value = (uint32_t)b->rows, slot[K].value = k;
    for (int i = 0; i < 5; i++) free(part[i]);
    return slot[D].value != 0;
}

static void run(struct test *t, const char *folder, const char *file, enum schedule schedule, enum rounding rounding)
{
    char path[1024];
    int m = 0, n = 0;
    const bool blocks = strstr(file, "noBpreShuffle") == NULL;
    const char *tile = strstr(file, "Shuffle_");
    struct machine_options o = test_options();
    struct simulation s;
    struct side a = { 0 }, b = { 0 };
    struct slot slot[SLOTS];
    o.schedule = schedule, o.rounding = rounding, o.threads = 2;
    /* These kernels write M0 right in front of its use, overwrite what others have read in front of the last barrier
     * without a wait of theirs, and have two groups of waves with a loop each. */
    o.check_hazards = o.check_races = o.same_barrier = false;
    if (tile == NULL || sscanf(tile, "Shuffle_%dx%d", &m, &n) != 2) return;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    const uint32_t groups[3] = { 1, m <= 96 ? 2 : 1, 1 };
    if (simulation_open_file(&s, t, path, &o) && side_open(&a, t, ELEMENT_E2M1, m * (int)groups[1], 1024, true)
        && side_open(&b, t, ELEMENT_E2M1, n, 1024, true) && put(&s, &a, &b, blocks, slot)) {
        if (!simulation_run_grid(&s, s.object.kernel[0].name, groups, 256, 0, slot, sizeof slot))
            FAIL(t, "%s: %s", file, s.report.text);
        else compare(t, file, &a, &b, simulation_at(slot[D].value));
    }
    side_close(&a);
    side_close(&b);
    simulation_close(&s);
}

/* ---- fp8, A's scales by row and 128 columns (column by column), B's by 128 rows and 128 columns ---- */

enum { FP8_N = 256, FP8_K = 1024, FP8_BLOCKS = FP8_K / 128, FP8_MOST = 256 };
enum fp8_slots { FP8_C, FP8_A, FP8_B, FP8_SCALE_A, FP8_SCALE_B, FP8_BIAS, FP8_ROWS, FP8_COLUMNS, FP8_DEPTH, FP8_PITCH_A,
                 FP8_PITCH_B, FP8_PITCH_C, FP8_SPLIT, FP8_SCALE_ROWS, FP8_SCALE_COLUMNS, FP8_SCALE_DEPTH, FP8_SLOTS };

struct fp8_problem {
    int rows;
    uint8_t a[FP8_MOST * FP8_K], b[FP8_N * FP8_K];
    float a_scale[FP8_BLOCKS * FP8_MOST], b_scale[FP8_N / 128 * FP8_BLOCKS], bias[FP8_N];
};

/* Numbers whose sums are exact. */
static void fp8_draw(struct test *t, struct fp8_problem *p)
{
    for (int i = 0; i < p->rows * FP8_K; i++)
        p->a[i] = (uint8_t)element_encode(ELEMENT_E4M3, (double)rnd_between(t, -8, 8) / 4, false);
    for (int i = 0; i < FP8_N * FP8_K; i++)
        p->b[i] = (uint8_t)element_encode(ELEMENT_E4M3, (double)rnd_between(t, -8, 8) / 4, false);
    for (int i = 0; i < FP8_BLOCKS * p->rows; i++) p->a_scale[i] = ldexpf(1, (int)rnd_between(t, -2, 2));
    for (int i = 0; i < FP8_N / 128 * FP8_BLOCKS; i++) p->b_scale[i] = ldexpf(1, (int)rnd_between(t, -2, 2));
    for (int i = 0; i < FP8_N; i++) p->bias[i] = (float)rnd_between(t, -8, 8);
}

/* These kernels take the upper half of fp32. */
static uint16_t cut_to_bfloat(double d)
{
    const float f = (float)d;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return (uint16_t)(bits >> 16);
}

static void fp8_compare(struct test *t, const char *file, const struct fp8_problem *p, const uint16_t *c)
{
    int wrong = 0;
    for (int m = 0; m < p->rows && wrong < 3; m++)
        for (int n = 0; n < FP8_N && wrong < 3; n++) {
            double want = p->bias[n];
            for (int k = 0; k < FP8_K; k++)
                want += element_value(ELEMENT_E4M3, p->a[m * FP8_K + k])
                        * element_value(ELEMENT_E4M3, p->b[n * FP8_K + k]) * (double)p->a_scale[k / 128 * p->rows + m]
                        * (double)p->b_scale[n / 128 * FP8_BLOCKS + k / 128];
            if (c[m * FP8_N + n] == cut_to_bfloat(want)) continue;
            wrong++;
            FAIL(t, "%s: element %d,%d is %.9g, not %.9g", file, m, n, element_value(ELEMENT_BF16, c[m * FP8_N + n]),
                 want);
        }
}

static void run_fp8(struct test *t, const char *folder, const char *file, enum schedule schedule,
                    enum rounding rounding)
{
    char path[1024];
    int rows;
    struct machine_options o = test_options();
    struct simulation s;
    struct fp8_problem *p = calloc(1, sizeof *p);
    uint8_t *blocks = NULL;
    o.schedule = schedule, o.rounding = rounding, o.threads = 2;
    o.check_hazards = o.check_races = o.same_barrier = false;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    const char *tile = strstr(file, "Shuffle_");
    if (p != NULL && tile != NULL && sscanf(tile, "Shuffle_%dx", &rows) == 1 && simulation_open_file(&s, t, path, &o)) {
        p->rows = 2 * rows - (int)rnd_below(t, 2) * 5;                    /* the last tile whole, or not */
        fp8_draw(t, p);
        blocks = in_blocks(p->b, FP8_N, FP8_K);
        const uint32_t groups[3] = { FP8_N / 128, 2, 1 }, depth = FP8_BLOCKS;
        const struct slot slot[FP8_SLOTS] = {
            [FP8_C].value = simulation_put(&s, NULL, (size_t)p->rows * FP8_N * 2),
            [FP8_A].value = simulation_put(&s, p->a, (size_t)p->rows * FP8_K),
            [FP8_B].value = simulation_put(&s, blocks, sizeof p->b),
            [FP8_SCALE_A].value = simulation_put(&s, p->a_scale, (size_t)p->rows * FP8_BLOCKS * 4),
            [FP8_SCALE_B].value = simulation_put(&s, p->b_scale, sizeof p->b_scale),
            [FP8_BIAS].value = simulation_put(&s, p->bias, sizeof p->bias),
            [FP8_ROWS].value = (uint32_t)p->rows, [FP8_COLUMNS].value = FP8_N, [FP8_DEPTH].value = FP8_K,
            [FP8_PITCH_A].value = FP8_K, [FP8_PITCH_B].value = FP8_K, [FP8_PITCH_C].value = FP8_N * 2,
            [FP8_SPLIT].value = 1, [FP8_SCALE_ROWS].value = (uint32_t)p->rows, [FP8_SCALE_COLUMNS].value = FP8_N / 128,
            [FP8_SCALE_DEPTH].value = depth,
        };
        if (!simulation_run_grid(&s, s.object.kernel[0].name, groups, 256, 0, slot, sizeof slot))
            FAIL(t, "%s: %s", file, s.report.text);
        else fp8_compare(t, file, p, simulation_at(slot[FP8_C].value));
        simulation_close(&s);
    }
    free(blocks);
    free(p);
}

typedef void run_function_of(struct test *, const char *, const char *, enum schedule, enum rounding);

/* Every object of a folder whose name begins with `prefix`. */
static void run_folder(struct test *t, const char *name, const char *prefix, run_function_of *one)
{
    const char *all = getenv("GFXSIM_AITER"), *only = getenv("GFXSIM_ONLY");
    char folder[900];
    snprintf(folder, sizeof folder, "%s/%s", all == NULL ? "" : all, name);
    DIR *d = all == NULL ? NULL : opendir(folder);
    if (d == NULL) {
        test_skip(t, "GFXSIM_AITER names no folder of AITER's code objects (hsa/gfx950)");
        return;
    }
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 && strstr(e->d_name, ".co") != NULL
            && (only == NULL || strstr(e->d_name, only) != NULL))
            for (int schedule = 0; schedule < 3; schedule++)
                one(t, folder, e->d_name, (enum schedule)schedule, (enum rounding)schedule);
    closedir(d);
}

static void mxfp4_products_are_right(struct test *t) { run_folder(t, "f4gemm", "f4gemm_bf16_per1x32Fp4_", run); }
static void fp8_products_are_right(struct test *t)
{
    run_folder(t, "fp8gemm_blockscale", "fp8gemm_bf16_blockscale_", run_fp8);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(mxfp4_products_are_right), TEST(fp8_products_are_right) };
    return TEST_MAIN(argc, argv, cases);
}
