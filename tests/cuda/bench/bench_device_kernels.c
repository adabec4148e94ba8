/* Speed of the kernels that memory bounds, beside a device copy that moves as many bytes:
 * bench_device_kernels [ROWS COLUMNS [LAUNCHES [NAME]]]; with NAME, of the kernels whose line contains it alone.
 * Buffers are rotated, so that no second-level cache holds what a launch reads; a time is the median of several groups
 * of launches between two events. */
#include "blockscale.h"
#include "core/core.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/embedded.h"
#include "cuda/tables/instances.h"
#include "cuda/tables/kernels.h"
#include "cuda/driver/matrix.h"
#include "cuda/gemm/plain_dequantization.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_SETS = 16, GROUPS = 7 };
static int launches = 24;                 /* between two events */
static const char *wanted = "";

static const struct bsmi_driver *driver;
static CUresult (*event_create)(CUevent *, unsigned), (*event_synchronize)(CUevent),
    (*event_elapsed)(float *, CUevent, CUevent);
static CUresult (*copy_device)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
static CUfunction functions[BSMI_KERNEL_COUNT];
static int sm_count;
static CUevent before, after;

static void must(CUresult result, const char *what)
{
    const char *name = "?";
    if (result == CUDA_SUCCESS) return;
    (void)driver->cuGetErrorName(result, &name);
    fprintf(stderr, "%s: %s\n", what, name);
    exit(1);
}

/* function: a pointer to a pointer to a function. */
static void find(void *handle, const char *name, void *function)
{
    void *symbol = handle == NULL ? NULL : dlsym(handle, name);
    if (symbol == NULL) {
        fprintf(stderr, "libcuda has no %s\n", name);
        exit(1);
    }
    memcpy(function, &symbol, sizeof symbol);
}

static void open_device(void)
{
    CUdevice device;
    CUcontext context;
    const char *library = getenv("BLOCKSCALE_LIBCUDA");
    if (bsmi_driver_open(&driver) != BSM_OK) {
        fprintf(stderr, "%s\n", bsm_last_error());
        exit(4);
    }
    void *handle = dlopen(library != NULL ? library : "libcuda.so.1", RTLD_NOW);
    find(handle, "cuEventCreate", &event_create);
    find(handle, "cuEventSynchronize", &event_synchronize);
    find(handle, "cuEventElapsedTime", &event_elapsed);
    find(handle, "cuMemcpyDtoDAsync_v2", &copy_device);
    must(driver->cuDeviceGet(&device, 0), "cuDeviceGet");
    must(driver->cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(driver->cuCtxPushCurrent(context), "cuCtxPushCurrent");
    must(driver->cuDeviceGetAttribute(&sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
         "cuDeviceGetAttribute");
    must(event_create(&before, 0), "cuEventCreate");
    must(event_create(&after, 0), "cuEventCreate");
    for (const struct bsmi_cuda_fatbin *f = bsmi_cuda_fatbins; f->file != NULL; f++) {
        CUmodule module;
        if (strncmp(f->file, "sm", 2) == 0 || strncmp(f->file, "simt/", 5) == 0) continue;      /* GEMM kernels */
        must(driver->cuModuleLoadData(&module, f->start), f->file);
        for (int i = 0; i < BSMI_KERNEL_COUNT; i++)
            if (strcmp(bsmi_cuda_kernels[i].file, f->file) == 0)
                must(driver->cuModuleGetFunction(&functions[i], module, bsmi_cuda_kernels[i].function),
                     bsmi_cuda_kernels[i].function);
    }
}

static void *allocate(int64_t bytes)
{
    CUdeviceptr memory;
    must(driver->cuMemAlloc(&memory, (size_t)bytes + 256), "cuMemAlloc");
    return (void *)(uintptr_t)memory;
}

static void release(void *memory) { must(driver->cuMemFree((CUdeviceptr)(uintptr_t)memory), "cuMemFree"); }

static void write_device(void *to, const void *from, int64_t bytes)
{
    must(driver->cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)to, from, (size_t)bytes, NULL), "cuMemcpyHtoDAsync");
    must(driver->cuStreamSynchronize(NULL), "cuStreamSynchronize");
}

/* One thing to time: number `i` of its rotated calls.  ctas: of a kernel. */
struct work {
    int kernel;                           /* -1: a copy */
    const unsigned char *parameters;      /* `sets` structs, `size` bytes each */
    size_t size;
    int sets;
    CUdeviceptr to[MOST_SETS], from[MOST_SETS];
    size_t copy_bytes;
};

