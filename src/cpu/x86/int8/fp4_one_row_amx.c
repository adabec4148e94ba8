/* One row of A by rows of mxfp4 by AMX's tiles of int8: the bits of bf16_tiles_amx.c, with fewer steps for weights.
 *
 * A's numbers are integers of three digits wherever no sum of a slice's products needs a rounding in its chain
 * (int8_digits_avx512.h).  The slice's sum, even columns and odd ones, is then an integer whatever the order of its
 * products is.  It becomes fp32 with one rounding, the one of even + odd, and is added times the scale of the block: a
 * power of two, so that nothing is rounded before the sum is.  Slices of A that have no such integers, a few of a
 * hundred of normal numbers, are multiplied as bf16, without scales as well.
 *
 * A cache line of a row is four slices: its low nibbles are looked up for one tile of int8, its high ones for another
 * one, three vector operations in all.  Three times four columns of A make three digits of four slices.  A tile of sums
 * goes through memory, where its rows, of columns of B, become vectors of 16 columns.  What is stored is read one step
 * later: stores are not forwarded to loads of tiles. */
#if defined(__x86_64__)
#include "int8_digits_avx512.h"

#include "cpu/bf16_sums.h"
#include "cpu/code_rows.h"
#include "cpu/kernels.h"
#include "cpu/x86/amx.h"
#include "cpu/x86/bf16/bf16_rows_vbmi.h"
#include "cpu/x86/upcoming.h"

#define UNIT \
    __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,amx-tile,amx-bf16,amx-int8")))
#define UNIT_INLINE UNIT __attribute__((always_inline)) static inline

enum {
    SIXTEEN = BSMI_TILE_ROWS, STRIP = 32, SIXTEENS = STRIP / SIXTEEN, SLICES = BSMI_GROUP_SLICES,
    CHUNK = BSMI_ROW_CHUNK, LINE = BSMI_GROUP / 2, HALF = SIXTEEN / 2, NAN_SCALE = 255, FIELD_BITS = 23,
};

/* Scratch of a tile. */
struct one_row {
    _Alignas(64) unsigned char ring[SIXTEENS][2][BSMI_TILE_BYTES];               /* low nibbles, high nibbles */
    _Alignas(64) unsigned char sums[2 * SIXTEENS][SIXTEEN][BSMI_TILE_ROW_BYTES]; /* [row][digit][slice] */
    _Alignas(64) uint16_t hard[SIXTEENS][SLICES][BSMI_TILE_NUMBERS];             /* tiles of bf16 */
    _Alignas(64) float hard_sums[2 * SIXTEENS][SLICES][SIXTEEN];
    _Alignas(64) uint8_t last_lines[STRIP][LINE];
    const uint8_t *last_rows[STRIP];
    struct bsmi_nibble_rows codes;
    struct bsmi_scale_code_rows scales;
    struct bsmi_digits digits;
};

/* A chunk of K of a strip. */
struct chunk {
    struct one_row *memory;
    int8_t (*a)[BSMI_DIGITS_TILE_BYTES];  /* two tiles a group */
    uint16_t (*numbers)[BSMI_SLICE];
    const float *half_units;
    const uint8_t *hard;
    int64_t groups, whole_groups, blocks;
    struct bsmi_upcoming *next;
};

/* What is known of scales, as bytes: the largest distance from the least code that stays in bounds, and the largest
 * code. */
struct seen { __m512i above, most; };

/* Steps: each is of a sixteen of B's rows in a group --------------------------------------------------------------- */

UNIT_INLINE __m512i magnitudes_of_nibbles(void)
{
    return _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
}

