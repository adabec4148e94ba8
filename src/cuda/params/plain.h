/* What the host and kernel bsmi_decode_plain agree on: see kernels.h. */
#ifndef BSMI_PLAIN_PARAMETERS_H
#define BSMI_PLAIN_PARAMETERS_H

#include "kernels.h"

/* Exponents of the least and of the largest number of a row that needs none: those of row_exponents.cuh. */
enum { BSMI_LEAST_EXPONENT = -40, BSMI_MOST_EXPONENT = 40 };

/* Kernel bsmi_decode_plain: the same where operands lie plainly, by jobs that the host makes ready, so that few
 * instructions stand in front of the first load.  Rows follow each other without a gap, batches too, in multiples of 64
 * columns; scales are linear, without a gap, or lie as 128x4; `decoded` has no gaps either.  Scales that are brought
 * are those of one matrix, linear. A grid of first_ctas CTAs for the rows of the first operand, and for the second
 * ceil(rows / rows_of_cta) or, of scales, any number, each of BSMI_DECODE_PLAIN_THREADS threads, of which each has
 * BSMI_DECODE_PLAIN_OCTETS eights of codes under way.  `general`: what bsmi_decode would be given, for rows that want
 * an exponent. */
enum { BSMI_DECODE_PLAIN_THREADS = 512, BSMI_DECODE_PLAIN_OCTETS = 3, BSMI_MOST_PLAIN_FLAGS = 4096 };
struct bsmi_scale_bounds { uint32_t least, span; };                  /* e8m0 codes that want no exponent: least .. least
                                                                        + span */
struct bsmi_plain_rows {
    const unsigned char *codes, *scales;  /* codes aligned to 8 bytes if they are a byte each, else to 4 */
    uint16_t *decoded;
    int32_t *exponents;                   /* as of bsmi_decode_operand */
    uint32_t *fallback;
    int64_t rows, band_bytes;             /* of 128 rows of scales in the layout 128x4; 0: linear */
    uint32_t row_octets, reciprocal;      /* eights of codes; ceil(2^32 / row_octets), with which no octet of a CTA gets
                                             a wrong row */
    int32_t rows_of_cta;
    int32_t element, scale;
    struct bsmi_scale_bounds bounds;
};
struct bsmi_plain_scales {
    const unsigned char *from;
    unsigned char *to;
    int32_t *exponents;                   /* NULL: scales are ue4m3 */
    uint32_t *fallback;
    int64_t pitch, band_bytes;
    int32_t rows, columns;                /* of scales */
    int32_t words;                        /* each row begins at a multiple of 4 bytes, and so it ends */
    struct bsmi_scale_bounds bounds;
};
struct bsmi_decode_plain_parameters {
    struct bsmi_plain_rows rows[2];
    struct bsmi_plain_scales scales;
    int32_t first_ctas, loads_scales;    /* as of bsmi_decode_parameters */
    int32_t dependents_first;             /* the next kernel reads nothing that others write before it waits: it may
                                             begin before this one waits */
    struct bsmi_decode_parameters general;
};

#endif
