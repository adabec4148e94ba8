/* .npy files on disk: round trips, files that cannot be read or written, and what is left behind afterwards. */
#include "blockscale/npy.h"
#include "test.h"

#include "counted.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every test works in a folder of its own and removes it. */
static char folder[64];

static void enter_folder(struct test *t)
{
    snprintf(folder, sizeof folder, "/tmp/blockscale-test-XXXXXX");
    CHECK(t, mkdtemp(folder) != NULL && chmod(folder, 0755) == 0);
}

static const char *in_folder(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* Entries of the folder; removes them if wanted. */
static int count_entries(bool and_remove)
{
    DIR *directory = opendir(folder);
    int count = 0;
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        count++;
        if (and_remove) unlinkat(dirfd(directory), entry->d_name, 0);
    }
    if (directory != NULL) closedir(directory);
    return count;
}

static void leave_folder(void)
{
    count_entries(true);
    rmdir(folder);
}

static void put_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "w");
    if (file == NULL || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0) abort();
}

static bool file_is(const char *path, const void *data, size_t bytes)
{
    char buffer[4096];
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    const size_t got = fread(buffer, 1, sizeof buffer, file);
    fclose(file);
    return got == bytes && memcmp(buffer, data, bytes) == 0;
}

static void round_trips(struct test *t)
{
    static const int64_t shapes[][BSM_NPY_MAX_RANK] = { { 0 }, { 0 }, { 7 }, { 5, 3 }, { 2, 0 }, { 2, 3, 4 },
                                                   { 1, 2, 1, 2, 1, 2, 1, 2 } };
    static const int ranks[] = { 0, 1, 1, 2, 2, 3, 8 };
    unsigned char data[8 * 24];
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    enter_folder(t);
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)rnd(t);
    for (int type = 0; type < BSM_NPY_TYPE_COUNT; type++)
        for (size_t s = 0; s < sizeof ranks / sizeof ranks[0]; s++) {
            bsm_npy array = { .struct_size = sizeof array };
            const char *path = in_folder("array.npy");
            size_t bytes = bsm_npy_type_bytes(type);
            for (int i = 0; i < ranks[s]; i++) bytes *= (size_t)shapes[s][i];
            CHECK_OR_RETURN(t, bsm_npy_write(path, (bsm_npy_type)type, ranks[s], shapes[s], bytes > 0 ? data : NULL)
                                   == BSM_OK);
            CHECK_OR_RETURN(t, bsm_npy_read(context, path, &array) == BSM_OK);
            CHECK(t, array.type == (bsm_npy_type)type && array.rank == ranks[s] && !array.fortran_order
                         && array.bytes == bytes);
            CHECK(t, memcmp(array.shape, shapes[s], (size_t)ranks[s] * sizeof(int64_t)) == 0);
            CHECK(t, bytes == 0 ? array.data == NULL : memcmp(array.data, data, bytes) == 0);
            bsm_npy_release(context, &array);
            CHECK(t, count_entries(false) == 1);
        }
    leave_folder();
    bsm_context_destroy(context);
}

/* Versions 2 and 3 are read by other code than version 1. */
static void later_versions_from_disk(struct test *t)
{
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    enter_folder(t);
    for (int version = 1; version <= 3; version++) {
        char file[128] = "\x93NUMPY";
        const size_t at = version == 1 ? 10 : 12, bytes = at + sizeof header - 1 + 8;
        file[6] = (char)version;
        file[8] = (char)(sizeof header - 1);
        memcpy(file + at, header, sizeof header - 1);
        for (size_t cut = 0; cut <= bytes; cut++) {
            bsm_npy array = { .struct_size = sizeof array };
            put_file(in_folder("array.npy"), file, cut);
            const bsm_status status = bsm_npy_read(context, in_folder("array.npy"), &array);
            CHECK(t, status == (cut == bytes ? BSM_OK : BSM_EFILE));
            CHECK(t, status == BSM_OK ? array.bytes == 8
                                      : strstr(bsm_last_error(), "array.npy: ") != NULL && array.data == NULL);
            bsm_npy_release(context, &array);
        }
    }
    leave_folder();
    bsm_context_destroy(context);
}

