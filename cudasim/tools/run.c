/* cudasim run: one launch of one kernel, arguments from and to files; or a program with launches of its own. */
#include "tools/kernel.h"
#include "tools/program.h"

#include "machine/profile/profile.h"
#include "machine/profile/trace.h"
#include "machine/run/schedules.h"

#include <errno.h>
#include <string.h>

struct run_settings {
    struct kernel_settings kernel;
    const char *trace, *trace_cta, *trace_warp, *trace_lines, *trace_lane, *profile;
};

static const struct run_settings defaults = { .kernel = { .seed = 1, .schedules = 1, .steps = 1000000000 } };

static const struct option options[] = {
    { "--schedule", "NAME", "random, earliest or latest; random unless given", OPTION_TEXT,
      .offset = offsetof(struct run_settings, kernel.schedule) },
    { "--trace", "FILE", "one line for each executed warp instruction; to standard output without a file",
      OPTION_MAYBE_TEXT, .offset = offsetof(struct run_settings, trace) },
    { "--trace-cta", "X[,Y,Z]", "only this CTA", OPTION_TEXT, .offset = offsetof(struct run_settings, trace_cta) },
    { "--trace-warp", "A[-B]", "only these warps", OPTION_TEXT, .offset = offsetof(struct run_settings, trace_warp) },
    { "--trace-lines", "A[-B]", "only these lines of the PTX text", OPTION_TEXT,
      .offset = offsetof(struct run_settings, trace_lines) },
    { "--trace-lane", "N", "whose results are shown; 0 unless given", OPTION_TEXT,
      .offset = offsetof(struct run_settings, trace_lane) },
    { "--profile", "json", "what was executed, moved and waited for, and an estimate of times; of a program: FILE",
      OPTION_MAYBE_TEXT,
      .offset = offsetof(struct run_settings, profile) },
    { .name = NULL }
};

/* ---- what is written down ---- */

static int open_trace(const struct run_settings *s, struct watch *watch, FILE **file)
{
    struct trace_filter filter = trace_everything;
    const char *wrong = trace_filter_read(&filter, s->trace_cta, s->trace_warp, s->trace_lines, s->trace_lane);
    if (wrong != NULL)
        return bad_input("\"%s\": must be X,Y,Z for --trace-cta, A-B for warps and lines, 0 to 31 for a lane", wrong);
    if (s->trace == NULL) return EXIT_DONE;
    *file = s->trace[0] == '\0' ? stdout : fopen(s->trace, "we");
    if (*file == NULL) return bad_input("--trace %s: %s", s->trace, strerror(errno));
    watch->trace = trace_open(*file, &filter);
    return watch->trace != NULL ? EXIT_DONE : bad_input("no memory for the trace");
}

static int open_profile(const struct run_settings *s, struct watch *watch)
{
    if (s->profile == NULL) return EXIT_DONE;
    const bool json = strcmp(s->profile, "json") == 0;
    if (!json && s->profile[0] != '\0')
        return bad_input("--profile=%s: must be --profile or --profile=json", s->profile);
    watch->profile = profile_open(stdout, json);
    return watch->profile != NULL ? EXIT_DONE : bad_input("no memory for the profile");
}

static void tell(const char *text)
{
    fflush(stdout);
    fputs(text, stderr);
}

static int launch(struct kernel *k, struct watch *watch)
{
    static struct report report;
    static char line[1024];
    k->rule_book.tell = tell;
    int status = kernel_start(k);
    if (status == EXIT_DONE) {
        if (watch->trace != NULL || watch->profile != NULL) k->machine.watch = watch;
        if (kernel_run(k, &report)) {
            status = kernel_write_outputs(k);
        } else {
            tell(report.text);
            status = EXIT_REPORT;
        }
    }
    if (rule_book_line(&k->rule_book, line, sizeof line)) fprintf(stderr, "cudasim: reported and went on: %s\n", line);
    kernel_end(k);
    return status;
}

/* A program writes down what the environment asks for, in a file: standard output is its own. */
static int run_program(const struct run_settings *s)
{
    if (s->trace != NULL && s->trace[0] == '\0')
        return bad_input("--trace: of a program needs a file, as --trace=FILE");
    if (s->profile != NULL && s->profile[0] == '\0')
        return bad_input("--profile: of a program needs a file, as --profile=FILE; FILE.json has a JSON object a line");
    program_set("CUDASIM_TRACE", s->trace);
    program_set("CUDASIM_TRACE_CTA", s->trace_cta);
    program_set("CUDASIM_TRACE_WARP", s->trace_warp);
    program_set("CUDASIM_TRACE_LINES", s->trace_lines);
    program_set("CUDASIM_TRACE_LANE", s->trace_lane);
    program_set("CUDASIM_PROFILE", s->profile);
    return program_run(&s->kernel, &defaults.kernel);
}

static int run(const void *settings)
{
    const struct run_settings *s = settings;
    static struct kernel kernel;
    if (program_is(s->kernel.file)) return run_program(s);
    struct watch watch = { NULL, NULL };
    FILE *trace_file = NULL;
    int status = kernel_open(&kernel, &s->kernel);
    if (status == EXIT_DONE) status = open_trace(s, &watch, &trace_file);
    if (status == EXIT_DONE) status = open_profile(s, &watch);
    if (status == EXIT_DONE) status = launch(&kernel, &watch);
    trace_close(watch.trace);
    profile_close(watch.profile);
    if (trace_file != NULL && trace_file != stdout && fclose(trace_file) != 0 && status == EXIT_DONE)
        status = bad_input("--trace %s: %s", s->trace, strerror(errno));
    kernel_close(&kernel);
    return status;
}

const struct verb verb_run = { .name = "run",
                               .summary = "runs a kernel of a PTX file on arrays from .npy files, or a program",
                               .usage = "KERNEL.ptx --entry NAME --grid X --block X [--arg ARGUMENT]... [options]\n"
                                        "       cudasim run [options] PROGRAM [its arguments]",
                               .about = "Runs one launch, or --launches. Where the kernel does what it must not do, "
                                        "the report is printed and no file is written.\n"
                                        "A program runs with this folder's libcuda.so.1 and libcudart.so.13, and ends "
                                        "with its own exit status; options stand in front of it, and those of launches "
                                        "and arguments are not for programs.\n\n" KERNEL_ARGUMENTS,
                               .shared = kernel_options,
    .options = options,
                               .defaults = &defaults,
                               .settings_bytes = sizeof defaults,
                               .run = run,
                               .ends_options = program_is };
