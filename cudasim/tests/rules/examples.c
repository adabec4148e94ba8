#include "examples.h"

#include <string.h>

/* ---- copies: one thread, 16 bytes ---- */

#define ONE "sm_90a", 1, 1, 4, 0, false
#define BEGIN \
    ".shared .align 128 .b8 s[64]; .shared .align 8 .b64 bar; mov.u32 %r1, s; mov.u32 %r2, bar;\n" \
    "mbarrier.init.shared.b64 [%r2], 1; st.shared.v4.u32 [%r1], {7, 7, 7, 7}; fence.proxy.async;\n"
#define START_LOAD \
    "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r2], 16;\n" \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd60], 16, [%r2];\n"
#define WAIT_LOAD "W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W;\n"
#define LOAD START_LOAD WAIT_LOAD
#define PROXY_FENCE "fence.proxy.async;\n"
#define READ "ld.shared.u32 %r3, [%r1];\n"
#define READ_AND_WRITE "ld.shared.u32 %r3, [%r1]; st.shared.u32 [%r1], %r3;\n"
#define KEEP "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r1]; st.global.v4.u32 [%rd61], {%r4, %r5, %r6, %r7};\n"
#define STORE "cp.async.bulk.global.shared::cta.bulk_group [%rd61], [%r1], 16; cp.async.bulk.commit_group;\n"
#define WAIT_READ "cp.async.bulk.wait_group.read 0;\n"
#define WAIT_STORE "cp.async.bulk.wait_group 0;\n"

/* The tensor map, copied to p3 word by word. */
#define COPY_MAP \
    "mov.u64 %rd1, 0; C: add.u64 %rd2, %rd62, %rd1; add.u64 %rd3, %rd63, %rd1; ld.global.u64 %rd4, [%rd2]; " \
    "st.global.u64 [%rd3], %rd4; add.u64 %rd1, %rd1, 8; setp.lt.u64 %p1, %rd1, 128; @%p1 bra C;\n" \
    "fence.proxy.tensormap::generic.release.gpu;\n"
#define ACQUIRE_MAP "fence.proxy.tensormap::generic.acquire.gpu [%rd63], 128;\n"
#define ACQUIRE_NONE "mov.u64 %rd1, 0; fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;\n"
#define TENSOR_LOAD \
    "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r2], 16; cp.async.bulk.tensor.1d.shared::cluster.global" \
    ".mbarrier::complete_tx::bytes [%r1], [%rd63, {0}], [%r2];\n" WAIT_LOAD

/* Two CTAs: the first has TMA copy to the second, which waits. */
#define INIT_BARRIER \
    ".shared .align 128 .b8 s[64]; .shared .align 8 .b64 bar; mov.u32 %r1, s; mov.u32 %r2, bar; " \
    "mov.u32 %r3, %cluster_ctarank; setp.ne.u32 %p2, %r3, 0; mbarrier.init.shared.b64 [%r2], 1;\n"
#define INIT_FENCE "fence.mbarrier_init.release.cluster;\n"
#define LOAD_FOR_PEER \
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; @%p2 bra TAKE;\n" \
    "mapa.shared::cluster.u32 %r4, %r1, 1; mapa.shared::cluster.u32 %r5, %r2, 1;\n" \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd60], 16, [%r5]; bra END;\n" \
    "TAKE: mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r2], 16;\n" WAIT_LOAD KEEP "END:\n"

/* ---- threads ---- */

