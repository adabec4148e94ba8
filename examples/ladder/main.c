/* ladder: the same block-scaled product in steps, each a kernel of its own.  examples/ladder/README.md walks through
 * them. */
#include "counts.h"
#include "device.h"
#include "library.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const steps[LADDER_STEPS] = {
    "scales row-major, through registers into tensor memory", "scales in contiguous tiles, through registers",
    "scales packed as 128x4, by TMA, through registers",      "scales packed as 128x4, by TMA and tcgen05.cp",
    "as step 4, software-pipelined and persistent, grouped order of tiles",
    "the library's kernel: specialized warps, persistent",
};

struct options {
    int step;                           /* 0: all */
    const struct ladder_format *format; /* NULL: all */
    int64_t m, n, k;
    int64_t block_n, block_k; /* of the kernels; block_k 0: 128 bytes */
    bool all_blocks;
    bool whole, normal; /* data: both without --data */
    bool half;          /* D in fp16 */
    bool list, verify, bench;
    const char *kernels, *tile;
};

static const char usage[] =
    "usage: ladder [--list] [--step N] [--format NAME] [--m M] [--n N] [--k K] [--data KIND] [--d TYPE]\n"
    "              [--verify] [--bench] [--kernels FOLDER] [--block NxK] [--tile TILE]\n"
    "  D = (A x SA)(B x SB)^T by steps that each do one thing better, on a GPU with tensor memory (sm_100a).\n"
    "  --list     steps and formats\n"
    "  --step     1 to 6; without: all\n"
    "  --format   mxfp8, mxfp4, nvfp4, mxfp8xmxfp4 or mxfp4xmxfp8; without: all\n"
    "  --m, --n, --k   256, 512, 512; K is a multiple of 32 (mxfp8 beside mxfp4: of 128)\n"
    "  --data     whole (numbers whose product is exact) or normal; without: both\n"
    "  --d        fp32 or fp16; without: fp32\n"
    "  --verify   against the exact product (without --bench: done anyway)\n"
    "  --bench    TFLOP/s; on cudasim counts of what was executed, and no time\n"
    "  --kernels  the folder of step1.fatbin, ... (or step1.ptx, ...)\n"
    "  --block    of steps 1 to 5: 64x512 (rows of B x elements of K) or all that the folder has; without: 128 bytes\n"
    "             of a row along K and 256 rows of B\n"
    "  --tile     of step 6: another kernel of the library, such as 256x256 (a pair of CTAs); "
    "without: 128x256, that of the other steps\n"
    "example: BLOCKSCALE_LIBCUDA=lib/libcudasim.so CUDASIM_DEVICE=sm_100a bin/ladder --step 4 --format nvfp4\n";

/* ---- options ---- */

static void wrong_usage(const char *what, const char *value)
{
    fprintf(stderr, "ladder: %s%s\n%s", what, value, usage);
    exit(2);
}

static int64_t number(const char *name, const char *text, int64_t most)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 1 || value > most) {
        fprintf(stderr, "ladder: --%s %s: it is a number from 1 to %lld\n", name, text, (long long)most);
        exit(2);
    }
    return value;
}

static void read_block(struct options *o, const char *text)
{
    int n, k, end = 0;
    o->all_blocks = strcmp(text, "all") == 0;
    if (o->all_blocks) return;
    if (sscanf(text, "%dx%d%n", &n, &k, &end) != 2 || text[end] != '\0' || n < 1 || k < 1)
        wrong_usage("--block is NxK, such as 64x512, or all, not ", text);
    o->block_n = n, o->block_k = k;
}

