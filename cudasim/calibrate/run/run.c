/* Runs all cases: several processes, each with its share, so that a kernel that faults or hangs takes only itself
 * along. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu.h"
#include "result.h"

enum { CHUNK = 64, SENTENCE = 240 };

/* Shared by the processes: results of all cases. */
enum { MOST_JOBS = 64 };
struct slot { uint8_t outcome; bool begun, alone; char sentence[SENTENCE]; };      /* alone: its module killed a
                                                                                      process */
struct loading { uint32_t first, count; };                                        /* the module a worker loads; count 0:
                                                                                     none */
struct shared { char device[128]; int driver; char failure[256]; struct loading loading[MOST_JOBS]; };

struct run {
    const struct calibration *c;
    const struct run_options *options;
    struct shared *shared;
    struct slot *slot;
    uint8_t *bytes;                       /* of all cases, one after the other */
    size_t *offset;
    size_t total;
};

static void *share(size_t size)
{
    void *memory = mmap(NULL, size + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* ---- in a worker ---- */

static void first_line(char *sentence, const char *log)
{
    const char *error = strstr(log, "error");
    if (error == NULL) error = log;
    snprintf(sentence, SENTENCE, "%.*s", (int)strcspn(error, "\n\t"), error);
}

static void run_loaded(struct run *r, struct gpu *g, CUmodule module, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        if (r->slot[i].outcome != OUTCOME_NONE) continue;
        r->slot[i].begun = true;
        alarm(r->options->seconds);
        const CUresult result = gpu_run(g, module, &r->c->cases[i], i - first, r->bytes + r->offset[i]);
        alarm(0);
        if (result == CUDA_SUCCESS) {
            r->slot[i].outcome = OUTCOME_RAN;
            continue;
        }
        snprintf(r->slot[i].sentence, SENTENCE, "%s", gpu_error(g, result));
        r->slot[i].outcome = OUTCOME_FAULTED;
        _exit(3);                         /* the context may be lost: a new process goes on */
    }
}

/* A module that is refused, or that killed a process, is halved until the culprit stands alone. */
static void run_range(struct run *r, struct gpu *g, int number, uint32_t first, uint32_t count)
{
    static char log[16384];
    bool all_done = true, apart = false;
    for (uint32_t i = first; i < first + count; i++) {
        all_done = all_done && r->slot[i].outcome != OUTCOME_NONE;
        apart = apart || r->slot[i].alone;
    }
    if (all_done) return;
    CUmodule module = NULL;
    if (!apart || count == 1) {
        r->shared->loading[number] = (struct loading){ first, count };
        module = gpu_load(g, &r->c->cases[first], count, log, sizeof log);
        r->shared->loading[number].count = 0;
    }
    if (module != NULL) {
        run_loaded(r, g, module, first, count);
        g->unload(module);
    } else if (count == 1) {
        first_line(r->slot[first].sentence, log);
        r->slot[first].outcome = OUTCOME_REFUSED;
    } else {
        run_range(r, g, number, first, count / 2);
        run_range(r, g, number, first + count / 2, count - count / 2);
    }
}

static bool same_module(const struct calibration_case *a, const struct calibration_case *b)
{
    return a->version == b->version && strcmp(a->target, b->target) == 0;
}

static void worker(struct run *r, int number)
{
    static struct gpu g;
    const char *wrong = gpu_open(&g, r->options->library);
    if (wrong != NULL) {
        snprintf(r->shared->failure, sizeof r->shared->failure, "%s", wrong);
        _exit(2);
    }
    CUdevice device = 0;
    g.driver_version(&r->shared->driver);
    if (g.device_get(&device, 0) == CUDA_SUCCESS) g.device_name(r->shared->device, sizeof r->shared->device, device);
    uint32_t chunk = 0;
    for (uint32_t first = 0, count; first < r->c->count; first += count, chunk++) {
        for (count = 1; count < CHUNK && first + count < r->c->count; count++)
            if (!same_module(&r->c->cases[first], &r->c->cases[first + count])) break;
        if ((int)(chunk % (uint32_t)r->options->jobs) == number) run_range(r, &g, number, first, count);
    }
    _exit(0);
}

/* ---- the parent ---- */

/* The case that a dead worker had begun; only workers of other shares may have begun others, and these live. */
static bool blame(struct run *r, int number)
{
    uint32_t chunk = 0;
    for (uint32_t first = 0, count; first < r->c->count; first += count, chunk++) {
        for (count = 1; count < CHUNK && first + count < r->c->count; count++)
            if (!same_module(&r->c->cases[first], &r->c->cases[first + count])) break;
        if ((int)(chunk % (uint32_t)r->options->jobs) != number) continue;
        for (uint32_t i = first; i < first + count; i++)
            if (r->slot[i].begun && r->slot[i].outcome == OUTCOME_NONE) {
                r->slot[i].outcome = OUTCOME_FAULTED;
                snprintf(r->slot[i].sentence, SENTENCE, "the process died or the kernel did not end");
                return true;
            }
    }
    return false;
}

/* A worker died while its driver compiled a module. */
static bool blame_module(struct run *r, int number)
{
    const struct loading l = r->shared->loading[number];
    for (uint32_t i = l.first; i < l.first + l.count; i++) r->slot[i].alone = true;
    if (l.count == 1) {
        r->slot[l.first].outcome = OUTCOME_FAULTED;
        snprintf(r->slot[l.first].sentence, SENTENCE, "the driver's compiler died");
    }
    r->shared->loading[number].count = 0;
    return l.count != 0;
}

static pid_t start(struct run *r, int number)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) worker(r, number);
    return pid;
}

