/* What a group of lanes waits for. */
#include "wait.h"

static const char *const wait_names[WAIT_KIND_COUNT] = {
    [WAIT_NONE] = "nothing",
    [WAIT_CONVERGENCE] = "the other lanes of the warp",
    [WAIT_BARRIER] = "barrier",
    [WAIT_WARP_BARRIER] = "bar.warp.sync",
    [WAIT_CLUSTER_BARRIER] = "barrier.cluster",
    [WAIT_MBARRIER] = "mbarrier",
    [WAIT_ASYNC_GROUP] = "copies",
    [WAIT_MMA] = "matrix products",
    [WAIT_TENSOR_MEMORY] = "tensor memory",
    [WAIT_REGISTERS] = "registers",
    [WAIT_SLEEP] = "time",
    [WAIT_GRID] = "another grid",
};

const char *wait_name(enum wait_kind kind) { return wait_names[kind]; }

trap warp_wait(struct warp *w, enum wait_kind kind, uint64_t object, uint64_t detail)
{
    w->group->wait = (struct wait){ .kind = kind, .object = object, .detail = detail };
    return TRAP_WAIT;
}
