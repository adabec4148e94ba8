/* Variables of every state space, registers, parameters, initializers. */
#include "ptx/reader.h"

#include <string.h>

enum { MAX_DIMENSIONS = 8, MAX_RELOCATIONS = 1 << 20 };
#define MAX_VARIABLE_BYTES (UINT64_C(1) << 31)

enum space space_named(const struct token *t)
{
    static const struct { const char *word; enum space space; } words[] = {
        { ".global", SPACE_GLOBAL }, { ".shared", SPACE_SHARED }, { ".local", SPACE_LOCAL },
        { ".const", SPACE_CONST }, { ".param", SPACE_PARAM },
    };
    for (size_t i = 0; t->kind == TOKEN_WORD && i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].word) == t->length && memcmp(words[i].word, t->text, t->length) == 0) return words[i].space;
    return SPACE_COUNT;
}

static enum ptx_type read_type(struct reader *r)
{
    const enum ptx_type type =
        r->token.kind == TOKEN_WORD ? type_named(r->token.text + 1, r->token.length - 1) : T_NONE;
    if (type == T_NONE || type_kind(type) == 'x') {
        reader_fail(r, "a type should stand here, as .b32");
        return T_B32;
    }
    token_next(r);
    return type;
}

static uint32_t read_alignment(struct reader *r)
{
    token_next(r);
    const int64_t align = read_integer(r, "an alignment", 1, 1 << 20);
    if ((align & (align - 1)) != 0) reader_fail(r, "an alignment is a power of two");
    return r->failed ? 1 : (uint32_t)align;
}

static void add_symbol(struct reader *r, struct variable *v)
{
    const uint32_t length = (uint32_t)strlen(v->name);
    struct symbol *old = scope_find_here(r, v->name, length);
    if (old != NULL && !(old->kind == SYMBOL_VARIABLE && old->variable->external && r->scope->outer == NULL)) {
        reader_fail_at(r, v->line, 1, "'%.100s' is declared twice", v->name);
        return;
    }
    struct symbol *s = old != NULL ? old : scope_add(r, v->name, length, SYMBOL_VARIABLE);
    if (s == NULL) return;
    s->kind = SYMBOL_VARIABLE;
    s->variable = v;
}

/* [4][8], [] as the first one only.  Sets count; *open where the first is empty. */
static void read_dimensions(struct reader *r, struct variable *v, bool *open)
{
    *open = false;
    v->count = 1;
    for (int i = 0; token_is(r, '['); i++) {
        if (i == MAX_DIMENSIONS) reader_fail(r, "an array has at most %d dimensions", MAX_DIMENSIONS);
        token_next(r);
        if (i == 0 && token_take(r, ']')) {
            *open = true;
            continue;
        }
        const uint64_t size = (uint64_t)read_integer(r, "the size of an array", 0, (int64_t)MAX_VARIABLE_BYTES);
        token_expect(r, ']');
        if (__builtin_mul_overflow(v->count, size, &v->count) || v->count > MAX_VARIABLE_BYTES) {
            reader_fail(r, "this array is too large");
            v->count = 1;
        }
    }
}

/* ---- initializers ---- */

struct initializer {
    struct variable *variable;
    uint8_t *bytes;
    uint64_t at, capacity;
    uint32_t element;
    uint32_t relocations;
    struct relocation *relocation;
    uint32_t relocation_capacity;
};

static bool reserve(struct reader *r, struct initializer *i)
{
    if (i->at + i->element <= i->capacity) return true;
    if (i->variable->count != 0) {
        reader_fail(r, "more initial values than the variable has elements");
        return false;
    }
    const uint64_t capacity = i->capacity == 0 ? 256 : i->capacity * 2;
    uint8_t *larger = capacity > MAX_VARIABLE_BYTES ? NULL : reader_allocate(r, capacity);
    if (larger == NULL) return false;
    if (i->at != 0) memcpy(larger, i->bytes, i->at);
    i->bytes = larger;
    i->capacity = capacity;
    return true;
}

static void add_relocation(struct reader *r, struct initializer *i, bool generic)
{
    const struct symbol *s = scope_find(r, r->token.text, r->token.length);
    if (s == NULL || (s->kind != SYMBOL_VARIABLE && s->kind != SYMBOL_FUNCTION)) {
        reader_fail(r, "'%.*s' is not declared", (int)(r->token.length > 100 ? 100 : r->token.length), r->token.text);
        return;
    }
    if (i->element < 8) reader_fail(r, "an address needs an element of 8 bytes");
    if (i->relocations == i->relocation_capacity) {
        const uint32_t capacity = i->relocation_capacity == 0 ? 8 : i->relocation_capacity * 2;
        struct relocation *larger = capacity > MAX_RELOCATIONS ? NULL : reader_allocate(r, capacity * sizeof *larger);
        if (larger == NULL) return;
        if (i->relocations != 0) memcpy(larger, i->relocation, i->relocations * sizeof *larger);
        i->relocation = larger;
        i->relocation_capacity = capacity;
    }
    token_next(r);
    int64_t addend = 0;
    if (generic) token_expect(r, ')');
    if (token_is(r, '+') || token_is(r, '-')) addend = read_integer(r, "an offset", INT32_MIN, INT32_MAX);
    if (r->failed) return;
    i->relocation[i->relocations++] = (struct relocation){
        .offset = (uint32_t)i->at, .bytes = 8, .addend = addend, .generic = generic,
        .variable = s->kind == SYMBOL_VARIABLE ? s->variable : NULL,
        .function = s->kind == SYMBOL_FUNCTION ? s->function : NULL,
    };
}

