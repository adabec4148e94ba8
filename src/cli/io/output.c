/* Output files: written beside their targets under another name, renamed when all of them and stdout are complete. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct input { dev_t device; ino_t file; } *inputs;
static size_t input_count, input_room;

/* A list whose pointers are set last: a signal may come at any time, and looks at all of it. */
static struct output {
    struct output *volatile next;
    char given[PATH_MAX];                 /* the path as the user wrote it */
    char target[PATH_MAX];                /* behind symbolic links */
    char temporary[PATH_MAX + 64];
    FILE *file;
    bool is_new, renamed;                 /* nothing lay at the target; what lies there is this */
    volatile sig_atomic_t remove;         /* a signal removes `temporary` */
} *volatile first_output;

static char folder[PATH_MAX];             /* made for outputs */
static volatile sig_atomic_t remove_folder;

/* Signals: all that their handlers call may be called in one ------------------------------------------------------- */

/* renaming: all or none, the command ends when every file has its name.
 * complete: every file is, but not all have theirs. */
static volatile sig_atomic_t renaming, complete, pending_signal;
static bool on_terminal;                  /* where a bar of progress may stand */

static void remove_files(void)
{
    for (struct output *o = first_output; o != NULL; o = o->next)
        if (o->remove) unlink(o->temporary);
    if (remove_folder) rmdir(folder);
}

