/* The GEMM kernels that multiply bf16 rows (src/cuda/sm90; of sm100 those of kind f16) against sums of whole numbers,
 * which fp32 holds exactly: every bit of D and every byte around it.
 *
 * GEMM_INSTANCE=FUNCTION: this instance alone.  A simulator takes a while: there each problem goes to some of the
 * instances, in turn; GEMM_INSTANCE=all: to all of them, as on a GPU. */
#include "gemm_launch.h"
#include "cuda/driver/embedded.h"
#include "blockscale/matmul.h"
#include "matrix/matrix.h"
#include "matrix/reals.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

static struct gemm_machine machine;
static bool opened;
static int problems;                      /* so many were run */

enum { MOST_GROUPS = 8 };

/* A product; zero members ask for the plain thing. */
struct problem {
    int64_t m, n, k, batch;               /* batch 0: 1 */
    bool a_broadcast, b_broadcast;
    int terms;                            /* of A: 2: as fp16 operands are */
    int groups;                           /* > 0: of these sizes, their sum is m */
    int64_t group_rows[MOST_GROUPS];
    int element;                          /* of D: BSM_BF16 (default), BSM_FP16, BSM_FP32 */
    bool stores_sums;
    int64_t d_odd;                        /* elements by which pitch and address miss 16 bytes */
    float alpha, beta;                    /* alpha 0: none */
    int alpha_per, bias_per;              /* bias_per 0: none */
    int c_element;                        /* 0: none */
    float scale_a, scale_b;               /* tensor scales; 0: none; b divides */
    struct { int32_t least, most; } exponents;    /* of rows and of columns; both 0: none */
    bool leaves_out, zero_columns, nan;
};

/* What the device was given and what it must give back. */
struct operands {
    int64_t batch, k_padded, a_columns, b_columns, a_pitch, b_pitch, d_pitch, d_offset, d_batch, d_count;
    uint16_t *a, *b;
    int32_t *a_exponents, *b_exponents;
    float *alpha, *bias;
    unsigned char *c, *d, *want;
};

static void *zeroed(size_t bytes)
{
    void *memory = calloc(bytes + 64, 1);
    if (memory == NULL) exit(3);
    return memory;
}

static float bf16_value(uint16_t bits) { return bsmi_float_from_bits((uint32_t)bits << 16); }
static uint16_t small_integer(struct test *t)  /* -3 .. 3 as bf16 */
{
    static const uint16_t codes[7] = { 0xc040, 0xc000, 0xbf80, 0, 0x3f80, 0x4000, 0x4040 };
    return codes[rnd_below(t, 7)];
}

static int bytes_of(int element) { return element == BSM_FP32 ? 4 : 2; }
static bsm_real real_of(int element)
{
    return element == BSM_FP32 ? BSM_REAL_FP32 : element == BSM_BF16 ? BSM_REAL_BF16 : BSM_REAL_FP16;
}

/* Rows of whole numbers, then zeros up to the columns that the tensor map has; what lies behind them is NaN. */
static uint16_t *make_rows(struct test *t, int64_t rows, int64_t columns, int64_t given, int64_t pitch)
{
    uint16_t *data = zeroed((size_t)(rows * pitch) * 2);
    for (int64_t i = 0; i < rows * pitch; i++)
        data[i] = i % pitch < columns ? small_integer(t) : i % pitch < given ? 0 : 0x7fff;
    return data;
}

static int32_t *make_exponents(struct test *t, const struct problem *q, int64_t count)
{
    int32_t *exponents = zeroed((size_t)count * 4);
    for (int64_t i = 0; i < count; i++)
        exponents[i] = q->leaves_out && rnd_below(t, 9) == 0
                           ? BSMI_ROW_FALLBACK
                           : (int32_t)rnd_between(t, q->exponents.least, q->exponents.most);
    return exponents;
}

