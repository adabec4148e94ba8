/* clusterlaunchcontrol (PTX ISA 9.7.13.17, 9.7.13.18): a cluster that runs takes over one that has not started.
 *
 * The response is opaque, as on hardware: four words of our own, a mark and the first CTA of the cluster; where the
 * request failed they are random numbers, so that a kernel which uses them is seen to depend on the schedule. */
#include "instructions/table/families.h"
#include "instructions/memory/memory.h"
#include "machine/async/agent.h"
#include "machine/async/mbarrier.h"
#include "machine/profile/watch.h"
#include "machine/core/random.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"
#include "machine/run/launch.h"

#include <stdlib.h>
#include <string.h>

enum { RESPONSE_BYTES = 16, MOST_CTAS = 16, ALL_CTAS = 1 }; /* in->detail: ALL_CTAS, or 0 */
static const uint32_t canceled_mark = 0x6c63a11d, failed_mark = 0x6c63fa17;

struct request {
    struct agent_operation operation;
    bool asked;
    uint32_t response[4];
    uint32_t left; /* CTAs that have not got it */
    uint32_t offset, barrier;
    struct async_token *token[MOST_CTAS];
};

/* ---- the engine ---- */

/* A request may fail though clusters are left, as for a kernel of higher priority that waits for the SM: they start
 * later. */
static void ask(struct request *r)
{
    struct cluster *c = r->operation.cluster;
    struct grid *grid = c->grid;
    uint32_t id[3] = { 0 };
    const bool random = grid->machine->options.schedule == SCHEDULE_RANDOM;
    const bool fails = (random && cluster_random(c) % 8 == 0) || !grid_cancel_cluster(grid, id);
    r->response[0] = fails ? failed_mark : canceled_mark;
    for (int i = 0; i < 3; i++)
        r->response[1 + i] = fails ? (uint32_t)cluster_random(c) : id[i] * grid->cluster_extent[i];
    r->asked = true;
}

static trap deliver(struct request *r, uint32_t rank)
{
    const struct agent_operation *o = &r->operation;
    struct cta *cta = &o->cluster->cta[rank];
    if (cta->live_threads == 0)
        return warp_fault(
            o->warp, o->in, o->lane, REPORT_ASYNC,
            "writes shared memory of CTA rank %u, all of whose threads have exited without waiting for it", rank);
    watch_moved(o, MOVED_TO_SHARED, RESPONSE_BYTES);
    memcpy(cta->shared + r->offset, r->response, RESPONSE_BYTES);
    async_written(cta, r->offset, RESPONSE_BYTES);
    return mbarrier_complete_tx(o->warp, o->in, o->lane, cta, r->barrier, RESPONSE_BYTES, r->token[rank]);
}

/* CTAs get the response in any order: some of them at a step. */
static trap request_step(struct agent_operation *operation, bool *done)
{
    struct request *r = (struct request *)operation;
    if (!r->asked) ask(r);
    uint32_t now = r->left;
    if (operation->cluster->grid->machine->options.schedule == SCHEDULE_RANDOM)
        now &= (uint32_t)cluster_random(operation->cluster) | (r->left & -r->left);
    for (r->left &= ~now; now != 0; now &= now - 1) {
        const trap t = deliver(r, (uint32_t)__builtin_ctz(now));
        if (t != TRAP_NONE) return t;
    }
    *done = r->left == 0;
    return TRAP_NONE;
}

/* Every mbarrier was signalled by a step. */
static void request_complete(struct agent_operation *operation) { (void)operation; }

static void request_drop(struct agent_operation *operation)
{
    struct request *r = (struct request *)operation;
    for (uint32_t i = 0; i < MOST_CTAS; i++) async_end(r->token[i]);
}

static const struct agent_kind request_kind = { .name = "clusterlaunchcontrol.try_cancel",
                                                .engine = ENGINE_OTHER,
                                                .step = request_step,
                                                .complete = request_complete,
                                                .drop = request_drop };

