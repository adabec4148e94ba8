/* What TMA does to the elements that it reduces. */
#include "bulk_reduction.h"
#include "instructions/memory/memory.h"
#include "instructions/memory/reduction.h"

#include <string.h>

uint64_t bulk_reduction_kind(uint32_t operation, enum ptx_type type) { return 1 + (operation << 8 | (uint32_t)type); }

void bulk_prepare_reduction(struct insn *in)
{
    in->detail = bulk_reduction_kind(reduction_of(in), (enum ptx_type)in->type[0]);
}

tma_combine *bulk_combine_of(const struct insn *in, uint64_t *kind)
{
    *kind = in->detail;
    return in->detail == BULK_COPY ? NULL : bulk_combine;
}

void bulk_combine(uint64_t kind, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    const struct reducer reducer = { .operation = (enum reduction)((kind - 1) >> 8),
                                     .type = (enum ptx_type)((kind - 1) & 0xff) };
    const uint32_t width = type_bytes(reducer.type);
    for (uint32_t i = 0; i < bytes; i += width) {
        uint64_t value = 0;
        memcpy(&value, from + i, width);
        reduction_update(reducer, to + i, value, 0);
    }
}
