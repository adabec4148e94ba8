/* The command line of a verb that does not exist: every kind of option, every way to get it wrong. */
#include "cli/cli.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

struct settings {
    const char *first, *second, *text;
    int64_t number, any;
    uint64_t word;
    float real;
    struct cli_range range;
    bsm_scale_layout layout;
    bsm_format format;
    bsm_recipe recipe;
    uint64_t formats;
    int colour;
    bool flag;
};

static const char *const colours[] = { "red", "green", "blue", NULL };
static const char *colour_name(int value) { return value >= 0 && value < 3 ? colours[value] : NULL; }
static int colour_from_name(const char *name) { return cli_name_index(colours, name); }
static const struct cli_choices colour_choices = { colour_name, colour_from_name, 0, 3 };

static const struct settings defaults = { .number = 7, .real = 0.5f, .colour = 2 };

static const struct cli_option options[] = {
    { "FIRST", 0, NULL, "a file", CLI_TEXT(struct settings, first), .required = true },
    { "SECOND", 0, NULL, "another", CLI_TEXT(struct settings, second) },
    { "--text", 't', "TEXT", "words", CLI_TEXT(struct settings, text) },
    { "--number", 'n', "N", "1 to 100", CLI_INTEGER(struct settings, number), .low = 1, .high = 100 },
    { "--any", 0, "N", "any", CLI_INTEGER(struct settings, any) },
    { "--word", 0, "N", "64 bits", CLI_UNSIGNED(struct settings, word) },
    { "--real", 0, "X", "a float", CLI_FLOAT(struct settings, real) },
    { "--range", 0, "RANGE", "a range", CLI_RANGE(struct settings, range), .low = 1, .high = 1000 },
    { "--layout", 0, "LAYOUT", "a layout", CLI_LAYOUT(struct settings, layout) },
    { "--format", 0, "FORMAT", "a format", CLI_FORMAT(struct settings, format) },
    { "--recipe", 0, "RECIPE", "a recipe", CLI_RECIPE(struct settings, recipe) },
    { "--formats", 0, "LIST", "some formats", CLI_FORMATS(struct settings, formats) },
    { "--colour", 0, "COLOUR", "a colour", CLI_CHOICE(struct settings, colour, &colour_choices) },
    { "--flag", 'x', NULL, "a flag", CLI_FLAG(struct settings, flag) },
    { .name = NULL }
};

static const struct cli_verb verb = { .name = "nothing",
                                      .summary = "does nothing",
                                      .usage = "FIRST",
                                      .about = "One.\nTwo.",
                                      .example = "blockscale nothing x\nblockscale nothing y",
                                      .options = options,
                                      .defaults = &defaults,
                                      .settings_bytes = sizeof defaults };

/* What a parse gave. */
struct outcome { int status; struct settings settings; struct cli_common common; char said[2048]; };

/* Parses words separated by '|'; what goes to stderr is kept. */
static struct outcome parse(const char *line)
{
    struct outcome o = { .settings = defaults, .common = { .seed = 1 } };
    static char words[512];
    char *arguments[32];
    int count = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = words; line[0] != '\0' && word != NULL;) {
        char *bar = strchr(word, '|');
        if (bar != NULL) *bar++ = '\0';
        arguments[count++] = word;
        word = bar;
    }
    FILE *file = tmpfile();
    fflush(stderr);
    const int saved = dup(2);
    if (file == NULL || saved < 0 || dup2(fileno(file), 2) < 0) abort();
    o.status = cli_parse(&verb, count, arguments, &o.settings, &o.common);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    rewind(file);
    o.said[fread(o.said, 1, sizeof o.said - 1, file)] = '\0';
    fclose(file);
    return o;
}

