#include "schedules.h"
#include "machine/core/report.h"
#include "machine/run/schedules.h"

#include <stdlib.h>

enum { BUFFER_BYTES = 65536, SCHEDULES_WRONG = 20, SCHEDULES_RIGHT = 100, MOST_SUMS = 256 };

void use_schedule(struct sim *sim, uint64_t number)
{
    sim->machine.options.seed = number;
    sim->machine.options.schedule = number == 0 ? SCHEDULE_EARLIEST : number == 1 ? SCHEDULE_LATEST : SCHEDULE_RANDOM;
}

bool run_cluster(struct sim *sim, uint32_t ctas, uint32_t block, uint32_t dynamic_shared, const uint64_t *parameters,
                 uint32_t count)
{
    uint64_t buffer[16] = { 0 };
    for (uint32_t i = 0; i < count && i < 16; i++) buffer[i] = parameters[i];
    const struct launch launch = { .image = &sim->image,
                                   .function = ptx_function(sim->module, "k"),
                                   .grid = { ctas, 1, 1 },
                                   .block = { block, 1, 1 },
                                   .cluster = { ctas, 1, 1 },
                                   .dynamic_shared = dynamic_shared,
                                   .parameters = (const uint8_t *)buffer };
    return machine_run(&sim->machine, &launch, &sim->report);
}

static void check_misuse(struct test *t, const char *device, const char *before, const struct misuse *m,
                         uint64_t (*make)(struct sim *sim, uint64_t buffer))
{
    const size_t size = strlen(before) + strlen(m->text) + 2;
    char *text = malloc(size);
    uint8_t *numbers = malloc(BUFFER_BYTES);
    struct sim sim;
    if (text == NULL || numbers == NULL) abort();
    snprintf(text, size, "%s%s", before, m->text);
    for (int i = 0; i < BUFFER_BYTES; i++) numbers[i] = (uint8_t)(i * 7 + i / 256);
    bool found = false;
    const bool always = (m->code & ALWAYS) != 0, each = m->words == NULL || always;
    const enum report_code code = (enum report_code)(m->code & ~ALWAYS);
    for (uint64_t s = 0; s < (m->words == NULL ? SCHEDULES_RIGHT : SCHEDULES_WRONG) && (each || !found); s++) {
        if (!sim_open(t, &sim, device, text)) break;
        use_schedule(&sim, s);
        const uint64_t in = sim_buffer(&sim, numbers, BUFFER_BYTES), out = sim_buffer(&sim, NULL, BUFFER_BYTES);
        const uint64_t parameters[4] = { make == NULL ? 0 : make(&sim, in), make == NULL ? 0 : make(&sim, out), in,
                                         out };
        const bool ran = run_cluster(&sim, m->ctas, m->block, 0, parameters, 4);
        if (ran && always) FAIL(t, "%s\nschedule %d: no report", text, (int)s);
        if (!ran) {
            found = true;
            if (m->words == NULL || sim.report.code != code || strstr(sim.report.text, m->words) == NULL)
                FAIL(t, "%s\nwanted %s \"%s\", schedule %d gives\n%s", text, report_code_name(code),
                     m->words == NULL ? "no report" : m->words, (int)s, sim.report.text);
        }
        sim_close(&sim);
    }
    if (!found && m->words != NULL)
        FAIL(t, "%s\nwanted %s \"%s\", got no report", text, report_code_name(code), m->words);
    free(text), free(numbers);
}

void check_misuses(struct test *t, const char *device, const char *before, const struct misuse *misuses, int count,
                   uint64_t (*make)(struct sim *sim, uint64_t buffer))
{
    for (int i = 0; i < count; i++) check_misuse(t, device, before, &misuses[i], make);
}

static bool sums_are_right(struct sim *sim, uint64_t out, int count, float sum)
{
    float got[MOST_SUMS];
    sim_read(sim, out, got, sizeof got);
    for (int i = 0; i < count && i < MOST_SUMS && sum != 0; i++)
        if (got[i] != sum) return false;
    return true;
}

void check_judged(struct test *t, const struct judged *e)
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_100a", e->text)) return;
    const uint64_t out = sim_buffer(&sim, NULL, MOST_SUMS * sizeof(float));
    sim.machine.options.tensor_fences = TENSOR_FENCES_ALWAYS;
    for (uint64_t s = 0; s < (e->code == REPORT_NONE ? SCHEDULES_RIGHT : SCHEDULES_WRONG); s++) {
        use_schedule(&sim, s);
        const bool ran = run_cluster(&sim, e->ctas, e->block, 0, &out, 1);
        if (ran && e->code == REPORT_NONE && sums_are_right(&sim, out, 128 * (int)e->ctas, e->sum)) continue;
        if (!ran && sim.report.code == e->code && strstr(sim.report.text, e->words) != NULL) continue;
        FAIL(t, "%s, schedule %d: wanted %s \"%s\", got %s", e->what, (int)s, report_code_name(e->code), e->words,
             ran ? "another sum or no report" : sim.report.text);
        break;
    }
    sim_close(&sim);
}