static bool work(struct run *r)
{
    pid_t pids[MOST_JOBS];
    int running = 0;
    for (int i = 0; i < r->options->jobs; i++)
        if ((pids[i] = start(r, i)) > 0) running++;
    while (running > 0) {
        int status, number = 0;
        const pid_t pid = wait(&status);
        if (pid < 0) return errno == ECHILD;
        while (number < r->options->jobs && pids[number] != pid) number++;
        if (number == r->options->jobs) continue;
        running--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 2) return false;
        const bool faulted = WIFEXITED(status) && WEXITSTATUS(status) == 3;
        if (!faulted && !blame(r, number) && !blame_module(r, number)) {
            snprintf(r->shared->failure, sizeof r->shared->failure, "a process died outside of modules and kernels");
            return false;
        }
        if ((pids[number] = start(r, number)) > 0) running++;
    }
    return true;
}

static void collect(struct run *r, struct result *result)
{
    const time_t now = time(NULL);
    struct tm day;
    strftime(result->date, sizeof result->date, "%Y-%m-%d", gmtime_r(&now, &day));
    snprintf(result->device, sizeof result->device, "%s", r->shared->device);
    result->driver = r->shared->driver;
    result->count = r->c->count;
    result->records = calloc(r->c->count + 1, sizeof *result->records);
    if (result->records == NULL) abort();
    for (uint32_t i = 0; i < r->c->count; i++) {
        const struct calibration_case *one = &r->c->cases[i];
        struct record *record = &result->records[i];
        *record = (struct record){ .outcome = (enum outcome)r->slot[i].outcome, .identity = calibration_identity(one),
                                   .name = strdup(one->name), .form = strdup(one->form),
                                   .sentence = strdup(r->slot[i].sentence) };
        if (record->outcome != OUTCOME_RAN) continue;
        record->size = one->output_bytes;
        record->bytes = malloc(record->size + 1);
        if (record->bytes == NULL) abort();
        memcpy(record->bytes, r->bytes + r->offset[i], record->size);
    }
}

bool run_all(const struct calibration *c, const struct run_options *options, struct result *result)
{
    struct run r = { .c = c, .options = options };
    *result = (struct result){ .count = 0 };
    r.offset = calloc(c->count + 1, sizeof *r.offset);
    if (r.offset == NULL) return false;
    for (uint32_t i = 0; i < c->count; i++) r.offset[i] = r.total, r.total += c->cases[i].output_bytes;
    r.shared = share(sizeof *r.shared), r.slot = share(c->count * sizeof *r.slot), r.bytes = share(r.total);
    bool good = r.shared != NULL && r.slot != NULL && r.bytes != NULL && work(&r);
    if (good) collect(&r, result);
    else fprintf(stderr, "%s: %s\n", options->library, r.shared == NULL ? "no memory" : r.shared->failure);
    if (r.shared != NULL) munmap(r.shared, sizeof *r.shared + 1);
    if (r.slot != NULL) munmap(r.slot, c->count * sizeof *r.slot + 1);
    if (r.bytes != NULL) munmap(r.bytes, r.total + 1);
    free(r.offset);
    return good;
}
