/* The machine, in words, see machine.h. */
#include "machine.h"

#include <stdio.h>
#include <string.h>

bool machine_processor(char *name, size_t bytes)
{
    char line[512];
    bool found = false;
    snprintf(name, bytes, "unknown processor");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL) return false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
        const char *start = colon + 1 + strspn(colon + 1, " \t");
        snprintf(name, bytes, "%.*s", (int)strcspn(start, "\n"), start);
        found = true;
    }
    fclose(file);
    return found;
}
