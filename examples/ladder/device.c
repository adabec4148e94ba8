#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void call(const struct device *device, CUresult result, const char *what)
{
    const char *name = "unknown error";
    if (result == CUDA_SUCCESS) return;
    device->cu->cuGetErrorName(result, &name);
    stop("%s: %s", what, name);
}

/* ---- kernels ---- */

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    fseek(file, 0, SEEK_END);
    const long bytes = ftell(file);
    char *text = bytes < 0 ? NULL : calloc((size_t)bytes + 1, 1);
    rewind(file);
    if (text == NULL || fread(text, 1, (size_t)bytes, file) != (size_t)bytes) stop("%s: cannot be read", path);
    fclose(file);
    return text;
}

static CUmodule load_module(const struct device *device, const char *folder, int step)
{
    char path[4096];
    CUmodule module;
    snprintf(path, sizeof path, "%s/step%d.fatbin", folder, step);
    char *image = read_file(path);
    if (image == NULL) {
        snprintf(path, sizeof path, "%s/step%d.ptx", folder, step);
        image = read_file(path);
    }
    if (image == NULL) stop("%s/step%d.fatbin: no such file, and no .ptx", folder, step);
    call(device, device->cu->cuModuleLoadData(&module, image), path);
    free(image);
    return module;
}

/* Of a row of a tile in shared memory; an instruction's are 32. */
static int row_bytes(const struct problem *p) { return (int)(p->block_k / p->format->instruction_k * 32); }

/* Stages as in tile.cuh: a tile of A and B, and its scales, up to the next multiple of 1024. */
static int shared_bytes(int step, const struct problem *p)
{
    const int block = bsm_format_get((int)p->format->a)->block, columns = (int)p->block_k / block,
              groups = (columns + SCALE_BLOCK_COLUMNS - 1) / SCALE_BLOCK_COLUMNS,
              b_blocks = ((int)p->block_n + SCALE_BLOCK_ROWS - 1) / SCALE_BLOCK_ROWS;
    const int operands = (TILE_M + (int)p->block_n) * row_bytes(p),
              scales = (1 + b_blocks) * groups * SCALE_BLOCK_BYTES, stage = (operands + scales + 1023) / 1024 * 1024,
              fit = (SHARED_BYTES - 1024) / stage;
    return step < 5 ? stage : stage * (fit < LADDER_STAGES ? fit : LADDER_STAGES);
}

CUfunction device_kernel(struct device *device, int step, const struct problem *p)
{
    char name[64];
    CUfunction kernel;
    CUmodule *module = &device->modules[step - 1];
    if (*module == NULL) *module = load_module(device, device->folder, step);
    snprintf(name, sizeof name, "step%d_%s_%dx%d", step, p->format->suffix, (int)p->block_n, (int)p->block_k);
    if (device->cu->cuModuleGetFunction(&kernel, *module, name) != CUDA_SUCCESS) return NULL;
    call(device,
         device->cu->cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes(step, p)),
         name);
    return kernel;
}

void device_open(struct device *device, const char *kernels)
{
    CUdevice first;
    CUcontext context;
    int major = 0;
    if (bsmi_driver_open(&device->cu) != BSM_OK) stop("%s", bsm_last_error());
    const struct bsmi_driver *cu = device->cu;
    call(device, cu->cuDeviceGet(&first, 0), "cuDeviceGet");
    call(device, cu->cuDeviceGetName(device->name, sizeof device->name, first), "cuDeviceGetName");
    call(device, cu->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, first),
         "cuDeviceGetAttribute");
    call(device, cu->cuDeviceGetAttribute(&device->processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, first),
         "cuDeviceGetAttribute");
    device->simulated = strncmp(device->name, "cudasim", 7) == 0;
    if (major != 10)
        stop("%s has compute capability %d.x: tensor memory is that of 10.x (CUDASIM_DEVICE=sm_100a simulates one)",
             device->name, major);
    call(device, cu->cuDevicePrimaryCtxRetain(&context, first), "cuDevicePrimaryCtxRetain");
    call(device, cu->cuCtxPushCurrent(context), "cuCtxPushCurrent");
    device->folder = kernels;
}

