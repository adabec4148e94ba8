/* Checkpoints on disk: files, folders, shards and their index, and files that are written. */
#include "checkpoint_bytes.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

static char folder[64];
static bsm_context *context;

/* Every test works in a folder of its own and removes it. */
static void enter(void)
{
    snprintf(folder, sizeof folder, "/tmp/blockscale-test-XXXXXX");
    if (mkdtemp(folder) == NULL) abort();
}

static int entries(bool and_remove)
{
    DIR *directory = opendir(folder);
    int count = 0;
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        count++;
        if (and_remove) unlinkat(dirfd(directory), entry->d_name, 0);
    }
    closedir(directory);
    return count;
}

static void leave(void)
{
    entries(true);
    rmdir(folder);
}

static const char *in_folder(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) abort();
}

static unsigned char pattern[256];

static bsm_tensor described(const char *name, bsm_tensor_type type, int rank, int64_t rows, int64_t columns)
{
    return (bsm_tensor){ .struct_size = sizeof(bsm_tensor),
                         .name = name,
                         .type = type,
                         .gguf_type = -1,
                         .rank = rank,
                         .shape = { rows, columns },
                         .data = pattern };
}

/* A file with one tensor of bytes. */
static void write_one(struct test *t, const char *file, const char *tensor)
{
    const bsm_tensor one = described(tensor, BSM_TENSOR_U8, 1, 8, 0);
    CHECK(t, bsm_checkpoint_write(context, in_folder(file), BSM_CHECKPOINT_SAFETENSORS, &one, 1, NULL, 0) == BSM_OK);
}

static void refuse(struct test *t, const char *name, bsm_status status, const char *words)
{
    bsm_checkpoint *checkpoint;
    const bsm_status got = bsm_checkpoint_open(context, name, &checkpoint);
    if (got != status || checkpoint != NULL || strstr(bsm_last_error(), words) == NULL)
        FAIL(t, "%s: status %d, \"%s\"", words, (int)got, bsm_last_error());
    bsm_checkpoint_close(checkpoint);
}

/* Both kinds, every type that both or one can hold, through a file and back, byte for byte. */
static void round_trips(struct test *t)
{
    for (int kind = 0; kind < BSM_CHECKPOINT_KIND_COUNT; kind++) {
        const bool gguf = kind == BSM_CHECKPOINT_GGUF;
        const bsm_metadata metadata[] = { { "format", "pt" } };
        const bsm_tensor tensors[] = {
            described("a", BSM_TENSOR_F32, 2, 2, 5),
            described("none", BSM_TENSOR_F32, 2, 0, 32),
            described("b", BSM_TENSOR_BF16, 2, 3, 5),
            described("scalar", BSM_TENSOR_F16, 0, 0, 0),
            described("c", gguf ? BSM_TENSOR_MXFP4 : BSM_TENSOR_F4, 2, 3, 32),
            described("d", gguf ? BSM_TENSOR_NVFP4 : BSM_TENSOR_F6_E3M2, 2, 2, 64),
            described("e", BSM_TENSOR_I8, 1, 7, 0),
        };
        enum { COUNT = sizeof tensors / sizeof tensors[0] };
        bsm_checkpoint *checkpoint;
        enter();
        CHECK(t, bsm_checkpoint_write(context, in_folder("x"), (bsm_checkpoint_kind)kind, tensors, COUNT, metadata, 1)
                     == BSM_OK);
        CHECK(t, entries(false) == 1);
        CHECK_OR_RETURN(t, bsm_checkpoint_open(context, in_folder("x"), &checkpoint) == BSM_OK);
        CHECK(t, bsm_checkpoint_get_kind(checkpoint) == (bsm_checkpoint_kind)kind
                     && bsm_checkpoint_tensor_count(checkpoint) == COUNT);
        CHECK(t, strcmp(bsm_checkpoint_file_path(checkpoint, 0), in_folder("x")) == 0);
        CHECK(t, strcmp(bsm_checkpoint_metadata(checkpoint, "format"), "pt") == 0);
        for (int i = 0; i < COUNT; i++) {
            bsm_tensor tensor = { .struct_size = sizeof tensor };
            CHECK(t, bsm_checkpoint_tensor(checkpoint, bsm_checkpoint_find(checkpoint, tensors[i].name), &tensor)
                         == BSM_OK);
            CHECK(t, tensor.type == tensors[i].type && tensor.rank == tensors[i].rank && tensor.file == 0);
            CHECK(t, memcmp(tensor.shape, tensors[i].shape, sizeof(int64_t) * (size_t)tensor.rank) == 0);
            CHECK(t, is_pattern(tensor.data, tensor.bytes));
        }
        bsm_checkpoint_close(checkpoint);
        leave();
    }
}

