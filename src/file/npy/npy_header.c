/* The head of an .npy file.
 *
 * Source: NumPy's NEP 1 and numpy/lib/format.py: "\x93NUMPY", two bytes of version, the header's length (2 bytes in
 * version 1.0, 4 in 2.0 and 3.0, little-endian), then a Python dict with the keys descr, fortran_order and shape,
 * padded with blanks. Every byte may be a lie: each is checked before it is believed, and every lie has its own
 * sentence. */
#include "npy.h"
#include "file/io/kind.h"

bsm_status bsmi_npy_read_preamble(const unsigned char *start, uint64_t file_bytes, struct bsmi_npy_preamble *preamble)
{
    static const unsigned char magic[6] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };
    if (file_bytes == 0) return bsmi_fail(BSM_EFILE, "the file is empty");
    if (file_bytes < 10)
        return bsmi_fail(BSM_EFILE, "the file has %d bytes, an .npy file at least 10: it is cut off, or none",
                         (int)file_bytes);
    if (memcmp(start, magic, sizeof magic) != 0) {
        const char *kind = bsmi_file_kind(start, 10);
        if (kind != NULL) return bsmi_fail(BSM_EFILE, "this is no .npy file: it is %s", kind);
        return bsmi_fail(BSM_EFILE, "this is no .npy file: it does not start with \\x93NUMPY");
    }
    const int major = start[6], minor = start[7];
    if (major < 1 || major > 3 || minor != 0)
        return bsmi_fail(BSM_EUNSUPPORTED, "version %d.%d of the .npy format; known are 1.0, 2.0 and 3.0", major,
                         minor);
    preamble->header_at = major == 1 ? 10 : 12;
    if (file_bytes < preamble->header_at) return bsmi_fail(BSM_EFILE, "the file ends inside the length of its header");
    preamble->header_bytes = (size_t)start[8] | (size_t)start[9] << 8;
    if (major > 1) preamble->header_bytes |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    if (preamble->header_bytes > file_bytes - preamble->header_at)
        return bsmi_fail(BSM_EFILE, "the header is said to have %zu bytes, but the file has only %lld more",
                         preamble->header_bytes, (long long)(file_bytes - preamble->header_at));
    return BSM_OK;
}

/* Text ------------------------------------------------------------------------------------------------------------- */

struct cursor { const char *text; size_t length, at; };

/* The character at the cursor; 0 at the end, and nowhere else: check_characters came first. */
static char peek(const struct cursor *c) { return c->at < c->length ? c->text[c->at] : '\0'; }

static void skip_blanks(struct cursor *c)
{
    while (peek(c) == ' ' || peek(c) == '\t' || peek(c) == '\n' || peek(c) == '\r') c->at++;
}

static bool take(struct cursor *c, char wanted)
{
    skip_blanks(c);
    if (peek(c) != wanted) return false;
    c->at++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    const size_t length = strlen(word);
    skip_blanks(c);
    if (c->length - c->at < length || memcmp(c->text + c->at, word, length) != 0) return false;
    c->at += length;
    return true;
}

