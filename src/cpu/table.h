/* CPU kernels: one table, best first.
 *
 * A kernel computes a tile of S; the loop over tiles, the epilogue and the threads are multiply.c's.  To add one: a
 * file that defines its microkernel (microkernel.h), a row in table.c above the rows it beats, and the tests cover it
 * by themselves.  What a kernel promises is the order of sums that docs/guide/numerics.md defines for its pairs, bit
 * for bit. */
#ifndef BSMI_CPU_TABLE_H
#define BSMI_CPU_TABLE_H

#include "matrix/matrix.h"

struct bsmi_tile;
struct bsmi_part;
struct bsmi_microkernel;

/* Kernels of a family give the same bits for a pair of formats: docs/guide/numerics.md has the order of sums of each.
 * The first two are the portable order, which every CPU has. */
enum bsmi_family {
    BSMI_FAMILY_EXACT_BLOCKS,
    BSMI_FAMILY_FP32_CHAINS,
    BSMI_FAMILY_AMX_BF16,
    BSMI_FAMILY_AVX512_BF16,
    BSMI_FAMILY_ARM_BF16,
    BSMI_FAMILY_COUNT
};

/* How B is prepacked (prepacked.h): panels of so many of its rows by `chunk` columns of K. */
struct bsmi_b_panels {
    int columns;                          /* of the product: rows of B */
    int64_t chunk;                        /* a multiple of BSMI_CHUNK / 2 */
    size_t bytes;                         /* of a panel; a multiple of 64 */
    bool row_exponents;                   /* a part has exponents of its rows (row_exponents.h) */
    void (*pack)(const struct bsmi_part *part, int exact_block, void *panel);
};

static inline bool bsmi_family_is_portable(enum bsmi_family family) { return family <= BSMI_FAMILY_FP32_CHAINS; }

/* Its order of sums, for a person. */
const char *bsmi_family_order(enum bsmi_family family);

struct bsmi_kernel {
    const char *name;
    uint32_t needs;                       /* BSM_CPU_ bits */
    bool (*serves)(bsm_format a, bsm_format b);
    enum bsmi_family family;
    int register_rows, register_columns;  /* what one inner loop computes; tiles are best made of whole ones */
    int64_t tile_rows, tile_columns;      /* of a tile at most; columns a multiple of 128 */
    int64_t most_rows;                    /* of the product that the kernel is meant for; 0: any */
    const struct bsmi_microkernel *microkernel;      /* what it packs and how it multiplies; NULL: the two functions
                                                        below */
    size_t (*scratch_bytes)(int64_t rows, int64_t columns);
    void (*sum)(const struct bsmi_tile *tile, void *scratch);
    int64_t sums_columns;                 /* not 0, a multiple of 128: so many columns' sums may lie in a matrix of
                                             their own, and the kernel calls the tile's `finish` (tile.h) */
    const struct bsmi_b_panels *panels;   /* of a kernel without a microkernel: how B may be prepacked; NULL: not */
};

/* The table, and how many rows it has.  The first row that a CPU runs and that serves a pair decides which family the
 * pair has there, whatever M is: so rows of matrix units stand above those of the portable order. */
extern const struct bsmi_kernel bsmi_kernels[];
extern const int bsmi_kernel_count;

/* Bytes of scratch memory for tiles of at most rows x columns, and S of a tile, in the default floating-point mode.
 * scratch is aligned to 64 bytes. */
size_t bsmi_kernel_scratch_bytes(const struct bsmi_kernel *kernel, int64_t rows, int64_t columns);
void bsmi_kernel_sum(const struct bsmi_kernel *kernel, const struct bsmi_tile *tile, void *scratch);

#endif