static void files_that_cannot_be_read(struct test *t)
{
    enter();
    refuse(t, in_folder("absent"), BSM_EIO, "absent: cannot be opened: No such file");
    refuse(t, folder, BSM_EIO, "holds neither model.safetensors.index.json nor model.safetensors");
    refuse(t, "/dev/null", BSM_EIO, "is no regular file");
    refuse(t, "", BSM_EINVAL, "path is empty");
    refuse(t, NULL, BSM_EINVAL, "path is NULL");
    write_text("empty", "");
    refuse(t, in_folder("empty"), BSM_EFILE, "empty: the file has 0 bytes");
    write_text("model.safetensors", "12345678{}");
    refuse(t, folder, BSM_EFILE, "model.safetensors: the header is said to have");
    refuse(t, in_folder("none.json"), BSM_EIO, "none.json: cannot be opened");
    leave();
}

/* Shards ----------------------------------------------------------------------------------------------------------- */

static void shards(struct test *t)
{
    bsm_checkpoint *checkpoint;
    enter();
    write_one(t, "2.safetensors", "b");
    write_one(t, "1.safetensors", "c");
    write_text("model.safetensors.index.json",
               "{\"metadata\":{\"total_size\":16},\"weight_map\":{\"b\":\"2.safetensors\",\"c\":\"1.safetensors\"}}");
    for (int way = 0; way < 2; way++) {
        const char *path = way == 0 ? folder : in_folder("model.safetensors.index.json");
        CHECK_OR_RETURN(t, bsm_checkpoint_open(context, path, &checkpoint) == BSM_OK);
        CHECK(t, bsm_checkpoint_file_count(checkpoint) == 2 && bsm_checkpoint_tensor_count(checkpoint) == 2);
        CHECK(t, strcmp(bsm_checkpoint_file_path(checkpoint, 0), in_folder("1.safetensors")) == 0);
        bsm_tensor tensor = { .struct_size = sizeof tensor };
        CHECK(t, bsm_checkpoint_tensor(checkpoint, 0, &tensor) == BSM_OK && strcmp(tensor.name, "c") == 0
                     && tensor.file == 0);
        CHECK(t, bsm_checkpoint_tensor(checkpoint, 1, &tensor) == BSM_OK && strcmp(tensor.name, "b") == 0
                     && tensor.file == 1);
        CHECK(t, bsm_checkpoint_find(checkpoint, "b") == 1 && is_pattern(tensor.data, 8));
        bsm_checkpoint_close(checkpoint);
    }
    /* In the shards' own folder by a relative path. */
    char before[4096];
    CHECK(t, getcwd(before, sizeof before) != NULL && chdir(folder) == 0);
    CHECK(t, bsm_checkpoint_open(context, "model.safetensors.index.json", &checkpoint) == BSM_OK);
    bsm_checkpoint_close(checkpoint);
    CHECK(t, chdir(before) == 0);
    leave();
}

