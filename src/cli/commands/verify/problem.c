/* The cases of verify, what their products must be, and running one on a kernel. */
#include "verify.h"
#include "cli/matrices/sample_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* First everyday products: K a multiple of 64 and tight rows, whose operands need the least preparation.  Then sizes
 * around the widths of kernels (4, 6, 8, 16, 32, 64, 128), of blocks (16, 32) and of stretches of K; M differs from N,
 * and one case has more than 128 rows and a number of scale columns that is no multiple of 4. */
const struct verify_case verify_cases[] = {
    { VERIFY_INTEGERS, 5, 24, 64, true, true },
    { VERIFY_INTEGERS, 7, 40, 128, true, true },
    { VERIFY_INTEGERS, 8, 24, 128, true, true },
    { VERIFY_CODES, 130, 20, 64, false, true },
    { VERIFY_CODES, 3, 18, 2880, false, true },
    { VERIFY_INTEGERS, 17, 6, 2880, false, true },
    { VERIFY_FAR_SCALES, 12, 35, 128, false, true },
    { VERIFY_ANY_CODES, 33, 9, 64, false, true },
    { VERIFY_NOT_FINITE, 20, 18, 128, false, true },
    { VERIFY_FAR_SCALES, 3, 35, 192, false, true },
    { VERIFY_INTEGERS, 1, 1, 1, true, false },
    { VERIFY_INTEGERS, 1, 7, 33, false, false },
    { VERIFY_INTEGERS, 3, 5, 17, false, false },
    { VERIFY_INTEGERS, 9, 16, 31, true, false },
    { VERIFY_INTEGERS, 4, 32, 128, false, false },
    { VERIFY_INTEGERS, 17, 33, 64, false, false },
    { VERIFY_INTEGERS, 31, 8, 95, false, false },
    { VERIFY_INTEGERS, 65, 63, 129, false, false },
    { VERIFY_INTEGERS, 131, 130, 161, false, false },
    { VERIFY_INTEGERS, 5, 19, 1055, true, false },
    { VERIFY_INTEGERS, 2, 270, 48, false, false },
    { VERIFY_CODES, 7, 9, 40, true, false },
    { VERIFY_CODES, 33, 18, 97, false, false },
    { VERIFY_CODES, 2, 6, 2100, false, false },
    { VERIFY_CODES, 13, 70, 300, false, false },
    { VERIFY_FAR_SCALES, 11, 20, 150, true, false },
    { VERIFY_FAR_SCALES, 3, 35, 600, false, false },
    { VERIFY_FAR_SCALES, 5, 18, 40, true, false },
    { VERIFY_FAR_SCALES, 4, 7, 33, true, false },
    { VERIFY_FAR_SCALES, 6, 9, 32, false, false },
    { VERIFY_FAR_SCALES, 5, 17, 48, false, false },
    { VERIFY_FAR_SCALES, 2, 19, 64, false, false },
    { VERIFY_FAR_SCALES, 7, 8, 31, false, false },
    { VERIFY_ANY_CODES, 19, 37, 70, true, false },
    { VERIFY_ANY_CODES, 40, 21, 5, false, false },
    { VERIFY_NOT_FINITE, 12, 21, 70, true, false },
    { VERIFY_NOT_FINITE, 34, 5, 33, false, false },
    { VERIFY_SCALE_CODES, 256, 256, 1, false, false },
    { VERIFY_ELEMENT_CODES, 256, 256, 1, false, false },
};
const int verify_case_count = (int)(sizeof verify_cases / sizeof verify_cases[0]);

const char *verify_kind_name(enum verify_kind kind)
{
    static const char *const names[VERIFY_KINDS] = { "integers",   "codes",       "far scales",   "any codes",
                                                     "not finite", "scale codes", "element codes" };
    return names[kind];
}

/* A step of the tensor cores sums 16 products and the sum so far, and is at most 10 eps of the magnitude off
 * (docs/guide/numerics.md says why, and what happens below fp32's normal numbers). */
