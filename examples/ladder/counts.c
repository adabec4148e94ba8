#include "counts.h"
#include "problem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void remove_file(void) { unlink(path); }

void counts_begin(void)
{
    snprintf(path, sizeof path, "/tmp/ladder-%ld.json", (long)getpid());
    if (setenv("CUDASIM_PROFILE", path, 1) != 0) stop("CUDASIM_PROFILE: %s", strerror(errno));
    atexit(remove_file);
}

/* The file's last line, one JSON object; the caller frees it. */
static char *last_profile(void)
{
    FILE *file = fopen(path, "r");
    char *line = NULL, *last = NULL;
    size_t room = 0;
    if (file == NULL) stop("%s: the simulator wrote no profile", path);
    while (getline(&line, &room, file) > 0) {
        free(last);
        last = strdup(line);
    }
    free(line);
    fclose(file);
    if (last == NULL) stop("%s: an empty profile", path);
    return last;
}

/* The number behind `key` at or behind `from`; 0 if there is none. */
static long long number_behind(const char *from, const char *key)
{
    const char *at = from == NULL ? NULL : strstr(from, key);
    return at == NULL ? 0 : strtoll(at + strlen(key), NULL, 10);
}

/* Warps' instructions whose names begin so. */
static long long instructions(const char *profile, const char *name)
{
    char entry[80];
    long long sum = 0;
    snprintf(entry, sizeof entry, "{\"name\":\"%s", name);
    for (const char *at = strstr(profile, entry); at != NULL; at = strstr(at + 1, entry))
        sum += number_behind(at, "\"warps\":");
    return sum;
}

void counts_print(void)
{
    char *profile = last_profile();
    const char *p = profile;
    const char *threads = strstr(p, "{\"engine\":\"loads and stores\""), *tma = strstr(p, "{\"engine\":\"bulk copies");
    printf("    executed, simulated: %lld instructions of warps, %lld of threads\n",
           number_behind(p, "\"warp_instructions\":"), number_behind(p, "\"thread_instructions\":"));
    printf("    tcgen05: %lld mma, %lld cp, %lld st, %lld ld, %lld commit; copies by TMA: %lld\n",
           instructions(p, "tcgen05.mma"), instructions(p, "tcgen05.cp"), instructions(p, "tcgen05.st"),
           instructions(p, "tcgen05.ld"), instructions(p, "tcgen05.commit"), instructions(p, "cp.async.bulk.tensor"));
    const long long written = number_behind(threads, "\"global_written\":") + number_behind(tma, "\"global_written\":");
    printf("    bytes of global memory: %lld read by threads, %lld by TMA, %lld written\n",
           number_behind(threads, "\"global_read\":"), number_behind(tma, "\"global_read\":"), written);
    free(profile);
}
