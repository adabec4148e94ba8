/* A code object in a machine: what the tests of kernels share. */
#ifndef GFXSIM_TESTS_SIMULATE_H
#define GFXSIM_TESTS_SIMULATE_H

#include "machine/launch.h"
#include "machine/memory.h"
#include "test.h"

struct simulation {
    struct machine machine;
    struct code_object object;
    struct program program;
    struct report report;
    void *file;
    size_t file_bytes;
};

struct machine_options test_options(void);
/* From bytes of an ELF file; false: failed, and says so. */
bool simulation_open(struct simulation *s, struct test *t, const void *data, size_t bytes,
                     const struct machine_options *options);
bool simulation_open_file(struct simulation *s, struct test *t, const char *path,
                          const struct machine_options *options);
void simulation_close(struct simulation *s);

/* Device memory with these bytes (NULL: as allocated), and its host address. */
uint64_t simulation_put(struct simulation *s, const void *data, size_t bytes);
void *simulation_at(uint64_t address);

/* Launches a grid in one dimension; the arguments are those of the kernel's structure. */
bool simulation_run(struct simulation *s, const char *kernel, uint32_t groups, uint32_t threads, uint32_t dynamic_lds,
                    const void *arguments, size_t bytes);

/* The same in three dimensions. */
bool simulation_run_grid(struct simulation *s, const char *kernel, const uint32_t groups[3], uint32_t threads,
                         uint32_t dynamic_lds, const void *arguments, size_t bytes);

/* The whole file; NULL if there is none. */
void *read_whole(const char *path, size_t *bytes);

#endif
