/* cp.async.bulk in all directions, its reductions and groups: results against the host, misuse with its report. */
#include <math.h>
#include <stdlib.h>

#include "tests/support/schedules.h"

/* %r1 shared bytes, %r2 mbarrier, %r3 thread, %p1 not thread 0; an initialised barrier for one arrival. */
#define BEGIN \
    ".shared .align 128 .b8 s[4096]; .shared .align 8 .b64 bar; mov.u32 %r1, s; mov.u32 %r2, bar; mov.u32 %r3, " \
    "%tid.x; " \
    "setp.ne.u32 %p1, %r3, 0; @%p1 bra READY; mbarrier.init.shared.b64 [%r2], 1; " \
    "fence.mbarrier_init.release.cluster; READY: " \
    "barrier.cluster.arrive; barrier.cluster.wait;\n"
#define EXPECT(bytes)    "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], " bytes ";\n"
#define WAIT(label)      label ": mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra " label ";\n"
#define LOAD             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
#define STORE            "cp.async.bulk.global.shared::cta.bulk_group "
#define COMMIT           "cp.async.bulk.commit_group; "
#define ADDRESS(r, base) "mul.wide.u32 %rd1, %r3, 4; add.u64 " r ", " base ", %rd1; "
/* each of 32 threads writes its number to shared memory and makes it visible to the engine */
#define FILL "shl.b32 %r4, %r3, 2; add.u32 %r4, %r4, %r1; st.shared.u32 [%r4], %r3; fence.proxy.async; bar.sync 0;\n"

static void copies_there_and_back(struct test *t)
{
    static const char text[] = BEGIN "@%p1 bra WAIT1;\n" EXPECT("%r20") LOAD
        "[%r1], [%rd60], %r20, [%r2];\n" WAIT("WAIT1") "setp.ne.u32 %p1, %r3, 0; @%p1 bra END; " STORE
                                                       "[%rd61], [%r1], %r20;\n" COMMIT
                                                       "cp.async.bulk.wait_group 0; END:";
    for (uint32_t bytes = 0; bytes <= 4096; bytes = bytes == 0 ? 16 : bytes < 256 ? bytes + 48 : bytes * 2) {
        struct sim sim;
        char whole[4096];
        snprintf(whole, sizeof whole, "mov.u32 %%r20, %u;\n%s", bytes, text);
        uint8_t in[4096], got[4096], zero[4096] = { 0 };
        for (int i = 0; i < 4096; i++) in[i] = (uint8_t)rnd(t);
        for (uint64_t s = 0; s < 4; s++) {
            if (!sim_open(t, &sim, "sm_90a", whole)) return;
            use_schedule(&sim, s);
            const uint64_t p[2] = { sim_buffer(&sim, in, sizeof in), sim_buffer(&sim, NULL, sizeof got) };
            if (!run_cluster(&sim, 1, 64, 0, p, 2)) FAIL(t, "%s", sim.report.text);
            sim_read(&sim, p[1], got, sizeof got);
            CHECK(t, memcmp(got, in, bytes) == 0 && memcmp(got + bytes, zero, sizeof got - bytes) == 0);
            sim_close(&sim);
        }
    }
}

/* Rank 0 loads 256 bytes to the CTAs of a mask; each CTA of the mask waits on its own barrier and writes out what it
 * has. */
static void multicast_reaches_each_cta_of_the_mask(struct test *t)
{
    static const char text[] = BEGIN
        "mov.u32 %r5, %cluster_ctarank; shr.u32 %r6, %r20, %r5; and.b32 %r6, %r6, 1; setp.eq.u32 %p3, %r6, 0; "
        "@%p3 bra ISSUE;\n"
        "@%p1 bra ISSUE;\n" EXPECT(
            "256") "ISSUE: setp.ne.u32 %p4, %r5, 0; or.pred %p4, %p4, %p1; @%p4 bra TAKE; cvt.u16.u32 %rs1, %r20; "
                   "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], "
                   "[%rd60], 256, [%r2], %rs1;\n"
                   "TAKE: @%p3 bra END;\n" WAIT(
                       "WAIT1") "shl.b32 %r7, %r3, 2; add.u32 %r7, %r7, %r1; ld.shared.u32 %r8, [%r7]; "
                                "mad.lo.u32 %r9, %r5, 64, %r3; mul.wide.u32 %rd1, %r9, 4; "
                                "add.u64 %rd1, %rd1, %rd61; st.global.u32 [%rd1], %r8;\n"
                                "END: barrier.cluster.arrive; barrier.cluster.wait;";
    for (uint32_t ctas = 2; ctas <= 4; ctas += 2)
        for (uint32_t mask = 1; mask < 1u << ctas; mask++) {
            struct sim sim;
            char whole[4096];
            uint32_t in[64], got[4 * 64];
            for (int i = 0; i < 64; i++) in[i] = (uint32_t)rnd(t);
            snprintf(whole, sizeof whole, "mov.u32 %%r20, %u;\n%s", mask, text);
            if (!sim_open(t, &sim, "sm_90a", whole)) return;
            use_schedule(&sim, mask);
            const uint64_t p[2] = { sim_buffer(&sim, in, sizeof in), sim_buffer(&sim, NULL, sizeof got) };
            if (!run_cluster(&sim, ctas, 64, 0, p, 2)) FAIL(t, "%s", sim.report.text);
            sim_read(&sim, p[1], got, sizeof got);
            for (uint32_t i = 0; i < ctas * 64; i++) CHECK(t, got[i] == ((mask >> i / 64 & 1) != 0 ? in[i % 64] : 0));
            sim_close(&sim);
        }
}