/* A warp writes 32 numbers and a flag, another polls the flag and reads them. */
#define FLAG(store, load) \
    ".shared .align 4 .b8 s[128]; .shared .align 4 .b32 flag; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; " \
    "shl.b32 %r2, %r2, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2; mov.u32 %r4, flag; cvt.u64.u32 %rd1, %r2; " \
    "add.u64 %rd2, %rd60, %rd1; add.u64 %rd3, %rd61, %rd1; setp.eq.u32 %p1, %r1, 0; setp.ge.u32 %p2, %r1, 32;\n" \
    "@%p1 st.relaxed.cta.shared.u32 [%r4], 0; bar.sync 0; @%p2 bra POLL;\n" \
    "ld.global.u32 %r5, [%rd2]; st.shared.u32 [%r3], %r5; bar.warp.sync -1;\n" \
    "@%p1 " store ".shared.u32 [%r4], 1; bra END;\n" \
    "POLL: " load ".shared.u32 %r6, [%r4]; setp.eq.u32 %p3, %r6, 0; @%p3 bra POLL;\n" \
    "ld.shared.u32 %r7, [%r3]; st.global.u32 [%rd3], %r7; END:\n"

/* One cluster leaves four numbers in scratch memory, another waits for its flag and takes them. */
#define HAND_OVER(store, load) \
    "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra POLL;\n" \
    "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd60]; st.global.v4.u32 [%rd63+16], {%r4, %r5, %r6, %r7};\n" \
    store ".global.u32 [%rd63], 1; bra END;\n" \
    "POLL: " load ".global.u32 %r2, [%rd63]; setp.eq.u32 %p2, %r2, 0; @%p2 bra POLL;\n" \
    "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd63+16]; st.global.v4.u32 [%rd61], {%r4, %r5, %r6, %r7};\n" \
    "st.relaxed.gpu.global.u32 [%rd63], 0; END:\n"

#define COPY_NUMBERS(between) \
    "mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd60, %rd1; add.u64 %rd3, %rd61, %rd1;\n" between \
    "st.global.u32 [%rd3], %r2;\n"
#define READ_NUMBER "ld.global.u32 %r2, [%rd2];\n"
#define WAIT_GRID "griddepcontrol.wait;\n"

/* ---- products of ones: K of 16 ---- */

#define ONES ".shared .align 1024 .b8 a[4096]; mov.u32 %r1, %tid.x; mov.u32 %r10, a; mov.u32 %r30, 0x3f803f80; " \
    "shl.b32 %r11, %r1, 5; add.u32 %r11, %r11, %r10; st.shared.v4.b32 [%r11], {%r30, %r30, %r30, %r30}; " \
    "st.shared.v4.b32 [%r11+16], {%r30, %r30, %r30, %r30}; fence.proxy.async; bar.sync 0;\n" \
    "shr.u32 %r12, %r10, 4; cvt.u64.u32 %rd1, %r12; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd61; " \
    "setp.ne.u32 %p7, 0, 0; setp.eq.u32 %p8, 0, 0;\n"

#define WGMMA "sm_90a", 1, 128, 128, 16, false
#define WGMMA_FENCE "wgmma.fence.sync.aligned;\n"
#define WGMMA_PRODUCT \
    "or.b64 %rd1, %rd1, 0x0000000800400000; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " \
    "{%f0, %f1, %f2, %f3}, %rd1, %rd1, %p7, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; " \
    "wgmma.wait_group.sync.aligned 0; st.global.f32 [%rd2], %f0;\n"

/* 64 columns of tensor memory, %r3; %r5: the same in the warp's own lanes.  Thread 0 (%p2) issues products of 128 x 16;
 * with A from columns 32 to 39. */
#define TENSOR(product) "sm_100a", 1, 128, 128, product, false
#define ALLOCATE \
    ".shared .align 8 .b64 bars[2]; .shared .align 4 .b32 s; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 0; " \
    "setp.eq.u32 %p2, %r1, 0; mov.u32 %r9, bars; or.b64 %rd1, %rd1, 0x0000400800800000; @!%p1 bra A; " \
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 64; " \
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n" \
    "A: @%p2 mbarrier.init.shared.b64 [%r9], 1; fence.proxy.async; bar.sync 0;\n" \
    "ld.shared.u32 %r3, [s]; shl.b32 %r5, %r2, 21; add.u32 %r5, %r5, %r3; add.u32 %r7, %r3, 32;\n"
