/* mma.sp: a dense A is made sparse, packed as the manual says (9.7.14.6.2: the columns of each register), with metadata
 * placed as CuTe (SM90, SM120) and TVM place it for hardware; the product must be that of the dense A. */
#include "tests/support/harness.h"
#include "tests/reference/tensor_reference.h"
#include "machine/core/global_memory.h"

enum { MOST_K = 128 };

struct form {
    const char *shape, *ta, *tb, *d; /* d: of D and C */
    int k, bits, na, nb;
    bool floats, half;
    enum tensor_format fa, fb;
    bool sign_a, sign_b;
    const char *device;
    int selectors;
};

struct operands {
    uint32_t a[4][32], b[4][32], c[4][32], metadata[32], dense_a[16][MOST_K], dense_b[8][MOST_K];
    bool kept[16][MOST_K];
};

static uint32_t draw(struct test *t, const struct form *f, enum tensor_format format)
{
    const uint32_t any = (uint32_t)rnd(t), mask = (uint32_t)(UINT64_MAX >> (64 - f->bits));
    if (!f->floats) return any & mask;
    switch (format) { /* near 1, either sign, now and then anything */
    case TENSOR_F16: return rnd(t) % 50 == 0 ? any & 0xffff : (any & 0x83ff) | (uint32_t)rnd_between(t, 12, 17) << 10;
    case TENSOR_BF16: return rnd(t) % 50 == 0 ? any & 0xffff : (any & 0x807f) | (uint32_t)rnd_between(t, 124, 129) << 7;
    case TENSOR_TF32: return rnd(t) % 50 == 0 ? any : (any & 0x807fffff) | (uint32_t)rnd_between(t, 124, 129) << 23;
    default: return any & 0xff;
    }
}

/* Chunks of `width` columns in units of `unit`; which two units are kept, in which order they are packed. */
static void make_sparse(struct test *t, const struct form *f, bool ordered, struct operands *o, uint32_t code[16][32],
                        int order[16][32][2])
{
    const int unit = f->bits == 4 ? 2 : 1, width = f->bits == 32 ? 2 : 4;
    memset(o->kept, 0, sizeof o->kept);
    for (int row = 0; row < 16; row++)
        for (int chunk = 0; chunk < f->k / (width * unit); chunk++) {
            int first = (int)(rnd(t) % (unsigned)width), second = (int)(rnd(t) % (unsigned)width);
            while (width == 4 && second == first) second = (int)(rnd(t) & 3);
            if (width == 2) code[row][chunk] = first == 0 ? 4 : 14, second = first;
            if (width == 4 && ordered && first > second) {
                const int other = first;
                first = second, second = other;
            }
            if (width == 4) code[row][chunk] = (uint32_t)(first | second << 2);
            order[row][chunk][0] = first, order[row][chunk][1] = second;
            for (int u = 0; u < unit; u++) {
                o->kept[row][(chunk * width + first) * unit + u] = true;
                o->kept[row][(chunk * width + second) * unit + u] = true;
            }
        }
}

static void place_metadata(const struct form *f, int selector, uint32_t code[16][32], uint32_t *metadata)
{
    const int chunks = f->bits == 32 ? f->k / 2 : f->bits == 4 ? f->k / 8 : f->k / 4;
    for (int row = 0; row < 16; row++)
        for (int chunk = 0; chunk < chunks; chunk++) {
            const int quad = row % 8 * 4, low = row < 8;
            int lane, bit;
            if (f->bits >= 16 && chunks == 4) lane = quad + selector, bit = 4 * chunk + (low ? 0 : 16);
            else if (f->bits >= 16) lane = quad + 2 * selector + chunk / 4, bit = chunk % 4 * 4 + (low ? 0 : 16);
            else if (chunks == 8) lane = quad + 2 * selector + (low ? 0 : 1), bit = 4 * chunk;
            else lane = quad + (low ? 0 : 1) + (chunk < 8 ? 0 : 2), bit = 4 * (chunk % 8);
            metadata[lane] = (metadata[lane] & ~(15u << bit)) | code[row][chunk] << bit;
        }
}