/* Each CTA sends 128 bytes to the next one's shared memory. */
static void shared_memory_goes_to_another_cta(struct test *t)
{
    static const char text[] = BEGIN FILL
        "mov.u32 %r5, %cluster_ctarank; mov.u32 %r6, %cluster_nctarank; add.u32 %r7, %r5, 1; rem.u32 %r7, %r7, %r6;\n"
        "@%p1 bra WAIT1; " EXPECT(
            "128") "st.shared.u32 [%r1], %r5; fence.proxy.async; mapa.shared::cluster.u32 %r8, %r1, %r7; "
                   "mapa.shared::cluster.u32 %r9, %r2, %r7; add.u32 %r8, %r8, 512;\n"
                   "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8], [%r1], 128, "
                   "[%r9];\n" WAIT("WAIT1") "ld.shared.u32 %r11, [%r4+512]; mad.lo.u32 %r10, %r5, 32, %r3; "
                                            "mul.wide.u32 %rd1, %r10, 4; add.u64 %rd1, %rd1, %rd61; "
                                            "st.global.u32 [%rd1], %r11; barrier.cluster.arrive; barrier.cluster.wait;";
    for (uint64_t s = 0; s < 20; s++) {
        struct sim sim;
        uint32_t got[4 * 32];
        if (!sim_open(t, &sim, "sm_90a", text)) return;
        use_schedule(&sim, s);
        const uint64_t p[2] = { 0, sim_buffer(&sim, NULL, sizeof got) };
        if (!run_cluster(&sim, 4, 32, 0, p, 2)) FAIL(t, "%s", sim.report.text);
        sim_read(&sim, p[1], got, sizeof got);
        for (uint32_t i = 0; i < 4 * 32; i++) CHECK(t, got[i] == (i % 32 == 0 ? (i / 32 + 3) % 4 : i % 32));
        sim_close(&sim);
    }
}

/* ---- reductions ---- */

struct reduction {
    const char *words, *type;
    uint32_t width;
    uint64_t (*want)(uint64_t old, uint64_t value);
    bool to_shared;
};

static double half_value(uint64_t bits, int mantissa, int bias)
{
    const int exponent = (int)(bits >> mantissa) & ((1 << (15 - mantissa)) - 1);
    const double fraction = (double)(bits & ((1u << mantissa) - 1)) / (1 << mantissa);
    const double size = exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias);
    return (bits & 0x8000) != 0 ? -size : size;
}
static double f16_value(uint64_t bits) { return half_value(bits, 10, 15); }
static double bf16_value(uint64_t bits) { return half_value(bits, 7, 127); }
/* The nearest of all finite numbers of the format, ties to the even one. */
static uint64_t nearest(double value, double (*decode)(uint64_t), uint64_t infinity)
{
    uint64_t best = 0;
    for (uint64_t bits = 0; bits < infinity; bits++) {
        const double d = fabs(decode(bits) - fabs(value)), b = fabs(decode(best) - fabs(value));
        if (d < b || (d == b && bits % 2 == 0)) best = bits;
    }
    return best | (signbit(value) ? 0x8000 : 0);
}

