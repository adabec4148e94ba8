/* What bsm_writer promises: nothing is half written, wrong calls say what is wrong with them, memory and files may
 * fail. */
#include "counted.h"
#include "written_folder.h"

/* Complete or absent ----------------------------------------------------------------------------------------------- */

static bsm_writer *half_written(struct test *t, const char *path, struct made *made)
{
    bsm_writer *writer;
    *made = (struct made){ .weight = { .name = "w", .convention = BSM_CONVENTION_MODELOPT, .format = BSM_MXFP4,
                                       .rows = 4, .columns = 64 } };
    GOOD(t, bsm_writer_create(context, path, NULL, &writer));
    announce(t, writer, made);
    GOOD(t, bsm_writer_begin(writer));
    return writer;
}

static void nothing_before_the_end(struct test *t)
{
    struct made made;
    struct stat facts;
    enter();
    write_text("old.safetensors", "old");
    chmod(in_folder("old.safetensors"), 0640);
    CHECK(t, symlink("old.safetensors", in_folder("link.safetensors")) == 0);
    bsm_writer *writer = half_written(t, in_folder("link.safetensors"), &made);
    put(t, writer, &made);
    CHECK(t, strcmp(read_text("old.safetensors"), "old") == 0 && entries(folder, false) == 3);
    bsm_writer_destroy(writer);
    forget(&made);
    CHECK(t, strcmp(read_text("old.safetensors"), "old") == 0 && entries(folder, false) == 2);
    writer = half_written(t, in_folder("link.safetensors"), &made);
    put(t, writer, &made);
    GOOD(t, bsm_writer_finish(writer));
    bsm_writer_destroy(writer);
    forget(&made);
    CHECK(t,
          entries(folder, false) == 2 && lstat(in_folder("link.safetensors"), &facts) == 0 && S_ISLNK(facts.st_mode));
    CHECK(t, stat(in_folder("old.safetensors"), &facts) == 0 && (facts.st_mode & 0777) == 0640 && facts.st_size > 100);
    leave();
}

static void folders_come_and_go(struct test *t)
{
    struct made made;
    enter();
    bsm_writer *writer = half_written(t, in_folder("x"), &made);
    put(t, writer, &made);
    CHECK(t, entries(in_folder("x"), false) == 1 && !exists("x/model.safetensors"));
    bsm_writer_destroy(writer);
    CHECK(t, entries(folder, false) == 0);
    forget(&made);
    mkdir(in_folder("x"), 0777);
    writer = half_written(t, in_folder("x"), &made);
    bsm_writer_destroy(writer);
    CHECK(t, entries(in_folder("x"), false) == 0);
    forget(&made);
    /* Another file cannot get its name: none keeps its own. */
    writer = half_written(t, in_folder("x"), &made);
    put(t, writer, &made);
    mkdir(in_folder("x/config.json"), 0777);
    CHECK(t, bsm_writer_finish(writer) == BSM_EIO && strstr(bsm_last_error(), "is a directory") != NULL);
    bsm_writer_destroy(writer);
    CHECK(t, entries(in_folder("x"), false) == 1);
    forget(&made);
    leave();
}

/* Wrong calls ------------------------------------------------------------------------------------------------------ */

