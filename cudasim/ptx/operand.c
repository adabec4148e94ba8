/* Operands as they are written, before an instruction's row says what they must be. */
#include "ptx/parsed.h"
#include "ptx/special.h"

#include <string.h>

const struct special_info special_table[SPECIAL_COUNT] = {
#define X(id, name, type) [SPECIAL_##id] = { name, T_##type },
    PTX_SPECIALS(X)
#undef X
};

enum special special_named(const char *name, size_t length)
{
    for (int i = 0; i < SPECIAL_COUNT; i++)
        if (strlen(special_table[i].name) == length && memcmp(special_table[i].name, name, length) == 0)
            return (enum special)i;
    return SPECIAL_COUNT;
}

static struct parsed *add(struct reader *r, struct parsed_list *list)
{
    if (list->count == MAX_PARSED) {
        reader_fail(r, "an instruction has at most %d operands", MAX_PARSED);
        return NULL;
    }
    struct parsed *p = &list->item[list->count++];
    *p = (struct parsed){ .at = r->token };
    return p;
}

/* %tid.x and the like: the name and the words behind it. */
static bool read_special(struct reader *r, struct parsed *p)
{
    char name[48];
    size_t length = r->token.length;
    if (length >= sizeof name) return false;
    memcpy(name, r->token.text, length);
    enum special s = special_named(name, length);
    if (s == SPECIAL_COUNT && *r->at == '.' && length + 3 < sizeof name) {
        name[length] = '.';
        name[length + 1] = r->end - r->at > 1 ? r->at[1] : '\0';
        s = special_named(name, length + 2);
        if (s != SPECIAL_COUNT) token_next(r);
    }
    if (s == SPECIAL_COUNT) return false;
    p->operand.kind = OPERAND_SPECIAL;
    p->operand.type = (uint8_t)special_table[s].type;
    p->operand.value = s;
    token_next(r);
    return true;
}

static void read_name(struct reader *r, struct parsed *p)
{
    const struct token name = r->token;
    uint32_t slot;
    enum ptx_type type;
    if (name.length == 1 && name.text[0] == '_') {
        p->operand.kind = OPERAND_SINK;
        token_next(r);
        return;
    }
    if (scope_register(r, name.text, name.length, &slot, &type)) {
        p->operand.kind = OPERAND_REGISTER;
        p->operand.slot = slot;
        p->operand.type = (uint8_t)type;
        token_next(r);
        return;
    }
    const struct symbol *s = scope_find(r, name.text, name.length);
    if (s == NULL && name.text[0] == '%') {
        if (read_special(r, p)) return;
        reader_fail(r, "the register '%.*s' is not declared", (int)(name.length > 100 ? 100 : name.length), name.text);
        return;
    }
    token_next(r);
    p->is_name = s == NULL || s->kind == SYMBOL_LABEL || s->kind == SYMBOL_TABLE;
    if (p->is_name) return;
    if (s->kind == SYMBOL_VARIABLE) {
        p->operand.kind = OPERAND_SYMBOL;
        p->operand.variable = s->variable;
        if (token_is(r, '+') || token_is(r, '-')) p->operand.value = read_integer(r, "an offset", INT32_MIN, INT32_MAX);
    } else {
        p->operand.kind = s->kind == SYMBOL_FUNCTION ? OPERAND_FUNCTION : OPERAND_PROTOTYPE;
        p->operand.function = s->function;
    }
}

static void read_simple(struct reader *r, struct parsed *p)
{
    if (r->token.kind == TOKEN_NAME && !token_is_name(r, "WARP_SZ")) {
        read_name(r, p);
    } else if (token_is(r, '!')) {
        token_next(r);
        if (r->token.kind != TOKEN_NAME) {
            reader_fail(r, "a predicate should stand behind '!'");
            return;
        }
        read_name(r, p);
        p->operand.negated = true;
    } else {
        p->is_constant = true;
        p->constant = read_expression(r);
    }
}

