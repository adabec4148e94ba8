/* mma.sync: every form against matrices that are assembled from the fragments by the manual's formulas (9.7.14.5.1-13),
 * multiplied by tensor_reference.c (floating point), by integers, or by the host's fma. */
#include <math.h>
#include <stdlib.h>

#include "tests/support/harness.h"
#include "tests/reference/tensor_reference.h"
#include "machine/core/global_memory.h"

enum { MOST_K = 256 };

enum kind { FLOAT, INTEGER, BITS, DOUBLE };

struct form {
    const char *name; /* behind mma.sync.aligned. */
    enum kind kind;
    int m, k, bits;     /* bits: of an element of A and B */
    int na, nb, nc, nd; /* registers */
    bool half_c, half_d;
    enum tensor_format fa, fb;
    int group; /* of the numerics; late: fp8 on sm_90 */
    bool late, sign_a, sign_b, saturate, is_and;
};

/* ---- where element i of a lane lies: the manual's formulas, case by case ---- */

static void place_a(const struct form *f, int lane, int i, int *row, int *col)
{
    const int group = lane >> 2, in_group = lane % 4, high = group + 8;
    if (f->m == 8) { /* m8n8k4.f64, m8n8k16, m8n8k32, m8n8k128 */
        *row = group;
        *col = in_group * (f->bits == 64 ? 1 : 32 / f->bits) + i;
        return;
    }
    switch (f->bits) {
    case 64: /* m16n8k4, k8, k16 */
        *row = i % 2 == 0 ? group : high;
        *col = (i % 2 == 0 ? i * 2 : i * 2 - 2) + in_group;
        break;
    case 32: /* tf32: m16n8k4, k8 */
        *row = i == 0 || i == 2 ? group : high;
        *col = i < 2 ? in_group : in_group + 4;
        break;
    case 16:
        *row = i < 2 || (i >= 4 && i < 6) ? group : high;
        *col = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
        break;
    case 8:
        *row = i < 4 || (i >= 8 && i < 12) ? group : high;
        *col = in_group * 4 + (i & 3) + (i >= 8 ? 16 : 0);
        break;
    case 4:
        *row = i < 8 || (i >= 16 && i < 24) ? group : high;
        *col = in_group * 8 + (i & 7) + (i >= 16 ? 32 : 0);
        break;
    default: *row = i < 32 || (i >= 64 && i < 96) ? group : high; *col = in_group * 32 + (i & 31) + (i >= 64 ? 128 : 0);
    }
}

static void place_b(const struct form *f, int lane, int i, int *row, int *col)
{
    const int in_group = lane % 4;
    *col = lane >> 2;
    switch (f->bits) {
    case 64: *row = in_group + i * 4; break;
    case 32: *row = i == 0 ? in_group : in_group + 4; break;
    case 16: *row = in_group * 2 + (i & 1) + (i < 2 ? 0 : 8); break;
    case 8: *row = in_group * 4 + (i & 3) + (i < 4 ? 0 : 16); break;
    case 4: *row = in_group * 8 + (i & 7) + (i < 8 ? 0 : 32); break;
    default: *row = in_group * 32 + (i & 31) + (i < 32 ? 0 : 128);
    }
}

static void place_c(int lane, int i, int *row, int *col)
{
    *row = i < 2 ? lane >> 2 : (lane >> 2) + 8;
    *col = lane % 4 * 2 + (i & 1);
}

/* ---- one run: fragments [register][lane] ---- */

struct run {
    uint64_t a[8][32], b[4][32], c[8][32], d[8][32];
};

static uint64_t element(uint64_t fragment[][32], int bits, int lane, int i)
{
    if (bits == 64) return fragment[i][lane];
    const int each = 32 / bits;
    return fragment[i / each][lane] >> i % each * bits & (UINT64_MAX >> (64 - bits));
}
static uint64_t accumulator(uint64_t fragment[][32], bool half, int lane, int i)
{
    return half ? fragment[i / 2][lane] >> 16 * (i % 2) & 0xffff : fragment[i][lane];
}

