/* What the verbs of the command `cudasim` share.
 *
 * A verb is one file that defines one `const struct verb verb_NAME`, and a line in cudasim.c.  Its options are rows of
 * a table, from which parsing, errors and --help come; a row says where in the verb's settings the value goes. */
#ifndef CUDASIM_TOOLS_COMMAND_H
#define CUDASIM_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum exit_status { EXIT_DONE = 0, EXIT_REPORT = 1, EXIT_BAD_INPUT = 2 };

enum { LIST_MOST = 256 };
struct text_list {
    const char *item[LIST_MOST];
    int count;
};
struct extent {
    uint32_t x[3];
    bool given;
};

enum option_kind {
    OPTION_FLAG,       /* bool */
    OPTION_TEXT,       /* const char * */
    OPTION_MAYBE_TEXT, /* const char *: --name gives "", --name=VALUE gives VALUE */
    OPTION_NUMBER,     /* uint64_t, low .. high */
    OPTION_EXTENT,     /* struct extent: X, X,Y or X,Y,Z; each 1 .. high */
    OPTION_LIST,       /* struct text_list: may be given several times */
    OPTION_FILES       /* struct text_list: all arguments without dashes */
};

struct option {
    const char *name;  /* "--grid"; without dashes: a positional argument */
    const char *value; /* placeholder in --help */
    const char *help;
    enum option_kind kind;
    size_t offset;
    uint64_t low, high;
    bool required;
};

struct verb {
    const char *name, *summary, *usage, *about;
    const struct option *shared;          /* rows that several verbs have; NULL: none */
    const struct option *options;         /* its own; both end with name NULL */
    const void *defaults;
    size_t settings_bytes;
    int (*run)(const void *settings); /* returns an enum exit_status */
    bool (*ends_options)(const char *argument); /* NULL: no argument does; what follows one that does is not the
                                                   verb's */
};

/* Settings are filled with the defaults before.  Prints what is wrong; EXIT_DONE or EXIT_BAD_INPUT.  rest: what follows
 * "--", or the argument that ends the options. */
int options_parse(const struct verb *verb, int count, char **arguments, void *settings, char ***rest);
void options_help(const struct verb *verb, FILE *file);

/* Prints "cudasim: sentence" on stderr and returns EXIT_BAD_INPUT. */
__attribute__((format(printf, 1, 2))) int bad_input(const char *format, ...);

/* The arguments that are not the verb's own, NULL-terminated, of the running command; NULL: none. */
char **command_rest(void);

/* A whole file, with a zero behind it; NULL after saying why not. */
char *read_file(const char *path, size_t *bytes);

#endif
