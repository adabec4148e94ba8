/* The .npy reader on true files, on every cut of them, and on every flipped bit of their heads. */
#include "golden_file.h"
#include "test.h"

#include "counted.h"

/* A context whose memory is counted; all tests end with nothing live. */
struct counted_context { struct counted counted; bsm_allocator allocator; bsm_context *context; };

static void open_counted(struct test *t, struct counted_context *c)
{
    memset(c, 0, sizeof *c);
    c->allocator = counted_allocator(&c->counted);
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 1, .allocator = &c->allocator };
    CHECK(t, bsm_context_create(&options, &c->context) == BSM_OK);
}

static void close_counted(struct test *t, struct counted_context *c)
{
    bsm_context_destroy(c->context);
    CHECK(t, c->counted.live == 0 && c->counted.errors == 0);
}

/* Parses a copy that a page that faults follows. */
static bsm_status parse_guarded(bsm_context *context, const char *file, size_t bytes, bsm_npy *array)
{
    void *copy = guarded_at_end(bytes, 1, 0xee);
    memcpy(copy, file, bytes);
    memset(array, 0x77, sizeof *array);
    array->struct_size = sizeof *array;
    const bsm_status status = bsm_npy_parse(context, copy, bytes, array);
    guarded_free(copy);
    return status;
}

static int64_t elements_of(const bsm_npy *array)
{
    int64_t elements = 1;
    for (int i = 0; i < array->rank; i++) elements *= array->shape[i];
    return elements;
}

/* What every accepted file owes, whatever it says: sizes that agree, and the file's own last bytes as data. */
static bool is_consistent(const bsm_npy *array, const char *file, size_t bytes)
{
    if (array->rank < 0 || array->rank > BSM_NPY_MAX_RANK || bsm_npy_type_bytes((int)array->type) == 0) return false;
    for (int i = 0; i < array->rank; i++)
        if (array->shape[i] < 0) return false;
    if ((uint64_t)elements_of(array) * bsm_npy_type_bytes((int)array->type) != array->bytes || array->bytes > bytes)
        return false;
    if (array->bytes == 0) return array->data == NULL;
    return (uintptr_t)array->data % 64 == 0 && memcmp(array->data, file + bytes - array->bytes, array->bytes) == 0;
}

/* A failed array owns nothing, and a sentence is there. */
static bool is_refused(bsm_status status, const bsm_npy *array)
{
    return (status == BSM_EFILE || status == BSM_EUNSUPPORTED) && array->data == NULL && array->bytes == 0
           && array->rank == 0 && array->struct_size == sizeof *array && bsm_last_error()[0] != '\0';
}

static void golden_files(struct test *t)
{
    struct counted_context c;
    open_counted(t, &c);
    for (int g = 0; g < GOLDEN_COUNT; g++) {
        const struct golden *golden = &goldens[g];
        bsm_npy array;
        const bsm_status status = parse_guarded(c.context, golden->file, golden->bytes, &array);
        if (status != BSM_OK) {
            FAIL(t, "%s: %s", golden->name, bsm_last_error());
            continue;
        }
        CHECK(t, is_consistent(&array, golden->file, golden->bytes));
        CHECK(t,
              array.type == golden->type && array.rank == golden->rank && array.fortran_order == golden->fortran_order);
        CHECK(t, memcmp(array.shape, golden->shape, sizeof array.shape) == 0);
        for (size_t i = 0; i < array.bytes; i++) CHECK(t, ((unsigned char *)array.data)[i] == (7 * i + 3) % 256);
        CHECK(t, strstr(golden->file + 10, array.descr) != NULL || golden->version > 1);
        bsm_npy_release(c.context, &array);
        CHECK(t, array.data == NULL && array.bytes == 0);
        bsm_npy_release(c.context, &array);                    /* twice is harmless */
    }
    close_counted(t, &c);
}

