/* blockscale info: what a bug report needs. */
#include "cli/cli.h"
#include "cli/machine/machine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

struct settings { bool verbose; };

/* NAME_WIDTH: columns of the facts' names; MOST_GPUS: shown without --verbose, so that the text ends within 25
 * lines. */
enum { NAME_WIDTH = 19, MOST_GPUS = 8 };

/* One fact after another, as lines of text or members of a JSON object; all: those that only --verbose and JSON have,
 * too. */
struct facts { struct cli_json json; bool as_json, all; };

static void text_fact(struct facts *f, const char *key, const char *value)
{
    if (f->as_json) {
        cli_json_text(&f->json, key, value);
        return;
    }
    printf("%-*s", NAME_WIDTH, key);
    cli_print_wrapped(stdout, value != NULL ? value : "unknown", NAME_WIDTH, NAME_WIDTH);
}

static void number_fact(struct facts *f, const char *key, int64_t value, const char *unit)
{
    if (f->as_json) cli_json_integer(&f->json, key, value);
    else printf("%-*s%lld%s\n", NAME_WIDTH, key, (long long)value, unit);
}

static void version_fact(struct facts *f, const char *key, int version)
{
    char text[40];
    snprintf(text, sizeof text, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    text_fact(f, key, text);
}

static void system_facts(struct facts *f)
{
    struct utsname system;
    char text[512];
    if (uname(&system) == 0) {
        snprintf(text, sizeof text, "%.100s %.100s %.100s", system.sysname, system.release, system.machine);
        text_fact(f, "system", text);
    }
    text_fact(f, "cpu", machine_processor(text, sizeof text) ? text : NULL);
    number_fact(f, "cpus_online", sysconf(_SC_NPROCESSORS_ONLN), "");
    number_fact(f, "memory_mib", (int64_t)sysconf(_SC_PHYS_PAGES) / 1024 * sysconf(_SC_PAGESIZE) / 1024, " MiB");
    if (f->all) number_fact(f, "page_bytes", sysconf(_SC_PAGESIZE), " bytes");
}

static void build_facts(struct facts *f)
{
    version_fact(f, "version", bsm_version());
    if (f->all) version_fact(f, "header_version", BSM_VERSION);
#if defined(__clang__)
    text_fact(f, "compiler", "clang " __clang_version__);
#else
    text_fact(f, "compiler", "gcc " __VERSION__);
#endif
    text_fact(f, "build_type", BLOCKSCALE_BUILD_TYPE[0] != '\0' ? BLOCKSCALE_BUILD_TYPE : "none");
    text_fact(f, "sanitizers", BLOCKSCALE_SANITIZERS[0] != '\0' ? BLOCKSCALE_SANITIZERS : "none");
    text_fact(f, "cuda",
              bsm_backend_missing(BSM_BACKEND_CUDA)[0] != '\0' ? bsm_backend_missing(BSM_BACKEND_CUDA)
                                                               : "kernels in this build");
    text_fact(f, "hip",
              bsm_backend_missing(BSM_BACKEND_HIP)[0] != '\0' ? bsm_backend_missing(BSM_BACKEND_HIP)
                                                              : "kernels in this build");
    text_fact(f, "allocation", "posix_memalign, through the context's allocator");
}

static void context_facts(struct facts *f, const bsm_context *context)
{
    char text[256] = "";
    const uint32_t features = bsm_context_cpu_features(context);
    for (int bit = 0; bit < 31; bit++) {
        const char *name = (features >> bit & 1) != 0 ? bsm_cpu_feature_name((uint32_t)1 << bit) : NULL;
        if (name == NULL) continue;
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? "," : "", name);
    }
    text_fact(f, "cpu_features", text[0] != '\0' ? text : "none");
    number_fact(f, "threads", bsm_context_threads(context), "");
    static const char *const variables[] = { "BLOCKSCALE_CPU", "OMP_NUM_THREADS", "BLOCKSCALE_LIBCUDA",
                                             "BLOCKSCALE_LIBHIP", NULL };
    for (int i = 0; variables[i] != NULL; i++) {
        const char *value = getenv(variables[i]);
        if (f->all || value != NULL) text_fact(f, variables[i], value != NULL ? value : "not set");
    }
}

