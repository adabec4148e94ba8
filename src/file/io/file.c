/* Files as a whole: read exactly, written complete or not at all. */
#include "file.h"
#include "core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* One call moves at most this much: Linux stops at 0x7ffff000 bytes, other systems refuse more than INT_MAX. */
static const size_t MOST_AT_ONCE = (size_t)1 << 30;

static bsm_status fail_with_errno(const char *path, const char *what)
{
    const int reason = errno;
    return bsmi_fail(BSM_EIO, "%.256s: %s: %s", path, what, strerror(reason));
}

/* Reading ------------------------------------------------------------------------------------------------------------ */

bsm_status bsmi_open_file(const char *path, int *descriptor, uint64_t *bytes)
{
    struct stat facts;
    const int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);      /* a pipe would wait for its writer */
    if (opened < 0) return fail_with_errno(path, "cannot be opened");
    bsm_status status = BSM_OK;
    if (fstat(opened, &facts) != 0) status = fail_with_errno(path, "cannot be examined");
    else if (S_ISDIR(facts.st_mode)) status = bsmi_fail(BSM_EIO, "%.256s: is a directory, not a file", path);
    else if (!S_ISREG(facts.st_mode)) status = bsmi_fail(BSM_EIO, "%.256s: is no regular file; its size must be known", path);
    if (status != BSM_OK) {
        close(opened);
        return status;
    }
    *descriptor = opened;
    *bytes = (uint64_t)facts.st_size;
    return BSM_OK;
}

bsm_status bsmi_read_exactly(int descriptor, const char *path, void *into, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = read(descriptor, (char *)into + done, BSMI_MIN(bytes - done, MOST_AT_ONCE));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_with_errno(path, "cannot be read");
        if (got == 0) return bsmi_fail(BSM_EIO, "%.256s: became shorter while it was read", path);
        done += (size_t)got;
    }
    return BSM_OK;
}

/* Writing ------------------------------------------------------------------------------------------------------------ */

static bool write_pieces(int descriptor, const struct bsmi_piece *pieces, int count)
{
    for (int i = 0; i < count; i++)
        for (size_t done = 0; done < pieces[i].bytes;) {
            const size_t bytes = BSMI_MIN(pieces[i].bytes - done, MOST_AT_ONCE);
            const ssize_t put = write(descriptor, (const char *)pieces[i].data + done, bytes);
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) return false;
            done += (size_t)put;
        }
    return true;
}

/* Opens a file that is not there yet, beside target; its name does not contain the target's, which may be as long as names get. */
static int open_temporary(const char *target, char *name, size_t room, mode_t mode)
{
    const char *slash = strrchr(target, '/');
    const int directory = slash == NULL ? 0 : (int)(slash - target) + 1;
    for (int attempt = 0; attempt < 100; attempt++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (snprintf(name, room, "%.*s.blockscale-%ld-%ld.tmp", directory, target, (long)getpid(), now.tv_nsec) >= (int)room) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (descriptor >= 0 || errno != EEXIST) return descriptor;
    }
    return -1;
}

static bsm_status replace(const char *path, const char *target, mode_t mode, bool there, const struct bsmi_piece *pieces, int count)
{
    char temporary[PATH_MAX + 64];
    const int descriptor = open_temporary(target, temporary, sizeof temporary, there ? 0600 : 0666);
    if (descriptor < 0) return fail_with_errno(path, "cannot be written");
    bool good = write_pieces(descriptor, pieces, count);
    if (good && there) good = fchmod(descriptor, mode) == 0 || errno == EPERM || errno == ENOTSUP;   /* no modes there */
    const int reason = errno;
    if (close(descriptor) != 0) good = false;
    else errno = reason;
    if (good && rename(temporary, target) == 0) return BSM_OK;
    const bsm_status status = fail_with_errno(path, "could not be written");
    unlink(temporary);
    return status;
}

static bsm_status write_directly(const char *path, const struct bsmi_piece *pieces, int count)
{
    const int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return fail_with_errno(path, "cannot be written");
    bool good = write_pieces(descriptor, pieces, count);
    const int reason = errno;
    if (close(descriptor) != 0) good = false;
    else errno = reason;
    return good ? BSM_OK : fail_with_errno(path, "could not be written");
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

bsm_status bsmi_write_file(const char *path, const struct bsmi_piece *pieces, int count)
{
    struct stat facts;
    char target[PATH_MAX];
    if (stat(path, &facts) != 0) {
        if (errno != ENOENT || !follow_links(path, target)) return fail_with_errno(path, "cannot be written");
        return replace(path, target, 0, false, pieces, count);
    }
    if (S_ISDIR(facts.st_mode)) return bsmi_fail(BSM_EIO, "%.256s: cannot be written: is a directory", path);
    if (!S_ISREG(facts.st_mode)) return write_directly(path, pieces, count);
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0 || realpath(path, target) == NULL)
        return fail_with_errno(path, "cannot be written");
    return replace(path, target, facts.st_mode & 07777, true, pieces, count);
}
