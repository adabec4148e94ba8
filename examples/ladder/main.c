/* ladder: the same block-scaled product in steps, each a kernel of its own.  docs/ladder.md walks through them. */
#include "counts.h"
#include "device.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const steps[LADDER_STEPS] = {
    "scales row-major, through registers into tensor memory", "scales in contiguous tiles, through registers",
    "scales packed as 128x4, by TMA, through registers",      "scales packed as 128x4, by TMA and tcgen05.cp",
    "as step 4, software-pipelined and persistent",
};

struct options {
    int step;                           /* 0: all */
    const struct ladder_format *format; /* NULL: all */
    int64_t m, n, k;
    bool whole, normal; /* data: both without --data */
    bool list, verify, bench;
    const char *kernels;
};

static const char usage[] =
    "usage: ladder [--list] [--step N] [--format NAME] [--m M] [--n N] [--k K] [--data KIND]\n"
    "              [--verify] [--bench] [--kernels FOLDER]\n"
    "  D = (A x SA)(B x SB)^T by steps that each do one thing better, on a GPU with tensor memory (sm_100a).\n"
    "  --list     steps and formats\n"
    "  --step     1 to 5; without: all\n"
    "  --format   mxfp8, mxfp4, nvfp4 or mxfp8xmxfp4; without: all\n"
    "  --m, --n, --k   256, 512, 512; K is a multiple of 128 (mxfp4, nvfp4: of 256)\n"
    "  --data     whole (numbers whose product is exact) or normal; without: both\n"
    "  --verify   against the exact product (without --bench: done anyway)\n"
    "  --bench    TFLOP/s; on cudasim counts of what was executed, and no time\n"
    "  --kernels  the folder of step1.fatbin, ... (or step1.ptx, ...)\n"
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

static struct options read_options(int argc, char **argv)
{
    static const struct option known[] = { { "list", 0, NULL, 'l' },   { "step", 1, NULL, 's' },  { "format", 1, NULL, 'f' },
                                           { "m", 1, NULL, 'm' },      { "n", 1, NULL, 'n' },     { "k", 1, NULL, 'k' },
                                           { "verify", 0, NULL, 'v' }, { "bench", 0, NULL, 'b' }, { "kernels", 1, NULL, 'K' },
                                           { "data", 1, NULL, 'd' },   { "help", 0, NULL, 'h' },  { NULL, 0, NULL, 0 } };
    struct options o = { .m = 256, .n = 512, .k = 512, .whole = true, .normal = true, .kernels = LADDER_KERNELS_FOLDER };
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
        case 'v': o.verify = true; break;
        case 'b': o.bench = true; break;
        case 'K': o.kernels = optarg; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fputs(usage, stderr); exit(2);
        }
    if (optind < argc) wrong_usage("not understood: ", argv[optind]);
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

static int64_t verify(const struct device *device, bsm_context *context, struct loaded *x, int step)
{
    device_clear(device, x);
    device_launch(device, x, step);
    float *d = device_result(device, x);
    const int64_t wrong = problem_verify(x->problem, context, d, x->d_pitch);
    free(d);
    return wrong;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of a launch: as many as take a quarter of a second, behind as many that only warm up. */
static double seconds(const struct device *device, struct loaded *x, int step)
{
    int launches = 1;
    double begin, took;
    do {
        begin = now();
        for (int i = 0; i < launches; i++) device_launch(device, x, step);
        device_wait(device, "the product");
        took = now() - begin;
        if (took < 0.25) launches *= 2;
    } while (took < 0.25);
    begin = now();
    for (int i = 0; i < launches; i++) device_launch(device, x, step);
    device_wait(device, "the product");
    return (now() - begin) / launches;
}

static void bench(const struct device *device, struct loaded *x, int step)
{
    const struct problem *p = x->problem;
    if (device->simulated) {
        device_launch(device, x, step);
        device_wait(device, "the product");
        counts_print();
        return;
    }
    const double time = seconds(device, x, step);
    printf("    %.2f us, %.1f TFLOP/s\n", time * 1e6, 2e-12 * (double)p->m * (double)p->n * (double)p->k / time);
}

/* Returns how many problems came out wrong. */
static int run_format(const struct device *device, bsm_context *context, const struct options *o,
                      const struct ladder_format *format)
{
    const int last = o->step == 0 ? LADDER_STEPS : o->step;
    int wrong = 0;
    for (enum data data = WHOLE_NUMBERS; data <= NORMAL_NUMBERS; data++) {
        struct problem problem;
        struct loaded x;
        if (!(data == WHOLE_NUMBERS ? o->whole : o->normal)) continue;
        problem_make(&problem, context, format, o->m, o->n, o->k, data);
        device_load(device, &problem, &x);
        for (int step = o->step == 0 ? 1 : o->step; step <= last; step++) {
            const int64_t differ = o->verify ? verify(device, context, &x, step) : 0;
            printf("step %d  %-12s %lld x %lld x %lld, %s numbers", step, format->name, (long long)o->m, (long long)o->n,
                   (long long)o->k, data == WHOLE_NUMBERS ? "whole" : "normal");
            printf("%s\n", !o->verify ? "" : differ == 0 ? ": right" : ": WRONG");
            if (o->bench) bench(device, &x, step);
            wrong += differ != 0;
        }
        device_unload(device, &x);
        problem_free(&problem);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv);
    struct device device;
    bsm_context *context;
    int wrong = 0;
    if (o.list) return list();
    if (bsm_context_create(NULL, &context) != BSM_OK) stop("%s", bsm_last_error());
    if (o.bench) counts_begin();
    device_open(&device, o.kernels);
    printf("%s%s, %d multiprocessors\n", device.simulated ? "simulated: " : "", device.name, device.processors);
    for (int f = 0; f < LADDER_FORMATS; f++)
        if (o.format == NULL || o.format == &ladder_formats[f]) wrong += run_format(&device, context, &o, &ladder_formats[f]);
    bsm_context_destroy(context);
    return wrong == 0 ? 0 : 1;
}
