/* Rows of codes and of scales in one form for packers, out of any packing and layout.  Nothing behind the end of a row
 * is read. */
#ifndef BSMI_CODE_ROWS_H
#define BSMI_CODE_ROWS_H

#include "pack.h"

enum { BSMI_ROW_CHUNK = 2048, BSMI_ROWS_AT_ONCE = 32, BSMI_NIBBLE_GROUP = 64, BSMI_BYTE_GROUP = 64,
       BSMI_SCALE_GROUP = 16 };

/* 4-bit codes, two a byte, the even one low, and codes of at most 8 bits, one a byte, in groups of 64.  Rows are
 * the matrix's own bytes, or copies.  The last group is filled up with zeros (the code of the value 0). */
struct bsmi_nibble_rows {
    const uint8_t *rows[BSMI_ROWS_AT_ONCE];
    uint8_t copies[BSMI_ROWS_AT_ONCE][BSMI_ROW_CHUNK / 2];
};
struct bsmi_byte_rows { const uint8_t *rows[BSMI_ROWS_AT_ONCE]; uint8_t copies[BSMI_ROWS_AT_ONCE][BSMI_ROW_CHUNK]; };

/* The part's rows, at most `width`, of length at most BSMI_ROW_CHUNK; rows that are missing repeat the last. */
void bsmi_nibble_rows(const struct bsmi_part *part, int width, struct bsmi_nibble_rows *nibbles);
void bsmi_byte_rows(const struct bsmi_part *part, int width, struct bsmi_byte_rows *bytes);

/* Codes of 6 bits as a stream (BSM_PACKING_BIT_STREAM), in groups of 64, the last filled up with zeros. */
void bsmi_stream_rows(const struct bsmi_part *part, int width, struct bsmi_byte_rows *streams);

/* Asks for what lies `ahead` bytes on in each row: many rows at once are more than a CPU foresees.  Nothing is read. */
static inline void bsmi_prefetch_rows(const uint8_t *const *rows, int count, int64_t ahead)
{
    for (int i = 0; i < count; i++) __builtin_prefetch((const void *)((uintptr_t)rows[i] + (uintptr_t)ahead));
}

/* Scale codes of the part's rows, one per block, in groups of 16: the matrix's own bytes, or copies.  Returns how many
 * blocks; what fills up the last group is anything.  Missing rows repeat the last. */
enum { BSMI_SCALE_CODES = BSMI_ROW_CHUNK / BSMI_SHORTEST_BLOCK };
struct bsmi_scale_code_rows {
    const uint8_t *rows[BSMI_ROWS_AT_ONCE];
    uint8_t copies[BSMI_ROWS_AT_ONCE][BSMI_SCALE_CODES];
};
int64_t bsmi_scale_code_rows(const struct bsmi_part *part, int width, struct bsmi_scale_code_rows *codes);

/* Decoded scales of the part's rows, for each exact block: scales[exact_block * width + row].  Missing rows repeat the
 * last. */
void bsmi_scale_rows(const struct bsmi_part *part, int exact_block, int width, float *scales);

#endif
