/* What the verbs of the command share.
 *
 * A verb is a file in commands/NAME that defines one `const struct cli_verb cli_verb_NAME`; to add it: that file, its
 * name in CMakeLists.txt, one line in verbs.h.  The verb's options are rows of one table, from which parsing, errors
 * and --help come:
 *
 *     struct settings { const char *input; int64_t rows; bsm_format format; bool exact; };
 *     static const struct settings defaults = { .rows = 256, .format = BSM_MXFP4 };
 *     static const struct cli_option options[] = {
 *         { "INPUT.npy", 0,   NULL,     "the matrix",            CLI_TEXT(struct settings, input), .required = true },
 *         { "--rows",    'r', "N",      "rows to show",          CLI_INTEGER(struct settings, rows), .low = 1 },
 *         { "--format",  0,   "FORMAT", "what it is made into",  CLI_FORMAT(struct settings, format) },
 *         { "--exact",   0,   NULL,     "sums without rounding", CLI_FLAG(struct settings, exact) },
 *         { .name = NULL }
 *     };
 *     static int run(struct cli *cli, const void *given) { const struct settings *s = given; ... return CLI_DONE; }
 *     const struct cli_verb cli_verb_show = {
 *         .name = "show", .summary = "...", .usage = "INPUT.npy [options]", .about = "...",
 *         .example = "blockscale show X.npy --rows 4", .options = options, .defaults = &defaults,
 *         .settings_bytes = sizeof defaults, .run = run };
 *
 * The command knows the library's public headers only.  Results go to stdout, everything else to stderr. */
#ifndef CLI_H
#define CLI_H

#include "blockscale.h"

#include <stdio.h>

/* Exit codes of the command. */
enum cli_exit {
    CLI_DONE = 0,
    CLI_DIFFERS = 1,                     /* it ran, and what was compared is different */
    CLI_WRONG_USAGE = 2,                 /* the command line (or environment) */
    CLI_BAD_INPUT = 3,                   /* files, memory, what the library refused; a full stdout or disk */
    CLI_NO_DEVICE = 4
};

/* A running verb.  --threads, --cpu, --seed and --json belong to every verb and arrive here. */
struct cli {
    const struct cli_verb *verb;
    bsm_context *context;                /* made from --threads and --cpu before the verb runs, destroyed after it */
    uint64_t seed;                       /* --seed, 1 unless given: of random data and stochastic rounding */
    bool json;                           /* --json: one JSON value on stdout instead of text */
};

/* Options ---------------------------------------------------------------------------------------------------------- */

struct cli_option;

/* Parses text into *destination.  On failure returns false after cli_say(why, "sentence"): what the value must be. */
struct cli_why { char sentence[1024]; };
typedef bool cli_parser(const struct cli_option *option, const char *text, void *destination, struct cli_why *why);
__attribute__((format(printf, 2, 3))) void cli_say(struct cli_why *why, const char *format, ...);

/* Values with names: numbers first .. end-1, those without a name are no choice.  from_name may know aliases. */
struct cli_choices {
    const char *(*name)(int value);
    int (*from_name)(const char *name);  /* a value out of first .. end-1: not known */
    int first, end;
};

struct cli_option {
    const char *name;                    /* "--rows"; without dashes: a positional argument, in the table's order */
    char letter;                         /* 'r' for -r; 0: none */
    const char *value;                   /* placeholder for --help, NULL for flags and positional arguments */
    const char *help;
    cli_parser *parse;                   /* these three come from the macros below, which check the type of the field */
    size_t offset;
    const struct cli_choices *choices;
    const char *listed_by;               /* NULL, or the command that lists the choices for --help and errors */
    int64_t low, high;                   /* of CLI_INTEGER and CLI_RANGE, included; both 0: the type's bounds */
    bool required;
};

#define CLI_FIELD(settings, field, type) \
    (offsetof(settings, field) + 0 * sizeof(char[_Generic(((settings *)0)->field, type: 1, default: -1)]))

/* The type of the field is that of the macro's name: a flag takes no value, a text is not empty, an unsigned number is
 * 0 .. 2^64-1, a float may be inf or nan, and formats are a set of bits. */
#define CLI_FLAG(settings, field)       cli_flag, CLI_FIELD(settings, field, bool), .choices = NULL
#define CLI_TEXT(settings, field)       cli_text, CLI_FIELD(settings, field, const char *), .choices = NULL
#define CLI_INTEGER(settings, field)    cli_integer, CLI_FIELD(settings, field, int64_t), .choices = NULL
#define CLI_UNSIGNED(settings, field)   cli_unsigned, CLI_FIELD(settings, field, uint64_t), .choices = NULL
#define CLI_FLOAT(settings, field)      cli_float, CLI_FIELD(settings, field, float), .choices = NULL
#define CLI_RANGE(settings, field)      cli_range, CLI_FIELD(settings, field, struct cli_range), .choices = NULL
#define CLI_LAYOUT(settings, field) \
    cli_layout, CLI_FIELD(settings, field, bsm_scale_layout), .choices = &cli_layouts