static void lies_of_the_index(struct test *t)
{
    static const struct {
        const char *index;
        bsm_status status;
        const char *words;
    } lies[] = {
        { "", BSM_EFILE, "the index is empty" },
        { "[]", BSM_EFILE, "the index is a list" },
        { "{\"weight_map\":{\"b\":\"1\"}", BSM_EFILE, "of the index is no JSON" },
        { "{}", BSM_EFILE, "lacks the key \"weight_map\"" },
        { "{\"weight_map\":[\"b\"]}", BSM_EFILE, "\"weight_map\" is a list" },
        { "{\"weight_map\":{}}", BSM_EFILE, "\"weight_map\" names no file" },
        { "{\"weight_map\":{\"b\":1}}", BSM_EFILE, "tensor b: the name of a file is wanted, not a number" },
        { "{\"weight_map\":{\"\":\"1\"}}", BSM_EFILE, "a tensor has no name" },
        { "{\"weight_map\":{\"b\\u0000\":\"1\"}}", BSM_EFILE, "the name of tensor b holds a NUL" },
        { "{\"weight_map\":{\"b\":\"\"}}", BSM_EFILE, "\"\" is no name of a file in the same folder" },
        { "{\"weight_map\":{\"b\":\"../1\"}}", BSM_EFILE, "\"../1\" is no name" },
        { "{\"weight_map\":{\"b\":\"/etc/passwd\"}}", BSM_EFILE, "\"/etc/passwd\" is no name" },
        { "{\"weight_map\":{\"b\":\"..\"}}", BSM_EFILE, "\"..\" is no name" },
        { "{\"weight_map\":{\"b\":\"1\\u0000\"}}", BSM_EFILE, "\"1\" is no name" },
        { "{\"weight_map\":{\"b\":\"absent\"}}", BSM_EIO, "absent: cannot be opened" },
        { "{\"weight_map\":{\"b\":\"2\"}}", BSM_EFILE, "tensor b is said to be in 2, but is in no file" },
        { "{\"weight_map\":{\"b\":\"2\",\"c\":\"1\"}}", BSM_EFILE, "tensor b is said to be in 2, but is in 1" },
        { "{\"weight_map\":{\"d\":\"1\"}}", BSM_EFILE, "tensor d is said to be in 1, but is in no file" },
        { "{\"weight_map\":{\"b\":\"1\",\"x\":\"same\"}}", BSM_EFILE, "two tensors are called b" },
        { "{\"weight_map\":{\"b\":\"1\",\"x\":\"gguf\"}}", BSM_EFILE, "gguf: is a GGUF file; the index of shards" },
        { "{\"weight_map\":{\"b\":\"1\",\"x\":\"broken\"}}", BSM_EFILE, "broken: the file has 3 bytes" },
    };
    enter();
    write_one(t, "1", "b");
    write_one(t, "2", "c");
    write_one(t, "same", "b");
    const bsm_tensor none = described("g", BSM_TENSOR_I8, 1, 1, 0);
    CHECK(t, bsm_checkpoint_write(context, in_folder("gguf"), BSM_CHECKPOINT_GGUF, &none, 1, NULL, 0) == BSM_OK);
    write_text("broken", "abc");
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        write_text("index.json", lies[i].index);
        refuse(t, in_folder("index.json"), lies[i].status, lies[i].words);
    }
    write_text("index.json", "{\"weight_map\":{\"b\":\"1\"},\"unknown\":[]}");
    bsm_checkpoint *checkpoint;
    CHECK(t, bsm_checkpoint_open(context, in_folder("index.json"), &checkpoint) == BSM_OK);
    bsm_checkpoint_close(checkpoint);
    leave();
}

/* Every cut and every flipped bit of an index: opened or refused, nothing else. */
static void damaged_index(struct test *t)
{
    static const char index[] = "{\"metadata\":{},\"weight_map\":{\"b\":\"1\",\"c\":\"2\"}}";
    char damaged[sizeof index];
    bsm_checkpoint *checkpoint;
    enter();
    write_one(t, "1", "b");
    write_one(t, "2", "c");
    for (size_t cut = 0; cut < sizeof index - 1; cut++) {
        snprintf(damaged, sizeof damaged, "%.*s", (int)cut, index);
        write_text("index.json", damaged);
        CHECK(t, bsm_checkpoint_open(context, in_folder("index.json"), &checkpoint) == BSM_EFILE && checkpoint == NULL);
    }
    for (size_t bit = 0; bit < 8 * (sizeof index - 1); bit++) {
        memcpy(damaged, index, sizeof index);
        damaged[bit / 8] = (char)(damaged[bit / 8] ^ 1 << bit % 8);
        if (damaged[bit / 8] == '\0') continue;
        write_text("index.json", damaged);
        const bsm_status status = bsm_checkpoint_open(context, in_folder("index.json"), &checkpoint);
        CHECK(t, (status == BSM_OK) == (checkpoint != NULL)
                     && (status == BSM_OK || status == BSM_EFILE || status == BSM_EIO));
        CHECK(t, status != BSM_OK || bsm_checkpoint_tensor_count(checkpoint) == 2);
        bsm_checkpoint_close(checkpoint);
    }
    leave();
}

