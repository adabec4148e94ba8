/* Tensor maps: encoding and the rules of cuTensorMapEncodeTiled (cuda.h) and PTX ISA 5.5, "Restriction on Tensor
 * Copy". */
#include "tensor_map.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BOX = 256, MAX_ELEMENT_STRIDE = 8, MAX_BOX_BYTES = 228 * 1024 };
static const uint64_t max_dim = UINT64_C(1) << 32, max_stride = UINT64_C(1) << 40;
static const uint32_t map_mark = 0x7a6d6174;
/* Bit 85 of a map, which drivers set on Blackwell also where it does harm: see tensor_layout.sporadic. */
static const uint64_t bit_85 = UINT64_C(1) << 21;

const struct tensor_type_info tensor_types[TENSOR_TYPE_COUNT] = {
#define X(id, name, packed, padded, is_float) { name, packed, padded, is_float },
    TENSOR_TYPES(X)
#undef X
};

/* ---- the 128 bytes ---- */

struct encoded {
    uint32_t mark, checksum;
    uint64_t bits;                        /* 64 to 127: bit 85 or none */
    struct tensor_layout layout;
};
_Static_assert(sizeof(struct encoded) <= TENSOR_MAP_BYTES, "the map has 128 bytes");

/* FNV-1a of everything behind the checksum */
static uint32_t checksum(const uint8_t *bytes)
{
    uint32_t sum = 2166136261u;
    for (size_t i = offsetof(struct encoded, layout); i < TENSOR_MAP_BYTES; i++) sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

void tensor_map_write(void *map, const struct tensor_layout *layout)
{
    uint8_t bytes[TENSOR_MAP_BYTES] = { 0 };
    struct encoded e;
    memset(&e, 0, sizeof e);
    e.mark = map_mark;
    e.layout = *layout;
    e.layout.sporadic = false;
    e.bits = layout->sporadic ? bit_85 : 0;
    memcpy(bytes, &e, sizeof e);
    e.checksum = checksum(bytes);
    memcpy(bytes, &e, sizeof e);
    memcpy(map, bytes, sizeof bytes);
}

enum tensor_map_state tensor_map_read(const void *map, struct tensor_layout *layout)
{
    uint8_t bytes[TENSOR_MAP_BYTES];
    struct encoded e;
    memcpy(bytes, map, sizeof bytes);
    memcpy(&e, bytes, sizeof e);
    memset(layout, 0, sizeof *layout);
    uint8_t any = 0;
    for (size_t i = 0; i < sizeof bytes; i++) any |= bytes[i];
    if (any == 0) return TENSOR_MAP_ZERO;
    if (e.mark != map_mark) return TENSOR_MAP_FOREIGN;
    if (e.checksum != checksum(bytes) || (e.bits & ~bit_85) != 0) return TENSOR_MAP_DAMAGED;
    *layout = e.layout;
    layout->sporadic = e.bits != 0;
    return TENSOR_MAP_VALID;
}

/* ---- rules ---- */

struct complaint {
    char *sentence;
    size_t size;
};

__attribute__((format(printf, 2, 3))) static bool refuse(const struct complaint *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (c->size != 0) vsnprintf(c->sentence, c->size, format, arguments);
    va_end(arguments);
    return false;
}

/* The padded types go through containers of 16 bytes, 128 elements at a time. */
static bool is_padded(const struct tensor_layout *t)
{
    return tensor_types[t->type].packed != tensor_types[t->type].padded;
}
static bool is_sub_byte(const struct tensor_layout *t) { return t->type >= TENSOR_MAP_B4X16; }

static uint32_t alignment(const struct tensor_layout *t)
{
    return t->interleave == INTERLEAVE_32B || is_padded(t) ? 32 : 16;
}

static bool check_device(const struct device_limits *device, const struct tensor_layout *t, const struct complaint *c)
{
    if (device->sm >= 100) return true;
    if (is_sub_byte(t)) return refuse(c, "type %s needs sm_100 or later", tensor_types[t->type].name);
    if (t->atom != ATOM_16B)
        return refuse(c, "a swizzle of 128 bytes in atoms of other than 16 bytes needs sm_100 or later");
    return true;
}

static bool check_tensor(const struct tensor_layout *t, const struct complaint *c)
{
    const uint32_t align = alignment(t);
    if (t->address % align != 0)
        return refuse(c, "the tensor's address 0x%llx is no multiple of %u", (unsigned long long)t->address, align);
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] == 0 || t->dim[i] > max_dim)
            return refuse(c, "dimension %u has %llu elements; it has 1 to 2^32", i, (unsigned long long)t->dim[i]);
    for (uint32_t i = 0; i + 1 < t->rank; i++) {
        if (t->stride[i] % align != 0)
            return refuse(c, "the stride of dimension %u, %llu bytes, is no multiple of %u", i + 1,
                          (unsigned long long)t->stride[i], align);
        if (t->stride[i] >= max_stride)
            return refuse(c, "the stride of dimension %u, %llu bytes, is not below 2^40", i + 1,
                          (unsigned long long)t->stride[i]);
    }
    const uint32_t multiple = is_padded(t) ? 128 : t->type == TENSOR_MAP_B4X16 ? 2 : 1;
    if (t->dim[0] % multiple != 0)
        return refuse(c, "dimension 0 has %llu elements of type %s, no multiple of %u", (unsigned long long)t->dim[0],
                      tensor_types[t->type].name, multiple);
    return true;
}