/* {a, b, _, 0} */
static void read_vector(struct reader *r, struct parsed_list *list, struct parsed *p)
{
    token_expect(r, '{');
    p->operand.kind = OPERAND_VECTOR;
    p->first = list->elements;
    while (!r->failed) {
        if (list->elements == MAX_ELEMENTS) {
            reader_fail(r, "the vectors of an instruction have at most %d elements", MAX_ELEMENTS);
            return;
        }
        struct parsed *e = &list->element[list->elements++];
        *e = (struct parsed){ .at = r->token };
        read_simple(r, e);
        p->operand.count++;
        if (!token_take(r, ',')) break;
    }
    token_expect(r, '}');
}

/* [base+offset], [base, {coordinates}]; the coordinates become an operand of their own. */
static void read_address(struct reader *r, struct parsed_list *list, struct parsed *p)
{
    token_expect(r, '[');
    p->operand.kind = OPERAND_ADDRESS;
    uint32_t slot;
    enum ptx_type type;
    if (r->token.kind == TOKEN_NAME && !token_is_name(r, "WARP_SZ")) {
        const struct symbol *s;
        if (scope_register(r, r->token.text, r->token.length, &slot, &type)) {
            p->operand.based = true;
            p->operand.slot = slot;
            p->operand.type = (uint8_t)type;
            if (type_kind(type) == 'f' || type_kind(type) == 'p' || type_bits(type) < 32 || type_bits(type) > 64)
                reader_fail(r, "an address is a register of 32 or 64 bits");
        } else if ((s = scope_find(r, r->token.text, r->token.length)) != NULL && s->kind == SYMBOL_VARIABLE) {
            p->operand.variable = s->variable;
        } else {
            reader_fail(r, "'%.*s' is no declared register or variable",
                        (int)(r->token.length > 100 ? 100 : r->token.length), r->token.text);
        }
        token_next(r);
        if (token_is(r, '+') || token_is(r, '-')) p->operand.value = read_integer(r, "an offset", INT32_MIN, INT32_MAX);
    } else {
        p->operand.value = read_integer(r, "an address", INT64_MIN, INT64_MAX);
    }
    if (token_take(r, ',')) {
        struct parsed *coordinates = add(r, list);
        if (coordinates == NULL) return;
        coordinates->in_address = true;
        if (token_is(r, '{')) read_vector(r, list, coordinates);
        else read_simple(r, coordinates);
        if (token_take(r, ',')) reader_fail(r, "an address has at most two parts");
    }
    token_expect(r, ']');
}

/* (a, b): the lists of call */
static void read_list(struct reader *r, struct parsed_list *list, struct parsed *p)
{
    token_next(r);
    p->operand.kind = OPERAND_VECTOR;
    p->is_list = true;
    p->first = list->elements;
    while (!r->failed && !token_is(r, ')')) {
        if (list->elements == MAX_ELEMENTS) {
            reader_fail(r, "a call has at most %d arguments", MAX_ELEMENTS);
            return;
        }
        struct parsed *e = &list->element[list->elements++];
        *e = (struct parsed){ .at = r->token };
        read_simple(r, e);
        p->operand.count++;
        if (!token_take(r, ',')) break;
    }
    token_expect(r, ')');
}

void read_operands(struct reader *r, struct parsed_list *list, bool is_call)
{
    list->count = list->elements = 0;
    bool pair = false;
    while (!r->failed && !token_is(r, ';')) {
        struct parsed *p = add(r, list);
        if (p == NULL) return;
        p->pair = pair;
        if (token_is(r, '{')) read_vector(r, list, p);
        else if (token_is(r, '[')) read_address(r, list, p);
        else if (is_call && token_is(r, '(')) read_list(r, list, p);
        else read_simple(r, p);
        pair = token_take(r, '|');
        if (!pair && !token_take(r, ',')) break;
    }
    if (!token_is(r, ';')) reader_fail(r, "',' or ';' should stand here");
}
