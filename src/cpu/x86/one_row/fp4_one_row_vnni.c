/* One row of A by rows of mxfp4 by dot products of int8 (VNNI): the bits of bf16_tiles_amx.c, with fewer steps for
 * weights.
 *
 * A's numbers are integers of up to three digits wherever no sum of a slice's products needs a rounding in its chain
 * (int8_digits_avx512.h).  The slice's sum, even columns and odd ones, is then an integer whatever the order of its
 * products is.  It becomes fp32 with one rounding, the one of even + odd, and is added times the scale of the block: a
 * power of two, so that nothing is rounded before the sum is.  Slices of A that have no such integers, a few of a
 * hundred of normal numbers, are summed in their chains, by fused multiply-adds of fp32, without scales as well.
 *
 * A cache line of a row is four slices: its low nibbles are looked up for the even columns, its high ones for the odd
 * ones, three vector operations in all, and then a product for each digit.  Sums of 16 rows, of which each has a slice
 * in a quarter, are added up across while they are transposed.  No tile is used: a vector register is all that lies
 * between memory and a sum, so that a CPU looks far ahead. */
#if defined(__x86_64__)
#include "int8_digits_avx512.h"
#include "panels.h"
#include "stored_scales.h"

#include "cpu/kernels.h"
#include "cpu/x86/upcoming.h"

#define DOT __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vnni")))
#define DOT_INLINE DOT __attribute__((always_inline)) static inline

enum {
    SIXTEEN = BSMI_TILE_ROWS, STRIP = 32, SIXTEENS = STRIP / SIXTEEN, SLICES = BSMI_GROUP_SLICES,
    CHUNK = BSMI_ROW_CHUNK, LINE = BSMI_GROUP / 2,
};

/* Scratch of a tile. */
struct one_row {
    _Alignas(64) uint8_t last_lines[STRIP][LINE];
    const uint8_t *last_rows[STRIP];
    struct bsmi_nibble_rows codes;
    struct bsmi_scale_code_rows scales;
    struct bsmi_digits digits;
};

/* A chunk of K of a strip: groups [first_group, first_group + groups) of A. */
struct chunk {
    struct one_row *memory;
    int64_t first_group, groups, whole_groups, blocks;
    struct bsmi_upcoming *next;
};

/* Sums of a sixteen of B's rows in a group ------------------------------------------------------------------------- */

/* Twice the numbers of e2m1, and the offset. */
DOT_INLINE __m512i numbers_of_nibbles(void)
{
    return _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
}

/* A line of a row times a group of A: of each slice four sums. */
DOT_INLINE __m512i multiply_line(__m512i codes, int count, const __m512i (*a)[BSMI_DIGITS])
{
    const __m512i table = numbers_of_nibbles(), even = _mm512_permutexvar_epi8(codes, table),
                  odd = _mm512_permutexvar_epi8(_mm512_srli_epi16(codes, 4), table);
    __m512i sums = _mm512_setzero_si512();
#pragma GCC unroll 3
    for (int digit = count - 1; digit >= 0; digit--) {
        if (digit < count - 1) sums = _mm512_slli_epi32(sums, 8);
        sums = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sums, even, a[0][digit]), odd, a[1][digit]);
    }
    return sums;
}

/* In each quarter the sums of four rows. */
DOT_INLINE __m512i add_up(__m512i a, __m512i b, __m512i c, __m512i d)
{
    const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)),
                  cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

/* sums[slice][row] */
DOT_INLINE void multiply_group(const uint8_t *const *rows, int64_t byte, int count,
                               int8_t (*digits)[BSMI_DIGITS][LINE], uintptr_t upcoming, __m512i sums[SLICES])
{
    __m512i a[2][BSMI_DIGITS];
#pragma GCC unroll 3
    for (int digit = 0; digit < count; digit++) {
        a[0][digit] = _mm512_load_si512(digits[0][digit]);
        a[1][digit] = _mm512_load_si512(digits[1][digit]);
    }
#pragma GCC unroll 4
    for (int four = 0; four < SIXTEEN / 4; four++) {
        __m512i of_row[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const int row = 4 * four + i;
            __builtin_prefetch((const void *)(upcoming + (uintptr_t)row * LINE), 0, 2);
            __builtin_prefetch((const void *)((uintptr_t)rows[row] + (uintptr_t)byte + LINE), 0, 3);
            of_row[i] = multiply_line(_mm512_loadu_si512(rows[row] + byte), count, (const __m512i(*)[BSMI_DIGITS])a);
        }
        sums[four] = add_up(of_row[0], of_row[1], of_row[2], of_row[3]);
    }
    transpose_quarters(sums);
}