#define FREE "bar.sync 0; @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;\n"
#define MULTIPLY(d, a, add) "@%p2 tcgen05.mma.cta_group::1.kind::f16 [" d "], " a ", %rd1, 0x08040490, " add ";\n"
#define PRODUCT MULTIPLY("%r3", "%rd1", "%p7")
#define ADD_PRODUCT MULTIPLY("%r3", "%rd1", "%p8")
#define FROM_CELLS MULTIPLY("%r3", "[%r7]", "%p7")
#define TO_CELLS MULTIPLY("%r7", "%rd1", "%p7")
#define COMMIT "@%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r9];\n"
#define WAIT_COMMIT "W: mbarrier.try_wait.parity.shared.b64 %p4, [%r9], 0; @!%p4 bra W;\n"
#define WAIT_AGAIN "X: mbarrier.try_wait.parity.shared.b64 %p4, [%r9], 1; @!%p4 bra X;\n"
#define AFTER "tcgen05.fence::after_thread_sync;\n"
#define BEFORE "tcgen05.fence::before_thread_sync;\n"
#define BARRIER "bar.sync 0;\n"
#define CELL_LOAD "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r5];\n"
#define WAIT_CELLS_LOAD "tcgen05.wait::ld.sync.aligned;\n"
#define FIVES "%r21, %r21, %r21, %r21, %r21, %r21, %r21, %r21"
#define FILL "mov.u32 %r21, 0x40a00000; tcgen05.st.sync.aligned.32x32b.x16.b32 [%r5], {" FIVES ", " FIVES "};\n"
#define FILL_A "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5+32], {%r30, %r30, %r30, %r30, %r30, %r30, %r30, %r30};\n"
#define WAIT_CELLS_STORE "tcgen05.wait::st.sync.aligned;\n"
#define KEEP_CELL "xor.b32 %r22, %r20, 0; st.global.u32 [%rd2], %r22;\n"
#define LOAD_CELL CELL_LOAD WAIT_CELLS_LOAD
#define END COMMIT WAIT_COMMIT AFTER LOAD_CELL KEEP_CELL FREE
#define BEGIN_CELLS ONES ALLOCATE
#define PRODUCT_DONE PRODUCT COMMIT WAIT_COMMIT
#define PRODUCT_OVER_FIVES FILL WAIT_CELLS_STORE BEFORE BARRIER AFTER ADD_PRODUCT
#define FILL_CELLS_OF_A FILL_A WAIT_CELLS_STORE BEFORE BARRIER AFTER