static void call(const struct work *w, int i, int ctas)
{
    if (w->kernel < 0) {
        must(copy_device(w->to[i % w->sets], w->from[i % w->sets], w->copy_bytes, NULL), "cuMemcpyDtoDAsync");
        return;
    }
    void *arguments[] = { (void *)(uintptr_t)(w->parameters + (size_t)(i % w->sets) * w->size) };
    const CUlaunchConfig config = { (unsigned)ctas, 1,    1, (unsigned)bsmi_cuda_kernels[w->kernel].threads, 1, 1, 0,
                                    NULL,           NULL, 0 };
    must(driver->cuLaunchKernelEx(&config, functions[w->kernel], arguments, NULL),
         bsmi_cuda_kernels[w->kernel].function);
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Median microseconds of one call. */
static double time_of(const struct work *w, int ctas)
{
    float times[GROUPS];
    for (int i = 0; i < 4; i++) call(w, i, ctas);
    for (int g = 0; g < GROUPS; g++) {
        must(driver->cuEventRecord(before, NULL), "cuEventRecord");
        for (int i = 0; i < launches; i++) call(w, i, ctas);
        must(driver->cuEventRecord(after, NULL), "cuEventRecord");
        must(event_synchronize(after), "cuEventSynchronize");
        must(event_elapsed(&times[g], before, after), "cuEventElapsedTime");
    }
    qsort(times, GROUPS, sizeof times[0], ascending);
    return (double)times[GROUPS / 2] * 1000 / launches;
}

/* Copies half the bytes, so that as many are read and written together. */
static double copy_time(int64_t bytes)
{
    struct work w = { .kernel = -1,
                      .sets = (int)BSMI_MAX(2, BSMI_MIN(MOST_SETS, ((int64_t)400 << 20) / BSMI_MAX(1, bytes) + 1)),
                      .copy_bytes = (size_t)bytes / 2 };
    for (int i = 0; i < w.sets; i++)
        w.to[i] = (CUdeviceptr)(uintptr_t)allocate(bytes / 2), w.from[i] = (CUdeviceptr)(uintptr_t)allocate(bytes / 2);
    const double time = time_of(&w, 0);
    for (int i = 0; i < w.sets; i++) release((void *)(uintptr_t)w.to[i]), release((void *)(uintptr_t)w.from[i]);
    return time;
}

static void report(const char *name, const struct work *w, int64_t bytes, int64_t pieces)
{
    static const int per_multiprocessor[] = { 3, 4, 5, 6, 8, 16, 64 };
    if (strstr(name, wanted) == NULL) return;
    const double copy = copy_time(bytes);
    printf("%-34s %8.1f MB  copy %7.1f us %5.2f TB/s |", name, 1e-6 * (double)bytes, copy, 1e-6 * (double)bytes / copy);
    const bool asks = w->kernel == BSMI_KERNEL_DECODE_PLAIN;         /* for as many CTAs as there are pieces */
    if (asks)
        printf(" %lld CTAs %7.1f us %5.1f %%", (long long)pieces, time_of(w, (int)pieces),
               100 * copy / time_of(w, (int)pieces));
    for (size_t i = 0; i < sizeof per_multiprocessor / sizeof per_multiprocessor[0] && !asks; i++) {
        const double time = time_of(w, (int)BSMI_MIN(pieces, (int64_t)sm_count * per_multiprocessor[i]));
        printf(" %d/SM %7.1f us %5.1f %%", per_multiprocessor[i], time, 100 * copy / time);
    }
    printf("\n");
    fflush(stdout);
}

/* Matrices
 * ----------------------------------------------------------------------------------------------------------------- */

struct coded { bsm_matrix m; struct bsmi_matrix resolved; struct bsmi_device_matrix device; int64_t bytes; };

static struct coded coded_make(bsm_format format, bsm_layout layout, int64_t rows, int64_t columns, float tensor_scale)
{
    struct coded c = { .m = { .struct_size = sizeof c.m, .format = format, .rows = rows, .columns = columns } };
    int64_t data = 0, scales = 0;
    if (bsm_format_get((int)format)->block != 0) c.m.scale_layout.kind = layout;
    if (bsm_matrix_data_bytes(&c.m, &data) != BSM_OK || bsm_matrix_scale_bytes(&c.m, &scales) != BSM_OK) exit(1);
    c.m.data = allocate(data);
    if (scales > 0) c.m.scales = allocate(scales);
    if (tensor_scale != 0) {
        c.m.tensor_scale = allocate(4);
        write_device(c.m.tensor_scale, &tensor_scale, 4);
    }
    if (bsmi_matrix_resolve("matrix", &c.m, &c.resolved) != BSM_OK) exit(1);
    c.device = bsmi_cuda_matrix(&c.resolved);
    c.bytes = data + scales;
    return c;
}

static void coded_free(struct coded *c)
{
    release(c->m.data);
    if (c->m.scales != NULL) release(c->m.scales);
    if (c->m.tensor_scale != NULL) release(c->m.tensor_scale);
}

/* rows x columns of random normal numbers. */
static void *normal_numbers(bsm_real type, int64_t rows, int64_t columns)
{
    static uint16_t *codes;
    static int64_t made;
    const int64_t count = rows * columns;
    if (made < count) {
        codes = realloc(codes, (size_t)count * 4);
        uint64_t state = 1;
        for (int64_t i = 0; i < count; i++) {
            double sum = -6;
            for (int j = 0; j < 3; j++, state = state * 6364136223846793005u + 1442695040888963407u)
                sum += (double)(state >> 48) / 16384;
            codes[i] = (uint16_t)(bsmi_float_bits((float)sum) >> 16);
        }
        made = count;
    }
    void *device = allocate(count * (int64_t)bsm_real_bytes((int)type));
    if (type == BSM_REAL_BF16) {
        write_device(device, codes, count * 2);
    } else {
        float *wide = malloc((size_t)count * 4);
        for (int64_t i = 0; i < count; i++) wide[i] = bsmi_bf16_to_float(codes[i]) * (1 + (float)(i % 251) / 65536);
        write_device(device, wide, count * 4);
        free(wide);
    }
    return device;
}

static struct bsmi_device_reals reals(bsm_real type, void *data, int64_t rows, int64_t columns)
{
    return (struct bsmi_device_reals){ .data = data,
                                       .type = (int32_t)type,
                                       .rows = rows,
                                       .columns = columns,
                                       .batch = 1,
                                       .row_stride = columns,
                                       .column_stride = 1,
                                       .batch_stride = rows * columns };
}

static int sets_for(int64_t bytes)
{
    return (int)BSMI_MAX(2, BSMI_MIN(MOST_SETS, ((int64_t)400 << 20) / BSMI_MAX(1, bytes) + 1));
}

static void quantize_decode_dequantize(bsm_format format, bsm_real type, bsm_layout layout, float tensor_scale,
                                       int64_t rows, int64_t columns)
{
    struct bsmi_quantize_parameters q[MOST_SETS];
    struct bsmi_conditional_decode_parameters d[MOST_SETS];
    struct bsmi_decode_plain_parameters plain[MOST_SETS];
    int64_t ctas[2] = { 0, 0 };
    struct bsmi_dequantize_parameters back[MOST_SETS];
    struct coded coded[MOST_SETS];
    const bsm_format_info *info = bsm_format_get((int)format);
    const int64_t padded = bsmi_round_up(columns, 64),
                  source_bytes = rows * columns * (int64_t)bsm_real_bytes((int)type);
    const int sets = sets_for(source_bytes);
    for (int i = 0; i < sets; i++) {
        coded[i] = coded_make(format, layout, rows, columns, tensor_scale);
        q[i] = (struct bsmi_quantize_parameters){ .source =
                                                      reals(type, normal_numbers(type, rows, columns), rows, columns),
                                                  .destination = coded[i].device,
                                                  .recipe = bsmi_cuda_recipe(BSM_RECIPE_DEFAULT, info->scale) };
        d[i].condition = (struct bsmi_condition){ NULL, 0, 0 };
        d[i].decode = (struct bsmi_decode_parameters){ .operands[0] = { .source = coded[i].device,
                                                                        .decoded = allocate(rows * padded * 2),
                                                                        .pitch = padded,
                                                                        .batch_pitch = rows * padded,
                                                                        .padded_columns = padded,
                                                                        .exponents = allocate(rows * 4),
                                                                        .fallback = allocate(rows * 4) },
                                                       .first_ctas = INT32_MAX };
        if (!bsmi_cuda_decode_plainly(&d[i].decode, true, false, sm_count, &plain[i], ctas)) ctas[0] = 0;
        back[i] =
            (struct bsmi_dequantize_parameters){ coded[i].device,
                                                 reals(BSM_REAL_BF16, d[i].decode.operands[0].decoded, rows, columns) };
    }
    char name[96];
    const char *about = tensor_scale == 0 ? "" : " t";
    const struct work quantize = {
        .kernel = BSMI_KERNEL_QUANTIZE, .parameters = (const unsigned char *)q, .size = sizeof q[0], .sets = sets
    };
    const struct work decode = {
        .kernel = BSMI_KERNEL_DECODE, .parameters = (const unsigned char *)d, .size = sizeof d[0], .sets = sets
    };
    const struct work decode_plain = { .kernel = BSMI_KERNEL_DECODE_PLAIN,
                                       .parameters = (const unsigned char *)plain,
                                       .size = sizeof plain[0],
                                       .sets = sets };
    const struct work dequantize = { .kernel = BSMI_KERNEL_DEQUANTIZE,
                                     .parameters = (const unsigned char *)back,
                                     .size = sizeof back[0],
                                     .sets = sets };
    for (int i = 0; i < sets; i++) call(&quantize, i, sm_count * 8);      /* the codes of what follows */
    snprintf(name, sizeof name, "quantize %s -> %s%s %s", bsm_real_name((int)type), info->name, about,
             bsm_layout_name((int)layout));
    report(name, &quantize, source_bytes + coded[0].bytes, rows);
    if (type == BSM_REAL_BF16) {
        snprintf(name, sizeof name, "decode %s%s %s", info->name, about, bsm_layout_name((int)layout));
        report(name, &decode, coded[0].bytes + rows * padded * 2, rows);
        snprintf(name, sizeof name, "decode_plain %s%s %s", info->name, about, bsm_layout_name((int)layout));
        if (ctas[0] > 0) report(name, &decode_plain, coded[0].bytes + rows * padded * 2, ctas[0]);
        snprintf(name, sizeof name, "dequantize %s%s -> bf16", info->name, about);
        report(name, &dequantize, coded[0].bytes + rows * columns * 2, rows);
    }
    for (int i = 0; i < sets; i++) {
        release(q[i].source.data), release(d[i].decode.operands[0].decoded), release(d[i].decode.operands[0].exponents),
            release(d[i].decode.operands[0].fallback);
        coded_free(&coded[i]);
    }
}

static void find_amax(int64_t rows, int64_t columns)
{
    struct bsmi_amax_parameters p[MOST_SETS];
    const int64_t bytes = rows * columns * 2;
    const int sets = sets_for(bytes);
    for (int i = 0; i < sets; i++)
        p[i] = (struct bsmi_amax_parameters){
            reals(BSM_REAL_BF16, normal_numbers(BSM_REAL_BF16, rows, columns), rows, columns), allocate(4)
        };
    const struct work w = {
        .kernel = BSMI_KERNEL_AMAX, .parameters = (const unsigned char *)p, .size = sizeof p[0], .sets = sets
    };
    report("amax of bf16", &w, bytes, rows);
    for (int i = 0; i < sets; i++) release(p[i].source.data), release(p[i].amax);
}

static void convert(bsm_layout from, bsm_layout to, int64_t rows, int64_t columns)
{
    struct bsmi_convert_scales_parameters p[MOST_SETS];
    const bsm_scale_layout from_layout = { .kind = from }, to_layout = { .kind = to };
    struct bsmi_scale_map from_map, to_map;
    if (bsmi_scale_map_make("from", &from_layout, rows, columns, &from_map) != BSM_OK
        || bsmi_scale_map_make("to", &to_layout, rows, columns, &to_map) != BSM_OK) exit(1);
    const int sets = sets_for(from_map.bytes);
    for (int i = 0; i < sets; i++)
        p[i] = (struct bsmi_convert_scales_parameters){ .from = allocate(from_map.bytes), .to = allocate(to_map.bytes),
                                                        .from_layout = bsmi_cuda_layout(&from_map),
                                                        .to_layout = bsmi_cuda_layout(&to_map) };
    const struct work w = {
        .kernel = BSMI_KERNEL_CONVERT, .parameters = (const unsigned char *)p, .size = sizeof p[0], .sets = sets
    };
    char name[96];
    snprintf(name, sizeof name, "convert %s -> %s %lldx%lld", bsm_layout_name((int)from), bsm_layout_name((int)to),
             (long long)rows, (long long)columns);
    report(name, &w, from_map.bytes + to_map.bytes, to_map.padded_rows * to_map.padded_columns / 8192 + 1);
    for (int i = 0; i < sets; i++) release((void *)(uintptr_t)p[i].from), release(p[i].to);
}

static void finish(bsm_format format, bsm_activation activation, int64_t rows, int64_t columns)
{
    struct bsmi_finish_parameters p[MOST_SETS];
    struct coded coded[MOST_SETS];
    const int sets = sets_for(rows * columns * 4);
    for (int i = 0; i < sets; i++) {
        coded[i] = coded_make(format, BSM_LAYOUT_128X4, rows, columns, 0);
        p[i] = (struct bsmi_finish_parameters){
            .epilogue = { .m = rows,
                          .n = columns,
                          .matrices = 1,
                          .sums = normal_numbers(BSM_REAL_FP32, rows, columns),
                          .sums_pitch = columns,
                          .activation = (int32_t)activation,
                          .d = coded[i].device,
                          .d_recipe = bsmi_cuda_recipe(BSM_RECIPE_DEFAULT, bsm_format_get((int)format)->scale) }
        };
    }
    const struct work w = {
        .kernel = BSMI_KERNEL_FINISH, .parameters = (const unsigned char *)p, .size = sizeof p[0], .sets = sets
    };
    char name[96];
    snprintf(name, sizeof name, "finish fp32 -> %s, %s", bsm_format_get((int)format)->name,
             bsm_activation_name((int)activation));
    report(name, &w, rows * columns * 4 + coded[0].bytes, rows);
    for (int i = 0; i < sets; i++) {
        release(p[i].epilogue.sums);
        coded_free(&coded[i]);
    }
}

int main(int argc, char **argv)
{
    const int64_t rows = argc > 2 ? atoll(argv[1]) : 8192, columns = argc > 2 ? atoll(argv[2]) : 8192;
    if (argc > 3) launches = atoi(argv[3]);
    if (argc > 4) wanted = argv[4];
    open_device();
    printf("%lld x %lld; per cent of the speed of a device copy, by CTAs per SM\n", (long long)rows,
           (long long)columns);
    quantize_decode_dequantize(BSM_MXFP8_E4M3, BSM_REAL_BF16, BSM_LAYOUT_LINEAR, 0, rows, columns);
    quantize_decode_dequantize(BSM_MXFP8_E4M3, BSM_REAL_BF16, BSM_LAYOUT_128X4, 0, rows, columns);
    quantize_decode_dequantize(BSM_MXFP4, BSM_REAL_BF16, BSM_LAYOUT_LINEAR, 0, rows, columns);
    quantize_decode_dequantize(BSM_MXFP4, BSM_REAL_BF16, BSM_LAYOUT_128X4, 0, rows, columns);
    quantize_decode_dequantize(BSM_NVFP4, BSM_REAL_BF16, BSM_LAYOUT_128X4, 0, rows, columns);
    quantize_decode_dequantize(BSM_NVFP4, BSM_REAL_BF16, BSM_LAYOUT_128X4, 5.53125f / 2688, rows,
                               columns); /* of an amax */
    find_amax(rows, columns);
    quantize_decode_dequantize(BSM_MXFP6_E2M3, BSM_REAL_BF16, BSM_LAYOUT_LINEAR, 0, rows, columns);
    quantize_decode_dequantize(BSM_MXINT8, BSM_REAL_BF16, BSM_LAYOUT_LINEAR, 0, rows, columns);
    quantize_decode_dequantize(BSM_MXFP4, BSM_REAL_FP32, BSM_LAYOUT_LINEAR, 0, rows, columns);
    quantize_decode_dequantize(BSM_NVFP4, BSM_REAL_FP32, BSM_LAYOUT_LINEAR, 0.0013579f, rows, columns);
    convert(BSM_LAYOUT_LINEAR, BSM_LAYOUT_128X4, 65536, 1024);
    convert(BSM_LAYOUT_128X4, BSM_LAYOUT_LINEAR, 65536, 1024);
    convert(BSM_LAYOUT_LINEAR, BSM_LAYOUT_8X4, 65536, 1024);
    convert(BSM_LAYOUT_LINEAR, BSM_LAYOUT_CDNA4_16, 65536, 1024);
    convert(BSM_LAYOUT_LINEAR, BSM_LAYOUT_CDNA4_32, 65536, 1024);
    convert(BSM_LAYOUT_LINEAR, BSM_LAYOUT_DEEPGEMM, 65536, 1024);
    convert(BSM_LAYOUT_LINEAR, BSM_LAYOUT_128X4, 65536, 2048);
    convert(BSM_LAYOUT_128X4, BSM_LAYOUT_LINEAR, 65536, 2048);
    convert(BSM_LAYOUT_LINEAR, BSM_LAYOUT_CDNA4_16, 65536, 2048);
    convert(BSM_LAYOUT_LINEAR, BSM_LAYOUT_128X4, 8192, 256);
    finish(BSM_FORMAT_BF16, BSM_ACT_NONE, rows, columns);
    finish(BSM_FORMAT_BF16, BSM_ACT_SILU, rows, columns);
    finish(BSM_MXFP8_E4M3, BSM_ACT_NONE, rows, columns);
    return 0;
}
