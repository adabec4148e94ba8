/* Status codes, the thread's last sentence, and structs of other versions of the header. */
#include "core/core.h"
#include "test.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

static void every_status_has_its_own_sentence(struct test *t)
{
    const char *none = bsm_strerror(-1);
    for (int i = BSM_OK; i <= BSM_EFILE; i++) {
        CHECK(t, bsm_strerror(i) != NULL && bsm_strerror(i)[0] != '\0');
        CHECK(t, strcmp(bsm_strerror(i), none) != 0);
        for (int j = BSM_OK; j < i; j++) CHECK(t, strcmp(bsm_strerror(i), bsm_strerror(j)) != 0);
    }
    static const int others[] = { INT_MIN, -2, -1, BSM_EFILE + 1, 1000, INT_MAX };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) CHECK(t, strcmp(bsm_strerror(others[i]), none) == 0);
}

static void version_of_library_and_header_agree(struct test *t) { CHECK(t, bsm_version() == BSM_VERSION); }

static void fail_returns_status_and_keeps_sentence(struct test *t)
{
    CHECK(t, bsmi_fail(BSM_EALIGN, "pitch=%d: must be %s", 7, "even") == BSM_EALIGN);
    CHECK(t, strcmp(bsm_last_error(), "pitch=7: must be even") == 0);
    bsmi_fail(BSM_EINVAL, "a->%s", bsm_last_error());          /* an argument that is the sentence itself */
    CHECK(t, strcmp(bsm_last_error(), "a->pitch=7: must be even") == 0);
}

static void long_sentence_is_cut(struct test *t)
{
    char word[2000];
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    bsmi_fail(BSM_EINVAL, "%s", word);
    const size_t length = strlen(bsm_last_error());
    CHECK(t, length >= 255 && length < sizeof word - 1);
    CHECK(t, memcmp(bsm_last_error(), word, length) == 0);
}

/* A name from a file may be quoted: a terminal must not obey it. */
static void sentence_commands_no_terminal(struct test *t)
{
    static const struct { const char *given, *kept; } names[] = {
        { "plain", "plain" }, { "\x1b[31m\x07", "?[31m?" }, { "a\nb\r\t\b\x7f", "a?b????" }, { "\xc2\x9b" "2J", "?2J" },
        { "\xe2\x80\xaexyz", "?xyz" }, { "\xe2\x81\xa6\xe2\x80\xa8\xd8\x9c", "???" }, { "\xff\xc3(", "??" "(" },
        { "\xc0\xaf", "??" }, { "\xed\xa0\x80", "???" }, { "\xf4\x90\x80\x80", "????" }, { "\xe2\x9c", "??" },
        { "\xc3\xa9 \xe2\x9c\x93 \xf0\x9f\x99\x82 \xc2\xa0", "\xc3\xa9 \xe2\x9c\x93 \xf0\x9f\x99\x82 \xc2\xa0" },
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bsmi_fail(BSM_EFILE, "tensor %s", names[i].given);
        if (strncmp(bsm_last_error(), "tensor ", 7) != 0 || strcmp(bsm_last_error() + 7, names[i].kept) != 0)
            FAIL(t, "name %zu became: %s", i, bsm_last_error());
    }
}

static void *fail_elsewhere(void *seen)
{
    *(bool *)seen = bsm_last_error() != NULL && bsm_last_error()[0] == '\0';      /* nothing failed in this thread
                                                                                     yet */
    bsmi_fail(BSM_EIO, "another thread");
    return NULL;
}

static void sentence_belongs_to_its_thread(struct test *t)
{
    bool empty_at_first = false;
    pthread_t thread;
    bsmi_fail(BSM_EINVAL, "this thread");
    CHECK_OR_RETURN(t, pthread_create(&thread, NULL, fail_elsewhere, &empty_at_first) == 0);
    pthread_join(thread, NULL);
    CHECK(t, empty_at_first);
    CHECK(t, strcmp(bsm_last_error(), "this thread") == 0);
}

/* Structs of other versions ---------------------------------------------------------------------------------------- */

struct described { size_t struct_size; int64_t first, second; };

/* Reads a struct of `given` bytes that ends at a guard page, with byte i = i % 251 + 1 after struct_size, up to
 * `ones`. */
static bsm_status read_given(size_t given, size_t ones, struct described *into)
{
    unsigned char *from = guarded_at_end(given < sizeof given ? sizeof given : given, 1, 0);
    memcpy(from, &given, sizeof given);
    for (size_t i = sizeof given; i < BSMI_MIN(given, ones); i++) from[i] = (unsigned char)(i % 251 + 1);
    memset(into, 0x77, sizeof *into);
    const bsm_status status = bsmi_read_struct("thing", from, into, sizeof *into);
    guarded_free(from);
    return status;
}

