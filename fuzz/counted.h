/* A context whose memory is counted and bounded: what a target holds too much, or keeps, ends the program. */
#ifndef FUZZ_COUNTED_H
#define FUZZ_COUNTED_H

#include "input.h"

static int64_t held, limit;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    void *memory = NULL;
    held += (int64_t)bytes;
    REQUIRE(held <= limit);
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    held -= (int64_t)bytes;
    free(memory);
}

/* most: bytes that the context itself may take. */
static bsm_context *counted_context(int64_t most)
{
    bsm_context *context;
    const bsm_allocator allocator = { allocate, release, NULL };
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 1, .portable_only = true, .allocator = &allocator };
    limit = most;
    REQUIRE(bsm_context_create(&options, &context) == BSM_OK);
    return context;
}

#endif