/* Version 1.0 in C order is what we write: the same bytes as NumPy, up to the spelling of ml_dtypes' types. */
static void header_as_numpy_writes_it(struct test *t)
{
    int compared = 0;
    for (int g = 0; g < GOLDEN_COUNT; g++) {
        const struct golden *golden = &goldens[g];
        if (golden->version != 1 || golden->fortran_order) continue;
        unsigned char header[BSM_NPY_MAX_HEADER];
        char wanted[BSM_NPY_MAX_HEADER];
        size_t bytes = 0, data_bytes = bsm_npy_type_bytes((int)golden->type);
        for (int i = 0; i < golden->rank; i++) data_bytes *= (size_t)golden->shape[i];
        CHECK_OR_RETURN(t, bsm_npy_header(golden->type, golden->rank, golden->shape, header, sizeof header, &bytes)
                               == BSM_OK);
        CHECK_OR_RETURN(t, bytes == golden->bytes - data_bytes && bytes % 64 == 0);
        memcpy(wanted, golden->file, bytes);
        if (golden->type == BSM_NPY_BYTES) memcpy(wanted + 21, "|V1", 3);
        if (golden->type == BSM_NPY_WORDS) memcpy(wanted + 21, "|V2", 3);
        if (memcmp(header, wanted, bytes) != 0) FAIL(t, "%s: another header than NumPy's", golden->name);
        CHECK(t, bsm_npy_header(golden->type, golden->rank, golden->shape, header, bytes, &bytes) == BSM_OK);
        CHECK(t, bsm_npy_header(golden->type, golden->rank, golden->shape, header, bytes - 1, &bytes) == BSM_EINVAL);
        compared++;
    }
    CHECK(t, compared > 20);
}

static void every_cut_is_refused(struct test *t)
{
    struct counted_context c;
    open_counted(t, &c);
    for (int g = 0; g < GOLDEN_COUNT; g++)
        for (size_t bytes = 0; bytes < goldens[g].bytes; bytes++) {
            bsm_npy array;
            const bsm_status status = parse_guarded(c.context, goldens[g].file, bytes, &array);
            if (status != BSM_EFILE || !is_refused(status, &array))
                FAIL(t, "%s cut to %zu bytes: status %d", goldens[g].name, bytes, (int)status);
        }
    close_counted(t, &c);
}

static void bytes_behind_the_data_are_refused(struct test *t)
{
    struct counted_context c;
    open_counted(t, &c);
    for (int g = 0; g < GOLDEN_COUNT; g++)
        for (size_t more = 1; more <= 9; more++) {
            char file[1024] = { 0 };
            bsm_npy array;
            memcpy(file, goldens[g].file, goldens[g].bytes);
            const bsm_status status = parse_guarded(c.context, file, goldens[g].bytes + more, &array);
            CHECK(t, status == BSM_EFILE && is_refused(status, &array)
                         && strstr(bsm_last_error(), "behind the data") != NULL);
        }
    close_counted(t, &c);
}

static void every_flipped_bit(struct test *t)
{
    struct counted_context c;
    int accepted = 0, refused = 0;
    open_counted(t, &c);
    for (int g = 0; g < GOLDEN_COUNT; g++) {
        char file[1024];
        bsm_npy true_array, array;
        CHECK_OR_RETURN(t, parse_guarded(c.context, goldens[g].file, goldens[g].bytes, &true_array) == BSM_OK);
        const size_t head = goldens[g].bytes - true_array.bytes;
        memcpy(file, goldens[g].file, goldens[g].bytes);
        for (size_t bit = 0; bit < 8 * head; bit++) {
            file[bit / 8] = (char)(file[bit / 8] ^ 1 << bit % 8);
            const bsm_status status = parse_guarded(c.context, file, goldens[g].bytes, &array);
            const bool good =
                status == BSM_OK ? is_consistent(&array, file, goldens[g].bytes) : is_refused(status, &array);
            if (!good)
                FAIL(t, "%s, bit %zu flipped: status %d, \"%s\"", goldens[g].name, bit, (int)status, bsm_last_error());
            if (status == BSM_OK) accepted++, bsm_npy_release(c.context, &array);
            else refused++;
            file[bit / 8] = (char)(file[bit / 8] ^ 1 << bit % 8);
        }
        bsm_npy_release(c.context, &true_array);
    }
    CHECK(t, accepted > 0 && refused > 50 * accepted);        /* a flip that leaves a legal file is rare: '|f1' for
                                                                 '<f1', .. */
    close_counted(t, &c);
}