static void read_value(struct reader *r, struct initializer *i)
{
    if (!reserve(r, i)) return;
    if (token_is_name(r, "generic")) {
        token_next(r);
        token_expect(r, '(');
        add_relocation(r, i, true);
    } else if (r->token.kind == TOKEN_NAME && !token_is_name(r, "WARP_SZ")) {
        add_relocation(r, i, false);
    } else {
        const struct constant c = read_expression(r);
        uint64_t bits = 0;
        const char *wrong = r->failed ? NULL : constant_as(&c, i->variable->type, &bits);
        if (wrong != NULL) reader_fail(r, "%s", wrong);
        memcpy(i->bytes + i->at, &bits, i->element > 8 ? 8 : i->element);
    }
    i->at += i->element;
}

static void read_values(struct reader *r, struct initializer *i, int nesting)
{
    if (nesting > MAX_DIMENSIONS) {
        reader_fail(r, "these initial values are nested deeper than %d", MAX_DIMENSIONS);
        return;
    }
    if (!token_take(r, '{')) {
        read_value(r, i);
        return;
    }
    while (!r->failed && !token_is(r, '}')) {
        read_values(r, i, nesting + 1);
        if (!token_take(r, ',')) break;
    }
    token_expect(r, '}');
}

static void read_initializer(struct reader *r, struct variable *v, bool open)
{
    struct initializer i = { .variable = v, .element = type_bytes(v->type), .capacity = v->bytes };
    if (v->space != SPACE_GLOBAL && v->space != SPACE_CONST) {
        reader_fail(r, "only .global and .const variables have initial values");
        return;
    }
    if (open) v->count = 0;
    i.bytes = reader_allocate(r, v->bytes);
    if (i.bytes == NULL) return;
    read_values(r, &i, 0);
    if (open) v->count = i.at / i.element, v->bytes = i.at;
    v->initial = i.bytes;
    v->relocations = i.relocation;
    v->relocation_count = i.relocations;
}

/* ---- declarations ---- */

/* What stands before the name: .align, .v2, type, .ptr with its space and alignment, .attribute(..). */
static void read_head(struct reader *r, struct variable *v)
{
    uint32_t align = 0;
    v->vector = 1;
    while (r->token.kind == TOKEN_WORD) {
        if (token_is_word(r, ".align")) {
            align = read_alignment(r);
        } else if (token_is_word(r, ".v2") || token_is_word(r, ".v4")) {
            v->vector = token_is_word(r, ".v2") ? 2 : 4;
            token_next(r);
        } else if (token_is_word(r, ".attribute")) {
            token_next(r);
            token_expect(r, '(');
            if (!token_is_word(r, ".managed")) reader_fail(r, "this attribute is not known here");
            v->managed = true;
            token_next(r);
            token_expect(r, ')');
        } else if (token_is_word(r, ".ptr") && v->type != T_NONE) {
            v->pointer = true;
            token_next(r);
            if (space_named(&r->token) != SPACE_COUNT) token_next(r);
            if (token_is_word(r, ".align")) read_alignment(r);
        } else {
            v->type = read_type(r);
        }
    }
    if (v->type == T_NONE) reader_fail(r, "a type should stand here, as .b32");
    const uint32_t natural = r->failed ? 1 : type_bytes(v->type) * v->vector;
    v->align = align == 0 ? natural : align;
}

/* Reads name, dimensions and initial values of one variable. */
static struct variable *read_declarator(struct reader *r, const struct variable *head)
{
    struct variable *v = reader_allocate(r, sizeof *v);
    if (v == NULL) return NULL;
    *v = *head;
    v->line = r->token.line;
    uint32_t length;
    v->name = token_expect_name(r, "a name", &length);
    bool open;
    read_dimensions(r, v, &open);
    if (v->type == T_PRED || r->failed) {
        reader_fail(r, "predicates are registers only");
        return NULL;
    }
    if (open) v->count = 0;
    if (__builtin_mul_overflow(v->count, (uint64_t)type_bytes(v->type) * v->vector, &v->bytes)
        || v->bytes > MAX_VARIABLE_BYTES) {
        reader_fail(r, "this variable is too large");
        return NULL;
    }
    if (token_take(r, '=')) read_initializer(r, v, open);
    else if (open && !(v->external || v->space == SPACE_PARAM))
        reader_fail(r, "an array of unknown size is .extern or has initial values");
    return r->failed ? NULL : v;
}

