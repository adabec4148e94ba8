/* Sentences on stderr, and the exit codes that go with them. */
#include "cli/cli.h"
#include "mask.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

__attribute__((format(printf, 2, 0))) static void print_sentence(const struct cli *cli, const char *format,
                                                                 va_list arguments)
{
    char sentence[8192];                  /* names in it may come from anywhere */
    vsnprintf(sentence, sizeof sentence, format, arguments);
    mask_text(sentence);
    if (cli != NULL && cli->verb != NULL) fprintf(stderr, "blockscale %s: %s\n", cli->verb->name, sentence);
    else fprintf(stderr, "blockscale: %s\n", sentence);
}

int cli_wrong_usage(const struct cli *cli, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_sentence(cli, format, arguments);
    va_end(arguments);
    return CLI_WRONG_USAGE;
}

int cli_bad_input(const struct cli *cli, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_sentence(cli, format, arguments);
    va_end(arguments);
    return CLI_BAD_INPUT;
}

void cli_note(const struct cli *cli, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_sentence(cli, format, arguments);
    va_end(arguments);
}

int cli_library_failed(const struct cli *cli, const char *what, bsm_status status)
{
    const char *sentence = bsm_last_error()[0] != '\0' ? bsm_last_error() : bsm_strerror((int)status);
    if (what != NULL) cli_bad_input(cli, "%s: %s", what, sentence);
    else cli_bad_input(cli, "%s", sentence);
    return status == BSM_EDEVICE ? CLI_NO_DEVICE : CLI_BAD_INPUT;
}

static void (*stop_threads)(void);
void cli_without_memory(void (*stop)(void)) { stop_threads = stop; }

void *cli_memory(const struct cli *cli, int64_t count, int64_t size)
{
    int64_t bytes;
    void *memory = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes) && bytes >= 0 && bytes < INT64_MAX - 64 &&
        posix_memalign(&memory, 64, bytes > 0 ? (size_t)bytes : 1) == 0) {
        memset(memory, 0, (size_t)bytes);
        return memory;
    }
    if (stop_threads != NULL) stop_threads();
    cli_outputs_finish(cli, false);
    exit(cli_bad_input(cli, "no memory for %lld x %lld bytes", (long long)count, (long long)size));
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double cli_seconds(void) { return seconds_of(CLOCK_MONOTONIC); }
double cli_processor_seconds(void) { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

/* Work that has a processor uses at least as much processor time, on one thread or on several. */
bool cli_waited(double seconds, double processor_seconds)
{
    return seconds > 2 * processor_seconds && seconds - processor_seconds > 2e-4;
}
