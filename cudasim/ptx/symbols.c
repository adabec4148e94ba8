/* Names: nested scopes, families of registers, labels that are used before they stand. */
#include "ptx/reader.h"

#include <string.h>

enum { MOST_DIGITS = 9 };                 /* of a register of a family */
static const uint32_t hash_of_nothing = 2166136261u;

static uint32_t hash_on(uint32_t h, const char *text, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) h = (h ^ (uint8_t)text[i]) * 16777619u;
    return h;
}

static uint32_t mixed(uint32_t h) { return h ^ h >> 15; }
static uint32_t hash(const char *name, uint32_t length) { return mixed(hash_on(hash_of_nothing, name, length)); }

/* The digits at the end of a name, and key[i]: the hash of the name up to the first i of them. */
struct keys { uint32_t digits, key[MOST_DIGITS + 1]; };

static struct keys keys_of(const char *name, uint32_t length)
{
    struct keys k = { 0, { 0 } };
    while (k.digits < MOST_DIGITS && k.digits + 1 < length && name[length - 1 - k.digits] >= '0'
           && name[length - 1 - k.digits] <= '9')
        k.digits++;
    const char *digit = name + length - k.digits;
    uint32_t h = hash_on(hash_of_nothing, name, length - k.digits);
    k.key[0] = mixed(h);
    for (uint32_t i = 0; i < k.digits; i++) k.key[i + 1] = mixed(h = hash_on(h, digit + i, 1));
    return k;
}

void *reader_allocate(struct reader *r, size_t bytes)
{
    void *memory = arena_allocate(&r->module->arena, bytes);
    if (memory == NULL)
        reader_fail(r, "this module needs more memory than the limit of %zu MiB", r->limits->arena_bytes >> 20);
    return memory;
}

void scope_open(struct reader *r)
{
    const uint32_t depth = r->scope == NULL ? 0 : r->scope->depth + 1;
    if (depth > r->limits->depth) {
        reader_fail(r, "blocks are nested deeper than %u", r->limits->depth);
        return;
    }
    struct scope_level *scope = reader_allocate(r, sizeof *scope);
    if (scope == NULL) return;
    scope->outer = r->scope;
    scope->depth = depth;
    scope->bucket = scope->first;
    scope->buckets = SCOPE_BUCKETS;
    r->scope = scope;
}

/* key: the hash of the name. */
static struct symbol *find_in(const struct scope_level *scope, const char *name, uint32_t length, uint32_t key)
{
    for (struct symbol *s = scope->bucket[key & (scope->buckets - 1)]; s != NULL; s = s->next)
        if (s->length == length && memcmp(s->name, name, length) == 0 && !s->is_family) return s;
    return NULL;
}

struct symbol *scope_find_here(const struct reader *r, const char *name, uint32_t length)
{
    return find_in(r->scope, name, length, hash(name, length));
}

struct symbol *scope_find(const struct reader *r, const char *name, uint32_t length)
{
    const uint32_t key = hash(name, length);
    for (const struct scope_level *scope = r->scope; scope != NULL; scope = scope->outer) {
        struct symbol *s = find_in(scope, name, length, key);
        if (s != NULL) return s;
    }
    return NULL;
}

/* Twice as many buckets; those of before stay in the arena. */
static bool more_buckets(struct reader *r, struct scope_level *scope)
{
    const uint32_t buckets = 2 * scope->buckets;
    struct symbol **bucket = reader_allocate(r, buckets * sizeof *bucket);
    if (bucket == NULL) return false;
    for (uint32_t i = 0; i < scope->buckets; i++)
        for (struct symbol *s = scope->bucket[i], *next; s != NULL; s = next) {
            next = s->next;
            s->next = bucket[s->key & (buckets - 1)];
            bucket[s->key & (buckets - 1)] = s;
        }
    scope->bucket = bucket;
    scope->buckets = buckets;
    return true;
}

