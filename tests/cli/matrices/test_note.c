/* Notes beside quantized matrices: what is read, what is refused, and that no damage is worse than that. */
#include "cli/matrices/note.h"
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

static char path[64];

/* Writes bytes to a file and reads it as a note, without what is said about it. */
static int read_note(const char *text, size_t bytes, struct cli_note *note)
{
    FILE *file = fopen(path, "w");
    if (file == NULL || fwrite(text, 1, bytes, file) != bytes || fclose(file) != 0) abort();
    fflush(stderr);
    FILE *nowhere = fopen("/dev/null", "w");
    const int saved = dup(2);
    if (nowhere == NULL || saved < 0 || dup2(fileno(nowhere), 2) < 0) abort();
    memset(note, 0x77, sizeof *note);
    const int status = cli_note_read(NULL, path, note);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    fclose(nowhere);
    unlink(path);
    return status;
}

static int read_text(const char *text, struct cli_note *note) { return read_note(text, strlen(text), note); }

static void good_notes(struct test *t)
{
    struct cli_note note;
    int64_t value = -1;
    CHECK(t, read_text("{}", &note) == CLI_DONE && note.count == 0);
    CHECK(t, read_text(" {\n \"rows\" : 12 , \"format\":\"nvfp4\",\"x\":-1.5e3, \"y\": null }\r\n\t", &note) == CLI_DONE
                 && note.count == 4);
    CHECK(t, cli_note_size(&note, "rows", &value) && value == 12);
    CHECK(t, cli_note_text(&note, "format") != NULL && strcmp(cli_note_text(&note, "format"), "nvfp4") == 0);
    CHECK(t, cli_note_text(&note, "rows") == NULL && cli_note_text(&note, "z") == NULL);
    CHECK(t, !cli_note_size(&note, "format", &value) && !cli_note_size(&note, "x", &value)
                 && !cli_note_size(&note, "z", &value));
    CHECK(t, read_text("{\"a\":\"\\\"\\\\\\/\\n\\u0041\\u007f \xc3\xa9\\u00e9\"}", &note) == CLI_DONE);
    CHECK(t, strcmp(cli_note_text(&note, "a"), "\"\\/\nA\x7f \xc3\xa9\xc3\xa9") == 0);
    CHECK(t, read_text("{\"n\": 9223372036854775807}", &note) == CLI_DONE && cli_note_size(&note, "n", &value)
                 && value == INT64_MAX);
    CHECK(t, read_text("{\"n\": 9223372036854775808}", &note) == CLI_DONE && !cli_note_size(&note, "n", &value));
    CHECK(t, read_text("{\"n\": 1e3}", &note) == CLI_DONE && !cli_note_size(&note, "n", &value));
    CHECK(t, read_text("{\"n\": -1}", &note) == CLI_DONE && !cli_note_size(&note, "n", &value));
}

static void bad_notes(struct test *t)
{
    static const char *const bad[] = {
        "",
        " ",
        "[]",
        "1",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{,}",
        "{\"a\":}",
        "{\"a\" 1}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":1}x",
        "{\"a\":1}{}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":[1]}",
        "{\"a\":{}}",
        "{\"a\":1,\"a\":1}",
        "{\"a\":\"x}",
        "{\"a\":\"x\n\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\xe9\"}",
        "{\"a\":01}",
        "{\"\\u0000\":1}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\",
        "{\"a\":\"\\u",
        "{\"a\":\"\\u0000\"}",
    };
    struct cli_note note;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (read_text(bad[i], &note) != CLI_BAD_INPUT) FAIL(t, "accepted: %s", bad[i]);
    CHECK(t, read_note("{\"a\":1}\0", 8, &note) == CLI_BAD_INPUT);
}

static void limits(struct test *t)
{
    struct cli_note note;
    static char text[70000];
    int used = snprintf(text, sizeof text, "{");
    for (int i = 0; i <= CLI_NOTE_ENTRIES; i++) {
        char closed[70000];
        used += snprintf(text + used, sizeof text - (size_t)used, "%s\"%d\":%d", i > 0 ? "," : "", i, i);
        snprintf(closed, sizeof closed, "%.*s}", used, text);
        CHECK(t, read_text(closed, &note) == (i < CLI_NOTE_ENTRIES ? CLI_DONE : CLI_BAD_INPUT));
    }
    for (int length = 250; length < 262; length++) {
        snprintf(text, sizeof text, "{\"a\":\"%0*d\"}", length, 0);
        CHECK(t, read_text(text, &note) == (length < 256 ? CLI_DONE : CLI_BAD_INPUT));
    }
    for (int length = 28; length < 40; length++) {
        snprintf(text, sizeof text, "{\"%0*d\":1}", length, 0);
        CHECK(t, read_text(text, &note) == (length < 32 ? CLI_DONE : CLI_BAD_INPUT));
    }
    memset(text, ' ', sizeof text);
    memcpy(text, "{}", 2);
    CHECK(t, read_note(text, 65535, &note) == CLI_DONE && read_note(text, 65536, &note) == CLI_BAD_INPUT);
    CHECK(t, read_note(text, 70000, &note) == CLI_BAD_INPUT);
}

static void every_cut_and_every_flipped_bit(struct test *t)
{
    static const char text[] =
        "{\n  \"blockscale_note\": 1,\n  \"format\": \"nvfp4\",\n  \"rows\": 64,\n  \"codes\": \"W.codes.npy\"\n}\n";
    struct cli_note note;
    for (size_t bytes = 0; bytes + 2 < sizeof text; bytes++) CHECK(t, read_note(text, bytes, &note) == CLI_BAD_INPUT);
    for (size_t bit = 0; bit < 8 * (sizeof text - 1); bit++) {
        char damaged[sizeof text];
        memcpy(damaged, text, sizeof text);
        damaged[bit / 8] = (char)(damaged[bit / 8] ^ 1 << bit % 8);
        const int status = read_note(damaged, sizeof text - 1, &note);
        CHECK(t, status == CLI_BAD_INPUT || (status == CLI_DONE && note.count == 4));
    }
}

int main(int argc, char **argv)
{
    snprintf(path, sizeof path, "/tmp/blockscale-note-%ld.json", (long)getpid());
    static const struct test_case cases[] = {
        TEST(good_notes), TEST(bad_notes), TEST(limits), TEST(every_cut_and_every_flipped_bit),
    };
    return TEST_MAIN(argc, argv, cases);
}
