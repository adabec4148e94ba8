/* wmma: what is loaded, multiplied and stored is the product of the matrices in memory, for every shape, type and
 * layout. */
#include <math.h>

#include "tests/support/harness.h"
#include "tests/reference/tensor_reference.h"
#include "machine/core/global_memory.h"

enum { MOST = 32, MOST_K = 128 };
enum kind { FLOAT, INTEGER, BITS, DOUBLE };

struct form {
    const char *shape, *type; /* of A and B */
    enum kind kind;
    int m, n, k, bits, na, nb, nc; /* registers; nc: of f32 and s32 */
    const char *c, *d;             /* types */
    const char *product;           /* words behind the layouts and the shape */
    const char *head;
    enum tensor_format format;
    bool sign, saturate, only_row_col;
};

struct matrices {
    uint64_t a[MOST][MOST_K], b[MOST][MOST_K], c[MOST][MOST], d[MOST][MOST];
};

static int width_of(const char *type) { return strcmp(type, "f16") == 0 ? 16 : strcmp(type, "f64") == 0 ? 64 : 32; }

/* Element (row, column) of a matrix in memory; `at` counts bits. */
static uint64_t position(bool column_major, int stride, int row, int column, int bits)
{
    return (uint64_t)(column_major ? column * stride + row : row * stride + column) * (uint64_t)bits;
}
static void write_bits(uint8_t *memory, uint64_t at, int bits, uint64_t value)
{
    for (int i = 0; i < bits; i++) {
        const uint64_t bit = at + (uint64_t)i;
        memory[bit / 8] = (uint8_t)((memory[bit / 8] & ~(1u << bit % 8)) | (value >> i & 1) << bit % 8);
    }
}
static uint64_t read_bits(const uint8_t *memory, uint64_t at, int bits)
{
    uint64_t value = 0;
    for (int i = 0; i < bits; i++)
        value |= (uint64_t)(memory[(at + (uint64_t)i) / 8] >> (at + (uint64_t)i) % 8 & 1) << i;
    return value;
}

static void vector(char *text, const char *kind, int count, int first)
{
    for (int i = 0; i < count; i++) sprintf(text + strlen(text), "%s%%%s%d", i == 0 ? "{" : ", ", kind, first + i);
    strcat(text, "}");
}

static const char *list_of(const char *type)
{
    return strcmp(type, "f64") == 0 ? "fd" : strcmp(type, "f32") == 0 ? "f" : "r";
}
static int registers_of(const struct form *f, const char *type) { return strcmp(type, "f16") == 0 ? f->nc / 2 : f->nc; }

static void kernel(const struct form *f, bool col_a, bool col_b, bool col_c, bool shape_first, const int *stride,
                   char *text)
{
    const char *const ab = f->kind == DOUBLE ? "fd" : "r", *const la = col_a ? ".col" : ".row",
                      *const lb = col_b ? ".col" : ".row";
    const char *const lc = col_c ? ".col" : ".row";
    char before[64], behind[64];
    snprintf(before, sizeof before, "%s%s", shape_first ? "." : "", shape_first ? f->shape : "");
    snprintf(behind, sizeof behind, "%s%s", shape_first ? "" : ".", shape_first ? "" : f->shape);
    text[0] = '\0';
    sprintf(text, "wmma.load.a.sync.aligned%s%s%s.global.%s ", before, la, behind, f->type);
    vector(text, ab, f->na, 0);
    sprintf(text + strlen(text), ", [%%rd60], %d;\nwmma.load.b.sync.aligned%s%s%s.%s ", stride[0], before, lb, behind,
            f->type);
    vector(text, ab, f->nb, 8);
    sprintf(text + strlen(text), ", [%%rd61], %d;\nwmma.load.c.sync.aligned%s%s%s.global.%s ", stride[1], before, lc,
            behind, f->c);
    vector(text, list_of(f->c), registers_of(f, f->c), 16);
    sprintf(text + strlen(text), ", [%%rd62], %d;\nwmma.mma%s.sync.aligned%s%s%s%s%s ", stride[2], f->head, before, la,
            lb, behind, f->product);
    vector(text, list_of(f->d), registers_of(f, f->d), 24);
    strcat(text, ", ");
    vector(text, ab, f->na, 0);
    strcat(text, ", ");
    vector(text, ab, f->nb, 8);
    strcat(text, ", ");
    vector(text, list_of(f->c), registers_of(f, f->c), 16);
    sprintf(text + strlen(text), ";\nwmma.store.d.sync.aligned%s%s%s.global.%s [%%rd63], ", before, lc, behind, f->d);
    vector(text, list_of(f->d), registers_of(f, f->d), 24);
    sprintf(text + strlen(text), ", %d;\n", stride[2]);
}

