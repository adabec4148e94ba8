/* Drives a fuzz target much faster than libFuzzer does, which spends most of its time on its own books where a target
 * takes a microsecond: cheap mutations of a corpus that grows by every input that reaches something new.  What is
 * reached is counted by clang's -fsanitize-coverage=inline-8bit-counters.
 *
 *     drive_NAME [--seconds N] [--runs N] [--seed N] [--length N] FOUND_PREFIX CORPUS_FOLDER [FOLDER...]
 *
 * Starts from the files of all folders and keeps new inputs in the first; an input that ends the program is kept as
 * FOUND_PREFIX with a hash behind it, and so is one that takes ten seconds.  Prints the executions last, also after
 * SIGTERM and SIGINT.  Seconds are processor time. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 4096, MOST_INPUTS = 20000, MOST_MODULES = 8, MOST_COUNTERS = 1 << 16, HANGS_AFTER = 10 };

/* Coverage --------------------------------------------------------------------------------------------------------- */

static struct { uint8_t *start, *stop; } modules[MOST_MODULES];
static int module_count;
static size_t counters; /* of all modules */
static uint8_t seen[MOST_COUNTERS + 8]; /* for each counter, one bit for each size that it had */

void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop);
void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop)
{
    for (int i = 0; i < module_count; i++)
        if (modules[i].start == start) return;
    if (start == stop || module_count == MOST_MODULES || (size_t)(stop - start) > MOST_COUNTERS - counters) return;
    modules[module_count].start = start;
    modules[module_count++].stop = stop;
    counters += (size_t)(stop - start);
}

static uint16_t sizes_of_two[1 << 16]; /* of two counts beside one another */

static unsigned size_of(unsigned count)
{
    if (count < 4) return count == 0 ? 0 : 1u << (count - 1);
    return count < 8 ? 8 : count < 16 ? 16 : count < 32 ? 32 : count < 128 ? 64 : 128;
}

static void make_sizes(void)
{
    for (unsigned i = 0; i < 1 << 16; i++) sizes_of_two[i] = (uint16_t)(size_of(i & 255) | size_of(i >> 8) << 8);
}

/* Whether one of eight counts has a size that it never had. */
static bool look(uint64_t counts, uint8_t *sizes)
{
    uint64_t had, have = 0;
    for (int i = 0; i < 64; i += 16) have |= (uint64_t)sizes_of_two[counts >> i & 0xffff] << i;
    memcpy(&had, sizes, sizeof had);
    if ((have & ~had) == 0) return false;
    had |= have;
    memcpy(sizes, &had, sizeof had);
    return true;
}

/* Sets all counts to 0 for the next input.  Most are 0 already: 32 are passed over at once. */
static bool reached_something_new(void)
{
    bool new = false;
    uint8_t *sizes = seen;
    for (int m = 0; m < module_count; m++) {
        uint8_t *at = modules[m].start;
        for (; modules[m].stop - at >= 32; at += 32, sizes += 32) {
            uint64_t four[4];
            memcpy(four, at, sizeof four);
            if ((four[0] | four[1] | four[2] | four[3]) == 0) continue;
            for (int i = 0; i < 4; i++)
                if (four[i] != 0 && look(four[i], sizes + 8 * i)) new = true;
            memset(at, 0, sizeof four);
        }
        for (; at < modules[m].stop; at++, sizes++) {
            new = look(*at, sizes) || new;
            *at = 0;
        }
    }
    return new;
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

struct input { uint8_t *bytes; size_t size; };
static struct input inputs[MOST_INPUTS];
static int input_count;
static uint8_t *page_end;                     /* the first byte that cannot be read: an input ends here */
static struct input current;
static const char *found_prefix, *corpus_folder;
static volatile sig_atomic_t stopped;
static volatile uint64_t runs;
static uint64_t most_runs = UINT64_MAX;
static size_t length = 512;
static int seconds_left = -1, still;

static uint64_t hash_of(const uint8_t *bytes, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

/* Only calls that a signal handler may make. */
static void write_input(const char *before, const struct input *input)
{
    static const char digits[] = "0123456789abcdef";
    char path[4200];
    size_t used = strlen(before);
    uint64_t hash = hash_of(input->bytes, input->size);
    if (used + 17 > sizeof path) return;
    memcpy(path, before, used);
    for (int i = 0; i < 16; i++, hash >>= 4) path[used++] = digits[hash & 15];
    path[used] = '\0';
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0) return;
    if (write(file, input->bytes, input->size) != (ssize_t)input->size) unlink(path);
    close(file);
}

static void keep(const uint8_t *bytes, size_t size, bool on_disk)
{
    if (input_count == MOST_INPUTS) return;
    struct input *input = &inputs[input_count];
    *input = (struct input){ malloc(size > 0 ? size : 1), size };
    if (input->bytes == NULL) return;
    memcpy(input->bytes, bytes, size);
    input_count++;
    char before[4160];
    if (on_disk && snprintf(before, sizeof before, "%s/", corpus_folder) < (int)sizeof before)
        write_input(before, input);
}

static void run(const uint8_t *bytes, size_t size, bool on_disk)
{
    current = (struct input){ page_end - size, size };
    memcpy(current.bytes, bytes, size);
    LLVMFuzzerTestOneInput(current.bytes, size);
    runs++;
    if (reached_something_new()) keep(current.bytes, size, on_disk);
}

static void read_folder(const char *name)
{
    static uint8_t bytes[MOST_BYTES];
    char path[4160];
    DIR *folder = opendir(name);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.' || snprintf(path, sizeof path, "%s/%s", name, entry->d_name) >= (int)sizeof path)
            continue;
        FILE *file = fopen(path, "rb");
        if (file == NULL) continue;
        const size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        run(bytes, size, false);
    }
    if (folder != NULL) closedir(folder);
}

