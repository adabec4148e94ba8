/* Phases and counts of mbarrier objects, and what can be wrong with their use. */
#include "mbarrier.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the table of a CTA ---- */

static struct mbarrier *find(const struct cta *cta, uint32_t offset)
{
    const struct mbarrier_table *table = cta->mbarriers;
    for (uint32_t i = 0; table != NULL && i < table->count; i++)
        if (table->barrier[i].offset == offset) return &table->barrier[i];
    return NULL;
}

static struct mbarrier *find_or_add(struct cta *cta, uint32_t offset)
{
    struct mbarrier *found = find(cta, offset);
    if (found != NULL) return found;
    if (cta->mbarriers == NULL) cta->mbarriers = calloc(1, sizeof *cta->mbarriers);
    struct mbarrier_table *table = cta->mbarriers;
    if (table == NULL) return NULL;
    if (table->count == table->capacity) {
        const uint32_t capacity = table->capacity == 0 ? 16 : 2 * table->capacity;
        struct mbarrier *larger = realloc(table->barrier, capacity * sizeof *larger);
        if (larger == NULL) return NULL;
        table->barrier = larger;
        table->capacity = capacity;
    }
    found = &table->barrier[table->count++];
    *found = (struct mbarrier){ .offset = offset };
    return found;
}

void mbarriers_close(struct cta *cta)
{
    struct mbarrier_table *table = cta->mbarriers;
    if (table == NULL) return;
    for (uint32_t i = 0; i < table->count; i++) free(table->barrier[i].waited);
    free(table->barrier);
    free(table);
    cta->mbarriers = NULL;
}

bool mbarrier_describe(const struct cta *cta, uint32_t offset, char *text, size_t size)
{
    const struct mbarrier *b = find(cta, offset);
    if (b == NULL || !b->live) return false;
    snprintf(text, size, "phase %llu: %u of %u arrivals pending, tx-count %d", (unsigned long long)b->phase, b->pending,
             b->expected, b->tx);
    return true;
}

uint32_t mbarrier_parity(const struct cta *cta, uint32_t offset)
{
    const struct mbarrier *b = find(cta, offset);
    return b == NULL ? 0 : (uint32_t)(b->phase & 1);
}

/* ---- access ---- */

static trap wrong(struct warp *w, const struct insn *in, uint32_t lane, const struct cta *cta, const struct mbarrier *b,
                  const char *sentence)
{
    char state[96];
    mbarrier_describe(cta, b->offset, state, sizeof state);
    return warp_fault(w, in, lane, REPORT_BARRIER, "%s mbarrier 0x%x (%s)", sentence, cta->shared_base | b->offset,
                      state);
}

/* The access to the object's bytes as the checks of races see it: init and inval are writes, all other operations order
 * themselves, so that they conflict with these two only. */
static trap touch(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset, bool writes)
{
    struct access a = {
        .space = SPACE_SHARED_CLUSTER, .bytes = MBARRIER_BYTES, .reads = !writes, .writes = writes, .mbarrier = true
    };
    a.address[lane] = cta->shared_base | offset;
    a.host[lane] = cta->shared + offset;
    a.owner[lane] = cta;
    a.offset[lane] = offset;
    return checks_shared(w, in, 1u << lane, &a);
}

static trap reach(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                  struct mbarrier **b)
{
    const uint32_t address = cta->shared_base | offset;
    if (cta->live_threads == 0)
        return warp_fault(w, in, lane, REPORT_BARRIER,
                          "uses the mbarrier at shared address 0x%x of a CTA that has exited", address);
    *b = find(cta, offset);
    if (*b == NULL)
        return warp_fault(w, in, lane, REPORT_BARRIER,
                          "uses the mbarrier at shared address 0x%x, which no mbarrier.init has initialised", address);
    if (!(*b)->live)
        return warp_fault(w, in, lane, REPORT_BARRIER,
                          "uses the mbarrier at shared address 0x%x after the mbarrier.inval of line %u", address,
                          (*b)->changed->line);
    return TRAP_NONE;
}

static trap use(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                struct mbarrier **b)
{
    const trap t = reach(w, in, lane, cta, offset, b);
    return t != TRAP_NONE ? t : touch(w, in, lane, cta, offset, false);
}

trap mbarrier_access_generic(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset)
{
    struct mbarrier *b;
    return use(w, in, lane, cta, offset, &b);
}

