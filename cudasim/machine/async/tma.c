/* Operations of TMA: they move rows between global and shared memory, and signal. */
#include "tma.h"
#include "agent.h"
#include "bulk_group.h"
#include "mbarrier.h"
#include "machine/profile/watch.h"
#include "machine/core/address_space.h"
#include "machine/core/random.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 16, MOST_STEPS = 2000, MOST_PARTS = 8 };

struct tma_operation {
    struct agent_operation agent;     /* cta: whose shared memory it reads or writes */
    struct async_token *token;        /* of what it does in shared memory */
    struct async_token *global_token; /* stores: of what it writes to global memory */
    struct tma_plan plan;             /* its row: see below */
    struct cta *to;                   /* of an exchange */
    int64_t distance;
    struct tma_barrier barrier;
    uint32_t group;
    uint32_t done, first, stride, batch; /* rows moved; the order is first, first + stride, ... modulo the count */
    uint8_t *held;                       /* stores: what was read */
    struct tma_row row[];
};

/* ---- one row ---- */

/* Global memory is shared with other host threads: bytes go in the largest pieces that are aligned. */
static void from_global(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes;) {
        if (((uintptr_t)(from + i) & 7) == 0 && bytes - i >= 8) {
            const uint64_t value = __atomic_load_n((const uint64_t *)(const void *)(from + i), __ATOMIC_RELAXED);
            memcpy(to + i, &value, 8);
            i += 8;
        } else {
            to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
            i++;
        }
    }
}

static void to_global(uint8_t *to, const uint8_t *from, uint32_t bytes, uint16_t mask)
{
    for (uint32_t i = 0; i < bytes;) {
        if (mask == UINT16_MAX && ((uintptr_t)(to + i) & 7) == 0 && bytes - i >= 8) {
            uint64_t value;
            memcpy(&value, from + i, 8);
            __atomic_store_n((uint64_t *)(void *)(to + i), value, __ATOMIC_RELAXED);
            i += 8;
        } else {
            if ((mask >> i % CHUNK & 1) != 0) __atomic_store_n(to + i, from[i], __ATOMIC_RELAXED);
            i++;
        }
    }
}

/* Packed bytes that go together: 16, or the 16 elements of a padded type, which take a chunk of 16 in shared memory. */
static uint32_t chunk_bytes(const struct tensor_layout *t)
{
    const struct tensor_type_info *type = &tensor_types[t->type];
    return type->packed != type->padded ? type->packed : CHUNK;
}

/* Halves of 8 bytes: the finest grain of a swizzle. */
static void put_chunk(struct cta *cta, const struct tensor_layout *t, uint32_t offset, const uint8_t *bytes,
                      uint32_t count)
{
    for (uint32_t at = 0; at < count; at += 8) {
        const uint32_t n = count - at < 8 ? count - at : 8;
        memcpy(cta->shared + tensor_swizzle_address(t, offset + at), bytes + at, n);
    }
    async_written(cta, tensor_swizzle_address(t, offset) & ~(CHUNK - 1u), count);
}

static void get_chunk(const struct cta *cta, const struct tensor_layout *t, uint32_t offset, uint8_t *bytes,
                      uint32_t count)
{
    for (uint32_t at = 0; at < count; at += 8)
        memcpy(bytes + at, cta->shared + tensor_swizzle_address(t, offset + at), count - at < 8 ? count - at : 8);
}

/* f32 to tf32, to nearest even, as loads of types tf32 and tf32.ftz do: subnormals stay, and stores change nothing, on
 * an H200. */
