/* cudasim mutate: takes away each fence, wait, arrive, commit and barrier in turn, and lists those that nothing
 * misses. */
#include "tools/mutate.h"

#include "machine/run/mutate.h"
#include "machine/profile/profile.h"
#include "machine/core/statement.h"
#include "machine/core/report.h"
#include "machine/run/schedules.h"

#include <stdlib.h>
#include <string.h>

static const struct mutate_settings defaults = { .kernel = { .seed = 1, .schedules = 20, .stops = true } };

static const struct option options[] = {
    { "--program", "PROGRAM", "runs PROGRAM with what stands behind -- once for each instruction of KERNEL.ptx, which "
                              "it loads",
      OPTION_TEXT, .offset = offsetof(struct mutate_settings, program) },
    { "--limit", "SECONDS", "of a run of PROGRAM; ten times the first run unless given", OPTION_NUMBER,
      .offset = offsetof(struct mutate_settings, seconds), .low = 1, .high = 1000000 },
    { "--survivors", "", "only these are listed", OPTION_FLAG, .offset = offsetof(struct mutate_settings, survivors) },
    { .name = NULL }
};

/* ---- what is printed ---- */

void mutant_print(const struct mutate_settings *settings, const struct module *module, uint32_t pc, enum fate fate,
                  const char *how)
{
    static const char *const words[FATES] = { "noticed", "survives", "not executed" };
    if (settings->survivors && fate != FATE_SURVIVED) return;
    char text[STATEMENT_BYTES];
    statement_text(module, pc, text, sizeof text);
    printf("%-12s line %5u: %s  (PTX ISA, %s)%s%s\n", words[fate], module->code[pc].line, text,
           module->code[pc].row->section, how[0] == '\0' ? "" : "  by ", how);
    fflush(stdout);
}

int mutants_end(const struct fates *fates)
{
    const uint32_t noticed = fates->count[FATE_NOTICED], survived = fates->count[FATE_SURVIVED];
    printf("%u taken away in turn: %u noticed, %u survive; %u more are not executed\n", noticed + survived, noticed,
           survived, fates->count[FATE_NOT_EXECUTED]);
    return survived == 0 ? EXIT_DONE : EXIT_REPORT;
}

/* ---- one kernel with its arguments ---- */

/* What the unchanged kernel did. */
struct reference {
    uint8_t *bytes[2 * LIST_MOST]; /* of each buffer when it ended */
    uint64_t *executed;        /* by program counter */
    uint64_t steps;
};

static void reference_free(struct reference *r)
{
    for (int i = 0; i < 2 * LIST_MOST; i++) free(r->bytes[i]);
    free(r->executed);
}

static int keep(struct reference *r, const struct kernel *k, const struct profile *profile)
{
    r->steps = k->machine.steps;
    r->executed = calloc(k->module->code_count + 1, sizeof *r->executed);
    if (r->executed == NULL) return bad_input("no memory");
    for (uint32_t i = 0; i < k->module->code_count; i++)
        r->executed[i] = profile->counts[i].warps + profile->counts[i].waits;
    for (uint32_t i = 0; i < k->arguments; i++) {
        const struct argument *a = &k->argument[i];
        if (a->kind != ARGUMENT_BUFFER) continue;
        r->bytes[i] = malloc(a->bytes + 1);
        if (r->bytes[i] == NULL) return bad_input("no memory");
        memcpy(r->bytes[i], kernel_bytes(k, a), a->bytes);
    }
    return EXIT_DONE;
}

static int run_unchanged(struct kernel *k, struct reference *r)
{
    static struct report report;
    struct watch watch = { NULL, profile_open(NULL, false) };
    int status = watch.profile == NULL ? bad_input("no memory") : kernel_start(k);
    if (status == EXIT_DONE) {
        k->machine.watch = &watch;
        const bool ok = kernel_run(k, &report);
        if (ok) status = keep(r, k, watch.profile);
        else
            fprintf(stderr, "%sThe unchanged kernel has this report: nothing is taken away.\n", report.text),
                status = EXIT_REPORT;
    }
    kernel_end(k);
    profile_close(watch.profile);
    return status;
}

