/* cp.async.bulk.tensor: random tensors and boxes of every type, rank and swizzle, out of bounds on all sides, against
 * the model. */
#include <math.h>
#include <stdlib.h>

#include "machine/async/tensor_map.h"
#include "tests/support/schedules.h"
#include "tests/reference/tensor_model.h"

enum { SHARED_BYTES = 16384, POISON = 0xab, TYPES_OF_HOPPER = 13 };

/* ---- random cases ---- */

static uint32_t span_of(uint32_t swizzle) { return swizzle == 0 ? 4096 : swizzle < 3 ? 16u << swizzle : 128; }

static void choose_box(struct test *t, struct tensor_case *c)
{
    const uint32_t bits = model_bits(c->type), grain = 128 / bits; /* elements of 16 bytes */
    uint32_t most = span_of(c->swizzle) * 8 / bits;
    if (most > 256) most = 256;
    c->box[0] = c->type >= 14 ? 128 : grain * (uint32_t)rnd_between(t, 1, most / grain < 6 ? most / grain : 6);
    for (uint32_t i = 1; i < c->rank; i++) {
        c->box[i] = (uint32_t)rnd_between(t, 1, c->rank > 3 ? 4 : 9);
        c->step[i] = rnd_below(t, 3) == 0 ? (uint32_t)rnd_between(t, 1, 8) : 1;
    }
}

/* Dimensions of about the size of the box, strides with padding, sometimes none. */
static void choose_tensor(struct test *t, struct tensor_case *c)
{
    const uint32_t bits = model_bits(c->type), align = c->type >= 14 ? 32 : 16;
    const uint64_t multiple = c->type >= 14 ? 128 : c->type == 13 ? 2 : 1;
    c->dim[0] = (uint64_t)rnd_between(t, 1, 2 * (int64_t)c->box[0] / (int64_t)multiple) * multiple;
    uint64_t bytes = (c->dim[0] * bits + 7) / 8;
    for (uint32_t i = 1; i < c->rank; i++) {
        c->dim[i] = (uint64_t)rnd_between(t, 1, c->rank > 3 ? 5 : 12);
        c->stride[i - 1] = (bytes + align - 1) / align * align + align * (uint64_t)rnd_below(t, 2);
        bytes = c->stride[i - 1] * c->dim[i];
    }
}

static void choose_start(struct test *t, struct tensor_case *c, bool stores)
{
    const int64_t grain = c->type >= 14 ? 128 : 128 / (int64_t)model_bits(c->type);
    const int64_t before = stores ? 0 : (int64_t)c->box[0] / grain;
    c->start[0] = (int32_t)(rnd_between(t, -before, (int64_t)c->dim[0] / grain + 1) * grain);
    for (uint32_t i = 1; i < c->rank; i++)
        c->start[i] = (int32_t)rnd_between(t, stores ? 0 : -(int64_t)c->box[i], (int64_t)c->dim[i] + 1);
    if (rnd_below(t, 16) == 0 && !stores) c->start[c->rank - 1] = c->rank == 1 ? INT32_MIN : INT32_MIN + 5;
}

static struct tensor_case random_case(struct test *t, uint32_t type, uint32_t swizzle, uint32_t rank, bool stores)
{
    struct tensor_case c = { .type = type, .rank = rank, .swizzle = swizzle, .step = { 1, 1, 1, 1, 1 } };
    choose_box(t, &c);
    while (model_shared_bytes(&c) > SHARED_BYTES / 2) choose_box(t, &c);
    choose_tensor(t, &c);
    choose_start(t, &c, stores);
    c.nan_fill = !stores && type >= 6 && type <= 12 && rnd_below(t, 2) == 0;
    return c;
}

static uint64_t make_map(struct test *t, struct sim *sim, const struct tensor_case *c, uint64_t address)
{
    _Alignas(64) uint8_t map[TENSOR_MAP_BYTES];
    char sentence[256];
    if (tensor_map_encode_tiled(sim->machine.device, map, c->type, c->rank, address, c->dim, c->stride, c->box, c->step,
                                0, c->swizzle, 0, c->nan_fill, sentence, sizeof sentence)
        != 0)
        FAIL(t, "%s", sentence);
    map[10] &= 0xdf;                      /* bit 85: Blackwell's small maps with gaps want it cleared */
    return sim_buffer(sim, map, sizeof map);
}

