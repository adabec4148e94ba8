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
const char *report_code_name(enum report_code code);
/* True for the first report of the grid, which is kept: the caller fills grid->report. */
bool report_begin(struct grid *grid);

/* A kernel's name for a line of text: where it is long, its beginning and its end, so that a report is whole. */
enum { REPORT_NAME_BYTES = 256 };
const char *report_name(const char *kernel, char text[REPORT_NAME_BYTES]);

/* ", device 1" where there are several devices, otherwise nothing. */
enum { REPORT_DEVICE_BYTES = 24 };
const char *report_device(const struct machine *machine, char text[REPORT_DEVICE_BYTES]);

/* Text that grows in a buffer and stops at its end. */
struct report_text { char *at; size_t left; };
__attribute__((format(printf, 2, 3)))
void report_add(struct report_text *t, const char *format, ...);

#endif