static struct options read_options(int argc, char **argv)
{
    static const struct option known[] = {
        { "list", 0, NULL, 'l' },    { "step", 1, NULL, 's' },  { "format", 1, NULL, 'f' }, { "m", 1, NULL, 'm' },
        { "n", 1, NULL, 'n' },       { "k", 1, NULL, 'k' },     { "verify", 0, NULL, 'v' }, { "bench", 0, NULL, 'b' },
        { "kernels", 1, NULL, 'K' }, { "data", 1, NULL, 'd' },  { "tile", 1, NULL, 't' },   { "help", 0, NULL, 'h' },
        { "d", 1, NULL, 'D' },       { "block", 1, NULL, 'B' }, { NULL, 0, NULL, 0 }
    };
    struct options o = { .m = 256,
                         .n = 512,
                         .k = 512,
                         .block_n = 256,
                         .whole = true,
                         .normal = true,
                         .kernels = LADDER_KERNELS_FOLDER,
                         .tile = "128x256" };
    int c;
    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) switch (c) {
        case 'l': o.list = true; break;
        case 's': o.step = (int)number("step", optarg, LADDER_STEPS); break;
        case 'f':
            o.format = ladder_format_of(optarg);
            if (o.format == NULL) wrong_usage("no such format: ", optarg);
            break;
        case 'm': o.m = number("m", optarg, 1 << 24); break;
        case 'n': o.n = number("n", optarg, 1 << 24); break;
        case 'k': o.k = number("k", optarg, 1 << 20); break;
        case 'd':
            o.whole = strcmp(optarg, "whole") == 0, o.normal = strcmp(optarg, "normal") == 0;
            if (!o.whole && !o.normal) wrong_usage("--data is whole or normal, not ", optarg);
            break;
        case 'D':
            o.half = strcmp(optarg, "fp16") == 0;
            if (!o.half && strcmp(optarg, "fp32") != 0) wrong_usage("--d is fp32 or fp16, not ", optarg);
            break;
        case 'v': o.verify = true; break;
        case 'b': o.bench = true; break;
        case 'K': o.kernels = optarg; break;
        case 'B': read_block(&o, optarg); break;
        case 't': o.tile = optarg; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fputs(usage, stderr); exit(2);
        }
    if (optind < argc) wrong_usage("not understood: ", argv[optind]);
    if ((o.all_blocks || o.block_k != 0) && (o.step == 0 || o.step > LADDER_KERNELS))
        wrong_usage("--block wants --step, 1 to 5", "");
    if (!o.bench) o.verify = true;
    return o;
}

static int list(void)
{
    for (int i = 0; i < LADDER_STEPS; i++) printf("step %d   %s\n", i + 1, steps[i]);
    for (int i = 0; i < LADDER_FORMATS; i++) printf("format   %s\n", ladder_formats[i].name);
    return 0;
}

/* ---- what is done with a step ---- */

struct run {
    struct device *device;
    CUfunction kernels[LADDER_KERNELS];
    bsm_context *cpu, *gpu;               /* gpu: for step 6 */
    struct loaded x;
    struct library_product product;       /* of step 6 */
};

static void launch(struct run *run, int step)
{
    if (step <= LADDER_KERNELS) device_launch(run->device, &run->x, step, run->kernels[step - 1]);
    else library_launch(&run->product);
}

