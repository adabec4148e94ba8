/* What the environment asks to be written down: CUDASIM_TRACE and CUDASIM_PROFILE; and CUDASIM_MUTATE. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "machine/run/mutate.h"
#include "machine/profile/profile.h"
#include "machine/core/statement.h"
#include "machine/profile/trace.h"

static struct watch watch;
static bool opened;

static const char *environment(const char *name)
{
    const char *text = getenv(name);
    return text == NULL || *text == '\0' ? NULL : text;
}

static FILE *open_file(const char *name)
{
    const char *path = environment(name);
    if (path == NULL) return NULL;
    FILE *file = fopen(path, "we");
    if (file == NULL) driver_say("cudasim: %s=%s cannot be written: it is ignored\n", name, path);
    return file;
}

static void open_trace(void)
{
    struct trace_filter filter = trace_everything;
    const char *wrong = trace_filter_read(&filter, environment("CUDASIM_TRACE_CTA"), environment("CUDASIM_TRACE_WARP"),
                                          environment("CUDASIM_TRACE_LINES"), environment("CUDASIM_TRACE_LANE"));
    FILE *file = open_file("CUDASIM_TRACE");
    if (wrong != NULL)
        driver_say("cudasim: \"%s\" is no CTA (X,Y,Z), no range of warps or lines (A-B) or no lane: all is traced\n",
                   wrong);
    if (file != NULL) watch.trace = trace_open(file, wrong == NULL ? &filter : &trace_everything);
}

static void open_profile(void)
{
    const char *path = environment("CUDASIM_PROFILE");
    const size_t length = path == NULL ? 0 : strlen(path);
    FILE *file = open_file("CUDASIM_PROFILE");
    if (file != NULL) watch.profile = profile_open(file, length > 5 && strcmp(path + length - 5, ".json") == 0);
}

/* All contexts write to the same files, which stay open until the process ends: both are flushed after each launch. */
struct watch *driver_watch(void)
{
    if (!opened) open_trace(), open_profile();
    opened = true;
    return watch.trace == NULL && watch.profile == NULL ? NULL : &watch;
}

void driver_mutate(struct module *module)
{
    const char *name = environment("CUDASIM_MUTATE");
    uint32_t pc;
    if (name == NULL || !mutation_find(module, name, &pc)) return;
    char text[STATEMENT_BYTES];
    statement_text(module, pc, text, sizeof text);
    mutation_apply(module, pc);
    driver_say("cudasim: CUDASIM_MUTATE took away %s: %s\n", name, text);
}

void driver_tell_mutation(void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (mutation_reached() && !atomic_flag_test_and_set(&told))
        driver_say("cudasim: CUDASIM_MUTATE: threads came to it\n");
}
