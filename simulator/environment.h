/* Options that come from environment variables.  A variable that is not understood is an error: nothing runs under
 * settings that nobody asked for. */
#ifndef SIMULATOR_ENVIRONMENT_H
#define SIMULATOR_ENVIRONMENT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* Who reads them: the name in front of its sentences, and the variable that keeps it quiet. */
struct environment { const char *program, *quiet; };
struct setting { const char *text; int value; };

__attribute__((format(printf, 2, 0)))
void environment_tell(const struct environment *e, const char *format, va_list arguments);
__attribute__((format(printf, 2, 3)))
void environment_say(const struct environment *e, const char *format, ...);

/* Each: false after a sentence if the variable is set to something else; the value stays where it is not set. */
bool environment_number(const struct environment *e, const char *name, uint64_t low, uint64_t high, uint64_t *value);
bool environment_number32(const struct environment *e, const char *name, uint64_t low, uint64_t high, uint32_t *value);
bool environment_yes_or_no(const struct environment *e, const char *name, bool *value);
bool environment_choice(const struct environment *e, const char *name, const struct setting *words, int count,
                        int *value);

#endif
