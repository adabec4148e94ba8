/* blockscale verify: every pair of formats on every kernel of this machine against the exact product. */
#include "cli/machine/device.h"
#include "verify.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pair { bsm_format a, b; };
struct settings { struct pair pair; int kernel, device; bool quick; };
static const struct settings defaults = { .kernel = -1 };

/* "A:B", or one name for both. */
static bool parse_pair(const struct cli_option *option, const char *text, void *destination, struct cli_why *why)
{
    char name[2][64] = { "", "" };
    const char *colon = strchr(text, ':'), *second = colon != NULL ? colon + 1 : text;
    const size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    (void)option;
    if (length < sizeof name[0]) memcpy(name[0], text, length);
    if (strlen(second) < sizeof name[1]) memcpy(name[1], second, strlen(second));
    const struct pair pair = { bsm_format_from_name(name[0]), bsm_format_from_name(name[1]) };
    if (pair.a == BSM_FORMAT_NONE || pair.b == BSM_FORMAT_NONE) {
        size_t used = (size_t)snprintf(why->sentence, sizeof why->sentence, "FORMAT:FORMAT is wanted, each one of:");
        for (int i = BSM_FORMAT_NONE + 1; i < BSM_FORMAT_COUNT; i++)
            used += (size_t)snprintf(why->sentence + used, sizeof why->sentence - used, " %s", bsm_format_get(i)->name);
        return false;
    }
    memcpy(destination, &pair, sizeof pair);
    return true;
}

static int kernel_from_name(const char *name)
{
    for (int i = 0; i < VERIFY_KERNELS_MAX && bsm_kernel_name(i) != NULL; i++)
        if (strcmp(bsm_kernel_name(i), name) == 0) return i;
    return -1;
}

/* bsm_kernel_name ends with NULL, and is not asked behind it. */
static const char *kernel_name(int value)
{
    for (int i = 0; i <= value; i++)
        if (bsm_kernel_name(i) == NULL) return NULL;
    return bsm_kernel_name(value);
}

static const struct cli_choices kernels = { kernel_name, kernel_from_name, 0, VERIFY_KERNELS_MAX };

static bool serves_any(const bsm_context *context, int kernel, const struct pair *only)
{
    for (int a = 1; a <= VERIFY_FORMATS; a++)
        for (int b = 1; b <= VERIFY_FORMATS; b++) {
            if (only->a != BSM_FORMAT_NONE && ((int)only->a != a || (int)only->b != b)) continue;
            if (bsm_kernel_serves(context, kernel, (bsm_format)a, (bsm_format)b)) return true;
        }
    return false;
}

/* The kernels that this machine can run, or the one that was asked for. */
static void choose_kernels(const struct cli *cli, const struct settings *s, struct verify_report *report)
{
    for (int i = 0; i < VERIFY_KERNELS_MAX && bsm_kernel_name(i) != NULL; i++)
        if ((s->kernel < 0 || s->kernel == i)
            && serves_any(report->gpu != NULL ? report->gpu : cli->context, i, &s->pair))
            report->kernel[report->kernels++] = i;
}

/* Pairs that are given out one by one.  A product takes a GPU far less time than its host, so several threads ask
 * it. */
struct pairs {
    struct verify_report *report;
    bool progress;
    atomic_int next, code;                /* code: what to exit with */
};

/* A thread that takes pairs, with contexts of its own; gpu: NULL without one. */
struct worker { struct cli cli; bsm_context *gpu; struct pairs *pairs; pthread_t thread; };
enum { MOST_WORKERS = 8 };

/* All cases of one pair; each problem is made once for all kernels. */
static int verify_pair(struct worker *w, bsm_format a, bsm_format b)
{
    struct verify_report *report = w->pairs->report;
    bool served = false;
    int code = CLI_DONE;
    for (int i = 0; i < report->kernels; i++) {
        struct verify_result *result = &report->results[i][a - 1][b - 1];
        result->served = bsm_kernel_serves(w->gpu != NULL ? w->gpu : w->cli.context, report->kernel[i], a, b);
        served |= result->served;
    }
    for (int c = 0; c < verify_case_count && served && code == CLI_DONE; c++) {
        struct verify_problem problem;
        if (report->quick && !verify_cases[c].quick) continue;
        code = verify_problem_create(&w->cli, &problem, c, a, b, w->gpu);
        for (int i = 0; i < report->kernels && code == CLI_DONE; i++)
            if (report->results[i][a - 1][b - 1].served)
                verify_run(&w->cli, &problem, report->kernel[i], &report->results[i][a - 1][b - 1]);
        verify_problem_free(&problem);
    }
    return code;
}

static void *take_pairs(void *argument)
{
    struct worker *w = argument;
    struct pairs *pairs = w->pairs;
    const struct verify_report *report = pairs->report;
    for (int i = pairs->next++; i < VERIFY_FORMATS * VERIFY_FORMATS && pairs->code == CLI_DONE; i = pairs->next++) {
        const bsm_format a = (bsm_format)(1 + i / VERIFY_FORMATS), b = (bsm_format)(1 + i % VERIFY_FORMATS);
        if (report->only_a != BSM_FORMAT_NONE && (report->only_a != a || report->only_b != b)) continue;
        if (pairs->progress) fprintf(stderr, "\r%d of %d pairs\033[K", i, VERIFY_FORMATS * VERIFY_FORMATS);
        const int code = verify_pair(w, a, b);
        if (code != CLI_DONE) pairs->code = code;
    }
    return NULL;
}

