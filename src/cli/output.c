/* Output files: written beside their targets under another name, renamed when all of them and stdout are complete. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OUTPUTS = 128 };              /* a model's folder has a dozen small files */

static struct input { dev_t device; ino_t file; } *inputs;
static size_t input_count, input_room;

static struct output {
    char given[PATH_MAX];                 /* the path as the user wrote it */
    char target[PATH_MAX];                /* behind symbolic links */
    char temporary[PATH_MAX + 64];
    FILE *file;
    bool is_new, renamed;                 /* nothing lay at the target; what lies there is this */
    volatile sig_atomic_t remove;         /* a signal removes `temporary` */
} outputs[MAX_OUTPUTS];
static int output_count;

static char folder[PATH_MAX];             /* made for outputs */
static volatile sig_atomic_t remove_folder;

/* Signals ------------------------------------------------------------------------------------------------------------ */

static volatile sig_atomic_t renaming, pending_signal;

static void remove_and_die(int signal_number)
{
    if (renaming) {                       /* all or none: the command ends when every file has its name */
        pending_signal = signal_number;
        return;
    }
    for (int i = 0; i < MAX_OUTPUTS; i++)
        if (outputs[i].remove) unlink(outputs[i].temporary);
    if (remove_folder) rmdir(folder);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void cli_outputs_start(void)
{
    static const int fatal[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGXCPU };
    struct sigaction action = { .sa_handler = remove_and_die, .sa_flags = SA_RESTART }, old;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        if (sigaction(fatal[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(fatal[i], &action, NULL);
    signal(SIGXFSZ, SIG_IGN);             /* a file beyond the limit becomes an error of write */
}

/* Opening ------------------------------------------------------------------------------------------------------------ */

/* ".blockscale-PID-CLOCK-N.tmp" in the target's directory: short, since the target's own name may be as long as is allowed. */
static void name_temporary(struct output *o)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const char *slash = strrchr(o->target, '/');
    const int directory = slash == NULL ? 0 : (int)(slash - o->target) + 1;
    snprintf(o->temporary, sizeof o->temporary, "%.*s.blockscale-%ld-%ld-%d.tmp", directory, o->target, (long)getpid(), now.tv_nsec,
             (int)(o - outputs));
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

/* A file that is there keeps its mode, and a symbolic link stays one. */
static FILE *open_regular(struct output *o, const char *path, const struct stat *there)
{
    memcpy(o->target, o->given, sizeof o->target);
    o->is_new = there == NULL;
    if (there == NULL) return open_temporary(o, 0666);
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0 || realpath(path, o->target) == NULL) return NULL;
    FILE *file = open_temporary(o, 0600);
    if (file != NULL && fchmod(fileno(file), there->st_mode & 07777) != 0) errno = 0;   /* a file system without modes */
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

FILE *cli_output(struct cli *cli, const char *path)
{
    struct stat there;
    if (output_count == MAX_OUTPUTS) {
        cli_bad_input(cli, "%s: more than %d output files", path, MAX_OUTPUTS);
        return NULL;
    }
    struct output *o = &outputs[output_count];
    if (snprintf(o->given, sizeof o->given, "%s", path) >= (int)sizeof o->given) {
        cli_bad_input(cli, "%.64s...: cannot be written: %s", path, strerror(ENAMETOOLONG));
        return NULL;
    }
    errno = 0;
    if (stat(path, &there) == 0 && is_input(&there)) {
        say_is_input(cli, path);
        return NULL;
    }
    errno = 0;
    if (stat(path, &there) != 0) o->file = errno == ENOENT ? open_regular(o, path, NULL) : NULL;
    else if (S_ISREG(there.st_mode)) o->file = open_regular(o, path, &there);
    else if (S_ISDIR(there.st_mode)) errno = EISDIR;
    else o->file = fopen(path, "w");      /* devices and pipes take what comes */
    if (o->file == NULL) {
        cli_bad_input(cli, "%s: cannot be written: %s", path, strerror(errno));
        if (o->remove) unlink(o->temporary), o->remove = 0;
        return NULL;
    }
    for (int i = 0; i < output_count; i++)
        if (o->remove && outputs[i].remove && strcmp(o->target, outputs[i].target) == 0) {
            cli_bad_input(cli, "%s: is the output \"%s\" too; give each its own file", path, outputs[i].given);
            output_count++;
            return NULL;
        }
    output_count++;
    return o->file;
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

/* Finishing ---------------------------------------------------------------------------------------------------------- */

static bool close_output(const struct cli *cli, struct output *o, bool report)
{
    errno = 0;
    bool good = !ferror(o->file) && fflush(o->file) == 0;
    const int reason = errno;
    good = fclose(o->file) == 0 && good;
    o->file = NULL;
    if (!good && report) cli_bad_input(cli, "%s: could not be written: %s", o->given, strerror(reason != 0 ? reason : EIO));
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
    if (replaces_input(o)) return say_is_input(cli, o->given) == CLI_DONE;
    if (rename(o->temporary, o->target) != 0) {
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

int cli_outputs_finish(const struct cli *cli, bool keep)
{
    bool good = true;
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (keep) cli_bad_input(cli, "standard output: %s", strerror(errno != 0 ? errno : EIO));
        good = false;
    }
    for (int i = 0; i < output_count; i++)
        if (outputs[i].file != NULL) good = close_output(cli, &outputs[i], keep && good) && good;
    renaming = 1;
    for (int i = 0; i < output_count && keep && good; i++) good = rename_output(cli, &outputs[i]);
    for (int i = 0; i < output_count && keep && !good; i++) take_back(&outputs[i]);
    for (int i = 0; i < output_count; i++) {
        if (outputs[i].remove) unlink(outputs[i].temporary), outputs[i].remove = 0;
        outputs[i].renamed = false;
    }
    if (remove_folder && !(keep && good)) rmdir(folder);
    remove_folder = 0;
    renaming = 0;
    output_count = 0;
    input_count = 0;
    if (pending_signal != 0) remove_and_die(pending_signal);
    return good ? CLI_DONE : CLI_BAD_INPUT;
}

int cli_output_npy(struct cli *cli, const char *path, bsm_npy_type type, int rank, const int64_t *shape, const void *data)
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
    if (!written || fflush(file) != 0)                          /* now, so that nothing is reported of a file that does not fit */
        return cli_bad_input(cli, "%s: could not be written: %s", path, strerror(errno != 0 ? errno : EIO));
    return CLI_DONE;
}