static void good_lines(struct test *t)
{
    struct outcome o = parse("a.npy");
    CHECK(t, o.status == CLI_DONE && strcmp(o.settings.first, "a.npy") == 0 && o.settings.second == NULL
                 && o.said[0] == '\0');
    CHECK(t,
          o.settings.number == 7 && o.settings.colour == 2 && !o.settings.flag && o.common.seed == 1 && !o.common.json);
    o = parse("a|b|--number|100|--any|-9223372036854775808|--word|18446744073709551615|--real|-1e-3|--flag");
    CHECK(t, o.status == CLI_DONE && strcmp(o.settings.second, "b") == 0 && o.settings.number == 100
                 && o.settings.any == INT64_MIN);
    CHECK(t, o.settings.word == UINT64_MAX && fabsf(o.settings.real + 1e-3f) < 1e-9f && o.settings.flag);
    o = parse("--number=1|-xtwords|a|--any=9223372036854775807");
    CHECK(t, o.status == CLI_WRONG_USAGE);                     /* letters are not bundled: -x takes no value */
    o = parse("--number=1|-x|-twords|a|--any=9223372036854775807");
    CHECK(t, o.status == CLI_DONE && o.settings.flag && strcmp(o.settings.text, "words") == 0
                 && o.settings.any == INT64_MAX);
    o = parse("-n|5|-t|two words|a");
    CHECK(t, o.status == CLI_DONE && o.settings.number == 5 && strcmp(o.settings.text, "two words") == 0);
    o = parse("--|--flag|-x");
    CHECK(t, o.status == CLI_DONE && strcmp(o.settings.first, "--flag") == 0 && strcmp(o.settings.second, "-x") == 0 &&
                 !o.settings.flag);
    o = parse("-|--text=-dash");
    CHECK(t, o.status == CLI_DONE && strcmp(o.settings.first, "-") == 0 && strcmp(o.settings.text, "-dash") == 0);
    o = parse("a|--threads|3|--seed|0|--json|--cpu|none");
    CHECK(t, o.status == CLI_DONE && o.common.threads == 3 && o.common.seed == 0 && o.common.json &&
                 strcmp(o.common.cpu, "none") == 0);
}

static void names(struct test *t)
{
    struct outcome o = parse("a|--format|NVFP4|--recipe|even|--colour|red|--layout|tiles:8x2");
    CHECK(t, o.status == CLI_DONE && o.settings.format == BSM_NVFP4 && o.settings.recipe == BSM_RECIPE_EVEN
                 && o.settings.colour == 0);
    CHECK(t, o.settings.layout.kind == BSM_LAYOUT_TILES && o.settings.layout.tile_rows == 8
                 && o.settings.layout.tile_columns == 2);
    o = parse("a|--format|mxfp8|--formats|nvfp4,mxfp4");
    CHECK(t, o.settings.format == BSM_MXFP8_E4M3
                 && o.settings.formats == ((uint64_t)1 << BSM_NVFP4 | (uint64_t)1 << BSM_MXFP4));
    for (int format = BSM_FORMAT_NONE + 1; format < BSM_FORMAT_COUNT; format++) {
        char line[64];
        snprintf(line, sizeof line, "a|--format|%s", bsm_format_get(format)->name);
        CHECK(t, parse(line).settings.format == (bsm_format)format);
    }
}

static void ranges(struct test *t)
{
    struct outcome o = parse("a|--range|5");
    CHECK(t, o.status == CLI_DONE && o.settings.range.first == 5 && o.settings.range.last == 5
                 && o.settings.range.step == 1);
    o = parse("a|--range|5:9");
    CHECK(t, o.status == CLI_DONE && o.settings.range.first == 5 && o.settings.range.last == 9
                 && o.settings.range.step == 1);
    o = parse("a|--range|1:1000:9223372036854775807");
    CHECK(t, o.status == CLI_DONE && o.settings.range.last == 1000 && o.settings.range.step == INT64_MAX);
}

static void floats(struct test *t)
{
    CHECK(t, isinf(parse("a|--real|inf").settings.real) && parse("a|--real|-inf").settings.real < 0);
    CHECK(t, isnan(parse("a|--real|nan").settings.real));
    CHECK(t, parse("a|--real|-.5").settings.real < -0.4f && parse("a|--real|0").status == CLI_DONE);
    const struct outcome o = parse("a|--real|1.4e-45");
    CHECK(t, o.status == CLI_DONE && o.settings.real > 0);
}

