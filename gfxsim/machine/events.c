/* Results come when the schedule says, but no later than s_waitcnt; a register is pending until s_waitcnt, whenever
 * its value comes. */
#include "events.h"

#include "lds.h"
#include "report.h"
#include "simulator/random.h"

#include <stdlib.h>
#include <string.h>

struct event *event_new(struct wave *w, const struct insn *in, enum counter counter, enum event_kind kind)
{
    if (w->events == w->event_capacity) {
        const uint32_t capacity = w->event_capacity == 0 ? 64 : 2 * w->event_capacity;
        struct event **grown = realloc(w->event, capacity * sizeof *grown);
        if (grown != NULL) w->event = grown, w->event_capacity = capacity;
    }
    struct event *e = w->spares > 0 ? w->spare[--w->spares] : malloc(sizeof *e);
    if (e == NULL || w->events == w->event_capacity) {
        free(e);
        wave_fault(w, in, NO_LANE, REPORT_RESOURCES, "is one of %u memory instructions under way, more than there is "
                   "memory for", w->events + 1);
        return NULL;
    }
    e->counter = counter, e->kind = kind, e->in = in;
    e->serial = 0, e->delivered = false, e->needs = NEEDS_VM | NEEDS_LGKM, e->first = 0, e->dwords = 0, e->bytes = 0;
    e->lanes = wave_exec(w);
    memset(e->present, 0, sizeof e->present);
    w->event[w->events++] = e;
    return e;
}

/* ---- delivery ---- */

static uint32_t loaded(const struct event *e, uint32_t lane, uint32_t dword)
{
    if (dword >= e->present[lane]) return 0;
    const uint8_t *at = (const uint8_t *)(uintptr_t)e->address[lane] + 4 * dword;
    uint32_t value = 0;
    memcpy(&value, at, e->bytes < 4 ? e->bytes : 4);
    return value;
}

static void narrow(struct wave *w, const struct event *e)
{
    const uint32_t detail = e->in->row->detail;
    FOR_LANES(lane, e->lanes) {
        uint32_t value = loaded(e, (uint32_t)lane, 0);
        uint32_t *d = &w->vgpr[e->first][lane];
        if ((detail & EXTENDS) != 0)
            value = e->bytes == 1 ? (uint32_t)(int32_t)(int8_t)value : (uint32_t)(int32_t)(int16_t)value;
        if ((detail & LOWER_HALF) != 0) *d = (*d & 0xffff0000) | (value & 0xffff);
        else if ((detail & UPPER_HALF) != 0) *d = (*d & 0xffff) | value << 16;
        else *d = value;
    }
    for (int b = 0; b < 4; b++)
        if (!((detail & LOWER_HALF) != 0 && b >= 2) && !((detail & UPPER_HALF) != 0 && b < 2))
            w->defined[e->first][b] |= e->lanes;
}

static void load(struct wave *w, const struct event *e)
{
    if (e->bytes < 4) {
        narrow(w, e);
        return;
    }
    for (uint32_t i = 0; i < e->dwords; i++) {
        FOR_LANES(lane, e->lanes) w->vgpr[e->first + i][lane] = loaded(e, (uint32_t)lane, i);
        for (int b = 0; b < 4; b++) w->defined[e->first + i][b] |= e->lanes;
    }
}

/* A part of a register that comes alone: the rest of it stays. */
static void give_half(struct wave *w, const struct event *e, bool upper)
{
    const uint32_t kept = upper ? 0xffff : 0xffff0000;
    FOR_LANES(lane, e->lanes) {
        uint32_t *d = &w->vgpr[e->first][lane];
        *d = (*d & kept) | (upper ? e->data[0][lane] << 16 : e->data[0][lane] & 0xffff);
    }
    for (int b = 0; b < 2; b++) {
        uint64_t *d = &w->defined[e->first][upper ? b + 2 : b];
        *d = (*d & ~e->lanes) | (e->defined[0][b] & e->lanes);
    }
}

/* What was read at issue: DS, flat, scratch, and atomics that return. */
static void give(struct wave *w, const struct event *e)
{
    const uint32_t detail = e->in->row->detail;
    if ((detail & (LOWER_HALF | UPPER_HALF)) != 0) {
        give_half(w, e, (detail & UPPER_HALF) != 0);
        return;
    }
    for (uint32_t i = 0; i < e->dwords; i++) {
        FOR_LANES(lane, e->lanes) w->vgpr[e->first + i][lane] = e->data[i][lane];
        for (int b = 0; b < 4; b++)
            w->defined[e->first + i][b] = (w->defined[e->first + i][b] & ~e->lanes) | (e->defined[i][b] & e->lanes);
    }
}

static void to_lds(struct wave *w, const struct event *e)
{
    struct lds *l = &w->group->lds;
    FOR_LANES(lane, e->lanes) {
        for (uint32_t i = 0; i < e->bytes; i += 4) {
            const uint32_t value = loaded(e, (uint32_t)lane, i / 4);
            memcpy(l->data + e->lds[lane] + i, &value, e->bytes < 4 ? e->bytes : 4);
        }
        memset(l->defined + e->lds[lane], 1, e->bytes);
    }
}

