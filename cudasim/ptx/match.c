/* Matching of operands with a row's list. */
#include "ptx/parsed.h"
#include "ptx/special.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One item of a row's operands column. */
struct spec {
    bool optional, pair, must_pair, sink, wider, loose;
    char word[32];
    char kind;
    enum ptx_type type;
    int vector;
};
enum { VECTOR_NONE = 0, VECTOR_AS_MODIFIER = -1, VECTOR_ANY = -2 };

static enum ptx_type double_width(enum ptx_type type)
{
    switch (type) {
    case T_U8: return T_U16;    case T_S8: return T_S16;    case T_B8: return T_B16;
    case T_U16: return T_U32;   case T_S16: return T_S32;   case T_B16: return T_B32;
    case T_U32: return T_U64;   case T_S32: return T_S64;   case T_B32: return T_B64;
    default: return T_B128;
    }
}

static enum ptx_type spec_type(const char **at, const struct insn *in)
{
    const size_t length = strcspn(*at, " +*{");
    const char *text = *at;
    *at += length;
    if (length == 1 && text[0] >= '1' && text[0] < '1' + INSN_TYPES) return (enum ptx_type)in->type[text[0] - '1'];
    if (length == 2 && text[0] == 'w') return double_width((enum ptx_type)in->type[text[1] - '1']);
    return type_named(text, length);
}

static const char *next_spec(const char *at, const struct insn *in, struct spec *s)
{
    *s = (struct spec){ .type = T_NONE };
    at += strspn(at, " ");
    if (*at == '\0') return NULL;
    if (*at == '?') s->optional = true, at++;
    if (*at == '(') {
        const size_t length = strcspn(at, ")") - 1;
        snprintf(s->word, sizeof s->word, "%.*s", (int)length, at + 1);
        at += length + 2;
    }
    if (*at == '|' || *at == '&') s->pair = true, s->must_pair = *at == '&', at++;
    s->kind = *at++;
    if (*at == '_') s->sink = true, at++;
    if (*at == ':') at++, s->type = spec_type(&at, in);
    if (*at == '+') s->wider = true, at++;
    if (*at == '*') s->vector = VECTOR_AS_MODIFIER, at++;
    if (*at == '{') {
        s->vector = at[1] == '}' ? VECTOR_ANY : (int)strtol(at + 1, NULL, 10);
        s->loose = at[1] == '1' && at[2] == '?';
        at += strcspn(at, "}") + 1;
    }
    return at;
}

bool row_writes(const struct row *row, uint32_t i)
{
    static const struct insn any;
    uint32_t place = 0;
    struct spec s;
    for (const char *at = row->operands; (at = next_spec(at, &any, &s)) != NULL; place += s.kind == 'A' ? 2 : 1)
        if (place == i) return s.kind == 'd' || s.kind == 'P';
    return false;
}

struct match {
    struct reader *r;
    struct insn *in;
    const struct parsed_list *list;
    struct operand *out;
    struct operand *elements;
    uint32_t element_count;
    struct mismatch *why;
};

__attribute__((format(printf, 3, 4)))
static bool refuse(struct match *m, const struct parsed *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(m->why->sentence, sizeof m->why->sentence, format, arguments);
    va_end(arguments);
    m->why->at = p->at;
    return false;
}

static uint32_t preset_slot(struct match *m, const struct operand *o)
{
    struct function *f = m->r->function;
    int looked = 0;
    for (const struct preset *p = f->presets; p != NULL && looked < 256; p = p->next, looked++)
        if (p->kind == o->kind && p->value == o->value
            && p->variable == (o->kind == OPERAND_SYMBOL ? o->variable : NULL)
            && p->function == (o->kind == OPERAND_FUNCTION ? o->function : NULL))
            return p->slot;
    struct preset *p = reader_allocate(m->r, sizeof *p);
    if (p == NULL) return 0;
    *p = (struct preset){ .next = f->presets, .slot = f->rows++, .kind = o->kind, .value = o->value };
    if (o->kind == OPERAND_SYMBOL) p->variable = o->variable;
    if (o->kind == OPERAND_FUNCTION) p->function = o->function;
    f->presets = p;
    f->preset_count++;
    return p->slot;
}

