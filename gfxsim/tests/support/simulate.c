/* Code objects in a machine. */
#include "simulate.h"

#include <stdlib.h>

struct machine_options test_options(void)
{
    struct machine_options o = machine_default_options();
    o.threads = 1;
    o.step_limit = 20000000;
    return o;
}

void *read_whole(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) return NULL;
    enum { MOST = 1 << 22 };
    char *data = malloc(MOST);
    *bytes = data == NULL ? 0 : fread(data, 1, MOST, f);
    fclose(f);
    return data;
}

bool simulation_open(struct simulation *s, struct test *t, const void *data, size_t bytes,
                     const struct machine_options *options)
{
    char why[256];
    *s = (struct simulation){ 0 };
    if (!machine_open(&s->machine, options)) FAIL(t, "no addresses for a machine's memory");
    else if (code_object_open(&s->object, data, bytes, why) != CODE_OBJECT_OK) FAIL(t, "code object: %s", why);
    else if (!program_open(&s->program, &s->machine, &s->object)) FAIL(t, "no memory for the program");
    else return true;
    return false;
}

bool simulation_open_file(struct simulation *s, struct test *t, const char *path, const struct machine_options *options)
{
    size_t bytes;
    void *data = read_whole(path, &bytes);
    if (data == NULL) {
        *s = (struct simulation){ 0 };
        FAIL(t, "%s cannot be read", path);
        return false;
    }
    const bool ok = simulation_open(s, t, data, bytes, options);
    s->file = data;
    return ok;
}

void simulation_close(struct simulation *s)
{
    program_close(&s->program, &s->machine);
    code_object_close(&s->object);
    machine_close(&s->machine);
    free(s->file);
}

void *simulation_at(uint64_t address) { return (void *)(uintptr_t)address; }

uint64_t simulation_put(struct simulation *s, const void *data, size_t bytes)
{
    const uint64_t address = memory_allocate(&s->machine.memory, bytes, ALLOCATION_DEVICE);
    if (address != 0 && data != NULL) memcpy(simulation_at(address), data, bytes);
    return address;
}

bool simulation_run(struct simulation *s, const char *kernel, uint32_t groups, uint32_t threads, uint32_t dynamic_lds,
                    const void *arguments, size_t bytes)
{
    return simulation_run_grid(s, kernel, (const uint32_t[3]){ groups, 1, 1 }, threads, dynamic_lds, arguments, bytes);
}

bool simulation_run_grid(struct simulation *s, const char *kernel, const uint32_t groups[3], uint32_t threads,
                         uint32_t dynamic_lds, const void *arguments, size_t bytes)
{
    uint8_t filled[4096] = { 0 };
    const struct kernel *k = code_object_kernel(&s->object, kernel);
    if (k == NULL || k->kernarg_bytes > sizeof filled || bytes > sizeof filled) return false;
    memcpy(filled, arguments, bytes);
    const struct launch l = { .program = &s->program, .kernel = k, 
                              .grid = { groups[0], groups[1], groups[2] }, .block = { threads, 1, 1 },
                              .dynamic_lds = dynamic_lds, .arguments = filled, .argument_bytes = k->kernarg_bytes };
    return launch_run(&s->machine, &l, &s->report);
}