static void loads(char *text, size_t size, const char *list, char base, const char *type, int count, int first,
                  bool wide)
{
    char *at = text + strlen(text);
    for (int r = 0; r < count; r++)
        at += snprintf(at, size - (size_t)(at - text), "ld.global.%s %%%s%d, [%%rd%c+%d];\n", type, list, first + r,
                       base, r * 32 * (wide ? 8 : 4));
}
static void vector(char *text, size_t size, const char *list, int count, int first)
{
    char *at = text + strlen(text);
    for (int r = 0; r < count; r++)
        at += snprintf(at, size - (size_t)(at - text), "%s%%%s%d", r == 0 ? "{" : ", ", list, first + r);
    snprintf(at, size - (size_t)(at - text), "}");
}

/* The lanes' own words: rd50..rd53 are the four arrays. */
static void kernel(const struct form *f, char *text, size_t size)
{
    const bool wide = f->kind == DOUBLE;
    const char *const ab = wide ? "fd" : "r", *const ab_type = wide ? "f64" : "b32";
    const char *const c = wide                             ? "fd"
                          : f->kind == FLOAT && !f->half_c ? "f"
                                                           : "r",
                      *const c_type = wide        ? "f64"
                                      : *c == 'f' ? "f32"
                                                  : "b32";
    const char *const d = wide                             ? "fd"
                          : f->kind == FLOAT && !f->half_d ? "f"
                                                           : "r",
                      *const d_type = wide        ? "f64"
                                      : *d == 'f' ? "f32"
                                                  : "b32";
    snprintf(text, size,
             "mov.u32 %%r63, %%laneid; mul.wide.u32 %%rd59, %%r63, %d;\n"
             "add.u64 %%rd1, %%rd60, %%rd59; add.u64 %%rd2, %%rd61, %%rd59; add.u64 %%rd3, %%rd62, %%rd59; "
             "add.u64 %%rd4, %%rd63, %%rd59;\n",
             wide ? 8 : 4);
    loads(text, size, ab, '1', ab_type, f->na, 0, wide);
    loads(text, size, ab, '2', ab_type, f->nb, 8, wide);
    loads(text, size, c, '3', c_type, f->nc, 16, wide);
    strcat(text, "mma.sync.aligned.");
    strcat(text, f->name);
    strcat(text, " ");
    vector(text, size, d, f->nd, 24);
    strcat(text, ", ");
    vector(text, size, ab, f->na, 0);
    strcat(text, ", ");
    vector(text, size, ab, f->nb, 8);
    strcat(text, ", ");
    vector(text, size, c, f->nc, 16);
    strcat(text, ";\n");
    char *at = text + strlen(text);
    for (int r = 0; r < f->nd; r++)
        at += snprintf(at, size - (size_t)(at - text), "st.global.%s [%%rd4+%d], %%%s%d;\n", d_type,
                       r * 32 * (wide ? 8 : 4), d, 24 + r);
}

static void move(struct sim *sim, uint64_t address, uint64_t fragment[][32], int count, bool wide, bool back)
{
    uint32_t narrow[8][32];
    uint8_t *host = global_host(&sim->machine.memory, address, (uint64_t)count * 32 * (wide ? 8 : 4));
    for (int r = 0; r < count && !wide; r++)
        for (int l = 0; l < 32; l++) narrow[r][l] = (uint32_t)fragment[r][l];
    void *const from = wide ? (void *)fragment : (void *)narrow;
    const size_t bytes = (size_t)count * 32 * (wide ? 8 : 4);
    if (back) memcpy(from, host, bytes);
    else memcpy(host, from, bytes);
    for (int r = 0; r < count && !wide && back; r++)
        for (int l = 0; l < 32; l++) fragment[r][l] = narrow[r][l];
}

/* ---- operands ---- */

