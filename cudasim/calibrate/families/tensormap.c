/* tensormap.replace: a map of one tensor becomes that of another, in shared or global memory, and a box is loaded
 * through it. */
#include <stdlib.h>
#include <string.h>

#include "box.h"
#include "families.h"
#include "calibrate/forms/text.h"

enum { THREADS = 128, F32 = 7, F32_FTZ = 10, TF32 = 11 };       /* as in box_types */

enum field { ADDRESS, RANK, BOX_DIM, GLOBAL_DIM, STRIDE, ELEMENT_STRIDE, ELEMTYPE, SWIZZLE, FILL, INTERLEAVE, FIELDS };
static const char *const names[FIELDS] = { "global_address", "rank", "box_dim", "global_dim", "global_stride",
                                           "element_stride", "elemtype", "swizzle_mode", "fill_mode",
                                           "interleave_layout" };
static bool is_wide(enum field f) { return f == ADDRESS || f == STRIDE; }

/* How the map is changed: in shared memory, by its global address, by its generic address. */
enum place { IN_SHARED, IN_GLOBAL, BY_GENERIC, PLACES };
static const char *const spaces[PLACES] = { ".shared::cta", ".global", "" };

/* The numbers of .elemtype, by CUtensorMapDataType. */
static const int elemtypes[BOX_TYPES] = { 0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12 };

static void put_field(FILE *out, enum place place, const struct calibration_map *m, enum field f, uint32_t i)
{
    fprintf(out, "tensormap.replace.tile.%s%s.b1024.b%d [%s], ", names[f], spaces[place], is_wide(f) ? 64 : 32,
            place == IN_SHARED ? "%r8" : "%l8");
    switch (f) {
    case ADDRESS: fputs("%l0", out); break;
    case RANK: fprintf(out, "%u", m->rank - 1); break;
    case BOX_DIM: fprintf(out, "%u, %u", i, m->box[i]); break;
    case GLOBAL_DIM: fprintf(out, "%u, %u", i, (unsigned)m->size[i]); break;
    case STRIDE: fprintf(out, "%u, %u", i, (unsigned)m->stride[i]); break;
    case ELEMENT_STRIDE: fprintf(out, "%u, %u", i, m->element_stride[i]); break;
    case ELEMTYPE: fprintf(out, "%d", elemtypes[m->data_type]); break;
    case SWIZZLE: fprintf(out, "%u", m->swizzle); break;
    case FILL: fprintf(out, "%u", m->fill); break;
    default: fputs("0", out); break;
    }
    fputs(";\n", out);
}

static uint32_t dimensions(const struct calibration_map *m, enum field f)
{
    if (f == STRIDE) return m->rank - 1;
    return f == BOX_DIM || f == GLOBAL_DIM || f == ELEMENT_STRIDE ? m->rank : 1;
}

static void put_all(FILE *out, enum place place, const struct calibration_map *m)
{
    for (enum field f = 0; f < FIELDS; f++)
        for (uint32_t i = 0; i < dimensions(m, f); i++) put_field(out, place, m, f, i);
}

/* %r1 shared memory, poisoned; %r2 mbarrier; %r3 thread; %r8 the map in shared memory, %l8 in global memory, copied
 * from the parameter or zero; %l0 in, %l1 out.  Thread 0 goes on, the others of warp 0 to CHANGED. */
static void begin(FILE *out, enum place place, bool zeros)
{
    fprintf(out,
            ".reg .b32 %%r<16>; .reg .b64 %%l<16>; .reg .pred %%p<6>;\n"
            ".shared .align 1024 .b8 s[%d]; .shared .align 128 .b8 map[128]; .shared .align 8 .b64 bar;\n"
            "mov.u32 %%r1, s; mov.u32 %%r2, bar; mov.u32 %%r3, %%tid.x; setp.ne.u32 %%p1, %%r3, 0; "
            "ld.param.u64 %%l0, [in]; ld.param.u64 %%l1, [out]; mov.u32 %%r8, map; mov.u64 %%l8, g$; "
            "cvta.global.u64 %%l8, %%l8;\n"
            "shl.b32 %%r4, %%r3, 2; POISON: add.u32 %%r5, %%r1, %%r4; st.shared.u32 [%%r5], 0xa5a5a5a5; "
            "add.u32 %%r4, %%r4, %d; setp.lt.u32 %%p2, %%r4, %d; @%%p2 bra POISON; fence.proxy.async; bar.sync 0;\n"
            "@%%p1 bra READY; mbarrier.init.shared.b64 [%%r2], 1; fence.mbarrier_init.release.cluster; READY: "
            "bar.sync 0;\nsetp.ge.u32 %%p3, %%r3, 32; @%%p3 bra WAIT;\n",
            BOX_SHARED_BYTES, THREADS * 4, BOX_SHARED_BYTES);
    fputs("mov.b64 %l6, map0; cvta.param.u64 %l6, %l6; mad.wide.u32 %l6, %r3, 4, %l6; ld.u32 %r6, [%l6];\n", out);
    if (zeros) fputs("mov.u32 %r6, 0;\n", out);
    fputs(place == IN_SHARED ? "mad.lo.u32 %r7, %r3, 4, %r8; st.shared.u32 [%r7], %r6; "
                             : "mad.wide.u32 %l7, %r3, 4, %l8; st.global.u32 [%l7], %r6; ", out);
    fputs("bar.warp.sync -1; @%p1 bra CHANGED;\n", out);
}

