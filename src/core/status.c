/* Status codes and the thread's last error sentence. */
#include "core.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_error[512];

int bsm_version(void) { return BSM_VERSION; }

const char *bsm_strerror(int status)
{
    switch (status) {
    case BSM_OK: return "success";
    case BSM_EINVAL: return "an argument breaks a rule";
    case BSM_EALIGN: return "a pointer or a pitch is not aligned as required";
    case BSM_EOVERFLOW: return "sizes are too large to be counted";
    case BSM_EUNSUPPORTED: return "no backend of this context serves the request";
    case BSM_ENOMEM: return "out of memory";
    case BSM_EDEVICE: return "a device or its driver failed";
    case BSM_EIO: return "a file could not be opened, read or written";
    case BSM_EFILE: return "a file is malformed";
    default: return "no status of this library";
    }
}

const char *bsm_last_error(void) { return last_error; }

bsm_status bsmi_fail(bsm_status status, const char *format, ...)
{
    /* Formatted aside first: an argument may be the previous sentence. */
    char sentence[sizeof last_error];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    bsmi_mask(sentence);
    memcpy(last_error, sentence, sizeof sentence);
    return status;
}

bsm_status bsmi_read_struct(const char *name, const void *from, void *into, size_t known_bytes)
{
    size_t given;
    if (from == NULL) return bsmi_fail(BSM_EINVAL, "%s is NULL", name);
    memcpy(&given, from, sizeof given);
    if (given < sizeof given)
        return bsmi_fail(BSM_EINVAL, "%s->struct_size is %zu: set it to the sizeof of the struct", name, given);
    if (given > 65536)
        return bsmi_fail(BSM_EINVAL, "%s->struct_size is %zu: no version of this struct is that long", name, given);
    for (size_t i = known_bytes; i < given; i++)
        if (((const unsigned char *)from)[i] != 0)
            return bsmi_fail(BSM_EINVAL, "%s has a field at byte %zu that version %d of the library does not know",
                             name, i, BSM_VERSION);
    memset(into, 0, known_bytes);
    memcpy(into, from, BSMI_MIN(given, known_bytes));
    return BSM_OK;
}