trap mbarrier_access(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset)
{
    struct mbarrier *b;
    const trap t = use(w, in, lane, cta, offset, &b);
    if (t != TRAP_NONE || cta == w->cta || b->fenced || cta->cluster->clocks == NULL) return t;
    return warp_breaks(w, in, lane, RULE_MBARRIER_INIT_FENCE,
                      "lets the async proxy signal the mbarrier at shared address 0x%x of CTA rank %u, whose "
                      "mbarrier.init at PTX line %u no fence.mbarrier_init and no fence.proxy.async of the same thread "
                      "follows",
                      cta->shared_base | offset, cta->rank, b->changed->line);
}

void mbarrier_fence(struct warp *w, uint32_t lanes)
{
    struct mbarrier_table *table = w->cta->mbarriers;
    for (uint32_t i = 0; table != NULL && i < table->count; i++) {
        struct mbarrier *b = &table->barrier[i];
        if (b->maker == w && (lanes >> b->maker_lane & 1) != 0) b->fenced = true;
    }
}

trap mbarrier_target(struct warp *w, const struct insn *in, uint32_t lane, enum space space, bool own_cta,
                     uint64_t address, struct cta **cta, uint32_t *offset)
{
    struct access a = { .space = space, .bytes = MBARRIER_BYTES, .locates = true };
    a.address[lane] = address;
    const trap t = memory_access(w, in, 1u << lane, &a);
    if (t != TRAP_NONE) return t;
    *cta = a.owner[lane];
    *offset = a.offset[lane];
    if (*cta == NULL)
        return warp_fault(w, in, lane, REPORT_BARRIER,
                          "names an mbarrier at address 0x%llx, which is not in shared memory",
                          (unsigned long long)address);
    if (own_cta && *cta != w->cta)
        return warp_fault(w, in, lane, REPORT_BARRIER,
                          "names the mbarrier at address 0x%llx of CTA rank %u; this form takes those of its own CTA",
                          (unsigned long long)address, (*cta)->rank);
    return TRAP_NONE;
}

/* ---- a life ---- */

static void mark(struct cta *cta, uint32_t offset, uint8_t clear, uint8_t set)
{
    for (uint32_t i = 0; i < MBARRIER_BYTES; i++)
        cta->shadow.state[offset + i] = (uint8_t)((cta->shadow.state[offset + i] & ~clear) | set);
}

trap mbarrier_init(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                   uint32_t count)
{
    const uint32_t address = cta->shared_base | offset;
    const struct mbarrier *old = find(cta, offset);
    if (old != NULL && old->live)
        return warp_fault(
            w, in, lane, REPORT_BARRIER,
            "initialises the mbarrier at shared address 0x%x, which line %u has initialised and no mbarrier.inval has "
            "ended",
            address, old->changed->line);
    if (count == 0 || count > MBARRIER_MOST)
        return warp_fault(w, in, lane, REPORT_BARRIER, "initialises an mbarrier for %u arrivals; 1 to %d are possible",
                          count, MBARRIER_MOST);
    const trap t = touch(w, in, lane, cta, offset, true);
    if (t != TRAP_NONE) return t;
    struct mbarrier *b = find_or_add(cta, offset);
    if (b == NULL) return warp_fault(w, in, lane, REPORT_RESOURCES, "finds no host memory for an mbarrier");
    free(b->waited);
    *b = (struct mbarrier){ .offset = offset, .live = true, .expected = count, .pending = count, .changed = in,
                             .maker = w, .maker_lane = lane };
    mark(cta, offset, 0, SHADOW_WRITTEN | SHADOW_BARRIER);
    return TRAP_NONE;
}

trap mbarrier_inval(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset)
{
    struct mbarrier *b;
    trap t = reach(w, in, lane, cta, offset, &b);
    if (t == TRAP_NONE) t = touch(w, in, lane, cta, offset, true);
    if (t != TRAP_NONE) return t;
    if (b->tx != 0) return wrong(w, in, lane, cta, b, "invalidates, while copies have not completed on it,");
    b->live = false;
    b->changed = in;
    mark(cta, offset, SHADOW_BARRIER | SHADOW_WRITTEN, 0);
    return TRAP_NONE;
}

/* ---- phases ---- */

static void complete_phase(struct cta *cta, struct mbarrier *b)
{
    if (b->pending != 0 || b->tx != 0) return;
    b->pending = b->expected;
    b->phase++;
    cluster_event(cta->cluster);
}