static uint64_t draw_code(struct test *t, const struct form *f, enum tensor_format format, int manner)
{
    static const struct {
        int exponent, fraction, low;
    } layout[] = {
        [TENSOR_F16] = { 5, 10, 0 }, [TENSOR_BF16] = { 8, 7, 0 }, [TENSOR_TF32] = { 8, 10, 13 },
        [TENSOR_E5M2] = { 5, 2, 0 }, [TENSOR_E4M3] = { 4, 3, 0 },
    };
    const uint64_t any = rnd(t);
    if (f->kind == DOUBLE) {
        const uint64_t exponent = manner == 0 ? any >> 20 & 2047 : (uint64_t)rnd_between(t, 1010, 1030);
        return (any & UINT64_C(0x800fffffffffffff)) | exponent << 52;
    }
    if (f->kind != FLOAT) return manner == 1 ? (any & 1 ? UINT64_MAX : UINT64_C(0x8080808080808080)) : any;
    const int e = layout[format].exponent, fr = layout[format].fraction, middle = (1 << (e - 1)) - 1;
    if (manner == 0) return any;
    if (manner == 1)
        return (((any & 1) << e | (uint64_t)rnd_between(t, middle - 4, middle + 2)) << fr
                | (any >> 8 & ((1u << fr) - 1)))
               << layout[format].low;
    /* near zero */
    if (manner == 2) return ((any & 1) << (e + fr) | (any >> 8 & ((2u << fr) - 1))) << layout[format].low;
    return ((any & 1) << (e + fr) | (((1u << e) - 2) << fr) | (any >> 8 & ((1u << fr) - 1)))
           << layout[format].low; /* the largest */
}

static void draw(struct test *t, const struct form *f, int manner, struct run *run)
{
    memset(run, 0, sizeof *run);
    const int each = f->bits == 64 ? 1 : 32 / f->bits;
    for (int l = 0; l < 32; l++) {
        for (int i = 0; i < f->na * each; i++)
            run->a[i / each][l] |= (draw_code(t, f, f->fa, manner) & (UINT64_MAX >> (64 - f->bits)))
                                   << i % each * f->bits;
        for (int i = 0; i < f->nb * each; i++)
            run->b[i / each][l] |= (draw_code(t, f, f->fb, manner) & (UINT64_MAX >> (64 - f->bits)))
                                   << i % each * f->bits;
        for (int r = 0; r < f->nc; r++) {
            const uint64_t any = rnd(t);
            run->c[r][l] = f->kind == DOUBLE  ? draw_code(t, f, TENSOR_F16, manner)
                           : f->kind != FLOAT ? (manner == 1 ? (any & 1) + INT32_MAX : any & UINT32_MAX)
                           : f->half_c        ? (any & 0x83ff83ff) | (manner == 0 ? any >> 32 & 0x7c007c00 : 0x38003c00)
                           : manner == 0      ? any & UINT32_MAX
                                              : (any & 0x807fffff) | (uint64_t)rnd_between(t, 118, 130) << 23;
        }
    }
}

/* ---- what should come out ---- */

/* fp8 on sm_90: of every four neighbours the first two belong to the first sum, the others to the second. */
static void in_order(const struct form *f, const uint32_t *from, uint32_t *to)
{
    int n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < f->k; k++)
            if (!f->late ? pass == 0 : k % 4 / 2 == pass) to[n++] = from[k];
}

static int64_t integer(uint64_t code, int bits, bool is_signed)
{
    const int64_t value = (int64_t)(code & (UINT64_MAX >> (64 - bits)));
    return is_signed && (code >> (bits - 1) & 1) != 0 ? value - (INT64_C(1) << bits) : value;
}

static uint64_t want_float(const struct form *f, const uint32_t *a, const uint32_t *b, uint32_t c)
{
    const struct reference_model model = { f->group, 25, f->late, f->half_d ? TENSOR_TO_F16 : TENSOR_TO_F32 };
    uint32_t x[MOST_K], y[MOST_K];
    in_order(f, a, x);
    in_order(f, b, y);
    return reference_dot(&model, f->fa, x, f->fb, y, f->k, c);
}

