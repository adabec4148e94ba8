/* Merged tensor scales: against the nearest code, found by trying all of them in exact arithmetic. */
#include "blockscale.h"
#include "test.h"

#include <fenv.h>
#include <math.h>

enum { COLUMNS = 40, SCALE_COLUMNS = 3 };

struct part {
    bsm_matrix matrix;
    unsigned char codes[8 * COLUMNS / 2], scales[8 * 512];
    float tensor_scale;
};

static void make_part(struct test *t, struct part *p, int64_t rows, float tensor_scale, bsm_tensor_scale_use use,
                      bsm_layout layout)
{
    *p = (struct part){ .tensor_scale = tensor_scale };
    p->matrix = (bsm_matrix){ .struct_size = sizeof p->matrix,
                              .format = BSM_NVFP4,
                              .rows = rows,
                              .columns = COLUMNS,
                              .data = p->codes,
                              .scales = p->scales,
                              .scale_layout = { .kind = layout },
                              .tensor_scale = &p->tensor_scale,
                              .tensor_scale_use = use };
    for (size_t i = 0; i < sizeof p->scales; i++) p->scales[i] = (unsigned char)(rnd(t) & 0x7f);
}

static uint8_t code_of(const struct part *p, int64_t row, int64_t column)
{
    uint8_t code = 0;
    return bsm_matrix_get_scale(&p->matrix, 0, row, column, &code) == BSM_OK ? code : 0;
}

/* The code nearest to a / b, ties to the even one; a and b exact in long double (value of 4 bits times fp32). */
static uint8_t nearest(long double a, long double b)
{
    int best = 0;
    for (int code = 1; code < 0x7f; code++) {
        const long double here = fabsl((long double)bsm_scale_decode(BSM_UE4M3, (uint8_t)code) * b - a);
        const long double there = fabsl((long double)bsm_scale_decode(BSM_UE4M3, (uint8_t)best) * b - a);
        if (here < there || (!(here > there) && code % 2 == 0)) best = code;
    }
    return (uint8_t)best;
}

static void merged_scales(struct test *t)
{
    static const float factors[] = { 1, 0.5f, 0.75f, 0.1f, 1.0f / 3, 0.9999999f, 1e-3f, 1e-30f, 0x1p-149f };
    static struct part a, b, c;
    const bsm_matrix *parts[] = { &a.matrix, &b.matrix, &c.matrix };
    for (int divides = 0; divides < 2; divides++)
        for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
            const bsm_tensor_scale_use use = divides ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES;
            const float base = divides ? 1e-4f : 3,
                        own = divides ? fminf(base / factors[i], 3e38f) : fmaxf(base * factors[i], 0x1p-149f);
            uint8_t scales[(2 + 8 + 1) * SCALE_COLUMNS + 1];
            float merged = 0;
            bsm_merge_stats stats = { .struct_size = sizeof stats };
            make_part(t, &a, 2, own, use, BSM_LAYOUT_LINEAR);
            make_part(t, &b, 8, base, use, BSM_LAYOUT_128X4);
            make_part(t, &c, 1, own, use, BSM_LAYOUT_LINEAR);
            memset(scales, 0xee, sizeof scales);
            CHECK(t, bsm_tensor_scales_merge(parts, 3, scales, &merged, &stats) == BSM_OK);
            CHECK(t, memcmp(&merged, &base, sizeof base) == 0 && scales[sizeof scales - 1] == 0xee);
            int64_t rounded = 0, flushed = 0;
            for (int64_t r = 0; r < 11; r++)
                for (int64_t s = 0; s < SCALE_COLUMNS; s++) {
                    const struct part *p = r < 2 ? &a : r < 10 ? &b : &c;
                    const uint8_t code = code_of(p,
                                                 r < 2    ? r
                                                 : r < 10 ? r - 2
                                                          : 0,
                                                 s),
                                  got = scales[r * SCALE_COLUMNS + s];
                    const long double value = (long double)bsm_scale_decode(BSM_UE4M3, code),
                                      t0 = (long double)p->tensor_scale, t1 = (long double)base;
                    const uint8_t want = code == 0x7f ? 0x7f : nearest(value * (divides ? t1 : t0), divides ? t0 : t1);
                    if (got != want)
                        FAIL(t, "code 0x%02x under %g for %g: 0x%02x, not 0x%02x", code, (double)p->tensor_scale,
                             (double)base, got, want);
                    const long double exact = value * (divides ? t1 : t0),
                                      is = (long double)bsm_scale_decode(BSM_UE4M3, got) * (divides ? t0 : t1);
                    if (code != 0x7f) rounded += is < exact || is > exact, flushed += got == 0 && code != 0;
                }
            CHECK(t, stats.scales == 33 && stats.rounded_scales == rounded && stats.flushed_scales == flushed);
            CHECK(t, (stats.worst_error > 0) == (rounded > 0)
                         && (flushed > 0 ? stats.worst_error >= 1 : stats.worst_error <= 1));
        }
}

