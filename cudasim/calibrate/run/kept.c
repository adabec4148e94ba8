/* The hardware's results as the repository keeps them, and the simulator's against them. */
#include "compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t digest_of(const uint8_t *bytes, size_t size) { return calibration_hash(3, bytes, size); }

/* Where and when a file's lines were measured. */
struct origin { char device[128], date[16]; int driver; };

static bool read_line(struct kept *k, struct origin *from, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '#' || line[0] == '\0') return true;
    if (sscanf(line, "device %127[^\n]", from->device) == 1 || sscanf(line, "driver %d", &from->driver) == 1 ||
        sscanf(line, "date %15s", from->date) == 1)
        return true;
    struct kept_line one;
    char state;
    int name = 0;
    if (sscanf(line, "%c %" SCNx64 " %" SCNx64 " %" SCNu64 " %n", &state, &one.identity, &one.digest, &one.ulp, &name)
            < 4
        || name == 0)
        return false;
    one.state = (enum kept_state)state;
    one.name = strdup(line + name);
    if (k->count % 1024 == 0) k->lines = realloc(k->lines, (k->count + 1024) * sizeof *k->lines);
    if (k->lines == NULL || one.name == NULL) abort();
    k->lines[k->count++] = one;
    return true;
}

bool kept_read(struct kept *k, const char *file)
{
    char line[1024];
    struct origin from = { .driver = 0 };
    FILE *in = fopen(file, "r");
    if (in == NULL) return false;
    bool good = true;
    while (good && fgets(line, sizeof line, in) != NULL) good = read_line(k, &from, line);
    fclose(in);
    const size_t used = strlen(k->devices);
    snprintf(k->devices + used, sizeof k->devices - used, "%s%s (driver %d.%d, %s)", used == 0 ? "" : " and ",
             from.device, from.driver / 1000, from.driver % 1000 / 10, from.date);
    return good;
}

void kept_release(struct kept *k)
{
    for (uint32_t i = 0; i < k->count; i++) free(k->lines[i].name);
    free(k->lines);
    *k = (struct kept){ .count = 0 };
}

const struct kept_line *kept_find(const struct kept *k, const char *name)
{
    for (uint32_t i = 0; i < k->count; i++)
        if (strcmp(k->lines[i].name, name) == 0) return &k->lines[i];
    return NULL;
}

static bool as_kept(const struct kept_line *line, const struct record *record)
{
    if (line->state == KEPT_REFUSED) return record->outcome == OUTCOME_REFUSED;
    return record->outcome == OUTCOME_RAN && digest_of(record->bytes, record->size) == line->digest;
}

bool kept_check(const struct calibration *c, const struct kept *k, const struct result *simulated)
{
    uint32_t checked = 0, unmeasured = 0, different = 0, known = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct record *record = &simulated->records[i];
        const struct kept_line *line = kept_find(k, record->name);
        if (line == NULL || line->identity != record->identity) {
            unmeasured++;
            continue;
        }
        checked++;
        if (as_kept(line, record)) continue;
        if (line->state == KEPT_DIFFERENT) {
            known++;
            continue;
        }
        different++;
        printf("%s: %s %s\n", record->name,
               record->outcome != OUTCOME_RAN ? "does not run any more:" : line->state == KEPT_WITHIN
                   ? "differs from what was within the manual's error: measure again" : "differs from hardware",
               record->sentence == NULL ? "" : record->sentence);
    }
    printf("%u cases are as on %s, %u known to differ; %u differ; %u were not measured\n",
           checked - different - known, k->devices, known, different, unmeasured);
    printf("cudasim_calibration: %u passed, %u failed, %u skipped\n", checked - different - known, different,
           known + unmeasured);
    return different == 0 && checked != 0;
}