static float as_float(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, 4);
    return f;
}
static uint64_t add_f32(uint64_t a, uint64_t b)
{
    const float sum = as_float(a) + as_float(b);
    uint32_t bits;
    memcpy(&bits, &sum, 4);
    return bits;
}
static uint64_t add_f64(uint64_t a, uint64_t b)
{
    double x, y;
    memcpy(&x, &a, 8), memcpy(&y, &b, 8);
    x += y;
    memcpy(&a, &x, 8);
    return a;
}
static uint64_t add_f16(uint64_t a, uint64_t b) { return nearest(f16_value(a) + f16_value(b), f16_value, 0x7c00); }
static uint64_t add_bf16(uint64_t a, uint64_t b) { return nearest(bf16_value(a) + bf16_value(b), bf16_value, 0x7f80); }
static uint64_t min_f16(uint64_t a, uint64_t b) { return f16_value(a) < f16_value(b) ? a : b; }
static uint64_t max_bf16(uint64_t a, uint64_t b) { return bf16_value(a) > bf16_value(b) ? a : b; }
static uint64_t add(uint64_t a, uint64_t b) { return a + b; }
static uint64_t min_u32(uint64_t a, uint64_t b) { return (uint32_t)a < (uint32_t)b ? a : b; }
static uint64_t max_s32(uint64_t a, uint64_t b) { return (int32_t)a > (int32_t)b ? a : b; }
static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t min_s64(uint64_t a, uint64_t b) { return (int64_t)a < (int64_t)b ? a : b; }
static uint64_t inc(uint64_t a, uint64_t b) { return (uint32_t)a >= (uint32_t)b ? 0 : a + 1; }
static uint64_t dec(uint64_t a, uint64_t b) { return (uint32_t)a == 0 || (uint32_t)a > (uint32_t)b ? b : a - 1; }
static uint64_t and (uint64_t a, uint64_t b) { return a & b; }
static uint64_t or (uint64_t a, uint64_t b) { return a | b; }
static uint64_t xor (uint64_t a, uint64_t b) { return a ^ b; }

    static const struct reduction reductions[] = {
    { ".add", "u32", 4, add, true },
    { ".add", "s32", 4, add, true },
    { ".add", "u64", 8, add, true },
    { ".min", "u32", 4, min_u32, true },
    { ".max", "s32", 4, max_s32, true },
    { ".inc", "u32", 4, inc, true },
    { ".dec", "u32", 4, dec, true },
    { ".and", "b32", 4, and, true },
    { ".or", "b32", 4, or, true },
    { ".xor", "b32", 4, xor, true },
    { ".add", "f32", 4, add_f32, false },
    { ".add", "f64", 8, add_f64, false },
    { ".add.noftz", "f16", 2, add_f16, false },
    { ".add.noftz", "bf16", 2, add_bf16, false },
    { ".min", "f16", 2, min_f16, false },
    { ".max", "bf16", 2, max_bf16, false },
    { ".max", "u64", 8, max_u64, false },
    { ".min", "s64", 8, min_s64, false },
    { ".and", "b64", 8, and, false },
    { ".or", "b64", 8, or, false },
    { ".xor", "b64", 8, xor, false },
};

/* Bits of a number of the reduction's type; finite where floats are added, small where counters count. */
static uint64_t number(struct test *t, const struct reduction *r)
{
    uint64_t bits = rnd(t);
    if (r->want == inc || r->want == dec) return bits % 4;
    if (r->width == 2) bits &= strcmp(r->type, "f16") == 0 ? 0xbbff : 0xbf7f;
    if (r->want == add_f32) bits = rnd_below(t, 4) == 0 ? bits & 0x807fffff : (bits & 0x80ffffff) | 0x3f000000;
    if (r->want == add_f64) bits = (bits & UINT64_C(0x801fffffffffffff)) | UINT64_C(0x3fe0000000000000);
    return bits;
}

enum { REDUCED = 256 };

static void reduces_to_global(struct test *t, const struct reduction *r)
{
    static const char before[] = BEGIN "@%p1 bra WAIT1; " EXPECT("256") LOAD
        "[%r1], [%rd60], 256, [%r2];\n" WAIT("WAIT1") "@%p1 bra END; "
                                                      "cp.reduce.async.bulk.global.shared::cta.bulk_group";
    char text[4096];
    struct sim sim;
    uint8_t in[REDUCED] = { 0 }, out[REDUCED] = { 0 }, got[REDUCED];
    for (uint32_t i = 0; i < REDUCED; i += r->width) {
        const uint64_t a = number(t, r), b = number(t, r);
        memcpy(in + i, &a, r->width), memcpy(out + i, &b, r->width);
    }
    snprintf(text, sizeof text, "%s%s.%s [%%rd61], [%%r1], 256; " COMMIT "cp.async.bulk.wait_group 0; END:", before,
             r->words, r->type);
    if (!sim_open(t, &sim, "sm_90a", text)) return;
    const uint64_t p[2] = { sim_buffer(&sim, in, sizeof in), sim_buffer(&sim, out, sizeof out) };
    if (!run_cluster(&sim, 1, 32, 0, p, 2)) FAIL(t, "%s", sim.report.text);
    sim_read(&sim, p[1], got, sizeof got);
    for (uint32_t i = 0; i < REDUCED; i += r->width) {
        uint64_t a = 0, b = 0, g = 0;
        memcpy(&a, out + i, r->width), memcpy(&b, in + i, r->width), memcpy(&g, got + i, r->width);
        const uint64_t mask = r->width == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * r->width)) - 1,
                       want = r->want(a, b) & mask;
        if (g != want)
            FAIL(t, "%s.%s of %#" PRIx64 " and %#" PRIx64 " gives %#" PRIx64 ", not %#" PRIx64, r->words, r->type, a, b,
                 g, want);
    }
    sim_close(&sim);
}