/* ---- try_cancel ---- */

/* Where the response and the mbarrier lie: in the shared memory of the CTA itself. */
static trap find_places(struct warp *w, const struct insn *in, uint32_t lane, struct request *r)
{
    struct access a = { .space = (enum space)in->space, .bytes = RESPONSE_BYTES, .locates = true };
    uint64_t barrier[LANES];
    struct cta *cta;
    address_lanes(w, &in->operand[0], 1u << lane, a.address);
    address_lanes(w, &in->operand[1], 1u << lane, barrier);
    trap t = memory_access(w, in, 1u << lane, &a);
    if (t != TRAP_NONE) return t;
    if (a.owner[lane] != w->cta)
        return warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS,
                          "wants its response at address 0x%llx, which is not in the shared memory of its own CTA",
                          (unsigned long long)a.address[lane]);
    t = mbarrier_target(w, in, lane, (enum space)in->space, true, barrier[lane], &cta, &r->barrier);
    r->offset = a.offset[lane];
    return t;
}

static trap announce(struct warp *w, const struct insn *in, uint32_t lane, struct request *r, struct cta *cta)
{
    if (cta->live_threads == 0)
        return warp_fault(w, in, lane, REPORT_ILLEGAL,
                          "multicasts to all CTAs of the cluster, of which rank %u has exited", cta->rank);
    const trap t = mbarrier_access(w, in, lane, cta, r->barrier);
    if (t != TRAP_NONE) return t;
    struct async_token *token = r->token[cta->rank] = async_begin(w, in, 1u << lane, PROXY_ASYNC);
    if (token == NULL) return warp_fault(w, in, lane, REPORT_RESOURCES, "finds no host memory for its operation");
    return async_writes_fenced(token, cta, r->offset, RESPONSE_BYTES);
}

static trap start_request(struct warp *w, const struct insn *in, uint32_t lane, struct request *r)
{
    struct cluster *c = w->cta->cluster;
    r->operation = (struct agent_operation){
        .kind = &request_kind, .cluster = c, .cta = w->cta, .warp = w, .in = in, .lane = lane, .signals = WAIT_MBARRIER
    };
    trap t = find_places(w, in, lane, r);
    r->left = in->detail == ALL_CTAS ? (1u << c->ctas) - 1 : 1u << w->cta->rank;
    for (uint32_t left = r->left; left != 0 && t == TRAP_NONE; left &= left - 1)
        t = announce(w, in, lane, r, &c->cta[__builtin_ctz(left)]);
    r->operation.object = w->cta->shared_base | r->barrier;
    return t;
}

/* clusterlaunchcontrol.try_cancel [a], [mbar]   asks for a cluster that has not started; a = the response, complete_tx
 * of 16 bytes; .multicast::cluster::all: in each CTA of the cluster */
static trap op_try_cancel(struct warp *w, const struct insn *in, uint32_t lanes)
{
    FOR_LANES(l, lanes)
    {
        if (w->cta->cancel_failed)
            return warp_fault(w, in, l, REPORT_ILLEGAL,
                              "requests another cluster after a thread of its CTA has observed that a request failed");
        struct request *r = calloc(1, sizeof *r);
        if (r == NULL) return warp_fault(w, in, l, REPORT_RESOURCES, "finds no host memory for its operation");
        const trap t = start_request(w, in, l, r);
        if (t != TRAP_NONE) {
            request_drop(&r->operation);
            free(r);
            return t;
        }
        agent_start(&r->operation, 0, AGENT_MOST);
    }
    return TRAP_NONE;
}

/* ---- query_cancel ---- */

