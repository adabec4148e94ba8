/* GGUF files in memory: ggml's own, heads that lie in one way each, and what is written. */
#include "checkpoint_bytes.h"
#include "golden_checkpoints.h"

static struct bytes file;
static bsm_context *context;

/* What the gguf package wrote is what was given to it; shapes with the fastest index last. */
static void upstream_files(struct test *t)
{
    static const struct {
        const char *name;
        bsm_tensor_type type;
        int number, rank;
        int64_t shape[2], bytes;
    } want[] = {
        { "single", BSM_TENSOR_F32, 0, 2, { 2, 3 }, 24 }, { "half", BSM_TENSOR_F16, 1, 1, { 5 }, 10 },
        { "mx", BSM_TENSOR_MXFP4, 39, 2, { 2, 64 }, 68 }, { "nv", BSM_TENSOR_NVFP4, 40, 2, { 3, 64 }, 108 },
        { "q8", BSM_TENSOR_OTHER, 8, 1, { 32 }, 34 },
    };
    const char *golden = golden_gguf;
    bsm_checkpoint *checkpoint;
    CHECK_OR_RETURN(t, bsm_checkpoint_parse(context, golden, sizeof golden_gguf - 1, &checkpoint) == BSM_OK);
    CHECK(t, bsm_checkpoint_tensor_count(checkpoint) == sizeof want / sizeof want[0] &&
                 bsm_checkpoint_get_kind(checkpoint) == BSM_CHECKPOINT_GGUF);
    CHECK(t, bsm_checkpoint_metadata_count(checkpoint) == 2 &&
                 strcmp(bsm_checkpoint_metadata(checkpoint, "general.name"), "golden") == 0);
    CHECK(t, strcmp(bsm_checkpoint_metadata(checkpoint, "general.architecture"), "llama") == 0);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        bsm_tensor tensor = { .struct_size = sizeof tensor };
        CHECK(t, bsm_checkpoint_tensor(checkpoint, (int64_t)i, &tensor) == BSM_OK
                     && strcmp(tensor.name, want[i].name) == 0);
        CHECK(t, tensor.type == want[i].type && tensor.gguf_type == want[i].number && tensor.rank == want[i].rank);
        for (int d = 0; d < want[i].rank; d++) CHECK(t, tensor.shape[d] == want[i].shape[d]);
        const char *data = tensor.data;
        CHECK(t, tensor.bytes == want[i].bytes && (data - golden) % 32 == 0 && data > golden
                     && is_pattern(data, tensor.bytes));
    }
    bsm_checkpoint_close(checkpoint);
}

/* Files put together ----------------------------------------------------------------------------------------------- */

static void put_text(const char *text)
{
    put_number(&file, strlen(text), 8);
    put(&file, text, strlen(text));
}

static void start_file(uint64_t tensors, uint64_t keys)
{
    file.count = 0;
    put(&file, "GGUF", 4);
    put_number(&file, 3, 4);
    put_number(&file, tensors, 8);
    put_number(&file, keys, 8);
}

static void put_key(const char *key, uint32_t type)
{
    put_text(key);
    put_number(&file, type, 4);
}

static void put_tensor(const char *name, int rank, uint64_t first, uint64_t second, uint32_t type, uint64_t offset)
{
    put_text(name);
    put_number(&file, (uint64_t)rank, 4);
    for (int i = 0; i < rank; i++) put_number(&file, i == 0 ? first : i == 1 ? second : 1, 8);
    put_number(&file, type, 4);
    put_number(&file, offset, 8);
}

static void put_data(size_t bytes, size_t alignment)
{
    while (file.count % alignment != 0) put_number(&file, 0, 1);
    put_pattern(&file, bytes);
}

/* Sentences that files got so far, each once. */
static char sentences[200][512];
static int sentence_count;

static void note_sentence(const char *sentence)
{
    for (int i = 0; i < sentence_count; i++)
        if (strcmp(sentences[i], sentence) == 0) return;
    if (sentence_count < 200) snprintf(sentences[sentence_count++], sizeof sentences[0], "%s", sentence);
}

