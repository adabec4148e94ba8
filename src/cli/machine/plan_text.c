/* Plans for people, see plan_text.h. */
#include "cli/cli.h"
#include "plan_text.h"

#include <string.h>

/* A piece of a description; empty where it has no such piece. */
struct piece { const char *text; int length; };

/* What follows `before`, up to the first of the characters `ends`. */
static struct piece piece_behind(const char *description, const char *before, const char *ends)
{
    const char *found = strstr(description, before);
    if (found == NULL) return (struct piece){ "", 0 };
    found += strlen(before);
    return (struct piece){ found, (int)strcspn(found, ends) };
}

/* "...; chosen for mxfp4 x bf16: REASON" or "...; chosen because: REASON (numbers)". */
static struct piece find_reason(const char *description)
{
    const char *chosen = strstr(description, "; chosen ");
    return chosen != NULL ? piece_behind(chosen, ": ", "(;") : (struct piece){ "", 0 };
}

void plan_in_short(const char *description, int columns, char *text, size_t bytes)
{
    const struct piece kernel = piece_behind(description, "kernel ", ",;"), tile = piece_behind(description, ", tiles of ", ",;");
    struct piece reason = find_reason(description);
    while (reason.length > 0 && reason.text[reason.length - 1] == ' ') reason.length--;
    const char *before_tile = tile.length > 0 ? ", tiles of " : "", *before_reason = reason.length > 0 ? ": " : "";
    snprintf(text, bytes, "%.*s%s%.*s%s%.*s", kernel.length, kernel.text, before_tile, tile.length, tile.text, before_reason,
             reason.length, reason.text);
    if (cli_text_width(text) > columns)
        snprintf(text, bytes, "%.*s%s%.*s", kernel.length, kernel.text, before_reason, reason.length, reason.text);
    if (cli_text_width(text) > columns) snprintf(text, bytes, "%.*s", kernel.length, kernel.text);
    if (kernel.length == 0) snprintf(text, bytes, "%.*s", columns, description);
}

void plan_print(const char *label, const char *description, bool verbose)
{
    char text[PLAN_TEXT_BYTES];
    const int column = cli_text_width(label);
    plan_in_short(description, CLI_PAGE_WIDTH - column, text, sizeof text);
    printf("%s", label);
    cli_print_wrapped(stdout, verbose ? description : text, column, column);
}

bool plan_multiplies_int8_rows(const char *description)
{
    return strstr(description, " as integers of 8 bits") != NULL || strstr(description, " as int8") != NULL;
}