/* Each line is wrong in one way, and is answered with these words. */
static const struct { const char *line, *said; } wrong[] = {
    { "", "FIRST is missing" },
    { "--flag", "FIRST is missing" },
    { "|", "FIRST: the value is empty" },
    { "a||", "SECOND: the value is empty" },
    { "a|b|c", "c: one argument too many" },
    { "a|--nothing", "--nothing: no such option" },
    { "a|--nothing=3", "--nothing: no such option" },
    { "a|--numbr|3", "did you mean --number?" },
    { "a|--sed|3", "did you mean --seed?" },
    { "a|-q", "-q: no such option" },
    { "a|--number", "--number: needs a value: --number N" },
    { "a|--number|--flag", "--number: needs a value" },
    { "a|-n", "--number: needs a value" },
    { "a|--text|-x", "--text: needs a value" },
    { "a|--text|", "the value is empty" },
    { "a|--text=", "the value is empty" },
    { "a|--flag=1", "--flag: takes no value" },
    { "a|--flag|--flag", "--flag: given twice" },
    { "a|-x|--flag", "--flag: given twice" },
    { "a|--number|1|-n2", "--number: given twice" },
    { "a|--seed|1|--seed|1", "--seed: given twice" },
    { "a|--number|", "--number : a whole number from 1 to 100" },
    { "a|--number|0", "--number 0: a whole number from 1 to 100" },
    { "a|--number|101", "a whole number from 1 to 100" },
    { "a|--number|-1", "a whole number from 1 to 100" },
    { "a|--number|1.0", "a whole number" },
    { "a|--number|1e1", "a whole number" },
    { "a|--number|0x1", "a whole number" },
    { "a|--number|+1", "a whole number" },
    { "a|--number| 1", "a whole number" },
    { "a|--number|1 ", "a whole number" },
    { "a|--number|one", "a whole number" },
    { "a|--number|99999999999999999999", "a whole number" },
    { "a|--any|9223372036854775808", "a whole number of 64 bits" },
    { "a|--any|-9223372036854775809", "a whole number of 64 bits" },
    { "a|--any|-", "a whole number of 64 bits" },
    { "a|--word|-1", "from 0 to 18446744073709551615" },
    { "a|--word|18446744073709551616", "from 0 to 18446744073709551615" },
    { "a|--word|1x", "from 0 to 18446744073709551615" },
    { "a|--word|", "from 0 to 18446744073709551615" },
    { "a|--real|", "a number is wanted" },
    { "a|--real| 1", "a number is wanted" },
    { "a|--real|1x", "a number is wanted" },
    { "a|--real|half", "a number is wanted" },
    { "a|--real|1e39", "fp32 holds magnitudes" },
    { "a|--real|1e-60", "fp32 holds magnitudes" },
    { "a|--range|", "N, FIRST:LAST or FIRST:LAST:STEP" },
    { "a|--range|0", "from 1 to 1000" },
    { "a|--range|1:", "FIRST:LAST" },
    { "a|--range|1:2:", "FIRST:LAST" },
    { "a|--range|1:2:3:4", "FIRST:LAST" },
    { "a|--range|1:1001", "from 1 to 1000" },
    { "a|--range|5:4", "the first number is above the last" },
    { "a|--range|4:5:0", "the step must be 1 or more" },
    { "a|--range|4:5:-1", "the step must be 1 or more" },
    { "a|--layout|", "is no scale layout" },
    { "a|--layout|129x4", "is no scale layout" },
    { "a|--layout|tiles", "tiles" },
    { "a|--format|", "mxfp8_e4m3 mxfp8_e5m2" },
    { "a|--format|mxfp5", "--format mxfp5: one of these is wanted: mxfp8_e4m3" },
    { "a|--format|nvfp4,mxfp4", "one of these is wanted" },
    { "a|--formats|", "one of these is wanted" },
    { "a|--formats|nvfp4,", "one of these is wanted" },
    { "a|--formats|nvfp4,,mxfp4", "one of these is wanted" },
    { "a|--formats|nvfp4,mxfp5", "one of these is wanted" },
    { "a|--recipe|round", "default floor rceil ceil even nearest" },
    { "a|--colour|purple", "one of these is wanted: red green blue" },
    { "a|--colour|redredredredredredredredredredredredredredredredredredredredredredredredred",
      "one of these is wanted" },
    { "a|--threads|-1", "from 0 to 1024" },
    { "a|--threads|1025", "from 0 to 1024" },
};

static void wrong_lines(struct test *t)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct outcome o = parse(wrong[i].line);
        if (o.status != CLI_WRONG_USAGE || strstr(o.said, wrong[i].said) == NULL ||
            strncmp(o.said, "blockscale nothing: ", 20) != 0)
            FAIL(t, "\"%s\": status %d, \"%s\"", wrong[i].line, o.status, o.said);
    }
}

static void help_anywhere(struct test *t)
{
    static const char *const lines[] = { "--help", "-h", "a|b|c|--help", "--nothing|--help", "--number|--help" };
    for (int i = 0; i < 5; i++) {
        const struct outcome o = parse(lines[i]);
        CHECK(t, o.status == CLI_DONE && o.common.help && o.said[0] == '\0');
    }
    CHECK(t, !parse("--|--help").common.help);
}

