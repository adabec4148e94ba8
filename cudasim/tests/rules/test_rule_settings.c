/* Levels of rules as users set them: CUDASIM_REPORTS and CUDASIM_RULES for a program on the driver, --reports and
 * --rules for the command.  Each example of each rule runs in a process of its own, whose end writes the line that
 * counts.
 *
 *     test_cudasim_rule_settings --run RULE wrong|right    such a program: two launches; exit status 0 if they leave
 *                                                          the right numbers, 1 if others, 2 if a call fails */
#include "examples.h"

#include "tests/support/driver_api.h"
#include "tests/support/harness.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the program ---- */

#define CALLS(X) \
    X(cuCtxSynchronize, (void)) X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) \
    X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
    X(cuModuleLoadData, (CUmodule *, const void *)) X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
    X(cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **)) \
    X(cuTensorMapEncodeTiled, (CUtensorMap *, int, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, \
                               const cuuint32_t *, const cuuint32_t *, int, int, int, int))
DRIVER_CALLS(CALLS)

static CUdeviceptr buffer(struct test *t, const void *bytes, size_t size)
{
    CUdeviceptr at = 0;
    OK(t, cuMemAlloc_v2(&at, size));
    OK(t, cuMemcpyHtoD_v2(at, bytes, size));
    return at;
}

static void launch(struct test *t, const struct rule_example *e, CUfunction f, const CUdeviceptr at[4], bool beside)
{
    CUlaunchAttribute attributes[2] = { { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION },
                                        { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION } };
    attributes[0].value.clusterDim.x = e->ctas;
    attributes[0].value.clusterDim.y = attributes[0].value.clusterDim.z = 1;
    attributes[1].value.programmaticStreamSerializationAllowed = beside;
    const CUlaunchConfig c = { e->ctas * (1 + e->more_clusters), 1, 1, e->block, 1, 1, 0, NULL, attributes, 2 };
    CUdeviceptr values[4];
    void *parameters[4];
    for (int i = 0; i < 4; i++) values[i] = at[i], parameters[i] = &values[i];
    OK(t, cuLaunchKernelEx(&c, f, parameters, NULL));
}

static int run_example(enum rule rule, const char *text)
{
    const struct rule_example *e = &rule_examples[rule];
    struct test t = { .name = "--run" };
    uint32_t numbers[NUMBERS], got[NUMBERS] = { 0 };
    const uint8_t zeros[SCRATCH_BYTES] = { 0 };
    const cuuint64_t extent = NUMBERS;
    const cuuint32_t box = BOX, step = 1;
    CUtensorMap map;
    CUmodule module = NULL;
    CUfunction f = NULL;
    char *whole = sim_module_text(e->device, text);
    for (uint32_t i = 0; i < NUMBERS; i++) numbers[i] = rule_example_number(i);
    driver_begin(&t);
    find_calls(&t);
    const CUdeviceptr in = buffer(&t, numbers, sizeof numbers), out = buffer(&t, zeros, sizeof got);
    OK(&t, cuTensorMapEncodeTiled(&map, 2, 1, (void *)(uintptr_t)in, &extent, NULL, &box, &step, 0, 0, 0, 0));
    const CUdeviceptr tensor = buffer(&t, &map, sizeof map), scratch = buffer(&t, zeros, sizeof zeros);
    OK(&t, cuModuleLoadData(&module, whole));
    OK(&t, cuModuleGetFunction(&f, module, "k"));
    free(whole);
    for (int i = 0; i < 2 && t.failures == 0; i++) {
        if (e->chained) launch(&t, e, f, (CUdeviceptr[4]){ in, scratch, tensor, scratch }, false);
        launch(&t, e, f, (CUdeviceptr[4]){ e->chained ? scratch : in, out, tensor, scratch }, e->chained);
        OK(&t, cuCtxSynchronize());
    }
    if (t.failures == 0) OK(&t, cuMemcpyDtoH_v2(got, out, sizeof got));
    return t.failures != 0 ? 2 : rule_example_left(e, got) ? 0 : 1;
}

/* ---- running it, and the command ---- */

struct process {
    const char *settings[2][2];           /* of its environment: name and value; NULL: none */
    const char *words[24];                /* the program and its arguments */
};

struct ended { int status; char said[8192]; };

/* Runs it in a clean environment; what it wrote to stderr. */
static struct ended run_process(struct test *t, const struct process *p)
{
    static const char *const known[] = { "CUDASIM_REPORTS", "CUDASIM_RULES", "CUDASIM_SCHEDULES", "CUDASIM_SEED",
                                         "CUDASIM_QUIET", "CUDASIM_CHECK_RACES", "CUDASIM_DEVICE" };
    struct ended e = { .status = -1 };
    int pipes[2];
    if (pipe(pipes) != 0) abort();
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]), close(pipes[1]);
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) unsetenv(known[i]);
        for (int i = 0; i < 2; i++)
            if (p->settings[i][0] != NULL) setenv(p->settings[i][0], p->settings[i][1], 1);
        execv(p->words[0], (char *const *)p->words);
        _exit(127);
    }
    close(pipes[1]);
    size_t used = 0;
    for (ssize_t n; used < sizeof e.said - 1 && (n = read(pipes[0], e.said + used, sizeof e.said - 1 - used)) > 0;)
        used += (size_t)n;
    close(pipes[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) e.status = WEXITSTATUS(status);
    if (e.status == 127) FAIL(t, "%s does not run", p->words[0]);
    return e;
}

