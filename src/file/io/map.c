/* Mapped files. */
#include "map.h"
#include "core/core.h"
#include "file.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

bsm_status bsmi_map_file(const char *path, struct bsmi_map *map)
{
    int descriptor;
    uint64_t bytes;
    *map = (struct bsmi_map){ NULL, 0 };
    const bsm_status status = bsmi_open_file(path, &descriptor, &bytes);
    if (status != BSM_OK) return status;
    void *mapped = bytes > 0 ? mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, descriptor, 0) : NULL;
    const int reason = errno;
    close(descriptor);
    if (mapped == MAP_FAILED) return bsmi_fail(BSM_EIO, "%.256s: cannot be mapped: %s", path, strerror(reason));
    *map = (struct bsmi_map){ mapped, (size_t)bytes };
    return BSM_OK;
}

void bsmi_unmap(struct bsmi_map *map)
{
    if (map->bytes != NULL) munmap((void *)(uintptr_t)map->bytes, map->count);
    *map = (struct bsmi_map){ NULL, 0 };
}
