/* .safetensors files in memory: the format's own, legal spellings, heads that lie in one way each, and what is
 * written. */
#include "checkpoint_bytes.h"
#include "golden_checkpoints.h"

static struct bytes file;
static bsm_context *context;

static bsm_tensor tensor_called(struct test *t, const bsm_checkpoint *checkpoint, const char *name)
{
    bsm_tensor tensor = { .struct_size = sizeof tensor };
    const int64_t index = bsm_checkpoint_find(checkpoint, name);
    if (index < 0) FAIL(t, "no tensor %s", name);
    else CHECK(t, bsm_checkpoint_tensor(checkpoint, index, &tensor) == BSM_OK && strcmp(tensor.name, name) == 0);
    return tensor;
}

/* What safetensors wrote is what was given to it, and lies where it lay: nothing is copied. */
static void upstream_files(struct test *t)
{
    static const struct {
        const char *name;
        bsm_tensor_type type;
        int rank;
        int64_t shape[2], bytes;
    } want[] = {
        { "double", BSM_TENSOR_F64, 1, { 1 }, 8 },   { "empty", BSM_TENSOR_F32, 2, { 0, 7 }, 0 },
        { "scalar", BSM_TENSOR_F32, 0, { 0 }, 4 },   { "single", BSM_TENSOR_F32, 2, { 2, 2 }, 16 },
        { "brain", BSM_TENSOR_BF16, 1, { 2 }, 4 },   { "half", BSM_TENSOR_F16, 1, { 3 }, 6 },
        { "e8m0", BSM_TENSOR_F8_E8M0, 1, { 3 }, 3 }, { "e4m3", BSM_TENSOR_F8_E4M3, 1, { 4 }, 4 },
        { "e5m2", BSM_TENSOR_F8_E5M2, 1, { 4 }, 4 }, { "signed", BSM_TENSOR_I8, 2, { 2, 3 }, 6 },
        { "bytes", BSM_TENSOR_U8, 1, { 5 }, 5 },     { "e2m1", BSM_TENSOR_F4, 2, { 2, 4 }, 4 },
    };
    const char *golden = golden_safetensors;
    bsm_checkpoint *checkpoint;
    CHECK_OR_RETURN(t, bsm_checkpoint_parse(context, golden, sizeof golden_safetensors - 1, &checkpoint) == BSM_OK);
    CHECK(t, bsm_checkpoint_tensor_count(checkpoint) == sizeof want / sizeof want[0]);
    CHECK(t, bsm_checkpoint_get_kind(checkpoint) == BSM_CHECKPOINT_SAFETENSORS
                 && bsm_checkpoint_file_count(checkpoint) == 1);
    CHECK(t, bsm_checkpoint_metadata_count(checkpoint) == 1
                 && strcmp(bsm_checkpoint_metadata_key(checkpoint, 0), "format") == 0);
    CHECK(t, strcmp(bsm_checkpoint_metadata(checkpoint, "format"), "pt") == 0
                 && bsm_checkpoint_metadata(checkpoint, "form") == NULL);
    CHECK(t, bsm_checkpoint_metadata_key(checkpoint, 1) == NULL && bsm_checkpoint_metadata_key(checkpoint, -1) == NULL);
    int64_t at = (int64_t)sizeof golden_safetensors - 1 - 64;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        bsm_tensor tensor = { .struct_size = sizeof tensor };
        CHECK(t, bsm_checkpoint_tensor(checkpoint, (int64_t)i, &tensor) == BSM_OK);
        if (strcmp(tensor.name, want[i].name) != 0) FAIL(t, "%s, not %s", tensor.name, want[i].name);
        CHECK(t, tensor.type == want[i].type && tensor.rank == want[i].rank && tensor.bytes == want[i].bytes &&
                     tensor.gguf_type == -1);
        for (int d = 0; d < want[i].rank; d++) CHECK(t, tensor.shape[d] == want[i].shape[d]);
        CHECK(t, tensor.bytes == 0 ? tensor.data == NULL : tensor.data == golden + at);
        CHECK(t, is_pattern(tensor.data, tensor.bytes));
        at += tensor.bytes;
    }
    bsm_checkpoint_close(checkpoint);
}