static uint64_t want_double(const struct form *f, const uint64_t *a, const uint64_t *b, uint64_t c)
{
    const uint64_t quiet = UINT64_C(1) << 51;
    double x, y, d;
    for (int k = 0; k < f->k; k++) {
        memcpy(&d, &c, 8);
        memcpy(&x, &a[k], 8);
        memcpy(&y, &b[k], 8);
        const double sum = fma(x, y, d);
        if (sum == sum) memcpy(&c, &sum, 8);
        else c = y != y ? b[k] | quiet : d != d ? c | quiet : x != x ? a[k] | quiet : UINT64_C(0xfff8000000000000);
    }
    return c;
}

static uint64_t want_integer(const struct form *f, const uint64_t *a, const uint64_t *b, uint64_t c)
{
    int64_t sum = (int32_t)(uint32_t)c;
    for (int k = 0; k < f->k; k++)
        sum += f->kind == BITS ? (int64_t)(f->is_and ? a[k] & b[k] : a[k] ^ b[k])
                               : integer(a[k], f->bits, f->sign_a) * integer(b[k], f->bits, f->sign_b);
    if (f->saturate && sum > INT32_MAX) sum = INT32_MAX;
    if (f->saturate && sum < INT32_MIN) sum = INT32_MIN;
    return (uint32_t)sum;
}

static void compare(struct test *t, const struct form *f, struct run *run, int manner)
{
    static uint64_t a[16][MOST_K], b[8][MOST_K], c[16][8];
    const int each = f->bits == 64 ? 1 : 32 / f->bits, elements = f->m / 4;
    int row, col;
    for (int l = 0; l < 32; l++) {
        for (int i = 0; i < f->na * each; i++)
            place_a(f, l, i, &row, &col), a[row][col] = element(run->a, f->bits, l, i);
        for (int i = 0; i < f->nb * each; i++)
            place_b(f, l, i, &row, &col), b[col][row] = element(run->b, f->bits, l, i);
        for (int i = 0; i < elements; i++)
            place_c(l, i, &row, &col), c[row][col] = accumulator(run->c, f->half_c, l, i);
    }
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < elements; i++) {
            place_c(l, i, &row, &col);
            uint32_t x[MOST_K], y[MOST_K];
            for (int k = 0; k < f->k; k++) x[k] = (uint32_t)a[row][k], y[k] = (uint32_t)b[col][k];
            const uint64_t got = accumulator(run->d, f->half_d, l, i);
            const uint64_t want = f->kind == FLOAT    ? want_float(f, x, y, (uint32_t)c[row][col])
                                  : f->kind == DOUBLE ? want_double(f, a[row], b[col], c[row][col])
                                                      : want_integer(f, a[row], b[col], c[row][col]);
            if (got != want)
                FAIL(t, "%s, manner %d: d[%d][%d] is 0x%" PRIx64 ", not 0x%" PRIx64, f->name, manner, row, col, got,
                     want);
        }
}

static void check(struct test *t, const char *device, const struct form *f)
{
    char text[8192];
    struct sim sim;
    kernel(f, text, sizeof text);
    if (!sim_open(t, &sim, device, text)) return;
    const bool wide = f->kind == DOUBLE;
    static const uint8_t zero[8 * 32 * 8];
    uint64_t parameters[4];
    for (int i = 0; i < 4; i++) parameters[i] = sim_buffer(&sim, zero, sizeof zero);
    for (int n = 0; n < 12; n++) {
        struct run run;
        draw(t, f, n % 4, &run);
        move(&sim, parameters[0], run.a, f->na, wide, false);
        move(&sim, parameters[1], run.b, f->nb, wide, false);
        move(&sim, parameters[2], run.c, f->nc, wide, false);
        sim_launch(t, &sim, "k", 1, 32, parameters, 4);
        move(&sim, parameters[3], run.d, f->nd, wide, true);
        compare(t, f, &run, n % 4);
    }
    sim_close(&sim);
}