/* ---- kernels ---- */

/* Shared memory s at %r1, a barrier at %r2, thread %r3; 128 threads. */
static const char begin[] =
    ".shared .align 1024 .b8 s[16384]; .shared .align 8 .b64 bar; mov.u32 %r1, s; mov.u32 %r2, bar; "
    "mov.u32 %r3, %tid.x; setp.ne.u32 %p1, %r3, 0; shl.b32 %r4, %r3, 2; cvt.u64.u32 %rd4, %r4; add.u32 %r5, %r1, %r4; "
    "add.u32 %r6, %r1, 16384;\n";
/* Bytes of p2 to s, visible to the engine. */
static const char fill[] =
    "add.u64 %rd5, %rd62, %rd4; FILL: ld.global.u32 %r7, [%rd5]; st.shared.u32 [%r5], %r7; add.u64 %rd5, %rd5, 512; "
    "add.u32 %r5, %r5, 512; setp.lt.u32 %p2, %r5, %r6; @%p2 bra FILL; fence.proxy.async; @%p1 bra READY; "
    "mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster; READY: bar.sync 0;\n";
/* s to p1. */
static const char drain[] =
    "add.u32 %r5, %r1, %r4; add.u64 %rd5, %rd61, %rd4; DRAIN: ld.shared.u32 %r7, [%r5]; st.global.u32 [%rd5], %r7; "
    "add.u64 %rd5, %rd5, 512; add.u32 %r5, %r5, 512; setp.lt.u32 %p2, %r5, %r6; @%p2 bra DRAIN;\n";

static int put_coordinates(char *text, size_t size, const struct tensor_case *c)
{
    int n = 0;
    const uint32_t count = c->gathers ? 5 : c->rank;
    for (uint32_t i = 0; i < count; i++)
        n += snprintf(text + n, size - (size_t)n, "%s%d", i == 0 ? "{" : ", ", c->start[i]);
    return n + snprintf(text + n, size - (size_t)n, "}");
}

static void load_text(char *text, size_t size, const struct tensor_case *c, uint32_t offset, bool own)
{
    char at[128];
    put_coordinates(at, sizeof at, c);
    snprintf(text, size,
             "%s%s@%%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %u;\n"
             "cp.async.bulk.tensor.%ud.shared::%s.global.tile%s.mbarrier::complete_tx::bytes [%%r1+%u], [%%rd60, %s], "
             "[%%r2];\n"
             "WAIT: mbarrier.try_wait.parity.shared.b64 %%p2, [%%r2], 0; @!%%p2 bra WAIT;\n%s",
             begin, fill, model_transaction_bytes(c), c->rank, own ? "cta" : "cluster", c->gathers ? "::gather4" : "",
             offset, at, drain);
}

static void store_text(char *text, size_t size, const struct tensor_case *c, uint32_t offset, const char *operation)
{
    char at[128];
    put_coordinates(at, sizeof at, c);
    snprintf(text, size,
             "%s%s@%%p1 bra END;\ncp%s.async.bulk.tensor.%ud.global.shared::cta%s.tile%s.bulk_group [%%rd60, %s], "
             "[%%r1+%u];\n"
             "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nEND:",
             begin, fill, operation[0] == '\0' ? "" : ".reduce", c->rank, operation, c->gathers ? "::scatter4" : "", at,
             offset);
}

static void describe(struct test *t, const struct tensor_case *c, const char *what, uint64_t byte, uint32_t got,
                     uint32_t want)
{
    char at[128];
    put_coordinates(at, sizeof at, c);
    FAIL(t,
         "%s: type %u rank %u swizzle %u dims %llu %llu %llu box %u %u %u steps %u %u at %s: byte %llu is %#x, not "
         "%#x",
         what, c->type, c->rank, c->swizzle, (unsigned long long)c->dim[0], (unsigned long long)c->dim[1],
         (unsigned long long)c->dim[2], c->box[0], c->box[1], c->box[2], c->step[1], c->step[2], at,
         (unsigned long long)byte, got, want);
}

