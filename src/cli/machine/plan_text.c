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

static void write_short(struct piece kernel, struct piece tile, struct piece reason, char *text, size_t bytes)
{
    snprintf(text, bytes, "%.*s%s%.*s%s%.*s", kernel.length, kernel.text, tile.length > 0 ? ", tiles of " : "",
             tile.length, tile.text, reason.length > 0 ? ": " : "", reason.length, reason.text);
}

void plan_in_short(const char *description, int columns, char *text, size_t bytes)
{
    const struct piece none = { "", 0 }, kernel = piece_behind(description, "kernel ", ",;");
    const struct piece tile = piece_behind(description, ", tiles of ", ",;");
    struct piece reason = find_reason(description);
    while (reason.length > 0 && reason.text[reason.length - 1] == ' ') reason.length--;
    const char *colon = memchr(reason.text, ':', (size_t)reason.length);
    const struct piece first_words = { reason.text, colon != NULL ? (int)(colon - reason.text) : reason.length };
    const struct { struct piece tile, reason; } tries[] = {
        { tile, reason }, { tile, first_words }, { none, reason }, { none, first_words }, { none, none }
    };
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        write_short(kernel, tries[i].tile, tries[i].reason, text, bytes);
        if (cli_text_width(text) <= columns) break;
    }
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
    char name[128];
    const struct piece kernel = piece_behind(description, "kernel ", ",;");
    snprintf(name, sizeof name, "%.*s", kernel.length, kernel.text);
    return strncmp(name, "cuda_", 5) == 0 && strstr(name, "_int8_") != NULL;
}
