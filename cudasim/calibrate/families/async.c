/* cp.async with its groups and arrivals; st.async and red.async to the other CTA of a cluster. */
#include <string.h>

#include "families.h"
#include "calibrate/forms/forms.h"
#include "calibrate/forms/text.h"

enum { FULL_ROWS = 64, THREADS = 96, PIECE = 16, BYTES = THREADS * PIECE };

static bool begins(const struct form *f, const char *word) { return strncmp(f->text, word, strlen(word)) == 0; }

/* ---- cp.async ---- */

/* %r0 thread, %r1 its 16 bytes of poisoned shared memory, %l2 those of the input, %l3 those of the output, %r2 those of
 * the thread 33 further on, %l4 a policy, %p0 true in every third thread, %r3 the thread's number of 0 to 16. */
static const char copy_begin[] =
    ".shared .align 16 .b8 s[6144]; .shared .align 8 .b64 bar; .reg .b32 %r<16>; .reg .b64 %l<8>; .reg .pred %p<4>;\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r4, s; mad.lo.u32 %r1, %r0, 16, %r4; ld.param.u64 %l0, [in]; "
    "ld.param.u64 %l1, [out]; mad.wide.u32 %l2, %r0, 16, %l0; mad.wide.u32 %l3, %r0, 16, %l1;\n"
    "add.u32 %r2, %r0, 33; rem.u32 %r2, %r2, 96; mad.lo.u32 %r2, %r2, 16, %r4; rem.u32 %r3, %r0, 17; "
    "rem.u32 %r5, %r0, 3; setp.eq.u32 %p0, %r5, 0; createpolicy.fractional.L2::evict_last.b64 %l4, 0f3F000000;\n"
    "mov.u32 %r6, 0xa5a5a5a5; st.shared.v4.u32 [%r1], {%r6, %r6, %r6, %r6}; "
    "st.shared.v4.u32 [%r1+1536], {%r6, %r6, %r6, %r6}; st.shared.v4.u32 [%r1+3072], {%r6, %r6, %r6, %r6}; "
    "st.shared.v4.u32 [%r1+4608], {%r6, %r6, %r6, %r6};\n";

static void put_drain(FILE *out, const char *from, int offset)
{
    fprintf(out, "ld.shared.v4.u32 {%%r7, %%r8, %%r9, %%r10}, [%s+%d]; "
                 "st.global.v4.u32 [%%l3+%d], {%%r7, %%r8, %%r9, %%r10};\n", from, offset, offset);
}

static void add_copy_case(struct calibration *c, struct text *t, const char *form, const char *name, size_t output)
{
    calibration_add(c, &(struct calibration_case){ .name = name, .form = form, .body = text_close(t),
                                                   .block = { THREADS }, .input_bytes = output,
                                                   .output_bytes = output });
    free(t->bytes);
}

/* Operands: to, from, size, then the source's size or a predicate, then a policy.  Source sizes: none, a constant, the
 * thread's own (%r3, at most `size`). */
static void add_copy(struct calibration *c, const struct form *f, uint32_t size, int source)
{
    static const char *const sources[] = { "", ", source of 1", ", sources of all sizes", ", predicate" };
    struct form_operand o[FORM_OPERANDS];
    const int count = form_operands(&f->in, o);
    struct text t;
    char name[FORM_TEXT + 64];
    text_open(&t);
    fprintf(t.out, "%smin.u32 %%r3, %%r3, %u;\n%s [%%r1], [%%l2], %u", copy_begin, size, f->text, size);
    if (source == 1) fputs(", 1", t.out);
    if (source == 2) fputs(", %r3", t.out);
    if (source == 3) fputs(", %p0", t.out);
    if (count > 0 && o[count - 1].type == T_B64) fputs(", %l4", t.out);
    fputs(";\ncp.async.commit_group; cp.async.wait_group 0; bar.sync 0;\n", t.out);
    put_drain(t.out, "%r2", 0);
    snprintf(name, sizeof name, "%s, %u bytes%s", f->text, size, sources[source]);
    add_copy_case(c, &t, f->text, name, BYTES);
}

static void add_copies(struct calibration *c, const struct form *f)
{
    struct form_operand o[FORM_OPERANDS];
    const int count = form_operands(&f->in, o);
    bool predicate = false;
    for (int i = 0; i < count; i++) predicate = predicate || o[i].kind == 'p';
    for (uint32_t size = strstr(f->text, ".cg") != NULL ? 16 : 4; size <= 16; size *= 2)
        for (int source = predicate ? 3 : 0; source <= (predicate ? 3 : 2); source++) add_copy(c, f, size, source);
}