static void compare(struct test *t, const struct tensor_case *c, const char *what, const uint8_t *got,
                    const uint8_t *want, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (got[i] != want[i]) {
            describe(t, c, what, i, got[i], want[i]);
            return;
        }
}

static uint8_t *random_bytes(struct test *t, size_t size)
{
    uint8_t *bytes = malloc(size + 8);
    if (bytes == NULL) abort();
    for (size_t i = 0; i < size; i += 8) {
        const uint64_t value = rnd(t);
        memcpy(bytes + i, &value, 8);
    }
    return bytes;
}

/* Loads to .shared::cta alone: sm_120 has some types so only. */
static bool own_only;

static void check_load(struct test *t, const char *device, const struct tensor_case *c, uint64_t schedule)
{
    char text[8192];
    struct sim sim;
    const uint32_t offset = 128 * (uint32_t)rnd_below(t, 16);
    load_text(text, sizeof text, c, offset, own_only || rnd_below(t, 2) == 0);
    if (!sim_open(t, &sim, device, text)) return;
    use_schedule(&sim, schedule);
    const size_t bytes = (size_t)model_global_bytes(c);
    uint8_t *global = random_bytes(t, bytes), got[SHARED_BYTES], want[SHARED_BYTES];
    memset(want, POISON, sizeof want);
    const uint64_t tensor = sim_buffer(&sim, global, bytes);
    const uint64_t p[3] = { make_map(t, &sim, c, tensor), sim_buffer(&sim, NULL, sizeof got),
                            sim_buffer(&sim, want, sizeof want) };
    model_load(c, global, want + offset, offset);
    if (!run_cluster(&sim, 1, 128, 0, p, 3)) FAIL(t, "%s", sim.report.text);
    sim_read(&sim, p[1], got, sizeof got);
    compare(t, c, "load", got, want, sizeof got);
    free(global);
    sim_close(&sim);
}

static void check_store(struct test *t, const char *device, const struct tensor_case *c, const char *words,
                        model_combine *combine, uint32_t operation, uint8_t *numbers, uint64_t schedule)
{
    char text[8192];
    struct sim sim;
    const uint32_t offset = 128 * (uint32_t)rnd_below(t, 16);
    store_text(text, sizeof text, c, offset, words);
    if (!sim_open(t, &sim, device, text)) return;
    use_schedule(&sim, schedule);
    const size_t bytes = ((size_t)model_global_bytes(c) + 15) / 16 * 16;
    uint8_t *want = numbers != NULL ? malloc(bytes) : random_bytes(t, bytes),
            *shared = numbers != NULL ? numbers : random_bytes(t, SHARED_BYTES);
    uint8_t *got = malloc(bytes);
    if (got == NULL || want == NULL) abort();
    if (numbers != NULL)
        for (size_t i = 0; i < bytes; i++) want[i] = numbers[SHARED_BYTES - 1 - i % SHARED_BYTES];
    const uint64_t tensor = sim_buffer(&sim, want, bytes);
    const uint64_t p[3] = { make_map(t, &sim, c, tensor), 0, sim_buffer(&sim, shared, SHARED_BYTES) };
    model_store(c, want, shared + offset, offset, combine, operation);
    if (!run_cluster(&sim, 1, 128, 0, p, 3)) FAIL(t, "%s", sim.report.text);
    sim_read(&sim, tensor, got, bytes);
    compare(t, c, words[0] == '\0' ? "store" : words, got, want, bytes);
    if (numbers == NULL) free(shared);
    free(want), free(got);
    sim_close(&sim);
}

/* ---- every type, rank, swizzle ---- */

static void loads_are_the_model_s(struct test *t)
{
    uint64_t schedule = 0;
    for (uint32_t type = 0; type < TYPES_OF_HOPPER; type++)
        for (uint32_t swizzle = 0; swizzle < 4; swizzle++)
            for (uint32_t rank = 1; rank <= 5; rank++) {
                const struct tensor_case c = random_case(t, type, swizzle, rank, false);
                check_load(t, "sm_90a", &c, schedule++ % 16);
            }
}

