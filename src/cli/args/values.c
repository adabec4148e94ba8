/* Values of options: numbers are read to the end of the text, with range and overflow checked. */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cli_say(struct cli_why *why, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->sentence, sizeof why->sentence, format, arguments);
    va_end(arguments);
}

bool cli_flag(const struct cli_option *option, const char *text, void *destination, struct cli_why *why)
{
    (void)option, (void)text, (void)why;
    *(bool *)destination = true;
    return true;
}

bool cli_text(const struct cli_option *option, const char *text, void *destination, struct cli_why *why)
{
    (void)option;
    if (text[0] == '\0') {
        cli_say(why, "the value is empty");
        return false;
    }
    *(const char **)destination = text;
    return true;
}

/* Decimal digits with an optional minus, from *text up to a character of `stops` or the end. */
static bool read_integer(const char **text, const char *stops, int64_t *value)
{
    const char *digits = **text == '-' ? *text + 1 : *text;
    char *end;
    if (*digits < '0' || *digits > '9') return false;       /* strtoll would take blanks and signs */
    errno = 0;
    *value = strtoll(*text, &end, 10);
    if (errno != 0 || strchr(stops, *end) == NULL) return false;
    *text = end;
    return true;
}

static bool within(const struct cli_option *option, int64_t value)
{
    return (option->low == 0 && option->high == 0) || (value >= option->low && value <= option->high);
}

static bool say_integer_wanted(const struct cli_option *option, const char *form, struct cli_why *why)
{
    if (option->low == 0 && option->high == 0) cli_say(why, "%s of 64 bits, in decimal digits, is wanted", form);
    else if (option->high == INT64_MAX)
        cli_say(why, "%s, %" PRId64 " or more, in decimal digits, is wanted", form, option->low);
    else
        cli_say(why, "%s from %" PRId64 " to %" PRId64 ", in decimal digits, is wanted", form, option->low,
                option->high);
    return false;
}

bool cli_integer(const struct cli_option *option, const char *text, void *destination, struct cli_why *why)
{
    int64_t value;
    if (!read_integer(&text, "", &value) || !within(option, value))
        return say_integer_wanted(option, "a whole number", why);
    *(int64_t *)destination = value;
    return true;
}

bool cli_unsigned(const struct cli_option *option, const char *text, void *destination, struct cli_why *why)
{
    char *end = NULL;
    (void)option;
    errno = 0;
    const uint64_t value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno != 0 || *end != '\0') {
        cli_say(why, "a whole number from 0 to %" PRIu64 ", in decimal digits, is wanted", UINT64_MAX);
        return false;
    }
    *(uint64_t *)destination = value;
    return true;
}

bool cli_float(const struct cli_option *option, const char *text, void *destination, struct cli_why *why)
{
    char *end = NULL;
    (void)option;
    errno = 0;
    const float value = strtof(text, &end);
    const char first = text[0];
    if (first == '\0' || first == ' ' || (first >= '\t' && first <= '\r') || *end != '\0') {
        cli_say(why, "a number is wanted, such as 0.5, -1e-3 or inf");
        return false;
    }
    if (errno == ERANGE && (isinf(value) || value == 0)) {
        cli_say(why, "fp32 holds magnitudes from 1.4e-45 to 3.4e38");
        return false;
    }
    *(float *)destination = value;
    return true;
}

bool cli_range(const struct cli_option *option, const char *text, void *destination, struct cli_why *why)
{
    struct cli_range range = { 0, 0, 1 };
    bool good = read_integer(&text, ":", &range.first);
    range.last = range.first;
    if (good && *text == ':') text++, good = read_integer(&text, ":", &range.last);
    if (good && *text == ':') text++, good = read_integer(&text, "", &range.step);
    if (!good || *text != '\0' || !within(option, range.first) || !within(option, range.last))
        return say_integer_wanted(option, "N, FIRST:LAST or FIRST:LAST:STEP with each number", why);
    if (range.first > range.last || range.step < 1) {
        cli_say(why, range.step < 1 ? "the step must be 1 or more" : "the first number is above the last");
        return false;
    }
    *(struct cli_range *)destination = range;
    return true;
}

/* Choices ---------------------------------------------------------------------------------------------------------- */

/* By name, where `length` bytes of text are the name. */
static bool read_choice(const struct cli_choices *choices, const char *text, size_t length, int *value)
{
    char name[64];
    if (length == 0 || length >= sizeof name) return false;
    memcpy(name, text, length);
    name[length] = '\0';
    *value = choices->from_name(name);
    return *value >= choices->first && *value < choices->end;
}

void cli_list_choices(const struct cli_choices *choices, char *text, size_t room)
{
    const char *const *aliases = cli_choice_aliases(choices);
    size_t used = 0;
    text[0] = '\0';
    for (int i = choices->first; i < choices->end; i++)
        if (choices->name(i) != NULL && used < room)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used > 0 ? " " : "", choices->name(i));
    for (int i = 0; aliases != NULL && aliases[i] != NULL && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s %s is %s", i == 0 ? ";" : ",", aliases[i],
                                 choices->name(choices->from_name(aliases[i])));
}

/* The names, then the aliases, without gaps. */
static const char *nth_choice(const void *list, int index)
{
    const struct cli_choices *choices = list;
    for (int i = choices->first; i < choices->end; i++)
        if (choices->name(i) != NULL && index-- == 0) return choices->name(i);
    const char *const *aliases = cli_choice_aliases(choices);
    return aliases != NULL ? aliases[index] : NULL;
}

/* What was given is `length` bytes of text. */
static void suggest(const struct cli_choices *choices, const char *text, size_t length, struct cli_why *why)
{
    char given[64];
    const size_t used = strlen(why->sentence);
    snprintf(given, sizeof given, "%.*s", (int)(length < sizeof given ? length : 0), text);
    const char *near = cli_nearest(given, nth_choice, choices);
    if (near != NULL) snprintf(why->sentence + used, sizeof why->sentence - used, "; did you mean %s?", near);
}

static bool say_choices(const struct cli_option *option, const char *text, size_t length, struct cli_why *why)
{
    char names[900];
    cli_list_choices(option->choices, names, sizeof names);
    if (option->listed_by != NULL) cli_say(why, "no such name; %s lists them", option->listed_by);
    else cli_say(why, "one of these is wanted: %s", names);
    suggest(option->choices, text, length, why);
    return false;
}

bool cli_choice(const struct cli_option *option, const char *text, void *destination, struct cli_why *why)
{
    int value;
    if (!read_choice(option->choices, text, strlen(text), &value)) return say_choices(option, text, strlen(text), why);
    memcpy(destination, &value, sizeof value);   /* an enum of the library is as wide as an int */
    return true;
}

bool cli_choice_set(const struct cli_option *option, const char *text, void *destination, struct cli_why *why)
{
    uint64_t set = 0;
    for (const char *word = text;; word++) {
        const size_t length = strcspn(word, ",");
        int value;
        if (!read_choice(option->choices, word, length, &value)) return say_choices(option, word, length, why);
        set |= (uint64_t)1 << value;
        word += length;
        if (*word == '\0') break;
    }
    *(uint64_t *)destination = set;
    return true;
}

bool cli_layout(const struct cli_option *option, const char *text, void *destination, struct cli_why *why)
{
    if (bsm_scale_layout_parse(text, destination) == BSM_OK) return true;
    cli_say(why, "%s", bsm_last_error());
    if (option->choices != NULL) suggest(option->choices, text, strcspn(text, ":"), why);
    return false;
}

int cli_name_index(const char *const *names, const char *name)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}
