/* A wave: instructions one after the other. */
#include "wave.h"

#include "events.h"
#include "report.h"
#include "simulator/random.h"

#include <string.h>

static void set_sgpr(struct wave *w, uint32_t index, uint32_t value)
{
    if (index >= 102) return;
    w->sgpr[index] = value;
    w->sgpr_undefined[index] = 0;
}

static void set_sgpr64(struct wave *w, uint32_t index, uint64_t value)
{
    set_sgpr(w, index, (uint32_t)value);
    set_sgpr(w, index + 1, (uint32_t)(value >> 32));
}

/* User SGPRs in the descriptor's order, then the workgroup's id. */
static void set_sgprs(struct wave *w, const struct grid *grid)
{
    const struct kernel *k = grid->launch->kernel;
    static const struct { int bit, dwords; } users[] = { { 0, 4 }, { 1, 2 }, { 2, 2 }, { 3, 2 }, { 4, 2 }, { 5, 2 },
                                                         { 6, 1 } };
    uint32_t next = 0;
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        if (!(k->properties >> users[i].bit & 1)) continue;
        if (users[i].bit == 1) set_sgpr64(w, next, grid->packet);
        else if (users[i].bit == 3) set_sgpr64(w, next, grid->arguments);
        else if (users[i].bit == 4) set_sgpr64(w, next, grid->machine->launches);
        next += (uint32_t)users[i].dwords;
    }
    const uint32_t length = k->preload & 0x7f, offset = k->preload >> 7;
    for (uint32_t i = 0; i < length && 4 * (offset + i) + 4 <= grid->launch->argument_bytes; i++) {
        uint32_t value;
        memcpy(&value, grid->launch->arguments + 4 * (offset + i), 4);
        set_sgpr(w, next + i, value);
    }
    next = k->rsrc2 >> 1 & 31;                                            /* USER_SGPR_COUNT has the preloaded ones */
    for (uint32_t i = 0; i < 3; i++)
        if (k->rsrc2 >> (7 + i) & 1) set_sgpr(w, next++, w->group->id[i]);
}

void wave_start(struct wave *w, struct workgroup *g, uint32_t index)
{
    const struct grid *grid = g->grid;
    const struct launch *l = grid->launch;
    /* what stays allocated stays; registers are not cleared but undefined */
    w->group = g, w->index = index;
    w->pc = (uint32_t)(l->kernel->entry - l->program->text);
    w->ended = w->scc = w->scc_defined = w->indexing = false;
    w->mode = (l->kernel->rsrc1 >> 12 & 0xff) | (l->kernel->rsrc1 >> 21 & 1) << 8 | (l->kernel->rsrc1 >> 23 & 1) << 9
              | (l->kernel->rsrc1 >> 26 & 1) << 23;
    w->barriers = w->barrier_pc = 0;
    w->vgprs = l->kernel->vgprs, w->agprs = l->kernel->agprs;
    w->state = 16, w->steps = 0, w->recent = NULL;
    w->unpublished_count = 0;
    w->random = random_mixed(g->random + index);
    memset(w->sgpr_undefined, 0xff, sizeof w->sgpr_undefined);
    memset(w->sgpr, 0xa5, sizeof w->sgpr);
    memset(w->sgpr_event, 0, sizeof w->sgpr_event);
    memset(w->defined, 0, sizeof w->defined);
    memset(w->vgpr, 0xff, sizeof w->vgpr);
    memset(w->pending, 0, sizeof w->pending);
    memset(w->pending_loads, 0, sizeof w->pending_loads);
    memset(w->vgpr_written, 0, sizeof w->vgpr_written);
    memset(w->sgpr_written, 0, sizeof w->sgpr_written);
    if (w->private_defined != NULL) memset(w->private_defined, 0, (size_t)LANES * grid->private_bytes);
    set_sgprs(w, grid);
    const uint32_t first = index * LANES, there = grid->threads - first;
    w->lane_exists = there >= LANES ? UINT64_MAX : (UINT64_C(1) << there) - 1;
    w->sgpr[EXEC] = (uint32_t)w->lane_exists, w->sgpr[EXEC + 1] = (uint32_t)(w->lane_exists >> 32);
    w->sgpr_undefined[EXEC] = w->sgpr_undefined[EXEC + 1] = 0;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint32_t t = first + lane, x = t % l->block[0], y = t / l->block[0] % l->block[1],
                       z = t / (l->block[0] * l->block[1]);
        w->vgpr[0][lane] = x | y << 10 | z << 20;
    }
    for (int b = 0; b < 4; b++) w->defined[0][b] = UINT64_MAX;
}

static trap outside(struct wave *w)
{
    const struct insn none = { .pc = w->pc, .family = NULL };
    return wave_fault(w, &none, NO_LANE, REPORT_ILLEGAL, "runs at 0x%llx, outside of the code of %u bytes",
                      (unsigned long long)(w->group->grid->launch->program->text + w->pc),
                      w->group->grid->launch->program->text_bytes);
}

static trap unknown(struct wave *w, const struct insn *in)
{
    const struct program *p = w->group->grid->launch->program;
    uint32_t words[2] = { 0, 0 };
    const uint8_t *at = p->object->image + p->text + w->pc;
    memcpy(words, at, p->text_bytes - w->pc >= 8 ? 8 : 4);
    return wave_fault(w, in, NO_LANE, REPORT_ILLEGAL, "is no instruction that gfxsim knows, or has operands that the "
                      "manual forbids: 0x%08x 0x%08x", words[0], words[1]);
}

static trap too_many(struct wave *w, const struct insn *in)
{
    const struct machine_options *o = wave_options(w);
    return wave_fault(w, in, NO_LANE, REPORT_STEPS,
                      "is where this workgroup has taken %llu steps, its limit: an endless "
                      "loop, or GFXSIM_STEPS is too small",
                      (unsigned long long)o->step_limit);
}

trap wave_run(struct wave *w)
{
    const struct program *p = w->group->grid->launch->program;
    const struct machine_options *o = wave_options(w);
    const bool random = o->schedule == SCHEDULE_RANDOM;
    for (;;) {
        if (w->pc >= p->text_bytes) return outside(w);
        const struct insn *in = &p->insn[w->pc / 4];
        if (in->row == NULL) return unknown(w, in);
        w->next = w->pc + in->bytes;
        w->steps++;
        if (o->step_limit != 0 && ++w->group->steps > o->step_limit) return too_many(w, in);
        if ((w->steps & 1023) == 0 && atomic_load(&w->group->grid->stop)) return TRAP_FAULT;
        const bool skipped = (w->mode & MODE_SKIPS) != 0 && in->family->format > FORMAT_SMEM;
        const trap t = skipped ? TRAP_NONE : in->run(w, in);
        w->state++;
        if (t == TRAP_FAULT) return t;
        w->pc = w->next;
        if (t == TRAP_BARRIER || t == TRAP_END) return t;
        if (random) events_pass(w);
    }
}
