/* Wrong uses of cp.async.bulk.tensor and of tensor maps, each with its right twin, and forms that are refused. */
#include <stdlib.h>

#include "machine/async/tensor_map.h"
#include "tests/support/schedules.h"
#include "tests/reference/tensor_model.h"

/* Maps over p2 (64 KiB) in p0 and over p3 in p1: 64 x 64 f16, boxes of 64 x 8, swizzle 128B. */
static uint64_t matrix_map(struct sim *sim, uint64_t buffer)
{
    _Alignas(64) uint8_t map[TENSOR_MAP_BYTES];
    char sentence[256];
    const struct tensor_case c = { .dim = { 64, 64 }, .stride = { 128 }, .box = { 64, 8 }, .step = { 1, 1 } };
    if (tensor_map_encode_tiled(sim->machine.device, map, TENSOR_MAP_F16, 2, buffer, c.dim, c.stride, c.box, c.step, 0,
                                3, 0, 0, sentence, sizeof sentence)
        != 0)
        abort();
    return sim_buffer(sim, map, sizeof map);
}

#define BEGIN \
    ".shared .align 1024 .b8 s[2048]; .shared .align 128 .b8 m[128]; .shared .align 8 .b64 bar; mov.u32 %r1, s; " \
    "mov.u32 %r2, " \
    "bar; " \
    "mov.u32 %r3, %tid.x; mov.u32 %r20, m; setp.ne.u32 %p1, %r3, 0; @%p1 bra READY; mbarrier.init.shared.b64 [%r2], " \
    "1; " \
    "fence.mbarrier_init.release.cluster; READY: bar.sync 0;\n"
#define LOAD(operands) \
    "@%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 1024; " \
    "cp.async.bulk.tensor.2d.shared::cluster.global" \
    ".mbarrier::complete_tx::bytes " operands \
    ";\nWAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;\n"
#define FILL \
    "shl.b32 %r4, %r3, 3; add.u32 %r4, %r4, %r1; st.shared.v2.u32 [%r4], {%r3, %r3}; fence.proxy.async; bar.sync 0;\n"
#define STORE(operands) \
    FILL "@%p1 bra END; cp.async.bulk.tensor.2d.global.shared::cta.bulk_group " operands \
         "; cp.async.bulk.commit_group; " \
         "cp.async.bulk.wait_group 0; END:"
/* one thread copies the map to shared memory, word by word */
#define COPY_MAP \
    "mov.u64 %rd5, 0; COPY: add.u64 %rd6, %rd60, %rd5; ld.global.u64 %rd7, [%rd6]; cvt.u32.u64 %r5, %rd5; add.u32 " \
    "%r5, %r5, " \
    "%r20; " \
    "st.shared.u64 [%r5], %rd7; add.u64 %rd5, %rd5, 8; setp.lt.u64 %p3, %rd5, 128; @%p3 bra COPY;\n"
#define PUBLISH \
    "bar.warp.sync -1; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned " \
    "[%rd63], [%r20], " \
    "128;\n"
#define ACQUIRE        "fence.proxy.tensormap::generic.acquire.gpu [%rd63], 128;\n"
#define REPLACE(words) "tensormap.replace.tile." words "\n"

