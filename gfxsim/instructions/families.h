/* The families of instructions, a file or a few each. */
#ifndef GFXSIM_INSTRUCTIONS_FAMILIES_H
#define GFXSIM_INSTRUCTIONS_FAMILIES_H

#include "decode/instruction.h"

extern const struct family family_scalar2, family_scalar_k, family_scalar1, family_scalar_c;      /* scalar.c */
extern const struct family family_program, family_scalar_memory;                                  /* program.c */
extern const struct family family_vector1, family_vector2, family_vector3, family_accumulators;   /* vector.c */
extern const struct family family_compare;                                                        /* compare.c */
extern const struct family family_float1, family_float2, family_float3, family_packed;            /* float.c */
extern const struct family family_exchange1, family_exchange3;                                    /* exchange.c */
extern const struct family family_convert1, family_convert3;                                      /* convert.c */
extern const struct family family_scaled, family_unscaled1, family_unscaled3;                     /* scaled.c */
extern const struct family family_dot, family_dot2;                                               /* dot.c */
extern const struct family family_mode_k, family_mode_c;                                          /* mode.c */
extern const struct family family_matrix;                                                         /* matrix.c */
extern const struct family family_double1, family_double2, family_double3;                        /* double.c */
extern const struct family family_half1, family_half2, family_half3;                              /* half.c */
extern const struct family family_packed16;                                                       /* packed.c */
extern const struct family family_lds_atomics;                                                    /* lds_atomics.c */
extern const struct family family_global_atomics, family_buffer_atomics;                          /* atomics.c */
extern const struct family family_flat, family_scratch;                                           /* flat.c */
extern const struct family family_lds;                                                            /* lds_access.c */
extern const struct family family_global, family_buffer;                                          /* vector_memory.c */

#endif