/* No block scale grows: none becomes NaN, whatever the ratio and however the caller rounds. */
static void never_overflows(struct test *t)
{
    static struct part a, b;
    const bsm_matrix *parts[] = { &a.matrix, &b.matrix };
    for (int divides = 0; divides < 2; divides++)
        for (int swap = 0; swap < 2; swap++) {
            const bsm_tensor_scale_use use = divides ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES;
            uint8_t scales[4 * SCALE_COLUMNS];
            float merged;
            make_part(t, &a, 2, swap ? 10 : 1, use, BSM_LAYOUT_LINEAR);
            make_part(t, &b, 2, swap ? 1 : 10, use, BSM_LAYOUT_LINEAR);
            memset(a.scales, 0x7e, sizeof a.scales);
            memset(b.scales, 0x7e, sizeof b.scales);
            const int mode = fegetround();
            fesetround(FE_UPWARD);
            const bsm_status status = bsm_tensor_scales_merge(parts, 2, scales, &merged, NULL);
            CHECK(t, fegetround() == FE_UPWARD);
            fesetround(mode);
            const int kept = (divides != 0) == (swap != 0) ? 1 : 0; /* whose tensor scale is the merged one */
            CHECK(t, status == BSM_OK && !(merged < (divides ? 1 : 10)) && !(merged > (divides ? 1 : 10)));
            for (int i = 0; i < 4 * SCALE_COLUMNS; i++)
                CHECK(t, scales[i] == (i / (2 * SCALE_COLUMNS) == kept ? 0x7e : nearest(448, 10)));
        }
}

static void refused(struct test *t)
{
    static struct part a, b;
    const bsm_matrix *parts[] = { &a.matrix, &b.matrix };
    uint8_t scales[16 * SCALE_COLUMNS];
    float merged = 7;
    bsm_merge_stats stats = { .struct_size = 3 };
    make_part(t, &a, 2, 1, BSM_TENSOR_SCALE_MULTIPLIES, BSM_LAYOUT_LINEAR);
    make_part(t, &b, 2, 1, BSM_TENSOR_SCALE_MULTIPLIES, BSM_LAYOUT_LINEAR);
    memset(scales, 0xee, sizeof scales);
    CHECK(t, bsm_tensor_scales_merge(NULL, 2, scales, &merged, NULL) == BSM_EINVAL &&
                 strstr(bsm_last_error(), "parts is NULL") != NULL);
    CHECK(t, bsm_tensor_scales_merge(parts, 2, NULL, &merged, NULL) == BSM_EINVAL &&
                 bsm_tensor_scales_merge(parts, 2, scales, NULL, NULL) == BSM_EINVAL);
    CHECK(t, bsm_tensor_scales_merge(parts, 0, scales, &merged, NULL) == BSM_EINVAL
                 && strstr(bsm_last_error(), "count=0") != NULL);
    CHECK(t, bsm_tensor_scales_merge(parts, 2, scales, &merged, &stats) == BSM_EINVAL &&
                 strstr(bsm_last_error(), "struct_size is 3") != NULL);
    b.tensor_scale = 0;
    CHECK(t, bsm_tensor_scales_merge(parts, 2, scales, &merged, NULL) == BSM_EINVAL &&
                 strstr(bsm_last_error(), "finite and > 0") != NULL);
    b.tensor_scale = 1, b.matrix.tensor_scale_use = BSM_TENSOR_SCALE_DIVIDES;
    CHECK(t, bsm_tensor_scales_merge(parts, 2, scales, &merged, NULL) == BSM_EINVAL &&
                 strstr(bsm_last_error(), "tensor_scale_use=1") != NULL);
    b.matrix.tensor_scale_use = BSM_TENSOR_SCALE_MULTIPLIES, b.matrix.columns = 32;
    CHECK(t, bsm_tensor_scales_merge(parts, 2, scales, &merged, NULL) == BSM_EINVAL &&
                 strstr(bsm_last_error(), "columns=32: parts[0] has 40") != NULL);
    b.matrix.columns = COLUMNS, b.matrix.batch = 2;
    CHECK(t, bsm_tensor_scales_merge(parts, 2, scales, &merged, NULL) == BSM_EINVAL
                 && strstr(bsm_last_error(), "batch=2") != NULL);
    b.matrix.batch = 1, b.matrix.format = BSM_MXFP4;
    CHECK(t, bsm_tensor_scales_merge(parts, 2, scales, &merged, NULL) == BSM_EUNSUPPORTED &&
                 strstr(bsm_last_error(), "mxfp4") != NULL);
    CHECK(t, !(merged < 7) && !(merged > 7));
    for (size_t i = 0; i < sizeof scales; i++) CHECK(t, scales[i] == 0xee);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(merged_scales), TEST(never_overflows), TEST(refused) };
    return TEST_MAIN(argc, argv, cases);
}
