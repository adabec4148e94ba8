/* Masking, see mask.h. */
#include "mask.h"

#include <string.h>

int32_t mask_character(const char *text, int *bytes)
{
    static const unsigned char low_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    static const int32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *c = (const unsigned char *)text;
    const int length = c[0] < 0x80 ? 1 : c[0] < 0xc0 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf8 ? 4 : 0;
    int32_t character = c[0] & low_bits[length];
    *bytes = 1;
    for (int i = 1; i < length; i++) {
        if ((c[i] & 0xc0) != 0x80) return -1;
        character = character << 6 | (c[i] & 0x3f);
    }
    const bool surrogate = character >= 0xd800 && character < 0xe000;
    if (length == 0 || character < least[length] || character > 0x10ffff || surrogate) return -1;
    *bytes = length;
    return character;
}

bool mask_is_unseen(int32_t character)
{
    static const int32_t ranges[][2] = {
        { 0x00, 0x1f }, { 0x7f, 0x9f },                                /* controls */
        { 0x2028, 0x2029 },                                            /* ends of lines and paragraphs */
        { 0x061c, 0x061c }, { 0x200e, 0x200f }, { 0x202a, 0x202e }, { 0x2066, 0x2069 },    /* directions of writing */
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (character >= ranges[i][0] && character <= ranges[i][1]) return true;
    return false;
}

void mask_text(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        int bytes;
        const int32_t character = mask_character(from, &bytes);
        if (character < 0 || mask_is_unseen(character)) *to++ = '?';
        else memmove(to, from, (size_t)bytes), to += bytes;
        from += bytes;
    }
    *to = '\0';
}
