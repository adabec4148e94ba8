/* Programmatic dependent launch (PTX ISA 9.7.13.13): what a grid may touch before it has waited for the grids in front
 * of it. */
#include <stdlib.h>

#include "tests/support/driver_api.h"

#define CALLS(X) \
    X(cuStreamCreate, (CUstream *, unsigned)) \
    X(cuStreamDestroy_v2, (CUstream)) X(cuStreamSynchronize, (CUstream)) X(cuEventCreate, (CUevent *, unsigned)) \
        X(cuEventRecord, (CUevent, CUstream)) X(cuEventSynchronize, (CUevent)) X(cuEventDestroy_v2, (CUevent)) \
            X(cuCtxSynchronize, (void)) X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) \
                X(cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream)) \
                    X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) X(cuModuleLoadData, (CUmodule *, const void *)) \
                        X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
                            X(cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **)) \
                                X(cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode)) \
                                    X(cuStreamEndCapture, (CUstream, CUgraph *)) \
                                        X(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long)) \
                                            X(cuGraphLaunch, (CUgraphExec, CUstream)) \
                                                X(cuGraphExecDestroy, (CUgraphExec)) X(cuGraphDestroy, (CUgraph))
DRIVER_CALLS(CALLS)

/* Kernels of 64 threads with a pointer, each in a module of its own. */
static const struct { const char *name, *body; } kernels[] = {
    { "write", "griddepcontrol.wait; @%first st.global.u32 [%a], 7;" },
    { "write_at_once", "@%first st.global.u32 [%a], 7;" },
    { "write_byte", "griddepcontrol.wait; @%first st.global.u8 [%a+2], 7;" },
    { "add", "@%first red.global.add.u32 [%a], 7;" },
    { "read_byte", "@%first ld.global.u8 %v, [%a+1];" },
    { "read", "griddepcontrol.wait; @%first ld.global.u32 %v, [%a];" },
    { "read_at_once", "@%first ld.global.u32 %v, [%a];" },
    { "read_after_a_barrier", "@%first griddepcontrol.wait; bar.sync 0; @%rest ld.global.u32 %v, [%a];" },
    { "read_beside_the_one_that_waits", "@%first griddepcontrol.wait; @%rest ld.global.u32 %v, [%a];" },
    { "read_too_early", "@%first ld.global.u32 %v, [%a]; griddepcontrol.wait;" },
    { "copy", "griddepcontrol.wait; @%first cp.async.ca.shared.global [box], [%a], 16; cp.async.wait_all;" },
    { "copy_at_once", "@%first cp.async.ca.shared.global [box], [%a], 16; cp.async.wait_all;" },
    { "nothing", "" },
    { "early_write", "griddepcontrol.wait; griddepcontrol.launch_dependents; @%first st.global.u32 [%a], 7;" },
    { "early_read", "griddepcontrol.wait; @%first ld.global.u32 %v, [%a]; griddepcontrol.launch_dependents;" },
};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

static CUfunction function[KERNELS];
static CUdeviceptr cell, other;
static CUstream stream;

static void load(struct test *t, int i)
{
    char text[1024];
    CUmodule module;
    snprintf(text, sizeof text, ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry %s(.param .u64 p)\n{\n"
             ".reg .b64 %%a; .reg .b32 %%v, %%t; .reg .pred %%first, %%rest; .shared .align 16 .b8 box[16];\n"
             "ld.param.u64 %%a, [p]; mov.u32 %%t, %%tid.x; setp.eq.u32 %%first, %%t, 0; setp.eq.u32 %%rest, %%t, 32;\n"
             "%s ret;\n}\n",
             kernels[i].name, kernels[i].body);
    OK(t, cuModuleLoadData(&module, text));
    OK(t, cuModuleGetFunction(&function[i], module, kernels[i].name));
}

static void begin(struct test *t)
{
    driver_begin(t);
    find_calls(t);
    for (int i = 0; i < KERNELS; i++) load(t, i);
    OK(t, cuMemAlloc_v2(&cell, 256));
    OK(t, cuMemAlloc_v2(&other, 256));
    OK(t, cuStreamCreate(&stream, 1));
}

static void launch(struct test *t, const char *name, bool programmatic)
{
    CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION };
    attribute.value.programmaticStreamSerializationAllowed = programmatic;
    const CUlaunchConfig c = { 1, 1, 1, 64, 1, 1, 0, stream, &attribute, 1 };
    int i = 0;
    while (i < KERNELS && strcmp(kernels[i].name, name) != 0) i++;
    if (i == KERNELS) FAIL(t, "no kernel %s", name);
    else cuLaunchKernelEx(&c, function[i], (void *[]){ &cell }, NULL);          /* a fault is asked for at the end */
}

