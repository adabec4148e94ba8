/* The PTX in a fat binary.
 *
 * A wrapper (magic, version, pointer to the data) or the data itself: a header of 16 bytes, then entries, each with a header of
 * its own.  NVIDIA does not document the container; the fields here are those that nvcc 13.0's output shows (kind 1: PTX, 2:
 * cubin; the architecture as a number; flags that say how the payload is compressed).  A fatbin carries its size: nothing behind
 * it is read. */
#include "driver/fatbin.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRAPPER_MAGIC = 0x466243b1, ELF_MAGIC = 0x464c457f, HEADER_BYTES = 16, ENTRY_BYTES = 64, KIND_PTX = 1 };
#define DATA_MAGIC 0xba55ed50u
#define COMPRESSED UINT64_C(0xa000)      /* 0x2000: LZ4, 0x8000: Zstandard */

struct wrapper { uint32_t magic, version; const void *data; const void *file; };
struct entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed_bytes, options;
    uint16_t minor, major;
    uint32_t architecture, name, name_bytes;
    uint64_t flags;
};

static uint32_t first_word(const void *image)
{
    uint32_t word;
    memcpy(&word, image, sizeof word);
    return word;
}

enum image_kind image_kind(const void *image)
{
    const uint32_t magic = first_word(image);
    if (magic == WRAPPER_MAGIC || magic == DATA_MAGIC) return IMAGE_FATBIN;
    return magic == ELF_MAGIC ? IMAGE_CUBIN : IMAGE_TEXT;
}

/* ".target sm_90a": the number and its letter, as the text itself says them; false: no such line. */
static bool target_of(const char *text, size_t length, uint32_t *sm, char *suffix)
{
    static const char word[] = ".target sm_";
    const char *at = memmem(text, length, word, sizeof word - 1);
    if (at == NULL) return false;
    const char *end = text + length;
    *sm = 0;
    for (at += sizeof word - 1; at < end && *at >= '0' && *at <= '9' && *sm < 10000; at++) *sm = *sm * 10 + (uint32_t)(*at - '0');
    *suffix = at < end && (*at == 'a' || *at == 'f') ? *at : '\0';
    return *sm != 0;
}

/* What was seen on the way, for the sentence. */
struct seen { int text, compressed, binary; };

static void say_why(const struct seen *seen, const struct device_limits *device, char *sentence, size_t size)
{
    if (seen->text != 0)
        snprintf(sentence, size,
                 "none of the %d PTX texts in this fatbin runs on %s (CUDASIM_DEVICE): build it for that target too", seen->text,
                 device->name);
    else if (seen->compressed != 0)
        snprintf(sentence, size, "the PTX in this fatbin is compressed: build it with nvcc --no-compress (-Xfatbin -no-compress)");
    else
        snprintf(sentence, size, "this fatbin has %d cubins and no PTX, and PTX is what runs here: build it with code=compute_...",
                 seen->binary);
}

const char *fatbin_text(const void *image, const struct device_limits *device, size_t *length, char *sentence, size_t size)
{
    const uint8_t *data = image;
    if (first_word(image) == WRAPPER_MAGIC) {
        struct wrapper wrapper;
        memcpy(&wrapper, image, sizeof wrapper);
        data = wrapper.data;
    }
    if (data == NULL || first_word(data) != DATA_MAGIC) {
        snprintf(sentence, size, "this fatbin's wrapper does not point to a fatbin");
        return NULL;
    }
    uint16_t header_bytes;
    uint64_t bytes;
    memcpy(&header_bytes, data + 6, sizeof header_bytes);
    memcpy(&bytes, data + 8, sizeof bytes);
    struct seen seen = { 0, 0, 0 };
    const char *best = NULL;
    uint32_t best_sm = 0;
    for (uint64_t at = 0; at < bytes && bytes - at >= ENTRY_BYTES;) {
        const uint8_t *place = data + header_bytes + at;
        struct entry e;
        memcpy(&e, place, sizeof e);
        if (header_bytes < HEADER_BYTES || e.header_bytes < sizeof e || e.header_bytes > bytes - at ||
            e.bytes > bytes - at - e.header_bytes) {
            snprintf(sentence, size, "the entry at byte %llu of this fatbin reaches behind its end", (unsigned long long)at);
            return NULL;
        }
        const char *text = (const char *)place + e.header_bytes;
        uint32_t sm;
        char suffix;
        const bool compressed = (e.flags & COMPRESSED) != 0;
        if (e.kind != KIND_PTX) seen.binary++;
        else if (compressed) seen.compressed++;
        else seen.text++;
        if (e.kind == KIND_PTX && !compressed && target_of(text, e.bytes, &sm, &suffix) && sm >= best_sm &&
            device_runs(device, sm, suffix)) {
            best = text;
            best_sm = sm;
            *length = strnlen(text, e.bytes);
        }
        at += e.header_bytes + e.bytes;
    }
    if (best == NULL) say_why(&seen, device, sentence, size);
    return best;
}
