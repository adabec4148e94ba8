/* One launch under several schedules.  Each begins with the memory that the launch found; each must leave the same
 * bytes. */
#include "schedules.h"
#include "launch.h"
#include "machine/core/address_space.h"
#include "machine/core/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of all allocations that a kernel may write: its own memory's and those that it reaches of others. */
struct snapshot {
    const struct allocation **of;
    uint8_t **bytes, **written;
    uint32_t count;
};

struct repetition {
    enum schedule schedule;
    uint64_t seed;
};

struct difference {
    const struct allocation *allocation;
    uint64_t offset;
    uint8_t first[8], second[8];
    uint32_t bytes;
};

const char *schedule_name(enum schedule schedule)
{
    static const char *const names[] = {
        [SCHEDULE_RANDOM] = "random", [SCHEDULE_EARLIEST] = "earliest", [SCHEDULE_LATEST] = "latest"
    };
    return names[schedule];
}

/* splitmix64 of the seed and the repetition's number; the first random repetition has the seed itself. */
static struct repetition repetition(uint64_t seed, uint32_t number)
{
    if (number < 2) return (struct repetition){ number == 0 ? SCHEDULE_EARLIEST : SCHEDULE_LATEST, seed };
    if (number == 2) return (struct repetition){ SCHEDULE_RANDOM, seed };
    uint64_t z = seed + number * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (struct repetition){ SCHEDULE_RANDOM, z ^ z >> 31 };
}

/* ---- memory ---- */

static void snapshot_free(struct snapshot *s)
{
    for (uint32_t i = 0; i < s->count; i++) free(s->bytes[i]), free(s->written[i]);
    free(s->of), free(s->bytes), free(s->written);
    *s = (struct snapshot){ 0 };
}

static uint64_t written_bytes(const struct allocation *a) { return (a->bytes + 7) / 8; }

static bool snapshot_add(struct snapshot *s, const struct allocation *a)
{
    const uint32_t at = s->count++;
    s->of[at] = a;
    s->bytes[at] = malloc(a->bytes + 1);
    s->written[at] = a->written == NULL ? NULL : malloc(written_bytes(a));
    if (s->bytes[at] == NULL || (a->written != NULL && s->written[at] == NULL)) return false;
    memcpy(s->bytes[at], a->host, a->bytes);
    if (a->written != NULL) memcpy(s->written[at], a->written, written_bytes(a));
    return true;
}

static bool snapshot_take(struct snapshot *s, struct global_memory *memory)
{
    size_t most = 1;
    for (struct global_memory *m = memory; m != NULL; m = space_next(memory, m)) most += m->count;
    *s = (struct snapshot){ .of = calloc(most, sizeof *s->of), .bytes = calloc(most, sizeof *s->bytes),
                            .written = calloc(most, sizeof *s->written) };
    if (s->of == NULL || s->bytes == NULL || s->written == NULL) return false;
    for (struct global_memory *m = memory; m != NULL; m = space_next(memory, m))
        for (uint32_t i = 0; i < m->count; i++) {
            const struct allocation *a = &m->allocation[i];
            if (space_may_write(memory, a) && space_reaches(memory, m, a) && !snapshot_add(s, a)) return false;
        }
    return true;
}

static void snapshot_restore(const struct snapshot *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct allocation *a = s->of[i];
        if (s->bytes[i] != NULL) memcpy(a->host, s->bytes[i], a->bytes);
        if (s->written[i] != NULL) memcpy(a->written, s->written[i], written_bytes(a));
    }
}

static bool differs(const struct snapshot *s, struct difference *d)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct allocation *a = s->of[i];
        if (s->bytes[i] == NULL || memcmp(s->bytes[i], a->host, a->bytes) == 0) continue;
        uint64_t at = 0;
        while (s->bytes[i][at] == a->host[at]) at++;
        const uint64_t shown = at & ~UINT64_C(3);
        *d = (struct difference){ .allocation = a, .offset = at,
                                  .bytes = a->bytes - shown < 4 ? (uint32_t)(a->bytes - shown) : 4 };
        memcpy(d->first, s->bytes[i] + shown, d->bytes);
        memcpy(d->second, a->host + shown, d->bytes);
        return true;
    }
    return false;
}

/* ---- repetitions ---- */

/* What is run again and again. */
struct work { const struct launch *launch; uint32_t launches; };

static bool run(struct machine *machine, const struct work *work, const struct repetition *r, uint64_t id,
                struct report *report)
{
    machine->options.schedule = r->schedule;
    machine->options.seed = r->seed;
    machine->grids = id; /* a grid's number is part of its random numbers: the same in every repetition */
    return grids_run(machine, work->launch, work->launches, report);
}

static void add_repeat(struct report *report, const struct repetition *r, bool one_thread)
{
    const size_t used = strlen(report->text);
    snprintf(report->text + used, sizeof report->text - used, "  repeat   %sCUDASIM_SCHEDULE=%s CUDASIM_SEED=%llu\n",
             one_thread ? "CUDASIM_THREADS=1 " : "", schedule_name(r->schedule), (unsigned long long)r->seed);
}

static void hexadecimal(char text[32], const uint8_t *bytes, uint32_t count)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < count && used < 28; i++)
        used += (size_t)snprintf(text + used, 32 - used, "%s%02x", i == 0 ? "" : " ", bytes[i]);
}

