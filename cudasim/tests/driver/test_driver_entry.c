/* The library as a program finds it: by cuGetProcAddress, under the name libcuda.so.1, with fatbins and launches by
 * attributes. */
#include "tests/support/kernel_api.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef CUresult get_proc(const char *, void **, int, cuuint64_t, int *);

static get_proc *proc_address(struct test *t)
{
    get_proc *found = NULL;
    if (api_get(t) == NULL) return NULL;
    void *library = dlopen(CUDASIM_LIBRARY, RTLD_NOW | RTLD_LOCAL),
         *symbol = library == NULL ? NULL : dlsym(library, "cuGetProcAddress_v2");
    memcpy(&found, &symbol, sizeof found);
    if (found == NULL) FAIL(t, "no cuGetProcAddress_v2");
    return found;
}

static void names_resolve_as_a_version_knew_them(struct test *t)
{
    get_proc *get = proc_address(t);
    static const struct { const char *symbol; int version, status; const char *same_as; } cases[] = {
        { "cuMemAlloc", 13000, 0, "cuMemAlloc_v2" },   { "cuMemAlloc", 3000, 2, NULL },
        { "cuLaunchKernel", 4000, 0, "cuLaunchKernel" }, { "cuCtxCreate", 12000, 0, "cuCtxCreate_v2" },
        { "cuCtxCreate", 13000, 0, "cuCtxCreate_v4" },  { "cuNoSuchThing", 13000, 1, NULL },
        { "malloc", 13000, 1, NULL },                   { "cuTensorMapEncodeTiled", 12000, 0,
          "cuTensorMapEncodeTiled" },
    };
    void *library = dlopen(CUDASIM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; get != NULL && i < sizeof cases / sizeof *cases; i++) {
        void *found = &found;
        int status = 77;
        OK(t, get(cases[i].symbol, &found, cases[i].version, 0, &status));
        void *want = cases[i].same_as == NULL ? NULL : dlsym(library, cases[i].same_as);
        if (status != cases[i].status || found != want) FAIL(t, "%s: status %d, %p", cases[i].symbol, status, found);
    }
    void *found;
    CHECK(t, get("cuInit", &found, 13000, 8, NULL) == CUDA_ERROR_INVALID_VALUE);
    CHECK(t, get(NULL, &found, 13000, 0, NULL) == CUDA_ERROR_INVALID_VALUE);
    CHECK(t, get("cuNoSuchThing", &found, 13000, 0, NULL) == CUDA_ERROR_NOT_FOUND);
}

static void it_lies_as_libcuda_in_a_folder_of_its_own(struct test *t)
{
    char path[4096];
    const char *slash = strrchr(CUDASIM_LIBRARY, '/');
    snprintf(path, sizeof path, "%.*s/cudasim/libcuda.so.1", (int)(slash - CUDASIM_LIBRARY), CUDASIM_LIBRARY);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) FAIL(t, "%s", dlerror());
    else CHECK(t, dlsym(library, "cuInit") != NULL);
}

/* ---- fatbins, made here: two texts, one compressed entry, one cubin ---- */

static const char text_90[] =
    ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
    ".reg .b64 %rd; .reg .b32 %r; .reg .pred %q;\nmov.u32 %r, %cluster_ctarank; "
    "setp.ne.u32 %q, %r, 0; @%q exit;\n"
    "ld.param.u64 %rd, [p]; mov.u32 %r, %cluster_nctarank; st.global.u32 [%rd], %r; ret;\n}\n";
