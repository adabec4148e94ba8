/* Descriptors of tcgen05.mma: every value of every field of the instruction descriptor, taken or refused as the
 * manual's tables say; the matrix descriptor's fields, and where its layouts put the elements. */
#include "machine/mma/instruction_descriptor.h"
#include "machine/mma/matrix_descriptor.h"
#include "test.h"

#include <string.h>

/* ---- whole descriptors ---- */

static struct tcgen05_form plain(enum tcgen05_kind kind) { return (struct tcgen05_form){ .kind = kind, .ctas = 1 }; }
static struct tcgen05_form scaled(enum tcgen05_kind kind, uint8_t block)
{
    return (struct tcgen05_form){ .kind = kind, .ctas = 1, .block = block };
}

static bool takes(uint32_t descriptor, struct tcgen05_form form, uint32_t sm, struct mma_shape *shape, char why[256])
{
    struct mma_shape unused;
    why[0] = '\0';
    return instruction_descriptor_of(descriptor, &form, sm, shape != NULL ? shape : &unused, why, 256);
}

/* The values that kernels of CUTLASS, DeepGEMM and Triton use. */
static void known_values_are_read(struct test *t)
{
    static const struct {
        uint32_t value;
        enum tcgen05_kind kind;
        uint8_t ctas, block;
        uint32_t m, n, k;
        enum tensor_format a, b;
        bool ue4m3;
    } known[] = {
        { 0x08200490, TCGEN05_F16, 1, 0, 128, 128, 16, TENSOR_BF16, TENSOR_BF16, false },
        { 0x08400490, TCGEN05_F16, 1, 0, 128, 256, 16, TENSOR_BF16, TENSOR_BF16, false },
        { 0x10400490, TCGEN05_F16, 2, 0, 256, 256, 16, TENSOR_BF16, TENSOR_BF16, false },
        { 0x08200010, TCGEN05_F8F6F4, 1, 0, 128, 128, 32, TENSOR_E4M3, TENSOR_E4M3, false },
        { 0x08400010, TCGEN05_F8F6F4, 1, 0, 128, 256, 32, TENSOR_E4M3, TENSOR_E4M3, false },
        { 0x10400010, TCGEN05_F8F6F4, 2, 0, 256, 256, 32, TENSOR_E4M3, TENSOR_E4M3, false },
        { 0x08A00000, TCGEN05_MXF8F6F4, 1, 32, 128, 128, 32, TENSOR_E4M3, TENSOR_E4M3, false },
        { 0x08C00000, TCGEN05_MXF8F6F4, 1, 32, 128, 256, 32, TENSOR_E4M3, TENSOR_E4M3, false },
        { 0x10C00000, TCGEN05_MXF8F6F4, 2, 32, 256, 256, 32, TENSOR_E4M3, TENSOR_E4M3, false },
        { 0x08A01400, TCGEN05_MXF8F6F4, 1, 32, 128, 128, 32, TENSOR_E4M3, TENSOR_E2M1, false },
        { 0x10C01400, TCGEN05_MXF8F6F4, 2, 32, 256, 256, 32, TENSOR_E4M3, TENSOR_E2M1, false },
        { 0x08A00480, TCGEN05_MXF4, 1, 32, 128, 128, 64, TENSOR_E2M1, TENSOR_E2M1, false },
        { 0x08A00480, TCGEN05_MXF4NVF4, 1, 16, 128, 128, 64, TENSOR_E2M1, TENSOR_E2M1, false },
        { 0x08200480, TCGEN05_MXF4NVF4, 1, 16, 128, 128, 64, TENSOR_E2M1, TENSOR_E2M1, true },
        { 0x08400480, TCGEN05_MXF4NVF4, 1, 16, 128, 256, 64, TENSOR_E2M1, TENSOR_E2M1, true },
        { 0x10400480, TCGEN05_MXF4NVF4, 2, 16, 256, 256, 64, TENSOR_E2M1, TENSOR_E2M1, true },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct mma_shape s;
        char why[256];
        const struct tcgen05_form form = { .kind = known[i].kind, .ctas = known[i].ctas, .block = known[i].block };
        if (!takes(known[i].value, form, 100, &s, why)) {
            FAIL(t, "0x%x: %s", known[i].value, why);
            continue;
        }
        if (s.m != known[i].m || s.n != known[i].n || s.k != known[i].k || s.a_format != known[i].a
            || s.b_format != known[i].b || s.ue4m3 != known[i].ue4m3 || s.f16_output || s.a_negated || s.b_negated
            || s.a_mn_major || s.b_mn_major)
            FAIL(t, "0x%x is read as %u x %u x %u", known[i].value, s.m, s.n, s.k);
    }
}

