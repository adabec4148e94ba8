/* Timing in turn, see loop.h. */
#include "loop.h"

#include <math.h>
#include <stdlib.h>

enum { CAPTURE_OF_THIS_THREAD = 1, ROUNDS_BETWEEN_READINGS = 4 };
static const double sample_seconds = 1e-3, least_seconds = 1e-9, longest_for_graphs = 0.5e-3, settling_seconds = 0.2, short_settling_seconds = 0.1;

static void call(struct way *way)
{
    if (!way->contender.run(way->contender.argument)) gpu_stop("%s: %s", way->contender.name, bsm_last_error());
}

static CUevent new_event(const struct gpu *gpu)
{
    CUevent event;
    gpu_must(gpu, gpu->driver->cuEventCreate(&event, 0), "cuEventCreate");
    return event;
}

static void record(const struct gpu *gpu, CUevent event)
{
    gpu_must(gpu, gpu->driver->cuEventRecord(event, gpu->stream), "cuEventRecord");
}

static double between(const struct gpu *gpu, CUevent from, CUevent to)
{
    float milliseconds = 0;
    gpu_must(gpu, gpu->cuEventElapsedTime(&milliseconds, from, to), "cuEventElapsedTime");
    return fmax(1e-3 * (double)milliseconds, least_seconds);
}

static void launch(const struct gpu *gpu, struct way *way)
{
    if (way->graph != NULL) gpu_must(gpu, gpu->cuGraphLaunch(way->graph, gpu->stream), "cuGraphLaunch");
    for (int i = 0; i < way->contender.calls && way->graph == NULL; i++) call(way);
}

static void sample(const struct gpu *gpu, struct way *way, CUevent from, CUevent to)
{
    record(gpu, from);
    launch(gpu, way);
    record(gpu, to);
}

/* Seconds of a call, of so many as the way has, or of its graph. */
static double time_of_call(const struct gpu *gpu, struct way *way)
{
    CUevent from = new_event(gpu), to = new_event(gpu);
    sample(gpu, way, from, to);
    gpu_wait(gpu);
    const double seconds = between(gpu, from, to) / way->contender.calls;
    gpu_must(gpu, gpu->driver->cuEventDestroy(from), "cuEventDestroy");
    gpu_must(gpu, gpu->driver->cuEventDestroy(to), "cuEventDestroy");
    return seconds;
}

/* Warm: the first may load what it needs. */
static double rough_time(const struct gpu *gpu, struct way *way)
{
    enum { CALLS = 3 };
    call(way);
    gpu_wait(gpu);
    way->graph = NULL;
    way->contender.calls = CALLS;
    return time_of_call(gpu, way);
}

static void make_graph(const struct gpu *gpu, struct way *way)
{
    CUgraph graph;
    gpu_must(gpu, gpu->cuStreamBeginCapture(gpu->stream, CAPTURE_OF_THIS_THREAD), "cuStreamBeginCapture");
    for (int i = 0; i < way->contender.calls; i++) call(way);
    gpu_must(gpu, gpu->cuStreamEndCapture(gpu->stream, &graph), "cuStreamEndCapture");
    gpu_must(gpu, gpu->cuGraphInstantiate(&way->graph, graph, 0), "cuGraphInstantiate");
    gpu_must(gpu, gpu->cuGraphDestroy(graph), "cuGraphDestroy");
    gpu_must(gpu, gpu->cuGraphLaunch(way->graph, gpu->stream), "cuGraphLaunch");
}

static int calls_of_sample(const struct way *way, int most_calls)
{
    const int wanted = way->once > longest_for_graphs ? 1 : (int)ceil(sample_seconds / way->once);
    return wanted < most_calls ? wanted : most_calls;
}

/* Calls one by one take longer than those of a graph, by which the second graph's number is found. */
void loop_prepare(const struct gpu *gpu, struct way *way, int most_calls)
{
    way->once = rough_time(gpu, way);
    way->contender.calls = calls_of_sample(way, most_calls);
    if (way->contender.calls == 1) return;
    make_graph(gpu, way);
    way->once = time_of_call(gpu, way);
    loop_release(gpu, way);
    way->contender.calls = calls_of_sample(way, most_calls);
    make_graph(gpu, way);
}

