/* A tile of S in portable C (vector extensions, no intrinsics).  A file that includes this once first defines
 *
 *     BSMI_TILE(name)      the name with the instantiation's suffix
 *     BSMI_TARGET          a function attribute that allows instructions beyond the compiler's baseline, or nothing
 *     BSMI_LANES           fp32 numbers in a vector: 4 or 8
 *     BSMI_ROWS            rows of a register tile, 1 .. 6
 *     BSMI_VECTORS         vectors in a row of a register tile: its columns are BSMI_LANES * BSMI_VECTORS
 *     BSMI_HARDWARE_FMA    1 if BSMI_TARGET has a fused multiply-add, so that __builtin_fmaf is one instruction
 *
 * fp32 chains:  S = fma(a sA, b sB, S), k ascending.  Exact blocks: r = sum of a b over an exact block, exact in fp32
 * (docs/design/cpu.md has the bound), then S = fma(r, sA sB, S), exact blocks ascending.
 *
 * Narrow path, with a hardware FMA only: operands (combined scales) that are exact in fp32.
 * Wide path: the term is exact in double, S + term is rounded once (wide_add).  Same bits wherever both apply.
 * Checked path, without a hardware FMA: the wide one with a quick test for the sums that would be rounded twice. */
#include "core/core.h"
#include "cpu/kernels.h"
#include "cpu/pack.h"

#if defined(__clang__)
#define BSMI_UNROLL _Pragma("unroll")
#else
#define BSMI_UNROLL _Pragma("GCC unroll 16")
#endif
#define BSMI_INLINE BSMI_TARGET __attribute__((always_inline)) static inline

enum {
    ROWS = BSMI_ROWS, LANES = BSMI_LANES, VECTORS = BSMI_VECTORS, COLUMNS = BSMI_LANES * BSMI_VECTORS,
    HALVES = 2 * BSMI_VECTORS
};

typedef float floats __attribute__((vector_size(BSMI_LANES * 4)));
typedef float half_floats __attribute__((vector_size(BSMI_LANES * 2)));
typedef double doubles __attribute__((vector_size(BSMI_LANES * 4)));
typedef int64_t integers __attribute__((vector_size(BSMI_LANES * 4)));
typedef int32_t words __attribute__((vector_size(BSMI_LANES * 4)));

BSMI_INLINE floats load(const float *from) { floats v; memcpy(&v, from, sizeof v); return v; }
BSMI_INLINE void store(float *to, floats v) { memcpy(to, &v, sizeof v); }
BSMI_INLINE doubles load_doubles(const double *from) { doubles v; memcpy(&v, from, sizeof v); return v; }
BSMI_INLINE doubles load_widened(const float *from)
{
    half_floats v;
    memcpy(&v, from, sizeof v);
    return __builtin_convertvector(v, doubles);
}
BSMI_INLINE void store_narrowed(float *to, doubles v)
{
    const half_floats narrow = __builtin_convertvector(v, half_floats);
    memcpy(to, &narrow, sizeof narrow);
}

/* sum + term for an fp32 sum and an exact term, rounded so that rounding it to fp32 rounds once: to odd.
 * Two-sum (Knuth) gives the error of the double sum; an inexact sum whose last bit is even moves one step towards it
 * (Boldo and Melquiond 2008: 53 bits are at least 24 + 2).  With infinities and NaN the error is NaN, and nothing
 * moves. */
BSMI_INLINE doubles wide_add(doubles sum, doubles term)
{
    const doubles zero = { 0 }, s = sum + term, shadow = s - sum, error = (sum - (s - shadow)) + (term - shadow);
    const integers above = error > zero, below = error < zero, positive = s > zero, bits = (integers)s;
    const integers step = ((above ^ positive) << 1) + 1;         /* +1 away from zero, -1 towards it */
    return (doubles)(bits + (step & (above | below) & ((bits & 1) - 1)));
}

