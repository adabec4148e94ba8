/* Walks the patterns of the rows. */
#include "forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    struct form now;
    struct form *forms;
    uint32_t count, capacity;
    uint32_t step, seen;                  /* every so many are kept; 0: none, they are counted */
};

static size_t base_length(const char *pattern) { return strcspn(pattern, ".{("); }
static size_t word_length(const char *at) { return 1 + strcspn(at + 1, ".{}()|"); }

static bool match_row(const struct row *row, const char *text, struct insn *in)
{
    struct word words[32];
    uint32_t count = 0, reached;
    for (const char *p = text + base_length(text); *p == '.' && count < 32; p += words[count++].length)
        words[count] = (struct word){ .text = p, .length = (uint32_t)(1 + strcspn(p + 1, ".")) };
    *in = (struct insn){ .row = row };
    return pattern_match(row, words, count, in, &reached);
}

static void keep(struct walk *w)
{
    const uint32_t place = w->seen++;
    if (w->step == 0 || place % w->step != 0) return;
    if (w->count == w->capacity) {
        w->capacity = w->capacity * 2 + 64;
        w->forms = realloc(w->forms, w->capacity * sizeof *w->forms);
        if (w->forms == NULL) abort();
    }
    struct form *f = &w->forms[w->count];
    *f = w->now;
    f->in = (struct insn){ .row = f->row };
    match_row(f->row, f->text, &f->in);
    w->count++;
}

/* The item `index` of set n of "u16 u32; s32"; false behind the last. */
static bool set_item(const char *sets, int n, int index, const char **name, size_t *length)
{
    for (; n > 0 && sets != NULL; n--) {
        sets = strchr(sets, ';');
        if (sets != NULL) sets++;
    }
    for (; sets != NULL; index--) {
        sets += strspn(sets, " ");
        *length = strcspn(sets, " ;");
        if (*length == 0) return false;
        *name = sets;
        if (index == 0) return true;
        sets += *length;
    }
    return false;
}

static void walk_from(struct walk *w, const char *p, const char *rest, int group);

static void walk_word(struct walk *w, const char *p, const char *rest, int group)
{
    const size_t length = word_length(p), at = strlen(w->now.text);
    if (p[1] != '$') {
        snprintf(w->now.text + at, FORM_TEXT - at, "%.*s", (int)length, p);
        walk_from(w, p + length, rest, group);
        w->now.text[at] = '\0';
        return;
    }
    const int n = p[2] - '1';
    const char *name;
    size_t name_length;
    for (int i = 0; set_item(w->now.row->types, n, i, &name, &name_length); i++) {
        snprintf(w->now.text + at, FORM_TEXT - at, ".%.*s", (int)name_length, name);
        w->now.choice[MODIFIER_GROUPS + n] = (uint8_t)(i + 1);
        walk_from(w, p + length, rest, group);
        w->now.text[at] = '\0';
    }
    w->now.choice[MODIFIER_GROUPS + n] = 0;
}

/* p: words of an alternative, then the pattern goes on at rest; rest NULL: p is the pattern itself. */
static void walk_from(struct walk *w, const char *p, const char *rest, int group)
{
    if (*p == '.') {
        walk_word(w, p, rest, group);
        return;
    }
    if (rest != NULL) {
        walk_from(w, rest, NULL, group + 1);
        return;
    }
    if (*p == '\0') {
        keep(w);
        return;
    }
    const bool optional = *p == '{';
    const char *end = strchr(p, optional ? '}' : ')') + 1;
    if (optional) {
        w->now.choice[group] = 0;
        walk_from(w, end, NULL, group + 1);
    }
    uint8_t choice = 1;
    for (const char *alternative = p + 1;; alternative++, choice++) {
        w->now.choice[group] = choice;
        walk_from(w, alternative, end, group);
        alternative += strcspn(alternative, "|})");
        if (*alternative != '|') break;
    }
    w->now.choice[group] = 0;
}

static struct walk walk_row(const struct row *row, uint32_t step)
{
    struct walk w = { .now = { .row = row }, .step = step };
    const size_t base = base_length(row->pattern);
    snprintf(w.now.text, FORM_TEXT, "%.*s", (int)base, row->pattern);
    walk_from(&w, row->pattern + base, NULL, 0);
    return w;
}