/* Where memory differs and how each of the two is run again. */
static void describe(struct report *report, const struct machine *machine, const struct launch *launch,
                     const struct difference *d, const struct repetition *first, const struct repetition *second)
{
    const struct allocation *a = d->allocation;
    char one[32], other[32];
    hexadecimal(one, d->first, d->bytes);
    hexadecimal(other, d->second, d->bytes);
    *report = (struct report){ .code = REPORT_SCHEDULES, .kernel = launch->function->name, .lane = NO_LANE,
                               .section = "" };
    snprintf(report->sentence, sizeof report->sentence,
             "leaves other bytes under another schedule: the first at offset %llu of the %llu bytes allocated at "
             "0x%llx%s%s; from offset %llu: %s (%s), %s (%s)",
             (unsigned long long)d->offset, (unsigned long long)a->bytes, (unsigned long long)a->base,
             a->name == NULL ? "" : " for ", a->name == NULL ? "" : a->name,
             (unsigned long long)(d->offset & ~UINT64_C(3)), one, schedule_name(first->schedule), other,
             schedule_name(second->schedule));
    char name[REPORT_NAME_BYTES], device[REPORT_DEVICE_BYTES];
    snprintf(report->text, sizeof report->text, "cudasim: %s\n  what     %s\n  where    kernel %s%s\n",
             report_code_name(REPORT_SCHEDULES), report->sentence, report_name(report->kernel, name),
             report_device(machine, device));
}

static bool no_memory(const struct launch *launch, struct report *report)
{
    *report = (struct report){ .code = REPORT_RESOURCES,
                               .kernel = launch->function->name,
                               .lane = NO_LANE,
                               .sentence = "no host memory for a copy of global memory: CUDASIM_SCHEDULES needs two",
                               .text = "cudasim: no host memory for a copy of global memory: CUDASIM_SCHEDULES needs "
                                       "two\n" };
    return false;
}

static bool run_all(struct machine *machine, const struct work *work, const struct snapshot *before, uint64_t seed,
                    struct report *report, bool one_thread)
{
    const uint64_t id = machine->grids;
    uint64_t steps = 0;
    const struct repetition first = repetition(seed, 0);
    struct snapshot after = { 0 };
    bool ok = true;
    for (uint32_t i = 0; ok && i < machine->options.schedules; i++) {
        const struct repetition r = repetition(seed, i);
        struct difference d;
        snapshot_restore(before);
        ok = run(machine, work, &r, id, report);
        if (machine->steps > steps) steps = machine->steps;
        if (!ok) add_repeat(report, &r, false);
        machine->watch = NULL; /* one of them is watched and prints */
        machine->print = NULL;
        if (ok && i == 0) ok = snapshot_take(&after, &machine->memory) || no_memory(work->launch, report);
        if (!ok || !differs(&after, &d)) continue;
        describe(report, machine, work->launch, &d, &first, &r);
        add_repeat(report, &first, one_thread);
        add_repeat(report, &r, one_thread);
        ok = false;
    }
    snapshot_free(&after);
    machine->steps = steps;
    return ok;
}

/* Host threads run at their own pace, which no seed holds.  A difference that several of them found is looked for on
 * one, whose report can be repeated; if all schedules agree there, the report says so. */
static void make_repeatable(struct machine *machine, const struct work *work, const struct snapshot *before,
                            uint64_t seed, struct report *report)
{
    struct report *alone = calloc(1, sizeof *alone);
    machine->options.threads = 1;
    if (alone != NULL && !run_all(machine, work, before, seed, alone, true)) {
        *report = *alone;
    } else {
        char *repeat = strstr(report->text, "  repeat ");
        snprintf(repeat, sizeof report->text - (size_t)(repeat - report->text),
                 "  repeat   no seed does: the pace of the host threads decided; with CUDASIM_THREADS=1 all schedules "
                 "agree\n");
    }
    free(alone);
}

static bool run_many(struct machine *machine, const struct work *work, struct report *report)
{
    struct report unwanted;
    if (report == NULL) report = &unwanted;
    const struct machine kept = *machine;
    const uint64_t seed = machine->options.seed;
    struct snapshot before = { 0 };
    bool ok = snapshot_take(&before, &machine->memory) || no_memory(work->launch, report);
    if (ok) {
        ok = run_all(machine, work, &before, seed, report, false);
        machine->grids = kept.grids;
        if (!ok && report->code == REPORT_SCHEDULES && kept.options.threads > 1)
            make_repeatable(machine, work, &before, seed, report);
    }
    snapshot_free(&before);
    machine->options = kept.options;
    machine->watch = kept.watch;
    machine->print = kept.print;
    machine->grids = kept.grids + work->launches;
    return ok;
}

bool machine_run_all(struct machine *machine, const struct launch *launches, uint32_t count, struct report *report)
{
    const struct work work = { launches, count };
    return machine->options.schedules > 1 ? run_many(machine, &work, report)
                                          : grids_run(machine, launches, count, report);
}

bool machine_run(struct machine *machine, const struct launch *launch, struct report *report)
{
    return machine_run_all(machine, launch, 1, report);
}
