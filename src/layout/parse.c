/* Layouts by name: "128x4", "linear:PITCH", "tiles:ROWSxCOLUMNS", and names that other libraries use. */
#include "layouts.h"

#include <stdio.h>
#include <strings.h>

static const struct { const char *alias; bsm_layout layout; } aliases[] = {
    { "row_major", BSM_LAYOUT_LINEAR },
    { "32_4_4", BSM_LAYOUT_128X4 }, { "swizzle_32_4_4", BSM_LAYOUT_128X4 }, { "packed_block", BSM_LAYOUT_128X4 },
    { "cublaslt", BSM_LAYOUT_128X4 }, { "cutlass", BSM_LAYOUT_128X4 }, { "tcgen05", BSM_LAYOUT_128X4 },
    { "to_blocked", BSM_LAYOUT_128X4 },
    { "trtllm_8x4", BSM_LAYOUT_8X4 }, { "swizzle_8x4", BSM_LAYOUT_8X4 },
    { "pages", BSM_LAYOUT_PAGES16 }, { "sm120_pages", BSM_LAYOUT_PAGES16 },
    { "gfx950_16", BSM_LAYOUT_CDNA4_16 }, { "gfx950_32", BSM_LAYOUT_CDNA4_32 },
    { "shuffle_scale", BSM_LAYOUT_AITER },
    { "ue8m0_words", BSM_LAYOUT_DEEPGEMM },
    { "ggml_mxfp4", BSM_LAYOUT_GGUF_MXFP4 }, { "ggml_nvfp4", BSM_LAYOUT_GGUF_NVFP4 },
};

static bool same_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && strncasecmp(name, text, length) == 0;
}

/* -1 when nothing is called that. */
static int find(const char *text, size_t length)
{
    for (int kind = 0; kind < BSM_LAYOUT_COUNT; kind++)
        if (same_name(bsmi_layout_get(kind)->name, text, length)) return kind;
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (same_name(aliases[i].alias, text, length)) return (int)aliases[i].layout;
    return -1;
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
    const int kind = find(text, length);
    if (kind < 0) return unknown(text);
    const struct bsmi_layout *about = bsmi_layout_get(kind);
    const char *parameters = text[length] == ':' ? text + length + 1 : NULL, *rest = NULL;
    bsm_scale_layout read = { .kind = (bsm_layout)kind };
    if (about->pad_rows == 0) {
        if (parameters != NULL) rest = read_number(parameters, &read.tile_rows);
        if (rest != NULL) rest = *rest == 'x' || *rest == 'X' ? read_number(rest + 1, &read.tile_columns) : NULL;
        if (rest == NULL || *rest != '\0')
            return bsmi_fail(BSM_EINVAL, "\"%.64s\": write %s:ROWSxCOLUMNS with the size of a tile, as in %s:32x8", text,
                             about->name, about->name);
    } else if (parameters != NULL && about->row_block_bytes == 0) {
        return bsmi_fail(BSM_EINVAL, "\"%.64s\": the layout %s has no parameters, write %s", text, about->name, about->name);
    } else if (parameters != NULL) {
        rest = read_number(parameters, &read.pitch);
        if (rest == NULL || *rest != '\0')
            return bsmi_fail(BSM_EINVAL, "\"%.64s\": write %s:PITCH with the bytes between rows, as in %s:128, or %s alone for "
                             "tight rows", text, about->name, about->name, about->name);
    }
    *layout = read;
    return BSM_OK;
}
