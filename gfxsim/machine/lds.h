/* LDS: bytes, which of them anything has written, and who touched them last.
 *
 * An access is an event: active from its issue, complete for its wave when s_waitcnt has waited for it, public when
 * that wave has passed an s_barrier since.  Another wave may conflict with it only when it is public; the own wave must
 * have waited for what moves from memory to LDS. */
#ifndef GFXSIM_MACHINE_LDS_H
#define GFXSIM_MACHINE_LDS_H

#include "machine.h"

bool lds_open(struct lds *l, uint32_t bytes, uint32_t waves, bool races);
void lds_close(struct lds *l);
void lds_clear(struct lds *l, uint32_t waves);
/* A new event's serial; 0: out of memory. */
uint32_t lds_event(struct wave *w, const struct insn *in, bool to_lds);
/* The event is an atomic operation: no race with other ones. */
void lds_is_atomic(struct wave *w, uint32_t serial);
/* Bounds and races of one lane's access; marks it.  False after a report. */
bool lds_access(struct wave *w, const struct insn *in, uint32_t lane, uint32_t offset, uint32_t bytes, bool writes,
                uint32_t serial);
/* The wave has waited for the event; at its next barrier it is public. */
void lds_complete(struct wave *w, uint32_t serial);
void lds_publish(struct wave *w);

#endif
