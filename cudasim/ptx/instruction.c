/* One instruction: guard, mnemonic, operands, and the row that they match. */
#include "ptx/parsed.h"

#include <stdio.h>
#include <string.h>

enum { MAX_WORDS = 32 };

struct mnemonic { struct token base; struct word words[MAX_WORDS]; uint32_t count; };

static void read_guard(struct reader *r, struct insn *in)
{
    if (!token_take(r, '@')) return;
    in->guard = token_take(r, '!') ? 2 : 1;
    enum ptx_type type;
    if (r->token.kind != TOKEN_NAME || !scope_register(r, r->token.text, r->token.length, &in->guard_slot, &type) ||
        type != T_PRED) {
        reader_fail(r, "a declared predicate register should stand behind '@'");
        return;
    }
    token_next(r);
}

static void read_mnemonic(struct reader *r, struct mnemonic *m)
{
    m->base = r->token;
    m->count = 0;
    if (r->token.kind != TOKEN_NAME) {
        reader_fail(r, "an instruction should stand here");
        return;
    }
    if (!table_knows(r->token.text, r->token.length)) {
        reader_fail(r, "the instruction '%.*s' is not known here", (int)(r->token.length > 100 ? 100 : r->token.length),
                    r->token.text);
        return;
    }
    token_next(r);
    for (; r->token.kind == TOKEN_WORD; token_next(r)) {
        if (m->count == MAX_WORDS) {
            reader_fail(r, "an instruction has at most %d modifiers", MAX_WORDS);
            return;
        }
        m->words[m->count++] = (struct word){ r->token.text, r->token.length, r->token.column };
    }
}

/* The first word that no row understands behind those that one does; or the end. */
static void fail_modifiers(struct reader *r, const struct mnemonic *m, uint32_t reached, const struct row *nearest)
{
    if (reached < m->count) {
        const struct word *w = &m->words[reached];
        reader_fail_at(r, m->base.line, w->column, "'%.*s' is unknown or misplaced here; the nearest form is %.120s",
                       (int)(w->length > 60 ? 60 : w->length), w->text, nearest->pattern);
    } else {
        reader_fail_at(r, m->base.line, m->base.column, "a modifier is missing; the nearest form is %.160s",
                       nearest->pattern);
    }
}

/* call: the operands are lists, and the target may be a register. */
static void place_call(struct reader *r, struct insn *in, const struct parsed_list *list)
{
    struct operand out[4] = { 0 };        /* results, target, arguments, prototype */
    uint32_t next = 0;
    struct operand *elements = reader_allocate(r, (list->elements + 1) * sizeof *elements);
    struct operand *kept = reader_allocate(r, sizeof out);
    if (elements == NULL || kept == NULL) return;
    for (uint32_t i = 0; i < list->elements; i++) {
        const struct parsed *e = &list->element[i];
        elements[i] = e->operand;
        const bool ok = e->operand.kind == OPERAND_REGISTER || e->operand.kind == OPERAND_SINK
                        || (e->operand.kind == OPERAND_SYMBOL && e->operand.variable->space == SPACE_PARAM
                            && e->operand.value == 0);
        if (e->is_constant)
            elements[i] = (struct operand){ .kind = OPERAND_CONSTANT,
                                             .row = constant_row(r, e->constant.bits),
                                             .value = (int64_t)e->constant.bits };
        else if (!ok || e->is_name)
            reader_fail_at(r, e->at.line, e->at.column,
                           "arguments of a call are .param variables, registers or constants");
    }
    for (int k = 0; k < 4; k++) {
        const struct parsed *p = &list->item[next];
        if (next == list->count || p->is_list != (k == 0 || k == 2)) continue;
        out[k] = p->operand;
        if (p->is_list) out[k].element = elements + p->first;
        next++;
    }
    const bool direct = out[1].kind == OPERAND_FUNCTION,
               indirect = out[1].kind == OPERAND_REGISTER && type_bits((enum ptx_type)out[1].type) == 64;
    const struct parsed *target = &list->item[list->count > 1 && list->item[0].is_list ? 1 : 0];
    if (!direct && !indirect)
        reader_fail_at(r, target->at.line, target->at.column,
                       "a declared function or a 64-bit register should stand here");
    else if (indirect && out[3].kind != OPERAND_PROTOTYPE)
        reader_fail(r, "a call through a register names a .callprototype");
    else if (next != list->count)
        reader_fail_at(r, list->item[next].at.line, list->item[next].at.column, "a call has no operand here");
    memcpy(kept, out, sizeof out);
    in->operand = kept;
    in->operands = 4;
}

static void append(struct reader *r, const struct insn *in)
{
    struct module *m = r->module;
    if (!reader_grow(r, (void **)&m->code, m->code_count, &r->code_capacity, sizeof *m->code, r->limits->instructions,
                     "instructions"))
        return;
    m->code[m->code_count++] = *in;
}

