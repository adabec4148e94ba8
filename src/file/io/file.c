/* Files as a whole, read exactly. */
#include "file.h"
#include "core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

bsm_status bsmi_fail_with_errno(const char *path, const char *what)
{
    const int reason = errno;
    return bsmi_fail(BSM_EIO, "%.256s: %s: %s", path, what, strerror(reason));
}

bsm_status bsmi_open_file(const char *path, int *descriptor, uint64_t *bytes)
{
    struct stat facts;
    const int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait for its writer */
    if (opened < 0) return bsmi_fail_with_errno(path, "cannot be opened");
    bsm_status status = BSM_OK;
    if (fstat(opened, &facts) != 0) status = bsmi_fail_with_errno(path, "cannot be examined");
    else if (S_ISDIR(facts.st_mode)) status = bsmi_fail(BSM_EIO, "%.256s: is a directory, not a file", path);
    else if (!S_ISREG(facts.st_mode))
        status = bsmi_fail(BSM_EIO, "%.256s: is no regular file; its size must be known", path);
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
        const ssize_t got = read(descriptor, (char *)into + done, BSMI_MIN(bytes - done, (size_t)BSMI_MOST_AT_ONCE));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return bsmi_fail_with_errno(path, "cannot be read");
        if (got == 0) return bsmi_fail(BSM_EIO, "%.256s: became shorter while it was read", path);
        done += (size_t)got;
    }
    return BSM_OK;
}
