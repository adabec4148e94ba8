/* What a run of all cases gave, and its file. */
#ifndef CUDASIM_CALIBRATE_RUN_RESULT_H
#define CUDASIM_CALIBRATE_RUN_RESULT_H

#include "calibrate/forms/calibrate.h"

enum outcome { OUTCOME_NONE, OUTCOME_RAN, OUTCOME_REFUSED, OUTCOME_FAULTED };

struct record {
    enum outcome outcome;
    uint64_t identity;                    /* of the case that was run */
    char *name, *form;
    char *sentence;                       /* why it was refused, or how it failed; or NULL */
    uint8_t *bytes;
    size_t size;
};

struct result {
    char device[128];
    int driver;                           /* cuDriverGetVersion */
    char date[16];                        /* 2026-01-31 */
    struct record *records;
    uint32_t count;
};

/* false: errno says why. */
bool result_write(const struct result *r, const char *file);
/* false, with *sentence saying why. */
bool result_read(struct result *r, const char *file, const char **sentence);
void result_release(struct result *r);
const struct record *result_find(const struct result *r, const char *name);

/* run.c: runs all cases with the driver library in `jobs` processes.  Returns false, having said why, where the driver
 * cannot be used. */
struct run_options { const char *library; int jobs; uint32_t seconds; bool quiet; };
bool run_all(const struct calibration *c, const struct run_options *options, struct result *r);

#endif
