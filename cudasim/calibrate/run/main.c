/* cudasim-calibrate: runs small kernels on a GPU or on cudasim and compares all bytes that they write. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"

static const char usage[] =
    "cudasim-calibrate --library LIBRARY --out FILE     runs all cases with this libcuda and keeps what they write\n"
    "cudasim-calibrate --compare HARDWARE SIMULATED     compares two such files; --keep FILE: digests for --check\n"
    "cudasim-calibrate --library LIBRARY --check FILE... runs all cases and compares with kept digests\n"
    "cudasim-calibrate --list | --emit FOLDER           names of the cases; a file of PTX for each\n"
    "  --only A|B  cases whose names contain A or B   --jobs N  processes   --seconds N  for one kernel (30)\n";

enum { MOST_CHECKED = 8 };
struct arguments {
    const char *library, *out, *check[MOST_CHECKED], *keep, *only, *emit;
    bool compare, list;
    int jobs, seconds, checked;
};

static int list(const struct calibration *c)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < c->count; i++) printf("%s\n", c->cases[i].name), bytes += c->cases[i].output_bytes;
    fprintf(stderr, "%u cases, %zu bytes of output\n", c->count, bytes);
    return 0;
}

static int emit(const struct calibration *c, const char *folder)
{
    char file[4096];
    for (uint32_t i = 0; i < c->count; i++) {
        const struct calibration_case *one = &c->cases[i];
        snprintf(file, sizeof file, "%s/%05u.ptx", folder, i);
        FILE *out = fopen(file, "w");
        if (out == NULL) {
            perror(file);
            return 2;
        }
        char *entry = calibration_entry(one, i);
        fprintf(out, "// %s\n.version %u.%u\n.target %s\n.address_size 64\n%s", one->name, one->version / 10,
                one->version % 10, one->target, entry);
        free(entry);
        fclose(out);
    }
    return 0;
}

static bool load(struct result *r, const char *file)
{
    const char *sentence;
    if (result_read(r, file, &sentence)) return true;
    fprintf(stderr, "%s: %s\n", file, sentence);
    return false;
}

static int compare(const struct calibration *c, char **files, const char *keep)
{
    struct result hardware, simulated;
    if (!load(&hardware, files[0]) || !load(&simulated, files[1])) return 2;
    const bool same = compare_runs(c, &hardware, &simulated, keep);
    result_release(&hardware), result_release(&simulated);
    return same ? 0 : 1;
}

static int run(const struct calibration *c, const struct arguments *a)
{
    struct result result;
    const struct run_options options = { .library = a->library, .jobs = a->jobs, .seconds = (uint32_t)a->seconds };
    if (!run_all(c, &options, &result)) return 2;
    int status = 0;
    if (a->out != NULL && !result_write(&result, a->out)) {
        perror(a->out);
        status = 2;
    }
    struct kept kept = { .count = 0 };
    for (int i = 0; i < a->checked && status == 0; i++)
        if (!kept_read(&kept, a->check[i])) {
            fprintf(stderr, "%s: cannot be read\n", a->check[i]);
            status = 2;
        }
    if (a->checked != 0 && status == 0) status = kept_check(c, &kept, &result) ? 0 : 1;
    kept_release(&kept);
    result_release(&result);
    return status;
}

static bool parse(int argc, char **argv, struct arguments *a)
{
    static const struct option options[] = {
        { "library", required_argument, NULL, 'l' }, { "out", required_argument, NULL, 'o' },
          { "check", required_argument, NULL, 'k' },
        { "keep", required_argument, NULL, 'K' },    { "only", required_argument, NULL, 'n' },
          { "emit", required_argument, NULL, 'e' },
        { "jobs", required_argument, NULL, 'j' },    { "seconds", required_argument, NULL, 's' },
          { "compare", no_argument, NULL, 'c' },
        { "list", no_argument, NULL, 'L' },          { NULL, 0, NULL, 0 } };
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (o) {
        case 'l': a->library = optarg; break;
        case 'o': a->out = optarg; break;
        case 'k':
            if (a->checked == MOST_CHECKED) return false;
            a->check[a->checked++] = optarg;
            break;
        case 'K': a->keep = optarg; break;
        case 'n': a->only = optarg; break;
        case 'e': a->emit = optarg; break;
        case 'j': a->jobs = atoi(optarg); break;
        case 's': a->seconds = atoi(optarg); break;
        case 'c': a->compare = true; break;
        case 'L': a->list = true; break;
        default: return false;
        }
    if (a->jobs < 1 || a->jobs > 64 || a->seconds < 1) return false;
    if (a->compare) return argc - optind == 2;
    return optind == argc
           && (a->list || a->emit != NULL || (a->library != NULL && (a->out != NULL || a->checked != 0)));
}

int main(int argc, char **argv)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct arguments a = { .jobs = processors < 1 ? 1 : processors > 16 ? 16 : (int)processors, .seconds = 30 };
    if (!parse(argc, argv, &a)) {
        fputs(usage, stderr);
        return 2;
    }
    setenv("CUDASIM_THREADS", "1", 0);    /* the processes share the processors */
    setenv("CUDASIM_REPORTS", "stop", 0);
    struct calibration c = { .count = 0 };
    calibration_collect(&c, a.only);
    const int status = a.compare ? compare(&c, argv + optind, a.keep) : a.list ? list(&c)
                     : a.emit != NULL ? emit(&c, a.emit) : run(&c, &a);
    calibration_release(&c);
    return status;
}
