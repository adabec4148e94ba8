/* Modules, launches and outputs of `cudasim run` and `cudasim mutate`. */
#include "tools/kernel.h"
#include "tools/npy.h"

#include "machine/async/tensor_map.h"
#include "machine/core/global_memory.h"
#include "machine/run/launch.h"
#include "machine/run/schedules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AT(member) .offset = offsetof(struct kernel_settings, member)
const struct option kernel_options[] = {
    { "KERNEL.ptx", "", "the PTX text", OPTION_TEXT, AT(file), .required = true },
    { "--entry", "NAME", "the kernel; may be left out where there is one only", OPTION_TEXT, AT(entry) },
    { "--grid", "X[,Y,Z]", "CTAs; 1 unless given", OPTION_EXTENT, AT(grid), .high = INT32_MAX },
    { "--block", "X[,Y,Z]", "threads of a CTA", OPTION_EXTENT, AT(block), .high = 1024 },
    { "--cluster", "X[,Y,Z]", "CTAs of a cluster; what the kernel's directives say, or 1, unless given", OPTION_EXTENT,
      AT(cluster), .high = 16 },
    { "--shared", "BYTES", "dynamic shared memory; 0 unless given", OPTION_NUMBER, AT(shared), .high = 1 << 24 },
    { "--arg", "ARGUMENT", "the next argument of the kernel, see above", OPTION_LIST, AT(arguments) },
    { "--memory", "ARGUMENT", "an array as --arg has them that no parameter points to: for tensor maps", OPTION_LIST,
      AT(memory) },
    { "--device", "NAME", "sm_90a, sm_100a, ...; the first that runs the module unless given", OPTION_TEXT,
      AT(device) },
    { "--seed", "N", "of the schedule; 1 unless given", OPTION_NUMBER, AT(seed), .high = UINT64_MAX },
    { "--schedules", "N", "the launch is repeated under N schedules, which must leave the same bytes", OPTION_NUMBER,
      AT(schedules), .low = 1, .high = 1000000 },
    { "--launches", "N", "so many one behind the other, each but the first a programmatic launch; 1 unless given",
      OPTION_NUMBER, AT(launches), .low = 1, .high = MOST_TOGETHER },
    { "--check", "NAME=...",
      "races=off, uninitialised=off: that check is not made; tensor-fences=always: asked of all modules; "
      "read-fences=never; overlap=off: programmatic launches run one behind the other",
      OPTION_LIST, AT(checks) },
    { "--reports", "stop|continue",
      "every rule of docs/rules.md at that level; some stop and some go on unless given", OPTION_TEXT, AT(reports) },
    { "--rules", "NAME:LEVEL,...", "levels of single rules: stop, report (and go on), off", OPTION_TEXT, AT(rules) },
    { "--tensor-core", "NAME", "model, as published models of the tensor cores say, or fp32; model unless given",
      OPTION_TEXT, AT(tensor_core) },
    { "--threads", "N", "host threads; all processors unless given", OPTION_NUMBER, AT(threads), .low = 1, .high = 64 },
    { "--sms", "N", "number of SMs; 4 unless given", OPTION_NUMBER, AT(sms), .low = 1, .high = 1024 },
    { "--steps", "N", "limit of a cluster's steps, and of a tenth of its grid's; 0: none; 1000000000 for run, none for "
      "mutate unless given", OPTION_NUMBER, AT(steps), .low = 0, .high = UINT64_MAX / 10 },
    { .name = NULL }
};

/* ---- module and entry ---- */

static int read_module(struct kernel *k)
{
    size_t bytes;
    char *text = read_file(k->settings->file, &bytes);
    if (text == NULL) return EXIT_BAD_INPUT;
    struct ptx_error error;
    k->module = ptx_read(k->settings->file, text, bytes, NULL, &error);
    free(text);
    return k->module == NULL ? bad_input("%s", error.text) : EXIT_DONE;
}

static int find_entry(struct kernel *k)
{
    const char *name = k->settings->entry;
    uint32_t entries = 0;
    for (uint32_t i = 0; i < k->module->function_count; i++) {
        const struct function *f = k->module->functions[i];
        if (!f->entry || !f->defined) continue;
        entries++;
        if (name == NULL || strcmp(name, f->name) == 0) k->function = f;
    }
    if (name == NULL && entries != 1)
        return bad_input("--entry is missing: %s has %u kernels", k->settings->file, entries);
    return k->function != NULL ? EXIT_DONE : bad_input("--entry %s: %s has no such kernel", name, k->settings->file);
}

