/* Loads and unloads the library many times, in a process that forks in between: nothing of it may stay behind. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    for (int i = 0; argc == 2 && i < 200; i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        int (*version)(void);
        if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
        *(void **)&version = dlsym(library, "bsm_version");
        if (version == NULL || version() <= 0 || dlclose(library) != 0) return 2;
        if (i % 50 == 0) {                                        /* a fork handler left behind would be called now */
            int status = 1;
            const pid_t child = fork();
            if (child == 0) _exit(0);
            if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 3;
        }
    }
    return argc != 2;
}
