/* Codes of 8 rows, transposed and made the 16-bit words that decode_eight takes: what packs B's panels and what multiplies a few
 * rows of A share.  Include in files of x86-64 alone.
 *
 * A group is 64 of K.  Of each row 32 codes become one vector of bytes whose highest bits are the codes'; 8 such vectors are
 * transposed as words of two.  Shifts within words then put every element where fp16 has it. */
#ifndef BSMI_WORDS_AVX2_H
#define BSMI_WORDS_AVX2_H

#include "halves_avx2.h"

enum { BSMI_WORD_GROUP = 64, BSMI_ROWS_AHEAD = 64 /* bytes of a row that are asked for before their turn */ };

/* Rows of codes as they are stored, or copies of the same form: two in a byte, four in three bytes, or bytes. */
struct bsmi_element_rows {
    union { struct bsmi_nibble_rows nibbles; struct bsmi_byte_rows bytes; } of;
    int bits;
};

static inline void bsmi_element_rows(const struct bsmi_part *part, int width, struct bsmi_element_rows *rows)
{
    rows->bits = part->operand.matrix->bits;
    if (rows->bits == 4) bsmi_nibble_rows(part, width, &rows->of.nibbles);
    else if (rows->bits == 6) bsmi_stream_rows(part, width, &rows->of.bytes);
    else bsmi_byte_rows(part, width, &rows->of.bytes);
}

static inline const uint8_t *const *bsmi_row_pointers(const struct bsmi_element_rows *rows)
{
    return rows->bits == 4 ? rows->of.nibbles.rows : rows->of.bytes.rows;
}

AVX2_INLINE int bits_of(bsm_element element)
{
    return element == BSM_E2M1 ? 4 : element == BSM_E2M3 || element == BSM_E3M2 ? 6 : 8;
}

/* 32 of K for 8 rows: [place][half of a vector][row]. */
typedef uint16_t bsmi_words[16][2][8];

/* Words of k = 16 q. */
AVX2_INLINE const uint16_t *words_of_sixteen(bsm_element element, bsmi_words words, int64_t q)
{
    return bits_of(element) == 4 ? words[8 * q][0] : words[0][q];
}

/* From those of k to those of k + 1, of the same sixteen. */
enum { BSMI_WORDS_TO_NEXT_PLACE = 16 };
AVX2_INLINE int64_t words_to_next(bsm_element element) { return bits_of(element) == 4 ? 8 : BSMI_WORDS_TO_NEXT_PLACE; }

/* 64 of K of 8 rows, from k on; what comes BSMI_ROWS_AHEAD bytes later is asked for. */
void bsmi_transpose_group(bsm_element element, const uint8_t *const *rows, int64_t k, bsmi_words words[2]);

/* What reads words knows three kinds of element: fp16 out of pairs in a byte, fp16, and integers. */
#define BSMI_BY_WORDS(element, function, ...) \
    switch (element) { \
    case BSM_E2M1: function(BSM_E2M1, __VA_ARGS__); break; \
    case BSM_INT8: function(BSM_INT8, __VA_ARGS__); break; \
    default: function(BSM_E5M2, __VA_ARGS__); break; \
    }

#endif
