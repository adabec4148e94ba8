/* Environment variables: numbers and words. */
#include "environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void environment_tell(const struct environment *e, const char *format, va_list arguments)
{
    if (getenv(e->quiet) == NULL) vfprintf(stderr, format, arguments);
}

void environment_say(const struct environment *e, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    environment_tell(e, format, arguments);
    va_end(arguments);
}

bool environment_number(const struct environment *e, const char *name, uint64_t low, uint64_t high, uint64_t *value)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') return true;
    char *end;
    errno = 0;
    const unsigned long long read = strtoull(text, &end, 0);
    if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && read >= low && read <= high) {
        *value = read;
        return true;
    }
    environment_say(e, "%s: %s=%s is no number from %llu to %llu\n", e->program, name, text, (unsigned long long)low,
                    (unsigned long long)high);
    return false;
}

bool environment_number32(const struct environment *e, const char *name, uint64_t low, uint64_t high, uint32_t *value)
{
    uint64_t wide = *value;
    const bool ok = environment_number(e, name, low, high, &wide);
    *value = (uint32_t)wide;
    return ok;
}

bool environment_yes_or_no(const struct environment *e, const char *name, bool *value)
{
    uint64_t wide = *value;
    const bool ok = environment_number(e, name, 0, 1, &wide);
    *value = wide != 0;
    return ok;
}

bool environment_choice(const struct environment *e, const char *name, const struct setting *words, int count,
                        int *value)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') return true;
    for (int i = 0; i < count; i++)
        if (strcmp(words[i].text, text) == 0) {
            *value = words[i].value;
            return true;
        }
    environment_say(e, "%s: %s=%s is none of", e->program, name, text);
    for (int i = 0; i < count; i++) environment_say(e, "%s %s", i == 0 ? "" : ",", words[i].text);
    environment_say(e, "\n");
    return false;
}
