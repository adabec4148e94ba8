/* A trace.  One host thread runs a grid that is traced, so that its lines have one order. */
#include "trace.h"
#include "machine/core/statement.h"
#include "machine/core/wait.h"

#include <stdlib.h>
#include <string.h>

struct trace {
    FILE *file;
    struct trace_filter filter;
    char (*text)[STATEMENT_BYTES]; /* by program counter of the running grid; empty: not asked for yet */
};

const struct trace_filter trace_everything = { .last_warp = UINT32_MAX, .last_line = UINT32_MAX };

/* ---- filters ---- */

/* A number up to most; *end behind it. */
static bool number(const char *text, uint64_t most, uint32_t *value, char **end)
{
    if (*text < '0' || *text > '9') return false;
    const unsigned long long n = strtoull(text, end, 10);
    *value = (uint32_t)n;
    return n <= most;
}

static bool read_range(const char *text, uint32_t *first, uint32_t *last)
{
    char *end;
    if (!number(text, UINT32_MAX - 1, first, &end)) return false;
    *last = *first;
    if (*end == '-' && !number(end + 1, UINT32_MAX - 1, last, &end)) return false;
    return *end == '\0' && *first <= *last;
}

static bool read_cta(const char *text, struct trace_filter *filter)
{
    filter->one_cta = true;
    for (int i = 0; i < 3; i++) {
        char *end;
        if (!number(text, INT32_MAX, &filter->cta[i], &end)) return false;
        if (*end == '\0') return true;
        if (*end != ',') return false;
        text = end + 1;
    }
    return false;
}

const char *trace_filter_read(struct trace_filter *filter, const char *cta, const char *warps, const char *lines,
                              const char *lane)
{
    char *end;
    if (cta != NULL && !read_cta(cta, filter)) return cta;
    if (warps != NULL && !read_range(warps, &filter->first_warp, &filter->last_warp)) return warps;
    if (lines != NULL && !read_range(lines, &filter->first_line, &filter->last_line)) return lines;
    if (lane != NULL && (!number(lane, LANES - 1, &filter->lane, &end) || *end != '\0')) return lane;
    return NULL;
}

static bool wanted(const struct trace *trace, const struct warp *w, const struct insn *in)
{
    const struct trace_filter *f = &trace->filter;
    if (w->index < f->first_warp || w->index > f->last_warp || in->line < f->first_line || in->line > f->last_line)
        return false;
    return !f->one_cta || memcmp(f->cta, w->cta->id, sizeof f->cta) == 0;
}

/* ---- grids ---- */

struct trace *trace_open(FILE *file, const struct trace_filter *filter)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (trace != NULL) *trace = (struct trace){ .file = file, .filter = *filter };
    return trace;
}

void trace_close(struct trace *trace)
{
    if (trace == NULL) return;
    free(trace->text);
    free(trace);
}

bool trace_open_grid(struct trace *trace, const struct grid *grid)
{
    trace->text = calloc(grid->module->code_count + 1, sizeof *trace->text);
    if (trace->text == NULL) return false;
    fprintf(trace->file, "# launch %llu, kernel %s.  step, CTA, warp, lanes, PTX line, statement -> its results in "
                         "lane %u\n",
            (unsigned long long)grid->id, grid->function->name, trace->filter.lane);
    return true;
}

void trace_close_grid(struct trace *trace, const struct grid *grid)
{
    free(trace->text);
    trace->text = NULL;
    fprintf(trace->file, "# launch %llu ends%s\n", (unsigned long long)grid->id,
            grid->reported ? " with a report" : "");
    fflush(trace->file);
}

static const char *text_of(struct trace *trace, const struct grid *grid, const struct insn *in)
{
    char *text = trace->text[in - grid->code];
    if (text[0] == '\0') statement_text(grid->module, (uint32_t)(in - grid->code), text, STATEMENT_BYTES);
    return text;
}

