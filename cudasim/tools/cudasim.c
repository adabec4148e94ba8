/* The command `cudasim`: verbs. */
#include <stdlib.h>
#include <string.h>

#include "tools/command.h"

extern const struct verb verb_run, verb_mutate, verb_read, verb_devices, verb_table, verb_bench, verb_unpack;
static const struct verb *const verbs[] = { &verb_run,   &verb_mutate, &verb_read,  &verb_devices,
                                            &verb_table, &verb_bench,  &verb_unpack };
enum { VERBS = sizeof verbs / sizeof *verbs };

static char **rest;
char **command_rest(void) { return rest; }

static void help(FILE *file)
{
    fputs("usage: cudasim VERB ...\n\n"
          "Executes PTX kernels without a GPU and checks them harder than hardware does.\n\n",
          file);
    for (int i = 0; i < VERBS; i++) fprintf(file, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    fputs("\n`cudasim VERB --help` says more of a verb.  A program of your own runs by `cudasim run PROGRAM`.\n",
          file);
}

static bool wants_help(const struct verb *verb, int count, char **arguments)
{
    for (int i = 0; i < count && strcmp(arguments[i], "--") != 0; i++) {
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0) return true;
        if (verb->ends_options != NULL && verb->ends_options(arguments[i])) return false;
    }
    return false;
}

static int run(const struct verb *verb, int count, char **arguments)
{
    if (wants_help(verb, count, arguments)) {
        options_help(verb, stdout);
        return EXIT_DONE;
    }
    void *settings = calloc(1, verb->settings_bytes + 1);
    if (settings == NULL) return bad_input("no memory");
    if (verb->defaults != NULL) memcpy(settings, verb->defaults, verb->settings_bytes);
    int status = options_parse(verb, count, arguments, settings, &rest);
    if (status == EXIT_DONE) status = verb->run(settings);
    free(settings);
    if (fflush(stdout) != 0 && status == EXIT_DONE) status = bad_input("standard output takes no more");
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return EXIT_BAD_INPUT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        help(stdout);
        return EXIT_DONE;
    }
    for (int i = 0; i < VERBS; i++)
        if (strcmp(verbs[i]->name, argv[1]) == 0) return run(verbs[i], argc - 2, argv + 2);
    return bad_input("%s: no such verb; `cudasim --help` lists them", argv[1]);
}