static uint64_t draw(struct test *t, const struct form *f, int bits)
{
    const uint64_t any = rnd(t);
    if (f->kind == DOUBLE) return (any & UINT64_C(0x800fffffffffffff)) | (uint64_t)rnd_between(t, 1018, 1027) << 52;
    if (f->kind != FLOAT) return any & (UINT64_MAX >> (64 - bits));
    if (f->format == TENSOR_F16 && bits == 16) return (any & 0x83ff) | (uint64_t)rnd_between(t, 11, 18) << 10;
    if (f->format == TENSOR_BF16 && bits == 16) return (any & 0x807f) | (uint64_t)rnd_between(t, 123, 130) << 7;
    return (any & 0x807fffff) | (uint64_t)rnd_between(t, 123, 130) << 23;
}

static int64_t integer(uint64_t code, int bits, bool is_signed)
{
    return is_signed && (code >> (bits - 1) & 1) != 0 ? (int64_t)code - (INT64_C(1) << bits) : (int64_t)code;
}

/* To nearest even, of a number in f16's normal range. */
static uint32_t f16_of_f32(uint32_t code)
{
    const uint32_t sign = code >> 31 << 15, rounded = (code & 0x7fffffff) + 0xfff + (code >> 13 & 1);
    return sign | ((rounded >> 13) - (112u << 10));
}

static uint64_t wanted(const struct form *f, const struct matrices *m, int row, int col)
{
    if (f->kind == FLOAT) {
        const bool half_c = f->c[1] == '1', half_d = f->d[1] == '1', half = half_c && half_d;
        const struct reference_model model = { f->bits == 32 ? 4 : f->k, 25, 0, half ? TENSOR_TO_F16 : TENSOR_TO_F32 };
        uint32_t x[MOST_K], y[MOST_K], c = (uint32_t)m->c[row][col];
        for (int k = 0; k < f->k; k++) x[k] = (uint32_t)m->a[row][k], y[k] = (uint32_t)m->b[col][k];
        if (half_c && !half) {
            const float value = (float)reference_value(TENSOR_F16, c);
            memcpy(&c, &value, 4);
        }
        const uint32_t d = reference_dot(&model, f->format, x, f->format, y, f->k, c);
        return half_d && !half ? f16_of_f32(d) : d;
    }
    if (f->kind == DOUBLE) {
        double x, y, d;
        memcpy(&d, &m->c[row][col], 8);
        for (int k = 0; k < f->k; k++) {
            memcpy(&x, &m->a[row][k], 8);
            memcpy(&y, &m->b[col][k], 8);
            d = fma(x, y, d);
        }
        uint64_t code;
        memcpy(&code, &d, 8);
        return code;
    }
    int64_t sum = (int32_t)(uint32_t)m->c[row][col];
    for (int k = 0; k < f->k; k++)
        sum += f->kind == BITS
                   ? (int64_t)(f->head[1] == 'a' ? m->a[row][k] & m->b[col][k] : m->a[row][k] ^ m->b[col][k])
                   : integer(m->a[row][k], f->bits, f->sign) * integer(m->b[col][k], f->bits, f->sign);
    if (f->saturate) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    return (uint32_t)sum;
}