/* Half of a sixteen.  Row 4 i + j of a tile is row 4 j + i of B, so that sums come out in order. */
UNIT_INLINE void decode(const uint8_t *const *rows, int64_t byte, int first, struct bsmi_upcoming *next,
                        unsigned char (*tiles)[BSMI_TILE_BYTES])
{
    const __m512i table = magnitudes_of_nibbles();
    const uintptr_t taken = bsmi_take_upcoming(next, HALF * LINE), upcoming = taken != 0 ? taken : (uintptr_t)rows[0];
#pragma GCC unroll 16
    for (int i = 0; i < HALF; i++) {
        const int r = first + i;
        __builtin_prefetch((const void *)(upcoming + (uintptr_t)i * LINE), 0, 2);
        const __m512i codes = _mm512_loadu_si512(rows[r % 4 * 4 + r / 4] + byte);
        _mm512_store_si512(tiles[0] + r * BSMI_TILE_ROW_BYTES, _mm512_permutexvar_epi8(codes, table));
        _mm512_store_si512(tiles[1] + r * BSMI_TILE_ROW_BYTES,
                           _mm512_permutexvar_epi8(_mm512_srli_epi16(codes, 4), table));
    }
}

/* Slice s of the lines, as bf16 without scales. */
UNIT_INLINE void decode_hard(const uint8_t *const *rows, int64_t byte, const __m512i table, uint16_t *tile)
{
#pragma GCC unroll 4
    for (int r = 0; r < SIXTEEN; r++)
        _mm512_store_si512(tile + r * BSMI_SLICE, fp4_numbers_of_table(spread_codes(rows[r] + byte), table));
}

struct lines { const uint8_t *const *rows; int64_t byte; };

UNIT_INLINE struct lines lines_of(const struct chunk *c, int64_t group, int which)
{
    const bool whole = group < c->whole_groups;
    return (struct lines){ (whole ? c->memory->codes.rows : c->memory->last_rows) + which * SIXTEEN,
                           whole ? group * LINE : 0 };
}

/* The other steps are in work between its halves. */
UNIT_INLINE void decode_step(const struct chunk *c, int64_t group, int which, int first)
{
    const struct lines lines = lines_of(c, group, which);
    decode(lines.rows, lines.byte, first, c->next, c->memory->ring[which]);
}

UNIT_INLINE bool is_hard(const struct chunk *c, int64_t group, int s) { return c->hard[group] >> s & 1; }

UNIT_INLINE void decode_hard_step(const struct chunk *c, int64_t group, int which, __m512i table)
{
    const struct lines lines = lines_of(c, group, which);
    for (int s = 0; c->hard[group] != 0 && s < SLICES; s++)
        if (is_hard(c, group, s))
            decode_hard(lines.rows, lines.byte + s * (LINE / SLICES), table, c->memory->hard[which][s]);
}

/* The even columns of K.  A's tiles are loaded for the first sixteen, and stay for the second. */
UNIT_INLINE void multiply_even(const struct chunk *c, int64_t group, int which)
{
    if (which == 0) {
        BSMI_TILE_LOAD(2, c->a[2 * group], BSMI_DIGITS_ROW_BYTES);
        BSMI_TILE_LOAD(3, c->a[2 * group + 1], BSMI_DIGITS_ROW_BYTES);
        BSMI_TILE_ZERO(0);
        BSMI_TILE_LOAD(4, c->memory->ring[0][0], BSMI_TILE_ROW_BYTES);
        BSMI_TILE_DOT_INT8(0, 4, 2);
    } else {
        BSMI_TILE_ZERO(1);
        BSMI_TILE_LOAD(4, c->memory->ring[1][0], BSMI_TILE_ROW_BYTES);
        BSMI_TILE_DOT_INT8(1, 4, 2);
    }
}

UNIT_INLINE void multiply_odd(const struct chunk *c, int which)
{
    BSMI_TILE_LOAD(5, c->memory->ring[which][1], BSMI_TILE_ROW_BYTES);
    if (which == 0) BSMI_TILE_DOT_INT8(0, 5, 3);
    else BSMI_TILE_DOT_INT8(1, 5, 3);
}

static inline int slot_of_sums(int64_t group, int which) { return (int)(group % 2) * SIXTEENS + which; }