/* The first buffer that differs from the reference's, by its argument; NULL: none. */
static const struct argument *differing(const struct kernel *k, const struct reference *r)
{
    for (uint32_t i = 0; i < k->arguments; i++)
        if (r->bytes[i] != NULL && memcmp(r->bytes[i], kernel_bytes(k, &k->argument[i]), k->argument[i].bytes) != 0)
            return &k->argument[i];
    return NULL;
}

/* By what it is noticed: a report's kind, or which argument has other bytes.  EXIT_REPORT: it is; EXIT_DONE: it
 * survives. */
static int run_mutant(struct kernel *k, const struct reference *r, char *how, size_t size)
{
    static struct report report;
    how[0] = '\0';
    int status = kernel_start(k);
    if (status == EXIT_DONE && !kernel_run(k, &report)) {
        snprintf(how, size, "%s: %s", report_code_name(report.code), report.sentence);
        status = EXIT_REPORT;
    }
    const struct argument *other = status == EXIT_DONE ? differing(k, r) : NULL;
    if (other != NULL) {
        snprintf(how, size, "other bytes in %s", other->text);
        status = EXIT_REPORT;
    }
    kernel_end(k);
    return status;
}

static bool is_of_another_entry(const struct kernel *k, uint32_t pc)
{
    const struct function *f = ptx_function_at(k->module, pc);
    return f != NULL && f->entry && f != k->function;
}

static int try_all(const struct mutate_settings *s, struct kernel *k, const struct reference *r)
{
    struct fates fates = { { 0 } };
    static char how[640];
    k->options.step_limit = 20 * r->steps + 100000;
    for (uint32_t pc = 0; pc < k->module->code_count; pc++) {
        if (is_of_another_entry(k, pc) || !mutation_possible(k->module, pc)) continue;
        enum fate fate = FATE_NOT_EXECUTED;
        const struct insn kept = k->module->code[pc];
        how[0] = '\0';
        if (r->executed[pc] != 0) {
            mutation_apply(k->module, pc);
            const int status = run_mutant(k, r, how, sizeof how);
            k->module->code[pc] = kept;
            if (status == EXIT_BAD_INPUT) return status;
            fate = status == EXIT_REPORT ? FATE_NOTICED : FATE_SURVIVED;
        }
        fates.count[fate]++;
        mutant_print(s, k->module, pc, fate, how);
    }
    return mutants_end(&fates);
}

static int mutate_kernel(const struct mutate_settings *s)
{
    static struct kernel kernel;
    static struct reference reference;
    int status = kernel_open(&kernel, &s->kernel);
    if (status == EXIT_DONE) status = run_unchanged(&kernel, &reference);
    if (status == EXIT_DONE) status = try_all(s, &kernel, &reference);
    reference_free(&reference);
    kernel_close(&kernel);
    return status;
}

static int run(const void *settings)
{
    const struct mutate_settings *s = settings;
    return s->program != NULL ? mutate_program(s) : mutate_kernel(s);
}

const struct verb verb_mutate = {
    .name = "mutate",
    .summary = "takes away each fence, wait, arrive and commit in turn and lists those that nothing misses",
    .usage = "KERNEL.ptx --block X [the options of run]   or   KERNEL.ptx --program PROGRAM -- ARGUMENTS",
    .about =
        "Each fence, wait, arrive, commit, expect_tx and barrier of the kernel is taken away alone: it does nothing, a "
        "wait says true at once. The kernel runs under the schedules (20 unless given). A report, other bytes, a "
        "deadlock or far more steps notice it. What survives may be superfluous, or the arguments do not need it, or "
        "no check knows of it.\n\n" KERNEL_ARGUMENTS,
    .shared = kernel_options,
    .options = options,
    .defaults = &defaults,
    .settings_bytes = sizeof defaults,
    .run = run
};
