/* All families, in the order of the manual. */
#include "instructions/families.h"

const struct family *const instruction_families[] = {
    &family_integer,
    &family_extended,
    &family_float,
    &family_approximate,
    &family_half,
    &family_compare,
    &family_logic,
    &family_move,
    &family_convert,
    &family_convert_narrow,
    &family_cache_policy,
    &family_mixed_precision,
    &family_register_pool,
    &family_memory,
    &family_control,
    &family_barrier,
    &family_mbarrier,
    &family_fence,
    &family_atomic,
    &family_warp,
    &family_wgmma,
    &family_bulk_copy,
    &family_tensor_copy,
    &family_tensormap,
    &family_mma,
    &family_mma_sparse,
    &family_wmma,
    &family_matrix_memory,
    NULL
};