static int64_t verify(struct run *run, int step)
{
    device_clear(run->device, &run->x);
    launch(run, step);
    float *d = device_result(run->device, &run->x);
    const int64_t wrong = problem_verify(run->x.problem, run->cpu, d, run->x.d_pitch);
    free(d);
    return wrong;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds_of(struct run *run, int step, int launches)
{
    const double begin = now();
    for (int i = 0; i < launches; i++) launch(run, step);
    device_wait(run->device, "the product");
    return now() - begin;
}

/* As many launches as take a quarter of a second, behind as many that only warm up. */
static void bench(struct run *run, int step)
{
    const struct problem *p = run->x.problem;
    int launches = 1;
    if (run->device->simulated) {
        seconds_of(run, step, 1);
        counts_print();
        return;
    }
    while (seconds_of(run, step, launches) < 0.25) launches *= 2;
    const double time = seconds_of(run, step, launches) / launches;
    printf("    %.2f us, %.1f TFLOP/s\n", time * 1e6, 2e-12 * (double)p->m * (double)p->n * (double)p->k / time);
}

static bool run_step(struct run *run, const struct options *o, int step)
{
    const struct problem *p = run->x.problem;
    const bool right = !o->verify || verify(run, step) == 0;
    char block[48] = "";
    if (o->all_blocks || o->block_k != 0)
        snprintf(block, sizeof block, ", blocks of %d x %d", (int)p->block_n, (int)p->block_k);
    printf("step %d  %-12s %lld x %lld x %lld%s, %s numbers%s\n", step, p->format->name, (long long)p->m,
           (long long)p->n, (long long)p->k, block, p->data == WHOLE_NUMBERS ? "whole" : "normal",
           !o->verify ? ""
           : right    ? ": right"
                      : ": WRONG");
    if (o->bench) bench(run, step);
    return right;
}

static bool wants(const struct options *o, int step) { return o->step == 0 || o->step == step; }

static CUfunction kernel_of(struct run *run, const struct options *o, int step, const struct problem *p)
{
    const CUfunction kernel = device_kernel(run->device, step, p);
    if (kernel == NULL)
        stop("step %d has no kernel for %s with blocks of %d x %d in %s", step, p->format->name, (int)p->block_n,
             (int)p->block_k, o->kernels);
    return kernel;
}

/* Returns how many products came out wrong. */
static int run_problem(struct run *run, const struct options *o, struct problem *problem)
{
    int wrong = 0;
    for (int step = 1; step <= LADDER_KERNELS; step++)
        if (wants(o, step)) run->kernels[step - 1] = kernel_of(run, o, step, problem);
    problem_make(problem, run->cpu);
    device_load(run->device, problem, &run->x);
    for (int step = 1; step <= LADDER_KERNELS; step++)
        if (wants(o, step)) wrong += !run_step(run, o, step);
    if (wants(o, LADDER_STEPS)) {
        library_plan(&run->product, run->gpu, &run->x, o->tile);
        wrong += !run_step(run, o, LADDER_STEPS);
        library_free(&run->product);
    }
    device_unload(run->device, &run->x);
    problem_free(problem);
    return wrong;
}

/* Every block of which the step has a kernel. */
static int run_all_blocks(struct run *run, const struct options *o, struct problem *problem)
{
    int wrong = 0;
    for (problem->block_n = 32; problem->block_n <= 256; problem->block_n *= 2)
        for (problem->block_k = 32; problem->block_k <= 512; problem->block_k *= 2)
            if (device_kernel(run->device, o->step, problem) != NULL) wrong += run_problem(run, o, problem);
    return wrong;
}

static int run_format(struct run *run, const struct options *o, const struct ladder_format *format, enum data data)
{
    struct problem problem = { .format = format,
                               .m = o->m,
                               .n = o->n,
                               .k = o->k,
                               .data = data,
                               .d_is_half = o->half,
                               .block_n = o->block_n,
                               .block_k = o->block_k != 0 ? o->block_k : format->block_k };
    return o->all_blocks ? run_all_blocks(run, o, &problem) : run_problem(run, o, &problem);
}

static void create(bsm_backend backend, bsm_context **context)
{
    const bsm_context_options options = { .struct_size = sizeof options, .backend = backend };
    if (bsm_context_create(&options, context) != BSM_OK) stop("%s", bsm_last_error());
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv);
    struct device device;
    struct run run = { .device = &device };
    int wrong = 0;
    if (o.list) return list();
    if (o.bench) counts_begin();
    device_open(&device, o.kernels);
    create(BSM_BACKEND_CPU, &run.cpu);
    if (wants(&o, LADDER_STEPS)) create(BSM_BACKEND_CUDA, &run.gpu);
    printf("%s%s, %d multiprocessors\n", device.simulated ? "simulated: " : "", device.name, device.processors);
    for (int f = 0; f < LADDER_FORMATS; f++) {
        if (o.format != NULL && o.format != &ladder_formats[f]) continue;
        if (o.whole) wrong += run_format(&run, &o, &ladder_formats[f], WHOLE_NUMBERS);
        if (o.normal) wrong += run_format(&run, &o, &ladder_formats[f], NORMAL_NUMBERS);
    }
    bsm_context_destroy(run.gpu);
    bsm_context_destroy(run.cpu);
    return wrong == 0 ? 0 : 1;
}
