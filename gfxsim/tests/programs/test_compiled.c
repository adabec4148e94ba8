/* C kernels by clang at every level of optimization against the same work on the host: programs/device. */
#include "matrix/elements.h"
#include "support/simulate.h"

#include <math.h>
#include <stdlib.h>

#ifndef GFXSIM_DEVICE
#define GFXSIM_DEVICE ""
#endif

enum { THREADS = 256, GROUPS = 2, ALL = THREADS * GROUPS };
enum kind { BITS, HALF, BRAIN, SINGLE, DOUBLE, ANY_SINGLE, ANY_DOUBLE };     /* of random input: ANY: of any size */
enum compare { EXACT, HALVES, BRAINS, NEAR };             /* whole numbers; NaN is NaN; a few units in the last place */

typedef void host_function(const void *a, const void *b, void *out, int n);
struct task {
    const char *file, *kernel;
    enum kind kind;
    uint32_t bytes, out_bytes;            /* a thread */
    int n;
    enum compare compare;
    host_function *host;
};

/* ---- arithmetic ---- */

#define EACH(type, width) \
    const type *const pa = a, *const pb = b; \
    (void)n; \
    type *o = out; \
    for (int i = 0; i < ALL; i++, o += (width))
#define HOST(name) static void name(const void *a, const void *b, void *out, int n)

static int32_t clamped(int32_t v, int32_t low, int32_t high) { return v < low ? low : v > high ? high : v; }

