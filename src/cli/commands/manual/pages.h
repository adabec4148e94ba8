/* Texts that the command makes of its own table: completions and the manual page. */
#ifndef CLI_PAGES_H
#define CLI_PAGES_H

#include "cli/cli.h"

/* The n-th option of a verb, those of every verb behind its own; NULL behind the last. */
const struct cli_option *page_option(const struct cli_verb *verb, int n);

/* The n-th name that an option's value may have, NULL behind the last. */
const char *page_choice(const struct cli_option *option, int n);

/* Copies text, with `escape` before each character of `special`; a line break becomes a blank. */
void page_text(FILE *file, const char *text, const char *special, const char *escape);

/* Prints what write gives; with --json as {"KEY": text}. */
int page_print(const struct cli *cli, const char *key, void (*write)(FILE *file));

#endif