static const struct misuse misuses[] = {
    { LOAD("[%r1], [%rd60, {0, 0}], [%r2]"), NULL, 0, 1, 128 },
    { LOAD("[%r1], [%rd60, {-64, 60}], [%r2]"), NULL, 0, 1, 128 },
    { LOAD("[%r1+64], [%rd60, {0, 0}], [%r2]"), "no multiple of 128", REPORT_MISALIGNED, 1, 128 },
    { LOAD("[%r1+128], [%rd60, {0, 0}], [%r2]"), NULL, 0, 1, 128 },
    { LOAD("[%r1+1152], [%rd60, {0, 0}], [%r2]"), NULL, 0, 1, 128 },
    { LOAD("[%r1+1280], [%rd60, {0, 0}], [%r2]"), "moves 1024 bytes at shared address", REPORT_OUT_OF_BOUNDS, 1, 128 },
    { LOAD("[%r1], [%rd60, {4, 0}], [%r2]"), "coordinate 4 in dimension 0", REPORT_ILLEGAL, 1, 128 },
    { LOAD("[%r1], [%rd60, {-8, 0}], [%r2]"), NULL, 0, 1, 128 },
    { LOAD("[%r1], [%rd62, {0, 0}], [%r2]"), "where none was encoded", REPORT_ILLEGAL, 1, 128 },
    { LOAD("[%r1], [8, {0, 0}], [%r2]"), "no 128 bytes are allocated", REPORT_OUT_OF_BOUNDS, 1, 128 },
    { "add.u64 %rd60, %rd60, 32; " LOAD("[%r1], [%rd60, {0, 0}], [%r2]"), "no 128 bytes", REPORT_OUT_OF_BOUNDS, 1,
      128 },
    { "add.u64 %rd60, %rd62, 32; " LOAD("[%r1], [%rd60, {0, 0}], [%r2]"), "no multiple of 64", REPORT_MISALIGNED, 1,
      128 },
    { LOAD("[%r1], [%rd60, {0, 0}], [%r2+4]"), "no multiple of 8", REPORT_MISALIGNED, 1, 128 },
    { "@%p1 bra END; cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd60, {0, 0, "
      "0}], [%r2]; END:",
      "names 3 dimensions; the tensor map has 2", REPORT_ILLEGAL, 1, 128 },
    { ".local .align 64 .b8 copy[128]; mov.u64 %rd5, copy; cvta.local.u64 %rd60, %rd5; " LOAD(
          "[%r1], [%rd60, {0, 0}], [%r2]"),
      "in local memory", REPORT_ILLEGAL, 1, 128 },
    { "mov.u32 %r5, m; cvt.u64.u32 %rd6, %r5; cvta.shared.u64 %rd60, %rd6; " LOAD("[%r1], [%rd60, {0, 0}], [%r2]"),
      "in shared memory", REPORT_ILLEGAL, 1, 128 },
    /* the tensor of a map that was freed, or ends before the map says so */
    { "@%p1 bra C; " COPY_MAP REPLACE(
          "global_dim.shared::cta.b1024.b32 [%r20], 1, 1000;") "C: bar.sync 0; setp.ge.u32 %p4, %r3, 32; @%p4 bra "
                                                               "N; " PUBLISH
                                                               "N: bar.sync 0; " ACQUIRE LOAD(
                                                                   "[%r1], [%rd63, {0, 508}], [%r2]"),
      "outside of the 65536 bytes", REPORT_OUT_OF_BOUNDS, 1, 128 },
    { "@%p1 bra C; " COPY_MAP REPLACE(
          "global_dim.shared::cta.b1024.b32 [%r20], 1, 1000;") "C: bar.sync 0; setp.ge.u32 %p4, %r3, 32; @%p4 bra "
                                                               "N; " PUBLISH
                                                               "N: bar.sync 0; " ACQUIRE LOAD(
                                                                   "[%r1], [%rd63, {0, 504}], [%r2]"),
      NULL, 0, 1, 128 },
    /* a changed map without the fence, without a barrier, by generic stores, with a field that is illegal, copied in
     * part */
    { "@%p1 bra C; " COPY_MAP REPLACE(
          "global_dim.shared::cta.b1024.b32 [%r20], 1, 32;") "C: bar.sync 0; setp.ge.u32 %p4, %r3, 32; @%p4 bra "
                                                             "N; " PUBLISH
                                                             "N: bar.sync 0; " LOAD("[%r1], [%rd63, {0, 0}], [%r2]"),
      "no fence.proxy.tensormap", REPORT_PROXY, 1, 128 },
    { "setp.ne.u32 %p4, %r3, 32; @%p4 bra N; " REPLACE(
          "box_dim.global.b1024.b32 [%rd60], 1, 8;") "fence.proxy.tensormap::generic.release.gpu; "
                                                     "N: fence.proxy.tensormap::generic.acquire.gpu [%rd60], "
                                                     "128; " LOAD("[%r1], [%rd60, {0, 0}], [%r2]"),
      "no barrier", REPORT_RACE, 1, 128 },
    { "setp.ne.u32 %p4, %r3, 32; @%p4 bra N; " REPLACE(
          "box_dim.global.b1024.b32 [%rd60], 1, 8;") "fence.proxy.tensormap::generic.release.gpu; "
                                                     "N: bar.sync 0; fence.proxy.tensormap::generic.acquire.gpu "
                                                     "[%rd60], 128; " LOAD("[%r1], [%rd60, {0, 0}], [%r2]"),
      NULL, 0, 1, 128 },
    /* each lane of the warp that has copied the map acquires it; another warp must not without a barrier */
    { "@%p1 bra C; " COPY_MAP "C: bar.sync 0; setp.ge.u32 %p4, %r3, 32; @%p4 bra WAIT; " PUBLISH ACQUIRE
          LOAD("[%r1], [%rd63, {0, 0}], [%r2]"),
      NULL, 0, 1, 128 },
    { "@%p1 bra C; " COPY_MAP "C: bar.sync 0; setp.ge.u32 %p4, %r3, 32; @%p4 bra N; " PUBLISH "N: " ACQUIRE
          LOAD("[%r1], [%rd63, {0, 0}], [%r2]"),
      "no barrier", REPORT_RACE, 1, 128 },
    { "@%p1 bra C; " COPY_MAP REPLACE(
          "box_dim.shared::cta.b1024.b32 [%r20], 0, 72;") "C: bar.sync 0; setp.ge.u32 %p4, %r3, 32; @%p4 bra "
                                                          "N; " PUBLISH
                                                          "N: bar.sync 0; " ACQUIRE LOAD(
                                                              "[%r1], [%rd63, {0, 0}], [%r2]"),
      "more than the 128 of its swizzle", REPORT_ILLEGAL, 1, 128 },
    { "@%p1 bra C; " COPY_MAP
      "st.shared.u64 [%r20+24], 0; C: bar.sync 0; setp.ge.u32 %p4, %r3, 32; @%p4 bra N; " PUBLISH
      "N: bar.sync 0; " ACQUIRE LOAD("[%r1], [%rd63, {0, 0}], [%r2]"),
      "changed after it was encoded", REPORT_ILLEGAL, 1, 128 },
    { "@%p1 bra C; " REPLACE("rank.shared::cta.b1024.b32 [%r20], 1;") "C: bar.sync 0;", "nothing has written",
      REPORT_UNINITIALISED, 1, 128 },
    { "@%p1 bra C; " COPY_MAP
      "st.shared.u64 [%r20], 5; " REPLACE("rank.shared::cta.b1024.b32 [%r20], 1;") "C: bar.sync 0;",
      "no tensor map", REPORT_ILLEGAL, 1, 128 },
    /* waiting */
    { "@%p1 bra W; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 1024; cp.async.bulk.tensor.2d.shared::cluster.global"
      ".mbarrier::complete_tx::bytes [%r1], [%rd60, {0, 0}], [%r2]; W: ld.shared.u32 %r5, [%r1]; WAIT: "
      "mbarrier.try_wait.parity.shared.b64 %p2, "
      "[%r2], 0; @!%p2 bra WAIT;",
      "", REPORT_ASYNC + ALWAYS, 1, 1 },
    { "@%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 1008; "
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd60, {56, 0}], [%r2];\n"
      "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;",
      "", REPORT_DEADLOCK, 1, 32 },
    /* stores */
    { STORE("[%rd61, {0, 0}], [%r1]"), NULL, 0, 1, 128 },
    { STORE("[%rd61, {0, 60}], [%r1]"), NULL, 0, 1, 128 },
    { STORE("[%rd61, {0, -1}], [%r1]"), "must not be negative", REPORT_ILLEGAL, 1, 128 },
    { STORE("[%rd61, {0, 0}], [%r1+64]"), "no multiple of 128", REPORT_MISALIGNED, 1, 128 },
    { STORE("[%rd61, {0, 0}], [%r1+128]"), "nothing has written", REPORT_UNINITIALISED, 1, 128 },
    { STORE("[%rd61, {0, 57}], [%r1+128]"), NULL, 0, 1, 128 },
    { FILL
      "@%p1 bra END; cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.bulk_group [%rd61, {0, 0}], [%r1]; END:",
      "reduces elements of type f16", REPORT_ILLEGAL, 1, 128 },
    { FILL "@%p1 bra END; cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd61, {0, 0}], [%r1]; "
           "cp.async.bulk.commit_group; st.shared.u32 [%r1], 0; cp.async.bulk.wait_group 0; END:",
      "overwrites the byte", REPORT_ASYNC, 1, 128 },
};

