/* Global memory: its allocations, by address. */
#include "global_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GLOBAL_ALIGNMENT = 512, GUARD_BYTES = 4096, PAGE_BYTES = 4096 };

void global_open(struct global_memory *memory, uint64_t limit)
{
    *memory = (struct global_memory){ .next = GLOBAL_WINDOW + (UINT64_C(1) << 32), .limit = limit };
}

static void free_host(const struct allocation *a)
{
    if (a->owned) free(a->host);
    if (a->mapped) munmap(a->host, a->bytes);
    free(a->writer), free(a->reader);
}

void global_close(struct global_memory *memory)
{
    for (uint32_t i = 0; i < memory->count; i++) free_host(&memory->allocation[i]);
    free(memory->allocation);
    *memory = (struct global_memory){ 0 };
}

/* Bytes of the device; host memory takes none of them, and a mapping shows what somebody else counts. */
static uint64_t taken(const struct allocation *a)
{
    return a->kind == ALLOCATION_DEVICE || a->kind == ALLOCATION_MANAGED ? a->bytes : 0;
}

static bool make_room(struct global_memory *memory)
{
    if (memory->count < memory->capacity) return true;
    const uint32_t capacity = memory->capacity == 0 ? 64 : 2 * memory->capacity;
    struct allocation *larger = realloc(memory->allocation, capacity * sizeof *larger);
    if (larger == NULL) return false;
    memory->allocation = larger;
    memory->capacity = capacity;
    return true;
}

uint64_t global_reserve(struct global_memory *memory, uint64_t bytes, uint64_t alignment)
{
    if (alignment < GLOBAL_ALIGNMENT) alignment = GLOBAL_ALIGNMENT;
    uint64_t *next = memory->space != NULL ? &memory->space->next : &memory->next;
    const uint64_t base = (*next + alignment - 1) / alignment * alignment;
    if (base >= SHARED_WINDOW || bytes > SHARED_WINDOW - GUARD_BYTES - base) return 0;
    *next = base + bytes + GUARD_BYTES;
    return base;
}

bool global_insert(struct global_memory *memory, const struct allocation *allocation)
{
    if (!make_room(memory)) return false;
    uint32_t at = memory->count++;
    for (; at > 0 && memory->allocation[at - 1].base > allocation->base; at--)
        memory->allocation[at] = memory->allocation[at - 1];
    memory->allocation[at] = *allocation;
    memory->used += taken(allocation);
    return true;
}

uint64_t global_allocate(struct global_memory *memory, uint64_t bytes, uint64_t alignment, const char *name)
{
    if (bytes > memory->limit - memory->used) return 0;
    const uint64_t base = global_reserve(memory, bytes, alignment);
    struct allocation made = { .base = base, .bytes = bytes, .owned = true, .name = name };
    made.host = base == 0 ? NULL : calloc(1, bytes == 0 ? 1 : bytes);
    if (made.host != NULL && global_insert(memory, &made)) return base;
    free(made.host);
    return 0;
}

uint64_t global_map(struct global_memory *memory, uint64_t bytes, enum allocation_kind kind)
{
    const uint64_t size = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (bytes > memory->limit - memory->used) return 0;
    const uint64_t base = global_reserve(memory, size, PAGE_BYTES);
    if (base == 0) return 0;
    void *place = (void *)(uintptr_t)base;
    void *host = mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (host == MAP_FAILED) return 0;
    const struct allocation made = { .base = base, .bytes = bytes, .host = host, .mapped = true,
                                      .kind = (uint8_t)kind };
    if (host == place && global_insert(memory, &made)) return base;
    munmap(host, size);
    return 0;
}

static struct allocation *search(const struct global_memory *memory, uint64_t address)
{
    uint32_t low = 0, high = memory->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (memory->allocation[middle].base <= address) low = middle + 1;
        else high = middle;
    }
    return low == 0 ? NULL : &memory->allocation[low - 1];
}

bool global_release(struct global_memory *memory, uint64_t base)
{
    struct allocation *a = search(memory, base);
    if (a == NULL || a->base != base) return false;
    free_host(a);
    memory->used -= taken(a);
    const size_t behind = (size_t)(memory->allocation + memory->count - (a + 1));
    memmove(a, a + 1, behind * sizeof *a);
    memory->count--;
    return true;
}

const struct allocation *global_find(const struct global_memory *memory, uint64_t address)
{
    const struct allocation *a = search(memory, address);
    return a != NULL && address - a->base < a->bytes ? a : NULL;
}

uint8_t *global_host(const struct global_memory *memory, uint64_t address, uint64_t bytes)
{
    const struct allocation *a = search(memory, address);
    if (a == NULL || address - a->base > a->bytes || bytes > a->bytes - (address - a->base)) return NULL;
    return a->host + (address - a->base);
}

const struct allocation *global_last_below(const struct global_memory *memory, uint64_t address)
{
    return search(memory, address);
}