/* The arrival of copies, with and without its own count. */
static void add_arrival(struct calibration *c, const struct form *f)
{
    const bool counted = strstr(f->text, ".noinc") != NULL, shared = strstr(f->text, ".shared") != NULL;
    struct text t;
    text_open(&t);
    fprintf(t.out,
            "%smov.u32 %%r11, bar; cvt.u64.u32 %%l5, %%r11; cvta.shared.u64 %%l5, %%l5; setp.ne.u32 %%p1, %%r0, 0; "
            "@%%p1 bra READY; mbarrier.init.shared.b64 [%%r11], %d; READY: bar.sync 0;\n", copy_begin, THREADS);
    for (int phase = 0; phase < 3; phase++) {
        fprintf(t.out, "cp.async.ca.shared.global [%%r1+%d], [%%l2+%d], 16;\n%s [%s];\n", phase * BYTES, phase * BYTES,
                f->text, shared ? "%r11" : "%l5");
        if (!counted) fputs("mbarrier.arrive.shared.b64 _, [%r11];\n", t.out);
        fprintf(t.out, "WAIT%d: mbarrier.try_wait.parity.shared.b64 %%p2, [%%r11], %d; @!%%p2 bra WAIT%d;\n", phase,
                phase & 1, phase);
        put_drain(t.out, "%r2", phase * BYTES);
    }
    add_copy_case(c, &t, f->text, f->text, 3 * BYTES);
}

/* Four groups, the last of no copy; each buffer is read once its group is done, then all are overwritten. */
static void add_groups(struct calibration *c)
{
    static const int most[] = { 3, 2, 1 };
    struct text t;
    text_open(&t);
    fputs(copy_begin, t.out);
    for (int i = 0; i < 4; i++) {
        if (i < 3)
            fprintf(t.out, "cp.async.cg.shared.global [%%r1+%d], [%%l2+%d], 16;\n", i * BYTES, i * BYTES);
        fputs("cp.async.commit_group;\n", t.out);
    }
    for (int i = 0; i < 3; i++) {
        fprintf(t.out, "cp.async.wait_group %d; bar.sync 0;\n", most[i]);
        put_drain(t.out, "%r2", i * BYTES);
    }
    fputs("bar.sync 0; cp.async.ca.shared.global [%r1], [%l2+4608], 8; cp.async.commit_group; "
          "cp.async.ca.shared.global [%r1+8], [%l2+4616], 4; cp.async.ca.shared.global [%r1+12], [%l2+4620], 4, 2; "
          "cp.async.wait_all; bar.sync 0;\nld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [%r2]; "
          "st.global.v4.u32 [%l3+4608], {%r7, %r8, %r9, %r10};\n", t.out);
    add_copy_case(c, &t, "cp.async.commit_group cp.async.wait_group cp.async.wait_all", "cp.async in groups",
                  4 * BYTES);
}

/* ---- st.async, red.async ---- */

/* Of a cluster of two: %r0 thread, %r1 shared memory, %r2 mbarrier, %r3 and %r4 those of the peer, %l2 and %l3 the same
 * as generic addresses, %l4 the thread's 16 bytes of input.  Shared memory begins as the first bytes of the input; each
 * thread's value goes to the place of the thread 33 further on, a reduction's to one of 24 places. */
static const char store_begin[] =
    ".shared .align 16 .b8 s[1536]; .shared .align 8 .b64 bar; .reg .b32 %r<24>; .reg .b64 %l<16>; .reg .pred %p<4>; "
    ".reg .f32 %f<4>; .reg .f64 %d<4>;\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, s; mov.u32 %r2, bar; ld.param.u64 %l0, [in]; ld.param.u64 %l1, [out]; "
    "mov.u32 %r5, %cluster_ctarank; xor.b32 %r6, %r5, 1; mapa.shared::cluster.u32 %r3, %r1, %r6; "
    "mapa.shared::cluster.u32 %r4, %r2, %r6; cvt.u64.u32 %l2, %r1; cvta.shared.u64 %l2, %l2; mapa.u64 %l2, %l2, %r6; "
    "cvt.u64.u32 %l3, %r2; cvta.shared.u64 %l3, %l3; mapa.u64 %l3, %l3, %r6;\n"
    "mad.wide.u32 %l4, %r0, 16, %l0; mul.lo.u32 %r7, %r0, 16; add.u32 %r8, %r1, %r7; "
    "ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%l4]; st.shared.v4.u32 [%r8], {%r12, %r13, %r14, %r15};\n"
    "mad.lo.u32 %r9, %r5, 1536, 1536; cvt.u64.u32 %l5, %r9; add.u64 %l4, %l4, %l5; "
    "mad.lo.u32 %r10, %r5, 1536, %r7; cvt.u64.u32 %l5, %r10; add.u64 %l1, %l1, %l5;\n"
    "setp.ne.u32 %p1, %r0, 0; @%p1 bra READY; mbarrier.init.shared.b64 [%r2], 1;\n";

