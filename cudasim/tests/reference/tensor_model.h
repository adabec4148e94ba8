/* What a tensor copy does, element by element, from the formulas of PTX ISA 5.5 and the driver's manual; independent of
 * the simulator. */
#ifndef CUDASIM_TESTS_REFERENCE_TENSOR_MODEL_H
#define CUDASIM_TESTS_REFERENCE_TENSOR_MODEL_H

#include <stdbool.h>
#include <stdint.h>

struct tensor_case {
    uint32_t type, rank;                  /* type: the number of CUtensorMapDataType */
    uint64_t dim[5], stride[4];           /* elements; bytes */
    uint32_t box[5], step[5];             /* step: elementStrides */
    uint32_t swizzle;                     /* the number of CUtensorMapSwizzle */
    bool nan_fill;
    int32_t start[5];
    bool gathers;                         /* start[0] and four rows in start[1..4] of a tensor of rank 2 */
};

uint32_t model_bits(uint32_t type);       /* of an element in global memory */
uint32_t model_transaction_bytes(const struct tensor_case *c);
uint32_t model_shared_bytes(const struct tensor_case *c);
uint64_t model_global_bytes(const struct tensor_case *c);

/* Writes the box to shared[0 ...), which lies at shared address `base`; other bytes stay as they are. */
void model_load(const struct tensor_case *c, const uint8_t *global, uint8_t *shared, uint32_t base);

/* What happens to each element of the box that is stored; old and value have model_bits bits. */
typedef uint64_t model_combine(uint32_t operation, uint32_t type, uint64_t old, uint64_t value);
uint64_t model_copy(uint32_t operation, uint32_t type, uint64_t old, uint64_t value);
void model_store(const struct tensor_case *c, uint8_t *global, const uint8_t *shared, uint32_t base,
                 model_combine *combine, uint32_t operation);

#endif
