/* bench_cpu [--rounds N] [--seconds S] [--base N] [--threads N] [--only WORD[+WORD...]] [--commit TEXT] [--json FILE]
 * [--svg FILE]
 *
 * Ours and the peer take turns in one process, each on `base` threads (1); the rows of threads have more of them.  On
 * one thread the clock is its processor time, so that other work on the machine costs its caches and its frequency
 * alone; several threads are timed by the wall.  Operands are as they are stored. */
#include "bench.h"
#include "cli/machine/blas_peer.h"
#include "cli/cli.h"
#include "cli/machine/machine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FP4 BSM_MXFP4, BSM_MXFP4
#define NV4 BSM_NVFP4, BSM_NVFP4
#define FP8 BSM_MXFP8_E4M3, BSM_MXFP8_E4M3
#define FP6 BSM_MXFP6_E3M2, BSM_MXFP6_E3M2

/*    kind           A, B                            M     N     K     reach  aim  how */
static const struct work works[] = {
    { KIND_SGEMM,     FP4,                            1024, 1024, 1024, 2.4, 3.0, 0 },
    { KIND_SGEMM,     FP4,                            2048, 2048, 2048, 2.4, 3.0, 0 },
    { KIND_SGEMM,     NV4,                            1024, 1024, 1024, 2.0, 2.5, 0 },
    { KIND_SGEMM,     NV4,                            2048, 2048, 2048, 2.0, 2.5, 0 },
    { KIND_SGEMM,     FP8,                            1024, 1024, 1024, 0.97, 1.04, 0 },
    { KIND_SGEMM,     FP8,                            2048, 2048, 2048, 0.97, 1.04, 0 },
    { KIND_SGEMM,     FP6,                            1024, 1024, 1024, 0.97, 1.04, 0 },
    { KIND_SGEMM,     FP6,                            2048, 2048, 2048, 0.97, 1.04, 0 },
    { KIND_SGEMM,     BSM_MXFP8_E4M3, BSM_MXFP4,      1024, 1024, 1024, 0.97, 1.04, 0 },
    { KIND_SGEMM,     BSM_MXFP8_E4M3, BSM_MXFP4,      2048, 2048, 2048, 0.97, 1.04, 0 },
    { KIND_SGEMM,     BSM_FORMAT_BF16, BSM_MXFP4,     1024, 1024, 1024, 0.97, 1.04, 0 },
    { KIND_SGEMM,     BSM_FORMAT_BF16, BSM_MXFP4,     2048, 2048, 2048, 0.97, 1.04, 0 },
    { KIND_SGEMM,     BSM_MXINT8, BSM_MXINT8,         1024, 1024, 1024, 0.97, 1.04, 0 },
    { KIND_SGEMM,     FP4,                            1,    4096, 4096, 5, 6, 0 },
    { KIND_SGEMM,     NV4,                            1,    4096, 4096, 4, 5, 0 },
    { KIND_SGEMM,     FP8,                            1,    4096, 4096, 1.7, 2.2, 0 },
    { KIND_SGEMM,     BSM_FORMAT_BF16, BSM_MXFP4,     1,    4096, 4096, 1.7, 2.2, 0 },
    { KIND_SGEMM,     FP4,                            8,    4096, 4096, 4.5, 7, 0 },
    { KIND_SGEMM,     NV4,                            8,    4096, 4096, 3.5, 5.5, 0 },
    { KIND_SGEMM,     FP8,                            8,    4096, 4096, 2, 3, 0 },
    { KIND_SGEMM,     FP4,                            32,   4096, 4096, 3.5, 4.4, 0 },
    { KIND_SGEMM,     NV4,                            32,   4096, 4096, 2.7, 3.7, 0 },
    { KIND_SGEMM,     FP8,                            32,   4096, 4096, 1.3, 1.6, 0 },
    { KIND_SGEMM,     FP4,                            1024, 1024, 1024, 2.4, 3.0, PREPACKED },
    { KIND_SGEMM,     NV4,                            1024, 1024, 1024, 2.0, 2.5, PREPACKED },
    { KIND_SGEMM,     FP8,                            1024, 1024, 1024, 0.97, 1.04, PREPACKED },
    { KIND_SGEMM,     FP4,                            8,    4096, 4096, 4.5, 7, PREPACKED },
    { KIND_SGEMM,     NV4,                            8,    4096, 4096, 3.5, 5.5, PREPACKED },
    { KIND_SGEMM,     FP4,                            32,   4096, 4096, 3.5, 4.4, PREPACKED },
    { KIND_SGEMM,     NV4,                            32,   4096, 4096, 2.7, 3.7, PREPACKED },
    { KIND_SGEMM,     FP8,                            32,   4096, 4096, 1.3, 1.6, PREPACKED },
    { KIND_BANDWIDTH, FP4,                            1,    65536, 4096, 0.75, 0.9, 0 },
    { KIND_BANDWIDTH, NV4,                            1,    65536, 4096, 0.75, 0.9, 0 },
    { KIND_BANDWIDTH, FP8,                            1,    32768, 4096, 0.75, 0.9, 0 },
    { KIND_BANDWIDTH, FP6,                            1,    32768, 4096, 0.75, 0.9, 0 },
    { KIND_BANDWIDTH, BSM_MXFP6_E2M3, BSM_MXFP6_E2M3, 1,    32768, 4096, 0.75, 0.9, 0 },
    { KIND_BANDWIDTH, BSM_MXINT8, BSM_MXINT8,         1,    32768, 4096, 0.75, 0.9, 0 },
    { KIND_THREADS,   FP4,                            1024, 1024, 1024, 1.85, 1.95, 0 },
    { KIND_THREADS,   FP4,                            32,   4096, 4096, 1.85, 1.95, 0 },
    { KIND_THREADS,   FP8,                            32,   4096, 4096, 1.85, 1.95, 0 },
    { KIND_THREADS,   FP4,                            1,    65536, 4096, 1.5, 1.6, 0 },
    { KIND_COPY,      FP4,                            2048, 0,    4096, 0.6, 0.8, 0 },
    { KIND_COPY,      NV4,                            2048, 0,    4096, 0.6, 0.8, 0 },
    { KIND_COPY,      FP8,                            2048, 0,    4096, 0.6, 0.8, 0 },
    { KIND_COPY,      NV4,                            2048, 0,    4096, 0.6, 0.8, COMPUTED },
    { KIND_COPY,      FP4,                            2048, 0,    4096, 0.6, 0.8, OF_BF16 },
    { KIND_COPY,      NV4,                            2048, 0,    4096, 0.6, 0.8, OF_BF16 },
    { KIND_COPY,      FP8,                            2048, 0,    4096, 0.6, 0.8, OF_BF16 },
    { KIND_COPY,      NV4,                            2048, 0,    4096, 0.6, 0.8, COMPUTED | OF_BF16 },
    { KIND_COPY,      FP4,                            2048, 0,    4096, 0.5, 0.77, BACK },
    { KIND_COPY,      NV4,                            2048, 0,    4096, 0.5, 0.77, BACK },
    { KIND_COPY,      FP8,                            2048, 0,    4096, 0.5, 0.77, BACK },
    { KIND_COPY,      FP4,                            2048, 0,    4096, 0.5, 0.77, BACK | OF_BF16 },
    { KIND_COPY,      NV4,                            2048, 0,    4096, 0.5, 0.77, BACK | OF_BF16 },
    { KIND_COPY,      FP8,                            2048, 0,    4096, 0.5, 0.77, BACK | OF_BF16 },
};
enum { WORKS = sizeof works / sizeof works[0] };
_Static_assert((int)WORKS <= (int)MOST_ROWS, "the table has room for every row");

