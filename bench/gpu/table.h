/* The table that is made: rows of ours beside a peer, and what is said about the run. */
#ifndef BENCH_GPU_TABLE_H
#define BENCH_GPU_TABLE_H

#include "loop.h"

#include <stdio.h>

enum section {
    SECTION_PREPARED,                     /* cuBLAS on values dequantized beforehand */
    SECTION_DEQUANTIZED,                  /* dequantize, then cuBLAS, timed together */
    SECTION_TRITON,                       /* dot_scaled */
    SECTION_SETTLED_PREPARED, SECTION_SETTLED_DEQUANTIZED,      /* the first two again, each way by itself at its own clock */
    SECTION_FAST, SECTION_SETTLED_FAST,   /* BSM_COMPUTE_FAST, in turn and each way by itself */
    SECTION_FAST_FP8, SECTION_SETTLED_FAST_FP8,  /* the same beside cuBLASLt on the codes, with one scale for all */
    SECTION_SMALL,                        /* few rows: dequantize, then cuBLAS */
    SECTION_SMALL_PREPACKED,                 /* the same, weights packed once */
    SECTION_SMALL_PREPARED,               /* few rows: cuBLAS on values dequantized beforehand */
    SECTION_TOKENS, SECTION_TENS, SECTION_SHORT, /* 1 to 16 rows, 32 and 64, 1 to 64 of weights of 2880 x 2880: the same */
    SECTION_ERROR,
    SECTION_QUANTIZE, SECTION_QUANTIZE_BOTH, SECTION_CONVERT, /* against a device copy of the same bytes */
    SECTION_PARTS,                        /* what a product consists of */
    SECTIONS
};

/* What a section is, and the ratio that it should reach and aims at; 0: none is set. */
struct section_about { const char *title, *unit; double scale, reach, aim; };
extern const struct section_about table_sections[SECTIONS];

struct row {
    enum section section;
    char work[64], shape[40], peer[112], about[96];      /* about: our kernel, or why there is no figure */
    bool served;                          /* false: the peer has no way to do it */
    double ours, theirs;                  /* seconds, or errors: less is better */
    double ratio, paired;                 /* theirs / ours: of medians, and the median of rounds' (0 where there are no rounds) */
    struct loop_state state, their_state; /* timed in turn: one for both */
};

enum { TABLE_ROWS = 1024 };
struct table {
    struct row rows[TABLE_ROWS];
    int count;
    char machine[256], date[32], commit[48], peers[256], lacks[512];
    int rounds;
    bool quick;
};

/* A new row; more than TABLE_ROWS end the program. */
struct row *table_row(struct table *table, enum section section, const char *work, const char *shape, const char *peer);
void row_times(struct row *row, const struct way *ours, const struct way *theirs, const struct loop_state *state,
               const struct loop_state *their_state);
void row_values(struct row *row, double ours, double theirs);

/* Whether the ratio reaches what its section asks: "aim", "reach" or "below"; "" where nothing is set or there is no figure. */
const char *row_verdict(const struct row *row);

void table_print(const struct table *table, FILE *file);
void table_json(const struct table *table, FILE *file);
void table_picture(const struct table *table, FILE *file);

#endif