/* --help shows every option, its letter, its placeholder and its names, within the width of a page. */
static void help_shows_the_table(struct test *t)
{
    char text[8192];
    FILE *file = tmpfile();
    CHECK_OR_RETURN(t, file != NULL);
    cli_print_verb_help(&verb, file);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (const struct cli_option *o = options; o->name != NULL; o++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "%s%s%s", o->name, o->value != NULL ? " " : "",
                 o->value != NULL ? o->value : "");
        CHECK(t, strstr(text, wanted) != NULL && strstr(text, o->help) != NULL);
    }
    CHECK(t, strstr(text, "-n, --number N") != NULL && strstr(text, "one of red green blue") != NULL);
    CHECK(t, strstr(text, "--seed N") != NULL && strstr(text, "One.\nTwo.\n") != NULL &&
                 strstr(text, "  blockscale nothing y\n") != NULL);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) CHECK(t, strcspn(line, "\n") <= 100);
}

/* Random lines: an answer, and no crash. */
static void random_lines(struct test *t)
{
    static const char *const words[] = { "a",        "--number",  "5",   "--",     "-n",     "--flag", "-x",
                                         "--text=",  "--range",   "1:2", "=",      "--=",    "-",      "--format",
                                         "mxfp4",    "--formats", ",",   "--real", "nan",    "",       "--number=5",
                                         "--layout", "128x4",     "---", "-n5",    "--help=" };
    for (int round = 0; round < 3000; round++) {
        char line[256] = "";
        const int64_t count = rnd_below(t, 8);
        for (int64_t i = 0; i < count; i++) {
            const size_t used = strlen(line);
            snprintf(line + used, sizeof line - used, "%s%s", i > 0 ? "|" : "",
                     words[rnd_below(t, (int64_t)(sizeof words / sizeof words[0]))]);
        }
        const struct outcome o = parse(line);
        CHECK(t, o.status == CLI_DONE || (o.status == CLI_WRONG_USAGE && strstr(o.said, "lists the options") != NULL));
        CHECK(t, o.status != CLI_DONE || o.common.help || o.settings.first != NULL);
    }
}

static void tables_and_json(struct test *t)
{
    static const struct cli_column columns[] = { { "name", CLI_LEFT }, { "dB", CLI_RIGHT }, { "bar", CLI_LEFT } };
    char text[2048];
    FILE *file = tmpfile();
    CHECK_OR_RETURN(t, file != NULL);
    struct cli_table *table = cli_table_new(columns, 3);
    static const char *const cells[] = { "\xc3\xa9t\xc3\xa9", "1.5", "\xe2\x96\x88", "x", "-10.25", "" };
    for (int i = 0; i < 6; i++) cli_table_cell(table, "%s", cells[i]);
    cli_table_print(table, file);
    cli_table_free(table);
    struct cli_json json = cli_json_to(file);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "a\"b", "\\\n\x01\xc3\xa9");
    cli_json_array(&json, "list");
    cli_json_integer(&json, NULL, INT64_MIN);
    cli_json_number(&json, NULL, 0.1);
    cli_json_number(&json, NULL, 1.0 / 3);
    cli_json_number(&json, NULL, NAN);
    cli_json_boolean(&json, NULL, true);
    cli_json_text(&json, NULL, NULL);
    cli_json_end(&json);
    cli_json_object(&json, "empty");
    cli_json_end(&json);
    cli_json_end(&json);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    static const char wanted[] = "name      dB  bar\n\xc3\xa9t\xc3\xa9      1.5  \xe2\x96\x88\nx     -10.25  \n"
                                 "{\n  \"a\\\"b\": \"\\\\\\u000a\\u0001\xc3\xa9\",\n  \"list\": [\n"
                                 "    -9223372036854775808,\n"
                                 "    0.1,\n    0.33333333333333331,\n"
                                 "    null,\n    true,\n    null\n  ],\n  \"empty\": {}\n}\n";
    if (strcmp(text, wanted) != 0) FAIL(t, "printed:\n%s", text);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(good_lines),
        TEST(names),
        TEST(ranges),
        TEST(floats),
        TEST(wrong_lines),
        TEST(help_anywhere),
        TEST(help_shows_the_table),
        TEST(random_lines),
        TEST(tables_and_json),
    };
    return TEST_MAIN(argc, argv, cases);
}
