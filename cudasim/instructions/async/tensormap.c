/* Tensor maps in memory (PTX ISA 5.5.8): reading them, tensormap.replace, tensormap.cp_fenceproxy,
 * prefetch.tensormap. */
#include "tensormap.h"
#include "instructions/table/families.h"
#include "instructions/memory/memory.h"
#include "machine/check/checks.h"
#include "machine/async/bulk_group.h"
#include "machine/core/address_space.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"

#include <string.h>

enum { MAP_ALIGNMENT = 64, PIECE = 16 };

/* ---- reading ---- */

static trap find_map(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address, const uint8_t **map,
                     bool *global)
{
    const struct grid *grid = w->cta->cluster->grid;
    const uint64_t offset = address - PARAM_WINDOW;
    *global = false;
    if (address >= PARAM_WINDOW && offset + TENSOR_MAP_BYTES <= grid->function->parameter_bytes) {
        *map = grid->launch->parameters + offset;
    } else if (address < SHARED_WINDOW || address >= PARAM_WINDOW) {
        *map = space_host(&grid->machine->memory, address, TENSOR_MAP_BYTES);
        *global = true;
    } else {
        return warp_fault(w, in, lane, REPORT_ILLEGAL,
                          "reads a tensor map at 0x%llx in %s memory; it lies in .param (a __grid_constant__ "
                          "parameter), .const or .global",
                          (unsigned long long)address, address < LOCAL_WINDOW ? "shared" : "local");
    }
    if (*map == NULL)
        return warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS,
                          "reads a tensor map at 0x%llx, where no 128 bytes are allocated",
                          (unsigned long long)address);
    if (address % MAP_ALIGNMENT != 0)
        return warp_fault(w, in, lane, REPORT_MISALIGNED, "reads a tensor map at 0x%llx, which is no multiple of %d",
                          (unsigned long long)address, MAP_ALIGNMENT);
    return TRAP_NONE;
}

/* A map that this cluster has written is read in order, and with a fence of the CTA that saw its present contents. */
static trap check_changes(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address, const uint8_t *map)
{
    if (!race_wrote_global(w->cta->cluster, address, TENSOR_MAP_BYTES)) return TRAP_NONE;
    struct async_token *token = async_begin(w, in, 1u << lane, PROXY_GENERIC);
    if (token == NULL) return TRAP_NONE;
    const trap t = async_reads_global(token, address, TENSOR_MAP_BYTES);
    async_end(token);
    if (t != TRAP_NONE || tma_map_is_acquired(w, address, map)) return t;
    return warp_breaks(w, in, lane, RULE_TENSORMAP_FENCE,
                      "reads the tensor map at 0x%llx, which this kernel has changed; "
                      "no fence.proxy.tensormap::generic.acquire of this CTA lies between",
                      (unsigned long long)address);
}

trap tensormap_fetch(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address,
                     struct tensor_layout *layout)
{
    const uint8_t *map = NULL;
    bool global;
    char sentence[256];
    trap t = find_map(w, in, lane, address, &map, &global);
    if (t == TRAP_NONE && global) t = check_changes(w, in, lane, address, map);
    if (t != TRAP_NONE) return t;
    switch (tensor_map_read(map, layout)) {
    case TENSOR_MAP_VALID: break;
    case TENSOR_MAP_DAMAGED:
        return warp_fault(w, in, lane, REPORT_ILLEGAL,
                          "reads a tensor map at 0x%llx whose bytes were changed after it was encoded, or copied in "
                          "part",
                          (unsigned long long)address);
    default:
        return warp_fault(w, in, lane, REPORT_ILLEGAL, "reads a tensor map at 0x%llx, where none was encoded",
                          (unsigned long long)address);
    }
    if (!tensor_layout_check(w->cta->cluster->grid->machine->device, layout, sentence, sizeof sentence))
        return warp_fault(w, in, lane, REPORT_ILLEGAL, "uses a tensor map that is illegal: %s", sentence);
    if (layout->sporadic)
        return warp_fault(w, in, lane, REPORT_ILLEGAL,
                          "uses a tensor map of less than 128 KiB with gaps or overlaps, as the driver encoded it: "
                          "some drivers encode these wrongly for Blackwell (known issues of 595.71.05); "
                          "clear bit 85: ((uint64_t *)&map)[1] &= ~(1ull << 21)");
    return TRAP_NONE;
}