static uint64_t place(uint64_t *used, const struct variable *v)
{
    const uint64_t offset = (*used + v->align - 1) / v->align * v->align;
    *used = offset + v->bytes;
    return offset;
}

static void keep(struct reader *r, struct variable *v)
{
    struct module *m = r->module;
    if (v->space == SPACE_LOCAL || v->space == SPACE_PARAM) {
        if (r->function == NULL) {
            reader_fail_at(r, v->line, 1, "a .local or .param variable stands in a function");
            return;
        }
        v->offset = place(&r->function->local_bytes, v);
        if (v->align > r->function->local_align) r->function->local_align = v->align;
    } else {
        if (!reader_grow(r, (void **)&m->variables, m->variable_count, &r->variable_capacity, sizeof *m->variables,
                         1u << 20, "variables"))
            return;
        v->index = m->variable_count;
        m->variables[m->variable_count++] = v;
    }
    add_symbol(r, v);
}

void read_variable(struct reader *r, bool external, bool visible)
{
    struct variable head = { .external = external, .visible = visible, .inside_function = r->function != NULL };
    head.space = space_named(&r->token);
    token_next(r);
    read_head(r, &head);
    do {
        struct variable *v = read_declarator(r, &head);
        if (v != NULL) keep(r, v);
    } while (!r->failed && token_take(r, ','));
    token_expect(r, ';');
}

struct variable *read_parameter(struct reader *r, uint64_t *offset)
{
    struct variable head = { .is_parameter = true, .inside_function = true, .of_entry = r->function->entry };
    const bool in_register = token_is_word(r, ".reg");
    if (!in_register && !token_is_word(r, ".param")) {
        reader_fail(r, "a parameter begins with .param or .reg");
        return NULL;
    }
    head.space = in_register ? SPACE_REG : SPACE_PARAM;
    token_next(r);
    read_head(r, &head);
    struct variable *v = read_declarator(r, &head);
    if (v != NULL && !in_register) v->offset = place(offset, v);
    return v;
}

/* ---- registers ---- */

static uint32_t take_rows(struct reader *r, uint32_t count)
{
    struct function *f = r->function;
    if (count > r->limits->registers || r->registers > r->limits->registers - count) {
        reader_fail(r, "this module has more than %u registers", r->limits->registers);
        return 1;
    }
    const uint32_t slot = f->rows;
    f->rows += count;
    r->registers += count;
    return slot;
}

static void read_one_register(struct reader *r, enum ptx_type type)
{
    uint32_t length;
    const char *name = token_expect_name(r, "the name of a register", &length);
    if (r->failed) return;
    const uint32_t rows = type == T_B128 ? 2 : 1;
    bool family = false;
    uint32_t count = 1;
    if (token_take(r, '\x01')) {
        family = true;
        if (r->token.kind != TOKEN_INTEGER || r->token.value > r->limits->registers / 2) {
            reader_fail(r, "the number of registers is an integer from 0 to %u", r->limits->registers / 2);
            return;
        }
        count = (uint32_t)r->token.value;
        token_next(r);
        token_expect(r, '\x02');
    } else if (scope_find_here(r, name, length) != NULL) {
        reader_fail(r, "'%.100s' is declared twice", name);
        return;
    }
    const uint32_t slot = take_rows(r, count * rows);
    struct symbol *s = r->failed ? NULL : scope_add(r, name, length, SYMBOL_REGISTER);
    if (s == NULL) return;
    s->type = type;
    s->is_family = family;
    if (family) r->scope->has_families = true;
    s->slot = slot;
    s->count = count;
}

void read_registers(struct reader *r)
{
    token_next(r);
    if (token_is_word(r, ".v2") || token_is_word(r, ".v4")) {
        reader_fail(r, "vector registers are not known here: declare the elements as registers of their own");
        return;
    }
    const enum ptx_type type = read_type(r);
    do read_one_register(r, type); while (!r->failed && token_take(r, ','));
    token_expect(r, ';');
}

/* A parameter that is passed in a register is a register of the callee. */
void add_parameter(struct reader *r, struct variable *v)
{
    if (v->space == SPACE_REG) {
        struct symbol *s = scope_add(r, v->name, (uint32_t)strlen(v->name), SYMBOL_REGISTER);
        v->slot = take_rows(r, v->type == T_B128 ? 2 : 1);
        if (s == NULL) return;
        s->type = v->type;
        s->slot = v->slot;
        s->count = 1;
        return;
    }
    add_symbol(r, v);
}
