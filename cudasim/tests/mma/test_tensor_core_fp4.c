/* Block-scaled dot products of e2m1 against the model in doubles, and against results worked out by hand. */
#include "tests/reference/block_scaled_reference.h"
#include "test.h"

#include <math.h>

enum { LENGTH = 128, GROUPS = LENGTH / TENSOR_FP4_GROUP };

struct dot {
    enum tensor_scale_format format;
    int length, block;                    /* block: elements that share a scale */
    uint32_t a[LENGTH], b[LENGTH], sa[GROUPS], sb[GROUPS], c;
};

static uint32_t bits(float value)
{
    uint32_t code;
    memcpy(&code, &value, 4);
    return code;
}

static uint32_t run_dot(const struct dot *x, bool plain)
{
    TENSOR_FP4_STORAGE(storage_a, 1, GROUPS, TENSOR_FP4_GROUP);
    TENSOR_FP4_STORAGE(storage_b, 1, GROUPS, TENSOR_FP4_GROUP);
    struct tensor_fp4 a = TENSOR_FP4_PANEL(storage_a), b = TENSOR_FP4_PANEL(storage_b);
    const uint32_t groups = (uint32_t)x->length / TENSOR_FP4_GROUP;
    tensor_fp4_clear(&a, 1, groups, TENSOR_FP4_GROUP);
    tensor_fp4_clear(&b, 1, groups, TENSOR_FP4_GROUP);
    for (uint32_t k = 0; k < (uint32_t)x->length; k++)
        tensor_fp4_set(&a, 0, k, x->a[k]), tensor_fp4_set(&b, 0, k, x->b[k]);
    for (uint32_t g = 0; g < groups; g++) {
        tensor_fp4_scale(&a, 0, g, x->format, x->sa[g * TENSOR_FP4_GROUP / (uint32_t)x->block]);
        tensor_fp4_scale(&b, 0, g, x->format, x->sb[g * TENSOR_FP4_GROUP / (uint32_t)x->block]);
    }
    return tensor_fp4_dot(&a, 0, &b, 0, x->c, plain);
}

static uint32_t wanted(const struct dot *x)
{
    return block_model_fp4(x->a, x->b, x->format, x->sa, x->sb, x->length, x->block, x->c);
}

static uint32_t draw_scale(struct test *t, enum tensor_scale_format format, int manner)
{
    if (rnd(t) % 500 == 0) return rnd(t) & 255;
    if (format == TENSOR_UE4M3)
        return (uint32_t)(manner == 1 ? rnd_between(t, 48, 63) : rnd_below(t, 127) + 128 * rnd_below(t, 2));
    const int64_t spread = manner == 1 ? 6 : 40;
    return (uint32_t)(manner == 0 ? rnd_below(t, 255) : rnd_between(t, 127 - spread, 127 + spread));
}

/* Scales of all codes; near 1; c that cancels, or is far above or below the products. */
static void draw(struct test *t, struct dot *x, int manner)
{
    for (int k = 0; k < x->length; k++) {
        x->a[k] = rnd(t) & 15, x->b[k] = rnd(t) & 15;
        /* groups that sum to zero */
        if (manner == 3 && k % 2 == 1) x->a[k] = x->a[k - 1] ^ 8, x->b[k] = x->b[k - 1];
    }
    for (int j = 0; j < x->length / x->block; j++) {
        x->sa[j] = draw_scale(t, x->format, manner);
        x->sb[j] = draw_scale(t, x->format, manner);
    }
    x->c = manner == 3 && rnd(t) % 2 == 0 ? (uint32_t)(rnd(t) & 0x80000000) : (uint32_t)rnd(t);
    if (manner != 0 && x->c << 1 != 0) x->c = (x->c & 0x807fffff) | (uint32_t)rnd_between(t, 100, 150) << 23;
}

