/* Rules: names, levels, and what was reported and went on. */
#include "rules.h"

#include <stdio.h>
#include <string.h>

static const struct { const char *name; enum rule_level level; } rules[RULE_COUNT] = {
#define X(id, name, code, level) [RULE_##id] = { name, level },
    RULES(X)
#undef X
};

const char *rule_name(enum rule rule) { return rules[rule].name; }

void rules_default(uint8_t level[RULE_COUNT])
{
    for (int i = 0; i < RULE_COUNT; i++) level[i] = (uint8_t)rules[i].level;
}

void rules_all(uint8_t level[RULE_COUNT], enum rule_level to) { memset(level, (int)to, RULE_COUNT); }

static bool is(const char *word, const char *text, size_t length)
{
    return strlen(word) == length && memcmp(word, text, length) == 0;
}

bool rules_read(uint8_t level[RULE_COUNT], const char *text, const char **wrong, int *length)
{
    static const char *const levels[] = { [RULE_STOP] = "stop", [RULE_REPORT] = "report", [RULE_OFF] = "off" };
    for (const char *at = text; *at != '\0';) {
        const size_t item = strcspn(at, ","), name = strcspn(at, ":,");
        int rule = 0, to = RULE_STOP;
        while (rule < RULE_COUNT && !is(rules[rule].name, at, name)) rule++;
        while (to <= RULE_OFF && (name == item || !is(levels[to], at + name + 1, item - name - 1))) to++;
        if (rule == RULE_COUNT || to > RULE_OFF) {
            *wrong = at;
            *length = (int)item;
            return false;
        }
        level[rule] = (uint8_t)to;
        at += item + (at[item] == ',');
    }
    return true;
}

/* FNV-1a */
static uint64_t key_of(const char *kernel, uint32_t line)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325) ^ line;
    for (; *kernel != '\0'; kernel++) key = (key ^ (uint8_t)*kernel) * UINT64_C(0x100000001b3);
    return key | 1;
}

bool rule_book_enter(struct rule_book *book, enum rule rule, const char *kernel, uint32_t line)
{
    const uint64_t key = key_of(kernel, line);
    atomic_fetch_add(&book->count[rule], 1);
    for (int i = 0; i < MOST_RULE_LINES; i++) {
        uint_fast64_t there = 0;
        if (atomic_compare_exchange_strong(&book->told[rule][i], &there, key)) return true;
        if (there == key) return false;
    }
    atomic_store(&book->more[rule], true);
    return false;
}

bool rule_book_line(struct rule_book *book, char *text, uint32_t size)
{
    uint32_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < RULE_COUNT && used < size; i++) {
        const unsigned long long count = atomic_load(&book->count[i]);
        if (count != 0)
            used += (uint32_t)snprintf(text + used, size - used, "%s%s %llu", used == 0 ? "" : ", ", rules[i].name,
                                       count);
        if (atomic_load(&book->more[i]) && used < size)
            used += (uint32_t)snprintf(text + used, size - used, " (%d lines shown, others not)", MOST_RULE_LINES);
    }
    return used != 0;
}