static void stores_are_the_model_s(struct test *t)
{
    uint64_t schedule = 0;
    for (uint32_t type = 0; type < TYPES_OF_HOPPER; type++)
        for (uint32_t swizzle = 0; swizzle < 4; swizzle++)
            for (uint32_t rank = 1; rank <= 5; rank++) {
                const struct tensor_case c = random_case(t, type, swizzle, rank, true);
                check_store(t, "sm_90a", &c, "", model_copy, 0, NULL, schedule++ % 16);
            }
}

/* Ties go to the even number, the largest numbers to infinity, every NaN to one of them. */
static void check_tf32(struct test *t, enum tensor_type type)
{
    static const uint32_t in[8] = {
        0x3f801000, 0x3f803000, 0x3f801001, 0xbf800fff, 0x7f7fffff, 0x00001001, 0x7fa00001, 0x00003000
    };
    static const uint32_t want[8] = {
        0x3f800000, 0x3f804000, 0x3f802000, 0xbf800000, 0x7f800000, 0x00002000, 0x7fffe000, 0x00004000
    };
    const struct tensor_case c = { .type = (uint8_t)type, .rank = 1, .dim = { 8 }, .box = { 8 }, .step = { 1 } };
    char text[8192];
    struct sim sim;
    uint32_t got[SHARED_BYTES / 4];
    load_text(text, sizeof text, &c, 0, false);
    if (!sim_open(t, &sim, "sm_90a", text)) return;
    const uint64_t tensor = sim_buffer(&sim, in, sizeof in);
    const uint64_t p[3] = { make_map(t, &sim, &c, tensor), sim_buffer(&sim, NULL, sizeof got),
                            sim_buffer(&sim, NULL, sizeof got) };
    if (!run_cluster(&sim, 1, 128, 0, p, 3)) FAIL(t, "%s", sim.report.text);
    sim_read(&sim, p[1], got, sizeof got);
    CHECK(t, memcmp(got, want, sizeof want) == 0);
    sim_close(&sim);
}

static void tf32_is_rounded_to_nearest_even(struct test *t)
{
    check_tf32(t, TENSOR_MAP_TF32);
    check_tf32(t, TENSOR_MAP_TF32_FTZ);
}

/* Swizzles 4 to 6 have atoms of 32 bytes, of 32 bytes with a flip (loads only), of 64 bytes (stores only). */
static bool goes_with(uint32_t type, uint32_t swizzle, bool stores)
{
    if (swizzle == (stores ? 5u : 6u)) return false;
    if (type == TENSOR_MAP_B4X16_P64) return !stores && (swizzle == 0 || swizzle == 3 || swizzle == 4);
    return type != TENSOR_MAP_B6X16_P32 || swizzle == 0 || swizzle == 3 || swizzle == 4 || swizzle == 6;
}

static void check_later_device(struct test *t, const char *device)
{
    uint64_t schedule = 0;
    own_only = strcmp(device, "sm_120a") == 0;
    for (uint32_t type = 0; type <= TENSOR_MAP_B6X16_P32; type++)
        for (uint32_t swizzle = 0; swizzle < 7; swizzle++)
            for (uint32_t rank = 1; rank <= 5; rank += 2) {
                if (type < TENSOR_MAP_B4X16 && swizzle < 4 && type != 0) continue;
                struct tensor_case c;
                if (goes_with(type, swizzle, false)) {
                    c = random_case(t, type, swizzle, rank, false);
                    check_load(t, device, &c, schedule++ % 16);
                }
                if (goes_with(type, swizzle, true)) {
                    c = random_case(t, type, swizzle, rank, true);
                    check_store(t, device, &c, "", model_copy, 0, NULL, schedule++ % 16);
                }
            }
    own_only = false;
}

static void later_devices_have_more(struct test *t)
{
    check_later_device(t, "sm_100a");
    check_later_device(t, "sm_120a");
}