static void unreadable(struct test *t)
{
    bsm_context *context;
    bsm_npy array = { .struct_size = sizeof array };
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    enter_folder(t);
    CHECK(t, bsm_npy_read(context, in_folder("missing.npy"), &array) == BSM_EIO);
    CHECK(t, strstr(bsm_last_error(), "missing.npy: cannot be opened: No such file") != NULL);
    CHECK(t, bsm_npy_read(context, folder, &array) == BSM_EIO && strstr(bsm_last_error(), "is a directory") != NULL);
    CHECK(t,
          bsm_npy_read(context, "/dev/null", &array) == BSM_EIO && strstr(bsm_last_error(), "no regular file") != NULL);
    CHECK_OR_RETURN(t, mkfifo(in_folder("pipe"), 0600) == 0);
    CHECK(t, bsm_npy_read(context, in_folder("pipe"), &array) == BSM_EIO
                 && strstr(bsm_last_error(), "no regular file") != NULL);
    put_file(in_folder("empty.npy"), "", 0);
    CHECK(t, bsm_npy_read(context, in_folder("empty.npy"), &array) == BSM_EFILE
                 && strstr(bsm_last_error(), "empty") != NULL);
    put_file(in_folder("secret.npy"), "x", 1);
    CHECK_OR_RETURN(t, chmod(in_folder("secret.npy"), 0) == 0);
    const bool root = geteuid() == 0;
    if (root) CHECK_OR_RETURN(t, seteuid(65534) == 0);
    CHECK(t, bsm_npy_read(context, in_folder("secret.npy"), &array) == BSM_EIO);
    CHECK(t, strstr(bsm_last_error(), "Permission denied") != NULL);
    if (root) CHECK_OR_RETURN(t, seteuid(0) == 0);
    CHECK(t, bsm_npy_read(context, NULL, &array) == BSM_EINVAL && bsm_npy_read(context, "", &array) == BSM_EINVAL);
    CHECK(t, bsm_npy_read(NULL, "x.npy", &array) == BSM_EINVAL && bsm_npy_read(context, "x.npy", NULL) == BSM_EINVAL);
    CHECK(t, array.data == NULL);
    leave_folder();
    bsm_context_destroy(context);
}

static void every_allocation_failing(struct test *t)
{
    static const float data[6] = { 1, 2, 3, 4, 5, 6 };
    struct counted counted = { 0 };
    const bsm_allocator allocator = counted_allocator(&counted);
    const bsm_context_options options = { .struct_size = sizeof options, .allocator = &allocator };
    bsm_context *context;
    bsm_npy array = { .struct_size = sizeof array };
    CHECK_OR_RETURN(t, bsm_context_create(&options, &context) == BSM_OK);
    enter_folder(t);
    const char *path = in_folder("array.npy");
    CHECK_OR_RETURN(t, bsm_npy_write(path, BSM_NPY_FP32, 2, (const int64_t[]){ 2, 3 }, data) == BSM_OK);
    const int64_t before = counted.calls;
    CHECK_OR_RETURN(t, bsm_npy_read(context, path, &array) == BSM_OK);
    const int64_t calls = counted.calls - before;
    bsm_npy_release(context, &array);
    CHECK(t, calls == 2);                                      /* the header's text, the data */
    for (int64_t n = 1; n <= calls; n++) {
        const int64_t live = counted.live;
        counted.fail_at = counted.calls + n;
        CHECK(t, bsm_npy_read(context, path, &array) == BSM_ENOMEM);
        CHECK(t,
              array.data == NULL && counted.live == live && strstr(bsm_last_error(), "array.npy: no memory") != NULL);
        counted.fail_at = 0;
        CHECK(t, bsm_npy_read(context, path, &array) == BSM_OK);
        bsm_npy_release(context, &array);
    }
    bsm_context_destroy(context);
    CHECK(t, counted.live == 0 && counted.errors == 0);
    leave_folder();
}

