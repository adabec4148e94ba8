/* griddepcontrol: launches one behind the other, each allowed to begin early, of which each computes with what the one
 * before it wrote. */
#include "families.h"
#include "calibrate/forms/text.h"

enum { CTAS = 16, THREADS = 128, COUNT = CTAS * THREADS, LAUNCHES = 6 };

/* The output is a counter of CTAs, which says which launch this is, and two buffers, of which a launch reads one and
 * writes the other, each thread the place of one in another CTA. */
static const char begin[] =
    ".shared .align 4 .b32 number; .reg .b32 %r<16>; .reg .b64 %l<8>; .reg .pred %p<4>;\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 128, %r0; ld.param.u64 %l1, [out];\n";
static const char compute[] =
    "setp.ne.u32 %p0, %r0, 0; @%p0 bra COUNTED; atom.global.add.u32 %r3, [%l1], 1; sub.u32 %r3, %r3, 0xa5a5a5a5; "
    "shr.u32 %r3, %r3, 4; st.shared.u32 [number], %r3; COUNTED: bar.sync 0; ld.shared.u32 %r3, [number]; "
    "and.b32 %r4, %r3, 1; xor.b32 %r5, %r4, 1; add.u32 %r6, %r2, 200; and.b32 %r6, %r6, 2047; "
    "mad.lo.u32 %r6, %r4, 2048, %r6; mad.lo.u32 %r7, %r5, 2048, %r2; mad.wide.u32 %l2, %r6, 4, %l1; "
    "mad.wide.u32 %l3, %r7, 4, %l1; ld.global.u32 %r8, [%l2+256]; mad.lo.u32 %r8, %r8, 3, %r2; "
    "add.u32 %r8, %r8, %r3; nanosleep.u32 2000; st.global.u32 [%l3+256], %r8;\n";

static void add(struct calibration *c, const char *name, const char *before, const char *after, uint32_t launches)
{
    struct text t;
    text_open(&t);
    fprintf(t.out, "%s%sgriddepcontrol.wait;\n%s%s", begin, before, compute, after);
    calibration_add(c, &(struct calibration_case){ .name = name, .body = text_close(&t), .grid = { CTAS },
                                                   .block = { THREADS }, .launches = launches,
                                                   .form = "griddepcontrol.wait griddepcontrol.launch_dependents",
                                                   .output_bytes = 256 + 2 * COUNT * 4 });
    free(t.bytes);
}

void calibration_family_dependent(struct calibration *c)
{
    static const char dependents[] = "griddepcontrol.launch_dependents;\n";
    add(c, "griddepcontrol in a launch alone", dependents, "", 1);
    add(c, "griddepcontrol, dependents launched at once", dependents, "", LAUNCHES);
    add(c, "griddepcontrol, dependents launched at the end", "", dependents, LAUNCHES);
    add(c, "griddepcontrol, dependents launched by some threads", "setp.gt.u32 %p1, %r0, 40; @%p1 bra OTHERS;\n"
        "griddepcontrol.launch_dependents;\nOTHERS:\n", "", LAUNCHES);
}
