/* tcgen05.cp and shift: which row goes to which lane, what packed elements become, every shape through every kind of
 * descriptor against a reference of its own, and what is reported of misuse. */
#include <stdarg.h>
#include <stdlib.h>

#include "machine/tensor/tcgen05_copy.h"
#include "tests/support/schedules.h"

/* ---- pure ---- */

/* The row whose copy lane `lane` holds; -1: none. */
static int row_of_lane(enum copy_shape shape, uint32_t lane)
{
    const int warp = (int)lane / 32, inside = (int)lane % 32;
    switch (shape) {
    case COPY_128X256B:
    case COPY_128X128B: return (int)lane;
    case COPY_64X128B_02_13: return warp == 0 || warp == 2 ? inside : 32 + inside;
    case COPY_64X128B_01_23: return warp == 0 || warp == 1 ? inside : 32 + inside;
    case COPY_32X128B: return inside;
    default: return inside == 0 ? warp : -1;
    }
}

static void rows_go_to_their_lanes(struct test *t)
{
    for (int shape = 0; shape < COPY_SHAPES; shape++) {
        uint32_t seen = 0;
        for (uint32_t row = 0; row < copy_shapes[shape].rows; row++) {
            uint32_t lanes[COPY_MOST_LANES];
            const uint32_t count = copy_lanes((enum copy_shape)shape, row, lanes);
            for (uint32_t i = 0; i < count; i++) CHECK(t, row_of_lane((enum copy_shape)shape, lanes[i]) == (int)row);
            seen += count;
        }
        for (uint32_t lane = 0; lane < 128; lane++) seen -= row_of_lane((enum copy_shape)shape, lane) >= 0;
        CHECK(t, seen == 0);
    }
}

static uint32_t bit(const uint8_t *bytes, uint32_t at) { return bytes[at / 8] >> at % 8 & 1; }

/* Bits in their order, the first element's first; the container has 4 of them from bit 2 on, 6 from bit 0 on. */
static void packed_elements_get_a_byte_each(struct test *t)
{
    for (int i = 0; i < 1000; i++) {
        uint8_t chunk[16], got[16];
        for (int j = 0; j < 16; j++) chunk[j] = (uint8_t)rnd(t);
        for (int format = 0; format < COPY_FORMATS; format++) {
            const uint32_t bits = format == COPY_B4X16_P64   ? 4
                                  : format == COPY_B6X16_P32 ? 6
                                                             : 8,
                           low = bits == 4 ? 2 : 0;
            copy_expand((enum copy_format)format, chunk, got);
            CHECK(t, copy_chunk_bytes((enum copy_format)format) == 2 * bits);
            for (uint32_t e = 0; e < 16; e++) {
                uint32_t want = 0;
                for (uint32_t b = 0; b < bits; b++) want |= bit(chunk, e * bits + b) << (low + b);
                if (got[e] != want) FAIL(t, "format %d, element %u: %02x, not %02x", format, e, got[e], want);
            }
        }
    }
}

/* ---- kernels ---- */

enum { SHARED_BYTES = 40960, COLUMNS = 8, OUT_BYTES = 128 * COLUMNS * 4 };

/* 128 threads a CTA: %r1 the thread, %r2 its warp, %r3 tensor memory, %r5 the warp's lanes of it, %r6 shared memory,
 * %r7 the mbarrier.  Of 32 columns the first 16 are filled with the lane's number; the source is filled from p2, of
 * which a pair's second CTA takes what begins 24 KiB on. */
#define REGISTERS \
    ".shared .align 1024 .b8 s[40960]; .shared .align 4 .b32 t; .shared .align 8 .b64 bar; mov.u32 %r1, %tid.x; " \
    "shr.u32 %r2, %r1, 5; mov.u32 %r6, s; mov.u32 %r7, bar; setp.eq.u32 %p1, %r2, 0; setp.ne.u32 %p2, %r1, 0; " \
    "mov.u32 %r8, " \
    "%cluster_ctarank;\n"
