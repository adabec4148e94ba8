/* ldmatrix, stmatrix and movmatrix (PTX ISA 9.7.14.5.15-17) against the manual's figures, and what they report. */
#include "tests/support/harness.h"

/* Rows of matrix n: lane 8n+i points at shared memory, in an order that is not that of the rows, with a gap between
 * rows. */
enum { PITCH = 48 };
static uint32_t place(uint32_t row) { return (row * 5 % 32) * PITCH; }

/* The 16-bit number that lane l holds in half h of matrix n's register. */
static void fragment(bool transposed, uint32_t l, uint32_t h, uint32_t *row, uint32_t *col)
{
    *row = transposed ? l % 4 * 2 + h : l / 4;
    *col = transposed ? l / 4 : l % 4 * 2 + h;
}

/* A CTA of one warp: fills shared memory with 16-bit numbers (its own index), row addresses in %r10. */
#define FILL \
    ".shared .align 16 .b8 s[1536];\n" \
    "mov.u32 %r1, %laneid; mov.u32 %r2, s; mov.u32 %r3, 0;\n" \
    "FILL: shl.b32 %r4, %r3, 5; add.u32 %r4, %r4, %r1; shl.b32 %r5, %r4, 1; add.u32 %r5, %r5, %r2; cvt.u16.u32 %rs1, " \
    "%r4;\n" \
    "st.shared.u16 [%r5], %rs1; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 24; @%p1 bra FILL; bar.warp.sync " \
    "0xffffffff;\n" \
    "mul.lo.u32 %r6, %r1, 5; and.b32 %r6, %r6, 31; mul.lo.u32 %r6, %r6, 48; add.u32 %r10, %r2, %r6;\n"

static void ldmatrix_gathers_rows(struct test *t)
{
    static const char *const vectors[] = { "{%r20}", "{%r20, %r21}", "{%r20, %r21, %r22, %r23}" };
    for (int n = 0; n < 12; n++) {
        const uint32_t size = (uint32_t)n / 4, count = 1u << size;
        const bool transposed = n & 1, generic = n >> 1 & 1;
        char text[2048];
        snprintf(text, sizeof text,
                 "%scvt.u64.u32 %%rd1, %%r10; cvta.shared.u64 %%rd2, %%rd1;\n"
                 "ldmatrix.sync.aligned.m8n8.x%u%s%s.b16 %s, [%s+0];\n"
                 "mul.wide.u32 %%rd3, %%r1, 16; add.u64 %%rd3, %%rd3, %%rd60; st.global.v4.b32 [%%rd3], {%%r20, %%r21, "
                 "%%r22, %%r23};",
                 FILL, count, transposed ? ".trans" : "", generic ? "" : ".shared", vectors[size],
                 generic ? "%rd2" : "%r10");
        struct sim sim;
        if (!sim_open(t, &sim, "sm_90a", text)) continue;
        uint32_t got[32][4];
        const uint64_t out = sim_buffer(&sim, NULL, sizeof got);
        sim_launch(t, &sim, "k", 1, 32, &out, 1);
        sim_read(&sim, out, got, sizeof got);
        for (uint32_t l = 0; l < 32; l++)
            for (uint32_t m = 0; m < count; m++)
                for (uint32_t h = 0; h < 2; h++) {
                    uint32_t row, col;
                    fragment(transposed, l, h, &row, &col);
                    const uint32_t want = place(8 * m + row) / 2 + col;
                    if ((got[l][m] >> 16 * h & 0xffff) != want)
                        FAIL(t, "x%u%s: lane %u, matrix %u, half %u is %u, not %u", count, transposed ? ".trans" : "",
                             l, m, h, got[l][m] >> 16 * h & 0xffff, want);
                }
        sim_close(&sim);
    }
}