/* A source that is no register: special registers that stay, addresses. */
static bool take_preset(struct match *m, const struct parsed *p, const struct spec *s, struct operand *o)
{
    const uint32_t bits = type_bits(s->type);
    if (o->kind == OPERAND_SPECIAL) {
        if (o->value == SPECIAL_CLOCK || o->value == SPECIAL_CLOCK_HI || o->value == SPECIAL_CLOCK64 ||
            (o->value >= SPECIAL_GLOBALTIMER && o->value <= SPECIAL_GLOBALTIMER_HI))
            return refuse(m, p, "this special register can be read by mov only");
        if (!type_accepts(s->type, (enum ptx_type)o->type, s->wider) && !(o->type == T_U32 && bits == 16))
            return refuse(m, p, "%s has type .%s, a .%s operand should stand here", special_table[o->value].name,
                          type_name((enum ptx_type)o->type), type_name(s->type));
    } else if ((bits != 64 && bits != 32) || type_kind(s->type) == 'f') {
        return refuse(m, p, "an address does not fit a .%s operand", type_name(s->type));
    }
    const uint32_t slot = preset_slot(m, o);
    *o = (struct operand){ .kind = OPERAND_REGISTER, .slot = slot, .type = (uint8_t)s->type };
    return true;
}

static bool take_register(struct match *m, const struct parsed *p, const struct spec *s, const struct operand *o)
{
    if (o->negated) return refuse(m, p, "'!' belongs before predicates");
    if (type_accepts(s->type, (enum ptx_type)o->type, s->wider)) return true;
    return refuse(m, p, "this register has type .%s, a .%s operand should stand here",
                  type_name((enum ptx_type)o->type), type_name(s->type));
}

static bool take_scalar(struct match *m, const struct parsed *p, const struct spec *s, struct operand *o)
{
    *o = p->operand;
    const bool is_destination = s->kind == 'd' || s->kind == 'P';
    if (p->is_name)
        return refuse(m, p, "'%.*s' is not declared", (int)(p->at.length > 80 ? 80 : p->at.length), p->at.text);
    if (p->is_list || o->kind == OPERAND_VECTOR) return refuse(m, p, "a single operand should stand here, not a list");
    if (o->kind == OPERAND_ADDRESS) return refuse(m, p, "an address in brackets does not belong here");
    if (is_destination) {
        if (o->kind == OPERAND_SINK && (s->sink || s->kind == 'P')) return true;
        if (o->kind != OPERAND_REGISTER) return refuse(m, p, "the destination should be a register");
    }
    if (s->kind == 'p' || s->kind == 'P' || s->type == T_PRED) {
        if (p->is_constant && !p->constant.is_float && s->kind == 'p') {
            *o = (struct operand){ .kind = OPERAND_CONSTANT, .type = T_PRED,
                                   .row = constant_row(m->r, p->constant.bits != 0) };
            return !m->r->failed;
        }
        if (p->is_constant || o->kind == OPERAND_SINK) return refuse(m, p, "a predicate register should stand here");
        if (o->kind == OPERAND_SPECIAL && s->kind != 'P') return take_preset(m, p, &(struct spec){ .type = T_PRED }, o);
        if (o->kind != OPERAND_REGISTER || o->type != T_PRED)
            return refuse(m, p, "a predicate register should stand here");
        if (o->negated && s->kind != 'p') return refuse(m, p, "'!' does not belong here");
        return true;
    }
    if (p->is_constant) {
        if (s->kind == 'r') return refuse(m, p, "a register should stand here, not a constant");
        uint64_t value = 0;
        const char *wrong = constant_as(&p->constant, s->type, &value);
        if (wrong != NULL) return refuse(m, p, "%s", wrong);
        *o = (struct operand){ .kind = OPERAND_CONSTANT, .type = (uint8_t)s->type, .value = (int64_t)p->constant.bits,
                               .row = constant_row(m->r, value) };
        return !m->r->failed;
    }
    if (s->kind == 'i') return refuse(m, p, "an integer constant should stand here");
    if (o->kind == OPERAND_SINK) return refuse(m, p, "'_' does not belong here");
    if (o->kind == OPERAND_REGISTER) return take_register(m, p, s, o);
    if (s->kind == 's') return take_preset(m, p, s, o);
    return refuse(m, p, "a register should stand here");
}

static bool take_vector(struct match *m, const struct parsed *p, const struct spec *s, int count, struct operand *o)
{
    if (p->operand.kind != OPERAND_VECTOR || p->is_list) return refuse(m, p, "a vector {..} should stand here");
    if (count != VECTOR_ANY && p->operand.count != (uint32_t)count)
        return refuse(m, p, "a vector of %d elements should stand here, not of %u", count, p->operand.count);
    *o = p->operand;
    o->element = m->elements + m->element_count;
    for (uint32_t i = 0; i < p->operand.count; i++)
        if (!take_scalar(m, &m->list->element[p->first + i], s, &m->elements[m->element_count++])) return false;
    return true;
}

static bool take_label(struct match *m, const struct parsed *p, const struct spec *s, struct operand *o)
{
    if (!p->is_name || p->at.kind != TOKEN_NAME)
        return refuse(m, p, s->kind == 'l' ? "a label should stand here" : "a table of labels should stand here");
    *o = (struct operand){ .kind = s->kind == 'l' ? OPERAND_LABEL : OPERAND_TABLE };
    return true;                          /* the fixup comes when the operand has its place: see keep */
}