#define CLI_FORMAT(settings, field)     CLI_ENUM(settings, field, bsm_format, cli_formats)
#define CLI_FORMATS(settings, field)    cli_choice_set, CLI_FIELD(settings, field, uint64_t), .choices = &cli_formats
#define CLI_RECIPE(settings, field)     CLI_ENUM(settings, field, bsm_recipe, cli_recipes)
#define CLI_PACKING(settings, field)    CLI_ENUM(settings, field, bsm_packing, cli_packings)
#define CLI_MAJOR(settings, field)      CLI_ENUM(settings, field, bsm_major, cli_majors)
#define CLI_SPARSITY(settings, field)   CLI_ENUM(settings, field, bsm_sparsity, cli_sparsities)
#define CLI_ACTIVATION(settings, field) CLI_ENUM(settings, field, bsm_activation, cli_activations)
#define CLI_COMPUTE(settings, field)    CLI_ENUM(settings, field, bsm_compute, cli_computes)
#define CLI_ORDER(settings, field)      CLI_ENUM(settings, field, bsm_order, cli_orders)
#define CLI_GATE(settings, field)       CLI_ENUM(settings, field, bsm_gate, cli_gates)
#define CLI_ENUM(settings, field, type, its_choices) \
    cli_choice, CLI_FIELD(settings, field, type), .choices = &(its_choices)
/* A verb's own list: an int and its struct cli_choices. */
#define CLI_CHOICE(settings, field, its_choices) cli_choice, CLI_FIELD(settings, field, int), .choices = its_choices

/* FIRST, FIRST:LAST or FIRST:LAST:STEP; first <= last, step >= 1 (1 unless given; last = first unless given). */
struct cli_range { int64_t first, last, step; };

cli_parser cli_flag, cli_text, cli_integer, cli_unsigned, cli_float, cli_range, cli_layout, cli_choice, cli_choice_set;
extern const struct cli_choices cli_formats, cli_layouts, cli_recipes, cli_packings, cli_majors, cli_sparsities,
    cli_activations, cli_gates, cli_computes, cli_orders;

/* Other names that help tells of; NULL-terminated, or NULL where there are none. */
const char *const *cli_choice_aliases(const struct cli_choices *choices);
/* "a b c; x is b": all names, and what the aliases stand for. */
void cli_list_choices(const struct cli_choices *choices, char *text, size_t room);

/* Position of a name in a NULL-terminated list, -1 when it is not in it: from_name for a verb's own choices. */
int cli_name_index(const char *const *names, const char *name);

/* Verbs ------------------------------------------------------------------------------------------------------------ */

struct cli_verb {
    const char *name;
    const char *summary;                 /* one line, for `blockscale help` */
    const char *usage;                   /* what stands behind "blockscale NAME " */
    const char *about;                   /* paragraphs for --help, separated by "\n"; wrapped when printed */
    const char *example;                 /* one command a line, each works as printed; a test runs them in order */
    const struct cli_option *options;    /* ends with { .name = NULL } */
    const void *defaults;                /* the settings before parsing; given unchanged where no option was */
    size_t settings_bytes;
    int (*run)(struct cli *cli, const void *settings);   /* returns an enum cli_exit */
};

/* Parses arguments into settings (already filled with the defaults) and cli; prints what is wrong.  CLI_DONE or
 * CLI_WRONG_USAGE. */
struct cli_common { int64_t threads; uint64_t seed; bool json, help, version; const char *cpu; };
int cli_parse(const struct cli_verb *verb, int count, char **arguments, void *settings, struct cli_common *common);
void cli_print_verb_help(const struct cli_verb *verb, FILE *file);
extern const struct cli_option cli_common_options[];     /* those of every verb */
bool cli_is_positional(const struct cli_option *option);
bool cli_takes_value(const struct cli_option *option);   /* false: a flag */

/* What the overview, the manual page and completions say of the whole command. */
extern const char cli_about[], cli_exit_codes[];

/* The name nearest to a mistyped one, NULL when none is near: "did you mean". */
const char *cli_nearest(const char *given, const char *(*name)(const void *list, int index), const void *list);

/* Errors: each prints "blockscale VERB: sentence" to stderr and returns an exit code ------------------------------- */