HOST(packed_shorts)
{
    EACH(int16_t, 16)
        for (int k = 0; k < 2; k++) {
            const int x = pa[2 * i + k], y = pb[2 * i + k];
            const int want[8] = { x + y, x - y, x * y, (int)((uint32_t)x << (y & 15)), x > y ? x : y, x < y ? x : y,
                                  x >> (y & 15), clamped(x + y, -32768, 32767) };
            for (int j = 0; j < 8; j++) o[2 * j + k] = (int16_t)want[j];
        }
}
HOST(packed_unsigned)
{
    EACH(uint16_t, 12)
        for (int k = 0; k < 2; k++) {
            const int x = pa[2 * i + k], y = pb[2 * i + k], z = pb[2 * i + 1 - k];
            const uint32_t product = (uint32_t)x * (uint32_t)y;
            const int want[6] = { x >> (y & 15), x > y ? x : y, x < y ? x : y, clamped(x - y, 0, 65535),
                                  (int)(product + (uint32_t)y), clamped(x + z, 0, 65535) };
            for (int j = 0; j < 6; j++) o[2 * j + k] = (uint16_t)want[j];
        }
}
static double half(uint16_t bits) { return (double)half_to_float(bits); }
HOST(packed_halves)
{
    EACH(uint16_t, 12)
        for (int k = 0; k < 2; k++) {
            const double x = half(pa[2 * i + k]), y = half(pb[2 * i + k]), z = half(pb[2 * i + 1 - k]);
            const double want[6] = { x + y, x * y, fma(x, y, x), fmax(x, y), fmin(x, y), x - z };
            for (int j = 0; j < 6; j++) o[2 * j + k] = double_to_half(want[j]);
        }
}
HOST(halves)
{
    EACH(uint16_t, 6) {
        const double x = half(pa[i]), y = half(pb[i]);
        const float mixed = (float)x * 3.5f;
        o[0] = double_to_half(x + y), o[1] = double_to_half(x * y), o[2] = double_to_half(x / y);
        o[3] = x < y ? pa[i] : pb[i] ^ 0x8000, o[4] = float_to_half(mixed + (float)y);
        o[5] = double_to_half((double)(int)x);
    }
}
HOST(shorts)
{
    EACH(int16_t, 8) {
        const int x = pa[i], y = pb[i], ux = (uint16_t)x, uy = (uint16_t)y;
        const uint32_t product = (uint32_t)ux * (uint32_t)uy;
        const int want[8] = { x + y, (int)product, x >> (y & 15), x < y ? x : y, ux / (uy | 1), x % (int16_t)(y | 1),
                              (int)(product + 3), ux >> (y & 7) };
        for (int j = 0; j < 8; j++) o[j] = (int16_t)want[j];
    }
}
HOST(bytes)
{
    EACH(uint8_t, 4) {
        const int x = pa[i], y = pb[i];
        o[0] = (uint8_t)((x << 3 | x >> 5) ^ (x * 37)), o[1] = (uint8_t)(x + y > 255 ? 255 : x + y);
        o[2] = (uint8_t)abs(x - y), o[3] = (uint8_t)(x / (y | 1));
    }
}
static int ones(uint64_t v)
{
    int count = 0;
    for (int i = 0; i < 64; i++) count += (int)(v >> i & 1);
    return count;
}
static int leading(uint64_t v, int bits)
{
    int count = 0;
    while (count < bits && !(v >> (bits - 1 - count) & 1)) count++;
    return count;
}
static int trailing(uint64_t v)
{
    int count = 0;
    while (!(v >> count & 1)) count++;
    return count;
}
static uint32_t mirrored(uint32_t v)
{
    uint32_t d = 0;
    for (int i = 0; i < 32; i++) d |= (v >> i & 1) << (31 - i);
    return d;
}
HOST(integers)
{
    EACH(int32_t, 8) {
        const int32_t x = pa[i], y = pb[i];
        const uint32_t ux = (uint32_t)x, uy = (uint32_t)y, s = uy & 31, swapped = uy >> 24 | (uy >> 8 & 0xff00)
                                                                                   | (uy << 8 & 0xff0000) | uy << 24;
        const int64_t difference = (int64_t)x - y;
        o[0] = (int32_t)(ux / (uy | 1)), o[1] = (int32_t)((int64_t)x % (y | 1));
        o[2] = (int32_t)(s == 0 ? ux : ux << s | ux >> (32 - s));
        o[3] = ones(ux) + leading(ux | 1, 32) + trailing(ux | 1u << 31);
        o[4] = (int32_t)(ux + uy < ux ? UINT32_MAX : ux + uy);
        o[5] = (int32_t)(difference > INT32_MAX ? INT32_MAX : difference < INT32_MIN ? INT32_MIN : difference);
        o[6] = (int32_t)(mirrored(ux) ^ swapped), o[7] = (int32_t)((uint64_t)ux * uy >> 32);
    }
}
HOST(longs)
{
    EACH(uint64_t, 8) {
        const uint64_t x = pa[i], y = pb[i];
        o[0] = x * y, o[1] = (uint64_t)((int64_t)x / (int64_t)(y | 1)), o[2] = x % (y | 1), o[3] = x << (y & 63);
        o[4] = (int64_t)x > (int64_t)y ? x : y, o[6] = x - y, o[7] = (uint64_t)((int64_t)x >> (y & 63));
        o[5] = (uint64_t)(ones(x) + leading(y | 1, 64) + trailing(x | UINT64_C(1) << 63));
    }
}
HOST(doubles)
{
    EACH(double, 8) {
        const double x = pa[i], y = pb[i];
        o[0] = x + y, o[1] = x * y, o[2] = x / y, o[3] = x < y ? x : y, o[4] = sqrt(x * x + 1);
        o[5] = (double)(float)x, o[6] = (double)(int)x, o[7] = floor(x) - trunc(y);
    }
}
HOST(floats)
{
    EACH(float, 8) {
        const float x = pa[i], y = pb[i];
        o[0] = x / y, o[1] = sqrtf(x * x), o[2] = floorf(x), o[3] = 1 / x, o[4] = rintf(y) + ceilf(x);
        o[5] = ldexpf(x, (int)y & 7), o[6] = fmaf(x, y, x), o[7] = x > y ? x : y;
    }
}
HOST(divisions)
{
    EACH(float, 2) o[0] = pa[i] / pb[i], o[1] = 1 / pa[i];
}
HOST(wide_divisions)
{
    EACH(double, 2) o[0] = pa[i] / pb[i], o[1] = 1 / pa[i];
}
HOST(transcendental)
{
    EACH(float, 4) {
        const double x = (double)(fabsf(pa[i]) + 0.125f), y = (double)pb[i];
        o[0] = (float)log(x), o[1] = (float)exp2(y), o[2] = (float)log10(x), o[3] = (float)exp(y);
    }
}
static float brain(uint16_t bits) { return (float)element_value(ELEMENT_BF16, bits); }
HOST(brains)
{
    EACH(uint16_t, 3) {
        const float x = brain(pa[i]), y = brain(pb[i]);
        o[0] = float_to_bfloat(x + y), o[1] = float_to_bfloat(x * y), o[2] = float_to_bfloat(x / y);
    }
}

