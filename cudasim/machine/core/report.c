/* Reports: one block of text each. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_line(struct report_text *t, const struct module *m, uint32_t line)
{
    size_t length;
    const char *source = ptx_source_line(m, line, &length);
    while (length > 0 && (*source == ' ' || *source == '\t')) source++, length--;
    report_add(t, "  PTX      line %u: %.*s\n", line, (int)(length > 120 ? 120 : length), source);
}

const char *report_device(const struct machine *machine, char text[REPORT_DEVICE_BYTES])
{
    const struct address_space *space = machine->memory.space;
    text[0] = '\0';
    if (space != NULL && space->devices > 1)
        snprintf(text, REPORT_DEVICE_BYTES, ", device %u", machine->memory.device);
    return text;
}

static void add_place(struct report_text *t, const struct report *r, const struct machine *machine)
{
    char name[REPORT_NAME_BYTES], device[REPORT_DEVICE_BYTES];
    report_add(t, "  where    kernel %s, CTA (%u,%u,%u), warp %u", report_name(r->kernel, name), r->cta[0], r->cta[1],
               r->cta[2], r->warp);
    if (r->lane < LANES) report_add(t, ", lane %u", r->lane);
    report_add(t, "%s\n", report_device(machine, device));
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

/* rule: RULE_COUNT where it is none. */
__attribute__((format(printf, 7, 0)))
static void fill(struct report *r, const struct warp *w, const struct insn *in, uint32_t lane, enum report_code code,
                 enum rule rule, const char *format, va_list arguments)
{
    const struct grid *grid = w->cta->cluster->grid;
    char file[REPORT_NAME_BYTES];
    *r = (struct report){ .code = code, .kernel = grid->function->name, .warp = w->index, .lane = lane,
                          .ptx_line = in->line,
                          .pc = (uint32_t)(in - grid->code), .section = in->row->section };
    memcpy(r->cta, w->cta->id, sizeof r->cta);
    fill_source(r, grid->module, in);
    vsnprintf(r->sentence, sizeof r->sentence, format, arguments);
    struct report_text t = { r->text, sizeof r->text };
    report_add(&t, "cudasim: %s\n  what     %s\n", report_code_name(code), r->sentence);
    add_place(&t, r, grid->machine);
    add_line(&t, grid->module, r->ptx_line);
    if (r->source_file != NULL) report_add(&t, "  source   %s:%u\n", report_name(r->source_file, file), r->source_line);
    report_add(&t, "  manual   PTX ISA, %s\n", r->section);
    if (rule != RULE_COUNT) report_add(&t, "  rule     %s\n", rule_name(rule));
}

__attribute__((format(printf, 6, 0)))
static trap stop(struct warp *w, const struct insn *in, uint32_t lane, enum report_code code, enum rule rule,
                 const char *format, va_list arguments)
{
    struct grid *grid = w->cta->cluster->grid;
    if (report_begin(grid)) fill(&grid->report, w, in, lane, code, rule, format, arguments);
    atomic_store(&grid->stop, true);
    return TRAP_FAULT;
}

trap warp_fault(struct warp *w, const struct insn *in, uint32_t lane, enum report_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const trap t = stop(w, in, lane, code, RULE_COUNT, format, arguments);
    va_end(arguments);
    return t;
}

/* Reported, and goes on: told once for each line of a kernel, counted always. */
__attribute__((format(printf, 6, 0)))
static void tell(struct warp *w, const struct insn *in, uint32_t lane, enum report_code code, enum rule rule,
                 const char *format, va_list arguments)
{
    const struct grid *grid = w->cta->cluster->grid;
    struct rule_book *book = grid->machine->rule_book;
    if (book == NULL || !rule_book_enter(book, rule, grid->function->name, in->line) || book->tell == NULL) return;
    struct report *r = malloc(sizeof *r);
    if (r == NULL) return;
    fill(r, w, in, lane, code, rule, format, arguments);
    book->tell(r->text);
    free(r);
}

/* Where races are not watched, no rule is. */
enum rule_level rule_level(const struct warp *w, enum rule rule)
{
    const struct machine_options *options = &w->cta->cluster->grid->machine->options;
    return options->check_races ? (enum rule_level)options->rule[rule] : RULE_OFF;
}

trap warp_breaks(struct warp *w, const struct insn *in, uint32_t lane, enum rule rule, const char *format, ...)
{
    static const enum report_code codes[RULE_COUNT] = {
#define X(id, name, code, level) [RULE_##id] = code,
        RULES(X)
#undef X
    };
    const enum rule_level level = rule_level(w, rule);
    trap t = TRAP_NONE;
    va_list arguments;
    va_start(arguments, format);
    if (level == RULE_STOP) t = stop(w, in, lane, codes[rule], rule, format, arguments);
    else if (level == RULE_REPORT) tell(w, in, lane, codes[rule], rule, format, arguments);
    va_end(arguments);
    return t;
}
