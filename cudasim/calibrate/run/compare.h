/* Comparison of two runs, and the kept results of the hardware. */
#ifndef CUDASIM_CALIBRATE_RUN_COMPARE_H
#define CUDASIM_CALIBRATE_RUN_COMPARE_H

#include "result.h"

enum verdict { VERDICT_EQUAL, VERDICT_WITHIN, VERDICT_DIFFERENT, VERDICT_REFUSED_BOTH, VERDICT_REFUSED_FIRST,
               VERDICT_REFUSED_SECOND,
               VERDICT_FAULTED, VERDICT_MISSING };

struct verdicts { uint32_t count[VERDICT_MISSING + 1]; uint64_t bytes, different_bytes; };

/* How many units in the last place two results are apart at most; counted where a rule allows a distance. */
struct distance { uint64_t ulp; double relative, absolute; };

/* Compares the output bytes of one case; prints the first `show` mismatches with operands to stdout. */
enum verdict compare_case(const struct calibration_case *c, const uint8_t *hardware, const uint8_t *simulated, int show,
                          uint64_t *different, struct distance *distance);

/* Compares two runs and prints what differs and the counts.  Returns whether nothing is unexplained. */
bool compare_runs(const struct calibration *c, const struct result *hardware, const struct result *simulated,
                  const char *keep);

/* kept.c: digests of hardware results.  A line a case. */
enum kept_state { KEPT_EQUAL = '=', KEPT_WITHIN = '~', KEPT_REFUSED = '-', KEPT_DIFFERENT = '!' };
struct kept_line { enum kept_state state; uint64_t identity, digest; uint64_t ulp; char *name; };
struct kept {
    char devices[512];                    /* "NVIDIA H200 (driver 13.0, 2026-11-21)", and those of further files */
    struct kept_line *lines;
    uint32_t count;
};

/* Adds the lines of a file to those that are there. */
bool kept_read(struct kept *k, const char *file);
void kept_release(struct kept *k);
const struct kept_line *kept_find(const struct kept *k, const char *name);
/* Compares a run of the simulator with what is kept; prints what differs.  Returns whether all is as kept. */
bool kept_check(const struct calibration *c, const struct kept *k, const struct result *simulated);
uint64_t digest_of(const uint8_t *bytes, size_t size);

#endif
