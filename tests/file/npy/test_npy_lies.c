/* Heads of .npy files that lie, one way each: every lie is refused, with a sentence of its own. */
#include "blockscale/npy.h"
#include "test.h"

#include <stdlib.h>

/* Builds a file: preamble of the version, the header's text, data bytes of zeros. */
static size_t build(char *file, int version, const char *header, size_t header_bytes, uint32_t stated_bytes,
                    size_t data_bytes)
{
    size_t at = 0;
    memcpy(file, "\x93NUMPY", 6), at = 6;
    file[at++] = (char)version;
    file[at++] = 0;
    for (int i = 0; i < (version == 1 ? 2 : 4); i++) file[at++] = (char)(stated_bytes >> 8 * i & 255);
    memcpy(file + at, header, header_bytes);
    memset(file + at + header_bytes, 0, data_bytes);
    return at + header_bytes + data_bytes;
}

static bsm_status parse(bsm_context *context, const char *file, size_t bytes, bsm_npy *array)
{
    void *copy = guarded_at_end(bytes, 1, 0xee);
    memcpy(copy, file, bytes);
    *array = (bsm_npy){ .struct_size = sizeof *array };
    const bsm_status status = bsm_npy_parse(context, copy, bytes, array);
    guarded_free(copy);
    return status;
}

static bsm_status parse_text(bsm_context *context, const char *header, size_t data_bytes, bsm_npy *array)
{
    char file[2048];
    return parse(context, file, build(file, 1, header, strlen(header), (uint32_t)strlen(header), data_bytes), array);
}

#define F4(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }\n"
#define TYPE(descr) "{'descr': " descr ", 'fortran_order': False, 'shape': (2,), }\n"

/* Legal spellings: the bytes of data they need. */
static const struct { const char *header; size_t data_bytes; int rank; int64_t first; bool fortran_order; } legal[] = {
    { F4("(2, 3)"), 24, 2, 2, false },
    { F4("(2,3)"), 24, 2, 2, false },
    { F4("(2, 3,)"), 24, 2, 2, false },
    { F4("( 2 , 3 , )"), 24, 2, 2, false },
    { F4("()"), 4, 0, 0, false },
    { F4("(7,)"), 28, 1, 7, false },
    { F4("(2L, 3L)"), 24, 2, 2, false },
    { F4("(0,)"), 0, 1, 0, false },
    { F4("(1, 1, 1, 1, 1, 1, 1, 2)"), 8, 8, 1, false },
    { "{'descr':'<f4','fortran_order':True,'shape':(2,3)}", 24, 2, 2, true },
    { "  {\n'shape': (2, 3),\t\"descr\": \"<f4\", 'fortran_order': True}  \r\n  ", 24, 2, 2, true },
    { TYPE("'|V1'"), 2, 1, 2, false }, { TYPE("'<V1'"), 2, 1, 2, false }, { TYPE("'>V1'"), 2, 1, 2, false },
    { TYPE("'<f1'"), 2, 1, 2, false }, { TYPE("'|f1'"), 2, 1, 2, false },
    { TYPE("'|V2'"), 4, 1, 2, false }, { TYPE("'<V2'"), 4, 1, 2, false },
    { TYPE("'<i1'"), 2, 1, 2, false }, { TYPE("'>u1'"), 2, 1, 2, false },
};

static void legal_spellings(struct test *t)
{
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (size_t i = 0; i < sizeof legal / sizeof legal[0]; i++) {
        bsm_npy array;
        const bsm_status status = parse_text(context, legal[i].header, legal[i].data_bytes, &array);
        if (status != BSM_OK) FAIL(t, "%s: %s", legal[i].header, bsm_last_error());
        else
            CHECK(t, array.rank == legal[i].rank && array.bytes == legal[i].data_bytes
                         && array.fortran_order == legal[i].fortran_order
                         && (array.rank == 0 || array.shape[0] == legal[i].first));
        bsm_npy_release(context, &array);
    }
    bsm_context_destroy(context);
}

