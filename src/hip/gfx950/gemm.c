/* D = finish(A B^T) on gfx950: codes and scales by scaled MFMA, or bf16 rows.
 *
 * A workgroup makes one tile of D; a wave has a part of it, in fp32 sums in registers.  K goes by steps.  Two stages in
 * LDS hold two steps, each in halves of A's and of B's rows; a wave multiplies a step in quarters, a half of A with a
 * half of B, while it reads the half that the next quarter needs, and loads what comes later:
 *
 *     quarter      multiplies  reads                       loads
 *     1            A0 B0       B1                          second halves of the next step
 *     2            A0 B1       A1                          second halves of the next step
 *     3            A1 B1       A0 of the next step         first halves of the step after the next, scales
 *     4            A1 B0       B0 of the next step         the same
 *
 * Before quarters 1 and 3 a wave waits for its own loads that the quarter and the next one read, and for all waves.
 * So half a step's loads are always under way.  B's halves change registers from step to step: the loop has two steps.
 *
 * The order of sums is one chain of fp32 for each element of D: gemm_steps, in gemm_loads.h. */
#include "gemm_epilogue.h"
#include "gemm_fragments.h"
#if PREPACKED
#include "gemm_prepacked.h"
#endif


/* A quarter: products, and between them reads from LDS, one behind each product, since the next quarter waits for them;
 * then, as evenly as can be, loads number first_load .. end_load. */
#define QUARTER(product, reads, read, first_load, end_load, load) \
    do { \
        enum { \
            MOST = QUARTER_PRODUCTS == 1 ? 1 : QUARTER_PRODUCTS - 1, \
            READS_OF_ONE = (reads) == 0 ? 1 : ((reads) + MOST - 1) / MOST, \
            WITH_READS = ((reads) + READS_OF_ONE - 1) / READS_OF_ONE,      /* products */ \
            FIRST_WITH_LOADS = QUARTER_PRODUCTS == 1 ? 0 : WITH_READS, \
            REST = QUARTER_PRODUCTS - FIRST_WITH_LOADS, \
            LOADS = (end_load) - (first_load), \
            LOADS_OF_ONE = LOADS / REST + 1 \
        }; \
        UNROLL for (int32_t i = 0; i < QUARTER_PRODUCTS; i++) { \
            product; \
            UNROLL for (int32_t j = 0; j < READS_OF_ONE; j++) { \
                const int32_t number = i * READS_OF_ONE + j; \
                if (number < (reads)) read; \
            } \
            UNROLL for (int32_t j = 0; j < LOADS_OF_ONE; j++) { \
                const int32_t behind = i - FIRST_WITH_LOADS, other = (behind * LOADS + REST - 1) / REST + j, \
                              number = other + (first_load); \
                if (behind >= 0 && other * REST < (behind + 1) * LOADS) load; \
            } \
        } \
        schedule_fence(); \
    } while (0)

/* How many of `loads` go to the first of two quarters: all that find a product behind its reads, at least half. */
#define EARLY(loads, reads) \
    ((loads) <= QUARTER_PRODUCTS - (reads)             ? (loads) \
     : QUARTER_PRODUCTS - (reads) > ((loads) + 1) / 2 ? QUARTER_PRODUCTS - (reads) \
                                                       : ((loads) + 1) / 2)
enum { FIRST_EARLY = EARLY(FIRST_LOADS, A_READS), SECOND_EARLY = EARLY(SECOND_LOADS, B_READS) };

#if !PREPACKED
/* One step; `first` has B's half 0, and `second` gets the next step's. */
INLINE void run_step(const struct gemm_sources *sources, const struct gemm_steps *steps,
                     const struct gemm_reader *reader, gemm_sums sums, struct a_half *a, struct a_half *a1,
                     struct b_half *first, struct b_half *second, int32_t step, int32_t odd)
{
    const int32_t next = place_of_step(steps, step + 1), later = place_of_step(steps, step + 2);
    WAIT(FIRST_LOADS, 0);
    barrier();
    QUARTER(multiply(sums, a, 0, first, 0, odd, i), B_READS, read_b(reader, odd, 1, number, second),
            0, SECOND_EARLY, load_one(sources, next, !odd, 1, number));
    QUARTER(multiply(sums, a, 0, second, 1, odd, i), A_READS, read_a(reader, odd, 1, number, a1),
            SECOND_EARLY, SECOND_LOADS, load_one(sources, next, !odd, 1, number));
    WAIT(SECOND_LOADS, 0);
    barrier();
    QUARTER(multiply(sums, a1, 1, second, 1, odd, i), A_READS, read_a(reader, !odd, 0, number, a),
            0, FIRST_EARLY, load_one(sources, later, odd, 0, number));
    QUARTER(multiply(sums, a1, 1, first, 0, odd, i), B_READS, read_b(reader, !odd, 0, number, second),
            FIRST_EARLY, FIRST_LOADS, load_one(sources, later, odd, 0, number));
}

