/* blockscale manual: the manual page, in the man macros of roff, made of the table of verbs. */
#include "pages.h"
#include "cli/verbs.h"

#include <string.h>

static const struct cli_option options[] = { { .name = NULL } };

struct settings { char none; };

/* Text of paragraphs: "\n" between them; nothing in it is a request. */
static void print_text(FILE *file, const char *text)
{
    bool line_start = true;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\n') fprintf(file, "\n.PP\n");
        else if (*at == '\\') fprintf(file, "\\e");
        else if (*at == '-') fprintf(file, "\\-");
        else if (line_start && (*at == '.' || *at == '\'')) fprintf(file, "\\&%c", *at);
        else if (*at == '\'') fprintf(file, "\\(aq");
        else fputc(*at, file);
        line_start = *at == '\n';
    }
    fputc('\n', file);
}

static void print_option(FILE *file, const struct cli_option *o)
{
    fprintf(file, ".TP\n");
    if (o->letter != 0) fprintf(file, "\\fB\\-%c\\fR, ", o->letter);
    fprintf(file, "\\fB");
    page_text(file, o->name, "-", "\\");
    fprintf(file, "\\fR%s%s%s\n", o->value != NULL ? " \\fI" : "", o->value != NULL ? o->value : "",
            o->value != NULL ? "\\fR" : "");
    print_text(file, o->help);
    char choices[4096];
    if (page_choice(o, 0) == NULL) return;
    if (o->listed_by != NULL) {
        fprintf(file, ".br\n%s lists them\n", o->listed_by);
        return;
    }
    cli_list_choices(o->choices, choices, sizeof choices);
    fprintf(file, ".br\none of %s\n", choices);
}

static void print_example(FILE *file, const char *text)
{
    fprintf(file, ".PP\nExample:\n.PP\n.nf\n");
    for (const char *line = text; *line != '\0';) {
        char one[1024];
        const size_t length = strcspn(line, "\n");
        snprintf(one, sizeof one, "%.*s", (int)length, line);
        print_text(file, one);
        line += length + (line[length] == '\n');
    }
    fprintf(file, ".fi\n");
}

static void print_verb(FILE *file, const struct cli_verb *verb)
{
    fprintf(file, ".SS \"blockscale %s %s\"\n", verb->name, verb->usage);
    print_text(file, verb->summary);
    if (verb->about != NULL) fprintf(file, ".PP\n"), print_text(file, verb->about);
    for (const struct cli_option *o = verb->options; o->name != NULL; o++) print_option(file, o);
    if (verb->example != NULL) print_example(file, verb->example);
}

static void print_manual(FILE *file)
{
    const int number = bsm_version();
    fprintf(file, ".\\\" made by \"blockscale manual\"\n.TH BLOCKSCALE 1 \"\" \"blockscale %d.%d.%d\" \"User "
                  "Commands\"\n",
            number / 10000, number / 100 % 100, number % 100);
    fprintf(file, ".SH NAME\nblockscale \\- ");
    print_text(file, cli_about);
    fprintf(file, ".SH SYNOPSIS\n.B blockscale\n.I VERB\n[arguments]\n.br\n.B blockscale help\n[\\fIVERB\\fR]\n.br\n"
                  ".B blockscale \\-\\-version\n.SH VERBS\n");
    for (int i = 0; cli_verbs[i] != NULL; i++) print_verb(file, cli_verbs[i]);
    fprintf(file, ".SH OPTIONS OF EVERY VERB\n");
    for (const struct cli_option *o = cli_common_options; o->name != NULL; o++) print_option(file, o);
    fprintf(file, ".SH EXIT STATUS\n");
    print_text(file, cli_exit_codes);
}

static int run(struct cli *cli, const void *given)
{
    (void)given;
    return page_print(cli, "manual", print_manual);
}

const struct cli_verb cli_verb_manual = {
    .name = "manual",
    .summary = "the manual page",
    .usage = "",
    .about =
        "Every verb and option, from the table that --help prints too, in the man macros of roff: blockscale manual | "
        "man -l -",
    .example = "blockscale manual",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .run = run,
};