/* CTA 1 reduces its numbers into CTA 0's shared memory. */
static void reduces_to_shared(struct test *t, const struct reduction *r)
{
    static const char before[] =
        BEGIN "mov.u32 %r5, %cluster_ctarank; @%p1 bra WAIT1; setp.eq.u32 %p3, %r5, 0; "
              "selp.u64 %rd1, %rd61, %rd60, %p3; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 256;\n" LOAD
              "[%r1], [%rd1], 256, [%r2];\n" WAIT(
                  "WAIT1") "barrier.cluster.arrive; barrier.cluster.wait; @%p1 bra NEXT; setp.eq.u32 %p3, %r5, 0; "
                           "@%p3 bra ZERO; mapa.shared::cluster.u32 %r8, %r1, 0; mapa.shared::cluster.u32 %r9, %r2, 0; "
                           "cp.reduce.async.bulk.shared::cluster.shared::cta"
                           ".mbarrier::complete_tx::bytes";
    static const char behind[] =
        " [%r8], [%r1], 256, [%r9]; bra NEXT; ZERO: mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 256; "
        "NEXT: setp.ne.u32 %p3, %r5, 0; "
        "@%p3 bra END; W2: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 1; @!%p2 bra W2; @%p1 bra END; " STORE
        "[%rd62], [%r1], 256; " COMMIT "cp.async.bulk.wait_group 0; END: barrier.cluster.arrive; barrier.cluster.wait;";
    char text[4096];
    struct sim sim;
    uint8_t in[REDUCED] = { 0 }, out[REDUCED] = { 0 }, got[REDUCED];
    for (uint32_t i = 0; i < REDUCED; i += r->width) {
        const uint64_t a = number(t, r), b = number(t, r);
        memcpy(in + i, &a, r->width), memcpy(out + i, &b, r->width);
    }
    snprintf(text, sizeof text, "%s%s.%s%s", before, r->words, r->type, behind);
    if (!sim_open(t, &sim, "sm_90a", text)) return;
    const uint64_t p[3] = { sim_buffer(&sim, in, sizeof in), sim_buffer(&sim, out, sizeof out),
                            sim_buffer(&sim, NULL, sizeof got) };
    if (!run_cluster(&sim, 2, 32, 0, p, 3)) FAIL(t, "%s", sim.report.text);
    sim_read(&sim, p[2], got, sizeof got);
    for (uint32_t i = 0; i < REDUCED; i += r->width) {
        uint64_t a = 0, b = 0, g = 0;
        memcpy(&a, out + i, r->width), memcpy(&b, in + i, r->width), memcpy(&g, got + i, r->width);
        CHECK(t, g == (r->width == 4 ? (uint32_t)r->want(a, b) : r->want(a, b)));
    }
    sim_close(&sim);
}

static void every_reduction_is_the_host_s(struct test *t)
{
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
        reduces_to_global(t, &reductions[i]);
        if (reductions[i].to_shared) reduces_to_shared(t, &reductions[i]);
    }
}

static void forms_that_do_not_exist_are_refused(struct test *t)
{
    static const struct {
        const char *device, *text;
    } forms[] = {
        { "sm_90a", STORE "[%rd1], [%r1], 16, %rs1;" },
        { "sm_90a", "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r1], 16, %rs1;" },
        { "sm_90a",
          "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 16, [%r2], "
          "%rs1;" },
        { "sm_90a", LOAD "[%r1], [%rd1], 16;" },
        { "sm_90a", "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%rd1], [%r1], 16;" },
        { "sm_90a", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd1], [%r1], 16;" },
        { "sm_90a", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%rd1], [%r1], 16;" },
        { "sm_90a",
          "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [%r1], [%r3], 16, "
          "[%r2];" },
        { "sm_90a", "cp.async.bulk.wait_group %r1;" },
    };
    struct sim sim;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        CHECK(t, sim_refused(t, &sim, forms[i].device, forms[i].text));
}