static void misuse_is_reported(struct test *t)
{
    check_misuses(t, "sm_90a", BEGIN, misuses, sizeof misuses / sizeof *misuses, matrix_map);
}

/* CTAs of a cluster load 1024 bytes each; the barrier at %r9 is the even CTA's. */
#define BEGIN_PAIR \
    BEGIN "mov.u32 %r8, %cluster_ctarank; and.b32 %r9, %r2, 0xfeffffff; barrier.cluster.arrive; barrier.cluster.wait;\n"
#define PAIR_LOAD(words, bytes, to, barrier) \
    "@%p1 bra WAIT; setp.eq.u32 %p4, %r8, 0; @%p4 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], " bytes ";\n" \
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes" words " [" to \
    "], [%rd60, {0, 0}], [" barrier "];\nWAIT: setp.ne.u32 %p4, %r8, 0; @%p4 bra END; LOOK: " \
                                    "mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra LOOK;\n" \
    "END: barrier.cluster.arrive; barrier.cluster.wait;"

static const struct misuse pair_misuses[] = {
    { PAIR_LOAD(".cta_group::2", "2048", "%r1", "%r9"), NULL, 0, 2, 64 },
    { PAIR_LOAD("", "2048", "%r1", "%r9"), "as there is no .cta_group::2", REPORT_ILLEGAL, 2, 64 },
    { PAIR_LOAD(".cta_group::1", "2048", "%r1", "%r9"), "as there is no .cta_group::2", REPORT_ILLEGAL, 2, 64 },
    { PAIR_LOAD(".cta_group::2", "4096", "%r1", "%r9"), "", REPORT_DEADLOCK, 2, 64 },
    { PAIR_LOAD(".cta_group::2", "1024", "%r1", "%r9"), "has .cta_group::2 in a cluster of 1 CTAs", REPORT_ILLEGAL, 1,
      64 },
    { "mov.u32 %r9, bar; mapa.shared::cluster.u32 %r9, %r9, 0;\n" PAIR_LOAD(".cta_group::2", "4096", "%r1", "%r9"),
      "it has to be the same CTA or the other of its pair", REPORT_ILLEGAL, 4, 64 },
    /* the even CTA waits, its peer reads without having been told */
    { "@%p1 bra WAIT; setp.eq.u32 %p4, %r8, 0; @%p4 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 2048;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 [%r1], [%rd60, {0, "
      "0}], [%r9];\n"
      "WAIT: setp.ne.u32 %p4, %r8, 0; @%p4 bra READ; LOOK: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; "
      "@!%p2 bra LOOK;\n"
      "READ: ld.shared.u32 %r5, [%r1]; barrier.cluster.arrive; barrier.cluster.wait;", "", REPORT_ASYNC, 2, 64 },
};

