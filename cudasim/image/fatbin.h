/* Fat binaries: the container that nvcc -fatbin and the runtime library's registration use. */
#ifndef CUDASIM_IMAGE_FATBIN_H
#define CUDASIM_IMAGE_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/core/device.h"

/* What an image that a caller hands over begins with. */
enum image_kind { IMAGE_TEXT, IMAGE_FATBIN, IMAGE_CUBIN };
enum image_kind image_kind(const void *image);

/* One PTX text or cubin of a fatbin, as it lies there. */
enum payload_kind { PAYLOAD_PTX = 1, PAYLOAD_CUBIN = 2 };
enum payload_packing { PAYLOAD_PLAIN, PAYLOAD_ZSTD, PAYLOAD_LZ4 };
struct payload {
    enum payload_kind kind;
    enum payload_packing packing;
    const void *bytes;
    size_t size;                          /* as it lies there, padding behind it included where it is not packed */
    size_t packed, content;               /* of LZ4: bytes of the block, without padding, and what it unpacks to */
};

/* begin sets a walk in front of the first payload, next steps to one until END.  begin gives false, and next WRONG,
 * with a sentence in `why`, where the container is not what it says. */
struct fatbin_walk { const uint8_t *first; uint64_t at, end; };
enum fatbin_step { FATBIN_END, FATBIN_PAYLOAD, FATBIN_WRONG };
bool fatbin_begin(const void *image, struct fatbin_walk *walk, char *why, size_t why_bytes);
enum fatbin_step fatbin_next(struct fatbin_walk *walk, struct payload *payload, char *why, size_t why_bytes);

/* The payload's bytes, unpacked, with a zero byte behind them, from malloc; *size without that byte, and of a text
 * without padding. NULL and why: no memory, bytes that are not what they say, or a packing that this build does not
 * read. */
char *payload_unpack(const struct payload *payload, size_t *size, char *why, size_t why_bytes);

/* The newest PTX of a fatbin that the device runs, from malloc, ended by a zero byte, and its length; or NULL and why
 * not. */
char *fatbin_text(const void *image, const struct device_limits *device, size_t *length, char *why, size_t why_bytes);

#endif