#define ALLOCATE(group) \
    "@!%p1 bra A; tcgen05.alloc.cta_group::" group ".sync.aligned.shared::cta.b32 [t], 32; " \
    "tcgen05.relinquish_alloc_permit.cta_group::" group ".sync.aligned; A: bar.sync 0; ld.shared.u32 %r3, [t]; " \
    "shl.b32 %r5, %r2, 21; add.u32 %r5, %r5, %r3; @%p2 bra I; mbarrier.init.shared.b64 [%r7], 1; " \
    "fence.mbarrier_init.release.cluster; I:\n"
#define FILL_COLUMNS \
    "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1};\n" \
    "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5+8], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1};\n"
#define WAIT_ST "tcgen05.wait::st.sync.aligned;\n"
#define FILL_SOURCE \
    "mul.wide.u32 %rd5, %r8, 24576; add.u64 %rd5, %rd5, %rd62; mul.wide.u32 %rd6, %r1, 4; add.u64 %rd5, %rd5, %rd6; " \
    "shl.b32 %r10, %r1, 2; add.u32 %r10, %r10, %r6; add.u32 %r11, %r6, 40960;\n" \
    "FS: ld.global.u32 %r12, [%rd5]; st.shared.u32 [%r10], %r12; add.u64 %rd5, %rd5, 512; add.u32 %r10, %r10, 512; " \
    "setp.lt.u32 %p3, %r10, %r11; @%p3 bra FS;\n"
#define PROXY "fence.proxy.async;\n"
#define READY \
    "tcgen05.fence::before_thread_sync; barrier.cluster.arrive; barrier.cluster.wait; " \
    "tcgen05.fence::after_thread_sync;\n"
/* By one thread. */
#define ISSUE(text) "@%p2 bra ISSUED;\n" text "ISSUED:\n"
#define COMMIT      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r7];\n"
#define COMMIT_PAIR \
    "mov.u16 %rs1, 3; tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 " \
    "[%r7], %rs1;\n"
#define WAIT  "W: mbarrier.try_wait.parity.shared.b64 %p4, [%r7], 0; @!%p4 bra W;\n"
#define AFTER "tcgen05.fence::after_thread_sync;\n"
#define LOAD \
    "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}, [%r5];\n" \
    "tcgen05.wait::ld.sync.aligned;\n"
#define KEEP \
    "mul.wide.u32 %rd7, %r8, 4096; add.u64 %rd7, %rd7, %rd61; mul.wide.u32 %rd6, %r1, 32; add.u64 %rd7, %rd7, %rd6; " \
    "st.global.v4.b32 [%rd7], {%r20, %r21, %r22, %r23}; st.global.v4.b32 [%rd7+16], {%r24, %r25, %r26, %r27};\n"
#define FREE(group) \
    "tcgen05.fence::before_thread_sync; barrier.cluster.arrive; barrier.cluster.wait; " \
    "tcgen05.fence::after_thread_sync;\n" \
    "@%p1 tcgen05.dealloc.cta_group::" group ".sync.aligned.b32 %r3, 32;\n"

/* ---- the reference ---- */

/* A descriptor's fields; mode: 0, 2, 4, 6 as in its bits 63..61. */
struct source {
    uint32_t start, leading, stride, base_offset, mode;
};

static uint64_t descriptor_of(const struct source *s)
{
    return (uint64_t)(s->start >> 4) | (uint64_t)(s->leading >> 4) << 16 | (uint64_t)(s->stride >> 4) << 32
           | UINT64_C(1) << 46 | (uint64_t)s->base_offset << 49 | (uint64_t)s->mode << 61;
}

/* Where byte b of row r lies: bits of the address above those of the row change the place of 16 bytes in it. */
static uint32_t place(const struct source *s, uint32_t r, uint32_t b)
{
    const uint32_t span = s->mode == 2 ? 128 : s->mode == 4 ? 64 : s->mode == 6 ? 32 : 16;
    const uint32_t a = s->start + r % 8 * span + r / 8 * s->stride + (s->mode == 0 ? b % 16 + b / 16 * s->leading : b);
    const uint32_t phase = (a / 128 - s->base_offset) % (span / 16);
    return a ^ phase * 16;
}

