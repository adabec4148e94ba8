/* An ELF with a descriptor, code, symbols, and metadata of one argument of each kind. */
#include "object.h"

#include <string.h>

enum { HEADER = 64, SEGMENT = 56, SECTION = 64, DESCRIPTOR_AT = 256, NOTE_AT = 320, SYMBOLS_AT = 640, NAMES_AT = 720,
       SECTIONS_AT = 768, CODE_AT = 1280 };

static void put(uint8_t *at, uint64_t value, int bytes) { memcpy(at, &value, (size_t)bytes); }

static void segment(uint8_t *at, uint32_t flags, uint64_t offset, uint64_t bytes)
{
    put(at, 1, 4);
    put(at + 4, flags, 4);
    put(at + 8, offset, 8);
    put(at + 16, offset, 8);
    put(at + 32, bytes, 8);
    put(at + 40, bytes, 8);
}

static void section(uint8_t *at, uint32_t type, uint64_t offset, uint64_t bytes, uint32_t link)
{
    put(at + 4, type, 4);
    put(at + 24, offset, 8);
    put(at + 32, bytes, 8);
    put(at + 40, link, 4);
}

/* { "amdhsa.kernels": [ { ".symbol": "k.kd", ".max_flat_workgroup_size": 256,
 *   ".args": [ { ".offset": 0, ".size": 8, ".value_kind": "global_buffer" }, the same at 8 ] } ] } */
static size_t metadata(uint8_t *at)
{
    static const char bytes[] = "\x81\xae"
                                "amdhsa.kernels"
                                "\x91\x83"
                                "\xa7"
                                ".symbol"
                                "\xa4"
                                "k.kd"
                                "\xb8"
                                ".max_flat_workgroup_size"
                                "\xcd\x01\x00"
                                "\xa5"
                                ".args"
                                "\x92"
                                "\x83"
                                "\xa7"
                                ".offset"
                                "\x00"
                                "\xa5"
                                ".size"
                                "\x08"
                                "\xab"
                                ".value_kind"
                                "\xad"
                                "global_buffer"
                                "\x83"
                                "\xa7"
                                ".offset"
                                "\x08"
                                "\xa5"
                                ".size"
                                "\x08"
                                "\xab"
                                ".value_kind"
                                "\xad"
                                "global_buffer";
    memcpy(at, bytes, sizeof bytes - 1);
    return sizeof bytes - 1;
}

size_t object_build(uint8_t file[OBJECT_MOST], const uint32_t *word, size_t words)
{
    static const uint8_t magic[9] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, 64, 4 };
    const size_t code_bytes = 4 * words;
    memset(file, 0, CODE_AT);
    memcpy(file, magic, sizeof magic);
    put(file + 16, 3, 2);
    put(file + 18, 224, 2);
    put(file + 20, 1, 4);
    put(file + 32, HEADER, 8);
    put(file + 40, SECTIONS_AT, 8);
    put(file + 48, 0x54f, 4);
    put(file + 52, HEADER, 2);
    put(file + 54, SEGMENT, 2);
    put(file + 56, 2, 2);
    put(file + 58, SECTION, 2);
    put(file + 60, 4, 2);
    segment(file + HEADER, 4, 0, CODE_AT);
    segment(file + HEADER + SEGMENT, 5, CODE_AT, code_bytes);
    uint8_t *d = file + DESCRIPTOR_AT;
    put(d, 4096, 4);
    put(d + 4, 64, 4);
    put(d + 8, 16, 4);
    put(d + 16, CODE_AT - DESCRIPTOR_AT, 8);
    put(d + 44, 7, 4);                    /* accum_offset 32 */
    put(d + 48, 0xf0007, 4);              /* 64 registers; rounding to nearest, denormals */
    put(d + 52, 2 << 1 | 1 << 7, 4);      /* 2 user SGPRs, workgroup x */
    put(d + 56, 1 << 3, 2);               /* the arguments' address */
    put(file + NOTE_AT, 7, 4);
    put(file + NOTE_AT + 8, 32, 4);
    memcpy(file + NOTE_AT + 12, "AMDGPU", 7);
    const size_t note = metadata(file + NOTE_AT + 20);
    put(file + NOTE_AT + 4, note, 4);
    put(file + SYMBOLS_AT + 24, 1, 4);
    put(file + SYMBOLS_AT + 24 + 8, DESCRIPTOR_AT, 8);
    memcpy(file + NAMES_AT + 1, "k.kd", 5);
    section(file + SECTIONS_AT + SECTION, 11, SYMBOLS_AT, 48, 2);
    section(file + SECTIONS_AT + 2 * SECTION, 3, NAMES_AT, 16, 0);
    section(file + SECTIONS_AT + 3 * SECTION, 7, NOTE_AT, 20 + ((note + 3) & ~(size_t)3), 0);
    memcpy(file + CODE_AT, word, code_bytes);
    return CODE_AT + code_bytes;
}