static void stmatrix_scatters_rows(struct test *t)
{
    static const char *const vectors[] = { "{%r20}", "{%r20, %r21}", "{%r20, %r21, %r22, %r23}" };
    for (int n = 0; n < 6; n++) {
        const uint32_t size = (uint32_t)n / 2, count = 1u << size;
        const bool transposed = n & 1;
        char text[2560];
        snprintf(
            text, sizeof text,
            "%sshl.b32 %%r11, %%r1, 1; or.b32 %%r12, %%r11, 1; shl.b32 %%r12, %%r12, 16; or.b32 %%r11, %%r11, %%r12;\n"
            "or.b32 %%r20, %%r11, 0x40004000; or.b32 %%r21, %%r11, 0x50005000; or.b32 %%r22, %%r11, 0x60006000;\n"
            "or.b32 %%r23, %%r11, 0x70007000; stmatrix.sync.aligned.m8n8.x%u%s.shared::cta.b16 [%%r10], %s;\n"
            "bar.warp.sync 0xffffffff; mul.lo.u32 %%r13, %%r1, 48; add.u32 %%r13, %%r13, %%r2; "
            "mul.wide.u32 %%rd3, %%r1, 48;\n"
            "add.u64 %%rd3, %%rd3, %%rd60; ld.shared.v4.b32 {%%r30, %%r31, %%r32, %%r33}, [%%r13];\n"
            "st.global.v4.b32 [%%rd3], {%%r30, %%r31, %%r32, %%r33}; ld.shared.v4.b32 {%%r30, %%r31, %%r32, %%r33}, "
            "[%%r13+16];\n"
            "st.global.v4.b32 [%%rd3+16], {%%r30, %%r31, %%r32, %%r33};",
            FILL, count, transposed ? ".trans" : "", vectors[size]);
        struct sim sim;
        if (!sim_open(t, &sim, "sm_90a", text)) continue;
        static uint16_t got[32][24];
        uint16_t want[32][24];
        memset(got, 0, sizeof got);
        const uint64_t out = sim_buffer(&sim, got, sizeof got);
        sim_launch(t, &sim, "k", 1, 32, &out, 1);
        sim_read(&sim, out, got, sizeof got);
        for (uint32_t i = 0; i < 32; i++)
            for (uint32_t j = 0; j < 24; j++) want[i][j] = (uint16_t)(j < 16 ? i * 24 + j : 0);
        for (uint32_t m = 0; m < count; m++)
            for (uint32_t l = 0; l < 32; l++)
                for (uint32_t h = 0; h < 2; h++) {
                    uint32_t row, col;
                    fragment(transposed, l, h, &row, &col);
                    want[place(8 * m + row) / PITCH][col] = (uint16_t)(0x4000 + 0x1000 * m + 2 * l + h);
                }
        CHECK(t, memcmp(got, want, sizeof got) == 0);
        sim_close(&sim);
    }
}

static void movmatrix_transposes(struct test *t)
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a",
                  "mov.u32 %r1, %laneid; shl.b32 %r2, %r1, 1; add.u32 %r3, %r2, 1; shl.b32 %r3, %r3, 16; "
                  "or.b32 %r2, %r2, %r3;\n"
                  "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r2; mul.wide.u32 %rd1, %r1, 4; "
                  "add.u64 %rd1, %rd1, %rd60;\n"
                  "st.global.b32 [%rd1], %r4;"))
        return;
    uint32_t got[32];
    const uint64_t out = sim_buffer(&sim, NULL, sizeof got);
    sim_launch(t, &sim, "k", 1, 32, &out, 1);
    sim_read(&sim, out, got, sizeof got);
    for (uint32_t l = 0; l < 32; l++)
        for (uint32_t h = 0; h < 2; h++) CHECK(t, (got[l] >> 16 * h & 0xffff) == (l % 4 * 2 + h) * 8 + l / 4);
    sim_close(&sim);
}

/* ---- matrices of bytes: sm_100a and later ---- */

/* Byte `at` of the filled memory, and element e of the row of lane `row` there. */
static uint32_t filled(uint32_t at) { return (at / 2) >> 8 * (at % 2) & 255; }
static uint32_t small_element(uint32_t row, uint32_t e, uint32_t bits)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < bits; i++)
        value |= (filled(place(row) + (e * bits + i) / 8) >> (e * bits + i) % 8 & 1) << i;
    return value;
}

static const char *const vectors_of[] = { "", "{%r20}", "{%r20, %r21}", "", "{%r20, %r21, %r22, %r23}" };

static void check_bytes(struct test *t, const char *device, const char *words, bool tall, uint32_t bits, uint32_t count)
{
    char text[2048];
    struct sim sim;
    snprintf(text, sizeof text,
             "%sldmatrix.sync.aligned.%s %s, [%%r10];\n"
             "mul.wide.u32 %%rd3, %%r1, 16; add.u64 %%rd3, %%rd3, %%rd60; st.global.v4.b32 [%%rd3], {%%r20, %%r21, "
             "%%r22, %%r23};",
             FILL, words, vectors_of[count]);
    if (!sim_open(t, &sim, device, text)) return;
    uint8_t got[32][4][4];
    const uint64_t out = sim_buffer(&sim, NULL, sizeof got);
    sim_launch(t, &sim, "k", 1, 32, &out, 1);
    sim_read(&sim, out, got, sizeof got);
    for (uint32_t l = 0; l < 32; l++)
        for (uint32_t r = 0; r < count; r++)
            for (uint32_t b = 0; b < 4; b++) {
                const uint32_t want = tall ? small_element(16 * (r / 2) + 4 * (l % 4) + b, l / 4 + 8 * (r % 2), bits)
                                           : small_element(8 * r + l / 4, 4 * (l % 4) + b, bits);
                if (got[l][r][b] != want)
                    FAIL(t, "%s: lane %u, register %u, byte %u is %u, not %u", words, l, r, b, got[l][r][b], want);
            }
    sim_close(&sim);
}

