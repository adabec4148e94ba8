#include "tools/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- which file ---- */

static bool is_executable(const char *path)
{
    static const char elf[4] = { 0x7f, 'E', 'L', 'F' };
    char first[4] = "";
    struct stat s;
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode) || access(path, X_OK) != 0) return false;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? 0 : read(file, first, sizeof first);
    if (file >= 0) close(file);
    return got == sizeof first && (memcmp(first, elf, sizeof elf) == 0 || memcmp(first, "#!", 2) == 0);
}

/* In the folders of PATH. */
static bool shell_finds(const char *name)
{
    const char *path = getenv("PATH");
    for (const char *at = path; at != NULL && *at != '\0';) {
        char file[PATH_MAX];
        const int length = (int)strcspn(at, ":");
        snprintf(file, sizeof file, "%.*s/%s", length, at, name);
        if (is_executable(file)) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

bool program_is(const char *name)
{
    if (access(name, F_OK) == 0) return is_executable(name);
    return strchr(name, '/') == NULL && shell_finds(name);
}

/* ---- its environment ---- */

void program_set(const char *variable, const char *text)
{
    if (text != NULL) setenv(variable, text, 1);
}

static void set_number(const char *variable, uint64_t number, uint64_t usual)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    if (number != usual) setenv(variable, text, 1);
}

static int set_checks(const struct text_list *checks)
{
    static const struct { const char *text, *variable, *value; } known[] = {
        { "races=off", "CUDASIM_CHECK_RACES", "0" },
        { "uninitialised=off", "CUDASIM_CHECK_UNINITIALISED", "0" },
        { "tensor-fences=always", "CUDASIM_TENSOR_FENCES", "always" },
        { "read-fences=never", "CUDASIM_READ_FENCES", "never" },
    };
    for (int i = 0; i < checks->count; i++) {
        size_t at = 0;
        while (at < sizeof known / sizeof *known && strcmp(known[at].text, checks->item[i]) != 0) at++;
        if (at == sizeof known / sizeof *known)
            return bad_input("--check %s: must be races=off, uninitialised=off, tensor-fences=always or "
                             "read-fences=never", checks->item[i]);
        setenv(known[at].variable, known[at].value, 1);
    }
    return EXIT_DONE;
}

/* What only a kernel of a PTX file has. */
static int check_unused(const struct kernel_settings *s)
{
    const struct { bool given; const char *name; } option[] = {
        { s->entry != NULL, "--entry" }, { s->grid.given, "--grid" }, { s->block.given, "--block" },
        { s->cluster.given, "--cluster" }, { s->shared != 0, "--shared" }, { s->arguments.count != 0, "--arg" },
        { s->memory.count != 0, "--memory" },
    };
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        if (option[i].given)
            return bad_input("%s: belongs to a kernel of a PTX file; %s is a program, which has its own launches",
                             option[i].name, s->file);
    return EXIT_DONE;
}

static int set_environment(const struct kernel_settings *s, const struct kernel_settings *defaults)
{
    char steps[24];
    program_set("CUDASIM_DEVICE", s->device);
    program_set("CUDASIM_SCHEDULE", s->schedule);
    program_set("CUDASIM_TENSOR_CORE", s->tensor_core);
    program_set("CUDASIM_REPORTS", s->reports);
    program_set("CUDASIM_RULES", s->rules);
    set_number("CUDASIM_SEED", s->seed, defaults->seed);
    set_number("CUDASIM_SCHEDULES", s->schedules, defaults->schedules);
    set_number("CUDASIM_THREADS", s->threads, defaults->threads);
    set_number("CUDASIM_SMS", s->sms, defaults->sms);
    set_number("CUDASIM_STEPS", s->steps, defaults->steps);
    snprintf(steps, sizeof steps, "%llu", (unsigned long long)defaults->steps);
    setenv("CUDASIM_STEPS", steps, 0);
    return set_checks(&s->checks);
}

/* ---- its libraries ---- */

/* The folder of libcuda.so.1 and libcudart.so.13: where it was built, or installed, as seen from this command. */
static bool find_libraries(char *folder, size_t size)
{
    static const char *const places[] = { "../lib/cudasim", CUDASIM_LIBRARY_FOLDER };
    char self[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) return false;
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char library[2 * PATH_MAX], real[PATH_MAX];
        snprintf(library, sizeof library, "%s/%s", self, places[i]);
        if (realpath(library, real) == NULL || (size_t)snprintf(folder, size, "%s", real) >= size) continue;
        snprintf(library, sizeof library, "%s/libcudart.so.13", folder);
        if (access(library, R_OK) == 0) return true;
    }
    return false;
}

static int set_library_path(void)
{
    char folder[PATH_MAX];
    const char *before = getenv("LD_LIBRARY_PATH");
    if (!find_libraries(folder, sizeof folder))
        return bad_input("the folder lib/cudasim with libcuda.so.1 and libcudart.so.13 does not lie beside this "
                         "command's: build it (make), or install it (make install-cudasim)");
    const size_t length = strlen(folder) + (before == NULL ? 0 : strlen(before)) + 2;
    char *path = malloc(length);
    if (path == NULL) return bad_input("no memory");
    snprintf(path, length, "%s%s%s", folder, before == NULL || *before == '\0' ? "" : ":",
             before == NULL ? "" : before);
    setenv("LD_LIBRARY_PATH", path, 1);
    free(path);
    return EXIT_DONE;
}

int program_run(const struct kernel_settings *settings, const struct kernel_settings *defaults)
{
    char **rest = command_rest();
    int count = 0;
    while (rest != NULL && rest[count] != NULL) count++;
    char **arguments = calloc((size_t)count + 2, sizeof *arguments);
    if (arguments == NULL) return bad_input("no memory");
    arguments[0] = (char *)(uintptr_t)settings->file;
    for (int i = 0; i < count; i++) arguments[i + 1] = rest[i];
    int status = check_unused(settings);
    if (status == EXIT_DONE) status = set_environment(settings, defaults);
    if (status == EXIT_DONE) status = set_library_path();
    if (status == EXIT_DONE) {
        fflush(stdout);
        execvp(settings->file, arguments);
        status = bad_input("%s: %s", settings->file, strerror(errno));
    }
    free(arguments);
    return status;
}
