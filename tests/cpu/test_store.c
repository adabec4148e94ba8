/* Numbers of D from fp32 sums: every way to store them writes what bsm_element_encode makes of each, and nothing
 * else. */
#include "test.h"

#include "core/core.h"
#include "core/stream.h"
#include "cpu/epilogue/store.h"

#include <stdlib.h>

enum { ENDS = 23, UPPER_HALVES = 1 << 16, NUMBERS = ENDS * UPPER_HALVES, ROW = 1 << 12, MOST = 150 };

static const bsm_element elements[] = { BSM_FP32, BSM_BF16, BSM_FP16 };
static const bsm_format formats[] = { BSM_FORMAT_FP32, BSM_FORMAT_BF16, BSM_FORMAT_FP16 };
enum { ELEMENTS = 3 };

/* Every upper half of fp32; lower halves on both sides of what rounds another way in bf16 (16 bits are cut off), in
 * fp16 (13 bits), and where fp16 is subnormal. */
static float number(int64_t i)
{
    static const uint16_t ends[ENDS] = { 0,      1,      2,      0x0fff, 0x1000, 0x1001, 0x1fff, 0x2000,
                                         0x2fff, 0x3000, 0x3001, 0x4000, 0x5000, 0x7000, 0x7fff, 0x8000,
                                         0x8001, 0x9000, 0xb000, 0xc000, 0xd000, 0xf000, 0xffff };
    return bsmi_float_from_bits((uint32_t)(i / ENDS) << 16 | ends[i % ENDS]);
}

static uint32_t encoded(bsm_element element, float value)
{
    return bsm_element_encode(element, (double)value, BSM_ROUND_NEAREST_EVEN, false, 0);
}

static uint32_t stored(bsm_element element, const unsigned char *d, int64_t i)
{
    uint32_t number = 0;
    const size_t bytes = element == BSM_FP32 ? 4 : 2;
    memcpy(&number, d + (size_t)i * bytes, bytes);
    return number;
}

/* Features of this machine, and without those of AVX-512: number `way`, 0 or 1. */
static uint32_t features(struct test *t, int way)
{
    bsm_context *context = NULL;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    const uint32_t found = bsm_context_cpu_features(context);
    bsm_context_destroy(context);
    return way == 0 ? found : found & ~(uint32_t)BSM_CPU_AVX512;
}

/* rows x columns numbers of D; large: of a D with so many more rows that lines are written past the caches. */
static void store(struct test *t, int e, int way, bool large, float factor, int64_t rows, int64_t columns,
                  const float *sums, unsigned char *d)
{
    const bsm_matrix described = { .struct_size = sizeof described, .format = formats[e],
                                   .rows = large ? BSMI_STREAMED_BYTES : rows, .columns = columns, .data = d };
    struct bsmi_matrix m;
    CHECK_OR_RETURN(t, bsmi_matrix_resolve("d", &described, &m) == BSM_OK);
    CHECK(t, !large || bsmi_is_stored_past_caches(&m));
    const struct bsmi_destination to = { .matrix = &m, .tensor_scale = 1, .features = features(t, way) };
    for (int64_t i = 0; i < rows; i++) bsmi_store_scaled(&to, 0, i, 0, columns, factor, sums + i * columns);
}

static void compare(struct test *t, int e, int way, float factor, int64_t count, const float *sums,
                    const unsigned char *d)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t found = stored(elements[e], d, i), wanted = encoded(elements[e], factor * sums[i]);
        if (found == wanted) continue;
        FAIL(t, "%s, way %d: %a times %a is %x, expected %x", bsm_element_get((int)elements[e])->name, way,
             (double)factor, (double)sums[i], (unsigned)found, (unsigned)wanted);
        return;
    }
}

/* Past the caches, and not; factors: exact, and one that rounds. */
static void every_kind_of_number_is_rounded_once(struct test *t)
{
    static const float factors[] = { 1, -0.3F };
    float *sums = guarded_at_end(NUMBERS * sizeof *sums, 64, 0);
    for (int64_t i = 0; i < NUMBERS; i++) sums[i] = number(i);
    for (int e = 0; e < ELEMENTS; e++)
        for (int way = 0; way < 2; way++)
            for (int f = 0; f < 4; f++) {
                const size_t bytes = (size_t)NUMBERS * (elements[e] == BSM_FP32 ? 4 : 2);
                unsigned char *d = guarded_at_end(bytes, 64, 0xa5);
                store(t, e, way, f < 2, factors[f % 2], NUMBERS / ROW, ROW, sums, d);
                bsmi_end_stream();
                compare(t, e, way, factors[f % 2], NUMBERS / ROW * ROW, sums, d);
                guarded_free(d);
            }
    guarded_free(sums);
}

/* Neither sums nor D are touched behind their ends, which a page follows that faults, nor D in front of its start. */
static void only_the_numbers_are_touched(struct test *t)
{
    for (int64_t count = 1; count <= MOST; count++)
        for (int e = 0; e < ELEMENTS; e++)
            for (int way = 0; way < 2; way++) {
                const size_t bytes = elements[e] == BSM_FP32 ? 4 : 2, front = (size_t)(count % 5) * bytes;
                float *sums = guarded_at_end((size_t)count * sizeof *sums, 4, 0);
                unsigned char *d = guarded_at_end(front + (size_t)count * bytes, bytes, 0xa5);
                for (int64_t i = 0; i < count; i++) sums[i] = (float)rnd_normal(t);
                store(t, e, way, false, 3, 1, count, sums, d + front);
                compare(t, e, way, 3, count, sums, d + front);
                for (size_t i = 0; i < front; i++) CHECK(t, d[i] == 0xa5);
                guarded_free(sums);
                guarded_free(d);
            }
}

/* What is no whole line is written by itself: the numbers begin with a line, and end anywhere. */
static void only_whole_lines_go_past_the_caches(struct test *t)
{
    enum { BEHIND = 64 };
    float sums[MOST];
    _Alignas(64) unsigned char d[MOST * sizeof(float) + BEHIND];
    for (int64_t i = 0; i < MOST; i++) sums[i] = (float)rnd_normal(t);
    for (int64_t count = 32; count <= MOST; count++)             /* a D of fewer columns is none that is streamed */
        for (int e = 0; e < ELEMENTS; e++)
            for (int way = 0; way < 2; way++) {
                const size_t end = (size_t)count * (elements[e] == BSM_FP32 ? 4 : 2);
                memset(d, 0xa5, sizeof d);
                store(t, e, way, true, 3, 1, count, sums, d);
                bsmi_end_stream();
                compare(t, e, way, 3, count, sums, d);
                for (size_t i = end; i < end + BEHIND; i++) CHECK(t, d[i] == 0xa5);
            }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_kind_of_number_is_rounded_once),
                                              TEST(only_the_numbers_are_touched),
                                              TEST(only_whole_lines_go_past_the_caches) };
    return TEST_MAIN(argc, argv, cases);
}
