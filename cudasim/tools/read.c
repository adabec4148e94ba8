/* cudasim read: reads PTX and says what it found, or the first error. */
#include "tools/command.h"

#include <stdlib.h>

#include "ptx/ptx.h"

struct read_settings {
    struct text_list files;
};

static const struct option options[] = { { "FILE.ptx...", "", "PTX texts", OPTION_FILES,
                                           .offset = offsetof(struct read_settings, files), .required = true },
                                         { .name = NULL } };

static int read_one(const char *name)
{
    size_t length;
    char *text = read_file(name, &length);
    if (text == NULL) return EXIT_BAD_INPUT;
    struct ptx_error error;
    struct module *m = ptx_read(name, text, length, NULL, &error);
    if (m == NULL) fprintf(stderr, "%s\n", error.text);
    else printf("%s: %u functions, %u instructions\n", name, m->function_count, m->code_count);
    const int status = m == NULL ? EXIT_REPORT : EXIT_DONE;
    ptx_release(m);
    free(text);
    return status;
}

static int run(const void *settings)
{
    const struct read_settings *s = settings;
    int worst = EXIT_DONE;
    for (int i = 0; i < s->files.count; i++) {
        const int status = read_one(s->files.item[i]);
        if (status > worst) worst = status;
    }
    return worst;
}

const struct verb verb_read = { .name = "read",
                                .summary = "reads PTX and says what it does not know, with line and caret",
                                .usage = "FILE.ptx...",
                                .about =
                                    "Reads each file as a module is read when it is loaded; "
                                    "exit status 1 where one has an error.",
                                .options = options,
                                .settings_bytes = sizeof(struct read_settings),
                                .run = run };