/* The packed elements of a register: those kept in its columns, chunk by chunk. */
static void pack(const struct form *f, struct operands *o, int order[16][32][2])
{
    const int each = 32 / f->bits, unit = f->bits == 4 ? 2 : 1, width = (f->bits == 32 ? 2 : 4) * unit,
              per_chunk = f->bits == 32 ? 1 : 2 * unit;
    for (int lane = 0; lane < 32; lane++)
        for (int r = 0; r < f->na; r++) {
            const int row = (lane >> 2) + r % 2 * 8, first_column = lane % 4 * (2 * each) + r / 2 * (8 * each);
            for (int e = 0; e < each; e++) {
                const int chunk = first_column / width + e / per_chunk, within = e % per_chunk;
                const int column = chunk * width + order[row][chunk][within / unit] * unit + within % unit;
                o->a[r][lane] |= (o->dense_a[row][column] & (uint32_t)(UINT64_MAX >> (64 - f->bits))) << e * f->bits;
            }
        }
}

static int64_t integer(uint32_t code, int bits, bool is_signed)
{
    return is_signed && (code >> (bits - 1) & 1) != 0 ? (int64_t)code - (INT64_C(1) << bits) : (int64_t)code;
}

static uint32_t wanted(const struct form *f, const struct operands *o, int row, int col, uint32_t c)
{
    if (f->floats) {
        const struct reference_model model = { MOST_K, 25, 0, f->half ? TENSOR_TO_F16 : TENSOR_TO_F32 };
        uint32_t x[MOST_K], y[MOST_K];
        int n = 0;
        for (int k = 0; k < f->k; k++)
            if (o->kept[row][k]) x[n] = o->dense_a[row][k], y[n++] = o->dense_b[col][k];
        return reference_dot(&model, f->fa, x, f->fb, y, n, c);
    }
    int64_t sum = (int32_t)c;
    for (int k = 0; k < f->k; k++)
        if (o->kept[row][k])
            sum += integer(o->dense_a[row][k], f->bits, f->sign_a) * integer(o->dense_b[col][k], f->bits, f->sign_b);
    return (uint32_t)sum;
}

static void kernel(const struct form *f, bool ordered, int selector, char *text, size_t size)
{
    char d[64], a[64], b[64], c[64], loads[1024] = "", stores[512] = "";
    const char kind = f->floats && !f->half ? 'f' : 'r';
    const int nc = f->half ? 2 : 4;
    d[0] = a[0] = b[0] = c[0] = '\0';
    for (int i = 0; i < nc; i++) {
        snprintf(d + strlen(d), sizeof d - strlen(d), "%s%%%c%d", i == 0 ? "{" : ", ", kind, 30 + i);
        snprintf(c + strlen(c), sizeof c - strlen(c), "%s%%%c%d", i == 0 ? "{" : ", ", kind, 20 + i);
        snprintf(loads + strlen(loads), sizeof loads - strlen(loads), "ld.global.%s %%%c%d, [%%rd3+%d];\n",
                 kind == 'f' ? "f32" : "b32", kind, 20 + i, 128 * i);
        snprintf(stores + strlen(stores), sizeof stores - strlen(stores), "st.global.%s [%%rd4+%d], %%%c%d;\n",
                 kind == 'f' ? "f32" : "b32", 128 * i, kind, 30 + i);
    }
    for (int i = 0; i < f->na; i++) {
        snprintf(a + strlen(a), sizeof a - strlen(a), "%s%%r%d", i == 0 ? "{" : ", ", i);
        snprintf(loads + strlen(loads), sizeof loads - strlen(loads), "ld.global.b32 %%r%d, [%%rd1+%d];\n", i, 128 * i);
    }
    for (int i = 0; i < f->nb; i++) {
        snprintf(b + strlen(b), sizeof b - strlen(b), "%s%%r%d", i == 0 ? "{" : ", ", 8 + i);
        snprintf(loads + strlen(loads), sizeof loads - strlen(loads), "ld.global.b32 %%r%d, [%%rd2+%d];\n", 8 + i,
                 128 * i);
    }
    snprintf(text, size,
             "mov.u32 %%r63, %%laneid; mul.wide.u32 %%rd59, %%r63, 4; add.u64 %%rd1, %%rd60, %%rd59; "
             "add.u64 %%rd2, %%rd61, %%rd59;\n"
             "add.u64 %%rd3, %%rd62, %%rd59; add.u64 %%rd4, %%rd63, %%rd59;\n%sld.global.b32 %%r16, [%%rd1+512];\n"
             "mma.%s.sync.aligned.%s.row.col.%s.%s.%s.%s %s}, %s}, %s}, %s}, %%r16, %d;\n%s",
             loads, ordered ? "sp::ordered_metadata" : "sp", f->shape, f->d, f->ta, f->tb, f->d, d, a, b, c, selector,
             stores);
}