static void place(const struct trace *trace, const struct warp *w)
{
    const uint32_t *id = w->cta->id;
    fprintf(trace->file, "%8llu (%u,%u,%u) %2u", (unsigned long long)w->cta->cluster->now, id[0], id[1], id[2],
            w->index);
}

/* ---- results ---- */

/* nvcc declares registers of floats as .b32: the instruction's type says what they hold. */
static enum ptx_type shown_type(const struct insn *in, const struct operand *o)
{
    const enum ptx_type type = (enum ptx_type)o->type, of_insn = (enum ptx_type)in->type[0];
    const bool plain = type_kind(type) == 'b' && (of_insn == T_F32 || of_insn == T_F64);
    return plain && type_bits(type) == type_bits(of_insn) ? of_insn : type;
}

static void print_register(FILE *file, enum ptx_type type, const uint64_t *row, uint32_t lane)
{
    const uint64_t value = row[lane];
    if (type_bits(type) == 128) {
        fprintf(file, " 0x%llx%016llx", (unsigned long long)row[lane + LANES], (unsigned long long)value);
        return;
    }
    fprintf(file, " 0x%llx", (unsigned long long)value);
    if (type == T_F32) {
        float f;
        memcpy(&f, &value, sizeof f);
        fprintf(file, "(%.9g)", (double)f);
    } else if (type == T_F64) {
        double f;
        memcpy(&f, &value, sizeof f);
        fprintf(file, "(%.17g)", f);
    }
}

static void print_operand(FILE *file, const struct warp *w, const struct insn *in, const struct operand *o,
                          uint32_t lane)
{
    if (o->kind == OPERAND_REGISTER) print_register(file, shown_type(in, o), register_row(w, o->slot), lane);
    for (uint32_t i = 0; o->kind == OPERAND_VECTOR && i < o->count; i++)
        print_operand(file, w, in, &o->element[i], lane);
}

/* The operands that the row marks d or P. */
static void print_results(FILE *file, const struct warp *w, const struct insn *in, uint32_t lane)
{
    int i = 0;
    bool any = false;
    for (const char *item = in->row->operands; *item != '\0' && i < in->operands; i++) {
        const char *class = item;
        if (*class == '?') class ++;
        if (*class == '(') class = strchr(class, ')') + 1;
        if (*class == '|' || *class == '&') class ++;
        if (*class == 'd' || *class == 'P') {
            if (!any) fprintf(file, " ->");
            any = true;
            print_operand(file, w, in, &in->operand[i], lane);
        }
        if (*class == 'A') i++;
        item += strcspn(item, " ");
        item += strspn(item, " ");
    }
}

void trace_step(struct trace *trace, const struct warp *w, const struct insn *in, uint32_t lanes, trap t)
{
    if (!wanted(trace, w, in)) return;
    place(trace, w);
    fprintf(trace->file, " %08x %5u  %s", lanes, in->line, text_of(trace, w->cta->cluster->grid, in));
    if (t == TRAP_WAIT) fprintf(trace->file, "  waits for %s", wait_name(w->group->wait.kind));
    if (t == TRAP_FAULT) fprintf(trace->file, "  is reported");
    if (t == TRAP_NONE && (lanes >> trace->filter.lane & 1) != 0) print_results(trace->file, w, in, trace->filter.lane);
    fputc('\n', trace->file);
}

void trace_operation(struct trace *trace, const struct agent_operation *operation, const char *what)
{
    if (!wanted(trace, operation->warp, operation->in)) return;
    place(trace, operation->warp);
    fprintf(trace->file, "  lane %2u %5u  %s  operation %llu (%s) %s", operation->lane, operation->in->line,
            text_of(trace, operation->cluster->grid, operation->in), (unsigned long long)operation->serial,
            operation->kind->name, what);
    if (operation->due > operation->cluster->now)
        fprintf(trace->file, ", is due at step %llu", (unsigned long long)operation->due);
    fputc('\n', trace->file);
}
