/* A file's bytes in memory, read-only, without reading them. */
#ifndef BSMI_MAP_H
#define BSMI_MAP_H

#include "blockscale/status.h"

struct bsmi_map { const unsigned char *bytes; size_t count; };    /* bytes: NULL for an empty file */

/* Errors: BSM_EIO; the sentence names the path. */
bsm_status bsmi_map_file(const char *path, struct bsmi_map *map);
void bsmi_unmap(struct bsmi_map *map);

#endif
