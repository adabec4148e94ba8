/* Matching of the words behind a mnemonic with a row's pattern. */
#include "ptx/table.h"

#include <string.h>

enum { MAX_WORDS = 32 };

/* order[t]: which word stands at place t of the pattern; any_order: the first unused word that fits, in_order checks
 * the result. */
struct matching {
    const struct row *row;
    const struct word *words;
    uint32_t count;
    struct insn *in;
    uint32_t reached;
    uint32_t numbers;
    bool any_order;
    uint8_t order[MAX_WORDS];
};

static size_t base_length(const char *pattern) { return strcspn(pattern, ".{("); }

/* Up to one of ".{}()|" or the end, for which strcspn takes several times as long. */
static size_t word_length(const char *at)
{
    size_t length = 1;
    for (char c; (c = at[length]) != '\0' && c != '.' && c != '(' && c != ')' && c != '{' && c != '|' && c != '}';)
        length++;
    return length;
}

/* The type must be in set `n` (0, ...) of "u16 u32; s32". */
static bool in_set(const char *sets, int n, const char *name, size_t length)
{
    for (; n > 0 && sets != NULL; n--) {
        sets = strchr(sets, ';');
        if (sets != NULL) sets++;
    }
    while (sets != NULL && *sets != '\0' && *sets != ';') {
        sets += strspn(sets, " ");
        const size_t item = strcspn(sets, " ;");
        if (item == length && memcmp(sets, name, length) == 0) return true;
        sets += item;
        sets += strspn(sets, " ");
    }
    return false;
}

/* "#" in a pattern's word stands for digits. */
static bool with_number(struct matching *m, const char *pattern, size_t length, const struct word *w)
{
    const char *hash = memchr(pattern, '#', length);
    if (hash == NULL) return length == w->length && memcmp(pattern, w->text, length) == 0;
    const size_t before = (size_t)(hash - pattern), after = length - before - 1;
    if (w->length <= before + after || memcmp(pattern, w->text, before) != 0) return false;
    if (memcmp(hash + 1, w->text + w->length - after, after) != 0) return false;
    uint32_t number = 0;
    for (size_t i = before; i < w->length - after; i++) {
        if (w->text[i] < '0' || w->text[i] > '9' || number > 6553 || (w->text[i] == '0' && i == before)) return false;
        number = number * 10 + (uint32_t)(w->text[i] - '0');
    }
    if (number > UINT16_MAX || m->numbers == 2) return false;
    m->in->number[m->numbers++] = (uint16_t)number;
    return true;
}

static bool fits(struct matching *m, const char *pattern, size_t length, const struct word *w)
{
    if (pattern[1] != '$') return with_number(m, pattern, length, w);
    const int n = pattern[2] - '1';
    if (!in_set(m->row->types, n, w->text + 1, w->length - 1)) return false;
    m->in->type[n] = (uint8_t)type_named(w->text + 1, w->length - 1);
    return true;
}

static bool match_word(struct matching *m, const char *pattern, size_t length, uint32_t t)
{
    if (t >= m->count) return false;
    if (!m->any_order) {
        if (!fits(m, pattern, length, &m->words[t])) return false;
        if (t + 1 > m->reached) m->reached = t + 1;
        return true;
    }
    uint32_t used = 0;
    for (uint32_t i = 0; i < t; i++) used |= 1u << m->order[i];
    for (uint32_t i = 0; i < m->count; i++) {
        if ((used >> i & 1) != 0 || !fits(m, pattern, length, &m->words[i])) continue;
        m->order[t] = (uint8_t)i;
        return true;
    }
    return false;
}

/* ptxas takes "ld.global.acquire.gpu" for "ld.acquire.gpu.global": a word with a common meaning may stand elsewhere,
 * but not change places with another of the same kind (two spaces, two types). */
static bool in_order(const struct matching *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        for (uint32_t j = i + 1; j < m->count; j++) {
            const struct word *a = &m->words[m->order[i]], *b = &m->words[m->order[j]];
            if (m->order[i] < m->order[j]) continue;
            const int kind_a = common_kind(a->text, a->length), kind_b = common_kind(b->text, b->length);
            if (kind_a == kind_b || (kind_a < 0 && kind_b < 0)) return false;
        }
    return true;
}

static bool match_from(struct matching *m, const char *p, uint32_t t, int group);

