/* blockscale matmul: two matrices from files, quantized or as they are stored, multiplied, and written. */
#include "cli/machine/device.h"
#include "matmul.h"

#include <stdlib.h>
#include <string.h>

static const char *const per_names[] = { "column", "row", NULL };
static const char *per_name(int value) { return value >= 0 && value < 2 ? per_names[value] : NULL; }
static int per_from_name(const char *name) { return cli_name_index(per_names, name); }
static const struct cli_choices bias_pers = { per_name, per_from_name, 0, 2 };

static const struct matmul_settings defaults = { .alpha = 1, .beta = 0, .d_tensor_scale = 1,
                                                 .d_format = BSM_FORMAT_FP32 };

static const struct cli_option options[] = {
    { "A", 0, NULL,
      "A.npy, M x K; or a note of blockscale quantize; or random:MxK; or a weight in a checkpoint, "
      "CHECKPOINT:WEIGHT (CHECKPOINT:WEIGHT[3] of a batch)",
      CLI_TEXT(struct matmul_settings, a), .required = true },
    { "B", 0, NULL,
      "B.npy, N x K: its rows are the columns of the product, as in the weights of a linear layer; or a note; "
      "or random:NxK; or CHECKPOINT:WEIGHT",
      CLI_TEXT(struct matmul_settings, b), .required = true },
    { "--output", 'o', "D", "D.npy, M x N; of block formats D.codes.npy, D.scales.npy, D.json",
      CLI_TEXT(struct matmul_settings, output), .required = true },
    { "--format", 'f', "FORMAT", "what A and B are quantized to", CLI_FORMAT(struct matmul_settings, format) },
    { "--a-format", 0, "FORMAT", "of A, if it is another", CLI_FORMAT(struct matmul_settings, a_format) },
    { "--b-format", 0, "FORMAT", "of B, if it is another", CLI_FORMAT(struct matmul_settings, b_format) },
    { "--recipe", 0, "RECIPE",
      "how a block's scale follows from its largest number; rceil unless given, of mxfp4 too, for which blockscale "
      "quantize takes mse; nearest for nvfp4",
      CLI_RECIPE(struct matmul_settings, recipe) },
    { "--tensor-scale", 0, "T",
      "of A and B: none, computed, or a number; computed for nvfp4, none for the others unless given",
      CLI_TENSOR_SCALE(struct matmul_settings, tensor_scale) },
    { "--layout", 0, "LAYOUT", "where the scales of A and B lie", CLI_LAYOUT(struct matmul_settings, layout) },
    { "--a-major", 0, "MAJOR", "A's codes lie by rows, k, or by columns, mn",
      CLI_MAJOR(struct matmul_settings, a_major) },
    { "--b-major", 0, "MAJOR", "B's: mn is K x N", CLI_MAJOR(struct matmul_settings, b_major) },
    { "--transpose-b", 0, NULL, "B.npy is K x N", CLI_FLAG(struct matmul_settings, transpose_b) },
    { "--a-type", 0, "TYPE", "what A.npy holds: fp64 is rounded to fp32, bf16 reads uint16 too",
      CLI_CHOICE(struct matmul_settings, a_type, &cli_types) },
    { "--b-type", 0, "TYPE", "what B.npy holds", CLI_CHOICE(struct matmul_settings, b_type, &cli_types) },
    { "--alpha", 0, "NUMBER", "a factor on the product", CLI_FLOAT(struct matmul_settings, alpha) },
    { "--beta", 0, "NUMBER", "a factor on C", CLI_FLOAT(struct matmul_settings, beta) },
    { "--c", 0, "C.npy", "M x N, fp32, fp16 or bf16: beta times it is added", CLI_TEXT(struct matmul_settings, c) },
    { "--bias", 0, "BIAS.npy", "N numbers that are added", CLI_TEXT(struct matmul_settings, bias) },
    { "--bias-per", 0, "WHAT", "or M numbers, one for each row",
      CLI_CHOICE(struct matmul_settings, bias_per, &bias_pers) },
    { "--activation", 0, "NAME", "of the sum", CLI_ACTIVATION(struct matmul_settings, activation) },
    { "--gate", 0, "WHAT", "half of B's rows are gates: D has N/2 columns, activation(gate) * up",
      CLI_GATE(struct matmul_settings, gate) },
    { "--d-type", 0, "FORMAT", "of D, fp32 unless given", CLI_FORMAT(struct matmul_settings, d_format) },
    { "--d-recipe", 0, "RECIPE", "of D, if it has block scales", CLI_RECIPE(struct matmul_settings, d_recipe) },
    { "--d-layout", 0, "LAYOUT", "where the scales of D lie", CLI_LAYOUT(struct matmul_settings, d_layout) },
    { "--d-tensor-scale", 0, "NUMBER", "D's codes hold the result divided by it",
      CLI_FLOAT(struct matmul_settings, d_tensor_scale) },
    { "--device", 0, "NAME",
      "where the product is made: cpu, cuda or hip (the first GPU); A, B and D are copied there and back",
      CLI_DEVICE(struct matmul_settings, device) },
    { "--compute", 0, "HOW",
      "exact; or, then not compared with the exact product, fast: Hopper may requantize MXFP8 and MXFP6 to FP8; or "
      "tf32: Blackwell may cut fp32 to it",
      CLI_COMPUTE(struct matmul_settings, compute) },
    { "--order", 0, "HOW",
      "of sums: k, the same for every M and N; any other; portable, the same everywhere; split_k, for weights "
      "prepacked on Hopper",
      CLI_ORDER(struct matmul_settings, order) },
    { "--check", 0, NULL, "compare with the exact product, however long it takes; small products are compared anyway",
      CLI_FLAG(struct matmul_settings, check) },
    { "--no-check", 0, NULL, "do not", CLI_FLAG(struct matmul_settings, no_check) },
    { "--verbose", 'v', NULL, "all that the plan says of the kernel", CLI_FLAG(struct matmul_settings, verbose) },
    { .name = NULL }
};

