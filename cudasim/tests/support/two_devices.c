#include "two_devices.h"

#include <stdlib.h>
#include <unistd.h>

#define CALLS(X) \
    X(cuInit, (unsigned)) X(cuDevicePrimaryCtxReset_v2, (CUdevice)) \
    X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) X(cuCtxSetCurrent, (CUcontext)) X(cuCtxSynchronize, (void)) \
    X(cuModuleLoadData, (CUmodule *, const void *)) X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
    X(cuStreamCreate, (CUstream *, unsigned)) X(cuStreamSynchronize, (CUstream)) \
    X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) X(cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t)) \
    X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
    X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
                       void **, void **))
DRIVER_CALLS(CALLS)

const char two_devices_text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry add(.param .u64 p)\n{\n.reg .b64 %a; .reg .b32 %v;\nld.param.u64 %a, [p]; mov.u32 %v, %tid.x;\n"
    "mad.wide.u32 %a, %v, 4, %a; ld.global.u32 %v, [%a]; add.u32 %v, %v, 1; st.global.u32 [%a], %v; ret;\n}\n"
    ".visible .entry late(.param .u64 p)\n{\n.reg .b64 %a; .reg .b32 %v;\nld.param.u64 %a, [p];\n"
    "ld.global.u32 %v, [%a]; griddepcontrol.wait; ret;\n}\n"
    ".visible .entry bulk(.param .u64 p)\n{\n.reg .b64 %a; .shared .align 16 .b8 box[16];\n"
    "ld.param.u64 %a, [p]; st.shared.v4.u32 [box], {5, 5, 5, 5}; fence.proxy.async;\n"
    "cp.async.bulk.global.shared::cta.bulk_group [%a], [box], 16; cp.async.bulk.commit_group;\n"
    "cp.async.bulk.wait_group 0; ret;\n}\n"
    ".visible .entry copy(.param .u64 p, .param .u64 q)\n{\n.reg .b64 %a, %b, %o; .reg .b32 %v;\n"
    "ld.param.u64 %a, [p]; ld.param.u64 %b, [q]; mov.u32 %v, %tid.x; mul.wide.u32 %o, %v, 4;\n"
    "add.u64 %a, %a, %o; add.u64 %b, %b, %o; ld.global.u32 %v, [%b]; st.global.u32 [%a], %v; ret;\n}\n";

struct device_parts on[DEVICES];

void two_devices_set(void)
{
    unsetenv("CUDASIM_QUIET");
    setenv("CUDASIM_SCHEDULES", "3", 1);
    setenv("CUDASIM_DEVICES", "2", 1);
    unsetenv("CUDASIM_DEVICE");
}

void open_device(struct test *t, int i)
{
    CUmodule module;
    OK(t, cuDevicePrimaryCtxReset_v2(i));
    OK(t, cuDevicePrimaryCtxRetain(&on[i].context, i));
    OK(t, cuCtxSetCurrent(on[i].context));
    OK(t, cuModuleLoadData(&module, two_devices_text));
    OK(t, cuModuleGetFunction(&on[i].add, module, "add"));
    OK(t, cuModuleGetFunction(&on[i].copy, module, "copy"));
    OK(t, cuModuleGetFunction(&on[i].late, module, "late"));
    OK(t, cuModuleGetFunction(&on[i].bulk, module, "bulk"));
    OK(t, cuStreamCreate(&on[i].stream, 1));
    OK(t, cuMemAlloc_v2(&on[i].words, BYTES));
    OK(t, cuMemsetD32_v2(on[i].words, 100 * (unsigned)(i + 1), WORDS));
}

void two_devices_begin(struct test *t)
{
    find_calls(t);
    OK(t, cuInit(0));
    for (int i = DEVICES - 1; i >= 0; i--) open_device(t, i);
}

void use(struct test *t, int i) { OK(t, cuCtxSetCurrent(on[i].context)); }

CUresult add(int i, CUdeviceptr at)
{
    return cuLaunchKernel(on[i].add, 1, 1, 1, WORDS, 1, 1, 0, on[i].stream, (void *[]){ &at }, NULL);
}

CUresult bulk(int i, CUdeviceptr at)
{
    return cuLaunchKernel(on[i].bulk, 1, 1, 1, 1, 1, 1, 0, on[i].stream, (void *[]){ &at }, NULL);
}

bool holds(struct test *t, CUdeviceptr at, uint32_t want)
{
    uint32_t words[WORDS] = { 0 };
    for (int i = 0; i < DEVICES; i++) (void)cuStreamSynchronize(on[i].stream);      /* one may have a fault */
    OK(t, cuMemcpyDtoH_v2(words, at, sizeof words));
    for (int i = 0; i < WORDS; i++)
        if (words[i] != want) return false;
    return true;
}

/* ---- what is said on stderr ---- */

char said[8192];
static int kept_stderr = -1;
static FILE *collected;

void listen_begin(struct test *t)
{
    collected = tmpfile();
    CHECK(t, collected != NULL);
    fflush(stderr);
    kept_stderr = dup(2);
    dup2(fileno(collected), 2);
}

void listen_end(void)
{
    fflush(stderr);
    dup2(kept_stderr, 2);
    close(kept_stderr);
    rewind(collected);
    said[fread(said, 1, sizeof said - 1, collected)] = '\0';
    fclose(collected);
}

void refused(struct test *t, int device, CUresult (*launch)(int, CUdeviceptr), CUdeviceptr at, const char *sentence)
{
    use(t, 1 - device);
    if (!driver_is_simulated()) return;   /* a GPU is lost to a process after a fault */
    use(t, device);
    listen_begin(t);
    OK(t, launch(device, at));
    listen_end();
    GIVES(t, CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    SAYS(t, sentence);
    use(t, 1 - device);
    OK(t, cuCtxSynchronize());
}