static void check(struct test *t, const struct form *f, int layouts)
{
    static struct matrices m;
    const bool col_a = layouts & 1, col_b = (layouts & 2) != 0, col_c = (layouts & 4) != 0;
    const int wc = width_of(f->c), wd = width_of(f->d);
    const int step = 128 / f->bits, step_c = 8; /* strides: multiples of 16 bytes, one more than needed */
    int stride[3] = { col_a ? f->m : f->k, col_b ? f->k : f->n, col_c ? f->m : f->n };
    for (int i = 0; i < 3; i++) {
        const int unit = i == 2 ? step_c : step;
        stride[i] = (stride[i] + unit - 1) / unit * unit + unit;
    }
    char text[4096];
    struct sim sim;
    kernel(f, col_a, col_b, col_c, layouts & 8, stride, text);
    if (!sim_open(t, &sim, "sm_90a", text)) return;
    uint64_t parameters[4];
    static const uint8_t zero[65536];
    for (int i = 0; i < 4; i++) parameters[i] = sim_buffer(&sim, zero, sizeof zero);
    uint8_t *host[4];
    for (int i = 0; i < 4; i++) host[i] = global_host(&sim.machine.memory, parameters[i], sizeof zero);
    for (int k = 0; k < f->k; k++) {
        for (int row = 0; row < f->m; row++)
            write_bits(host[0], position(col_a, stride[0], row, k, f->bits), f->bits,
                       m.a[row][k] = draw(t, f, f->bits));
        for (int col = 0; col < f->n; col++)
            write_bits(host[1], position(col_b, stride[1], k, col, f->bits), f->bits,
                       m.b[col][k] = draw(t, f, f->bits));
    }
    for (int row = 0; row < f->m; row++)
        for (int col = 0; col < f->n; col++) {
            m.c[row][col] = f->saturate                    ? (rnd(t) & 1) + INT32_MAX
                            : f->kind == FLOAT && wc == 16 ? (rnd(t) & 0x83ff) | 0x3c00
                                                           : draw(t, f, wc);
            write_bits(host[2], position(col_c, stride[2], row, col, wc), wc, m.c[row][col]);
        }
    sim_launch(t, &sim, "k", 1, 32, parameters, 4);
    for (int row = 0; row < f->m; row++)
        for (int col = 0; col < f->n; col++) {
            const uint64_t got = read_bits(host[3], position(col_c, stride[2], row, col, wd), wd),
                           want = wanted(f, &m, row, col);
            if (got != want)
                FAIL(t, "%s%s %s, layouts %d: d[%d][%d] is 0x%" PRIx64 ", not 0x%" PRIx64, f->shape, f->product,
                     f->type, layouts, row, col, got, want);
        }
    sim_close(&sim);
}