struct settings { int rounds, base, threads; double seconds; const char *only, *json, *svg, *commit; };

static bool parse(int argc, char **argv, struct settings *s)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--rounds") == 0) s->rounds = atoi(value);
        else if (strcmp(name, "--seconds") == 0) s->seconds = atof(value);
        else if (strcmp(name, "--base") == 0) s->base = atoi(value);
        else if (strcmp(name, "--threads") == 0) s->threads = atoi(value);
        else if (strcmp(name, "--only") == 0) s->only = value;
        else if (strcmp(name, "--json") == 0) s->json = value;
        else if (strcmp(name, "--svg") == 0) s->svg = value;
        else if (strcmp(name, "--commit") == 0) s->commit = value;
        else return false;
    }
    return argc % 2 == 1 && s->rounds >= 1 && s->rounds <= MOST_ROUNDS && s->base >= 1 && s->base < s->threads &&
           s->threads <= 256;
}

/* Every word of `only`, divided by +, is found in the row's name, in its shape, or is what it is compared with. */
static bool wanted(const char *only, const char *what, const char *shape, const char *beside)
{
    for (;;) {
        char word[96];
        const size_t length = strcspn(only, "+");
        snprintf(word, sizeof word, "%.*s", (int)length, only);
        if (strstr(what, word) == NULL && strstr(shape, word) == NULL && strcmp(beside, word) != 0) return false;
        if (only[length] == '\0') return true;
        only += length + 1;
    }
}

