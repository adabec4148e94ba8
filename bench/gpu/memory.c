/* What memory bounds: quantizing and conversions of scale layouts beside a device copy that moves as many bytes. */
#include "operands.h"
#include "products.h"

enum { CALLS = 24 };
enum { QUANTIZED_ROWS = 8192, QUANTIZED_COLUMNS = 8192, SCALE_ROWS = 65536, SCALE_COLUMNS = 1024 };

/* Reads and writes `bytes` together, in several places. */
struct copies {
    struct gpu *gpu;
    void *from[GPU_MOST_PLACES], *to[GPU_MOST_PLACES];
    int64_t bytes;
    int count, next;
};

static struct copies copies_take(struct gpu *gpu, int64_t bytes)
{
    struct copies c = { .gpu = gpu, .bytes = bytes / 2, .count = gpu_places(gpu, bytes) };
    for (int i = 0; i < c.count; i++) {
        c.from[i] = gpu_take(gpu, c.bytes), c.to[i] = gpu_take(gpu, c.bytes);
        gpu_copy(gpu, c.from[i], gpu->pool, c.bytes < gpu->pool_count * 2 ? c.bytes : gpu->pool_count * 2);
    }
    return c;
}

static bool copies_run(void *argument)
{
    struct copies *c = argument;
    gpu_copy(c->gpu, c->to[c->next], c->from[c->next], c->bytes);
    c->next = (c->next + 1) % c->count;
    return true;
}

static void against_copy(struct bench *bench, struct row *row, bool (*run)(void *), void *argument, int64_t bytes)
{
    struct gpu *gpu = &bench->gpu;
    struct copies copies = copies_take(gpu, bytes);
    struct way ours = { .contender = { .name = row->work, .run = run, .argument = argument } };
    struct way theirs = { .contender = { .name = "device copy", .run = copies_run, .argument = &copies } };
    struct loop_state state;
    loop_prepare(gpu, &ours, CALLS), loop_prepare(gpu, &theirs, CALLS);
    loop_run(gpu, (struct way *[]){ &ours, &theirs }, 2, bench->rounds, &state);
    row_times(row, &ours, &theirs, &state, &state);
    snprintf(row->about, sizeof row->about, "%.1f MB, copy %.2f TB/s", 1e-6 * (double)bytes, 1e-12 * (double)bytes / row->theirs);
    loop_release(gpu, &ours), loop_release(gpu, &theirs);
}

/* Quantizing ------------------------------------------------------------------------------------------------------------------- */

struct quantizer {
    struct gpu *gpu;
    bsm_real_matrix source[GPU_MOST_PLACES];
    bsm_matrix to[GPU_MOST_PLACES], transposed[GPU_MOST_PLACES];
    bool computes;
    int count, next;
};

static bool quantizer_run(void *argument)
{
    struct quantizer *q = argument;
    const int i = q->next;
    const bsm_quantize_options options = { .struct_size = sizeof options,
                                           .tensor_scale = q->computes ? BSM_TENSOR_SCALE_COMPUTED : BSM_TENSOR_SCALE_GIVEN };
    q->next = (i + 1) % q->count;
    return bsm_quantize(q->gpu->context, &q->source[i], &options, &q->to[i], NULL) == BSM_OK;
}

static bool quantizer_run_both(void *argument)
{
    struct quantizer *q = argument;
    const int i = q->next;
    q->next = (i + 1) % q->count;
    return bsm_quantize_both(q->gpu->context, &q->source[i], NULL, &q->to[i], &q->transposed[i]) == BSM_OK;
}

static void measure_quantizer(struct bench *bench, bsm_format format, bool computes, const char *work)
{
    struct gpu *gpu = &bench->gpu;
    const int64_t mark = gpu->memory_used, rows = QUANTIZED_ROWS / bench->divide, columns = QUANTIZED_COLUMNS / bench->divide,
                  source = 2 * rows * columns;
    const struct shape shape = { rows, columns, 0 };
    char text[40];
    struct quantizer q = { .gpu = gpu, .computes = computes };
    const int64_t passes = computes ? 2 : 1;        /* over the source: its largest number is known only when all of it was read */
    int64_t bytes = passes * source + coded_bytes(format, rows, columns);
    q.count = gpu_places(gpu, bytes);
    for (int i = 0; i < q.count; i++) {
        const struct coded c = coded_take(gpu, format, rows, columns, 0); /* its tensor scale is the given one */
        q.to[i] = c.matrix;
        q.source[i] = bf16_rows(gpu_take(gpu, source), rows, columns);
        gpu_copy(gpu, q.source[i].data, gpu->pool, source);
    }
    snprintf(text, sizeof text, "%lldx%lld", (long long)shape.m, (long long)shape.n);
    against_copy(bench, table_row(&bench->table, SECTION_QUANTIZE, work, text, "device copy"), quantizer_run, &q, bytes);
    gpu_give_back(gpu, mark);
}

