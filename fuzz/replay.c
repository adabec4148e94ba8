/* Runs a fuzz target without libFuzzer: every file of a folder, every cut of it, and every byte of it changed in a few
 * ways.  A bug ends the program.  Prints the line that tests/run reads; what the target prints is not shown. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 16, MOST_CHANGED = 400 };

static int64_t runs;

/* In a block of exactly its size, so that AddressSanitizer sees reads behind it. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (exact == NULL) abort();
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    runs++;
}

static void run_neighbours(uint8_t *data, size_t size)
{
    static const uint8_t flips[] = { 0x01, 0x80, 0xff };
    run(data, size);
    for (size_t cut = 0; cut < size && cut < MOST_CHANGED; cut++) run(data, cut);
    for (size_t i = 0; i < size && i < MOST_CHANGED; i++)
        for (size_t j = 0; j < sizeof flips; j++) {
            data[i] ^= flips[j];
            run(data, size);
            data[i] ^= flips[j];
        }
}

static int run_file(const char *folder, const char *name)
{
    static uint8_t data[MOST_BYTES];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return 1;
    const size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    run_neighbours(data, size);
    return 0;
}

int main(int argc, char **argv)
{
    const char *program = strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 : argv[0];
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (folder == NULL) {
        fprintf(stderr, "usage: %s FOLDER\n", program);
        return 2;
    }
    int files = 0, failed = 0;
    const int errors = dup(2), nowhere = open("/dev/null", O_WRONLY);
    if (getenv("BLOCKSCALE_REPLAY_LOUD") == NULL) dup2(nowhere, 2);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.') files++, failed += run_file(argv[1], entry->d_name);
    dup2(errors, 2);
    closedir(folder);
    printf("%lld inputs\n%s: %d passed, %d failed, 0 skipped\n", (long long)runs, program, files - failed, failed);
    return failed > 0 || files == 0;
}