static void make_operands(struct test *t, const struct problem *q, struct operands *o)
{
    const int64_t terms = q->terms == 2 ? 2 : 1;
    memset(o, 0, sizeof *o);
    o->batch = q->groups > 0 ? q->groups : q->batch > 0 ? q->batch : 1;
    o->k_padded = (q->k + 63) / 64 * 64;
    o->b_columns = (q->k + 7) / 8 * 8;
    o->a_columns = terms == 2 ? 2 * o->k_padded : o->b_columns;
    o->a_pitch = o->a_columns + 8;
    o->b_pitch = o->b_columns + 8;
    const int64_t a_rows = q->m * (q->groups > 0 || q->a_broadcast ? 1 : o->batch),
                  b_rows = q->n * (q->b_broadcast ? 1 : o->batch);
    o->a = make_rows(t, a_rows, q->k, o->a_columns, o->a_pitch);
    for (int64_t i = 0; terms == 2 && i < a_rows; i++)
        for (int64_t k = 0; k < q->k; k++) o->a[i * o->a_pitch + o->k_padded + k] = small_integer(t);
    o->b = make_rows(t, b_rows, q->k, o->b_columns, o->b_pitch);
    if (q->nan)
        o->a[(q->m / 2) * o->a_pitch] = 0xffff, o->b[(q->n / 3) * o->b_pitch] = 0x7f80,
                          o->b[q->n / 4 * o->b_pitch] = 0xff80;
    if (q->exponents.least != 0) {
        o->a_exponents = make_exponents(t, q, a_rows);
        o->b_exponents = q->zero_columns ? zeroed((size_t)b_rows * 4) : make_exponents(t, q, b_rows);
    }
    const int64_t most = q->m + q->n + o->batch;
    o->alpha = zeroed((size_t)most * 4), o->bias = zeroed((size_t)(most * o->batch) * 4);
    for (int64_t i = 0; i < most; i++) o->alpha[i] = q->alpha * (float)(1 + i % 5);
    for (int64_t i = 0; i < most * o->batch; i++) o->bias[i] = (float)(i % 11) - 5;
    o->d_batch = q->groups > 0 ? 1 : o->batch;
    o->d_pitch = q->d_odd == 0 ? (q->n + 7) / 8 * 8 + 8 : q->n + (q->n % 2 == 0) + q->d_odd - 1;
    o->d_offset = q->d_odd == 0 ? 16 : q->d_odd;
    o->d_count = o->d_offset + o->d_batch * (q->m + 1) * o->d_pitch + 64;
    o->d = zeroed((size_t)o->d_count * 4), o->want = zeroed((size_t)o->d_count * 4);
    memset(o->d, 0xee, (size_t)o->d_count * 4), memset(o->want, 0xee, (size_t)o->d_count * 4);
    if (q->c_element != 0) {
        o->c = zeroed((size_t)(o->d_batch * q->m * q->n) * 4);
        for (int64_t i = 0; i < o->d_batch * q->m * q->n; i++)
            bsmi_real_store(real_of(q->c_element), o->c, i, (double)rnd_between(t, -9, 9));
    }
}

static void release(struct operands *o)
{
    free(o->a), free(o->b), free(o->a_exponents), free(o->b_exponents), free(o->alpha), free(o->bias), free(o->c),
        free(o->d), free(o->want);
}

/* The definition --------------------------------------------------------------------------------------------------- */

static float sum_of(const struct problem *q, const struct operands *o, const uint16_t *a, const uint16_t *b)
{
    float sum = 0;
    for (int64_t k = 0; k < q->k; k++) {
        sum += bf16_value(a[k]) * bf16_value(b[k]);
        if (q->terms == 2) sum += bf16_value(a[o->k_padded + k]) * bf16_value(b[k]);
    }
    return sum;
}

static float finished(const struct problem *q, const struct operands *o, float s, int64_t matrix, int64_t row,
                      int64_t column)
{
    const int64_t index = q->alpha_per == BSM_PER_ROW      ? row
                          : q->alpha_per == BSM_PER_COLUMN ? column
                          : q->alpha_per == BSM_PER_BATCH  ? matrix
                                                           : 0;
    const double alpha = q->alpha == 0 ? 1 : (double)o->alpha[index];
    const float f =
        (float)(alpha * (q->scale_a == 0 ? 1 : (double)q->scale_a) / (q->scale_b == 0 ? 1 : (double)q->scale_b));
    const bool reads_c = q->c_element != 0 && q->beta != 0;
    float bias = 0, c = 0;
    if (q->bias_per != 0) {
        const int64_t first = q->bias_per == BSM_PER_ROW && q->groups > 0 ? 0 : matrix * (q->m + q->n);
        bias = o->bias[first + (q->bias_per == BSM_PER_ROW ? row : column)];
    }
    if (reads_c)
        c = (float)bsmi_real_load(real_of(q->c_element), o->c,
                                  ((q->groups > 0 ? 0 : matrix) * q->m + row) * q->n + column);
    if (reads_c) return fmaf(f, s, q->bias_per != 0 ? fmaf(q->beta, c, bias) : q->beta * c);
    return q->bias_per != 0 ? fmaf(f, s, bias) : f * s;
}