#define REFUSED(t, call, status, words) \
    do { \
        const bsm_status got = (call); \
        if (got != (status) || strstr(bsm_last_error(), words) == NULL) \
            FAIL(t, "%s: status %d, \"%s\"", #call, (int)got, bsm_last_error()); \
    } while (0)

static void wrong_beginnings(struct test *t)
{
    static bsm_writer_files files;
    char path[5000];
    bsm_writer *writer = (bsm_writer *)(void *)path;
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    bsm_writer_options o = { .struct_size = sizeof o };
    REFUSED(t, bsm_writer_create(context, "x", NULL, NULL), BSM_EINVAL, "writer is NULL");
    REFUSED(t, bsm_writer_create(NULL, "x", NULL, &writer), BSM_EINVAL, "context is NULL");
    CHECK(t, writer == NULL);
    REFUSED(t, bsm_writer_create(context, NULL, NULL, &writer), BSM_EINVAL, "path is NULL");
    REFUSED(t, bsm_writer_create(context, "", NULL, &writer), BSM_EINVAL, "path is empty");
    REFUSED(t, bsm_writer_create(context, path, NULL, &writer), BSM_EIO, "too long a name");
    o.model = "";
    REFUSED(t, bsm_writer_create(context, "x", &o, &writer), BSM_EINVAL, "options->model is empty");
    o = (bsm_writer_options){ .struct_size = sizeof o, .metadata_count = -1 };
    REFUSED(t, bsm_writer_create(context, "x", &o, &writer), BSM_EINVAL, "options->metadata_count=-1");
    o.metadata_count = 1;
    REFUSED(t, bsm_writer_create(context, "x", &o, &writer), BSM_EINVAL,
            "options->metadata is NULL with metadata_count=1");
    o.metadata = &(bsm_metadata){ "key", NULL };
    REFUSED(t, bsm_writer_create(context, "x", &o, &writer), BSM_EINVAL, "options->metadata[0].value is NULL");
    o = (bsm_writer_options){ .struct_size = 3 };
    REFUSED(t, bsm_writer_create(context, "x", &o, &writer), BSM_EINVAL, "options->struct_size is 3");
    o = (bsm_writer_options){ .struct_size = sizeof o, .files = &files };
    REFUSED(t, bsm_writer_create(context, "x", &o, &writer), BSM_EINVAL, "options->files->reads is NULL");
    bsm_writer_destroy(NULL);
    CHECK(t, bsm_writer_path(NULL) == NULL && bsm_writer_bytes(NULL) == 0 && bsm_writer_note(NULL, 0) == NULL);
}

static void wrong_announcements(struct test *t)
{
    bsm_writer *w;
    bsm_matrix m;
    int64_t n;
    bsm_writer_weight x = { .struct_size = sizeof x, .convention = BSM_CONVENTION_MODELOPT, .format = BSM_MXFP4 };
    bsm_tensor tensor = passed_on;
    GOOD(t, bsm_writer_create(context, "x", NULL, &w));
    REFUSED(t, bsm_writer_add_weight(NULL, &x, &n, &m), BSM_EINVAL, "writer is NULL");
    REFUSED(t, bsm_writer_add_weight(w, NULL, &n, &m), BSM_EINVAL, "weight is NULL");
    REFUSED(t, bsm_writer_add_weight(w, &x, NULL, &m), BSM_EINVAL, "number is NULL");
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, NULL), BSM_EINVAL, "matrix is NULL");
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, &m), BSM_EINVAL, "weight->name is NULL");
    x.name = "w";
    x.rows = -3;
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, &m), BSM_EINVAL, "rows=-3 is negative");
    x.rows = x.columns = INT64_C(1) << 40;
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, &m), BSM_EOVERFLOW, "weight w: ");
    x.columns = 0, x.batch = INT64_C(1) << 40;
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, &m), BSM_EOVERFLOW, "weight w: ");
    x = (bsm_writer_weight){ .struct_size = sizeof x, .name = "w", .convention = BSM_CONVENTION_MODELOPT,
                             .format = BSM_MXFP4, .rows = 4, .columns = 32, .tensor_scale = true };
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, &m), BSM_EINVAL,
            "tensor_scale is true, but mxfp4 of modelopt has none");
    x.tensor_scale = false, x.format = BSM_MXFP6_E2M3, x.columns = 33;
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, &m), BSM_EINVAL, "columns=33 are not whole groups of 4");
    x.format = BSM_MXFP6_E3M2, x.columns = 34;
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, &m), BSM_EINVAL, "columns=34 are not whole groups of 4");
    x.columns = 32, x.format = BSM_MXINT8;
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, &m), BSM_EUNSUPPORTED, "weight w: modelopt has nvfp4, mxfp4");
    x.convention = BSM_CONVENTION_DEEPSEEK;
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, &m), BSM_EUNSUPPORTED,
            "weights are written as modelopt, compressed_tensors");
    x.convention = (bsm_convention)99;
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, &m), BSM_EUNSUPPORTED, "weights are written as");
    x.convention = BSM_CONVENTION_GGUF, x.format = BSM_MXFP4;
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, &m), BSM_EINVAL, "convention=gguf goes with an output called X.gguf");
    x.convention = BSM_CONVENTION_GPT_OSS, x.columns = 48;
    REFUSED(t, bsm_writer_add_weight(w, &x, &n, &m), BSM_EINVAL, "columns=48 are not whole blocks of 32");
    REFUSED(t, bsm_writer_add_tensor(w, NULL, &n), BSM_EINVAL, "tensor is NULL");
    REFUSED(t, bsm_writer_add_tensor(w, &tensor, NULL), BSM_EINVAL, "number is NULL");
    tensor.bytes = 7;
    REFUSED(t, bsm_writer_add_tensor(w, &tensor, &n), BSM_EINVAL, "bytes=7, but its shape and type need 24");
    tensor.bytes = 0, tensor.type = BSM_TENSOR_MXFP4;
    REFUSED(t, bsm_writer_add_tensor(w, &tensor, &n), BSM_EINVAL, ".safetensors files have no type MXFP4");
    REFUSED(t, bsm_writer_put(w, 0, "", 0), BSM_EINVAL, "has not begun");
    REFUSED(t, bsm_writer_finish(w), BSM_EINVAL, "has not begun");
    CHECK(t, bsm_writer_bytes(w) == 0);
    bsm_writer_destroy(w);
    REFUSED(t, bsm_writer_check_format(BSM_CONVENTION_GGUF, BSM_MXFP8_E4M3), BSM_EUNSUPPORTED,
            "gguf has mxfp4 and nvfp4");
    CHECK(t, bsm_writer_check_format(BSM_CONVENTION_GGUF, BSM_MXFP4) == BSM_OK);
}

