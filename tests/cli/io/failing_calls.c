/* To be preloaded: the n-th call of the command to a group of functions fails, or a signal comes just before it.
 *
 *   FAIL_GROUP  "memory" or "files"
 *   FAIL_AT     which call, from 1; 0: none, and the number of calls is written to descriptor FAIL_COUNT at exit
 *   FAIL_HOW    "error", "signal" (FAIL_SIGNAL's number, SIGTERM unless given), or "truncate" (of FAIL_FILE, to
 * nothing)
 *   FAIL_SLOW   microseconds that fwrite takes, and a call that fails half of it; 0 unless given
 *
 * A file that is closed by one thread while another one writes it is a fault: abort.
 * Calls of libraries are left alone: only those from the main program count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static uintptr_t program_start, program_end;
static long wanted, count;
static int signal_number = SIGTERM;
static useconds_t slow;
static FILE *_Atomic being_written;
static const char *to_truncate;           /* NULL: nothing */
static bool memory, by_signal, started;

static int find_program(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    program_start = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, end = at + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        if (at < program_start) program_start = at;
        if (end > program_end) program_end = end;
    }
    return 1;                             /* the program is the first */
}

static void report(void)
{
    const char *descriptor = getenv("FAIL_COUNT");
    if (descriptor != NULL) dprintf(atoi(descriptor), "%ld", count);
}

__attribute__((constructor)) static void start(void)
{
    const char *at = getenv("FAIL_AT"), *group = getenv("FAIL_GROUP"), *how = getenv("FAIL_HOW");
    dl_iterate_phdr(find_program, NULL);
    wanted = at != NULL ? atol(at) : 0;
    memory = group != NULL && strcmp(group, "memory") == 0;
    by_signal = how != NULL && strcmp(how, "signal") == 0;
    if (getenv("FAIL_SIGNAL") != NULL) signal_number = atoi(getenv("FAIL_SIGNAL"));
    if (getenv("FAIL_SLOW") != NULL) slow = (useconds_t)atoi(getenv("FAIL_SLOW"));
    if (how != NULL && strcmp(how, "truncate") == 0) to_truncate = getenv("FAIL_FILE");
    started = true;
    atexit(report);
}

/* Whether this call is to fail. */
static bool fails(bool is_memory, const void *caller)
{
    const uintptr_t from = (uintptr_t)caller;
    if (!started || is_memory != memory || from < program_start || from >= program_end) return false;
    if (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) != wanted) return false;
    usleep(slow / 2);
    if (by_signal) raise(signal_number);
    if (to_truncate != NULL && truncate(to_truncate, 0) != 0) abort();
    errno = is_memory ? ENOMEM : EIO;
    return !by_signal && to_truncate == NULL;
}

#define NEXT(name) static __typeof__(name) *next; if (next == NULL) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define FAILS(is_memory) fails(is_memory, __builtin_return_address(0))

void *malloc(size_t bytes) { NEXT(malloc); return FAILS(true) ? NULL : next(bytes); }
void *realloc(void *block, size_t bytes) { NEXT(realloc); return FAILS(true) ? NULL : next(block, bytes); }
int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    NEXT(posix_memalign);
    return FAILS(true) ? ENOMEM : next(block, alignment, bytes);
}

int open(const char *path, int flags, ...)
{
    NEXT(open);
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return FAILS(false) ? -1 : next(path, flags, mode);
}
ssize_t read(int file, void *bytes, size_t length) { NEXT(read); return FAILS(false) ? -1 : next(file, bytes, length); }
ssize_t write(int file, const void *bytes, size_t length)
{
    NEXT(write);
    return FAILS(false) ? -1 : next(file, bytes, length);
}
void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    NEXT(mmap);
    return FAILS(false) ? MAP_FAILED : next(at, bytes, protection, flags, file, offset);
}
int stat(const char *restrict path, struct stat *restrict there)
{
    NEXT(stat);
    return FAILS(false) ? -1 : next(path, there);
}
int fstat(int file, struct stat *there) { NEXT(fstat); return FAILS(false) ? -1 : next(file, there); }
int statvfs(const char *restrict path, struct statvfs *restrict disk)
{
    NEXT(statvfs);
    return FAILS(false) ? -1 : next(path, disk);
}
int mkdir(const char *path, mode_t mode) { NEXT(mkdir); return FAILS(false) ? -1 : next(path, mode); }
int rename(const char *from, const char *to) { NEXT(rename); return FAILS(false) ? -1 : next(from, to); }
FILE *fopen(const char *restrict path, const char *restrict mode)
{
    NEXT(fopen);
    return FAILS(false) ? NULL : next(path, mode);
}
FILE *fdopen(int file, const char *mode) { NEXT(fdopen); return FAILS(false) ? NULL : next(file, mode); }
/* The mark of glibc's _IO_ERR_SEEN: ferror tells of it later. */
static void mark(FILE *file) { file->_flags |= 0x20; }

size_t fread(void *restrict to, size_t size, size_t items, FILE *restrict file)
{
    NEXT(fread);
    if (!FAILS(false)) return next(to, size, items, file);
    mark(file);
    return 0;
}
size_t fwrite(const void *restrict from, size_t size, size_t items, FILE *restrict file)
{
    NEXT(fwrite);
    const bool failed = FAILS(false);
    being_written = file;
    usleep(slow);
    const size_t written = failed ? 0 : next(from, size, items, file);
    being_written = NULL;
    if (failed) mark(file);
    return written;
}
int fseeko(FILE *file, off_t to, int whence) { NEXT(fseeko); return FAILS(false) ? -1 : next(file, to, whence); }
int fflush(FILE *file)
{
    NEXT(fflush);
    if (!FAILS(false)) return next(file);
    if (file != NULL) mark(file);
    return EOF;
}
int fclose(FILE *file)
{
    NEXT(fclose);
    if (file == being_written) abort();
    const bool failed = FAILS(false);
    const int result = next(file);        /* closed in any case, as the kernel does */
    return failed ? EOF : result;
}