/* Until the power limit has decided at which clock they run together: that of what ran before lasts for a while. */
static void settle(const struct gpu *gpu, struct way *const *ways, int count)
{
    double round = 0;
    bool long_ones = false;
    for (int i = 0; i < count; i++) {
        round += ways[i]->once * ways[i]->contender.calls;
        long_ones = long_ones || ways[i]->once > longest_for_graphs;
    }
    for (double gone = 0; gone < (long_ones ? settling_seconds : short_settling_seconds); gone += round)
        for (int i = 0; i < count; i++) launch(gpu, ways[i]);
}

static void add_reading(const struct gpu *gpu, struct loop_state *state, int *readings)
{
    struct monitor_sample now;
    if (!monitor_read(&gpu->monitor, &now)) return;
    state->known = true;
    state->mhz += now.mhz, state->watts += now.watts, state->power_capped = state->power_capped || now.power_capped;
    ++*readings;
}

/* Nothing waits between rounds: the GPU always has its next sample in the queue. */
void loop_run(const struct gpu *gpu, struct way *const *ways, int count, int rounds, struct loop_state *state)
{
    const int samples = rounds * count;
    CUevent *events = calloc((size_t)samples * 2, sizeof *events);
    int readings = 0;
    *state = (struct loop_state){ .known = false };
    for (int i = 0; i < 2 * samples; i++) events[i] = new_event(gpu);
    settle(gpu, ways, count);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) sample(gpu, ways[i], events[2 * (round * count + i)], events[2 * (round * count + i) + 1]);
        if (round % ROUNDS_BETWEEN_READINGS == ROUNDS_BETWEEN_READINGS - 1) add_reading(gpu, state, &readings);
    }
    gpu_wait(gpu);
    for (int i = 0; i < samples; i++) {
        struct contender *c = &ways[i % count]->contender;
        c->seconds[i / count] = between(gpu, events[2 * i], events[2 * i + 1]) / c->calls;
        c->rounds = rounds;
    }
    for (int i = 0; i < 2 * samples; i++) gpu_must(gpu, gpu->driver->cuEventDestroy(events[i]), "cuEventDestroy");
    free(events);
    if (readings > 0) state->mhz /= readings, state->watts /= readings;
}

/* The host may wait: the GPU's clock does not fall in the microseconds that it then lacks work. */
static double settled_sample(const struct gpu *gpu, struct way *way, int calls, struct loop_state *state, int *readings)
{
    CUevent from = new_event(gpu), to = new_event(gpu);
    for (int i = 0; i < calls; i++) call(way);
    gpu_wait(gpu);
    record(gpu, from);
    for (int i = 0; i < calls; i++) call(way);
    record(gpu, to);
    add_reading(gpu, state, readings);
    gpu_wait(gpu);
    const double seconds = between(gpu, from, to) / calls;
    gpu_must(gpu, gpu->driver->cuEventDestroy(from), "cuEventDestroy");
    gpu_must(gpu, gpu->driver->cuEventDestroy(to), "cuEventDestroy");
    return seconds;
}

void loop_run_settled(const struct gpu *gpu, struct way *const *ways, int count, int rounds, double seconds,
                      struct loop_state *states)
{
    for (int i = 0; i < count; i++) states[i] = (struct loop_state){ .known = false };
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++) {
            struct contender *c = &ways[i]->contender;
            int readings = 0;
            struct loop_state now = { .known = false };
            c->calls = (int)fmax(1, seconds / rough_time(gpu, ways[i]));
            c->seconds[round] = settled_sample(gpu, ways[i], c->calls, &now, &readings);
            c->rounds = rounds;
            if (readings > 0) states[i] = now;
        }
}

void loop_release(const struct gpu *gpu, struct way *way)
{
    if (way->graph != NULL) gpu_must(gpu, gpu->cuGraphExecDestroy(way->graph), "cuGraphExecDestroy");
    way->graph = NULL;
}