/* What is wrong, and words of the sentence that no other lie gets. */
static const struct { const char *header; bsm_status status; const char *sentence; } lies[] = {
    { F4("(-1,)"), BSM_EFILE, "negative dimension" },
    { F4("(2, -3)"), BSM_EFILE, "negative dimension" },
    { F4("(9223372036854775808,)"), BSM_EFILE, "does not fit 63 bits" },
    { F4("(18446744073709551615,)"), BSM_EFILE, "does not fit 63 bits" },
    { F4("(99999999999999999999999999999999, 0)"), BSM_EFILE, "does not fit 63 bits" },
    { F4("(9223372036854775807,)"), BSM_EFILE, "multiplies to more bytes" },
    { F4("(2305843009213693952,)"), BSM_EFILE, "multiplies to more bytes" },
    { F4("(4294967296, 4294967296)"), BSM_EFILE, "multiplies to more bytes" },
    { F4("(9223372036854775807, 0)"), BSM_EFILE, "multiplies to more bytes" },
    { F4("(0, 4294967296, 4294967296)"), BSM_EFILE, "multiplies to more bytes" },
    { F4("(2305843009213693951,)"), BSM_EFILE, "9223372036854775804 bytes of data" },
    { F4("(2147483648,)"), BSM_EFILE, "8589934592 bytes of data" },
    { F4("(4294967295,)"), BSM_EFILE, "17179869180 bytes of data" },
    { F4("(7,)"), BSM_EFILE, "28 bytes of data" },
    { F4("(5,)"), BSM_EFILE, "4 bytes stand behind the data" },
    { F4("(0,)"), BSM_EFILE, "24 bytes stand behind the data" },
    { F4("(1, 1, 1, 1, 1, 1, 1, 1, 6)"), BSM_EUNSUPPORTED, "more than 8 dimensions" },
    { F4("(6)"), BSM_EFILE, "number in brackets" },
    { F4("6"), BSM_EFILE, "where the shape, a tuple" },
    { F4("[6]"), BSM_EFILE, "where the shape, a tuple" },
    { F4("(6.0,)"), BSM_EFILE, "where ',' or ')' should" },
    { F4("(06,)"), BSM_EFILE, "starts with a zero" },
    { F4("(0x6,)"), BSM_EFILE, "'x' where ',' or ')'" },
    { F4("(+6,)"), BSM_EFILE, "where a dimension should" },
    { F4("(,)"), BSM_EFILE, "where a dimension should" },
    { F4("(6,,)"), BSM_EFILE, "where a dimension should" },
    { F4("(2 3)"), BSM_EFILE, "'3' where ',' or ')'" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (6,}", BSM_EFILE, "'}' where a dimension" },
    { F4("(6 000,)"), BSM_EFILE, "'0' where ',' or ')'" },
    { TYPE("'>f4'"), BSM_EUNSUPPORTED, "big-endian ('>f4')" },
    { TYPE("'>V2'"), BSM_EUNSUPPORTED, "big-endian ('>V2')" },
    { TYPE("'>u2'"), BSM_EUNSUPPORTED, "big-endian ('>u2')" },
    { TYPE("'|f4'"), BSM_EFILE, "no byte order" },
    { TYPE("'=f4'"), BSM_EFILE, "'=f4' is no type" },
    { TYPE("'f4'"), BSM_EFILE, "'f4' is no type" },
    { TYPE("''"), BSM_EFILE, "'' is no type" },
    { TYPE("'<'"), BSM_EFILE, "'<' is no type" },
    { TYPE("'<f'"), BSM_EFILE, "'<f' is no type" },
    { TYPE("'<f04'"), BSM_EFILE, "'<f04' is no type" },
    { TYPE("'<f0'"), BSM_EFILE, "'<f0' is no type" },
    { TYPE("'<f-4'"), BSM_EFILE, "'<f-4' is no type" },
    { TYPE("'<f4 '"), BSM_EFILE, "'<f4 ' is no type" },
    { TYPE("'<f4294967300'"), BSM_EFILE, "'<f4294967300' is no type" },
    { TYPE("'<f40000000000000000000000'"), BSM_EUNSUPPORTED, "none that is known is so long" },
    { TYPE("'<f16'"), BSM_EUNSUPPORTED, "type '<f16'" },
    { TYPE("'<i4'"), BSM_EUNSUPPORTED, "type '<i4'" },
    { TYPE("'<i2'"), BSM_EUNSUPPORTED, "type '<i2'" },
    { TYPE("'<c8'"), BSM_EUNSUPPORTED, "type '<c8'" },
    { TYPE("'|b1'"), BSM_EUNSUPPORTED, "type '|b1'" },
    { TYPE("'|S4'"), BSM_EUNSUPPORTED, "type '|S4'" },
    { TYPE("'<U1'"), BSM_EUNSUPPORTED, "type '<U1'" },
    { TYPE("'<V4'"), BSM_EUNSUPPORTED, "type '<V4'" },
    { TYPE("'<M8[ns]'"), BSM_EFILE, "'<M8[ns]' is no type" },
    { TYPE("'|O'"), BSM_EUNSUPPORTED, "never unpickled" },
    { TYPE("[('a', '<f4')]"), BSM_EUNSUPPORTED, "structured type" },
    { TYPE("('<f4', (2,))"), BSM_EFILE, "where the type should" },
    { TYPE("4"), BSM_EFILE, "where the type should" },
    { TYPE("'<f4"), BSM_EFILE, "'<f4, ' is no type" },
    { TYPE("'<\\x664'"), BSM_EFILE, "backslash" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'descr': '<f4'}", BSM_EFILE, "key 'descr' twice" },
    { "{'shape': (2,), 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", BSM_EFILE, "key 'shape' twice" },
    { "{'fortran_order': False, 'fortran_order': False, 'descr': '<f4', 'shape': (6,)}", BSM_EFILE,
      "key 'fortran_order' twice" },
    { "{'descr': '<f4', 'fortran_order': False}", BSM_EFILE, "lacks the key 'shape'" },
    { "{'descr': '<f4', 'shape': (6,)}", BSM_EFILE, "lacks the key 'fortran_order'" },
    { "{'fortran_order': False, 'shape': (6,)}", BSM_EFILE, "lacks the key 'descr'" },
    { "{}", BSM_EFILE, "lacks the key 'descr'" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'order': 'C'}", BSM_EFILE, "a key 'order'" },
    { "{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}", BSM_EFILE, "where True or False" },
    { "{'descr': '<f4', 'fortran_order': true, 'shape': (6,)}", BSM_EFILE, "where True or False" },
    { "{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (6,)}", BSM_EFILE, "'h' where ',' or '}'" },
    { "{'descr': '<f4' 'fortran_order': False, 'shape': (6,)}", BSM_EFILE, "''' where ',' or '}'" },
    { "{'descr' '<f4', 'fortran_order': False, 'shape': (6,)}", BSM_EFILE, "where ':' should" },
    { "{, 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", BSM_EFILE, "',' where a key" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (6,),,}", BSM_EFILE, "',' where a key" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)", BSM_EFILE, "ends where ',' or '}'" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (6,", BSM_EFILE, "ends where a dimension" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': ", BSM_EFILE, "ends where the shape" },
    { "{'descr': '<f4', 'fortran_order': ", BSM_EFILE, "ends where True or False" },
    { "{'descr': '<f4", BSM_EFILE, "never closed" },
    { "{'descr': ", BSM_EFILE, "ends where the type" },
    { "{", BSM_EFILE, "ends where a key" },
    { "", BSM_EFILE, "ends where '{'" },
    { "   \n", BSM_EFILE, "ends where '{'" },
    { "['descr']", BSM_EFILE, "'[' where '{'" },
    { F4("(6,)") "x", BSM_EFILE, "where nothing but blanks" },
    { F4("(6,)") "{}", BSM_EFILE, "where nothing but blanks" },
    { "{'d\xc3\xa9scr': '<f4', 'fortran_order': False, 'shape': (6,)}", BSM_EFILE, "byte 3 of the header is 0xc3" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}\x1b", BSM_EFILE, "control character 0x1b" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}\x7f", BSM_EFILE, "control character 0x7f" },
};