#if BSMI_HARDWARE_FMA
BSMI_INLINE floats multiply_add(floats a, floats b, floats c)
{
    floats sum;
    BSMI_UNROLL for (int i = 0; i < LANES; i++) sum[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return sum;
}
#else
/* Only for sums that are exact anyway. */
BSMI_INLINE floats multiply_add(floats a, floats b, floats c) { return a * b + c; }
#endif

/* Register tiles: `rows` is a constant wherever these are inlined. ------------------------------------------------- */

#if BSMI_HARDWARE_FMA
BSMI_INLINE void narrow_chains(int rows, int64_t length, const float *a, const float *b, float *sums, int64_t pitch)
{
    floats s[ROWS][VECTORS];
    BSMI_UNROLL for (int i = 0; i < rows; i++)
        BSMI_UNROLL for (int j = 0; j < VECTORS; j++) s[i][j] = load(sums + i * pitch + j * LANES);
    for (int64_t k = 0; k < length; k++, a += ROWS, b += COLUMNS) {
        floats column[VECTORS];
        BSMI_UNROLL for (int j = 0; j < VECTORS; j++) column[j] = load(b + j * LANES);
        BSMI_UNROLL for (int i = 0; i < rows; i++) {
            const floats row = a[i] - (floats){ 0 };
            BSMI_UNROLL for (int j = 0; j < VECTORS; j++) s[i][j] = multiply_add(row, column[j], s[i][j]);
        }
    }
    BSMI_UNROLL for (int i = 0; i < rows; i++)
        BSMI_UNROLL for (int j = 0; j < VECTORS; j++) store(sums + i * pitch + j * LANES, s[i][j]);
}
#endif

BSMI_INLINE doubles round_to_float(doubles v)
{
    return __builtin_convertvector(__builtin_convertvector(v, half_floats), doubles);
}

/* All ones in the low word of each sum that lies in the middle of two fp32 numbers of 24 bits, or was rounded to it. */
BSMI_INLINE words in_the_middle(doubles sum)
{
    const integers mask = (integers){ 0 } + 0x1fffffff,
                   middle = (integers){ 0 } + (int64_t)((uint64_t)0xffffffff << 32 | 0x10000000);
    return ((words)sum & (words)mask) == (words)middle;
}

BSMI_INLINE bool any(words w)
{
    const integers bits = (integers)w;
    int64_t all = 0;
    BSMI_UNROLL for (int i = 0; i < LANES / 2; i++) all |= bits[i];
    return all != 0;
}

BSMI_INLINE void wide_row(bool checked, int64_t length, const double *a, const double *b, float *sums)
{
    doubles s[HALVES];
    BSMI_UNROLL for (int j = 0; j < HALVES; j++) s[j] = load_widened(sums + j * (LANES / 2));
    for (int64_t k = 0; k < length; k++, a += ROWS, b += COLUMNS) {
        const doubles row = *a - (doubles){ 0 };
        doubles next[HALVES];
        words doubtful = { 0 };
        BSMI_UNROLL for (int j = 0; checked && j < HALVES; j++) {
            next[j] = s[j] + row * load_doubles(b + j * (LANES / 2));
            doubtful |= in_the_middle(next[j]);
        }
        if (!checked || any(doubtful)) {
            BSMI_UNROLL for (int j = 0; j < HALVES; j++)
                next[j] = wide_add(s[j], row * load_doubles(b + j * (LANES / 2)));
        }
        BSMI_UNROLL for (int j = 0; j < HALVES; j++) s[j] = round_to_float(next[j]);
    }
    BSMI_UNROLL for (int j = 0; j < HALVES; j++) store_narrowed(sums + j * (LANES / 2), s[j]);
}

/* One exact block: its exact sum, then its scales. */
BSMI_INLINE void exact_block_sum(int rows, int64_t length, const float *a, const float *b, floats r[ROWS][VECTORS])
{
    BSMI_UNROLL for (int i = 0; i < rows; i++)
        BSMI_UNROLL for (int j = 0; j < VECTORS; j++) r[i][j] = (floats){ 0 };
    for (int64_t k = 0; k < length; k++, a += ROWS, b += COLUMNS) {
        floats column[VECTORS];
        BSMI_UNROLL for (int j = 0; j < VECTORS; j++) column[j] = load(b + j * LANES);
        BSMI_UNROLL for (int i = 0; i < rows; i++) {
            const floats row = a[i] - (floats){ 0 };
            BSMI_UNROLL for (int j = 0; j < VECTORS; j++) r[i][j] = multiply_add(row, column[j], r[i][j]);
        }
    }
}

struct exact_block_panels { const float *a, *b, *a_scales, *b_scales; int64_t length; int exact_block; bool narrow; };

#if BSMI_HARDWARE_FMA
BSMI_INLINE void narrow_exact_blocks(int rows, const struct exact_block_panels *p, float *sums, int64_t pitch)
{
    const float *a_scales = p->a_scales, *b_scales = p->b_scales;
    for (int64_t k = 0; k < p->length; k += p->exact_block, a_scales += ROWS, b_scales += COLUMNS) {
        floats r[ROWS][VECTORS];
        exact_block_sum(rows, BSMI_MIN(p->exact_block, p->length - k), p->a + k * ROWS, p->b + k * COLUMNS, r);
        BSMI_UNROLL for (int i = 0; i < rows; i++) {
            const floats row = a_scales[i] - (floats){ 0 };
            BSMI_UNROLL for (int j = 0; j < VECTORS; j++) {
                float *s = sums + i * pitch + j * LANES;
                store(s, multiply_add(r[i][j], row * load(b_scales + j * LANES), load(s)));
            }
        }
    }
}
#endif

/* The scales of one row's exact block. */
BSMI_INLINE void wide_scales(const float *block_sums, float a_scale, const float *b_scales, float *sums)
{
    const doubles row = (double)a_scale - (doubles){ 0 };
    for (int j = 0; j < COLUMNS; j += LANES / 2)
        store_narrowed(sums + j, wide_add(load_widened(sums + j),
                                          load_widened(block_sums + j) * (row * load_widened(b_scales + j))));
}

BSMI_INLINE void wide_exact_blocks(int rows, const struct exact_block_panels *p, float *sums, int64_t pitch)
{
    const float *a_scales = p->a_scales, *b_scales = p->b_scales;
    for (int64_t k = 0; k < p->length; k += p->exact_block, a_scales += ROWS, b_scales += COLUMNS) {
        floats r[ROWS][VECTORS];
        float block_sums[ROWS][COLUMNS];
        exact_block_sum(rows, BSMI_MIN(p->exact_block, p->length - k), p->a + k * ROWS, p->b + k * COLUMNS, r);
        BSMI_UNROLL for (int i = 0; i < rows; i++)
            BSMI_UNROLL for (int j = 0; j < VECTORS; j++) store(block_sums[i] + j * LANES, r[i][j]);
        for (int i = 0; i < rows; i++) wide_scales(block_sums[i], a_scales[i], b_scales, sums + i * pitch);
    }
}

/* The same with the number of rows known to the compiler. ---------------------------------------------------------- */

#define BY_ROWS(rows, call) \
    switch (rows) { \
    case 1: { enum { R = 1 }; call; break; } \
    case 2: { enum { R = BSMI_MIN(2, ROWS) }; call; break; } \
    case 3: { enum { R = BSMI_MIN(3, ROWS) }; call; break; } \
    case 4: { enum { R = BSMI_MIN(4, ROWS) }; call; break; } \
    case 5: { enum { R = BSMI_MIN(5, ROWS) }; call; break; } \
    default: { enum { R = ROWS }; call; break; } \
    }

#if BSMI_HARDWARE_FMA
BSMI_TARGET static void narrow_chain_rows(int64_t rows, int64_t length, const float *a, const float *b, float *sums,
                                          int64_t pitch)
{
    BY_ROWS(rows, narrow_chains(R, length, a, b, sums, pitch))
}
#endif

BSMI_TARGET static void wide_chain_rows(int64_t rows, int64_t length, const double *a, const double *b, float *sums,
                                        int64_t pitch)
{
    for (int64_t i = 0; i < BSMI_MIN(rows, ROWS); i++) wide_row(false, length, a + i, b, sums + i * pitch);
}

BSMI_TARGET static void checked_chain_rows(int64_t rows, int64_t length, const double *a, const double *b, float *sums,
                                           int64_t pitch)
{
    for (int64_t i = 0; i < BSMI_MIN(rows, ROWS); i++) wide_row(true, length, a + i, b, sums + i * pitch);
}

BSMI_TARGET static void wide_exact_block_rows(int64_t rows, const struct exact_block_panels *p, float *sums,
                                              int64_t pitch)
{
    BY_ROWS(rows, wide_exact_blocks(R, p, sums, pitch))
}

#if BSMI_HARDWARE_FMA
BSMI_TARGET static void narrow_exact_block_rows(int64_t rows, const struct exact_block_panels *p, float *sums,
                                                int64_t pitch)
{
    BY_ROWS(rows, narrow_exact_blocks(R, p, sums, pitch))
}
#endif

static void exact_block_rows(int64_t rows, const struct exact_block_panels *p, float *sums, int64_t pitch)
{
#if BSMI_HARDWARE_FMA
    if (p->narrow) {
        narrow_exact_block_rows(rows, p, sums, pitch);
        return;
    }
#endif
    wide_exact_block_rows(rows, p, sums, pitch);
}

/* The tile --------------------------------------------------------------------------------------------------------- */

/* Scratch: panels of A, of B (as doubles they hold half a chunk), and of their scales. */
struct panels { float *a, *b, *a_scales, *b_scales; };

static struct panels divide_scratch(const struct bsmi_tile *tile, void *scratch)
{
    const int64_t a_rows = bsmi_round_up(tile->rows, ROWS), b_rows = bsmi_round_up(tile->columns, COLUMNS);
    struct panels p;
    p.b = scratch;
    p.b_scales = p.b + b_rows * BSMI_CHUNK;
    p.a = p.b_scales + b_rows * BSMI_CHUNK_BLOCKS;
    p.a_scales = p.a + bsmi_round_up(a_rows, 16) * BSMI_CHUNK;
    return p;
}

size_t BSMI_TILE(bsmi_tile_scratch)(int64_t rows, int64_t columns)
{
    const int64_t panel_rows = bsmi_round_up(bsmi_round_up(rows, ROWS), 16) + bsmi_round_up(columns, COLUMNS);
    return (size_t)panel_rows * (BSMI_CHUNK + BSMI_CHUNK_BLOCKS) * sizeof(float);
}

static void clear_sums(const struct bsmi_tile *tile)
{
    for (int64_t i = 0; i < tile->rows; i++)
        memset(tile->sums + i * tile->sums_pitch, 0, (size_t)tile->sums_pitch * sizeof(float));
}

static struct bsmi_part part_a(const struct bsmi_tile *tile, int64_t k, int64_t length)
{
    return (struct bsmi_part){ tile->a, tile->a_batch, tile->row, tile->rows, 0, k, length, NULL };
}

static struct bsmi_part part_b(const struct bsmi_tile *tile, int64_t k, int64_t length)
{
    return (struct bsmi_part){ tile->b, tile->b_batch, tile->column, tile->columns, tile->split, k, length, NULL };
}

static void add_fp32_chains_wide(const struct bsmi_tile *tile, const struct panels *p, int64_t k, int64_t length)
{
    const struct bsmi_part a = part_a(tile, k, length), b = part_b(tile, k, length);
    double *wide_a = (double *)(void *)p->a, *wide_b = (double *)(void *)p->b;
    const int last_place = bsmi_pack_scaled_wide(&a, ROWS, wide_a) + bsmi_pack_scaled_wide(&b, COLUMNS, wide_b);
    /* Below 2^-126 sums of multiples of 2^-149 are exact in fp32: only 24-bit sums can be rounded twice. */
    const bool checked = !BSMI_HARDWARE_FMA && last_place >= -149;
    for (int64_t j = 0; j < tile->columns; j += COLUMNS)
        for (int64_t i = 0; i < tile->rows; i += ROWS)
            (checked ? checked_chain_rows : wide_chain_rows)(tile->rows - i, length, wide_a + i * length,
                                                             wide_b + j * length, tile->sums + i * tile->sums_pitch + j,
                                                             tile->sums_pitch);
}

#if BSMI_HARDWARE_FMA
static bool add_fp32_chains_narrow(const struct bsmi_tile *tile, const struct panels *p, int64_t k, int64_t length)
{
    const struct bsmi_part a = part_a(tile, k, length), b = part_b(tile, k, length);
    if (!bsmi_scaled_elements_fit(&tile->a, bsmi_part_scale_range(&a)) ||
        !bsmi_scaled_elements_fit(&tile->b, bsmi_part_scale_range(&b)))
        return false;
    bsmi_pack_scaled(&a, ROWS, p->a);
    bsmi_pack_scaled(&b, COLUMNS, p->b);
    for (int64_t j = 0; j < tile->columns; j += COLUMNS)
        for (int64_t i = 0; i < tile->rows; i += ROWS)
            narrow_chain_rows(tile->rows - i, length, p->a + i * length, p->b + j * length,
                              tile->sums + i * tile->sums_pitch + j, tile->sums_pitch);
    return true;
}
#else
static bool add_fp32_chains_narrow(const struct bsmi_tile *tile, const struct panels *p, int64_t k, int64_t length)
{
    (void)tile, (void)p, (void)k, (void)length;
    return false;
}
#endif

void BSMI_TILE(bsmi_tile_add_fp32_chains)(const struct bsmi_tile *tile, int64_t k, int64_t end, void *scratch)
{
    const struct panels p = divide_scratch(tile, scratch);
    for (; k < end; k += BSMI_CHUNK) {
        const int64_t length = BSMI_MIN(BSMI_CHUNK, end - k), half = BSMI_CHUNK / 2;
        if (add_fp32_chains_narrow(tile, &p, k, length)) continue;
        add_fp32_chains_wide(tile, &p, k, BSMI_MIN(length, half));
        if (length > half) add_fp32_chains_wide(tile, &p, k + half, length - half);
    }
}

void BSMI_TILE(bsmi_tile_fp32_chains)(const struct bsmi_tile *tile, void *scratch)
{
    clear_sums(tile);
    BSMI_TILE(bsmi_tile_add_fp32_chains)(tile, 0, tile->k, scratch);
}

/* Products of two scales of these ranges are exact in fp32. */
static bool combined_scales_fit(struct bsmi_scale_range a, struct bsmi_scale_range b)
{
    return a.lowest + b.lowest >= -149 && a.highest + b.highest + 2 <= 128;
}

static void add_exact_blocks(const struct bsmi_tile *tile, const struct panels *p, int64_t k, int64_t length,
                             int exact_block)
{
    const struct bsmi_part a = part_a(tile, k, length), b = part_b(tile, k, length);
    const int64_t exact_blocks = bsmi_ceil_div(length, exact_block);
    const bool narrow = combined_scales_fit(bsmi_part_scale_range(&a), bsmi_part_scale_range(&b));
    bsmi_pack_elements(&a, ROWS, p->a);
    bsmi_pack_elements(&b, COLUMNS, p->b);
    bsmi_pack_scales(&a, exact_block, ROWS, p->a_scales);
    bsmi_pack_scales(&b, exact_block, COLUMNS, p->b_scales);
    for (int64_t j = 0; j < tile->columns; j += COLUMNS)
        for (int64_t i = 0; i < tile->rows; i += ROWS) {
            const struct exact_block_panels panels = { p->a + i * length, p->b + j * length,
                                                       p->a_scales + i * exact_blocks, p->b_scales + j * exact_blocks,
                                                       length, exact_block, narrow };
            exact_block_rows(tile->rows - i, &panels, tile->sums + i * tile->sums_pitch + j, tile->sums_pitch);
        }
}

void BSMI_TILE(bsmi_tile_add_exact_blocks)(const struct bsmi_tile *tile, int64_t k, int64_t end, void *scratch)
{
    const struct panels p = divide_scratch(tile, scratch);
    const int exact_block = BSMI_MIN(tile->a.matrix->block, tile->b.matrix->block);
    for (; k < end; k += BSMI_CHUNK) add_exact_blocks(tile, &p, k, BSMI_MIN(BSMI_CHUNK, end - k), exact_block);
}

void BSMI_TILE(bsmi_tile_exact_blocks)(const struct bsmi_tile *tile, void *scratch)
{
    clear_sums(tile);
    BSMI_TILE(bsmi_tile_add_exact_blocks)(tile, 0, tile->k, scratch);
}