static bool take(struct match *m, const struct parsed *p, const struct spec *s, struct operand *o)
{
    if (s->kind == 'l' || s->kind == 't') return take_label(m, p, s, o);
    if (s->kind == 'a' || s->kind == 'A') {
        if (p->operand.kind != OPERAND_ADDRESS || p->is_constant)
            return refuse(m, p, "an address in brackets should stand here");
        *o = p->operand;
        return true;
    }
    if (s->kind == 'q') {
        if (p->operand.kind != OPERAND_SPECIAL || p->is_constant)
            return refuse(m, p, "a special register should stand here");
        *o = p->operand;
        return true;
    }
    int vector = s->vector;
    if (vector == VECTOR_AS_MODIFIER) vector = m->in->vector > 1 ? m->in->vector : VECTOR_NONE;
    if (s->loose || (s->vector == VECTOR_AS_MODIFIER && vector == VECTOR_NONE)) {
        const bool braces = p->operand.kind == OPERAND_VECTOR && !p->is_list && p->operand.count == 1;
        return take_scalar(m, braces ? &m->list->element[p->first] : p, s, o);
    }
    return vector == VECTOR_NONE ? take_scalar(m, p, s, o) : take_vector(m, p, s, vector, o);
}

/* The operands get their place in the module; labels wait for theirs. */
static bool keep(struct match *m, const struct parsed *const *source, uint32_t count)
{
    struct operand *operand = reader_allocate(m->r, count * sizeof *operand);
    struct operand *element = reader_allocate(m->r, m->element_count * sizeof *element);
    if (operand == NULL || element == NULL) return false;
    if (count != 0) memcpy(operand, m->out, count * sizeof *operand);
    if (m->element_count != 0) memcpy(element, m->elements, m->element_count * sizeof *element);
    for (uint32_t i = 0; i < count; i++) {
        if (operand[i].kind == OPERAND_VECTOR) operand[i].element = element + (operand[i].element - m->elements);
        if (operand[i].kind == OPERAND_LABEL) fixup_add(m->r, &source[i]->at, &operand[i].value, NULL, NULL);
        if (operand[i].kind == OPERAND_TABLE) fixup_add(m->r, &source[i]->at, NULL, NULL, &operand[i]);
    }
    m->in->operand = operand;
    m->in->operands = (uint8_t)count;
    return !m->r->failed;
}

/* How many operands must still come behind `at`. */
static uint32_t required(const char *at, const struct insn *in)
{
    uint32_t count = 0;
    for (struct spec s; (at = next_spec(at, in, &s)) != NULL;)
        if (!s.optional && (!s.pair || s.must_pair) && (s.word[0] == '\0' || insn_has(in, s.word))) count++;
    return count;
}

bool operands_match(struct reader *r, const struct row *row, struct insn *in, const struct parsed_list *list,
                    struct mismatch *why)
{
    struct operand out[MAX_PARSED + 8] = { 0 }, elements[MAX_ELEMENTS];
    const struct parsed *source[MAX_PARSED + 8] = { 0 };
    const struct parsed end = { .at = r->token };
    struct match m = { .r = r, .in = in, .list = list, .out = out, .elements = elements, .why = why };
    uint32_t next = 0, count = 0;
    struct spec s;
    for (const char *at = row->operands; (at = next_spec(at, in, &s)) != NULL; count++) {
        const struct parsed *p = next < list->count ? &list->item[next] : &end;
        why->reached = next;
        const bool wanted = s.word[0] == '\0' || insn_has(in, s.word);
        const bool left_out = s.optional && list->count - next <= required(at, in);
        const bool here = next < list->count && p->pair == s.pair && !p->in_address && !left_out;
        if (!wanted || (!here && (s.optional || (s.pair && !s.must_pair)))) {
            if (s.kind == 'A') count++;
            continue;
        }
        if (!here && next < list->count && !s.must_pair)
            return refuse(&m, p, "%s does not belong here", p->pair ? "'|'" : "a second part of the address");
        if (!here && s.must_pair) return refuse(&m, p, "'|' and a second result should stand before this");
        if (!here) return refuse(&m, p, "operand %u is missing", next + 1);
        if (!take(&m, p, &s, &out[count])) return false;
        source[count] = p;
        next++;
        if (s.kind != 'A') continue;
        p = next < list->count ? &list->item[next] : &end;
        if (next >= list->count || !p->in_address)
            return refuse(&m, p, "coordinates should stand in the address: [base, {..}]");
        s.kind = 's';
        if (!take(&m, p, &s, &out[++count])) return false;
        source[count] = p;
        next++;
    }
    why->reached = next;
    if (next < list->count) return refuse(&m, &list->item[next], "the instruction has no operand here: one too many");
    return keep(&m, source, count);
}