/* Random damage: several bytes at once. */
static void random_damage(struct test *t)
{
    struct counted_context c;
    open_counted(t, &c);
    for (int round = 0; round < 20000; round++) {
        const struct golden *golden = &goldens[rnd_below(t, GOLDEN_COUNT)];
        static const char alphabet[] = "0123456789 ',:{}()[]<>|fViuLTrueFalsdcnho_p\n\0\x80\xff";
        char file[1024];
        bsm_npy array;
        memcpy(file, golden->file, golden->bytes);
        const int64_t damages = rnd_between(t, 1, 6);
        for (int64_t i = 0; i < damages; i++)
            file[rnd_below(t, (int64_t)golden->bytes)] = alphabet[rnd_below(t, (int64_t)sizeof alphabet - 1)];
        const size_t bytes = rnd_below(t, 4) == 0 ? (size_t)rnd_below(t, (int64_t)golden->bytes + 1) : golden->bytes;
        const bsm_status status = parse_guarded(c.context, file, bytes, &array);
        CHECK(t, status == BSM_OK ? is_consistent(&array, file, bytes) : is_refused(status, &array));
        if (status == BSM_OK) bsm_npy_release(c.context, &array);
    }
    close_counted(t, &c);
}

static void every_allocation_failing(struct test *t)
{
    struct counted_context c;
    bsm_npy array = { .struct_size = sizeof array };
    open_counted(t, &c);
    const int64_t before = c.counted.calls;
    CHECK_OR_RETURN(t, bsm_npy_parse(c.context, goldens[1].file, goldens[1].bytes, &array) == BSM_OK);
    const int64_t calls = c.counted.calls - before;
    bsm_npy_release(c.context, &array);
    CHECK(t, calls >= 1);
    for (int64_t n = 1; n <= calls; n++) {
        const int64_t live = c.counted.live;
        c.counted.fail_at = c.counted.calls + n;
        CHECK(t, bsm_npy_parse(c.context, goldens[1].file, goldens[1].bytes, &array) == BSM_ENOMEM);
        CHECK(t, array.data == NULL && c.counted.live == live && strstr(bsm_last_error(), "24 bytes") != NULL);
        c.counted.fail_at = 0;
    }
    CHECK(t, bsm_npy_parse(c.context, goldens[1].file, goldens[1].bytes, &array) == BSM_OK);
    bsm_npy_release(c.context, &array);
    close_counted(t, &c);
}

static void arguments(struct test *t)
{
    struct counted_context c;
    bsm_npy array = { .struct_size = sizeof array };
    open_counted(t, &c);
    CHECK(t, bsm_npy_parse(c.context, goldens[0].file, goldens[0].bytes, NULL) == BSM_EINVAL);
    CHECK(t, bsm_npy_parse(NULL, goldens[0].file, goldens[0].bytes, &array) == BSM_EINVAL);
    CHECK(t, bsm_npy_parse(c.context, NULL, 5, &array) == BSM_EINVAL);
    CHECK(t, bsm_npy_parse(c.context, NULL, 0, &array) == BSM_EFILE);
    for (size_t size = 0; size < sizeof array; size++) {
        bsm_npy small = { .struct_size = size };
        CHECK(t, bsm_npy_parse(c.context, goldens[0].file, goldens[0].bytes, &small) == BSM_EINVAL);
        CHECK(t, small.struct_size == size && small.data == NULL);
    }
    struct { bsm_npy array; int64_t later[4]; } longer = { .array = { .struct_size = sizeof longer },
                                                           .later = { 1, 2, 3, 4 } };
    CHECK(t, bsm_npy_parse(c.context, goldens[0].file, goldens[0].bytes, &longer.array) == BSM_OK);
    CHECK(t, longer.later[0] == 0 && longer.later[3] == 0);   /* fields of a later version: zero */
    bsm_npy_release(c.context, &longer.array);
    bsm_npy_release(NULL, &array);
    bsm_npy_release(c.context, NULL);
    close_counted(t, &c);
}

static void types(struct test *t)
{
    static const size_t bytes[BSM_NPY_TYPE_COUNT] = { 2, 4, 8, 1, 1, 1, 2, 2 };
    for (int type = 0; type < BSM_NPY_TYPE_COUNT; type++)
        CHECK(t, bsm_npy_type_name(type) != NULL && bsm_npy_type_bytes(type) == bytes[type]);
    static const int no_types[] = { -1, BSM_NPY_TYPE_COUNT, INT32_MAX, INT32_MIN };
    for (int i = 0; i < 4; i++)
        CHECK(t, bsm_npy_type_name(no_types[i]) == NULL && bsm_npy_type_bytes(no_types[i]) == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(golden_files),
        TEST(header_as_numpy_writes_it),
        TEST(every_cut_is_refused),
        TEST(bytes_behind_the_data_are_refused),
        TEST(every_flipped_bit),
        TEST(random_damage),
        TEST(every_allocation_failing),
        TEST(arguments),
        TEST(types),
    };
    return TEST_MAIN(argc, argv, cases);
}
