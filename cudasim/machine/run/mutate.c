/* Mutations. */
#include "mutate.h"
#include "machine/core/machine.h"
#include "machine/core/statement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which instructions ---- */

static bool is_word(const char *word, size_t length, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strlen(*list) == length && memcmp(*list, word, length) == 0) return true;
    return false;
}

/* Words end at '.', and "wait::ld" is a kind of wait. */
static size_t word_length(const char *word)
{
    size_t length = 0;
    while (word[length] != '\0' && word[length] != '.' && word[length] != ':') length++;
    return length;
}

bool mutation_possible(const struct module *module, uint32_t pc)
{
    static const char *const bases[] = { "fence", "membar",  "wgmma",          "cp",      "mbarrier",
                                         "bar",   "barrier", "griddepcontrol", "tcgen05", NULL };
    static const char *const words[] = { "fence",       "membar",    "commit",      "commit_group",      "wait",
                                         "wait_group",  "wait_all",  "test_wait",   "try_wait",          "arrive",
                                         "arrive_drop", "expect_tx", "complete_tx", "launch_dependents", NULL };
    static const char *const of_barriers[] = { "sync", NULL };
    char name[STATEMENT_BYTES];
    statement_name(module, pc, name, sizeof name);
    const size_t base = word_length(name);
    if (!is_word(name, base, bases) || strstr(name, ".red.") != NULL) return false;
    const bool barrier = strncmp(name, "bar", 3) == 0;
    for (const char *at = name;;) {
        const size_t length = word_length(at);
        if (is_word(at, length, words) || (barrier && is_word(at, length, of_barriers))) return true;
        at = strchr(at, '.');
        if (at == NULL) return false;
        at++;
    }
}

/* ---- taking it away ---- */

static atomic_bool reached;

bool mutation_reached(void) { return atomic_load(&reached); }

static void set_result(struct warp *w, const struct operand *o, uint32_t lanes)
{
    if (o->kind != OPERAND_REGISTER && o->kind != OPERAND_SINK) return;
    uint64_t *row = register_row(w, o->slot);
    const uint64_t value = (enum ptx_type)o->type == T_PRED;
    FOR_LANES(l, lanes) row[l] = value;
}

/* detail: a bit for each operand that is a result */
static trap op_removed(struct warp *w, const struct insn *in, uint32_t lanes)
{
    if (!atomic_load_explicit(&reached, memory_order_relaxed)) atomic_store(&reached, true);
    for (int i = 0; i < in->operands; i++)
        if ((in->detail >> i & 1) != 0) set_result(w, &in->operand[i], lanes);
    return TRAP_NONE;
}

static uint64_t results(const struct row *row)
{
    uint64_t bits = 0;
    int i = 0;
    for (const char *item = row->operands; *item != '\0'; i++) {
        const char *class = item;
        while (*class == '?' || *class == '|' || *class == '&') class ++;
        if (*class == 'd' || *class == 'P') bits |= UINT64_C(1) << i;
        if (*class == 'A') i++;
        item += strcspn(item, " ");
        item += strspn(item, " ");
    }
    return bits;
}

void mutation_apply(struct module *module, uint32_t pc)
{
    static const struct row removed = { "removed",  NULL, "",
                                        10,         "",   DEMANDS_NOTHING,
                                        op_removed, NULL, "none: it was removed" };
    struct insn *in = &module->code[pc];
    in->detail = results(in->row);
    in->row = &removed;
    in->run = op_removed;
}

/* ---- names ---- */

/* ":LINE" or ":LINE.N", what stands behind the function's name. */
static void place_name(const struct module *module, uint32_t pc, char place[32])
{
    uint32_t of;
    const uint32_t number = statement_on_line(module, pc, &of);
    const int used = snprintf(place, 32, ":%u", module->code[pc].line);
    if (of > 1) snprintf(place + used, 32 - (size_t)used, ".%u", number);
}

static const char *function_name(const struct module *module, uint32_t pc)
{
    const struct function *f = ptx_function_at(module, pc);
    return f == NULL ? "" : f->name;
}

char *mutation_name(const struct module *module, uint32_t pc)
{
    const char *function = function_name(module, pc);
    const size_t length = strlen(function);
    char place[32];
    place_name(module, pc, place);
    char *name = malloc(length + sizeof place);
    if (name == NULL) return NULL;
    memcpy(name, function, length);
    memcpy(name + length, place, strlen(place) + 1);
    return name;
}

bool mutation_find(const struct module *module, const char *name, uint32_t *pc)
{
    const char *colon = strrchr(name, ':');
    const size_t length = colon == NULL ? 0 : (size_t)(colon - name);
    const unsigned long line = colon == NULL ? 0 : strtoul(colon + 1, NULL, 10);
    for (uint32_t i = 0; colon != NULL && i < module->code_count; i++) {
        char place[32];
        if (module->code[i].line != line) continue;
        const char *function = function_name(module, i);
        place_name(module, i, place); /* which looks for the text of the line */
        if (strlen(function) != length || memcmp(function, name, length) != 0 || strcmp(place, colon) != 0) continue;
        if (!mutation_possible(module, i)) continue;
        *pc = i;
        return true;
    }
    return false;
}