static void define_element(const struct problem *q, struct operands *o, int64_t matrix, int64_t row, int64_t column)
{
    const int64_t a_row = (q->groups > 0 || q->a_broadcast ? 0 : matrix * q->m) + row,
                  b_row = (q->b_broadcast ? 0 : matrix * q->n) + column;
    const int element = q->stores_sums ? BSM_FP32 : q->element == 0 ? BSM_BF16 : q->element;
    const int64_t at = o->d_offset + ((q->groups > 0 ? 0 : matrix) * (q->m + 1) + row) * o->d_pitch + column;
    float value = sum_of(q, o, o->a + a_row * o->a_pitch, o->b + b_row * o->b_pitch);
    if (q->exponents.least != 0) {
        const int32_t a = o->a_exponents[a_row], b = o->b_exponents[b_row];
        if (a == BSMI_ROW_FALLBACK || b == BSMI_ROW_FALLBACK) return;
        if (!q->stores_sums) value = (float)ldexp((double)value, bsmi_sum_exponent(a, b));
    }
    if (!q->stores_sums) value = finished(q, o, value, matrix, row, column);
    if (isnan(value)) {
        const uint32_t nan = q->stores_sums        ? 0x7fffffff
                             : element == BSM_FP32 ? 0x7fc00000
                             : element == BSM_BF16 ? 0x7fc0
                                                   : 0x7e00;
        memcpy(o->want + at * bytes_of(element), &nan, (size_t)bytes_of(element));
        return;
    }
    bsmi_real_store(real_of(element), o->want, at, (double)value);
}

static void define(const struct problem *q, struct operands *o)
{
    int64_t group = 0, end = q->groups > 0 ? q->group_rows[0] : 0;
    for (int64_t matrix = 0; matrix < o->d_batch; matrix++)
        for (int64_t row = 0; row < q->m; row++) {
            while (q->groups > 0 && row >= end) end += q->group_rows[++group];
            for (int64_t column = 0; column < q->n; column++)
                define_element(q, o, q->groups > 0 ? group : matrix, row, column);
        }
}

/* The kernel ------------------------------------------------------------------------------------------------------- */

static CUdeviceptr upload_tables(const struct problem *q, const struct bsmi_gemm_instance *i,
                                 const struct bsmi_gemm_parameters *p)
{
    int64_t tables[2 * (MOST_GROUPS + 1)] = { 0 }, *starts = tables, *tiles = tables + q->groups + 1;
    const int64_t rows = i->tile_rows * i->cluster_rows;
    for (int g = 0; g < q->groups; g++) {
        starts[g + 1] = starts[g] + q->group_rows[g];
        tiles[g + 1] = tiles[g] + (q->group_rows[g] + rows - 1) / rows * p->column_tiles;
    }
    return gemm_upload(&machine, tables, sizeof tables);
}

