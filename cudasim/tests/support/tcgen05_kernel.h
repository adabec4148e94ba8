/* A kernel around one tcgen05.mma of a case: it fills shared and tensor memory, issues the statement, and gives back
 * all of tensor memory. */
#ifndef CUDASIM_TESTS_SUPPORT_TCGEN05_KERNEL_H
#define CUDASIM_TESTS_SUPPORT_TCGEN05_KERNEL_H

#include "harness.h"
#include "tcgen05_case.h"

/* What the kernel is given, of each CTA one behind the other; and what may be made wrong. */
struct images {
    uint8_t *shared;
    uint32_t *cells, *after;              /* [lane][column]; afterwards */
    uint64_t flip_a;                      /* bits of A's descriptor */
    uint32_t flip;                        /* bits of the instruction descriptor */
    uint32_t skip_column, skip_warp;      /* the warp writes no cells of eight columns */
    const char *without;                  /* a piece of the kernel's text that is left out */
    uint32_t schedules;
    const char *device;
    enum tensor_mode mode;
};

struct images images_of(struct test *t, const struct mma_case *c);
void images_release(struct images *x);

/* False: the module was refused (sim->module is NULL), or there is a report. */
bool case_run(struct test *t, struct sim *sim, const struct mma_case *c, const struct images *x, const char *statement);

#endif
