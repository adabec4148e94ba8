/* The command line of a verb: one table of options gives parsing, errors and help. */
#include "cli/cli.h"

#include <string.h>
#include <unistd.h>

enum { MAX_OPTIONS = 64, HELP_INDENT = 28 };

const struct cli_option cli_common_options[] = {
    { "--threads", 0, "N", "threads to use, 0 for as many as the machine offers; never changes a result",
      CLI_INTEGER(struct cli_common, threads), .low = 0, .high = 1024 },
    { "--cpu", 0, "LIST", "CPU features that may be used: names with commas between, or none",
      CLI_TEXT(struct cli_common, cpu) },
    { "--seed", 0, "N", "where random numbers start", CLI_UNSIGNED(struct cli_common, seed) },
    { "--json", 0, NULL, "the result as JSON", CLI_FLAG(struct cli_common, json) },
    { "--help", 'h', NULL, "this text", CLI_FLAG(struct cli_common, help) },
    { "--version", 'V', NULL, "the version of blockscale", CLI_FLAG(struct cli_common, version) },
    { .name = NULL }
};

bool cli_is_positional(const struct cli_option *option) { return option->name[0] != '-'; }
bool cli_takes_value(const struct cli_option *option) { return option->parse != cli_flag; }

/* Where a parse stands. */
struct parse {
    const struct cli_verb *verb;
    void *settings;
    struct cli_common *common;
    bool seen[MAX_OPTIONS], seen_common[MAX_OPTIONS];
};

static int fail(const struct parse *p, const char *subject, const char *sentence)
{
    const struct cli cli = { .verb = p->verb };
    cli_wrong_usage(&cli, "%s%s%s", subject, sentence[0] == '\0' ? "" : ": ", sentence);
    fprintf(stderr, "blockscale %s --help lists the options.\n", p->verb->name);
    return CLI_WRONG_USAGE;
}

/* Finds "--name" (the length first bytes of text) or the letter; *common tells from which table. */
static const struct cli_option *find(const struct cli_verb *verb, const char *text, size_t length, char letter,
                                     bool *common)
{
    const struct cli_option *const tables[] = { verb->options, cli_common_options };
    for (int t = 0; t < 2; t++)
        for (const struct cli_option *o = tables[t]; o->name != NULL; o++) {
            *common = t == 1;
            if (cli_is_positional(o)) continue;
            if (letter != 0 ? o->letter == letter : strlen(o->name) == length && memcmp(o->name, text, length) == 0)
                return o;
        }
    return NULL;
}

static int store(struct parse *p, const struct cli_option *option, bool common, const char *text)
{
    bool *seen = common ? &p->seen_common[option - cli_common_options] : &p->seen[option - p->verb->options];
    char *destination = common ? (char *)p->common : p->settings;
    if (*seen) return fail(p, option->name, "given twice");
    *seen = true;
    struct cli_why why = { "" };
    if (option->parse(option, text, destination + option->offset, &why)) return CLI_DONE;
    char subject[256];
    snprintf(subject, sizeof subject, cli_takes_value(option) && !cli_is_positional(option) ? "%s %.160s" : "%s",
             option->name, text);
    return fail(p, subject, why.sentence);
}

static int store_positional(struct parse *p, const char *text)
{
    for (const struct cli_option *o = p->verb->options; o->name != NULL; o++)
        if (cli_is_positional(o) && !p->seen[o - p->verb->options]) return store(p, o, false, text);
    char subject[256];
    snprintf(subject, sizeof subject, "%.200s", text);
    return fail(p, subject, "one argument too many");
}

static const char *option_name(const void *list, int index)
{
    const struct cli_option *options = list;
    while (index > 0 && options->name != NULL) options++, index--;
    return options->name;
}

static int unknown(const struct parse *p, const char *text, size_t length)
{
    char subject[128], sentence[256];
    snprintf(subject, sizeof subject, "%.*s", (int)(length < 100 ? length : 100), text);
    const char *near = cli_nearest(subject, option_name, p->verb->options);
    if (near == NULL) near = cli_nearest(subject, option_name, cli_common_options);
    if (near == NULL) return fail(p, subject, "no such option");
    snprintf(sentence, sizeof sentence, "no such option; did you mean %s?", near);
    return fail(p, subject, sentence);
}

/* A number may be negative; any other value that looks like an option is one whose own value was forgotten. */
static bool looks_like_option(const char *text)
{
    return text[0] == '-' && text[1] != '\0' && !(text[1] >= '0' && text[1] <= '9') && text[1] != '.'
           && strcmp(text, "-inf") != 0;
}