static void a_mask_chooses_bytes(struct test *t)
{
    struct sim sim;
    uint8_t in[256], got[256];
    for (int i = 0; i < 256; i++) in[i] = (uint8_t)(i + 1);
    if (!sim_open(t, &sim, "sm_100a",
                  BEGIN "@%p1 bra END; " EXPECT("256") LOAD "[%r1], [%rd60], 256, [%r2];\n" WAIT(
                      "WAIT1") "mov.u16 %rs1, 0x9a05; cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd61], "
                               "[%r1], 256, %rs1; " COMMIT "cp.async.bulk.wait_group 0; END:"))
        return;
    const uint64_t p[2] = { sim_buffer(&sim, in, sizeof in), sim_buffer(&sim, NULL, sizeof got) };
    if (!run_cluster(&sim, 1, 32, 0, p, 2)) FAIL(t, "%s", sim.report.text);
    sim_read(&sim, p[1], got, sizeof got);
    for (int i = 0; i < 256; i++) CHECK(t, got[i] == ((0x9a05 >> i % 16 & 1) != 0 ? in[i] : 0));
    sim_close(&sim);
}

/* ---- misuse ---- */

/* p2 in %rd62: 64 KiB in, p3 in %rd63: 64 KiB out */
#define LOADS(first, rest) "@%p1 bra WAIT1; " EXPECT("256") first LOAD rest "\n" WAIT("WAIT1")
#define STORES(rest)       FILL "@%p1 bra END; " STORE rest "\n"
#define NEXT(to, from)     "cp.async.bulk.wait_group.read 0; " STORE "[%rd63+" to "], [%r1+" from "], 16; " COMMIT
#define TEN_STORES \
    STORES("[%rd63], [%r1], 16;") \
    COMMIT NEXT("16", "16") NEXT("32", "32") NEXT("48", "48") NEXT("64", "64") NEXT("80", "80") NEXT("96", "96") \
        NEXT("112", "112") NEXT("128", "0") NEXT("144", "16")
#define LINGER             "mov.u32 %r9, 0; LINGER: add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, 2000; @%p3 bra LINGER;\n"
/* thread 0 loads with an mbarrier of its own, which it has just initialised */
#define LOADS_BY_OWN(fence) \
    ".shared .align 8 .b64 own; @%p1 bra END; mov.u32 %r9, own; mbarrier.init.shared.b64 [%r9], 1; " fence \
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r9], 256; " LOAD "[%r1], [%rd62], 256, [%r9];\n" \
    "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r9], 0; @!%p2 bra W; END:"
