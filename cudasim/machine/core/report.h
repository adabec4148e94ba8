/* Reports: what an instruction does wrong, as one block of text. */
#ifndef CUDASIM_MACHINE_CORE_REPORT_H
#define CUDASIM_MACHINE_CORE_REPORT_H

#include "machine.h"

/* Writes the grid's report (the first counts) and stops it. */
__attribute__((format(printf, 5, 6)))
trap warp_fault(struct warp *w, const struct insn *in, uint32_t lane, enum report_code code, const char *format, ...);
/* The same for what breaks a rule, which may go on: TRAP_NONE. */
__attribute__((format(printf, 5, 6)))
trap warp_breaks(struct warp *w, const struct insn *in, uint32_t lane, enum rule rule, const char *format, ...);
enum rule_level rule_level(const struct warp *w, enum rule rule);
/* True for the first report of the grid, which is kept: the caller fills grid->report. */
bool report_begin(struct grid *grid);

/* ", device 1" where there are several devices, otherwise nothing. */
enum { REPORT_DEVICE_BYTES = 24 };
const char *report_device(const struct machine *machine, char text[REPORT_DEVICE_BYTES]);

#endif