static void rows_are_gathered_and_scattered(struct test *t)
{
    for (uint32_t i = 0; i < 70; i++) {
        const uint32_t types[] = { 0, 1, 7, 9, 13, 14, 15 }, type = types[i % 7], swizzle = i / 7 % 4;
        if (type >= 14 && (swizzle == 1 || swizzle == 2)) continue;
        struct tensor_case c = random_case(t, type, swizzle, 2, false);
        c.gathers = true;
        c.box[1] = c.step[1] = 1;
        for (int j = 1; j < 5; j++) c.start[j] = (int32_t)rnd_between(t, -2, (int64_t)c.dim[1] + 1);
        check_load(t, "sm_100a", &c, i);
        c.nan_fill = false;
        c.start[0] = c.start[0] < 0 ? 0 : c.start[0];
        for (int j = 1; j < 5; j++) c.start[j] = 5 * j % (int)(c.dim[1] + 4);
        for (int j = 2; j < 5; j++)
            if (c.start[j] == c.start[1] || (j > 2 && c.start[j] == c.start[2]) || (j > 3 && c.start[j] == c.start[3]))
                c.start[j] = 100 + j;
        if (type != 14) check_store(t, "sm_100a", &c, "", model_copy, 0, NULL, i);
    }
}

/* ---- reductions ---- */

enum { ADD, MIN, MAX, INC, DEC, AND, OR, XOR };
static const char *const operations[] = { ".add", ".min", ".max", ".inc", ".dec", ".and", ".or", ".xor" };

static uint64_t reduce(uint32_t operation, uint32_t type, uint64_t a, uint64_t b)
{
    const bool is_signed = type == TENSOR_MAP_S32 || type == TENSOR_MAP_S64, wide = type == TENSOR_MAP_S64;
    const int64_t x = wide ? (int64_t)a : (int32_t)a, y = wide ? (int64_t)b : (int32_t)b;
    const bool less = is_signed ? x < y : a < b;
    if (type == TENSOR_MAP_F32) {
        const uint32_t p = (uint32_t)a, q = (uint32_t)b;
        float u, v;
        uint32_t sum;
        memcpy(&u, &p, 4), memcpy(&v, &q, 4);
        u += v;
        memcpy(&sum, &u, 4);
        return sum;
    }
    switch (operation) {
    case ADD: return a + b;
    case MIN: return less ? a : b;
    case MAX: return less ? b : a;
    case INC: return a >= b ? 0 : a + 1;
    case DEC: return a == 0 || a > b ? b : a - 1;
    case AND: return a & b;
    case OR: return a | b;
    default: return a ^ b;
    }
}

static bool is_reduced(uint32_t operation, uint32_t type)
{
    switch (operation) {
    case ADD:
        return type == TENSOR_MAP_U32 || type == TENSOR_MAP_S32 || type == TENSOR_MAP_U64 || type == TENSOR_MAP_F32;
    case INC:
    case DEC: return type == TENSOR_MAP_U32;
    case MIN:
    case MAX: return type >= TENSOR_MAP_U32 && type <= TENSOR_MAP_S64;
    default: return type >= TENSOR_MAP_U32 && type <= TENSOR_MAP_U64;         /* an H200 has none for s64 */
    }
}

/* Numbers that floats can hold, of moderate size. */
static uint8_t *numbers_for(struct test *t, uint32_t type)
{
    uint8_t *bytes = random_bytes(t, SHARED_BYTES);
    for (int i = 0; type == TENSOR_MAP_F32 && i < SHARED_BYTES; i += 4) {
        /* the bytes are used backwards, too: as the tensor */
        bytes[i] = bytes[i + 3] = (uint8_t)(0x3e + rnd_below(t, 4));
    }
    return bytes;
}

static void reductions_are_the_model_s(struct test *t)
{
    uint64_t schedule = 0;
    for (uint32_t operation = 0; operation < 8; operation++)
        for (uint32_t type = TENSOR_MAP_U32; type <= TENSOR_MAP_F32; type++)
            for (uint32_t rank = 1; rank <= 5; rank += 2) {
                if (!is_reduced(operation, type)) continue;
                struct tensor_case c = random_case(t, type, (operation + rank) % 4, rank, true);
                uint8_t *numbers = numbers_for(t, type);
                check_store(t, "sm_90a", &c, operations[operation], reduce, operation, numbers, schedule++ % 16);
                free(numbers);
            }
}

/* ---- multicast, parameters, pipelines ---- */

