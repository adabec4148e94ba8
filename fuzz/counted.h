/* A context whose memory is counted and bounded: what a target holds too much, or keeps, ends the program. */
#ifndef FUZZ_COUNTED_H
#define FUZZ_COUNTED_H

#include "input.h"

#include <sys/mman.h>
#include <unistd.h>

static int64_t held, limit;

/* Blocks of memory.  AddressSanitizer looks after those of malloc; without it they come from one room that is used
 * again once nothing of it is held, each with bytes behind it that must stay as they are: a tenth of malloc's time. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BLOCKS_OF_MALLOC
#endif
#endif

#ifdef BLOCKS_OF_MALLOC

static void *take_block(size_t bytes, size_t alignment)
{
    void *memory = NULL;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void give_block(void *memory, size_t bytes) { (void)bytes, free(memory); }
static void keep_blocks(void) {}

#else

enum { BLOCK_ROOM = 1 << 27, BEHIND = 32 };
static struct { uint8_t *start; size_t used, kept; int blocks; } room;

static void *take_block(size_t bytes, size_t alignment)
{
    if (room.start == NULL) {
        void *start =
            mmap(NULL, BLOCK_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE(start != MAP_FAILED);
        room.start = start;
    }
    const size_t at = (room.used + alignment - 1) / alignment * alignment;
    REQUIRE(alignment <= 4096 && bytes <= BLOCK_ROOM - BEHIND && at <= BLOCK_ROOM - BEHIND - bytes);
    memset(room.start + at, 0xa5, bytes < 256 ? bytes : 256);
    memset(room.start + at + bytes, 0x5a, BEHIND);
    room.used = at + bytes + BEHIND;
    room.blocks++;
    return room.start + at;
}

static void give_block(void *memory, size_t bytes)
{
    uint8_t same[BEHIND];
    memset(same, 0x5a, BEHIND);
    REQUIRE(memcmp((uint8_t *)memory + bytes, same, BEHIND) == 0);
    if (--room.blocks == 0) room.used = room.kept;
}

/* What is held now is held for ever. */
static void keep_blocks(void)
{
    room.kept = room.used;
    room.blocks = 0;
}

#endif

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    held += (int64_t)bytes;
    REQUIRE(held <= limit);
    return take_block(bytes, alignment);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    if (memory == NULL) return;
    held -= (int64_t)bytes;
    give_block(memory, bytes);
}

/* Room for a file that ends where nothing can be read; NULL for more than 1 MiB.  The next call takes it back. */
static inline uint8_t *file_room(size_t size)
{
    enum { MOST = 1 << 20 };
    static uint8_t *end;
    if (end == NULL) {
        uint8_t *start = mmap(NULL, MOST + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(start != MAP_FAILED && mprotect(start + MOST, 65536, PROT_NONE) == 0);
        end = start + MOST;
    }
    return size <= MOST ? end - size : NULL;
}

/* most: bytes that the context itself may take. */
static bsm_context *counted_context(int64_t most)
{
    bsm_context *context;
    const bsm_allocator allocator = { allocate, release, NULL };
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 1, .portable_only = true,
                                          .allocator = &allocator };
    limit = most;
    REQUIRE(bsm_context_create(&options, &context) == BSM_OK);
    keep_blocks();
    return context;
}

#endif