enum { STEP_PRODUCTS = 16, STEP_UNITS = 10 };
static const double least_normal_fp16 = 0x1p-14, least_normal = 0x1p-126, least_subnormal = 0x1p-149,
                    first_infinite = 0x1p128;

enum { ROW_GAP = 3 };                     /* columns of D behind column N, which nobody may write */
static const uint32_t untouched = 0xffc0bad0;      /* what D holds before the product: a NaN that no product writes */

/* Layouts and packings of 4 and of 6 bits that cases take one after the other. */
static const bsm_scale_layout ordinary_layouts[] = { { .kind = BSM_LAYOUT_LINEAR }, { .kind = BSM_LAYOUT_128X4 } };
static const bsm_scale_layout layouts[] = {
    { .kind = BSM_LAYOUT_LINEAR },   { .kind = BSM_LAYOUT_128X4 },
    { .kind = BSM_LAYOUT_8X4 },      { .kind = BSM_LAYOUT_TILES, .tile_rows = 16, .tile_columns = 3 },
    { .kind = BSM_LAYOUT_LINEAR, .pitch = BSM_PITCH_PADDED_16 },
    { .kind = BSM_LAYOUT_CDNA4_16 }, { .kind = BSM_LAYOUT_CDNA4_32 },
    { .kind = BSM_LAYOUT_AITER },    { .kind = BSM_LAYOUT_DEEPGEMM },
};
static const bsm_packing packings[][3] = {
    { BSM_PACKING_DEFAULT, BSM_PACKING_HIGH_FIRST, BSM_PACKING_BYTES },
    { BSM_PACKING_DEFAULT, BSM_PACKING_BIT_STREAM, BSM_PACKING_BYTES },
};

static int bits_of(bsm_format format) { return bsm_element_get((int)bsm_format_get((int)format)->element)->bits; }

static bsm_matrix describe_ordinary(bsm_format format, int64_t rows, int64_t columns, int variant)
{
    const bool bytes = bits_of(format) == 6 && variant / 2 % 2 != 0;
    return (bsm_matrix) { .format = format, .rows = rows, .columns = columns,
                          .scale_layout = ordinary_layouts[variant % 2],
                          .packing = bytes ? BSM_PACKING_BYTES : BSM_PACKING_DEFAULT };
}

/* Descriptions change with the case, so that every pair meets several layouts, packings and pitches. */
static bsm_matrix describe(bsm_format format, int64_t rows, int64_t columns, int variant)
{
    const int bits = bits_of(format);
    return (bsm_matrix) { .format = format, .rows = rows, .columns = columns, .scale_layout = layouts[variant % 9],
                          .packing = bits == 4 || bits == 6 ? packings[bits / 6][variant % 3] : BSM_PACKING_DEFAULT,
                          .pitch = variant % 2 == 0 ? 0 : (columns + 63) / 64 * 64 + 64 };
}

static bsm_matrix describe_operand(const struct verify_case *what, bsm_format format, int64_t rows, int variant)
{
    return what->ordinary ? describe_ordinary(format, rows, what->k, variant)
                          : describe(format, rows, what->k, variant);
}

/* K is cut into exact blocks where both elements are small integers times a power of two and have scales (matmul.h);
 * else every product is rounded by itself. */
static int64_t exact_block_length(bsm_format a, bsm_format b)
{
    const bsm_format_info *x = bsm_format_get((int)a), *y = bsm_format_get((int)b);
    const uint32_t integers = 1u << BSM_E2M1 | 1u << BSM_E2M3 | 1u << BSM_INT8;
    const bool exact_blocks = (integers >> x->element & 1) != 0 && (integers >> y->element & 1) != 0;
    if (!exact_blocks || x->block == 0 || y->block == 0) return 1;
    return x->block < y->block ? x->block : y->block;
}

/* Elements and scales apart; scales one per element, 1 for unscaled formats. */
struct decoded { float *element, *scale; };