static int find_device(struct kernel *k)
{
    const char *name = k->settings->device;
    if (name != NULL) k->device = device_named(name);
    if (name != NULL && k->device == NULL)
        return bad_input("--device %s: no such device; `cudasim devices` lists them", name);
    for (int i = 0; name == NULL && k->device == NULL && device_at(i) != NULL; i++)
        if (device_runs(device_at(i), k->module->sm, k->module->suffix)) k->device = device_at(i);
    if (k->device != NULL && device_runs(k->device, k->module->sm, k->module->suffix)) return EXIT_DONE;
    const char suffix[2] = { k->module->suffix, '\0' };
    return bad_input("%s: its target sm_%u%s does not run on %s", k->settings->file, k->module->sm, suffix,
                     name == NULL ? "any device" : name);
}

/* ---- the launch ---- */

static uint64_t product(const uint32_t x[3]) { return (uint64_t)x[0] * x[1] * x[2]; }

static bool same_extent(const uint32_t x[3], const struct dimensions *d)
{
    return x[0] == d->x && x[1] == d->y && x[2] == d->z;
}

static int check_block(const struct kernel *k)
{
    const uint32_t *b = k->launch.block;
    const struct function *f = k->function;
    if (b[2] > 64 || product(b) > k->device->threads_per_block)
        return bad_input("--block %u,%u,%u: %s allows %u threads, 64 in z", b[0], b[1], b[2], k->device->name,
                         k->device->threads_per_block);
    if (f->reqntid.given && !same_extent(b, &f->reqntid))
        return bad_input("--block %u,%u,%u: the kernel's .reqntid is %u,%u,%u", b[0], b[1], b[2], f->reqntid.x,
                         f->reqntid.y, f->reqntid.z);
    if (f->maxntid.given && product(b) > (uint64_t)f->maxntid.x * f->maxntid.y * f->maxntid.z)
        return bad_input("--block %u,%u,%u: the kernel's .maxntid is %u,%u,%u", b[0], b[1], b[2], f->maxntid.x,
                         f->maxntid.y, f->maxntid.z);
    return EXIT_DONE;
}

static int check_cluster(struct kernel *k, const struct extent *given)
{
    const struct dimensions *d = &k->function->reqnctapercluster;
    uint32_t *c = k->launch.cluster;
    const uint32_t *g = k->launch.grid;
    if (d->given) c[0] = d->x, c[1] = d->y, c[2] = d->z;
    else
        for (int i = 0; i < 3; i++) c[i] = given->given ? given->x[i] : 1;
    if (given->given && d->given && !same_extent(given->x, d))
        return bad_input("--cluster %u,%u,%u: the kernel's .reqnctapercluster is %u,%u,%u", given->x[0], given->x[1],
                         given->x[2], d->x, d->y, d->z);
    k->launch.explicit_cluster = given->given || d->given || k->function->explicitcluster;
    if (product(c) > k->device->cluster_max)
        return bad_input("--cluster %u,%u,%u: %s allows %u CTAs", c[0], c[1], c[2], k->device->name,
                         k->device->cluster_max);
    for (int i = 0; i < 3; i++)
        if (g[i] % c[i] != 0)
            return bad_input("--grid %u,%u,%u: must be a multiple of the cluster, %u,%u,%u", g[0], g[1], g[2], c[0],
                             c[1], c[2]);
    return EXIT_DONE;
}

static int check_launch(struct kernel *k)
{
    const struct kernel_settings *s = k->settings;
    const struct function *f = k->function;
    k->launch = (struct launch){ .function = f, .dynamic_shared = (uint32_t)s->shared };
    for (int i = 0; i < 3; i++) k->launch.grid[i] = s->grid.given ? s->grid.x[i] : 1;
    if (k->launch.grid[1] > 65535 || k->launch.grid[2] > 65535) return bad_input("--grid: y and z go up to 65535");
    if (!s->block.given && !f->reqntid.given)
        return bad_input("--block X[,Y,Z] is missing: the kernel has no .reqntid");
    k->launch.block[0] = s->block.given ? s->block.x[0] : f->reqntid.x;
    k->launch.block[1] = s->block.given ? s->block.x[1] : f->reqntid.y;
    k->launch.block[2] = s->block.given ? s->block.x[2] : f->reqntid.z;
    const uint64_t room = k->device->shared_per_block_optin;
    if (f->static_shared_bytes + s->shared > room)
        return bad_input("--shared %llu: with %llu static bytes more than the %llu of %s",
                         (unsigned long long)s->shared, (unsigned long long)f->static_shared_bytes,
                         (unsigned long long)room, k->device->name);
    const int status = check_block(k);
    return status == EXIT_DONE ? check_cluster(k, &s->cluster) : status;
}