struct symbol *scope_add(struct reader *r, const char *name, uint32_t length, enum symbol_kind kind)
{
    struct scope_level *scope = r->scope;
    struct symbol *s = reader_allocate(r, sizeof *s);
    if (s == NULL || (scope->symbols == scope->buckets && !more_buckets(r, scope))) return NULL;
    const uint32_t key = hash(name, length);
    struct symbol **bucket = &scope->bucket[key & (scope->buckets - 1)];
    *s = (struct symbol){ .next = *bucket, .key = key, .name = name, .length = length, .kind = kind };
    *bucket = s;
    scope->symbols++;
    return s;
}

/* %r17 of %r<532>: the digits behind the longest prefix that is a family, without leading zeros. */
static bool find_family(const struct scope_level *scope, const char *name, uint32_t length, const struct keys *keys,
                        uint32_t *slot, enum ptx_type *type)
{
    uint64_t number = 0, power = 1;
    for (uint32_t left = keys->digits; left-- > 0;) {
        const uint32_t prefix = length - keys->digits + left;
        const char digit = name[prefix];
        number += (uint64_t)(digit - '0') * power;
        power *= 10;
        if (digit == '0' && prefix + 1 < length) continue;
        for (const struct symbol *s = scope->bucket[keys->key[left] & (scope->buckets - 1)]; s != NULL; s = s->next)
            if (s->is_family && s->length == prefix && memcmp(s->name, name, prefix) == 0 && number < s->count) {
                *slot = s->slot + (uint32_t)number * (s->type == T_B128 ? 2 : 1);
                *type = s->type;
                return true;
            }
    }
    return false;
}

bool scope_register(const struct reader *r, const char *name, uint32_t length, uint32_t *slot, enum ptx_type *type)
{
    const struct keys keys = keys_of(name, length);
    for (const struct scope_level *scope = r->scope; scope != NULL; scope = scope->outer) {
        const struct symbol *s = find_in(scope, name, length, keys.key[keys.digits]);
        if (s != NULL) {
            *slot = s->slot;
            *type = s->type;
            return s->kind == SYMBOL_REGISTER;
        }
        if (scope->has_families && find_family(scope, name, length, &keys, slot, type)) return true;
    }
    return false;
}

void fixup_add(struct reader *r, const struct token *name, int64_t *value, uint32_t *target, struct operand *operand)
{
    struct fixup *fixup = reader_allocate(r, sizeof *fixup);
    if (fixup == NULL) return;
    *fixup = (struct fixup){ .next = r->fixups, .name = name->text, .length = name->length, .line = name->line,
                             .column = name->column, .scope = r->scope, .value = value, .target = target,
                             .operand = operand };
    r->fixups = fixup;
}

static bool resolve(struct reader *r, const struct fixup *fixup)
{
    const struct symbol *s = scope_find_here(r, fixup->name, fixup->length);
    if (s == NULL) return false;
    if (fixup->operand != NULL) {
        if (s->kind != SYMBOL_TABLE) return false;
        fixup->operand->targets = s->targets;
        fixup->operand->count = s->count;
        return true;
    }
    if (s->kind != SYMBOL_LABEL) return false;
    if (fixup->value != NULL) *fixup->value = s->slot;
    if (fixup->target != NULL) *fixup->target = s->slot;
    return true;
}

void scope_close(struct reader *r)
{
    if (r->scope == NULL || r->failed) return;
    struct fixup **link = &r->fixups;
    while (*link != NULL && (*link)->scope == r->scope) { /* the scope's own are the latest */
        struct fixup *fixup = *link;
        if (resolve(r, fixup)) {
            *link = fixup->next;
        } else {
            if (r->scope->outer == NULL || r->scope->outer->outer == NULL) {
                reader_fail_at(r, fixup->line, fixup->column, "no label '%.*s' in this function",
                               (int)(fixup->length > 100 ? 100 : fixup->length), fixup->name);
                return;
            }
            fixup->scope = r->scope->outer;
            link = &fixup->next;
        }
    }
    r->scope = r->scope->outer;
}
