/* The index of a sharded checkpoint, in memory: lies of which each has its own sentence, every cut and every flipped
 * bit. */
#include "checkpoint_bytes.h"

#include "file/read/shard_index.h"

/* Reads a copy that ends at an inaccessible page; the bounds are those of parse_watched. */
static bsm_status read_watched(struct test *t, const char *text, size_t bytes)
{
    struct counted counted = { .calls = 0 };
    const bsm_allocator allocator = counted_allocator(&counted);
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 1, .allocator = &allocator };
    bsm_context *context;
    struct bsmi_shard_index index;
    if (bsm_context_create(&options, &context) != BSM_OK) abort();
    char *copy = guarded_at_end(bytes, 1, 0);
    if (bytes > 0) memcpy(copy, text, bytes);
    const double start = thread_seconds();
    const bsm_status status = bsmi_shard_index_read(context, copy, bytes, &index);
    const double seconds = thread_seconds() - start;
    if (!(seconds <= MOST_SECONDS)) FAIL(t, "took %.4f s", seconds);
    CHECK(t, counted.most_bytes <= MOST_MEMORY);
    if (status != BSM_OK)
        CHECK(t, bsm_last_error()[0] != '\0' && (status == BSM_EFILE || status == BSM_EUNSUPPORTED)
                     && index.files == NULL);
    for (int i = 0; i < index.file_count; i++)
        CHECK(t, index.files[i][0] != '\0' && strchr(index.files[i], '/') == NULL);
    bsmi_shard_index_close(context, &index);
    bsm_context_destroy(context);
    CHECK(t, counted.live == 0 && counted.errors == 0);
    guarded_free(copy);
    return status;
}

