#include "harness.h"
#include "machine/core/global_memory.h"
#include "machine/run/launch.h"
#include "machine/run/schedules.h"

#include <stdlib.h>

static const char head[] =
    ".address_size 64\n"
    ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n{\n"
    ".reg .b32 %r<64>; .reg .b64 %rd<64>; .reg .b16 %rs<64>; .reg .f32 %f<64>; .reg .f64 %fd<64>; "
    ".reg .pred %p<16>; .reg .b128 %q<8>;\n"
    "ld.param.u64 %rd60, [p0]; ld.param.u64 %rd61, [p1]; ld.param.u64 %rd62, [p2]; ld.param.u64 %rd63, [p3];\n";

char *sim_module_text(const char *device, const char *text)
{
    const size_t size = strlen(text) + sizeof head + 128;
    char *whole = malloc(size);
    if (whole == NULL) abort();
    if (strstr(text, ".version") != NULL) snprintf(whole, size, "%s", text);
    else snprintf(whole, size, ".version 9.0\n.target %s\n%s%s\nret;\n}\n", device, head, text);
    return whole;
}

static bool read_module(struct sim *sim, const char *device, const char *text)
{
    char *whole = sim_module_text(device, text);
    *sim = (struct sim){ .module = NULL };
    sim->module = ptx_read("test.ptx", whole, strlen(whole), NULL, &sim->error);
    free(whole);
    return sim->module != NULL;
}

bool sim_open(struct test *t, struct sim *sim, const char *device, const char *text)
{
    if (!read_module(sim, device, text)) {
        FAIL(t, "%s", sim->error.text);
        return false;
    }
    struct machine_options options = machine_default_options();
    options.seed = t->seed;
    rules_all(options.rule, RULE_STOP);
    machine_open(&sim->machine, device_named(device), &options);
    if (image_open(&sim->image, &sim->machine, sim->module)) return true;
    FAIL(t, "no memory for the module");
    return false;
}

bool sim_refused(struct test *t, struct sim *sim, const char *device, const char *text)
{
    if (!read_module(sim, device, text)) return true;
    FAIL(t, "accepted: %s", text);
    ptx_release(sim->module);
    return false;
}

void sim_close(struct sim *sim)
{
    image_close(&sim->image, &sim->machine);
    machine_close(&sim->machine);
    ptx_release(sim->module);
}

uint64_t sim_buffer(struct sim *sim, const void *bytes, size_t size)
{
    const uint64_t address = global_allocate(&sim->machine.memory, size, 0, NULL);
    if (address == 0) abort();
    if (bytes != NULL) memcpy(global_host(&sim->machine.memory, address, size), bytes, size);
    return address;
}

void sim_read(struct sim *sim, uint64_t address, void *bytes, size_t size)
{
    const uint8_t *host = global_host(&sim->machine.memory, address, size);
    if (host == NULL) abort();
    memcpy(bytes, host, size);
}

bool sim_run(struct sim *sim, const char *entry, uint32_t grid, uint32_t block, uint32_t shared,
             const uint64_t *parameters, int count)
{
    uint8_t buffer[4096] = { 0 };
    const struct function *f = ptx_function(sim->module, entry);
    if (f == NULL || f->parameter_bytes > sizeof buffer || count > (int)f->parameter_count) abort();
    for (int i = 0; i < count; i++)
        memcpy(buffer + f->parameters[i]->offset, &parameters[i],
               f->parameters[i]->bytes > 8 ? 8 : f->parameters[i]->bytes);
    const struct launch launch = { .image = &sim->image,
                                   .function = f,
                                   .grid = { grid, 1, 1 },
                                   .block = { block, 1, 1 },
                                   .cluster = { 1, 1, 1 },
                                   .dynamic_shared = shared,
                                   .parameters = buffer };
    return machine_run(&sim->machine, &launch, &sim->report);
}

void sim_launch(struct test *t, struct sim *sim, const char *entry, uint32_t grid, uint32_t block,
                const uint64_t *parameters, int count)
{
    if (!sim_run(sim, entry, grid, block, 0, parameters, count)) FAIL(t, "%s", sim->report.text);
}