UNIT_INLINE void multiply_hard(const struct chunk *c, int64_t group, int which)
{
    for (int s = 0; c->hard[group] != 0 && s < SLICES; s++)
        if (is_hard(c, group, s)) {
            BSMI_TILE_ZERO(6);
            BSMI_TILE_LOAD(4, c->memory->hard[which][s], BSMI_TILE_ROW_BYTES);
            BSMI_TILE_LOAD(7, c->numbers[group * SLICES + s], 4);
            BSMI_TILE_DOT_BF16(6, 4, 7);
            BSMI_TILE_STORE(6, c->memory->hard_sums[slot_of_sums(group, which)][s], 4);
        }
}

UNIT_INLINE void store_step(const struct chunk *c, int64_t group, int which)
{
    unsigned char *const sums = c->memory->sums[slot_of_sums(group, which)][0];
    if (which == 0) BSMI_TILE_STORE(0, sums, BSMI_TILE_ROW_BYTES);
    else BSMI_TILE_STORE(1, sums, BSMI_TILE_ROW_BYTES);
}

UNIT_INLINE __m128i load_quarter(const unsigned char *at)
{
    return _mm_load_si128((const __m128i *)(const void *)at);
}

/* Digit `digit` of four columns of B, four slices each. */
UNIT_INLINE __m512i load_digit(const unsigned char (*sums)[BSMI_TILE_ROW_BYTES], int digit)
{
    const int at = 16 * digit;
    const __m512i first = _mm512_zextsi128_si512(load_quarter(sums[0] + at)),
                  two = _mm512_mask_broadcast_i32x4(first, 0x00f0, load_quarter(sums[1] + at)),
                  three = _mm512_mask_broadcast_i32x4(two, 0x0f00, load_quarter(sums[2] + at));
    return _mm512_mask_broadcast_i32x4(three, 0xf000, load_quarter(sums[3] + at));
}

/* 2^(code - 127) of byte s of each word; 0 for 2^-127, which blocks of zeros have. */
UNIT_INLINE __m512 scales_of(__m512i fours, int s)
{
    const __m512i moved =
        s == 3 ? _mm512_srli_epi32(fours, 1) : _mm512_slli_epi32(fours, (unsigned)(FIELD_BITS - 8 * s));
    return _mm512_castsi512_ps(_mm512_and_si512(moved, _mm512_set1_epi32(0x7f800000)));
}

UNIT_INLINE void add_step(const struct chunk *c, int64_t group, int which, __m512i fours, __m512 *total)
{
    const struct one_row *const m = c->memory;
    const int slot = slot_of_sums(group, which);
    __m512i sums[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(load_digit(m->sums[slot] + 4 * i, 2), 8),
                                               load_digit(m->sums[slot] + 4 * i, 1));
        sums[i] = _mm512_add_epi32(_mm512_slli_epi32(upper, 8), load_digit(m->sums[slot] + 4 * i, 0));
    }
    transpose_sixteens(sums);
#pragma GCC unroll 4
    for (int s = 0; s < SLICES; s++) {
        __m512 sum = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[s]), _mm512_set1_ps(c->half_units[group * SLICES + s]));
        if (is_hard(c, group, s)) sum = _mm512_load_ps(m->hard_sums[slot][s]);
        *total = _mm512_fmadd_ps(sum, scales_of(fours, s), *total);
    }
}

/* Chunks ----------------------------------------------------------------------------------------------------------- */

/* Codes of scales of four groups; those behind the last block become `good`, which is in bounds. */
UNIT_INLINE void load_scales(const struct chunk *c, int64_t group, int which, uint8_t good, uint8_t least,
                             struct seen *seen, __m512i fours[4])
{
    load_fours(c->memory->scales.rows + which * SIXTEEN, group * SLICES, fours);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const int64_t left = BSMI_MAX(0, c->blocks - (group + i) * SLICES);
        if (left < SLICES)
            fours[i] = _mm512_mask_blend_epi8(0x1111111111111111ULL * ((1u << left) - 1), _mm512_set1_epi8((char)good),
                                              fours[i]);
        seen->above = _mm512_max_epu8(seen->above, _mm512_sub_epi8(fours[i], _mm512_set1_epi8((char)least)));
        seen->most = _mm512_max_epu8(seen->most, fours[i]);
    }
}

