/* Arguments of a kernel from the command line. */
#include "tools/kernel.h"
#include "tools/npy.h"

#include "machine/async/tensor_map.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct element_type {
    const char *name, *descr;
    uint32_t bytes;
    char kind;
}; /* kind: i, u, f, or 0: no number of it is read */
static const struct element_type types[] = {
    { "i8", "|i1", 1, 'i' },  { "i16", "<i2", 2, 'i' }, { "i32", "<i4", 4, 'i' }, { "i64", "<i8", 8, 'i' },
    { "u8", "|u1", 1, 'u' },  { "u16", "<u2", 2, 'u' }, { "u32", "<u4", 4, 'u' }, { "u64", "<u8", 8, 'u' },
    { "f32", "<f4", 4, 'f' }, { "f64", "<f8", 8, 'f' }, { "f16", "<f2", 2, 0 },   { "bf16", "<u2", 2, 0 },
    { "e4m3", "|u1", 1, 0 },  { "e5m2", "|u1", 1, 0 },
};

static const struct element_type *type_of(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == length && memcmp(types[i].name, name, length) == 0) return &types[i];
    return NULL;
}

/* ---- numbers ---- */

static bool read_integer(const char *text, const struct element_type *type, uint64_t *value)
{
    char *end;
    const bool negative = text[0] == '-';
    const char *digits = negative ? text + 1 : text;
    if (digits[0] < '0' || digits[0] > '9') return false;
    errno = 0;
    *value = strtoull(digits, &end, digits[1] == 'x' ? 16 : 10);
    if (errno != 0 || *end != '\0' || (negative && type->kind == 'u')) return false;
    const uint64_t half = UINT64_C(1) << (8 * type->bytes - 1);
    const uint64_t most = type->kind == 'u' ? half - 1 + half : negative ? half : half - 1;
    if (*value > most) return false;
    if (negative) *value = 0 - *value;
    return true;
}

static bool read_float(const char *text, const struct element_type *type, uint64_t *value)
{
    char *end;
    if (*text == '\0' || *text == ' ') return false;
    *value = 0;
    if (type->bytes == 4) {
        const float f = strtof(text, &end);
        memcpy(value, &f, sizeof f);
    } else {
        const double f = strtod(text, &end);
        memcpy(value, &f, sizeof f);
    }
    return *end == '\0';
}

static int number(struct argument *a, const struct element_type *type, const char *text)
{
    uint64_t value = 0;
    const bool ok =
        type->kind == 'f' ? read_float(text, type, &value) : type->kind != 0 && read_integer(text, type, &value);
    if (!ok) return bad_input("--arg %s: \"%s\" is no number of type %s", a->text, text, type->name);
    a->kind = ARGUMENT_VALUE;
    a->bytes = type->bytes;
    a->initial = malloc(8);
    if (a->initial == NULL) return bad_input("no memory");
    memcpy(a->initial, &value, 8);
    return EXIT_DONE;
}

