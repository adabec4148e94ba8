/* Reports: one block of text each. */
#include "report.h"

#include "decode/decode.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool begin(struct grid *grid)
{
    const bool first = !atomic_exchange(&grid->reported, true);
    atomic_store(&grid->stop, true);
    return first;
}

static void add_schedule(struct report_text *t, const struct machine_options *o)
{
    static const char *const names[] = { "random", "earliest", "latest" };
    report_add(t, "  again    GFXSIM_SCHEDULE=%s GFXSIM_SEED=%llu\n", names[o->schedule], (unsigned long long)o->seed);
}

trap wave_fault(struct wave *w, const struct insn *in, uint32_t lane, enum report_code code, const char *format, ...)
{
    struct grid *grid = w->group->grid;
    if (!begin(grid)) return TRAP_FAULT;
    struct report *r = &grid->report;
    char name[REPORT_NAME_BYTES], text[INSTRUCTION_TEXT];
    *r = (struct report){ .code = code, .wave = w->index, .lane = lane, .pc = in->pc };
    memcpy(r->workgroup, w->group->id, sizeof r->workgroup);
    snprintf(r->kernel, sizeof r->kernel, "%s", report_name(grid->launch->kernel->name, name));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->sentence, sizeof r->sentence, format, arguments);
    va_end(arguments);
    instruction_text(in, text);
    struct report_text t = { r->text, sizeof r->text };
    report_add(&t, "gfxsim: %s\n  what     %s\n", report_code_name(code), r->sentence);
    report_add(&t, "  where    kernel %s, workgroup (%u,%u,%u), wave %u", r->kernel, r->workgroup[0], r->workgroup[1],
               r->workgroup[2], r->wave);
    if (lane < LANES) report_add(&t, ", lane %u", lane);
    report_add(&t, "\n  code     0x%llx: %s\n", (unsigned long long)(grid->launch->program->text + in->pc), text);
    if (in->family != NULL) report_add(&t, "  manual   CDNA4 ISA, %s\n", in->family->title);
    add_schedule(&t, &grid->machine->options);
    return TRAP_FAULT;
}

void grid_fault(struct grid *grid, enum report_code code, const char *format, ...)
{
    if (!begin(grid)) return;
    struct report *r = &grid->report;
    char name[REPORT_NAME_BYTES];
    *r = (struct report){ .code = code, .lane = NO_LANE };
    snprintf(r->kernel, sizeof r->kernel, "%s", report_name(grid->launch->kernel->name, name));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->sentence, sizeof r->sentence, format, arguments);
    va_end(arguments);
    struct report_text t = { r->text, sizeof r->text };
    report_add(&t, "gfxsim: %s\n  what     %s\n  where    kernel %s\n", report_code_name(code), r->sentence, r->kernel);
    add_schedule(&t, &grid->machine->options);
}

void insn_at(const struct wave *w, uint32_t pc, char text[256])
{
    const struct program *p = w->group->grid->launch->program;
    char insn[INSTRUCTION_TEXT] = "?";
    if (pc / 4 < p->text_bytes / 4) instruction_text(&p->insn[pc / 4], insn);
    snprintf(text, 256, "0x%llx (%.180s)", (unsigned long long)(p->text + pc), insn);
}
