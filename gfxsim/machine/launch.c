/* Programs, and launches that are repeated under several schedules. */
#include "launch.h"

#include "decode/decode.h"
#include "grid.h"
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct machine_options machine_default_options(void)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return (struct machine_options){ .seed = 1, .schedules = 1, .threads = processors < 1 ? 1 : (uint32_t)processors,
                                     .check_races = true, .check_uninitialised = true, .check_hazards = true,
                                     .same_barrier = true };
}

bool machine_open(struct machine *m, const struct machine_options *options)
{
    *m = (struct machine){ .options = *options };
    return memory_open(&m->memory);
}

void machine_close(struct machine *m) { memory_close(&m->memory); }

bool program_open(struct program *p, struct machine *m, const struct code_object *o)
{
    *p = (struct program){ .object = o, .text = o->text, .text_bytes = (uint32_t)(o->text_bytes & ~UINT64_C(3)) };
    p->base = memory_allocate(&m->memory, o->bytes, ALLOCATION_CODE);
    p->insn = calloc(p->text_bytes / 4 + 1, sizeof *p->insn);
    if (p->base == 0 || p->insn == NULL) {
        program_close(p, m);
        return false;
    }
    memcpy((void *)(uintptr_t)p->base, o->image, o->bytes);
    for (uint32_t pc = 0; pc < p->text_bytes; pc += 4) decode(&p->insn[pc / 4], o->image + o->text, p->text_bytes, pc);
    return true;
}

void program_close(struct program *p, struct machine *m)
{
    if (p->base != 0) memory_free(&m->memory, p->base);
    free(p->insn);
    *p = (struct program){ 0 };
}

/* ---- one launch, several schedules ---- */

struct saved { uint8_t **before, **after; uint32_t count; };

static uint8_t **copy_all(const struct memory *m)
{
    uint8_t **copy = calloc(m->count + 1, sizeof *copy);
    for (uint32_t i = 0; i < m->count && copy != NULL; i++) {
        if (m->allocation[i].kind == ALLOCATION_CODE) continue;
        copy[i] = malloc(m->allocation[i].bytes);
        if (copy[i] != NULL) memcpy(copy[i], (const void *)(uintptr_t)m->allocation[i].base, m->allocation[i].bytes);
    }
    return copy;
}

static void restore(const struct memory *m, uint8_t **copy)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (copy[i] != NULL) memcpy((void *)(uintptr_t)m->allocation[i].base, copy[i], m->allocation[i].bytes);
}

static void free_all(uint8_t **copy, uint32_t count)
{
    for (uint32_t i = 0; copy != NULL && i < count; i++) free(copy[i]);
    free(copy);
}

static bool differs(const struct memory *m, uint8_t **copy, const struct machine_options *o, const struct launch *l,
                    struct report *report)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const struct allocation *a = &m->allocation[i];
        const uint8_t *now = (const uint8_t *)(uintptr_t)a->base;
        if (copy[i] == NULL || memcmp(now, copy[i], a->bytes) == 0) continue;
        uint64_t at = 0;
        while (now[at] == copy[i][at]) at++;
        *report = (struct report){ .code = REPORT_SCHEDULES, .lane = NO_LANE };
        snprintf(report->sentence, sizeof report->sentence,
                 "leaves 0x%02x in byte %llu of an allocation of %llu bytes, "
                 "and 0x%02x under the first schedule",
                 now[at], (unsigned long long)at, (unsigned long long)a->bytes, copy[i][at]);
        snprintf(report->text, sizeof report->text, "gfxsim: %s\n  what     %s\n  where    kernel %.200s\n  again    "
                 "GFXSIM_SEED=%llu\n", report_code_name(REPORT_SCHEDULES), report->sentence, l->kernel->name,
                 (unsigned long long)o->seed);
        return true;
    }
    return false;
}

/* The schedules: as asked for, earliest, latest, then random ones with other seeds. */
static void choose(struct machine_options *o, uint32_t number)
{
    if (number == 1) o->schedule = SCHEDULE_EARLIEST;
    else if (number == 2) o->schedule = SCHEDULE_LATEST;
    else if (number > 2) o->schedule = SCHEDULE_RANDOM, o->seed += number;
}

bool launch_run(struct machine *m, const struct launch *l, struct report *report)
{
    m->launches++;
    if (m->options.schedules < 2) return grid_run(m, l, &m->options, report);
    uint8_t **before = copy_all(&m->memory), **after = NULL;
    bool ok = before != NULL;
    for (uint32_t i = 0; i < m->options.schedules && ok; i++) {
        struct machine_options o = m->options;
        choose(&o, i);
        if (i > 0) restore(&m->memory, before);
        ok = grid_run(m, l, &o, report);
        if (ok && i == 0) ok = (after = copy_all(&m->memory)) != NULL;
        else if (ok) ok = !differs(&m->memory, after, &o, l, report);
    }
    free_all(before, m->memory.count);
    free_all(after, m->memory.count);
    return ok;
}