static void refused_arrays(struct test *t)
{
    static const int64_t shape[9] = { 2, 3, 1, 1, 1, 1, 1, 1, 1 }, negative[2] = { 2, -3 }, huge[2] = { INT64_MAX, 2 },
                         hollow[3] = { INT64_MAX, 0, 2 };
    char data[64] = { 0 }, header[BSM_NPY_MAX_HEADER];
    size_t bytes;
    enter_folder(t);
    const char *path = in_folder("array.npy");
    CHECK(t, bsm_npy_write(NULL, BSM_NPY_FP32, 2, shape, data) == BSM_EINVAL);
    CHECK(t, bsm_npy_write("", BSM_NPY_FP32, 2, shape, data) == BSM_EINVAL);
    CHECK(t, bsm_npy_write(path, BSM_NPY_TYPE_COUNT, 2, shape, data) == BSM_EINVAL);
    CHECK(t, bsm_npy_write(path, (bsm_npy_type)-1, 2, shape, data) == BSM_EINVAL);
    CHECK(t, bsm_npy_write(path, BSM_NPY_FP32, -1, shape, data) == BSM_EINVAL);
    CHECK(t, bsm_npy_write(path, BSM_NPY_FP32, 9, shape, data) == BSM_EINVAL);
    CHECK(t, bsm_npy_write(path, BSM_NPY_FP32, 2, NULL, data) == BSM_EINVAL);
    CHECK(t, bsm_npy_write(path, BSM_NPY_FP32, 2, shape, NULL) == BSM_EINVAL);
    CHECK(t, bsm_npy_write(path, BSM_NPY_FP32, 2, negative, data) == BSM_EINVAL
                 && strstr(bsm_last_error(), "shape[1]=-3") != NULL);
    CHECK(t, bsm_npy_write(path, BSM_NPY_INT8, 2, huge, data) == BSM_EOVERFLOW);
    CHECK(t, bsm_npy_write(path, BSM_NPY_INT8, 3, hollow, data) == BSM_EOVERFLOW);
    CHECK(t, bsm_npy_header(BSM_NPY_FP32, 2, shape, NULL, 512, &bytes) == BSM_EINVAL);
    CHECK(t, bsm_npy_header(BSM_NPY_FP32, 2, shape, header, sizeof header, NULL) == BSM_EINVAL);
    CHECK(t, bsm_npy_header(BSM_NPY_FP32, 2, shape, header, 0, &bytes) == BSM_EINVAL);
    CHECK(t, count_entries(false) == 0);
    leave_folder();
}

/* The longest header there is fits BSM_NPY_MAX_HEADER. */
static void longest_header(struct test *t)
{
    int64_t shape[BSM_NPY_MAX_RANK];
    unsigned char header[BSM_NPY_MAX_HEADER];
    size_t bytes = 0;
    for (int i = 0; i < BSM_NPY_MAX_RANK; i++) shape[i] = i == 7 ? 0 : 1;
    shape[0] = INT64_MAX;
    CHECK(t, bsm_npy_header(BSM_NPY_BYTES, 8, shape, header, sizeof header, &bytes) == BSM_OK);
    CHECK(t, bytes % 64 == 0 && bytes <= BSM_NPY_MAX_HEADER && header[bytes - 1] == '\n');
}

static void unwritable(struct test *t)
{
    static const int64_t shape[1] = { 64 };
    static const char data[64] = { 1 }, old[] = "what was there";
    enter_folder(t);
    const char *path = in_folder("array.npy");
    CHECK(t, bsm_npy_write("/dev/full", BSM_NPY_INT8, 1, shape, data) == BSM_EIO);
    CHECK(t, strstr(bsm_last_error(), "No space left on device") != NULL);
    struct stat facts;
    CHECK(t, stat("/dev/full", &facts) == 0 && S_ISCHR(facts.st_mode));
    CHECK(t, bsm_npy_write("/dev/null", BSM_NPY_INT8, 1, shape, data) == BSM_OK);
    CHECK(t, stat("/dev/null", &facts) == 0 && S_ISCHR(facts.st_mode));
    CHECK(t, bsm_npy_write(folder, BSM_NPY_INT8, 1, shape, data) == BSM_EIO
                 && strstr(bsm_last_error(), "is a directory") != NULL);
    CHECK(t, bsm_npy_write(in_folder("no/array.npy"), BSM_NPY_INT8, 1, shape, data) == BSM_EIO);
    CHECK(t, count_entries(false) == 0);

    put_file(path, old, sizeof old);
    CHECK_OR_RETURN(t, chmod(folder, 0777) == 0);              /* the folder would allow a rename */
    const bool root = geteuid() == 0;
    if (root) CHECK_OR_RETURN(t, seteuid(65534) == 0);
    else CHECK_OR_RETURN(t, chmod(path, 0400) == 0);
    CHECK(t, bsm_npy_write(path, BSM_NPY_INT8, 1, shape, data) == BSM_EIO
                 && strstr(bsm_last_error(), "Permission denied") != NULL);
    if (root) CHECK_OR_RETURN(t, seteuid(0) == 0);
    CHECK(t, file_is(path, old, sizeof old) && count_entries(false) == 1);
    leave_folder();
}