static void ldmatrix_expands_small_elements(struct test *t)
{
    static const char *const formats[] = { "b8x16.b4x16_p64", "b8x16.b6x16_p32", "b8" };
    static const uint32_t bits[] = { 4, 6, 8 };
    for (int n = 0; n < 12; n++) {
        const uint32_t count = 1u << n % 3, f = (uint32_t)n / 3 % 2;
        char words[64];
        snprintf(words, sizeof words, "m8n16.x%u%s.%s", count, n % 2 ? ".shared" : ".shared::cta", formats[f]);
        check_bytes(t, n < 6 ? "sm_100a" : "sm_120a", words, false, bits[f], count);
    }
    for (int n = 0; n < 24; n++) {
        const uint32_t count = 1u << n % 2, f = (uint32_t)n / 2 % 3;
        char words[64];
        if (n < 6) snprintf(words, sizeof words, "m16n16.x%u.trans.shared.%s", count, formats[f]);
        else snprintf(words, sizeof words, "m16n16.trans.x%u.shared.%s", count, formats[f]);
        check_bytes(t, n < 12 ? "sm_103a" : "sm_121a", words, true, bits[f], 2 * count);
    }
}

static void stmatrix_stores_columns_of_bytes(struct test *t)
{
    for (uint32_t count = 1; count <= 4; count *= 2) {
        char text[2560];
        snprintf(text, sizeof text,
                 "%sshl.b32 %%r11, %%r1, 2; mul.lo.u32 %%r11, %%r11, 0x01010101; add.u32 %%r20, %%r11, 0x03020100;\n"
                 "xor.b32 %%r21, %%r20, 0x80808080; xor.b32 %%r22, %%r20, 0x55555555; not.b32 %%r23, %%r20;\n"
                 "stmatrix.sync.aligned.m16n8.x%u.trans.shared.b8 [%%r10], %s;\n"
                 "bar.warp.sync 0xffffffff; mul.lo.u32 %%r13, %%r1, 48; add.u32 %%r13, %%r13, %%r2; "
                 "mul.wide.u32 %%rd3, %%r1, 16;\n"
                 "add.u64 %%rd3, %%rd3, %%rd60; ld.shared.v4.b32 {%%r30, %%r31, %%r32, %%r33}, [%%r13];\n"
                 "st.global.v4.b32 [%%rd3], {%%r30, %%r31, %%r32, %%r33};",
                 FILL, count, vectors_of[count]);
        struct sim sim;
        if (!sim_open(t, &sim, count == 2 ? "sm_100a" : "sm_120a", text)) continue;
        uint8_t got[32][16], want[32][16];
        const uint64_t out = sim_buffer(&sim, NULL, sizeof got);
        sim_launch(t, &sim, "k", 1, 32, &out, 1);
        sim_read(&sim, out, got, sizeof got);
        for (uint32_t i = 0; i < 32; i++)
            for (uint32_t j = 0; j < 16; j++) want[i][j] = (uint8_t)filled(i * 48 + j);
        static const uint8_t flip[] = { 0, 0x80, 0x55, 0xff };
        for (uint32_t m = 0; m < count; m++)
            for (uint32_t l = 0; l < 32; l++)
                for (uint32_t b = 0; b < 4; b++) /* row l / 4 (+ 8) and column 2 (l % 4) (+ 1) of 16 x 8 */
                    want[place(8 * m + 2 * (l % 4) + (b & 1)) / 48][l / 4 + (b < 2 ? 0 : 8)] =
                        (uint8_t)((4 * l + b) ^ flip[m]);
        CHECK(t, memcmp(got, want, sizeof got) == 0);
        sim_close(&sim);
    }
}