static int hexadecimal(struct argument *a, const char *text)
{
    const size_t digits = strlen(text);
    a->kind = ARGUMENT_VALUE;
    a->bytes = digits / 2;
    a->initial = malloc(digits / 2 + 1);
    if (a->initial == NULL) return bad_input("no memory");
    if (digits == 0 || digits % 2 != 0 || strspn(text, "0123456789abcdefABCDEF") != digits)
        return bad_input("--arg %s: hex: takes an even number of hexadecimal digits", a->text);
    for (size_t i = 0; i < a->bytes; i++) {
        const char pair[3] = { text[2 * i], text[2 * i + 1], '\0' };
        a->initial[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return EXIT_DONE;
}

/* ---- buffers ---- */

/* "128x64": each at least `least`.  Returns the number of dimensions, 0 where it is wrong. */
static uint32_t read_shape(const char *text, size_t length, uint64_t least, uint64_t *shape)
{
    uint32_t rank = 0;
    const char *const stop = text + length;
    while (text < stop && rank < 8) {
        char *end;
        if (*text < '0' || *text > '9') return 0;
        shape[rank] = strtoull(text, &end, 10);
        if (shape[rank] < least || shape[rank] > (UINT64_C(1) << 40)) return 0;
        rank++;
        if (end == stop) return rank;
        if (*end != 'x') return 0;
        text = end + 1;
    }
    return 0;
}

static int load(struct argument *a, const char *path)
{
    size_t count;
    char *bytes = read_file(path, &count);
    if (bytes == NULL) return EXIT_BAD_INPUT;
    struct npy npy;
    const char *wrong = npy_read(&npy, bytes, count);
    if (wrong != NULL) {
        free(bytes);
        return bad_input("--arg %s: %s: %s", a->text, path, wrong);
    }
    a->bytes = npy.data_bytes;
    a->initial = malloc(npy.data_bytes + 1);
    if (a->initial != NULL) memcpy(a->initial, npy.data, npy.data_bytes);
    snprintf(a->descr, sizeof a->descr, "%c%c%u", npy.item_bytes == 1 || npy.kind == 'V' ? '|' : '<', npy.kind,
             npy.item_bytes);
    a->rank = npy.rank;
    memcpy(a->shape, npy.shape, sizeof a->shape);
    free(bytes);
    return a->initial == NULL ? bad_input("no memory for %s", path) : EXIT_DONE;
}

static int in_and_out(struct argument *a, const char *rest)
{
    const char *colon = strrchr(rest, ':');
    if (colon == NULL || colon == rest || colon[1] == '\0')
        return bad_input("--arg %s: must be inout:FILE.npy:OUT.npy", a->text);
    char *path = strndup(rest, (size_t)(colon - rest));
    const int status = path == NULL ? bad_input("no memory") : load(a, path);
    free(path);
    a->output = colon + 1;
    return status;
}

/* out:FILE:TYPE:SHAPE */
static int out(struct argument *a, const char *rest)
{
    const char *shape = strrchr(rest, ':'), *type = shape;
    while (type != NULL && type > rest && *(type - 1) != ':') type--;
    if (shape == NULL || type <= rest + 1) return bad_input("--arg %s: must be out:FILE.npy:TYPE:SHAPE", a->text);
    const struct element_type *t = type_of(type, (size_t)(shape - type));
    if (t == NULL) return bad_input("--arg %s: \"%.*s\" is no type; see --help", a->text, (int)(shape - type), type);
    a->rank = read_shape(shape + 1, strlen(shape + 1), 0, a->shape);
    if (a->rank == 0) return bad_input("--arg %s: \"%s\" is no shape as 128x64", a->text, shape + 1);
    a->bytes = t->bytes;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != 0 && a->bytes > (UINT64_C(1) << 40) / a->shape[i])
            return bad_input("--arg %s: too large", a->text);
        else a->bytes *= a->shape[i];
    a->output = strndup(rest, (size_t)(type - 1 - rest));
    a->initial = malloc(a->bytes + 1);
    if (a->output == NULL || a->initial == NULL) return bad_input("--arg %s: no memory", a->text);
    memset(a->initial, 0xff, a->bytes);
    snprintf(a->descr, sizeof a->descr, "%s", t->descr);
    return EXIT_DONE;
}

static int zeros(struct argument *a, const char *text)
{
    uint64_t shape[8];
    if (read_shape(text, strlen(text), 1, shape) != 1) return bad_input("--arg %s: must be zero:BYTES", a->text);
    a->bytes = shape[0];
    a->initial = calloc(1, a->bytes);
    return a->initial == NULL ? bad_input("--arg %s: no memory", a->text) : EXIT_DONE;
}

/* ---- tensor maps ---- */

static bool named(const char *text, size_t length, const char *const *names, uint32_t count, uint32_t *value)
{
    for (*value = 0; *value < count; ++*value)
        if (strlen(names[*value]) == length && memcmp(names[*value], text, length) == 0) return true;
    return false;
}

/* "2": the second argument of the kernel; "M2": what the second --memory has. */
static bool buffer_named(const char *text, size_t length, const struct kernel *kernel, uint32_t *index)
{
    const bool memory = text[0] == 'M';
    const char *digits = text + memory;
    char *end;
    if (*digits < '1' || *digits > '9') return false;
    const unsigned long long number = strtoull(digits, &end, 10);
    const uint32_t first = memory ? 0 : kernel->memories,
                   count = memory ? kernel->memories : kernel->arguments - kernel->memories;
    if (end != text + length || number > count) return false;
    *index = first + (uint32_t)number - 1;
    return kernel->argument[*index].kind == ARGUMENT_BUFFER;
}

static int tensor_map(struct argument *a, const char *rest, const struct kernel *kernel)
{
    static const char *const swizzles[] = { "none", "32B", "64B", "128B" };
    const char *field[5] = { rest, NULL, NULL, NULL, NULL };
    size_t length[5] = { strcspn(rest, ":"), 0, 0, 0, 0 };
    int fields = 1;
    for (; field[fields - 1][length[fields - 1]] == ':' && fields < 5; fields++) {
        field[fields] = field[fields - 1] + length[fields - 1] + 1;
        length[fields] = strcspn(field[fields], ":");
    }
    if (fields < 4 || field[fields - 1][length[fields - 1]] != '\0')
        return bad_input("--arg %s: must be tensormap:ARG:TYPE:SHAPE:BOX[:SWIZZLE]", a->text);
    a->kind = ARGUMENT_TENSOR_MAP;
    a->bytes = TENSOR_MAP_BYTES;
    if (!buffer_named(field[0], length[0], kernel, &a->over))
        return bad_input("--arg %s: \"%.*s\" is neither the number of an argument before it that is a pointer nor M1, "
                         "M2, ...",
                         a->text,
                         (int)length[0], field[0]);
    const char *names[TENSOR_TYPE_COUNT];
    for (int i = 0; i < TENSOR_TYPE_COUNT; i++) names[i] = tensor_types[i].name;
    if (!named(field[1], length[1], names, TENSOR_TYPE_COUNT, &a->type))
        return bad_input("--arg %s: \"%.*s\" is no type of tensor maps", a->text, (int)length[1], field[1]);
    uint64_t box[8];
    a->rank = read_shape(field[2], length[2], 1, a->shape);
    if (a->rank == 0 || a->rank > TENSOR_RANK || read_shape(field[3], length[3], 1, box) != a->rank)
        return bad_input("--arg %s: shape and box must be like 128x64, with the same number of dimensions, at most %d",
                         a->text, TENSOR_RANK);
    for (uint32_t i = 0; i < a->rank; i++) a->box[i] = box[i] > UINT32_MAX ? UINT32_MAX : (uint32_t)box[i];
    if (fields == 5 && !named(field[4], length[4], swizzles, 4, &a->swizzle))
        return bad_input("--arg %s: swizzle \"%s\" is none of none, 32B, 64B, 128B", a->text, field[4]);
    return EXIT_DONE;
}

/* ---- all ---- */

int argument_read(struct argument *a, const char *text, const struct kernel *kernel)
{
    const char *colon = strchr(text, ':');
    *a = (struct argument){ .text = text };
    if (colon == NULL) return bad_input("--arg %s: must be KIND:VALUE, such as in:a.npy or i32:5; see --help", text);
    const size_t length = (size_t)(colon - text);
    const struct element_type *type = type_of(text, length);
    if (type != NULL) return number(a, type, colon + 1);
    if (length == 2 && memcmp(text, "in", 2) == 0) return load(a, colon + 1);
    if (length == 5 && memcmp(text, "inout", 5) == 0) return in_and_out(a, colon + 1);
    if (length == 3 && memcmp(text, "out", 3) == 0) return out(a, colon + 1);
    if (length == 4 && memcmp(text, "zero", 4) == 0) return zeros(a, colon + 1);
    if (length == 3 && memcmp(text, "hex", 3) == 0) return hexadecimal(a, colon + 1);
    if (length == 9 && memcmp(text, "tensormap", 9) == 0) return tensor_map(a, colon + 1, kernel);
    return bad_input("--arg %s: \"%.*s\" is no kind of argument; see --help", text, (int)length, text);
}