/* The sum of a slice without integers, by its two chains: [column of K / 8][row] words of codes. */
DOT_INLINE __m512 sum_hard(const uint8_t *codes, float (*numbers)[BSMI_SLICE / 2])
{
    const __m512 values = _mm512_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6, 0, -0.5F, -1, -1.5F, -2, -3, -4, -6);
    __m512 chains[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
    for (int i = 0; i < BSMI_SLICE / 8; i++) {
        const __m512i words = _mm512_loadu_si512(codes + i * LINE);
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) {                 /* looks at four bits of each code */
            const __m512 b = _mm512_permutexvar_ps(_mm512_srli_epi32(words, (unsigned)(4 * j)), values);
            chains[j % 2] = _mm512_fmadd_ps(b, _mm512_set1_ps(numbers[j % 2][4 * i + j / 2]), chains[j % 2]);
        }
    }
    return _mm512_add_ps(chains[0], chains[1]);
}

/* A slice's sum, as an integer or of the codes of a hard one, times its scale. */
DOT_INLINE __m512 add_slice(struct bsmi_digits *d, int64_t slice, __m512i integers, __m512 scale, const uint8_t *hard,
                            __m512 total)
{
    const __m512i whole = _mm512_add_epi32(integers, _mm512_set1_epi32(d->offsets[slice]));
    __m512 sum = _mm512_mul_ps(_mm512_cvtepi32_ps(whole), _mm512_set1_ps(d->half_units[slice]));
    if (hard != NULL) sum = sum_hard(hard, d->numbers[slice]);
    return _mm512_fmadd_ps(sum, scale, total);
}

/* Chunks ----------------------------------------------------------------------------------------------------------- */

/* Where a group's lines are. */
struct lines { const uint8_t *const *rows; int64_t byte; };

DOT_INLINE struct lines lines_of(const struct chunk *c, int64_t group, int which)
{
    const bool whole = group < c->whole_groups;
    return (struct lines){ (whole ? c->memory->codes.rows : c->memory->last_rows) + which * SIXTEEN,
                           whole ? group * LINE : 0 };
}

DOT_INLINE __m512 add_group(const struct chunk *c, int64_t group, int which, __m512i scales, __m512 total)
{
    struct bsmi_digits *const d = &c->memory->digits;
    const struct lines lines = lines_of(c, group, which);
    const int64_t of_a = c->first_group + group, slice = of_a * SLICES;
    const uintptr_t taken = bsmi_take_upcoming(c->next, SIXTEEN * LINE),
                    upcoming = taken != 0 ? taken : (uintptr_t)lines.rows[0];
    __m512i sums[SLICES];
    switch (d->counts[of_a]) {
    case 1: multiply_group(lines.rows, lines.byte, 1, d->digits[of_a], upcoming, sums); break;
    case 2: multiply_group(lines.rows, lines.byte, 2, d->digits[of_a], upcoming, sums); break;
    default: multiply_group(lines.rows, lines.byte, 3, d->digits[of_a], upcoming, sums); break;
    }
#pragma GCC unroll 4
    for (int s = 0; s < SLICES; s++) {
        __m512i words[BSMI_SLICE / 8];
        const bool hard = d->hard[of_a] >> s & 1;
        if (hard) load_fours(lines.rows, lines.byte + s * (LINE / SLICES), words);
        total = add_slice(d, slice + s, sums[s], scales_of_byte(scales, s), hard ? (const uint8_t *)words : NULL,
                          total);
    }
    return total;
}

DOT static __m512 add_chunk(const struct chunk *chunk, int which, __m512 total,
                            const struct bsmi_stored_scales *scales, struct bsmi_seen_scales *seen_before)
{
    struct bsmi_seen_scales seen = *seen_before;
    __m512i fours[4];
    for (int64_t g = 0; g < chunk->groups; g++) {
        if (g % 4 == 0)
            bsmi_load_stored_scales(scales, chunk->memory->scales.rows + which * SIXTEEN, g * SLICES, chunk->blocks,
                                    &seen, fours);
        total = add_group(chunk, g, which, fours[g % 4], total);
    }
    *seen_before = seen;
    return total;
}

/* Prepacked rows --------------------------------------------------------------------------------------------------- */

/* A vector has four columns of K of each of 16 rows: nothing is added up across. */