#define ENTRY(dtype, shape, offsets) "{\"w\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define F32(shape, offsets)          ENTRY("\"F32\"", shape, offsets)
#define PAIR(a, b) \
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[12],\"data_offsets\":" a \
    "},\"b\":{\"dtype\":\"U8\",\"shape\":[12],\"data_offsets\":" b "}}"

static void legal_spellings(struct test *t)
{
    static const char *const legal[] = {
        F32("[2,3]", "[0,24]"),
        F32("[6]", "[0,24]"),
        F32("[ 1,\n2 , 3 ]", "[0 , 24]"),
        F32("[1,1,1,1,1,1,1,6]", "[0,24]") "   \n\t",
        ENTRY("\"F4\"", "[48]", "[0,24]"),
        ENTRY("\"F4\"", "[3,16]", "[0,24]"),
        ENTRY("\"F4\"", "[16,3]", "[0,24]"),
        ENTRY("\"F6_E2M3\"", "[32]", "[0,24]"),
        ENTRY("\"F6_E3M2\"", "[2,16]", "[0,24]"),
        ENTRY("\"C64\"", "[3]", "[0,24]"),
        ENTRY("\"BOOL\"", "[24]", "[0,24]"),
        ENTRY("\"I64\"", "[3]", "[0,24]"),
        ENTRY("\"F8_E4M3FNUZ\"", "[24]", "[0,24]"),
        ENTRY("\"U\\u0038\"", "[24]", "[0,24]"),
        PAIR("[0,12]", "[12,24]"),
        PAIR("[12,24]", "[0,12]"),
        "{\"__metadata__\":{},\"w\":{\"data_offsets\":[0,24],\"shape\":[24],\"dtype\":\"I8\"}}",
        "{\"__metadata__\":{\"\":\"\"},\"\\u00e9\":{\"data_offsets\":[0,24],\"shape\":[24],\"dtype\":\"I8\"}}",
    };
    for (size_t i = 0; i < sizeof legal / sizeof legal[0]; i++) {
        put_safetensors(&file, legal[i], strlen(legal[i]), 24);
        if (parse_watched(t, file.at, file.count) != BSM_OK) FAIL(t, "%s: %s", legal[i], bsm_last_error());
    }
    put_safetensors(&file, "{}", 2, 0);
    CHECK(t, parse_watched(t, file.at, file.count) == BSM_OK);
}

