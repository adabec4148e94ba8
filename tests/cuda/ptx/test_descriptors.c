/* The descriptors of tcgen05 (src/cuda/ptx/descriptors.h): values that the manual and its users give, and every value
 * of every field through the simulator's decoder, which was written from the manual without this header. */
#include "cuda/ptx/descriptors.h"
#include "test.h"

/* ---- matrices ---- */

/* Numbers in PTX ISA 9.7.16.4.1: bits of the fields, and the constant 0b001 in bits 46-48. */
static void fields_of_a_matrix(struct test *t)
{
    const struct shared_matrix m = { .address = 0x12340, .leading = 0x100, .stride = 0x400,
                                     .swizzle = SHARED_SWIZZLE_128B };
    const uint64_t want =
        UINT64_C(0x1234) | UINT64_C(0x10) << 16 | UINT64_C(0x40) << 32 | UINT64_C(1) << 46 | UINT64_C(2) << 61;
    struct shared_matrix other = m;
    CHECK(t, shared_matrix_descriptor(m) == want);
    other.base_offset = 5;
    CHECK(t, shared_matrix_descriptor(other) == (want | UINT64_C(5) << 49));
    other.leading_is_address = true;
    CHECK(t, shared_matrix_descriptor(other) == (want | UINT64_C(5) << 49 | UINT64_C(1) << 52));
    CHECK(t, shared_matrix_advance(want, 32) == want + 2);
    other = m, other.address += 0x7f000000;               /* an address of the cluster: the CTA's part alone counts */
    CHECK(t, shared_matrix_descriptor(other) == want);
}

static void matrices_of_a_tile(struct test *t)
{
    CHECK(t, shared_rows_descriptor(0x8000, SHARED_SWIZZLE_128B) == (UINT64_C(0x4000404000010800)));
    CHECK(t, shared_rows_descriptor(0x8000, SHARED_SWIZZLE_64B) == (UINT64_C(0x8000402000010800)));
    CHECK(t, shared_rows_descriptor(0x8000, SHARED_SWIZZLE_32B) == (UINT64_C(0xc000401000010800)));
    CHECK(t, shared_scales_descriptor(0x8200) == UINT64_C(0x0000400800010820));
    CHECK(t, shared_lines_descriptor(0x8000, SHARED_SWIZZLE_128B, 0x2000) == UINT64_C(0x4000404002000800));
}

/* ---- instructions: values of kernels that ran on a B200 (CUTLASS, DeepGEMM, Triton) ---- */

