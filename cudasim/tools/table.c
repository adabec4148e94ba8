/* cudasim table: the forms of instructions that are executed, from the rows that reader and machine use. */
#include "tools/command.h"

#include "ptx/table.h"

static const struct option options[] = { { .name = NULL } };

/* '|' separates the cells of a table. */
static void print_cell(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|') putchar('\\');
        putchar(*text);
    }
}

static void print_row(const struct row *row)
{
    printf("| `");
    print_cell(row->pattern);
    printf("` | %s | %u.%u | %s | %s |\n", row->types == NULL ? "" : row->types, row->since / 10, row->since % 10,
           row->targets[0] == '\0' ? "all" : row->targets, row->section);
}

static int run(const void *settings)
{
    (void)settings;
    for (const struct family *const *f = instruction_families; *f != NULL; f++) {
        printf("## %s\n\n| form | types | PTX | targets | manual |\n|---|---|---|---|---|\n", (*f)->name);
        for (int i = 0; i < (*f)->count; i++) print_row(&(*f)->rows[i]);
        printf("\n");
    }
    return EXIT_DONE;
}

const struct verb verb_table = {
    .name = "table",
    .summary = "prints the table of instructions",
    .usage = "",
    .about = "Every form that is executed, as Markdown. {.a|.b} may be left out, (.a|.b) may not; "
             "$1, $2 are one of the types.",
    .options = options,
    .settings_bytes = 0,
    .run = run
};