static void scalars(struct wave *w, const struct event *e)
{
    for (uint32_t i = 0; i < e->dwords; i++) {
        memcpy(&w->sgpr[e->first + i], (const uint8_t *)(uintptr_t)e->address[0] + 4 * i, 4);
        w->sgpr_undefined[e->first + i] = 0;
    }
}

static void deliver(struct wave *w, struct event *e)
{
    if (e->delivered) return;
    e->delivered = true;
    switch (e->kind) {
    case EVENT_LOAD: load(w, e); break;
    case EVENT_DS_READ: give(w, e); break;
    case EVENT_TO_LDS: to_lds(w, e); break;
    case EVENT_SCALAR: scalars(w, e); break;
    default: break;
    }
}

/* ---- pending registers ---- */

static void set_pending(struct wave *w, const struct event *e, bool pending)
{
    for (uint32_t i = e->first; i < (uint32_t)e->first + e->dwords; i++)
        if (e->counter == COUNTER_SMEM) {
            if (pending) w->sgpr_event[i / 64] |= UINT64_C(1) << i % 64;
            else w->sgpr_event[i / 64] &= ~(UINT64_C(1) << i % 64);
        } else {
            w->pending_loads[i] = (uint8_t)(w->pending_loads[i] + (pending ? 1 : -1));
            w->pending[i] = w->pending_loads[i] == 0 ? 0 : (uint8_t)(e->counter + 1);
            if (pending) w->vgpr_written[i].by = WRITER_NONE;
        }
}

void event_issued(struct wave *w, struct event *e)
{
    set_pending(w, e, true);
    if (wave_options(w)->schedule == SCHEDULE_EARLIEST) deliver(w, e);
}

static void complete(struct wave *w, uint32_t index)
{
    struct event *e = w->event[index];
    deliver(w, e);
    set_pending(w, e, false);
    lds_complete(w, e->serial);
    memmove(&w->event[index], &w->event[index + 1], (w->events - index - 1) * sizeof w->event[0]);
    w->events--;
    if (w->spares < sizeof w->spare / sizeof w->spare[0]) w->spare[w->spares++] = e;
    else free(e);
}

static uint32_t count(const struct wave *w, enum counter counter)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < w->events; i++) found += w->event[i]->counter == counter;
    return found;
}

static void leave(struct wave *w, enum counter counter, uint32_t left)
{
    uint32_t there = count(w, counter);
    for (uint32_t i = 0; i < w->events && there > left;)
        if (w->event[i]->counter == counter) complete(w, i), there--;
        else i++;
}

/* Those of which both counters have been 0. */
static void leave_flat(struct wave *w, uint8_t are_zero)
{
    for (uint32_t i = 0; i < w->events;) {
        struct event *e = w->event[i];
        if (e->counter == COUNTER_FLAT) e->needs &= (uint8_t)~are_zero;
        if (e->counter == COUNTER_FLAT && e->needs == 0) complete(w, i);
        else i++;
    }
}

/* Scalar loads come in any order and count in lgkmcnt with LDS, so while one is under way only 0 says anything. */
void events_wait(struct wave *w, uint32_t vmcnt, uint32_t lgkmcnt)
{
    if (w->events == 0) return;
    if (count(w, COUNTER_FLAT) != 0) {
        if (vmcnt != 0) vmcnt = UINT32_MAX;
        if (lgkmcnt != 0) lgkmcnt = UINT32_MAX;
        leave_flat(w, (uint8_t)((vmcnt == 0 ? NEEDS_VM : 0) | (lgkmcnt == 0 ? NEEDS_LGKM : 0)));
    }
    leave(w, COUNTER_VM, vmcnt);
    if (lgkmcnt == 0) leave(w, COUNTER_SMEM, 0);
    if (lgkmcnt == 0 || count(w, COUNTER_SMEM) == 0) leave(w, COUNTER_DS, lgkmcnt);
}

void events_pass(struct wave *w)
{
    if (w->events == 0 || random_next(&w->random) % 8 != 0) return;
    const enum counter counter = (enum counter)(random_next(&w->random) % COUNTERS);
    for (uint32_t i = 0; i < w->events; i++) {
        struct event *e = w->event[i];
        if (e->counter != counter || e->delivered) continue;
        deliver(w, e);
        /* scalar loads in any order: the first one may stay behind */
        if (counter != COUNTER_SMEM || random_next(&w->random) % 2 == 0) return;
    }
}

void events_end(struct wave *w) { events_wait(w, 0, 0); }

void events_free(struct wave *w)
{
    for (uint32_t i = 0; i < w->events; i++) free(w->event[i]);
    for (uint32_t i = 0; i < w->spares; i++) free(w->spare[i]);
    free(w->event);
    free(w->unpublished);
}