/* ---- each field ---- */

struct field_case { uint32_t at, width; uint64_t legal; };   /* legal: bit v where v is taken; all other bits as in the
                                                                base */

static void try_fields(struct test *t, const char *name, uint32_t base, struct tcgen05_form form,
                       const struct field_case *f, size_t count)
{
    char why[256], place[24];
    uint32_t covered = 0;
    if (!takes(base, form, 100, NULL, why)) FAIL(t, "%s: the base 0x%x %s", name, base, why);
    for (size_t i = 0; i < count; i++) {
        const uint32_t mask = (uint32_t)((UINT64_C(1) << f[i].width) - 1) << f[i].at;
        CHECK(t, (covered & mask) == 0);
        covered |= mask;
        for (uint32_t v = 0; v < 1u << f[i].width; v++) {
            const uint32_t value = (base & ~mask) | v << f[i].at;
            const bool want = (f[i].legal >> v & 1) != 0;
            if (takes(value, form, 100, NULL, why) != want)
                FAIL(t, "%s: %u at bit %u: %s", name, v, f[i].at, want ? why : "taken");
            if (want) continue;
            if (f[i].width == 1) snprintf(place, sizeof place, "in bit %u", f[i].at);
            else snprintf(place, sizeof place, "in bits %u..", f[i].at + f[i].width - 1);
            if (strstr(why, place) == NULL) FAIL(t, "%s: %u at bit %u is refused thus: %s", name, v, f[i].at, why);
        }
    }
    CHECK(t, covered == UINT32_MAX);
}
#define TRY(t, base, form, ...) \
    try_fields(t, #form, base, form, (const struct field_case[]){ __VA_ARGS__ }, \
               sizeof((const struct field_case[]){ __VA_ARGS__ }) / sizeof(struct field_case))

enum { ONLY_0 = 1, ONLY_1 = 2, BOTH = 3, TYPES = 1 | 2 | 8 | 16 | 32 };
static const uint64_t every_n = UINT64_C(0x1fffffffe), even_n = UINT64_C(0x155555554), i8_n = UINT64_C(0x15555555e);

static void plain_fields(struct test *t)
{
    const struct field_case none = { 30, 2, 1 };
    TRY(t, 0x08400490, plain(TCGEN05_F16), { 0, 2, 1 }, { 2, 1, ONLY_0 }, { 3, 1, ONLY_0 }, { 4, 2, 2 },
        { 6, 1, ONLY_0 }, { 7, 3, 2 }, { 10, 3, 2 }, { 13, 1, BOTH }, { 14, 1, BOTH }, { 15, 1, BOTH }, { 16, 1, BOTH },
        { 17, 6, every_n }, { 23, 1, ONLY_0 }, { 24, 5, 0x110 }, { 29, 1, ONLY_0 }, none);
    TRY(t, 0x08400910, plain(TCGEN05_TF32), { 0, 2, 1 }, { 2, 1, ONLY_0 }, { 3, 1, ONLY_0 }, { 4, 2, 2 },
        { 6, 1, ONLY_0 }, { 7, 3, 4 }, { 10, 3, 4 }, { 13, 1, BOTH }, { 14, 1, BOTH }, { 15, 1, BOTH }, { 16, 1, BOTH },
        { 17, 6, every_n }, { 23, 1, ONLY_0 }, { 24, 5, 0x110 }, { 29, 1, ONLY_0 }, none);
    TRY(t, 0x08400010, plain(TCGEN05_F8F6F4), { 0, 2, 1 }, { 2, 1, ONLY_0 }, { 3, 1, ONLY_0 }, { 4, 2, 3 },
        { 6, 1, ONLY_0 }, { 7, 3, TYPES }, { 10, 3, TYPES }, { 13, 1, BOTH }, { 14, 1, BOTH }, { 15, 1, BOTH },
        { 16, 1, BOTH }, { 17, 6, every_n }, { 23, 1, ONLY_0 }, { 24, 5, 0x110 }, { 29, 1, ONLY_0 }, none);
    TRY(t, 0x08400020, plain(TCGEN05_I8), { 0, 2, 1 }, { 2, 1, ONLY_0 }, { 3, 1, BOTH }, { 4, 2, 4 }, { 6, 1, ONLY_0 },
        { 7, 3, 3 }, { 10, 3, 3 }, { 13, 1, ONLY_0 }, { 14, 1, ONLY_0 }, { 15, 1, BOTH }, { 16, 1, BOTH },
        { 17, 6, i8_n }, { 23, 1, ONLY_0 }, { 24, 5, 0x110 }, { 29, 1, ONLY_0 }, none);
}