void measure_quantize(struct bench *bench)
{
    measure_quantizer(bench, BSM_MXFP8_E4M3, false, "bf16 -> MXFP8");
    measure_quantizer(bench, BSM_MXFP4, false, "bf16 -> MXFP4");
    measure_quantizer(bench, BSM_NVFP4, false, "bf16 -> NVFP4");
    measure_quantizer(bench, BSM_NVFP4, true, "bf16 -> NVFP4, amax too");
}

static void measure_both(struct bench *bench, bsm_format format, const char *work)
{
    struct gpu *gpu = &bench->gpu;
    const int64_t mark = gpu->memory_used, rows = QUANTIZED_ROWS / bench->divide, columns = QUANTIZED_COLUMNS / bench->divide,
                  source = 2 * rows * columns, bytes = source + coded_bytes(format, rows, columns) + coded_bytes(format, columns, rows);
    char text[40];
    struct quantizer q = { .gpu = gpu, .count = gpu_places(gpu, bytes) };
    for (int i = 0; i < q.count; i++) {
        q.to[i] = coded_take(gpu, format, rows, columns, 0).matrix;
        q.transposed[i] = coded_take(gpu, format, columns, rows, 0).matrix;
        q.source[i] = bf16_rows(gpu_take(gpu, source), rows, columns);
        gpu_copy(gpu, q.source[i].data, gpu->pool, source);
    }
    snprintf(text, sizeof text, "%lldx%lld", (long long)rows, (long long)columns);
    against_copy(bench, table_row(&bench->table, SECTION_QUANTIZE_BOTH, work, text, "device copy"), quantizer_run_both, &q, bytes);
    gpu_give_back(gpu, mark);
}

void measure_quantize_both(struct bench *bench)
{
    measure_both(bench, BSM_MXFP8_E4M3, "bf16 -> MXFP8, both ways");
    measure_both(bench, BSM_MXFP4, "bf16 -> MXFP4, both ways");
    measure_both(bench, BSM_NVFP4, "bf16 -> NVFP4, both ways");
}

/* Layouts ---------------------------------------------------------------------------------------------------------------------- */

struct converter {
    struct gpu *gpu;
    bsm_scales from[GPU_MOST_PLACES], to[GPU_MOST_PLACES];
    int count, next;
};

static bool converter_run(void *argument)
{
    struct converter *c = argument;
    const int i = c->next;
    c->next = (i + 1) % c->count;
    return bsm_scales_convert_on(c->gpu->context, &c->from[i], &c->to[i]) == BSM_OK;
}

static bsm_scales scales_take(struct gpu *gpu, bsm_layout layout, int64_t rows, int64_t columns, int64_t *bytes)
{
    bsm_scales s = { .rows = rows, .columns = columns, .layout.kind = layout };
    gpu_library(bsm_scale_bytes(&s.layout, rows, columns, bytes), "scales");
    s.data = gpu_take(gpu, *bytes);
    gpu_copy(gpu, s.data, gpu->pool, *bytes);
    return s;
}

static void measure_conversion(struct bench *bench, bsm_layout from, bsm_layout to)
{
    struct gpu *gpu = &bench->gpu;
    const int64_t mark = gpu->memory_used, rows = SCALE_ROWS / bench->divide, columns = SCALE_COLUMNS / bench->divide;
    struct converter c = { .gpu = gpu };
    char work[64], text[40];
    int64_t from_bytes, to_bytes;
    c.count = gpu_places(gpu, 2 * rows * columns);
    for (int i = 0; i < c.count; i++) {
        c.from[i] = scales_take(gpu, from, rows, columns, &from_bytes);
        c.to[i] = scales_take(gpu, to, rows, columns, &to_bytes);
    }
    snprintf(work, sizeof work, "%s -> %s", bsm_layout_name((int)from), bsm_layout_name((int)to));
    snprintf(text, sizeof text, "%lldx%lld", (long long)rows, (long long)columns);
    against_copy(bench, table_row(&bench->table, SECTION_CONVERT, work, text, "device copy"), converter_run, &c,
                 from_bytes + to_bytes);
    gpu_give_back(gpu, mark);
}

void measure_conversions(struct bench *bench)
{
    static const bsm_layout others[] = { BSM_LAYOUT_128X4, BSM_LAYOUT_8X4, BSM_LAYOUT_CDNA4_16, BSM_LAYOUT_DEEPGEMM };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) measure_conversion(bench, BSM_LAYOUT_LINEAR, others[i]);
    measure_conversion(bench, BSM_LAYOUT_128X4, BSM_LAYOUT_LINEAR);
}
