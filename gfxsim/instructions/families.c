/* All families. */
#include "families.h"

const struct family *const instruction_families[] = {
    &family_scalar2, &family_scalar_k, &family_scalar1, &family_scalar_c, &family_program, &family_scalar_memory,
    &family_vector1, &family_vector2, &family_vector3, &family_accumulators, &family_compare, &family_float1,
    &family_float2, &family_float3, &family_packed, &family_exchange1, &family_exchange3, &family_convert1,
    &family_convert3, &family_scaled, &family_matrix, &family_lds, &family_global, &family_buffer,
    &family_double1, &family_double2, &family_double3, &family_half1, &family_half2, &family_half3, &family_packed16,
    &family_lds_atomics, &family_global_atomics, &family_buffer_atomics, &family_flat, &family_scratch,
    &family_unscaled1, &family_unscaled3, &family_dot, &family_dot2, &family_mode_k, &family_mode_c,
};
const size_t instruction_family_count = sizeof instruction_families / sizeof instruction_families[0];