/* The data has 24 bytes.  What is wrong, and words of the sentence that no other lie gets. */
static const struct {
    const char *header;
    bsm_status status;
    const char *sentence;
} lies[] = {
    { "[]", BSM_EFILE, "starts with the byte 0x5b" },
    { " {}", BSM_EFILE, "starts with the byte 0x20" },
    { "{ ", BSM_EFILE, "byte 2 of the header is no JSON: unexpected end" },
    { "{}{}", BSM_EFILE, "unexpected content after document" },
    { "{\"w\":{},}", BSM_EFILE, "is no JSON: trailing comma" },
    { "{\"w\" 1}", BSM_EFILE, "expected ':'" },
    { "{'w':1}", BSM_EFILE, "expected a string key" },
    { "{\"w\":nan}", BSM_EFILE, "is no JSON: invalid literal" },
    { "{\"w\":01}", BSM_EFILE, "leading zero" },
    { "{\"w\xff\":1}", BSM_EFILE, "invalid UTF-8" },
    { "{\"w\":/* */1}", BSM_EFILE, "is no JSON: unexpected character" },
    { "{}", BSM_EFILE, "24 bytes stand behind the last tensor" },
    { "{\"\":{}}", BSM_EFILE, "a tensor has no name" },
    { "{\"a\\u0000b\":{}}", BSM_EFILE, "tensor a: its name holds a NUL" },
    { "{\"w\":1}", BSM_EFILE, "tensor w: is a number; an object" },
    { "{\"w\":null}", BSM_EFILE, "tensor w: is null; an object" },
    { "{\"w\":{}}", BSM_EFILE, "lacks the key \"dtype\"" },
    { "{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,24]}}", BSM_EFILE, "lacks the key \"shape\"" },
    { "{\"w\":{\"dtype\":\"F32\",\"shape\":[6]}}", BSM_EFILE, "lacks the key \"data_offsets\"" },
    { "{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]}}", BSM_EFILE,
      "key \"dtype\" twice" },
    { "{\"w\":{\"dtype\":\"F32\",\"shape\":[6],\"shape\":[6],\"data_offsets\":[0,24]}}", BSM_EFILE,
      "key \"shape\" twice" },
    { "{\"w\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24],\"data_offsets\":[0,24]}}", BSM_EFILE,
      "\"data_offsets\" twice" },
    { "{\"w\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24],\"strides\":[1]}}", BSM_EFILE,
      "has a key \"strides\"" },
    { "{\"w\":{\"dtype\\u0000\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]}}", BSM_EFILE, "has a key \"dtype\"" },
    { ENTRY("3", "[6]", "[0,24]"), BSM_EFILE, "\"dtype\" is a number; a text" },
    { ENTRY("\"F33\"", "[6]", "[0,24]"), BSM_EUNSUPPORTED, "\"F33\" is no type" },
    { ENTRY("\"\"", "[6]", "[0,24]"), BSM_EUNSUPPORTED, "\"\" is no type" },
    { ENTRY("\"f32\"", "[6]", "[0,24]"), BSM_EUNSUPPORTED, "\"f32\" is no type" },
    { ENTRY("\"F32\\u0000\"", "[6]", "[0,24]"), BSM_EUNSUPPORTED, "\"F32\" is no type" },
    { ENTRY("\"MXFP4\"", "[6]", "[0,24]"), BSM_EUNSUPPORTED, "\"MXFP4\" is no type" },
    { F32("6", "[0,24]"), BSM_EFILE, "\"shape\" is a number; a list is" },
    { F32("{}", "[0,24]"), BSM_EFILE, "\"shape\" is an object; a list is" },
    { F32("[\"6\"]", "[0,24]"), BSM_EFILE, "\"shape\" is a text; a list of whole" },
    { F32("[[6]]", "[0,24]"), BSM_EFILE, "\"shape\" is a list; a list of whole" },
    { F32("[true]", "[0,24]"), BSM_EFILE, "\"shape\" is true or false" },
    { F32("[-6]", "[0,24]"), BSM_EFILE, "\"shape\" has a negative number" },
    { F32("[6.0]", "[0,24]"), BSM_EFILE, "\"shape\" has a number that is not whole" },
    { F32("[6e0]", "[0,24]"), BSM_EFILE, "\"shape\" has a number that is not whole" },
    { F32("[18446744073709551616]", "[0,24]"), BSM_EFILE,
      "\"shape\" has a number that is not whole, or beyond 64 bits" },
    { F32("[9223372036854775808]", "[0,24]"), BSM_EFILE, "\"shape\" has a number that does not fit 63 bits" },
    { F32("[9223372036854775807]", "[0,24]"), BSM_EFILE, "more bytes than 63 bits" },
    { F32("[4294967296,4294967296]", "[0,24]"), BSM_EFILE, "more numbers than 63 bits" },
    { F32("[0,4294967296,4294967296]", "[0,0]"), BSM_EFILE, "more numbers than 63 bits" },
    { F32("[1,1,1,1,1,1,1,1,6]", "[0,24]"), BSM_EUNSUPPORTED, "has 9 dimensions" },
    { F32("[5]", "[0,24]"), BSM_EFILE, "need 20 bytes, its \"data_offsets\" have 24" },
    { F32("[7]", "[0,24]"), BSM_EFILE, "need 28 bytes, its \"data_offsets\" have 24" },
    { F32("[6]", "[0,23]"), BSM_EFILE, "need 24 bytes, its \"data_offsets\" have 23" },
    { ENTRY("\"F4\"", "[47]", "[0,24]"), BSM_EFILE, "47 numbers of 4 bits do not end on a byte" },
    { ENTRY("\"F6_E2M3\"", "[34]", "[0,24]"), BSM_EFILE, "34 numbers of 6 bits do not end on a byte" },
    { F32("[6]", "24"), BSM_EFILE, "\"data_offsets\" is a number; a list of two" },
    { F32("[6]", "[24]"), BSM_EFILE, "\"data_offsets\" has 1 numbers" },
    { F32("[6]", "[0,24,24]"), BSM_EFILE, "\"data_offsets\" has 3 numbers" },
    { F32("[6]", "[0,null]"), BSM_EFILE, "\"data_offsets\" is null" },
    { F32("[6]", "[0,-24]"), BSM_EFILE, "\"data_offsets\" has a negative number" },
    { F32("[6]", "[0,24.5]"), BSM_EFILE, "\"data_offsets\" has a number that is not whole" },
    { F32("[6]", "[0,18446744073709551615]"), BSM_EFILE, "\"data_offsets\" has a number that does not fit 63 bits" },
    { F32("[6]", "[24,0]"), BSM_EFILE, "end at 0, before they begin at 24" },
    { F32("[6]", "[1,25]"), BSM_EFILE, "lies at bytes 1 to 25 of the data, but the file has only 24" },
    { F32("[0]", "[25,25]"), BSM_EFILE, "lies at bytes 25 to 25" },
    { F32("[2305843009213693951]", "[0,9223372036854775804]"), BSM_EFILE, "to 9223372036854775804 of the data" },
    { F32("[1]", "[9223372036854775803,9223372036854775807]"), BSM_EFILE, "lies at bytes 9223372036854775803" },
    { F32("[5]", "[4,24]"), BSM_EFILE, "4 bytes before it belong to no tensor" },
    { F32("[5]", "[0,20]"), BSM_EFILE, "4 bytes stand behind the last tensor" },
    { F32("[0]", "[0,0]"), BSM_EFILE, "24 bytes stand behind the last tensor" },
    { PAIR("[0,12]", "[0,12]"), BSM_EFILE, "tensor b: overlaps tensor a at byte 0" },
    { PAIR("[0,12]", "[11,23]"), BSM_EFILE, "tensor b: overlaps tensor a at byte 11" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[12],\"data_offsets\":[0,12]},\"a\":{\"dtype\":\"U8\",\"shape\":[12],\"data_"
      "offsets\":["
      "12,24]}}",
      BSM_EFILE, "two tensors are called a" },
    { "{\"__metadata__\":[]}", BSM_EFILE, "\"__metadata__\" is a list" },
    { "{\"__metadata__\":{\"a\":1}}", BSM_EFILE, "\"a\" is a number; a text" },
    { "{\"__metadata__\":{\"a\":\"\\u0000\"}}", BSM_EFILE, "or its text holds a NUL" },
    { "{\"__metadata__\":{},\"__metadata__\":{}}", BSM_EFILE, "\"__metadata__\" twice" },
};

