/* Memories of several devices in one address space. */
#include "address_space.h"

#include <stdio.h>
#include <stdlib.h>

void space_enter(struct address_space *space, struct global_memory *memory, uint32_t device)
{
    if (space->next == 0) space->next = memory->next;
    memory->space = space;
    memory->device = device;
    memory->beside = space->first;
    space->first = memory;
}

void space_leave(struct global_memory *memory)
{
    struct global_memory **link = &memory->space->first;
    while (*link != memory) link = &(*link)->beside;
    *link = memory->beside;
    for (struct global_memory *m = memory->space->first; m != NULL; m = m->beside) space_remove_peer(m, memory);
    free(memory->peer);
    memory->peer = NULL, memory->peers = 0, memory->space = NULL;
}

/* ---- peers ---- */

static uint32_t peer_place(const struct global_memory *memory, const struct global_memory *peer)
{
    uint32_t at = 0;
    while (at < memory->peers && memory->peer[at] != peer) at++;
    return at;
}

bool space_is_peer(const struct global_memory *memory, const struct global_memory *peer)
{
    return peer_place(memory, peer) < memory->peers;
}

bool space_add_peer(struct global_memory *memory, const struct global_memory *peer)
{
    const struct global_memory **larger = realloc(memory->peer, (memory->peers + 1) * sizeof *larger);
    if (larger == NULL) return false;
    memory->peer = larger;
    larger[memory->peers++] = peer;
    return true;
}

bool space_remove_peer(struct global_memory *memory, const struct global_memory *peer)
{
    const uint32_t at = peer_place(memory, peer);
    if (at == memory->peers) return false;
    memory->peer[at] = memory->peer[--memory->peers];
    return true;
}

/* ---- who reaches what ---- */

struct global_memory *space_next(struct global_memory *first, const struct global_memory *memory)
{
    struct global_memory *next = memory == first ? (first->space == NULL ? NULL : first->space->first) : memory->beside;
    return next == first ? first->beside : next;
}

struct global_memory *space_owner(struct global_memory *memory, uint64_t address)
{
    for (struct global_memory *m = memory; m != NULL; m = space_next(memory, m))
        if (global_find(m, address) != NULL) return m;
    return NULL;
}

bool space_reaches(const struct global_memory *memory, const struct global_memory *owner, const struct allocation *a)
{
    if (a->devices != 0) return (a->devices >> memory->device & 1) != 0;
    return owner == memory || space_is_peer(memory, owner);
}

const struct allocation *space_find(const struct global_memory *memory, uint64_t address)
{
    const struct allocation *a = global_find(memory, address);
    if (a != NULL) return space_reaches(memory, memory, a) ? a : NULL;
    for (const struct global_memory *m = memory->space == NULL ? NULL : memory->space->first; m != NULL; m = m->beside)
        if (m != memory && (a = global_find(m, address)) != NULL) return space_reaches(memory, m, a) ? a : NULL;
    return NULL;
}

uint8_t *space_host(const struct global_memory *memory, uint64_t address, uint64_t bytes)
{
    const struct allocation *a = space_find(memory, address);
    return a == NULL || bytes > a->bytes - (address - a->base) ? NULL : a->host + (address - a->base);
}

static const char *access_call(const struct allocation *a)
{
    return a->pool != NULL ? "cuMemPoolSetAccess" : "cuMemSetAccess";
}

bool space_explain(const struct global_memory *memory, uint64_t address, char *text, size_t size)
{
    const struct global_memory *owner = memory->space == NULL ? NULL : memory->space->first;
    const struct allocation *a = NULL;
    for (; owner != NULL && (a = global_find(owner, address)) == NULL; owner = owner->beside) { }
    if (a == NULL || space_reaches(memory, owner, a)) return false;
    const unsigned own = memory->device, other = owner->device;
    const int used = snprintf(text, size, "which lies in the %llu bytes allocated at 0x%llx ",
                              (unsigned long long)a->bytes, (unsigned long long)a->base);
    if (used < 0 || (size_t)used >= size) return true;
    text += used, size -= (size_t)used;
    if (a->devices != 0)
        snprintf(text, size, "to which device %u was not given access (%s; peer access does not count)", own,
                 access_call(a));
    else if (own == other) snprintf(text, size, "in another context of device %u", other);
    else
        snprintf(text, size, "in memory of device %u; peer access of this context of device %u to it is not enabled "
                 "(cuCtxEnablePeerAccess)", other, own);
    return true;
}
