/* Operands on which units and their emulation are compared: what is hard for fp32, drawn from a test's random numbers;
 * and digests of what a unit makes of them. */
#ifndef UNIT_CASES_H
#define UNIT_CASES_H

#include "test.h"
#include "units.h"

/* Where numbers of a kind lie: operands' exponents, and the sums'. */
struct kind {
    const char *name;
    int low, high, sum_low, sum_high;
    uint16_t mask;                        /* of the operands' bits that may be set */
};
enum { KINDS = 12, ALL_BITS = KINDS - 1 };
extern const struct kind kinds[KINDS];

uint16_t some_bf16(struct test *t, const struct kind *kind);
float some_sum(struct test *t, const struct kind *kind);

/* The same bits, or both NaN. */
bool same(float x, float y);

void draw_vectors(struct test *t, const struct kind *kind, float *sums, uint16_t *a, uint16_t *b);

void draw_matrix(struct test *t, const struct kind *kind, float *sums, uint16_t *a, uint16_t *b);

void draw_tiles(struct test *t, const struct kind *kind, const struct shapes *s, bool integers, struct memory *m);
struct shapes draw_shapes(struct test *t);
void draw_bytes(struct test *t, int32_t *sums, int8_t *a, int8_t *b);                        /* SMMLA's */

/* Digests of all bits that come out of the first products of every kind, NaN as one number. */
uint64_t digest_of_vectors(vectors_function *unit, const struct kind *kind);
uint64_t digest_of_matrices(matrix_function *unit, const struct kind *kind);
uint64_t digest_of_tiles(tiles_function *unit, const struct kind *kind, bool integers);

/* What machines gave: AVX512_BF16 on a Zen 5 and an Emerald Rapids, BFMMLA on qemu 7.2, AMX on an Emerald Rapids. */
extern const uint64_t given_vectors[KINDS], given_matrices[KINDS], given_tiles[KINDS], given_tiles_of_bytes;

#endif