/* Epilogue --------------------------------------------------------------------------------------------------------- */

static int add_c(struct cli *cli, struct matmul_job *job)
{
    const struct matmul_settings *s = job->settings;
    if ((s->c != NULL) != (s->beta < 0 || s->beta > 0 || s->beta != s->beta))
        return cli_wrong_usage(cli, s->c != NULL ? "--c without --beta: C is not read when beta is 0"
                                                 : "--beta without --c: a C is missing");
    if (s->c == NULL) return CLI_DONE;
    const int result = cli_read_real(cli, s->c, CLI_TYPE_AUTO, false, 2, &job->c);
    if (result != CLI_DONE) return result;
    job->c_matrix = cli_real_matrix(&job->c);
    job->product.c = &job->c_matrix;
    job->product.beta = &s->beta;
    return CLI_DONE;
}

static int add_bias(struct cli *cli, struct matmul_job *job)
{
    const struct matmul_settings *s = job->settings;
    if (s->bias == NULL) return CLI_DONE;
    const int result = cli_read_vector(cli, s->bias, CLI_TYPE_AUTO, &job->bias);
    if (result != CLI_DONE) return result;
    const bool per_row = s->bias_per == 1;
    const int64_t wanted = per_row ? job->product.a->rows : job->product.b->rows;
    if (job->bias.columns != wanted)
        return cli_bad_input(cli, "%s: has %lld numbers; one for each of the %lld %s is wanted", s->bias,
                             (long long)job->bias.columns, (long long)wanted, per_row ? "rows of A" : "rows of B");
    job->product.bias = job->bias.data;
    job->product.bias_type = job->bias.type;
    job->product.bias_per = per_row ? BSM_PER_ROW : BSM_PER_COLUMN;
    return CLI_DONE;
}

static int add_d(struct cli *cli, struct matmul_job *job)
{
    const struct matmul_settings *s = job->settings;
    const int64_t n = job->product.b->rows, columns = s->gate == BSM_GATE_NONE ? n : n / 2;
    if (!(s->d_tensor_scale > 0))
        return cli_wrong_usage(cli, "--d-tensor-scale %g: a number above 0 is wanted", (double)s->d_tensor_scale);
    const int result =
        cli_quantized_new(cli, s->d_format, BSM_PACKING_DEFAULT, s->d_layout, job->product.a->rows, columns, &job->d);
    if (result != CLI_DONE) return result;
    if (s->d_tensor_scale < 1 || s->d_tensor_scale > 1) {
        job->d.tensor_scale = s->d_tensor_scale;
        job->d.matrix.tensor_scale = &job->d.tensor_scale;
    }
    job->product.d = &job->d.matrix;
    job->product.d_recipe = s->d_recipe;
    return CLI_DONE;
}

