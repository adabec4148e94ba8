/* Kinds of files by their first bytes, each from its own format's description. */
#include "kind.h"

#include <stdbool.h>
#include <string.h>

static const struct kind { const char *start; size_t bytes; const char *name; } kinds[] = {
    { "\x93NUMPY", 6, "an .npy file" },
    { "GGUF", 4, "a GGUF file" },
    { "PK\003\004", 4, "a ZIP archive, as .npz files and PyTorch's .pt and .bin are" },
    { "\211HDF\r\n", 6, "an HDF5 file" },
    { "\037\213", 2, "compressed by gzip" },
    { "\050\265\057\375", 4, "compressed by Zstandard" },
    { "version ht", 10, "a pointer of Git LFS, which git lfs pull replaces by the file" },
    { "<!DOCTYPE", 9, "a web page" },
    { "<!doctype", 9, "a web page" },
    { "<html", 5, "a web page" },
    { "{", 1, "JSON text" },
};

/* Eight bytes of a length that no header has half of, then the JSON object. */
static bool is_safetensors(const unsigned char *start, size_t bytes)
{
    return bytes >= 9 && start[4] == 0 && start[5] == 0 && start[6] == 0 && start[7] == 0 && start[8] == '{';
}

/* Protocols 2 to 5; the second opcode is a frame, a mark, an empty container or a global name. */
static bool is_pickle(const unsigned char *start, size_t bytes)
{
    static const unsigned char second[] = { 0x95, '(', ']', '}', ')', 'c', 'l', 'm', 0x8a, 0x8c };
    const bool framed = bytes >= 3 && start[0] == 0x80 && start[1] >= 2 && start[1] <= 5;
    return framed && memchr(second, start[2], sizeof second) != NULL;
}

const char *bsmi_file_kind(const unsigned char *start, size_t bytes)
{
    if (is_safetensors(start, bytes)) return "a .safetensors file";
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (bytes >= kinds[i].bytes && memcmp(start, kinds[i].start, kinds[i].bytes) == 0) return kinds[i].name;
    return is_pickle(start, bytes) ? "a pickle of Python" : NULL;
}