static void put_element(FILE *out, uint32_t bytes, const char *type, int i)
{
    if (type[0] == 'f') fprintf(out, "%%%c%d", bytes == 4 ? 'f' : 'd', i);
    else fprintf(out, "%%%c%d", bytes == 4 ? 'r' : 'l', i + (bytes == 4 ? 12 : 8));
}

static void put_elements(FILE *out, const struct form *f)
{
    const int vector = f->in.vector == 0 ? 1 : (int)f->in.vector;
    const char *type = strrchr(f->text, '.') + 1;
    if (vector > 1) fputc('{', out);
    for (int i = 0; i < vector; i++) {
        if (i > 0) fputs(", ", out);
        put_element(out, type_bytes((enum ptx_type)f->in.type[0]), type, i);
    }
    if (vector > 1) fputc('}', out);
}

/* Small numbers that wrap around, for inc and dec too. */
static void fill(const struct calibration_case *c, uint8_t *input)
{
    uint64_t state = calibration_hash(11, c->name, strlen(c->name));
    for (size_t i = 0; i + 4 <= c->input_bytes; i += 4) {
        const uint64_t value = calibration_random(&state);
        const uint32_t word = c->data[0] != 0 ? (uint32_t)value & 15 : (uint32_t)value;
        memcpy(input + i, &word, 4);
    }
}

static void add_store(struct calibration *c, const struct form *f)
{
    const bool reduces = begins(f, "red"), shared = strstr(f->text, ".shared::cluster") != NULL;
    const bool counts = strstr(f->text, ".inc") != NULL || strstr(f->text, ".dec") != NULL;
    const uint32_t element = type_bytes((enum ptx_type)f->in.type[0]),
                   bytes = element * (f->in.vector == 0 ? 1 : f->in.vector);
    const char *load = f->in.vector > 1 ? f->in.vector == 2 ? ".v2" : ".v4" : "";
    struct text t;
    text_open(&t);
    fprintf(t.out,
            "%smbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %u;\nREADY: barrier.cluster.arrive; "
            "barrier.cluster.wait;\n", store_begin, bytes * THREADS);
    if (reduces) fputs("rem.u32 %r11, %r0, 24;\n", t.out);
    else fputs("add.u32 %r11, %r0, 33; rem.u32 %r11, %r11, 96;\n", t.out);
    /* inc and dec are the same in any order only with the same bound */
    if (counts) fputs("mul.wide.u32 %l5, %r0, 16; sub.u64 %l4, %l4, %l5; mad.wide.u32 %l4, %r11, 16, %l4;\n", t.out);
    fprintf(t.out, "mad.lo.u32 %%r3, %%r11, 16, %%r3; mad.wide.u32 %%l2, %%r11, 16, %%l2;\nld.global%s.%s ", load,
            strrchr(f->text, '.') + 1);
    put_elements(t.out, f);
    fprintf(t.out, ", [%%l4];\n%s [%s], ", f->text, shared ? "%r3" : "%l2");
    put_elements(t.out, f);
    fprintf(t.out,
            ", [%s];\nWAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %%p2, [%%r2], 0; "
            "@!%%p2 bra WAIT;\nld.shared.v4.u32 {%%r12, %%r13, %%r14, %%r15}, [%%r8]; "
            "st.global.v4.u32 [%%l1], {%%r12, %%r13, %%r14, %%r15};\n"
            "barrier.cluster.arrive; barrier.cluster.wait;", shared ? "%r4" : "%l3");
    calibration_add(c, &(struct calibration_case){ .name = f->text, .form = f->text, .body = text_close(&t),
                                                   .before = ".explicitcluster .reqnctapercluster 2, 1, 1",
                                                   .grid = { 2 }, .block = { THREADS }, .fill = fill,
                                                   .data = { counts },
                                                   .input_bytes = 3 * BYTES, .output_bytes = 2 * BYTES });
    free(t.bytes);
}

static void add_row(struct calibration *c, const struct row *row)
{
    const char *p = row->pattern;
    if (strncmp(p, "cp.async(.ca|.cg)", 17) == 0) calibration_row(c, row, FULL_ROWS, add_copies);
    else if (strncmp(p, "cp.async.mbarrier", 17) == 0) calibration_row(c, row, FULL_ROWS, add_arrival);
    else if (strncmp(p, "st.async", 8) == 0 || strncmp(p, "red.async", 9) == 0)
        calibration_row(c, row, FULL_ROWS * 2, add_store);
}

void calibration_family_async(struct calibration *c)
{
    calibration_hopper_rows(c, add_row);
    add_groups(c);
}