static void sums_equal_those_of_the_model(struct test *t)
{
    static const struct { enum tensor_scale_format format; int length, block; } shapes[] = {
        { TENSOR_UE8M0, 64, 32 }, { TENSOR_UE4M3, 64, 16 },  { TENSOR_UE8M0, 64, 16 },
        { TENSOR_UE4M3, 96, 16 }, { TENSOR_UE8M0, 128, 32 },
    };
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int i = 0; i < 20000; i++) {
            struct dot x = { .format = shapes[s].format, .length = shapes[s].length, .block = shapes[s].block };
            draw(t, &x, i % 4);
            if (i % 3 == 0) {                                                    /* c cancels the rest, nearly */
                x.c = 0;
                x.c = wanted(&x) ^ 0x80000000;
                x.c ^= (uint32_t)rnd_below(t, 4);
            }
            const uint32_t got = run_dot(&x, false), want = wanted(&x);
            if (got != want) FAIL(t, "shape %zu, case %d: 0x%x, not 0x%x (c 0x%x)", s, i, got, want, x.c);
        }
}

static struct dot ones(enum tensor_scale_format format, int block)
{
    struct dot x = { .format = format, .length = 64, .block = block };
    for (int k = 0; k < 64; k++) x.a[k] = x.b[k] = 2;
    for (int g = 0; g < 4; g++) x.sa[g] = x.sb[g] = format == TENSOR_UE8M0 ? 127 : 0x38;
    return x;
}

