/* Grids that run beside those in front of them. */
#include "dependent.h"
#include "machine/core/address_space.h"
#include "machine/core/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* grid.run << 4 | which of the four bytes. */
enum { MARK_BYTES = 4, MARK_SHIFT = 4 };

/* ---- what memory remembers ---- */

static void make(_Atomic uint32_t **marks, const struct allocation *a)
{
    if (*marks == NULL) *marks = calloc(a->bytes / MARK_BYTES + 1, sizeof **marks);
}

void dependent_prepare(struct machine *machine)
{
    if (!machine->dependent_grids || !machine->options.check_races) return;
    for (struct global_memory *m = &machine->memory; m != NULL; m = space_next(&machine->memory, m))
        for (uint32_t i = 0; i < m->count; i++) {
            struct allocation *a = &m->allocation[i];
            if (!space_may_write(&machine->memory, a) || !space_reaches(&machine->memory, m, a)) continue;
            make(&a->writer, a);
            if (machine->early_grids) make(&a->reader, a);
        }
}

/* What was there.  The mark of a grid behind this one stays: it is the one to be told of. */
static uint32_t remember(_Atomic uint32_t *mark, uint32_t run, uint32_t mask)
{
    uint32_t old = atomic_load(mark), now;
    do {
        if (old >> MARK_SHIFT > run) return old;
        now = old >> MARK_SHIFT == run ? old | mask : run << MARK_SHIFT | mask;
    } while (now != old && !atomic_compare_exchange_weak(mark, &old, now));
    return old;
}

/* 0: nobody, or not watched. */
static uint32_t mark_at(const _Atomic uint32_t *marks, uint64_t place)
{
    return marks == NULL ? 0 : atomic_load(&marks[place]);
}

static uint32_t mask_of(uint64_t at, uint64_t begin, uint64_t end)
{
    uint32_t mask = 15;
    if (at < begin) mask &= 15u << (begin - at);
    if (at + MARK_BYTES > end) mask &= 15u >> (at + MARK_BYTES - end);
    return mask;
}

/* ---- which grids are in flight ---- */

struct grids_in_flight grids_in_flight_behind(const struct grid *grid)
{
    struct grids_in_flight flight = { .count = 0 };
    if (grid->before != NULL) flight = grids_in_flight_behind(grid->before);
    else if (grid->launch->beside != NULL) flight = *grid->launch->beside;
    if (flight.count != 0 && atomic_load(&grid->waited)) flight.count--;
    if (flight.count == MOST_IN_FLIGHT)
        memmove(&flight.grid[0], &flight.grid[1], --flight.count * sizeof flight.grid[0]);
    struct grid_in_flight *g = &flight.grid[flight.count++];
    *g = (struct grid_in_flight){ .run = grid->run, .early = grid->module->launches_dependents };
    snprintf(g->kernel, sizeof g->kernel, "%s", grid->function->name);
    return flight;
}

/* The one of the first `count` that left the mark, if any. */
static const struct grid_in_flight *find(const struct grid_in_flight *grid, uint32_t count, uint32_t mark,
                                         uint32_t mask)
{
    for (uint32_t i = 0; (mark & mask) != 0 && i < count; i++)
        if (grid[i].run == mark >> MARK_SHIFT) return &grid[i];
    return NULL;
}

void dependent_wait(struct warp *w, uint32_t lanes)
{
    struct grid *grid = w->cta->cluster->grid;
    atomic_store_explicit(&grid->waited, true, memory_order_relaxed);
    if (grid->launch->beside != NULL) checks_learn_grids(w, lanes);
}

/* ---- accesses ---- */

static trap report(struct warp *w, const struct insn *in, uint32_t lane, const struct grid_in_flight *g,
                   uint64_t address, bool writes, bool written)
{
    return warp_breaks(w, in, lane, RULE_DEPENDENT_GRID,
                      "%s the byte at global address 0x%llx, which is %s by kernel %s, launched before in the stream "
                      "and perhaps still running: no griddepcontrol.wait of this thread, of one that it is ordered "
                      "behind, or of a grid between orders the two (PTX ISA, 9.7.13.13 griddepcontrol)",
                      writes ? "overwrites" : "reads", (unsigned long long)address, written ? "written" : "read",
                      g->kernel);
}

/* Reads are over when the next grid begins, unless it begins early; and those of a grid that has itself begun early
 * are known to the one in front. */
static bool keeps_reads(const struct grid *grid) { return grid->module->launches_dependents || grid->before != NULL; }