/* GPUs ------------------------------------------------------------------------------------------------------------- */

/* A context of GPU number `device`; NULL, with the reason as bsm_last_error, if it cannot be used. */
static bsm_context *open_gpu(bsm_backend backend, int device)
{
    const bsm_context_options options = { .struct_size = sizeof options, .backend = backend, .device = device };
    bsm_context *context = NULL;
    (void)bsm_context_create(&options, &context);
    return context;
}

static void gpu_fact(struct facts *f, bsm_backend backend, int device)
{
    bsm_device_info about = { .struct_size = sizeof about };
    char text[900], state[560];
    snprintf(state, sizeof state, "%s", f->all ? "ready, its self-test passed" : "ready");
    const bool known = bsm_device_describe(backend, device, &about) == BSM_OK;
    bsm_context *context = known ? open_gpu(backend, device) : NULL;
    if (context == NULL) snprintf(state, sizeof state, "cannot be used: %s", bsm_last_error());
    bsm_context_destroy(context);
    if (f->as_json) {
        cli_json_object(&f->json, NULL);
        cli_json_text(&f->json, "name", about.name);
        cli_json_integer(&f->json, "compute_capability", about.major * 10 + about.minor);
        cli_json_integer(&f->json, "multiprocessors", about.multiprocessors);
        cli_json_integer(&f->json, "memory_mib", about.memory_bytes >> 20);
        cli_json_integer(&f->json, "driver_version", about.driver_version);
        cli_json_text(&f->json, "backend", bsm_backend_name((int)backend));
        cli_json_text(&f->json, "state", state);
        cli_json_end(&f->json);
        return;
    }
    const bool hip = backend == BSM_BACKEND_HIP;
    const int major = hip ? about.driver_version / 10000000 : about.driver_version / 1000,
              minor = hip ? about.driver_version / 100000 % 100 : about.driver_version % 1000 / 10;
    snprintf(text, sizeof text, "%d: %s, %s %d.%d, %d %s, %lld MiB, %s %d.%d: %s", device, about.name,
             hip ? "version" : "compute capability", about.major, about.minor, about.multiprocessors,
             hip ? "CUs" : "SMs", (long long)(about.memory_bytes >> 20), hip ? "HIP" : "CUDA", major, minor, state);
    text_fact(f, "gpu", text);
}

static void backend_facts(struct facts *f, bsm_backend backend)
{
    int count = 0;
    const bool found = bsm_device_count(backend, &count) == BSM_OK;
    const int shown = f->all || count <= MOST_GPUS ? count : MOST_GPUS - 1;
    for (int i = 0; found && i < shown; i++) gpu_fact(f, backend, i);
    if (found && shown < count) printf("%-*s%d more; --verbose shows them\n", NAME_WIDTH, "gpu", count - shown);
}

/* Why there is no GPU: of HIP alone where it was asked for, since most machines have no such library. */
static void missing_fact(struct facts *f, bsm_backend backend, const char *key)
{
    int count = 0;
    if (bsm_device_count(backend, &count) == BSM_OK) return;
    if (backend == BSM_BACKEND_CUDA || f->all || getenv("BLOCKSCALE_LIBHIP") != NULL)
        text_fact(f, f->as_json ? key : "gpu", bsm_last_error());
}