static void expect(struct test *t, bsm_status status, const char *words)
{
    const bsm_status got = parse_watched(t, file.at, file.count);
    if (got != BSM_OK) note_sentence(bsm_last_error());
    if (got != status || (status != BSM_OK && strstr(bsm_last_error(), words) == NULL))
        FAIL(t, "%s: status %d, \"%s\"", words, (int)got, got == BSM_OK ? "" : bsm_last_error());
}

static void one_tensor(struct test *t, int rank, uint64_t first, uint64_t second, uint32_t type, uint64_t offset,
                       bsm_status status, const char *words)
{
    start_file(1, 0);
    put_tensor("w", rank, first, second, type, offset);
    put_data(68, 32);
    expect(t, status, words);
}

static void lies_of_tensors(struct test *t)
{
    one_tensor(t, 1, 17, 0, 0, 0, BSM_OK, "one f32 row");
    one_tensor(t, 0, 0, 0, 0, 64, BSM_OK, "a scalar");
    one_tensor(t, 2, 64, 2, 39, 0, BSM_OK, "two rows of mxfp4");
    one_tensor(t, 2, 32, 4, 39, 0, BSM_OK, "four rows of mxfp4");
    one_tensor(t, 2, 0, 4, 39, 0, BSM_OK, "no columns");
    one_tensor(t, 5, 1, 1, 0, 0, BSM_EFILE, "has 5 dimensions");
    one_tensor(t, 1, 18, 0, 0, 0, BSM_EFILE, "lies at bytes 0 to 72 of the data, but the file has only 68");
    one_tensor(t, 1, 1, 0, 0, 68, BSM_EFILE, "offset 68 is no multiple of the alignment, 32");
    one_tensor(t, 1, 2, 0, 0, 64, BSM_EFILE, "lies at bytes 64 to 72");
    one_tensor(t, 1, 1, 0, 0, (uint64_t)1 << 62, BSM_EFILE, "lies at bytes 4611686018427387904");
    one_tensor(t, 1, (uint64_t)1 << 60, 0, 0, (uint64_t)1 << 62, BSM_EFILE, "to 9223372036854775808 of the data");
    one_tensor(t, 1, 1, 0, 0, (uint64_t)1 << 63, BSM_EFILE, "does not fit 63 bits");
    one_tensor(t, 1, (uint64_t)1 << 63, 0, 0, 0, BSM_EFILE, "a dimension is 9223372036854775808");
    one_tensor(t, 2, (uint64_t)1 << 32, (uint64_t)1 << 32, 0, 0, BSM_EFILE, "more numbers than 63 bits");
    one_tensor(t, 1, INT64_MAX, 0, 0, 0, BSM_EFILE, "more bytes than 63 bits");
    one_tensor(t, 2, 48, 2, 39, 0, BSM_EFILE, "rows of 48 numbers are not whole blocks of 32");
    one_tensor(t, 2, 32, 2, 40, 0, BSM_EFILE, "rows of 32 numbers are not whole blocks of 64");
    one_tensor(t, 0, 0, 0, 39, 0, BSM_EFILE, "rows of 1 numbers are not whole blocks of 32");
    one_tensor(t, 1, 32, 0, 31, 0, BSM_EUNSUPPORTED, "type 31 of GGUF is not known");
    one_tensor(t, 1, 32, 0, UINT32_MAX, 0, BSM_EUNSUPPORTED, "type 4294967295 of GGUF is not known");
    start_file(2, 0);
    put_tensor("a", 1, 17, 0, 0, 0);
    put_tensor("b", 1, 1, 0, 0, 64);
    put_data(68, 32);
    expect(t, BSM_EFILE, "tensor b: overlaps tensor a at byte 64");
    start_file(2, 0);
    put_tensor("a", 1, 8, 0, 0, 0);
    put_tensor("a", 1, 1, 0, 0, 32);
    put_data(68, 32);
    expect(t, BSM_EFILE, "two tensors are called a");
    start_file(1, 0);
    put_tensor("", 1, 17, 0, 0, 0);
    put_data(68, 32);
    expect(t, BSM_EFILE, "a tensor has no name");
    start_file(1, 0);
    put_number(&file, 2, 8);
    put(&file, "a\0", 2);
    put_data(200, 1);
    expect(t, BSM_EFILE, "tensor a");
}