static void read_load(char *text, size_t bytes)
{
    double loads[3];
    if (getloadavg(loads, 3) == 3) snprintf(text, bytes, "%.1f", loads[0]);
}

static void describe_run(struct table *t, bsm_context *context, const struct settings *s, const struct blas_peer *peer)
{
    const time_t now = time(NULL);
    machine_processor(t->machine, sizeof t->machine);
    strftime(t->date, sizeof t->date, "%Y-%m-%d", gmtime(&now));
    snprintf(t->commit, sizeof t->commit, "%s", s->commit);
    snprintf(t->peer, sizeof t->peer, "%s", peer->sgemm == NULL ? "" : peer->name);
    for (uint32_t bit = 1; bit <= BSM_CPU_BF16; bit <<= 1)
        if ((bsm_context_cpu_features(context) & bit) != 0)
            snprintf(t->cpu + strlen(t->cpu), sizeof t->cpu - strlen(t->cpu), "%s%s", t->cpu[0] != '\0' ? "," : "",
                     bsm_cpu_feature_name(bit));
    read_load(t->load, sizeof t->load);
    t->rounds = s->rounds;
    t->base = s->base;
}

static bool write_file(const char *path, const struct table *table, void (*report)(const struct table *, FILE *))
{
    if (path == NULL) return true;
    FILE *file = fopen(path, "w");
    if (file == NULL) return perror(path), false;
    report(table, file);
    return fclose(file) == 0;
}

int main(int argc, char **argv)
{
    static struct table table;
    struct settings s = { .rounds = 51, .base = 1, .threads = 2, .seconds = 0.02, .only = "", .commit = "unknown" };
    if (!parse(argc, argv, &s)) {
        fprintf(stderr,
                "usage: %s [--rounds 1..%d] [--seconds S] [--base N] [--threads N, more than base]\n"
                "       [--only WORD[+WORD...]] [--commit TEXT] [--json FILE] [--svg FILE]\n",
                argv[0], MOST_ROUNDS);
        return 2;
    }
    bsm_context *contexts[2];
    struct blas_peer peer;
    for (int i = 0; i < 2; i++) {
        const bsm_context_options options = { .struct_size = sizeof options, .threads = i == 0 ? s.base : s.threads };
        if (bsm_context_create(&options, &contexts[i]) != BSM_OK) return fprintf(stderr, "%s\n", bsm_last_error()), 1;
    }
    if (!blas_peer_open(&peer, s.base, bsm_context_cpu_features(contexts[0])))
        fprintf(stderr, "no BLAS library here%s%s: rows beside sgemm are skipped\n",
                peer.reference[0] != '\0' ? " but netlib's reference, " : "", peer.reference);
    describe_run(&table, contexts[0], &s, &peer);
    for (int i = 0; i < WORKS; i++) {
        struct row *row = &table.rows[table.count];
        char what[96], shape[96];
        *row = (struct row){ .work = works[i], .threads = works[i].kind == KIND_THREADS ? s.threads : s.base };
        row_names(row, what, shape, sizeof what);
        if (!wanted(s.only, what, shape, kind_name(works[i].kind))) continue;
        table.count++;
        measure_row(contexts, &peer, s.rounds, s.seconds, row);
    }
    report_text(&table, stdout);
    const bool written = write_file(s.json, &table, report_json) && write_file(s.svg, &table, report_picture);
    bsm_context_destroy(contexts[0]), bsm_context_destroy(contexts[1]);
    return written ? 0 : 1;
}