static trap read_response(struct warp *w, const struct insn *in, uint32_t lane, uint32_t response[4])
{
    const uint64_t *row = source(w, in, 1);
    response[0] = (uint32_t)row[lane], response[1] = (uint32_t)(row[lane] >> 32);
    response[2] = (uint32_t)row[lane + LANES], response[3] = (uint32_t)(row[lane + LANES] >> 32);
    if (response[0] == canceled_mark || response[0] == failed_mark) return TRAP_NONE;
    return warp_fault(w, in, lane, REPORT_ILLEGAL,
                      "queries 128 bits that are no response of a clusterlaunchcontrol.try_cancel");
}

/* clusterlaunchcontrol.query_cancel.is_canceled p, r   p = whether a cluster was taken over.  Programs that ask for
 * none write a response of zeros themselves, as CUTLASS does for schedules without such requests: nothing was taken
 * over, and no request has failed. */
static trap op_is_canceled(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *row = source(w, in, 1);
    FOR_LANES(l, lanes)
    {
        uint32_t response[4];
        if (row[l] == 0 && row[l + LANES] == 0) {
            d[l] = 0;
            continue;
        }
        const trap t = read_response(w, in, l, response);
        if (t != TRAP_NONE) return t;
        d[l] = response[0] == canceled_mark;
        if (d[l] == 0) w->cta->cancel_failed = true;
    }
    return TRAP_NONE;
}

/* clusterlaunchcontrol.query_cancel.get_first_ctaid::x d, r   d = a coordinate of the first CTA of that cluster */
static trap op_first_ctaid(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes)
    {
        uint32_t response[4];
        const trap t = read_response(w, in, l, response);
        if (t != TRAP_NONE) return t;
        d[l] = response[in->choice[0]];
    }
    return TRAP_NONE;
}

/* clusterlaunchcontrol.query_cancel.get_first_ctaid.v4 {d, e, f, g}, r   d, e, f = the coordinates, g is not defined */
static trap op_first_ctaids(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t response[LANES][4];
    FOR_LANES(l, lanes)
    {
        const trap t = read_response(w, in, l, response[l]);
        if (t != TRAP_NONE) return t;
    }
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t *d = register_row(w, in->operand[0].element[i].slot);
        FOR_LANES(l, lanes) d[l] = response[l][(i + 1) % 4];
    }
    return TRAP_NONE;
}

/* ---- rows ---- */

static const char *prepare_try(struct module *module, struct insn *in)
{
    module->cancels_clusters = true;
    in->detail = insn_has(in, ".multicast::cluster::all") ? ALL_CTAS : 0;
    return NULL;
}

static const char *prepare_canceled(struct module *module, struct insn *in)
{
    (void)module;
    return in->operand[0].kind == OPERAND_SINK ? "the result is a register" : NULL;
}

#define TRY           "clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes"
#define QUERY         "clusterlaunchcontrol.query_cancel"
#define TRY_SECTION   "9.7.13.17 clusterlaunchcontrol.try_cancel"
#define QUERY_SECTION "9.7.13.18 clusterlaunchcontrol.query_cancel"
static const struct row rows[] = {
    { TRY ".b128", NULL, "a a", 86, "sm_100+", 0, op_try_cancel, prepare_try, TRY_SECTION },
    { TRY ".multicast::cluster::all.b128", NULL, "a a", 86, "sm_100f sm_120f", 0, op_try_cancel, prepare_try,
      TRY_SECTION },
    { QUERY ".is_canceled.pred.b128", NULL, "P r:b128", 86, "sm_100+", 0, op_is_canceled, prepare_canceled,
      QUERY_SECTION },
    { QUERY "(.get_first_ctaid::x|.get_first_ctaid::y|.get_first_ctaid::z).b32.b128", NULL, "d:b32 r:b128", 86,
      "sm_100+", 0, op_first_ctaid, NULL, QUERY_SECTION },
    { QUERY ".get_first_ctaid.v4.b32.b128", NULL, "d_:b32{4} r:b128", 86, "sm_100+", 0, op_first_ctaids, NULL,
      QUERY_SECTION },
};

const struct family family_cluster_launch = FAMILY("cluster launch control", rows);