/* Every type that is passed on: the size of its rows. */
static void sizes_of_types(struct test *t)
{
    static const struct {
        uint32_t number;
        int block, bytes;
    } types[] = {
        { 2, 32, 18 },   { 3, 32, 20 },    { 6, 32, 22 },    { 7, 32, 24 },    { 8, 32, 34 },    { 9, 32, 36 },
        { 10, 256, 84 }, { 11, 256, 110 }, { 12, 256, 144 }, { 13, 256, 176 }, { 14, 256, 210 }, { 15, 256, 292 },
        { 16, 256, 66 }, { 17, 256, 74 },  { 18, 256, 98 },  { 19, 256, 50 },  { 20, 32, 18 },   { 21, 256, 110 },
        { 22, 256, 82 }, { 23, 256, 136 }, { 24, 1, 1 },     { 25, 1, 2 },     { 26, 1, 4 },     { 27, 1, 8 },
        { 28, 1, 8 },    { 29, 256, 56 },  { 30, 1, 2 },     { 34, 256, 54 },  { 35, 256, 66 },  { 39, 32, 17 },
        { 40, 64, 36 },  { 41, 128, 18 },  { 42, 64, 18 },   { 0, 1, 4 },      { 1, 1, 2 },
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int less = 0; less < 2; less++) {
            start_file(1, 0);
            put_tensor("w", 2, 3 * (uint64_t)types[i].block, 2, types[i].number, 0);
            put_data((size_t)(6 * types[i].bytes - less), 32);
            expect(t, less == 0 ? BSM_OK : BSM_EFILE, "lies at bytes 0 to");
        }
}

static void one_key(struct test *t, uint32_t type, uint64_t value, int value_bytes, bsm_status status,
                    const char *words)
{
    start_file(0, 1);
    put_key("k", type);
    put_number(&file, value, value_bytes);
    expect(t, status, words);
}

static void one_array(struct test *t, uint32_t type, uint64_t count, size_t bytes, bsm_status status, const char *words)
{
    start_file(0, 1);
    put_key("k", 9);
    put_number(&file, type, 4);
    put_number(&file, count, 8);
    for (size_t i = 0; i < bytes; i++) put_number(&file, 0, 1);
    expect(t, status, words);
}