/* ---- problems ---- */

static CUdeviceptr upload(const struct device *device, struct loaded *x, const void *from, int64_t bytes)
{
    CUdeviceptr *memory = &x->memory[x->allocations++];
    call(device, device->cu->cuMemAlloc(memory, (size_t)bytes), "cuMemAlloc");
    if (from != NULL)
        call(device, device->cu->cuMemcpyHtoDAsync(*memory, from, (size_t)bytes, NULL), "cuMemcpyHtoDAsync");
    return *memory;
}

enum { MAP_BYTES = 0, MAP_E2M1_PADDED = 14 }; /* CU_TENSOR_MAP_DATA_TYPE_: UINT8, 16U4_ALIGN16B */

/* Rows in boxes of `bytes` of shared memory, 128 at most, x box_rows, with the swizzle of as many bytes. */
static void map_rows(const struct device *device, struct ladder_map *map, CUdeviceptr data, const bsm_matrix *matrix,
                     int64_t data_bytes, int bytes, uint32_t box_rows, bool padded)
{
    const uint64_t row_bytes = (uint64_t)(data_bytes / matrix->rows);
    const uint64_t sizes[] = { padded ? 2 * row_bytes : row_bytes, (uint64_t)matrix->rows }, strides[] = { row_bytes };
    const uint32_t box[] = { (uint32_t)(bytes < PANEL_BYTES ? bytes : PANEL_BYTES), box_rows }, steps[] = { 1, 1 };
    const int swizzle = box[0] == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                        : box[0] == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                       : CU_TENSOR_MAP_SWIZZLE_32B;
    call(device,
         device->cu->cuTensorMapEncodeTiled(map, padded ? MAP_E2M1_PADDED : MAP_BYTES, 2, (void *)(uintptr_t)data,
                                            sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
         "cuTensorMapEncodeTiled of an operand");
}

/* Blocks of 128x4: 512 bytes are two lines of 256; boxes have a tile's scales of 128 rows, or of 256. */
static void map_blocks(const struct device *device, struct ladder_map *map, CUdeviceptr data, const struct operand *x,
                       int64_t block_k, uint32_t box_rows)
{
    const uint64_t blocks_along_k = (uint64_t)((x->scale_columns + SCALE_BLOCK_COLUMNS - 1) / SCALE_BLOCK_COLUMNS),
                   row_bytes = blocks_along_k * SCALE_BLOCK_BYTES;
    const int64_t groups = block_k / bsm_format_get((int)x->matrix.format)->block / SCALE_BLOCK_COLUMNS;
    if (groups == 0 || box_rows < SCALE_BLOCK_ROWS) return; /* steps 1 and 2 alone have such blocks */
    const uint64_t sizes[] = { 256, 2 * blocks_along_k, (uint64_t)x->packed_bytes / row_bytes },
                   strides[] = { 256, row_bytes };
    const uint32_t box[] = { 256, (uint32_t)(2 * groups), box_rows / SCALE_BLOCK_ROWS }, steps[] = { 1, 1, 1 };
    call(device,
         device->cu->cuTensorMapEncodeTiled(map, MAP_BYTES, 3, (void *)(uintptr_t)data, sizes, strides, box, steps,
                                            CU_TENSOR_MAP_INTERLEAVE_NONE, 0, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
         "cuTensorMapEncodeTiled of scales");
}

static int64_t d_bytes(const struct loaded *x)
{
    return x->problem->m * x->d_pitch * (x->problem->d_is_half ? (int64_t)sizeof(uint16_t) : (int64_t)sizeof(float));
}

/* The scales that a step reads. */
static int layout_of(int step) { return step == 1 ? LINEAR : step == 2 ? TILES : PACKED; }

void device_load(const struct device *device, const struct problem *p, struct loaded *x)
{
    const struct operand *a = &p->a, *b = &p->b;
    *x = (struct loaded){ .problem = p, .d_pitch = (p->n + 7) / 8 * 8 };
    struct ladder_parameters *q = &x->parameters;
    const CUdeviceptr scales[2][3] = {
        { upload(device, x, a->matrix.scales, a->linear_bytes), upload(device, x, a->tiles, a->tile_bytes),
          upload(device, x, a->packed, a->packed_bytes) },
        { upload(device, x, b->matrix.scales, b->linear_bytes), upload(device, x, b->tiles, b->tile_bytes),
          upload(device, x, b->packed, b->packed_bytes) },
    };
    memcpy(x->scales, scales, sizeof scales);
    x->a = upload(device, x, a->matrix.data, a->data_bytes), x->b = upload(device, x, b->matrix.data, b->data_bytes);
    map_rows(device, &q->a, x->a, &a->matrix, a->data_bytes, row_bytes(p), TILE_M, p->format->a_is_padded);
    map_rows(device, &q->b, x->b, &b->matrix, b->data_bytes, row_bytes(p), (uint32_t)p->block_n,
             p->format->b_is_padded);
    map_blocks(device, &q->a_blocks, scales[0][PACKED], a, p->block_k, TILE_M);
    map_blocks(device, &q->b_blocks, scales[1][PACKED], b, p->block_k, (uint32_t)p->block_n);
    q->d = (void *)(uintptr_t)upload(device, x, NULL, d_bytes(x));
    q->d_is_half = p->d_is_half;
    q->d_pitch = x->d_pitch, q->m = (int32_t)p->m, q->n = (int32_t)p->n;
    q->k_tiles = (int32_t)((p->k + p->block_k - 1) / p->block_k);
    q->scale_columns = (int32_t)a->linear_pitch;
    device_clear(device, x);
    device_wait(device, "copies to the device");
}

void device_unload(const struct device *device, struct loaded *x)
{
    while (x->allocations > 0) call(device, device->cu->cuMemFree(x->memory[--x->allocations]), "cuMemFree");
}

void device_launch(const struct device *device, struct loaded *x, int step, CUfunction kernel)
{
    const struct problem *p = x->problem;
    const unsigned rows = (unsigned)((p->m + TILE_M - 1) / TILE_M),
                   columns = (unsigned)((p->n + p->block_n - 1) / p->block_n);
    const unsigned all = rows * columns, processors = (unsigned)device->processors;
    const bool persistent = step == 5;
    const CUlaunchConfig config = { .gridDimX = persistent ? (all < processors ? all : processors) : rows,
                                    .gridDimY = persistent ? 1 : columns,
                                    .gridDimZ = 1,
                                    .blockDimX = 128,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .sharedMemBytes = (unsigned)shared_bytes(step, p) };
    x->parameters.a_scales = (const uint8_t *)(uintptr_t)x->scales[0][layout_of(step)];
    x->parameters.b_scales = (const uint8_t *)(uintptr_t)x->scales[1][layout_of(step)];
    void *parameters[] = { &x->parameters };
    call(device, device->cu->cuLaunchKernelEx(&config, kernel, parameters, NULL), "cuLaunchKernelEx");
}

void device_wait(const struct device *device, const char *what)
{
    call(device, device->cu->cuStreamSynchronize(NULL), what);
}

float *device_result(const struct device *device, const struct loaded *x)
{
    const int64_t count = x->problem->m * x->d_pitch;
    float *d = malloc((size_t)count * sizeof(float));
    if (d == NULL) stop("no memory for D");
    uint16_t *halves = (uint16_t *)d + (x->problem->d_is_half ? count : 0);
    call(device,
         device->cu->cuMemcpyDtoHAsync(halves, (CUdeviceptr)(uintptr_t)x->parameters.d, (size_t)d_bytes(x), NULL),
         "cuMemcpyDtoHAsync");
    device_wait(device, "the product");
    for (int64_t i = 0; x->problem->d_is_half && i < count; i++) d[i] = bsm_element_decode(BSM_FP16, halves[i]);
    return d;
}

void device_clear(const struct device *device, const struct loaded *x)
{
    const CUdeviceptr d = (CUdeviceptr)(uintptr_t)x->parameters.d;
    call(device, device->cu->cuMemsetD8Async(d, 0xff, (size_t)d_bytes(x), NULL),
         "cuMemsetD8Async");
}