/* ---- forms ---- */

#define F32_FORM(shape, type, m, k, bits, na, nb, format) \
    { \
        shape ".row.col.f32." type "." type ".f32", FLOAT, m, k, bits, na, nb, 4, 4, false, false, format, format, k, \
            0, 0, 0, 0, 0 \
    }
#define F16_FORM(shape, type, m, k, bits, na, nb, format) \
    { \
        shape ".row.col.f16." type "." type ".f16", FLOAT, m, k, bits, na, nb, 2, 2, true, true, format, format, k, 0, \
            0, 0, 0, 0 \
    }

static void half_precision_and_its_kin(struct test *t)
{
    static const struct form forms[] = {
        F32_FORM("m16n8k8", "f16", 16, 8, 16, 2, 1, TENSOR_F16),
        F32_FORM("m16n8k16", "f16", 16, 16, 16, 4, 2, TENSOR_F16),
        F16_FORM("m16n8k8", "f16", 16, 8, 16, 2, 1, TENSOR_F16),
        F16_FORM("m16n8k16", "f16", 16, 16, 16, 4, 2, TENSOR_F16),
        F32_FORM("m16n8k8", "bf16", 16, 8, 16, 2, 1, TENSOR_BF16),
        F32_FORM("m16n8k16", "bf16", 16, 16, 16, 4, 2, TENSOR_BF16),
        F32_FORM("m16n8k4", "tf32", 16, 4, 32, 2, 1, TENSOR_TF32),
        F32_FORM("m16n8k8", "tf32", 16, 8, 32, 4, 2, TENSOR_TF32),
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        check(t, "sm_90a", &forms[i]);
        check(t, "sm_120a", &forms[i]);
    }
}

static void eight_bits(struct test *t)
{
    static const char *const types[] = { "e4m3", "e5m2" };
    static const enum tensor_format formats[] = { TENSOR_E4M3, TENSOR_E5M2 };
    for (int n = 0; n < 16; n++) {
        const int x = n & 1, y = n >> 1 & 1, half = n >> 2 & 1, k = n >> 3 ? 16 : 32;
        char name[64];
        const char *const d = half ? "f16" : "f32";
        snprintf(name, sizeof name, "m16n8k%d.row.col.%s.%s.%s.%s", k, d, types[x], types[y], d);
        struct form f = { name,         FLOAT,        16,        k,         8,          k / 8,      k / 16,
                          half ? 2 : 4, half ? 2 : 4, half != 0, half != 0, formats[x], formats[y], k / 2,
                          true,         false,        false,     false,     false };
        check(t, "sm_90a", &f);
        check(t, "sm_100a", &f);
        f.group = k, f.late = false;
        check(t, "sm_120a", &f);
        snprintf(name, sizeof name, "m16n8k%d.row.col.kind::f8f6f4.%s.%s.%s.%s", k, d, types[x], types[y], d);
        check(t, "sm_121a", &f);
        f.group = k / 2, f.late = true;
        check(t, "sm_103a", &f);
    }
}

static void integers(struct test *t)
{
    static const struct {
        int m, k, bits, na, nb;
    } shapes[] = { { 8, 16, 8, 1, 1 }, { 16, 16, 8, 2, 1 }, { 16, 32, 8, 4, 2 },
                   { 8, 32, 4, 1, 1 }, { 16, 32, 4, 2, 1 }, { 16, 64, 4, 4, 2 } };
    for (int n = 0; n < 6 * 8; n++) {
        const int s = n / 8, x = n & 1, y = n >> 1 & 1, saturate = n >> 2 & 1, c = shapes[s].m / 4;
        char name[64];
        snprintf(name, sizeof name, "m%dn8k%d.row.col%s.s32.%c%d.%c%d.s32", shapes[s].m, shapes[s].k,
                 saturate ? ".satfinite" : "", x ? 's' : 'u', shapes[s].bits, y ? 's' : 'u', shapes[s].bits);
        const struct form f = { name,  INTEGER, shapes[s].m, shapes[s].k,   shapes[s].bits, shapes[s].na, shapes[s].nb,
                                c,     c,       false,       false,         TENSOR_F16,     TENSOR_F16,   0,
                                false, x != 0,  y != 0,      saturate != 0, false };
        check(t, "sm_90a", &f);
    }
}

