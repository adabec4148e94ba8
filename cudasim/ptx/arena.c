/* Memory of one module. */
#include "ptx/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Under AddressSanitizer each piece is an allocation of its own, so that it sees what reads beyond one. */
#if defined(__SANITIZE_ADDRESS__)
#define PIECES_APART 1
#elif defined(__has_feature)
#define PIECES_APART __has_feature(address_sanitizer)
#else
#define PIECES_APART 0
#endif

enum { ALIGNMENT = 16, CHUNK_BYTES = PIECES_APART ? 0 : 64 * 1024, UNIT = PIECES_APART ? 1 : ALIGNMENT };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

void arena_open(struct arena *arena, size_t limit) { *arena = (struct arena){ .limit = limit }; }

void arena_close(struct arena *arena)
{
    while (arena->chunk != NULL) {
        struct arena_chunk *chunk = arena->chunk;
        arena->chunk = chunk->next;
        free(chunk);
    }
}

static struct arena_chunk *add_chunk(struct arena *arena, size_t bytes)
{
    const size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    struct arena_chunk *chunk = calloc(1, sizeof *chunk + size);
    if (chunk == NULL) return NULL;
    chunk->size = size;
    chunk->next = arena->chunk;
    arena->chunk = chunk;
    return chunk;
}

void *arena_allocate(struct arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + UNIT - 1) / UNIT * UNIT;
    if (bytes == 0) bytes = UNIT;
    if (bytes > arena->limit || arena->used > arena->limit - bytes) return NULL;
    struct arena_chunk *chunk = arena->chunk;
    if (chunk == NULL || chunk->size - chunk->used < bytes) chunk = add_chunk(arena, bytes);
    if (chunk == NULL) return NULL;
    void *memory = chunk->bytes + chunk->used;
    chunk->used += bytes;
    arena->used += bytes;
    return memory;
}

char *arena_string(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_allocate(arena, length + 1);
    if (copy != NULL) memcpy(copy, text, length);
    return copy;
}
