/* Reports of both simulators: their kinds, and the text that they are written into. */
#ifndef SIMULATOR_REPORT_TEXT_H
#define SIMULATOR_REPORT_TEXT_H

#include <stddef.h>

enum report_code {
    REPORT_NONE,
    REPORT_OUT_OF_BOUNDS,
    REPORT_MISALIGNED,
    REPORT_UNINITIALISED,
    REPORT_DIVERGENCE,
    REPORT_DEADLOCK,
    REPORT_TRAP,
    REPORT_ASSERT,
    REPORT_ILLEGAL,
    REPORT_BARRIER,
    REPORT_RACE,
    REPORT_PROXY,
    REPORT_ASYNC,
    REPORT_RESOURCES,
    REPORT_SCHEDULES,
    REPORT_STEPS,
    REPORT_PENDING,                       /* of gfxsim alone, this and the next */
    REPORT_HAZARD,
    REPORT_CODE_COUNT
};
const char *report_code_name(enum report_code code);

/* A kernel's name for a line of text: where it is long, its beginning and its end, so that a report is whole. */
enum { REPORT_NAME_BYTES = 256 };
const char *report_name(const char *kernel, char text[REPORT_NAME_BYTES]);

/* Text that grows in a buffer and stops at its end. */
struct report_text { char *at; size_t left; };
__attribute__((format(printf, 2, 3)))
void report_add(struct report_text *t, const char *format, ...);

#endif
