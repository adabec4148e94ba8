/* Kernels of one product: times from the library; counts from cudasim, which writes a line of JSON for each launch. */
#include "gpu_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[128];

static void remove_file(void) { unlink(path); }

int gpu_profile_prepare(const struct cli *cli)
{
    const char *folder = getenv("TMPDIR"), *given = getenv("CUDASIM_PROFILE");
    if (given != NULL)
        return cli_wrong_usage(cli, "--profile reads the counts of a simulated GPU from a file of its own: unset "
                                    "CUDASIM_PROFILE (%s)", given);
    const int length = snprintf(path, sizeof path, "%s/blockscale-XXXXXX.json", folder != NULL ? folder : "/tmp");
    const int file = length < (int)sizeof path ? mkstemps(path, 5) : -1;
    if (file < 0) return cli_bad_input(cli, "%s: %s", path, strerror(errno));
    close(file);
    atexit(remove_file);
    return setenv("CUDASIM_PROFILE", path, 1) == 0 ? CLI_DONE
                                                   : cli_bad_input(cli, "CUDASIM_PROFILE: %s", strerror(errno));
}

/* Lines of the file so far; *line, unless NULL: the number `wanted`, which the caller frees. */
static int lines_of_file(int wanted, char **line)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    int count = 0;
    if (line != NULL) *line = NULL;
    if (file == NULL) return 0;
    while (getline(&text, &room, file) > 0)
        if (count++ == wanted && line != NULL) *line = strdup(text);
    free(text);
    fclose(file);
    return count;
}

/* The sum of all numbers behind `key`. */
static int64_t sum_of(const char *line, const char *key)
{
    int64_t sum = 0;
    for (const char *at = strstr(line, key); at != NULL; at = strstr(at + 1, key))
        sum += strtoll(at + strlen(key), NULL, 10);
    return sum;
}

/* The launch's line has the kernel's name, or it is another's. */
static bool count_kernel(int line, struct gpu_kernel *kernel)
{
    char *text, name[128];
    lines_of_file(line, &text);
    snprintf(name, sizeof name, "\"kernel\":\"%s\"", kernel->time.kernel);
    const bool found = text != NULL && strstr(text, name) != NULL;
    if (found) {
        kernel->instructions = sum_of(text, "\"warp_instructions\":");
        kernel->bytes = sum_of(text, "\"global_read\":") + sum_of(text, "\"global_written\":");
    }
    free(text);
    return found;
}

int gpu_profile_run(const struct cli *cli, bsm_context *gpu, bool simulated, bsm_status (*run)(void *argument),
                    void *argument, struct gpu_side *side)
{
    static bsm_kernel_time times[BSM_PROFILE_KERNELS];
    bsm_status status = bsm_context_synchronize(gpu);
    const int before = simulated ? lines_of_file(-1, NULL) : 0;
    if (status == BSM_OK) status = bsm_profile_begin(gpu);
    if (status == BSM_OK) status = run(argument);
    if (status == BSM_OK) status = bsm_profile_end(gpu, times, BSM_PROFILE_KERNELS, &side->kernel_count);
    if (status != BSM_OK) return cli_library_failed(cli, "--profile", status);
    for (int i = 0; i < side->kernel_count; i++) {
        side->kernels[i].time = times[i];
        if (simulated && !count_kernel(before + i, &side->kernels[i]))
            return cli_bad_input(cli, "%s: launch %d of the simulator is not kernel %s", path, before + i + 1,
                                 times[i].kernel);
    }
    return CLI_DONE;
}