#define LIE(text, sentence) { text, sizeof text - 1, sentence }
/* clang-format off */
static const struct { const char *text; size_t bytes; const char *sentence; } lies[] = {
    LIE("", "the index is empty: a JSON object is wanted"),
    LIE("[]", "the index is a list: a JSON object is wanted"),
    LIE("1", "the index is a number: a JSON object is wanted"),
    LIE("null", "the index is null: a JSON object is wanted"),
    LIE("\"weight_map\"", "the index is a text: a JSON object is wanted"),
    LIE("true", "the index is true or false: a JSON object is wanted"),
    LIE("{", "byte 1 of the index is no JSON: unexpected end of data"),
    LIE("{\"a\"", "byte 4 of the index is no JSON: unexpected end of data"),
    LIE("{\"a\":", "byte 5 of the index is no JSON: unexpected end of data"),
    LIE("{\"a\":}", "byte 5 of the index is no JSON: unexpected character, expected a JSON value"),
    LIE("{\"a\":1", "byte 6 of the index is no JSON: unexpected end of data"),
    LIE("{\"a\":1,", "byte 7 of the index is no JSON: unexpected end of data"),
    LIE("{\"a\":1,}", "byte 6 of the index is no JSON: trailing comma is not allowed"),
    LIE("{,}", "byte 1 of the index is no JSON: unexpected character, expected a string key"),
    LIE("{}{}", "byte 2 of the index is no JSON: unexpected content after document"),
    LIE("{\"a\" 1}", "byte 5 of the index is no JSON: unexpected character, expected ':' after key"),
    LIE("{\"a\":01}", "byte 5 of the index is no JSON: number with leading zero is not allowed"),
    LIE("{\"a\":-}", "byte 6 of the index is no JSON: no digit after sign"),
    LIE("{\"a\":1.}", "byte 7 of the index is no JSON: no digit after decimal point"),
    LIE("{\"a\":1e}", "byte 7 of the index is no JSON: no digit after exponent sign"),
    LIE("{\"a\":+1}", "byte 5 of the index is no JSON: no digit after sign"),
    LIE("{\"a\":0x1}", "byte 6 of the index is no JSON: unexpected character, expected ',' or '}'"),
    LIE("{\"a\":nan}", "byte 5 of the index is no JSON: invalid literal, expected 'null'"),
    LIE("{\"a\":tru}", "byte 5 of the index is no JSON: invalid literal, expected 'true'"),
    LIE("{\"a\":fals}", "byte 5 of the index is no JSON: invalid literal, expected 'false'"),
    LIE("{\"a\":1e999}", "byte 5 of the index is no JSON: number is infinity when parsed as double"),
    LIE("{\"a\":\"\\x\"}", "byte 6 of the index is no JSON: invalid escaped sequence in string"),
    LIE("{\"ab\":\"\\u12\"}", "byte 7 of the index is no JSON: invalid escaped sequence in string"),
    LIE("{\"abc\":\"\\ud800\"}", "byte 8 of the index is no JSON: no low surrogate in string"),
    LIE("{\"abcd\":\"\\udc00\"}", "byte 9 of the index is no JSON: invalid high surrogate in string"),
    LIE("{\"abcde\":\"\\ud800\\u0041\"}", "byte 10 of the index is no JSON: invalid low surrogate in string"),
    LIE("{\"a\":\"\377\"}", "byte 6 of the index is no JSON: invalid UTF-8 encoding in string"),
    LIE("{\"ab\":\"\001\"}", "byte 7 of the index is no JSON: unexpected control character in string"),
    LIE("{\"abcdef\":\"\\", "byte 12 of the index is no JSON: unexpected end of data"),
    LIE("\357\273\277{}", "byte 0 of the index is no JSON: UTF-8 byte order mark (BOM) is not supported"),
    LIE("{\"a\":1 \"b\":2}", "byte 7 of the index is no JSON: unexpected character, expected ',' or '}'"),
    LIE("{\"a\":[1 2]}", "byte 8 of the index is no JSON: unexpected character, expected ',' or ']'"),
    LIE("{\"a\":[1,]}", "byte 7 of the index is no JSON: trailing comma is not allowed"),
    LIE("{\"a\":[1}", "byte 7 of the index is no JSON: unexpected character, expected ',' or ']'"),
    LIE("{\"a\":{]}", "byte 6 of the index is no JSON: unexpected character, expected a string key"),
    LIE("\000", "byte 0 of the index is no JSON: unexpected character, expected a JSON value"),
    LIE("{\"a\":1}\000", "byte 7 of the index is no JSON: unexpected content after document"),
    LIE("{}", "the index lacks the key \"weight_map\""),
    LIE("{\"weight_map\":1}", "\"weight_map\" is a number; an object of file names is wanted"),
    LIE("{\"weight_map\":null}", "\"weight_map\" is null; an object of file names is wanted"),
    LIE("{\"weight_map\":\"1\"}", "\"weight_map\" is a text; an object of file names is wanted"),
    LIE("{\"weight_map\":true}", "\"weight_map\" is true or false; an object of file names is wanted"),
    LIE("{\"weight_map\":[]}", "\"weight_map\" is a list; an object of file names is wanted"),
    LIE("{\"weight_map\":{}}", "\"weight_map\" names no file"),
    LIE("{\"weight_map\":{\"b\":\"1\"},\"weight_map\":{\"b\":\"2\"}}", "the index has the key \"weight_map\" twice"),
    LIE("{\"weight_map\":{\"b\":1}}", "\"weight_map\": tensor b: the name of a file is wanted, not a number"),
    LIE("{\"weight_map\":{\"b\":null}}", "\"weight_map\": tensor b: the name of a file is wanted, not null"),
    LIE("{\"weight_map\":{\"b\":true}}", "\"weight_map\": tensor b: the name of a file is wanted, not true or false"),
    LIE("{\"weight_map\":{\"b\":[\"1\"]}}", "\"weight_map\": tensor b: the name of a file is wanted, not a list"),
    LIE("{\"weight_map\":{\"b\":{}}}", "\"weight_map\": tensor b: the name of a file is wanted, not an object"),
    LIE("{\"weight_map\":{\"a\":\"1\",\"c\":-1}}",
        "\"weight_map\": tensor c: the name of a file is wanted, not a number"),
    LIE("{\"weight_map\":{\"\":\"1\"}}", "\"weight_map\": a tensor has no name"),
    LIE("{\"weight_map\":{\"a\":\"1\",\"b\\u0000\":\"1\"}}", "\"weight_map\": the name of tensor b holds a NUL"),
    LIE("{\"weight_map\":{\"b\":\"\"}}", "\"weight_map\": tensor b: \"\" is no name of a file in the same folder"),
    LIE("{\"weight_map\":{\"b\":\".\"}}", "\"weight_map\": tensor b: \".\" is no name of a file in the same folder"),
    LIE("{\"weight_map\":{\"b\":\"..\"}}", "\"weight_map\": tensor b: \"..\" is no name of a file in the same folder"),
    LIE("{\"weight_map\":{\"b\":\"../1\"}}",
        "\"weight_map\": tensor b: \"../1\" is no name of a file in the same folder"),
    LIE("{\"weight_map\":{\"b\":\"/1\"}}", "\"weight_map\": tensor b: \"/1\" is no name of a file in the same folder"),
    LIE("{\"weight_map\":{\"b\":\"a/1\"}}",
        "\"weight_map\": tensor b: \"a/1\" is no name of a file in the same folder"),
    LIE("{\"weight_map\":{\"b\":\"a/\"}}", "\"weight_map\": tensor b: \"a/\" is no name of a file in the same folder"),
    LIE("{\"weight_map\":{\"b\":\"./1\"}}",
        "\"weight_map\": tensor b: \"./1\" is no name of a file in the same folder"),
    LIE("{\"weight_map\":{\"b\":\"/\"}}", "\"weight_map\": tensor b: \"/\" is no name of a file in the same folder"),
    LIE("{\"weight_map\":{\"b\":\"1\\u0000\"}}",
        "\"weight_map\": tensor b: \"1\" is no name of a file in the same folder"),
    LIE("{\"weight_map\":{\"c\":\"a\\/1\"}}",
        "\"weight_map\": tensor c: \"a/1\" is no name of a file in the same folder"),
};
/* clang-format on */
enum { LIES = sizeof lies / sizeof lies[0] };
_Static_assert(LIES >= 60, "");

