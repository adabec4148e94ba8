/* CPU kernels: one table, best first.
 *
 * A kernel computes a tile of S; the loop over tiles, the epilogue and the threads are multiply.c's.  To add one: a file that
 * defines its panels (panels.h), a row in kernels.c above the rows it beats, and the tests cover it by themselves.  What a
 * kernel promises is the order of sums that docs/guide/numerics.md defines for its pairs, bit for bit. */
#ifndef BSMI_KERNELS_H
#define BSMI_KERNELS_H

#include "matrix/matrix.h"

/* One operand and the value of each of its codes: of elements of at most 8 bits, and of scales. */
struct bsmi_operand {
    const struct bsmi_matrix *matrix;
    const float *values, *scales;
};

/* A tile of S: rows [row, row + rows) of A times columns [column, column + columns) of the product.
 * Columns are virtual: when gates and ups are split in halves, column v is row v/2 of B (even v, a gate) or row
 * split + v/2 (odd v, an up), so that the two halves of a pair always share a tile. */
struct bsmi_tile {
    struct bsmi_operand a, b;
    int64_t a_batch, b_batch;
    int64_t row, rows, column, columns;
    int64_t split;                        /* 0: virtual columns are rows of B */
    int64_t k;
    const unsigned char *b_panels;        /* B's matrix as the kernel's panels (prepacked.h); NULL: B as it is stored */
    float *sums; /* rows x sums_pitch, whole register tiles, written whole by the kernel; 64-byte aligned */
    int64_t sums_pitch;                   /* a multiple of 16, at least columns in whole register tiles */
};

static inline int64_t bsmi_source_column(int64_t column, int64_t split)
{
    return split == 0 ? column : column / 2 + (column % 2) * split;
}

struct bsmi_kernel {
    const char *name;
    uint32_t needs;                       /* BSM_CPU_ bits */
    bool (*serves)(bsm_format a, bsm_format b);
    const char *order;                    /* of the sums, for a person */
    int register_rows, register_columns;  /* what one inner loop computes; tiles are best made of whole ones */
    int64_t tile_rows, tile_columns;      /* of a tile at most; columns a multiple of 128 */
    int64_t most_rows;                    /* of the product that the kernel is meant for; 0: any */
    const struct bsmi_panels *panels;     /* what it packs and how it multiplies (panels.h); NULL: the two functions below */
    size_t (*scratch_bytes)(int64_t rows, int64_t columns);
    void (*sum)(const struct bsmi_tile *tile, void *scratch);
};

/* The table, and how many rows it has. */
extern const struct bsmi_kernel bsmi_kernels[];
extern const int bsmi_kernel_count;

/* Bytes of scratch memory for tiles of at most rows x columns, and S of a tile, in the default floating-point mode.  scratch is
 * aligned to 64 bytes. */
size_t bsmi_kernel_scratch_bytes(const struct bsmi_kernel *kernel, int64_t rows, int64_t columns);
void bsmi_kernel_sum(const struct bsmi_kernel *kernel, const struct bsmi_tile *tile, void *scratch);

/* Both elements are small integers times a power of two, so that runs sum exactly; and every other pair. */
bool bsmi_pair_sums_runs(bsm_format a, bsm_format b);
bool bsmi_pair_sums_terms(bsm_format a, bsm_format b);
bool bsmi_pair_sums_terms_of_codes(bsm_format a, bsm_format b);     /* B's elements have at most 8 bits */
bool bsmi_pair_is_fp4(bsm_format a, bsm_format b);        /* both elements are e2m1, in blocks */
bool bsmi_pair_is_by_int8(bsm_format a, bsm_format b);    /* B's are int8, and runs have 32 */
bool bsmi_pair_is_by_e2m3(bsm_format a, bsm_format b);    /* B's are e2m3, A's no int8, and runs have 32 */

/* The portable tiles and their instantiation for AVX2 and FMA: tile_template.h.  What adds columns [k, end) of K, k a multiple of
 * 256, goes on from the sums that the tile has. */
size_t bsmi_tile_scratch_portable(int64_t rows, int64_t columns);
void bsmi_tile_terms_portable(const struct bsmi_tile *tile, void *scratch);
void bsmi_tile_add_terms_portable(const struct bsmi_tile *tile, int64_t k, int64_t end, void *scratch);
void bsmi_tile_add_runs_portable(const struct bsmi_tile *tile, int64_t k, int64_t end, void *scratch);
void bsmi_tile_runs_portable(const struct bsmi_tile *tile, void *scratch);
#if defined(__x86_64__)
size_t bsmi_tile_scratch_avx2_fma(int64_t rows, int64_t columns);
void bsmi_tile_terms_avx2_fma(const struct bsmi_tile *tile, void *scratch);
void bsmi_tile_add_terms_avx2_fma(const struct bsmi_tile *tile, int64_t k, int64_t end, void *scratch);
void bsmi_tile_add_runs_avx2_fma(const struct bsmi_tile *tile, int64_t k, int64_t end, void *scratch);
void bsmi_tile_runs_avx2_fma(const struct bsmi_tile *tile, void *scratch);

/* Each is of the file with its name, without `panels`. */
extern const struct bsmi_panels bsmi_few_fp4_panels_avx2, bsmi_few_integers_panels_avx2, bsmi_fp4_panels_avx2,
                                bsmi_integers_panels_avx2, bsmi_integers_panels_vnni;
extern const struct bsmi_panels bsmi_few_terms_panels_avx2, bsmi_few_terms_panels_avx512, bsmi_terms_panels_avx2,
                                bsmi_terms_panels_avx512;
#elif defined(__aarch64__)
extern const struct bsmi_panels bsmi_integers_panels_i8mm, bsmi_integers_panels_dotprod;
#endif

#endif