static const struct misuse misuses[] = {
    { LOADS("", "[%r1], [%rd62], 256, [%r2];"), NULL, 0, 1, 32 },
    { LOADS("", "[%r1+8], [%rd62], 256, [%r2];"), "no multiple of 16", REPORT_MISALIGNED, 1, 32 },
    { LOADS("", "[%r1], [%rd62+8], 256, [%r2];"), "no multiple of 16", REPORT_MISALIGNED, 1, 32 },
    { LOADS("", "[%r1], [%rd62], 252, [%r2];"), "moves 252 bytes", REPORT_ILLEGAL, 1, 32 },
    /* no bytes: nothing arrives, from and to the last address too */
    { LOADS("", "[%r1], [%rd62], 0, [%r2];"), "wait for mbarrier", REPORT_DEADLOCK, 1, 32 },
    { LOADS("", "[%r1], [%rd62], 256, [%r2]; " LOAD "[%r1+4096], [%rd62+65536], 0, [%r2];"), NULL, 0, 1, 32 },
    { LOADS("", "[%r1], [%rd62], 0, [%r1];"), "no mbarrier.init", REPORT_BARRIER, 1, 32 },
    { LOADS("", "[%r1], [%rd62+8], 0, [%r2];"), "no multiple of 16", REPORT_MISALIGNED, 1, 32 },
    { STORES("[%rd63+65536], [%r1], 0;") "END:", NULL, 0, 1, 32 },
    { LOADS("", "[%r1], [%rd62], 256, [%r2+4];"), "no multiple of 8", REPORT_MISALIGNED, 1, 32 },
    { LOADS("", "[%r1], [%rd62], 256, [%r1];"), "no mbarrier.init", REPORT_BARRIER, 1, 32 },
    { LOADS("", "[%r1+3968], [%rd62], 256, [%r2];"), "moves 256 bytes at shared address", REPORT_OUT_OF_BOUNDS, 1, 32 },
    { LOADS("", "[%r1], [%rd62+65296], 256, [%r2];"), "outside of the 65536 bytes", REPORT_OUT_OF_BOUNDS, 1, 32 },
    { LOADS("", "[%r1], [%rd62+65280], 256, [%r2];"), NULL, 0, 1, 32 },
    { LOADS("", "[%r1], [64], 256, [%r2];"), "where nothing is allocated", REPORT_OUT_OF_BOUNDS, 1, 32 },
    { LOADS("add.u32 %r1, %r1, 0x3000000; ", "[%r1], [%rd62], 256, [%r2];"), "belongs to no CTA", REPORT_OUT_OF_BOUNDS,
      1, 32 },
    /* of a CTA's own mbarrier no fence behind mbarrier.init is demanded */
    { LOADS_BY_OWN(""), NULL, 0, 1, 32 },
    { LOADS_BY_OWN("fence.acq_rel.cluster; "), NULL, 0, 1, 32 },
    { LOADS_BY_OWN("fence.mbarrier_init.release.cluster; "), NULL, 0, 1, 32 },
    { LOADS_BY_OWN("fence.proxy.async.shared::cta; "), NULL, 0, 1, 32 },
    /* wrong number of bytes */
    { "@%p1 bra W; " EXPECT("256") LOAD "[%r1], [%rd62], 128, [%r2]; W: " WAIT("WAIT1"), "wait for mbarrier",
      REPORT_DEADLOCK, 1, 32 },
    /* the mbarrier of another CTA */
    { "@%p1 bra END; mov.u32 %r5, %cluster_ctarank; setp.ne.u32 %p3, %r5, 0; @%p3 bra END; "
      "mapa.shared::cluster.u32 %r6, %r2, 1; " LOAD
      "[%r1], [%rd62], 256, [%r6]; END: barrier.cluster.arrive; barrier.cluster.wait;",
      "it has to be the same CTA", REPORT_ILLEGAL, 2, 32 },
    /* multicast */
    { "@%p1 bra END; mov.u16 %rs1, 4; "
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd62], "
      "256, [%r2], %rs1; END: barrier.cluster.arrive; barrier.cluster.wait;",
      "multicasts to CTA rank 2; the cluster has 2", REPORT_ILLEGAL, 2, 32 },
    { "@%p1 bra END; mov.u16 %rs1, 0; "
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd62], "
      "256, [%r2], %rs1; END: barrier.cluster.arrive; barrier.cluster.wait;",
      "multicasts to no CTA", REPORT_ILLEGAL, 2, 32 },
    /* .shared::cta is the CTA's own */
    { "@%p1 bra END; mapa.shared::cluster.u32 %r6, %r1, 1; mov.u32 %r5, %cluster_ctarank; setp.ne.u32 %p3, %r5, 0; "
      "@%p3 bra END; cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r6], [%rd62], 256, [%r2]; "
      "END: barrier.cluster.arrive; barrier.cluster.wait;",
      "of CTA rank 1", REPORT_OUT_OF_BOUNDS, 2, 32 },
    { FILL
      "@%p1 bra END; cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1+512], [%r1], 128, "
      "[%r2]; END:",
      "another CTA of the cluster", REPORT_ILLEGAL, 1, 32 },
    /* reading before completion */
    { "@%p1 bra W; " EXPECT("256") LOAD "[%r1], [%rd62], 256, [%r2]; W: ld.shared.u32 %r5, [%r1]; " WAIT("WAIT1"), "",
      REPORT_ASYNC + ALWAYS, 1, 1 },
    /* generic writes overwritten by the engine with no proxy fence */
    { "shl.b32 %r4, %r3, 2; add.u32 %r4, %r4, %r1; st.shared.u32 [%r4], %r3; bar.sync 0; " LOADS(
          "", "[%r1], [%rd62], 256, [%r2];"),
      "no fence.proxy.async", REPORT_PROXY, 1, 32 },
    { FILL LOADS("", "[%r1], [%rd62], 256, [%r2];"), NULL, 0, 1, 32 },
    /* what was read is overwritten: a barrier alone does not hold the engine back from reads that are under way */
    { FILL "ld.shared.u32 %r5, [%r4]; bar.sync 0; " LOADS("", "[%r1], [%rd62], 256, [%r2];"),
      "was read through the generic proxy", REPORT_PROXY + ALWAYS, 1, 32 },
    { FILL "ld.shared.u32 %r5, [%r4]; fence.proxy.async; " LOADS("", "[%r1], [%rd62], 256, [%r2];"),
      "no barrier or other", REPORT_RACE, 1, 32 },
    { FILL "ld.shared.u32 %r5, [%r4]; fence.proxy.async; bar.sync 0; " LOADS("", "[%r1], [%rd62], 256, [%r2];"), NULL,
      0, 1, 32 },
    /* two loads to the same bytes */
    { "@%p1 bra W; " EXPECT("512") LOAD "[%r1], [%rd62], 256, [%r2]; " LOAD
                                        "[%r1+240], [%rd62], 256, [%r2]; W: " WAIT("WAIT1"),
      "overwrites the byte", REPORT_ASYNC, 1, 32 },
    /* no thread waits: the CTA has ended */
    { "@%p1 bra END; " EXPECT("256") LOAD "[%r1], [%rd62], 256, [%r2]; END:", "have exited without waiting",
      REPORT_ASYNC, 1, 32 },
    { STORES("[%rd63], [%r1], 128;") COMMIT "END:", "have exited without waiting", REPORT_ASYNC + ALWAYS, 1, 32 },
    { STORES("[%rd63], [%r1], 128;") COMMIT "cp.async.bulk.wait_group.read 0; END:", NULL, 0, 1, 32 },
    /* also where it has been read in time, by chance: another lane waits, one group may be pending, it was not
     * committed */
    { STORES("[%rd63], [%r1], 128;") COMMIT LINGER "END:", "have exited without waiting", REPORT_ASYNC + ALWAYS, 1,
      32 },
    { STORES("[%rd63], [%r1], 128;") COMMIT LINGER "END: @!%p1 bra OUT; cp.async.bulk.wait_group.read 0; OUT:",
      "have exited without waiting", REPORT_ASYNC + ALWAYS, 1, 32 },
    { STORES("[%rd63], [%r1], 64;") COMMIT STORE "[%rd63+64], [%r1+64], 64; " COMMIT LINGER
                                                 "cp.async.bulk.wait_group.read 1; END:",
      "have exited without waiting", REPORT_ASYNC + ALWAYS, 1, 32 },
    { STORES("[%rd63], [%r1], 128;") "cp.async.bulk.wait_group.read 0;" LINGER "END:", "have exited without waiting",
      REPORT_ASYNC + ALWAYS, 1, 32 },
    { STORES("[%rd63], [%r1], 64;") COMMIT STORE "[%rd63+64], [%r1+64], 64; " COMMIT
                                                 "cp.async.bulk.wait_group.read 0; " COMMIT "END:",
      NULL, 0, 1, 32 },
    /* stores */
    { STORES("[%rd63+8], [%r1], 128;") "END:", "no multiple of 16", REPORT_MISALIGNED, 1, 32 },
    { STORES("[%rd63+65520], [%r1], 128;") "END:", "outside of the 65536 bytes", REPORT_OUT_OF_BOUNDS, 1, 32 },
    { STORES("[%rd63], [%r1], 256;") "END:", "of which nothing has written 128", REPORT_UNINITIALISED, 1, 32 },
    { "shl.b32 %r4, %r3, 2; add.u32 %r4, %r4, %r1; st.shared.u32 [%r4], %r3; bar.sync 0; @%p1 bra END; " STORE
      "[%rd63], [%r1], 128; " COMMIT "cp.async.bulk.wait_group 0; END:",
      "no fence.proxy.async", REPORT_PROXY, 1, 32 },
    { "shl.b32 %r4, %r3, 2; add.u32 %r4, %r4, %r1; st.shared.u32 [%r4], %r3; fence.proxy.async; @%p1 bra END; " STORE
      "[%rd63], [%r1], 128; " COMMIT "cp.async.bulk.wait_group 0; END:",
      "no barrier", REPORT_RACE, 1, 64 },
    /* the source is overwritten before it was read */
    { STORES("[%rd63], [%r1], 128;") COMMIT "st.shared.u32 [%r1], 0; cp.async.bulk.wait_group.read 0; END:",
      "overwrites the byte", REPORT_ASYNC, 1, 32 },
    { STORES("[%rd63], [%r1], 128;") COMMIT "cp.async.bulk.wait_group.read 0; st.shared.u32 [%r1], 0; END:", NULL, 0, 1,
      32 },
    { STORES("[%rd63], [%r1], 128;") "cp.async.bulk.wait_group.read 0; st.shared.u32 [%r1], 0; END:",
      "overwrites the byte", REPORT_ASYNC, 1, 32 },
    { STORES("[%rd63], [%r1], 64;") COMMIT STORE
      "[%rd63+64], [%r1+64], 64; " COMMIT
      "cp.async.bulk.wait_group.read 1; st.shared.u32 [%r1], 0; cp.async.bulk.wait_group 0; END:",
      NULL, 0, 1, 32 },
    { STORES("[%rd63], [%r1], 64;") COMMIT STORE
      "[%rd63+64], [%r1+64], 64; " COMMIT
      "cp.async.bulk.wait_group.read 1; st.shared.u32 [%r1+64], 0; cp.async.bulk.wait_group 0; END:",
      "overwrites the byte", REPORT_ASYNC + ALWAYS, 1, 32 },
    /* the tenth of ten, which has been read in time, with the first nine waited for one after the other */
    { TEN_STORES LINGER "cp.async.bulk.wait_group.read 1; st.shared.u32 [%r1+16], 0; cp.async.bulk.wait_group 0; END:",
      "overwrites the byte", REPORT_ASYNC + ALWAYS, 1, 32 },
    { TEN_STORES "cp.async.bulk.wait_group.read 1; st.shared.u32 [%r1], 0; cp.async.bulk.wait_group 0; END:", NULL, 0,
      1, 32 },
    /* .read does not make what was written visible */
    { STORES("[%rd63], [%r1], 128;") COMMIT "cp.async.bulk.wait_group.read 0; ld.global.u32 %r5, [%rd63]; END:",
      "reads the byte", REPORT_ASYNC + ALWAYS, 1, 32 },
    { STORES("[%rd63], [%r1], 128;") COMMIT "cp.async.bulk.wait_group 0; ld.global.u32 %r5, [%rd63]; END:", NULL, 0, 1,
      32 },
};