UNIT static void add_chunk(const struct chunk *chunk, __m512 totals[SIXTEENS], struct bsmi_scale_bounds bounds,
                           struct seen *seen_before)
{
    const struct chunk *const c = chunk;
    const __m512i table = load_products(bsmi_bf16_tables()->fp4_bytes[BSMI_FP4_LIFT]);
    __m512i fours[SIXTEENS][4];
    __m512 sums[SIXTEENS] = { totals[0], totals[1] };
    struct seen seen = *seen_before;
    for (int64_t g = 0; g < c->groups + 2; g++) {
#pragma GCC unroll 2
        for (int w = 0; w < SIXTEENS; w++) {          /* products are one step behind, stores two, additions three */
            const int other = 1 - w;
            const int64_t multiplied = g - other, added = multiplied - 1;
            const bool decodes = g < c->groups, multiplies = multiplied >= 0 && multiplied < c->groups;
            if (multiplies) multiply_even(c, multiplied, other);
            if (decodes) decode_step(c, g, w, 0);
            if (g > 0 && g <= c->groups) store_step(c, g - 1, w);
            if (multiplies) multiply_odd(c, other);
            if (decodes) decode_step(c, g, w, HALF);
            if (multiplies) multiply_hard(c, multiplied, other);
            if (decodes) decode_hard_step(c, g, w, table);
            if (added < 0 || added >= c->groups) continue;
            if (added % 4 == 0) load_scales(c, added, other, bounds.least, bounds.least, &seen, fours[other]);
            add_step(c, added, other, fours[other][added % 4], &sums[other]);
        }
    }
    totals[0] = sums[0], totals[1] = sums[1];
    *seen_before = seen;
}

/* The job ---------------------------------------------------------------------------------------------------------- */

struct job {
    const struct bsmi_tile *tile;
    struct one_row *memory;
    struct bsmi_scale_bounds bounds;
    void *exponents;                      /* memory for exponents of rows */
    bool known;                           /* that they are 0, wherever scales are */
};

/* Lines of a group that rows do not fill, with zeros behind: K is no multiple of four slices. */
static void copy_last_lines(struct one_row *memory, int64_t byte, int64_t bytes)
{
    memset(memory->last_lines, 0, sizeof memory->last_lines);
    for (int r = 0; r < STRIP; r++) memcpy(memory->last_lines[r], memory->codes.rows[r] + byte, (size_t)bytes);
}

/* Whether scales leave it at powers of two of rows that are 0.  Those out of bounds may be of blocks of zeros. */
UNIT static bool scales_will_do(struct job *job, const struct seen *seen)
{
    const int width = job->bounds.most - job->bounds.least;
    if (_mm512_cmpgt_epu8_mask(seen->above, _mm512_set1_epi8((char)width)) == 0) return true;
    if (_mm512_cmpeq_epi8_mask(seen->most, _mm512_set1_epi8((char)NAN_SCALE)) != 0) return false;
    if (!job->known) job->known = bsmi_bf16_find_exponents(job->tile, job->exponents).b == NULL;
    return job->known;
}