static const char text_80[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry old(.param .u64 p)\n{\nret;\n}\n";
static const char text_120[] = ".version 9.0\n.target sm_120a\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";

struct fatbin { uint64_t bytes[512]; size_t used; };

static void put(struct fatbin *f, const void *from, size_t size)
{
    memcpy((char *)f->bytes + f->used, from, size);
    f->used += size;
}

static void begin(struct fatbin *f)
{
    memset(f, 0, sizeof *f);
    put(f, (uint32_t[]){ 0xba55ed50u, 0x00100001u, 0, 0 }, 16);
}

static void add_entry(struct fatbin *f, uint16_t kind, uint32_t sm, uint64_t flags, const char *payload, size_t size)
{
    uint8_t header[64] = { 0 };
    const uint32_t header_bytes = 64;
    const uint64_t padded = (size + 8) / 8 * 8;
    memcpy(header, &kind, 2), memcpy(header + 4, &header_bytes, 4), memcpy(header + 8, &padded, 8),
        memcpy(header + 28, &sm, 4);
    memcpy(header + 40, &flags, 8);
    put(f, header, sizeof header);
    put(f, payload, size);
    f->used += padded - size;
    const uint64_t all = f->used - 16;
    memcpy(&f->bytes[1], &all, 8);
}

static void the_newest_text_that_runs_is_taken(struct test *t)
{
    const struct api *api = api_get(t);
    struct fatbin f;
    CUmodule module;
    CUfunction function;
    begin(&f);
    add_entry(&f, 2, 90, 0x11, "\177ELF", 4);
    add_entry(&f, 1, 80, 0x11, text_80, sizeof text_80 - 1);
    add_entry(&f, 1, 90, 0x11, text_90, sizeof text_90 - 1);
    add_entry(&f, 1, 120, 0x11, text_120, sizeof text_120 - 1);
    OK(t, api->module_load_data(&module, f.bytes));
    OK(t, api->get_function(&function, module, "k"));
    CHECK(t, api->get_function(&function, module, "old") == CUDA_ERROR_NOT_FOUND);
    OK(t, api->module_unload(module));
    const struct { uint32_t magic, version; const void *data; void *file; } wrapper = { 0x466243b1, 1, f.bytes, NULL };
    OK(t, api->module_load_data(&module, &wrapper));
    OK(t, api->module_unload(module));
    begin(&f);
    add_entry(&f, 1, 120, 0x11, text_120, sizeof text_120 - 1);
    CHECK(t, api->module_load_data(&module, f.bytes) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    begin(&f);
    add_entry(&f, 1, 90, 0x8011, text_90, sizeof text_90 - 1);
    CHECK(t, api->module_load_data(&module, f.bytes) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    begin(&f);
    add_entry(&f, 1, 90, 0x11, text_90, sizeof text_90 - 1);
    const uint64_t lie = 1 << 20;
    memcpy((char *)f.bytes + 16 + 8, &lie, 8);
    CHECK(t, api->module_load_data(&module, f.bytes) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK(t, api->module_load_data(&module, "\177ELF\2\1\1") == CUDA_ERROR_NO_BINARY_FOR_GPU);
}

static void clusters_come_by_attribute(struct test *t)
{
    const struct api *api = api_get(t);
    get_proc *get = proc_address(t);
    CUresult (*launch)(const CUlaunchConfig *, CUfunction, void **, void **) = NULL;
    void *symbol;
    CUmodule module;
    CUfunction function;
    OK(t, get("cuLaunchKernelEx", &symbol, 13000, 0, NULL));
    memcpy(&launch, &symbol, sizeof launch);
    OK(t, api->module_load_data(&module, text_90));
    OK(t, api->get_function(&function, module, "k"));
    CUdeviceptr out = api_buffer(t, NULL, 4);
    void *parameters[] = { &out };
    CUlaunchAttribute attributes[3] = { { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 1 },
                                        { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                          .value.clusterDim = { 2, 2, 1 } },
                                        { .id = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
                                          .value.clusterDim = { 4, 2, 1 } } };
    CUlaunchConfig config = { .gridDimX = 4,
                              .gridDimY = 2,
                              .gridDimZ = 1,
                              .blockDimX = 1,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .attrs = attributes,
                              .numAttrs = 2 };
    OK(t, launch(&config, function, parameters, NULL));
    uint32_t got = 0;
    api_read(t, out, &got, sizeof got);
    CHECK(t, got == 4);
    config.numAttrs = 3;                  /* as with the cluster's dimension alone */
    const CUdeviceptr first = out;
    out = api_buffer(t, NULL, 4);
    OK(t, launch(&config, function, parameters, NULL));
    api_read(t, out, &got, sizeof got);
    CHECK(t, got == 4);
    attributes[2].value.clusterDim.x = 3; /* no multiple of it */
    CHECK(t, launch(&config, function, parameters, NULL) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    attributes[2].value.clusterDim.x = 0;
    CHECK(t, launch(&config, function, parameters, NULL) == CUDA_ERROR_INVALID_VALUE);
    api_free(t, first);
    config.numAttrs = 2;
    config.gridDimX = 3;
    CHECK(t, launch(&config, function, parameters, NULL) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    config.gridDimX = 36;
    attributes[1].value.clusterDim.x = 12;
    CHECK(t, launch(&config, function, parameters, NULL) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    attributes[1].id = (CUlaunchAttributeID)99;
    CHECK(t, launch(&config, function, parameters, NULL) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(t, launch(NULL, function, parameters, NULL) == CUDA_ERROR_INVALID_VALUE);
    OK(t, api->module_unload(module));
}

static void tensor_maps_are_made(struct test *t)
{
    get_proc *get = proc_address(t);
    CUresult (*encode)(CUtensorMap *, int, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                       const cuuint32_t *, const cuuint32_t *, int, int, int, int) = NULL;
    void *symbol;
    OK(t, get("cuTensorMapEncodeTiled", &symbol, 13000, 0, NULL));
    memcpy(&encode, &symbol, sizeof encode);
    const CUdeviceptr a = api_buffer(t, NULL, 64 * 64);
    CUtensorMap map;
    const cuuint64_t dimensions[2] = { 64, 64 }, strides[1] = { 64 };
    const cuuint32_t box[2] = { 32, 8 }, ones[2] = { 1, 1 }, wide[2] = { 257, 8 };
    OK(t, encode(&map, 0, 2, (void *)(uintptr_t)a, dimensions, strides, box, ones, 0, 1, 0, 0));
    CHECK(t, encode(&map, 0, 2, (void *)(uintptr_t)(a + 8), dimensions, strides, box, ones, 0, 1, 0, 0)
                 == CUDA_ERROR_INVALID_VALUE);
    CHECK(t, encode(&map, 0, 2, (void *)(uintptr_t)a, dimensions, strides, wide, ones, 0, 0, 0, 0)
                 == CUDA_ERROR_INVALID_VALUE);
    CHECK(t, encode(NULL, 0, 2, (void *)(uintptr_t)a, dimensions, strides, box, ones, 0, 1, 0, 0)
                 == CUDA_ERROR_INVALID_VALUE);
}

int main(int argc, char **argv)
{
    setenv("CUDASIM_QUIET", "1", 1);
    static const struct test_case cases[] = {
        TEST(names_resolve_as_a_version_knew_them), TEST(it_lies_as_libcuda_in_a_folder_of_its_own),
        TEST(the_newest_text_that_runs_is_taken),   TEST(clusters_come_by_attribute),
        TEST(tensor_maps_are_made),
    };
    return TEST_MAIN(argc, argv, cases);
}