static void fields_of_sparse_pairs_and_ws(struct test *t)
{
    struct tcgen05_form f = plain(TCGEN05_F16);
    const uint32_t n_ws = 0x10000;
    f.sparse = true;
    TRY(t, 0x08400494, f, { 0, 2, 3 }, { 2, 1, ONLY_1 }, { 3, 1, ONLY_0 }, { 4, 2, 2 }, { 6, 1, ONLY_0 }, { 7, 3, 2 },
        { 10, 3, 2 }, { 13, 1, BOTH }, { 14, 1, BOTH }, { 15, 1, BOTH }, { 16, 1, BOTH }, { 17, 6, every_n },
        { 23, 1, ONLY_0 }, { 29, 1, ONLY_0 }, { 24, 5, 0x100 }, { 30, 2, 1 });
    f = plain(TCGEN05_F8F6F4), f.ctas = 2;
    TRY(t, 0x10400010, f, { 0, 2, 1 }, { 2, 1, ONLY_0 }, { 3, 1, ONLY_0 }, { 4, 2, 3 }, { 6, 1, ONLY_0 },
        { 7, 3, TYPES }, { 10, 3, TYPES }, { 13, 1, BOTH }, { 14, 1, BOTH }, { 15, 1, BOTH }, { 16, 1, BOTH },
        { 17, 6, even_n }, { 23, 1, ONLY_0 }, { 24, 5, 0x10100 }, { 29, 1, ONLY_0 }, { 30, 2, 1 });
    f = plain(TCGEN05_I8), f.ctas = 2;
    TRY(t, 0x10400020, f, { 0, 2, 1 }, { 2, 1, ONLY_0 }, { 3, 1, BOTH }, { 4, 2, 4 }, { 6, 1, ONLY_0 }, { 7, 3, 3 },
        { 10, 3, 3 }, { 13, 1, ONLY_0 }, { 14, 1, ONLY_0 }, { 15, 1, BOTH }, { 16, 1, BOTH },
        { 17, 6, UINT64_C(0x111111110) }, { 23, 1, ONLY_0 }, { 24, 5, 0x10100 }, { 29, 1, ONLY_0 }, { 30, 2, 1 });
    f = plain(TCGEN05_F16), f.weight_stationary = true;
    TRY(t, 0x08200490, f, { 0, 2, 1 }, { 2, 1, ONLY_0 }, { 3, 1, ONLY_0 }, { 4, 2, 2 }, { 6, 1, ONLY_0 }, { 7, 3, 2 },
        { 10, 3, 2 }, { 13, 1, BOTH }, { 14, 1, BOTH }, { 15, 1, BOTH }, { 16, 1, BOTH },
        { 17, 6, UINT64_C(0x100000000) | n_ws | 0x100 }, { 23, 1, ONLY_0 }, { 24, 5, 0x114 }, { 29, 1, ONLY_0 },
        { 30, 2, 15 });
    f.sparse = true;
    TRY(t, 0x08200494, f, { 0, 2, 3 }, { 2, 1, ONLY_1 }, { 3, 1, ONLY_0 }, { 4, 2, 2 }, { 6, 1, ONLY_0 }, { 7, 3, 2 },
        { 10, 3, 2 }, { 13, 1, BOTH }, { 14, 1, BOTH }, { 15, 1, BOTH }, { 16, 1, BOTH }, { 17, 6, n_ws | 0x100 },
        { 23, 1, ONLY_0 }, { 24, 5, 0x114 }, { 29, 1, ONLY_0 }, { 30, 2, 15 });
}