static struct source random_source(struct test *t, uint32_t mode, uint32_t rows, uint32_t bytes)
{
    const uint32_t span = mode == 2 ? 128 : mode == 4 ? 64 : mode == 6 ? 32 : 16, groups = (rows + 7) / 8;
    struct source s = { .mode = mode };
    s.stride = 8 * span * (mode == 0 ? 2 : 1) + 16 * (uint32_t)rnd_below(t, 4);
    s.leading = mode == 0 ? 128 + 16 * (uint32_t)rnd_below(t, 3) : 16 * (uint32_t)rnd_below(t, 5);
    if (mode != 0) s.stride = s.stride / (8 * span) * 8 * span; /* else rows would lie on one another */
    const uint32_t needed = groups * s.stride + 256, most = SHARED_BYTES - needed;
    s.start =
        1024
        + (mode == 0 ? 16 * (uint32_t)rnd_below(t, most / 16) : 8 * span * (uint32_t)rnd_below(t, most / (8 * span)));
    if (mode != 0) s.start += (span - bytes) / 16 == 0 ? 0 : 16 * (uint32_t)rnd_below(t, (span - bytes) / 16 + 1);
    if (mode != 0) s.base_offset = s.start >> 7 & (span / 16 - 1);
    return s;
}

struct copied {
    enum copy_shape shape;
    enum copy_format format;
    struct source source;
};

static void reference(const struct copied *c, const uint8_t *shared, uint32_t out[128][COLUMNS])
{
    const uint32_t bits = c->format == COPY_B4X16_P64   ? 4
                          : c->format == COPY_B6X16_P32 ? 6
                                                        : 8,
                   low = bits == 4 ? 2 : 0;
    for (uint32_t lane = 0; lane < 128; lane++)
        for (uint32_t column = 0; column < COLUMNS; column++) {
            const int row = row_of_lane(c->shape, lane);
            out[lane][column] = lane;
            if (row < 0 || column >= copy_shapes[c->shape].chunks * 4) continue;
            uint32_t value = 0;
            for (uint32_t e = 0; e < 4; e++)
                for (uint32_t b = 0; b < bits; b++) {
                    const uint32_t at = (column % 4 * 4 + e) * bits + b;
                    const uint32_t byte = place(&c->source, (uint32_t)row, column / 4 * 16 + at / 8);
                    value |= (uint32_t)(shared[byte - 1024] >> at % 8 & 1) << (8 * e + low + b);
                }
            out[lane][column] = value;
        }
}

static const char *const formats[] = { "", ".b8x16.b4x16_p64", ".b8x16.b6x16_p32" };
/* As the manual writes them, and as other compilers do: before and behind the format. */
static const char *const spellings[COPY_SHAPES][2][2] = {
    { { ".128x256b", "" }, { "", ".128x256b" } },
    { { ".128x128b", "" }, { "", ".128x128b" } },
    { { ".64x128b.warpx2::02_13", "" }, { ".warpx2::02_13.64x128b", "" } },
    { { ".64x128b.warpx2::01_23", "" }, { ".warpx2::01_23.64x128b", "" } },
    { { ".32x128b.warpx4", "" }, { ".warpx4.32x128b", "" } },
    { { ".4x256b", "" }, { "", ".4x256b" } },
};

/* Texts up to NULL, one behind the other. */
static void join(char *text, size_t size, ...)
{
    va_list parts;
    size_t used = 0;
    va_start(parts, size);
    for (const char *part; (part = va_arg(parts, const char *)) != NULL;)
        used += (size_t)snprintf(text + used, size - used, "%s", part);
    va_end(parts);
    if (used >= size) abort();
}

#define LEADER_ONLY "setp.ne.u32 %p5, %r8, 0; @%p5 bra ISSUED;\n"
/* What one thread, of a pair's first CTA, does to tensor memory; then what is in it, to p1. */
static void kernel_text(char *text, size_t size, uint32_t group, const char *instruction)
{
    join(text, size, REGISTERS, group == 1 ? ALLOCATE("1") : ALLOCATE("2"),
         FILL_COLUMNS WAIT_ST FILL_SOURCE PROXY READY, group == 1 ? "" : LEADER_ONLY, "@%p2 bra ISSUED;\n", instruction,
         group == 1 ? COMMIT : COMMIT_PAIR, "ISSUED:\n" WAIT AFTER LOAD KEEP, group == 1 ? FREE("1") : FREE("2"),
         (char *)NULL);
}

