/* Reports: one block of text each. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const code_names[REPORT_CODE_COUNT] = {
    [REPORT_NONE] = "nothing",
    [REPORT_OUT_OF_BOUNDS] = "out-of-bounds access",
    [REPORT_MISALIGNED] = "misaligned access",
    [REPORT_UNINITIALISED] = "uninitialised read",
    [REPORT_DIVERGENCE] = "divergence at a collective instruction",
    [REPORT_DEADLOCK] = "deadlock",
    [REPORT_TRAP] = "trap",
    [REPORT_ASSERT] = "assertion",
    [REPORT_ILLEGAL] = "illegal instruction",
    [REPORT_BARRIER] = "misused barrier",
    [REPORT_RACE] = "race",
    [REPORT_PROXY] = "missing proxy fence",
    [REPORT_ASYNC] = "asynchronous operation not waited for",
    [REPORT_RESOURCES] = "out of resources",
    [REPORT_SCHEDULES] = "schedules disagree",
};

const char *report_code_name(enum report_code code) { return code < REPORT_CODE_COUNT ? code_names[code] : "unknown"; }

const char *report_name(const char *kernel, char text[REPORT_NAME_BYTES])
{
    enum { BEGINNING = 180, END = 60 };
    const size_t length = strlen(kernel);
    if (length < REPORT_NAME_BYTES) return kernel;
    snprintf(text, REPORT_NAME_BYTES, "%.*s[...]%s", BEGINNING, kernel, kernel + length - END);
    return text;
}

void report_add(struct report_text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(t->at, t->left, format, arguments);
    va_end(arguments);
    const size_t used = length < 0 ? 0 : (size_t)length < t->left ? (size_t)length : t->left - 1;
    t->at += used;
    t->left -= used;
}

static void add_line(struct report_text *t, const struct module *m, uint32_t line)
{
    size_t length;
    const char *source = ptx_source_line(m, line, &length);
    while (length > 0 && (*source == ' ' || *source == '\t')) source++, length--;
    report_add(t, "  PTX      line %u: %.*s\n", line, (int)(length > 120 ? 120 : length), source);
}

static void add_place(struct report_text *t, const struct report *r)
{
    char name[REPORT_NAME_BYTES];
    report_add(t, "  where    kernel %s, CTA (%u,%u,%u), warp %u", report_name(r->kernel, name), r->cta[0], r->cta[1],
               r->cta[2], r->warp);
    if (r->lane < LANES) report_add(t, ", lane %u", r->lane);
    report_add(t, "\n");
}

static void fill_source(struct report *r, const struct module *m, const struct insn *in)
{
    if (in->location == 0 || in->location >= m->location_count) return;
    const struct location *l = &m->locations[in->location];
    if (l->file < m->file_count) r->source_file = m->files[l->file];
    r->source_line = l->line;
}

bool report_begin(struct grid *grid)
{
    const bool was = atomic_exchange(&grid->reported, true);
    return !was;
}

trap warp_fault(struct warp *w, const struct insn *in, uint32_t lane, enum report_code code, const char *format, ...)
{
    struct grid *grid = w->cta->cluster->grid;
    if (!report_begin(grid)) {
        atomic_store(&grid->stop, true);
        return TRAP_FAULT;
    }
    struct report *r = &grid->report;
    *r = (struct report){ .code = code, .kernel = grid->function->name, .warp = w->index, .lane = lane,
                          .ptx_line = in->line,
                          .pc = (uint32_t)(in - grid->code), .section = in->row->section };
    memcpy(r->cta, w->cta->id, sizeof r->cta);
    fill_source(r, grid->module, in);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->sentence, sizeof r->sentence, format, arguments);
    va_end(arguments);
    struct report_text t = { r->text, sizeof r->text };
    report_add(&t, "cudasim: %s\n  what     %s\n", report_code_name(code), r->sentence);
    add_place(&t, r);
    add_line(&t, grid->module, r->ptx_line);
    char file[REPORT_NAME_BYTES];
    if (r->source_file != NULL) report_add(&t, "  source   %s:%u\n", report_name(r->source_file, file), r->source_line);
    report_add(&t, "  manual   PTX ISA, %s\n", r->section);
    atomic_store(&grid->stop, true);
    return TRAP_FAULT;
}