static void known_instructions(struct test *t)
{
    static const struct { uint32_t value; struct mma_instruction x; } known[] = {
        { 0x08200490, { .kind = MMA_F16, .a = MMA_BF16, .b = MMA_BF16, .m = 128, .n = 128, .d = MMA_D_F32 } },
        { 0x10400490, { .kind = MMA_F16, .a = MMA_BF16, .b = MMA_BF16, .m = 256, .n = 256, .d = MMA_D_F32 } },
        { 0x08400010, { .kind = MMA_F8F6F4, .a = MMA_E4M3, .b = MMA_E4M3, .m = 128, .n = 256, .d = MMA_D_F32 } },
        { 0x08A00000, { .kind = MMA_MXF8F6F4, .a = MMA_E4M3, .b = MMA_E4M3, .m = 128, .n = 128, .scales = MMA_UE8M0 } },
        { 0x10C01400, { .kind = MMA_MXF8F6F4, .a = MMA_E4M3, .b = MMA_E2M1, .m = 256, .n = 256, .scales = MMA_UE8M0 } },
        { 0x08A00480, { .kind = MMA_MXF4, .a = MMA_E2M1, .b = MMA_E2M1, .m = 128, .n = 128, .scales = MMA_UE8M0 } },
        { 0x08400480, { .kind = MMA_MXF4NVF4, .a = MMA_E2M1, .b = MMA_E2M1, .m = 128, .n = 256, .scales = MMA_UE4M3 } },
        /* by the tables of bits alone */
        { 0x90C00480, { .kind = MMA_MXF4, .a = MMA_E2M1, .b = MMA_E2M1, .m = 256, .n = 256, .scales = MMA_UE8M0,
          .k_96 = true } },
        { 0x84200490, { .kind = MMA_F16, .a = MMA_BF16, .b = MMA_BF16, .m = 64, .n = 128, .d = MMA_D_F32,
          .b_shift = 16 } },
        { 0x080800A8, { .kind = MMA_I8, .a = MMA_S8, .b = MMA_U8, .m = 128, .n = 32, .d = MMA_D_S32,
          .saturates = true } },
        { 0x08100915, { .kind = MMA_TF32, .a = MMA_TF32_ELEMENT, .b = MMA_TF32_ELEMENT, .m = 128, .n = 64,
                        .d = MMA_D_F32,
                        .sparse = true, .sparsity_selector = 1 } },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (mma_instruction_descriptor(known[i].x) != known[i].value)
            FAIL(t, "instruction %d is 0x%08x, not 0x%08x", (int)i, mma_instruction_descriptor(known[i].x),
                 known[i].value);
    CHECK(t, mma_with_scale_ids(0x08A00000, 3, 1) == 0x68A00010);
}

#ifdef TEST_SIMULATOR
#include "machine/mma/instruction_descriptor.h"
#include "machine/mma/matrix_descriptor.h"

/* ---- what the simulator reads ---- */

static const enum matrix_swizzle simulators[] = {
    [SHARED_SWIZZLE_NONE] = MATRIX_PLAIN,         [SHARED_SWIZZLE_128B_ATOM_32B] = MATRIX_ATOMS_32,
    [SHARED_SWIZZLE_128B] = MATRIX_SWIZZLE_128,   [SHARED_SWIZZLE_64B] = MATRIX_SWIZZLE_64,
    [SHARED_SWIZZLE_32B] = MATRIX_SWIZZLE_32,
};

static void check_matrix(struct test *t, struct shared_matrix m, bool mn_major)
{
    struct matrix_layout read;
    char why[256] = "";
    const uint32_t bits = m.swizzle == SHARED_SWIZZLE_128B_ATOM_32B ? 32 : 16;
    if (!matrix_of_tcgen05(shared_matrix_descriptor(m), mn_major, bits, 100, &read, why, sizeof why)) {
        FAIL(t, "a matrix at 0x%x, %u, %u: %s", m.address, m.leading, m.stride, why);
        return;
    }
    if (read.start != m.address || read.leading != m.leading || read.stride != m.stride
        || read.swizzle != simulators[m.swizzle]
        || read.base_offset != (m.swizzle == SHARED_SWIZZLE_NONE ? 0 : m.base_offset))
        FAIL(t, "a matrix at 0x%x, %u, %u, %u is read as 0x%x, %u, %u, %u", m.address, m.leading, m.stride,
             m.base_offset, read.start, read.leading, read.stride, read.base_offset);
}

/* The manual's examples of leading and stride (9.7.16.4.1): where elements lie, as strides of element numbers. */
static void examples_of_the_manual(struct test *t)
{
    static const struct {
        enum shared_swizzle swizzle; bool mn_major; uint32_t bytes, leading, stride;
        uint32_t parts[2][3], strides[2][3];              /* of MN and of K, the innermost first */
    } examples[] = {
        { SHARED_SWIZZLE_NONE, false, 4, 256, 128, { { 8, 2, 1 }, { 4, 4, 1 } }, { { 4, 32, 0 }, { 1, 64, 0 } } },
        { SHARED_SWIZZLE_NONE, true, 2, 256, 128, { { 8, 2, 1 }, { 8, 2, 1 } }, { { 1, 64, 0 }, { 8, 128, 0 } } },
        { SHARED_SWIZZLE_32B, true, 2, 256, 512, { { 8, 2, 2 }, { 8, 2, 1 } }, { { 1, 8, 128 }, { 16, 256, 0 } } },
        { SHARED_SWIZZLE_64B, true, 2, 512, 1024, { { 8, 4, 2 }, { 8, 2, 1 } }, { { 1, 8, 256 }, { 32, 512, 0 } } },
    };
    for (size_t e = 0; e < sizeof examples / sizeof examples[0]; e++) {
        const uint32_t (*parts)[3] = examples[e].parts, (*strides)[3] = examples[e].strides, bytes = examples[e].bytes;
        const uint32_t chunks = shared_swizzle_bytes(examples[e].swizzle) / 16;
        struct matrix_layout read;
        char why[256];
        CHECK(t, matrix_of_tcgen05(shared_matrix_descriptor((struct shared_matrix){
                                       0, examples[e].leading, examples[e].stride, examples[e].swizzle, 0, false }),
                                   examples[e].mn_major, 8 * bytes, 100, &read, why, sizeof why));
        for (uint32_t mn = 0; mn < parts[0][0] * parts[0][1] * parts[0][2]; mn++)
            for (uint32_t k = 0; k < parts[1][0] * parts[1][1]; k++) {
                const uint32_t element = mn % parts[0][0] * strides[0][0]
                                         + mn / parts[0][0] % parts[0][1] * strides[0][1]
                                         + mn / parts[0][0] / parts[0][1] * strides[0][2]
                                         + k % parts[1][0] * strides[1][0] + k / parts[1][0] * strides[1][1];
                const uint32_t at = element * bytes, want = at ^ (at >> 7 & (chunks - 1)) << 4;
                const uint32_t along = examples[e].mn_major ? mn : k, line = examples[e].mn_major ? k : mn,
                               in_16 = 16 / bytes;
                if (matrix_chunk(&read, along / in_16, line) + along % in_16 * bytes != want)
                    FAIL(t, "example %d, MN %u, K %u: not at %u", (int)e, mn, k, want);
            }
    }
}

static void every_field_of_a_matrix(struct test *t)
{
    static const enum shared_swizzle all[] = { SHARED_SWIZZLE_NONE, SHARED_SWIZZLE_128B_ATOM_32B, SHARED_SWIZZLE_128B,
                                               SHARED_SWIZZLE_64B, SHARED_SWIZZLE_32B };
    for (size_t s = 0; s < sizeof all / sizeof all[0]; s++)
        for (int mn_major = all[s] == SHARED_SWIZZLE_128B_ATOM_32B; mn_major < 2; mn_major++) {
            for (uint32_t v = 0; v < 1 << 14; v++) {
                check_matrix(t, (struct shared_matrix){ .address = v << 4, .stride = 1024,
                                                        .swizzle = all[s] }, mn_major);
                check_matrix(t, (struct shared_matrix){ .leading = v << 4, .stride = 16, .swizzle = all[s] }, mn_major);
                check_matrix(t, (struct shared_matrix){ .leading = 32, .stride = v << 4, .swizzle = all[s] }, mn_major);
            }
            for (uint32_t v = 0; v < 8; v++)
                check_matrix(t, (struct shared_matrix){ .stride = 1024, .swizzle = all[s],
                                                        .base_offset = v }, mn_major);
        }
}

/* Rows, or lines, one behind another: an element lies where TMA's swizzle of such rows puts it. */
static void tiles_lie_as_they_were_loaded(struct test *t)
{
    static const enum shared_swizzle all[] = { SHARED_SWIZZLE_128B, SHARED_SWIZZLE_64B, SHARED_SWIZZLE_32B,
                                               SHARED_SWIZZLE_NONE };
    for (size_t s = 0; s < sizeof all / sizeof all[0]; s++) {
        const uint32_t bytes = shared_swizzle_bytes(all[s]), chunks = bytes / 16, start = 0x4000;
        struct matrix_layout rows, lines;
        char why[256];
        CHECK(t, matrix_of_tcgen05(shared_rows_descriptor(start, all[s]), false, 8, 100, &rows, why, sizeof why));
        CHECK(t,
              matrix_of_tcgen05(shared_lines_descriptor(start, all[s], 0x1000), true, 8, 100, &lines, why, sizeof why));
        for (uint32_t row = 0; row < 128; row++)
            for (uint32_t chunk = 0; chunk < chunks; chunk++) {
                const uint32_t at = row * bytes + chunk * 16, loaded = start + (at ^ (at >> 7 & (chunks - 1)) << 4);
                CHECK(t, matrix_chunk(&rows, chunk, row) == loaded);
                if (chunks == 1) continue;
                CHECK(t, matrix_chunk(&lines, chunk, row) == loaded);
                CHECK(t, matrix_chunk(&lines, chunk + chunks, row) == loaded + 0x1000);
            }
    }
}

static const struct { enum mma_kind kind; enum tcgen05_kind simulators; uint8_t block; } kinds[] = {
    { MMA_TF32, TCGEN05_TF32, 0 },          { MMA_F16, TCGEN05_F16, 0 },       { MMA_I8, TCGEN05_I8, 0 },
    { MMA_F8F6F4, TCGEN05_F8F6F4, 0 },      { MMA_MXF8F6F4, TCGEN05_MXF8F6F4, 32 }, { MMA_MXF4, TCGEN05_MXF4, 32 },
    { MMA_MXF4NVF4, TCGEN05_MXF4NVF4, 16 }, { MMA_MXF4NVF4, TCGEN05_MXF4NVF4, 32 },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* The simulator's name of an element, and whether the kind has it. */
static bool element_of(enum mma_kind kind, enum mma_element element, enum tensor_format *format)
{
    switch (element) {
    case MMA_TF32_ELEMENT: *format = TENSOR_TF32; return kind == MMA_TF32;
    case MMA_FP16: *format = TENSOR_F16; return kind == MMA_F16;
    case MMA_BF16: *format = TENSOR_BF16; return kind == MMA_F16;
    case MMA_U8: case MMA_S8: *format = TENSOR_E4M3; return kind == MMA_I8;
    case MMA_E4M3: *format = TENSOR_E4M3; break;
    case MMA_E5M2: *format = TENSOR_E5M2; break;
    case MMA_E2M3: *format = TENSOR_E2M3; break;
    case MMA_E3M2: *format = TENSOR_E3M2; break;
    case MMA_E2M1: *format = TENSOR_E2M1; return kind >= MMA_F8F6F4;
    }
    return kind == MMA_F8F6F4 || kind == MMA_MXF8F6F4;
}

static int read_instructions;

/* What the decoder makes of it is what was asked for; `form` says the rest. */
static void check_instruction(struct test *t, struct mma_instruction x, struct tcgen05_form form)
{
    struct mma_shape s;
    char why[256] = "";
    enum tensor_format a = TENSOR_E4M3, b = TENSOR_E4M3;
    const bool scaled = mma_has_scales(x.kind), integer = x.kind == MMA_I8;
    const uint32_t descriptor = mma_instruction_descriptor(x);
    element_of(x.kind, x.a, &a), element_of(x.kind, x.b, &b);
    if (!instruction_descriptor_of(descriptor, &form, 100, &s, why, sizeof why)) {
        FAIL(t, "0x%08x (kind %d, M %u, N %u): %s", descriptor, (int)x.kind, x.m, x.n, why);
        return;
    }
    const bool shape = s.m == x.m && s.n == x.n && s.a_negated == x.a_is_negated && s.b_negated == x.b_is_negated &&
                       s.a_mn_major == x.a_is_mn_major && s.b_mn_major == x.b_is_mn_major;
    const bool types = integer
                           ? s.a_signed == (x.a == MMA_S8) && s.b_signed == (x.b == MMA_S8) && s.saturate == x.saturates
                           : s.a_format == a && s.b_format == b && s.f16_output == (!scaled && x.d == MMA_D_F16);
    const bool scales =
        !scaled || (s.ue4m3 == (x.scales == MMA_UE4M3) && s.sfa_id == x.a_scale_id && s.sfb_id == x.b_scale_id);
    if (!shape || !types || !scales || (!scaled && x.sparse && s.selector != x.sparsity_selector))
        FAIL(t, "0x%08x (kind %d, M %u, N %u) is read as something else", descriptor, (int)x.kind, x.m, x.n);
    read_instructions++;
}

static struct mma_instruction base_of(enum mma_kind kind)
{
    static const enum mma_element element[] = {
        [MMA_TF32] = MMA_TF32_ELEMENT, [MMA_F16] = MMA_FP16,  [MMA_I8] = MMA_U8,        [MMA_F8F6F4] = MMA_E5M2,
        [MMA_MXF8F6F4] = MMA_E3M2,     [MMA_MXF4] = MMA_E2M1, [MMA_MXF4NVF4] = MMA_E2M1
    };
    return (struct mma_instruction){ .kind = kind, .a = element[kind], .b = element[kind], .m = 128, .n = 64,
                                     .d = kind == MMA_I8 ? MMA_D_S32 : MMA_D_F32, .scales = MMA_UE8M0 };
}

static void every_shape(struct test *t)
{
    for (int i = 0; i < KINDS; i++)
        for (uint32_t ctas = 1; ctas <= 2; ctas++)
            for (uint32_t m = 64 * ctas; m <= 128 * ctas; m *= 2)
                for (uint32_t n = 8 * ctas; n <= 256; n += 8 * ctas) {
                    const uint8_t block = kinds[i].block;
                    const struct tcgen05_form form = { .kind = kinds[i].simulators, .ctas = (uint8_t)ctas,
                                                       .block = block };
                    struct mma_instruction x = base_of(kinds[i].kind);
                    x.m = m, x.n = n;
                    if (x.kind == MMA_I8 && (ctas == 2 ? n % 32 != 0 : n > 32 && n % 16 != 0)) continue;
                    if (kinds[i].block != 0 && m != 128 * ctas) continue;
                    check_instruction(t, x, form);
                }
}

static void every_pair_of_elements(struct test *t)
{
    enum tensor_format unused;
    for (int i = 0; i < KINDS; i++)
        for (enum mma_element a = MMA_E4M3; a <= MMA_S8; a++)
            for (enum mma_element b = MMA_E4M3; b <= MMA_S8; b++) {
                const struct tcgen05_form form = { .kind = kinds[i].simulators, .ctas = 1, .block = kinds[i].block };
                struct mma_instruction x = base_of(kinds[i].kind);
                x.a = a, x.b = b;
                if (!element_of(x.kind, a, &unused) || !element_of(x.kind, b, &unused)) continue;
                if (x.kind == MMA_F16 && a != b) continue;
                check_instruction(t, x, form);
                x.d = MMA_D_F16;
                if (x.kind == MMA_F8F6F4 || (x.kind == MMA_F16 && a == MMA_FP16)) check_instruction(t, x, form);
            }
}

static void every_flag(struct test *t)
{
    for (int i = 0; i < KINDS; i++)
        for (int flags = 0; flags < 32; flags++) {
            const struct tcgen05_form form = { .kind = kinds[i].simulators, .ctas = 1, .block = kinds[i].block };
            struct mma_instruction x = base_of(kinds[i].kind);
            const bool packed = x.kind >= MMA_MXF4;
            x.a_is_negated = flags & 1, x.b_is_negated = flags & 2, x.a_is_mn_major = flags & 4,
            x.b_is_mn_major = flags & 8;
            x.saturates = flags & 16;
            if (x.kind == MMA_I8 ? (flags & 3) != 0 : (flags & 16) != 0) continue;
            if (packed && (flags & 12) != 0) continue;
            check_instruction(t, x, form);
        }
}

static void every_scale_id(struct test *t)
{
    for (int i = 0; i < KINDS; i++) {
        const struct tcgen05_form form = { .kind = kinds[i].simulators, .ctas = 1, .block = kinds[i].block };
        const uint32_t step = kinds[i].kind == MMA_MXF8F6F4 ? 1 : kinds[i].block == 32 ? 2 : 4;
        struct mma_instruction x = base_of(kinds[i].kind);
        if (kinds[i].block == 0) continue;
        for (x.a_scale_id = 0; x.a_scale_id < 4; x.a_scale_id += step)
            for (x.b_scale_id = 0; x.b_scale_id < 4; x.b_scale_id += step) {
                struct mma_instruction none = x;
                check_instruction(t, x, form);
                none.a_scale_id = none.b_scale_id = 0;
                const uint32_t with_ids =
                    mma_with_scale_ids(mma_instruction_descriptor(none), x.a_scale_id, x.b_scale_id);
                CHECK(t, with_ids == mma_instruction_descriptor(x));
            }
        x = base_of(kinds[i].kind), x.scales = MMA_UE4M3;
        if (kinds[i].block == 16) check_instruction(t, x, form);
    }
}

static void sparse_and_weight_stationary(struct test *t)
{
    for (int i = 0; i < KINDS; i++) {
        struct tcgen05_form form = { .kind = kinds[i].simulators, .ctas = 1, .block = kinds[i].block, .sparse = true };
        struct mma_instruction x = base_of(kinds[i].kind);
        x.sparse = true;
        check_instruction(t, x, form);
        x.sparsity_selector = 1;
        if (x.kind == MMA_TF32 || x.kind == MMA_F16) check_instruction(t, x, form);
        if (kinds[i].block != 0) continue;
        form.sparse = false, form.weight_stationary = true;
        for (uint32_t m = 32; m <= 128; m *= 2)
            for (uint32_t n = 64; n <= 256; n *= 2)
                for (uint32_t shift = 0; shift <= 32; shift = shift == 0 ? 8 : 2 * shift) {
                    x = base_of(kinds[i].kind), x.m = m, x.n = n, x.b_shift = shift;
                    check_instruction(t, x, form);
                }
    }
    if (read_instructions < 700) FAIL(t, "%d instructions were read", read_instructions);
}
#else
static void skip(struct test *t) { test_skip(t, "no simulator in this build"); }
#define examples_of_the_manual skip
#define every_field_of_a_matrix skip
#define tiles_lie_as_they_were_loaded skip
#define every_shape skip
#define every_pair_of_elements skip
#define every_flag skip
#define every_scale_id skip
#define sparse_and_weight_stationary skip
#endif

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(fields_of_a_matrix), TEST(matrices_of_a_tile), TEST(known_instructions), TEST(examples_of_the_manual),
        TEST(every_field_of_a_matrix), TEST(tiles_lie_as_they_were_loaded), TEST(every_shape),
        TEST(every_pair_of_elements), TEST(every_flag), TEST(every_scale_id), TEST(sparse_and_weight_stationary),
    };
    return TEST_MAIN(argc, argv, cases);
}
