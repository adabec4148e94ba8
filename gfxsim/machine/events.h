/* Memory instructions under way: what they will bring, and the counters that s_waitcnt waits for. */
#ifndef GFXSIM_MACHINE_EVENTS_H
#define GFXSIM_MACHINE_EVENTS_H

#include "machine.h"

/* `detail` of a row that reads or writes memory: the bytes of a lane, and what becomes of fewer than four. */
enum { ACCESS_BYTES = 0xff, EXTENDS = 1 << 8, UPPER_HALF = 1 << 9, LOWER_HALF = 1 << 10 };

/* A new event at the end of the wave's queue, filled in by the caller, who then calls event_issued.  NULL after a
 * report. */
struct event *event_new(struct wave *w, const struct insn *in, enum counter counter, enum event_kind kind);
/* Marks its registers as pending, and delivers it if the schedule says at once. */
void event_issued(struct wave *w, struct event *e);
/* s_waitcnt: completes the oldest until no more than so many are under way. */
void events_wait(struct wave *w, uint32_t vmcnt, uint32_t lgkmcnt);
/* Under a random schedule: some results come now. */
void events_pass(struct wave *w);
/* The wave ends: what is on its way comes. */
void events_end(struct wave *w);
void events_free(struct wave *w);

#endif
