/* Tensor maps: what cuTensorMapEncodeTiled makes and cp.async.bulk.tensor reads (PTX ISA 5.5.8).
 *
 * The 128 bytes are opaque, as on hardware, in an encoding of our own with a mark and a checksum, so that a map which
 * nobody encoded, or of which only a part was copied, is seen when it is used.  128 zero bytes on which
 * tensormap.replace sets the fields are a map too. */
#ifndef CUDASIM_MACHINE_ASYNC_TENSOR_MAP_H
#define CUDASIM_MACHINE_ASYNC_TENSOR_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/core/device.h"

enum { TENSOR_MAP_BYTES = 128, TENSOR_RANK = 5 };

/* Numbers of CUtensorMapDataType; `packed`, `padded`: bytes of 16 elements in global and in shared memory. */
/*        id         name         packed padded float */
#define TENSOR_TYPES(X) \
        X(U8,        "u8",        16,    16,    0) \
        X(U16,       "u16",       32,    32,    0) \
        X(U32,       "u32",       64,    64,    0) \
        X(S32,       "s32",       64,    64,    0) \
        X(U64,       "u64",       128,   128,   0) \
        X(S64,       "s64",       128,   128,   0) \
        X(F16,       "f16",       32,    32,    1) \
        X(F32,       "f32",       64,    64,    1) \
        X(F64,       "f64",       128,   128,   1) \
        X(BF16,      "bf16",      32,    32,    1) \
        X(F32_FTZ,   "f32.ftz",   64,    64,    1) \
        X(TF32,      "tf32",      64,    64,    1) \
        X(TF32_FTZ,  "tf32.ftz",  64,    64,    1) \
        X(B4X16,     "b4x16",     8,     8,     0) \
        X(B4X16_P64, "b4x16_p64", 8,     16,    0) \
        X(B6X16_P32, "b6x16_p32", 12,    16,    0)

enum tensor_type {
#define X(id, ...) TENSOR_MAP_##id,
    TENSOR_TYPES(X)
#undef X
    TENSOR_TYPE_COUNT
};

struct tensor_type_info { const char *name; uint8_t packed, padded; bool is_float; };
extern const struct tensor_type_info tensor_types[TENSOR_TYPE_COUNT];

enum tensor_swizzle { SWIZZLE_NONE, SWIZZLE_32B, SWIZZLE_64B, SWIZZLE_128B };
enum tensor_atom { ATOM_16B, ATOM_32B, ATOM_32B_FLIP_8B, ATOM_64B };
enum tensor_interleave { INTERLEAVE_NONE, INTERLEAVE_16B, INTERLEAVE_32B };

/* What a map says.  Dimension 0 is the innermost; stride[i] is that of dimension i + 1, in bytes; all else in
 * elements. */
struct tensor_layout {
    uint64_t address;
    uint64_t dim[TENSOR_RANK], stride[TENSOR_RANK - 1];
    uint16_t box[TENSOR_RANK];
    uint8_t element_stride[TENSOR_RANK];
    uint8_t type, rank, interleave, swizzle, atom, l2_promotion, nan_fill;
    bool sporadic;                        /* a map that Blackwell may take wrongly, now and then, while its bit 85 is
                                             set */
};

/* cuTensorMapEncodeTiled with its arguments in its order: 0 and the map, or 1 (CUDA_ERROR_INVALID_VALUE) and why in
 * sentence. */
int tensor_map_encode_tiled(const struct device_limits *device, void *map, unsigned type, unsigned rank,
                            uint64_t address, const uint64_t *dim, const uint64_t *stride, const uint32_t *box,
                            const uint32_t *element_stride, unsigned interleave, unsigned swizzle,
                            unsigned l2_promotion, unsigned fill, char *sentence, size_t size);
/* cuTensorMapReplaceAddress. */
int tensor_map_replace_address(const struct device_limits *device, void *map, uint64_t address, char *sentence,
                               size_t size);

/* Whether the device can use such a layout; else why not. */
bool tensor_layout_check(const struct device_limits *device, const struct tensor_layout *layout, char *sentence,
                         size_t size);

enum tensor_map_state { TENSOR_MAP_VALID, TENSOR_MAP_ZERO, TENSOR_MAP_FOREIGN, TENSOR_MAP_DAMAGED };
/* The fields (all 0 unless VALID); they have not been checked, as tensormap.replace may set any. */
enum tensor_map_state tensor_map_read(const void *map, struct tensor_layout *layout);
void tensor_map_write(void *map, const struct tensor_layout *layout);

/* Elements of the box along dimension i: every element_stride-th one. */
static inline uint32_t tensor_box_elements(const struct tensor_layout *t, uint32_t i)
{
    const uint32_t step = i == 0 && t->interleave == INTERLEAVE_NONE ? 1 : t->element_stride[i];
    return (t->box[i] + step - 1) / step;
}
static inline uint32_t tensor_packed_bytes(const struct tensor_layout *t, uint32_t elements)
{
    return elements * tensor_types[t->type].packed / 16;
}
static inline uint32_t tensor_padded_bytes(const struct tensor_layout *t, uint32_t elements)
{
    return elements * tensor_types[t->type].padded / 16;
}
/* Bytes from one row of the box to the next in shared memory: a swizzled row always takes its whole span. */
static inline uint32_t tensor_row_pitch(const struct tensor_layout *t)
{
    return t->swizzle == SWIZZLE_NONE ? tensor_padded_bytes(t, t->box[0]) : 16u << t->swizzle;
}

/* Where a byte of a swizzled box lies: the patterns of PTX ISA 5.5.7 as a function of the shared address alone. */
uint32_t tensor_swizzle_address(const struct tensor_layout *layout, uint32_t address);

#endif