static void end(FILE *out, enum place place, const struct box *b, uint32_t offset)
{
    fputs("CHANGED: bar.warp.sync -1;\n", out);
    if (place == IN_SHARED)
        fputs("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%l8], [%r8], "
              "128;\n", out);
    else fputs("fence.proxy.tensormap::generic.release.gpu;\n", out);
    fprintf(out,
            "@%%p1 bra WAIT; fence.proxy.tensormap::generic.acquire.gpu [%%l8], 128; "
            "mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %u;\n"
            "cp.async.bulk.tensor.%ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%r1+%u], [%%l8, ",
            b->rows * b->row_bytes, b->map.rank, offset);
    box_put_coordinates(out, b);
    fprintf(out,
            "], [%%r2];\nWAIT: mbarrier.try_wait.parity.shared.b64 %%p2, [%%r2], 0; @!%%p2 bra WAIT;\n"
            "shl.b32 %%r4, %%r3, 2; DRAIN: add.u32 %%r5, %%r1, %%r4; cvt.u64.u32 %%l4, %%r4; add.u64 %%l5, %%l1, "
            "%%l4; ld.shared.u32 %%r6, [%%r5]; st.global.u32 [%%l5], %%r6; add.u32 %%r4, %%r4, %d; "
            "setp.lt.u32 %%p2, %%r4, %d; @%%p2 bra DRAIN;\n", THREADS * 4, BOX_SHARED_BYTES);
}

static void add(struct calibration *c, struct text *t, const struct calibration_map *from, const char *form,
                const char *name)
{
    struct calibration_case one = { .name = name, .form = form, .body = text_close(t), .block = { THREADS },
                                    .module = ".global .align 128 .b8 g$[128];\n", .maps = 1,
                                    .input_bytes = 2 * BOX_TENSOR_BYTES, .output_bytes = BOX_SHARED_BYTES };
    one.map[0] = *from;
    calibration_add(c, &one);
    free(t->bytes);
}

static const char *moves(enum place place)
{
    return place == IN_SHARED ? "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
                              : "fence.proxy.tensormap::generic.release.gpu";
}

/* All fields, of the map of another tensor, or of zeros. */
static void add_whole(struct calibration *c, const struct calibration_map *from, const struct box *b, enum place place,
                      uint32_t number)
{
    struct text t, form;
    char name[160];
    text_open(&t), text_open(&form);
    begin(t.out, place, from == NULL);
    put_all(t.out, place, &b->map);
    end(t.out, place, b, 128 * (number % 9));
    for (enum field f = 0; f < FIELDS; f++)
        if (f != STRIDE || b->map.rank > 1)
            fprintf(form.out, "tensormap.replace.tile.%s%s.b1024.b%d ", names[f], spaces[place], is_wide(f) ? 64 : 32);
    fprintf(form.out, "fence.proxy.tensormap::generic.acquire.gpu %s", moves(place));
    snprintf(name, sizeof name, "tensormap.replace%s of all fields%s, %ud %s swizzle %s%s, %u", spaces[place],
             from == NULL ? " of zeros" : "", b->map.rank, box_types[b->map.data_type].name,
             box_swizzles[b->map.swizzle], b->map.fill ? " NaN" : "", number);
    add(c, &t, from == NULL ? &b->map : from, text_close(&form), name);
    free(form.bytes);
}

