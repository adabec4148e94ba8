/* The command's one copy of yyjson (third_party): its files include <yyjson/yyjson.h>. */
#define YYJSON_DISABLE_WRITER       1
#define YYJSON_DISABLE_UTILS        1
#define YYJSON_DISABLE_INCR_READER  1
#define YYJSON_DISABLE_NON_STANDARD 1
#include <yyjson/yyjson.c>

#include "yyjson_memory.h"

static void *allocate(void *cli, size_t bytes) { return cli_memory(cli, (int64_t)bytes, 1); }

static void *resize(void *cli, void *memory, size_t old_bytes, size_t bytes)
{
    void *moved = allocate(cli, bytes);
    memcpy(moved, memory, old_bytes < bytes ? old_bytes : bytes);
    free(memory);
    return moved;
}

static void release(void *cli, void *memory)
{
    (void)cli;
    free(memory);
}

yyjson_alc cli_yyjson_memory(const struct cli *cli)
{
    return (yyjson_alc){ allocate, resize, release, (void *)(uintptr_t)cli };
}