/* ---- language ---- */

static int by_value(const void *p, const void *q)
{
    const int32_t a = *(const int32_t *)p, b = *(const int32_t *)q;
    return (a > b) - (a < b);
}
HOST(insertion)
{
    (void)b, (void)n;
    memcpy(out, a, sizeof(int32_t) * 24 * ALL);
    for (int i = 0; i < ALL; i++) qsort((int32_t *)out + 24 * i, 24, sizeof(int32_t), by_value);
}
HOST(generic)
{
    EACH(uint32_t, 1) {
        const uint32_t t = (uint32_t)i % THREADS, own[4] = { t, t + 1, t + 2, t + (uint32_t)n };
        *o = (t % 3 == 0 ? pa[i] : t % 3 == 1 ? 2 * pa[i ^ 1] : own[t & 3]) + pb[i];
    }
}
HOST(generic_stores)
{
    EACH(uint32_t, 1) {
        (void)pb;
        const bool shared = i % 2 != 0;
        uint32_t own[2] = { 5, 7 };
        if (!shared) own[i >> 1 & 1] = pa[i];
        *o = (shared ? pa[i] : 1) + (uint32_t)n + own[0] * 3 + own[1];
    }
}
HOST(reversed)
{
    EACH(uint8_t, 128) {
        (void)pb;
        for (int k = 0; k < 128; k++) o[k] = pa[128 * i + 127 - (k * n & 127)];
    }
}
HOST(calls)
{
    EACH(int32_t, 1) {
        (void)pb;
        int count = 0;
        for (uint32_t v = ((uint32_t)pa[i] & 0xff) + 1; v != 1; count++) v = v % 2 != 0 ? 3 * v + 1 : v / 2;
        *o = count * n;
    }
}
HOST(recursion)
{
    EACH(int32_t, 1) {
        (void)pb;
        *o = 1;
        for (int k = 2; k <= (pa[i] & 7) + n; k++) *o *= k;
    }
}
HOST(switches)
{
    EACH(int32_t, 1) {
        (void)pb;
        const int32_t v = pa[i];
        const uint32_t u = (uint32_t)v;
        const uint32_t want[8] = { u * 3, u ^ 55, (uint32_t)(v >> 2), 0 - u, (uint32_t)(v / 7), (uint32_t)(v % 11),
                                   (uint32_t)ones(u), (uint32_t)leading(u | 1, 32) };
        *o = (int32_t)want[v & 7];
    }
}
struct record { int32_t number[12]; char letter; int16_t small; double real; };
HOST(records)
{
    (void)b, (void)n;
    memcpy(out, a, sizeof(struct record) * ALL);
    for (int i = 0; i < ALL; i++) {
        struct record *r = (struct record *)out + i;
        const uint32_t sum = (uint32_t)r->number[i % 12] + 5;
        memcpy(&r->number[i % 12], &sum, 4);
        r->letter++, r->small -= 3, r->real *= 2;
    }
}
HOST(table)
{
    static const int32_t numbers[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };
    EACH(int32_t, 1) {
        (void)pa, (void)pb;
        *o = numbers[i & 7] * 100 + numbers[(i / THREADS + n) & 7];
    }
}