static void failing_allocations_of_shards(struct test *t)
{
    enter();
    write_one(t, "1", "b");
    write_one(t, "2", "c");
    write_text("index.json", "{\"weight_map\":{\"b\":\"1\",\"c\":\"2\"}}");
    for (int64_t n = 1, last = 0; !last; n++) {
        struct counted counted = { .calls = 0 };
        const bsm_allocator allocator = counted_allocator(&counted);
        const bsm_context_options options = { .struct_size = sizeof options, .threads = 1, .allocator = &allocator };
        bsm_context *counting;
        bsm_checkpoint *checkpoint;
        if (bsm_context_create(&options, &counting) != BSM_OK) abort();
        counted.fail_at = counted.calls + n;
        const bsm_status status = bsm_checkpoint_open(counting, in_folder("index.json"), &checkpoint);
        last = counted.calls < counted.fail_at;
        CHECK(t, status == (last ? BSM_OK : BSM_ENOMEM) && (checkpoint != NULL) == last);
        bsm_checkpoint_close(checkpoint);
        bsm_context_destroy(counting);
        CHECK(t, counted.live == 0 && counted.errors == 0);
    }
    leave();
}

/* Writing ---------------------------------------------------------------------------------------------------------- */

/* A file that cannot be written whole leaves what was there, and nothing beside it. */
static void complete_or_as_before(struct test *t)
{
    const bsm_tensor tensor = described("w", BSM_TENSOR_I8, 1, 200, 0);
    bsm_tensor empty = tensor;
    struct rlimit limit, small;
    struct stat facts;
    enter();
    write_text("x", "before");
    empty.data = NULL;
    CHECK(t, bsm_checkpoint_write(context, in_folder("x"), BSM_CHECKPOINT_GGUF, &empty, 1, NULL, 0) == BSM_EINVAL);
    CHECK(t, strstr(bsm_last_error(), "tensor w: data is NULL") != NULL);
    CHECK(t, bsm_checkpoint_write(context, in_folder("no/x"), BSM_CHECKPOINT_GGUF, &tensor, 1, NULL, 0) == BSM_EIO);
    CHECK(t, bsm_checkpoint_write(context, folder, BSM_CHECKPOINT_GGUF, &tensor, 1, NULL, 0) == BSM_EIO);
    CHECK(t, bsm_checkpoint_write(context, "", BSM_CHECKPOINT_GGUF, &tensor, 1, NULL, 0) == BSM_EINVAL);
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit, small.rlim_cur = 150;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const bsm_status status =
        bsm_checkpoint_write(context, in_folder("x"), BSM_CHECKPOINT_SAFETENSORS, &tensor, 1, NULL, 0);
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK(t, status == BSM_EIO && strstr(bsm_last_error(), "could not be written: File too large") != NULL);
    CHECK(t, entries(false) == 1 && stat(in_folder("x"), &facts) == 0 && facts.st_size == 6);
    CHECK(t, bsm_checkpoint_write(context, in_folder("x"), BSM_CHECKPOINT_SAFETENSORS, &tensor, 1, NULL, 0) == BSM_OK);
    CHECK(t, entries(false) == 1 && stat(in_folder("x"), &facts) == 0 && facts.st_size > 200);
    leave();
}

int main(int argc, char **argv)
{
    if (bsm_context_create(NULL, &context) != BSM_OK) return 1;
    for (int i = 0; i < (int)sizeof pattern; i++) pattern[i] = (unsigned char)(7 * i + 3);
    static const struct test_case cases[] = {
        TEST(round_trips),
        TEST(files_that_cannot_be_read),
        TEST(shards),
        TEST(lies_of_the_index),
        TEST(damaged_index),
        TEST(failing_allocations_of_shards),
        TEST(complete_or_as_before),
    };
    const int status = TEST_MAIN(argc, argv, cases);
    bsm_context_destroy(context);
    return status;
}