/* Padding may be unwritten; elements may not. */
static void padding_is_not_read(struct test *t)
{
#define HALF_FILLED(bytes) \
    ".shared .align 16 .b8 s[512]; mov.u32 %r1, %laneid; shl.b32 %r1, %r1, 4; mov.u32 %r2, s; add.u32 %r10, %r1, " \
    "%r2;\n" \
    "st.shared.b32 [%r10], 0; st.shared.b32 [%r10+4], 0;" bytes " bar.warp.sync 0xffffffff;\n"
    static const struct {
        const char *text;
        enum report_code code;
        const char *sentence;
    } planted[] = {
        { HALF_FILLED("") "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 {%r20,%r21,%r22,%r23}, [%r10];",
          REPORT_NONE, "" },
        { HALF_FILLED("") "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b4x16_p64 {%r20,%r21,%r22,%r23}, [%r10];",
          REPORT_NONE, "" },
        { HALF_FILLED("") "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b6x16_p32 {%r20,%r21,%r22,%r23}, [%r10];",
          REPORT_UNINITIALISED, "12 bytes" },
        { HALF_FILLED("st.shared.b32 [%r10+8], 0;") "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b6x16_p32 "
                                                    "{%r20,%r21,%r22,%r23}, [%r10];",
          REPORT_NONE, "" },
        { HALF_FILLED("st.shared.b32 [%r10+8], 0;") "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 "
                                                    "{%r20,%r21,%r22,%r23}, [%r10];",
          REPORT_UNINITIALISED, "16 bytes" },
        { FILL "add.u32 %r10, %r10, 8; ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 {%r20,%r21,%r22,%r23}, "
               "[%r10];",
          REPORT_MISALIGNED, "no multiple of 16" },
        { FILL "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r20,%r21}, [%r10+1536];", REPORT_OUT_OF_BOUNDS,
          "reads 16 bytes" },
        { FILL "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r10+1536], {%r20};", REPORT_OUT_OF_BOUNDS,
          "writes 16 bytes" },
    };
    for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
        struct sim sim;
        if (!sim_open(t, &sim, "sm_120a", planted[i].text)) continue;
        const bool ran = sim_run(&sim, "k", 1, 32, 0, NULL, 0);
        if (ran != (planted[i].code == REPORT_NONE))
            FAIL(t, "kernel %zu: %s", i, ran ? "no report" : sim.report.sentence);
        else if (!ran)
            CHECK(t, sim.report.code == planted[i].code && strstr(sim.report.sentence, planted[i].sentence) != NULL);
        sim_close(&sim);
    }
}