static void check_copy(struct test *t, const struct copied *c, uint32_t group, uint64_t schedule)
{
    char text[8192], words[128], instruction[256];
    struct sim sim;
    const char *const *spelling = spellings[c->shape][schedule % 2];
    join(words, sizeof words, spelling[0], formats[c->format], spelling[1], (char *)NULL);
    snprintf(instruction, sizeof instruction, "mov.u64 %%rd1, 0x%llx; tcgen05.cp.cta_group::%u%s [%%r3], %%rd1;\n",
             (unsigned long long)descriptor_of(&c->source), group, words);
    kernel_text(text, sizeof text, group, instruction);
    if (!sim_open(t, &sim, schedule % 3 == 0 ? "sm_103a" : "sm_100a", text)) return;
    use_schedule(&sim, schedule);
    uint8_t *numbers = malloc(65536);
    if (numbers == NULL) abort();
    for (size_t i = 0; i < 65536; i++) numbers[i] = (uint8_t)rnd(t);
    static uint32_t got[2][128][COLUMNS], want[128][COLUMNS];
    const uint64_t p[4] = { 0, sim_buffer(&sim, NULL, sizeof got), sim_buffer(&sim, numbers, 65536) };
    if (!run_cluster(&sim, group, 128, 0, p, 4)) FAIL(t, "%s\n%s", words, sim.report.text);
    sim_read(&sim, p[1], got, sizeof got);
    for (uint32_t cta = 0; cta < group; cta++) {
        reference(c, numbers + 24576 * cta, want);
        for (uint32_t lane = 0; lane < 128; lane++)
            for (uint32_t i = 0; i < COLUMNS; i++)
                if (got[cta][lane][i] != want[lane][i]) {
                    FAIL(t,
                         "%s mode %u start %u leading %u stride %u base %u, CTA %u lane %u column %u: %08x, not %08x",
                         words, c->source.mode, c->source.start, c->source.leading, c->source.stride,
                         c->source.base_offset, cta, lane, i, got[cta][lane][i], want[lane][i]);
                    lane = 128;
                    break;
                }
    }
    free(numbers);
    sim_close(&sim);
}

static void copies_are_the_reference_s(struct test *t)
{
    static const uint32_t modes[] = { 0, 2, 4, 6 };
    uint64_t schedule = 0;
    for (uint32_t group = 1; group <= 2; group++)
        for (int shape = 0; shape < COPY_SHAPES; shape++)
            for (int format = 0; format < COPY_FORMATS; format++)
                for (int mode = 0; mode < 4; mode++) {
                    struct copied c = { .shape = (enum copy_shape)shape, .format = (enum copy_format)format };
                    c.source = random_source(t, modes[mode], copy_shapes[shape].rows, copy_shapes[shape].chunks * 16);
                    check_copy(t, &c, group, schedule++ % 40);
                }
}

/* Row 77, scale 5 of a block of 128 rows x 4 scales in its packed order: lanes 13, 45, 77, 109, column 2, byte 1. */
static void scales_come_to_four_quarters(struct test *t)
{
    const struct copied c = { .shape = COPY_32X128B, .source = { .start = 1024 + 512, .leading = 16, .stride = 128 } };
    static uint8_t shared[SHARED_BYTES];
    static uint32_t out[128][COLUMNS];
    shared[512 + 13 * 16 + 2 * 4 + 1] = 0xa5;
    reference(&c, shared, out);
    for (uint32_t q = 0; q < 4; q++) CHECK(t, out[13 + 32 * q][2] == 0xa500);
    check_copy(t, &c, 1, 1);
    check_copy(t, &c, 2, 2);
}

/* ---- shifts ---- */

