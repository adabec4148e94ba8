/* blockscale info: what a bug report needs. */
#include "cli/cli.h"
#include "cli/machine/machine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* One fact after another, as lines of text or members of a JSON object. */
struct facts { struct cli_json json; bool as_json; };

static void text_fact(struct facts *f, const char *key, const char *value)
{
    if (f->as_json) cli_json_text(&f->json, key, value);
    else printf("%-18s %s\n", key, value != NULL ? value : "unknown");
}

static void number_fact(struct facts *f, const char *key, int64_t value, const char *unit)
{
    if (f->as_json) cli_json_integer(&f->json, key, value);
    else printf("%-18s %lld%s\n", key, (long long)value, unit);
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
    number_fact(f, "page_bytes", sysconf(_SC_PAGESIZE), " bytes");
}

static void build_facts(struct facts *f)
{
    version_fact(f, "version", bsm_version());
    version_fact(f, "header_version", BSM_VERSION);
#if defined(__clang__)
    text_fact(f, "compiler", "clang " __clang_version__);
#else
    text_fact(f, "compiler", "gcc " __VERSION__);
#endif
    text_fact(f, "build_type", BLOCKSCALE_BUILD_TYPE[0] != '\0' ? BLOCKSCALE_BUILD_TYPE : "none");
    text_fact(f, "sanitizers", BLOCKSCALE_SANITIZERS[0] != '\0' ? BLOCKSCALE_SANITIZERS : "none");
    text_fact(f, "cuda",
              bsm_backend_missing(BSM_BACKEND_CUDA)[0] != '\0' ? bsm_backend_missing(BSM_BACKEND_CUDA) : "kernels in this build");
    text_fact(f, "hip", "no HIP backend in this build");
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
    static const char *const variables[] = { "BLOCKSCALE_CPU", "OMP_NUM_THREADS", "BLOCKSCALE_LIBCUDA", NULL };
    for (int i = 0; variables[i] != NULL; i++) {
        const char *value = getenv(variables[i]);
        text_fact(f, variables[i], value != NULL ? value : "not set");
    }
}

/* GPUs --------------------------------------------------------------------------------------------------------------------- */

/* A context of GPU number `device`; NULL, with the reason as bsm_last_error, if it cannot be used. */
static bsm_context *open_gpu(int device)
{
    const bsm_context_options options = { .struct_size = sizeof options, .backend = BSM_BACKEND_CUDA, .device = device };
    bsm_context *context = NULL;
    (void)bsm_context_create(&options, &context);
    return context;
}

static void gpu_fact(struct facts *f, int device)
{
    bsm_device_info about = { .struct_size = sizeof about };
    char text[900], state[560] = "ready, its self-test passed";
    const bool known = bsm_device_describe(BSM_BACKEND_CUDA, device, &about) == BSM_OK;
    bsm_context *context = known ? open_gpu(device) : NULL;
    if (context == NULL) snprintf(state, sizeof state, "cannot be used: %s", bsm_last_error());
    bsm_context_destroy(context);
    if (f->as_json) {
        cli_json_object(&f->json, NULL);
        cli_json_text(&f->json, "name", about.name);
        cli_json_integer(&f->json, "compute_capability", about.major * 10 + about.minor);
        cli_json_integer(&f->json, "multiprocessors", about.multiprocessors);
        cli_json_integer(&f->json, "memory_mib", about.memory_bytes >> 20);
        cli_json_integer(&f->json, "driver_version", about.driver_version);
        cli_json_text(&f->json, "state", state);
        cli_json_end(&f->json);
        return;
    }
    snprintf(text, sizeof text, "%d: %s, compute capability %d.%d, %d multiprocessors, %lld MiB, driver for CUDA %d.%d: %s", device,
             about.name, about.major, about.minor, about.multiprocessors, (long long)(about.memory_bytes >> 20),
             about.driver_version / 1000, about.driver_version % 1000 / 10, state);
    text_fact(f, "gpu", text);
}

static void gpu_facts(struct facts *f)
{
    int count = 0;
    const bool found = bsm_device_count(BSM_BACKEND_CUDA, &count) == BSM_OK;
    if (!found) text_fact(f, f->as_json ? "no_gpu" : "gpu", bsm_last_error());
    if (f->as_json) cli_json_array(&f->json, "gpus");
    for (int i = 0; found && i < count; i++) gpu_fact(f, i);
    if (f->as_json) cli_json_end(&f->json);
}

/* Kernels ------------------------------------------------------------------------------------------------------------------ */

/* Pairs of formats that a kernel serves on this machine. */
static int pairs_served(const bsm_context *context, int kernel)
{
    int pairs = 0;
    for (int a = BSM_FORMAT_NONE + 1; a < BSM_FORMAT_COUNT; a++)
        for (int b = BSM_FORMAT_NONE + 1; b < BSM_FORMAT_COUNT; b++)
            pairs += bsm_kernel_serves(context, kernel, (bsm_format)a, (bsm_format)b);
    return pairs;
}

static void kernel_facts(struct facts *f, const bsm_context *cpu, const bsm_context *gpu)
{
    const int all = (BSM_FORMAT_COUNT - 1) * (BSM_FORMAT_COUNT - 1);
    if (f->as_json) cli_json_array(&f->json, "kernels");
    for (int i = 0; bsm_kernel_name(i) != NULL; i++) {
        const bool of_gpus = strncmp(bsm_kernel_name(i), "cuda_", 5) == 0;
        const int pairs = pairs_served(of_gpus ? gpu : cpu, i);
        if (f->as_json) {
            cli_json_object(&f->json, NULL);
            cli_json_text(&f->json, "name", bsm_kernel_name(i));
            cli_json_integer(&f->json, "pairs_served_here", pairs);
            cli_json_integer(&f->json, "pairs", all);
            cli_json_end(&f->json);
        } else if (pairs > 0) {
            printf("%-18s %s: %d of %d pairs of formats\n", "kernel", bsm_kernel_name(i), pairs, all);
        } else {
            printf("%-18s %s: not here, for lack of a %s\n", "kernel", bsm_kernel_name(i),
                   of_gpus ? "GPU that runs it" : "CPU feature");
        }
    }
    if (f->as_json) cli_json_end(&f->json);
}

static int run(struct cli *cli, const void *settings)
{
    (void)settings;
    struct facts f = { .json = cli_json_to(stdout), .as_json = cli->json };
    if (cli->json) cli_json_object(&f.json, NULL);
    build_facts(&f);
    system_facts(&f);
    context_facts(&f, cli->context);
    gpu_facts(&f);
    bsm_context *gpu = open_gpu(0);
    kernel_facts(&f, cli->context, gpu);
    bsm_context_destroy(gpu);
    if (cli->json) cli_json_end(&f.json);
    return CLI_DONE;
}

static const struct cli_option options[] = { { .name = NULL } };

const struct cli_verb cli_verb_info = {
    .name = "info",
    .summary = "versions, CPU, GPUs, kernels: what a bug report needs",
    .usage = "[options]",
    .about = "Prints what this build is and what it found on this machine. Kernels are in the order in which they are tried, those "
             "of GPUs "
             "behind those of the CPU; --cpu none shows what is left without CPU features.",
    .example = "blockscale info\nblockscale info --json",
    .options = options,
    .run = run,
};
