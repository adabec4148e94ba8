/* Memory that lives as long as one module: allocated in pieces, released at once. */
#ifndef CUDASIM_PTX_ARENA_H
#define CUDASIM_PTX_ARENA_H

#include <stddef.h>

struct arena {
    struct arena_chunk *chunk;
    size_t used;                          /* bytes, of all pieces */
    size_t limit;                         /* bytes; arena_allocate gives NULL beyond it */
};

void arena_open(struct arena *arena, size_t limit);
void arena_close(struct arena *arena);

/* Zeroed, aligned to 16 bytes; NULL if there is no memory or the limit is reached.  `bytes` may be 0. */
void *arena_allocate(struct arena *arena, size_t bytes);
char *arena_string(struct arena *arena, const char *text, size_t length);

#endif