/* prefetch.tensormap [a]   no effect; there must be a map */
static trap op_prefetch(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct tensor_layout layout;
    uint64_t address[LANES];
    address_lanes(w, &in->operand[0], lanes, address);
    FOR_LANES(l, lanes) {
        const trap t = tensormap_fetch(w, in, l, address[l], &layout);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

/* ---- as generic memory ---- */

/* 128 bytes in pieces that memory_access knows. */
static trap access_map(struct warp *w, const struct insn *in, uint32_t lane, enum space space, uint64_t address,
                       bool reads, bool writes, uint8_t **host)
{
    if (address % MAP_ALIGNMENT != 0)
        return warp_fault(w, in, lane, REPORT_MISALIGNED, "names a tensor map at 0x%llx, which is no multiple of %d",
                          (unsigned long long)address, MAP_ALIGNMENT);
    for (uint32_t i = 0; i < TENSOR_MAP_BYTES; i += PIECE) {
        struct access a = { .space = space, .bytes = PIECE, .reads = reads, .writes = writes };
        a.address[lane] = address + i;
        const trap t = memory_access(w, in, 1u << lane, &a);
        if (t != TRAP_NONE) return t;
        if (i == 0) *host = a.host[lane];
    }
    return TRAP_NONE;
}

static void load_map(const uint8_t *host, uint8_t *map)
{
    for (uint32_t i = 0; i < TENSOR_MAP_BYTES; i += 8) {
        const uint64_t value = load_bytes(host + i, 8);
        memcpy(map + i, &value, 8);
    }
}

static void store_map(uint8_t *host, const uint8_t *map)
{
    for (uint32_t i = 0; i < TENSOR_MAP_BYTES; i += 8) {
        uint64_t value;
        memcpy(&value, map + i, 8);
        store_bytes(host + i, 8, value);
    }
}

/* ---- tensormap.replace ---- */

enum field {
    GLOBAL_ADDRESS,
    RANK,
    BOX_DIM,
    GLOBAL_DIM,
    GLOBAL_STRIDE,
    ELEMENT_STRIDE,
    ELEMTYPE,
    INTERLEAVE_LAYOUT,
    SWIZZLE_MODE,
    SWIZZLE_ATOMICITY,
    FILL_MODE,
    FIELD_COUNT
};
static const struct {
    const char *word;
    uint32_t values;
} fields[FIELD_COUNT] = {
    { ".global_address", 0 },
    { ".rank", 0 },
    { ".box_dim", 0 },
    { ".global_dim", 0 },
    { ".global_stride", 0 },
    { ".element_stride", 0 },
    { ".elemtype", TENSOR_TYPE_COUNT },
    { ".interleave_layout", 3 },
    { ".swizzle_mode", 4 },
    { ".swizzle_atomicity", 4 },
    { ".fill_mode", 2 },
};

/* The numbers of .elemtype are not those of CUtensorMapDataType. */
static const uint8_t elemtypes[TENSOR_TYPE_COUNT] = {
    TENSOR_MAP_U8,       TENSOR_MAP_U16,   TENSOR_MAP_U32,       TENSOR_MAP_S32,       TENSOR_MAP_U64,  TENSOR_MAP_S64,
    TENSOR_MAP_F16,      TENSOR_MAP_F32,   TENSOR_MAP_F32_FTZ,   TENSOR_MAP_F64,       TENSOR_MAP_BF16, TENSOR_MAP_TF32,
    TENSOR_MAP_TF32_FTZ, TENSOR_MAP_B4X16, TENSOR_MAP_B4X16_P64, TENSOR_MAP_B6X16_P32,
};

static bool is_tf32(uint8_t type) { return type == TENSOR_MAP_TF32 || type == TENSOR_MAP_TF32_FTZ; }

static uint8_t narrow(uint64_t value) { return (uint8_t)(value > UINT8_MAX ? UINT8_MAX : value); }

/* Values that do not fit become ones that are illegal: the map is looked at when it is used. */
static void replace_field(struct tensor_layout *t, enum field field, uint32_t i, uint64_t value)
{
    switch (field) {
    case GLOBAL_ADDRESS: t->address = value; break;
    case RANK: t->rank = narrow(value < UINT8_MAX ? value + 1 : value); break;
    case BOX_DIM: t->box[i] = (uint16_t)(value > UINT16_MAX ? UINT16_MAX : value); break;
    case GLOBAL_DIM: t->dim[i] = value; break;
    case GLOBAL_STRIDE: t->stride[i] = value; break;
    case ELEMENT_STRIDE: t->element_stride[i] = narrow(value); break;
    case ELEMTYPE: t->type = elemtypes[value]; break;
    case INTERLEAVE_LAYOUT: t->interleave = narrow(value); break;
    case SWIZZLE_MODE: t->swizzle = narrow(value); break;
    case SWIZZLE_ATOMICITY: t->atom = narrow(value); break;
    default: t->nan_fill = narrow(value); break;
    }
}

/* tensormap.replace.field [a], {i,} value   sets a field of the map at a; zeros are taken for a map with no field
 * set */
static trap op_replace(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const enum field field = (enum field)(in->detail & 0xff);
    const bool has_ordinal = (in->detail >> 8 & 1) != 0;
    const uint64_t *value = source(w, in, has_ordinal ? 2 : 1);
    uint64_t address[LANES];
    address_lanes(w, &in->operand[0], lanes, address);
    FOR_LANES(l, lanes) {
        uint8_t *host, map[TENSOR_MAP_BYTES];
        struct tensor_layout layout;
        const trap t = access_map(w, in, l, (enum space)in->space, address[l], true, true, &host);
        if (t != TRAP_NONE) return t;
        load_map(host, map);
        const enum tensor_map_state state = tensor_map_read(map, &layout);
        if (state == TENSOR_MAP_FOREIGN || state == TENSOR_MAP_DAMAGED)
            return warp_fault(w, in, l, REPORT_ILLEGAL, "changes 128 bytes at 0x%llx that are no tensor map",
                              (unsigned long long)address[l]);
        if (field == ELEMTYPE && is_tf32(layout.type) && !is_tf32(elemtypes[value[l]]))
            return warp_fault(w, in, l, REPORT_ILLEGAL,
                              "changes the element type of the tensor map at 0x%llx from tf32 to another: hardware "
                              "goes on rounding to tf32 (.f32), or faults when the map is used",
                              (unsigned long long)address[l]);
        replace_field(&layout, field, has_ordinal ? (uint32_t)in->operand[1].value : 0, value[l]);
        tensor_map_write(map, &layout);
        store_map(host, map);
    }
    return TRAP_NONE;
}

static const char *prepare_replace(struct module *module, struct insn *in)
{
    uint32_t field = 0;
    while (field < FIELD_COUNT && !insn_has(in, fields[field].word)) field++;
    const bool has_ordinal = field >= BOX_DIM && field <= ELEMENT_STRIDE;
    in->detail = field | (uint64_t)has_ordinal << 8;
    if (has_ordinal && (in->operand[1].value < 0 || in->operand[1].value >= TENSOR_RANK - (field == GLOBAL_STRIDE)))
        return "the ordinal is that of a dimension, from 0 (strides: of dimension 1, from 0)";
    if (field < ELEMTYPE) return NULL;
    const int64_t value = in->operand[1].value;
    if (field == SWIZZLE_MODE && value == 4) return "the swizzle of 96 bytes is not simulated";
    if (value < 0 || value >= fields[field].values) return "this value of the field is not defined";
    if (field == ELEMTYPE && value >= 13 && (module->sm < 100 || module->version < 87))
        return "the sub-byte types need PTX 8.7 and sm_100 or later";
    return NULL;
}

/* ---- tensormap.cp_fenceproxy ---- */

/* The copy is every lane's: in the manual's example each acquires the map behind it with no barrier between. */
static void know_copy(struct warp *w, uint32_t first, uint32_t lanes)
{
    const uint64_t object = sync_object(SYNC_WARP, w->cta, UINT64_C(1) << 32 | w->index);
    checks_release(w, 1u << first, object);
    checks_acquire(w, lanes, object);
}

/* tensormap.cp_fenceproxy [to], [from], 128   the warp copies a map from shared to global memory, for the tensormap
 * proxy */
static trap op_copy(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t to[LANES], from[LANES];
    uint8_t *target, *origin, map[TENSOR_MAP_BYTES];
    address_lanes(w, &in->operand[0], lanes, to);
    address_lanes(w, &in->operand[1], lanes, from);
    const uint32_t first = (uint32_t)__builtin_ctz(lanes);
    FOR_LANES(l, lanes)
        if (to[l] != to[first] || from[l] != from[first])
        return warp_fault(w, in, l, REPORT_ILLEGAL, "names other addresses in this lane than in lane %u", first);
    trap t = access_map(w, in, first, SPACE_SHARED, from[first], true, false, &origin);
    if (t == TRAP_NONE) t = access_map(w, in, first, SPACE_GLOBAL, to[first], false, true, &target);
    if (t != TRAP_NONE) return t;
    load_map(origin, map);
    store_map(target, map);
    checks_fence(w, lanes);
    know_copy(w, first, lanes);
    return TRAP_NONE;
}

static const char *prepare_copy(struct module *module, struct insn *in)
{
    (void)module;
    return in->operand[2].value == TENSOR_MAP_BYTES ? NULL : "the size of a tensor map is 128";
}

#define SPACES          "{.global|.shared::cta}"
#define REPLACE_TARGETS "sm_90a sm_100f sm_110f sm_120f"
#define REPLACE(field, type, operands, since, targets) \
    { \
        "tensormap.replace.tile" field SPACES ".b1024." type, NULL, operands, since, targets, 0, op_replace, \
            prepare_replace, "9.7.9.28 tensormap.replace" \
    }

static const struct row rows[] = {
    { "prefetch{.const|.param}.tensormap", NULL, "a", 80, "sm_90+", 0, op_prefetch, NULL, "9.7.9.15 prefetch" },
    REPLACE(".global_address", "b64", "a s:b64", 83, REPLACE_TARGETS),
    REPLACE(".rank", "b32", "a s:b32", 83, REPLACE_TARGETS),
    REPLACE("(.box_dim|.global_dim|.element_stride)", "b32", "a i:u32 s:b32", 83, REPLACE_TARGETS),
    REPLACE(".global_stride", "b64", "a i:u32 s:b64", 83, REPLACE_TARGETS),
    REPLACE("(.elemtype|.interleave_layout|.swizzle_mode|.fill_mode)", "b32", "a i:u32", 83, REPLACE_TARGETS),
    REPLACE(".swizzle_atomicity", "b32", "a i:u32", 86, "sm_100f sm_110f sm_120f"),
    { "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release(.cta|.cluster|.gpu|.sys).sync.aligned",
      NULL, "a a i:u32", 83, "sm_90+", DEMANDS_WHOLE_WARP, op_copy, prepare_copy, "9.7.13.16 tensormap.cp_fenceproxy" },
};

const struct family family_tensormap = FAMILY("tensor maps", rows);
