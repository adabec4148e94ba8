/* A tile of S by micro-panels, as BLIS does it: operands are packed once per chunk of K and strip of columns, and
 * register tiles read them.
 *
 * A file of kernels gives one struct bsmi_microkernel: how its panels are packed, and what multiplies two of them.
 * microkernel.c has the loops around it, which are the same for every instruction set. */
#ifndef BSMI_MICROKERNEL_H
#define BSMI_MICROKERNEL_H

#include "core/core.h"
#include "pack.h"
#include "row_exponents.h"

struct bsmi_microkernel {
    int rows, columns;                    /* of a register tile: A's panel and B's panel have as many rows of their
                                             operand */
    int even_rows;                        /* > 0: up to twice as many rows are multiplied by halves, each of at most so
                                             many */
    int64_t chunk;                        /* columns of K in a panel at most; a multiple of BSMI_CHUNK */
    size_t a_bytes, b_bytes;              /* of a panel; multiples of 64 */
    bool prepacks_b;                      /* B's panel holds B itself, not pointers to it: it may be made once and
                                             kept */
    bool row_exponents;                   /* panels hold bf16 numbers times powers of two of their rows, which
                                             bf16_sums.h finds, and puts into the sums at the end */
    int64_t prepacked_from;               /* rows of a tile from which on prepacked panels are read: codes are fewer
                                             bytes */
    /* false: the chunk has scales that the panels cannot hold, and takes the guarded path. */
    bool (*fits)(const struct bsmi_part *a, const struct bsmi_part *b);
    /* Packs the part's rows, at most `rows` (`columns`) of them and at least one.  Rows that are missing may hold
     * anything that can be computed with.  exact_block: columns of K that share both scales. */
    void (*pack_a)(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *panel);
    void (*pack_b)(const struct bsmi_part *part, int exact_block, void *panel);
    /* sums[rows][columns] += A's panel times B's, in the order of docs/guide/numerics.md; only the first `count` rows
     * matter. */
    void (*multiply)(int64_t count, int64_t length, int exact_block, const void *a, const void *b, float *sums,
                     int64_t pitch);
    /* The same bits for any scales: adds columns [k, end) of K to a tile of at most 192 x 256.  NULL where panels hold
     * them all. */
    void (*guarded)(const struct bsmi_tile *tile, int64_t k, int64_t end, void *scratch);
    size_t (*guarded_scratch_bytes)(int64_t rows, int64_t columns);
};

/* Of all panels of a matrix of B, where that of a column and a k lies: those of the same columns follow one another, K
 * ascends. */
static inline size_t bsmi_panel_offset(const struct bsmi_microkernel *m, int64_t depth, int64_t column, int64_t k)
{
    return (size_t)(column / m->columns * bsmi_ceil_div(depth, m->chunk) + k / m->chunk) * m->b_bytes;
}

size_t bsmi_microkernel_scratch_bytes(const struct bsmi_microkernel *m, int64_t rows, int64_t columns);
void bsmi_microkernel_sum(const struct bsmi_microkernel *m, const struct bsmi_tile *tile, void *scratch);
/* The same of rows times powers of two, which the sums are without. */
void bsmi_microkernel_sum_rows(const struct bsmi_microkernel *m, const struct bsmi_tile *tile,
                               const struct bsmi_bf16_exponents *exponents, void *scratch);

/* Both elements are small integers times a power of two, so that the products of a block sum exactly. */
static inline bool bsmi_sums_exact_blocks(bsm_format a, bsm_format b)
{
    const bsm_format_info *fa = bsm_format_get((int)a), *fb = bsm_format_get((int)b);
    return fa->block != 0 && fb->block != 0 && bsmi_element_integer_bits(fa->element) > 0
        && bsmi_element_integer_bits(fb->element) > 0;
}

/* Columns of K that share both scales. */
static inline int bsmi_exact_block_length(const struct bsmi_matrix *a, const struct bsmi_matrix *b)
{
    return BSMI_MIN(a->block, b->block);
}

/* The largest finite e8m0 code of a part's scales is at most `most`; true for other scales. */
bool bsmi_part_e8m0_at_most(const struct bsmi_part *part, int most);

/* For kernels that sum exact blocks as integers r: r * unit * sA stays exact in fp32, whatever B's scales are. */
enum { BSMI_MOST_A_SCALE_OF_EXACT_BLOCKS = 105 + 127 };           /* as an e8m0 code */
static inline bool bsmi_exact_blocks_fit(const struct bsmi_part *a, const struct bsmi_part *b)
{
    (void)b;
    return bsmi_part_e8m0_at_most(a, BSMI_MOST_A_SCALE_OF_EXACT_BLOCKS);
}

#endif