/* The disk fills up in the middle: a limit on the size of files does the same to write(). */
static void cut_off_in_the_middle(struct test *t)
{
    static const int64_t shape[1] = { 3000 };
    static const char data[3000] = { 1 }, old[] = "what was there";
    struct rlimit limit, tight;
    CHECK_OR_RETURN(t, getrlimit(RLIMIT_FSIZE, &limit) == 0);
    enter_folder(t);
    const char *path = in_folder("array.npy"), *other = in_folder("other.npy");
    put_file(path, old, sizeof old);
    signal(SIGXFSZ, SIG_IGN);
    tight = limit;
    for (rlim_t bytes = 0; bytes < 3128; bytes += 391) {
        tight.rlim_cur = bytes;
        CHECK_OR_RETURN(t, setrlimit(RLIMIT_FSIZE, &tight) == 0);
        const bsm_status onto = bsm_npy_write(path, BSM_NPY_INT8, 1, shape, data);
        const bool named = strstr(bsm_last_error(), "File too large") != NULL;
        const bsm_status beside = bsm_npy_write(other, BSM_NPY_INT8, 1, shape, data);
        CHECK_OR_RETURN(t, setrlimit(RLIMIT_FSIZE, &limit) == 0);
        CHECK(t, onto == BSM_EIO && beside == BSM_EIO && named);
        CHECK(t, file_is(path, old, sizeof old) && count_entries(false) == 1);
    }
    signal(SIGXFSZ, SIG_DFL);
    CHECK(t, bsm_npy_write(path, BSM_NPY_INT8, 1, shape, data) == BSM_OK && count_entries(false) == 1);
    leave_folder();
}

/* Links stay links, modes stay modes, and a name may be as long as names get. */
static void what_a_target_keeps(struct test *t)
{
    static const int64_t shape[1] = { 4 };
    char longest[256];
    struct stat facts;
    enter_folder(t);
    put_file(in_folder("real.npy"), "old", 3);
    CHECK_OR_RETURN(t, chmod(in_folder("real.npy"), 0640) == 0 && symlink("real.npy", in_folder("link.npy")) == 0);
    CHECK(t, bsm_npy_write(in_folder("link.npy"), BSM_NPY_INT8, 1, shape, "abcd") == BSM_OK);
    CHECK(t, lstat(in_folder("link.npy"), &facts) == 0 && S_ISLNK(facts.st_mode));
    CHECK(t, lstat(in_folder("real.npy"), &facts) == 0 && facts.st_size == 132 && (facts.st_mode & 07777) == 0640);
    const mode_t mask = umask(027);
    memset(longest, 'n', 255);
    longest[255] = '\0';
    CHECK(t, bsm_npy_write(in_folder(longest), BSM_NPY_INT8, 1, shape, "abcd") == BSM_OK);
    umask(mask);
    CHECK(t, lstat(in_folder(longest), &facts) == 0 && (facts.st_mode & 07777) == 0640);
    CHECK(t, count_entries(false) == 3);
    leave_folder();
}

/* A link to no file yet: the file comes to where it leads, however many links there are on the way. */
static void links_to_no_file_stay_links(struct test *t)
{
    static const int64_t shape[1] = { 4 };
    struct stat facts;
    enter_folder(t);
    CHECK_OR_RETURN(t, symlink("second.npy", in_folder("first.npy")) == 0
                           && symlink("./third.npy", in_folder("second.npy")) == 0);
    CHECK_OR_RETURN(t, symlink("nowhere/x.npy", in_folder("lost.npy")) == 0
                           && symlink("loop.npy", in_folder("loop.npy")) == 0);
    CHECK(t, bsm_npy_write(in_folder("first.npy"), BSM_NPY_INT8, 1, shape, "abcd") == BSM_OK);
    CHECK(t, lstat(in_folder("first.npy"), &facts) == 0 && S_ISLNK(facts.st_mode));
    CHECK(t, lstat(in_folder("second.npy"), &facts) == 0 && S_ISLNK(facts.st_mode));
    CHECK(t, lstat(in_folder("third.npy"), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == 132);
    CHECK(t, bsm_npy_write(in_folder("lost.npy"), BSM_NPY_INT8, 1, shape, "abcd") == BSM_EIO);
    CHECK(t, bsm_npy_write(in_folder("loop.npy"), BSM_NPY_INT8, 1, shape, "abcd") == BSM_EIO);
    CHECK(t, lstat(in_folder("lost.npy"), &facts) == 0 && S_ISLNK(facts.st_mode) && count_entries(false) == 5);
    leave_folder();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(round_trips),         TEST(later_versions_from_disk),
        TEST(unreadable),          TEST(every_allocation_failing),
        TEST(refused_arrays),      TEST(longest_header),
        TEST(unwritable),          TEST(cut_off_in_the_middle),
        TEST(what_a_target_keeps), TEST(links_to_no_file_stay_links),
    };
    return TEST_MAIN(argc, argv, cases);
}