/* One alternative: words up to '|' or the closing bracket; then the rest of the pattern behind `rest`. */
static bool match_alternative(struct matching *m, const char *p, const char *rest, uint32_t t, int group)
{
    while (*p == '.') {
        const size_t length = word_length(p);
        if (!match_word(m, p, length, t)) return false;
        t++;
        p += length;
    }
    return match_from(m, rest, t, group + 1);
}

static bool match_group(struct matching *m, const char *p, uint32_t t, int group)
{
    const bool optional = *p == '{';
    const char *rest = strchr(p, optional ? '}' : ')');
    if (rest == NULL || group >= MODIFIER_GROUPS) return false;
    rest++;
    const uint32_t numbers = m->numbers;
    uint8_t choice = 1;
    for (const char *alternative = p + 1;; choice++) {
        m->in->choice[group] = choice;
        m->numbers = numbers;
        if (match_alternative(m, alternative, rest, t, group)) return true;
        alternative += strcspn(alternative, "|})");
        if (*alternative != '|') break;
        alternative++;
    }
    m->in->choice[group] = 0;
    m->numbers = numbers;
    return optional && match_from(m, rest, t, group + 1);
}

static bool match_from(struct matching *m, const char *p, uint32_t t, int group)
{
    while (*p == '.') {
        const size_t length = word_length(p);
        if (!match_word(m, p, length, t)) return false;
        t++;
        p += length;
    }
    if (*p == '\0') return t == m->count;
    return match_group(m, p, t, group);
}

bool pattern_match(const struct row *row, const struct word *words, uint32_t count, struct insn *in, uint32_t *reached)
{
    struct matching m = { .row = row, .words = words, .count = count, .in = in };
    const char *pattern = row->pattern + base_length(row->pattern);
    bool matched = count <= MAX_WORDS && match_from(&m, pattern, 0, 0);
    *reached = m.reached;
    if (!matched && count <= MAX_WORDS) {
        m.any_order = true;
        m.numbers = 0;
        matched = match_from(&m, pattern, 0, 0) && in_order(&m);
    }
    if (!matched) return false;
    for (uint32_t i = 0; i < count; i++) {
        common_word(in, words[i].text, words[i].length);
        /* a pattern without $1: the first type that it spells out counts as $1 */
        if (in->type[0] == T_NONE) in->type[0] = (uint8_t)type_named(words[i].text + 1, words[i].length - 1);
    }
    return true;
}

/* Walks the pattern with the choices that were made. */
uint32_t insn_count(const struct insn *in, const char *word)
{
    const size_t wanted = strlen(word);
    uint32_t count = 0;
    const char *p = in->row->pattern + base_length(in->row->pattern);
    int group = -1, alternative = 0;
    bool inside = false;
    while (*p != '\0') {
        if (*p == '{' || *p == '(') {
            group++, alternative = 1, inside = true, p++;
        } else if (*p == '|') {
            alternative++, p++;
        } else if (*p == '}' || *p == ')') {
            inside = false, p++;
        } else {
            const size_t length = word_length(p);
            if (length == wanted && memcmp(p, word, wanted) == 0 && (!inside || in->choice[group] == alternative))
                count++;
            p += length;
        }
    }
    return count;
}

bool insn_has(const struct insn *in, const char *word) { return insn_count(in, word) != 0; }

const char *row_check(const struct row *row)
{
    const char *p = row->pattern;
    if (p == NULL || base_length(p) == 0) return "no mnemonic";
    if (row->run == NULL && row->prepare == NULL) return "no handler";
    if (row->section == NULL || row->targets == NULL || row->operands == NULL) return "a column is empty";
    char open = '\0';
    int groups = 0;
    for (p += base_length(p); *p != '\0';) {
        if (*p == '{' || *p == '(') {
            if (open != '\0') return "groups are not nested";
            if (p[1] != '.') return "a group begins with a word";
            open = *p++, groups++;
        } else if (*p == '}' || *p == ')') {
            if (open != (*p == '}' ? '{' : '(')) return "brackets do not match";
            open = '\0', p++;
        } else if (*p == '|') {
            if (open == '\0' || p[1] != '.') return "'|' stands between words of a group";
            p++;
        } else if (*p == '.') {
            const size_t length = word_length(p);
            if (length < 2) return "an empty word";
            if (p[1] == '$' && (length != 3 || p[2] < '1' || p[2] >= '1' + INSN_TYPES || row->types == NULL))
                return "a bad type";
            p += length;
        } else {
            return "a character that belongs nowhere";
        }
    }
    if (open != '\0') return "a bracket is not closed";
    return groups > MODIFIER_GROUPS ? "too many groups" : NULL;
}