/* sum += b times four digits for all lanes.  In assembly, because compilers load the digits in an instruction of their
 * own. */
typedef int32_t __attribute__((may_alias)) four_digits;
DOT_INLINE __m512i add_products(__m512i sum, __m512i b, const int8_t *digits)
{
    __asm__("vpdpbusd %2%{1to16%}, %1, %0"
            : "+v"(sum) : "v"(b), "m"(*(const four_digits *)(const void *)digits));
    return sum;
}

/* A slice as integers, [column of K / 8][row] words of codes. */
DOT_INLINE __m512i multiply_words(const uint8_t *codes, int count, int8_t (*digits)[BSMI_DIGITS][LINE], int s)
{
    const __m512i table = numbers_of_nibbles();
    __m512i sums[BSMI_DIGITS] = { _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512() };
#pragma GCC unroll 4
    for (int w = 0; w < BSMI_SLICE / 8; w++) {
        const __m512i words = _mm512_load_si512(codes + w * LINE), even = _mm512_permutexvar_epi8(words, table),
                      odd = _mm512_permutexvar_epi8(_mm512_srli_epi16(words, 4), table);
        bsmi_ask_ahead(codes + w * LINE);
#pragma GCC unroll 3
        for (int digit = 0; digit < count; digit++) {
            sums[digit] = add_products(sums[digit], even, digits[0][digit] + 16 * s + 4 * w);
            sums[digit] = add_products(sums[digit], odd, digits[1][digit] + 16 * s + 4 * w);
        }
    }
    if (count > 2) sums[1] = _mm512_add_epi32(sums[1], _mm512_slli_epi32(sums[2], 8));
    return count > 1 ? _mm512_add_epi32(sums[0], _mm512_slli_epi32(sums[1], 8)) : sums[0];
}

DOT_INLINE void multiply_panel(const struct bsmi_fp4_panel *panel, int count, int8_t (*digits)[BSMI_DIGITS][LINE],
                               __m512i sums[SLICES])
{
#pragma GCC unroll 4
    for (int s = 0; s < SLICES; s++) sums[s] = multiply_words(panel->codes + s * 4 * LINE, count, digits, s);
}

DOT_INLINE __m512 add_panel(const struct bsmi_fp4_panel *panel, struct bsmi_digits *d, int64_t group, __m512 total)
{
    const __m512i scales = _mm512_load_si512(panel->scales);
    __m512i sums[SLICES];
    bsmi_ask_ahead(panel->scales);
    switch (d->counts[group]) {
    case 1: multiply_panel(panel, 1, d->digits[group], sums); break;
    case 2: multiply_panel(panel, 2, d->digits[group], sums); break;
    default: multiply_panel(panel, 3, d->digits[group], sums); break;
    }
#pragma GCC unroll 4
    for (int s = 0; s < SLICES; s++)
        total = add_slice(d, group * SLICES + s, sums[s], scales_of_byte(scales, s),
                          d->hard[group] >> s & 1 ? panel->codes + s * 4 * LINE : NULL, total);
    return total;
}

/* One strip of columns, all of the stretch; false: there are rows of B that this is not for. */
DOT static bool add_panels(const struct bsmi_tile *t, struct bsmi_digits *d, int64_t column, int64_t k, int64_t length)
{
    const struct bsmi_fp4_panel *panel = bsmi_panel_of(t, sizeof *panel, column, k);
    float *const sums = t->sums + column;             /* whole strips */
    __m512 total = k > 0 ? _mm512_loadu_ps(sums) : _mm512_setzero_ps();
    __m512i least = _mm512_set1_epi8(-1);
    for (int64_t g = 0; g * BSMI_GROUP < length; g++, panel++) {
        total = add_panel(panel, d, g, total);
        least = _mm512_min_epu8(least, _mm512_load_si512(panel->scales));
    }
    _mm512_storeu_ps(sums, total);
    return _mm512_cmpeq_epi8_mask(least, _mm512_set1_epi8(BSMI_PANEL_SCALE_OUTSIDE)) == 0;
}

/* The job ---------------------------------------------------------------------------------------------------------- */

struct job {
    const struct bsmi_tile *tile;
    struct one_row *memory;
    struct bsmi_stored_scales scales;
};

