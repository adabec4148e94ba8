/* For tests of asynchronous engines: launches of clusters under numbered schedules. */
#ifndef CUDASIM_TESTS_SUPPORT_SCHEDULES_H
#define CUDASIM_TESTS_SUPPORT_SCHEDULES_H

#include "harness.h"

/* 0: everything as early as possible; 1: as late; others: by that seed. */
void use_schedule(struct sim *sim, uint64_t number);

/* One cluster of `ctas` CTAs runs entry k; parameters: p0.. as 64-bit numbers. */
bool run_cluster(struct sim *sim, uint32_t ctas, uint32_t block, uint32_t dynamic_shared, const uint64_t *parameters,
                 uint32_t count);

/* A kernel that is wrong, or its correct twin (words NULL). */
struct misuse { const char *text, *words; int code; uint32_t ctas, block; };
enum { ALWAYS = 256 };                    /* added to a code: under every schedule */

/* The wrong ones must be reported with code and words under one of 20 schedules, the right ones must run without a
 * report under
 * 100.  `before` is put in front of each text; p2, p3: buffers of 64 KiB, the first filled with numbers; p0, p1: what
 * `make` gives for them. */
void check_misuses(struct test *t, const char *device, const char *before, const struct misuse *misuses, int count,
                   uint64_t (*make)(struct sim *sim, uint64_t buffer));

/* One cluster on tensor memory, with fences demanded: right under 100 schedules (code REPORT_NONE), or wrong under each
 * of 20. */
struct judged {
    const char *what, *text;
    uint32_t ctas, block;
    enum report_code code;
    const char *words;                    /* of the report */
    float sum;                            /* where there is none, all of 128 numbers of each CTA at p0; 0: not looked
                                             at */
};
void check_judged(struct test *t, const struct judged *e);

#endif