static struct decoded decode(const struct cli *cli, const bsm_matrix *matrix)
{
    const bsm_format_info *info = bsm_format_get((int)matrix->format);
    struct decoded decoded = { cli_memory(cli, matrix->rows * matrix->columns, sizeof(float)),
                               cli_memory(cli, matrix->rows * matrix->columns, sizeof(float)) };
    for (int64_t r = 0; r < matrix->rows; r++) {
        uint8_t scale = 0;
        for (int64_t c = 0; c < matrix->columns; c++) {
            uint32_t code = 0;
            if (info->block != 0 && c % info->block == 0) bsm_matrix_get_scale(matrix, 0, r, c / info->block, &scale);
            bsm_matrix_get_code(matrix, 0, r, c, &code);
            decoded.element[r * matrix->columns + c] = bsm_element_decode(info->element, code);
            decoded.scale[r * matrix->columns + c] = bsm_scale_decode(info->scale, scale);
        }
    }
    return decoded;
}

/* sum + term, rounded once to fp32.  The double sum is first rounded to odd (its error is known from Knuth's two-sum),
 * which the second rounding does not feel, as 53 bits are more than 24 + 2 (Boldo and Melquiond 2008). */
static float add_once(float sum, double term)
{
    const double s = (double)sum + term, shadow = s - (double)sum,
                 error = ((double)sum - (s - shadow)) + (term - shadow);
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    if (isnan(s)) return (float)fabs((double)NAN);
    if (isinf(s) || error == 0 || (bits & 1) != 0) return (float)s;
    return (float)nextafter(s, error > 0 ? (double)INFINITY : -(double)INFINITY);
}

/* S of one element in the portable order.  Products and exact blocks of finite codes are exact in double. */
static float ordered_sum(const float *a, const float *sa, const float *b, const float *sb, int64_t k, int64_t length)
{
    float sum = 0;
    for (int64_t first = 0; first < k; first += length) {
        /* a lone term keeps the sign of zero */
        double run = (double)a[first] * (double)b[first] + (length == 1 ? -0.0 : 0.0);
        for (int64_t i = first + 1; i < k && i < first + length; i++) run += (double)a[i] * (double)b[i];
        sum = add_once(sum, run * ((double)sa[first] * (double)sb[first]));
    }
    return sum;                           /* exact zeros are +0, as sums start at +0; tiny negative ones may be -0 */
}

static float *ordered_product(const struct cli *cli, const struct verify_problem *problem, int64_t length)
{
    const int64_t m = problem->shape.m, n = problem->shape.n, k = problem->a.matrix.columns;
    struct decoded a = decode(cli, &problem->a.matrix), b = decode(cli, &problem->b.matrix);
    float *product = cli_memory(cli, m * n, sizeof *product);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            product[i * n + j] =
                ordered_sum(a.element + i * k, a.scale + i * k, b.element + j * k, b.scale + j * k, k, length);
    free(a.element), free(a.scale), free(b.element), free(b.scale);
    return product;
}

/* The least normal number of a format that tensor cores multiply as it is; 0: they multiply what is made of it. */
static double least_as_it_is(bsm_format format, bool fp16_too)
{
    return format == BSM_FORMAT_BF16 ? least_normal : fp16_too && format == BSM_FORMAT_FP16 ? least_normal_fp16 : 0;
}

/* A magnitude as tensor cores align it: a subnormal number counts as the least normal one. */
static double counted(double least, const struct decoded *d, int64_t at)
{
    const double value = fabs((double)d->element[at] * (double)d->scale[at]);
    return value != 0 && value < least ? least : value;
}

