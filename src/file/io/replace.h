/* Files that take another one's place: written beside it under a temporary name and renamed, so that a path holds all
 * of the new file, or what it held before.
 *
 * A link stays a link, also one that points to no file yet, and a file keeps its mode.  A device or a pipe is written
 * directly, since nothing can take its place. */
#ifndef BSMI_REPLACE_H
#define BSMI_REPLACE_H

#include "blockscale/status.h"

#include <limits.h>
#include <sys/types.h>

struct bsmi_replacement {
    const char *path;                     /* as it was given, for sentences; the caller's, and outlives this */
    char target[PATH_MAX];                /* behind symbolic links */
    char temporary[PATH_MAX + 64];        /* "" where the target is written directly */
    int descriptor;                       /* -1 once closed */
    mode_t mode;                          /* of the target */
    bool is_new, renamed;                 /* nothing lay at the target; what lies there now is this file */
};

/* Errors: BSM_EIO; then there is nothing to abandon. */
bsm_status bsmi_replacement_open(const char *path, struct bsmi_replacement *r);

/* Bytes from byte `at` of the file on. */
bsm_status bsmi_replacement_write(struct bsmi_replacement *r, int64_t at, const void *data, size_t bytes);

/* Ends the writing, and gives the file its name.  After an error the replacement is to be abandoned. */
bsm_status bsmi_replacement_close(struct bsmi_replacement *r);
bsm_status bsmi_replacement_rename(struct bsmi_replacement *r);

/* Removes what was written; a renamed file goes where nothing lay before.  Nothing happens to one that was
 * abandoned. */
void bsmi_replacement_abandon(struct bsmi_replacement *r);

struct bsmi_piece { const void *data; size_t bytes; };

/* All of it at once: the pieces, one after the other. */
bsm_status bsmi_write_file(const char *path, const struct bsmi_piece *pieces, int count);

#endif
