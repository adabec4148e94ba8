/* Matrix units, those of this machine and the same in plain C. */
#ifndef UNITS_H
#define UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* VDPBF16PS: sums[LANES], and as many pairs of bf16. */
enum { LANES = 16 };
typedef void vectors_function(float *sums, const uint16_t *a, const uint16_t *b);

/* BFMMLA: sums[2][2], a[2][4], b[2][4]; SMMLA: a[2][8], b[2][8]. */
typedef void matrix_function(float *sums, const uint16_t *a, const uint16_t *b);
typedef void bytes_function(int32_t *sums, const int8_t *a, const int8_t *b);

/* TDPBF16PS, or TDPBSSD for integers, on three tiles: all are loaded, and the sums stored again. */
enum { SUMS, A, B };
struct shapes { int rows, columns, words; };              /* of the sums; of a row of A, which are rows of B */
struct memory { uint8_t bytes[3][16][64]; };
typedef void tiles_function(const struct shapes *s, bool integers, struct memory *m);

/* Uses of tiles behind a configuration: none, zeros into one that is absent, TDPBF16PS, zeros after the release. */
enum use { NO_USE, ZERO_AN_ABSENT_TILE, MULTIPLY, USE_RELEASED };
typedef void use_function(const uint8_t configuration[64], enum use use);

/* NULL: there is no such unit. */
struct units {
    const char *name;
    vectors_function *vdpbf16ps;
    matrix_function *bfmmla;
    bytes_function *smmla;
    tiles_function *tiles;
    use_function *use_tiles;
};
extern const struct units emulated_units;
struct units units_of_this_machine(void);

/* What ldtilecfg reads for tiles 0, 1 and 2; the others are absent. */
void configure_tiles(uint8_t bytes[64], const struct shapes *s);

#endif