static void shifts_move_lanes(struct test *t)
{
    for (uint32_t group = 1; group <= 2; group++)
        for (uint64_t s = 0; s < 20; s++) {
            char text[8192];
            struct sim sim;
            static uint32_t got[2][128][COLUMNS];
            kernel_text(text, sizeof text, group,
                        group == 1 ? "tcgen05.shift.cta_group::1.down [%r3];\n"
                                   : "tcgen05.shift.down.cta_group::2 [%r3];\n");
            if (!sim_open(t, &sim, "sm_100a", text)) return;
            use_schedule(&sim, s);
            const uint64_t p[4] = { 0, sim_buffer(&sim, NULL, sizeof got), sim_buffer(&sim, NULL, 65536) };
            if (!run_cluster(&sim, group, 128, 0, p, 4)) FAIL(t, "%s", sim.report.text);
            sim_read(&sim, p[1], got, sizeof got);
            for (uint32_t cta = 0; cta < group; cta++)
                for (uint32_t lane = 0; lane < 128; lane++)
                    for (uint32_t i = 0; i < COLUMNS; i++)
                        if (got[cta][lane][i] != (lane % 32 == 31 ? lane : lane + 1))
                            FAIL(t, "CTA %u lane %u column %u: %u", cta, lane, i, got[cta][lane][i]);
            sim_close(&sim);
        }
}

/* ---- misuse ---- */

#define ONE_CTA REGISTERS ALLOCATE("1") FILL_COLUMNS WAIT_ST
/* Plain rows of 16 bytes, groups of 8 behind each other, from the first byte of s. */
#define DESCRIBE \
    "shr.u32 %r30, %r6, 4; cvt.u64.u32 %rd1, %r30; mov.u64 %rd2, 0x400800010000; or.b64 %rd1, %rd1, %rd2;\n"
#define CP       "tcgen05.cp.cta_group::1.128x128b [%r3], %rd1;\n"
#define END      WAIT AFTER LOAD FREE("1")
#define SOURCE   ONE_CTA FILL_SOURCE PROXY READY DESCRIBE
#define SHIFT    "tcgen05.shift.cta_group::1.down [%r3];\n"

