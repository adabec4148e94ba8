/* Tensor copies (PTX ISA 9.7.9.27.1): cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, their prefetch, in tile mode
 * with gather4 and scatter4.  The element address is that of 5.5.3; what the manual leaves open is as measured on
 * Hopper: rows of a swizzled box take the whole span of the swizzle, stores round a clipped row up to 16 bytes,
 * complete_tx counts the whole box. */
#include "bulk_reduction.h"
#include "instructions/table/families.h"
#include "instructions/memory/reduction.h"
#include "tensormap.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"

#include <stdlib.h>
#include <string.h>

enum { GATHERED = 4, SHARED_ALIGNMENT = 128 };

/* insn.detail of these instructions. */
enum mode { MODE_TILE, MODE_GATHER };
static enum mode mode_of(const struct insn *in) { return (enum mode)(in->detail & 1); }
static uint32_t dimensions_of(const struct insn *in) { return (uint32_t)(in->detail >> 1 & 7); }
static enum reduction operation_of(const struct insn *in) { return (enum reduction)(in->detail >> 4 & 15); }
enum { CTA_PAIR = 256 };

/* ---- one lane's box ---- */

struct box {
    struct warp *warp;
    const struct insn *in;
    uint32_t lane;
    struct tensor_layout layout;
    int64_t start[TENSOR_RANK];
    uint32_t elements[TENSOR_RANK]; /* of the box along each dimension */
    int64_t gathered[GATHERED];     /* rows; elements[1] is their number */
    uint64_t shared;                /* address */
    bool writes;                    /* to global memory */
};

static trap illegal(const struct box *b, const char *sentence)
{
    return warp_fault(b->warp, b->in, b->lane, REPORT_ILLEGAL, "%s", sentence);
}

static int64_t coordinate(const struct box *b, const struct operand *vector, uint32_t i)
{
    return (int32_t)(uint32_t)source_row(b->warp, &vector->element[i])[b->lane];
}

static void take_coordinates(struct box *b, const struct operand *vector)
{
    const bool gathers = mode_of(b->in) == MODE_GATHER;
    for (uint32_t i = 0; i < b->layout.rank; i++) {
        b->elements[i] = tensor_box_elements(&b->layout, i);
        if (!gathers || i == 0) b->start[i] = coordinate(b, vector, i);
    }
    if (!gathers) return;
    b->elements[1] = GATHERED;
    for (uint32_t i = 0; i < GATHERED; i++) b->gathered[i] = coordinate(b, vector, 1 + i);
}

static bool is_padded(const struct box *b)
{
    return tensor_types[b->layout.type].packed != tensor_types[b->layout.type].padded;
}

static trap check_shape(const struct box *b)
{
    const struct tensor_layout *t = &b->layout;
    const uint32_t wanted = dimensions_of(b->in);
    if (t->rank != wanted)
        return warp_fault(b->warp, b->in, b->lane, REPORT_ILLEGAL, "names %u dimensions; the tensor map has %u", wanted,
                          t->rank);
    if (t->interleave != INTERLEAVE_NONE)
        return illegal(b, "uses an interleaved tensor map; interleaved layouts are not simulated");
    if (mode_of(b->in) == MODE_GATHER && t->box[1] != 1)
        return illegal(b, "gathers or scatters rows with a box of more than one element in dimension 1");
    return TRAP_NONE;
}

static trap check_coordinates(const struct box *b)
{
    const struct tensor_layout *t = &b->layout;
    const int64_t step = is_padded(b) ? 128 : 256 / tensor_types[t->type].packed; /* elements of 16 bytes */
    if (b->start[0] % step != 0)
        return warp_fault(b->warp, b->in, b->lane, REPORT_ILLEGAL,
                          "names coordinate %lld in dimension 0; for type %s it is a multiple of %lld",
                          (long long)b->start[0], tensor_types[t->type].name, (long long)step);
    if (!b->writes) return TRAP_NONE;
    for (uint32_t i = 0; i < t->rank; i++)
        if (b->start[i] < 0)
            return warp_fault(b->warp, b->in, b->lane, REPORT_ILLEGAL,
                              "stores a box that begins at coordinate %lld in dimension %u; it must not be negative",
                              (long long)b->start[i], i);
    for (uint32_t i = 0; mode_of(b->in) == MODE_GATHER && i < GATHERED; i++)
        if (b->gathered[i] < 0)
            return warp_fault(b->warp, b->in, b->lane, REPORT_ILLEGAL, "stores row %lld; it must not be negative",
                              (long long)b->gathered[i]);
    return TRAP_NONE;
}