const struct rule_example rule_examples[RULE_COUNT] = {
    [RULE_RACE] = { FLAG("st.relaxed.cta", "ld.relaxed.cta"), FLAG("st.release.cta", "ld.acquire.cta"), "sm_90a", 1, 64,
                    32, 0, false },
    [RULE_CLUSTER_RACE] = { HAND_OVER("st.relaxed.gpu", "ld.relaxed.gpu"),
                            HAND_OVER("st.release.gpu", "ld.acquire.gpu"), ONE, .more_clusters = 1 },
    [RULE_DEPENDENT_GRID] = { COPY_NUMBERS(READ_NUMBER WAIT_GRID), COPY_NUMBERS(WAIT_GRID READ_NUMBER), "sm_90a", 1, 32,
                              32, 0, true },
    [RULE_OPERATION_WAIT] = { BEGIN START_LOAD READ WAIT_LOAD KEEP, BEGIN START_LOAD WAIT_LOAD READ KEEP, ONE },
    [RULE_WRITE_PROXY_FENCE] = { BEGIN LOAD READ_AND_WRITE STORE WAIT_STORE,
                                 BEGIN LOAD READ_AND_WRITE PROXY_FENCE STORE WAIT_STORE, ONE },
    [RULE_READ_PROXY_FENCE] = { BEGIN READ LOAD KEEP, BEGIN READ PROXY_FENCE LOAD KEEP, ONE },
    [RULE_MBARRIER_INIT_FENCE] = { INIT_BARRIER LOAD_FOR_PEER, INIT_BARRIER INIT_FENCE LOAD_FOR_PEER, "sm_90a", 2, 1, 4,
                                   0, false },
    [RULE_TENSORMAP_FENCE] = { BEGIN COPY_MAP TENSOR_LOAD KEEP, BEGIN COPY_MAP ACQUIRE_MAP TENSOR_LOAD KEEP, ONE },
    [RULE_ENDED_CTA_READ] = { BEGIN LOAD PROXY_FENCE STORE, BEGIN LOAD PROXY_FENCE STORE WAIT_READ, ONE },
    [RULE_WGMMA_REGISTERS] = { ONES WGMMA_PRODUCT, ONES WGMMA_FENCE WGMMA_PRODUCT, WGMMA },
    [RULE_TENSOR_LANES] = { BEGIN_CELLS PRODUCT_DONE AFTER "mov.u32 %r5, %r3;\n" LOAD_CELL KEEP_CELL FREE,
                            BEGIN_CELLS PRODUCT_DONE AFTER LOAD_CELL KEEP_CELL FREE, TENSOR(16) },
    [RULE_TENSOR_LOAD_WAIT] = { BEGIN_CELLS PRODUCT_DONE AFTER CELL_LOAD KEEP_CELL WAIT_CELLS_LOAD FREE,
                                BEGIN_CELLS PRODUCT_DONE AFTER CELL_LOAD WAIT_CELLS_LOAD KEEP_CELL FREE,
                                TENSOR(16) },
    [RULE_TENSOR_ACCESS_WAIT] = { BEGIN_CELLS FILL BEFORE BARRIER AFTER ADD_PRODUCT END,
                                  BEGIN_CELLS PRODUCT_OVER_FIVES END, TENSOR(21) },
    [RULE_TENSOR_ACCESS_ORDER] = { BEGIN_CELLS FILL WAIT_CELLS_STORE BARRIER AFTER ADD_PRODUCT END,
                                   BEGIN_CELLS PRODUCT_OVER_FIVES END, TENSOR(21) },
    [RULE_TENSOR_ISSUE_ORDER] = { BEGIN_CELLS FILL_CELLS_OF_A FROM_CELLS TO_CELLS END,
                                  BEGIN_CELLS FILL_CELLS_OF_A FROM_CELLS COMMIT WAIT_COMMIT BARRIER AFTER TO_CELLS
                                      COMMIT WAIT_AGAIN AFTER CELL_LOAD WAIT_CELLS_LOAD KEEP_CELL FREE,
                                  TENSOR(16) },
    [RULE_TENSOR_COMMIT_WAIT] = { BEGIN_CELLS PRODUCT_OVER_FIVES COMMIT BARRIER LOAD_CELL WAIT_COMMIT AFTER LOAD_CELL
                                      KEEP_CELL FREE,
                                  BEGIN_CELLS PRODUCT_OVER_FIVES COMMIT BARRIER WAIT_COMMIT AFTER LOAD_CELL LOAD_CELL
                                      KEEP_CELL FREE,
                                  TENSOR(21) },
    [RULE_TENSOR_COMMIT_FENCE] = { BEGIN_CELLS PRODUCT_DONE LOAD_CELL AFTER KEEP_CELL FREE,
                                   BEGIN_CELLS PRODUCT_DONE AFTER LOAD_CELL KEEP_CELL FREE, TENSOR(16) },
};

const struct rule_example acquire_example = { BEGIN ACQUIRE_NONE LOAD KEEP, BEGIN ACQUIRE_MAP LOAD KEEP, ONE, 0 };

uint32_t rule_example_number(uint32_t i) { return 100 * i + 3; }

bool rule_example_left(const struct rule_example *e, const uint32_t *results)
{
    for (uint32_t i = 0; i < e->results; i++) {
        uint32_t wanted = rule_example_number(i);
        if (e->product != 0) memcpy(&wanted, &e->product, sizeof wanted);
        if (results[i] != wanted) return false;
    }
    return true;
}