static bsm_status check_characters(const struct cursor *c)
{
    for (size_t i = 0; i < c->length; i++) {
        const unsigned char byte = (unsigned char)c->text[i];
        if (byte == 0) return bsmi_fail(BSM_EFILE, "byte %zu of the header is a NUL", i);
        if (byte >= 0x80)
            return bsmi_fail(BSM_EFILE, "byte %zu of the header is 0x%02x; a plain array's header is ASCII", i, byte);
        if (byte == 0x7f || (byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r'))
            return bsmi_fail(BSM_EFILE, "byte %zu of the header is the control character 0x%02x", i, byte);
    }
    return BSM_OK;
}

static bsm_status expected(const struct cursor *c, const char *what)
{
    if (c->at >= c->length) return bsmi_fail(BSM_EFILE, "the header ends where %s should stand", what);
    return bsmi_fail(BSM_EFILE, "byte %zu of the header is '%c' where %s should stand", c->at, c->text[c->at], what);
}

/* A quoted string without escapes, of fewer than `room` characters. */
static bsm_status read_string(struct cursor *c, const char *what, char *into, size_t room)
{
    skip_blanks(c);
    const char quote = peek(c);
    if (quote != '\'' && quote != '"') return expected(c, what);
    const size_t start = ++c->at;
    while (peek(c) != quote && peek(c) != '\0') {
        if (peek(c) == '\\')
            return bsmi_fail(BSM_EFILE, "byte %zu of the header is a backslash inside %s", c->at, what);
        c->at++;
    }
    if (peek(c) == '\0') return bsmi_fail(BSM_EFILE, "the quote at byte %zu of the header is never closed", start - 1);
    const size_t length = c->at++ - start;
    if (length >= room)
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "%s at byte %zu of the header has %zu characters; none that is known is so long", what, start,
                         length);
    memcpy(into, c->text + start, length);
    into[length] = '\0';
    return BSM_OK;
}

/* Values ----------------------------------------------------------------------------------------------------------- */

static bsm_status read_dimension(struct cursor *c, int64_t *dimension)
{
    int64_t value = 0;
    skip_blanks(c);
    const size_t start = c->at;
    if (peek(c) == '-')
        return bsmi_fail(BSM_EFILE, "the shape has a negative dimension at byte %zu of the header", start);
    while (peek(c) >= '0' && peek(c) <= '9') {
        if (bsmi_mul_overflows(value, 10, &value) || bsmi_add_overflows(value, peek(c) - '0', &value))
            return bsmi_fail(BSM_EFILE, "the dimension at byte %zu of the header does not fit 63 bits", start);
        c->at++;
    }
    if (c->at == start) return expected(c, "a dimension");
    if (c->text[start] == '0' && c->at - start > 1)
        return bsmi_fail(BSM_EFILE, "the dimension at byte %zu of the header starts with a zero", start);
    if (peek(c) == 'L') c->at++;          /* as Python 2 wrote them */
    *dimension = value;
    return BSM_OK;
}

static bsm_status read_shape(struct cursor *c, bsm_npy *array)
{
    bool comma = false;
    array->rank = 0;
    if (!take(c, '(')) return expected(c, "the shape, a tuple such as (2, 3),");
    while (!take(c, ')')) {
        if (array->rank > 0 && !comma) return expected(c, "',' or ')'");
        if (array->rank == BSM_NPY_MAX_RANK)
            return bsmi_fail(BSM_EUNSUPPORTED, "the array has more than %d dimensions", BSM_NPY_MAX_RANK);
        const bsm_status status = read_dimension(c, &array->shape[array->rank]);
        if (status != BSM_OK) return status;
        array->rank++;
        comma = take(c, ',');
    }
    if (array->rank == 1 && !comma)
        return bsmi_fail(BSM_EFILE, "the shape is a number in brackets; a tuple of one is (N,)");
    return BSM_OK;
}

static bsm_status read_descr(struct cursor *c, bsm_npy *array)
{
    skip_blanks(c);
    if (peek(c) == '[')
        return bsmi_fail(BSM_EUNSUPPORTED, "the array has a structured type (fields); save one field of it");
    const bsm_status status = read_string(c, "the type", array->descr, sizeof array->descr);
    return status != BSM_OK ? status : bsmi_npy_type_from_descr(array->descr, &array->type);
}

static bsm_status read_order(struct cursor *c, bsm_npy *array)
{
    if (take_word(c, "True")) array->fortran_order = true;
    else if (take_word(c, "False")) array->fortran_order = false;
    else {
        skip_blanks(c);
        return expected(c, "True or False");
    }
    return BSM_OK;
}

static const struct { const char *name; bsm_status (*read)(struct cursor *c, bsm_npy *array); } keys[] = {
    { "descr", read_descr },
    { "fortran_order", read_order },
    { "shape", read_shape },
};
enum { KEY_COUNT = sizeof keys / sizeof keys[0] };

/* 'key': value */
static bsm_status read_entry(struct cursor *c, bool *seen, bsm_npy *array)
{
    char name[64];
    int key = 0;
    const bsm_status status = read_string(c, "a key", name, sizeof name);
    if (status != BSM_OK) return status;
    while (key < KEY_COUNT && strcmp(name, keys[key].name) != 0) key++;
    if (key == KEY_COUNT)
        return bsmi_fail(BSM_EFILE, "the header has a key '%s'; it has descr, fortran_order and shape", name);
    if (seen[key]) return bsmi_fail(BSM_EFILE, "the header has the key '%s' twice", name);
    seen[key] = true;
    if (!take(c, ':')) return expected(c, "':'");
    return keys[key].read(c, array);
}

static bsm_status read_dict(struct cursor *c, bsm_npy *array)
{
    bool seen[KEY_COUNT] = { false }, comma = true;
    if (!take(c, '{')) return expected(c, "'{'");
    while (!take(c, '}')) {
        if (!comma) return expected(c, "',' or '}'");
        const bsm_status status = read_entry(c, seen, array);
        if (status != BSM_OK) return status;
        comma = take(c, ',');
    }
    for (int key = 0; key < KEY_COUNT; key++)
        if (!seen[key]) return bsmi_fail(BSM_EFILE, "the header lacks the key '%s'", keys[key].name);
    skip_blanks(c);
    if (c->at < c->length) return expected(c, "nothing but blanks");
    return BSM_OK;
}

bool bsmi_npy_shape_bytes(int rank, const int64_t *shape, size_t size, int64_t *bytes)
{
    int64_t product = (int64_t)size;
    bool empty = false;
    for (int i = 0; i < rank; i++)
        if (shape[i] == 0) empty = true;
        else if (bsmi_mul_overflows(product, shape[i], &product)) return true;
    *bytes = empty ? 0 : product;
    return false;
}

bsm_status bsmi_npy_read_header(const char *text, size_t length, bsm_npy *array)
{
    struct cursor c = { text, length, 0 };
    int64_t bytes;
    bsm_status status = check_characters(&c);
    if (status == BSM_OK) status = read_dict(&c, array);
    if (status != BSM_OK) return status;
    if (bsmi_npy_shape_bytes(array->rank, array->shape, bsm_npy_type_bytes((int)array->type), &bytes))
        return bsmi_fail(BSM_EFILE, "the shape multiplies to more bytes than 63 bits count");
    array->bytes = (size_t)bytes;
    return BSM_OK;
}