/* A quarter of the CTAs of a cluster loads for all of them, each a slice of its own. */
static void slices_are_multicast(struct test *t)
{
    for (uint32_t ctas = 2; ctas <= 4; ctas += 2)
        for (uint64_t s = 0; s < 20; s++) {
            char text[8192];
            struct sim sim;
            struct tensor_case c = { .type = TENSOR_MAP_F16,
                                     .rank = 2,
                                     .dim = { 64, 30 },
                                     .stride = { 160 },
                                     .box = { 64, 8 },
                                     .step = { 1, 1 },
                                     .swizzle = 3 };
            uint8_t *global = random_bytes(t, (size_t)model_global_bytes(&c)), got[4 * 4096], want[4 * 4096];
            snprintf(
                text, sizeof text,
                ".shared .align 1024 .b8 s[4096]; .shared .align 8 .b64 bar; mov.u32 %%r1, s; mov.u32 %%r2, bar; "
                "mov.u32 %%r3, %%tid.x; "
                "mov.u32 %%r8, %%cluster_ctarank; setp.ne.u32 %%p1, %%r3, 0; @%%p1 bra READY; "
                "mbarrier.init.shared.b64 [%%r2], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %u; "
                "fence.mbarrier_init.release.cluster; READY: barrier.cluster.arrive; barrier.cluster.wait; "
                "@%%p1 bra WAIT; mov.u16 %%rs1, %u; shl.b32 %%r9, %%r8, 10; add.u32 %%r10, %%r1, %%r9; "
                "shl.b32 %%r11, %%r8, 3;\n"
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                "[%%r10], [%%rd60, {0, "
                "%%r11}], [%%r2], %%rs1;\nWAIT: mbarrier.try_wait.parity.shared.b64 %%p2, [%%r2], 0; @!%%p2 bra WAIT;\n"
                "shl.b32 %%r4, %%r3, 2; add.u32 %%r5, %%r1, %%r4; shl.b32 %%r12, %%r8, 12; add.u32 %%r12, %%r12, %%r4; "
                "cvt.u64.u32 %%rd4, %%r12; add.u64 %%rd5, %%rd61, %%rd4; mov.u32 %%r6, 0;\n"
                "DRAIN: ld.shared.u32 %%r7, [%%r5]; st.global.u32 [%%rd5], %%r7; add.u32 %%r5, %%r5, 256; "
                "add.u64 %%rd5, %%rd5, 256; "
                "add.u32 %%r6, %%r6, 1; setp.lt.u32 %%p3, %%r6, %u; @%%p3 bra DRAIN; barrier.cluster.arrive; "
                "barrier.cluster.wait;",
                ctas * 1024, (1u << ctas) - 1, ctas * 4);
            if (!sim_open(t, &sim, "sm_90a", text)) return;
            use_schedule(&sim, s);
            const uint64_t tensor = sim_buffer(&sim, global, (size_t)model_global_bytes(&c));
            const uint64_t p[2] = { make_map(t, &sim, &c, tensor), sim_buffer(&sim, NULL, sizeof got) };
            memset(want, 0, sizeof want);
            for (uint32_t cta = 0; cta < ctas; cta++)
                for (uint32_t slice = 0; slice < ctas; slice++) {
                    c.start[1] = (int32_t)(8 * slice);
                    model_load(&c, global, want + 4096 * cta + 1024 * slice, 1024 * slice);
                }
            if (!run_cluster(&sim, ctas, 64, 0, p, 2)) FAIL(t, "%s", sim.report.text);
            sim_read(&sim, p[1], got, sizeof got);
            compare(t, &c, "multicast", got, want, sizeof got);
            free(global);
            sim_close(&sim);
        }
}

/* Each CTA loads a slice of its own, with .cta_group::2 and the mbarrier of the CTA that clearing bit 24 leads to: the
 * even one of the pair hears of both, and tells its peer by the cluster's barrier. */