static void lies_of_keys(struct test *t)
{
    static const int sizes[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    for (uint32_t type = 0; type < 13; type++) {
        if (sizes[type] == 0) continue;
        one_key(t, type, 1, sizes[type], BSM_OK, "a value");
        one_key(t, type, 1, sizes[type] - 1, BSM_EFILE, "the file ends inside a key's value");
        one_array(t, type, 3, 3 * (size_t)sizes[type], BSM_OK, "an array");
        one_array(t, type, 3, 3 * (size_t)sizes[type] - 1, BSM_EFILE, "an array of 3 values does not fit");
    }
    one_key(t, 13, 1, 8, BSM_EUNSUPPORTED, "key k: type 13 is not known");
    one_key(t, 7, 2, 1, BSM_EFILE, "a bool is 2");
    one_key(t, 8, 0, 8, BSM_OK, "an empty text");
    one_key(t, 8, 1, 8, BSM_EFILE, "the file ends inside a text");
    one_key(t, 8, UINT64_MAX, 8, BSM_EFILE, "18446744073709551615 bytes are wanted there");
    one_array(t, 8, 2, 16, BSM_OK, "two empty texts");
    one_array(t, 8, 2, 15, BSM_EFILE, "an array of 2 values does not fit");
    one_array(t, 9, 0, 0, BSM_EUNSUPPORTED, "an array of type 9, arrays");
    one_array(t, 99, 0, 0, BSM_EUNSUPPORTED, "an array of type 99, which is not known");
    one_array(t, 10, UINT64_MAX, 64, BSM_EFILE, "an array of 18446744073709551615 values");
    one_array(t, 10, (uint64_t)1 << 61, 64, BSM_EFILE, "an array of 2305843009213693952 values");
    start_file(0, 1);
    put_key("", 4);
    put_number(&file, 1, 4);
    expect(t, BSM_EFILE, "a key has no name");
}

static void alignment(struct test *t)
{
    for (int twice = 0; twice < 2; twice++)
        for (uint64_t value = 0; value < 200; value++) {
            const bool good = value > 0 && (value & (value - 1)) == 0;
            start_file(2, 1 + (uint64_t)twice);
            for (int i = 0; i <= twice; i++) {
                put_key("general.alignment", 4);
                put_number(&file, value, 4);
            }
            put_tensor("a", 1, 1, 0, 24, 0);
            put_tensor("b", 1, 1, 0, 24, value);
            put_data((size_t)value + 1, good ? (size_t)value : 1);
            expect(t, good && !twice ? BSM_OK : BSM_EFILE,
                   good ? "general.alignment is there twice" : "a power of two is wanted");
        }
    start_file(0, 1);
    put_key("general.alignment", 10);
    put_number(&file, 32, 8);
    expect(t, BSM_EFILE, "general.alignment has type 10");
    start_file(0, 1);
    put_key("general.alignment", 8);
    put_text("32");
    expect(t, BSM_EFILE, "general.alignment has type 8");
    start_file(1, 1);
    put_key("general.alignment", 4);
    put_number(&file, (uint64_t)1 << 31, 4);
    put_tensor("a", 1, 1, 0, 24, 0);
    expect(t, BSM_EFILE, "the file ends before its data, which starts at byte 2147483648");
}

static void lies_of_the_start(struct test *t)
{
    static const struct {
        int at, bytes;
        uint64_t number;
        bsm_status status;
        const char *words;
    } lies[] = {
        { 0, 4, 0x46554746, BSM_EFILE, "it is cut off, or no .safetensors file" },
        { 4, 4, 0, BSM_EUNSUPPORTED, "version 0 of the GGUF format" },
        { 4, 4, 1, BSM_EUNSUPPORTED, "version 1 of" },
        { 4, 4, 2, BSM_OK, "" },
        { 4, 4, 4, BSM_EUNSUPPORTED, "version 4 of" },
        { 4, 4, 0x03000000, BSM_EUNSUPPORTED, "big-endian" },
        { 8, 8, 2, BSM_EFILE, "a tensor has no name" },
        { 8, 8, UINT64_MAX, BSM_EFILE, "18446744073709551615 tensors do not" },
        { 8, 8, (uint64_t)1 << 32, BSM_EFILE, "tensors do not fit the file" },
        { 16, 8, UINT64_MAX, BSM_EFILE, "18446744073709551615 keys do not" },
        { 24, 8, UINT64_MAX, BSM_EFILE, "the file ends inside a key" },
        { 24, 8, 1 << 20, BSM_EFILE, "1048576 bytes are wanted there" },
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        start_file(1, 1);
        put_key("k", 4);
        put_number(&file, 1, 4);
        put_tensor("w", 1, 17, 0, 0, 0);
        put_data(68, 32);
        for (int b = 0; b < lies[i].bytes; b++) file.at[lies[i].at + b] = (unsigned char)(lies[i].number >> 8 * b);
        expect(t, lies[i].status, lies[i].words);
    }
}

/* The lies above once more, and the sentences about them. */
static void sixty_sentences(struct test *t)
{
    sentence_count = 0;
    lies_of_tensors(t), sizes_of_types(t), lies_of_keys(t), lies_of_the_start(t);
    if (sentence_count < 60) FAIL(t, "%d different sentences", sentence_count);
}

static void cuts_and_flips(struct test *t)
{
    const size_t bytes = sizeof golden_gguf - 1;
    cut_and_flip(t, golden_gguf, bytes, bytes - 32 + 2, bytes - 32 * 11);
}

static void failing_allocations(struct test *t) { fail_allocations(t, golden_gguf, sizeof golden_gguf - 1); }

/* Writing ---------------------------------------------------------------------------------------------------------- */

/* Tensors and texts of the upstream's file, written again and read back. */
static void written_again(struct test *t)
{
    static const bsm_metadata metadata[] = { { "general.architecture", "llama" }, { "general.name", "golden" } };
    bsm_tensor tensors[5], tensor = { .struct_size = sizeof tensor };
    bsm_checkpoint *checkpoint, *again;
    void *header;
    size_t header_bytes;
    CHECK_OR_RETURN(t, bsm_checkpoint_parse(context, golden_gguf, sizeof golden_gguf - 1, &checkpoint) == BSM_OK);
    for (int i = 0; i < 5; i++) {
        tensors[i].struct_size = sizeof tensors[i];
        CHECK(t, bsm_checkpoint_tensor(checkpoint, i, &tensors[i]) == BSM_OK);
    }
    CHECK_OR_RETURN(t,
                    bsm_checkpoint_header(context, BSM_CHECKPOINT_GGUF, tensors, 5, metadata, 2, &header, &header_bytes)
                        == BSM_OK);
    file.count = 0;
    put(&file, header, header_bytes);
    for (int i = 0; i < 5; i++) {
        CHECK(t, file.count % 32 == 0);
        put(&file, tensors[i].data, (size_t)tensors[i].bytes);
        while (file.count % 32 != 0) put_number(&file, 0, 1);
    }
    CHECK(t, parse_watched(t, file.at, file.count) == BSM_OK);
    CHECK_OR_RETURN(t, bsm_checkpoint_parse(context, file.at, file.count, &again) == BSM_OK);
    for (int i = 0; i < 5; i++) {
        CHECK(t, bsm_checkpoint_tensor(again, i, &tensor) == BSM_OK && strcmp(tensor.name, tensors[i].name) == 0);
        CHECK(t, tensor.type == tensors[i].type && tensor.gguf_type == tensors[i].gguf_type
                     && tensor.bytes == tensors[i].bytes);
        CHECK(t, memcmp(tensor.shape, tensors[i].shape, sizeof tensor.shape) == 0);
        CHECK(t, memcmp(tensor.data, tensors[i].data, (size_t)tensor.bytes) == 0);
    }
    CHECK(t, bsm_checkpoint_metadata_count(again) == 2
                 && strcmp(bsm_checkpoint_metadata(again, "general.name"), "golden") == 0);
    bsm_header_release(context, header, header_bytes);
    bsm_checkpoint_close(again);
    bsm_checkpoint_close(checkpoint);
}

static void refuse(struct test *t, bsm_tensor tensor, const char *words)
{
    void *header = NULL;
    size_t header_bytes;
    CHECK(t,
          bsm_checkpoint_header(context, BSM_CHECKPOINT_GGUF, &tensor, 1, NULL, 0, &header, &header_bytes) == BSM_EINVAL
              && header == NULL);
    if (strstr(bsm_last_error(), words) == NULL) FAIL(t, "%s: \"%s\"", words, bsm_last_error());
}

static void refused_requests(struct test *t)
{
    bsm_tensor tensor = {
        .struct_size = sizeof tensor, .name = "w", .type = BSM_TENSOR_U8, .gguf_type = -1, .rank = 1, .shape = { 32 }
    };
    refuse(t, tensor, "have no type U8");
    tensor.type = BSM_TENSOR_F8_E4M3;
    refuse(t, tensor, "have no type F8_E4M3");
    tensor.type = BSM_TENSOR_OTHER;
    refuse(t, tensor, "have no type OTHER with number -1");
    tensor.gguf_type = 39;
    refuse(t, tensor, "have no type OTHER with number 39");
    tensor.type = BSM_TENSOR_MXFP4, tensor.shape[0] = 33;
    refuse(t, tensor, "rows of 33 numbers are not whole blocks of 32");
    tensor.shape[0] = 32, tensor.rank = 5;
    refuse(t, tensor, "rank=5; 0 to 4");
}

int main(int argc, char **argv)
{
    if (bsm_context_create(NULL, &context) != BSM_OK) return 1;
    static const struct test_case cases[] = {
        TEST(upstream_files), TEST(lies_of_tensors),   TEST(sizes_of_types),  TEST(lies_of_keys),
        TEST(alignment),      TEST(lies_of_the_start), TEST(cuts_and_flips),  TEST(failing_allocations),
        TEST(written_again),  TEST(refused_requests),  TEST(sixty_sentences),
    };
    const int status = TEST_MAIN(argc, argv, cases);
    bsm_context_destroy(context);
    return status;
}
