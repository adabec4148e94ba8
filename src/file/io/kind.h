/* What a file is that is not what was wanted. */
#ifndef BSMI_KIND_H
#define BSMI_KIND_H

#include <stddef.h>

/* By its first bytes, of which ten are enough: "an .npy file", "a GGUF file" ...; NULL for those that are not known. */
const char *bsmi_file_kind(const unsigned char *start, size_t bytes);

#endif
