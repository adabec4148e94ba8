/* Payloads of fatbins, unpacked: nvcc 13 packs PTX as Zstandard frames, and cubins too with -compress-mode=size; with
 * -compress-mode=speed, and before, as blocks of LZ4. */
#include "image/fatbin.h"
#include "image/lz4.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef CUDASIM_ZSTD
#include <zstd.h>
#endif

/* A frame, or a block's entry, says itself how long its content is; nobody's kernels are longer than this, and no
 * memory is taken for a lie. */
#define MOST_BYTES ((size_t)1 << 30)

static char *allocate(size_t size, char *why, size_t why_bytes)
{
    char *bytes = malloc(size + 1);
    if (bytes == NULL) snprintf(why, why_bytes, "no memory for the %zu bytes of a payload of this fatbin", size);
    else bytes[size] = '\0';
    return bytes;
}

static char *copy_of(const struct payload *payload, size_t *size, char *why, size_t why_bytes)
{
    char *bytes = allocate(payload->size, why, why_bytes);
    if (bytes != NULL) memcpy(bytes, payload->bytes, payload->size);
    *size = payload->size;
    return bytes;
}

#ifdef CUDASIM_ZSTD
static char *unpack_zstd(const struct payload *payload, size_t *size, char *why, size_t why_bytes)
{
    const unsigned long long content = ZSTD_getFrameContentSize(payload->bytes, payload->size);
    const size_t frame = ZSTD_findFrameCompressedSize(payload->bytes, payload->size);   /* padding follows it */
    if (content == ZSTD_CONTENTSIZE_UNKNOWN || content == ZSTD_CONTENTSIZE_ERROR || content > MOST_BYTES
        || ZSTD_isError(frame)) {
        snprintf(why, why_bytes, "a packed payload of this fatbin is no Zstandard frame of at most 1 GiB");
        return NULL;
    }
    *size = (size_t)content;
    char *bytes = allocate(*size, why, why_bytes);
    if (bytes == NULL || ZSTD_decompress(bytes, *size, payload->bytes, frame) == *size) return bytes;
    snprintf(why, why_bytes, "a packed payload of this fatbin is damaged");
    free(bytes);
    return NULL;
}
#else
static char *unpack_zstd(const struct payload *payload, size_t *size, char *why, size_t why_bytes)
{
    (void)payload, (void)size;
    snprintf(why, why_bytes, "this fatbin is compressed, and this cudasim was built without Zstandard (libzstd-dev): "
                             "build it anew with that, or the kernels with nvcc --no-compress (-Xfatbin -no-compress)");
    return NULL;
}
#endif

static char *unpack_lz4(const struct payload *payload, size_t *size, char *why, size_t why_bytes)
{
    if (payload->packed > payload->size || payload->content > MOST_BYTES) {
        snprintf(why, why_bytes, "a packed payload of this fatbin is no LZ4 block of at most 1 GiB");
        return NULL;
    }
    *size = payload->content;
    char *bytes = allocate(*size, why, why_bytes);
    if (bytes == NULL || lz4_unpack(payload->bytes, payload->packed, (uint8_t *)bytes, *size)) return bytes;
    snprintf(why, why_bytes, "a packed payload of this fatbin is damaged");
    free(bytes);
    return NULL;
}

char *payload_unpack(const struct payload *payload, size_t *size, char *why, size_t why_bytes)
{
    char *bytes = NULL;
    switch (payload->packing) {
    case PAYLOAD_PLAIN: bytes = copy_of(payload, size, why, why_bytes); break;
    case PAYLOAD_ZSTD: bytes = unpack_zstd(payload, size, why, why_bytes); break;
    case PAYLOAD_LZ4: bytes = unpack_lz4(payload, size, why, why_bytes); break;
    }
    if (bytes != NULL && payload->kind == PAYLOAD_PTX) *size = strnlen(bytes, *size);
    return bytes;
}