/* ---- arguments ---- */

static int check_argument(const struct kernel *k, uint32_t i)
{
    const struct argument *a = &k->argument[k->memories + i];
    const uint64_t wanted = k->function->parameters[i]->bytes;
    const bool pointer = a->kind == ARGUMENT_BUFFER;
    const uint64_t has = pointer ? 8 : a->bytes;
    if (has == wanted || (a->kind == ARGUMENT_TENSOR_MAP && wanted == 8)) return EXIT_DONE;
    return bad_input("--arg %s: %s of %llu bytes, but parameter %u of %s has %llu", a->text,
                     pointer ? "a pointer" : "a value", (unsigned long long)has, i + 1, k->function->name,
                     (unsigned long long)wanted);
}

static int read_arguments(struct kernel *k)
{
    const struct text_list *memory = &k->settings->memory, *given = &k->settings->arguments;
    k->memories = (uint32_t)memory->count;
    for (int i = 0; i < memory->count + given->count; i++) {
        const char *text = i < memory->count ? memory->item[i] : given->item[i - memory->count];
        const int status = argument_read(&k->argument[k->arguments++], text, k);
        if (status != EXIT_DONE) return status;
        if (i < memory->count && k->argument[i].kind != ARGUMENT_BUFFER)
            return bad_input("--memory %s: is no array", text);
    }
    if (k->arguments - k->memories != k->function->parameter_count)
        return bad_input("%u --arg, but %s has %u parameters", k->arguments - k->memories, k->function->name,
                         k->function->parameter_count);
    for (uint32_t i = 0; i < k->function->parameter_count; i++) {
        const int status = check_argument(k, i);
        if (status != EXIT_DONE) return status;
    }
    for (uint32_t i = 0; i < k->arguments; i++) {
        for (uint32_t j = 0; j < i && k->argument[i].output != NULL; j++)
            if (k->argument[j].output != NULL && strcmp(k->argument[i].output, k->argument[j].output) == 0)
                return bad_input("--arg %s: %s is written by another argument too", k->argument[i].text,
                                 k->argument[i].output);
    }
    return EXIT_DONE;
}

/* ---- options ---- */

static int read_rules(const struct kernel_settings *s, uint8_t level[RULE_COUNT])
{
    if (s->stops) rules_all(level, RULE_STOP);
    if (s->reports != NULL && strcmp(s->reports, "stop") == 0) rules_all(level, RULE_STOP);
    else if (s->reports != NULL && strcmp(s->reports, "continue") == 0) rules_all(level, RULE_REPORT);
    else if (s->reports != NULL) return bad_input("--reports %s: must be stop or continue", s->reports);
    const char *wrong;
    int length;
    if (s->rules == NULL || rules_read(level, s->rules, &wrong, &length)) return EXIT_DONE;
    fprintf(stderr, "cudasim: --rules: \"%.*s\" is no NAME:LEVEL, LEVEL being stop, report or off, NAME one of", length,
            wrong);
    for (int i = 0; i < RULE_COUNT; i++) fprintf(stderr, "%s %s", i == 0 ? "" : ",", rule_name((enum rule)i));
    fputc('\n', stderr);
    return EXIT_BAD_INPUT;
}

