/* State: initialisation, options, handles. */
#include "hip.h"

#include "machine/memory.h"
#include "simulator/environment.h"

#include <stdio.h>
#include <stdlib.h>

struct hip hip = { .lock = PTHREAD_MUTEX_INITIALIZER };
static const struct environment environment = { "gfxsim", "GFXSIM_QUIET" };

void hip_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    environment_tell(&environment, format, arguments);
    va_end(arguments);
}

static bool read_environment(struct machine_options *o)
{
    static const struct setting schedules[] = { { "random", SCHEDULE_RANDOM }, { "earliest", SCHEDULE_EARLIEST },
                                                { "latest", SCHEDULE_LATEST } };
    static const struct setting roundings[] = { { "exact", ROUNDING_EXACT }, { "fma", ROUNDING_FMA },
                                                { "groups", ROUNDING_GROUPS } };
    static const struct setting barriers[] = { { "same", 1 }, { "any", 0 } };
    const struct environment *e = &environment;
    int schedule = (int)o->schedule, rounding = (int)o->rounding, barrier = o->same_barrier;
    const bool ok = environment_number(e, "GFXSIM_SEED", 0, UINT64_MAX, &o->seed)
                    && environment_number(e, "GFXSIM_STEPS", 0, UINT64_MAX, &o->step_limit)
                    && environment_number(e, "GFXSIM_GRID_STEPS", 0, UINT64_MAX, &o->grid_step_limit)
                    && environment_number32(e, "GFXSIM_THREADS", 1, 64, &o->threads)
                    && environment_number32(e, "GFXSIM_SCHEDULES", 1, 1000000, &o->schedules)
                    && environment_yes_or_no(e, "GFXSIM_CHECK_RACES", &o->check_races)
                    && environment_yes_or_no(e, "GFXSIM_CHECK_UNINITIALISED", &o->check_uninitialised)
                    && environment_yes_or_no(e, "GFXSIM_CHECK_HAZARDS", &o->check_hazards)
                    && environment_yes_or_no(e, "GFXSIM_COUNTS", &hip.counts)
                    && environment_choice(e, "GFXSIM_SCHEDULE", schedules, 3, &schedule)
                    && environment_choice(e, "GFXSIM_ROUNDING", roundings, 3, &rounding)
                    && environment_choice(e, "GFXSIM_BARRIERS", barriers, 2, &barrier);
    o->schedule = (enum schedule)schedule, o->rounding = (enum rounding)rounding, o->same_barrier = barrier != 0;
    return ok;
}

static hipError_t initialise(void)
{
    struct machine_options o = machine_default_options();
    /* a loop without end, and a grid that no simulator gets through, end with a sentence */
    o.step_limit = UINT64_C(1) << 28, o.grid_step_limit = UINT64_C(1) << 34;
    if (!read_environment(&o)) return hipErrorInvalidValue;
    if (!machine_open(&hip.machine, &o)) return hipErrorOutOfMemory;
    hip.initialised = true;
    return hipSuccess;
}

hipError_t hip_enter(void)
{
    pthread_mutex_lock(&hip.lock);
    if (!hip.initialised) {
        const hipError_t r = initialise();
        if (r != hipSuccess) return r;
    }
    return hip.fault;
}

hipError_t hip_leave(hipError_t result)
{
    pthread_mutex_unlock(&hip.lock);
    return result;
}

bool stream_lives(hipStream_t stream)
{
    if ((uintptr_t)stream <= 2) return true;
    for (const struct hip_stream *s = hip.streams; s != NULL; s = s->next)
        if (s == stream) return true;
    return false;
}

struct hip_graph *stream_capture(hipStream_t stream) { return (uintptr_t)stream <= 2 ? NULL : stream->capture; }

bool function_lives(hipFunction_t f)
{
    for (const struct hip_module *m = hip.modules; m != NULL; m = m->next)
        for (const struct hip_function *k = m->functions; k != NULL; k = k->next)
            if (k == f) return true;
    return false;
}
