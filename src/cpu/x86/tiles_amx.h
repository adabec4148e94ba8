/* A tile of S by AMX: the loops around products of two panels, the same for tiles of bf16 and of int8.
 *
 * Operands are panels of tiles of 1 KiB.  A's has 16 rows of a slice, 64 bytes each; B's the same of 16 columns by
 * words of 4 bytes.  In a panel of `sixteens` times 16 rows the tile of slice s, term t (row_exponents.h) and sixteen i
 * is number (s * terms + t) * sixteens + i. */
#ifndef BSMI_TILES_AMX_H
#define BSMI_TILES_AMX_H

#include "amx.h"
#include "cpu/bf16_sums.h"
#include "upcoming.h"

#define BSMI_AMX_INLINE BSMI_AMX __attribute__((always_inline, unused)) static inline

enum { BSMI_AMX_STRIP = 32, BSMI_AMX_SIXTEENS = BSMI_AMX_STRIP / 16,
       BSMI_AMX_SLICE_BYTES = BSMI_AMX_SIXTEENS * BSMI_TILE_BYTES, BSMI_AMX_HEIGHT = 64 };
_Static_assert((int)BSMI_AMX_HEIGHT <= (int)BSMI_MOST_UPCOMING, "rows whose codes are asked for");

struct bsmi_amx_job;

/* 16 or 32 rows of a chunk of K times 32 columns. */
struct bsmi_amx_strip {
    int sixteens;                         /* of A's panel */
    const unsigned char *a, *b;
    int64_t slices;
    bool first, last;                     /* of K: sums begin; they are final */
    float *sums;
    const float *next_sums;               /* of the next product, or NULL */
    bool begun, goes_on;                  /* the sums are in the unit already; the next ones, of as many rows, are to
                                             be there behind these */
    int64_t pitch;
    int64_t row, column;                  /* of the tile */
    struct bsmi_upcoming *next;           /* codes of A that are packed next: ask_bytes are asked for a slice */
    int ask_bytes;
};

/* What differs. */
struct bsmi_amx_kernel {
    int64_t slice;                        /* columns of K in 64 bytes */
    void (*pack_a)(const struct bsmi_part *part, int sixteens, int terms, void *panel);
    void (*pack_b)(const struct bsmi_part *part, int sixteens, int terms, void *panel);
    /* sums (+)= A's panel times B's; after the last chunk they are fp32 numbers. */
    void (*multiply)(const struct bsmi_amx_job *job, const struct bsmi_amx_strip *strip);
};

struct bsmi_amx_job {
    const struct bsmi_amx_kernel *kernel;
    const struct bsmi_tile *tile;
    struct bsmi_bf16_exponents exponents; /* what bsmi_bf16_finish puts back */
    const int16_t *of_a, *of_b;           /* what packers find as exponents of the part */
    int a_terms, b_terms;
    const void *argument;                 /* the kernel's own */
};

/* Sums of a tile with columns of K; scratch for rows and columns at most. */
size_t bsmi_amx_scratch_bytes(int64_t rows, int64_t columns);
void bsmi_amx_sum(const struct bsmi_amx_job *job, void *scratch);

/* Register tiles: 0 to 3 are the sums, 2 x 2 or of 16 rows 1 x 2 --------------------------------------------------- */

BSMI_AMX_INLINE void bsmi_amx_load_sums(int sixteens, const float *sums, ptrdiff_t pitch)
{
    BSMI_TILE_LOAD(0, sums, pitch);
    BSMI_TILE_LOAD(1, sums + 16, pitch);
    if (sixteens == 1) return;
    BSMI_TILE_LOAD(2, (const unsigned char *)sums + 16 * pitch, pitch);
    BSMI_TILE_LOAD(3, (const unsigned char *)(sums + 16) + 16 * pitch, pitch);
}

BSMI_AMX_INLINE void bsmi_amx_clear_sums(int sixteens)
{
    BSMI_TILE_ZERO(0);
    BSMI_TILE_ZERO(1);
    if (sixteens == 1) return;
    BSMI_TILE_ZERO(2);
    BSMI_TILE_ZERO(3);
}

