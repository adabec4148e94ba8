/* Layouts by name: "128x4", "linear:PITCH", "tiles:ROWSxCOLUMNS", and names that other libraries use. */
#include "core/core.h"
#include "layout.h"

#include <stdio.h>
#include <strings.h>

static const struct alias { const char *name; bsm_layout layout; int64_t pitch; } aliases[] = {
    { "row_major", BSM_LAYOUT_LINEAR, 0 },
    { "sm120_padded", BSM_LAYOUT_LINEAR, BSM_PITCH_PADDED_16 },
      { "sm120_pages", BSM_LAYOUT_LINEAR, BSM_PITCH_PADDED_16 },
    { "32_4_4", BSM_LAYOUT_128X4, 0 }, { "swizzle_32_4_4", BSM_LAYOUT_128X4, 0 },
      { "packed_block", BSM_LAYOUT_128X4, 0 },
    { "cublaslt", BSM_LAYOUT_128X4, 0 }, { "cutlass", BSM_LAYOUT_128X4, 0 }, { "tcgen05", BSM_LAYOUT_128X4, 0 },
    { "to_blocked", BSM_LAYOUT_128X4, 0 },
    { "trtllm_8x4", BSM_LAYOUT_8X4, 0 }, { "swizzle_8x4", BSM_LAYOUT_8X4, 0 },
    { "gfx950_16", BSM_LAYOUT_CDNA4_16, 0 }, { "gfx950_32", BSM_LAYOUT_CDNA4_32, 0 },
    { "shuffle_scale", BSM_LAYOUT_AITER, 0 },
    { "ue8m0_words", BSM_LAYOUT_DEEPGEMM, 0 },
    { "ggml_mxfp4", BSM_LAYOUT_GGUF_MXFP4, 0 }, { "ggml_nvfp4", BSM_LAYOUT_GGUF_NVFP4, 0 },
};

static bool same_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && strncasecmp(name, text, length) == 0;
}

/* NULL when nothing is called that, in *own the layout of that name. */
static const struct alias *find(const char *text, size_t length, struct alias *own)
{
    for (int kind = 0; kind < BSM_LAYOUT_COUNT; kind++)
        if (bsmi_layout_get(kind) != NULL && same_name(bsmi_layout_get(kind)->name, text, length)) {
            *own = (struct alias){ bsmi_layout_get(kind)->name, (bsm_layout)kind, 0 };
            return own;
        }
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (same_name(aliases[i].name, text, length)) return &aliases[i];
    return NULL;
}

/* A number > 0 in digits alone; returns what follows it, NULL if there is none or it does not fit. */
static const char *read_number(const char *text, int64_t *number)
{
    int64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++)
        if (bsmi_mul_overflows(value, 10, &value) || bsmi_add_overflows(value, *p - '0', &value)) return NULL;
    *number = value;
    return value > 0 ? p : NULL;
}

static bsm_status unknown(const char *text)
{
    char names[256];
    size_t length = 0;
    for (int kind = 0; kind < BSM_LAYOUT_COUNT; kind++) {
        if (bsmi_layout_get(kind) == NULL) continue;
        const char *name = bsmi_layout_get(kind)->name, *more = kind == BSM_LAYOUT_TILES ? ":ROWSxCOLUMNS" : "";
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s%s", kind == 0 ? "" : ", ", name, more);
        if (length >= sizeof names) break;
    }
    return bsmi_fail(BSM_EINVAL, "\"%.64s\" is no scale layout: choose one of %s", text, names);
}

bsm_status bsm_scale_layout_parse(const char *text, bsm_scale_layout *layout)
{
    if (text == NULL) return bsmi_fail(BSM_EINVAL, "the text of a scale layout is NULL");
    if (layout == NULL) return bsmi_fail(BSM_EINVAL, "layout is NULL");
    const size_t length = strcspn(text, ":");
    struct alias own;
    const struct alias *found = find(text, length, &own);
    if (found == NULL) return unknown(text);
    const struct bsmi_layout *about = bsmi_layout_get((int)found->layout);
    const char *parameters = text[length] == ':' ? text + length + 1 : NULL, *rest = NULL;
    bsm_scale_layout read = { .kind = found->layout, .pitch = found->pitch };
    if (about->pad_rows == 0) {
        if (parameters != NULL) rest = read_number(parameters, &read.tile_rows);
        if (rest != NULL) rest = *rest == 'x' || *rest == 'X' ? read_number(rest + 1, &read.tile_columns) : NULL;
        if (rest == NULL || *rest != '\0')
            return bsmi_fail(BSM_EINVAL, "\"%.64s\": write %s:ROWSxCOLUMNS with the size of a tile, as in %s:32x8",
                             text, about->name, about->name);
    } else if (parameters != NULL && (about->row_block_bytes == 0 || found->pitch != 0)) {
        const char *name = found->pitch != 0 ? found->name : about->name;
        return bsmi_fail(BSM_EINVAL, "\"%.64s\": the layout %s has no parameters, write %s", text, name, name);
    } else if (parameters != NULL) {
        rest = read_number(parameters, &read.pitch);
        if (rest == NULL || *rest != '\0')
            return bsmi_fail(BSM_EINVAL,
                             "\"%.64s\": write %s:PITCH with the bytes between rows, as in %s:128, or %s alone for "
                             "tight rows",
                             text, about->name, about->name, about->name);
    }
    *layout = read;
    return BSM_OK;
}