/* ---- workgroups ---- */

HOST(reduce)
{
    (void)b;
    for (int g = 0; g < GROUPS; g++) {
        double s = 0;
        for (int i = 0; i < n; i++) s += (double)((const float *)a)[g * n + i];
        ((float *)out)[g] = (float)s;
    }
}
HOST(softmax)
{
    (void)b;
    for (int g = 0; g < GROUPS; g++) {
        const float *row = (const float *)a + g * n;
        double most = -INFINITY, s = 0;
        for (int i = 0; i < n; i++) most = fmax(most, (double)row[i]);
        for (int i = 0; i < n; i++) s += exp((double)row[i] - most);
        for (int i = 0; i < n; i++) ((float *)out)[g * n + i] = (float)(exp((double)row[i] - most) / s);
    }
}
HOST(transpose)
{
    (void)b;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) ((float *)out)[j * n + i] = ((const float *)a)[i * n + j];
}
static int by_unsigned(const void *p, const void *q)
{
    const uint32_t a = *(const uint32_t *)p, b = *(const uint32_t *)q;
    return (a > b) - (a < b);
}
HOST(bitonic)
{
    (void)b, (void)n;
    memcpy(out, a, sizeof(uint32_t) * 2 * ALL);
    for (int g = 0; g < GROUPS; g++) qsort((uint32_t *)out + 512 * g, 512, sizeof(uint32_t), by_unsigned);
}
HOST(histogram)
{
    (void)b;
    for (int i = 0; i < n; i++) ((uint32_t *)out)[((const uint8_t *)a)[i]]++;
    for (int i = 0; i < 256; i++) ((uint32_t *)out)[i]--;
}
HOST(scan)
{
    EACH(uint32_t, 2) {
        (void)pb;
        for (int k = i / 64 * 64; k <= i; k++) o[0] += pa[k];
        for (int k = i / 16 * 16; k <= i; k++) o[1] += pa[k];
    }
}
HOST(atomics_on_lds)
{
    uint32_t *o = out;
    float sum = 0;
    (void)a, (void)b, (void)n;
    for (int i = 0; i < 16; i++) o[i] = i == 6 ? UINT32_MAX : 1000;
    for (uint32_t t = 0; t < THREADS; t++) {
        o[1] += t, o[2] |= 1u << (t & 31), o[3] ^= t * 7, o[6] &= ~(1u << (t & 15)), o[7] -= t;
        o[64 + t] = 1000 + t;                                             /* in some order: sorted before */
        sum += 1.5f;
    }
    o[4] = 255 * 30, o[5] = (uint32_t)-255, o[0] = 1256, o[8] = 77, o[9] = 5, o[63] = 1;
    const uint64_t wide[2] = { (uint64_t)(255 * 128) << 30, (uint64_t)255 << 33 };
    memcpy(o + 16, wide, sizeof wide);
    memcpy(o + 20, &sum, 4);
}
HOST(atomics_on_memory)
{
    uint32_t *o = out;
    (void)a, (void)b, (void)n;
    for (uint32_t i = 0; i < ALL; i++) o[1] += i % THREADS, o[2] -= i % THREADS, o[5] |= 1u << (i & 31), o[6] ^= i;
    o[3] = 255, o[4] = (uint32_t)-255, o[8] = 2 * ALL, o[10] = 7;
    const float half_of_all = 0.5f * ALL;
    memcpy(o + 9, &half_of_all, 4);
    const uint64_t wide[2] = { (uint64_t)(2 * 255 * 128) << 32, (uint64_t)255 << 32 };
    memcpy(o + 16, wide, sizeof wide);
}
HOST(matmul)
{
    const float *pa = a, *pb = b;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float s = 0;
            for (int k = 0; k < n; k++) s += pa[i * n + k] * pb[k * n + j];
            ((float *)out)[i * n + j] = s;
        }
}

