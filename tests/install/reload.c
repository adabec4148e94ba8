/* Loads and unloads the library many times, in a process that forks in between: nothing of it may stay behind, no
 * handler and no thread. */
#include <blockscale.h>

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 256, COLUMNS = 1024 };
static float numbers[ROWS * COLUMNS];
static unsigned char codes[ROWS * COLUMNS], scales[ROWS * COLUMNS / 32];

static int threads_here(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;) count += entry->d_name[0] != '.';
    if (tasks != NULL) closedir(tasks);
    return count;
}

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) fprintf(stderr, "%s\n", dlerror());
    return found;
}

/* Something on four threads; the number of threads that the process has then, 0 if it failed. */
static int use(void *library)
{
    bsm_status (*create)(const bsm_context_options *, bsm_context **);
    bsm_status (*quantize)(bsm_context *, const bsm_real_matrix *, const bsm_quantize_options *, const bsm_matrix *, bsm_quantize_stats *);
    void (*destroy)(bsm_context *);
    *(void **)&create = find(library, "bsm_context_create");
    *(void **)&quantize = find(library, "bsm_quantize");
    *(void **)&destroy = find(library, "bsm_context_destroy");
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 4 };
    const bsm_real_matrix from = { .struct_size = sizeof from, .rows = ROWS, .columns = COLUMNS, .data = numbers, .row_stride = COLUMNS, .column_stride = 1 };
    const bsm_matrix to = { .struct_size = sizeof to, .format = BSM_MXFP8_E4M3, .rows = ROWS, .columns = COLUMNS, .data = codes, .scales = scales };
    bsm_context *context;
    if (create == NULL || quantize == NULL || destroy == NULL || create(&options, &context) != BSM_OK) return 0;
    const bsm_status status = quantize(context, &from, NULL, &to, NULL);
    const int count = threads_here();
    destroy(context);
    return status == BSM_OK ? count : 0;
}

int main(int argc, char **argv)
{
    int most = 0;
    for (int i = 0; argc == 2 && i < 200; i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        int (*version)(void);
        if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
        *(void **)&version = dlsym(library, "bsm_version");
        if (version == NULL || version() <= 0) return 2;
        if (i % 10 == 0) {
            const int count = use(library);
            if (count == 0) return 4;
            if (count > most) most = count;
        }
        if (dlclose(library) != 0) return 2;
        if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL) return fprintf(stderr, "the library stays loaded\n"), 5;
        if (threads_here() != 1) return fprintf(stderr, "%d threads are left\n", threads_here()), 6;
        if (i % 50 == 0) {                                        /* a fork handler left behind would be called now */
            int status = 1;
            const pid_t child = fork();
            if (child == 0) _exit(0);
            if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 3;
        }
    }
    return argc != 2 || most != 4;                                /* there were threads that could have been left */
}
