/* Timing of ways to do the same on a GPU.
 *
 * Large products run at the GPU's power limit, whose control looks back about a tenth of a second.  In turn (first, second, first,
 * second, a call or a millisecond each) both run at one clock, which what they draw together decides: their ratio is that of two
 * kernels at one clock.  By itself for long enough each runs at the clock that its own power allows. */
#ifndef BENCH_GPU_LOOP_H
#define BENCH_GPU_LOOP_H

#include "cli/machine/measure.h"
#include "gpu.h"

/* One way.  `rounds` and `seconds` of the contender are filled in; its `calls` are what lies between two events; with more than one
 * the calls are a graph, so that the host's pace does not count.  once: seconds of a call, roughly. */
struct way { struct contender contender; double once; CUgraphExec graph; };

/* What the GPU was like during a loop. */
struct loop_state { bool known; double mhz, watts; bool power_capped; };

/* Chooses the calls of a sample, so that it takes about a millisecond, but at most `most_calls`.  A run that fails ends the
 * program. */
void loop_prepare(const struct gpu *gpu, struct way *way, int most_calls);
void loop_run(const struct gpu *gpu, struct way *const *ways, int count, int rounds, struct loop_state *state);
/* Each way by itself until its power and clock have settled, and then timed: what it gives to who runs nothing else.  states: one
 * a way. */
void loop_run_settled(const struct gpu *gpu, struct way *const *ways, int count, int rounds, double seconds,
                      struct loop_state *states);
void loop_release(const struct gpu *gpu, struct way *way);

#endif
