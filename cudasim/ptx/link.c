/* After reading: which shared variables an entry may name, through all that it calls. */
#include "ptx/reader.h"

#include <stdlib.h>
#include <string.h>

/* One bit per function and variable, a row per function. */
struct reach { uint32_t functions, variables; uint8_t *calls, *names; bool *indirect; };

static void note_operand(struct reach *reach, uint32_t f, const struct operand *o)
{
    if ((o->kind == OPERAND_ADDRESS || o->kind == OPERAND_SYMBOL) && o->variable != NULL
        && o->variable->space == SPACE_SHARED)
        reach->names[(size_t)f * reach->variables + o->variable->index] = 1;
    if (o->kind == OPERAND_FUNCTION) reach->calls[(size_t)f * reach->functions + o->function->index] = 1;
}

static void note_function(struct reach *reach, const struct module *m, const struct function *f)
{
    for (const struct preset *p = f->presets; p != NULL; p = p->next) {
        if (p->variable != NULL && p->variable->space == SPACE_SHARED)
            reach->names[(size_t)f->index * reach->variables + p->variable->index] = 1;
        if (p->function != NULL) reach->calls[(size_t)f->index * reach->functions + p->function->index] = 1;
    }
    for (uint32_t pc = f->code_begin; pc < f->code_end; pc++) {
        const struct insn *in = &m->code[pc];
        for (uint32_t i = 0; i < in->operands; i++) note_operand(reach, f->index, &in->operand[i]);
        /* a call through a register may reach every function */
        if (in->operands == 4 && in->operand[3].kind == OPERAND_PROTOTYPE)
            memset(reach->calls + (size_t)f->index * reach->functions, 1, reach->functions);
    }
}

/* Adds what callees name to their callers until nothing changes. */
static void close_over_calls(struct reach *reach)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t f = 0; f < reach->functions; f++)
            for (uint32_t g = 0; g < reach->functions; g++) {
                if (!reach->calls[(size_t)f * reach->functions + g]) continue;
                uint8_t *mine = reach->names + (size_t)f * reach->variables;
                const uint8_t *theirs = reach->names + (size_t)g * reach->variables;
                for (uint32_t v = 0; v < reach->variables; v++)
                    if (theirs[v] > mine[v]) mine[v] = 1, changed = true;
            }
    }
}

static void list_shared(struct reader *r, struct function *f, const uint8_t *names)
{
    const struct module *m = r->module;
    uint32_t count = 0;
    for (uint32_t v = 0; v < m->variable_count; v++) count += names[v];
    f->shared = reader_allocate(r, count * sizeof *f->shared);
    if (f->shared == NULL) return;
    uint64_t bytes = 0;
    for (uint32_t v = 0; v < m->variable_count; v++) {
        if (!names[v]) continue;
        const struct variable *variable = m->variables[v];
        f->shared[f->shared_count++] = variable;
        if (variable->bytes == 0) continue;
        bytes = (bytes + variable->align - 1) / variable->align * variable->align + variable->bytes;
    }
    f->static_shared_bytes = bytes;
}

void link_module(struct reader *r)
{
    struct module *m = r->module;
    if (m->location_count == 0) m->location_count = 1;
    struct reach reach = { .functions = m->function_count, .variables = m->variable_count };
    if ((uint64_t)reach.functions * reach.functions > 1u << 28
        || (uint64_t)reach.functions * reach.variables > 1u << 28) {
        reader_fail(r, "this module has too many functions and variables: %u and %u", reach.functions, reach.variables);
        return;
    }
    reach.calls = calloc((size_t)reach.functions * reach.functions + 1, 1);
    reach.names = calloc((size_t)reach.functions * reach.variables + 1, 1);
    if (reach.calls == NULL || reach.names == NULL) {
        reader_fail(r, "no memory for the calls of this module");
    } else {
        for (uint32_t f = 0; f < m->function_count; f++) note_function(&reach, m, m->functions[f]);
        close_over_calls(&reach);
        for (uint32_t f = 0; f < m->function_count; f++)
            list_shared(r, m->functions[f], reach.names + (size_t)f * reach.variables);
    }
    free(reach.calls);
    free(reach.names);
}
