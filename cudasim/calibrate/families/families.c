/* The list of families. */
#include "families.h"

calibration_family *const calibration_families[] = {
    calibration_family_scalar,            /* from the table: register-to-register forms */
    calibration_family_special,           /* lop3, carry chains of mixed kinds */
    calibration_family_bulk,              /* cp.async.bulk, cp.reduce.async.bulk */
    calibration_family_tensor,            /* cp.async.bulk.tensor, cp.reduce.async.bulk.tensor */
    calibration_family_memory,            /* ld and st, from the table */
    calibration_family_atomic,            /* atom and red, from the table */
    calibration_family_warp,              /* shfl, vote, match, redux, elect, bar.red */
    calibration_family_cluster,           /* mapa, isspacep, distributed shared memory */
    calibration_family_wgmma,             /* wgmma.mma_async and its groups */
    calibration_family_matrix,            /* mma, mma.sp, ldmatrix, stmatrix, movmatrix, wmma */
    calibration_family_mbarrier,          /* arrivals and waits */
    calibration_family_ordering,          /* barriers, fences, prefetches, policies, branches */
    calibration_family_async,             /* cp.async, st.async, red.async */
    calibration_family_tensormap,         /* tensormap.replace */
    calibration_family_dependent,         /* griddepcontrol */
    0,
};