static uint32_t times(const char *text, const char *words)
{
    uint32_t n = 0;
    for (; (text = strstr(text, words)) != NULL; text += strlen(words)) n++;
    return n;
}

/* Whether the process ended as a kernel at that level makes it: stopped is its status where a report has stopped it. */
static void check_level(struct test *t, enum rule rule, enum rule_level level, int stopped, const struct ended *e,
                        const char *setting)
{
    char named[64], counted[96];
    snprintf(named, sizeof named, "\n  rule     %s\n", rule_name(rule));
    snprintf(counted, sizeof counted, "cudasim: reported and went on: %s ", rule_name(rule));
    const char *line = strstr(e->said, counted);
    const bool counts = line != NULL && strtoul(line + strlen(counted), NULL, 10) != 0 && strchr(line, ',') == NULL
                        && strcmp(strchr(line, '\n'), "\n") == 0;
    const bool right = level == RULE_STOP     ? e->status == stopped && times(e->said, named) == 1
                                                    && times(e->said, "went on") == 0
                       : level == RULE_REPORT ? e->status == 0 && times(e->said, named) == 1
                                                    && times(e->said, "\n  rule ") == 1 && counts
                                              : e->status == 0 && e->said[0] == '\0';
    static const char *const levels[] = { [RULE_STOP] = "stop", [RULE_REPORT] = "report", [RULE_OFF] = "off" };
    if (!right) FAIL(t, "%s, %s: not %s, but status %d: %s", rule_name(rule), setting, levels[level], e->status,
                     e->said);
}

/* "NAME:LEVEL", with a rule that the kernel does not break in front of it. */
static const char *item(char text[96], enum rule rule, const char *level)
{
    snprintf(text, 96, "%s:%s,%s:%s", rule_name(rule == RULE_RACE ? RULE_OPERATION_WAIT : RULE_RACE),
             level[0] == 's' ? "off" : "stop", rule_name(rule), level);
    return text;
}

static const struct setting { const char *reports, *level; enum rule_level gives; } settings[] = {
    { "stop", NULL, RULE_STOP },       { "continue", NULL, RULE_REPORT }, { NULL, "stop", RULE_STOP },
    { NULL, "report", RULE_REPORT },   { NULL, "off", RULE_OFF },         { "continue", "stop", RULE_STOP },
    { "stop", "report", RULE_REPORT }, { "stop", "off", RULE_OFF },       { NULL, NULL, RULE_STOP },
};
enum { SETTINGS = sizeof settings / sizeof *settings };      /* the last one: each rule's own */

static enum rule_level gives(const struct setting *s, enum rule rule)
{
    uint8_t own[RULE_COUNT];
    rules_default(own);
    return s->reports == NULL && s->level == NULL ? (enum rule_level)own[rule] : s->gives;
}

static void a_program_obeys_the_environment(struct test *t)
{
    for (int i = 0; i < RULE_COUNT; i++)
        for (int j = 0; j < SETTINGS; j++) {
            const struct setting *s = &settings[j];
            char text[96], what[160];
            struct process p = { .words = { "/proc/self/exe", "--run", rule_name((enum rule)i), "wrong" } };
            if (s->reports != NULL) p.settings[0][0] = "CUDASIM_REPORTS", p.settings[0][1] = s->reports;
            if (s->level != NULL)
                p.settings[1][0] = "CUDASIM_RULES", p.settings[1][1] = item(text, (enum rule)i, s->level);
            snprintf(what, sizeof what, "CUDASIM_REPORTS=%s CUDASIM_RULES=%s", s->reports == NULL ? "" : s->reports,
                     s->level == NULL ? "" : text);
            const struct ended e = run_process(t, &p);
            check_level(t, (enum rule)i, gives(s, (enum rule)i), 2, &e, what);
        }
}

static void the_right_twin_is_silent(struct test *t)
{
    for (int i = 0; i < RULE_COUNT; i++) {
        const struct process p = { .settings = { { "CUDASIM_REPORTS", "stop" }, { "CUDASIM_SCHEDULES", "20" } },
                                   .words = { "/proc/self/exe", "--run", rule_name((enum rule)i), "right" } };
        const struct ended e = run_process(t, &p);
        if (e.status != 0 || e.said[0] != '\0') FAIL(t, "%s: %d: %s", rule_name((enum rule)i), e.status, e.said);
    }
}

/* ---- the command ---- */

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) abort();
}

