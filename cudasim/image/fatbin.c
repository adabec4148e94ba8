/* The PTX in a fat binary.
 *
 * A wrapper (magic, version, pointer to the data) or the data itself: a header of 16 bytes, then entries, each with a
 * header of its own.  NVIDIA does not document the container; the fields here are those that nvcc 13.0's output shows
 * (kind 1: PTX, 2: cubin; the architecture as a number; flags that say how the payload is compressed, and its sizes).
 * A fatbin carries its size: nothing behind it is read. */
#include "image/fatbin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRAPPER_MAGIC = 0x466243b1, ELF_MAGIC = 0x464c457f, HEADER_BYTES = 16, ENTRY_BYTES = 64 };
#define DATA_MAGIC 0xba55ed50u
#define IS_LZ4 UINT64_C(0x2000)
#define IS_ZSTD UINT64_C(0x8000)

struct wrapper { uint32_t magic, version; const void *data; const void *file; };
struct entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed_bytes, options;
    uint16_t minor, major;
    uint32_t architecture, name, name_bytes;
    uint64_t flags, reserved, content_bytes;
};
_Static_assert(sizeof(struct entry) == ENTRY_BYTES, "the fields of an entry");

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

/* Payloads ------------------------------------------------------------------------------------------------------ */

bool fatbin_begin(const void *image, struct fatbin_walk *walk, char *why, size_t why_bytes)
{
    const uint8_t *data = image;
    if (first_word(image) == WRAPPER_MAGIC) {
        struct wrapper wrapper;
        memcpy(&wrapper, image, sizeof wrapper);
        data = wrapper.data;
    }
    if (data == NULL || first_word(data) != DATA_MAGIC) {
        snprintf(why, why_bytes, "this fatbin's wrapper does not point to a fatbin");
        return false;
    }
    uint16_t header_bytes;
    memcpy(&header_bytes, data + 6, sizeof header_bytes);
    memcpy(&walk->end, data + 8, sizeof walk->end);
    if (header_bytes < HEADER_BYTES) {
        snprintf(why, why_bytes, "the header of this fatbin says that it has %d bytes: %d are wanted", header_bytes,
                 HEADER_BYTES);
        return false;
    }
    walk->first = data + header_bytes;
    walk->at = 0;
    return true;
}

enum fatbin_step fatbin_next(struct fatbin_walk *walk, struct payload *payload, char *why, size_t why_bytes)
{
    struct entry e;
    if (walk->at >= walk->end || walk->end - walk->at < ENTRY_BYTES) return FATBIN_END;
    const uint8_t *place = walk->first + walk->at;
    memcpy(&e, place, sizeof e);
    if (e.header_bytes < sizeof e || e.header_bytes > walk->end - walk->at
        || e.bytes > walk->end - walk->at - e.header_bytes) {
        snprintf(why, why_bytes, "the entry at byte %llu of this fatbin reaches behind its end",
                 (unsigned long long)walk->at);
        return FATBIN_WRONG;
    }
    *payload = (struct payload){
        .kind = (enum payload_kind)e.kind, .bytes = place + e.header_bytes, .size = (size_t)e.bytes,
        .packed = e.compressed_bytes, .content = (size_t)e.content_bytes,
        .packing = (e.flags & IS_ZSTD) != 0 ? PAYLOAD_ZSTD : (e.flags & IS_LZ4) != 0 ? PAYLOAD_LZ4 : PAYLOAD_PLAIN,
    };
    walk->at += e.header_bytes + e.bytes;
    return FATBIN_PAYLOAD;
}

/* The text that a device runs ----------------------------------------------------------------------------------- */

/* ".target sm_90a": the number and its letter, as the text itself says them; false: no such line. */
static bool target_of(const char *text, size_t length, uint32_t *sm, char *suffix)
{
    static const char word[] = ".target sm_";
    const char *at = memmem(text, length, word, sizeof word - 1);
    if (at == NULL) return false;
    const char *end = text + length;
    *sm = 0;
    for (at += sizeof word - 1; at < end && *at >= '0' && *at <= '9' && *sm < 10000; at++)
        *sm = *sm * 10 + (uint32_t)(*at - '0');
    *suffix = at < end && (*at == 'a' || *at == 'f') ? *at : '\0';
    return *sm != 0;
}

/* What was seen on the way. */
struct seen {
    int texts, binaries;
    char *best;
    size_t length;
    uint32_t sm;
};

/* Keeps the text where the device runs it and no newer one is kept.  One that cannot be unpacked runs nowhere: why says
 * it. */
static void look_at(const struct payload *payload, const struct device_limits *device, struct seen *seen, char *why,
                    size_t why_bytes)
{
    uint32_t sm;
    char suffix;
    size_t length;
    char *text = payload_unpack(payload, &length, why, why_bytes);
    if (text == NULL) return;
    seen->texts++;
    if (target_of(text, length, &sm, &suffix) && sm >= seen->sm && device_runs(device, sm, suffix)) {
        free(seen->best);
        seen->best = text, seen->length = length, seen->sm = sm;
    } else free(text);
}

static void say_why(const struct seen *seen, const struct device_limits *device, char *why, size_t why_bytes)
{
    if (seen->texts != 0)
        snprintf(why, why_bytes, "none of the %d PTX texts in this fatbin runs on %s (CUDASIM_DEVICE): build it for "
                 "that target too", seen->texts, device->name);
    else if (why[0] == '\0')
        snprintf(why, why_bytes, "this fatbin has %d cubins and no PTX, and PTX is what runs here: build it with "
                                 "code=compute_...",
                 seen->binaries);
}

char *fatbin_text(const void *image, const struct device_limits *device, size_t *length, char *why, size_t why_bytes)
{
    struct fatbin_walk walk;
    struct payload payload;
    struct seen seen = { .best = NULL };
    enum fatbin_step step;
    why[0] = '\0';
    if (!fatbin_begin(image, &walk, why, why_bytes)) return NULL;
    while ((step = fatbin_next(&walk, &payload, why, why_bytes)) == FATBIN_PAYLOAD) {
        if (payload.kind == PAYLOAD_PTX) look_at(&payload, device, &seen, why, why_bytes);
        else seen.binaries++;
    }
    *length = seen.length;
    if (step == FATBIN_WRONG) free(seen.best), seen.best = NULL;
    else if (seen.best == NULL) say_why(&seen, device, why, why_bytes);
    return seen.best;
}