static void names_twice(struct test *t)
{
    bsm_writer *w;
    int64_t n;
    bsm_tensor tensor = passed_on;
    enter();
    for (int wrong = 0; wrong < 2; wrong++) {
        GOOD(t, bsm_writer_create(context, in_folder("x"), NULL, &w));
        tensor.name = wrong == 0 ? "a" : "\xff";
        GOOD(t, bsm_writer_add_tensor(w, &tensor, &n));
        if (wrong == 0) GOOD(t, bsm_writer_add_tensor(w, &tensor, &n));
        REFUSED(t, bsm_writer_begin(w), BSM_EINVAL, wrong == 0 ? "two tensors are called a" : "no UTF-8");
        REFUSED(t, bsm_writer_begin(w), BSM_EINVAL, "failed");
        bsm_writer_destroy(w);
        CHECK(t, entries(folder, false) == 0);
    }
    leave();
}

static void wrong_bytes(struct test *t)
{
    struct made made = { .weight = { .name = "w", .convention = BSM_CONVENTION_COMPRESSED_TENSORS, .format = BSM_NVFP4,
                                     .rows = 4, .columns = 64, .tensor_scale = true } };
    bsm_writer *w;
    int64_t n;
    float zero = 0;
    enter();
    GOOD(t, bsm_writer_create(context, in_folder("x.safetensors"), NULL, &w));
    announce(t, w, &made);
    GOOD(t, bsm_writer_add_tensor(w, &passed_on, &n));
    GOOD(t, bsm_writer_begin(w));
    REFUSED(t, bsm_writer_add_tensor(w, &passed_on, &n), BSM_EINVAL, "nothing more can be announced");
    REFUSED(t, bsm_writer_put(w, 1, "", 0), BSM_EINVAL, "number=1; 1 tensors were announced");
    REFUSED(t, bsm_writer_put(w, -1, "", 0), BSM_EINVAL, "number=-1");
    REFUSED(t, bsm_writer_put(w, 0, NULL, 4), BSM_EINVAL, "data is NULL with bytes=4");
    REFUSED(t, bsm_writer_put(w, 0, "", -4), BSM_EINVAL, "bytes=-4 is negative");
    REFUSED(t, bsm_writer_put(w, 0, folder, 25), BSM_EINVAL, "bytes=25, but of the 24 that were announced 24 are left");
    GOOD(t, bsm_writer_put(w, 0, folder, 20));
    REFUSED(t, bsm_writer_put(w, 0, folder, 5), BSM_EINVAL, "bytes=5, but of the 24 that were announced 4 are left");
    REFUSED(t, bsm_writer_put_weight(w, 1, &made.matrix, NULL), BSM_EINVAL, "number=1; 1 weights were announced");
    REFUSED(t, bsm_writer_put_weight(w, 0, NULL, NULL), BSM_EINVAL, "matrix is NULL");
    REFUSED(t, bsm_writer_put_weight(w, 0, &made.matrix, &zero), BSM_EINVAL,
            "input_scale is given; it was announced without");
    bsm_matrix m = made.matrix;
    m.rows = 3;
    REFUSED(t, bsm_writer_put_weight(w, 0, &m, NULL), BSM_EINVAL, "weight w: matrix->rows=3; 4 is wanted");
    m = made.matrix, m.tensor_scale_use = BSM_TENSOR_SCALE_MULTIPLIES;
    REFUSED(t, bsm_writer_put_weight(w, 0, &m, NULL), BSM_EINVAL, "matrix->tensor_scale_use=0; 1 is wanted");
    m = made.matrix, m.packing = BSM_PACKING_HIGH_FIRST;
    REFUSED(t, bsm_writer_put_weight(w, 0, &m, NULL), BSM_EINVAL, "matrix->packing=2; 0 is wanted");
    m = made.matrix, m.scale_layout.kind = BSM_LAYOUT_128X4;
    REFUSED(t, bsm_writer_put_weight(w, 0, &m, NULL), BSM_EINVAL, "matrix->scale_layout.kind=");
    m = made.matrix, m.tensor_scale = NULL;
    REFUSED(t, bsm_writer_put_weight(w, 0, &m, NULL), BSM_EINVAL,
            "matrix->tensor_scale is NULL; it was announced with one");
    m = made.matrix, m.tensor_scale = &zero;
    REFUSED(t, bsm_writer_put_weight(w, 0, &m, NULL), BSM_EINVAL, "*matrix->tensor_scale=0; a tensor scale is finite");
    m = made.matrix, m.data = NULL;
    REFUSED(t, bsm_writer_put_weight(w, 0, &m, NULL), BSM_EINVAL, "weight w: ");
    put(t, w, &made);
    REFUSED(t, bsm_writer_put_weight(w, 0, &made.matrix, NULL), BSM_EINVAL, "0 are left");
    REFUSED(t, bsm_writer_finish(w), BSM_EINVAL, "tensor kept.weight: of 24 bytes 20 were put");
    REFUSED(t, bsm_writer_put(w, 0, folder, 4), BSM_EINVAL, "failed");
    bsm_writer_destroy(w);
    CHECK(t, entries(folder, false) == 0);
    forget(&made);
    leave();
}