static void single_bits(struct test *t)
{
    static const struct {
        int m, k, na, nb;
    } shapes[] = { { 8, 128, 1, 1 }, { 16, 128, 2, 1 }, { 16, 256, 4, 2 } };
    for (int n = 0; n < 6; n++) {
        const int s = n / 2, c = shapes[s].m / 4;
        char name[64];
        snprintf(name, sizeof name, "m%dn8k%d.row.col.s32.b1.b1.s32.%s.popc", shapes[s].m, shapes[s].k,
                 n % 2 ? "and" : "xor");
        const struct form f = { name,  BITS,  shapes[s].m, shapes[s].k, 1,          shapes[s].na, shapes[s].nb,
                                c,     c,     false,       false,       TENSOR_F16, TENSOR_F16,   0,
                                false, false, false,       false,       n % 2 != 0 };
        check(t, "sm_90a", &f);
    }
}

static void doubles(struct test *t)
{
    static const struct {
        int m, k, na, nb;
    } shapes[] = { { 8, 4, 1, 1 }, { 16, 4, 2, 1 }, { 16, 8, 4, 2 }, { 16, 16, 8, 4 } };
    for (int n = 0; n < 8; n++) {
        const int s = n / 2, c = shapes[s].m / 4;
        char name[64];
        snprintf(name, sizeof name, "m%dn8k%d.row.col.f64.f64.f64.f64%s", shapes[s].m, shapes[s].k, n % 2 ? ".rn" : "");
        const struct form f = { name,  DOUBLE, shapes[s].m, shapes[s].k, 64,         shapes[s].na, shapes[s].nb,
                                c,     c,      false,       false,       TENSOR_F16, TENSOR_F16,   0,
                                false, false,  false,       false,       false };
        check(t, "sm_90a", &f);
    }
}

/* f64 in the other rounding modes: 1 + 2^-60 rounds up only upward, and so on. */
static void doubles_round_as_told(struct test *t)
{
    static const struct {
        const char *mode;
        uint64_t plus, minus;
    } modes[] = {
        { ".rn", 0x3ff0000000000000, 0xbff0000000000000 },
        { ".rz", 0x3ff0000000000000, 0xbff0000000000000 },
        { ".rm", 0x3ff0000000000000, 0xbff0000000000001 },
        { ".rp", 0x3ff0000000000001, 0xbff0000000000000 },
    };
    for (int i = 0; i < 8; i++) {
        const bool negative = i % 2 != 0;
        char text[1024];
        snprintf(
            text, sizeof text,
            "mov.f64 %%fd1, 0d3E10000000000000; mov.f64 %%fd2, 0d%s; mov.f64 %%fd3, 0d%s;\n" /* 2^-30, +-2^-30, +-1 */
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64%s {%%fd4, %%fd5}, {%%fd1}, {%%fd2}, {%%fd3, %%fd3};\n"
            "st.global.f64 [%%rd60], %%fd4;",
            negative ? "BE10000000000000" : "3E10000000000000", negative ? "BFF0000000000000" : "3FF0000000000000",
            modes[i / 2].mode);
        struct sim sim;
        if (!sim_open(t, &sim, "sm_90a", text)) continue;
        uint64_t got = 0;
        const uint64_t out = sim_buffer(&sim, &got, 8);
        sim_launch(t, &sim, "k", 1, 32, &out, 1);
        sim_read(&sim, out, &got, 8);
        const uint64_t want = negative ? modes[i / 2].minus : modes[i / 2].plus;
        /* four products; up and down, each of them moves the result by one */
        const uint64_t steps = want & 1 ? want + 3 : want;
        if (got != steps)
            FAIL(t, "%s of %s: 0x%" PRIx64 ", not 0x%" PRIx64, modes[i / 2].mode, negative ? "-1" : "1", got, steps);
        sim_close(&sim);
    }
}

