/* mbarrier in the forms of the table.  The state is opaque: what is compared is what the waits say, and the count that
 * is pending in the states that have one. */
#include <string.h>

#include "families.h"
#include "calibrate/forms/forms.h"
#include "calibrate/forms/text.h"

enum { FULL_ROWS = 64 };

struct script { struct text t; int results; };

static const char begin[] =
    ".shared .align 8 .b64 bar; .reg .b32 %r<8>; .reg .b64 %l<8>; .reg .pred %p<4>;\n"
    "mov.u32 %r0, bar; mov.u64 %l0, bar; cvta.shared.u64 %l0, %l0; ld.param.u64 %l1, [out]; mov.b64 %l2, 0;\n";

static void store(struct script *s, const char *predicate)
{
    if (predicate != NULL) fprintf(s->t.out, "selp.u32 %%r1, 1, 0, %s;\n", predicate);
    fprintf(s->t.out, "st.global.u32 [%%l1+%d], %%r1;\n", s->results++ * 4);
}

/* Both parities, one arrival, and whether its phase is over. */
static void observe(struct script *s)
{
    fputs("mbarrier.test_wait.parity.shared.b64 %p0, [%r0], 0;\n", s->t.out), store(s, "%p0");
    fputs("mbarrier.test_wait.parity.shared.b64 %p0, [%r0], 1;\n", s->t.out), store(s, "%p0");
    fputs("mbarrier.arrive.shared.b64 %l3, [%r0]; mbarrier.test_wait.shared.b64 %p0, [%r0], %l3;\n", s->t.out),
        store(s, "%p0");
}

static bool is_wait(const struct form *f) { return strstr(f->text, "_wait") != NULL; }
static bool is_remote(const struct form *f) { return insn_has(&f->in, ".shared::cluster"); }
static bool counts_bytes(const struct form *f) { return strstr(f->text, "_tx") != NULL; }

/* The instruction; parity: the last operand of a wait by parity. */
static void put_form(struct script *s, const struct form *f, bool optional, int parity)
{
    struct form_operand o[FORM_OPERANDS];
    const int count = form_operands(&f->in, o);
    const bool is_shared = strstr(f->text, ".shared") != NULL;
    fprintf(s->t.out, "%s ", f->text);
    for (int i = 0, written = 0; i < count; i++) {
        if (o[i].optional && !optional) continue;
        if (written++ != 0) fputs(", ", s->t.out);
        if (o[i].kind == 'd') fputs(is_wait(f) ? "%p1" : is_remote(f) ? "_" : "%l2", s->t.out);
        else if (o[i].kind == 'a') fputs(is_shared ? "[%r0]" : "[%l0]", s->t.out);
        else if (o[i].type == T_B64) fputs("%l2", s->t.out);
        else
            fprintf(s->t.out, "%d",
                    is_wait(f) && !o[i].optional ? parity
                    : is_wait(f)                 ? 100
                    : counts_bytes(f)            ? 16
                                                 : 2);
    }
    fputs(";\n", s->t.out);
}

static void add(struct calibration *c, struct script *s, const struct form *f, bool optional)
{
    char name[FORM_TEXT + 32];
    snprintf(name, sizeof name, "%s%s", f->text, optional ? ", all operands" : "");
    calibration_add(c, &(struct calibration_case){ .name = name, .form = f->text, .body = text_close(&s->t),
                                                   .block = { 1 },
                                                   .output_bytes = (size_t)s->results * 4 });
    free(s->t.bytes);
}

static void arrival(struct calibration *c, const struct form *f, bool optional)
{
    struct script s = { .results = 0 };
    text_open(&s.t);
    fprintf(s.t.out, "%smbarrier.init.shared.b64 [%%r0], 9;\n", begin);
    const bool completes = strncmp(f->text, "mbarrier.complete_tx", 20) == 0,
               counted = strstr(f->text, "noComplete") != NULL;
    for (int i = 0; i < 2; i++) {
        if (completes) fputs("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], 16;\n", s.t.out), observe(&s);
        put_form(&s, f, optional, 0);
        if (counted) fputs("mbarrier.pending_count.b64 %r1, %l2;\n", s.t.out), store(&s, NULL);
        observe(&s);
        if (counts_bytes(f) && !completes)
            fputs("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r0], 16;\n", s.t.out), observe(&s);
    }
    for (int i = 0; i < 14; i++) observe(&s);
    fputs("mbarrier.inval.shared.b64 [%r0];\n", s.t.out);
    add(c, &s, f, optional);
}

static void waiting(struct calibration *c, const struct form *f, bool optional)
{
    struct script s = { .results = 0 };
    text_open(&s.t);
    fprintf(s.t.out, "%smbarrier.init.shared.b64 [%%r0], 2;\n", begin);
    for (int phase = 0; phase < 3; phase++) {
        fputs("mbarrier.arrive.shared.b64 %l2, [%r0];\n", s.t.out);
        put_form(&s, f, optional, phase & 1), store(&s, "%p1");
        fputs("mbarrier.arrive.shared.b64 _, [%r0];\n", s.t.out);
        put_form(&s, f, optional, phase & 1), store(&s, "%p1");
    }
    add(c, &s, f, optional);
}

static void add_form(struct calibration *c, const struct form *f)
{
    struct form_operand o[FORM_OPERANDS];
    bool optional = false;
    for (int i = 0, count = form_operands(&f->in, o); i < count; i++) optional = optional || o[i].optional;
    for (int all = 0; all <= (optional ? 1 : 0); all++) (is_wait(f) ? waiting : arrival)(c, f, all != 0);
}

void calibration_family_mbarrier(struct calibration *c)
{
    for (const struct family *const *family = instruction_families; *family != NULL; family++)
        for (int i = 0; i < (*family)->count; i++) {
            const struct row *row = &(*family)->rows[i];
            const struct module hopper = { .version = 90, .sm = 90, .suffix = 'a' };
            static const char *const others[] = { "mbarrier.init", "mbarrier.inval", "mbarrier.pending_count" };
            char why[200];
            bool other = strncmp(row->pattern, "mbarrier.", 9) != 0;
            for (int k = 0; k < 3; k++) other = other || strncmp(row->pattern, others[k], strlen(others[k])) == 0;
            if (!other && row_available(row, &hopper, why, sizeof why)) calibration_row(c, row, FULL_ROWS, add_form);
        }
    struct script s = { .results = 0 };
    text_open(&s.t);
    fputs(begin, s.t.out);
    for (int count = 1; count < 2000; count = count * 3 + 1) {
        fprintf(s.t.out, "mbarrier.init.shared.b64 [%%r0], %d;\n", count);
        for (int i = 0; i < 5; i++) observe(&s);
        if (count > 9) {
            fputs("mbarrier.arrive.noComplete.shared.b64 %l2, [%r0], 3; mbarrier.pending_count.b64 %r1, %l2;\n",
                  s.t.out);
            store(&s, NULL);
        }
        fputs("mbarrier.inval.shared.b64 [%r0];\n", s.t.out);
    }
    calibration_add(c, &(struct calibration_case){ .name = "mbarrier of several counts", .body = text_close(&s.t),
                                                   .block = { 1 },
        .form = "mbarrier.init.shared.b64 mbarrier.inval.shared.b64 mbarrier.pending_count.b64 "
                "mbarrier.arrive.shared.b64 mbarrier.arrive.noComplete.shared.b64",
        .output_bytes = (size_t)s.results * 4 });
    free(s.t.bytes);
}
