/* Products beside cuBLAS, dequantizing and cuBLAS, and what a guest brings. */
#ifndef BENCH_GPU_PRODUCTS_H
#define BENCH_GPU_PRODUCTS_H

#include "guest.h"
#include "table.h"

enum { MOST_ONLY = 16 };

/* What every work is given. */
struct bench {
    struct gpu gpu;
    struct table table;
    const struct guest *guest;            /* NULL: none */
    bool quick, parts;
    int rounds;
    int64_t divide;                       /* sizes are divided by it: for runs that only try the program */
    const char *only[MOST_ONLY];          /* works whose line contains one of these; none: all */
    int only_count;
};

struct shape { int64_t m, n, k; };
struct pair { bsm_format a, b; };

void pair_text(const struct pair *pair, char *text, size_t room);
void shape_text(const struct shape *shape, char *text, size_t room);

/* M = 4096 and more: rows of SECTION_PREPARED, _DEQUANTIZED, _TRITON and, if asked for, _PARTS. */
void measure_large(struct bench *bench, const struct pair *pair, const struct shape *shape);
/* By BSM_COMPUTE_FAST: SECTION_FAST and SECTION_SETTLED_FAST. */
void measure_fast(struct bench *bench, const struct pair *pair, const struct shape *shape);
/* Few rows: SECTION_SMALL, _SMALL_PREPACKED and _SMALL_PREPARED. */
void measure_small(struct bench *bench, const struct pair *pair, const struct shape *shape);
/* At most 64 rows: one of SECTION_TOKENS, _TENS, _SHORT. */
void measure_tokens(struct bench *bench, const struct pair *pair, const struct shape *shape);
/* The largest error over the sum of absolute products, of 64 rows and 64 columns. */
void measure_error(struct bench *bench, const struct pair *pair, const struct shape *shape);
void measure_quantize(struct bench *bench);
void measure_quantize_both(struct bench *bench);
void measure_conversions(struct bench *bench);

#endif
