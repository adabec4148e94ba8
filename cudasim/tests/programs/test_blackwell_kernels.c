/* The kernels of kernels/blackwell_product.cu: every kind of tcgen05.mma, alone and in pairs, A and the scales by every
 * way into tensor memory, against the exact products of their operands.
 *
 *     test_cudasim_blackwell_kernels [--schedules N] [the options of test.h] */
#include <stdlib.h>

#include "tests/support/kernel_api.h"
#include "tests/reference/scaled_product.h"

enum { ROWS = 128, COLUMNS = 64, ROW_BYTES = 128, SHARED = 128 * 128 + 64 * 128 + 8 * 512 };

/* What a product is made of beside its operands. */
struct run {
    const char *kernel; /* "" and "_pair" versions, each with `stored` appended or not */
    const char *stored; /* how the version is called that writes A, or A and scales, to tensor memory; NULL: not run */
    enum kind kind;
    enum element a, b;
    enum scale_type scale;
    uint32_t block;
    int a_map, b_map;
    bool half; /* D of f16 */
};

/* ---- the instruction descriptor ---- */

static uint32_t type_code(enum kind kind, enum element e)
{
    switch (kind) {
    case KIND_F16: return e == E_BF16;
    case KIND_TF32: return 2;
    case KIND_I8: return e == E_S8;
    case KIND_MXF4:
    case KIND_MXF4NVF4: return 1;
    default: return e == E_E4M3 ? 0 : e == E_E5M2 ? 1 : e == E_E2M3 ? 3 : e == E_E3M2 ? 4 : 5;
    }
}

static uint32_t shape_of(const struct run *r, uint32_t m, uint32_t n)
{
    const uint32_t d = r->block != 0 ? 0 : r->kind == KIND_I8 ? 2 : !r->half;
    return d << 4 | type_code(r->kind, r->a) << 7 | type_code(r->kind, r->b) << 10 | n >> 3 << 17 |
           (uint32_t)(r->scale == SCALE_E8M0) << 23 | m >> 4 << 24;
}

/* ---- operands ---- */

struct operand {
    CUdeviceptr at;
    struct api_map map;
    uint32_t box_bytes;
};

/* By a map of bytes, padded already, or by one of packed elements, which TMA pads. */
static struct operand operand_of(struct test *t, const struct product *p, bool of_b, int type)
{
    const uint32_t rows = of_b ? p->n : p->m, box = of_b ? COLUMNS : ROWS,
                   bits = element_bits(of_b ? p->b_type : p->a_type);
    const uint32_t pitch = type == MAP_UINT8 ? container_row_bytes(p, of_b) : packed_row_bytes(p, of_b);
    uint8_t *host = malloc((size_t)rows * pitch);
    if (type == MAP_UINT8) product_pack_containers(p, of_b, host, pitch);
    else product_pack(p, of_b, host, pitch);
    struct operand x = { .at = api_buffer(t, host, (size_t)rows * pitch) };
    x.map = api_matrix_map(t, x.at, type, SWIZZLE_128B, (uint64_t[]){ type == MAP_UINT8 ? pitch : p->k, rows }, pitch,
                           ROW_BYTES, box);
    x.box_bytes = box * ROW_BYTES * (type == MAP_UINT8 ? 8 : bits) / 8;
    free(host);
    return x;
}

static struct operand scales_of(struct test *t, const struct product *p, bool of_b, uint32_t k_tiles)
{
    if (p->block == 0) return (struct operand){ .at = 0 };
    const uint32_t bytes = scale_block_bytes(p, of_b), box = p->k / k_tiles / p->block / 4 * 2;
    uint8_t *host = malloc(bytes);
    product_pack_scales(p, of_b, host);
    struct operand x = { .at = api_buffer(t, host, bytes), .box_bytes = box * 256 };
    x.map = api_matrix_map(t, x.at, MAP_UINT8, SWIZZLE_NONE, (uint64_t[]){ 256, bytes / 256 }, 256, 256, box);
    free(host);
    return x;
}