static void every_lie_has_its_sentence(struct test *t)
{
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        put_safetensors(&file, lies[i].header, strlen(lies[i].header), 24);
        const bsm_status status = parse_watched(t, file.at, file.count);
        if (status != lies[i].status || strstr(bsm_last_error(), lies[i].sentence) == NULL)
            FAIL(t, "%s: status %d, \"%s\"", lies[i].header, (int)status, status == BSM_OK ? "" : bsm_last_error());
    }
}

_Static_assert(sizeof lies / sizeof lies[0] >= 60, "");

static void header_length(struct test *t)
{
    static const char header[] = F32("[6]", "[0,24]");
    const uint64_t truth = sizeof header - 1;
    const uint64_t stated[] = { 0,
                                1,
                                2,
                                truth - 1,
                                truth + 1,
                                truth + 24,
                                truth + 25,
                                0x7fffffff,
                                0x80000000,
                                UINT32_MAX,
                                (uint64_t)1 << 32,
                                INT64_MAX,
                                (uint64_t)1 << 63,
                                UINT64_MAX - 8,
                                UINT64_MAX - 7,
                                UINT64_MAX };
    for (size_t i = 0; i < sizeof stated / sizeof stated[0]; i++) {
        put_safetensors(&file, header, stated[i], 24);
        CHECK(t, parse_watched(t, file.at, file.count) == BSM_EFILE);
        CHECK(t, (stated[i] > truth + 24) == (strstr(bsm_last_error(), "it is cut off, or no .safetensors") != NULL));
        CHECK(t, (stated[i] < 2) == (strstr(bsm_last_error(), "\"{}\" has two") != NULL));
    }
    CHECK(t, parse_watched(t, NULL, 0) == BSM_EFILE && strstr(bsm_last_error(), "the file has 0 bytes") != NULL);
}

