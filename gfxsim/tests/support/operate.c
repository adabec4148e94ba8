/* A wave by hand. */
#include "operate.h"

#include "decode/decode.h"
#include "machine/events.h"
#include "machine/lds.h"
#include "machine/wave.h"
#include "object.h"

#include <stdlib.h>

bool operate_open(struct operated *o, struct test *t)
{
    static uint8_t file[OBJECT_MOST];
    static const uint32_t end = 0xbf810000;
    struct machine_options options = test_options();
    options.schedule = SCHEDULE_LATEST;
    memset(o, 0, sizeof *o);
    const size_t bytes = object_build(file, &end, 1);
    memset(file + 256 + 44, 63, 1);                                       /* all registers */
    memset(file + 256 + 48, 63, 1);
    o->grid = calloc(1, sizeof *o->grid);
    o->wave = calloc(1, sizeof *o->wave);
    if (o->grid == NULL || o->wave == NULL || !simulation_open(&o->sim, t, file, bytes, &options)) return false;
    o->launch = (struct launch){ .program = &o->sim.program, .kernel = &o->sim.object.kernel[0], .grid = { 1, 1, 1 },
                                 .block = { 64, 1, 1 } };
    o->grid->machine = &o->sim.machine, o->grid->launch = &o->launch, o->grid->threads = 64;
    o->group = (struct workgroup){ .grid = o->grid, .waves = 1, .wave = { o->wave } };
    if (!lds_open(&o->group.lds, 4096, 1, true)) return false;
    lds_clear(&o->group.lds, 1);
    memset(o->group.lds.defined, 1, 4096);
    wave_start(o->wave, &o->group, 0);
    memset(o->wave->defined, 0xff, sizeof o->wave->defined);
    memset(o->wave->vgpr, 0, sizeof o->wave->vgpr);
    memset(o->wave->sgpr_undefined, 0, sizeof o->wave->sgpr_undefined);
    o->wave->scc_defined = true;
    return true;
}

void operate_close(struct operated *o)
{
    if (o->wave != NULL) events_free(o->wave);
    lds_close(&o->group.lds);
    free(o->wave);
    free(o->grid);
    simulation_close(&o->sim);
}

bool operate(struct operated *o, struct test *t, const uint32_t *word, uint32_t words)
{
    struct insn in;
    char text[INSTRUCTION_TEXT];
    if (!decode(&in, (const uint8_t *)word, 4 * words, 0)) {
        FAIL(t, "%08x is no instruction", word[0]);
        return false;
    }
    o->wave->state += 100;
    const trap r = in.run(o->wave, &in);
    instruction_text(&in, text);
    if (r == TRAP_FAULT) FAIL(t, "%s: %s", text, o->grid->report.text);
    events_wait(o->wave, 0, 0);
    return r != TRAP_FAULT;
}

bool operate_vop3(struct operated *o, struct test *t, uint32_t opcode, uint32_t d, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t word[2] = { 0x34u << 26 | opcode << 16 | d, a | b << 9 | c << 18 };
    return operate(o, t, word, 2);
}