static void check(struct test *t, const struct form *f, bool ordered, int selector)
{
    char text[4096];
    struct sim sim;
    kernel(f, ordered, selector, text, sizeof text);
    if (!sim_open(t, &sim, f->device, text)) return;
    uint64_t parameters[4];
    for (int i = 0; i < 4; i++) parameters[i] = sim_buffer(&sim, NULL, 1024);
    for (int n = 0; n < 4; n++) {
        static struct operands o;
        uint32_t code[16][32], d[4][32];
        int order[16][32][2];
        memset(&o, 0, sizeof o);
        for (int k = 0; k < f->k; k++) {
            for (int row = 0; row < 16; row++) o.dense_a[row][k] = draw(t, f, f->fa);
            for (int col = 0; col < 8; col++) o.dense_b[col][k] = draw(t, f, f->fb);
        }
        for (int lane = 0; lane < 32; lane++) o.metadata[lane] = (uint32_t)rnd(t); /* where nobody should look */
        make_sparse(t, f, ordered, &o, code, order);
        place_metadata(f, selector, code, o.metadata);
        pack(f, &o, order);
        const int each = 32 / f->bits;
        for (int lane = 0; lane < 32; lane++) {
            for (int e = 0; e < f->nb * each; e++)
                o.b[e / each][lane] |= o.dense_b[lane >> 2][e / each * 4 * each + lane % 4 * each + e % each]
                                       << e % each * f->bits;
            for (int i = 0; i < 4; i++) {
                const uint32_t any = (uint32_t)rnd(t);
                o.c[i][lane] = f->half     ? (any & 0x83ff83ff) | 0x3c003800
                               : f->floats ? (any & 0x80ffffff) | 0x3f000000
                                           : any;
            }
        }
        uint8_t *host = global_host(&sim.machine.memory, parameters[0], 1024);
        memcpy(host, o.a, sizeof o.a);
        memcpy(host + 512, o.metadata, sizeof o.metadata);
        memcpy(global_host(&sim.machine.memory, parameters[1], 1024), o.b, sizeof o.b);
        memcpy(global_host(&sim.machine.memory, parameters[2], 1024), o.c, sizeof o.c);
        sim_launch(t, &sim, "k", 1, 32, parameters, 4);
        sim_read(&sim, parameters[3], d, sizeof d);
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < 4; i++) {
                const int row = (lane >> 2) + i / 2 * 8, col = lane % 4 * 2 + i % 2, shift = 16 * (i % 2);
                const uint32_t c = f->half ? o.c[i / 2][lane] >> shift & 0xffff : o.c[i][lane];
                const uint32_t got = f->half ? d[i / 2][lane] >> shift & 0xffff : d[i][lane],
                               want = wanted(f, &o, row, col, c);
                if (got != want)
                    FAIL(t, "%s %s%s, selector %d: d[%d][%d] is 0x%x, not 0x%x", f->shape, f->ta,
                         ordered ? " ordered" : "", selector, row, col, got, want);
            }
    }
    sim_close(&sim);
}