static void codes_have_their_values(struct test *t)
{
    static const float element[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    for (uint32_t code = 0; code < 16; code++) {
        struct dot x = ones(TENSOR_UE8M0, 32);
        x.a[17] = code;
        CHECK(t, run_dot(&x, false) == bits(63 + (code < 8 ? element[code] : -element[code - 8])));
        CHECK(t, run_dot(&x, true) == run_dot(&x, false));
    }
    for (uint32_t code = 0; code < 256; code++) {
        struct dot x = ones(TENSOR_UE4M3, 16);
        for (int k = 0; k < 64; k++) x.b[k] = k == 40 ? 2 : 0;
        x.sa[2] = code;
        const int field = (int)(code % 128 / 8), eighths = (int)(code % 8);
        const double value = code % 128 == 127 ? (double)NAN
                             : field == 0      ? ldexp(eighths, -9)
                                               : ldexp(8 + eighths, field - 10);
        const uint32_t want = isnan(value) ? 0x7fffffff : bits((float)value);
        if (run_dot(&x, false) != want) FAIL(t, "ue4m3 0x%02x gives 0x%x, not 0x%x", code, run_dot(&x, false), want);
        CHECK(t, run_dot(&x, true) == want);
        x = ones(TENSOR_UE8M0, 32);
        for (int k = 0; k < 64; k++) x.b[k] = k == 40 ? 2 : 0;
        x.sa[0] = x.sa[1] = code;                                                /* else the zeros would be aligned
                                                                                    to */
        const uint32_t power = code == 255 ? 0x7fffffff : code == 0 ? 0x00400000 : code << 23;
        if (run_dot(&x, false) != power) FAIL(t, "ue8m0 0x%02x gives 0x%x, not 0x%x", code, run_dot(&x, false), power);
        CHECK(t, run_dot(&x, true) == power);
    }
}

static void terms_are_cut_behind_35_bits(struct test *t)
{
    struct dot x = ones(TENSOR_UE8M0, 16);
    for (int k = 0; k < 64; k++) x.b[k] = k % 16 == 0 ? 2 : 0;                  /* each group sums to its scales */
    x.c = bits(-1.0f);
    x.sa[1] = 127 - 35, x.sa[2] = x.sa[3] = 127 - 36;                           /* 1 + 2^-35 + 2^-36 + 2^-36 - 1 */
    CHECK(t, run_dot(&x, false) == bits(0x1p-35f));
    for (int k = 16; k < 32; k++) x.b[k] = 0;
    x.sa[1] = 127 + 1;                                                           /* a group of zeros moves the last
                                                                                    place */
    CHECK(t, run_dot(&x, false) == 0);
    x.sa[2] = 127 - 34;
    CHECK(t, run_dot(&x, false) == bits(0x1p-34f));
    x = ones(TENSOR_UE8M0, 32);
    x.c = bits(0x1p-18f);
    CHECK(t, run_dot(&x, false) == bits(64.0f));                                 /* toward zero */
    x.c = bits(-0x1p-18f);
    CHECK(t, run_dot(&x, false) == bits(nextafterf(64, 0)));
}

/* Terms are aligned to no smaller exponent than -126, however small all of them are. */
static void the_least_exponent(struct test *t)
{
    struct dot x = ones(TENSOR_UE8M0, 16);
    for (int k = 0; k < 64; k++) x.b[k] = k % 16 == 0 && k < 32 ? 2 : 0;
    x.b[16] |= 8;
    for (int g = 0; g < 4; g++) x.sa[g] = 127 - 75, x.sb[g] = 127 - 74;          /* 2^-149 */
    x.sa[1] = 127 - 82, x.sb[1] = 127 - 79;                                      /* -2^-161: the last place */
    CHECK(t, run_dot(&x, false) == 0);
    x.sb[1] = 127 - 80;                                                          /* -2^-162: cut */
    CHECK(t, run_dot(&x, false) == 1);
}

static void specials(struct test *t)
{
    struct dot x = ones(TENSOR_UE8M0, 32);
    x.c = 0x7f800000;
    CHECK(t, run_dot(&x, false) == 0x7f800000);
    x.c = 0xff800000;
    CHECK(t, run_dot(&x, false) == 0xff800000);
    x.c = 0xffc00001;
    CHECK(t, run_dot(&x, false) == 0x7fffffff);
    x.c = 0;
    for (int g = 0; g < 2; g++) x.sa[g] = x.sb[g] = 254;
    CHECK(t, run_dot(&x, false) == 0x7f800000);
    for (int g = 0; g < 2; g++) x.sb[g] = 0;
    CHECK(t, run_dot(&x, false) == bits(64.0f) && run_dot(&x, true) == bits(64.0f));
    for (int g = 0; g < 2; g++) x.sa[g] = 0;
    CHECK(t, run_dot(&x, false) == 0);
}

static void kept_elements_of_a_sparse_row_are_a_group(struct test *t)
{
    TENSOR_FP4_STORAGE(storage_a, 2, 4, TENSOR_FP4_SPARSE_GROUP);
    TENSOR_FP4_STORAGE(storage_b, 3, 4, TENSOR_FP4_SPARSE_GROUP);
    struct tensor_fp4 a = TENSOR_FP4_PANEL(storage_a), b = TENSOR_FP4_PANEL(storage_b);
    for (int i = 0; i < 1000; i++) {
        uint32_t ka[2][64], kb[2][3][64], sa[2][4], sb[3][4], d[6], c[6];
        tensor_fp4_clear(&a, 2, 4, TENSOR_FP4_SPARSE_GROUP);
        tensor_fp4_clear(&b, 3, 4, TENSOR_FP4_SPARSE_GROUP);
        for (uint32_t j = 0; j < 3; j++)
            for (uint32_t g = 0; g < 4; g++)
                tensor_fp4_scale(&b, j, g, TENSOR_UE4M3, sb[j][g] = (uint32_t)rnd_below(t, 127));
        uint32_t code[3][128];
        for (uint32_t j = 0; j < 3; j++)
            for (uint32_t k = 0; k < 128; k++) tensor_fp4_set(&b, j, k, code[j][k] = rnd(t) & 15);
        for (uint32_t r = 0; r < 2; r++) {
            for (uint32_t g = 0; g < 4; g++)
                tensor_fp4_scale(&a, r, g, TENSOR_UE4M3, sa[r][g] = (uint32_t)rnd_below(t, 127));
            for (uint32_t e = 0; e < 64; e++) {
                const uint32_t k = 2 * e + (rnd(t) & 1);
                tensor_fp4_set(&a, r, k, ka[r][e] = rnd(t) & 15);
                for (uint32_t j = 0; j < 3; j++) kb[r][j][e] = code[j][k];
            }
        }
        for (uint32_t n = 0; n < 6; n++) d[n] = c[n] = bits((float)rnd_normal(t));
        tensor_fp4_multiply(&a, &b, false, d);
        for (uint32_t n = 0; n < 6; n++)
            CHECK(
                t,
                d[n] == block_model_fp4(ka[n / 3], kb[n / 3][n % 3], TENSOR_UE4M3, sa[n / 3], sb[n % 3], 64, 16, c[n]));
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(sums_equal_those_of_the_model), TEST(codes_have_their_values), TEST(terms_are_cut_behind_35_bits),
        TEST(the_least_exponent), TEST(specials), TEST(kept_elements_of_a_sparse_row_are_a_group),
    };
    return TEST_MAIN(argc, argv, cases);
}