__attribute__((format(printf, 2, 3))) int cli_wrong_usage(const struct cli *cli, const char *format, ...);    /* 2 */
__attribute__((format(printf, 2, 3))) int cli_bad_input(const struct cli *cli, const char *format, ...);      /* 3 */
/* The library's own sentence (bsm_last_error), behind "what: " unless what is NULL; 4 for BSM_EDEVICE, else 3. */
int cli_library_failed(const struct cli *cli, const char *what, bsm_status status);
/* Progress and remarks: to stderr. */
__attribute__((format(printf, 2, 3))) void cli_note(const struct cli *cli, const char *format, ...);

/* Output files: all complete, or none ------------------------------------------------------------------------------ */

/* Opens a temporary file beside path, to be written by the verb; never closed by it.  After the verb returned CLI_DONE
 * or CLI_DIFFERS and stdout took everything, main renames all of them to their paths; otherwise, and when a signal or a
 * fault ends the command, they are removed and what lay at the paths is untouched (a renaming that fails takes new
 * files back, but not what it replaced).  A path that is a device or a pipe is written directly.  Returns NULL after
 * printing why not; return CLI_BAD_INPUT then. */
FILE *cli_output(struct cli *cli, const char *path);
/* Makes a folder for outputs, unless it is there: it is removed again where they are.  One a run.  Returns CLI_DONE, or
 * prints and returns CLI_BAD_INPUT. */
int cli_output_folder(struct cli *cli, const char *path);
/* A file that the verb reads: cli_output then refuses it as an output. */
void cli_input(const char *path);
/* The same file, of an .npy array: header and data are written.  Returns CLI_DONE, or prints and returns
 * CLI_BAD_INPUT. */
int cli_output_npy(struct cli *cli, const char *path, bsm_npy_type type, int rank, const int64_t *shape,
                   const void *data);

/* For main alone.  cli_outputs_finish(cli, true) keeps the files: flushes stdout, then them, then renames. */
void cli_outputs_start(void);
int cli_outputs_finish(const struct cli *cli, bool keep);

/* Tables: aligned columns, counted in code points of UTF-8 --------------------------------------------------------- */

enum cli_align { CLI_LEFT, CLI_RIGHT };
struct cli_column { const char *title; enum cli_align align; };
struct cli_table;                        /* cells are kept as text until it is printed */

/* columns is kept by pointer. */
struct cli_table *cli_table_new(const struct cli_column *columns, int count);
/* The next cell, row by row from left to right. */
__attribute__((format(printf, 2, 3))) void cli_table_cell(struct cli_table *table, const char *format, ...);
void cli_table_print(const struct cli_table *table, FILE *file);
void cli_table_free(struct cli_table *table);
/* Columns that a text takes on a terminal. */
int cli_text_width(const char *text);
/* What people read is printed in at most so many columns.  A table that would be wider gives texts of its first column
 * that are too long a line of their own. */
enum { CLI_PAGE_WIDTH = 100 };
/* Prints words and a line break, with line breaks before CLI_PAGE_WIDTH; column: where the first word stands; indent:
 * where the following lines begin.  "\n" in the text starts a new line. */
void cli_print_wrapped(FILE *file, const char *text, int column, int indent);

/* JSON ------------------------------------------------------------------------------------------------------------- */

/* A writer that puts the commas and the indentation; key is NULL inside arrays and at the top. */
enum { CLI_JSON_DEPTH = 16 };            /* objects and arrays in one another, at most one less */
struct cli_json { FILE *file; int depth; bool empty[CLI_JSON_DEPTH]; char closers[CLI_JSON_DEPTH]; };
struct cli_json cli_json_to(FILE *file);
void cli_json_object(struct cli_json *json, const char *key);
void cli_json_array(struct cli_json *json, const char *key);
void cli_json_end(struct cli_json *json);                  /* of the innermost object or array */
void cli_json_text(struct cli_json *json, const char *key, const char *value);    /* NULL: null */
void cli_json_integer(struct cli_json *json, const char *key, int64_t value);
void cli_json_number(struct cli_json *json, const char *key, double value);       /* all its bits; NaN: null */
void cli_json_boolean(struct cli_json *json, const char *key, bool value);

/* Small things ----------------------------------------------------------------------------------------------------- */

/* Memory for the command's own buffers; prints and exits with CLI_BAD_INPUT (after removing output files) when there is
 * none, or when count * size overflows.  Aligned to 64 bytes, filled with zeros; free() releases it.  Not for threads
 * beside the command's first. */
void *cli_memory(const struct cli *cli, int64_t count, int64_t size);
/* What cli_memory does before it removes output files: a thread that writes them must have ended.  NULL: nothing. */
void cli_without_memory(void (*stop)(void));
double cli_seconds(void);                /* a clock that only goes forward */
double cli_processor_seconds(void);      /* that all threads of this process have used */
/* Whether something that took so long had no processor for most of that time: the machine does other work. */
bool cli_waited(double seconds, double processor_seconds);

#endif