static int read_options(struct kernel *k)
{
    const struct kernel_settings *s = k->settings;
    k->options = machine_default_options();
    k->options.seed = s->seed;
    k->options.schedules = (uint32_t)s->schedules;
    k->options.step_limit = s->steps;
    k->options.grid_step_limit = 10 * s->steps;
    if (s->threads != 0) k->options.threads = (uint32_t)s->threads;
    if (s->sms != 0) k->options.sms = (uint32_t)s->sms;
    for (int i = 0; i < s->checks.count; i++)
        if (strcmp(s->checks.item[i], "races=off") == 0) k->options.check_races = false;
        else if (strcmp(s->checks.item[i], "uninitialised=off") == 0) k->options.check_uninitialised = false;
        else if (strcmp(s->checks.item[i], "tensor-fences=always") == 0)
            k->options.tensor_fences = TENSOR_FENCES_ALWAYS;
        else if (strcmp(s->checks.item[i], "read-fences=never") == 0) k->options.read_fences = READ_FENCES_NEVER;
        else if (strcmp(s->checks.item[i], "overlap=off") == 0) k->options.overlap = false;
        else return bad_input("--check %s: must be races=off, uninitialised=off, tensor-fences=always, "
                              "read-fences=never or overlap=off", s->checks.item[i]);
    if (s->tensor_core != NULL && strcmp(s->tensor_core, "model") != 0 && strcmp(s->tensor_core, "fp32") != 0)
        return bad_input("--tensor-core %s: must be model or fp32", s->tensor_core);
    k->options.tensor_core = s->tensor_core != NULL && s->tensor_core[0] == 'f' ? TENSOR_MODE_FP32 : TENSOR_MODE_MODEL;
    if (s->schedule == NULL || strcmp(s->schedule, "random") == 0) k->options.schedule = SCHEDULE_RANDOM;
    else if (strcmp(s->schedule, "earliest") == 0) k->options.schedule = SCHEDULE_EARLIEST;
    else if (strcmp(s->schedule, "latest") == 0) k->options.schedule = SCHEDULE_LATEST;
    else return bad_input("--schedule %s: must be random, earliest or latest", s->schedule);
    return read_rules(s, k->options.rule);
}

int kernel_open(struct kernel *k, const struct kernel_settings *settings)
{
    *k = (struct kernel){ .settings = settings };
    int (*const steps[])(struct kernel *) = { read_options, read_module,  find_entry,
                                              find_device,  check_launch, read_arguments };
    int status = EXIT_DONE;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == EXIT_DONE; i++) status = steps[i](k);
    return status;
}

void kernel_close(struct kernel *k)
{
    for (uint32_t i = 0; i < k->arguments; i++) {
        free(k->argument[i].initial);
        if (strncmp(k->argument[i].text, "out:", 4) == 0) free((char *)(uintptr_t)k->argument[i].output);
    }
    ptx_release(k->module);
    *k = (struct kernel){ 0 };
}

/* ---- a machine ---- */

static void print(void *user, const char *text, size_t length)
{
    (void)user;
    fwrite(text, 1, length, stdout);
}

static int encode_map(const struct kernel *k, const struct argument *a, void *map)
{
    uint64_t dim[TENSOR_RANK], stride[TENSOR_RANK];
    uint32_t box[TENSOR_RANK], step[TENSOR_RANK];
    uint64_t elements = 1;
    for (uint32_t i = 0; i < a->rank; i++) {
        dim[i] = a->shape[a->rank - 1 - i];
        box[i] = a->box[a->rank - 1 - i];
        step[i] = 1;
        elements *= dim[i];
        stride[i] = elements * tensor_types[a->type].packed / 16;
    }
    const struct argument *over = &k->argument[a->over];
    if (stride[a->rank - 1] > over->bytes)
        return bad_input("--arg %s: the tensor has %llu bytes, %s has %llu", a->text,
                         (unsigned long long)stride[a->rank - 1], over->text, (unsigned long long)over->bytes);
    char why[256];
    if (tensor_map_encode_tiled(k->device, map, a->type, a->rank, over->address, dim, stride, box, step,
                                INTERLEAVE_NONE, a->swizzle, 0, 0, why, sizeof why)
        == 0)
        return EXIT_DONE;
    return bad_input("--arg %s: %s", a->text, why);
}

