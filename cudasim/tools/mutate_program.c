/* cudasim mutate --program: a program that loads the PTX itself, on the library, runs once for each mutant.  It finds
 * in CUDASIM_MUTATE which instruction the library takes away; its exit status says whether it noticed. */
#include "tools/mutate.h"

#include "machine/run/mutate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What a run of the program came to. */
struct outcome {
    bool good, taken, too_long;
    int status;
    double seconds;
};

/* In the child: its output goes to the file. */
static void become(const struct mutate_settings *s, char **arguments, const char *mutation, int output)
{
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)s->kernel.schedules);
    setenv("CUDASIM_SCHEDULES", number, 1);
    unsetenv("CUDASIM_QUIET");
    setenv("CUDASIM_REPORTS", "stop", 0);
    if (mutation == NULL) unsetenv("CUDASIM_MUTATE");
    else setenv("CUDASIM_MUTATE", mutation, 1);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execvp(s->program, arguments);
    dprintf(output, "cudasim: %s: %s\n", s->program, strerror(errno));
    _exit(127);
}

/* Waits up to `limit` seconds (0: for ever), then ends it. */
static int await(pid_t child, double limit, bool *too_long)
{
    const double begin = now();
    int status = 0;
    while (waitpid(child, &status, limit == 0 ? 0 : WNOHANG) == 0) {
        if (now() - begin > limit) {
            *too_long = true;
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            break;
        }
        nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
    }
    return status;
}

/* Whether the library said that threads came to where it took an instruction away. */
static bool said_so(FILE *output)
{
    char line[512];
    bool said = false;
    rewind(output);
    while (!said && fgets(line, sizeof line, output) != NULL)
        said = strstr(line, "CUDASIM_MUTATE: threads came to it") != NULL;
    return said;
}

static void copy_to_stderr(FILE *output)
{
    char part[4096];
    rewind(output);
    for (size_t got; (got = fread(part, 1, sizeof part, output)) != 0;) fwrite(part, 1, got, stderr);
}

static int run_program(const struct mutate_settings *s, char **arguments, const char *mutation, double limit,
                       struct outcome *o)
{
    FILE *output = tmpfile();
    if (output == NULL) return bad_input("no temporary file: %s", strerror(errno));
    fflush(stdout);
    const double begin = now();
    const pid_t child = fork();
    if (child == 0) become(s, arguments, mutation, fileno(output));
    *o = (struct outcome){ .good = false };
    if (child > 0) {
        o->status = await(child, limit, &o->too_long);
        o->good = !o->too_long && WIFEXITED(o->status) && WEXITSTATUS(o->status) == 0;
        o->taken = said_so(output);
    }
    o->seconds = now() - begin;
    if (mutation == NULL && !o->good) copy_to_stderr(output);
    fclose(output);
    return child > 0 ? EXIT_DONE : bad_input("no process: %s", strerror(errno));
}

static void describe(const struct outcome *o, double limit, char *how, size_t size)
{
    if (o->too_long) snprintf(how, size, "more than %.0f seconds", limit);
    else if (WIFSIGNALED(o->status)) snprintf(how, size, "signal %d", WTERMSIG(o->status));
    else snprintf(how, size, "exit status %d", WEXITSTATUS(o->status));
}

static bool is_of_another_entry(const struct mutate_settings *s, const struct module *module, uint32_t pc)
{
    const struct function *f = s->kernel.entry == NULL ? NULL : ptx_function_at(module, pc);
    return f != NULL && f->entry && strcmp(f->name, s->kernel.entry) != 0;
}

static int try_all(const struct mutate_settings *s, const struct module *module, char **arguments, double limit)
{
    struct fates fates = { { 0 } };
    for (uint32_t pc = 0; pc < module->code_count; pc++) {
        char how[64] = "";
        struct outcome o;
        if (is_of_another_entry(s, module, pc) || !mutation_possible(module, pc)) continue;
        char *name = mutation_name(module, pc);
        const int status = name == NULL ? bad_input("no memory") : run_program(s, arguments, name, limit, &o);
        free(name);
        if (status != EXIT_DONE) return status;
        const enum fate fate = !o.good ? FATE_NOTICED : o.taken ? FATE_SURVIVED : FATE_NOT_EXECUTED;
        if (fate == FATE_NOTICED) describe(&o, limit, how, sizeof how);
        fates.count[fate]++;
        mutant_print(s, module, pc, fate, how);
    }
    return mutants_end(&fates);
}

/* argv of the program: its name and what stands behind "--". */
static char **program_arguments(const struct mutate_settings *s)
{
    char **rest = command_rest();
    int count = 0;
    while (rest != NULL && rest[count] != NULL) count++;
    char **arguments = calloc((size_t)count + 2, sizeof *arguments);
    if (arguments == NULL) return NULL;
    arguments[0] = (char *)(uintptr_t)s->program;
    for (int i = 0; i < count; i++) arguments[i + 1] = rest[i];
    return arguments;
}

int mutate_program(const struct mutate_settings *s)
{
    size_t bytes;
    struct ptx_error error;
    struct outcome o;
    char *text = read_file(s->kernel.file, &bytes);
    struct module *module = text == NULL ? NULL : ptx_read(s->kernel.file, text, bytes, NULL, &error);
    if (text != NULL && module == NULL) bad_input("%s", error.text);
    free(text);
    char **arguments = module == NULL ? NULL : program_arguments(s);
    int status = arguments == NULL ? EXIT_BAD_INPUT : run_program(s, arguments, NULL, (double)s->seconds, &o);
    if (status == EXIT_DONE && !o.good)
        status = bad_input("--program %s: fails before anything is taken away", s->program);
    if (status == EXIT_DONE)
        status = try_all(s, module, arguments, s->seconds != 0 ? (double)s->seconds : 10 * o.seconds + 5);
    free(arguments);
    ptx_release(module);
    return status;
}
