/* Bytes as a code object: loaded, decoded, its kernels run for some steps. */
#include "machine/launch.h"
#include "machine/memory.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(struct machine *m, const struct code_object *o)
{
    struct program p;
    if (!program_open(&p, m, o)) return;
    for (uint32_t i = 0; i < o->kernels && i < 4; i++) {
        const struct kernel *k = &o->kernel[i];
        if (k->kernarg_bytes > 4096 || k->lds_bytes > LDS_BYTES) continue;
        uint8_t *arguments = calloc(1, k->kernarg_bytes + 1);
        struct report report;
        const uint64_t address = memory_allocate(&m->memory, 4096, ALLOCATION_DEVICE);
        for (uint32_t at = 0; at + 8 <= k->kernarg_bytes && arguments != NULL; at += 8)
            memcpy(arguments + at, &address, 8);
        const struct launch l = { .program = &p, .kernel = k, .grid = { 2, 1, 1 }, .block = { 96, 1, 1 },
                                  .arguments = arguments, .argument_bytes = k->kernarg_bytes };
        if (arguments != NULL) launch_run(m, &l, &report);
        free(arguments);
    }
    program_close(&p, m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct machine_options options = machine_default_options();
    struct machine m;
    struct code_object o;
    char why[256];
    options.threads = 1, options.step_limit = 2000;
    if (size >= 1 << 20 || !machine_open(&m, &options)) return 0;
    if (size != 0 && code_object_open(&o, data, size, why) == CODE_OBJECT_OK && o.bytes <= 1 << 20) run(&m, &o);
    if (size != 0) code_object_close(&o);
    machine_close(&m);
    return 0;
}
