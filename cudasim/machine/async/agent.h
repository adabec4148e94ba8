/* Async engines: TMA, cp.async, tensor cores.  An instruction starts an operation; the operation completes some steps
 * later, as early or as late as the rules allow, at a step that the schedule's numbers choose.
 *
 * How an engine is written: embed struct agent_operation at the start of a struct of its own, fill kind and the rest,
 * call agent_start.
 * From then on the cluster calls kind->step when the operation is due; step moves what can be moved (a part of a copy,
 * one MMA) and returns true when all is done; then kind->complete signals (mbarrier, group count) and the operation is
 * freed. Operations with the same nonzero `order` begin to step only after the earlier ones of that order have
 * completed.
 *
 * When: under the schedule `earliest` at once; under `random` mostly soon, sometimes much later; under `latest` when
 * nothing else in the cluster can run: then first what some thread waits for, one step at a time.  Threads that spin
 * are something else that runs, so that there is a last step for those who look by loads. */
#ifndef CUDASIM_MACHINE_ASYNC_AGENT_H
#define CUDASIM_MACHINE_ASYNC_AGENT_H

#include "machine/core/operation.h"

enum { AGENT_MOST = 10000 };              /* steps: where the engine knows nothing better */

/* Takes over an operation that malloc made.  `least` and `most` bound its duration in steps (`latest`: from below). */
void agent_start(struct agent_operation *operation, uint64_t least, uint64_t most);
/* Runs what is due; called when now >= next_due. */
trap agents_run(struct cluster *cluster);
/* The step at which the first operation is due that nothing holds back; UINT64_MAX: there is none. */
uint64_t agents_soonest(const struct cluster *cluster);
/* Time passes until that step; false: there is none. */
bool agents_advance(struct cluster *cluster);
/* Schedule `latest`: one operation that nothing holds back is due now. */
void agents_force(struct cluster *cluster);
void agents_drop(struct cluster *cluster);

#endif