static void misuse_of_pairs_is_reported(struct test *t)
{
    check_misuses(t, "sm_100a", BEGIN_PAIR, pair_misuses, sizeof pair_misuses / sizeof *pair_misuses, matrix_map);
}

/* Over p2 and p3: 128 x 64 elements of 4 bits with padding, boxes of 128 x 8. */
static uint64_t padded_map(struct sim *sim, uint64_t buffer)
{
    _Alignas(64) uint8_t map[TENSOR_MAP_BYTES];
    char sentence[256];
    const struct tensor_case c = { .dim = { 256, 64 }, .stride = { 128 }, .box = { 128, 8 }, .step = { 1, 1 } };
    if (tensor_map_encode_tiled(sim->machine.device, map, TENSOR_MAP_B4X16_P64, 2, buffer, c.dim, c.stride, c.box,
                                c.step, 0, 3, 0, 0, sentence, sizeof sentence)
        != 0)
        abort();
    return sim_buffer(sim, map, sizeof map);
}

#define PADDED_LOAD(space, bytes, at) \
    "@%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], " bytes "; cp.async.bulk.tensor.2d.shared::" space \
    ".global" \
    ".mbarrier::complete_tx::bytes [%r1], [%rd60, {" at \
    "}], [%r2];\nWAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; " \
    "@!%p2 bra WAIT;\n"

