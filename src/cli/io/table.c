/* Tables of text with aligned columns. */
#include "cli/cli.h"
#include "mask.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct cli_table {
    const struct cli_column *columns;
    int column_count;
    char **cells;
    int cell_count, cell_room;
};

int cli_text_width(const char *text)
{
    int width = 0;
    for (; *text != '\0'; text++) width += ((unsigned char)*text & 0xc0) != 0x80;   /* continuation bytes take no column */
    return width;
}

struct cli_table *cli_table_new(const struct cli_column *columns, int count)
{
    struct cli_table *table = cli_memory(NULL, 1, (int64_t)sizeof *table);
    table->columns = columns;
    table->column_count = count;
    return table;
}

void cli_table_cell(struct cli_table *table, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    mask_text(text);
    if (table->cell_count == table->cell_room) {
        const int room = table->cell_room == 0 ? 64 : 2 * table->cell_room;
        char **cells = cli_memory(NULL, room, (int64_t)sizeof *cells);
        if (table->cell_count > 0) memcpy(cells, table->cells, (size_t)table->cell_count * sizeof *cells);
        free(table->cells);
        table->cells = cells;
        table->cell_room = room;
    }
    char *copy = cli_memory(NULL, (int64_t)strlen(text) + 1, 1);
    memcpy(copy, text, strlen(text) + 1);
    table->cells[table->cell_count++] = copy;
}

static int column_width(const struct cli_table *table, int column)
{
    int width = cli_text_width(table->columns[column].title);
    for (int i = column; i < table->cell_count; i += table->column_count)
        if (cli_text_width(table->cells[i]) > width) width = cli_text_width(table->cells[i]);
    return width;
}

/* Nothing is printed behind the last text of a line. */
static void print_cell(FILE *file, const char *text, int width, enum cli_align align, bool last)
{
    const int blanks = width - cli_text_width(text);
    if (align == CLI_RIGHT) fprintf(file, "%*s%s", blanks, "", text);
    else fprintf(file, "%s%*s", text, last ? 0 : blanks, "");
    fprintf(file, last ? "\n" : "  ");
}

void cli_table_print(const struct cli_table *table, FILE *file)
{
    const int count = table->column_count;
    int *widths = cli_memory(NULL, count, (int64_t)sizeof *widths);
    for (int c = 0; c < count; c++) widths[c] = column_width(table, c);
    for (int c = 0; c < count; c++) print_cell(file, table->columns[c].title, widths[c], table->columns[c].align, c + 1 == count);
    for (int i = 0; i < table->cell_count; i++)
        print_cell(file, table->cells[i], widths[i % count], table->columns[i % count].align, i % count + 1 == count);
    if (table->cell_count % count != 0) fprintf(file, "\n");
    free(widths);
}

void cli_table_free(struct cli_table *table)
{
    if (table == NULL) return;
    for (int i = 0; i < table->cell_count; i++) free(table->cells[i]);
    free(table->cells);
    free(table);
}