struct form *forms_of(const struct row *row, uint32_t *count)
{
    const struct walk w = walk_row(row, 1);
    *count = w.count;
    return w.forms;
}

struct form *forms_some(const struct row *row, uint32_t most, uint32_t *count)
{
    const uint32_t all = walk_row(row, 0).seen;
    const struct walk w = walk_row(row, all <= most ? 1 : all / most | 1);
    *count = w.count;
    return w.forms;
}

void form_of_insn(const struct insn *in, char *text, size_t size)
{
    const char *p = in->row->pattern;
    size_t used = (size_t)snprintf(text, size, "%.*s", (int)base_length(p), p);
    int group = -1, alternative = 0, numbers = 0;
    bool inside = false;
    for (p += base_length(p); *p != '\0' && used < size;) {
        if (*p != '.') {
            if (*p == '{' || *p == '(') group++, alternative = 1, inside = true;
            else if (*p == '|') alternative++;
            else inside = false;
            p++;
            continue;
        }
        const size_t length = word_length(p);
        const char *hash = memchr(p, '#', length);
        if (inside && in->choice[group] != alternative) {
            p += length;
            continue;
        }
        if (p[1] == '$') used += (size_t)snprintf(text + used, size - used, ".%s", type_name(in->type[p[2] - '1']));
        else if (hash != NULL)
            used += (size_t)snprintf(text + used, size - used, "%.*s%d%.*s", (int)(hash - p), p, in->number[numbers++],
                                     (int)(length - (size_t)(hash - p) - 1), hash + 1);
        else used += (size_t)snprintf(text + used, size - used, "%.*s", (int)length, p);
        p += length;
    }
}

const struct row *row_of_form(const char *text, struct insn *in)
{
    uint32_t state = 0;
    const struct row *row;
    while ((row = table_next(text, base_length(text), &state)) != NULL)
        if (match_row(row, text, in)) return row;
    return NULL;
}

static enum ptx_type double_width(enum ptx_type type)
{
    static const char *const pairs[][2] = { { "u8", "u16" },  { "s8", "s16" },  { "b8", "b16" },
                                            { "u16", "u32" }, { "s16", "s32" }, { "b16", "b32" },
                                            { "u32", "u64" }, { "s32", "s64" }, { "b32", "b64" } };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (strcmp(pairs[i][0], type_name(type)) == 0) return type_named(pairs[i][1], strlen(pairs[i][1]));
    return T_B128;
}

static uint8_t operand_type(const char *text, size_t length, const struct insn *in)
{
    if (length == 1 && text[0] >= '1' && text[0] < '1' + INSN_TYPES) return in->type[text[0] - '1'];
    if (length == 2 && text[0] == 'w') return (uint8_t)double_width((enum ptx_type)in->type[text[1] - '1']);
    return (uint8_t)type_named(text, length);
}

int form_operands(const struct insn *in, struct form_operand *out)
{
    int count = 0;
    const char *at = in->row->operands;
    while (*(at += strspn(at, " ")) != '\0' && count < FORM_OPERANDS) {
        struct form_operand *o = &out[count++];
        *o = (struct form_operand){ .vector = 0 };
        if (*at == '?') o->optional = true, at++;
        if (*at == '(') {
            const size_t length = strcspn(at, ")") - 1;
            snprintf(o->word, sizeof o->word, "%.*s", (int)length, at + 1);
            at += length + 2;
        }
        if (*at == '|' || *at == '&') o->pair = true, o->must_pair = *at == '&', at++;
        o->kind = *at++;
        if (*at == '_') o->sink = true, at++;
        if (*at == ':') {
            const size_t length = strcspn(++at, " +*{");
            o->type = operand_type(at, length, in);
            at += length;
        }
        if (*at == '+') o->wider = true, at++;
        if (*at == '*') o->vector = -1, at++;
        if (*at == '{') {
            o->vector = at[1] == '}' ? -2 : (int)strtol(at + 1, NULL, 10);
            at += strcspn(at, "}") + 1;
        }
        if (o->word[0] != '\0' && !insn_has(in, o->word)) count--;
    }
    return count;
}