/* Words: a kernel, launched programmatically, or plainly with '!' behind it; what the host or the stream does
 * between. */
static void play(struct test *t, const char *words)
{
    char copy[256], *rest = copy;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        const size_t length = strlen(word);
        CUevent event;
        if (strcmp(word, "<fill>") == 0) {
            OK(t, cuMemsetD32Async(other, 0, 4, stream));
        } else if (strcmp(word, "<stream>") == 0) {
            OK(t, cuStreamSynchronize(stream));
        } else if (strcmp(word, "<context>") == 0) {
            OK(t, cuCtxSynchronize());
        } else if (strcmp(word, "<event>") == 0) {
            OK(t, cuEventCreate(&event, 0));
            OK(t, cuEventRecord(event, stream));
            OK(t, cuEventSynchronize(event));
            OK(t, cuEventDestroy_v2(event));
        } else if (strcmp(word, "<copy>") == 0) {
            uint32_t value;
            OK(t, cuMemcpyDtoH_v2(&value, other, 4));
        } else {
            const bool plain = word[length - 1] == '!';
            if (plain) word[length - 1] = '\0';
            launch(t, word, !plain);
        }
    }
}

/* races: nothing orders what a thread touches before it waits. */
static const struct { const char *words; bool races; } cases[] = {
    { "write! read", false },
    { "write! read_at_once", true },
    { "write! read_at_once!", false },
    { "write! read_too_early", true },
    { "write! read_after_a_barrier", false },
    { "write! read_beside_the_one_that_waits", true },
    { "write! copy", false },
    { "write! copy_at_once", true },
    { "write! write", false },
    { "write! write_at_once", true },
    { "write! add", true },
    { "write_byte! read_byte", false },
    { "write_byte! read_at_once", true },
    { "early_write! read_at_once", true },
    { "early_write! read", false },
    /* reads are over when the next grid begins, unless it was let begin earlier */
    { "read! write_at_once", false },
    { "early_read! write_at_once", true },
    { "early_read! write", false },
    { "early_read! read_at_once", false },
    /* what stands between */
    { "write! <fill> read_at_once", false },
    { "write! <stream> read_at_once", false },
    { "write! <context> read_at_once", false },
    { "write! <event> read_at_once", false },
    { "write! <copy> read_at_once", false },
    /* a grid that has waited stands for those before it, one that has not does not */
    { "write! read read_at_once", false },
    { "write! nothing read_at_once", true },
    { "write! nothing nothing nothing read_at_once", true },
    { "write! nothing! read_at_once", false },
    { "write! nothing read", true },
    { "write! nothing read read", true },
    { "write! nothing read! read", false },
};

static void in_a_stream(struct test *t)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(t);
        play(t, cases[i].words);
        const CUresult end = cuCtxSynchronize();
        if ((end != CUDA_SUCCESS) != cases[i].races) FAIL(t, "%s: %d", cases[i].words, (int)end);
        driver_reset(t);
    }
}

static void in_a_graph(struct test *t)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CUgraph graph;
        CUgraphExec exec;
        if (strchr(cases[i].words, '<') != NULL) continue;      /* what the host does is no part of a graph */
        begin(t);
        OK(t, cuStreamBeginCapture_v2(stream, 0));
        play(t, cases[i].words);
        OK(t, cuStreamEndCapture(stream, &graph));
        OK(t, cuGraphInstantiateWithFlags(&exec, graph, 0));
        cuGraphLaunch(exec, stream);
        if (!cases[i].races) cuGraphLaunch(exec, stream);        /* its first kernel begins when the graph before has
                                                                    ended */
        const CUresult end = cuCtxSynchronize();
        if ((end != CUDA_SUCCESS) != cases[i].races) FAIL(t, "%s: %d", cases[i].words, (int)end);
        cuGraphExecDestroy(exec), cuGraphDestroy(graph);
        driver_reset(t);
    }
}

int main(int argc, char **argv)
{
    setenv("CUDASIM_QUIET", "1", 1);
    static const struct test_case tests[] = { TEST(in_a_stream), TEST(in_a_graph) };
    return TEST_MAIN(argc, argv, tests);
}