#define P(file, kernel, kind, bytes, out, n, compare) { file, #kernel, kind, bytes, out, n, compare, kernel }
static const struct task tasks[] = {
    P("arithmetic", packed_shorts, BITS, 4, 32, 0, EXACT), P("arithmetic", packed_unsigned, BITS, 4, 24, 0, EXACT),
    P("arithmetic", packed_halves, HALF, 4, 24, 0, HALVES), P("arithmetic", halves, HALF, 2, 12, 0, HALVES),
    P("arithmetic", shorts, BITS, 2, 16, 0, EXACT), P("arithmetic", bytes, BITS, 1, 4, 0, EXACT),
    P("arithmetic", integers, BITS, 4, 32, 0, EXACT), P("arithmetic", longs, BITS, 8, 64, 0, EXACT),
    P("arithmetic", doubles, DOUBLE, 8, 64, 0, EXACT), P("arithmetic", floats, SINGLE, 4, 32, 0, EXACT),
    P("arithmetic", divisions, ANY_SINGLE, 4, 8, 0, EXACT),
    P("arithmetic", wide_divisions, ANY_DOUBLE, 8, 16, 0, EXACT),
    P("arithmetic", transcendental, SINGLE, 4, 16, 0, NEAR), P("arithmetic", brains, BRAIN, 2, 6, 0, BRAINS),
    P("language", insertion, BITS, 96, 96, 0, EXACT), P("language", generic, BITS, 4, 4, 9, EXACT),
    P("language", generic_stores, BITS, 4, 4, 11, EXACT), P("language", reversed, BITS, 128, 128, 3, EXACT),
    P("language", calls, BITS, 4, 4, 2, EXACT), P("language", recursion, BITS, 4, 4, 2, EXACT),
    P("language", switches, BITS, 4, 4, 0, EXACT), P("language", records, DOUBLE, 64, 64, 0, EXACT),
    P("language", table, BITS, 4, 4, 3, EXACT),
    P("collective", reduce, SINGLE, 12, 4, 700, NEAR), P("collective", softmax, SINGLE, 8, 8, 500, NEAR),
    P("collective", transpose, BITS, 72, 72, 96, EXACT), P("collective", bitonic, BITS, 8, 8, 0, EXACT),
    P("collective", histogram, BITS, 20, 4, 9999, EXACT), P("collective", scan, BITS, 4, 8, 0, EXACT),
    P("collective", atomics_on_lds, BITS, 4, 4, 0, EXACT), P("collective", atomics_on_memory, BITS, 4, 4, 0, EXACT),
    P("collective", matmul, SINGLE, 4, 4, 19, EXACT),
};

/* ---- comparing ---- */

/* Numbers around 1 whose bits are all in use. */
static void draw(struct test *t, enum kind kind, void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) ((uint8_t *)data)[i] = (uint8_t)rnd(t);
    for (size_t i = 0; kind == HALF && i < bytes / 2; i++)
        ((uint16_t *)data)[i] = float_to_half((float)rnd_normal(t) * 8);
    for (size_t i = 0; kind == BRAIN && i < bytes / 2; i++)
        ((uint16_t *)data)[i] = float_to_bfloat((float)rnd_normal(t) * 8);
    for (size_t i = 0; kind == SINGLE && i < bytes / 4; i++) ((float *)data)[i] = (float)rnd_normal(t) * 4;
    for (size_t i = 0; kind == ANY_SINGLE && i < bytes / 4; i++)
        ((float *)data)[i] = (float)ldexp(rnd_normal(t), (int)rnd_between(t, -140, 126));
    for (size_t i = 0; kind == ANY_DOUBLE && i < bytes / 8; i++)
        ((double *)data)[i] = ldexp(rnd_normal(t), (int)rnd_between(t, -1060, 1020));
    for (size_t i = 0; kind == DOUBLE && i < bytes / 8; i++) ((double *)data)[i] = rnd_normal(t) * 64;
}