#define SCALED_FIELDS(sparse, ids, types, transpose, n, type, m) \
    { 0, 2, 1 }, { 2, 1, sparse }, { 3, 1, ONLY_0 }, { 4, 2, ids }, { 6, 1, ONLY_0 }, { 7, 3, types }, \
        { 10, 3, types }, { 13, 1, BOTH }, { 14, 1, BOTH }, { 15, 1, transpose }, { 16, 1, transpose }, { 17, 6, n }, \
        { 23, 1, type }, { 24, 3, 1 }, { 27, 2, m }, { 29, 2, ids }, \
    { \
        31, 1, ONLY_0 \
    }

static void scaled_fields(struct test *t)
{
    TRY(t, 0x08C00000, scaled(TCGEN05_MXF8F6F4, 32), SCALED_FIELDS(ONLY_0, 15, TYPES, BOTH, every_n, ONLY_1, 2));
    TRY(t, 0x08C00480, scaled(TCGEN05_MXF4, 32), SCALED_FIELDS(ONLY_0, 5, 2, ONLY_0, every_n, ONLY_1, 2));
    TRY(t, 0x08C00480, scaled(TCGEN05_MXF4NVF4, 32), SCALED_FIELDS(ONLY_0, 5, 2, ONLY_0, every_n, ONLY_1, 2));
    TRY(t, 0x08400480, scaled(TCGEN05_MXF4NVF4, 16), SCALED_FIELDS(ONLY_0, 1, 2, ONLY_0, every_n, BOTH, 2));
    struct tcgen05_form f = scaled(TCGEN05_MXF4NVF4, 16);
    f.ctas = 2;
    TRY(t, 0x10400480, f, SCALED_FIELDS(ONLY_0, 1, 2, ONLY_0, even_n, BOTH, 4));
    f.sparse = true;
    TRY(t, 0x10400484, f, SCALED_FIELDS(ONLY_1, 1, 2, ONLY_0, even_n, BOTH, 4));
    f = scaled(TCGEN05_MXF8F6F4, 32), f.ctas = 2;
    TRY(t, 0x10C00000, f, SCALED_FIELDS(ONLY_0, 15, TYPES, BOTH, even_n, ONLY_1, 4));
}

/* What depends on several fields. */
static void fields_together(struct test *t)
{
    char why[256];
    struct tcgen05_form f = plain(TCGEN05_F16);
    CHECK(t, takes(0x08400000, f, 100, NULL, why));                              /* f16 x f16 -> f16 */
    CHECK(t, !takes(0x08400480, f, 100, NULL, why) && strstr(why, "bf16 operands take") != NULL);
    CHECK(t, !takes(0x08400410, f, 100, NULL, why) && strstr(why, "bf16 in bits 12..10") != NULL);
    f.a_in_tensor_memory = true;
    CHECK(t, takes(0x08400490, f, 100, NULL, why) && takes(0x08410490, f, 100, NULL, why));
    CHECK(t, !takes(0x08408490, f, 100, NULL, why) && strstr(why, "bit 15") != NULL);
    f.a_shifted = true;
    CHECK(t, takes(0x08400490, f, 100, NULL, why) && !takes(0x04400490, f, 100, NULL, why)
                 && strstr(why, ".ashift") != NULL);
    f = plain(TCGEN05_F8F6F4);
    /* N 24; 16 and MN-major B */
    CHECK(t, takes(0x08060010, f, 100, NULL, why) && takes(0x08050010, f, 100, NULL, why));
    CHECK(t, !takes(0x08070010, f, 100, NULL, why) && strstr(why, "multiple of 16 where B is MN-major") != NULL);
    f.ctas = 2;
    /* N 48 */
    CHECK(t, !takes(0x100d0010, f, 100, NULL, why) && strstr(why, "multiple of 32 where B is MN-major") != NULL);
    f = scaled(TCGEN05_MXF4, 32);
    CHECK(t, !takes(0x88C00480, f, 100, NULL, why) && strstr(why, "reserved") != NULL);
    CHECK(t, !takes(0x88C00480, f, 103, NULL, why) && strstr(why, "K is 96") != NULL);
    f.ctas = 2;
    CHECK(t, !takes(0x08C00480, f, 100, NULL, why) && strstr(why, "scales of 64 rows") != NULL);
    f = plain(TCGEN05_TF32), f.sparse = true;
    CHECK(t, !takes(0x04400914, f, 100, NULL, why) && strstr(why, "metadata of 64 rows") != NULL);
    CHECK(t, !takes(0x08400916, f, 100, NULL, why) && strstr(why, "sparsity selector above 1") != NULL);
}