/* ---- m8n8k4 with f16: four products of 8 x 4 by 4 x 8 matrices (9.7.14.5.1) ---- */

static double half(uint64_t code) { return reference_value(TENSOR_F16, (uint32_t)code & 0xffff); }

static void place_quad(bool row_major, bool is_b, int lane, int i, int *row, int *col)
{
    const int low = lane < 16 ? 0 : 4;
    if (!is_b && row_major) *row = lane % 4 + low, *col = i;
    if (!is_b && !row_major) *row = i % 4 + low, *col = lane % 4;
    if (is_b && row_major) *row = lane % 4, *col = i + low;
    if (is_b && !row_major) *row = i, *col = lane % 4 + low;
}
static void place_quad_c(bool half_c, int lane, int i, int *row, int *col)
{
    const int low = lane < 16 ? 0 : 4;
    *row = half_c ? lane % 4 + low : (lane & 1) + (i & 2) + low;
    *col = half_c ? i : (i & 4) + (lane & 2) + (i & 1);
}

static void quads(struct test *t)
{
    for (int n = 0; n < 12; n++) {
        const bool row_a = n & 1, row_b = n >> 1 & 1, half_d = n >> 2 == 0, half_c = n >> 2 < 2;
        char name[64], text[8192];
        snprintf(name, sizeof name, "m8n8k4.%s.%s.%s.f16.f16.%s", row_a ? "row" : "col", row_b ? "row" : "col",
                 half_d ? "f16" : "f32", half_c ? "f16" : "f32");
        const struct form f = { name,           FLOAT,          8,      4,      16,         2,          2,
                                half_c ? 4 : 8, half_d ? 4 : 8, half_c, half_d, TENSOR_F16, TENSOR_F16, 4,
                                false,          false,          false,  false,  false };
        struct sim sim;
        kernel(&f, text, sizeof text);
        if (!sim_open(t, &sim, "sm_90a", text)) continue;
        static const uint8_t zero[8 * 32 * 4];
        uint64_t parameters[4];
        for (int i = 0; i < 4; i++) parameters[i] = sim_buffer(&sim, zero, sizeof zero);
        struct run run;
        draw(t, &f, 1, &run); /* sums of a few numbers near 1: exact in double */
        move(&sim, parameters[0], run.a, 2, false, false);
        move(&sim, parameters[1], run.b, 2, false, false);
        move(&sim, parameters[2], run.c, f.nc, false, false);
        sim_launch(t, &sim, "k", 1, 32, parameters, 4);
        move(&sim, parameters[3], run.d, f.nd, false, true);
        double a[4][8][4], b[4][8][4], c[4][8][8];
        int row, col;
        for (int l = 0; l < 32; l++) {
            const int q = l % 16 / 4;
            for (int i = 0; i < 4; i++) {
                place_quad(row_a, false, l, i, &row, &col);
                a[q][row][col] = half(element(run.a, 16, l, i));
                place_quad(row_b, true, l, i, &row, &col);
                b[q][col][row] = half(element(run.b, 16, l, i));
            }
            for (int i = 0; i < 8; i++) {
                float value;
                const uint32_t code = (uint32_t)accumulator(run.c, half_c, l, i);
                memcpy(&value, &code, 4);
                place_quad_c(half_c, l, i, &row, &col);
                c[q][row][col] = half_c ? half(code) : (double)value;
            }
        }
        for (int l = 0; l < 32; l++)
            for (int i = 0; i < 8; i++) {
                place_quad_c(half_d, l, i, &row, &col);
                double sum = c[l % 16 / 4][row][col], size = fabs(sum), got;
                for (int k = 0; k < 4; k++) {
                    const double product = a[l % 16 / 4][row][k] * b[l % 16 / 4][col][k];
                    sum += product, size += fabs(product);
                }
                const uint32_t code = (uint32_t)accumulator(run.d, half_d, l, i);
                float value;
                memcpy(&value, &code, 4);
                got = half_d ? half(code) : (double)value;
                const double bound = size * (half_d ? 0x1p-10 : 0x1p-21);
                if (!(fabs(got - sum) <= bound)) FAIL(t, "%s: lane %d, element %d is %g, not %g", name, l, i, got, sum);
            }
        sim_close(&sim);
    }
}

