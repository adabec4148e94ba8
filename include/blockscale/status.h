/* Version, status codes and error sentences. */
#ifndef BLOCKSCALE_STATUS_H
#define BLOCKSCALE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define BSM_API __attribute__((visibility("default")))
#else
#define BSM_API
#endif

#define BSM_VERSION 100                  /* major * 10000 + minor * 100 + patch, of this header: 0.1.0 */

/* The same number, of the library that was loaded. */
BSM_API int bsm_version(void);

typedef enum bsm_status {
    BSM_OK = 0,
    BSM_EINVAL,                          /* an argument breaks a rule that this header states */
    BSM_EALIGN,                          /* a pointer or a pitch is not aligned as the header asks */
    BSM_EOVERFLOW,                       /* sizes multiply to more than an int64_t holds */
    BSM_EUNSUPPORTED,                    /* a legal request that no backend of this context serves */
    BSM_ENOMEM,                          /* the context's allocator returned NULL */
    BSM_EDEVICE,                         /* a device or its driver failed */
    BSM_EIO,                             /* a file could not be opened, read or written */
    BSM_EFILE                            /* a file was read, but what it holds is malformed */
} bsm_status;

/* The name and meaning of a status, as one short English sentence; never NULL, also for numbers not listed. */
BSM_API const char *bsm_strerror(int status);

/* What went wrong in the last call of this thread that did not return BSM_OK: names the argument, its value and the
 * rule.  Never NULL; empty before the first failure.  Valid until the next failing call of the same thread. */
BSM_API const char *bsm_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