static void run(const struct problem *q, const struct bsmi_gemm_instance *i, struct operands *o)
{
    const int element = q->stores_sums ? BSM_FP32 : q->element == 0 ? BSM_BF16 : q->element, bytes = bytes_of(element);
    const int64_t a_rows = q->m * (q->groups > 0 || q->a_broadcast ? 1 : o->batch),
                  b_rows = q->n * (q->b_broadcast ? 1 : o->batch);
    const int64_t most = q->m + q->n + o->batch;
    const float numbers[3] = { q->scale_a, q->scale_b, q->beta };
    CUdeviceptr memory[9] = { 0 };
    memory[0] = gemm_upload(&machine, o->a, (size_t)(a_rows * o->a_pitch) * 2);
    memory[1] = gemm_upload(&machine, o->b, (size_t)(b_rows * o->b_pitch) * 2);
    memory[2] = gemm_upload(&machine, o->d, (size_t)(o->d_count * bytes));
    memory[3] = gemm_upload(&machine, numbers, sizeof numbers);
    memory[4] = gemm_upload(&machine, o->alpha, (size_t)most * 4);
    memory[5] = gemm_upload(&machine, o->bias, (size_t)(most * o->batch) * 4);
    if (o->c != NULL)
        memory[6] = gemm_upload(&machine, o->c, (size_t)(o->d_batch * q->m * q->n * bytes_of(q->c_element)));
    struct bsmi_gemm_parameters p = { .segments = { { 0, 0, (int32_t)(o->k_padded / 64) },
                                                    { (int32_t)o->k_padded, 0, (int32_t)(o->k_padded / 64) } },
                                      .segment_count = q->terms == 2 ? 2 : 1,
                                      .a_batch_step = !q->a_broadcast,
                                      .b_batch_step = !q->b_broadcast,
                                      .direct = !q->stores_sums,
                                      .band_rows = 2,
                                      .last_row = q->groups > 0 ? 0 : bsmi_gemm_last_row(i, q->m) };
    struct bsmi_epilogue_parameters *e = &p.epilogue;
    e->m = q->m, e->n = q->n, e->matrices = o->batch, e->grouped = q->groups > 0;
    const CUdeviceptr d = memory[2] + (uint64_t)(o->d_offset * bytes);
    e->d = (struct bsmi_device_matrix){ .data = (unsigned char *)d, .element = element, .row_bytes = o->d_pitch * bytes,
                                        .batch_bytes = o->d_pitch * (q->m + 1) * bytes };
    if (q->stores_sums)
        e->sums = (float *)d, e->sums_pitch = o->d_pitch, e->sums_batch_pitch = o->d_pitch * (q->m + 1),
        e->d.data = NULL;
    if (q->exponents.least != 0) {
        memory[7] = gemm_upload(&machine, o->a_exponents, (size_t)a_rows * 4);
        memory[8] = gemm_upload(&machine, o->b_exponents, (size_t)b_rows * 4);
        e->a_exponents = (int32_t *)memory[7], e->b_exponents = (int32_t *)memory[8];
        e->a_exponent_step = q->a_broadcast || q->groups > 0 ? 0 : q->m, e->b_exponent_step = q->b_broadcast ? 0 : q->n;
    }
    e->tensor_scale_a = q->scale_a == 0 ? NULL : (float *)memory[3];
    e->tensor_scale_b = q->scale_b == 0 ? NULL : (float *)(memory[3] + 4), e->b_divides = true;
    e->alpha = q->alpha == 0 ? NULL : (float *)memory[4], e->alpha_per = q->alpha_per;
    e->beta = (float *)(memory[3] + 8), e->c = (unsigned char *)memory[6], e->c_element = q->c_element;
    e->c_row_bytes = q->n * bytes_of(q->c_element), e->c_batch_bytes = q->m * e->c_row_bytes;
    e->bias = q->bias_per == 0 ? NULL : (void *)memory[5], e->bias_per = q->bias_per, e->bias_type = BSM_REAL_FP32,
    e->bias_batch_pitch = q->m + q->n;
    const struct gemm_rows a = {
        memory[0], BSM_BF16, o->a_columns, q->m, a_rows / q->m, o->a_pitch, q->m * o->a_pitch
    };
    const struct gemm_rows b = {
        memory[1], BSM_BF16, o->b_columns, q->n, b_rows / q->n, o->b_pitch, q->n * o->b_pitch
    };
    const struct gemm_rows output = { d, element, q->n, q->m, o->d_batch, o->d_pitch, (q->m + 1) * o->d_pitch };
    gemm_prepare(&machine, i, &p, &a, &b, &output);
    CUdeviceptr tables = 0;
    if (q->groups > 0) {
        tables = upload_tables(q, i, &p);
        e->group_starts = (int64_t *)tables, p.group_tiles = (int64_t *)tables + q->groups + 1;
    }
    gemm_launch(&machine, i, &p, NULL, false);
    gemm_download(&machine, o->d, memory[2], (size_t)(o->d_count * bytes));
    for (int j = 0; j < 9; j++) if (memory[j] != 0) gemm_free(&machine, memory[j]);
    if (tables != 0) gemm_free(&machine, tables);
}

static void check(struct test *t, const struct problem *q, const struct bsmi_gemm_instance *i)
{
    struct operands o;
    make_operands(t, q, &o);
    define(q, &o);
    run(q, i, &o);
    const int element = q->stores_sums ? BSM_FP32 : q->element == 0 ? BSM_BF16 : q->element, bytes = bytes_of(element);
    int64_t wrong = 0, first = -1;
    for (int64_t j = 0; j < o.d_count; j++)
        if (memcmp(o.d + j * bytes, o.want + j * bytes, (size_t)bytes) != 0) {
            if (wrong++ == 0) first = j;
        }
    if (wrong > 0) {
        const int64_t at = first - o.d_offset;
        FAIL(t, "%s, M %d N %d K %d: %d elements differ, the first at row %d column %d: %g, not %g", i->function,
             (int)q->m, (int)q->n, (int)q->k, (int)wrong, (int)(at / o.d_pitch), (int)(at % o.d_pitch),
             bsmi_real_load(real_of(element), o.d, first), bsmi_real_load(real_of(element), o.want, first));
    }
    release(&o);
}