/* Files of the caller's, and memory that fails --------------------------------------------------------------------- */

struct kept { unsigned char bytes[4096]; int64_t end; int calls, fail_at; char paths[256]; };

static bool counts(struct kept *kept) { return ++kept->calls != kept->fail_at; }
static bool note_read(void *user, const char *path) { return path != NULL && counts(user); }
static bool note_folder(void *user, const char *path) { return path != NULL && counts(user); }

static void *note_create(void *user, const char *path)
{
    struct kept *kept = user;
    if (!counts(kept)) return NULL;
    strncat(kept->paths, path, sizeof kept->paths - strlen(kept->paths) - 2);
    strcat(kept->paths, ";");
    return kept;
}

static bool keep_bytes(void *user, void *file, int64_t at, const void *data, size_t bytes)
{
    struct kept *kept = user;
    if (file != kept || !counts(kept) || at + (int64_t)bytes > (int64_t)sizeof kept->bytes) return false;
    if (strstr(kept->paths, "config") == NULL) memcpy(kept->bytes + at, data, bytes);
    if (strstr(kept->paths, "config") == NULL && at + (int64_t)bytes > kept->end) kept->end = at + (int64_t)bytes;
    return true;
}

/* One checkpoint into the caller's memory; what the first failing call returned. */
static bsm_status write_kept(struct test *t, bsm_context *its, struct kept *kept, const char *path, const char *model)
{
    const bsm_writer_files files = { note_read, note_folder, note_create, keep_bytes, kept };
    const bsm_writer_options options = { .struct_size = sizeof options, .model = model, .files = kept ? &files : NULL };
    const bsm_writer_weight weight = { .struct_size = sizeof weight, .name = "w", .convention = BSM_CONVENTION_MODELOPT,
                                       .format = BSM_MXFP4, .rows = 4, .columns = 64 };
    unsigned char codes[128], scales[8];
    bsm_writer *writer = NULL;
    bsm_matrix m;
    int64_t number, other;
    memset(codes, 0x21, sizeof codes);
    memset(scales, 0x7f, sizeof scales);
    bsm_status status = bsm_writer_create(its, path, &options, &writer);
    if (status == BSM_OK) status = bsm_writer_add_weight(writer, &weight, &number, &m);
    if (status == BSM_OK) status = bsm_writer_add_tensor(writer, &passed_on, &other);
    if (status == BSM_OK) status = bsm_writer_begin(writer);
    if (status == BSM_OK) m.data = codes, m.scales = scales, status = bsm_writer_put_weight(writer, number, &m, NULL);
    if (status == BSM_OK) status = bsm_writer_put(writer, other, codes, 24);
    if (status == BSM_OK) status = bsm_writer_finish(writer);
    if (status != BSM_OK) CHECK(t, bsm_last_error()[0] != '\0');
    bsm_writer_destroy(writer);
    return status;
}