/* Lines of a group that rows do not fill, with zeros behind: K is no multiple of four slices. */
static void copy_last_lines(struct one_row *memory, int64_t byte, int64_t bytes)
{
    memset(memory->last_lines, 0, sizeof memory->last_lines);
    for (int r = 0; r < STRIP; r++) memcpy(memory->last_lines[r], memory->codes.rows[r] + byte, (size_t)bytes);
}

/* One strip of columns, all of the stretch; false: there are rows of B that this is not for. */
DOT static bool add_strip(struct job *job, int64_t column, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = job->tile;
    struct one_row *const m = job->memory;
    const int64_t count = BSMI_MIN(STRIP, t->columns - column);
    struct bsmi_upcoming next = bsmi_find_upcoming(t, column + STRIP, STRIP, k, length);
    struct bsmi_seen_scales seen = { _mm512_setzero_si512(), _mm512_setzero_si512() };
    float *const sums = t->sums + column;             /* whole strips */
    __m512 totals[SIXTEENS] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
    if (k > 0) totals[0] = _mm512_loadu_ps(sums), totals[1] = _mm512_loadu_ps(sums + SIXTEEN);
    for (int64_t c = 0; c < length; c += CHUNK) {
        const struct bsmi_part part = { t->b, t->b_batch, t->column + column, count, t->split, k + c,
                                        BSMI_MIN(CHUNK, length - c), NULL };
        const int64_t whole = part.length / BSMI_GROUP;
        bsmi_nibble_rows(&part, STRIP, &m->codes);
        const struct chunk chunk = {
            .memory = m, .first_group = c / BSMI_GROUP, .groups = bsmi_ceil_div(part.length, BSMI_GROUP),
            .whole_groups = whole, .blocks = bsmi_scale_code_rows(&part, STRIP, &m->scales), .next = &next,
        };
        if (chunk.groups > whole)
            copy_last_lines(m, whole * LINE,
                            bsmi_round_up(part.length - whole * BSMI_GROUP, BSMI_NIBBLE_GROUP) / 2);
        bsmi_ask_for_scales(t, column + STRIP, STRIP, part.k, part.length);
        for (int w = 0; w < SIXTEENS; w++) totals[w] = add_chunk(&chunk, w, totals[w], &job->scales, &seen);
    }
    _mm512_storeu_ps(sums, totals[0]);
    _mm512_storeu_ps(sums + SIXTEEN, totals[1]);
    return bsmi_stored_scales_will_do(&job->scales, &seen);
}

DOT static bool add_stretches(struct job *job)
{
    const struct bsmi_tile *t = job->tile;
    for (int64_t k = 0; k < t->k; k += BSMI_DIGITS_LENGTH) {
        const int64_t length = BSMI_MIN(BSMI_DIGITS_LENGTH, t->k - k);
        struct bsmi_upcoming first = bsmi_first_of_row(t, sizeof(struct bsmi_fp4_panel), STRIP, k, length);
        if (!bsmi_row_is_kept(t) && !bsmi_digits_make(t, k, length, &first, &job->memory->digits)) return false;
        bsmi_keep_row(t, t->k <= BSMI_DIGITS_LENGTH);
        for (int64_t j = 0; t->prepacked_b == NULL && j < t->columns; j += STRIP)
            if (!add_strip(job, j, k, length)) return false;
        for (int64_t j = 0; t->prepacked_b != NULL && j < t->columns; j += SIXTEEN)
            if (!add_panels(t, &job->memory->digits, j, k, length)) return false;
    }
    return true;
}

DOT void bsmi_fp4_one_row_vnni(const struct bsmi_tile *tile, void *scratch)
{
    struct one_row *const memory = scratch;           /* in front, where all tiles of a thread look for the row */
    struct job job = { .tile = tile, .memory = memory,
                       .scales = { tile, bsmi_scale_bounds(tile->b.matrix->element), memory + 1, false } };
    for (int r = 0; r < STRIP; r++) job.memory->last_rows[r] = job.memory->last_lines[r];
    const bool done = tile->rows == 1 && tile->k > 0
                      && (bsmi_row_is_kept(tile) || !bsmi_row_has_exponent(tile)) && add_stretches(&job);
    if (done) return;
    bsmi_keep_row(tile, false);
    bsmi_bf16_few_rows_amx(tile, scratch);
}

size_t bsmi_fp4_one_row_vnni_scratch_bytes(int64_t rows, int64_t columns)
{
    return BSMI_MAX(sizeof(struct one_row) + bsmi_bf16_exponents_bytes(rows, columns),
                    bsmi_bf16_few_rows_amx_scratch_bytes(rows, columns));
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