/* ---- a product ---- */

static void launch(struct test *t, const struct run *r, const struct product *p, const char *name, bool stored,
                   uint32_t group, uint32_t k_tiles, void *d)
{
    const struct api *api = api_get(t);
    struct operand a = operand_of(t, p, false, r->a_map), b = operand_of(t, p, true, r->b_map);
    struct operand sa = scales_of(t, p, false, k_tiles), sb = scales_of(t, p, true, k_tiles);
    const size_t d_bytes = (size_t)p->m * p->n * 4;
    CUdeviceptr to = api_buffer(t, NULL, d_bytes);
    uint32_t shape = shape_of(r, p->m, p->n),
             bytes = b.box_bytes + (stored ? 0 : a.box_bytes + sa.box_bytes + sb.box_bytes);
    int tiles = (int)k_tiles;
    OK(t, api->launch(
              api_function(t, CUDASIM_KERNELS "/blackwell_product.ptx", name, SHARED), group, 1, 1, 128, 1, 1, SHARED,
              NULL, (void *[]){ &a.map, &b.map, &sa.map, &sb.map, &a.at, &sa.at, &sb.at, &to, &tiles, &shape, &bytes },
              NULL));
    OK(t, api->synchronize());
    api_read(t, to, d, d_bytes);
    api_free(t, to), api_free(t, a.at), api_free(t, b.at), api_free(t, sa.at), api_free(t, sb.at);
}

static void one_product(struct test *t, const struct run *r, bool stored, uint32_t group, uint32_t k_tiles,
                        enum product_data data)
{
    static uint32_t d[2 * ROWS * 2 * COLUMNS];
    char name[64];
    const uint32_t bits = r->kind == KIND_F8F6F4 || r->kind == KIND_MXF8F6F4 ? 8 : element_bits(r->a);
    struct product p = { .kind = r->kind,
                         .a_type = r->a,
                         .b_type = r->b,
                         .scale = r->scale,
                         .block = r->block,
                         .m = group * ROWS,
                         .n = group * COLUMNS,
                         .k = k_tiles * ROW_BYTES * 8 / bits,
                         .data = data };
    snprintf(name, sizeof name, "%s%s%s", r->kernel, group == 2 ? "_pair" : "", stored ? r->stored : "");
    product_make(t, &p);
    launch(t, r, &p, name, stored, group, k_tiles, d);
    const int before = t->failures;
    product_check(t, &p, r->half ? OUTPUT_F16 : r->kind == KIND_I8 ? OUTPUT_S32 : OUTPUT_F32, d, p.n);
    if (t->failures != before) FAIL(t, "%s, types %d and %d, %u tiles of K", name, (int)r->a, (int)r->b, k_tiles);
    product_free(&p);
}

static void all_runs(struct test *t, const struct run *runs, int count, uint32_t group)
{
    for (int i = 0; i < count && t->failures == 0; i++) {
        const bool stored_too = runs[i].stored != NULL;
        one_product(t, &runs[i], false, group, 1, DATA_WHOLE);
        if (stored_too) one_product(t, &runs[i], true, group, 2, DATA_WHOLE);
        if (runs[i].half) continue; /* rounded to f16 after each instruction: exact for small whole numbers alone */
        one_product(t, &runs[i], false, group, 2, DATA_WIDE);
        if (stored_too) one_product(t, &runs[i], true, group, 1, DATA_WIDE);
    }
}