static bool check_box(const struct tensor_layout *t, const struct complaint *c)
{
    uint64_t bytes = tensor_padded_bytes(t, t->box[0]);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->box[i] == 0 || t->box[i] > MAX_BOX)
            return refuse(c, "the box has %u elements in dimension %u; it has 1 to %d", t->box[i], i, MAX_BOX);
        if (t->element_stride[i] == 0 || t->element_stride[i] > MAX_ELEMENT_STRIDE)
            return refuse(c, "the element stride of dimension %u is %u; it is 1 to %d", i, t->element_stride[i],
                          MAX_ELEMENT_STRIDE);
        if (i != 0) bytes *= tensor_box_elements(t, i);
    }
    const uint32_t inner = tensor_padded_bytes(t, t->box[0]);
    if (is_padded(t) && t->box[0] != 128)
        return refuse(c, "the box has %u elements of type %s in dimension 0; it has 128", t->box[0],
                      tensor_types[t->type].name);
    if (t->interleave == INTERLEAVE_NONE && (t->box[0] * tensor_types[t->type].padded % 16 != 0 || inner % 16 != 0))
        return refuse(c, "the box has %u bytes in dimension 0, no multiple of 16", inner);
    if (t->interleave == INTERLEAVE_NONE && t->swizzle != SWIZZLE_NONE && inner > 16u << t->swizzle)
        return refuse(c, "the box has %u bytes in dimension 0, more than the %u of its swizzle", inner,
                      16u << t->swizzle);
    if (bytes > MAX_BOX_BYTES)
        return refuse(c, "the box has %llu bytes, more than shared memory", (unsigned long long)bytes);
    return true;
}

static bool check_modes(const struct tensor_layout *t, const struct complaint *c)
{
    if (t->interleave > INTERLEAVE_32B) return refuse(c, "interleave %u is none of those defined", t->interleave);
    if (t->swizzle > SWIZZLE_128B || t->atom > ATOM_64B) return refuse(c, "the swizzle is none of those defined");
    if (t->atom != ATOM_16B && t->swizzle != SWIZZLE_128B)
        return refuse(c, "only the swizzle of 128 bytes has atoms of other than 16 bytes");
    if (t->interleave != INTERLEAVE_NONE && t->rank < 3)
        return refuse(c, "an interleaved tensor has 3 dimensions at least, not %u", t->rank);
    if (t->interleave == INTERLEAVE_32B && t->swizzle != SWIZZLE_32B)
        return refuse(c, "interleave of 32 bytes goes with the swizzle of 32 bytes only");
    if (t->l2_promotion > 3) return refuse(c, "L2 promotion %u is none of those defined", t->l2_promotion);
    if (t->nan_fill > 1) return refuse(c, "fill %u is none of those defined", t->nan_fill);
    if (t->nan_fill && !tensor_types[t->type].is_float)
        return refuse(c, "NaN is no fill for type %s", tensor_types[t->type].name);
    if (!is_padded(t)) return true;
    if (t->interleave != INTERLEAVE_NONE) return refuse(c, "type %s is not interleaved", tensor_types[t->type].name);
    const bool whole = t->swizzle == SWIZZLE_NONE || (t->swizzle == SWIZZLE_128B && t->atom != ATOM_32B_FLIP_8B);
    if (!whole || (t->type == TENSOR_MAP_B4X16_P64 && t->atom == ATOM_64B))
        return refuse(c, "type %s does not go with this swizzle", tensor_types[t->type].name);
    return true;
}

bool tensor_layout_check(const struct device_limits *device, const struct tensor_layout *t, char *sentence, size_t size)
{
    const struct complaint c = { sentence, size };
    if (t->type >= TENSOR_TYPE_COUNT) return refuse(&c, "type %u is none of those defined", t->type);
    if (t->rank == 0 || t->rank > TENSOR_RANK) return refuse(&c, "the rank is %u; it is 1 to %d", t->rank, TENSOR_RANK);
    return check_modes(t, &c) && check_device(device, t, &c) && check_tensor(t, &c) && check_box(t, &c);
}

/* ---- the driver's calls ---- */

