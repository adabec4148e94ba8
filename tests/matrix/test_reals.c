/* Strided reals: loads are exact, stores round once, extents are checked. */
#include "test.h"

#include "blockscale.h"
#include "matrix/matrix.h"
#include "matrix/reals.h"

#include <math.h>

static void rules_are_enforced_by_name(struct test *t)
{
    double memory[16];
    const bsm_real_matrix good = { .struct_size = sizeof good, .type = BSM_REAL_FP32, .rows = 2, .columns = 3,
                                   .data = memory,
                                   .row_stride = 3, .column_stride = 1 };
    struct bsmi_reals r;
    CHECK(t, bsmi_reals_resolve("x", &good, &r) == BSM_OK && r.batch == 1);
#define EXPECT(change, status, words) \
    do { \
        bsm_real_matrix m = good; \
        change; \
        CHECK(t, bsmi_reals_resolve("x", &m, &r) == (status)); \
        CHECK(t, strstr(bsm_last_error(), words) != NULL); \
    } while (0)
    EXPECT(m.type = BSM_REAL_COUNT, BSM_EINVAL, "x->type=4");
    EXPECT(m.rows = -1, BSM_EINVAL, "x->rows=-1");
    EXPECT(m.columns = -1, BSM_EINVAL, "x->columns=-1");
    EXPECT(m.batch = -1, BSM_EINVAL, "x->batch=-1");
    EXPECT(m.data = NULL, BSM_EINVAL, "x->data is NULL");
    EXPECT(m.data = (char *)memory + 2, BSM_EALIGN, "x->data=");
    EXPECT((m.type = BSM_REAL_FP64, m.data = (char *)memory + 4), BSM_EALIGN, "8 bytes");
    EXPECT(m.row_stride = INT64_MAX, BSM_EOVERFLOW, "x: rows=2");
    EXPECT((m.row_stride = INT64_MIN, m.rows = 3), BSM_EOVERFLOW, "x: rows=3");
    EXPECT((m.row_stride = INT64_MAX / 8, m.column_stride = INT64_MAX / 8), BSM_EOVERFLOW, "x: rows=2");
    EXPECT((m.batch = 3, m.batch_stride = INT64_MAX / 2), BSM_EOVERFLOW, "x: rows=2");
    bsm_real_matrix empty = good;
    empty.rows = 0, empty.data = NULL;
    CHECK(t, bsmi_reals_resolve("x", &empty, &r) == BSM_OK);
}

static void strides_address_every_direction(struct test *t)
{
    float memory[64], row[4];
    for (int i = 0; i < 64; i++) memory[i] = (float)i;
    /* Column-major, rows downwards, columns from the right, two matrices. */
    const bsm_real_matrix m = { .struct_size = sizeof m, .type = BSM_REAL_FP32, .rows = 4, .columns = 4,
                                .data = memory + 12,
                                .row_stride = 1, .column_stride = -4, .batch = 2, .batch_stride = 32 };
    struct bsmi_reals r;
    CHECK_OR_RETURN(t, bsmi_reals_resolve("x", &m, &r) == BSM_OK);
    bsmi_reals_row(&r, 1, 2, 1, 3, row);
    for (int i = 0; i < 3; i++) CHECK(t, row[i] == (float)(32 + 12 + 2 - 4 * (i + 1)));
}

static void all_halves_load_exactly_and_store_back(struct test *t)
{
    for (uint32_t code = 0; code < 65536; code++) {
        const uint16_t in = (uint16_t)code;
        uint16_t out = 0;
        for (int which = 0; which < 2; which++) {
            const bsm_real type = which == 0 ? BSM_REAL_FP16 : BSM_REAL_BF16;
            const int exponent_bits = which == 0 ? 5 : 8, mantissa_bits = 15 - exponent_bits,
                      bias = which == 0 ? 15 : 127;
            const int exponent = in >> mantissa_bits & ((1 << exponent_bits) - 1),
                      fraction = in & ((1 << mantissa_bits) - 1);
            const double value = bsmi_real_load(type, &in, 0);
            bsmi_real_store(type, &out, 0, value);
            if (exponent == (1 << exponent_bits) - 1 && fraction != 0) {
                CHECK(t, isnan(value) && out == (which == 0 ? 0x7e00 : 0x7fc0));
                continue;
            }
            const double magnitude = exponent == (1 << exponent_bits) - 1 ? INFINITY
                                     : exponent == 0
                                         ? ldexp(fraction, 1 - bias - mantissa_bits)
                                         : ldexp(fraction + (1 << mantissa_bits), exponent - bias - mantissa_bits);
            CHECK(t, fabs(value) == magnitude && signbit(value) == (in >> 15) && out == in);
        }
    }
}

/* 1 + 2^-11 + 2^-30: through fp32 it would become the fp16 tie 1 + 2^-11 and then 1. */
static void stores_round_once(struct test *t)
{
    uint16_t half;
    bsmi_real_store(BSM_REAL_FP16, &half, 0, 1 + 0x1p-11 + 0x1p-30);
    CHECK(t, half == 0x3c01);
    bsmi_real_store(BSM_REAL_FP16, &half, 0, 1 + 0x1p-11);
    CHECK(t, half == 0x3c00);
    bsmi_real_store(BSM_REAL_BF16, &half, 0, 1 + 0x1p-8 + 0x1p-40);
    CHECK(t, half == 0x3f81);
    bsmi_real_store(BSM_REAL_FP16, &half, 0, 65520.0);
    CHECK(t, half == 0x7c00);
    bsmi_real_store(BSM_REAL_FP16, &half, 0, -65519.999);
    CHECK(t, half == 0xfbff);
    float single;
    bsmi_real_store(BSM_REAL_FP32, &single, 0, NAN);
    uint32_t bits;
    memcpy(&bits, &single, 4);
    CHECK(t, bits == 0x7fc00000);
}

static void every_nan_is_stored_as_one(struct test *t)
{
    static const uint64_t nans[] = { 0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000001, 0xffffffffffffffff,
                                     0xfff8dead00000000 };
    for (int i = 0; i < 5; i++) {
        union { uint16_t half; uint32_t single; uint64_t both; } out = { .both = 0 };
        const double nan = bsmi_double_from_bits(nans[i]);
        bsmi_real_store(BSM_REAL_FP64, &out, 0, nan);
        CHECK(t, out.both == (uint64_t)0x7ff8 << 48);
        bsmi_real_store(BSM_REAL_FP32, &out, 0, nan);
        CHECK(t, out.single == 0x7fc00000);
        bsmi_real_store(BSM_REAL_FP16, &out, 0, nan);
        CHECK(t, out.half == 0x7e00);
        bsmi_real_store(BSM_REAL_BF16, &out, 0, nan);
        CHECK(t, out.half == 0x7fc0);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case tests[] = {
        TEST(rules_are_enforced_by_name),
        TEST(strides_address_every_direction),
        TEST(all_halves_load_exactly_and_store_back),
        TEST(stores_round_once),
        TEST(every_nan_is_stored_as_one),
    };
    return TEST_MAIN(argc, argv, tests);
}