#define RUNS(name, ...) \
    static const struct run name##_runs[] = { __VA_ARGS__ }; \
    static void name(struct test *t) { all_runs(t, name##_runs, sizeof name##_runs / sizeof name##_runs[0], 1); } \
    static void name##_in_pairs(struct test *t) \
    { \
        all_runs(t, name##_runs, sizeof name##_runs / sizeof name##_runs[0], 2); \
    }

#define A_STORED "_a_stored"
RUNS(f16, { "f16", A_STORED, KIND_F16, E_F16, E_F16, SCALE_NONE, 0, 0, 0, false },
     { "f16", A_STORED, KIND_F16, E_BF16, E_BF16, SCALE_NONE, 0, 0, 0, false },
     { "f16_to_f16", NULL, KIND_F16, E_F16, E_F16, SCALE_NONE, 0, 0, 0, true })
RUNS(tf32, { "tf32", A_STORED, KIND_TF32, E_TF32, E_TF32, SCALE_NONE, 0, 0, 0, false })
RUNS(i8, { "i8", A_STORED, KIND_I8, E_S8, E_S8, SCALE_NONE, 0, 0, 0, false },
     { "i8", A_STORED, KIND_I8, E_U8, E_S8, SCALE_NONE, 0, 0, 0, false })
RUNS(f8f6f4, { "f8f6f4", A_STORED, KIND_F8F6F4, E_E4M3, E_E4M3, SCALE_NONE, 0, 0, 0, false },
     { "f8f6f4", A_STORED, KIND_F8F6F4, E_E5M2, E_E2M1, SCALE_NONE, 0, 0, 0, false },
     { "f8f6f4", NULL, KIND_F8F6F4, E_E2M3, E_E3M2, SCALE_NONE, 0, 0, 0, false },
     { "f8f6f4", NULL, KIND_F8F6F4, E_E3M2, E_E2M1, SCALE_NONE, 0, MAP_PACKED_6, MAP_PACKED_4, false },
     { "f8f6f4_to_f16", NULL, KIND_F8F6F4, E_E4M3, E_E5M2, SCALE_NONE, 0, 0, 0, true })
#define STORED "_stored"
RUNS(mxf8f6f4, { "mxf8f6f4", STORED, KIND_MXF8F6F4, E_E4M3, E_E4M3, SCALE_E8M0, 32, 0, 0, false },
     { "mxf8f6f4", STORED, KIND_MXF8F6F4, E_E5M2, E_E2M1, SCALE_E8M0, 32, 0, 0, false },
     { "mxf8f6f4", NULL, KIND_MXF8F6F4, E_E2M1, E_E2M3, SCALE_E8M0, 32, MAP_PACKED_4, MAP_PACKED_6, false })
RUNS(mxf4, { "mxf4", STORED, KIND_MXF4, E_E2M1, E_E2M1, SCALE_E8M0, 32, 0, 0, false })
RUNS(mxf4nvf4_2x, { "mxf4nvf4_2x", STORED, KIND_MXF4NVF4, E_E2M1, E_E2M1, SCALE_E8M0, 32, 0, 0, false })
RUNS(mxf4nvf4_4x, { "mxf4nvf4_4x", STORED, KIND_MXF4NVF4, E_E2M1, E_E2M1, SCALE_UE4M3, 16, 0, 0, false },
     { "mxf4nvf4_4x", STORED, KIND_MXF4NVF4, E_E2M1, E_E2M1, SCALE_E8M0, 16, 0, 0, false })

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(f16),         TEST(f16_in_pairs),         TEST(tf32),        TEST(tf32_in_pairs),
        TEST(i8),          TEST(i8_in_pairs),          TEST(f8f6f4),      TEST(f8f6f4_in_pairs),
        TEST(mxf8f6f4),    TEST(mxf8f6f4_in_pairs),    TEST(mxf4),        TEST(mxf4_in_pairs),
        TEST(mxf4nvf4_2x), TEST(mxf4nvf4_2x_in_pairs), TEST(mxf4nvf4_4x), TEST(mxf4nvf4_4x_in_pairs),
    };
    const int kept = api_begin(argc, argv, "sm_100a");
    return TEST_MAIN(kept, argv, cases);
}