static const struct misuse padded_misuses[] = {
    { PADDED_LOAD("cta", "512", "0, 0") "ld.shared.u64 %rd1, [%r1];", NULL, 0, 1, 128 },
    { PADDED_LOAD("cta", "512", "128, 60") "ld.shared.u64 %rd1, [%r1];", NULL, 0, 1, 128 },
    { PADDED_LOAD("cta", "512", "-128, 0") "ld.shared.u64 %rd1, [%r1];", NULL, 0, 1, 128 },
    /* the bytes that shared memory gets, not those that are moved */
    { PADDED_LOAD("cta", "1024", "0, 0"), "", REPORT_DEADLOCK, 1, 128 },
    { PADDED_LOAD("cta", "512", "0, 0") "ld.shared.u64 %rd1, [%r1+8];", "nothing has written", REPORT_UNINITIALISED, 1,
      128 },
    { PADDED_LOAD("cta", "512", "32, 0"), "is a multiple of 128", REPORT_ILLEGAL, 1, 128 },
    { FILL "@%p1 bra END; cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd61, {0, 0}], [%r1]; END:",
      "b4x16_p64, which can be loaded only", REPORT_ILLEGAL, 1, 128 },
};
static const struct misuse cluster_of_100 = { PADDED_LOAD("cluster", "512", "0, 0"), NULL, 0, 1, 128 };
static const struct misuse cluster_of_120 = {
    PADDED_LOAD("cluster", "512", "0, 0"), "to .shared::cta only", REPORT_ILLEGAL, 1, 128
};

static void misuse_of_padded_types_is_reported(struct test *t)
{
    const int count = sizeof padded_misuses / sizeof *padded_misuses;
    check_misuses(t, "sm_100a", BEGIN, padded_misuses, count, padded_map);
    check_misuses(t, "sm_120a", BEGIN, padded_misuses, count, padded_map);
    check_misuses(t, "sm_103a", BEGIN, &cluster_of_100, 1, padded_map);
    check_misuses(t, "sm_120a", BEGIN, &cluster_of_120, 1, padded_map);
}

/* 64 x 64 f16, boxes of 64 x 8, the swizzles with atoms of 32 bytes and a flip, and of 64 bytes. */
static uint64_t map_of_swizzle(struct sim *sim, uint64_t buffer, unsigned swizzle)
{
    _Alignas(64) uint8_t map[TENSOR_MAP_BYTES];
    char sentence[256];
    const struct tensor_case c = { .dim = { 64, 64 }, .stride = { 128 }, .box = { 64, 8 }, .step = { 1, 1 } };
    if (tensor_map_encode_tiled(sim->machine.device, map, TENSOR_MAP_F16, 2, buffer, c.dim, c.stride, c.box, c.step, 0,
                                swizzle, 0, 0, sentence, sizeof sentence)
        != 0)
        abort();
    return sim_buffer(sim, map, sizeof map);
}
static uint64_t flipped_map(struct sim *sim, uint64_t buffer) { return map_of_swizzle(sim, buffer, 5); }
static uint64_t wide_map(struct sim *sim, uint64_t buffer) { return map_of_swizzle(sim, buffer, 6); }

static void swizzles_of_one_direction(struct test *t)
{
    static const struct misuse flipped[] = {
        { LOAD("[%r1], [%rd60, {0, 0}], [%r2]"), NULL, 0, 1, 128 },
        { STORE("[%rd61, {0, 0}], [%r1]"), "flips 8 bytes, which is for loads only", REPORT_ILLEGAL, 1, 128 },
    };
    static const struct misuse wide[] = {
        { LOAD("[%r1], [%rd60, {0, 0}], [%r2]"), "atoms of 64 bytes, which are for stores only", REPORT_ILLEGAL, 1,
          128 },
        { STORE("[%rd61, {0, 0}], [%r1]"), NULL, 0, 1, 128 },
    };
    static const struct misuse of_120[] = {
        { LOAD("[%r1], [%rd60, {0, 0}], [%r2]"), "swizzle atomicity to .shared::cluster", REPORT_ILLEGAL, 1, 128 },
    };
    check_misuses(t, "sm_100a", BEGIN, flipped, 2, flipped_map);
    check_misuses(t, "sm_100a", BEGIN, wide, 2, wide_map);
    check_misuses(t, "sm_120a", BEGIN, of_120, 1, flipped_map);
}