/* Nothing but its own rules bounds the length of a file that is as long as it says. */
static void longest_header(struct test *t)
{
    const size_t most = 100000000, bytes = 8 + most + 1;
    unsigned char *sparse = guarded_at_end(bytes, 1, 0);
    bsm_checkpoint *checkpoint;
    for (int i = 0; i < 8; i++) sparse[i] = (unsigned char)((most + 1) >> 8 * i);
    CHECK(t, bsm_checkpoint_parse(context, sparse, bytes, &checkpoint) == BSM_EFILE);
    CHECK(t, strstr(bsm_last_error(), "the format allows 100000000") != NULL);
    guarded_free(sparse);
}

/* Brackets in brackets, many keys, many equal names: no recursion, no quadratic time. */
static void deep_and_many(struct test *t)
{
    static char header[50000];
    header[0] = '\0';
    strcat(header, "{\"w\":");
    for (int i = 5; i < 20000; i++) header[i] = '[';
    put_safetensors(&file, header, 20000, 24);
    CHECK(t, parse_watched(t, file.at, file.count) == BSM_EFILE);
    size_t used = (size_t)snprintf(header, sizeof header, "{");
    for (int i = 0; i < 800; i++)
        used +=
            (size_t)snprintf(header + used, sizeof header - used,
                             "%s\"same\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i == 0 ? "" : ",");
    snprintf(header + used, sizeof header - used, "}");
    put_safetensors(&file, header, strlen(header), 0);
    CHECK(t, parse_watched(t, file.at, file.count) == BSM_EFILE
                 && strstr(bsm_last_error(), "two tensors are called same") != NULL);
}

static void cuts_and_flips(struct test *t)
{
    const size_t bytes = sizeof golden_safetensors - 1;
    cut_and_flip(t, golden_safetensors, bytes, bytes, bytes - 64);
}

static void failing_allocations(struct test *t)
{
    fail_allocations(t, golden_safetensors, sizeof golden_safetensors - 1);
}

/* Writing ---------------------------------------------------------------------------------------------------------- */

/* The upstream's file, described and written again, is read as the same tensors; its data is the same bytes. */
static void written_again(struct test *t)
{
    const bsm_metadata metadata[] = { { "format", "pt" }, { "quote\" and \\", "line\nand \x01, \xc3\xa9" } };
    bsm_tensor tensors[12];
    bsm_checkpoint *checkpoint, *again;
    void *header;
    size_t header_bytes;
    CHECK_OR_RETURN(t, bsm_checkpoint_parse(context, golden_safetensors, sizeof golden_safetensors - 1, &checkpoint)
                           == BSM_OK);
    for (int i = 0; i < 12; i++) {
        tensors[i].struct_size = sizeof tensors[i];
        CHECK(t, bsm_checkpoint_tensor(checkpoint, i, &tensors[i]) == BSM_OK);
    }
    CHECK_OR_RETURN(
        t, bsm_checkpoint_header(context, BSM_CHECKPOINT_SAFETENSORS, tensors, 12, metadata, 2, &header, &header_bytes)
               == BSM_OK);
    CHECK(t, header_bytes % 8 == 0);
    file.count = 0;
    put(&file, header, header_bytes);
    put(&file, golden_safetensors + sizeof golden_safetensors - 1 - 64, 64);
    CHECK(t, parse_watched(t, file.at, file.count) == BSM_OK);
    CHECK_OR_RETURN(t, bsm_checkpoint_parse(context, file.at, file.count, &again) == BSM_OK);
    for (int i = 0; i < 12; i++) {
        const bsm_tensor tensor = tensor_called(t, again, tensors[i].name);
        CHECK(t, tensor.type == tensors[i].type && tensor.rank == tensors[i].rank && tensor.bytes == tensors[i].bytes);
        CHECK(t, memcmp(tensor.shape, tensors[i].shape, sizeof tensor.shape) == 0);
        CHECK(t, tensor.bytes == 0 || memcmp(tensor.data, tensors[i].data, (size_t)tensor.bytes) == 0);
    }
    for (int i = 0; i < 2; i++)
        CHECK(t, strcmp(bsm_checkpoint_metadata(again, metadata[i].key), metadata[i].value) == 0);
    /* Without metadata of our own, and with the upstream's order, its bytes: */
    bsm_header_release(context, header, header_bytes);
    CHECK(t,
          bsm_checkpoint_header(context, BSM_CHECKPOINT_SAFETENSORS, tensors, 12, metadata, 1, &header, &header_bytes)
              == BSM_OK);
    CHECK(t,
          header_bytes == sizeof golden_safetensors - 1 - 64 && memcmp(header, golden_safetensors, header_bytes) == 0);
    bsm_header_release(context, header, header_bytes);
    bsm_checkpoint_close(again);
    bsm_checkpoint_close(checkpoint);
}

static bsm_tensor described(const char *name, bsm_tensor_type type, int64_t size)
{
    return (
        bsm_tensor){ .struct_size = sizeof(bsm_tensor), .name = name, .type = type, .gguf_type = -1, .rank = 1,
                     .shape = { size } };
}

static void refuse(struct test *t, const bsm_tensor *tensors, int64_t count, const bsm_metadata *metadata,
                   bsm_status status, const char *words)
{
    void *header = NULL;
    size_t header_bytes;
    const bsm_status got = bsm_checkpoint_header(context, BSM_CHECKPOINT_SAFETENSORS, tensors, count, metadata,
                                                 metadata == NULL ? 0 : 1, &header, &header_bytes);
    if (got != status || header != NULL || strstr(bsm_last_error(), words) == NULL)
        FAIL(t, "%s: status %d, \"%s\"", words, (int)got, bsm_last_error());
}

static void refused_requests(struct test *t)
{
    const bsm_tensor good = described("w", BSM_TENSOR_F32, 6);
    bsm_tensor two[2] = { described("a", BSM_TENSOR_U8, 3), described("b", BSM_TENSOR_F32, 1) };
    refuse(t, two, 2, NULL, BSM_EINVAL, "tensor b: would lie at byte 3 of the data, not aligned to its 4");
    two[1] = described("a", BSM_TENSOR_U8, 3);
    refuse(t, two, 2, NULL, BSM_EINVAL, "two tensors are called a");
    two[0] = described("a", BSM_TENSOR_F64, INT64_MAX / 8), two[1] = described("b", BSM_TENSOR_U8, 9);
    refuse(t, two, 2, NULL, BSM_EOVERFLOW, "tensor b: the data up to here");
    bsm_tensor bad = described(NULL, BSM_TENSOR_F32, 6);
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "name is NULL");
    bad = described("", BSM_TENSOR_F32, 6);
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "name is empty");
    bad = described("__metadata__", BSM_TENSOR_F32, 6);
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "means something else");
    bad = described("\xff", BSM_TENSOR_F32, 6);
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "no UTF-8");
    bad = described("w", BSM_TENSOR_MXFP4, 32);
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "have no type MXFP4");
    bad = described("w", BSM_TENSOR_OTHER, 32);
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "have no type OTHER");
    bad = described("w", BSM_TENSOR_TYPE_COUNT, 32);
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "is no type of tensors");
    bad = described("w", BSM_TENSOR_F32, -1);
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "shape[0]=-1");
    bad = described("w", BSM_TENSOR_F32, INT64_MAX);
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "more bytes than 63 bits");
    bad = described("w", BSM_TENSOR_F4, 3);
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "3 numbers of 4 bits");
    bad = good, bad.rank = 9;
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "rank=9");
    bad = good, bad.bytes = 23;
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "bytes=23, but its shape and type need 24");
    bad = good, bad.struct_size = 0;
    refuse(t, &bad, 1, NULL, BSM_EINVAL, "struct_size");
    refuse(t, &good, -1, NULL, BSM_EINVAL, "count=-1");
    refuse(t, NULL, 1, NULL, BSM_EINVAL, "tensors is NULL");
    refuse(t, &good, 1, &(bsm_metadata){ NULL, "x" }, BSM_EINVAL, "metadata[0].key is NULL");
    refuse(t, &good, 1, &(bsm_metadata){ "x", "\xc3" }, BSM_EINVAL, "no UTF-8");
}

