/* Allocations, sorted by address because addresses only grow. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
enum { PAGE = 4096, POISON = 0xff };
static const uint64_t window_bytes = UINT64_C(1) << 40;

bool memory_open(struct memory *m)
{
    *m = (struct memory){ 0 };
    void *window = mmap(NULL, window_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (window == MAP_FAILED) return false;
    m->window = window;
    return true;
}

void memory_close(struct memory *m)
{
    if (m->window != NULL) munmap(m->window, window_bytes);
    free(m->allocation);
    *m = (struct memory){ 0 };
}

uint64_t memory_allocate(struct memory *m, uint64_t bytes, enum allocation_kind kind)
{
    const uint64_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
    if (m->window == NULL || bytes == 0 || bytes > window_bytes / 2 || pages + PAGE > window_bytes - m->used) return 0;
    if (m->count == m->capacity) {
        const uint32_t capacity = m->capacity == 0 ? 64 : 2 * m->capacity;
        struct allocation *grown = realloc(m->allocation, capacity * sizeof *grown);
        if (grown == NULL) return 0;
        m->allocation = grown;
        m->capacity = capacity;
    }
    uint8_t *base = m->window + m->used;
    if (mprotect(base, pages, PROT_READ | PROT_WRITE) != 0) return 0;
    m->used += pages + PAGE;
    memset(base, POISON, bytes);
    m->allocation[m->count++] = (struct allocation){ (uint64_t)(uintptr_t)base, bytes, kind };
    return (uint64_t)(uintptr_t)base;
}

/* The index of the last allocation at or below the address; count: none. */
static uint32_t below(const struct memory *m, uint64_t address)
{
    uint32_t low = 0, high = m->count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (m->allocation[middle].base <= address) low = middle + 1;
        else high = middle;
    }
    return low == 0 ? m->count : low - 1;
}

const struct allocation *memory_below(const struct memory *m, uint64_t address)
{
    const uint32_t i = below(m, address);
    return i == m->count ? NULL : &m->allocation[i];
}

bool memory_free(struct memory *m, uint64_t base)
{
    const uint32_t i = below(m, base);
    if (i == m->count || m->allocation[i].base != base) return false;
    const uint64_t pages = (m->allocation[i].bytes + PAGE - 1) / PAGE * PAGE;
    void *at = (void *)(uintptr_t)base;
    mmap(at, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    memmove(&m->allocation[i], &m->allocation[i + 1], (m->count - i - 1) * sizeof m->allocation[0]);
    m->count--;
    return true;
}

const struct allocation *memory_find(const struct memory *m, uint64_t address, uint64_t bytes)
{
    const uint32_t i = below(m, address);
    if (i == m->count) return NULL;
    const struct allocation *a = &m->allocation[i];
    return address - a->base <= a->bytes && bytes <= a->bytes - (address - a->base) ? a : NULL;
}
