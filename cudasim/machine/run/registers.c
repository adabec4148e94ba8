/* The memory of warps' registers.  A kernel has thousands of them, of which a run touches those of the branches that it
 * takes: pages that come zeroed when they are touched cost less than memory that has to be cleared.  A page that is
 * touched for the first time costs twenty times as much as one that is cleared, though, and the next warp of a kernel
 * touches the same ones; so what a warp leaves is kept for the next, its touched pages cleared. */
#include "registers.h"
#include "machine/core/machine.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ThreadSanitizer does not see that mremap moves memory to where another thread's was. */
enum { PAGED_BYTES = THREAD_SANITIZER ? 1 << 30 : 128 * 1024 };
enum { KEPT_BLOCKS = 1024, KEPT_BYTES = 128 << 20, ENTRIES = 512 };

/* The entry of a page in /proc/self/pagemap: in memory, or swapped out. */
static const uint64_t TOUCHED = UINT64_C(3) << 62;

struct block {
    uint64_t *registers;
    size_t bytes, touched;
};

static struct {
    pthread_mutex_t lock;
    struct block block[KEPT_BLOCKS];                   /* the oldest first */
    uint32_t count;
    size_t touched;                                    /* bytes of all */
    int pagemap;                                       /* of the process that opened it, which a child is not */
    pid_t process;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER, .pagemap = -1 };

static size_t bytes_of_rows(uint64_t rows) { return rows * LANES * sizeof(uint64_t); }

static int open_pagemap(void)
{
    const pid_t process = getpid();
    pthread_mutex_lock(&kept.lock);
    if (kept.process != process) {
        if (kept.pagemap >= 0) close(kept.pagemap);
        kept.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        kept.process = process;
    }
    const int file = kept.pagemap;
    pthread_mutex_unlock(&kept.lock);
    return file;
}

/* Clears the pages that were touched and counts their bytes, or returns false: which ones is not known. */
static bool clear(struct block *b)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (b->bytes + page - 1) / page;
    const int file = open_pagemap();
    uint64_t entry[ENTRIES];
    for (size_t first = 0; first < pages; first += ENTRIES) {
        const size_t count = pages - first < ENTRIES ? pages - first : ENTRIES;
        const off_t at = (off_t)(((uintptr_t)b->registers / page + first) * sizeof *entry);
        if (pread(file, entry, count * sizeof *entry, at) != (ssize_t)(count * sizeof *entry)) return false;
        for (size_t i = 0; i < count; i++)
            if ((entry[i] & TOUCHED) != 0) {
                memset((uint8_t *)b->registers + (first + i) * page, 0, page);
                b->touched += page;
            }
    }
    return true;
}

static void remove_block(uint32_t at)
{
    kept.touched -= kept.block[at].touched;
    kept.count--;
    memmove(&kept.block[at], &kept.block[at + 1], (kept.count - at) * sizeof kept.block[0]);
}

static bool keep(struct block b)
{
    if (!clear(&b) || b.touched > KEPT_BYTES) return false;
    pthread_mutex_lock(&kept.lock);
    while (kept.count == KEPT_BLOCKS || kept.touched + b.touched > KEPT_BYTES) {
        munmap(kept.block[0].registers, kept.block[0].bytes);
        remove_block(0);
    }
    kept.block[kept.count++] = b;
    kept.touched += b.touched;
    pthread_mutex_unlock(&kept.lock);
    return true;
}

static uint64_t *take(size_t bytes)
{
    uint64_t *found = NULL;
    pthread_mutex_lock(&kept.lock);
    for (uint32_t i = kept.count; i-- > 0 && found == NULL;)
        if (kept.block[i].bytes == bytes) {
            found = kept.block[i].registers;
            remove_block(i);
        }
    pthread_mutex_unlock(&kept.lock);
    return found;
}

void registers_free(uint64_t *registers, uint64_t rows)
{
    const size_t bytes = bytes_of_rows(rows);
    if (bytes < PAGED_BYTES) free(registers);
    else if (!keep((struct block){ registers, bytes, 0 })) munmap(registers, bytes);
}

uint64_t *registers_grow(uint64_t *old, uint64_t old_rows, uint64_t rows)
{
    const size_t bytes = bytes_of_rows(rows), old_bytes = bytes_of_rows(old_rows);
    void *made;
    if (old_bytes >= PAGED_BYTES) {
        made = mremap(old, old_bytes, bytes, MREMAP_MAYMOVE);
        return made == MAP_FAILED ? NULL : made;
    }
    if (bytes < PAGED_BYTES) made = calloc(1, bytes);
    else if ((made = take(bytes)) == NULL)
        made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == NULL || made == MAP_FAILED) return NULL;
    if (old_rows != 0) memcpy(made, old, old_bytes);
    registers_free(old, old_rows);
    return made;
}