/* Sums of |a||b|; infinite where partial sums may leave fp32. */
static double *tensor_magnitude(const struct cli *cli, const struct verify_problem *problem, bool fp16_too)
{
    const double least_a = least_as_it_is(problem->a.matrix.format, fp16_too),
                 least_b = least_as_it_is(problem->b.matrix.format, fp16_too);
    const int64_t m = problem->shape.m, n = problem->shape.n, k = problem->a.matrix.columns;
    struct decoded a = decode(cli, &problem->a.matrix), b = decode(cli, &problem->b.matrix);
    double *magnitude = cli_memory(cli, m * n, sizeof *magnitude);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += counted(least_a, &a, i * k + l) * counted(least_b, &b, j * k + l);
            magnitude[i * n + j] = sum < first_infinite / 2 ? sum : (double)INFINITY;
        }
    free(a.element), free(a.scale), free(b.element), free(b.scale);
    return magnitude;
}

/* Kinds mxf4 and mxf4nvf4 take 64 columns at once, and cut each 16 of them behind 2^-35 of the largest product of two
 * scales, also where the elements under these are all zeros (matmul.h). */
enum { SCALED_TOGETHER = 16 };
static const double lost_to_scales = 0x1p-32;

static bool are_four_bits(const struct verify_problem *problem)
{
    return bits_of(problem->a.matrix.format) == 4 && bits_of(problem->b.matrix.format) == 4;
}

static double *lost_of_scales(const struct cli *cli, const struct verify_problem *problem)
{
    const int64_t m = problem->shape.m, n = problem->shape.n, k = problem->a.matrix.columns;
    struct decoded a = decode(cli, &problem->a.matrix), b = decode(cli, &problem->b.matrix);
    double *lost = cli_memory(cli, m * n, sizeof *lost);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < k; l += SCALED_TOGETHER)
                lost[i * n + j] += lost_to_scales * (double)a.scale[i * k + l] * (double)b.scale[j * k + l];
    free(a.element), free(a.scale), free(b.element), free(b.scale);
    return lost;
}

static bool are_fp16(const struct verify_problem *problem)
{
    return problem->a.matrix.format == BSM_FORMAT_FP16 && problem->b.matrix.format == BSM_FORMAT_FP16;
}

/* fp16 is two terms of bf16. */
static int tensor_terms(bsm_format format) { return format == BSM_FORMAT_FP16 ? 2 : 1; }

/* Fallback rows are fp32 chains of k roundings; putting an exponent back is one more. */
static int64_t tensor_roundings(int64_t k, int64_t terms)
{
    const int64_t units = STEP_UNITS * terms * ((k + STEP_PRODUCTS - 1) / STEP_PRODUCTS);
    return (units > k ? units : k) + 1;
}

static void set_tensor_limit(struct verify_problem *problem, bsm_format a, bsm_format b)
{
    const int64_t k = problem->what->k, terms = tensor_terms(a) * tensor_terms(b);
    const int64_t steps = (k + STEP_PRODUCTS - 1) / STEP_PRODUCTS * terms;
    const bool as_it_is = a == BSM_FORMAT_BF16 || b == BSM_FORMAT_BF16;
    problem->cuts = as_it_is ? (int)terms : 0;
    problem->tensor.roundings = tensor_roundings(k, terms);
    problem->tensor.least = (double)((as_it_is ? steps : 0) + (k + 1) / 2) * least_subnormal;
}

/* The loosest of the three units' bounds; what they flush, only beside bf16. */
static void set_unit_limit(struct verify_problem *problem, bsm_format a, bsm_format b)
{
    const int64_t k = problem->what->k, terms = tensor_terms(a) * tensor_terms(b);
    const int64_t slices = (k + 31) / 32 * terms, pairs = (k + 1) / 2 * terms;
    /* Those of AVX512_BF16 and of the portable order are less. */
    const int64_t of_amx = 16 + slices, of_arm = 1 + 2 * pairs;
    const bool as_it_is = a == BSM_FORMAT_BF16 || b == BSM_FORMAT_BF16;
    problem->flushed = as_it_is ? (double)terms * least_normal : 0;
    problem->unit.roundings = of_amx > of_arm ? of_amx : of_arm;
    problem->unit.least =
        (as_it_is ? (double)(34 * slices + 4 * pairs) * least_normal : 0) + (double)(k + 1) * least_subnormal;
}

