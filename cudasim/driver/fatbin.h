/* Fat binaries: the container that nvcc -fatbin and the runtime library's registration use. */
#ifndef CUDASIM_DRIVER_FATBIN_H
#define CUDASIM_DRIVER_FATBIN_H

#include <stddef.h>

#include "machine/device.h"

/* What an image that a caller hands over begins with. */
enum image_kind { IMAGE_TEXT, IMAGE_FATBIN, IMAGE_CUBIN };
enum image_kind image_kind(const void *image);

/* The newest PTX of a fatbin that the device runs: its text (not ended by a zero byte) and length; or NULL and why not. */
const char *fatbin_text(const void *image, const struct device_limits *device, size_t *length, char *sentence, size_t size);

#endif