/* ---- descriptors of matrices ---- */

static uint64_t matrix(uint32_t start, uint32_t leading, uint32_t stride, uint64_t mode)
{
    return (uint64_t)start >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | UINT64_C(1) << 46
           | mode << 61;
}

static bool matrix_takes(uint64_t d, bool mn_major, uint32_t bits, uint32_t sm, char why[256])
{
    struct matrix_layout layout;
    why[0] = '\0';
    return matrix_of_tcgen05(d, mn_major, bits, sm, &layout, why, 256);
}

static void matrix_fields(struct test *t)
{
    char why[256];
    const uint64_t good = matrix(0x2000, 16, 1024, 2);
    CHECK(t, matrix_takes(good, false, 8, 100, why));
    for (uint32_t bit = 0; bit < 64; bit++) {
        const bool field = bit < 14 || (bit >= 16 && bit < 30) || (bit >= 32 && bit < 46) || (bit >= 49 && bit < 52);
        if (field) CHECK(t, matrix_takes(good ^ UINT64_C(1) << bit, false, 8, 100, why));
        else if (bit < 61) CHECK(t, !matrix_takes(good ^ UINT64_C(1) << bit, false, 8, 100, why));
    }
    CHECK(t, !matrix_takes(good & ~(UINT64_C(7) << 46), false, 8, 100, why)
                 && strstr(why, "has 0 in bits 48..46") != NULL);
    CHECK(t, !matrix_takes(good | UINT64_C(1) << 52, false, 8, 100, why) && strstr(why, "no such mode") != NULL);
    CHECK(t, !matrix_takes(good | UINT64_C(1) << 52, false, 4, 103, why) && strstr(why, "K = 96") != NULL);
    /* no swizzle: it means nothing */
    CHECK(t, matrix_takes(matrix(0, 0, 0, 0) | UINT64_C(1) << 49, false, 8, 100, why));
    for (uint64_t mode = 0; mode < 8; mode++)
        for (uint32_t bits = 4; bits <= 32; bits *= 2)
            for (int mn = 0; mn < (bits == 4 ? 1 : 2); mn++) {
                const bool known = mode % 2 == 0 || mode == 1;
                const bool want = known && (mn == 0 ? mode != 1 : bits == 32 ? mode == 1 : mode != 1);
                if (matrix_takes(matrix(0, 256, 256, mode), mn != 0, bits, 100, why) != want)
                    FAIL(t, "mode %d, %u bits, %s-major: %s", (int)mode, bits, mn != 0 ? "MN" : "K",
                         want ? why : "taken");
            }
}

/* Byte address of an element, from the canonical layouts as tables of strides (in bytes) and the exchange of address
 * bits. row: of A, or column of B; eb: bytes of an element. */