static bool has_units(const bsm_context *context)
{
    return (bsm_context_cpu_features(context) & (BSM_CPU_AMX | BSM_CPU_AVX512_BF16 | BSM_CPU_BF16)) != 0;
}

/* What is compared with what depends on the kind; kernels with orders of their own (bounds: there are such) are held to
 * bounds where others have the portable order. */
static bsm_status reference(struct cli *cli, struct verify_problem *problem, bool gpu, bool bounds)
{
    const int64_t m = problem->shape.m, n = problem->shape.n;
    const enum verify_kind kind = problem->what->kind;
    const bool ordered = kind == VERIFY_FAR_SCALES || kind == VERIFY_ANY_CODES;
    const bool bound = kind == VERIFY_CODES || kind == VERIFY_NOT_FINITE;
    const bool cut = bounds && problem->what->k == 1, wants_sum = bound || cut || (ordered && bounds);
    bsm_status status = BSM_OK;
    if (wants_sum) {
        problem->sum = cli_memory(cli, m * n, sizeof(double));
        if (bound) problem->magnitude = cli_memory(cli, m * n, sizeof(double));
        const bsm_real_matrix sum = real_rows(BSM_REAL_FP64, m, n, problem->sum, n);
        const bsm_real_matrix magnitude = real_rows(BSM_REAL_FP64, m, n, problem->magnitude, n);
        status =
            bsm_matmul_exact(cli->context, &problem->a.matrix, &problem->b.matrix, &sum, bound ? &magnitude : NULL);
    }
    if (status == BSM_OK && wants_sum && gpu && are_fp16(problem))
        problem->fp16_magnitude = tensor_magnitude(cli, problem, true);
    if (status == BSM_OK && bound && gpu && are_four_bits(problem)) problem->scales = lost_of_scales(cli, problem);
    if (status != BSM_OK || bound) return status;
    if (ordered) {
        if (bounds) problem->magnitude = tensor_magnitude(cli, problem, false);
        if (gpu && are_four_bits(problem)) problem->scales = lost_of_scales(cli, problem);
        return BSM_OK;
    }
    problem->exact = cli_memory(cli, m * n, sizeof(float));
    const bsm_real_matrix exact = real_rows(BSM_REAL_FP32, m, n, problem->exact, n);
    return bsm_matmul_exact(cli->context, &problem->a.matrix, &problem->b.matrix, &exact, NULL);
}

int verify_problem_create(struct cli *cli, struct verify_problem *problem, int case_index, bsm_format a, bsm_format b,
                          bsm_context *gpu)
{
    const struct verify_case *what = &verify_cases[case_index];
    const uint64_t seed = sample_bits(cli->seed, (uint64_t)case_index, (uint64_t)a * BSM_FORMAT_COUNT + (uint64_t)b);
    *problem = (struct verify_problem) { .what = what, .shape = { what->m, what->n, what->n + ROW_GAP } };
    int code = operand_create(cli, &problem->a, describe_operand(what, a, what->m, case_index));
    if (code == CLI_DONE) code = operand_create(cli, &problem->b, describe_operand(what, b, what->n, case_index + 4));
    if (code != CLI_DONE) return code;
    bsm_status status = verify_fill(&problem->a, what->kind, seed, 0);
    if (status == BSM_OK) status = verify_fill(&problem->b, what->kind, seed, 1);
    if (status != BSM_OK) return cli_library_failed(cli, "setting codes", status);
    problem->d = cli_memory(cli, problem->shape.m * problem->shape.pitch, sizeof(float));
    problem->d_matrix = fp32_rows(problem->shape.m, problem->shape.n, problem->d, problem->shape.pitch);
    problem->product = (bsm_matmul){ .struct_size = sizeof problem->product, .a = &problem->a.matrix,
                                     .b = &problem->b.matrix,
                                     .d = &problem->d_matrix };
    if (gpu != NULL) status = device_product_create(gpu, &problem->product, &problem->device);
    if (status != BSM_OK) return cli_library_failed(cli, "copying operands to the GPU", status);
    set_tensor_limit(problem, a, b), set_unit_limit(problem, a, b);
    status = reference(cli, problem, gpu != NULL, gpu != NULL || has_units(cli->context));
    if (status != BSM_OK) return cli_library_failed(cli, "the exact product", status);

    const int64_t length = exact_block_length(a, b);
    problem->roundings = (what->k + length - 1) / length;
    const bool ordered =
        what->kind == VERIFY_CODES || what->kind == VERIFY_FAR_SCALES || what->kind == VERIFY_ANY_CODES;
    if (ordered) problem->ordered = ordered_product(cli, problem, length);
    return CLI_DONE;
}

