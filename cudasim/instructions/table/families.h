/* The families of instructions.  A new one: a file with its rows and handlers, a line here, a line in families.c. */
#ifndef CUDASIM_INSTRUCTIONS_TABLE_FAMILIES_H
#define CUDASIM_INSTRUCTIONS_TABLE_FAMILIES_H

#include "ptx/table.h"

extern const struct family family_integer;
extern const struct family family_extended;
extern const struct family family_float;
extern const struct family family_approximate;
extern const struct family family_half;
extern const struct family family_compare;
extern const struct family family_logic;
extern const struct family family_move;
extern const struct family family_convert;
extern const struct family family_convert_narrow;
extern const struct family family_cache_policy;
extern const struct family family_mixed_precision;
extern const struct family family_register_pool;
extern const struct family family_memory;
extern const struct family family_atomic;
extern const struct family family_fence;
extern const struct family family_mbarrier;
extern const struct family family_cp_async;
extern const struct family family_store_async;
extern const struct family family_control;
extern const struct family family_barrier;
extern const struct family family_warp;
extern const struct family family_wgmma;
extern const struct family family_bulk_copy;
extern const struct family family_tensor_copy;
extern const struct family family_tensormap;
extern const struct family family_cluster_launch;
extern const struct family family_mma;
extern const struct family family_mma_block_scale;
extern const struct family family_mma_sparse;
extern const struct family family_mma_sparse_scale;
extern const struct family family_wmma;
extern const struct family family_matrix_memory;
extern const struct family family_tcgen05_alloc;
extern const struct family family_tcgen05_commit;
extern const struct family family_tcgen05_ldst;
extern const struct family family_tcgen05_copy;
extern const struct family family_tcgen05_mma;

#endif
