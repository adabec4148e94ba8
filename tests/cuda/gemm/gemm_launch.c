#include "gemm_launch.h"
#include "cuda/gemm/multiply.h"
#include "cuda/driver/embedded.h"
#include "cuda/driver/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "gemm: %s: %s\n", what, why);
    exit(3);
}

void gemm_call(const struct gemm_machine *machine, CUresult result, const char *what)
{
    const char *name = "unknown error";
    if (result == CUDA_SUCCESS) return;
    machine->cu->cuGetErrorName(result, &name);
    stop(what, name);
}

static void load_file(struct gemm_machine *machine, const struct bsmi_cuda_fatbin *fatbin)
{
    CUmodule module = NULL;
    for (int i = 0; i < bsmi_gemm_instance_count; i++) {
        const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[i];
        if (strcmp(g->file, fatbin->file) != 0) continue;
        if (module == NULL) gemm_call(machine, machine->cu->cuModuleLoadData(&module, fatbin->start), fatbin->file);
        gemm_call(machine, machine->cu->cuModuleGetFunction(&machine->functions[i], module, g->function), g->function);
        gemm_call(machine,
                  machine->cu->cuFuncSetAttribute(machine->functions[i],
                                                  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, g->shared_bytes),
                  "cuFuncSetAttribute");
    }
}

bool gemm_open(struct gemm_machine *machine)
{
    CUdevice device;
    int major, minor;
    if (bsmi_cuda_not_built[0] != '\0' || bsmi_driver_open(&machine->cu) != BSM_OK) return false;
    const struct bsmi_driver *cu = machine->cu;
    gemm_call(machine, cu->cuDeviceGet(&device, 0), "cuDeviceGet");
    gemm_call(machine, cu->cuDevicePrimaryCtxRetain(&machine->context, device), "cuDevicePrimaryCtxRetain");
    gemm_call(machine, cu->cuCtxPushCurrent(machine->context), "cuCtxPushCurrent");
    gemm_call(machine, cu->cuDeviceGetAttribute(&machine->processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
              "attribute");
    gemm_call(machine, cu->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
              "attribute");
    gemm_call(machine, cu->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
              "attribute");
    machine->capability = major * 10 + minor;
    for (const struct bsmi_cuda_fatbin *f = bsmi_cuda_fatbins; f->file != NULL; f++)
        if (bsmi_cuda_runs_on(f, machine->capability)) load_file(machine, f);
    return true;
}

CUdeviceptr gemm_allocate(const struct gemm_machine *machine, size_t bytes)
{
    CUdeviceptr memory;
    gemm_call(machine, machine->cu->cuMemAlloc(&memory, bytes), "cuMemAlloc");
    return memory;
}

CUdeviceptr gemm_upload(const struct gemm_machine *machine, const void *from, size_t bytes)
{
    const CUdeviceptr memory = gemm_allocate(machine, bytes);
    gemm_call(machine, machine->cu->cuMemcpyHtoDAsync(memory, from, bytes, NULL), "cuMemcpyHtoDAsync");
    gemm_call(machine, machine->cu->cuStreamSynchronize(NULL), "cuStreamSynchronize");
    return memory;
}

void gemm_download(const struct gemm_machine *machine, void *to, CUdeviceptr from, size_t bytes)
{
    gemm_call(machine, machine->cu->cuMemcpyDtoHAsync(to, from, bytes, NULL), "cuMemcpyDtoHAsync");
    gemm_call(machine, machine->cu->cuStreamSynchronize(NULL), "cuStreamSynchronize");
}

void gemm_free(const struct gemm_machine *machine, CUdeviceptr memory)
{
    gemm_call(machine, machine->cu->cuMemFree(memory), "cuMemFree");
}

bool gemm_map(const struct gemm_machine *machine, struct bsmi_tensor_map *map, const struct gemm_rows *rows,
              int box_columns, int box_rows, int swizzle_bytes)
{
    const int type = rows->element == BSM_FP32   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                     : rows->element == BSM_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    const int64_t bytes = rows->element == BSM_FP32 ? 4 : 2;
    const struct bsmi_cuda_gpu gpu = { .driver = machine->cu, .capability = machine->capability };
    const struct bsmi_cuda_rows of = { (const void *)(uintptr_t)rows->data, type, rows->columns, rows->rows,
                                       rows->batch, rows->pitch * bytes, rows->batch_pitch * bytes };
    const int swizzle = swizzle_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                        : swizzle_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                              : CU_TENSOR_MAP_SWIZZLE_32B;
    if (!bsmi_cuda_can_map(&of)) return false;
    if (bsmi_cuda_map(&gpu, &of, box_columns, box_rows, swizzle, map) != BSM_OK) stop("a tensor map", bsm_last_error());
    return true;
}

static int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

void gemm_prepare(const struct gemm_machine *machine, const struct bsmi_gemm_instance *i,
                  struct bsmi_gemm_parameters *p, const struct gemm_rows *a, const struct gemm_rows *b,
                  const struct gemm_rows *output)
{
    const bool described = gemm_map(machine, &p->a, a, BSMI_K_STEP, i->a_box_rows, 128) &&
                           gemm_map(machine, &p->b, b, BSMI_K_STEP, i->b_box_rows, 128);
    if (!described) stop(i->function, "operands that tensor maps cannot describe");
    p->has_d_map = i->d_box_rows > 0
                   && gemm_map(machine, &p->d, output, i->d_box_bytes / (output->element == BSM_FP32 ? 4 : 2),
                               i->d_box_rows, i->d_box_bytes);
    p->row_tiles = ceiling(p->epilogue.m, i->tile_rows * i->cluster_rows);
    p->column_tiles = ceiling(p->epilogue.n, i->tile_columns * i->cluster_columns);
    p->tiles = p->row_tiles * p->column_tiles * p->epilogue.matrices;
}

void gemm_launch(const struct gemm_machine *machine, const struct bsmi_gemm_instance *i,
                 const struct bsmi_gemm_parameters *p, CUstream stream, bool dependent)
{
    const int cluster = i->cluster_rows * i->cluster_columns, known = machine->most_clusters[cluster];
    const int clusters = known > 0 ? known : machine->processors / cluster;
    const int64_t wanted = p->epilogue.grouped || p->tiles > clusters ? clusters : p->tiles;
    CUlaunchAttribute attributes[2] = { { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION },
                                        { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION } };
    attributes[0].value.clusterDim.x = (unsigned)cluster,
    attributes[0].value.clusterDim.y = attributes[0].value.clusterDim.z = 1;
    attributes[1].value.programmaticStreamSerializationAllowed = 1;
    const CUlaunchConfig config = { (unsigned)(wanted * cluster), 1,      1,          (unsigned)i->threads, 1, 1,
                                    (unsigned)i->shared_bytes,    stream, attributes, dependent ? 2 : 1 };
    union {
        struct bsmi_shared_memory_parameters shared_memory;
        struct bsmi_blackwell_parameters blackwell;
    } given = { .shared_memory = { .gemm = *p } };
    const struct bsmi_matrix bf16 = { .format = BSM_FORMAT_BF16, .element = BSM_BF16 };
    if (bsmi_gemm_is_of_blackwell(i)) bsmi_codes_fill(i, &bf16, &bf16, &given.blackwell);
    void *parameters[] = { &given };
    gemm_call(machine,
              machine->cu->cuLaunchKernelEx(&config, machine->functions[i - bsmi_gemm_instances], parameters, NULL),
              i->function);
}