void verify_problem_free(struct verify_problem *problem)
{
    device_product_free(&problem->device);
    operand_free(&problem->a);
    operand_free(&problem->b);
    free(problem->d), free(problem->exact), free(problem->sum), free(problem->magnitude), free(problem->ordered),
        free(problem->scales), free(problem->fp16_magnitude);
}

static bsm_status multiply_on_gpu(const struct verify_problem *problem)
{
    const struct device_product *device = &problem->device;
    int64_t bytes = 0;
    bsm_status status = bsm_matrix_data_bytes(&problem->d_matrix, &bytes);
    if (status == BSM_OK) status = bsm_device_write(device->gpu, device->d.data, problem->d, (size_t)bytes);
    if (status == BSM_OK) status = bsm_multiply(device->gpu, &device->call);
    return status == BSM_OK ? device_product_read(device) : status;
}

static bsm_status multiply(struct cli *cli, const struct verify_problem *problem)
{
    const int64_t elements = problem->shape.m * problem->shape.pitch;
    for (int64_t i = 0; i < elements; i++) memcpy(problem->d + i, &untouched, sizeof untouched);
    if (problem->device.gpu != NULL) return multiply_on_gpu(problem);
    return bsm_multiply(cli->context, &problem->product);
}

/* Of the pair that it serves a GPU's kernel may take some products alone; those of the CPU take all. */
static bool is_refused(const struct verify_problem *problem, struct verify_result *result)
{
    const struct device_product *device = &problem->device;
    if (device->gpu == NULL || bsm_supported(device->gpu, &device->call) != BSM_EUNSUPPORTED) return false;
    if (result->refused++ == 0) snprintf(result->refusal, sizeof result->refusal, "%s", bsm_last_error());
    return true;
}

/* Whether it is one of Blackwell's kernels for this kind, or these kinds, of products of codes. */
static bool multiplies(int kernel, const char *kind)
{
    static const char *const families[] = { "cuda_tcgen05_", "cuda_mma_sync_" };
    const char *name = bsm_kernel_name(kernel);
    for (int i = 0; i < 2; i++) {
        const size_t length = strlen(families[i]);
        if (strncmp(name, families[i], length) == 0) return strncmp(name + length, kind, strlen(kind)) == 0;
    }
    return false;
}

/* Kernels that multiply codes leave the scales to the tensor cores, too, so that any pair has terms below fp32's normal
 * numbers. */
static int cuts_of(const struct verify_problem *problem, int kernel)
{
    const bool scaled = strncmp(bsm_kernel_name(kernel), "hip_mfma_scale", 14) == 0;
    return scaled || multiplies(kernel, "mxf4") || multiplies(kernel, "mxf8") ? 1 : problem->cuts;
}

/* Kernels of tensor memory multiply fp16 by itself without making two terms of it. */
static bool takes_fp16(const struct verify_problem *problem, int kernel)
{
    return problem->fp16_magnitude != NULL && strncmp(bsm_kernel_name(kernel), "cuda_tcgen05_f16", 16) == 0;
}