static void wrong_arguments(struct test *t)
{
    bsm_checkpoint *checkpoint;
    bsm_tensor tensor = { .struct_size = 3 };
    CHECK(t, bsm_checkpoint_parse(NULL, "", 0, &checkpoint) == BSM_EINVAL && checkpoint == NULL);
    CHECK(t, bsm_checkpoint_parse(context, NULL, 1, &checkpoint) == BSM_EINVAL && checkpoint == NULL);
    CHECK(t, bsm_checkpoint_parse(context, "", 0, NULL) == BSM_EINVAL);
    put_safetensors(&file, "{}", 2, 0);
    CHECK_OR_RETURN(t, bsm_checkpoint_parse(context, file.at, file.count, &checkpoint) == BSM_OK);
    CHECK(t, bsm_checkpoint_tensor_count(checkpoint) == 0 && bsm_checkpoint_find(checkpoint, "w") == -1 &&
                 bsm_checkpoint_find(checkpoint, NULL) == -1);
    CHECK(t, bsm_checkpoint_tensor(checkpoint, 0, &tensor) == BSM_EINVAL
                 && strstr(bsm_last_error(), "struct_size is 3") != NULL);
    tensor.struct_size = sizeof tensor;
    CHECK(t, bsm_checkpoint_tensor(checkpoint, 0, &tensor) == BSM_EINVAL &&
                 strstr(bsm_last_error(), "index=0; the checkpoint has 0") != NULL);
    CHECK(t, bsm_checkpoint_file_path(checkpoint, 0) == NULL && bsm_checkpoint_file_path(checkpoint, 1) == NULL);
    CHECK(t, bsm_checkpoint_metadata(checkpoint, NULL) == NULL && bsm_checkpoint_tensor_count(NULL) == 0);
    bsm_checkpoint_close(checkpoint);
    bsm_checkpoint_close(NULL);
    bsm_header_release(context, NULL, 0);
    CHECK(t, bsm_tensor_type_name(-1) == NULL && bsm_tensor_type_name(BSM_TENSOR_TYPE_COUNT) == NULL
                 && bsm_tensor_type_bits(-1) == 0);
    CHECK(t, bsm_checkpoint_kind_name(2) == NULL && strcmp(bsm_checkpoint_kind_name(1), "gguf") == 0);
}

int main(int argc, char **argv)
{
    if (bsm_context_create(NULL, &context) != BSM_OK) return 1;
    static const struct test_case cases[] = {
        TEST(upstream_files),   TEST(legal_spellings),     TEST(every_lie_has_its_sentence),
        TEST(header_length),    TEST(longest_header),      TEST(deep_and_many),
        TEST(cuts_and_flips),   TEST(failing_allocations), TEST(written_again),
        TEST(refused_requests), TEST(wrong_arguments),
    };
    const int status = TEST_MAIN(argc, argv, cases);
    bsm_context_destroy(context);
    return status;
}