/* Which types and swizzles go which way ("Restriction on Tensor Copy instructions").  Not in the manual: loads of other
 * types with atoms of 64 bytes trap on a B200, and the flip is for loads only (tests of TVM that compare with that
 * device). */
static trap check_store_type(const struct box *b)
{
    if (b->layout.type == TENSOR_MAP_B4X16_P64)
        return illegal(b, "stores elements of type b4x16_p64, which can be loaded only");
    if (b->layout.atom == ATOM_32B_FLIP_8B)
        return illegal(b, "stores with the swizzle that flips 8 bytes, which is for loads only");
    return TRAP_NONE;
}

static trap check_load_type(const struct box *b)
{
    const uint32_t sm = b->warp->cta->cluster->grid->machine->device->sm;
    const bool of_cluster = b->in->space == SPACE_SHARED_CLUSTER;
    if (b->layout.atom == ATOM_64B)
        return illegal(b, "loads with swizzle atoms of 64 bytes, which are for stores only");
    if (sm < 120 || !of_cluster) return TRAP_NONE;
    if (b->layout.type >= TENSOR_MAP_B4X16)
        return illegal(b, "loads elements of a sub-byte type to .shared::cluster, which sm_120 does to .shared::cta "
                          "only");
    if (b->layout.atom != ATOM_16B)
        return illegal(b, "loads with a swizzle atomicity to .shared::cluster, which sm_120 does to .shared::cta only");
    return TRAP_NONE;
}

static trap take_box(struct box *b, const struct operand *map, const struct operand *coordinates)
{
    uint64_t address[LANES];
    address_lanes(b->warp, map, 1u << b->lane, address);
    trap t = tensormap_fetch(b->warp, b->in, b->lane, address[b->lane], &b->layout);
    if (t == TRAP_NONE) t = check_shape(b);
    if (t != TRAP_NONE) return t;
    take_coordinates(b, coordinates);
    t = b->writes ? check_store_type(b) : check_load_type(b);
    return t == TRAP_NONE ? check_coordinates(b) : t;
}

static trap take_shared(struct box *b, const struct operand *operand)
{
    uint64_t address[LANES];
    address_lanes(b->warp, operand, 1u << b->lane, address);
    b->shared = address[b->lane];
    if (b->shared % SHARED_ALIGNMENT == 0) return TRAP_NONE;
    return warp_fault(b->warp, b->in, b->lane, REPORT_MISALIGNED,
                      "%s shared address 0x%llx, which is no multiple of %d", b->writes ? "reads from" : "writes to",
                      (unsigned long long)b->shared, SHARED_ALIGNMENT);
}

/* ---- rows ---- */

static uint32_t row_count(const struct box *b)
{
    uint32_t rows = 1;
    for (uint32_t i = 1; i < b->layout.rank; i++) rows *= b->elements[i];
    return rows;
}

/* The packed bytes of row `number` that are inside of the tensor. */
static void place_row(const struct box *b, uint32_t number, struct tma_row *row)
{
    const struct tensor_layout *t = &b->layout;
    const bool gathers = mode_of(b->in) == MODE_GATHER;
    int64_t low = b->start[0] < 0 ? -b->start[0] : 0, high = (int64_t)t->dim[0] - b->start[0];
    if (high > t->box[0]) high = t->box[0];
    uint64_t address = t->address;
    for (uint32_t i = 1, rest = number; i < t->rank; i++) {
        const uint32_t j = rest % b->elements[i];
        rest /= b->elements[i];
        const int64_t at = gathers ? b->gathered[j] : b->start[i] + (int64_t)j * t->element_stride[i];
        if (at < 0 || (uint64_t)at >= t->dim[i]) high = low;
        address += (uint64_t)at * t->stride[i - 1];
    }
    if (low >= high) return;
    const uint32_t packed = tensor_types[t->type].packed;
    row->skip = tensor_packed_bytes(t, (uint32_t)low);
    row->valid = tensor_packed_bytes(t, (uint32_t)high) - row->skip;
    row->address = address + (uint64_t)((b->start[0] + low) * packed / 16);
    /* bytes up to the next multiple of 16 lie in the padding of the row and are written, too */
    if (b->writes && !is_padded(b)) row->valid = (row->valid + 15) & ~15u;
}