/* parameter: NULL for what --memory gives. */
static int place(struct kernel *k, struct argument *a, const struct variable *parameter)
{
    uint8_t *to = k->parameters + (parameter == NULL ? 0 : parameter->offset);
    _Alignas(64) uint8_t map[TENSOR_MAP_BYTES];
    if (a->kind == ARGUMENT_VALUE) {
        memcpy(to, a->initial, a->bytes);
        return EXIT_DONE;
    }
    if (a->kind == ARGUMENT_TENSOR_MAP) {
        const int status = encode_map(k, a, map);
        if (status != EXIT_DONE) return status;
        if (parameter->bytes == TENSOR_MAP_BYTES) {
            memcpy(to, map, sizeof map);
            return EXIT_DONE;
        }
    }
    a->address = global_allocate(&k->machine.memory, a->bytes, 0, NULL);
    if (a->address == 0) return bad_input("--arg %s: no memory", a->text);
    memcpy(global_host(&k->machine.memory, a->address, a->bytes), a->kind == ARGUMENT_BUFFER ? a->initial : map,
           a->bytes);
    if (parameter != NULL) memcpy(to, &a->address, sizeof a->address);
    return EXIT_DONE;
}

int kernel_start(struct kernel *k)
{
    machine_open(&k->machine, k->device, &k->options);
    k->machine.print = print;
    k->machine.rule_book = &k->rule_book;
    k->parameters = calloc(1, k->function->parameter_bytes + 16);
    if (k->parameters == NULL || !image_open(&k->image, &k->machine, k->module))
        return bad_input("no memory for the module");
    k->launch.image = &k->image;
    k->launch.parameters = k->parameters;
    int status = EXIT_DONE;
    for (uint32_t i = 0; i < k->arguments && status == EXIT_DONE; i++)
        status = place(k, &k->argument[i], i < k->memories ? NULL : k->function->parameters[i - k->memories]);
    return status;
}

void kernel_end(struct kernel *k)
{
    if (k->image.module != NULL) image_close(&k->image, &k->machine);
    machine_close(&k->machine);
    free(k->parameters);
    k->parameters = NULL;
}

const uint8_t *kernel_bytes(const struct kernel *k, const struct argument *a)
{
    return global_host(&k->machine.memory, a->address, a->bytes);
}

/* ---- outputs ---- */

static bool write_array(FILE *file, const struct kernel *k, const struct argument *a)
{
    return npy_write_header(file, a->descr, a->rank, a->shape) != 0
           && fwrite(kernel_bytes(k, a), 1, a->bytes, file) == a->bytes && fflush(file) == 0;
}

/* Beside its place, under another name; NULL after saying why not. */
static char *write_temporary(const struct kernel *k, const struct argument *a)
{
    struct stat existing;
    if (stat(a->output, &existing) == 0 && !S_ISREG(existing.st_mode)) {
        bad_input("--arg %s: %s is no regular file", a->text, a->output);
        return NULL;
    }
    const size_t size = strlen(a->output) + 8;
    char *path = malloc(size);
    if (path == NULL) return NULL;
    snprintf(path, size, "%s.XXXXXX", a->output);
    const int descriptor = mkstemp(path);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    bool ok = file != NULL && write_array(file, k, a);
    const mode_t mask = umask(0);
    umask(mask);
    ok = ok && fchmod(descriptor, 0666 & ~mask) == 0;
    if (file != NULL) ok = fclose(file) == 0 && ok;
    if (ok) return path;
    bad_input("--arg %s: %s: %s", a->text, a->output, strerror(errno));
    if (descriptor >= 0) unlink(path);
    free(path);
    return NULL;
}

int kernel_write_outputs(const struct kernel *k)
{
    char *path[2 * LIST_MOST] = { NULL };
    int status = EXIT_DONE;
    for (uint32_t i = 0; i < k->arguments && status == EXIT_DONE; i++) {
        if (k->argument[i].output == NULL) continue;
        path[i] = write_temporary(k, &k->argument[i]);
        if (path[i] == NULL) status = EXIT_BAD_INPUT;
    }
    for (uint32_t i = 0; i < k->arguments; i++) {
        if (path[i] == NULL) continue;
        if (status == EXIT_DONE && rename(path[i], k->argument[i].output) != 0)
            status = bad_input("--arg %s: %s: %s", k->argument[i].text, k->argument[i].output, strerror(errno));
        if (status != EXIT_DONE) unlink(path[i]);
        free(path[i]);
    }
    return status;
}

bool kernel_run(struct kernel *k, struct report *report)
{
    struct launch launches[MOST_TOGETHER];
    const uint32_t count = k->settings->launches == 0 ? 1 : (uint32_t)k->settings->launches;
    for (uint32_t i = 0; i < count; i++) launches[i] = k->launch;
    return machine_run_all(&k->machine, launches, count, report);
}