/* Cases ------------------------------------------------------------------------------------------------------------ */

static bool is_simulated(void)
{
    const char *library = getenv("BLOCKSCALE_LIBCUDA");
    return library != NULL && strstr(library, "cudasim") != NULL;
}

/* Multiplies bf16 rows, runs here, and is asked for. */
static bool is_chosen(const struct bsmi_gemm_instance *g)
{
    const char *only = getenv("GEMM_INSTANCE");
    if (g->operands != BSMI_OPERANDS_BF16 || machine.functions[g - bsmi_gemm_instances] == NULL) return false;
    if (g->codes != BSMI_CODES_NONE) return false;     /* test_gpu_fused_dequantization's */
    return only == NULL || strcmp(only, "all") == 0 || strcmp(only, g->function) == 0;
}

/* Skips the test where there are no kernels for this device. */
static bool is_open(struct test *t)
{
    if (!opened) test_skip(t, bsmi_cuda_not_built[0] != '\0' ? bsmi_cuda_not_built : bsm_last_error());
    return opened;
}

static void check_all(struct test *t, const struct problem *q)
{
    const char *only = getenv("GEMM_INSTANCE");
    if (!is_open(t)) return;
    const int step = only == NULL && is_simulated() ? 4 : 1;
    int number = step == 1 ? 0 : problems++;
    for (int i = 0; i < bsmi_gemm_instance_count; i++)
        if (is_chosen(&bsmi_gemm_instances[i]) && number++ % step == 0) check(t, q, &bsmi_gemm_instances[i]);
}

static int64_t stages_of(const struct bsmi_gemm_instance *g)
{
    return g->shared_bytes / ((g->tile_rows + g->tile_columns) * BSMI_K_STEP * 2);
}

/* Each instance around the edges of its own tile, and around the length of its ring. */
static void edges(struct test *t)
{
    const char *only = getenv("GEMM_INSTANCE");
    if (!is_open(t)) return;
    for (int i = 0; i < bsmi_gemm_instance_count; i++) {
        const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[i];
        const int64_t rows = g->tile_rows * g->cluster_rows, columns = g->tile_columns * g->cluster_columns,
                      ring = stages_of(g) * 64;
        const struct problem around[] = {
            { .m = 1, .n = 1, .k = 1 },
            { .m = g->tile_rows - 1, .n = g->tile_columns + 8, .k = 65 },
            { .m = rows + 1, .n = columns - 1, .k = ring - 64 },
            { .m = rows, .n = 2 * columns + 3, .k = ring + 1, .element = BSM_FP32 },
            { .m = 2 * rows + 3, .n = columns, .k = 72, .element = BSM_FP16 },
        };
        for (size_t j = 0; j < sizeof around / sizeof *around; j++)
            if (is_chosen(g) && (only != NULL || !is_simulated() || (j + (size_t)i) % 2 == 0)) check(t, &around[j], g);
    }
}

/* More tiles than clusters, few steps: the ring wraps in the middle of tiles. */
static void many_tiles(struct test *t)
{
    check_all(t, &(struct problem){ .m = 700, .n = 1104, .k = 200 });
}

/* Boxes are used again by the next tile: in each type, as each has a road of its own; and by tables of columns. */
static void boxes_of_the_tile_before(struct test *t)
{
    check_all(t, &(struct problem){ .m = 390, .n = 400, .k = 64, .element = BSM_FP16 });
    check_all(t, &(struct problem){ .m = 260, .n = 304, .k = 64, .element = BSM_FP32 });
    check_all(t, &(struct problem){ .m = 260, .n = 304, .k = 64, .bias_per = BSM_PER_COLUMN });
}

static void rows_that_the_copy_engine_cannot_store(struct test *t)
{
    check_all(t, &(struct problem){ .m = 130, .n = 263, .k = 64, .d_odd = 1 });
    check_all(t, &(struct problem){ .m = 67, .n = 90, .k = 64, .d_odd = 2, .element = BSM_FP32 });
    check_all(t, &(struct problem){ .m = 67, .n = 90, .k = 64, .d_odd = 3, .element = BSM_FP16 });
}

static void sums(struct test *t)
{
    check_all(t, &(struct problem){ .m = 190, .n = 304, .k = 130, .stores_sums = true });
    check_all(t, &(struct problem){ .m = 150, .n = 280, .k = 64, .stores_sums = true, .exponents = { -90, 60 },
                                    .leaves_out = true });
}

