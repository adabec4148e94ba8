/* AMD's own products in MXFP4 (AITER, hsa/gfx950/f4gemm), whose code objects GFXSIM_AITER names: the arguments are
 * those of AITER's launcher, each in 16 bytes; A by rows, B in blocks of 16 rows and 32 bytes, scales four to a
 * dword. */
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

static void products_are_right(struct test *t)
{
    const char *folder = getenv("GFXSIM_AITER"), *only = getenv("GFXSIM_ONLY");
    DIR *d = folder == NULL ? NULL : opendir(folder);
    if (d == NULL) {
        test_skip(t, "GFXSIM_AITER names no folder of AITER's code objects (hsa/gfx950/f4gemm)");
        return;
    }
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, "f4gemm_bf16_per1x32Fp4_", 23) == 0 && strstr(e->d_name, ".co") != NULL
            && (only == NULL || strstr(e->d_name, only) != NULL)) {
            for (int schedule = 0; schedule < 3; schedule++)
                run(t, folder, e->d_name, (enum schedule)schedule, (enum rounding)schedule);
        }
    closedir(d);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(products_are_right) };
    return TEST_MAIN(argc, argv, cases);
}