/* Mutations -------------------------------------------------------------------------------------------------------- */

static uint64_t state;

static uint64_t next_random(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static size_t below(size_t count) { return (size_t)(((next_random() >> 32) * count) >> 32); }

static void put_number(uint8_t *at, size_t room)
{
    static const uint64_t special[] = { 0,         1,           2,          7,
                                        31,        32,          64,         127,
                                        128,       255,         256,        0x7fff,
                                        0x8000,    0xffff,      INT32_MAX,  0x80000000u,
                                        INT64_MAX, UINT32_MAX,  UINT64_MAX, (uint64_t)1 << 32,
                                        (uint64_t)1 << 56,      (uint64_t)1 << 63 };
    const size_t widths[] = { 1, 2, 4, 8 }, width = widths[below(4)];
    const uint64_t number = special[below(sizeof special / sizeof special[0])] + below(3) - 1;
    for (size_t i = 0; i < width && i < room; i++) at[i] = (uint8_t)(number >> 8 * i);
}

static size_t put_run(uint8_t *bytes, size_t size, const struct input *from, bool insert)
{
    if (from->size == 0) return size;
    const size_t start = below(from->size), at = below(size + 1);
    size_t count = 1 + below(below(4) == 0 ? from->size - start : 16);
    if (count > from->size - start) count = from->size - start;
    if (insert) {
        if (count > length - size) count = length - size;
        memmove(bytes + at + count, bytes + at, size - at);
        size += count;
    } else if (count > size - at) {
        count = size - at;
    }
    memmove(bytes + at, from->bytes + start, count); /* it may be the input itself */
    return size;
}

static size_t take_out(uint8_t *bytes, size_t size)
{
    const size_t at = below(size);
    size_t count = 1 + below(below(4) == 0 ? size - at : 8);
    if (count > size - at) count = size - at;
    memmove(bytes + at, bytes + at + count, size - at - count);
    return size - count;
}

static size_t mutate(uint8_t *bytes, size_t size)
{
    static const char signs[] = "{}[]\",:-.\\0123456789eEu ";
    const struct input *other = &inputs[below((size_t)input_count)];
    if (size == 0) return put_run(bytes, size, other, true);
    const size_t at = below(size);
    switch (below(10)) {
    case 0: bytes[at] ^= (uint8_t)(1 << below(8)); return size;
    case 1: bytes[at] = (uint8_t)next_random(); return size;
    case 2: bytes[at] = (uint8_t)(bytes[at] + below(35) - 17); return size;
    case 3: bytes[at] = (uint8_t)signs[below(sizeof signs - 1)]; return size;
    case 4: put_number(bytes + at, size - at); return size;
    case 5: return put_run(bytes, size, other, false);
    case 6: return put_run(bytes, size, other, true);
    case 7: return put_run(bytes, size, &(struct input){ bytes + at, size - at < 16 ? size - at : 16 }, true);
    case 8: return take_out(bytes, size);
    default: return below(8) == 0 ? at : take_out(bytes, size);
    }
}

/* New inputs have more to give than old ones. */
static const struct input *choose(void)
{
    const size_t count = (size_t)input_count, recent = count / 4 + 1;
    return &inputs[below(2) == 0 ? below(count) : count - 1 - below(recent)];
}

static void run_mutated(void)
{
    uint8_t bytes[MOST_BYTES + 64];
    const struct input *input = choose();
    size_t size = input->size < length ? input->size : length;
    memcpy(bytes, input->bytes, size);
    for (size_t times = (size_t)1 << below(4); times > 0; times--) size = mutate(bytes, size);
    run(bytes, size, true);
}

/* The program ------------------------------------------------------------------------------------------------------ */

static void on_end(int signal_number) { stopped = signal_number; }

static void on_crash(int signal_number)
{
    write_input(found_prefix, &current);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* Every second of processor time: whether the time is over, and whether one input takes it all. */
static void on_second(int signal_number)
{
    static uint64_t before;
    if (seconds_left > 0 && --seconds_left == 0) stopped = signal_number;
    still = runs == before ? still + 1 : 0;
    before = runs;
    if (still >= HANGS_AFTER) on_crash(SIGABRT);
}

static void set_handlers(void)
{
    static const int crashes[] = { SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGTRAP };
    const struct itimerval each_second = { { 1, 0 }, { 1, 0 } };
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++) signal(crashes[i], on_crash);
    signal(SIGTERM, on_end);
    signal(SIGINT, on_end);
    signal(SIGPROF, on_second);
    setitimer(ITIMER_PROF, &each_second, NULL);
}

/* Bytes that end where nothing can be read: what reads behind an input ends the program, with any sanitizer or none. */
static bool make_page_end(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (MOST_BYTES + page - 1) / page * page;
    uint8_t *memory = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + room, page, PROT_NONE) != 0) return false;
    page_end = memory + room;
    return true;
}