static void two_terms(struct test *t)
{
    check_all(t, &(struct problem){ .m = 140, .n = 272, .k = 200, .terms = 2, .element = BSM_FP32 });
}

static void batches(struct test *t)
{
    check_all(t, &(struct problem){ .m = 70, .n = 136, .k = 80, .batch = 3 });
    check_all(t, &(struct problem){ .m = 70, .n = 130, .k = 80, .batch = 3, .a_broadcast = true, .element = BSM_FP32 });
    check_all(t, &(struct problem){ .m = 133, .n = 70, .k = 80, .batch = 2, .b_broadcast = true,
                                    .bias_per = BSM_PER_COLUMN });
}

static void groups(struct test *t)
{
    check_all(t, &(struct problem){ .m = 447, .n = 304, .k = 100, .groups = 6,
                                    .group_rows = { 0, 130, 1, 0, 300, 16 } });
    check_all(t, &(struct problem){ .m = 200, .n = 130, .k = 64, .groups = 4, .group_rows = { 0, 0, 200, 0 },
                                    .element = BSM_FP32,
                                    .alpha = 2, .alpha_per = BSM_PER_BATCH, .bias_per = BSM_PER_ROW });
}

static void exponents(struct test *t)
{
    check_all(t, &(struct problem){ .m = 140, .n = 272, .k = 64, .exponents = { -90, 60 }, .element = BSM_FP32 });
    check_all(t, &(struct problem){ .m = 140, .n = 272, .k = 64, .exponents = { -63, 63 }, .element = BSM_FP32 });
    check_all(t, &(struct problem){ .m = 140, .n = 270, .k = 64, .exponents = { -64, -62 }, .element = BSM_FP32 });
    check_all(t, &(struct problem){ .m = 140, .n = 270, .k = 64, .exponents = { -90, 60 }, .leaves_out = true });
    check_all(t, &(struct problem){ .m = 140, .n = 270, .k = 64, .exponents = { -90, 60 }, .leaves_out = true,
                                    .zero_columns = true });
    check_all(t, &(struct problem){ .m = 70, .n = 60, .k = 64, .batch = 2, .b_broadcast = true,
                                    .exponents = { -90, 60 }, .element = BSM_FP32 });
}

static void factors(struct test *t)
{
    check_all(t, &(struct problem){ .m = 140, .n = 272, .k = 64, .alpha = 0.37f, .scale_a = 3, .scale_b = 7,
                                    .element = BSM_FP32 });
    check_all(t, &(struct problem){ .m = 140, .n = 272, .k = 64, .alpha = 0.37f, .alpha_per = BSM_PER_ROW, .beta = 0.3f,
                                    .c_element = BSM_BF16 });
    check_all(t, &(struct problem){ .m = 140, .n = 270, .k = 64, .alpha = 0.37f, .alpha_per = BSM_PER_COLUMN,
                                    .scale_b = 3, .beta = -1,
                                    .c_element = BSM_FP32, .bias_per = BSM_PER_ROW, .element = BSM_FP32 });
    check_all(t, &(struct problem){ .m = 140, .n = 270, .k = 64, .beta = 2, .c_element = BSM_FP16,
                                    .bias_per = BSM_PER_COLUMN, .element = BSM_FP16 });
}

static void not_a_number(struct test *t)
{
    check_all(t, &(struct problem){ .m = 140, .n = 270, .k = 64, .nan = true });
    check_all(t, &(struct problem){ .m = 140, .n = 272, .k = 64, .nan = true, .element = BSM_FP32 });
    check_all(t, &(struct problem){ .m = 140, .n = 270, .k = 64, .nan = true, .element = BSM_FP16, .d_odd = 1 });
    check_all(t, &(struct problem){ .m = 140, .n = 272, .k = 64, .nan = true, .exponents = { -20, 20 }, .alpha = 0.37f,
                                    .alpha_per = BSM_PER_COLUMN, .bias_per = BSM_PER_ROW });
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(edges), TEST(many_tiles), TEST(boxes_of_the_tile_before),
                                              TEST(rows_that_the_copy_engine_cannot_store), TEST(sums), TEST(two_terms),
                                              TEST(batches), TEST(groups), TEST(exponents), TEST(factors),
                                              TEST(not_a_number) };
    opened = gemm_open(&machine);
    return TEST_MAIN(argc, argv, cases);
}