static void files_of_the_caller(struct test *t)
{
    static struct kept kept;
    bsm_checkpoint *checkpoint;
    kept = (struct kept){ .fail_at = 0 };
    GOOD(t, write_kept(t, context, &kept, "nowhere/x", NULL));
    CHECK(t,
          strcmp(kept.paths, "nowhere/x/model.safetensors;nowhere/x/config.json;nowhere/x/hf_quant_config.json;") == 0);
    static _Alignas(64) unsigned char file[sizeof kept.bytes];
    memcpy(file, kept.bytes, sizeof file);
    GOOD(t, bsm_checkpoint_parse(context, file, (size_t)kept.end, &checkpoint));
    CHECK(t, bsm_checkpoint_tensor_count(checkpoint) == 3);
    bsm_checkpoint_close(checkpoint);
    const int calls = kept.calls;
    CHECK(t, calls > 5);
    for (int i = 1; i <= calls; i++) {
        kept = (struct kept){ .fail_at = i };
        REFUSED(t, write_kept(t, context, &kept, "nowhere/x", NULL), BSM_EIO, "nowhere/x");
        CHECK(t, kept.calls == i);
    }
}

static void memory_fails(struct test *t)
{
    int64_t call = 1;
    enter();
    mkdir(in_folder("hf"), 0777);
    write_text("hf/config.json", "{\"a\": 1}");
    write_text("hf/tokenizer.json", "{}");
    char model[256], path[256];
    snprintf(model, sizeof model, "%s/hf", folder);
    snprintf(path, sizeof path, "%s/x", folder);
    for (bsm_status status = BSM_ENOMEM; status != BSM_OK && call < 1000; call++) {
        struct counted counted = { .fail_at = 0 };
        const bsm_allocator allocator = counted_allocator(&counted);
        const bsm_context_options options = { .struct_size = sizeof options, .threads = 1, .allocator = &allocator };
        bsm_context *its;
        GOOD(t, bsm_context_create(&options, &its));
        counted.fail_at = counted.calls + call;
        status = write_kept(t, its, NULL, path, model);
        CHECK(t, status == BSM_OK || status == BSM_ENOMEM);
        CHECK(t, entries(folder, false) == (status == BSM_OK ? 2 : 1));
        counted.fail_at = 0;
        bsm_context_destroy(its);
        CHECK(t, counted.live == 0 && counted.errors == 0);
    }
    CHECK(t, call > 30 && call < 1000);
    leave();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(nothing_before_the_end), TEST(folders_come_and_go), TEST(wrong_beginnings),
        TEST(wrong_announcements), TEST(names_twice), TEST(wrong_bytes),
        TEST(files_of_the_caller), TEST(memory_fails),
    };
    if (bsm_context_create(NULL, &context) != BSM_OK) abort();
    const int status = TEST_MAIN(argc, argv, cases);
    bsm_context_destroy(context);
    return status;
}
