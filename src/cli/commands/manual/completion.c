/* blockscale completion: what bash, zsh and fish need to complete command lines, made of the table of verbs. */
#include "pages.h"
#include "cli/verbs.h"

struct settings { int shell; };

enum shell { BASH, ZSH, FISH, SHELL_COUNT };
static const char *const shell_names[] = { "bash", "zsh", "fish", NULL };
static const char *shell_name(int value) { return value >= 0 && value < SHELL_COUNT ? shell_names[value] : NULL; }
static int shell_from_name(const char *name) { return cli_name_index(shell_names, name); }
static const struct cli_choices shells = { shell_name, shell_from_name, 0, SHELL_COUNT };

static const struct cli_option options[] = {
    { "SHELL", 0, NULL, "whose", CLI_CHOICE(struct settings, shell, &shells), .required = true },
    { .name = NULL }
};

/* A value that is a path or any other text: files are offered.  Numbers are not completed. */
static bool takes_files(const struct cli_option *o) { return o->parse == cli_text; }

static void print_choices(FILE *file, const struct cli_option *o)
{
    for (int i = 0; page_choice(o, i) != NULL; i++) fprintf(file, "%s%s", i > 0 ? " " : "", page_choice(o, i));
}

static void print_verbs(FILE *file)
{
    for (int i = 0; cli_verbs[i] != NULL; i++) fprintf(file, "%s ", cli_verbs[i]->name);
    fprintf(file, "help");
}

/* bash ------------------------------------------------------------------------------------------------------------- */

/* Words behind an option, and words instead of an argument. */
static void bash_values(FILE *file, const struct cli_verb *verb)
{
    const struct cli_option *o;
    for (int i = 0; (o = page_option(verb, i)) != NULL; i++) {
        if (page_choice(o, 0) == NULL || cli_is_positional(o)) continue;
        fprintf(file, "        \"%s %s\"", verb->name, o->name);
        if (o->letter != 0) fprintf(file, "|\"%s -%c\"", verb->name, o->letter);
        fprintf(file, ") names=\"");
        print_choices(file, o);
        fprintf(file, "\" ;;\n");
    }
}

static void bash_words(FILE *file, const struct cli_verb *verb, bool positional)
{
    const struct cli_option *o;
    fprintf(file, "            %s) names=\"", verb->name);
    for (int i = 0; (o = page_option(verb, i)) != NULL; i++) {
        if (cli_is_positional(o) != positional) continue;
        if (positional) print_choices(file, o);
        else fprintf(file, "%s ", o->name);
    }
    fprintf(file, "\" ;;\n");
}

static void bash(FILE *file)
{
    fprintf(file, "# bash completion of blockscale, made by \"blockscale completion bash\"\n"
                  "_blockscale()\n{\n"
                  "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} "
                  "names=\n"
                  "    if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then "
                  "before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                  "    if ((COMP_CWORD == 1)) || [[ $verb == help ]]; then names=\"");
    print_verbs(file);
    fprintf(file, " --help --version\"; fi\n    case \"$verb $before\" in\n");
    for (int i = 0; cli_verbs[i] != NULL; i++) bash_values(file, cli_verbs[i]);
    fprintf(file, "    esac\n    if [[ -z $names && $word == -* ]]; then\n        case $verb in\n");
    for (int i = 0; cli_verbs[i] != NULL; i++) bash_words(file, cli_verbs[i], false);
    fprintf(file, "        esac\n    elif [[ -z $names && $before != -* ]]; then\n        case $verb in\n");
    for (int i = 0; cli_verbs[i] != NULL; i++)
        if (cli_is_positional(page_option(cli_verbs[i], 0)) && page_choice(page_option(cli_verbs[i], 0), 0) != NULL)
            bash_words(file, cli_verbs[i], true);
    fprintf(file, "        esac\n    fi\n"
                  "    COMPREPLY=($(compgen -W \"$names\" -- \"$word\"))\n}\n"
                  "complete -o default -F _blockscale blockscale\n");
}

/* zsh -------------------------------------------------------------------------------------------------------------- */

