/* Tables of text with aligned columns, and texts in lines. */
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

static int text_width(const char *text, int length)
{
    int width = 0;
    /* continuation bytes take no column */
    for (int i = 0; i < length; i++) width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

int cli_text_width(const char *text) { return text_width(text, (int)strlen(text)); }

void cli_print_wrapped(FILE *file, const char *text, int column, int indent)
{
    bool line_start = true;
    for (const char *word = text; *word != '\0';) {
        if (*word == '\n' || *word == ' ') {
            if (*word == '\n') fprintf(file, "\n%*s", indent, ""), column = indent, line_start = true;
            word++;
            continue;
        }
        const int length = (int)strcspn(word, " \n"), width = text_width(word, length);
        if (!line_start && column + 1 + width > CLI_PAGE_WIDTH)
            fprintf(file, "\n%*s", indent, ""), column = indent, line_start = true;
        fprintf(file, "%s%.*s", line_start ? "" : " ", length, word);
        column += width + !line_start;
        line_start = false;
        word += length;
    }
    fprintf(file, "\n");
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

/* What a first column of names may take so that the page holds the others beside it; at least its title. */
static int first_width(const struct cli_table *table, const int *widths)
{
    const int title = cli_text_width(table->columns[0].title);
    int others = 0;
    for (int c = 1; c < table->column_count; c++) others += widths[c] + 2;
    if (table->columns[0].align != CLI_LEFT || others == 0 || widths[0] + others <= CLI_PAGE_WIDTH) return widths[0];
    return CLI_PAGE_WIDTH - others > title ? CLI_PAGE_WIDTH - others : title;
}

void cli_table_print(const struct cli_table *table, FILE *file)
{
    const int count = table->column_count;
    int *widths = cli_memory(NULL, count, (int64_t)sizeof *widths);
    for (int c = 0; c < count; c++) widths[c] = column_width(table, c);
    widths[0] = first_width(table, widths);
    for (int c = 0; c < count; c++)
        print_cell(file, table->columns[c].title, widths[c], table->columns[c].align, c + 1 == count);
    for (int i = 0; i < table->cell_count; i++) {
        const char *cell = table->cells[i];
        if (cli_text_width(cell) > widths[i % count]) fprintf(file, "%s\n", cell), cell = "";
        print_cell(file, cell, widths[i % count], table->columns[i % count].align, i % count + 1 == count);
    }
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