/* As ptxas 13.0 refuses them. */
static void byte_forms_that_do_not_exist_are_refused(struct test *t)
{
    static const struct {
        const char *device, *text;
    } refused[] = {
        { "sm_90a", "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r1}, [%r0];" },
        { "sm_90a", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1,%r2}, [%r0];" },
        { "sm_90a", "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r0], {%r1};" },
        { "sm_120a", "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64 {%r1}, [%r0];" },
        { "sm_120a", "ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r1}, [%r0];" },
        { "sm_120a", "ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r1}, [%r0];" },
        { "sm_120a", "ldmatrix.sync.aligned.m8n16.x1.shared.b4x16_p64 {%r1}, [%r0];" },
        { "sm_120a", "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r1,%r2}, [%r0];" },
        { "sm_120a", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1}, [%r0];" },
        { "sm_120a", "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r1,%r2,%r3,%r4}, [%r0];" },
        { "sm_120a", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b16 {%r1,%r2}, [%r0];" },
        { "sm_120a", "stmatrix.sync.aligned.m16n8.x4.shared.b8 [%r0], {%r1,%r2,%r3,%r4};" },
        { "sm_120a", "stmatrix.sync.aligned.m8n16.x4.trans.shared.b8 [%r0], {%r1,%r2,%r3,%r4};" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct sim sim;
        sim_refused(t, &sim, refused[i].device, refused[i].text);
    }
}

/* ---- reports: a wrong kernel, and its correct twin ---- */

struct planted {
    const char *text;
    enum report_code code;
    const char *sentence;
    uint32_t threads;
};

static void mistakes_are_reported(struct test *t)
{
    static const struct planted planted[] = {
        { FILL "add.u32 %r10, %r10, 8; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20,%r21,%r22,%r23}, [%r10];",
          REPORT_MISALIGNED, "reads 16 bytes", 32 },
        { FILL "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20,%r21,%r22,%r23}, [%r10];", REPORT_NONE, "", 32 },
        { FILL "ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16 {%r20,%r21,%r22,%r23}, [%r10]; "
               "stmatrix.sync.aligned.x1.m8n8.shared.b16 [%r10], {%r20};",
          REPORT_NONE, "", 32 },
        { FILL "add.u32 %r10, %r10, 64; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20,%r21,%r22,%r23}, [%r10];",
          REPORT_OUT_OF_BOUNDS, "reads 16 bytes", 32 },
        { FILL "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r10+1536], {%r20,%r21,%r22,%r23};", REPORT_OUT_OF_BOUNDS,
          "writes 16 bytes", 32 },
        { FILL "@%p1 exit; setp.eq.u32 %p2, %r1, 31; @%p2 exit; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, "
               "[%r10];",
          REPORT_DIVERGENCE, "0x7fffffff", 32 },
        { "ldmatrix.sync.aligned.m8n8.x1.b16 {%r20}, [%rd60];", REPORT_OUT_OF_BOUNDS, "not in the shared memory", 32 },
        { ".shared .align 16 .b8 s[512]; mov.u32 %r1, %laneid; shl.b32 %r1, %r1, 4; mov.u32 %r2, s; "
          "add.u32 %r1, %r1, %r2;\n"
          "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r20,%r21}, [%r1];",
          REPORT_UNINITIALISED, "nothing has written", 32 },
        /* Two warps: one stores the matrices that the other loads. */
        { ".shared .align 16 .b8 s[512]; mov.u32 %r1, %laneid; shl.b32 %r1, %r1, 4; mov.u32 %r2, s; "
          "add.u32 %r1, %r1, %r2;\n"
          "mov.u32 %r3, %tid.x; setp.lt.u32 %p1, %r3, 32; @%p1 bra STORE; bra.uni LOAD;\n"
          "STORE: stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r3,%r3,%r3,%r3}; bar.sync 0; bra.uni END;\n"
          "LOAD: bar.sync 0; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20,%r21,%r22,%r23}, [%r1];\nEND:\n",
          REPORT_NONE, "", 64 },
        { ".shared .align 16 .b8 s[512]; mov.u32 %r1, %laneid; shl.b32 %r1, %r1, 4; mov.u32 %r2, s; "
          "add.u32 %r1, %r1, %r2;\n"
          "mov.u32 %r3, %tid.x; setp.lt.u32 %p1, %r3, 32; @%p1 bra STORE; bra.uni LOAD;\n"
          "STORE: bar.sync 0; stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r3,%r3,%r3,%r3}; bra.uni END;\n"
          "LOAD: st.shared.b32 [%r1], %r3; bar.sync 0; ld.shared.b32 %r20, [%r1];\nEND:\n",
          REPORT_RACE, "", 64 },
    };
    for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
        struct sim sim;
        if (!sim_open(t, &sim, "sm_90a", planted[i].text)) continue;
        uint64_t parameter = sim_buffer(&sim, NULL, 64);
        const bool ran = sim_run(&sim, "k", 1, planted[i].threads, 0, &parameter, 1);
        if (ran != (planted[i].code == REPORT_NONE))
            FAIL(t, "kernel %zu: %s", i, ran ? "no report" : sim.report.sentence);
        else if (!ran
                 && (sim.report.code != planted[i].code || strstr(sim.report.sentence, planted[i].sentence) == NULL))
            FAIL(t, "kernel %zu: %d, %s", i, (int)sim.report.code, sim.report.sentence);
        sim_close(&sim);
    }
}

static void forms_that_do_not_exist_are_refused(struct test *t)
{
    static const char *const forms[] = {
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [%r2];",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r2];",
        "ldmatrix.sync.aligned.m8n8.x1.shared::cluster.b16 {%r1}, [%r2];",
        "ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r1}, [%rd2];",
        "ldmatrix.sync.m8n8.x1.shared.b16 {%r1}, [%r2];",
        "movmatrix.sync.aligned.m8n8.b16 %r1, %r2;",
        "stmatrix.sync.aligned.m8n8.x4.shared.b8 [%r1], {%r1,%r2,%r3,%r4};",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct sim sim;
        sim_refused(t, &sim, "sm_90a", forms[i]);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(ldmatrix_gathers_rows),
        TEST(stmatrix_scatters_rows),
        TEST(movmatrix_transposes),
        TEST(mistakes_are_reported),
        TEST(ldmatrix_expands_small_elements),
        TEST(stmatrix_stores_columns_of_bytes),
        TEST(padding_is_not_read),
        TEST(byte_forms_that_do_not_exist_are_refused),
        TEST(forms_that_do_not_exist_are_refused),
    };
    return TEST_MAIN(argc, argv, cases);
}