/* The products are added to each other before c: 4 * 2^-25 counts beside 1, 2^-25 alone would not. */
static void quads_add_c_last(struct test *t)
{
    struct sim sim;
    if (!sim_open(
            t, &sim, "sm_90a",
            "mov.b32 %r1, 0x04000400; mov.b32 %r3, 0x10001000; mov.f32 %f1, 0f3F800000;\n" /* 2^-14, 2^-11, 1 */
            "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f11,%f12,%f13,%f14,%f15,%f16,%f17,%f18}, {%r1,%r1}, "
            "{%r3,%r3}, {%f1,%f1,%f1,%f1,%f1,%f1,%f1,%f1};\nst.global.f32 [%rd60], %f11;"))
        return;
    uint32_t got = 0;
    const uint64_t out = sim_buffer(&sim, &got, 4);
    sim_launch(t, &sim, "k", 1, 32, &out, 1);
    sim_read(&sim, out, &got, 4);
    CHECK(t, got == 0x3f800001); /* 1 + 4 * 2^-25 */
    sim_close(&sim);
}

/* ---- demands ---- */

static void all_lanes_must_take_part(struct test *t)
{
    static const char mma[] =
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f4};\n";
    char text[512];
    struct sim sim;
    snprintf(text, sizeof text, "mov.u32 %%r9, %%laneid; setp.eq.u32 %%p1, %%r9, 7; @%%p1 exit;\n%s", mma);
    if (sim_open(t, &sim, "sm_90a", text)) {
        CHECK(t, !sim_run(&sim, "k", 1, 32, 0, NULL, 0));
        CHECK(t, sim.report.code == REPORT_DIVERGENCE && sim.report.lane == 7
                     && strstr(sim.report.sentence, "0xffffff7f") != NULL);
        sim_close(&sim);
    }
    if (sim_open(t, &sim, "sm_90a", mma)) {
        CHECK(t, !sim_run(&sim, "k", 1, 48, 0, NULL, 0)); /* the second warp has 16 threads */
        CHECK(t, sim.report.code == REPORT_DIVERGENCE && sim.report.warp == 1);
        CHECK(t, sim_run(&sim, "k", 1, 64, 0, NULL, 0));
        sim_close(&sim);
    }
}

static void forms_that_do_not_exist_are_refused(struct test *t)
{
    static const char *const forms[] = {
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f16 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, {%r4,%r5};",
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f4};",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f4};",
        "mma.sync.aligned.m16n8k8.col.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f4};",
        "mma.sync.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f4};",
        "mma.sync.aligned.m16n8k8.row.col.satfinite.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, "
        "{%f1,%f2,%f3,%f4};",
        ("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f32 {%r1,%r2,%r3,%r4}, {%r1,%r2}, {%r3,%r4}, "
         "{%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8};"),
        "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.or.popc {%r1,%r2}, {%r3}, {%r4}, {%r5,%r6};",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct sim sim;
        sim_refused(t, &sim, "sm_90a", forms[i]);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(half_precision_and_its_kin),
        TEST(eight_bits),
        TEST(integers),
        TEST(single_bits),
        TEST(doubles),
        TEST(doubles_round_as_told),
        TEST(quads),
        TEST(quads_add_c_last),
        TEST(all_lanes_must_take_part),
        TEST(forms_that_do_not_exist_are_refused),
    };
    return TEST_MAIN(argc, argv, cases);
}
