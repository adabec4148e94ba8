/* Addresses and clusters: isspacep, cvta, mapa, getctarank; shared memory of the peer CTAs. */
#include "families.h"
#include "calibrate/forms/text.h"

static const char isspacep[] =
    ".shared .align 16 .b8 s$[256]; .local .align 16 .b8 l$[16]; .reg .b64 %u<12>; .reg .pred %p<8>; .reg .b32 %r<4>;\n"
    "ld.param.u64 %u0, [in]; ld.param.u64 %u1, [out];\n"
    "mov.u64 %u2, s$; cvta.shared.u64 %u2, %u2; mov.u64 %u3, l$; cvta.local.u64 %u3, %u3;\n"
    "mov.u64 %u4, k$; cvta.const.u64 %u4, %u4; cvta.global.u64 %u5, %u0;\n";

static void spaces(struct calibration *c)
{
    static const char *const names[] = { "const", "global", "local", "shared", "shared::cta", "shared::cluster" };
    static const char *const addresses[] = { "%u2", "%u3", "%u4", "%u5" };
    struct text t;
    text_open(&t);
    fputs(isspacep, t.out);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 4; j++)
            fprintf(t.out, "isspacep.%s %%p0, %s; selp.u32 %%r0, 1, 0, %%p0; st.global.u32 [%%u1+%d], %%r0;\n",
                    names[i], addresses[j], (i * 4 + j) * 4);
    calibration_add(c, &(struct calibration_case){ .name = "isspacep", .body = text_close(&t), .block = { 1 },
                                                   .input_bytes = 16,
        .module = ".const .align 16 .b8 k$[16];\n", .output_bytes = 96,
        .form = "isspacep.const isspacep.global isspacep.local isspacep.shared isspacep.shared::cta "
                "isspacep.shared::cluster" });
    free(t.bytes);
}

/* There and back again. */
static void conversions(struct calibration *c)
{
    static const char *const names[] = { "global", "shared", "local", "const" };
    static const char *const from[] = { "%u0", "%u6", "%u7", "%u8" };
    struct text t;
    text_open(&t);
    fputs(isspacep, t.out);
    fputs("mov.u64 %u6, s$; mov.u64 %u7, l$; mov.u64 %u8, k$;\n", t.out);
    for (int i = 0; i < 4; i++)
        fprintf(t.out,
                "add.u64 %%u9, %s, 4; cvta.%s.u64 %%u10, %%u9; cvta.to.%s.u64 %%u11, %%u10; "
                "setp.eq.u64 %%p0, %%u11, %%u9;\n"
                "selp.u32 %%r0, 1, 0, %%p0; st.global.u32 [%%u1+%d], %%r0;\n",
                from[i], names[i], names[i], i * 4);
    calibration_add(c, &(struct calibration_case){ .name = "cvta and back", .body = text_close(&t), .block = { 1 },
                                                   .input_bytes = 16,
        .module = ".const .align 16 .b8 k$[16];\n", .output_bytes = 16,
        .form = "cvta.global.u64 cvta.to.global.u64 cvta.shared.u64 cvta.to.shared.u64 cvta.local.u64 "
                "cvta.to.local.u64 cvta.const.u64 cvta.to.const.u64" });
    free(t.bytes);
}

/* Each CTA of four writes its rank times 1000 plus the thread; each thread reads the same place in all of them. */
static const char peers[] =
    ".shared .align 16 .b8 s$[128]; .reg .b32 %r<16>; .reg .b64 %u<8>;\n"
    "ld.param.u64 %u1, [out]; mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %tid.x; mov.u32 %r2, s$;\n"
    "mad.lo.u32 %r3, %r1, 4, %r2; mad.lo.u32 %r4, %r0, 1000, %r1; st.shared.u32 [%r3], %r4;\n"
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    "mov.u32 %r5, %ctaid.x; mad.lo.u32 %r6, %r5, 32, %r1; mad.wide.u32 %u1, %r6, 48, %u1; mov.u64 %u2, s$; "
    "cvta.shared.u64 %u2, %u2;\n"
    "mad.wide.u32 %u2, %r1, 4, %u2;\n"
    "mov.u32 %r7, 0;\n"
    "L0: mapa.shared::cluster.u32 %r8, %r3, %r7; ld.shared::cluster.u32 %r9, [%r8]; "
    "getctarank.shared::cluster.u32 %r10, %r8;\n"
    "mapa.u64 %u3, %u2, %r7; ld.u32 %r11, [%u3]; getctarank.u64 %r12, %u3; mad.lo.u32 %r9, %r9, 4, %r10; "
    "mad.lo.u32 %r11, %r11, 4, %r12;\n"
    "st.global.u32 [%u1], %r9; st.global.u32 [%u1+16], %r11; add.u64 %u1, %u1, 4; add.u32 %r7, %r7, 1;\n"
    "{ .reg .pred %p; setp.lt.u32 %p, %r7, 4; @%p bra L0; }\n"
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    "xor.b32 %r13, %r0, 1; mapa.shared::cluster.u32 %r14, %r3, %r13; atom.shared::cluster.add.u32 %r15, [%r14], 7;\n"
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    "ld.shared.u32 %r9, [%r3]; st.global.u32 [%u1+16], %r9; st.global.u32 [%u1+20], %r15;\n";

void calibration_family_cluster(struct calibration *c)
{
    spaces(c);
    conversions(c);
    calibration_add(c, &(struct calibration_case){ .name = "shared memory of four CTAs", .body = peers, .grid = { 8 },
        .before = ".reqnctapercluster 4, 1, 1", .output_bytes = 8 * 32 * 48,
        .form = "mapa.shared::cluster.u32 mapa.u64 getctarank.shared::cluster.u32 getctarank.u64 "
                "ld.shared::cluster.u32 atom.shared::cluster.add.u32" });
}