static trap make_plan(const struct box *b, uint32_t offset, struct tma_plan *plan)
{
    const struct tensor_layout *t = &b->layout;
    const uint32_t count = row_count(b), pitch = tensor_row_pitch(t);
    *plan = (struct tma_plan){ .warp = b->warp,
                               .in = b->in,
                               .lane = b->lane,
                               .layout = *t,
                               .count = count,
                               .row_bytes = tensor_packed_bytes(t, t->box[0]),
                               .row = calloc(count, sizeof *plan->row),
                               .byte_mask = UINT16_MAX };
    if (plan->row == NULL)
        return warp_fault(b->warp, b->in, b->lane, REPORT_RESOURCES, "finds no host memory for its box");
    for (uint32_t i = 0; i < count; i++) {
        struct tma_row *row = &plan->row[i];
        row->shared = offset + i * pitch;
        place_row(b, i, row);
        if (row->valid == 0) continue;
        const trap result =
            tma_global(b->warp, b->in, b->lane, row->address, row->valid, t->address, b->writes, &row->host);
        if (result == TRAP_NONE) continue;
        free(plan->row);
        return result;
    }
    return TRAP_NONE;
}

static uint64_t shared_bytes(const struct box *b)
{
    return (uint64_t)(row_count(b) - 1) * tensor_row_pitch(&b->layout)
           + tensor_padded_bytes(&b->layout, b->layout.box[0]);
}

/* A swizzle permutes chunks inside of the spans of the last rows. */
static uint64_t touched_bytes(const struct box *b)
{
    return b->layout.swizzle == SWIZZLE_NONE ? shared_bytes(b) : (uint64_t)row_count(b) * tensor_row_pitch(&b->layout);
}

/* ---- loads ---- */

/* cp.async.bulk.tensor.shared.global [to], [map, {coordinates}], [mbar]   the box to shared memory; complete_tx of its
 * bytes */
static trap load(struct box *b)
{
    const struct insn *in = b->in;
    struct cta *to;
    uint32_t offset;
    struct tma_barrier barrier = { .of_pair = (in->detail & CTA_PAIR) != 0 };
    struct tma_plan plan;
    trap t = take_box(b, &in->operand[1], &in->operand[2]);
    if (t == TRAP_NONE) t = take_shared(b, &in->operand[0]);
    if (t == TRAP_NONE)
        t = tma_shared(b->warp, in, b->lane, b->shared, touched_bytes(b), in->space == SPACE_SHARED_CLUSTER, &to,
                       &offset);
    if (t == TRAP_NONE) t = tma_find_barrier(b->warp, in, b->lane, &in->operand[3], to, &barrier);
    if (t == TRAP_NONE) t = make_plan(b, offset, &plan);
    if (t != TRAP_NONE) return t;
    barrier.bytes = plan.count * plan.row_bytes;
    t = tma_load_each(&plan, to, barrier, &in->operand[4]);
    free(plan.row);
    return t;
}

static trap op_load(struct warp *w, const struct insn *in, uint32_t lanes)
{
    trap t = TRAP_NONE;
    FOR_LANES(l, lanes) {
        struct box b = { .warp = w, .in = in, .lane = l };
        if (t == TRAP_NONE) t = load(&b);
    }
    return t;
}

/* ---- stores and reductions ---- */

/* What the map's type is to a reduction; T_NONE: not reduced so. */
static enum ptx_type reduced_type(enum reduction operation, uint32_t type)
{
    const bool bits = operation == REDUCE_AND || operation == REDUCE_OR || operation == REDUCE_XOR;
    const bool extreme = operation == REDUCE_MIN || operation == REDUCE_MAX;
    const bool counts = operation == REDUCE_INC || operation == REDUCE_DEC;
    switch (type) {
    case TENSOR_MAP_U32: return T_U32;
    case TENSOR_MAP_S32: return bits ? T_B32 : counts ? T_NONE : T_S32;
    case TENSOR_MAP_U64: return counts ? T_NONE : T_U64;
    case TENSOR_MAP_S64: return extreme ? T_S64 : T_NONE;                         /* no and, or, xor: so an H200 */
    case TENSOR_MAP_F32: return operation == REDUCE_ADD ? T_F32 : T_NONE;
    case TENSOR_MAP_F16: return bits || counts ? T_NONE : T_F16;
    case TENSOR_MAP_BF16: return bits || counts ? T_NONE : T_BF16;
    default: return T_NONE;
    }
}