/* A map that differs from b's in this field alone; false: b has no such field that can differ. */
static bool another(struct calibration_map *m, enum field f, uint32_t i)
{
    switch (f) {
    case ADDRESS: m->offset += 4096; return true;
    case RANK:
        if (m->rank == 5) return false;
        m->stride[m->rank - 1] = m->stride[m->rank - 2] * m->size[m->rank - 1];
        m->size[m->rank] = 3, m->box[m->rank] = 1, m->element_stride[m->rank] = 1, m->rank++;
        return true;
    case BOX_DIM: m->box[i] += i == 0 ? 16 / box_types[m->data_type].bytes : 1; return i != 0 || m->swizzle == 0;
    case GLOBAL_DIM: m->size[i] += m->size[i] > 1 ? UINT64_MAX : 1; return true;
    case STRIDE: m->stride[i] += 16; return true;
    case ELEMENT_STRIDE: m->element_stride[i] = m->element_stride[i] % 8 + 1; return i != 0;
    case ELEMTYPE: m->data_type = m->data_type == F32 ? F32_FTZ : F32; return true;
    case SWIZZLE: m->swizzle = m->swizzle == 3 ? 0 : 3; return true;
    case FILL: m->fill = 1 - m->fill; return true;
    default: return true;
    }
}

static void add_single(struct calibration *c, const struct box *b, enum field f, uint32_t i, enum place place)
{
    struct calibration_map from = b->map;
    if (!another(&from, f, i)) return;
    struct text t;
    char name[256], form[160];
    text_open(&t);
    begin(t.out, place, false);
    put_field(t.out, place, &b->map, f, i);
    end(t.out, place, b, 0);
    snprintf(form, sizeof form, "tensormap.replace.tile.%s%s.b1024.b%d", names[f], spaces[place], is_wide(f) ? 64 : 32);
    snprintf(name, sizeof name, "%s, %ud %s swizzle %s, dimension %u", form, b->map.rank,
             box_types[b->map.data_type].name, box_swizzles[b->map.swizzle], i);
    add(c, &t, &from, form, name);
}

/* A whole box in the middle of a tensor, so that no field is without effect. */
static struct box plain_box(uint32_t type, uint32_t rank, uint32_t swizzle)
{
    struct box b = { .map = { .data_type = type, .rank = rank, .swizzle = swizzle, .fill = type == F32 ? 1 : 0 } };
    struct calibration_map *m = &b.map;
    uint64_t row = 0;
    b.rows = 1;
    for (uint32_t i = 0; i < rank; i++) {
        m->size[i] = i == 0 ? 30 : i == 1 ? 7 : 4;
        m->box[i] = i == 0 ? 8 : 4;
        m->element_stride[i] = i == 2 ? 2 : 1;
        if (i > 0) m->stride[i - 1] = row, b.rows *= m->box[i] / m->element_stride[i];
        row = i == 0 ? 128 : m->stride[i - 1] * m->size[i] + 16;
        b.start[i] = i == 0 ? 24 : i == 1 ? 4 : 1;
    }
    b.row_bytes = m->box[0] * box_types[type].bytes, b.pitch = b.row_bytes;
    return b;
}

void calibration_family_tensormap(struct calibration *c)
{
    struct box_draw d = { 77 };
    uint32_t number = 0;
    for (uint32_t type = 0; type + 1 < BOX_TYPES; type++)
        for (uint32_t swizzle = 0; swizzle < 4; swizzle++, number++) {
            /* a map of tf32 stays one of tf32, or becomes illegal */
            const uint32_t other = number * 5 % 12 == TF32 ? F32 : number * 5 % 12;
            struct calibration_map from = box_random(&d, other, number % 3, 1 + number % 4, false).map;
            from.offset = 16 * (number % 7);
            const struct box b = box_random(&d, type, swizzle, 1 + number % 5, false);
            add_whole(c, &from, &b, (enum place)(number % PLACES), number);
        }
    for (enum place place = 0; place < PLACES; place++) {
        const struct box b = plain_box(F32, 3, 1);
        add_whole(c, NULL, &b, place, number++);
    }
    for (enum field f = 0; f < FIELDS; f++)
        for (uint32_t k = 0; k < 6; k++) {
            const struct box b = plain_box(k % 2 == 0 ? F32 : TF32, 3 + k % 3, k / 3);
            for (uint32_t i = 0; i < dimensions(&b.map, f); i++)
                add_single(c, &b, f, i, (enum place)((k + i) % PLACES));
        }
}