#else
/* The same where B is prepacked: b has its halves, next gets the next step's. */
INLINE void run_packed_step(const struct gemm_sources *sources, const struct gemm_packed_source *packed,
                            const struct gemm_steps *steps, const struct gemm_reader *reader, gemm_sums sums,
                            struct a_half *a, struct a_half *a1, struct b_half *b, struct b_half *next_b, int32_t step,
                            int32_t odd)
{
    const int32_t next = place_of_step(steps, step + 1), later = place_of_step(steps, step + 2);
    WAIT(FIRST_BETWEEN, 0);
    barrier();
    QUARTER(multiply(sums, a, 0, &b[0], 0, odd, i), A_READS, read_a(reader, odd, 1, number, a1),
            0, PACKED_NUMBERS, load_b(packed, next, 0, number, &next_b[0]));
    QUARTER(multiply(sums, a, 0, &b[1], 1, odd, i), 0, (void)0,
            0, SECOND_LOADS, load_one(sources, next, !odd, 1, number));
    WAIT(SECOND_BETWEEN, 0);
    barrier();
    QUARTER(multiply(sums, a1, 1, &b[1], 1, odd, i), A_READS, read_a(reader, !odd, 0, number, a),
            0, PACKED_NUMBERS, load_b(packed, next, 1, number, &next_b[1]));
    QUARTER(multiply(sums, a1, 1, &b[0], 0, odd, i), 0, (void)0,
            0, FIRST_LOADS, load_one(sources, later, odd, 0, number));
}

#endif

/* Step 0 in LDS, and the first halves of step 1 on their way. */
INLINE void begin(const struct bsmi_hip_gemm_parameters *p, const struct gemm_sources *sources,
                  const struct gemm_steps *steps)
{
    const int32_t place = place_of_step(steps, 0);
    load_half(sources, place, 0, 0);
    load_half(sources, place, 0, 1);
    if (steps->ahead != 0) {
        WAIT(0, ANY_LGKM);
        clear_behind(sources, place, (int32_t)(p->k - (int64_t)place * STEP));
    }
    load_half(sources, place_of_step(steps, 1), 1, 0);
    WAIT(FIRST_LOADS + SECOND_LOADS, 0);
    barrier();
}

KERNEL(THREADS, GROUPS * WAVES / 4) void KERNEL_NAME(const struct bsmi_hip_gemm_parameters p)
{
    struct gemm_tile tile;
    if (!find_tile(&p, &tile)) return;
    const struct gemm_sources sources = sources_of(&p, &tile);
    const struct gemm_steps steps = steps_of(p.k);
    const struct gemm_reader reader = reader_of(sources.wave);
    begin(&p, &sources, &steps);

    gemm_sums sums;
    const words4 zeros = { 0, 0, 0, 0 };
    UNROLL for (int32_t i = 0; i < ROW_PARTS; i++)
        UNROLL for (int32_t j = 0; j < COLUMN_PARTS; j++) sums[i][j] = no_sum(zeros);
    struct a_half a, a1;
    UNROLL for (int32_t i = 0; i < A_READS; i++) read_a(&reader, 0, 0, i, &a);
    int32_t step = 0;
#if PREPACKED
    const struct gemm_packed_source packed = packed_source_of(&p, &tile, sources.wave);
    const int32_t first = place_of_step(&steps, 0);
    struct b_half even[2], odd[2];
    UNROLL for (int32_t half = 0; half < 2; half++) {
        UNROLL for (int32_t i = 0; i < PACKED_NUMBERS; i++) load_b(&packed, first, half, i, &even[half]);
        /* The rest of K in the second half of a block of scales takes the place of the first. */
        if (STEP == 128 && steps.ahead != 0)
            UNROLL for (int32_t i = 0; i < B_SCALES; i++)
                even[half].scales[i] = (int32_t)((uint32_t)even[half].scales[i] >> first % 2 * 16);
    }
    do {
        run_packed_step(&sources, &packed, &steps, &reader, sums, &a, &a1, even, odd, step, 0);
        run_packed_step(&sources, &packed, &steps, &reader, sums, &a, &a1, odd, even, step + 1, 1);
        step += 2;
    } while (step < steps.count);
#else
    struct b_half even, odd;
    UNROLL for (int32_t i = 0; i < B_READS; i++) read_b(&reader, 0, 0, i, &even);
    do {
        run_step(&sources, &steps, &reader, sums, &a, &a1, &even, &odd, step, 0);
        run_step(&sources, &steps, &reader, sums, &a, &a1, &odd, &even, step + 1, 1);
        step += 2;
    } while (step < steps.count);
#endif
    sums_are_ready();
    WAIT(0, 0);
    barrier();
    store_tile(&p, &tile, sources.wave, sums);
}