static const struct misuse misuses[] = {
    { SOURCE ISSUE(CP COMMIT) END, NULL, 0, 1, 128 },
    { ONE_CTA FILL_SOURCE READY DESCRIBE ISSUE(CP COMMIT) END, "no fence.proxy.async lies between",
      REPORT_PROXY + ALWAYS, 1, 128 },
    { ONE_CTA READY DESCRIBE ISSUE(CP COMMIT) END, "nothing has written", REPORT_UNINITIALISED + ALWAYS, 1, 128 },
    /* the source is the copy's until its end */
    { SOURCE ISSUE(CP COMMIT "st.shared.u32 [%r6], 1;\n") END, "overwrites the byte", REPORT_ASYNC + ALWAYS, 1, 128 },
    { SOURCE ISSUE(CP COMMIT) WAIT AFTER "@!%p2 st.shared.u32 [%r6], 1;\n" LOAD FREE("1"), NULL, 0, 1, 128 },
    /* tensor memory, too */
    { SOURCE ISSUE(CP COMMIT) "bar.sync 0;\n" LOAD WAIT FREE("1"), "no tcgen05.commit behind it", REPORT_ASYNC + ALWAYS,
      1, 128 },
    { SOURCE ISSUE(CP COMMIT) WAIT LOAD FREE("1"), "after_thread_sync", REPORT_RACE + ALWAYS, 1, 128 },
    { REGISTERS ALLOCATE("1") FILL_COLUMNS FILL_SOURCE PROXY READY DESCRIBE ISSUE(CP COMMIT) WAIT_ST END, "wait::st",
      REPORT_ASYNC + ALWAYS, 1, 128 },
    { ONE_CTA FILL_SOURCE PROXY "barrier.cluster.arrive; barrier.cluster.wait;\n" DESCRIBE ISSUE(CP COMMIT) END,
      "before_thread_sync", REPORT_RACE + ALWAYS, 1, 128 },
    { SOURCE ISSUE(CP COMMIT) FREE("1") WAIT, "no tcgen05.commit", REPORT_ASYNC + ALWAYS, 1, 128 },
    /* descriptors */
    { SOURCE "xor.b64 %rd1, %rd1, 0x400000000000;\n" ISSUE(CP COMMIT) END, "in bits 48..46", REPORT_ILLEGAL + ALWAYS, 1,
      128 },
    { SOURCE "or.b64 %rd1, %rd1, 0x20000000000000;\n" ISSUE(CP COMMIT) END, "belong to no field",
      REPORT_ILLEGAL + ALWAYS, 1, 128 },
    { SOURCE "or.b64 %rd1, %rd1, 0xe000000000000000;\n" ISSUE(CP COMMIT) END, "swizzle", REPORT_ILLEGAL + ALWAYS, 1,
      128 },
    { ONE_CTA FILL_SOURCE PROXY READY "add.u32 %r6, %r6, 49152;\n" DESCRIBE ISSUE(CP COMMIT) END,
      "reads 16 bytes of row", REPORT_OUT_OF_BOUNDS + ALWAYS, 1, 128 },
    /* addresses */
    { SOURCE ISSUE("add.u32 %r9, %r3, 0x200000; tcgen05.cp.cta_group::1.128x128b [%r9], %rd1;\n"), "has lane 32",
      REPORT_ILLEGAL + ALWAYS, 1, 128 },
    { SOURCE ISSUE("tcgen05.cp.cta_group::1.4x256b [%r3+0x1f0000], %rd1;\n" COMMIT) END, NULL, 0, 1, 128 },
    { SOURCE ISSUE("tcgen05.cp.cta_group::1.4x256b [%r3+0x200000], %rd1;\n" COMMIT) END, "has lane 32",
      REPORT_ILLEGAL + ALWAYS, 1, 128 },
    { SOURCE ISSUE("tcgen05.cp.cta_group::1.128x128b [%r3+28], %rd1;\n" COMMIT) END, NULL, 0, 1, 128 },
    { SOURCE ISSUE("tcgen05.cp.cta_group::1.128x128b [%r3+29], %rd1;\n" COMMIT) END, "not allocated",
      REPORT_OUT_OF_BOUNDS + ALWAYS, 1, 128 },
    /* padding need not be written: each thread fills the first 8 bytes of its row */
    { ONE_CTA "shl.b32 %r9, %r1, 4; add.u32 %r9, %r9, %r6; mov.u64 %rd5, 0; st.shared.u64 [%r9], %rd5;\n" PROXY READY
          DESCRIBE ISSUE("tcgen05.cp.cta_group::1.128x128b.b8x16.b4x16_p64 [%r3], %rd1;\n" COMMIT) END,
      NULL, 0, 1, 128 },
    { ONE_CTA "shl.b32 %r9, %r1, 4; add.u32 %r9, %r9, %r6; mov.u64 %rd5, 0; st.shared.u64 [%r9], %rd5;\n" PROXY READY
          DESCRIBE ISSUE("tcgen05.cp.cta_group::1.128x128b.b8x16.b6x16_p32 [%r3], %rd1;\n" COMMIT) END,
      "nothing has written", REPORT_UNINITIALISED + ALWAYS, 1, 128 },
    /* shifts: in order with a copy of .4x256b behind them, with no other */
    { SOURCE ISSUE(SHIFT "tcgen05.cp.cta_group::1.4x256b [%r3+0x1f0000], %rd1;\n" COMMIT) END, NULL, 0, 1, 128 },
    { SOURCE ISSUE(SHIFT CP COMMIT) END, "no tcgen05.commit behind it", REPORT_ASYNC + ALWAYS, 1, 128 },
    { SOURCE ISSUE(CP SHIFT COMMIT) END, "no tcgen05.commit behind it", REPORT_ASYNC + ALWAYS, 1, 128 },
    { ONE_CTA READY ISSUE("tcgen05.shift.cta_group::1.down [%r3+0x200000];\n"), "no source says which lanes",
      REPORT_ILLEGAL + ALWAYS, 1, 128 },
    { ONE_CTA READY ISSUE("tcgen05.shift.cta_group::1.down [%r3+0x100000];\n"), "a multiple of 32",
      REPORT_ILLEGAL + ALWAYS, 1, 128 },
    { ONE_CTA READY ISSUE(SHIFT COMMIT) "bar.sync 0;\n" LOAD WAIT FREE("1"), "no tcgen05.commit behind it",
      REPORT_ASYNC + ALWAYS, 1, 128 },
};