static bool number_option(int argc, char **argv, int *at, const char *name, uint64_t *number)
{
    char *end;
    if (strcmp(argv[*at], name) != 0 || *at + 1 >= argc) return false;
    *number = strtoull(argv[*at + 1], &end, 10);
    if (argv[*at + 1][0] == '\0' || *end != '\0') return false;
    *at += 2;
    return true;
}

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s [--seconds N] [--runs N] [--seed N] [--length N, up to %d] FOUND_PREFIX CORPUS_FOLDER "
                    "[FOLDER...]\n",
            program, MOST_BYTES);
    return 2;
}

int main(int argc, char **argv)
{
    int at = 1;
    uint64_t seconds = 0, bytes = length, seed = 1;
    while (at < argc && argv[at][0] == '-')
        if (!number_option(argc, argv, &at, "--seconds", &seconds)
            && !number_option(argc, argv, &at, "--runs", &most_runs) && !number_option(argc, argv, &at, "--seed", &seed)
            && !number_option(argc, argv, &at, "--length", &bytes))
            return usage(argv[0]);
    if (argc - at < 2 || bytes == 0 || bytes > MOST_BYTES) return usage(argv[0]);
    length = (size_t)bytes;
    state = seed;
    seconds_left = seconds > 0 ? (int)seconds : -1;
    found_prefix = argv[at];
    corpus_folder = argv[at + 1];
    if (!make_page_end() || module_count == 0) {
        fprintf(stderr, "%s: %s\n", argv[0], module_count == 0 ? "nothing counts what is reached" : strerror(errno));
        return 2;
    }
    make_sizes();
    set_handlers();
    for (int i = at + 1; i < argc; i++) read_folder(argv[i]);
    if (input_count == 0) keep(NULL, 0, false);
    while (stopped == 0 && runs < most_runs) run_mutated();
    printf("%" PRIu64 " executions, %d inputs that reach something new of %zu counters\n", (uint64_t)runs, input_count,
           counters);
    return 0;
}