static trap store(struct box *b, bool reduces)
{
    const struct insn *in = b->in;
    struct cta *from;
    uint32_t offset;
    struct tma_plan plan;
    trap t = take_box(b, &in->operand[0], &in->operand[1]);
    if (t == TRAP_NONE) t = take_shared(b, &in->operand[2]);
    if (t == TRAP_NONE) t = tma_shared(b->warp, in, b->lane, b->shared, touched_bytes(b), false, &from, &offset);
    const enum ptx_type type = t == TRAP_NONE && reduces ? reduced_type(operation_of(in), b->layout.type) : T_NONE;
    if (t == TRAP_NONE && reduces && type == T_NONE)
        t = warp_fault(b->warp, in, b->lane, REPORT_ILLEGAL,
                       "reduces elements of type %s, for which there is no such operation",
                       tensor_types[b->layout.type].name);
    if (t == TRAP_NONE) t = make_plan(b, offset, &plan);
    if (t != TRAP_NONE) return t;
    if (reduces) {
        plan.combine = bulk_combine;
        plan.kind = bulk_reduction_kind(operation_of(in), type);
    }
    t = tma_store(&plan, from);
    free(plan.row);
    return t;
}

/* cp.async.bulk.tensor.global.shared::cta [map, {coordinates}], [from]   the box to global memory; in the bulk group */
static trap op_store(struct warp *w, const struct insn *in, uint32_t lanes)
{
    trap t = TRAP_NONE;
    FOR_LANES(l, lanes) {
        struct box b = { .warp = w, .in = in, .lane = l, .writes = true };
        if (t == TRAP_NONE) t = store(&b, false);
    }
    return t;
}

/* cp.reduce.async.bulk.tensor   the same; elements in global memory are reduced with those of the box */
static trap op_reduce(struct warp *w, const struct insn *in, uint32_t lanes)
{
    trap t = TRAP_NONE;
    FOR_LANES(l, lanes) {
        struct box b = { .warp = w, .in = in, .lane = l, .writes = true };
        if (t == TRAP_NONE) t = store(&b, true);
    }
    return t;
}