static void pairs_signal_one_mbarrier(struct test *t)
{
    for (uint64_t s = 0; s < 100; s++) {
        const uint32_t ctas = s % 2 == 0 ? 2 : 4;
        const bool multicast = s % 4 >= 2, early_word = s % 8 >= 4;
        char text[8192], load[512];
        struct sim sim;
        struct tensor_case c = { .type = TENSOR_MAP_F16, .rank = 2, .dim = { 64, 32 }, .stride = { 160 },
                                 .box = { 64, 8 },
                                 .step = { 1, 1 }, .swizzle = 3 };
        uint8_t *global = random_bytes(t, (size_t)model_global_bytes(&c)), got[4 * 4096], want[4 * 4096];
        snprintf(load, sizeof load,
                 "cp.async.bulk.tensor.2d%s.shared::cluster.global.mbarrier::complete_tx::bytes%s%s [%%r10], [%%rd60, "
                 "{0, %%r11}], [%%r14]%s;", early_word ? ".cta_group::2" : "", multicast ? ".multicast::cluster" : "",
                 early_word ? "" : ".cta_group::2", multicast ? ", %rs1" : "");
        snprintf(text, sizeof text,
                 ".shared .align 1024 .b8 s[4096]; .shared .align 8 .b64 bar; mov.u32 %%r1, s; mov.u32 %%r2, bar; "
                 "mov.u32 %%r3, %%tid.x; mov.u32 %%r8, %%cluster_ctarank; setp.ne.u32 %%p1, %%r3, 0; @%%p1 bra READY; "
                 "mbarrier.init.shared.b64 [%%r2], 1; fence.mbarrier_init.release.cluster; and.b32 %%r13, %%r8, 1; "
                 "setp.ne.u32 %%p4, %%r13, 0; @!%%p4 mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %u;\n"
                 "READY: barrier.cluster.arrive; barrier.cluster.wait; @%%p1 bra WAIT; mov.u16 %%rs1, %u; "
                 "shl.b32 %%r9, %%r8, 10; add.u32 %%r10, %%r1, %%r9; shl.b32 %%r11, %%r8, 3; "
                 "and.b32 %%r14, %%r2, 0xfeffffff;\n%s\n"
                 "WAIT: and.b32 %%r13, %%r8, 1; setp.ne.u32 %%p4, %%r13, 0; @%%p4 bra TOLD; "
                 "LOOK: mbarrier.try_wait.parity.shared.b64 %%p2, [%%r2], 0; @!%%p2 bra LOOK;\n"
                 "TOLD: barrier.cluster.arrive; barrier.cluster.wait;\n"
                 "shl.b32 %%r4, %%r3, 2; add.u32 %%r5, %%r1, %%r4; shl.b32 %%r12, %%r8, 12; "
                 "add.u32 %%r12, %%r12, %%r4; cvt.u64.u32 %%rd4, %%r12; add.u64 %%rd5, %%rd61, %%rd4; "
                 "mov.u32 %%r6, %u; mul.lo.u32 %%r6, %%r6, %%r8;\n"
                 "mov.u32 %%r7, %u; mul.lo.u32 %%r15, %%r6, 256; add.u32 %%r5, %%r5, %%r15; cvt.u64.u32 %%rd6, %%r15; "
                 "add.u64 %%rd5, %%rd5, %%rd6;\n"
                 "DRAIN: ld.shared.u32 %%r16, [%%r5]; st.global.u32 [%%rd5], %%r16; add.u32 %%r5, %%r5, 256; "
                 "add.u64 %%rd5, %%rd5, 256; sub.u32 %%r7, %%r7, 1; setp.ne.u32 %%p3, %%r7, 0; @%%p3 bra DRAIN; "
                 "barrier.cluster.arrive; barrier.cluster.wait;",
                 multicast ? 2 * ctas * 1024 : 2048, (1u << ctas) - 1, load, multicast ? 0 : 4,
                 multicast ? 4 * ctas : 4);
        if (!sim_open(t, &sim, "sm_100a", text)) return;
        use_schedule(&sim, s);
        const uint64_t tensor = sim_buffer(&sim, global, (size_t)model_global_bytes(&c));
        const uint64_t p[2] = { make_map(t, &sim, &c, tensor), sim_buffer(&sim, NULL, sizeof got) };
        memset(want, 0, sizeof want);
        for (uint32_t cta = 0; cta < ctas; cta++)
            for (uint32_t slice = 0; slice < ctas; slice++) {
                if (!multicast && slice != cta) continue;
                c.start[1] = (int32_t)(8 * slice);
                model_load(&c, global, want + 4096 * cta + 1024 * slice, 1024 * slice);
            }
        if (!run_cluster(&sim, ctas, 64, 0, p, 2)) FAIL(t, "%s", sim.report.text);
        sim_read(&sim, p[1], got, sizeof got);
        compare(t, &c, "pair", got, want, sizeof got);
        free(global);
        sim_close(&sim);
    }
}