static void forms_that_do_not_exist_are_refused(struct test *t)
{
#define TILE(dimensions, destination, rest) "cp.async.bulk.tensor." dimensions ".shared::" destination ".global" rest
#define BYTES                               ".mbarrier::complete_tx::bytes"
    static const struct {
        const char *device, *text;
    } forms[] = {
        { "sm_90a", TILE("2d", "cluster", ".tile::gather4" BYTES) " [%r1], [%rd1, {0, 0, 1, 2, 3}], [%r2];" },
        { "sm_120a", TILE("2d", "cluster", ".tile::gather4" BYTES) " [%r1], [%rd1, {0, 0, 1, 2, 3}], [%r2];" },
        { "sm_90a", "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd1, {0, 0, 1, 2, 3}], "
                    "[%r1];" },
        { "sm_90a", TILE("2d", "cluster", BYTES) ".cta_group::2 [%r1], [%rd1, {0, 0}], [%r2];" },
        { "sm_120a", TILE("2d", "cta", BYTES) ".cta_group::1 [%r1], [%rd1, {0, 0}], [%r2];" },
        { "sm_100a", TILE("2d", "cluster", BYTES) ".cta_group::3 [%r1], [%rd1, {0, 0}], [%r2];" },
        { "sm_100a", TILE("2d", "cluster",
                          BYTES) ".multicast::cluster.cta_group::2.multicast::cluster [%r1], [%rd1, {0, 0}], [%r2]"
                                 ", %rs1;" },
        { "sm_100a", "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.cta_group::2 [%rd1, {0, 0}], [%r1];" },
        { "sm_90a", TILE("3d", "cluster", ".im2col" BYTES) " [%r1], [%rd1, {0, 0, 0}], [%r2], {%rs1};" },
        { "sm_90a", TILE("2d", "cta", BYTES) ".multicast::cluster [%r1], [%rd1, {0, 0}], [%r2], %rs1;" },
        { "sm_90a", TILE("2d", "cluster", ".tile" BYTES ".tile") " [%r1], [%rd1, {0, 0}], [%r2];" },
        { "sm_90a", TILE("2d", "cluster", BYTES) " [%r1], [%rd1, {0, 0, 0}], [%r2];" },
        { "sm_90a", TILE("6d", "cluster", BYTES) " [%r1], [%rd1, {0, 0, 0, 0, 0, 0}], [%r2];" },
        { "sm_90a", "tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%rd1], 1;" },
        { "sm_90a", "tensormap.replace.tile.elemtype.global.b1024.b32 [%rd1], 13;" },
        { "sm_90a", "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%rd1], 4;" },
        { "sm_90a", "tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 5, 1;" },
        { "sm_90a", "tensormap.replace.tile.fill_mode.global.b1024.b32 [%rd1], %r1;" },
        { "sm_90a", "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], "
                    "[%r1], 64;" },
    };
    struct sim sim;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        CHECK(t, sim_refused(t, &sim, forms[i].device, forms[i].text));
}

/* On an H100 a map that was one of tf32 goes on rounding as .f32, and faults when it is used as .u16 or .u64. */
static void a_map_of_tf32_stays_one(struct test *t)
{
    static const struct { int first, second; bool reported; } changes[] = {
        { 11, 7, true }, { 11, 1, true }, { 12, 4, true }, { 11, 12, false }, { 7, 11, false }, { 7, 4, false },
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct sim sim;
        char text[1024];
        snprintf(text, sizeof text,
                 ".shared .align 128 .b8 m[128]; mov.u32 %%r20, m; mov.u32 %%r21, %%tid.x; shl.b32 %%r22, %%r21, 2; "
                 "add.u32 %%r22, %%r22, %%r20; st.shared.u32 [%%r22], 0; bar.warp.sync -1; "
                 "setp.ne.u32 %%p5, %%r21, 0; @%%p5 ret;\n"
                 "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%%r20], %d;\n"
                 "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%%r20], %d;\n",
                 changes[i].first, changes[i].second);
        if (!sim_open(t, &sim, "sm_90a", text)) return;
        const bool ran = sim_run(&sim, "k", 1, 32, 0, NULL, 0);
        if (changes[i].reported)
            CHECK(t, !ran && sim.report.code == REPORT_ILLEGAL && strstr(sim.report.text, "from tf32") != NULL);
        else if (!ran) FAIL(t, "%s", sim.report.text);
        sim_close(&sim);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(misuse_is_reported),
        TEST(misuse_of_pairs_is_reported),
        TEST(misuse_of_padded_types_is_reported),
        TEST(swizzles_of_one_direction),
        TEST(forms_that_do_not_exist_are_refused),
        TEST(a_map_of_tf32_stays_one),
    };
    return TEST_MAIN(argc, argv, cases);
}