/* Another thread beside the first, whose contexts are those of the command.  Without it the others do its work. */
static bool start_worker(struct worker *w, const struct worker *first)
{
    const bsm_context_options cpu = { .struct_size = sizeof cpu, .threads = 1 };
    const bsm_context_options gpu = { .struct_size = sizeof gpu, .backend = bsm_context_backend(first->gpu) };
    *w = (struct worker){ .cli = first->cli, .pairs = first->pairs };
    w->cli.context = NULL;
    if (bsm_context_create(&cpu, &w->cli.context) == BSM_OK && bsm_context_create(&gpu, &w->gpu) == BSM_OK &&
        pthread_create(&w->thread, NULL, take_pairs, w) == 0)
        return true;
    bsm_context_destroy(w->gpu), bsm_context_destroy(w->cli.context);
    return false;
}

static int verify_pairs(struct cli *cli, struct verify_report *report)
{
    struct pairs pairs = { .report = report, .progress = isatty(STDERR_FILENO) };
    struct worker workers[MOST_WORKERS] = { { .cli = *cli, .gpu = report->gpu, .pairs = &pairs } };
    const int threads = bsm_context_threads(cli->context);
    const int most = report->gpu == NULL || report->only_a != BSM_FORMAT_NONE ? 1
                     : threads < MOST_WORKERS                                 ? threads
                                                                              : MOST_WORKERS;
    int started = 1;
    while (started < most && start_worker(&workers[started], &workers[0])) started++;
    take_pairs(&workers[0]);
    for (int i = 1; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        bsm_context_destroy(workers[i].gpu), bsm_context_destroy(workers[i].cli.context);
    }
    if (pairs.progress) fprintf(stderr, "\r\033[K");
    return pairs.code;
}

static int run_on(struct cli *cli, const struct settings *s, bsm_context *gpu)
{
    struct verify_report report = { .gpu = gpu, .only_a = s->pair.a, .only_b = s->pair.b, .quick = s->quick };
    choose_kernels(cli, s, &report);
    if (report.kernels == 0) {
        const char *which = s->pair.a != BSM_FORMAT_NONE ? "this pair" : "any pair";
        if (s->kernel >= 0)
            cli_bad_input(cli,
                          "kernel %s does not serve %s on this machine (with the features that --cpu leaves): nothing "
                          "was compared",
                          bsm_kernel_name(s->kernel), which);
        else cli_bad_input(cli, "no kernel of this machine serves %s: nothing was compared", which);
        return CLI_NO_DEVICE;
    }
    const double start = cli_seconds();
    report.results = cli_memory(cli, report.kernels, (int64_t)sizeof *report.results);
    int code = verify_pairs(cli, &report);
    report.seconds = cli_seconds() - start;
    if (code == CLI_DONE) {
        if (cli->json) verify_report_json(cli, &report);
        else verify_report_text(cli, &report);
        code = verify_report_differs(&report) ? CLI_DIFFERS : CLI_DONE;
    }
    free(report.results);
    return code;
}

static int run(struct cli *cli, const void *given)
{
    const struct settings *s = given;
    bsm_context *gpu;
    int code = device_open(cli, s->device, &gpu);
    if (code == CLI_DONE) code = run_on(cli, s, gpu);
    bsm_context_destroy(gpu);
    return code;
}

static const struct cli_option options[] = {
    { .name = "--pair", .value = "A:B", .help = "this pair of formats alone; one name stands for both",
      .parse = parse_pair,
      .offset = CLI_FIELD(struct settings, pair, struct pair) },
    { "--kernel", 0, "NAME", "this kernel alone, by its name", CLI_CHOICE(struct settings, kernel, &kernels),
      .listed_by = "blockscale info --verbose" },
    { "--device", 0, "NAME", "whose kernels: cpu, cuda or hip (the first GPU)", CLI_DEVICE(struct settings, device) },
    { "--quick", 'q', NULL, "few and small cases: about a tenth of the time", CLI_FLAG(struct settings, quick) },
    { .name = NULL },
};

const struct cli_verb cli_verb_verify = {
    .name = "verify",
    .summary = "every pair of formats and every kernel against the exact product",
    .usage = "[options]",
    .about = "Multiplies random matrices in every pair of formats on every kernel that this machine can run, and "
             "compares each element with the exact sum (bsm_matmul_exact).\n"
             "Small integers, whose sums fp32 holds exactly, must come out bit for bit, in shapes around the sizes of "
             "tiles and blocks, in several scale layouts and packings, with NaN in all padding. Random codes must "
             "come out bit for bit as the portable order of sums gives them, also where scaled values leave fp32's "
             "range, and within gamma_n * sum |a||b| of the exact sum where they do not; kernels of matrix units, "
             "whose order is their own, within their bound. NaN and infinity must stand where the rules put them. "
             "One-term products go through all pairs of scale codes and of element codes, bit for bit.\n"
             "The first problems are what is multiplied every day: K a multiple of 64, tight rows, scales linear or as "
             "128x4. Kernels of a GPU take some problems alone: what is counted ran on the kernel that is named, and a "
             "pair of which nothing ran on it is said and agrees with nothing.\n"
             "Exit code 1 if an element differs, or a pair never ran: the first one is printed with the command that "
             "repeats it.",
    .example = "blockscale verify --quick\nblockscale verify --pair mxfp4:nvfp4\nblockscale verify --pair bf16:mxfp4 "
               "--json",
    .options = options, .defaults = &defaults, .settings_bytes = sizeof defaults, .run = run,
};
