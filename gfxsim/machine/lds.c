/* LDS: events and what they touched. */
#include "lds.h"

#include "report.h"

#include <stdlib.h>
#include <string.h>

bool lds_open(struct lds *l, uint32_t bytes, uint32_t waves, bool races)
{
    *l = (struct lds){ .bytes = bytes };
    if (bytes == 0) return true;
    l->data = malloc(bytes);
    l->defined = malloc(bytes);
    if (l->data == NULL || l->defined == NULL) return false;
    if (!races) return true;
    l->writer = malloc(bytes * sizeof *l->writer);
    if (l->writer == NULL) return false;
    for (uint32_t i = 0; i < waves; i++) {
        l->reader[i] = malloc(bytes * sizeof *l->reader[i]);
        if (l->reader[i] == NULL) return false;
    }
    return true;
}

void lds_close(struct lds *l)
{
    free(l->data);
    free(l->defined);
    free(l->writer);
    free(l->event);
    for (uint32_t i = 0; i < MOST_WAVES; i++) free(l->reader[i]);
    *l = (struct lds){ 0 };
}

/* For the next workgroup: nothing is written, and the bytes are NaN. */
void lds_clear(struct lds *l, uint32_t waves)
{
    l->events = 0;
    if (l->bytes == 0) return;
    memset(l->data, 0xff, l->bytes);
    memset(l->defined, 0, l->bytes);
    if (l->writer == NULL) return;
    memset(l->writer, 0, l->bytes * sizeof *l->writer);
    for (uint32_t i = 0; i < waves; i++) memset(l->reader[i], 0, l->bytes * sizeof *l->reader[i]);
}

uint32_t lds_event(struct wave *w, const struct insn *in, bool to_lds)
{
    struct lds *l = &w->group->lds;
    if (l->events + 1 >= l->capacity) {
        const uint32_t capacity = l->capacity == 0 ? 4096 : 2 * l->capacity;
        struct lds_event *grown = realloc(l->event, capacity * sizeof *grown);
        if (grown == NULL) {
            wave_fault(w, in, NO_LANE, REPORT_RESOURCES, "touches LDS, and there is no memory to remember it");
            return 0;
        }
        l->event = grown;
        l->capacity = capacity;
    }
    l->event[++l->events] = (struct lds_event){ in->pc, (uint16_t)w->index, to_lds, false, false, UINT32_MAX };
    return l->events;
}

void lds_is_atomic(struct wave *w, uint32_t serial) { w->group->lds.event[serial].atomic = true; }

static bool race(struct wave *w, const struct insn *in, uint32_t lane, uint32_t at, bool writes, uint32_t other,
                 bool other_writes)
{
    const struct lds_event *e = &w->group->lds.event[other];
    char there[256];
    insn_at(w, e->pc, there);
    const char *why = e->wave == w->index ? "this wave itself has not waited for it (s_waitcnt)"
                      : !e->complete      ? "that wave has not waited for it (s_waitcnt)"
                                          : "no s_barrier of both lies between";
    wave_fault(w, in, lane, REPORT_RACE, "%s the byte at LDS address 0x%x, which wave %u %s by %s: %s",
               writes ? "writes" : "reads", at, e->wave, other_writes ? "writes" : "reads", there, why);
    return false;
}

/* Whether a wave may conflict with the event.  Its own DS instructions are in order, and so are its own loads to LDS
 * (`moves`); one of each kind is not, before the wave has waited. */
static bool behind(const struct wave *w, const struct lds_event *e, bool moves)
{
    if (e->wave == w->index) return e->complete || (!e->to_lds && !moves) || (e->to_lds && moves);
    return e->published <= w->barriers;
}

static bool check_byte(struct wave *w, const struct insn *in, uint32_t lane, uint32_t at, bool writes, bool moves,
                       bool atomic)
{
    const struct lds *l = &w->group->lds;
    const uint32_t writer = l->writer[at];
    const bool among_atomics = writer != 0 && l->event[writer].atomic;
    if (writer != 0 && !(atomic && among_atomics) && !behind(w, &l->event[writer], moves))
        return race(w, in, lane, at, writes, writer, true);
    /* of several atomics in a row `writer` is the last; each wave's own is its reader, too */
    if (!writes && !among_atomics) return true;
    for (uint32_t i = 0; i < w->group->waves; i++) {
        const uint32_t reader = l->reader[i][at];
        if (reader == 0 || behind(w, &l->event[reader], moves)) continue;
        const bool also_writes = l->event[reader].atomic;
        if (also_writes ? !atomic : writes) return race(w, in, lane, at, writes, reader, also_writes);
    }
    return true;
}

bool lds_access(struct wave *w, const struct insn *in, uint32_t lane, uint32_t offset, uint32_t bytes, bool writes,
                uint32_t serial)
{
    struct lds *l = &w->group->lds;
    if (offset > l->bytes || bytes > l->bytes - offset) {
        wave_fault(w, in, lane, REPORT_OUT_OF_BOUNDS, "%s %u bytes at LDS address 0x%x, and the workgroup has %u bytes",
                   writes ? "writes" : "reads", bytes, offset, l->bytes);
        return false;
    }
    if (l->writer == NULL) return true;
    const bool moves = l->event[serial].to_lds, atomic = l->event[serial].atomic;
    uint32_t *own = writes ? l->writer : l->reader[w->index];
    for (uint32_t i = offset; i < offset + bytes; i++) {
        /* what the byte before was compared with need not be compared again */
        const bool same = i > offset && l->writer[i] == l->writer[i - 1] && !writes
                          && (l->writer[i] == 0 || !l->event[l->writer[i]].atomic);
        if (!same && !check_byte(w, in, lane, i, writes, moves, atomic)) return false;
    }
    for (uint32_t i = offset; i < offset + bytes; i++) own[i] = serial;
    if (atomic)
        for (uint32_t i = offset; i < offset + bytes; i++) l->reader[w->index][i] = serial;
    return true;
}

void lds_complete(struct wave *w, uint32_t serial)
{
    if (serial == 0) return;
    w->group->lds.event[serial].complete = true;
    if (w->unpublished_count == w->unpublished_capacity) {
        const uint32_t capacity = w->unpublished_capacity == 0 ? 256 : 2 * w->unpublished_capacity;
        uint32_t *grown = realloc(w->unpublished, capacity * sizeof *grown);
        if (grown == NULL) return;                                        /* never public: reported, not missed */
        w->unpublished = grown;
        w->unpublished_capacity = capacity;
    }
    w->unpublished[w->unpublished_count++] = serial;
}

/* Called when the wave has counted the barrier. */
void lds_publish(struct wave *w)
{
    for (uint32_t i = 0; i < w->unpublished_count; i++)
        w->group->lds.event[w->unpublished[i]].published = w->barriers;
    w->unpublished_count = 0;
}