/* One argument of _arguments: '(-f --format)'{-f+,--format=}'[help]:FORMAT:(a b c)'. */
static void zsh_option(FILE *file, const struct cli_option *o)
{
    const bool valued = cli_takes_value(o);
    fprintf(file, " \\\n            ");
    if (cli_is_positional(o)) fprintf(file, "':%s:", o->name);
    else if (o->letter != 0)
        fprintf(file, "'(-%c %s)'{-%c%s,%s%s}'[", o->letter, o->name, o->letter, valued ? "+" : "", o->name,
                valued ? "=" : "");
    else fprintf(file, "'%s%s[", o->name, valued ? "=" : "");
    if (!cli_is_positional(o)) {
        for (const char *at = o->help; *at != '\0'; at++)
            fprintf(file, *at == '\'' ? "'\\''" : *at == '[' || *at == ']' ? "\\%c" : "%c", *at);
        fprintf(file, "]");
        if (valued) fprintf(file, ":%s:", o->value);
    }
    if (page_choice(o, 0) != NULL) fprintf(file, "("), print_choices(file, o), fprintf(file, ")");
    else if (valued && takes_files(o)) fprintf(file, "_files");
    else if (valued) fprintf(file, " ");
    fprintf(file, "'");
}

static void zsh(FILE *file)
{
    const struct cli_option *o;
    fprintf(file, "#compdef blockscale\n# zsh completion of blockscale, made by \"blockscale completion zsh\"\n"
                  "_blockscale() {\n    local -a verbs\n    verbs=(\n");
    for (int i = 0; cli_verbs[i] != NULL; i++) {
        fprintf(file, "        '%s:", cli_verbs[i]->name);
        page_text(file, cli_verbs[i]->summary, "'", "'\\'");
        fprintf(file, "'\n");
    }
    fprintf(file, "        'help:the text of a verb'\n    )\n"
                  "    if ((CURRENT == 2)) || [[ $words[2] == help ]]; then _describe verb verbs; return; fi\n"
                  "    local verb=$words[2]\n    shift words\n    ((CURRENT--))\n    case $verb in\n");
    for (int i = 0; cli_verbs[i] != NULL; i++) {
        fprintf(file, "        %s) _arguments -s", cli_verbs[i]->name);
        for (int j = 0; (o = page_option(cli_verbs[i], j)) != NULL; j++) zsh_option(file, o);
        fprintf(file, " ;;\n");
    }
    fprintf(
        file,
        "    esac\n}\nif [[ $funcstack[1] == _blockscale ]]; then _blockscale \"$@\"; "
        "else compdef _blockscale blockscale; fi\n");
}

/* fish ------------------------------------------------------------------------------------------------------------- */

static void fish_description(FILE *file, const char *text)
{
    fprintf(file, " -d '");
    page_text(file, text, "'\\", "\\");
    fprintf(file, "'\n");
}

static void fish_option(FILE *file, const struct cli_verb *verb, const struct cli_option *o)
{
    if (cli_is_positional(o) && page_choice(o, 0) == NULL) return;        /* files, as without a word of ours */
    fprintf(file, "complete -c blockscale -n '__fish_seen_subcommand_from %s'", verb->name);
    if (!cli_is_positional(o)) fprintf(file, " -l %s", o->name + 2);
    if (o->letter != 0) fprintf(file, " -s %c", o->letter);
    if (page_choice(o, 0) != NULL) fprintf(file, " -x -a '"), print_choices(file, o), fprintf(file, "'");
    else if (cli_takes_value(o)) fprintf(file, takes_files(o) ? " -r -F" : " -x");
    fish_description(file, o->help);
}

static void fish(FILE *file)
{
    const struct cli_option *o;
    fprintf(file, "# fish completion of blockscale, made by \"blockscale completion fish\"\n");
    for (int i = 0; cli_verbs[i] != NULL; i++) {
        fprintf(file, "complete -c blockscale -n __fish_use_subcommand -f -a %s", cli_verbs[i]->name);
        fish_description(file, cli_verbs[i]->summary);
    }
    fprintf(file, "complete -c blockscale -n __fish_use_subcommand -f -a help -d 'the text of a verb'\n"
                  "complete -c blockscale -n '__fish_seen_subcommand_from help' -f -a '");
    print_verbs(file);
    fprintf(file, "'\n");
    for (int i = 0; cli_verbs[i] != NULL; i++)
        for (int j = 0; (o = page_option(cli_verbs[i], j)) != NULL; j++) fish_option(file, cli_verbs[i], o);
}

static int run(struct cli *cli, const void *given)
{
    static void (*const writers[])(FILE *) = { [BASH] = bash, [ZSH] = zsh, [FISH] = fish };
    const struct settings *s = given;
    return page_print(cli, "script", writers[s->shell]);
}

const struct cli_verb cli_verb_completion = {
    .name = "completion",
    .summary = "a script with which bash, zsh or fish complete the command's words",
    .usage = "bash|zsh|fish",
    .about =
        "Verbs, options, and the names that a value may have; files where a value is one. make install puts the "
        "scripts where the shells look for them; otherwise: source <(blockscale completion bash).",
    .example = "blockscale completion bash",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .run = run,
};