static uint32_t round_tf32(uint32_t bits)
{
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fffe000;
    return (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
}

static void fill(uint8_t *bytes, uint32_t count, bool nan)
{
    static const uint8_t pattern[2] = { 0xf7, 0x7f }; /* the out-of-bounds NaN: 0x7ff7 in every 16 bits, whatever the
                                                         type */
    for (uint32_t i = 0; i < count; i++) bytes[i] = nan ? pattern[i % 2] : 0;
}

static void load_row(const struct tma_operation *o, const struct tma_row *row)
{
    if (!o->plan.read_already) watch_moved(&o->agent, MOVED_FROM_GLOBAL, row->valid);
    watch_moved(&o->agent, MOVED_TO_SHARED, o->plan.row_bytes);
    const struct tensor_layout *t = &o->plan.layout;
    const uint32_t chunk = chunk_bytes(t), end = row->skip + row->valid;
    for (uint32_t at = 0, to = row->shared; at < o->plan.row_bytes; at += chunk, to += CHUNK) {
        uint8_t bytes[CHUNK];
        const uint32_t count = o->plan.row_bytes - at < chunk ? o->plan.row_bytes - at : chunk;
        const uint32_t low = row->skip > at ? row->skip : at, high = end < at + count ? end : at + count;
        if (low != at || high != at + count) fill(bytes, count, t->nan_fill != 0);
        if (low < high) from_global(bytes + (low - at), row->host + (low - row->skip), high - low);
        if (t->type == TENSOR_MAP_TF32 || t->type == TENSOR_MAP_TF32_FTZ)
            for (uint32_t i = low; i + 4 <= high; i += 4) {
                uint32_t value;
                memcpy(&value, bytes + (i - at), 4);
                value = round_tf32(value);
                memcpy(bytes + (i - at), &value, 4);
            }
        put_chunk(o->agent.cta, t, to, bytes, count);
    }
}

/* Sixteen elements of b6p2x16, one a byte in shared memory, to 12 bytes. */
static void pack_six_bits(uint8_t *bytes)
{
    uint8_t packed[12] = { 0 };
    for (uint32_t i = 0; i < 16; i++) {
        const uint32_t value = (bytes[i] & 0x3fu) << (6 * i % 8);
        packed[6 * i / 8] |= (uint8_t)value;
        if (6 * i % 8 > 2) packed[6 * i / 8 + 1] |= (uint8_t)(value >> 8);
    }
    memcpy(bytes, packed, sizeof packed);
}

/* The bytes of a row that are to be stored, to held[skip ...). */
static void read_row(const struct tma_operation *o, const struct tma_row *row, uint8_t *held)
{
    watch_moved(&o->agent, MOVED_FROM_SHARED, row->valid);
    const struct tensor_layout *t = &o->plan.layout;
    const uint32_t chunk = chunk_bytes(t);
    for (uint32_t at = 0, from = row->shared; at < row->skip + row->valid; at += chunk, from += CHUNK) {
        uint8_t bytes[CHUNK];
        get_chunk(o->agent.cta, t, from, bytes, CHUNK);
        if (t->type == TENSOR_MAP_B6X16_P32) pack_six_bits(bytes);
        memcpy(held + at, bytes, o->plan.row_bytes - at < chunk ? o->plan.row_bytes - at : chunk);
    }
}

static void write_row(const struct tma_operation *o, const struct tma_row *row, const uint8_t *held)
{
    watch_moved(&o->agent, MOVED_TO_GLOBAL, row->valid);
    if (o->plan.combine != NULL) o->plan.combine(o->plan.kind, row->host, held + row->skip, row->valid);
    else to_global(row->host, held + row->skip, row->valid, o->plan.byte_mask);
}

static void exchange_row(const struct tma_operation *o, const struct tma_row *row)
{
    watch_moved(&o->agent, MOVED_FROM_SHARED, row->valid);
    watch_moved(&o->agent, MOVED_TO_SHARED, row->valid);
    const uint32_t to = (uint32_t)(row->shared + o->distance);
    uint8_t *bytes = o->to->shared + to;
    const uint8_t *source = o->agent.cta->shared + row->shared;
    if (o->plan.combine != NULL) o->plan.combine(o->plan.kind, bytes, source, row->valid);
    else memcpy(bytes, source, row->valid);
    async_written(o->to, to, row->valid);
}

/* ---- steps ---- */

/* A CTA's end tells of what still reads its shared memory (tma_cta_ends), which is there until its cluster ends. */
static trap is_alive(const struct tma_operation *o, const struct cta *cta, const char *verb)
{
    const bool reads = *verb == 'r';
    if (cta->live_threads != 0 || (reads && rule_level(o->agent.warp, RULE_ENDED_CTA_READ) != RULE_STOP))
        return TRAP_NONE;
    return warp_fault(o->agent.warp, o->agent.in, o->agent.lane, REPORT_ASYNC,
                      "%s shared memory of CTA rank %u, all of whose threads have exited without waiting for it", verb,
                      cta->rank);
}

/* The next rows of this step, by position in the operation's own order; false: that was all. */
static bool next_row(struct tma_operation *o, uint32_t *left, uint32_t *index)
{
    if (o->done == o->plan.count || *left == 0) return false;
    *index = (uint32_t)((o->first + (uint64_t)o->done * o->stride) % o->plan.count);
    o->done++, --*left;
    return true;
}

static trap signal_barrier(struct tma_operation *o)
{
    const struct tma_barrier *b = &o->barrier;
    return mbarrier_complete_tx(o->agent.warp, o->agent.in, o->agent.lane, b->cta, b->offset, b->bytes, o->token);
}

static trap step_load(struct agent_operation *operation, bool *done)
{
    struct tma_operation *o = (struct tma_operation *)operation;
    const trap t = is_alive(o, operation->cta, "writes");
    if (t != TRAP_NONE) return t;
    for (uint32_t left = o->batch, i; next_row(o, &left, &i);) load_row(o, &o->row[i]);
    *done = o->done == o->plan.count;
    return *done ? signal_barrier(o) : TRAP_NONE;
}

static trap step_exchange(struct agent_operation *operation, bool *done)
{
    struct tma_operation *o = (struct tma_operation *)operation;
    trap t = is_alive(o, operation->cta, "reads");
    if (t == TRAP_NONE) t = is_alive(o, o->to, "writes");
    if (t != TRAP_NONE) return t;
    for (uint32_t left = o->batch, i; next_row(o, &left, &i);) exchange_row(o, &o->row[i]);
    *done = o->done == o->plan.count;
    return *done ? signal_barrier(o) : TRAP_NONE;
}

static trap step_read(struct agent_operation *operation, bool *done)
{
    struct tma_operation *o = (struct tma_operation *)operation;
    for (uint32_t left = o->batch, i; next_row(o, &left, &i);)
        read_row(o, &o->row[i], o->held + (size_t)i * o->plan.row_bytes);
    *done = o->done == o->plan.count;
    return TRAP_NONE;
}

static trap step_write(struct agent_operation *operation, bool *done)
{
    struct tma_operation *o = (struct tma_operation *)operation;
    for (uint32_t left = o->batch, i; next_row(o, &left, &i);)
        write_row(o, &o->row[i], o->held + (size_t)i * o->plan.row_bytes);
    *done = o->done == o->plan.count;
    return TRAP_NONE;
}

/* The mbarrier was signalled by the last step. */
static void complete_nothing(struct agent_operation *operation) { (void)operation; }

static void complete_write(struct agent_operation *operation)
{
    struct tma_operation *o = (struct tma_operation *)operation;
    bulk_group_finished(operation->warp, operation->lane, o->group, o->token, o->global_token);
}

static void drop(struct agent_operation *operation)
{
    struct tma_operation *o = (struct tma_operation *)operation;
    async_end(o->token);
    async_end(o->global_token);
    free(o->held);
    o->token = o->global_token = NULL;
    o->held = NULL;
}

static void complete_read(struct agent_operation *operation);
static const struct agent_kind load_kind = {
    .name = "bulk load", .engine = ENGINE_TMA, .step = step_load, .complete = complete_nothing, .drop = drop
};
static const struct agent_kind exchange_kind = {
    .name = "bulk copy to another CTA", .engine = ENGINE_TMA, .step = step_exchange, .complete = complete_nothing,
    .drop = drop
};
static const struct agent_kind read_kind = {
    .name = "bulk store", .engine = ENGINE_TMA, .step = step_read, .complete = complete_read, .drop = drop
};
static const struct agent_kind write_kind = {
    .name = "bulk store", .engine = ENGINE_TMA, .step = step_write, .complete = complete_write, .drop = drop
};

/* ---- starting ---- */

static uint32_t common_divisor(uint32_t a, uint32_t b) { return b == 0 ? a : common_divisor(b, a % b); }

/* An order of the rows and a number of parts; in order and at once under the earliest schedule. */
static void choose_order(struct tma_operation *o)
{
    struct cluster *c = o->agent.cluster;
    const uint32_t count = o->plan.count;
    const bool random = c->grid->machine->options.schedule == SCHEDULE_RANDOM;
    o->done = o->first = 0;
    o->stride = 1;
    o->batch = count;
    if (!random || count < 2) return;
    o->first = (uint32_t)(cluster_random(c) % count);
    o->stride = 1 + (uint32_t)(cluster_random(c) % (count - 1));
    while (common_divisor(o->stride, count) != 1) o->stride--;
    const uint32_t parts = 1 + (uint32_t)(cluster_random(c) % MOST_PARTS);
    o->batch = (count + parts - 1) / parts;
}

/* Reading has ended: writing begins some time later, as an operation of its own. */
static void complete_read(struct agent_operation *operation)
{
    struct tma_operation *o = (struct tma_operation *)operation;
    const size_t bytes = sizeof *o + o->plan.count * sizeof o->row[0];
    bulk_group_read(operation->warp, operation->lane, o->group, o->token);
    struct tma_operation *writer = malloc(bytes);
    if (writer == NULL) {
        for (uint32_t i = 0; i < o->plan.count; i++) write_row(o, &o->row[i], o->held + (size_t)i * o->plan.row_bytes);
        complete_write(operation);
        return;
    }
    memcpy(writer, o, bytes);
    writer->agent.kind = &write_kind;
    o->token = o->global_token = NULL;
    o->held = NULL;
    choose_order(writer);
    agent_start(&writer->agent, 0, MOST_STEPS);
}

static trap no_memory(const struct tma_plan *plan)
{
    return warp_fault(plan->warp, plan->in, plan->lane, REPORT_RESOURCES, "finds no host memory for its operation");
}

static struct tma_operation *new_operation(const struct tma_plan *plan, const struct agent_kind *kind, struct cta *cta)
{
    struct tma_operation *o = malloc(sizeof *o + plan->count * sizeof o->row[0]);
    if (o == NULL) return NULL;
    *o = (struct tma_operation){
        .agent = { .kind = kind, .cluster = cta->cluster, .cta = cta, .warp = plan->warp, .in = plan->in,
                   .lane = plan->lane },
        .plan = *plan
    };
    memcpy(o->row, plan->row, plan->count * sizeof o->row[0]);
    o->plan.row = NULL;
    o->token = async_begin(plan->warp, plan->in, 1u << plan->lane, PROXY_ASYNC);
    if (o->token != NULL) return o;
    free(o);
    return NULL;
}

static trap start(struct tma_operation *o, trap t)
{
    if (t != TRAP_NONE) {
        drop(&o->agent);
        free(o);
        return t;
    }
    choose_order(o);
    agent_start(&o->agent, 0, MOST_STEPS);
    return TRAP_NONE;
}

/* ---- the bytes that an operation touches ---- */

typedef trap touch_function(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes);

static trap touch_row(const struct tma_operation *o, const struct tma_row *row, uint32_t bytes, touch_function *touch)
{
    const struct tensor_layout *t = &o->plan.layout;
    const uint32_t chunk = chunk_bytes(t);
    if (t->swizzle == SWIZZLE_NONE && chunk == CHUNK) return touch(o->token, o->agent.cta, row->shared, bytes);
    for (uint32_t at = 0, to = row->shared; at < bytes; at += chunk, to += CHUNK) {
        const uint32_t place = tensor_swizzle_address(t, to) & ~(CHUNK - 1u);
        const trap result = touch(o->token, o->agent.cta, place, chunk);
        if (result != TRAP_NONE) return result;
    }
    return TRAP_NONE;
}

static bool is_whole(const struct tma_operation *o, const struct tma_row *row)
{
    return row->skip == 0 && row->valid == o->plan.row_bytes;
}

/* Rows that fill their pitch have no gaps, and a swizzle stays inside of a row: one range.  Of a store what is stored
 * counts. */
static trap touch_shared(const struct tma_operation *o, bool all, touch_function *touch)
{
    const bool padded = chunk_bytes(&o->plan.layout) != CHUNK;
    bool gapless = !padded;
    for (uint32_t i = 0; i < o->plan.count && gapless; i++)
        gapless = (all || is_whole(o, &o->row[i]))
                  && (i == 0 || o->row[i].shared == o->row[i - 1].shared + o->plan.row_bytes);
    if (gapless) return touch(o->token, o->agent.cta, o->row[0].shared, o->plan.count * o->plan.row_bytes);
    for (uint32_t i = 0; i < o->plan.count; i++) {
        const struct tma_row *row = &o->row[i];
        const uint32_t bytes = all ? o->plan.row_bytes : row->valid == 0 ? 0 : row->skip + row->valid;
        const trap t = bytes == 0 ? TRAP_NONE : touch_row(o, row, bytes, touch);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

static trap touch_global(const struct tma_operation *o, struct async_token *token,
                         trap (*touch)(struct async_token *token, uint64_t address, uint64_t bytes))
{
    for (uint32_t i = 0; i < o->plan.count; i++) {
        const trap t = o->row[i].valid == 0 ? TRAP_NONE : touch(token, o->row[i].address, o->row[i].valid);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

trap tma_load(const struct tma_plan *plan, struct cta *to, struct tma_barrier barrier)
{
    trap t = mbarrier_access(plan->warp, plan->in, plan->lane, barrier.cta, barrier.offset);
    if (t != TRAP_NONE) return t;
    struct tma_operation *o = new_operation(plan, &load_kind, to);
    if (o == NULL) return no_memory(plan);
    o->barrier = barrier;
    t = touch_global(o, o->token, async_reads_global);
    if (t == TRAP_NONE) t = touch_shared(o, true, async_writes);
    return start(o, t);
}

static trap check_mask(const struct tma_plan *plan, uint32_t mask)
{
    const uint32_t ctas = plan->warp->cta->cluster->ctas;
    if (mask == 0)
        return warp_fault(plan->warp, plan->in, plan->lane, REPORT_ILLEGAL, "multicasts to no CTA: the mask is 0");
    if (mask >> ctas != 0)
        return warp_fault(plan->warp, plan->in, plan->lane, REPORT_ILLEGAL,
                          "multicasts to CTA rank %u; the cluster has %u CTAs",
                          (uint32_t)__builtin_ctz(mask >> ctas) + ctas, ctas);
    return TRAP_NONE;
}

trap tma_load_each(const struct tma_plan *plan, struct cta *to, struct tma_barrier barrier, const struct operand *mask)
{
    if (mask->kind == OPERAND_NONE) return tma_load(plan, to, barrier);
    uint32_t left = (uint32_t)source_row(plan->warp, mask)[plan->lane] & 0xffff;
    struct tma_plan each = *plan;
    trap t = check_mask(plan, left);
    const uint32_t parity = barrier.cta->rank & 1;
    for (; left != 0 && t == TRAP_NONE; left &= left - 1) {
        const uint32_t rank = (uint32_t)__builtin_ctz(left);
        barrier.cta = &to->cluster->cta[barrier.of_pair ? (rank & ~1u) | parity : rank];
        t = tma_load(&each, &to->cluster->cta[rank], barrier);
        each.read_already = true;
    }
    return t;
}

/* Lanes of one instruction do not race with each other: CUTLASS lets all lanes of a warp store the same box. */
static void follow_other_lanes(struct tma_operation *o)
{
    for (struct agent_operation *a = o->agent.cluster->operations; a != NULL; a = a->next)
        if (a->kind == o->agent.kind && a->warp == o->agent.warp && a->in == o->agent.in
            && a->issued == o->agent.cluster->now)
            async_follow(o->global_token, ((struct tma_operation *)a)->global_token);
}

trap tma_store(const struct tma_plan *plan, struct cta *from)
{
    struct tma_operation *o = new_operation(plan, &read_kind, from);
    if (o == NULL) return no_memory(plan);
    o->held = malloc((size_t)plan->count * plan->row_bytes + CHUNK);
    o->global_token = async_begin(plan->warp, plan->in, 1u << plan->lane, PROXY_ASYNC);
    if (o->held == NULL || o->global_token == NULL || !bulk_group_join(plan->warp, plan->in, plan->lane, &o->group))
        return start(o, no_memory(plan));
    follow_other_lanes(o);
    trap t = touch_shared(o, false, async_reads);
    if (t == TRAP_NONE)
        t = touch_global(o, o->global_token, plan->combine != NULL ? async_adds_global : async_writes_global);
    return start(o, t);
}

trap tma_exchange(const struct tma_plan *plan, struct cta *from, struct cta *to, int64_t distance,
                  struct tma_barrier barrier)
{
    trap t = mbarrier_access(plan->warp, plan->in, plan->lane, barrier.cta, barrier.offset);
    if (t != TRAP_NONE) return t;
    struct tma_operation *o = new_operation(plan, &exchange_kind, from);
    if (o == NULL) return no_memory(plan);
    o->to = to;
    o->distance = distance;
    o->barrier = barrier;
    for (uint32_t i = 0; i < plan->count && t == TRAP_NONE; i++) {
        const struct tma_row *row = &o->row[i];
        const uint32_t offset = (uint32_t)(row->shared + distance);
        t = async_reads(o->token, from, row->shared, row->valid);
        if (t == TRAP_NONE) t = (plan->combine != NULL ? async_adds : async_writes)(o->token, to, offset, row->valid);
    }
    return start(o, t);
}

/* ---- addresses ---- */

trap tma_shared(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address, uint64_t bytes, bool any_cta,
                struct cta **cta, uint32_t *offset)
{
    *cta = address > UINT32_MAX ? NULL : shared_target(w, (uint32_t)address, offset);
    if (*cta == NULL)
        return warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS,
                          "names shared address 0x%llx, which belongs to no CTA of the cluster",
                          (unsigned long long)address);
    if (*cta != w->cta && !any_cta)
        return warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS,
                          "names shared address 0x%llx of CTA rank %u, where the CTA's own shared memory (rank %u) is "
                          "wanted",
                          (unsigned long long)address, (*cta)->rank, w->cta->rank);
    const uint32_t first = w->cta->cluster->grid->machine->device->shared_reserved, end = (*cta)->shared_bytes;
    if (*offset < first || *offset > end || bytes > end - *offset)
        return warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS,
                          "moves %llu bytes at shared address 0x%llx; the CTA has 0x%x to 0x%x (%u bytes)",
                          (unsigned long long)bytes, (unsigned long long)address, first, end, end - first);
    return TRAP_NONE;
}

trap tma_find_barrier(struct warp *w, const struct insn *in, uint32_t lane, const struct operand *address,
                      const struct cta *to, struct tma_barrier *barrier)
{
    uint64_t at[LANES];
    address_lanes(w, address, 1u << lane, at);
    const trap t = mbarrier_target(w, in, lane, SPACE_SHARED_CLUSTER, false, at[lane], &barrier->cta, &barrier->offset);
    if (t != TRAP_NONE) return t;
    if (barrier->of_pair && to->cluster->ctas % 2 != 0)
        return warp_fault(w, in, lane, REPORT_ILLEGAL,
                          "has .cta_group::2 in a cluster of %u CTAs, whose last one has no peer", to->cluster->ctas);
    const uint32_t apart = barrier->cta->rank ^ to->rank;
    if (apart == 0 || (apart == 1 && barrier->of_pair)) return TRAP_NONE;
    return warp_fault(w, in, lane, REPORT_ILLEGAL,
                      "writes shared memory of CTA rank %u and signals an mbarrier of CTA rank %u; "
                      "it has to be the same CTA%s",
                      to->rank, barrier->cta->rank,
                      barrier->of_pair ? " or the other of its pair"
                      : apart == 1     ? ", as there is no .cta_group::2"
                                       : "");
}

trap tma_global(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address, uint64_t bytes, uint64_t within,
                bool writes, uint8_t **host)
{
    const struct global_memory *memory = &w->cta->cluster->grid->machine->memory;
    const struct allocation *a = space_find(memory, within != 0 ? within : address);
    const char *verb = writes ? "writes" : "reads";
    if (a == NULL) {
        char why[400] = "where nothing is allocated";
        space_explain(memory, within != 0 ? within : address, why, sizeof why);
        return warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS, "%s %llu bytes at global address 0x%llx, %s", verb,
                          (unsigned long long)bytes, (unsigned long long)address, why);
    }
    if (address < a->base || address - a->base > a->bytes || bytes > a->bytes - (address - a->base))
        return warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS,
                          "%s %llu bytes at global address 0x%llx, outside of the %llu bytes allocated at 0x%llx%s%s",
                          verb, (unsigned long long)bytes, (unsigned long long)address, (unsigned long long)a->bytes,
                          (unsigned long long)a->base, a->name == NULL ? "" : " for ", a->name == NULL ? "" : a->name);
    if (writes && !space_may_write(memory, a))
        return warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS, SPACE_READ_ONLY, space_read_only(a),
                          (unsigned long long)address);
    *host = a->host + (address - a->base);
    return TRAP_NONE;
}