/* One strip of columns, all of the stretch; false: there are rows of B that this is not for. */
UNIT static bool add_strip(struct job *job, int64_t column, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = job->tile;
    struct one_row *const m = job->memory;
    const int64_t count = BSMI_MIN(STRIP, t->columns - column);
    struct bsmi_upcoming next = bsmi_find_upcoming(t, column + STRIP, STRIP, k, length);
    struct seen seen = { _mm512_setzero_si512(), _mm512_setzero_si512() };
    float *const sums = t->sums + column;             /* whole strips */
    __m512 totals[SIXTEENS] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
    if (k > 0) totals[0] = _mm512_loadu_ps(sums), totals[1] = _mm512_loadu_ps(sums + SIXTEEN);
    for (int64_t c = 0; c < length; c += CHUNK) {
        const struct bsmi_part part = { t->b, t->b_batch, t->column + column, count, t->split, k + c,
                                        BSMI_MIN(CHUNK, length - c), NULL };
        const int64_t whole = part.length / BSMI_GROUP, first = c / BSMI_SLICE;
        bsmi_nibble_rows(&part, STRIP, &m->codes);
        const struct chunk chunk = {
            .memory = m, .a = m->digits.tiles[c / BSMI_GROUP],
            .numbers = m->digits.numbers + first, .half_units = m->digits.half_units + first,
            .hard = m->digits.hard + c / BSMI_GROUP, .groups = bsmi_ceil_div(part.length, BSMI_GROUP),
            .whole_groups = whole, .blocks = bsmi_scale_code_rows(&part, STRIP, &m->scales), .next = &next,
        };
        if (chunk.groups > whole)
            copy_last_lines(m, whole * LINE,
                            bsmi_round_up(part.length - whole * BSMI_GROUP, BSMI_NIBBLE_GROUP) / 2);
        bsmi_ask_for_scales(t, column + STRIP, STRIP, part.k, part.length);
        add_chunk(&chunk, totals, job->bounds, &seen);
    }
    _mm512_storeu_ps(sums, totals[0]);
    _mm512_storeu_ps(sums + SIXTEEN, totals[1]);
    return scales_will_do(job, &seen);
}

UNIT static bool add_stretches(struct job *job)
{
    const struct bsmi_tile *t = job->tile;
    for (int64_t k = 0; k < t->k; k += BSMI_DIGITS_LENGTH) {
        const int64_t length = BSMI_MIN(BSMI_DIGITS_LENGTH, t->k - k);
        if (!bsmi_digits_make(t, k, length, &job->memory->digits)) return false;
        for (int64_t j = 0; j < t->columns; j += STRIP)
            if (!add_strip(job, j, k, length)) return false;
    }
    return true;
}

static bool row_has_exponent(const struct bsmi_tile *t)
{
    int16_t exponent;
    bsmi_row_exponents(&t->a, t->b.matrix->element == BSM_BF16, t->a_batch, t->row, 1, 0, t->k, &exponent);
    return exponent != 0;
}

UNIT void bsmi_fp4_one_row_amx(const struct bsmi_tile *tile, void *scratch)
{
    static const struct bsmi_tile_configuration tiles = {
        .palette = 1, .rows = { 16, 16, 16, 16, 16, 16, 16, 16 },
        .row_bytes = { BSMI_DIGITS_ROW_BYTES, BSMI_DIGITS_ROW_BYTES, BSMI_DIGITS_ROW_BYTES, BSMI_DIGITS_ROW_BYTES,
                       BSMI_TILE_ROW_BYTES, BSMI_TILE_ROW_BYTES, 4, 4 },
    };
    unsigned char *const memory = (unsigned char *)scratch + bsmi_bf16_exponents_bytes(tile->rows, tile->columns);
    struct job job = { .tile = tile, .memory = (struct one_row *)(void *)memory, .exponents = scratch,
                       .bounds = bsmi_scale_bounds(tile->b.matrix->element) };
    for (int r = 0; r < STRIP; r++) job.memory->last_rows[r] = job.memory->last_lines[r];
    bool done = false;
    if (tile->rows == 1 && tile->k > 0 && !row_has_exponent(tile)) {
        BSMI_TILE_CONFIGURE(&tiles);
        done = add_stretches(&job);
        BSMI_TILE_RELEASE();
    }
    if (!done) bsmi_bf16_few_rows_amx(tile, scratch);
}

size_t bsmi_fp4_one_row_amx_scratch_bytes(int64_t rows, int64_t columns)
{
    return BSMI_MAX(bsmi_bf16_exponents_bytes(rows, columns) + sizeof(struct one_row),
                    bsmi_bf16_few_rows_amx_scratch_bytes(rows, columns));
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
