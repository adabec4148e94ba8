/* After reading: which shared variables an entry may name, through all that it calls. */
#include "ptx/reader.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX };

/* `next` in a list of its own; a function, or a shared variable's index. */
struct link { uint32_t what, next; };

/* Node `functions` stands for "any function": a call through a register may reach them all. */
struct reach {
    const struct module *module;
    uint32_t functions;
    struct link *link;
    uint32_t links, capacity;
    uint32_t *caller;                     /* by node: who calls it; NONE: nobody */
    uint32_t *named;                      /* by variable: which functions name it */
    uint32_t *shared, *last;              /* by function: the variables it reaches, in their order; the last of them */
    uint32_t *seen, *stack;               /* by node: the variable it was last reached for, plus 1; what is to visit */
    bool failed;
};

static uint32_t add_link(struct reach *reach, uint32_t what, uint32_t next)
{
    if (reach->links == reach->capacity) {
        const uint32_t capacity = reach->capacity == 0 ? 256 : 2 * reach->capacity;
        struct link *larger = realloc(reach->link, capacity * sizeof *larger);
        if (larger == NULL) {
            reach->failed = true;
            return next;
        }
        reach->link = larger;
        reach->capacity = capacity;
    }
    reach->link[reach->links] = (struct link){ what, next };
    return reach->links++;
}

/* A function repeats itself mostly: what is first in the list is not added again. */
static void note(struct reach *reach, uint32_t *list, uint32_t f)
{
    if (*list == NONE || reach->link[*list].what != f) *list = add_link(reach, f, *list);
}

static void note_variable(struct reach *reach, uint32_t f, const struct variable *v)
{
    if (v != NULL && v->space == SPACE_SHARED) note(reach, &reach->named[v->index], f);
}

static void note_operand(struct reach *reach, uint32_t f, const struct operand *o)
{
    if (o->kind == OPERAND_ADDRESS || o->kind == OPERAND_SYMBOL) note_variable(reach, f, o->variable);
    if (o->kind == OPERAND_FUNCTION) note(reach, &reach->caller[o->function->index], f);
}

static void note_function(struct reach *reach, const struct function *f)
{
    for (const struct preset *p = f->presets; p != NULL; p = p->next) {
        if (p->variable != NULL) note_variable(reach, f->index, p->variable);
        if (p->function != NULL) note(reach, &reach->caller[p->function->index], f->index);
    }
    for (uint32_t pc = f->code_begin; pc < f->code_end; pc++) {
        const struct insn *in = &reach->module->code[pc];
        for (uint32_t i = 0; i < in->operands; i++) note_operand(reach, f->index, &in->operand[i]);
        if (in->operands == 4 && in->operand[3].kind == OPERAND_PROTOTYPE)
            note(reach, &reach->caller[reach->functions], f->index);
    }
}

static void visit(struct reach *reach, uint32_t node, uint32_t variable, uint32_t *left)
{
    if (reach->seen[node] == variable + 1) return;
    reach->seen[node] = variable + 1;
    reach->stack[(*left)++] = node;
}

/* Who names the variable, and all that call them. */
static void spread(struct reach *reach, uint32_t variable)
{
    uint32_t left = 0;
    for (uint32_t i = reach->named[variable]; i != NONE; i = reach->link[i].next)
        visit(reach, reach->link[i].what, variable, &left);
    while (left != 0) {
        const uint32_t node = reach->stack[--left];
        for (uint32_t i = reach->caller[node]; i != NONE; i = reach->link[i].next)
            visit(reach, reach->link[i].what, variable, &left);
        if (node == reach->functions) continue;
        visit(reach, reach->functions, variable, &left);
        const uint32_t at = add_link(reach, variable, NONE);
        if (reach->failed) return;
        if (reach->shared[node] == NONE) reach->shared[node] = at;
        else reach->link[reach->last[node]].next = at;
        reach->last[node] = at;
    }
}

static void list_shared(struct reader *r, const struct reach *reach, struct function *f)
{
    uint32_t count = 0;
    for (uint32_t i = reach->shared[f->index]; i != NONE; i = reach->link[i].next) count++;
    f->shared = reader_allocate(r, count * sizeof *f->shared);
    if (f->shared == NULL) return;
    uint64_t bytes = 0;
    for (uint32_t i = reach->shared[f->index]; i != NONE; i = reach->link[i].next) {
        const struct variable *variable = r->module->variables[reach->link[i].what];
        f->shared[f->shared_count++] = variable;
        if (variable->bytes == 0) continue;
        bytes = (bytes + variable->align - 1) / variable->align * variable->align + variable->bytes;
    }
    f->static_shared_bytes = bytes;
}

static uint32_t *filled(uint32_t count, int byte)
{
    uint32_t *list = malloc(((size_t)count + 1) * sizeof *list);
    if (list != NULL) memset(list, byte, ((size_t)count + 1) * sizeof *list);
    return list;
}

void link_module(struct reader *r)
{
    struct module *m = r->module;
    if (m->location_count == 0) m->location_count = 1;
    const uint32_t nodes = m->function_count + 1;
    struct reach reach = { .module = m, .functions = m->function_count, .caller = filled(nodes, 0xff),
                           .named = filled(m->variable_count, 0xff), .shared = filled(nodes, 0xff),
                           .last = filled(nodes, 0xff), .seen = filled(nodes, 0), .stack = filled(nodes, 0) };
    reach.failed = reach.caller == NULL || reach.named == NULL || reach.shared == NULL || reach.last == NULL
                   || reach.seen == NULL || reach.stack == NULL;
    for (uint32_t f = 0; f < m->function_count && !reach.failed; f++) note_function(&reach, m->functions[f]);
    for (uint32_t v = 0; v < m->variable_count && !reach.failed; v++) spread(&reach, v);
    for (uint32_t f = 0; f < m->function_count && !reach.failed; f++) list_shared(r, &reach, m->functions[f]);
    if (reach.failed) reader_fail(r, "no memory for the calls of this module");
    free(reach.link), free(reach.caller), free(reach.named), free(reach.shared);
    free(reach.last), free(reach.seen), free(reach.stack);
}