/* This grid still runs where one behind it has been: that one's thread has not waited. */
static trap report_early(struct warp *w, const struct insn *in, uint32_t lane, uint32_t run, uint64_t address,
                         bool writes, bool written)
{
    const struct grid *grid = w->cta->cluster->grid, *behind = grid + (run - grid->run);
    return warp_breaks(w, in, lane, RULE_DEPENDENT_GRID,
                      "%s the byte at global address 0x%llx, which was %s by kernel %s, launched behind this one and "
                      "begun before it has ended: no griddepcontrol.wait of that kernel's thread, or of one that it is "
                      "ordered behind, orders the two (PTX ISA, 9.7.13.13 griddepcontrol)",
                      writes ? "overwrites" : "reads", (unsigned long long)address, written ? "written" : "read",
                      behind->function->name);
}

/* The mark of a grid behind this one. */
static bool is_early(const struct grid *grid, uint32_t mark, uint32_t mask)
{
    return grid->followed && (mark & mask) != 0 && mark >> MARK_SHIFT > grid->run;
}

/* The bytes [begin, end) of an allocation; unordered: how many of the grids in flight are not ordered before this. */
static trap visit(struct warp *w, const struct insn *in, uint32_t lane, const struct allocation *a, uint64_t begin,
                  uint64_t end, bool writes, uint32_t unordered)
{
    const struct grid *grid = w->cta->cluster->grid;
    for (uint64_t at = begin & ~(uint64_t)(MARK_BYTES - 1); at < end; at += MARK_BYTES) {
        const uint32_t mask = mask_of(at, begin, end);
        const uint64_t place = at / MARK_BYTES;
        /* its own mark first: of two that meet here on two host threads, one sees the other's */
        uint32_t writer = writes ? remember(&a->writer[place], grid->run, mask) : 0, reader = 0;
        if (!writes && a->reader != NULL && keeps_reads(grid)) remember(&a->reader[place], grid->run, mask);
        if (!writes) writer = mark_at(a->writer, place);
        else reader = mark_at(a->reader, place);
        if (is_early(grid, writer, mask))
            return report_early(w, in, lane, writer >> MARK_SHIFT, a->base + at, writes, true);
        if (is_early(grid, reader, mask))
            return report_early(w, in, lane, reader >> MARK_SHIFT, a->base + at, writes, false);
        if (unordered == 0) continue;
        const struct grid_in_flight *flight = grid->launch->beside->grid, *g = find(flight, unordered, writer, mask);
        if (g != NULL) return report(w, in, lane, g, a->base + at, writes, true);
        g = find(flight, unordered, reader, mask);
        if (g != NULL && g->early) return report(w, in, lane, g, a->base + at, writes, false);
    }
    return TRAP_NONE;
}

/* Whoever has waited is behind the grid directly in front, and behind those that that one, which has ended, has waited
 * for. */
static uint32_t unordered_grids(const struct warp *w, const knowledge *known)
{
    const struct cluster_clocks *c = w->cta->cluster->clocks;
    const struct grid *grid = w->cta->cluster->grid;
    const struct grids_in_flight *flight = grid->launch->beside;
    if (flight == NULL || c->exhausted || flight->count == 0) return 0;
    if (known[grids_actor(c)] == 0) return flight->count;
    uint32_t count = flight->count - 1;
    for (const struct grid *g = grid->before; g != NULL && count != 0 && atomic_load(&g->waited); g = g->before) {
        const struct grids_in_flight *its = g->launch->beside;
        if (its == NULL || its->count == 0 || its->grid[its->count - 1].run != flight->grid[count - 1].run) break;
        count--;
    }
    return count;
}

trap dependent_bytes(struct warp *w, const struct insn *in, uint32_t lane, const knowledge *known, uint64_t address,
                     uint64_t bytes, bool writes)
{
    const struct grid *grid = w->cta->cluster->grid;
    if (!grid->machine->dependent_grids || bytes == 0) return TRAP_NONE;
    const uint32_t unordered = unordered_grids(w, known);
    if (unordered == 0 && !writes && !grid->followed && !keeps_reads(grid)) return TRAP_NONE;
    const struct allocation *a = w->recent;
    if (a == NULL || address - a->base >= a->bytes) a = space_find(&grid->machine->memory, address);
    if (a == NULL || a->writer == NULL) return TRAP_NONE;
    const uint64_t begin = address - a->base, end = begin + bytes < a->bytes ? begin + bytes : a->bytes;
    return visit(w, in, lane, a, begin, end, writes, unordered);
}

trap dependent_lanes(struct warp *w, const struct insn *in, const struct access *access)
{
    if (!w->cta->cluster->grid->machine->dependent_grids) return TRAP_NONE;
    FOR_LANES(l, access->global) {
        const trap t = dependent_bytes(w, in, l, known_to(w, l), access->address[l], access->bytes, access->writes);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}