static uint64_t object_of(const struct cta *cta, const struct mbarrier *b)
{
    return mbarrier_object(cta, b->offset, b->phase & 1);
}

static trap change_tx(struct warp *w, const struct insn *in, uint32_t lane, const struct cta *cta, struct mbarrier *b,
                      int64_t change)
{
    const int64_t tx = b->tx + change;
    if (tx < -MBARRIER_MOST || tx > MBARRIER_MOST)
        return wrong(w, in, lane, cta, b,
                     change > 0 ? "expects more bytes than a tx-count holds (2^20-1) at"
                                : "completes more bytes than a tx-count holds (2^20-1) at");
    b->tx = (int32_t)tx;
    return TRAP_NONE;
}

trap mbarrier_expect_tx(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                        uint32_t bytes)
{
    struct mbarrier *b;
    trap t = use(w, in, lane, cta, offset, &b);
    if (t == TRAP_NONE) t = change_tx(w, in, lane, cta, b, bytes);
    if (t == TRAP_NONE) complete_phase(cta, b);
    return t;
}

trap mbarrier_complete_tx(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                          uint32_t bytes, struct async_token *token)
{
    struct mbarrier *b;
    trap t = reach(w, in, lane, cta, offset, &b);
    if (t == TRAP_NONE) t = change_tx(w, in, lane, cta, b, -(int64_t)bytes);
    if (t != TRAP_NONE) return t;
    if (token != NULL) async_publish(token, object_of(cta, b));
    complete_phase(cta, b);
    return TRAP_NONE;
}

/* ---- arrivals ----
 *
 * A state: bits 19:0 pending arrivals before, 34:20 the object's place / 8, 61:35 the phase, 62 of a .noComplete form,
 * 63 set. */

enum { STATE_PLACE = 20, STATE_PHASE = 35 };
#define STATE_NO_COMPLETE (UINT64_C(1) << 62)
#define STATE_VALID       (UINT64_C(1) << 63)
#define STATE_PHASES      ((UINT64_C(1) << 27) - 1)
#define STATE_PLACES      ((UINT64_C(1) << 15) - 1)

static uint64_t state_of(const struct mbarrier *b, bool no_complete)
{
    return STATE_VALID | (no_complete ? STATE_NO_COMPLETE : 0) | (b->phase & STATE_PHASES) << STATE_PHASE |
           ((uint64_t)(b->offset / MBARRIER_BYTES) & STATE_PLACES) << STATE_PLACE | b->pending;
}

static trap subtract(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, struct mbarrier *b,
                     uint32_t count)
{
    if (count > b->pending) {
        char sentence[64];
        snprintf(sentence, sizeof sentence, "arrives %u times, more often than is awaited, at", count);
        return wrong(w, in, lane, cta, b, sentence);
    }
    b->pending -= count;
    complete_phase(cta, b);
    return TRAP_NONE;
}

trap mbarrier_arrive(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                     struct arrival arrival, uint64_t *state)
{
    struct mbarrier *b;
    trap t = use(w, in, lane, cta, offset, &b);
    if (t == TRAP_NONE && arrival.expect != 0) t = change_tx(w, in, lane, cta, b, arrival.expect);
    if (t != TRAP_NONE) return t;
    if (arrival.count == 0 || arrival.count > MBARRIER_MOST)
        return warp_fault(w, in, lane, REPORT_BARRIER, "arrives %u times; 1 to %d are possible", arrival.count,
                          MBARRIER_MOST);
    if (arrival.no_complete && arrival.count == b->pending && b->tx == 0)
        return wrong(w, in, lane, cta, b, "completes, in spite of .noComplete, the phase of");
    *state = state_of(b, arrival.no_complete);
    if (arrival.drop) {
        if (arrival.count > b->expected) return wrong(w, in, lane, cta, b, "drops more arrivals than are expected at");
        b->expected -= arrival.count;
    }
    if (arrival.relaxed) checks_release_relaxed(w, 1u << lane, object_of(cta, b));
    else checks_release(w, 1u << lane, object_of(cta, b));
    return subtract(w, in, lane, cta, b, arrival.count);
}

trap mbarrier_arrive_async(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                           struct async_token *token)
{
    struct mbarrier *b;
    const trap t = reach(w, in, lane, cta, offset, &b);
    if (t != TRAP_NONE) return t;
    if (token != NULL) async_publish(token, object_of(cta, b));
    return subtract(w, in, lane, cta, b, 1);
}