static int describe(struct cli *cli, struct matmul_job *job)
{
    const struct matmul_settings *s = job->settings;
    job->product = (bsm_matmul){ .struct_size = sizeof job->product,
                                 .a = &job->a.quantized.matrix,
                                 .b = &job->b.quantized.matrix,
                                 .alpha = &s->alpha,
                                 .activation = s->activation,
                                 .gate = s->gate,
                                 .amax = &job->amax,
                                 .compute = s->compute,
                                 .order = s->order };
    int result = add_c(cli, job);
    if (result == CLI_DONE) result = add_bias(cli, job);
    if (result == CLI_DONE) result = add_d(cli, job);
    return result;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

/* Once, and again while that is quick: the fastest of up to 5 runs within a quarter of a second. */
static bsm_status run_plan(bsm_context *context, const bsm_plan *plan, struct matmul_job *job,
                           const bsm_matmul *product, void *workspace)
{
    const double start = cli_seconds();
    for (job->runs = 0; job->runs < 5 && (job->runs == 0 || cli_seconds() - start < 0.25); job->runs++) {
        const double processor = cli_processor_seconds(), before = cli_seconds();
        bsm_status status = bsm_plan_run(plan, product, workspace, bsm_plan_workspace_bytes(plan));
        if (status == BSM_OK) status = bsm_context_synchronize(context);
        const double seconds = cli_seconds() - before;
        if (status != BSM_OK) return status;
        if (job->runs > 0 && seconds >= job->seconds) continue;
        job->seconds = seconds;
        job->processor_seconds = cli_processor_seconds() - processor;
    }
    return BSM_OK;
}

static bsm_status run_on_gpu(const bsm_plan *plan, struct matmul_job *job, struct device_product *device)
{
    void *workspace = NULL;
    bsm_status status = device_product_allocate(device, bsm_plan_workspace_bytes(plan), &workspace);
    if (status == BSM_OK) status = run_plan(job->gpu, plan, job, &device->call, workspace);
    return status == BSM_OK ? device_product_read(device) : status;
}

static int multiply_on_gpu(struct cli *cli, struct matmul_job *job)
{
    struct device_product device;
    bsm_plan *plan = NULL;
    bsm_status status = device_product_create(job->gpu, &job->product, &device);
    if (status == BSM_OK) status = bsm_plan_create(job->gpu, &device.call, &plan);
    if (status == BSM_OK) bsm_plan_describe(plan, job->kernel, sizeof job->kernel);
    if (status == BSM_OK) status = run_on_gpu(plan, job, &device);
    const int result = status == BSM_OK ? CLI_DONE : cli_library_failed(cli, NULL, status);
    bsm_plan_destroy(plan);
    device_product_free(&device);
    return result;
}

static int multiply(struct cli *cli, struct matmul_job *job)
{
    bsm_plan *plan;
    if (job->gpu != NULL) return multiply_on_gpu(cli, job);
    bsm_status status = bsm_plan_create(cli->context, &job->product, &plan);
    if (status != BSM_OK) return cli_library_failed(cli, NULL, status);
    bsm_plan_describe(plan, job->kernel, sizeof job->kernel);
    void *workspace = cli_memory(cli, (int64_t)bsm_plan_workspace_bytes(plan), 1);
    status = run_plan(cli->context, plan, job, &job->product, workspace);
    free(workspace);
    bsm_plan_destroy(plan);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, NULL, status);
}

static int store(struct cli *cli, const struct matmul_job *job)
{
    const struct matmul_settings *s = job->settings;
    const int64_t shape[2] = { job->d.matrix.rows, job->d.matrix.columns };
    static const bsm_npy_type types[BSM_FORMAT_COUNT] = { [BSM_FORMAT_E4M3] = BSM_NPY_BYTES,
                                                          [BSM_FORMAT_E5M2] = BSM_NPY_BYTES,
                                                          [BSM_FORMAT_BF16] = BSM_NPY_WORDS,
                                                          [BSM_FORMAT_FP16] = BSM_NPY_FP16,
                                                          [BSM_FORMAT_FP32] = BSM_NPY_FP32 };
    if (bsm_format_get((int)s->d_format)->scale == BSM_UNSCALED && job->d.matrix.tensor_scale == NULL)
        return cli_output_npy(cli, s->output, types[s->d_format], 2, shape, job->d.matrix.data);
    char *prefix = cli_without_ending(cli, s->output, cli_ends_with(s->output, ".json") ? ".json" : ".npy");
    const int result = cli_store_quantized(cli, prefix, &job->d, cli_recipe_used(s->d_format, s->d_recipe));
    free(prefix);
    return result;
}

/* Numbers of an operand that came from a file; of codes that lie there they are made, once more than the product
 * needs. */
static int look_at_operand(struct cli *cli, const char *letter, const struct matmul_operand *o)
{
    char name[4096 + 8];
    struct silent found;
    snprintf(name, sizeof name, "%s (%s)", letter, o->path);
    if (!o->stored) {
        const bsm_real_matrix source = cli_real_view(&o->real);
        const bsm_quantize_options how = { .struct_size = sizeof how };
        found = silent_quantized(&source, &how, &o->stats);
        silent_warn_quantized(cli, name, &found, o->quantized.matrix.format, &o->stats);
        return CLI_DONE;
    }
    const int result = silent_matrix(cli, &o->quantized.matrix, &found);
    if (result == CLI_DONE) silent_warn(cli, name, &found, "", o->quantized.matrix.format);
    return result;
}