/* One option; *used: how many arguments it took. */
static int parse_option(struct parse *p, int count, char **arguments, int *used)
{
    const char *text = arguments[0], *value = NULL;
    bool common = false;
    const struct cli_option *option;
    size_t length = strlen(text);
    *used = 1;
    if (text[1] == '-') {
        const char *equals = strchr(text, '=');
        if (equals != NULL) length = (size_t)(equals - text), value = equals + 1;
        option = find(p->verb, text, length, 0, &common);
    } else {
        option = find(p->verb, NULL, 0, text[1], &common);
        if (text[2] != '\0') value = text + 2;
    }
    if (option == NULL) return unknown(p, text, length);
    if (!cli_takes_value(option))
        return value == NULL ? store(p, option, common, "") : fail(p, option->name, "takes no value");
    if (value == NULL && (count < 2 || looks_like_option(arguments[1]))) {
        char sentence[128];
        snprintf(sentence, sizeof sentence, "needs a value: %s %s", option->name, option->value);
        return fail(p, option->name, sentence);
    }
    if (value == NULL) value = arguments[1], *used = 2;
    return store(p, option, common, value);
}

static int check_required(const struct parse *p)
{
    for (const struct cli_option *o = p->verb->options; o->name != NULL; o++)
        if (o->required && !p->seen[o - p->verb->options]) {
            char subject[128];
            const bool valued = o->value != NULL;
            snprintf(subject, sizeof subject, "%s%s%s is missing", o->name, valued ? " " : "", valued ? o->value : "");
            return fail(p, subject, "");
        }
    return CLI_DONE;
}

int cli_parse(const struct cli_verb *verb, int count, char **arguments, void *settings, struct cli_common *common)
{
    struct parse p = { .verb = verb, .settings = settings, .common = common };
    bool only_positional = false;
    for (int i = 0; i < count && strcmp(arguments[i], "--") != 0; i++) {
        common->help = strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0;
        common->version = strcmp(arguments[i], "--version") == 0 || strcmp(arguments[i], "-V") == 0;
        if (common->help || common->version) return CLI_DONE;
    }
    for (int i = 0; i < count;) {
        int used = 1, status = CLI_DONE;
        if (!only_positional && strcmp(arguments[i], "--") == 0) only_positional = true;
        else if (only_positional || arguments[i][0] != '-' || arguments[i][1] == '\0')
            status = store_positional(&p, arguments[i]);
        else status = parse_option(&p, count - i, arguments + i, &used);
        if (status != CLI_DONE) return status;
        i += used;
    }
    return check_required(&p);
}

/* Help ------------------------------------------------------------------------------------------------------------- */

static void print_choices(FILE *file, const struct cli_option *o)
{
    char text[4096] = "one of ";
    const size_t used = strlen(text);
    if (o->listed_by != NULL) snprintf(text, sizeof text, "%s lists them", o->listed_by);
    else cli_list_choices(o->choices, text + used, sizeof text - used);
    fprintf(file, "%*s", HELP_INDENT, "");
    cli_print_wrapped(file, text, HELP_INDENT, HELP_INDENT);
}

static void print_option(FILE *file, const struct cli_option *o)
{
    char left[128], letter[8] = "";
    if (o->letter != 0) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(left, sizeof left, "  %s%s%s%s", letter, o->name, o->value != NULL ? " " : "",
             o->value != NULL ? o->value : "");
    if (strlen(left) + 1 < HELP_INDENT) fprintf(file, "%-*s", HELP_INDENT, left);
    else fprintf(file, "%s\n%*s", left, HELP_INDENT, "");
    cli_print_wrapped(file, o->help, HELP_INDENT, HELP_INDENT);
    if (o->choices != NULL) print_choices(file, o);
}

void cli_print_verb_help(const struct cli_verb *verb, FILE *file)
{
    fprintf(file, "blockscale %s: %s\n\nusage: blockscale %s %s\n", verb->name, verb->summary, verb->name, verb->usage);
    if (verb->about != NULL) {
        fprintf(file, "\n");
        cli_print_wrapped(file, verb->about, 0, 0);
    }
    if (verb->options->name != NULL) fprintf(file, "\n");
    for (const struct cli_option *o = verb->options; o->name != NULL; o++) print_option(file, o);
    fprintf(file, "\nwith every verb:\n");
    for (const struct cli_option *o = cli_common_options; o->name != NULL; o++) print_option(file, o);
    if (verb->example == NULL) return;
    fprintf(file, "\nexample:\n");
    for (const char *line = verb->example; *line != '\0';) {
        const int length = (int)strcspn(line, "\n");
        fprintf(file, "  %.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
}

/* Edit distance (insert, delete, replace), cut off at 40 bytes. */
static int distance(const char *a, const char *b)
{
    enum { LIMIT = 40 };
    const int m = (int)strlen(a), n = (int)strlen(b);
    int row[LIMIT + 1];
    if (m > LIMIT || n > LIMIT) return LIMIT;
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; i <= m; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            const int replaced = diagonal + (a[i - 1] != b[j - 1]);
            const int shifted = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < shifted ? replaced : shifted;
        }
    }
    return row[n];
}

const char *cli_nearest(const char *given, const char *(*name)(const void *list, int index), const void *list)
{
    const char *best = NULL;
    int best_distance = 3;                /* up to two slips, in less than half of the name */
    for (int i = 0; name(list, i) != NULL; i++) {
        const int d = distance(given, name(list, i));
        if (d < best_distance && 2 * d < (int)strlen(given)) best = name(list, i), best_distance = d;
    }
    return best;
}
