/* cudasim unpack: the PTX or the machine code of a fatbin, as a file of its own. */
#include "tools/command.h"

#include <stdlib.h>
#include <string.h>

#include "image/fatbin.h"

struct unpack_settings {
    const char *file;
    bool cubin;
};

static const struct option options[] = {
    { "FILE.fatbin", "", "a fatbin", OPTION_TEXT, .offset = offsetof(struct unpack_settings, file), .required = true },
    { "--cubin", "", "the machine code instead of the PTX", OPTION_FLAG,
      .offset = offsetof(struct unpack_settings, cubin) },
    { .name = NULL }
};

/* The last payload of the kind: nvcc puts later targets behind earlier ones. */
static bool find_last(const void *image, enum payload_kind kind, struct payload *found, char *why, size_t why_bytes)
{
    struct fatbin_walk walk;
    struct payload payload;
    enum fatbin_step step;
    bool any = false;
    if (!fatbin_begin(image, &walk, why, why_bytes)) return false;
    while ((step = fatbin_next(&walk, &payload, why, why_bytes)) == FATBIN_PAYLOAD)
        if (payload.kind == kind) *found = payload, any = true;
    if (!any && step == FATBIN_END)
        snprintf(why, why_bytes, "this fatbin has no %s", kind == PAYLOAD_PTX ? "PTX" : "cubin");
    return any && step == FATBIN_END;
}

/* A fatbin whose size says no more than the file holds. */
static bool is_whole(const char *bytes, size_t size)
{
    uint64_t says;
    if (size < 16 || image_kind(bytes) != IMAGE_FATBIN || (bytes[0] & 0xff) != 0x50) return false;
    memcpy(&says, bytes + 8, sizeof says);
    return says <= size - 16;
}

static int unpack(const struct unpack_settings *s, const char *bytes, size_t size)
{
    char why[256] = "this file is no fatbin, or less than a whole one";
    struct payload payload;
    size_t length;
    char *text = NULL;
    if (is_whole(bytes, size) && find_last(bytes, s->cubin ? PAYLOAD_CUBIN : PAYLOAD_PTX, &payload, why, sizeof why))
        text = payload_unpack(&payload, &length, why, sizeof why);
    if (text == NULL) return bad_input("%s: %s", s->file, why);
    const bool written = fwrite(text, 1, length, stdout) == length;
    free(text);
    return written ? EXIT_DONE : bad_input("standard output takes no more");
}

static int run(const void *settings)
{
    const struct unpack_settings *s = settings;
    size_t size;
    char *bytes = read_file(s->file, &size);
    if (bytes == NULL) return EXIT_BAD_INPUT;
    const int status = unpack(s, bytes, size);
    free(bytes);
    return status;
}

const struct verb verb_unpack = { .name = "unpack",
                                  .summary = "writes the PTX or the machine code of a fatbin to standard output",
                                  .usage = "FILE.fatbin [--cubin] >FILE",
                                  .about = "Of several targets it takes the last, which is the newest where nvcc wrote "
                                           "the file.",
                                  .options = options,
                                  .settings_bytes = sizeof(struct unpack_settings),
                                  .run = run };
