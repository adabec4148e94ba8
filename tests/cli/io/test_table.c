/* Tables and wrapped texts end within the width of a page, and nothing of them is lost. */
#include "test.h"
#include "cli/cli.h"

static const char *printed(struct test *t, const struct cli_table *table, const char *wrapped, int column, int indent)
{
    static char text[8192];
    FILE *file = tmpfile();
    if (file == NULL) {
        FAIL(t, "no temporary file");
        return "";
    }
    if (table != NULL) cli_table_print(table, file);
    else cli_print_wrapped(file, wrapped, column, indent);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int widest_line(const char *text)
{
    int widest = 0;
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        char one[8192];
        snprintf(one, sizeof one, "%.*s", (int)strcspn(line, "\n"), line);
        if (cli_text_width(one) > widest) widest = cli_text_width(one);
    }
    return widest;
}

/* A name of `length` letters in a row beside a text of 30. */
static const char *table_of(struct test *t, int length, enum cli_align align)
{
    const struct cli_column columns[] = { { "weight", align }, { "shape", CLI_RIGHT }, { "kind", CLI_LEFT } };
    char name[256];
    memset(name, 'n', (size_t)length);
    name[length] = '\0';
    struct cli_table *table = cli_table_new(columns, 3);
    const char *cells[] = { "short", "1x2", "-", name, "64x4096", "abcdefghijklmnopqrstuvwxyz1234" };
    for (int i = 0; i < 6; i++) cli_table_cell(table, "%s", cells[i]);
    const char *text = printed(t, table, NULL, 0, 0);
    cli_table_free(table);
    return text;
}

static void long_names_have_lines_of_their_own(struct test *t)
{
    for (int length = 1; length < 200; length++) {
        const char *text = table_of(t, length, CLI_LEFT);
        char name[256];
        memset(name, 'n', (size_t)length);
        name[length] = '\0';
        const bool own_line = length + 2 + 7 + 2 + 30 > CLI_PAGE_WIDTH;
        CHECK(t, widest_line(text) <= (length > CLI_PAGE_WIDTH ? length : CLI_PAGE_WIDTH));
        CHECK(t, strstr(text, name) != NULL && strstr(text, "64x4096  abcdefghijklmnopqrstuvwxyz1234\n") != NULL);
        CHECK(t, (strstr(text, own_line ? "n\n" : "n  ") != NULL) && (strstr(text, own_line ? "n  " : "n\n") == NULL));
    }
    CHECK(t, widest_line(table_of(t, 90, CLI_RIGHT)) > CLI_PAGE_WIDTH);       /* numbers are not broken */
}

static void texts_are_wrapped(struct test *t)
{
    char words[2001] = "";
    for (int i = 0; i < 400; i++) strcat(words, i % 3 == 0 ? "\xc3\xa9t\xc3\xa9 " : i % 3 == 1 ? "ab " : "c ");
    const char *text = printed(t, NULL, words, 7, 3);
    CHECK(t, widest_line(text) <= CLI_PAGE_WIDTH && widest_line(text) > CLI_PAGE_WIDTH - 8
                 && strstr(text, "\n   ") != NULL);
    CHECK(t, strcmp(printed(t, NULL, "one two\nthree", 0, 2), "one two\n  three\n") == 0);
    CHECK(t, strcmp(printed(t, NULL, "", 0, 2), "\n") == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(long_names_have_lines_of_their_own), TEST(texts_are_wrapped) };
    return TEST_MAIN(argc, argv, cases);
}