static void products_of_matrices_in_memory(struct test *t)
{
#define HALVES(shape, m, n) \
    { shape, "f16", FLOAT, m, n, 16, 16, 8, 8, 8, "f32", "f32", ".f32.f32", "", TENSOR_F16, 0, 0, 0 }, \
        { shape, "f16", FLOAT, m, n, 16, 16, 8, 8, 8, "f16", "f16", ".f16.f16", "", TENSOR_F16, 0, 0, 0 }, \
        { shape, "f16", FLOAT, m, n, 16, 16, 8, 8, 8, "f16", "f32", ".f32.f16", "", TENSOR_F16, 0, 0, 0 }, \
        { shape, "f16", FLOAT, m, n, 16, 16, 8, 8, 8, "f32", "f16", ".f16.f32", "", TENSOR_F16, 0, 0, 0 }, \
        { shape, "bf16", FLOAT, m, n, 16, 16, m / 4, n / 4, 8, "f32", "f32", ".f32.bf16.bf16.f32", "", TENSOR_BF16, \
          0, 0, 0 }, \
        { shape, "s8", INTEGER, m, n, 16, 8, m / 8, n / 8, 8, "s32", "s32", ".s32.s8.s8.s32", "", TENSOR_F16, true, 0, \
          0 }, \
    { \
        shape, "u8", INTEGER, m, n, 16, 8, m / 8, n / 8, 8, "s32", "s32", ".s32.u8.u8.s32.satfinite", "", TENSOR_F16, \
            false, true, 0 \
    }
    static const struct form forms[] = {
        HALVES("m16n16k16", 16, 16),
        HALVES("m8n32k16", 8, 32),
        HALVES("m32n8k16", 32, 8),
        { "m16n16k8", "tf32", FLOAT, 16, 16, 8, 32, 4, 4, 8, "f32", "f32", ".f32.tf32.tf32.f32", "", TENSOR_TF32, 0, 0,
          0 },
        { "m8n8k32", "s4", INTEGER, 8, 8, 32, 4, 1, 1, 2, "s32", "s32", ".s32.s4.s4.s32", "", TENSOR_F16, true, 0,
          true },
        { "m8n8k32", "u4", INTEGER, 8, 8, 32, 4, 1, 1, 2, "s32", "s32", ".s32.u4.u4.s32", "", TENSOR_F16, false, 0,
          true },
        { "m8n8k128", "b1", BITS, 8, 8, 128, 1, 1, 1, 2, "s32", "s32", ".s32.b1.b1.s32", ".xor.popc", TENSOR_F16, 0, 0,
          true },
        { "m8n8k128", "b1", BITS, 8, 8, 128, 1, 1, 1, 2, "s32", "s32", ".s32.b1.b1.s32", ".and.popc", TENSOR_F16, 0, 0,
          true },
        { "m8n8k4", "f64", DOUBLE, 8, 8, 4, 64, 1, 1, 2, "f64", "f64", ".f64.f64.f64.f64", "", TENSOR_F16, 0, 0, 0 },
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        for (int layouts = 0; layouts < 16; layouts++)
            if (!forms[i].only_row_col || (layouts & 3) == 2) check(t, &forms[i], layouts);
}

static void mistakes_are_reported(struct test *t)
{
    static const struct {
        const char *text;
        enum report_code code;
        const char *sentence;
    } planted[] = {
        { "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%rd60], 16;",
          REPORT_NONE, "" },
        { "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%rd60+520], 16;",
          REPORT_MISALIGNED, "multiple of 16" },
        { "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%rd60], 20;",
          REPORT_MISALIGNED, "multiple of 16" },
        { "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%rd60], 8;",
          REPORT_ILLEGAL, "stride" },
        { "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%rd60], 40;",
          REPORT_OUT_OF_BOUNDS, "reads 2 bytes" },
        { "mov.u32 %r9, %laneid; mul.wide.u32 %rd1, %r9, 32; add.u64 %rd1, %rd1, %rd60;\n"
          "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%rd1];",
          REPORT_DIVERGENCE, "lane 0" },
        { ".shared .align 32 .b8 s[512]; mov.u32 %r9, s;\n"
          "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%r9];",
          REPORT_UNINITIALISED, "nothing has written" },
    };
    for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
        struct sim sim;
        if (!sim_open(t, &sim, "sm_90a", planted[i].text)) continue;
        const uint64_t parameter = sim_buffer(&sim, NULL, 1024);
        const bool ran = sim_run(&sim, "k", 1, 32, 0, &parameter, 1);
        if (ran != (planted[i].code == REPORT_NONE) ||
            (!ran && (sim.report.code != planted[i].code || strstr(sim.report.sentence, planted[i].sentence) == NULL)))
            FAIL(t, "kernel %zu: %s", i, ran ? "no report" : sim.report.sentence);
        sim_close(&sim);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(products_of_matrices_in_memory), TEST(mistakes_are_reported) };
    return TEST_MAIN(argc, argv, cases);
}