static void every_lie_has_its_sentence(struct test *t)
{
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        bsm_npy array;
        const bsm_status status = parse_text(context, lies[i].header, 24, &array);
        if (status != lies[i].status || strstr(bsm_last_error(), lies[i].sentence) == NULL || array.data != NULL)
            FAIL(t, "%s: status %d, \"%s\"", lies[i].header, (int)status, status == BSM_OK ? "" : bsm_last_error());
    }
    bsm_context_destroy(context);
}

static void nul_bytes(struct test *t)
{
    static const char header[] = F4("(2, 3)");
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (size_t i = 0; i < sizeof header - 1; i++) {
        char damaged[sizeof header], file[256], sentence[64];
        bsm_npy array;
        memcpy(damaged, header, sizeof header);
        damaged[i] = '\0';
        CHECK(t, parse(context, file, build(file, 1, damaged, sizeof header - 1, sizeof header - 1, 24), &array)
                     == BSM_EFILE);
        snprintf(sentence, sizeof sentence, "byte %zu of the header is a NUL", i);
        CHECK(t, strcmp(bsm_last_error(), sentence) == 0);
    }
    bsm_context_destroy(context);
}

/* The length field says everything but the truth. */
static void header_length(struct test *t)
{
    static const char header[] = F4("(2, 3)");
    const uint32_t truth = sizeof header - 1;
    const uint32_t stated[] = { 0,      1,      2,       truth - 1,  truth + 1,  truth + 24, truth + 25, 0x7fff,
                                0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffff4, 0xffffffff };
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (int version = 1; version <= 3; version++) {
        char file[256];
        bsm_npy array;
        CHECK(t, parse(context, file, build(file, version, header, truth, truth, 24), &array) == BSM_OK
                     && array.bytes == 24);
        bsm_npy_release(context, &array);
        for (size_t i = 0; i < sizeof stated / sizeof stated[0]; i++) {
            if (version == 1 && stated[i] > 0xffff) continue;
            const bsm_status status = parse(context, file, build(file, version, header, truth, stated[i], 24), &array);
            const bool too_long = stated[i] > truth + 24;
            if (status != BSM_EFILE || too_long != (strstr(bsm_last_error(), "the header is said to have") != NULL))
                FAIL(t, "version %d, length %u: status %d, \"%s\"", version, stated[i], (int)status, bsm_last_error());
        }
    }
    bsm_context_destroy(context);
}

static void magic_and_version(struct test *t)
{
    static const char header[] = F4("(2, 3)");
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (int major = 0; major < 256; major++)
        for (int minor = 0; minor < 256; minor += major >= 1 && major <= 3 ? 1 : 51) {
            char file[256];
            bsm_npy array;
            const size_t bytes = build(file, major, header, sizeof header - 1, sizeof header - 1, 24);
            file[7] = (char)minor;
            const bsm_status status = parse(context, file, bytes, &array);
            const bool known = major >= 1 && major <= 3 && minor == 0;
            CHECK(t, status == (known ? BSM_OK : BSM_EUNSUPPORTED));
            CHECK(t, known || strstr(bsm_last_error(), "known are 1.0, 2.0 and 3.0") != NULL);
            bsm_npy_release(context, &array);
        }
    bsm_npy array;
    CHECK(t, parse(context, "PK\003\004 a zip archive, as np.savez", 32, &array) == BSM_EFILE);
    CHECK(t, strstr(bsm_last_error(), "no .npy file") != NULL);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(legal_spellings), TEST(every_lie_has_its_sentence), TEST(nul_bytes),
        TEST(header_length),   TEST(magic_and_version),
    };
    return TEST_MAIN(argc, argv, cases);
}
