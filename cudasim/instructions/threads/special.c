/* What special registers hold (PTX ISA 10). */
#include "machine/core/machine.h"

static uint32_t thread_in_cta(const struct warp *w, uint32_t lane) { return w->index * LANES + lane; }

static uint32_t cluster_local(const struct cta *cta, int axis)
{
    return cta->id[axis] % cta->cluster->grid->cluster_extent[axis];
}

uint64_t special_value(const struct warp *w, uint32_t lane, enum special special)
{
    const struct cta *cta = w->cta;
    const struct cluster *cluster = cta->cluster;
    const struct grid *grid = cluster->grid;
    const uint32_t *block = grid->launch->block, *extent = grid->launch->grid;
    const uint32_t thread = thread_in_cta(w, lane);
    const uint64_t nanoseconds = cluster->now * 1000000 / grid->machine->device->clock_khz;
    switch (special) {
    case SPECIAL_TID_X: return thread % block[0];
    case SPECIAL_TID_Y: return thread / block[0] % block[1];
    case SPECIAL_TID_Z: return thread / (block[0] * block[1]);
    case SPECIAL_NTID_X: return block[0];
    case SPECIAL_NTID_Y: return block[1];
    case SPECIAL_NTID_Z: return block[2];
    case SPECIAL_LANEID: return lane;
    case SPECIAL_WARPID: return w->index;
    case SPECIAL_NWARPID: return grid->machine->device->threads_per_sm / LANES;
    case SPECIAL_CTAID_X: return cta->id[0];
    case SPECIAL_CTAID_Y: return cta->id[1];
    case SPECIAL_CTAID_Z: return cta->id[2];
    case SPECIAL_NCTAID_X: return extent[0];
    case SPECIAL_NCTAID_Y: return extent[1];
    case SPECIAL_NCTAID_Z: return extent[2];
    case SPECIAL_SMID:
        return cta->sm != NULL ? cta->sm->index
                               : (cluster->index * cluster->ctas + cta->rank) % grid->machine->options.sms;
    case SPECIAL_NSMID: return grid->machine->options.sms;
    case SPECIAL_GRIDID: return grid->id;
    case SPECIAL_IS_EXPLICIT_CLUSTER: return grid->launch->explicit_cluster;
    case SPECIAL_CLUSTERID_X: return cluster->id[0];
    case SPECIAL_CLUSTERID_Y: return cluster->id[1];
    case SPECIAL_CLUSTERID_Z: return cluster->id[2];
    case SPECIAL_NCLUSTERID_X: return grid->clusters_extent[0];
    case SPECIAL_NCLUSTERID_Y: return grid->clusters_extent[1];
    case SPECIAL_NCLUSTERID_Z: return grid->clusters_extent[2];
    case SPECIAL_CLUSTER_CTAID_X: return cluster_local(cta, 0);
    case SPECIAL_CLUSTER_CTAID_Y: return cluster_local(cta, 1);
    case SPECIAL_CLUSTER_CTAID_Z: return cluster_local(cta, 2);
    case SPECIAL_CLUSTER_NCTAID_X: return grid->cluster_extent[0];
    case SPECIAL_CLUSTER_NCTAID_Y: return grid->cluster_extent[1];
    case SPECIAL_CLUSTER_NCTAID_Z: return grid->cluster_extent[2];
    case SPECIAL_CLUSTER_CTARANK: return cta->rank;
    case SPECIAL_CLUSTER_NCTARANK: return cluster->ctas;
    case SPECIAL_LANEMASK_EQ: return UINT32_C(1) << lane;
    case SPECIAL_LANEMASK_LE: return (UINT32_C(2) << lane) - 1;
    case SPECIAL_LANEMASK_LT: return (UINT32_C(1) << lane) - 1;
    case SPECIAL_LANEMASK_GE: return UINT32_MAX << lane;
    case SPECIAL_LANEMASK_GT: return (uint32_t)(UINT64_C(0xfffffffe) << lane);
    case SPECIAL_CLOCK: return (uint32_t)cluster->now;
    case SPECIAL_CLOCK_HI: return cluster->now >> 32;
    case SPECIAL_CLOCK64: return cluster->now;
    case SPECIAL_GLOBALTIMER: return nanoseconds;
    case SPECIAL_GLOBALTIMER_LO: return (uint32_t)nanoseconds;
    case SPECIAL_GLOBALTIMER_HI: return nanoseconds >> 32;
    case SPECIAL_TOTAL_SMEM_SIZE: return cta->shared_bytes - grid->machine->device->shared_reserved;
    case SPECIAL_AGGR_SMEM_SIZE: return cta->shared_bytes;
    case SPECIAL_DYNAMIC_SMEM_SIZE: return grid->launch->dynamic_shared;
    case SPECIAL_COUNT: break;
    }
    return 0;
}
