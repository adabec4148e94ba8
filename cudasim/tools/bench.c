/* cudasim bench: how many simple thread-instructions a second this machine simulates, checks on. */
#include "tools/command.h"

#include "machine/core/machine.h"
#include "machine/core/global_memory.h"
#include "machine/run/launch.h"
#include "machine/run/schedules.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bench_settings {
    uint64_t threads, loops;
};
static const struct bench_settings defaults = { .threads = 1, .loops = 2000 };

static const struct option options[] = { { "--threads", "N", "host threads; 1 unless given", OPTION_NUMBER,
                                           .offset = offsetof(struct bench_settings, threads), .low = 1, .high = 64 },
                                         { "--loops", "N", "rounds of each loop; 2000 unless given", OPTION_NUMBER,
                                           .offset = offsetof(struct bench_settings, loops), .low = 1,
                                           .high = 1000000 },
                                         { .name = NULL } };

/* The loop of each kernel: %r1 counts down, %r2 is the thread, %r3 its place in shared memory, %rd1 in global
 * memory. */
struct loop {
    const char *name, *body;
    uint32_t instructions;
}; /* executed by a thread in a round */
static const struct loop loops[] = {
    { "integer", "add.s32 %r4, %r4, %r2; xor.b32 %r5, %r4, %r1; shl.b32 %r6, %r5, 3; mad.lo.s32 %r4, %r6, %r2, %r5;",
      4 + 3 },
    { "float", "fma.rn.f32 %f1, %f1, %f2, %f3; add.f32 %f3, %f1, %f2; mul.f32 %f2, %f3, %f1; sub.f32 %f1, %f2, %f3;",
      4 + 3 },
    { "shared", "ld.shared.u32 %r4, [%r3]; add.s32 %r4, %r4, %r2; st.shared.u32 [%r3], %r4;", 3 + 3 },
    { "global", "ld.global.u32 %r4, [%rd1]; add.s32 %r4, %r4, %r2; st.global.u32 [%rd1], %r4;", 3 + 3 },
    /* half of the lanes take the branch: three instructions and a jump, or two */
    { "divergent",
      "@%p2 bra ODD; add.s32 %r4, %r4, %r2; xor.b32 %r5, %r4, %r1; bra MEET; ODD: add.s32 %r4, %r4, 1; "
      "xor.b32 %r5, %r5, %r4; MEET:",
      0 },
    { "barrier", "bar.sync 0;", 1 + 3 },
};

static const char before[] =
    ".version 9.0\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .u64 out, .param .u32 rounds)\n{\n"
    ".reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .pred %p<4>; .shared .align 4 .b32 s[256];\n"
    "ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [rounds]; mov.u32 %r2, %tid.x; mov.u32 %r9, %ctaid.x; "
    "shl.b32 %r8, %r2, 2;\n"
    "mov.u32 %r3, s; add.u32 %r3, %r3, %r8; st.shared.u32 [%r3], %r2; mad.lo.u32 %r10, %r9, 256, %r2; "
    "mul.wide.u32 %rd2, %r10, 4;\n"
    "add.u64 %rd1, %rd1, %rd2; and.b32 %r7, %r2, 1; setp.eq.u32 %p2, %r7, 1; mov.u32 %r4, 0; mov.u32 %r5, 0; "
    "mov.f32 %f1, 0f3F800000;\n"
    "mov.f32 %f2, 0f3F000000; mov.f32 %f3, 0f3E800000; bar.sync 0;\nLOOP:\n";
static const char after[] =
    "\nadd.s32 %r1, %r1, -1; setp.ne.s32 %p1, %r1, 0; @%p1 bra LOOP;\nst.global.u32 [%rd1], %r4;\nret;\n}\n";

enum { CTAS = 4, CTA_THREADS = 256 };

/* Processor time of all threads: other programs do not count. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of processor time of one launch; negative: it failed. */
static double measure(const struct module *module, const struct bench_settings *s)
{
    struct machine machine;
    struct image image;
    static struct report report;
    struct machine_options o = machine_default_options();
    o.threads = (uint32_t)s->threads;
    machine_open(&machine, device_named("sm_90a"), &o);
    uint8_t parameters[16] = { 0 };
    const uint64_t out = global_allocate(&machine.memory, 4 * CTAS * CTA_THREADS, 0, "out");
    const uint32_t rounds = (uint32_t)s->loops;
    memcpy(parameters, &out, 8);
    memcpy(parameters + 8, &rounds, 4);
    double seconds = -1;
    if (image_open(&image, &machine, module)) {
        const struct launch launch = { .image = &image,
                                       .function = ptx_function(module, "k"),
                                       .grid = { CTAS, 1, 1 },
                                       .block = { CTA_THREADS, 1, 1 },
                                       .cluster = { 1, 1, 1 },
                                       .parameters = parameters };
        const double begin = now();
        if (machine_run(&machine, &launch, &report)) seconds = now() - begin;
        else fputs(report.text, stderr);
        image_close(&image, &machine);
    }
    machine_close(&machine);
    return seconds;
}

static int bench(const struct loop *loop, const struct bench_settings *s)
{
    char text[4096];
    struct ptx_error error;
    const int length = snprintf(text, sizeof text, "%s%s%s", before, loop->body, after);
    struct module *module = ptx_read(loop->name, text, (size_t)length, NULL, &error);
    if (module == NULL) return bad_input("%s", error.text);
    double best = -1;
    for (int i = 0; i < 3; i++) {
        const double seconds = measure(module, s);
        if (seconds > 0 && (best < 0 || seconds < best)) best = seconds;
    }
    ptx_release(module);
    if (best < 0) return EXIT_REPORT;
    /* the divergent loop: 1 + 3 + 3 and 1 + 2 + 3 instructions, each by half of the threads */
    const double each = loop->instructions != 0 ? loop->instructions : 6.5;
    const double count = each * (double)s->loops * CTAS * CTA_THREADS;
    printf("%-10s %8.1f million thread-instructions a second of one core\n", loop->name, count / best / 1e6);
    return EXIT_DONE;
}

static int run(const void *settings)
{
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        const int status = bench(&loops[i], settings);
        if (status != EXIT_DONE) return status;
    }
    return EXIT_DONE;
}

const struct verb verb_bench = {
    .name = "bench",
    .summary = "measures simple thread-instructions a second on this machine",
    .usage = "[options]",
    .about = "Small loops in 4 CTAs of 256 threads, all checks on; the best of three runs each, by processor time.",
    .options = options,
    .defaults = &defaults,
    .settings_bytes = sizeof defaults,
    .run = run
};