/* 128 zeros and every field set by tensormap.replace, in shared memory, as compilers of tensor programs do. */
static void a_map_is_assembled_from_zeros(struct test *t)
{
#define FIELD(field, type, operands) \
    "tensormap.replace.tile." field ".shared::cta.b1024." type " [%%r20], " operands ";\n"
    static const char before[] =
        ".shared .align 128 .b8 m[128]; mov.u32 %%r20, m; mov.u32 %%r21, %%tid.x; setp.ge.u32 %%p4, %%r21, 32; "
        "@%%p4 bra DONE; shl.b32 %%r22, %%r21, 2; add.u32 %%r22, %%r22, %%r20; st.shared.u32 [%%r22], 0; "
        "bar.warp.sync -1; setp.ne.u32 %%p5, %%r21, 0; "
        "@%%p5 bra COPY;\n" FIELD("global_address", "b64", "%%rd63") FIELD("rank", "b32", "1")
            FIELD("box_dim", "b32", "0, %u") FIELD("box_dim", "b32", "1, %u") FIELD("global_dim", "b32", "0, %u")
                FIELD("global_dim", "b32", "1, %u") FIELD("global_stride", "b64", "0, %u")
                    FIELD("element_stride", "b32", "0, 1") FIELD("element_stride", "b32", "1, 1")
                        FIELD("elemtype", "b32", "10") FIELD("interleave_layout", "b32", "0") FIELD("swizzle_mode",
                                                                                                    "b32", "3")
                            FIELD("fill_mode", "b32",
                                  "1") "COPY: bar.warp.sync -1; "
                                       "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync."
                                       "aligned [%%rd60], [%%r20], 128;\n"
                                       "DONE: bar.sync 0; fence.proxy.tensormap::generic.acquire.gpu "
                                       "[%%rd60], 128;\n%s";
    for (uint64_t s = 0; s < 20; s++) {
        struct tensor_case c = random_case(t, TENSOR_MAP_BF16, 3, 2, false);
        char text[16384], load[8192];
        struct sim sim;
        c.nan_fill = true;
        c.step[1] = 1;
        load_text(load, sizeof load, &c, 0, false);
        snprintf(text, sizeof text, before, c.box[0], c.box[1], (uint32_t)c.dim[0], (uint32_t)c.dim[1],
                 (uint32_t)c.stride[0], load);
        if (!sim_open(t, &sim, "sm_90a", text)) return;
        use_schedule(&sim, s);
        const size_t bytes = (size_t)model_global_bytes(&c);
        uint8_t *global = random_bytes(t, bytes), got[SHARED_BYTES], want[SHARED_BYTES];
        memset(want, POISON, sizeof want);
        const uint64_t p[4] = { sim_buffer(&sim, NULL, 128), sim_buffer(&sim, NULL, sizeof got),
                                sim_buffer(&sim, want, sizeof want), sim_buffer(&sim, global, bytes) };
        model_load(&c, global, want, 0);
        if (!run_cluster(&sim, 1, 128, 0, p, 4)) FAIL(t, "%s", sim.report.text);
        sim_read(&sim, p[1], got, sizeof got);
        compare(t, &c, "assembled map", got, want, sizeof got);
        free(global);
        sim_close(&sim);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(loads_are_the_model_s),
        TEST(stores_are_the_model_s),
        TEST(later_devices_have_more),
        TEST(tf32_is_rounded_to_nearest_even),
        TEST(rows_are_gathered_and_scattered),
        TEST(reductions_are_the_model_s),
        TEST(slices_are_multicast),
        TEST(pairs_signal_one_mbarrier),
        TEST(a_map_is_assembled_from_zeros),
    };
    return TEST_MAIN(argc, argv, cases);
}
