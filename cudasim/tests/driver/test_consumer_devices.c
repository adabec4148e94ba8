/* What sm_120a and sm_121a have, what they lack, and what the plain sm_120 lacks of it, as ptxas 13.0 takes and refuses
 * it; their limits as a program finds them: 99 KB of shared memory for a CTA, 8 CTAs in a cluster, 48 warps on an
 * SM. */
#include <stdlib.h>

#include "tests/support/driver_api.h"
#include "ptx/ptx.h"

/* ---- instructions ---- */

static bool reads(const char *target, const char *statement)
{
    char text[2048];
    struct ptx_error error;
    const int length =
        snprintf(text, sizeof text,
                 ".version 9.0\n.target %s\n.address_size 64\n.entry k(.param .b64 p0) {\n"
                 ".reg .b8 %%b<8>; .reg .b16 %%h<8>; .reg .b32 %%w<16>; .reg .f32 %%f<16>; .reg .b64 %%l<8>; "
                 ".reg .pred %%p<4>;\n"
                 "%s\nret; }\n",
                 target, statement);
    struct module *m = ptx_read("statement", text, (size_t)length, NULL, &error);
    ptx_release(m);
    return m != NULL;
}

#define TENSOR_LOAD "cp.async.bulk.tensor.2d.shared::"
#define COMPLETES   ".mbarrier::complete_tx::bytes"
#define DABC        " {%f0,%f1,%f2,%f3}, {%w0,%w1,%w2,%w3}, {%w4,%w5}, {%f4,%f5,%f6,%f7}"

static void instructions_are_there_or_not(struct test *t)
{
    static const struct {
        bool there, plain;
        const char *statement;
    } statements[] = {
        { false, false, "wgmma.fence.sync.aligned;" },
        { false, false, "wgmma.commit_group.sync.aligned;" },
        { false, false, "tcgen05.fence::before_thread_sync;" },
        { false, false, "tcgen05.wait::ld.sync.aligned;" },
        { false, false, "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" },
        { false, false, "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%w1], 32;" },
        { false, false,
          TENSOR_LOAD "cluster.global.tile::gather4" COMPLETES " [%w1], [%l1, {%w2,%w3,%w4,%w5,%w6}], [%w7];" },
        { false, false, "cvt.rs.satfinite.e2m1x4.f32 %h1, {%f1,%f2,%f3,%f4}, %w1;" },
        { false, false, "redux.sync.max.f32 %f1, %f2, %w1;" },
        { true, false, "setmaxnreg.dec.sync.aligned.u32 40;" },
        { true, false,
          "clusterlaunchcontrol.try_cancel.async.shared::cta" COMPLETES ".multicast::cluster::all.b128 [%w1], [%w2];" },
        { true, false, "cvt.rn.satfinite.e2m1x2.f32 %b1, %f1, %f2;" },
        { true, false, "cvt.rn.f16x2.e2m1x2 %w1, %b1;" },
        { true, false, "cvt.rz.satfinite.ue8m0x2.f32 %h1, %f1, %f2;" },
        { true, false, "tensormap.replace.tile.global_address.global.b1024.b64 [%l0], %l1;" },
        { true, false, "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%w1}, [%w0];" },
        { true, false, "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%w1,%w2}, [%w0];" },
        { true, false, "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%w0], {%w1};" },
        { true, false, "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32" DABC ";" },
        { true, false,
          "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0" DABC
          ", %w6, {0,0}, %w7, {0,0};" },
        { true, true, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32" DABC ";" },
        { true, true, "griddepcontrol.wait;" },
        { true, true, "griddepcontrol.launch_dependents;" },
        { true, true, "clusterlaunchcontrol.try_cancel.async.shared::cta" COMPLETES ".b128 [%w1], [%w2];" },
        { true, true, TENSOR_LOAD "cta.global.tile::gather4" COMPLETES " [%w1], [%l1, {%w2,%w3,%w4,%w5,%w6}], [%w7];" },
        { true, true,
          TENSOR_LOAD "cluster.global" COMPLETES ".multicast::cluster [%w1], [%l1, {%w2,%w3}], [%w7], %h1;" },
        { true, true, "ld.global.v8.b32 {%w0,%w1,%w2,%w3,%w4,%w5,%w6,%w7}, [%l0];" },
        { true, true, "fma.rn.f32x2 %l0, %l1, %l2, %l3;" },
        { true, true, "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;" },
        { true, true, "cvt.rn.f16x2.e4m3x2 %w1, %h1;" },
        { true, true, "elect.sync _|%p1, 0xffffffff;" },
        { true, true, "mapa.shared::cluster.u32 %w1, %w2, %w3;" },
    };
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        const char *const s = statements[i].statement;
        if (reads("sm_120a", s) != statements[i].there)
            FAIL(t, "sm_120a %s: %s", statements[i].there ? "lacks" : "has", s);
        if (reads("sm_121a", s) != statements[i].there)
            FAIL(t, "sm_121a %s: %s", statements[i].there ? "lacks" : "has", s);
        if (reads("sm_120", s) != statements[i].plain)
            FAIL(t, "sm_120 %s: %s", statements[i].plain ? "lacks" : "has", s);
    }
}

