/* A trace: one line for each warp instruction that was executed, and for each asynchronous operation that begins or
 * completes. */
#ifndef CUDASIM_MACHINE_PROFILE_TRACE_H
#define CUDASIM_MACHINE_PROFILE_TRACE_H

#include <stdio.h>

#include "machine/core/operation.h"

struct trace_filter {
    bool one_cta;
    uint32_t cta[3];
    uint32_t first_warp, last_warp;
    uint32_t first_line, last_line; /* of the PTX text */
    uint32_t lane;                  /* whose values are shown */
};
extern const struct trace_filter trace_everything;

/* Reads "1" or "1,2,3"; "4" or "4-7"; the same; "0" to "31".  NULL leaves the field.  Returns NULL, or the text that is
 * wrong. */
const char *trace_filter_read(struct trace_filter *filter, const char *cta, const char *warps, const char *lines,
                              const char *lane);

struct trace;
/* The file stays the caller's.  NULL: no memory. */
struct trace *trace_open(FILE *file, const struct trace_filter *filter);
void trace_close(struct trace *trace);

/* ---- for watch.c ---- */

bool trace_open_grid(struct trace *trace, const struct grid *grid);
void trace_close_grid(struct trace *trace, const struct grid *grid);
void trace_step(struct trace *trace, const struct warp *w, const struct insn *in, uint32_t lanes, trap t);
void trace_operation(struct trace *trace, const struct agent_operation *operation, const char *what);

#endif
