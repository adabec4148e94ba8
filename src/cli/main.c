/* blockscale: the command.  Finds the verb, parses its options, makes the context, runs it, and completes its files. */
#include "cli.h"
#include "verbs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cli_verb *find_verb(const char *name)
{
    for (int i = 0; cli_verbs[i] != NULL; i++)
        if (strcmp(cli_verbs[i]->name, name) == 0) return cli_verbs[i];
    return NULL;
}

static const char *verb_name(const void *list, int index)
{
    (void)list;
    return cli_verbs[index] == NULL ? NULL : cli_verbs[index]->name;
}

static int unknown_verb(const char *name)
{
    const char *near = cli_nearest(name, verb_name, cli_verbs);
    if (near != NULL) cli_wrong_usage(NULL, "%s: no such verb; did you mean %s?", name, near);
    else cli_wrong_usage(NULL, "%s: no such verb", name);
    fprintf(stderr, "blockscale help lists them.\n");
    return CLI_WRONG_USAGE;
}

static void print_overview(FILE *file)
{
    fprintf(file, "blockscale: %s\n\nusage: blockscale VERB [arguments]\n\n", cli_about);
    for (int i = 0; cli_verbs[i] != NULL; i++) fprintf(file, "  %-12s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    fprintf(file, "  %-12s %s\n  %-12s %s\n\n", "help [VERB]", "this text, or that of a verb", "--version",
            "the version");
    fprintf(file, "blockscale VERB --help explains a verb, with an example.\n"
                  "Exit codes: %s\n", cli_exit_codes);
}

static int help(const char *name)
{
    const struct cli_verb *verb = name == NULL ? NULL : find_verb(name);
    if (name != NULL && verb == NULL) return unknown_verb(name);
    if (verb != NULL) cli_print_verb_help(verb, stdout);
    else print_overview(stdout);
    return cli_outputs_finish(NULL, true);
}

static void print_version(void)
{
    const int number = bsm_version();
    printf("blockscale %d.%d.%d\n", number / 10000, number / 100 % 100, number % 100);
}

static bool asks_version(const char *word)
{
    return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 || strcmp(word, "version") == 0;
}

static void append_name(char *names, size_t room, const char *name)
{
    const size_t used = strlen(names);
    if (name != NULL) snprintf(names + used, room - used, " %s", name);
}

/* The features that --cpu names. */
static int read_cpu_list(const struct cli *cli, const char *list, bsm_context_options *options)
{
    options->portable_only = true;
    for (const char *word = list;; word++) {
        const size_t length = strcspn(word, ",");
        bool known = length == 4 && memcmp(word, "none", 4) == 0;
        for (int bit = 0; bit < 31; bit++) {
            const char *name = bsm_cpu_feature_name((uint32_t)1 << bit);
            if (name == NULL || strlen(name) != length || memcmp(name, word, length) != 0) continue;
            options->cpu_mask |= (uint32_t)1 << bit;
            options->portable_only = false;
            known = true;
        }
        if (!known) {
            char names[256] = "none";
            for (int bit = 0; bit < 31; bit++)
                append_name(names, sizeof names, bsm_cpu_feature_name((uint32_t)1 << bit));
            return cli_wrong_usage(cli, "--cpu %s: \"%.*s\" is no feature; known are %s", list, (int)length, word,
                                   names);
        }
        word += length;
        if (*word == '\0') return CLI_DONE;
    }
}

static int run_in_context(struct cli *cli, const struct cli_common *common, const void *settings)
{
    bsm_context_options options = { .struct_size = sizeof options, .threads = (int)common->threads };
    cli->seed = common->seed;
    cli->json = common->json;
    if (common->cpu != NULL && read_cpu_list(cli, common->cpu, &options) != CLI_DONE) return CLI_WRONG_USAGE;
    const bsm_status status = bsm_context_create(&options, &cli->context);
    if (status == BSM_EINVAL) return cli_wrong_usage(cli, "%s", bsm_last_error());    /* BLOCKSCALE_CPU */
    if (status != BSM_OK) return cli_library_failed(cli, NULL, status);
    const int result = cli->verb->run(cli, settings);
    bsm_context_destroy(cli->context);
    return result;
}

static int run_verb(const struct cli_verb *verb, int count, char **arguments)
{
    struct cli cli = { .verb = verb };
    struct cli_common common = { .seed = 1 };
    void *settings = cli_memory(&cli, 1, (int64_t)verb->settings_bytes);
    if (verb->defaults != NULL) memcpy(settings, verb->defaults, verb->settings_bytes);
    int result = cli_parse(verb, count, arguments, settings, &common);
    if (result == CLI_DONE && common.help) cli_print_verb_help(verb, stdout);
    else if (result == CLI_DONE && common.version) print_version();
    else if (result == CLI_DONE) result = run_in_context(&cli, &common, settings);
    free(settings);
    const int finished = cli_outputs_finish(&cli, result == CLI_DONE || result == CLI_DIFFERS);
    return result == CLI_DONE || result == CLI_DIFFERS ? (finished != CLI_DONE ? finished : result) : result;
}

/* A standard descriptor that the caller closed would be given to the first file opened: put something there that fails
 * as a closed one does. */
static void fill_standard_descriptors(void)
{
    for (int descriptor = 0; descriptor <= 2; descriptor++)
        if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", descriptor == 2 ? O_WRONLY : O_RDONLY) != descriptor)
            exit(CLI_BAD_INPUT);
}

int main(int argc, char **argv)
{
    fill_standard_descriptors();
    cli_outputs_start();
    if (argc < 2) {
        print_overview(stderr);
        return CLI_WRONG_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        if (argc <= 3) return help(argc == 3 ? argv[2] : NULL);
        return cli_wrong_usage(NULL, "help takes one verb");
    }
    if (asks_version(name)) {
        if (argc > 2) return cli_wrong_usage(NULL, "%s takes no argument", name);
        print_version();
        return cli_outputs_finish(NULL, true);
    }
    const struct cli_verb *verb = find_verb(name);
    return verb == NULL ? unknown_verb(name) : run_verb(verb, argc - 2, argv + 2);
}
