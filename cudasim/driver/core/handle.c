/* The set of live handles: a hash table with linear probing. */
#include "handle.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct slot { const void *object; enum handle_kind kind; };
static struct slot *slots;
static size_t capacity, used;            /* capacity: a power of two; used: with removed ones */

static const char removed;

static size_t first_place(const void *object)
{
    return (size_t)(((uint64_t)(uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (capacity - 1);
}

/* The slot of the object, or the free one where it would be. */
static struct slot *place(const void *object)
{
    size_t at = first_place(object);
    while (slots[at].object != NULL && slots[at].object != object) at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static bool grow(void)
{
    struct slot *old = slots;
    const size_t old_capacity = capacity, larger = capacity == 0 ? 256 : 2 * capacity;
    struct slot *new_slots = calloc(larger, sizeof *new_slots);
    if (new_slots == NULL) return false;
    slots = new_slots;
    capacity = larger;
    used = 0;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].object != NULL && old[i].object != &removed) *place(old[i].object) = old[i], used++;
    free(old);
    return true;
}

bool handle_add(const void *object, enum handle_kind kind)
{
    if (2 * used >= capacity && !grow()) return false;
    struct slot *slot = place(object);
    if (slot->object == NULL) used++;
    *slot = (struct slot){ object, kind };
    return true;
}

void handle_remove(const void *object)
{
    if (capacity == 0) return;
    struct slot *slot = place(object);
    if (slot->object == object) *slot = (struct slot){ &removed, HANDLE_NONE };
}

bool handle_is(const void *object, enum handle_kind kind)
{
    if (capacity == 0 || object == NULL) return false;
    const struct slot *slot = place(object);
    return slot->object == object && slot->kind == kind;
}