static void gpu_facts(struct facts *f)
{
    missing_fact(f, BSM_BACKEND_CUDA, "no_gpu");
    missing_fact(f, BSM_BACKEND_HIP, "no_gpu_of_hip");
    if (f->as_json) cli_json_array(&f->json, "gpus");
    backend_facts(f, BSM_BACKEND_CUDA);
    backend_facts(f, BSM_BACKEND_HIP);
    if (f->as_json) cli_json_end(&f->json);
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* Pairs of formats that a kernel serves on this machine. */
static int pairs_served(const bsm_context *context, int kernel)
{
    int pairs = 0;
    for (int a = BSM_FORMAT_NONE + 1; a < BSM_FORMAT_COUNT; a++)
        for (int b = BSM_FORMAT_NONE + 1; b < BSM_FORMAT_COUNT; b++)
            pairs += bsm_kernel_serves(context, kernel, (bsm_format)a, (bsm_format)b);
    return pairs;
}

static bool is_of_hip(int kernel) { return strncmp(bsm_kernel_name(kernel), "hip_", 4) == 0; }
static bool is_of_gpus(int kernel)
{
    return strncmp(bsm_kernel_name(kernel), "cuda_", 5) == 0 || is_of_hip(kernel);
}

static void kernel_fact(struct facts *f, int kernel, int pairs)
{
    const int all_pairs = (BSM_FORMAT_COUNT - 1) * (BSM_FORMAT_COUNT - 1);
    char text[256];
    if (f->as_json) {
        cli_json_object(&f->json, NULL);
        cli_json_text(&f->json, "name", bsm_kernel_name(kernel));
        cli_json_integer(&f->json, "pairs_served_here", pairs);
        cli_json_integer(&f->json, "pairs", all_pairs);
        cli_json_end(&f->json);
        return;
    }
    if (pairs > 0)
        snprintf(text, sizeof text, "%s: %d of %d pairs of formats", bsm_kernel_name(kernel), pairs, all_pairs);
    else
        snprintf(text, sizeof text, "%s: not here, for lack of a %s", bsm_kernel_name(kernel),
                 is_of_gpus(kernel) ? "GPU that runs it" : "CPU feature");
    text_fact(f, "kernel", text);
}

static void kernel_facts(struct facts *f, const bsm_context *cpu, const bsm_context *cuda, const bsm_context *hip)
{
    int count[2] = { 0 }, run_here[2] = { 0 };
    if (f->as_json) cli_json_array(&f->json, "kernels");
    for (int i = 0; bsm_kernel_name(i) != NULL; i++) {
        const int pairs = pairs_served(is_of_hip(i) ? hip : is_of_gpus(i) ? cuda : cpu, i);
        count[is_of_gpus(i)]++;
        run_here[is_of_gpus(i)] += pairs > 0;
        if (f->all) kernel_fact(f, i, pairs);
    }
    if (f->as_json) cli_json_end(&f->json);
    if (!f->all)
        printf("%-*s%d of %d for CPUs and %d of %d for GPUs run here; --verbose lists them\n", NAME_WIDTH, "kernels",
               run_here[0], count[0], run_here[1], count[1]);
}

static int run(struct cli *cli, const void *given)
{
    const struct settings *s = given;
    struct facts f = { .json = cli_json_to(stdout), .as_json = cli->json, .all = cli->json || s->verbose };
    if (cli->json) cli_json_object(&f.json, NULL);
    build_facts(&f);
    system_facts(&f);
    context_facts(&f, cli->context);
    gpu_facts(&f);
    bsm_context *cuda = open_gpu(BSM_BACKEND_CUDA, 0), *hip = open_gpu(BSM_BACKEND_HIP, 0);
    kernel_facts(&f, cli->context, cuda, hip);
    bsm_context_destroy(cuda);
    bsm_context_destroy(hip);
    if (cli->json) cli_json_end(&f.json);
    return CLI_DONE;
}

static const struct settings defaults = { .verbose = false };

static const struct cli_option options[] = {
    { "--verbose", 'v', NULL, "all facts, and every kernel by its name", CLI_FLAG(struct settings, verbose) },
    { .name = NULL }
};

const struct cli_verb cli_verb_info = {
    .name = "info",
    .summary = "versions, CPU, GPUs, kernels: what a bug report needs",
    .usage = "[options]",
    .about = "Prints what this build is and what it found on this machine; --verbose and --json print all of it, for a "
             "bug report. Kernels are in the order in which they are tried, those of GPUs behind those of the CPU; "
             "--cpu none shows what is left without CPU features.",
    .example = "blockscale info\nblockscale info --verbose\nblockscale info --json",
    .options = options,
    .defaults = &defaults,
    .settings_bytes = sizeof defaults,
    .run = run,
};