static void die_by(int signal_number)
{
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void remove_and_die(int signal_number)
{
    if (renaming) {
        pending_signal = signal_number;
        return;
    }
    remove_files();
    die_by(signal_number);
}

static void say(const char *words)
{
    const ssize_t written = write(STDERR_FILENO, words, strlen(words));
    (void)written;                        /* there is nobody else to tell */
}

static void say_fault(int signal_number)
{
    if (on_terminal) say("\r\033[K");
    say("blockscale: ");
    switch (signal_number) {
    case SIGBUS: say("a file became shorter while it was read, or its disk failed (SIGBUS)"); break;
    case SIGABRT: say("it gave up (SIGABRT), which is a fault of its own"); break;
    default: say("it touched memory that is not there (SIGSEGV), which is a fault of its own"); break;
    }
    say(complete ? "; the outputs are complete\n" : "; no output is kept\n");
}

/* A fault cannot wait: what it interrupted does not go on. */
static void clean_up_and_die(int signal_number)
{
    const int reason = errno;
    say_fault(signal_number);
    for (struct output *o = complete ? first_output : NULL; o != NULL; o = o->next)
        if (o->remove && rename(o->temporary, o->target) == 0) o->remove = 0;
    remove_files();
    errno = reason;
    die_by(signal_number);
}

/* Sanitizers have handlers of their own, which say more: those stay. */
static void catch_faults(void)
{
    static const int faults[] = { SIGBUS, SIGSEGV, SIGABRT };
    static char stack[1 << 16];           /* a stack that is full has no room for a handler */
    const stack_t other = { .ss_sp = stack, .ss_size = sizeof stack };
    struct sigaction action = { .sa_handler = clean_up_and_die, .sa_flags = SA_ONSTACK }, old;
    sigemptyset(&action.sa_mask);
    sigaltstack(&other, NULL);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (sigaction(faults[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) sigaction(faults[i], &action, NULL);
}

void cli_outputs_start(void)
{
    static const int fatal[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGXCPU };
    struct sigaction action = { .sa_handler = remove_and_die, .sa_flags = SA_RESTART }, old;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        if (sigaction(fatal[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(fatal[i], &action, NULL);
    signal(SIGXFSZ, SIG_IGN);             /* a file beyond the limit becomes an error of write */
    on_terminal = isatty(STDERR_FILENO) == 1;
    catch_faults();
}

/* Opening ---------------------------------------------------------------------------------------------------------- */

/* ".blockscale-PID-CLOCK-N.tmp" in the target's directory: short, since the target's own name may be as long as is
 * allowed. */
static void name_temporary(struct output *o)
{
    static int number;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const char *slash = strrchr(o->target, '/');
    const int directory = slash == NULL ? 0 : (int)(slash - o->target) + 1;
    snprintf(o->temporary, sizeof o->temporary, "%.*s.blockscale-%ld-%ld-%d.tmp", directory, o->target, (long)getpid(),
             now.tv_nsec, number++);
}

static FILE *open_temporary(struct output *o, mode_t mode)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        name_temporary(o);
        o->remove = 1;
        const int descriptor = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (descriptor >= 0) return fdopen(descriptor, "w");
        o->remove = 0;
        if (errno != EEXIST) return NULL;
    }
    return NULL;
}

/* Where a path leads that leads to no file yet: behind symbolic links, whose last points nowhere. */
static bool follow_links(const char *path, char *target)
{
    char link[PATH_MAX];
    errno = snprintf(target, PATH_MAX, "%s", path) < PATH_MAX ? ELOOP : ENAMETOOLONG;
    for (int links = 0; links < 40 && errno != ENAMETOOLONG; links++) {
        const ssize_t length = readlink(target, link, sizeof link - 1);
        if (length < 0) return errno == EINVAL || errno == ENOENT;
        link[length] = '\0';
        char *name = strrchr(target, '/');
        name = name == NULL || link[0] == '/' ? target : name + 1;
        const size_t room = (size_t)(target + PATH_MAX - name);
        errno = snprintf(name, room, "%s", link) < (int)room ? ELOOP : ENAMETOOLONG;
    }
    return false;
}

/* The folder's own path in front of the name, so that one file has one target whichever way it is called. */
static bool find_new_target(const char *path, char *target)
{
    char followed[PATH_MAX], inside[PATH_MAX];
    if (!follow_links(path, followed)) return false;
    char *slash = strrchr(followed, '/');
    const char *name = slash == NULL ? followed : slash + 1;
    if (slash != NULL && slash != followed) *slash = '\0';
    if (realpath(slash == NULL ? "." : slash == followed ? "/" : followed, inside) == NULL) return false;
    const int length = snprintf(target, PATH_MAX, "%s/%s", strcmp(inside, "/") == 0 ? "" : inside, name);
    if (length < PATH_MAX) return true;
    errno = ENAMETOOLONG;
    return false;
}

/* A file that is there keeps its mode, and a symbolic link stays one, also where it points to no file yet. */
static FILE *open_regular(struct output *o, const char *path, const struct stat *there)
{
    o->is_new = there == NULL;
    if (there == NULL) return find_new_target(path, o->target) ? open_temporary(o, 0666) : NULL;
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0 || realpath(path, o->target) == NULL) return NULL;
    FILE *file = open_temporary(o, 0600);
    /* a file system without modes */
    if (file != NULL && fchmod(fileno(file), there->st_mode & 07777) != 0) errno = 0;
    return file;
}

/* Every input is remembered, however many shards there are: one that was forgotten could be overwritten. */
static void make_room_for_inputs(void)
{
    const size_t room = input_room == 0 ? 64 : 2 * input_room;
    struct input *larger = cli_memory(NULL, (int64_t)room, sizeof *larger);
    if (input_count > 0) memcpy(larger, inputs, input_count * sizeof *inputs);
    free(inputs);
    inputs = larger;
    input_room = room;
}

void cli_input(const char *path)
{
    struct stat there;
    if (stat(path, &there) != 0 || !S_ISREG(there.st_mode)) return;
    if (input_count == input_room) make_room_for_inputs();
    inputs[input_count++] = (struct input){ there.st_dev, there.st_ino };
}

static bool is_input(const struct stat *there)
{
    for (size_t i = 0; i < input_count; i++)
        if (inputs[i].device == there->st_dev && inputs[i].file == there->st_ino) return true;
    return false;
}

static int say_is_input(const struct cli *cli, const char *path)
{
    return cli_bad_input(cli, "%s: is read by this command: an output must be another file", path);
}

static struct output *add_output(const struct cli *cli)
{
    struct output *o = cli_memory(cli, 1, sizeof *o), *volatile *end = &first_output;
    while (*end != NULL) end = &(*end)->next;
    *end = o;
    return o;
}

/* Opens what lies at o->given, or a temporary file for it; NULL with errno, 0 where the sentence was printed. */
static FILE *open_output(const struct cli *cli, struct output *o)
{
    struct stat there;
    errno = 0;
    if (stat(o->given, &there) != 0) return errno == ENOENT ? open_regular(o, o->given, NULL) : NULL;
    if (is_input(&there)) {
        say_is_input(cli, o->given);
        errno = 0;
        return NULL;
    }
    if (S_ISREG(there.st_mode)) return open_regular(o, o->given, &there);
    if (!S_ISDIR(there.st_mode)) return fopen(o->given, "w");          /* devices and pipes take what comes */
    errno = EISDIR;
    return NULL;
}

/* Another output that would be renamed to the same file. */
static const struct output *find_twin(const struct output *o)
{
    for (const struct output *other = first_output; o->remove && other != o; other = other->next)
        if (other->remove && strcmp(o->target, other->target) == 0) return other;
    return NULL;
}

FILE *cli_output(struct cli *cli, const char *path)
{
    if (strlen(path) >= PATH_MAX) {
        cli_bad_input(cli, "%.64s...: cannot be written: %s", path, strerror(ENAMETOOLONG));
        return NULL;
    }
    struct output *o = add_output(cli);
    snprintf(o->given, sizeof o->given, "%s", path);
    o->file = open_output(cli, o);
    if (o->file == NULL) {
        if (errno != 0) cli_bad_input(cli, "%s: cannot be written: %s", path, strerror(errno));
        if (o->remove) unlink(o->temporary), o->remove = 0;
        return NULL;
    }
    const struct output *twin = find_twin(o);
    if (twin == NULL) return o->file;
    cli_bad_input(cli, "%s: is the output \"%s\" too; give each its own file", path, twin->given);
    return NULL;
}

int cli_output_folder(struct cli *cli, const char *path)
{
    struct stat there;
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode)) return CLI_DONE;
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder)
        return cli_bad_input(cli, "%.64s...: cannot be made: %s", path, strerror(ENAMETOOLONG));
    remove_folder = 1;
    if (mkdir(folder, 0777) == 0) return CLI_DONE;
    remove_folder = 0;
    return cli_bad_input(cli, "%s: cannot be made: %s", path, strerror(errno));
}