/* ---- limits ---- */

typedef const CUlaunchConfig *config_pointer;

#define CALLS(X) \
    X(cuModuleLoadData, (CUmodule *, const void *)) \
    X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
    X(cuFuncSetAttribute, (CUfunction, int, int)) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, CUfunction, int, size_t)) \
        X(cuOccupancyMaxPotentialClusterSize, (int *, CUfunction, config_pointer)) \
            X(cuLaunchKernelEx, (config_pointer, CUfunction, void **, void **)) X(cuCtxSynchronize, (void)) \
                X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))
DRIVER_CALLS(CALLS)

enum { MOST_SHARED = 99 * 1024 };

/* Warps 0 to 3 hand registers to warps 4 to 7; the CTA writes its rank into the last word of the next CTA's 99 KB. */
static const char text[] =
    ".version 8.8\n.target sm_120a\n.address_size 64\n.extern .shared .align 16 .b8 memory[];\n"
    ".visible .entry empty()\n{\nret;\n}\n.visible .entry k(.param .u64 p0) .maxntid 256 .maxnreg 128\n{\n"
    ".reg .b32 %r<16>; .reg .b64 %rd<4>; .reg .pred %p<4>;\n"
    "griddepcontrol.wait; mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 128; @%p1 bra CONSUMER;\n"
    "setmaxnreg.dec.sync.aligned.u32 40; bra.uni BOTH;\nCONSUMER: setmaxnreg.inc.sync.aligned.u32 216;\n"
    "BOTH: mov.u32 %r2, memory; mov.u32 %r3, %dynamic_smem_size; add.u32 %r2, %r2, %r3; "
    "mov.u32 %r4, %cluster_ctarank;\n"
    "mov.u32 %r5, %cluster_nctarank; add.u32 %r6, %r4, 1; rem.u32 %r6, %r6, %r5; "
    "mapa.shared::cluster.u32 %r7, %r2, %r6;\n"
    "setp.ne.u32 %p2, %r1, 0; barrier.cluster.arrive; barrier.cluster.wait;\n"
    "@%p2 bra WAIT; st.shared::cluster.u32 [%r7+-4], %r4;\nWAIT: barrier.cluster.arrive; barrier.cluster.wait;\n"
    "@%p2 bra END; ld.shared.u32 %r8, [%r2+-4]; ld.param.u64 %rd1, [p0]; mov.u32 %r9, %ctaid.x; "
    "mul.wide.u32 %rd2, %r9, 4;\n"
    "add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r8; griddepcontrol.launch_dependents;\nEND: ret;\n}\n";

static void limits_hold(struct test *t)
{
    CUmodule module;
    CUfunction f, empty;
    CUdeviceptr out;
    int count;
    driver_begin(t);
    find_calls(t);
    OK(t, cuModuleLoadData(&module, text));
    OK(t, cuModuleGetFunction(&f, module, "k"));
    OK(t, cuModuleGetFunction(&empty, module, "empty"));
    OK(t, cuMemAlloc_v2(&out, 64));
    GIVES(t, CUDA_ERROR_INVALID_VALUE,
          cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, MOST_SHARED + 1));
    OK(t, cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, MOST_SHARED));
    OK(t, cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    OK(t, cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, f, 32, MOST_SHARED));
    CHECK(t, count == 1);
    OK(t, cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, empty, 256, 0));
    CHECK(t, count == 6); /* 48 warps */
    OK(t, cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, empty, 32, 0));
    CHECK(t, count == 24);
    CUlaunchAttribute a = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = { 8, 1, 1 } };
    CUlaunchConfig config = { .gridDimX = 16,
                              .gridDimY = 1,
                              .gridDimZ = 1,
                              .blockDimX = 256,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .sharedMemBytes = MOST_SHARED,
                              .attrs = &a,
                              .numAttrs = 1 };
    OK(t, cuOccupancyMaxPotentialClusterSize(&count, f, &config));
    CHECK(t, count == 8);
    OK(t, cuLaunchKernelEx(&config, f, (void *[]){ &out }, NULL));
    OK(t, cuCtxSynchronize());
    uint32_t rank[16];
    OK(t, cuMemcpyDtoH_v2(rank, out, sizeof rank));
    for (uint32_t i = 0; i < 16; i++) CHECK(t, rank[i] == (i + 7) % 8);
    a.value.clusterDim.x = 16;
    GIVES(t, CUDA_ERROR_INVALID_CLUSTER_SIZE, cuLaunchKernelEx(&config, f, (void *[]){ &out }, NULL));
    a.value.clusterDim.x = 8, config.sharedMemBytes = MOST_SHARED + 1;
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, f, (void *[]){ &out }, NULL));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(instructions_are_there_or_not), TEST(limits_hold) };
    setenv("CUDASIM_DEVICE", "sm_120a", 1);
    return TEST_MAIN(argc, argv, cases);
}
