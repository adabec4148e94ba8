/* Everything between S and D on a GPU, against the CPU's bytes: sums by the kernel that keeps the CPU's order, and so
 * its bits. */
#include "cuda/harness/gpu.h"

#include <math.h>
#include <stdlib.h>

static const bsm_scale_layout layouts[] = {
    { .kind = BSM_LAYOUT_LINEAR },   { .kind = BSM_LAYOUT_128X4 },
    { .kind = BSM_LAYOUT_8X4 },      { .kind = BSM_LAYOUT_TILES, .tile_rows = 3, .tile_columns = 2 },
    { .kind = BSM_LAYOUT_LINEAR, .pitch = BSM_PITCH_PADDED_16 },  { .kind = BSM_LAYOUT_CDNA4_16 },
    { .kind = BSM_LAYOUT_CDNA4_32 }, { .kind = BSM_LAYOUT_DEEPGEMM },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static struct operand make(struct test *t, bsm_format format, int64_t rows, int64_t columns, int64_t batch)
{
    struct shape s = { .format = format, .rows = rows, .columns = columns, .batch = batch };
    shape_in_any_way(t, &s, layouts, LAYOUTS);
    return operand_make(&s, 0xff);
}

struct extras { float alpha[64], beta, bias[256], amax, scale_a, scale_b, scale_d; int64_t group_rows[4]; };

static void fill_extras(struct test *t, struct extras *x)
{
    for (int i = 0; i < 64; i++) x->alpha[i] = (float)rnd_normal(t);
    for (int i = 0; i < 256; i++) x->bias[i] = (float)rnd_normal(t) * 4;
    x->beta = rnd_below(t, 3) == 0 ? 0 : (float)rnd_normal(t);
    x->amax = -1;
    x->scale_a = 0.3f, x->scale_b = 7.1f, x->scale_d = 0.0137f;
}

/* Numbers in a vector of this kind. */
static int64_t count_of(bsm_per per, int64_t m, int64_t n, int64_t matrices)
{
    return per == BSM_PER_ROW ? m : per == BSM_PER_COLUMN ? n : per == BSM_PER_BATCH ? matrices : 1;
}

/* A product whose options follow from `number`; the operands are small, the sums ordinary numbers. */
static void random_product(struct test *t, const struct contexts *c, bsm_format d_format, int number)
{
    struct extras x;
    fill_extras(t, &x);
    const bsm_gate gate = (bsm_gate)(number % 3);
    const bool grouped = number % 5 == 4;
    const int64_t m = 1 + rnd_below(t, 20), n = 2 * (1 + rnd_below(t, 31)) * (gate == BSM_GATE_NONE ? 1 : 2),
                  k = 1 + rnd_below(t, 40);
    const int64_t batch = grouped ? 1 : 1 + number % 2, b_batch = grouped ? 3 : batch;
    static const bsm_format c_formats[] = { BSM_FORMAT_FP32, BSM_FORMAT_BF16, BSM_FORMAT_FP16 };
    struct operand a = make(t, number % 2 ? BSM_MXFP8_E4M3 : BSM_FORMAT_BF16, m, k, batch),
                   b = make(t, BSM_NVFP4, n, k, b_batch);
    struct operand cc = make(t, c_formats[number % 3], m, n, grouped || number % 4 == 0 ? 1 : batch);
    struct operand d = make(t, d_format, m, gate == BSM_GATE_NONE ? n : n / 2, batch);
    operand_fill(t, &a, true), operand_fill(t, &b, true), operand_fill(t, &cc, false);
    if (number % 2 == 0) a.m.tensor_scale = &x.scale_a, a.m.tensor_scale_use = BSM_TENSOR_SCALE_DIVIDES;
    if (number % 3 == 0) b.m.tensor_scale = &x.scale_b;
    if (number % 4 == 1) d.m.tensor_scale = &x.scale_d, d.m.tensor_scale_use = (bsm_tensor_scale_use)(number / 4 % 2);

    bsm_matmul call = { .struct_size = sizeof call, .gate = gate,
                        .activation = (bsm_activation)(number % BSM_ACT_COUNT) };
    if (call.activation == BSM_ACT_SWIGLU_CLAMPED && gate == BSM_GATE_NONE) call.activation = BSM_ACT_SILU;
    struct run run = { .a = &a, .b = &b, .d = &d };
    const int64_t matrices = grouped ? 3 : batch;
    if (number % 7 != 0) call.alpha = x.alpha, call.alpha_per = (bsm_per)(number % BSM_PER_COUNT);
    if (call.alpha_per == BSM_PER_COLUMN && n > 64) call.alpha_per = BSM_PER_TENSOR;
    run.alphas = count_of(call.alpha_per, m, n, matrices);
    if (number % 3 != 2) call.beta = &x.beta, run.c = &cc;
    if (number % 4 != 3) {
        call.bias = x.bias, call.bias_type = BSM_REAL_FP32, call.bias_per = number % 2 ? BSM_PER_ROW : BSM_PER_COLUMN;
        call.bias_batch_pitch = number % 3 == 1 && !(grouped && call.bias_per == BSM_PER_ROW) ? 40 : 0;
        run.biases = 256;
    }
    if (number % 2 == 0) call.amax = &x.amax;
    if (grouped) {
        x.group_rows[0] = m / 3, x.group_rows[1] = 0, x.group_rows[2] = m - m / 3;
        call.groups = 3, call.group_rows = x.group_rows;
    }
    call.d_nonfinite = (bsm_nonfinite)(number / 2 % 2);
    call.d_no_saturate = (d_format == BSM_FORMAT_E4M3 || d_format == BSM_FORMAT_E5M2) && number % 3 == 1;
    run.call = call;
    char what[200];
    snprintf(what, sizeof what, "number %d: D %s %s, %dx%dx%d, batch %d, groups %d, gate %d, activation %d", number,
             bsm_format_get((int)d_format)->name, bsm_layout_name((int)d.m.scale_layout.kind), (int)m, (int)n, (int)k,
             (int)batch, (int)call.groups, (int)gate, (int)call.activation);
    run_both(t, c, &run, what);
    operand_free(&a), operand_free(&b), operand_free(&cc), operand_free(&d);
}

static void every_output_format(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    const int kernel = kernel_number(c.gpu, simt_kernel(), BSM_MXFP8_E4M3, BSM_NVFP4);
    CHECK_OR_RETURN(t, kernel >= 0 && bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
    int number = 0;
    for (int repeat = 0; repeat < 6; repeat++)
        for (int format = 1; format < BSM_FORMAT_COUNT; format++) {
            const bsm_format_info *info = bsm_format_get(format);
            if (info->block != 0 || info->bits_per_element >= 8)          /* else refused (test_rules) */
                random_product(t, &c, (bsm_format)format, number++);
        }
    contexts_close(&c);
}

/* NaN and infinities reach amax, activations and blocks. */
static void special_numbers(struct test *t)
{
    static const bsm_format d_formats[] = { BSM_FORMAT_FP32, BSM_FORMAT_BF16, BSM_FORMAT_FP16, BSM_FORMAT_E4M3,
                                            BSM_FORMAT_E5M2, BSM_MXFP4,       BSM_NVFP4 };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (int i = 0; i < 14; i++) {
        struct operand a = make(t, BSM_FORMAT_BF16, 9, 16, 1), b = make(t, BSM_FORMAT_BF16, 68, 16, 1),
                       d = make(t, d_formats[i % 7], 9, 68, 1);
        float amax = -1;
        operand_fill(t, &a, true), operand_fill(t, &b, true);
        (void)bsm_matrix_set_code(&a.m, 0, 2, 3, 0x7fc0);
        (void)bsm_matrix_set_code(&a.m, 0, 4, 5, 0x7f80);
        (void)bsm_matrix_set_code(&b.m, 0, 7, 5, 0xff80);
        const struct run run = { .a = &a,
                                 .b = &b,
                                 .d = &d,
                                 .call = { .struct_size = sizeof(bsm_matmul),
                                           .amax = &amax,
                                           .activation = (bsm_activation)(i % 5),
                                           .d_nonfinite = (bsm_nonfinite)(i / 7) } };
        char what[64];
        snprintf(what, sizeof what, "special numbers to %s, activation %d", bsm_format_get((int)d_formats[i % 7])->name,
                 i % 5);
        const int kernel = kernel_number(c.gpu, simt_kernel(), BSM_FORMAT_BF16, BSM_FORMAT_BF16);
        CHECK(t, bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
        run_both(t, &c, &run, what);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

/* Gates that are computed in fp32 where that tells the bf16 number: among so many are some near the middle of two, and
 * some beyond its reach. */
static void gates_to_bf16(struct test *t)
{
    enum { M = 24, N = 256, K = 8 };
    static const bsm_activation activations[] = { BSM_ACT_SWIGLU_CLAMPED, BSM_ACT_SILU };
    const float alphas[] = { 0.7f, 40.0f };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    const int kernel = kernel_number(c.gpu, simt_kernel(), BSM_FORMAT_BF16, BSM_FORMAT_BF16);
    CHECK_OR_RETURN(t, kernel >= 0 && bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
    for (int i = 0; i < 16; i++) {
        const struct shape of_a = { .format = BSM_FORMAT_BF16, .rows = M, .columns = K },
                           of_b = { .format = BSM_FORMAT_BF16, .rows = N, .columns = K },
                           of_d = { .format = BSM_FORMAT_BF16, .rows = M, .columns = N / 2 - i / 8 };
        struct operand a = operand_make(&of_a, 0xff), b = operand_make(&of_b, 0xff), d = operand_make(&of_d, 0xff);
        uint16_t bias[N];
        b.m.rows -= i / 8 * 2;                    /* a row whose last columns are no whole eight */
        operand_fill(t, &a, false), operand_fill(t, &b, false);
        (void)bsm_matrix_set_code(&a.m, 0, 3, 5, 0x7fc0);          /* NaN and infinities */
        (void)bsm_matrix_set_code(&a.m, 0, 6, 5, 0x7f80);
        (void)bsm_matrix_set_code(&a.m, 0, 9, 5, 0x0010);
        for (int j = 0; j < N; j++) bias[j] = (uint16_t)(rnd_below(t, 2) << 15 | (0x3e00 + rnd_below(t, 0x200)));
        const struct run run = { .a = &a, .b = &b, .d = &d, .alphas = 1, .biases = i / 4 % 2 == 0 ? N : 0,
                                 .call = { .struct_size = sizeof(bsm_matmul), .alpha = &alphas[i / 4 % 2],
                                           .bias = i / 4 % 2 == 0 ? bias : NULL, .bias_type = BSM_REAL_BF16,
                                           .bias_per = BSM_PER_COLUMN, .activation = activations[i % 2],
                                           .gate = (bsm_gate)(1 + i / 2 % 2) } };
        char what[80];
        snprintf(what, sizeof what, "gate %d, activation %d, number %d", (int)run.call.gate, (int)run.call.activation,
                 i);
        run_both(t, &c, &run, what);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

/* What gate and up give in double, and how far its fp32 number is from the middle of two bf16 numbers, in units of the
 * last place. */
static int from_middle(bsm_activation activation, float gate, float up)
{
    const double g = gate > 7 && activation == BSM_ACT_SWIGLU_CLAMPED ? 7 : (double)gate;
    const float d = (float)(activation == BSM_ACT_SILU ? g / (1 + exp(-g)) * (double)up
                                                       : g / (1 + exp(-1.702 * g)) * ((double)up + 1));
    uint32_t bits;
    memcpy(&bits, &d, sizeof bits);
    return abs((int)(bits & 0xffff) - 0x8000);
}

/* A number of fp32 as a row of three bf16 numbers that add up to it. */
static void set_row(struct operand *b, int64_t row, float value)
{
    for (int i = 0; i < 3; i++) {
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits &= 0xffff0000;
        (void)bsm_matrix_set_code(&b->m, 0, row, i, bits >> 16);
        float part;
        memcpy(&part, &bits, sizeof part);
        value -= part;
    }
}

/* Gates whose number in double lies within three units of fp32 of the middle of two bf16 numbers: fp32's is as often on
 * the other side. */
static void gates_near_the_middle(struct test *t)
{
    enum { M = 2, N = 128, K = 8 };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    const int kernel = kernel_number(c.gpu, simt_kernel(), BSM_FORMAT_BF16, BSM_FORMAT_BF16);
    CHECK_OR_RETURN(t, kernel >= 0 && bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
    for (int i = 0; i < 4; i++) {
        const bsm_activation activation = i % 2 == 0 ? BSM_ACT_SWIGLU_CLAMPED : BSM_ACT_SILU;
        const bsm_gate gate = i / 2 == 0 ? BSM_GATE_SPLIT : BSM_GATE_INTERLEAVED;
        struct operand a = make(t, BSM_FORMAT_BF16, M, K, 1), b = make(t, BSM_FORMAT_BF16, N, K, 1),
                       d = make(t, BSM_FORMAT_BF16, M, N / 2, 1);
        for (int k = 0; k < K; k++) {
            for (int row = 0; row < M; row++) (void)bsm_matrix_set_code(&a.m, 0, row, k, k < 3 ? 0x3f80 : 0);
            for (int row = 0; row < N; row++) (void)bsm_matrix_set_code(&b.m, 0, row, k, 0);
        }
        for (int j = 0; j < N / 2; j++) {
            float g, up;
            do {
                g = (float)((double)rnd_below(t, 1 << 24) * 0x1p-20 - 8);
                up = (float)((double)rnd_below(t, 1 << 24) * 0x1p-21 - 4);
            } while (from_middle(activation, g, up) > 3);
            set_row(&b, gate == BSM_GATE_SPLIT ? j : 2 * j, g);
            set_row(&b, gate == BSM_GATE_SPLIT ? N / 2 + j : 2 * j + 1, up);
        }
        const struct run run = {
            .a = &a,
            .b = &b,
            .d = &d,
            .call = { .struct_size = sizeof(bsm_matmul), .activation = activation, .gate = gate },
        };
        char what[80];
        snprintf(what, sizeof what, "gate %d, activation %d, near the middle", (int)gate, (int)activation);
        run_both(t, &c, &run, what);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

/* Biases of groups and of matrices of a batch, in rows of three eights: neighbours of a warp lie in several rows, and a
 * group may have none.  Where a GPU has few processors (CUDASIM_SMS), threads of the one with many rows take several
 * eights. */
static void gates_of_groups(struct test *t)
{
    enum { N = 48, K = 8, GROUPS = 4 };
    static const int64_t few_rows[GROUPS] = { 5, 0, 40, 3 }, many_rows[GROUPS] = { 5, 0, 740, 3 };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    const int kernel = kernel_number(c.gpu, simt_kernel(), BSM_FORMAT_BF16, BSM_FORMAT_BF16);
    CHECK_OR_RETURN(t, kernel >= 0 && bsm_context_force_kernel(c.gpu, kernel) == BSM_OK);
    for (int i = 0; i < 8; i++) {
        const bool grouped = i < 4;
        const int64_t *group_rows = i == 3 ? many_rows : few_rows;
        const int64_t m = i == 3 ? 748 : grouped ? 48 : 11, batch = grouped ? 1 : 3;
        struct operand a = make(t, BSM_FORMAT_BF16, m, K, batch),
                       b = make(t, BSM_FORMAT_BF16, N, K, grouped ? GROUPS : batch),
                       d = make(t, BSM_FORMAT_BF16, m, N / 2, batch);
        uint16_t bias[GROUPS * N];
        operand_fill(t, &a, false), operand_fill(t, &b, false);
        for (int j = 0; j < GROUPS * N; j++)
            bias[j] = (uint16_t)(rnd_below(t, 2) << 15 | (0x3e00 + rnd_below(t, 0x200)));
        const struct run run = { .a = &a, .b = &b, .d = &d, .biases = GROUPS * N,
                                 .call = { .struct_size = sizeof(bsm_matmul), .bias = bias, .bias_type = BSM_REAL_BF16,
                                           .bias_per = BSM_PER_COLUMN, .bias_batch_pitch = N,
                                           .groups = grouped ? GROUPS : 0, .group_rows = grouped ? group_rows : NULL,
                                           .activation = i % 2 == 0 ? BSM_ACT_SWIGLU_CLAMPED : BSM_ACT_SILU,
                                           .gate = i / 2 % 2 == 0 ? BSM_GATE_SPLIT : BSM_GATE_INTERLEAVED } };
        char what[80];
        snprintf(what, sizeof what, "gate %d, activation %d, %d groups", (int)run.call.gate, (int)run.call.activation,
                 (int)run.call.groups);
        run_both(t, &c, &run, what);
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_output_format), TEST(special_numbers), TEST(gates_to_bf16),
                                             TEST(gates_near_the_middle), TEST(gates_of_groups) };
    return TEST_MAIN(argc, argv, cases);
}