/* The row fits: what else it says. */
static void accept(struct reader *r, const struct mnemonic *m, struct insn *in)
{
    char sentence[200];
    if (!row_available(in->row, r->module, sentence, sizeof sentence)) {
        reader_fail_at(r, m->base.line, m->base.column, "%s", sentence);
        return;
    }
    in->run = in->row->run;
    in->mask = bits_mask(type_bits((enum ptx_type)in->type[0]));
    if (in->vector == 0) in->vector = 1;
    const char *refused = in->row->prepare == NULL ? NULL : in->row->prepare(r->module, in);
    if (refused != NULL) reader_fail_at(r, m->base.line, m->base.column, "%s", refused);
    else append(r, in);
}

/* A row that a mnemonic fits, with what its words say. */
struct candidate { struct candidate *next; struct insn in; };
struct form { struct form *next; const char *text; size_t length; struct candidate *candidates; };

/* The first word behind the mnemonic stands right behind it, and so on: their text is one piece, from the first byte to
 * the last. */
static size_t text_length(const struct mnemonic *m)
{
    if (m->count == 0) return m->base.length;
    const struct word *last = &m->words[m->count - 1];
    return (size_t)(last->text + last->length - m->base.text);
}

/* Looks at all rows of the name.  Fails where none has these words. */
static struct candidate *find_candidates(struct reader *r, const struct mnemonic *m)
{
    struct candidate *first = NULL, **end = &first;
    const struct row *row, *nearest = NULL;
    uint32_t state = 0, reached_best = 0;
    while ((row = table_next(m->base.text, m->base.length, &state)) != NULL) {
        struct insn in = { .row = row };
        uint32_t reached;
        if (pattern_match(row, m->words, m->count, &in, &reached)) {
            struct candidate *c = reader_allocate(r, sizeof *c);
            if (c == NULL) return NULL;
            c->in = in;
            *end = c, end = &c->next;
        } else if (nearest == NULL || reached > reached_best) {
            nearest = row, reached_best = reached;
        }
    }
    if (first == NULL) fail_modifiers(r, m, reached_best, nearest);
    return first;
}

/* A module has few mnemonics, each many times: what was found once is kept. */
static const struct candidate *candidates(struct reader *r, const struct mnemonic *m)
{
    const size_t length = text_length(m);
    uint32_t key = (uint32_t)length;
    for (size_t i = 0; i < length; i++) key = key * 31 + (uint8_t)m->base.text[i];
    struct form **chain = &r->forms[key % FORM_CHAINS];
    for (const struct form *form = *chain; form != NULL; form = form->next)
        if (form->length == length && memcmp(form->text, m->base.text, length) == 0) return form->candidates;
    struct candidate *found = find_candidates(r, m);
    struct form *form = found == NULL ? NULL : reader_allocate(r, sizeof *form);
    if (form == NULL) return NULL;
    *form = (struct form){ .next = *chain, .text = m->base.text, .length = length, .candidates = found };
    return (*chain = form)->candidates;
}

static void match_rows(struct reader *r, const struct mnemonic *m, const struct insn *head,
                       const struct parsed_list *list)
{
    struct mismatch best = { .reached = 0 };
    bool understood = false;
    for (const struct candidate *c = candidates(r, m); c != NULL; c = c->next) {
        struct insn in = c->in;
        in.line = head->line, in.location = head->location, in.guard = head->guard, in.guard_slot = head->guard_slot;
        struct mismatch why = { .reached = 0 };
        const bool is_call = in.row->operands[0] == 'C';
        if (is_call) place_call(r, &in, list);
        if (is_call || operands_match(r, in.row, &in, list, &why)) {
            if (!r->failed) accept(r, m, &in);
            return;
        }
        if (!understood || why.reached > best.reached) best = why;
        understood = true;
    }
    if (understood) reader_fail_at(r, best.at.line, best.at.column, "%s", best.sentence);
}

void read_instruction(struct reader *r)
{
    struct insn in = { .line = r->token.line, .location = r->location };
    struct mnemonic mnemonic;
    struct parsed_list list;
    read_guard(r, &in);
    in.line = r->token.line;
    if (!r->failed) read_mnemonic(r, &mnemonic);
    if (r->failed) return;
    read_operands(r, &list, mnemonic.base.length == 4 && memcmp(mnemonic.base.text, "call", 4) == 0);
    if (r->failed) return;
    match_rows(r, &mnemonic, &in, &list);
    token_expect(r, ';');
}

void read_end_of_body(struct reader *r)
{
    if (r->failed) return;
    const struct mnemonic ret = { .base = { .text = "ret", .length = 3, .line = r->token.line,
                                            .column = r->token.column } };
    struct insn in = { .line = r->token.line, .location = r->location };
    const struct parsed_list *none = reader_allocate(r, sizeof *none);
    if (none != NULL) match_rows(r, &ret, &in, none);
}
