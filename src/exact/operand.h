/* One operand of the exact product: its values as integers times powers of two.
 *
 * Every finite value, scale included, is   significand * 2^(lowest + position),   position >= 0.  Two ways:
 *
 *   integers    an element is an integer times 2^-grid, the same for all codes (e2m1 ... e5m2, int8, fp16).  An exact
 *               block of BSMI_EXACT_BLOCK or fewer elements shares one scale, kept aside, so the products of an exact
 *               block sum up in one machine integer, and the accumulator is touched once per exact block.
 *   floats      each element has an exponent of its own (bf16, fp32, and whatever meets them), its scale included. */
#ifndef BSMI_EXACT_OPERAND_H
#define BSMI_EXACT_OPERAND_H

#include "matrix/matrix.h"

enum {
    BSMI_EXACT_TILE = 32,                 /* rows that are decoded together */
    BSMI_EXACT_CHUNK = 256,               /* elements of a row that are decoded together: whole exact blocks */
    BSMI_EXACT_BLOCK = 32,                  /* longest block that is summed before it is scaled */
    BSMI_EXACT_SHORTEST_BLOCK = 16
};

enum bsmi_significand { BSMI_INTEGERS_16, BSMI_INTEGERS_64, BSMI_FLOATS };

struct bsmi_scaled_integer { int32_t significand, position; };

/* What non-finite sums need to know of a value. */
enum { BSMI_NEGATIVE = 1, BSMI_ZERO = 2, BSMI_INFINITE = 4, BSMI_NAN = 8 };

struct bsmi_exact_operand {
    const struct bsmi_matrix *matrix;
    enum bsmi_significand kind;
    bool magnitude;                       /* decode |value| */
    int bits;                             /* |significand| < 2^bits, the scale's significand not included */
    int scale_bits;                       /* and of the scale's: 1 is no factor, so 0 bits; ue4m3's are 0 .. 15 */
    int lowest, highest_position;
    int unused_bits;                      /* floats: low bits of a 24-bit significand that are 0 in every value */
    int float_lowest;                     /* floats: exponent of position 0, without the scale */
    /* By code, for elements of at most 8 bits and for scales. */
    int64_t integers[256];
    struct bsmi_scaled_integer floats[256], scales[256];
    uint8_t classes[256], scale_classes[256];
};

/* Decoded pieces of up to 32 rows. */
struct bsmi_exact_rows {
    union {
        int16_t integers_16[BSMI_EXACT_TILE][BSMI_EXACT_CHUNK];
        int64_t integers_64[BSMI_EXACT_TILE][BSMI_EXACT_CHUNK];
        struct bsmi_scaled_integer floats[BSMI_EXACT_TILE][BSMI_EXACT_CHUNK];
    };
    /* of exact blocks; integers only */
    struct bsmi_scaled_integer scales[BSMI_EXACT_TILE][BSMI_EXACT_CHUNK / BSMI_EXACT_SHORTEST_BLOCK];
    uint8_t classes[BSMI_EXACT_TILE][BSMI_EXACT_CHUNK];
    uint8_t row_class[BSMI_EXACT_TILE];   /* BSMI_INFINITE and BSMI_NAN if there is any in the piece */
};

/* true for elements that are integers times one power of two, narrow enough to be summed as such. */
bool bsmi_exact_is_integer(bsm_element element);

/* Bits of the largest such integer. */
int bsmi_exact_integer_bits(bsm_element element);

void bsmi_exact_operand_make(const struct bsmi_matrix *matrix, enum bsmi_significand kind, bool magnitude,
                             struct bsmi_exact_operand *operand);

/* Decodes elements [k, k + count) of a row into slot `slot`; k is a multiple of BSMI_EXACT_CHUNK, count at most
 * that. */
void bsmi_exact_decode(const struct bsmi_exact_operand *operand, int64_t row, int64_t k, int count, int exact_block,
                       struct bsmi_exact_rows *rows, int slot);

#endif
