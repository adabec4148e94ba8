/* Files that take another one's place, see replace.h. */
#include "replace.h"
#include "core/core.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Opening --------------------------------------------------------------------------------------------------------- */

/* Opens a file that is not there yet, beside target; its name does not contain the target's, which may be as long as
 * names get. */
static int open_temporary(const char *target, char *name, size_t room, mode_t mode)
{
    const char *slash = strrchr(target, '/');
    const int directory = slash == NULL ? 0 : (int)(slash - target) + 1;
    for (int attempt = 0; attempt < 100; attempt++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (snprintf(name, room, "%.*s.blockscale-%ld-%ld.tmp", directory, target, (long)getpid(), now.tv_nsec) >=
            (int)room) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (descriptor >= 0 || errno != EEXIST) return descriptor;
    }
    return -1;
}

/* Where a path leads that leads to no file yet: behind symbolic links, whose last points nowhere. */
static bool follow_links(const char *path, char *target)
{
    char link[PATH_MAX];
    if (snprintf(target, PATH_MAX, "%s", path) >= PATH_MAX) errno = ENAMETOOLONG;
    else errno = ELOOP;
    for (int links = 0; links < 40 && errno != ENAMETOOLONG; links++) {
        const ssize_t length = readlink(target, link, sizeof link - 1);
        if (length < 0) return errno == EINVAL || errno == ENOENT;
        link[length] = '\0';
        char *name = strrchr(target, '/');
        name = name == NULL || link[0] == '/' ? target : name + 1;
        const size_t room = (size_t)(target + PATH_MAX - name);
        errno = snprintf(name, room, "%s", link) < (int)room ? ELOOP : ENAMETOOLONG;
    }
    return false;
}

/* The descriptor of what is written in place of path, or -1 with errno. */
static int open_for(struct bsmi_replacement *r, const char *path)
{
    struct stat facts;
    r->is_new = stat(path, &facts) != 0;
    if (r->is_new) {
        if (errno != ENOENT || !follow_links(path, r->target)) return -1;
        return open_temporary(r->target, r->temporary, sizeof r->temporary, 0666);
    }
    r->mode = facts.st_mode & 07777;
    if (!S_ISREG(facts.st_mode)) return open(path, O_WRONLY | O_CLOEXEC);
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0 || realpath(path, r->target) == NULL) return -1;
    return open_temporary(r->target, r->temporary, sizeof r->temporary, 0600);
}

bsm_status bsmi_replacement_open(const char *path, struct bsmi_replacement *r)
{
    struct stat facts;
    r->path = path;
    r->target[0] = r->temporary[0] = '\0';
    r->mode = 0;
    r->renamed = false;
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return bsmi_fail(BSM_EIO, "%.256s: cannot be written: is a directory", path);
    r->descriptor = open_for(r, path);
    return r->descriptor >= 0 ? BSM_OK : bsmi_fail_with_errno(path, "cannot be written");
}

/* Writing --------------------------------------------------------------------------------------------------------- */

static bsm_status write_all(struct bsmi_replacement *r, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t put =
            write(r->descriptor, (const char *)data + done, BSMI_MIN(bytes - done, (size_t)BSMI_MOST_AT_ONCE));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return bsmi_fail_with_errno(r->path, "could not be written");
        done += (size_t)put;
    }
    return BSM_OK;
}

bsm_status bsmi_replacement_write(struct bsmi_replacement *r, int64_t at, const void *data, size_t bytes)
{
    if (lseek(r->descriptor, (off_t)at, SEEK_SET) < 0) return bsmi_fail_with_errno(r->path, "could not be written");
    return write_all(r, data, bytes);
}

bsm_status bsmi_replacement_close(struct bsmi_replacement *r)
{
    bool good = true;
    if (r->temporary[0] != '\0' && !r->is_new) /* there are file systems without modes */
        good = fchmod(r->descriptor, r->mode) == 0 || errno == EPERM || errno == ENOTSUP;
    const int reason = errno;
    if (close(r->descriptor) != 0) good = false;
    else errno = reason;
    r->descriptor = -1;
    return good ? BSM_OK : bsmi_fail_with_errno(r->path, "could not be written");
}

bsm_status bsmi_replacement_rename(struct bsmi_replacement *r)
{
    if (r->temporary[0] == '\0') return BSM_OK;
    if (rename(r->temporary, r->target) != 0) return bsmi_fail_with_errno(r->path, "could not be written");
    r->temporary[0] = '\0';
    r->renamed = true;
    return BSM_OK;
}

void bsmi_replacement_abandon(struct bsmi_replacement *r)
{
    if (r->descriptor >= 0) close(r->descriptor);
    if (r->temporary[0] != '\0') unlink(r->temporary);
    if (r->renamed && r->is_new) unlink(r->target);
    r->descriptor = -1;
    r->temporary[0] = '\0';
    r->renamed = false;
}

bsm_status bsmi_write_file(const char *path, const struct bsmi_piece *pieces, int count)
{
    struct bsmi_replacement r;
    bsm_status status = bsmi_replacement_open(path, &r);
    if (status != BSM_OK) return status;
    for (int i = 0; status == BSM_OK && i < count; i++) status = write_all(&r, pieces[i].data, pieces[i].bytes);
    if (status == BSM_OK) status = bsmi_replacement_close(&r);
    if (status == BSM_OK) status = bsmi_replacement_rename(&r);
    if (status != BSM_OK) bsmi_replacement_abandon(&r);
    return status;
}