/* Finishing -------------------------------------------------------------------------------------------------------- */

static bool close_output(const struct cli *cli, struct output *o, bool report)
{
    errno = 0;
    bool good = !ferror(o->file) && fflush(o->file) == 0;
    const int reason = errno;
    good = fclose(o->file) == 0 && good;
    o->file = NULL;
    if (!good && report)
        cli_bad_input(cli, "%s: could not be written: %s", o->given, strerror(reason != 0 ? reason : EIO));
    return good;
}

/* What lies at the target may have become an input after the output was opened. */
static bool replaces_input(const struct output *o)
{
    struct stat there;
    return !o->is_new && stat(o->target, &there) == 0 && is_input(&there);
}

static bool rename_output(const struct cli *cli, struct output *o)
{
    if (!o->remove) return true;
    if (rename(o->temporary, o->target) != 0) {
        complete = 0;
        cli_bad_input(cli, "%s: could not be written: %s", o->given, strerror(errno));
        return false;
    }
    o->remove = 0;
    o->renamed = true;
    return true;
}

/* The renaming of a later file failed: those before it go again, where nothing lay. */
static void take_back(struct output *o)
{
    if (o->renamed && o->is_new) unlink(o->target);
}

/* Flushes and closes everything, in any case; true where nothing failed and no output would replace an input. */
static bool complete_outputs(const struct cli *cli, bool keep)
{
    bool good = true;
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (keep) cli_bad_input(cli, "standard output: %s", strerror(errno != 0 ? errno : EIO));
        good = false;
    }
    for (struct output *o = first_output; o != NULL; o = o->next)
        if (o->file != NULL) good = close_output(cli, o, keep && good) && good;
    for (struct output *o = first_output; o != NULL && keep && good; o = o->next)
        if (o->remove && replaces_input(o)) good = say_is_input(cli, o->given) == CLI_DONE;
    return good;
}

static void forget_outputs(void)
{
    for (struct output *o = first_output, *next; o != NULL; o = next) {
        next = o->next;
        first_output = next;
        free(o);
    }
    input_count = 0;
}

int cli_outputs_finish(const struct cli *cli, bool keep)
{
    bool good = complete_outputs(cli, keep);
    renaming = 1;
    complete = keep && good;
    for (struct output *o = first_output; o != NULL && keep && good; o = o->next) good = rename_output(cli, o);
    for (struct output *o = first_output; o != NULL && keep && !good; o = o->next) take_back(o);
    for (struct output *o = first_output; o != NULL; o = o->next)
        if (o->remove) unlink(o->temporary), o->remove = 0;
    if (remove_folder && !(keep && good)) rmdir(folder);
    remove_folder = 0;
    forget_outputs();
    renaming = 0;
    complete = 0;
    if (pending_signal != 0) remove_and_die(pending_signal);
    return good ? CLI_DONE : CLI_BAD_INPUT;
}

int cli_output_npy(struct cli *cli, const char *path, bsm_npy_type type, int rank, const int64_t *shape,
                   const void *data)
{
    unsigned char header[BSM_NPY_MAX_HEADER];
    size_t header_bytes, bytes = bsm_npy_type_bytes((int)type);
    for (int i = 0; i < rank; i++) bytes *= (size_t)shape[i];
    const bsm_status status = bsm_npy_header(type, rank, shape, header, sizeof header, &header_bytes);
    if (status != BSM_OK) return cli_library_failed(cli, path, status);
    FILE *file = cli_output(cli, path);
    if (file == NULL) return CLI_BAD_INPUT;
    errno = 0;
    const bool written =
        fwrite(header, 1, header_bytes, file) == header_bytes && (bytes == 0 || fwrite(data, 1, bytes, file) == bytes);
    if (!written || fflush(file) != 0)                          /* now: a file that does not fit is not reported */
        return cli_bad_input(cli, "%s: could not be written: %s", path, strerror(errno != 0 ? errno : EIO));
    return CLI_DONE;
}