trap mbarrier_add_pending(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset)
{
    struct mbarrier *b;
    const trap t = use(w, in, lane, cta, offset, &b);
    if (t != TRAP_NONE) return t;
    if (b->pending == MBARRIER_MOST) return wrong(w, in, lane, cta, b, "raises the pending arrivals beyond 2^20-1 at");
    b->pending++;
    return TRAP_NONE;
}

trap mbarrier_pending_count(struct warp *w, const struct insn *in, uint32_t lane, uint64_t state, uint32_t *count)
{
    if ((state & STATE_VALID) == 0 || (state & STATE_NO_COMPLETE) == 0)
        return warp_fault(
            w, in, lane, REPORT_BARRIER,
            "reads the pending count of 0x%llx, which is no state of an mbarrier.arrive.noComplete or "
            "arrive_drop.noComplete",
            (unsigned long long)state);
    *count = (uint32_t)(state & MBARRIER_MOST);
    return TRAP_NONE;
}

/* ---- waiting ---- */

/* The phase that is meant: the one under way, or the one before (b->phase - 1, also when b->phase is 0). */
static trap awaited_phase(struct warp *w, const struct insn *in, uint32_t lane, const struct cta *cta,
                          const struct mbarrier *b, struct awaited awaited, uint64_t *phase)
{
    if (awaited.by_parity) {
        if (awaited.value > 1)
            return warp_fault(w, in, lane, REPORT_BARRIER, "waits for parity %llu; parities are 0 and 1",
                              (unsigned long long)awaited.value);
        *phase = (b->phase & 1) == awaited.value ? b->phase : b->phase - 1;
        return TRAP_NONE;
    }
    const uint64_t state = awaited.value;
    if ((state & STATE_VALID) == 0
        || (state >> STATE_PLACE & STATE_PLACES) != (b->offset / MBARRIER_BYTES & STATE_PLACES))
        return wrong(w, in, lane, cta, b, "waits with a value that no mbarrier.arrive gave as state of");
    const uint64_t behind = (b->phase - (state >> STATE_PHASE)) & STATE_PHASES;
    if (behind > 1) return wrong(w, in, lane, cta, b, "waits with the state of a phase older than the last one at");
    *phase = b->phase - behind;
    return TRAP_NONE;
}

/* Threads that found a phase incomplete and look again when two phases have ended cannot tell the new phase from
 * theirs. */
static trap check_waited(struct warp *w, const struct insn *in, uint32_t lane, const struct cta *cta,
                         struct mbarrier *b, uint64_t phase, enum found *found)
{
    const uint32_t thread = w->index * LANES + lane;
    const uint32_t now = (uint32_t)phase + 1, before = b->waited == NULL ? 0 : b->waited[thread];
    if (before != 0 && before != now && ((before ^ now) & 1) == 0) {
        char sentence[128];
        snprintf(sentence, sizeof sentence,
                 "waits for parity %u, of phase %u; that phase and the next have ended meanwhile:",
                 (unsigned)(phase & 1), before - 1);
        return wrong(w, in, lane, cta, b, sentence);
    }
    *found = phase != b->phase ? FOUND_COMPLETE : before == now ? FOUND_INCOMPLETE_AGAIN : FOUND_INCOMPLETE;
    if (*found == FOUND_COMPLETE) {
        if (before != 0 && before == now) b->waited[thread] = 0;
        return TRAP_NONE;
    }
    if (b->waited == NULL) b->waited = calloc((size_t)cta->warps * LANES, sizeof *b->waited);
    if (b->waited != NULL) b->waited[thread] = now;
    return TRAP_NONE;
}

trap mbarrier_test(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                   struct awaited awaited, enum found *found)
{
    struct mbarrier *b;
    uint64_t phase = 0;
    trap t = use(w, in, lane, cta, offset, &b);
    if (t == TRAP_NONE) t = awaited_phase(w, in, lane, cta, b, awaited, &phase);
    if (t == TRAP_NONE) t = check_waited(w, in, lane, cta, b, phase, found);
    if (t != TRAP_NONE) return t;
    if (*found != FOUND_COMPLETE) return TRAP_NONE;
    if (awaited.relaxed) checks_acquire_relaxed(w, 1u << lane, mbarrier_object(cta, offset, phase & 1));
    else checks_acquire(w, 1u << lane, mbarrier_object(cta, offset, phase & 1));
    return TRAP_NONE;
}
