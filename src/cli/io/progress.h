/* A bar on stderr, where that is a terminal. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress { bool shown; int64_t total, done; };

struct progress progress_start(int64_t total);
void progress_show(const struct progress *progress, const char *what);
void progress_add(struct progress *progress, int64_t amount);
void progress_end(const struct progress *progress);          /* removes it */

#endif