static void misuse_is_reported(struct test *t)
{
    check_misuses(t, "sm_90a", BEGIN, misuses, sizeof misuses / sizeof *misuses, NULL);
}

/* ---- a ring of stages ---- */

/* Thread 0 loads 16 tiles of 128 bytes through a ring of two stages; 32 consumers add them up. */
static void a_ring_gives_the_same_under_every_schedule(struct test *t)
{
    static const char text[] =
        ".shared .align 128 .b8 s[256]; .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2]; mov.u32 %r1, s; "
        "mov.u32 %r2, full; "
        "mov.u32 %r3, empty; mov.u32 %r4, %tid.x; setp.ne.u32 %p1, %r4, 0; @%p1 bra READY; "
        "mbarrier.init.shared.b64 [%r2], 1; mbarrier.init.shared.b64 [%r2+8], 1; mbarrier.init.shared.b64 [%r3], 32; "
        "mbarrier.init.shared.b64 [%r3+8], 32; fence.mbarrier_init.release.cluster; READY: bar.sync 0; mov.u32 %r5, 0; "
        "mov.u32 %r20, 0; setp.lt.u32 %p2, %r4, 32; @!%p2 bra PRODUCE;\n"
        "CONSUME: and.b32 %r6, %r5, 1; shr.u32 %r7, %r5, 1; and.b32 %r7, %r7, 1; shl.b32 %r8, %r6, 3; "
        "add.u32 %r9, %r2, %r8; W1: mbarrier.try_wait.parity.shared.b64 %p3, [%r9], %r7; @!%p3 bra W1; "
        "shl.b32 %r10, %r6, 7; shl.b32 %r11, %r4, 2; add.u32 %r10, %r10, %r11; add.u32 %r10, %r10, %r1; "
        "ld.shared.u32 %r12, [%r10]; fence.proxy.async; mad.lo.u32 %r20, %r20, 3, %r12; add.u32 %r9, %r3, %r8; "
        "mbarrier.arrive.shared.b64 _, [%r9]; add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 16; @%p4 bra CONSUME;\n"
        "mul.wide.u32 %rd1, %r4, 4; add.u64 %rd1, %rd1, %rd61; st.global.u32 [%rd1], %r20; bra END;\n"
        "PRODUCE: setp.ne.u32 %p1, %r4, 32; @%p1 bra END; LOOP: and.b32 %r6, %r5, 1; shr.u32 %r7, %r5, 1; "
        "and.b32 %r7, %r7, 1; xor.b32 %r7, %r7, 1; "
        "shl.b32 %r8, %r6, 3; add.u32 %r9, %r3, %r8; W2: mbarrier.try_wait.parity.shared.b64 %p3, [%r9], %r7; "
        "@!%p3 bra W2; add.u32 %r9, %r2, %r8; "
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r9], 128; shl.b32 %r10, %r6, 7; add.u32 %r10, %r10, %r1; "
        "mul.wide.u32 %rd1, %r5, 128; "
        "add.u64 %rd1, %rd1, %rd60; " LOAD
        "[%r10], [%rd1], 128, [%r9]; add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 16; @%p4 bra LOOP;\nEND:";
    uint32_t in[16 * 32], want[32] = { 0 }, got[32];
    for (int i = 0; i < 16 * 32; i++) in[i] = (uint32_t)rnd(t), want[i % 32] = want[i % 32] * 3 + in[i];
    for (uint64_t s = 0; s < 100; s++) {
        struct sim sim;
        if (!sim_open(t, &sim, "sm_90a", text)) return;
        use_schedule(&sim, s);
        const uint64_t p[2] = { sim_buffer(&sim, in, sizeof in), sim_buffer(&sim, NULL, sizeof got) };
        if (!run_cluster(&sim, 1, 64, 0, p, 2)) FAIL(t, "%s", sim.report.text);
        sim_read(&sim, p[1], got, sizeof got);
        CHECK(t, memcmp(got, want, sizeof got) == 0);
        sim_close(&sim);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(copies_there_and_back),
        TEST(multicast_reaches_each_cta_of_the_mask),
        TEST(shared_memory_goes_to_another_cta),
        TEST(every_reduction_is_the_host_s),
        TEST(forms_that_do_not_exist_are_refused),
        TEST(a_mask_chooses_bytes),
        TEST(misuse_is_reported),
        TEST(a_ring_gives_the_same_under_every_schedule),
    };
    return TEST_MAIN(argc, argv, cases);
}
