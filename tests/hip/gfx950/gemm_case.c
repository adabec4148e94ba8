#include "gemm_case.h"

#include "hip.h"
#include "hip/params/kernels.h"

#include <math.h>
#include <stdlib.h>

#define ROW(tile, rows, columns, along_m, along_n, dim) \
    { #tile, rows, columns, BSMI_HIP_GEMM_THREADS(along_m, along_n), dim, true, false },
#define PREPACKED_ROW(tile, rows, columns, along_m, along_n, dim) \
    { #tile, rows, columns, BSMI_HIP_GEMM_THREADS(along_m, along_n), dim, true, true },
#define BF16_ROW(tile, rows, columns, along_m, along_n, dim) \
    { #tile, rows, columns, BSMI_HIP_GEMM_THREADS(along_m, along_n), dim, false, false },
const struct gemm_instance gemm_instances[] = { BSMI_HIP_GEMM_SCALED(ROW) BSMI_HIP_GEMM_BF16(BF16_ROW)
                                                    BSMI_HIP_GEMM_PREPACKED(PREPACKED_ROW) };
const int gemm_instance_count = sizeof gemm_instances / sizeof gemm_instances[0];

enum { GUARD = 64 };

/* A matrix in host memory, and its copy on the device. */
struct side {
    bsm_matrix matrix;
    int64_t data_bytes, scale_bytes, row_bytes;
    unsigned char *data, *scales, *on_device, *scales_on_device;
};

static int64_t batch_of(int64_t batch) { return batch == 0 ? 1 : batch; }

static int32_t element_of(bsm_format format) { return bsm_format_get(format)->element; }

static int bits_of(bsm_format format) { return bsm_element_get(bsm_format_get(format)->element)->bits; }

static uint32_t draw_code(struct test *t, const struct gemm_case *of, const bsm_element_info *info, bsm_element element)
{
    for (;;) {
        const uint32_t code = (uint32_t)rnd_below(t, INT64_C(1) << info->bits);
        const double value = bsm_element_decode(element, code), most = of->wide ? (info->bits == 16 ? 64 : 1e30) : 4;
        if (!isfinite(value) || fabs(value) > most) continue;
        if (info->bits == 16 && of->wide && value != 0 && fabs(value) < 0x1p-30) continue;
        if (!of->wide && value * 4 != floor(value * 4)) continue;
        return code;
    }
}

static void fill_side(struct test *t, const struct gemm_case *of, struct side *s)
{
    const bsm_format_info *format = bsm_format_get(s->matrix.format);
    const bsm_element_info *info = bsm_element_get(format->element);
    const int64_t scales = bsm_matrix_scale_columns(&s->matrix);
    for (int64_t batch = 0; batch < batch_of(s->matrix.batch); batch++)
        for (int64_t row = 0; row < s->matrix.rows; row++) {
            for (int64_t k = 0; k < s->matrix.columns; k++) {
                uint32_t code;
                if (info->bits == 16 && !of->wide)
                    code = bsm_element_encode(format->element, (double)rnd_between(t, -16, 16) / 4,
                                              BSM_ROUND_NEAREST_EVEN, true, 0);
                else code = draw_code(t, of, info, format->element);
                bsm_matrix_set_code(&s->matrix, batch, row, k, code);
            }
            for (int64_t i = 0; i < scales; i++)
                bsm_matrix_set_scale(&s->matrix, batch, row, i,
                                     (uint8_t)(of->wide ? rnd_between(t, 107, 147) : rnd_between(t, 126, 128)));
        }
}

/* Rows of codes with a pitch of 16 bytes; no byte behind the last row's data is on the device. */
static bool open_side(struct test *t, const struct gemm_case *of, struct side *s, bsm_format format, int64_t rows,
                      int64_t batch)
{
    const int bits = bits_of(format);
    const bool scaled = of->instance->scaled;
    memset(s, 0, sizeof *s);
    s->row_bytes = (of->k * bits + 127) / 128 * 16 + 16 * rnd_below(t, 2);
    while (s->row_bytes * 8 % bits != 0) s->row_bytes += 16;
    s->matrix = (bsm_matrix){ .struct_size = sizeof s->matrix,
                              .format = format,
                              .rows = rows,
                              .columns = of->k,
                              .pitch = s->row_bytes * 8 / bits,
                              .batch = batch_of(batch),
                              .batch_pitch = rows * s->row_bytes * 8 / bits };
    if (scaled) s->matrix.scale_layout.kind = of->instance->dim == 32 ? BSM_LAYOUT_CDNA4_32 : BSM_LAYOUT_CDNA4_16;
    if (scaled && bsm_matrix_scale_bytes(&s->matrix, &s->scale_bytes) != BSM_OK) return false;
    s->data_bytes = batch_of(batch) * rows * s->row_bytes;
    s->data = malloc((size_t)s->data_bytes);
    s->scales = malloc((size_t)s->scale_bytes + 1);
    memset(s->data, 0xff, (size_t)s->data_bytes);
    memset(s->scales, 0xff, (size_t)s->scale_bytes);
    s->matrix.data = s->data;
    s->matrix.scales = scaled ? s->scales : NULL;
    fill_side(t, of, s);
    return true;
}

static void send_side(struct test *t, const struct gemm_case *of, struct side *s)
{
    const int64_t used = (batch_of(s->matrix.batch) * s->matrix.rows - 1) * s->row_bytes
                         + ((of->k * bits_of(s->matrix.format) + 7) / 8 + 3) / 4 * 4;
    s->on_device = hip_memory(t, s->data, (size_t)used);
    if (s->scale_bytes != 0) s->scales_on_device = hip_memory(t, s->scales, (size_t)s->scale_bytes);
}

static void close_side(struct side *s)
{
    free(s->data);
    free(s->scales);
}

static struct bsmi_hip_gemm_operand operand_of(const struct side *s)
{
    const bool many = s->matrix.batch > 1;
    return (struct bsmi_hip_gemm_operand){
        .codes = s->on_device,
        .scales = s->scales_on_device,
        .row_bytes = s->row_bytes,
        .batch_bytes = many ? s->matrix.rows * s->row_bytes : 0,
        .scale_batch_bytes = many ? s->scale_bytes / s->matrix.batch : 0,
        .scale_row_bytes = (bsm_matrix_scale_columns(&s->matrix) + 7) / 8 * 256,
    };
}

/* B as bsmi_pack_b_gfx950 makes it on the device. */
static struct bsmi_hip_gemm_operand packed_operand(struct test *t, const struct gemm_case *of, const struct side *s)
{
    const int bits = bits_of(s->matrix.format);
    const int64_t matrices = s->matrix.batch, row_bytes = BSMI_HIP_PACKED_ROW_BYTES(of->k, bits),
                  bytes = (s->matrix.rows + 15) / 16 * row_bytes, scale_row_bytes = BSMI_HIP_PACKED_SCALE_BYTES(of->k),
                  scale_bytes = (s->matrix.rows + 31) / 32 * scale_row_bytes;
    struct bsmi_hip_pack_b_parameters p = {
        .source = { .data = s->on_device,
                    .scales = s->scales_on_device,
                    .element = element_of(s->matrix.format),
                    .scale = BSM_E8M0,
                    .block = 32,
                    .bits = bits,
                    .packing = bits == 8   ? BSM_PACKING_DEFAULT
                               : bits == 6 ? BSM_PACKING_BIT_STREAM
                                           : BSM_PACKING_LOW_FIRST,
                    .rows = s->matrix.rows,
                    .columns = of->k,
                    .batch = matrices,
                    .row_bytes = s->row_bytes,
                    .batch_bytes = s->matrix.rows * s->row_bytes,
                    .scale_batch_bytes = s->scale_bytes / matrices,
                    .layout = { .kind = BSM_LAYOUT_CDNA4_16,
                                .rows = s->matrix.rows,
                                .columns = bsm_matrix_scale_columns(&s->matrix) } },
        .codes = hip_memory(t, NULL, (size_t)(matrices * bytes)),
        .scales = hip_memory(t, NULL, (size_t)(matrices * scale_bytes)),
    };
    hip_run(t, CODE_OBJECTS "/pack_b.hsaco", "bsmi_pack_b", (uint32_t)rnd_between(t, 1, 9), BSMI_HIP_THREADS, &p);
    return (struct bsmi_hip_gemm_operand){ .codes = p.codes,
                                           .scales = p.scales,
                                           .row_bytes = row_bytes,
                                           .scale_row_bytes = scale_row_bytes,
                                           .batch_bytes = matrices > 1 ? bytes : 0,
                                           .scale_batch_bytes = matrices > 1 ? scale_bytes : 0 };
}

static const char *element_name(bsm_format format) { return bsm_element_get(bsm_format_get(format)->element)->name; }

/* ---- what surrounds the product ---- */

struct problem {
    struct side a, b;
    int64_t batch, d_pitch, c_bytes;
    int64_t scales_at, amax_at, d_bytes; /* of D's buffer: data, scales of quantized D, and amax, between guards */
    unsigned char *c, *want, *got, *d_on_device;
    int64_t *starts, *tiles;
    double *bound; /* of a wide case: of each element */
};

static int64_t bytes_of(bsm_format format) { return format == BSM_FORMAT_FP32 ? 4 : 2; }
static bool is_quantized(const struct gemm_case *of) { return bsm_format_get(of->d)->block != 0; }
static int64_t d_row_bytes(const struct gemm_case *of, const struct problem *p)
{
    return p->d_pitch * bits_of(of->d) / 8;
}

/* D in one of the buffers. */
static bsm_matrix matrix_of_d(const struct gemm_case *of, const struct problem *p, unsigned char *buffer)
{
    bsm_matrix d = { .struct_size = sizeof d,
                     .format = of->d,
                     .rows = of->m,
                     .columns = of->n,
                     .data = buffer + GUARD,
                     .pitch = p->d_pitch,
                     .batch = of->groups != 0 ? 1 : p->batch,
                     .batch_pitch = of->m * p->d_pitch };
    if (!is_quantized(of)) return d;
    d.scales = buffer + p->scales_at;
    d.packing = of->d == BSM_MXFP4 ? BSM_PACKING_LOW_FIRST : BSM_PACKING_DEFAULT;
    if (of->scales_in_lane_order) d.scale_layout.kind = BSM_LAYOUT_CDNA4_16;
    return d;
}

static void *copied(struct test *t, const void *numbers, size_t bytes)
{
    return numbers == NULL ? NULL : hip_memory(t, numbers, bytes);
}

static int64_t numbers_per(const struct gemm_case *of, const struct problem *p, bsm_per per)
{
    return per == BSM_PER_ROW ? of->m : per == BSM_PER_COLUMN ? of->n : per == BSM_PER_BATCH ? p->batch : 1;
}

static void group_tables(struct test *t, const struct gemm_case *of, struct problem *p,
                         struct bsmi_hip_gemm_parameters *kernel)
{
    if (of->groups == 0) return;
    p->starts = calloc((size_t)of->groups + 1, sizeof *p->starts);
    p->tiles = calloc((size_t)of->groups + 1, sizeof *p->tiles);
    for (int g = 0; g < of->groups; g++) {
        const int64_t start = p->starts[g], end = start + of->group_rows[g];
        p->starts[g + 1] = end;
        const int64_t tiles = end == start ? 0 : (end - start / 32 * 32 + of->instance->rows - 1) / of->instance->rows;
        p->tiles[g + 1] = p->tiles[g] + tiles * kernel->column_tiles;
    }
    kernel->group_starts = hip_memory(t, p->starts, ((size_t)of->groups + 1) * 8);
    kernel->group_tiles = hip_memory(t, p->tiles, ((size_t)of->groups + 1) * 8);
    kernel->tiles = p->tiles[of->groups];
}

/* A scale's code from the largest magnitude's exponent: cut, rounded up from the largest value times a power of two or
 * from a power of two on, or to nearest by the element's mantissa. */
static void fill_quantized(const struct gemm_case *of, const struct problem *p, struct bsmi_hip_gemm_finish *f)
{
    static const struct { bsm_format format; int32_t exponent, rceil, even; float largest; } elements[] = {
        { BSM_MXFP8_E4M3, 8, 0x1fffff, 1 << 19, 448 }, { BSM_MXFP8_E5M2, 15, 0x1fffff, 1 << 20, 57344 },
        { BSM_MXFP6_E2M3, 2, 0x0fffff, 1 << 19, 7.5f }, { BSM_MXFP6_E3M2, 4, 0x1fffff, 1 << 20, 28 },
        { BSM_MXFP4, 2, 0x3fffff, 1 << 21, 6 },
    };
    const bsm_matrix d = matrix_of_d(of, p, p->d_on_device);
    int64_t scale_bytes = 0;
    (void)bsm_matrix_scale_bytes(&d, &scale_bytes);
    f->d_scales = d.scales;
    f->d_scale_batch_bytes = scale_bytes / d.batch;
    f->d_scale_row_bytes = of->scales_in_lane_order ? (of->n / 32 + 7) / 8 * 256 : of->n / 32;
    f->d_scales_in_lane_order = of->scales_in_lane_order;
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        if (elements[i].format != of->d) continue;
        f->d_scale_addend = of->recipe == BSM_RECIPE_FLOOR  ? 0
                            : of->recipe == BSM_RECIPE_CEIL ? 0x7fffff
                            : of->recipe == BSM_RECIPE_EVEN ? elements[i].even
                                                            : elements[i].rceil;
        f->d_scale_exponent = elements[i].exponent, f->d_largest = elements[i].largest;
    }
}

static struct bsmi_hip_gemm_parameters parameters_of(struct test *t, const struct gemm_case *of, struct problem *p)
{
    const int64_t row_tiles = (of->m + of->instance->rows - 1) / of->instance->rows,
                  column_tiles = (of->n + of->instance->columns - 1) / of->instance->columns;
    struct bsmi_hip_gemm_parameters kernel = {
        .a = operand_of(&p->a),
        .b = of->instance->prepacked ? packed_operand(t, of, &p->b) : operand_of(&p->b),
        .m = of->m,
        .n = of->n,
        .k = of->k,
        .row_tiles = row_tiles,
        .column_tiles = column_tiles,
        .tiles = p->batch * row_tiles * column_tiles,
        .matrices = (int32_t)p->batch,
        .band_rows = of->band_rows != 0 ? of->band_rows : 4,
    };
    struct bsmi_hip_gemm_finish *f = &kernel.finish;
    f->d = p->d_on_device + GUARD;
    f->d_element = element_of(of->d);
    f->d_row_bytes = d_row_bytes(of, p);
    f->d_batch_bytes = of->m * f->d_row_bytes;
    f->direct = of->direct;
    f->amax = (uint32_t *)(void *)(p->d_on_device + p->amax_at);
    if (is_quantized(of)) fill_quantized(of, p, f);
    f->factor_per = of->alpha_per, f->relu = of->relu;
    f->factor = copied(t, of->alpha, (size_t)numbers_per(of, p, of->alpha_per) * 4);
    f->beta = copied(t, of->beta, 4);
    if (of->c != BSM_FORMAT_NONE) {
        f->c = copied(t, p->c, (size_t)p->c_bytes);
        f->c_element = element_of(of->c);
        f->c_row_bytes = of->n * bytes_of(of->c);
        f->c_batch_bytes = of->m * f->c_row_bytes;
    }
    f->bias = copied(t, of->bias, (size_t)numbers_per(of, p, of->bias_per) * bsm_real_bytes(of->bias_type));
    f->bias_element = of->bias_type == BSM_REAL_BF16 ? BSM_BF16 : of->bias_type == BSM_REAL_FP16 ? BSM_FP16 : BSM_FP32;
    f->bias_per = of->bias_per;
    group_tables(t, of, p, &kernel);
    return kernel;
}

/* Bits of rows with NaN scales, found on the device.  The product is then run with 2^-1 in their place: D cannot be NaN
 * but by the bits. */
static uint32_t *flag_nans(struct test *t, const struct gemm_case *of, struct side *s, int64_t *words)
{
    const int32_t groups = (int32_t)((s->matrix.rows + 31) / 32), matrices = (int32_t)s->matrix.batch;
    uint32_t *nans = hip_memory(t, NULL, (size_t)(groups * matrices) * 4);
    struct bsmi_hip_nan_scales_parameters p = {
        .scales = s->scales_on_device,
        .scale_row_bytes = (bsm_matrix_scale_columns(&s->matrix) + 7) / 8 * 256,
        .scale_batch_bytes = s->scale_bytes / s->matrix.batch,
        .columns = bsm_matrix_scale_columns(&s->matrix),
        .groups = groups,
        .matrices = matrices,
        .dim = of->instance->dim,
        .nans = nans,
    };
    *words = matrices > 1 ? groups : 0;
    if (!hip_run(t, CODE_OBJECTS "/nan_scales.hsaco", "bsmi_nan_scales_gfx950", (uint32_t)(groups * matrices + 3) / 4,
                 BSMI_NAN_SCALES_THREADS, &p))
        return NULL;
    unsigned char *tame = malloc((size_t)s->scale_bytes);
    for (int64_t i = 0; i < s->scale_bytes; i++) tame[i] = s->scales[i] == 255 ? 126 : s->scales[i];
    s->scales_on_device = hip_memory(t, tame, (size_t)s->scale_bytes);
    free(tame);
    return nans;
}

static bool run_kernel(struct test *t, const struct gemm_case *of, struct problem *p)
{
    char file[512], name[256];
    if (of->instance->scaled)
        snprintf(name, sizeof name, "%s_%s_%s", element_name(of->a), element_name(of->b), of->instance->tile);
    else snprintf(name, sizeof name, "bf16_%s", of->instance->tile);
    const char *folder = getenv("GFX950_CODE_OBJECTS"); /* of mutants */
    snprintf(file, sizeof file, "%s/gemm_%s.hsaco", folder != NULL ? folder : CODE_OBJECTS, name);
    char kernel_name[300];
    snprintf(kernel_name, sizeof kernel_name, "bsmi_gemm_gfx950_%s", name);
    send_side(t, of, &p->a);
    send_side(t, of, &p->b);
    p->d_on_device = hip_memory(t, p->got, (size_t)p->d_bytes);
    uint32_t *a_nans = NULL, *b_nans = NULL;
    int64_t a_words = 0, b_words = 0;
    if (of->flagged_nans) {
        a_nans = flag_nans(t, of, &p->a, &a_words);
        b_nans = flag_nans(t, of, &p->b, &b_words);
    }
    struct bsmi_hip_gemm_parameters kernel = parameters_of(t, of, p);
    kernel.finish.a_nans = a_nans, kernel.finish.b_nans = b_nans;
    kernel.finish.a_nan_words = a_words, kernel.finish.b_nan_words = b_words;
    const int64_t more = rnd_below(t, 2); /* a grid may be larger than there are tiles */
    return hip_run(t, file, kernel_name, (uint32_t)(kernel.tiles + more), (uint32_t)of->instance->threads, &kernel)
           && hip_read(t, p->got, p->d_on_device, (size_t)p->d_bytes);
}

static bool run_cpu(struct test *t, const struct gemm_case *of, struct problem *p)
{
    static bsm_context *context;
    if (context == NULL && bsm_context_create(NULL, &context) != BSM_OK) return false;
    bsm_matrix d = matrix_of_d(of, p, p->want);
    bsm_matrix c = { .struct_size = sizeof c,
                     .format = of->c,
                     .rows = of->m,
                     .columns = of->n,
                     .data = p->c,
                     .pitch = of->n,
                     .batch = d.batch,
                     .batch_pitch = of->m * of->n };
    bsm_matmul product = { .struct_size = sizeof product,
                           .a = &p->a.matrix,
                           .b = &p->b.matrix,
                           .d = &d,
                           .groups = of->groups,
                           .group_rows = of->group_rows };
    if (of->direct) {
        product.alpha = of->alpha, product.alpha_per = of->alpha_per, product.beta = of->beta;
        product.c = of->c != BSM_FORMAT_NONE ? &c : NULL;
        product.bias = of->bias, product.bias_type = of->bias_type, product.bias_per = of->bias_per;
        product.activation = of->relu ? BSM_ACT_RELU : BSM_ACT_NONE;
        product.d_recipe = of->recipe, product.amax = (float *)(void *)(p->want + p->amax_at);
    }
    const bool done = bsm_multiply(context, &product) == BSM_OK;
    if (!done) FAIL(t, "on the CPU: %s", bsm_last_error());
    return done;
}

/* ---- comparing ---- */

static double value_of(const struct side *s, int64_t row, int64_t k)
{
    const bsm_format_info *format = bsm_format_get(s->matrix.format);
    uint32_t code;
    uint8_t scale = 127;
    bsm_matrix_get_code(&s->matrix, 0, row, k, &code);
    if (format->block != 0) bsm_matrix_get_scale(&s->matrix, 0, row, k / format->block, &scale);
    return ldexp(bsm_element_decode(format->element, code), scale - 127);
}

/* A sum in fp32 in whatever order, with whichever of the models of rounding: of K products, each rounding at most
 * 2^-23 of what has been summed. */
static void compare_wide(struct test *t, const struct gemm_case *of, const struct problem *p)
{
    double *a = malloc((size_t)(of->m * of->k) * 8), *b = malloc((size_t)(of->n * of->k) * 8);
    for (int64_t i = 0; i < of->m * of->k; i++) a[i] = value_of(&p->a, i / of->k, i % of->k);
    for (int64_t i = 0; i < of->n * of->k; i++) b[i] = value_of(&p->b, i / of->k, i % of->k);
    for (int64_t i = 0; i < of->m; i++)
        for (int64_t j = 0; j < of->n; j++) {
            double sum = 0, magnitudes = 0;
            for (int64_t k = 0; k < of->k; k++) {
                const double product = a[i * of->k + k] * b[j * of->k + k];
                sum += product, magnitudes += fabs(product);
            }
            float got;
            memcpy(&got, p->got + GUARD + (i * p->d_pitch + j) * 4, 4);
            if (!(fabs(got - sum) <= (double)of->k * 0x1p-23 * magnitudes))
                FAIL(t, "D[%" PRId64 "][%" PRId64 "] is %a, not %a within %a", i, j, (double)got, sum,
                     (double)of->k * 0x1p-23 * magnitudes);
        }
    free(a);
    free(b);
}

static void compare_bits(struct test *t, const struct gemm_case *of, const struct problem *p)
{
    const int64_t bytes = is_quantized(of) ? 1 : bytes_of(of->d);
    for (int64_t i = 0; i < p->d_bytes; i += bytes) {
        if (memcmp(p->got + i, p->want + i, (size_t)bytes) == 0) continue;
        if (i >= p->scales_at - GUARD || is_quantized(of)) {
            const bool data = i < p->scales_at - GUARD, scale = !data && i < p->amax_at - GUARD;
            FAIL(t, "%s x %s to %s, %s: byte %" PRId64 " of %s is 0x%02x, not 0x%02x", element_name(of->a),
                 element_name(of->b), bsm_format_get(of->d)->name, of->instance->tile,
                 i - (data ? GUARD : scale ? p->scales_at : p->amax_at), data ? "data" : scale ? "scales" : "amax",
                 p->got[i], p->want[i]);
            return;
        }
        const int64_t at = (i - GUARD) / bytes, row = at / p->d_pitch;
        uint32_t got = 0, want = 0;
        memcpy(&got, p->got + i, (size_t)bytes);
        memcpy(&want, p->want + i, (size_t)bytes);
        FAIL(t,
             "%s x %s, %s, %" PRId64 " x %" PRId64 " x %" PRId64 ": row %" PRId64 ", column %" PRId64
             " is 0x%x, not 0x%x",
             element_name(of->a), element_name(of->b), of->instance->tile, of->m, of->n, of->k, row, at % p->d_pitch,
             got, want);
        return;
    }
}

static void plant_nan(const struct gemm_case *of, struct problem *p)
{
    struct side *s = of->nan_scale == 2 ? &p->b : &p->a;
    const int64_t row = s->matrix.rows / 2, column = bsm_matrix_scale_columns(&s->matrix) - 1;
    if (of->nan_scale == 3)
        bsm_matrix_set_code(&s->matrix, 0, row, of->k - 1, bsm_element_get(element_of(of->a))->nan_code);
    else if (of->nan_scale != 0) bsm_matrix_set_scale(&s->matrix, 0, row, column, 255);
}

static void fill_c(struct test *t, const struct gemm_case *of, struct problem *p)
{
    const int64_t count = (of->groups != 0 ? 1 : p->batch) * of->m * of->n, bytes = bytes_of(of->c);
    p->c_bytes = count * bytes;
    p->c = malloc((size_t)p->c_bytes);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits =
            bsm_element_encode(element_of(of->c), (double)rnd_between(t, -16, 16) / 4, BSM_ROUND_NEAREST_EVEN, true, 0);
        memcpy(p->c + i * bytes, &bits, (size_t)bytes);
    }
}

void gemm_case_run(struct test *t, const struct gemm_case *of)
{
    struct problem p = { 0 };
    if (!hip_open(t) || !open_side(t, of, &p.a, of->a, of->m, of->a_batch)
        || !open_side(t, of, &p.b, of->b, of->n, of->groups != 0 ? of->groups : of->b_batch))
        return;
    p.batch = of->groups != 0                                 ? of->groups
              : batch_of(of->a_batch) > batch_of(of->b_batch) ? of->a_batch
                                                              : batch_of(of->b_batch);
    plant_nan(of, &p);
    if (of->c != BSM_FORMAT_NONE) fill_c(t, of, &p);
    p.d_pitch = of->d_pitch != 0 ? of->d_pitch : of->n;
    const bsm_matrix d = matrix_of_d(of, &p, NULL);
    int64_t scale_bytes = 0;
    if (is_quantized(of)) (void)bsm_matrix_scale_bytes(&d, &scale_bytes);
    p.scales_at = GUARD + (d.batch * of->m * d_row_bytes(of, &p) + GUARD - 1) / GUARD * GUARD + GUARD;
    p.amax_at = p.scales_at + (scale_bytes + GUARD - 1) / GUARD * GUARD + GUARD;
    p.d_bytes = p.amax_at + 2 * GUARD;
    p.want = malloc((size_t)p.d_bytes);
    p.got = malloc((size_t)p.d_bytes);
    memset(p.want, 0xab, (size_t)p.d_bytes);
    memset(p.got, 0xab, (size_t)p.d_bytes);
    if (of->direct) memset(p.got + p.amax_at, 0, sizeof(float));
    /* Padding of scales is not the kernel's. */
    if (is_quantized(of)) memset(p.got + p.scales_at, 0, (size_t)scale_bytes);
    if (run_kernel(t, of, &p) && run_cpu(t, of, &p)) {
        if (of->wide) compare_wide(t, of, &p);
        else compare_bits(t, of, &p);
    }
    hip_free_all();
    close_side(&p.a);
    close_side(&p.b);
    free(p.c);
    free(p.want);
    free(p.got);
    free(p.starts);
    free(p.tiles);
}
