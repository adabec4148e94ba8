/* For tests of the machine: a module from text, buffers, a launch.
 *
 *     struct sim sim;
 *     if (!sim_open(t, &sim, "sm_90a", text)) return;
 *     const uint64_t out = sim_buffer(&sim, NULL, 128);
 *     sim_launch(t, &sim, "k", 1, 32, out, n);        every parameter as a uint64_t
 *     sim_read(&sim, out, host, 128);
 *     sim_close(&sim); */
#ifndef CUDASIM_TESTS_SUPPORT_HARNESS_H
#define CUDASIM_TESTS_SUPPORT_HARNESS_H

#include "machine/core/machine.h"
#include "test.h"

struct sim {
    struct module *module;
    struct machine machine;
    struct image image;
    struct report report;                 /* of the last launch */
    struct ptx_error error;               /* of sim_open */
};

/* `text` is a whole module, or, where it has no .version, the body of an entry
 *     .visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)
 * with registers %r<64>, %rd<64>, %rs<64>, %f<64>, %fd<64>, %p<16>, %q<8> (b128) declared, and parameters loaded to
 * %rd60..%rd63. */
char *sim_module_text(const char *device, const char *text); /* the whole module; the caller frees it */
bool sim_open(struct test *t, struct sim *sim, const char *device, const char *text);
/* As sim_open, but reading must fail; the error is in sim->error. */
bool sim_refused(struct test *t, struct sim *sim, const char *device, const char *text);
void sim_close(struct sim *sim);
uint64_t sim_buffer(struct sim *sim, const void *bytes, size_t size);
void sim_read(struct sim *sim, uint64_t address, void *bytes, size_t size);

/* True if it ran without a report.  sim_launch fails the test where there is one. */
bool sim_run(struct sim *sim, const char *entry, uint32_t grid, uint32_t block, uint32_t shared,
             const uint64_t *parameters, int count);
void sim_launch(struct test *t, struct sim *sim, const char *entry, uint32_t grid, uint32_t block,
                const uint64_t *parameters, int count);

#endif