static void struct_of_our_size(struct test *t)
{
    struct described into;
    unsigned char want[sizeof into];
    for (size_t i = 0; i < sizeof want; i++) want[i] = (unsigned char)(i % 251 + 1);
    CHECK(t, read_given(sizeof into, sizeof into, &into) == BSM_OK);
    CHECK(t, into.struct_size == sizeof into);
    CHECK(t, memcmp(&into.first, want + 8, sizeof want - 8) == 0);
}

static void shorter_struct_is_filled_with_zeros(struct test *t)
{
    for (size_t given = sizeof(size_t); given < sizeof(struct described); given++) {
        struct described into;
        CHECK(t, read_given(given, given, &into) == BSM_OK);
        for (size_t i = sizeof(size_t); i < sizeof into; i++)
            CHECK(t, ((unsigned char *)&into)[i] == (i < given ? (unsigned char)(i % 251 + 1) : 0));
    }
}

static void longer_struct_with_zero_tail_is_read(struct test *t)
{
    struct described into;
    CHECK(t, read_given(sizeof into + 1, sizeof into, &into) == BSM_OK);
    CHECK(t, read_given(sizeof into + 4000, sizeof into, &into) == BSM_OK);
    CHECK(t, into.struct_size == sizeof into + 4000 && into.second != 0);
}

static void longer_struct_with_nonzero_tail_is_refused(struct test *t)
{
    struct described into;
    CHECK(t, read_given(sizeof into + 1, sizeof into + 1, &into) == BSM_EINVAL);
    CHECK(t, strstr(bsm_last_error(), "thing has a field at byte 24") != NULL);
    const size_t given = sizeof into + 100;                     /* only the very last byte is set */
    unsigned char *from = guarded_at_end(given, 1, 0);
    memcpy(from, &given, sizeof given);
    from[given - 1] = 1;
    CHECK(t, bsmi_read_struct("thing", from, &into, sizeof into) == BSM_EINVAL);
    guarded_free(from);
}

static void sizes_that_are_no_struct_are_refused(struct test *t)
{
    struct described into;
    for (size_t given = 0; given < sizeof(size_t); given++) CHECK(t, read_given(given, 0, &into) == BSM_EINVAL);
    static const size_t absurd[] = { 65537, (size_t)1 << 32, SIZE_MAX };
    for (size_t i = 0; i < sizeof absurd / sizeof absurd[0]; i++) {
        unsigned char *from = guarded_at_end(sizeof(size_t), 1, 0);             /* nothing behind the size may be
                                                                                   read */
        memcpy(from, &absurd[i], sizeof absurd[i]);
        CHECK(t, bsmi_read_struct("thing", from, &into, sizeof into) == BSM_EINVAL);
        guarded_free(from);
    }
    CHECK(t, read_given(65536, sizeof into, &into) == BSM_OK);
    CHECK(t, bsmi_read_struct("thing", NULL, &into, sizeof into) == BSM_EINVAL);
    CHECK(t, strcmp(bsm_last_error(), "thing is NULL") == 0);
}

static void checked_arithmetic(struct test *t)
{
    int64_t out;
    CHECK(t, bsmi_mul_overflows(INT64_MAX / 2 + 1, 2, &out) && !bsmi_mul_overflows(INT64_MAX / 2, 2, &out));
    CHECK(t, bsmi_add_overflows(INT64_MAX, 1, &out) && !bsmi_add_overflows(INT64_MAX, 0, &out) && out == INT64_MAX);
    for (int64_t b = 1; b < 40; b++)
        for (int64_t a = 0; a < 200; a++) {
            int64_t blocks = 0;
            while (blocks * b < a) blocks++;
            CHECK(t, bsmi_ceil_div(a, b) == blocks && bsmi_round_up(a, b) == blocks * b);
        }
    CHECK(t, bsmi_ceil_div(INT64_MAX, 2) == INT64_MAX / 2 + 1);                  /* no a + b - 1 inside */
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(every_status_has_its_own_sentence),
        TEST(version_of_library_and_header_agree),
        TEST(fail_returns_status_and_keeps_sentence),
        TEST(long_sentence_is_cut),
        TEST(sentence_commands_no_terminal),
        TEST(sentence_belongs_to_its_thread),
        TEST(struct_of_our_size),
        TEST(shorter_struct_is_filled_with_zeros),
        TEST(longer_struct_with_zero_tail_is_read),
        TEST(longer_struct_with_nonzero_tail_is_refused),
        TEST(sizes_that_are_no_struct_are_refused),
        TEST(checked_arithmetic),
    };
    return TEST_MAIN(argc, argv, cases);
}
