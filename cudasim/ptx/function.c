/* Functions and entries: heads, directives, bodies, labels, prototypes. */
#include "ptx/reader.h"

#include <string.h>

enum { MAX_PARAMETERS = 4096, MAX_TARGETS = 1 << 16 };

/* (.param .b32 a, .param .b64 b): appended to an array that the arena holds. */
static const struct variable **read_parameters(struct reader *r, uint64_t *offset, uint32_t *count, bool declare)
{
    const struct variable *list[MAX_PARAMETERS];
    uint32_t n = 0;
    token_expect(r, '(');
    while (!r->failed && !token_is(r, ')')) {
        struct variable *v = read_parameter(r, offset);
        if (n == MAX_PARAMETERS) reader_fail(r, "a function has at most %d parameters", MAX_PARAMETERS);
        if (r->failed) return NULL;
        if (declare && strcmp(v->name, "_") != 0) add_parameter(r, v);
        list[n++] = v;
        if (!token_take(r, ',')) break;
    }
    token_expect(r, ')');
    const struct variable **kept = reader_allocate(r, n * sizeof *kept);
    if (kept == NULL) return NULL;
    if (n != 0) memcpy(kept, list, n * sizeof *kept);
    *count = n;
    return kept;
}

static struct dimensions read_dimensions3(struct reader *r)
{
    struct dimensions d = { 1, 1, 1, true };
    token_next(r);
    d.x = (uint32_t)read_integer(r, "an extent", 0, INT32_MAX);
    if (token_take(r, ',')) d.y = (uint32_t)read_integer(r, "an extent", 0, INT32_MAX);
    if (token_take(r, ',')) d.z = (uint32_t)read_integer(r, "an extent", 0, INT32_MAX);
    return d;
}

static uint32_t read_count(struct reader *r)
{
    token_next(r);
    return (uint32_t)read_integer(r, "a count", 0, INT32_MAX);
}

static void read_directives(struct reader *r, struct function *f)
{
    while (r->token.kind == TOKEN_WORD) {
        if (token_is_word(r, ".maxntid")) f->maxntid = read_dimensions3(r);
        else if (token_is_word(r, ".reqntid")) f->reqntid = read_dimensions3(r);
        else if (token_is_word(r, ".reqnctapercluster")) f->reqnctapercluster = read_dimensions3(r);
        else if (token_is_word(r, ".explicitcluster")) f->explicitcluster = true, token_next(r);
        else if (token_is_word(r, ".minnctapersm")) f->minnctapersm = read_count(r);
        else if (token_is_word(r, ".maxnctapersm")) f->maxnctapersm = read_count(r);
        else if (token_is_word(r, ".maxnreg")) f->maxnreg = read_count(r);
        else if (token_is_word(r, ".maxclusterrank")) f->maxclusterrank = read_count(r);
        else if (token_is_word(r, ".noreturn")) f->noreturn = true, token_next(r);
        else if (token_is_word(r, ".pragma")) read_pragma(r);
        else if (!read_debug(r)) {
            reader_fail(r, "the directive %.*s is not known here", (int)(r->token.length > 60 ? 60 : r->token.length),
                        r->token.text);
            return;
        }
    }
}

static struct function *declare(struct reader *r, const char *name, uint32_t length)
{
    struct module *m = r->module;
    struct symbol *s = scope_find_here(r, name, length);
    if (s != NULL && s->kind == SYMBOL_FUNCTION) return s->function;
    if (s != NULL) {
        reader_fail(r, "'%.100s' is declared twice", name);
        return NULL;
    }
    if (!reader_grow(r, (void **)&m->functions, m->function_count, &r->function_capacity, sizeof *m->functions,
                     1u << 16, "functions"))
        return NULL;
    struct function *f = reader_allocate(r, sizeof *f);
    s = f == NULL ? NULL : scope_add(r, name, length, SYMBOL_FUNCTION);
    if (s == NULL) return NULL;
    f->name = name;
    f->index = m->function_count;
    m->functions[m->function_count++] = f;
    s->function = f;
    return f;
}

/* ---- bodies ---- */

static void add_label(struct reader *r, const struct token *name)
{
    const char *text = arena_string(&r->module->arena, name->text, name->length);
    if (text == NULL || scope_find_here(r, text, name->length) != NULL) {
        reader_fail_at(r, name->line, name->column, "'%.*s' is declared twice",
                       (int)(name->length > 100 ? 100 : name->length), name->text);
        return;
    }
    struct symbol *s = scope_add(r, text, name->length, SYMBOL_LABEL);
    if (s != NULL) s->slot = r->module->code_count;
}

