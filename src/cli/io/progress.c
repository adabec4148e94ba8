/* A bar on stderr. */
#include "progress.h"
#include "mask.h"

#include <stdio.h>
#include <unistd.h>

enum { WIDTH = 30 };

struct progress progress_start(int64_t total)
{
    return (struct progress){ isatty(STDERR_FILENO) == 1, total > 0 ? total : 1, 0 };
}

void progress_show(const struct progress *progress, const char *what)
{
    char bar[WIDTH + 1], name[64];
    if (!progress->shown) return;
    const double share = (double)progress->done / (double)progress->total;
    for (int i = 0; i < WIDTH; i++) bar[i] = i < (int)(share * WIDTH) ? '#' : '.';
    bar[WIDTH] = '\0';
    snprintf(name, sizeof name, "%.60s", what);
    mask_text(name);
    fprintf(stderr, "\r\033[K[%s] %3d %%  %s", bar, (int)(100 * share), name);
}

void progress_add(struct progress *progress, int64_t amount) { progress->done += amount; }

void progress_end(const struct progress *progress)
{
    if (progress->shown) fprintf(stderr, "\r\033[K");
}