static void products_are_those_of_the_dense_matrix(struct test *t)
{
    static const struct form forms[] = {
        { "m16n8k16", "f16", "f16", "f32", 16, 16, 2, 2, true, false, TENSOR_F16, TENSOR_F16, 0, 0, "sm_90a", 4 },
        { "m16n8k16", "f16", "f16", "f16", 16, 16, 2, 2, true, true, TENSOR_F16, TENSOR_F16, 0, 0, "sm_90a", 4 },
        { "m16n8k32", "f16", "f16", "f32", 32, 16, 4, 4, true, false, TENSOR_F16, TENSOR_F16, 0, 0, "sm_90a", 2 },
        { "m16n8k32", "f16", "f16", "f16", 32, 16, 4, 4, true, true, TENSOR_F16, TENSOR_F16, 0, 0, "sm_100a", 2 },
        { "m16n8k16", "bf16", "bf16", "f32", 16, 16, 2, 2, true, false, TENSOR_BF16, TENSOR_BF16, 0, 0, "sm_90a", 4 },
        { "m16n8k32", "bf16", "bf16", "f32", 32, 16, 4, 4, true, false, TENSOR_BF16, TENSOR_BF16, 0, 0, "sm_90a", 2 },
        { "m16n8k8", "tf32", "tf32", "f32", 8, 32, 2, 2, true, false, TENSOR_TF32, TENSOR_TF32, 0, 0, "sm_90a", 4 },
        { "m16n8k16", "tf32", "tf32", "f32", 16, 32, 4, 4, true, false, TENSOR_TF32, TENSOR_TF32, 0, 0, "sm_90a", 2 },
        { "m16n8k64", "e4m3", "e5m2", "f32", 64, 8, 4, 4, true, false, TENSOR_E4M3, TENSOR_E5M2, 0, 0, "sm_120a", 1 },
        { "m16n8k32", "s8", "u8", "s32", 32, 8, 2, 2, false, false, TENSOR_F16, TENSOR_F16, true, false, "sm_90a", 2 },
        { "m16n8k64", "u8", "s8", "s32", 64, 8, 4, 4, false, false, TENSOR_F16, TENSOR_F16, false, true, "sm_90a", 1 },
        { "m16n8k64", "s4", "s4", "s32", 64, 4, 2, 2, false, false, TENSOR_F16, TENSOR_F16, true, true, "sm_90a", 2 },
        { "m16n8k128", "u4", "s4", "s32", 128, 4, 4, 4, false, false, TENSOR_F16, TENSOR_F16, false, true, "sm_90a",
          1 },
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        for (int selector = 0; selector < forms[i].selectors; selector++)
            for (int ordered = 0; ordered < 2; ordered++) check(t, &forms[i], ordered != 0, selector);
}

static void meaningless_metadata_is_reported(struct test *t)
{
    static const struct {
        const char *variant, *metadata, *a;
        bool right;
    } cases[] = {
        { "sp", "0x44444444", "0", true },
        { "sp", "0x11111111", "0", true },
        { "sp", "0x44444454", "0", false },
        { "sp::ordered_metadata", "0x44444444", "0", true },
        { "sp::ordered_metadata", "0x44444414", "0", false },
        { "sp::ordered_metadata", "0x44444404", "0", true }, /* nothing in the chunk, zeros stored */
        { "sp", "0x44444404", "0", true },
        { "sp::ordered_metadata", "0x44444404", "0x00000001", false },
        { "sp", "0x44444404", "0x00010000", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        struct sim sim;
        snprintf(text, sizeof text,
                 "mov.b32 %%r9, %s; mov.u32 %%r5, %%tid.x; setp.eq.u32 %%p1, %%r5, 1; @%%p1 mov.b32 %%r1, %s;\n"
                 "mma.%s.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%%f1,%%f2,%%f3,%%f4}, "
                 "{%%r1,%%r2}, {%%r3,%%r4}, "
                 "{%%f1,%%f2,%%f3,%%f4}, %%r9, 1;",
                 cases[i].metadata, cases[i].a, cases[i].variant);
        if (!sim_open(t, &sim, "sm_90a", text)) continue;
        const bool ran = sim_run(&sim, "k", 1, 32, 0, NULL, 0);
        CHECK(t, ran == cases[i].right);
        const char *words = strcmp(cases[i].a, "0x00010000") == 0 ? "element 3 of row 0" : "element 2 of row 0";
        CHECK(t, ran || (sim.report.code == REPORT_ILLEGAL && strstr(sim.report.sentence, words) != NULL));
        sim_close(&sim);
    }
}

static void forms_that_do_not_exist_are_refused(struct test *t)
{
    static const char *const forms[] = {
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3,%r4}, "
        "{%f1,%f2,%f3,%f4}, %r9, 4;",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3,%r4}, "
        "{%f1,%f2,%f3,%f4}, %r9, %r8;",
        "mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1,%r2,%r3,%r4}, {%r1,%r2}, {%r3,%r4}, "
        "{%r1,%r2,%r3,%r4}, %r9, 2;",
        "mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, "
        "{%r1,%r2,%r3,%r4}, "
        "%r9, 1;",
        "mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, "
        "{%r1,%r2,%r3,%r4}, {%f1,%f2,%f3,%f4}, %r9, 0;",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct sim sim;
        sim_refused(t, &sim, "sm_90a", forms[i]);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(products_are_those_of_the_dense_matrix),
        TEST(meaningless_metadata_is_reported),
        TEST(forms_that_do_not_exist_are_refused),
    };
    return TEST_MAIN(argc, argv, cases);
}
