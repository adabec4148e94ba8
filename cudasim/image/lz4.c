/* A block is a list of sequences (LZ4 Block Format Description): a byte with two lengths, the rest of the first length,
 * as many bytes to take over, then where in what has been written the next bytes stand already (two bytes, backwards),
 * and the rest of the second length, which is counted from four on.  The last sequence ends behind its bytes. */
#include "image/lz4.h"

#include <string.h>

struct input { const uint8_t *at; size_t left; };

/* A length of 15 goes on in bytes, up to one that is not 255.  False: the input ends before it, or it is no length. */
static bool read_length(struct input *in, size_t *length)
{
    uint8_t byte = 255;
    if (*length != 15) return true;
    for (; byte == 255; in->at++, in->left--) {
        if (in->left == 0 || *length > SIZE_MAX - 255) return false;
        byte = *in->at;
        *length += byte;
    }
    return true;
}

bool lz4_unpack(const uint8_t *from, size_t from_bytes, uint8_t *to, size_t to_bytes)
{
    enum { SHORTEST_MATCH = 4 };
    struct input in = { from, from_bytes };
    size_t written = 0;
    while (in.left != 0) {
        size_t literals = *in.at >> 4, match = *in.at & 15;
        in.at++, in.left--;
        if (!read_length(&in, &literals) || literals > in.left || literals > to_bytes - written) return false;
        memcpy(to + written, in.at, literals);
        in.at += literals, in.left -= literals, written += literals;
        if (in.left == 0) return written == to_bytes;
        if (in.left < 2) return false;
        const size_t back = in.at[0] | (size_t)in.at[1] << 8;
        in.at += 2, in.left -= 2;
        if (!read_length(&in, &match) || back == 0 || back > written) return false;
        if (match > to_bytes - written || to_bytes - written - match < SHORTEST_MATCH) return false;
        match += SHORTEST_MATCH;
        /* What is copied may be what this copy writes: byte by byte. */
        for (size_t i = 0; i < match; i++) to[written + i] = to[written + i - back];
        written += match;
    }
    return false;
}
