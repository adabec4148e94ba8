/* An allocator that counts, checks what it is given back, and fails when told to.
 *
 *     struct counted counted = { .fail_at = 3 };                      (the third call fails; .forever: and all later ones)
 *     const bsm_allocator allocator = counted_allocator(&counted);
 *     ... CHECK(t, counted.live == 0 && counted.errors == 0); */
#ifndef BSM_COUNTED_H
#define BSM_COUNTED_H

#include "blockscale/context.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct counted {
    int64_t calls, live, live_bytes, most_bytes;
    int64_t fail_at;                      /* 1: the first call fails; 0: none */
    bool forever;                         /* and all later ones */
    int errors;                           /* releases whose pointer or byte count is wrong, alignments that are no power of two */
    pthread_mutex_t lock;                
};

/* Before each block lies its header; what the library gets is filled with 0xa5, what it gives back with 0x5a. */
struct counted_header { size_t bytes, lead; struct counted *owner; };

static inline void *counted_allocate(void *user, size_t bytes, size_t alignment)
{
    struct counted *counted = user;
    pthread_mutex_lock(&counted->lock);
    const int64_t call = ++counted->calls;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > 4096 || bytes == 0) counted->errors++;
    unsigned char *memory = NULL;
    if (counted->fail_at == 0 || (counted->forever ? call < counted->fail_at : call != counted->fail_at)) {
        const size_t lead = alignment > 64 ? alignment : 64;
        void *block = NULL;
        if (posix_memalign(&block, lead, lead + bytes) != 0) abort();
        memory = (unsigned char *)block + lead;
        const struct counted_header header = { bytes, lead, counted };
        memcpy(memory - sizeof header, &header, sizeof header);
        memset(memory, 0xa5, bytes);
        counted->live++;
        counted->live_bytes += (int64_t)bytes;
        if (counted->live_bytes > counted->most_bytes) counted->most_bytes = counted->live_bytes;
    }
    pthread_mutex_unlock(&counted->lock);
    return memory;
}

static inline void counted_release(void *user, void *memory, size_t bytes)
{
    struct counted *counted = user;
    pthread_mutex_lock(&counted->lock);
    struct counted_header header = { 0, 0, NULL };
    if (memory != NULL) memcpy(&header, (unsigned char *)memory - sizeof header, sizeof header);
    if (memory == NULL || header.owner != counted || header.bytes != bytes) {
        counted->errors++;
    } else {
        memset((unsigned char *)memory - sizeof header, 0x5a, bytes + sizeof header);
        free((unsigned char *)memory - header.lead);
        counted->live--;
        counted->live_bytes -= (int64_t)bytes;
    }
    pthread_mutex_unlock(&counted->lock);
}

static inline bsm_allocator counted_allocator(struct counted *counted)
{
    pthread_mutex_init(&counted->lock, NULL);
    return (bsm_allocator){ counted_allocate, counted_release, counted };
}

#endif