/* cp.async.bulk.prefetch.tensor   no effect; the box must be one that could be loaded */
static trap op_prefetch(struct warp *w, const struct insn *in, uint32_t lanes)
{
    FOR_LANES(l, lanes) {
        struct box b = { .warp = w, .in = in, .lane = l };
        const trap t = take_box(&b, &in->operand[0], &in->operand[1]);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

/* ---- rows of the table ---- */

/* The first group of words is the number of dimensions; coordinates are a vector of as many, gathered rows one of
 * five. */
static const char *prepare(struct insn *in, uint32_t vector)
{
    const bool gathers = insn_has(in, ".tile::gather4") || insn_has(in, ".tile::scatter4");
    const uint32_t dimensions = gathers ? 2 : in->choice[0], wanted = gathers ? 1 + GATHERED : dimensions;
    if (in->operand[vector].count != wanted)
        return "the vector of coordinates has another length than this form has dimensions";
    in->detail = (uint64_t)reduction_of(in) << 4 | dimensions << 1 | (gathers ? MODE_GATHER : MODE_TILE);
    if (insn_has(in, ".cta_group::2")) in->detail |= CTA_PAIR;
    return NULL;
}

/* ptxas takes .tile and .multicast::cluster in several places each. */
static const char *prepare_load(struct module *module, struct insn *in)
{
    (void)module;
    if (insn_count(in, ".tile") > 1) return ".tile stands twice";
    if (insn_count(in, ".multicast::cluster") > 1) return ".multicast::cluster stands twice";
    return prepare(in, 2);
}

static const char *prepare_store(struct module *module, struct insn *in)
{
    (void)module;
    return prepare(in, 1);
}

#define DIMENSIONS       "(.1d|.2d|.3d|.4d|.5d)"
#define SIGNAL           ".mbarrier::complete_tx::bytes"
#define CTA_GROUP        "(.cta_group::1|.cta_group::2)"
#define LOADED           "a A:s32{} a (.multicast::cluster)s:b16 (.L2::cache_hint)s:b64"
#define STORED           "A:s32{} a (.L2::cache_hint)s:b64"
#define LOAD_SECTION     "9.7.9.27.1.2 cp.async.bulk.tensor"
#define REDUCE_SECTION   "9.7.9.27.1.3 cp.reduce.async.bulk.tensor"
#define PREFETCH_SECTION "9.7.9.27.1.4 cp.async.bulk.prefetch.tensor"
#define REDUCTIONS       "(.add|.min|.max|.inc|.dec|.and|.or|.xor)"

/* The manual writes .cta_group behind .multicast::cluster, CUTLASS behind the dimension; ptxas takes both. */
#define LOAD(dimensions, destination, mode, late_mode, multicast, since, targets) \
    { "cp.async.bulk.tensor" dimensions destination ".global" mode SIGNAL late_mode multicast \
      "{.L2::cache_hint}" multicast, \
      NULL, \
      LOADED, \
      since, \
      targets, \
      0, \
      op_load, \
      prepare_load, \
      LOAD_SECTION }, \
        { "cp.async.bulk.tensor" dimensions CTA_GROUP destination ".global" mode SIGNAL late_mode multicast \
          "{.L2::cache_hint}" multicast, \
          NULL, \
          LOADED, \
          86, \
          "sm_100f", \
          0, \
          op_load, \
          prepare_load, \
          LOAD_SECTION }, \
    { \
        "cp.async.bulk.tensor" dimensions destination ".global" mode SIGNAL late_mode multicast CTA_GROUP multicast \
        "{.L2::cache_hint}" multicast, \
            NULL, LOADED, 86, "sm_100f", 0, op_load, prepare_load, LOAD_SECTION \
    }

static const struct row rows[] = {
    LOAD(DIMENSIONS, ".shared::cluster", "{.tile}", "{.tile}", "{.multicast::cluster}", 80, "sm_90+"),
    LOAD(DIMENSIONS, ".shared::cta", "{.tile}", "{.tile}", "", 86, "sm_90+"),
    LOAD("(.2d)", ".shared::cluster", "(.tile::gather4)", "", "{.multicast::cluster}", 86, "sm_100f"),
    LOAD("(.2d)", ".shared::cta", "(.tile::gather4)", "", "", 86, "sm_100+"),
    { "cp.async.bulk.tensor" DIMENSIONS ".global.shared::cta{.tile}.bulk_group{.L2::cache_hint}", NULL, STORED, 80,
      "sm_90+", 0, op_store, prepare_store, LOAD_SECTION },
    { "cp.async.bulk.tensor(.2d).global.shared::cta(.tile::scatter4).bulk_group{.L2::cache_hint}", NULL, STORED, 86,
      "sm_100f", 0, op_store, prepare_store, LOAD_SECTION },
    { "cp.reduce.async.bulk.tensor" DIMENSIONS ".global.shared::cta" REDUCTIONS "{.tile}.bulk_group{.L2::cache_hint}",
      NULL, STORED, 80, "sm_90+", 0, op_reduce, prepare_store, REDUCE_SECTION },
    { "cp.reduce.async.bulk.tensor" DIMENSIONS ".global.shared::cta.tile" REDUCTIONS ".bulk_group{.L2::cache_hint}",
      NULL, STORED, 80, "sm_90+", 0, op_reduce, prepare_store, REDUCE_SECTION },
    { "cp.async.bulk.prefetch.tensor" DIMENSIONS ".L2.global{.tile}{.L2::cache_hint}", NULL,
      "A:s32{} (.L2::cache_hint)s:b64", 80, "sm_90+", 0, op_prefetch, prepare_store, PREFETCH_SECTION },
    { "cp.async.bulk.prefetch.tensor(.2d).L2.global(.tile::gather4){.L2::cache_hint}", NULL,
      "A:s32{} (.L2::cache_hint)s:b64", 86, "sm_100f", 0, op_prefetch, prepare_store, PREFETCH_SECTION },
};

const struct family family_tensor_copy = FAMILY("tensor copies", rows);