/* NAME: .branchtargets a, b, c; */
static void read_targets(struct reader *r, const struct token *name)
{
    struct token list[64];
    uint32_t count = 0, capacity = 64;
    struct token *names = list;
    token_next(r);
    while (!r->failed) {
        if (r->token.kind != TOKEN_NAME || count == MAX_TARGETS) {
            reader_fail(r, "a label should stand here");
            return;
        }
        if (count == capacity) {
            struct token *larger = reader_allocate(r, 2 * capacity * sizeof *larger);
            if (larger == NULL) return;
            memcpy(larger, names, count * sizeof *larger);
            names = larger;
            capacity *= 2;
        }
        names[count++] = r->token;
        token_next(r);
        if (!token_take(r, ',')) break;
    }
    token_expect(r, ';');
    uint32_t *targets = reader_allocate(r, count * sizeof *targets);
    const char *text = arena_string(&r->module->arena, name->text, name->length);
    if (targets == NULL || text == NULL) return;
    for (uint32_t i = 0; i < count; i++) fixup_add(r, &names[i], NULL, &targets[i], NULL);
    struct symbol *s = scope_add(r, text, name->length, SYMBOL_TABLE);
    if (s == NULL) return;
    s->targets = targets;
    s->count = count;
}

void read_prototype(struct reader *r, const struct token *label)
{
    struct function *f = reader_allocate(r, sizeof *f);
    const char *text = arena_string(&r->module->arena, label->text, label->length);
    if (f == NULL || text == NULL) return;
    f->name = text;
    token_next(r);
    uint64_t bytes = 0;
    if (token_is(r, '(')) f->results = read_parameters(r, &bytes, &f->result_count, false);
    uint32_t length;
    token_expect_name(r, "_", &length);
    if (token_is(r, '(')) f->parameters = read_parameters(r, &bytes, &f->parameter_count, false);
    if (token_is_word(r, ".noreturn")) token_next(r);
    token_expect(r, ';');
    struct symbol *s = scope_add(r, text, label->length, SYMBOL_PROTOTYPE);
    if (s != NULL) s->function = f;
}

static void read_labelled(struct reader *r, const struct token *name)
{
    if (token_is_word(r, ".branchtargets")) read_targets(r, name);
    else if (token_is_word(r, ".callprototype")) read_prototype(r, name);
    else add_label(r, name);
}

/* A name is a label if ':' follows. */
static bool label_follows(const struct reader *r)
{
    const char *at = r->at;
    while (at < r->end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) at++;
    return r->token.kind == TOKEN_NAME && at < r->end && *at == ':';
}

static void read_body_directive(struct reader *r)
{
    if (token_is_word(r, ".reg")) read_registers(r);
    else if (space_named(&r->token) != SPACE_COUNT) read_variable(r, false, false);
    else if (token_is_word(r, ".extern")) token_next(r), read_variable(r, true, false);
    else if (token_is_word(r, ".pragma")) read_pragma(r);
    else if (!read_debug(r))
        reader_fail(r, "the directive %.*s is not known here", (int)(r->token.length > 60 ? 60 : r->token.length),
                    r->token.text);
}

static void read_body(struct reader *r)
{
    const uint32_t outermost = r->scope->depth;
    token_expect(r, '{');
    while (!r->failed) {
        if (r->token.kind == TOKEN_END) {
            reader_fail(r, "the text ends inside the function '%.100s'", r->function->name);
        } else if (token_take(r, '{')) {
            scope_open(r);
        } else if (token_is(r, '}')) {
            if (r->scope->depth == outermost) return;
            scope_close(r);
            token_next(r);
        } else if (token_take(r, ';')) {
        } else if (r->token.kind == TOKEN_WORD) {
            read_body_directive(r);
        } else if (label_follows(r)) {
            const struct token name = r->token;
            token_next(r);
            token_expect(r, ':');
            read_labelled(r, &name);
        } else {
            read_instruction(r);
        }
    }
}

static void define(struct reader *r, struct function *f)
{
    if (f->defined) {
        reader_fail(r, "'%.100s' has a body already", f->name);
        return;
    }
    f->defined = true;
    f->code_begin = r->module->code_count;
    f->line = r->token.line;
    read_body(r);
    read_end_of_body(r);
    f->code_end = r->module->code_count;
    scope_close(r);
    token_expect(r, '}');
}

void read_function(struct reader *r, bool entry, bool external, bool visible, bool weak)
{
    struct function head = { .entry = entry, .visible = visible, .external = external, .weak = weak, .rows = 1,
                             .local_align = 16 };
    struct scope_level *module_scope = r->scope;
    r->function = &head;
    scope_open(r);
    if (token_is(r, '(')) head.results = read_parameters(r, &head.local_bytes, &head.result_count, true);
    uint32_t length;
    const char *name = token_expect_name(r, "the name of the function", &length);
    uint64_t *offset = entry ? &head.parameter_bytes : &head.local_bytes;
    if (token_is(r, '(')) head.parameters = read_parameters(r, offset, &head.parameter_count, true);
    read_directives(r, &head);
    struct scope_level *inner = r->scope;
    r->scope = module_scope;
    struct function *f = r->failed ? NULL : declare(r, name, length);
    if (f == NULL) return;
    if (!f->defined) {
        head.name = f->name;
        head.index = f->index;
        *f = head;
    }
    r->function = f;
    if (token_is(r, '{')) {
        r->scope = inner;
        define(r, f);
    } else {
        token_expect(r, ';');
    }
    r->function = NULL;
    if (!r->failed) r->scope = module_scope;
}