/* A .npy file of 32-bit numbers: 128 bytes of header. */
enum { NPY_HEADER = 128 };
static void write_numbers(const char *path)
{
    uint8_t bytes[NPY_HEADER + 4 * NUMBERS];
    memset(bytes, ' ', NPY_HEADER);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int length = snprintf((char *)bytes + 10, NPY_HEADER - 10,
                                "{'descr': '<u4', 'fortran_order': False, 'shape': (%d,), }", NUMBERS);
    bytes[10 + length] = ' ';
    bytes[NPY_HEADER - 1] = '\n';
    for (uint32_t i = 0; i < NUMBERS; i++) {
        const uint32_t number = rule_example_number(i);
        memcpy(bytes + NPY_HEADER + 4 * i, &number, 4);
    }
    write_file(path, bytes, sizeof bytes);
}

/* The last numbers of a .npy file are all of them: what precedes is its header. */
static bool file_is_right(const struct rule_example *e, const char *path)
{
    uint32_t got[NUMBERS];
    FILE *file = fopen(path, "rb");
    if (file == NULL) return false;
    const bool read = fseek(file, -(long)sizeof got, SEEK_END) == 0 && fread(got, 1, sizeof got, file) == sizeof got;
    fclose(file);
    return read && rule_example_left(e, got);
}

struct files { char folder[64], kernel[96], in[96], out[96]; };

static void check_command(struct test *t, const struct files *f, enum rule rule, const struct setting *s)
{
    const struct rule_example *e = &rule_examples[rule];
    char text[96], block[16], ctas[16], grid[16], in[128], out[160], map[64], what[160];
    snprintf(block, sizeof block, "%u", e->block);
    snprintf(ctas, sizeof ctas, "%u", e->ctas);
    snprintf(grid, sizeof grid, "%u", e->ctas * (1 + e->more_clusters));
    snprintf(in, sizeof in, "in:%s", f->in);
    snprintf(out, sizeof out, "out:%s:u32:%d", f->out, NUMBERS);
    snprintf(map, sizeof map, "tensormap:1:u32:%d:%d", NUMBERS, BOX);
    struct process p = { .words = { CUDASIM_COMMAND, "run", f->kernel, "--block", block, "--grid", grid, "--cluster",
                                    ctas, "--arg", in, "--arg", out, "--arg", map, "--arg", "zero:512" } };
    int words = 17;
    if (s->reports != NULL) p.words[words++] = "--reports", p.words[words++] = s->reports;
    if (s->level != NULL) p.words[words++] = "--rules", p.words[words++] = item(text, rule, s->level);
    snprintf(what, sizeof what, "--reports %s --rules %s", s->reports == NULL ? "" : s->reports,
             s->level == NULL ? "" : text);
    unlink(f->out);
    const struct ended ended = run_process(t, &p);
    check_level(t, rule, gives(s, rule), 1, &ended, what);
    const bool stopped = gives(s, rule) == RULE_STOP;
    if (!stopped && !file_is_right(e, f->out)) FAIL(t, "%s, %s: other numbers", rule_name(rule), what);
    if (stopped && access(f->out, F_OK) == 0) FAIL(t, "%s, %s: a file", rule_name(rule), what);
}

/* One launch is all that the command runs: rules between two grids are left to programs. */
static void the_command_obeys_its_options(struct test *t)
{
    struct files f = { .folder = "/tmp/cudasim-rules-XXXXXX" };
    if (mkdtemp(f.folder) == NULL) abort();
    snprintf(f.kernel, sizeof f.kernel, "%s/k.ptx", f.folder);
    snprintf(f.in, sizeof f.in, "%s/in.npy", f.folder);
    snprintf(f.out, sizeof f.out, "%s/out.npy", f.folder);
    write_numbers(f.in);
    for (int i = 0; i < RULE_COUNT; i++) {
        const struct rule_example *e = &rule_examples[i];
        if (e->wrong == NULL || e->chained) continue;
        char *text = sim_module_text(e->device, e->wrong);
        write_file(f.kernel, text, strlen(text));
        free(text);
        for (int j = 0; j < SETTINGS; j++) check_command(t, &f, (enum rule)i, &settings[j]);
    }
    unlink(f.kernel), unlink(f.in), unlink(f.out), rmdir(f.folder);
}

static int run_named(const char *name, const char *which)
{
    const char *device = NULL, *text = NULL;
    enum rule rule = 0;
    while (rule < RULE_COUNT && strcmp(rule_name(rule), name) != 0) rule++;
    if (rule < RULE_COUNT) device = rule_examples[rule].device;
    if (rule < RULE_COUNT) text = which[0] == 'w' ? rule_examples[rule].wrong : rule_examples[rule].right;
    if (text == NULL) return 3;
    setenv("CUDASIM_DEVICE", device, 1);
    return run_example(rule, text);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(a_program_obeys_the_environment), TEST(the_right_twin_is_silent),
                                              TEST(the_command_obeys_its_options) };
    if (argc == 4 && strcmp(argv[1], "--run") == 0) return run_named(argv[2], argv[3]);
    return TEST_MAIN(argc, argv, cases);
}