/* Known issues of driver 595.71.05, and so CUTLASS and Triton have it for those before: a tensor whose memory has less
 * than 128 KiB, and whose rows or planes have gaps or overlap. */
static bool is_sporadic(const struct device_limits *device, const struct tensor_layout *t)
{
    enum { SMALL = 128 * 1024 };
    uint64_t end = t->dim[0] * tensor_types[t->type].packed / 16, packed = end;
    bool dense = true;
    for (uint32_t i = 1; i < t->rank; i++) {
        const uint64_t stride = t->stride[i - 1], more = t->dim[i] - 1;
        if (stride != 0 && more > SMALL / stride) return false;
        dense &= stride == packed;
        end += more * stride, packed *= t->dim[i];
    }
    return device->sm >= 100 && !dense && end < SMALL;
}

/* CUtensorMapSwizzle: none, 32B, 64B, 128B, then 128B with its other atoms. */
static void set_swizzle(struct tensor_layout *t, unsigned swizzle)
{
    t->swizzle = (uint8_t)(swizzle <= SWIZZLE_128B              ? swizzle
                           : swizzle <= SWIZZLE_128B + ATOM_64B ? SWIZZLE_128B
                                                                : UINT8_MAX);
    t->atom = (uint8_t)(t->swizzle == SWIZZLE_128B ? swizzle - SWIZZLE_128B : ATOM_16B);
}

static uint8_t narrow(unsigned value) { return (uint8_t)(value > UINT8_MAX ? UINT8_MAX : value); }

int tensor_map_encode_tiled(const struct device_limits *device, void *map, unsigned type, unsigned rank,
                            uint64_t address, const uint64_t *dim, const uint64_t *stride, const uint32_t *box,
                            const uint32_t *element_stride, unsigned interleave, unsigned swizzle,
                            unsigned l2_promotion, unsigned fill, char *sentence, size_t size)
{
    const struct complaint c = { sentence, size };
    struct tensor_layout t;
    memset(&t, 0, sizeof t);
    if (map == NULL || dim == NULL || box == NULL || element_stride == NULL || (stride == NULL && rank > 1))
        return refuse(&c, "an argument is a null pointer"), 1;
    if ((uintptr_t)map % 64 != 0) return refuse(&c, "the map's address is no multiple of 64"), 1;
    if (rank == 0 || rank > TENSOR_RANK) return refuse(&c, "the rank is %u; it is 1 to %d", rank, TENSOR_RANK), 1;
    t.address = address;
    t.type = narrow(type), t.rank = (uint8_t)rank, t.interleave = narrow(interleave),
    t.l2_promotion = narrow(l2_promotion);
    t.nan_fill = narrow(fill);
    set_swizzle(&t, swizzle);
    for (unsigned i = 0; i < rank; i++) {
        t.dim[i] = dim[i];
        t.box[i] = (uint16_t)(box[i] > UINT16_MAX ? UINT16_MAX : box[i]);
        t.element_stride[i] = narrow(element_stride[i]);
        if (i + 1 < rank) t.stride[i] = stride[i];
    }
    if (!tensor_layout_check(device, &t, sentence, size)) return 1;
    t.sporadic = is_sporadic(device, &t);
    tensor_map_write(map, &t);
    return 0;
}

int tensor_map_replace_address(const struct device_limits *device, void *map, uint64_t address, char *sentence,
                               size_t size)
{
    const struct complaint c = { sentence, size };
    struct tensor_layout t;
    if (map == NULL || (uintptr_t)map % 64 != 0) return refuse(&c, "the map's address is no multiple of 64"), 1;
    if (tensor_map_read(map, &t) != TENSOR_MAP_VALID)
        return refuse(&c, "the map was not encoded by cuTensorMapEncodeTiled"), 1;
    t.address = address;
    if (!tensor_layout_check(device, &t, sentence, size)) return 1;
    tensor_map_write(map, &t);
    return 0;
}

/* ---- swizzle ---- */

/* Bits of the shared address above the row (bit 7 up) are added without carry to those of the atom's number inside the
 * row. */
uint32_t tensor_swizzle_address(const struct tensor_layout *t, uint32_t address)
{
    switch (t->swizzle) {
    case SWIZZLE_32B: return address ^ (address >> 3 & 0x10);
    case SWIZZLE_64B: return address ^ (address >> 3 & 0x30);
    case SWIZZLE_128B: break;
    default: return address;
    }
    switch (t->atom) {
    case ATOM_32B: return address ^ (address >> 2 & 0x60);
    case ATOM_32B_FLIP_8B: return address ^ (address >> 2 & 0x60) ^ (address >> 4 & 0x08);
    case ATOM_64B: return address ^ (address >> 1 & 0x40);
    default: return address ^ (address >> 3 & 0x70);
    }
}