static void every_lie_has_its_sentence(struct test *t)
{
    static char said[LIES][512];
    for (int i = 0; i < LIES; i++) {
        const bsm_status status = read_watched(t, lies[i].text, lies[i].bytes);
        snprintf(said[i], sizeof said[i], "%s", status == BSM_OK ? "accepted" : bsm_last_error());
        if (status != BSM_EFILE || strcmp(said[i], lies[i].sentence) != 0)
            FAIL(t, "%s: status %d, \"%s\"", lies[i].text, (int)status, said[i]);
        for (int j = 0; j < i; j++)
            if (strcmp(said[i], said[j]) == 0) FAIL(t, "%s: \"%s\", as for %s", lies[i].text, said[i], lies[j].text);
    }
}

static const char golden[] = "{\"metadata\":{\"total_size\":16},"
                             "\"weight_map\":{\"b\":\"2.safetensors\",\"c\":\"1.safetensors\"}}";

static void cuts_and_flips_of_an_index(struct test *t)
{
    char damaged[sizeof golden];
    CHECK(t, read_watched(t, golden, sizeof golden - 1) == BSM_OK);
    for (size_t cut = 0; cut < sizeof golden - 1; cut++) CHECK(t, read_watched(t, golden, cut) == BSM_EFILE);
    memcpy(damaged, golden, sizeof golden);
    for (size_t bit = 0; bit < 8 * (sizeof golden - 1); bit++) {
        damaged[bit / 8] = (char)(damaged[bit / 8] ^ 1 << bit % 8);
        read_watched(t, damaged, sizeof golden - 1);
        damaged[bit / 8] = (char)(damaged[bit / 8] ^ 1 << bit % 8);
    }
}

/* Depth costs nothing but its bytes, and neither do tensors that name one file again and again. */
static void deep_and_many(struct test *t)
{
    static struct bytes text;
    for (int open = 0; open < 2; open++) {
        text.count = 0;
        put(&text, "{\"a\":", 5);
        for (int i = 0; i < 20000; i++) put(&text, "[", 1);
        for (int i = 0; i < 20000 && !open; i++) put(&text, "]", 1);
        if (!open) put(&text, "}", 1);
        CHECK(t, read_watched(t, (const char *)text.at, text.count) == BSM_EFILE);
        CHECK(t, strstr(bsm_last_error(), open ? "unexpected end of data" : "lacks the key \"weight_map\"") != NULL);
    }
    text.count = 0;
    put(&text, "{\"weight_map\":{", 15);
    for (int i = 0; i < 6000; i++) put(&text, i == 0 ? "\"a\":\"1\"" : ",\"a\":\"1\"", i == 0 ? 7 : 8);
    put(&text, "}}", 2);
    CHECK(t, read_watched(t, (const char *)text.at, text.count) == BSM_OK);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(every_lie_has_its_sentence),
        TEST(cuts_and_flips_of_an_index),
        TEST(deep_and_many),
    };
    return TEST_MAIN(argc, argv, cases);
}