BSMI_AMX_INLINE void bsmi_amx_store_sums(int sixteens, float *sums, ptrdiff_t pitch)
{
    BSMI_TILE_STORE(0, sums, pitch);
    BSMI_TILE_STORE(1, sums + 16, pitch);
    if (sixteens == 1) return;
    BSMI_TILE_STORE(2, (unsigned char *)sums + 16 * pitch, pitch);
    BSMI_TILE_STORE(3, (unsigned char *)(sums + 16) + 16 * pitch, pitch);
}

BSMI_AMX_INLINE void bsmi_amx_begin_sums(int sixteens, const struct bsmi_amx_strip *strip)
{
    if (strip->begun) return;
    if (strip->first) bsmi_amx_clear_sums(sixteens);
    else bsmi_amx_load_sums(sixteens, strip->sums, (ptrdiff_t)(strip->pitch * (int64_t)sizeof(float)));
}

/* Each tile of the next sums is loaded as soon as its place is free. */
BSMI_AMX_INLINE void bsmi_amx_end_sums(int sixteens, const struct bsmi_amx_strip *strip)
{
    const ptrdiff_t pitch = (ptrdiff_t)(strip->pitch * (int64_t)sizeof(float));
    float *const sums = strip->sums;
    const float *const next = strip->next_sums;
    if (!strip->goes_on || strip->first) {
        bsmi_amx_store_sums(sixteens, sums, pitch);
        if (strip->goes_on) bsmi_amx_clear_sums(sixteens);
        return;
    }
    BSMI_TILE_STORE(0, sums, pitch);
    BSMI_TILE_LOAD(0, next, pitch);
    BSMI_TILE_STORE(1, sums + 16, pitch);
    BSMI_TILE_LOAD(1, next + 16, pitch);
    if (sixteens == 1) return;
    BSMI_TILE_STORE(2, (unsigned char *)sums + 16 * pitch, pitch);
    BSMI_TILE_LOAD(2, (const unsigned char *)next + 16 * pitch, pitch);
    BSMI_TILE_STORE(3, (unsigned char *)(sums + 16) + 16 * pitch, pitch);
    BSMI_TILE_LOAD(3, (const unsigned char *)(next + 16) + 16 * pitch, pitch);
}

/* In slice s: two rows of the next sums, and codes that are packed next, into the second-level cache.  Nothing is
 * read. */
BSMI_AMX_INLINE void bsmi_amx_ask_ahead(const struct bsmi_amx_strip *strip, int64_t s)
{
    bsmi_ask_for_upcoming(strip->next, strip->ask_bytes);
    if (strip->next_sums == NULL || s >= BSMI_AMX_STRIP / 2) return;
    for (int64_t i = 2 * s; i < 2 * s + 2; i++) {
        const uintptr_t row = (uintptr_t)strip->next_sums + (uintptr_t)(i * strip->pitch) * sizeof(float);
        __builtin_prefetch((const void *)row, 0, 2);
        __builtin_prefetch((const void *)(row + BSMI_TILE_ROW_BYTES), 0, 2);
    }
}

/* One slice of one term of A, which stays in the first-level cache, times one of B; DOT: of the element. */
#define BSMI_AMX_MULTIPLY_SLICE(DOT, sixteens, a, b) \
    do { \
        BSMI_TILE_LOAD_ONCE(6, b, BSMI_TILE_ROW_BYTES); \
        BSMI_TILE_LOAD(4, a, BSMI_TILE_ROW_BYTES); \
        DOT(0, 4, 6); \
        BSMI_TILE_LOAD_ONCE(7, (b) + BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES); \
        DOT(1, 4, 7); \
        if ((sixteens) == 1) break; \
        BSMI_TILE_LOAD(5, (a) + BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES); \
        DOT(2, 5, 6); \
        DOT(3, 5, 7); \
    } while (0)

#endif