/* Pairs: what the leader's instruction reads in the peer. */
#define PAIR REGISTERS ALLOCATE("2") FILL_COLUMNS WAIT_ST "setp.ne.u32 %p5, %r8, 0;\n"
#define CP_PAIR \
    READY "@%p5 bra ISSUED;\n" DESCRIBE ISSUE("tcgen05.cp.cta_group::2.128x128b [%r3], %rd1;\n" COMMIT_PAIR) \
        WAIT AFTER LOAD FREE("2")

static const struct misuse pair_misuses[] = {
    { PAIR FILL_SOURCE PROXY CP_PAIR, NULL, 0, 2, 128 },
    { PAIR "@%p5 bra SKIP;\n" FILL_SOURCE "SKIP:\n" PROXY CP_PAIR, "nothing has written", REPORT_UNINITIALISED + ALWAYS,
      2, 128 },
    { PAIR FILL_SOURCE "@%p5 bra SKIP;\n" PROXY "SKIP:\n" CP_PAIR, "no fence.proxy.async lies between",
      REPORT_PROXY + ALWAYS, 2, 128 },
    { PAIR FILL_SOURCE PROXY CP_PAIR, "CTA rank 0 has no peer", REPORT_ILLEGAL + ALWAYS, 1, 128 },
};

static void misuse_is_reported(struct test *t)
{
    check_misuses(t, "sm_100a", "", misuses, sizeof misuses / sizeof *misuses, NULL);
    check_misuses(t, "sm_100a", "", pair_misuses, sizeof pair_misuses / sizeof *pair_misuses, NULL);
}

static void forms_that_do_not_exist_are_refused(struct test *t)
{
    static const struct {
        const char *device, *text;
    } forms[] = {
        { "sm_90a", "tcgen05.cp.cta_group::1.128x256b [%r1], %rd1;" },
        { "sm_120a", "tcgen05.cp.cta_group::1.128x256b [%r1], %rd1;" },
        { "sm_100a", "tcgen05.cp.128x256b [%r1], %rd1;" },
        { "sm_100a", "tcgen05.cp.cta_group::3.128x256b [%r1], %rd1;" },
        { "sm_100a", "tcgen05.cp.cta_group::1.64x128b [%r1], %rd1;" },
        { "sm_100a", "tcgen05.cp.cta_group::1.32x128b [%r1], %rd1;" },
        { "sm_100a", "tcgen05.cp.cta_group::1.32x128b.warpx2::02_13 [%r1], %rd1;" },
        { "sm_100a", "tcgen05.cp.cta_group::1.128x128b.warpx4 [%r1], %rd1;" },
        { "sm_100a", "tcgen05.cp.cta_group::1.128x256b.b4x16_p64 [%r1], %rd1;" },
        { "sm_100a", "tcgen05.cp.cta_group::1.128x256b.b8x16 [%r1], %rd1;" },
        { "sm_100a", "tcgen05.cp.cta_group::1.b8x16.b4x16_p64.128x256b.b8x16.b6x16_p32 [%r1], %rd1;" },
        { "sm_100a", "tcgen05.cp.cta_group::1.128x256b [%rd1], %rd1;" },
        { "sm_100a", "tcgen05.cp.cta_group::1.128x256b [16], %rd1;" },
        { "sm_100a", "tcgen05.shift.cta_group::1 [%r1];" },
        { "sm_100a", "tcgen05.shift.cta_group::1.up [%r1];" },
        { "sm_100f", "tcgen05.shift.cta_group::1.down [%r1];" },
    };
    struct sim sim;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        CHECK(t, sim_refused(t, &sim, forms[i].device, forms[i].text));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(rows_go_to_their_lanes),
        TEST(packed_elements_get_a_byte_each),
        TEST(copies_are_the_reference_s),
        TEST(scales_come_to_four_quarters),
        TEST(shifts_move_lanes),
        TEST(misuse_is_reported),
        TEST(forms_that_do_not_exist_are_refused),
    };
    return TEST_MAIN(argc, argv, cases);
}