static struct compare_limit limit_of(const struct verify_problem *problem, int kernel)
{
    struct compare_limit limit = problem->device.gpu != NULL ? problem->tensor : problem->unit;
    if (takes_fp16(problem, kernel)) limit.roundings = tensor_roundings(problem->what->k, 1);
    if (multiplies(kernel, "mxf4")) limit.more = problem->scales;
    return limit;
}

/* Of the forced kernel: whether it sums in the portable order. */
static bool is_portable(const struct cli *cli, const struct verify_problem *problem, int kernel)
{
    bsm_matmul product = problem->product;
    if (problem->device.gpu != NULL) return strstr(bsm_kernel_name(kernel), "_simt") != NULL;
    product.order = BSM_ORDER_PORTABLE;
    return bsm_supported(cli->context, &product) == BSM_OK;
}

/* Kernels of gfx950 for rows of bf16 round each term's product below 2^-126, up or down: how is not published. */
static double rounded_below(const struct verify_problem *problem, int kernel)
{
    const bool rounds = strncmp(bsm_kernel_name(kernel), "hip_mfma_bf16", 13) == 0;
    return rounds ? problem->cuts * least_subnormal : 0;
}

/* Bits of one rounding; less what tensor cores cut, or units flush. */
static struct difference compare_exact(const struct verify_problem *problem, int kernel, bool portable)
{
    if (portable || problem->sum == NULL) return compare_bits(problem->shape, problem->d, problem->exact);
    const double rounded = rounded_below(problem, kernel);
    if (rounded > 0) return compare_flushed(problem->shape, problem->d, problem->exact, problem->sum, rounded);
    return problem->device.gpu != NULL
               ? compare_cut(problem->shape, problem->d, problem->exact, problem->sum, cuts_of(problem, kernel))
               : compare_flushed(problem->shape, problem->d, problem->exact, problem->sum, problem->flushed);
}

static void run_forced(struct cli *cli, struct verify_problem *problem, int kernel, struct verify_result *result)
{
    struct verify_failure failure = { .check = VERIFY_CHECK_STATUS, .what = *problem->what };
    const bool portable = is_portable(cli, problem, kernel);
    const bsm_status status = multiply(cli, problem);
    bool differs = status != BSM_OK;
    if (differs) snprintf(failure.sentence, sizeof failure.sentence, "%s", bsm_last_error());
    if (!differs && problem->exact != NULL) {
        failure.check = VERIFY_CHECK_EXACT;
        failure.first = compare_exact(problem, kernel, portable);
        differs = failure.first.found;
    }
    const bool order_decides = problem->what->kind == VERIFY_FAR_SCALES || problem->what->kind == VERIFY_ANY_CODES;
    if (!differs && problem->magnitude != NULL && (!portable || !order_decides)) {
        failure.check = VERIFY_CHECK_BOUND;
        failure.first = compare_bound(problem->shape, problem->d, problem->sum,
                                      takes_fp16(problem, kernel) ? problem->fp16_magnitude : problem->magnitude,
                                      portable ? (struct compare_limit){ .roundings = problem->roundings }
                                               : limit_of(problem, kernel),
                                      &result->worst);
        differs = failure.first.found;
    }
    if (!differs && problem->ordered != NULL && portable) {
        failure.check = VERIFY_CHECK_ORDER;
        failure.first = compare_bits(problem->shape, problem->d, problem->ordered);
        differs = failure.first.found;
    }
    if (!differs) {
        failure.check = VERIFY_CHECK_GAPS;
        failure.first = compare_gaps(problem->shape, problem->d, untouched);
        differs = failure.first.found;
    }
    result->cases++;
    if (differs && result->failures++ == 0) result->first = failure;
}

void verify_run(struct cli *cli, struct verify_problem *problem, int kernel, struct verify_result *result)
{
    bsm_context *context = problem->device.gpu != NULL ? problem->device.gpu : cli->context;
    if (bsm_context_force_kernel(context, kernel) == BSM_OK && !is_refused(problem, result))
        run_forced(cli, problem, kernel, result);
    bsm_context_force_kernel(context, -1);
}
