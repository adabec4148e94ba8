/* Texts made of the table of verbs, see pages.h. */
#include "pages.h"

#include <stdlib.h>
#include <string.h>

const struct cli_option *page_option(const struct cli_verb *verb, int n)
{
    const struct cli_option *const tables[] = { verb->options, cli_common_options };
    for (int t = 0; t < 2; t++)
        for (const struct cli_option *o = tables[t]; o->name != NULL; o++)
            if (n-- == 0) return o;
    return NULL;
}

const char *page_choice(const struct cli_option *option, int n)
{
    const struct cli_choices *choices = option->choices;
    for (int i = choices != NULL ? choices->first : 0; choices != NULL && i < choices->end; i++)
        if (choices->name(i) != NULL && n-- == 0) return choices->name(i);
    return NULL;
}

void page_text(FILE *file, const char *text, const char *special, const char *escape)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (strchr(special, *at) != NULL) fputs(escape, file);
        fputc(*at == '\n' ? ' ' : *at, file);
    }
}

static int print_as_json(const struct cli *cli, const char *key, void (*write)(FILE *file))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file != NULL) write(file);
    if (file == NULL || fclose(file) != 0) {
        free(text);
        return cli_bad_input(cli, "no memory for %s", key);
    }
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, key, text);
    cli_json_end(&json);
    free(text);
    return CLI_DONE;
}

int page_print(const struct cli *cli, const char *key, void (*write)(FILE *file))
{
    if (cli->json) return print_as_json(cli, key, write);
    write(stdout);
    return CLI_DONE;
}