static bool same(const struct task *p, const uint8_t *got, const uint8_t *want, size_t at)
{
    if (p->compare == NEAR) {
        float x, y;
        memcpy(&x, got + at / 4 * 4, 4);
        memcpy(&y, want + at / 4 * 4, 4);
        return fabsf(x - y) <= 4e-6f * fmaxf(fabsf(y), 1e-3f) + (p->host == reduce ? 1e-3f : 0);
    }
    if (got[at] == want[at]) return true;
    if (p->compare != HALVES && p->compare != BRAINS) return false;
    uint16_t x, y;
    memcpy(&x, got + at / 2 * 2, 2);
    memcpy(&y, want + at / 2 * 2, 2);
    const uint16_t infinity = p->compare == HALVES ? 0x7c00 : 0x7f80;
    return (x & 0x7fff) > infinity && (y & 0x7fff) > infinity;
}

static void compare(struct test *t, const struct task *p, const char *level, uint8_t *got, const uint8_t *want)
{
    if (p->host == atomics_on_lds) qsort((uint32_t *)(void *)got + 64, 256, 4, by_unsigned);
    int wrong = 0;
    for (size_t i = 0; i < (size_t)p->out_bytes * ALL && wrong < 3; i++) {
        if (same(p, got, want, i)) continue;
        wrong++;
        FAIL(t, "%s -O%s: byte %zu is %02x, not %02x", p->kernel, level, i, got[i], want[i]);
    }
}

static void run(struct test *t, const struct task *p, const char *level, struct simulation *s)
{
    const size_t in_bytes = (size_t)p->bytes * ALL, out_bytes = (size_t)p->out_bytes * ALL;
    uint8_t *a = malloc(in_bytes), *b = malloc(in_bytes), *want = calloc(1, out_bytes);
    if (a == NULL || b == NULL || want == NULL) FAIL(t, "no memory");
    else {
        draw(t, p->kind, a, in_bytes);
        draw(t, p->kind, b, in_bytes);
        const struct { uint64_t a, b, out; int32_t n; } arguments = {
            simulation_put(s, a, in_bytes), simulation_put(s, b, in_bytes), simulation_put(s, want, out_bytes), p->n };
        p->host(a, b, want, p->n);
        if (!simulation_run(s, p->kernel, GROUPS, THREADS, 0, &arguments, sizeof arguments))
            FAIL(t, "%s -O%s: %s", p->kernel, level, s->report.text);
        else compare(t, p, level, simulation_at(arguments.out), want);
    }
    free(a);
    free(b);
    free(want);
}

static void at_level(struct test *t, const char *level)
{
    const char *file = "";
    struct simulation s = { 0 };
    bool open = false;
    if (*GFXSIM_DEVICE == '\0') {
        test_skip(t, "no clang that knows gfx950");
        return;
    }
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        if (strcmp(file, tasks[i].file) != 0) {
            char path[1024];
            struct machine_options o = test_options();
            if (open) simulation_close(&s);
            file = tasks[i].file;
            snprintf(path, sizeof path, "%s/%s.O%s.hsaco", GFXSIM_DEVICE, file, level);
            open = simulation_open_file(&s, t, path, &o);
        }
        /* what atomics return depends on the order of waves */
        s.machine.options.schedules = tasks[i].host == atomics_on_lds ? 1 : 3;
        if (open) run(t, &tasks[i], level, &s);
    }
    if (open) simulation_close(&s);
}
static void without_optimization(struct test *t) { at_level(t, "0"); }
static void optimized_a_little(struct test *t) { at_level(t, "1"); }
static void optimized(struct test *t) { at_level(t, "2"); }
static void optimized_fully(struct test *t) { at_level(t, "3"); }
static void optimized_for_size(struct test *t) { at_level(t, "s"); }

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(without_optimization), TEST(optimized_a_little), TEST(optimized),
                                              TEST(optimized_fully), TEST(optimized_for_size) };
    return TEST_MAIN(argc, argv, cases);
}