/* NaN of an operand spreads to D unless an activation ends it: codes are looked at only where it may have. */
static int look_at_numbers(struct cli *cli, struct matmul_job *job)
{
    const struct silent *d = &job->d_silent;
    int result = silent_matrix(cli, &job->d.matrix, &job->d_silent);
    const bool suspect = d->nan > 0 || d->infinite > 0 || job->settings->activation != BSM_ACT_NONE;
    if (result == CLI_DONE && (suspect || !job->a.stored)) result = look_at_operand(cli, "A", &job->a);
    if (result == CLI_DONE && (suspect || !job->b.stored)) result = look_at_operand(cli, "B", &job->b);
    if (result == CLI_DONE) silent_warn(cli, "D", d, "", job->d.matrix.format);
    return result;
}

static int run_job(struct cli *cli, struct matmul_job *job)
{
    int result = matmul_read_operands(cli, job);
    if (result == CLI_DONE) result = describe(cli, job);
    if (result == CLI_DONE) result = multiply(cli, job);
    if (result == CLI_DONE && matmul_wants_check(job)) result = matmul_check(cli, job);
    if (result == CLI_DONE) result = look_at_numbers(cli, job);
    if (result == CLI_DONE) result = store(cli, job);
    if (result == CLI_DONE) matmul_report(cli, job);
    return result == CLI_DONE && job->check.beyond > 0 ? CLI_DIFFERS : result;
}

static int run(struct cli *cli, const void *given)
{
    const struct matmul_settings *s = given;
    if (s->bias == NULL && s->bias_per == 1)
        return cli_wrong_usage(cli, "--bias-per without --bias: there is no bias to lay out");
    if (s->d_layout.kind != BSM_LAYOUT_LINEAR && bsm_format_get((int)s->d_format)->block == 0)
        return cli_wrong_usage(cli, "--d-layout: %s has no block scales that could lie anywhere; "
                                    "--d-type names a format that has",
                               bsm_format_get((int)s->d_format)->name);
    if (s->check && s->compute != BSM_COMPUTE_EXACT)
        return cli_wrong_usage(
            cli, "--check with --compute %s: what is rounded by wish is not held to sums of exact products",
            bsm_compute_name((int)s->compute));
    if (s->check && s->no_check) return cli_wrong_usage(cli, "--check and --no-check: give one of them");
    if (s->format != BSM_FORMAT_NONE && s->a_format != BSM_FORMAT_NONE && s->b_format != BSM_FORMAT_NONE)
        return cli_wrong_usage(cli, "--format, --a-format and --b-format: the first is for nobody; leave one out");
    struct matmul_job *job = cli_memory(cli, 1, (int64_t)sizeof *job);
    job->settings = s;
    int result = device_open(cli, s->device, &job->gpu);
    if (result == CLI_DONE) result = run_job(cli, job);
    bsm_context_destroy(job->gpu);
    matmul_free_operand(cli, &job->a);
    matmul_free_operand(cli, &job->b);
    cli_real_free(cli, &job->c);
    cli_real_free(cli, &job->bias);
    cli_quantized_free(cli, &job->d);
    free(job);
    return result;
}

const struct cli_verb cli_verb_matmul = {
    .name = "matmul",
    .summary = "two matrices of .npy files or checkpoints, quantized and multiplied",
    .usage = "A.npy B.npy|CHECKPOINT:WEIGHT -o D.npy --format FORMAT [options]",
    .about =
        "D = activation(alpha A B^T + beta C + bias). A is M x K and B is N x K: blocks run along K in both. Every "
        "product of quantized numbers is exact, sums are fp32, and D is rounded once.\n"
        "A checkpoint is a .safetensors or GGUF file, an index of shards, or a folder with one of them; "
        "its quantized weights are multiplied as they lie in the mapped file, its plain ones are quantized like a "
        "matrix of an .npy file.\n"
        "Prints how much of each operand survived quantizing (signal to noise), the kernel and why it was chosen, the "
        "time, and how far the sums are from the exact ones. Exit code 1: further than fp32 sums can be.\n"
        "bf16 results are read back by np.load('D.npy').view(ml_dtypes.bfloat16), e4m3 by "
        ".view(ml_dtypes.float8_e4m3fn).",
    .example =
        "blockscale matmul random:256x512 random:128x512 -o D.npy --a-format mxfp8 --b-format nvfp4\n"
        "blockscale matmul random:64x512 random:512x32 --transpose-b -o D.npy -f mxfp4 --d-type bf16\n"
        "blockscale quantize random:128x512 -o W --format mxfp6 --layout 128x4\n"
        "blockscale matmul random:8x512 W.json -o D.npy --a-format bf16\n"
        "blockscale quantize random:128x512 -o W.safetensors --format nvfp4\n"
        "blockscale matmul random:8x512 W.safetensors:matrix -o D.npy --a-format bf16",
    .options = options,
    .defaults = &defaults,
    .settings_bytes = sizeof defaults,
    .run = run,
};