static uint32_t address_of(uint32_t start, uint32_t leading, uint32_t stride, uint32_t offset, uint32_t mode, bool mn,
                           uint32_t eb, uint32_t row, uint32_t k)
{
    const uint32_t span = mode == 0 ? 16 : mode == 6 ? 32 : mode == 4 ? 64 : 128;
    const uint32_t minor = mn ? k : row, major = (mn ? row : k) * eb, pattern = mode == 1 ? 4 : 8;
    uint32_t at = start + minor % pattern * span + major % span;
    const uint32_t further = major / span, groups = minor / pattern;
    if (mode == 0 && mn) at += further * stride + groups * leading;
    else at += further * leading + groups * stride;
    const uint32_t line = (at - 128 * offset) / 128;
    switch (mode) {
    case 6: at ^= (line & 1) * 16; break;
    case 4: at ^= (line & 3) * 16; break;
    case 2: at ^= (line & 7) * 16; break;
    case 1: at ^= (line & 3) * 32; break;
    }
    return at & 0x3ffff;
}

static void layouts(struct test *t)
{
    static const uint32_t modes[] = { 0, 1, 2, 4, 6 };
    for (int i = 0; i < 3000; i++) {
        const uint32_t mode = modes[rnd_below(t, 5)], eb = mode == 1 ? 4 : 1u << rnd_below(t, 3);
        const bool mn = mode == 1 || (eb < 4 && rnd(t) % 2 == 0);
        const uint32_t start = (uint32_t)rnd_below(t, 4096) * 16, leading = (uint32_t)rnd_below(t, 512) * 16;
        const uint32_t stride = (uint32_t)rnd_below(t, 512) * 16, offset = mode == 0 ? 0 : (uint32_t)rnd_below(t, 8);
        const uint32_t span = mode == 0 ? 16 : mode == 6 ? 32 : mode == 4 ? 64 : 128;
        const uint32_t per_chunk = 16 / eb, row = (uint32_t)rnd_below(t, 256);
        const uint32_t k = (uint32_t)rnd_below(t, mn ? 64 : mode == 0 ? 128 / eb : span / eb);
        struct matrix_layout layout;
        char why[256];
        if (!matrix_of_tcgen05(matrix(start, leading, stride, mode) | (uint64_t)offset << 49, mn, 8 * eb, 100, &layout,
                               why, 256)) {
            FAIL(t, "%s", why);
            continue;
        }
        const uint32_t want = address_of(start, leading, stride, offset, mode, mn, eb, row, k);
        const uint32_t got = mn ? matrix_chunk(&layout, row / per_chunk, k) + row % per_chunk * eb
                                : matrix_chunk(&layout, k / per_chunk, row) + k % per_chunk * eb;
        if (got != want)
            FAIL(t, "mode %u, %s-major, row %u, k %u: 0x%x, not 0x%x", mode, mn ? "MN" : "K", row, k, got, want);
    }
}

/* The manual's own examples of leading and stride (9.7.16.4.1.1, in elements of the layout). */
static void examples_of_the_manual(struct test *t)
{
    struct matrix_layout m;
    char why[256];
    /* ((8,2),(4,4)):((4,32),(1,64)) of tf32 */
    CHECK(t, matrix_of_tcgen05(matrix(0, 256, 128, 0), false, 32, 100, &m, why, 256));
    for (uint32_t r = 0; r < 16; r++)
        for (uint32_t k = 0; k < 16; k++)
            CHECK(t, matrix_chunk(&m, k / 4, r) + k % 4 * 4 == 4 * (r % 8 * 4 + r / 8 * 32 + k % 4 + k / 4 * 64));
    /* ((8,1,2),(8,2)):((1,8,64),(8,128)) */
    CHECK(t, matrix_of_tcgen05(matrix(0, 256, 128, 0), true, 16, 100, &m, why, 256));
    for (uint32_t r = 0; r < 16; r++)
        for (uint32_t k = 0; k < 16; k++)
            CHECK(t, matrix_chunk(&m, r / 8, k) + r % 8 * 2 == 2 * (r % 8 + r / 8 * 64 + k % 8 * 8 + k / 8 * 128));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(known_values_are_read), TEST(plain_fields), TEST(fields_of_sparse_pairs_and_ws), TEST(scaled_fields),
        TEST(fields_together), TEST(matrix_fields), TEST(layouts), TEST(examples_of_the_manual),
    };
    return TEST_MAIN(argc, argv, cases);
}
