/* Reading: the header is a Python dictionary with exactly the keys descr, fortran_order and shape. */
#include "tools/npy.h"

#include <stdbool.h>
#include <string.h>

struct cursor {
    const char *at, *end;
};

static void blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) c->at++;
}

/* The character, behind blanks. */
static bool take(struct cursor *c, char wanted)
{
    blanks(c);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    const size_t length = strlen(word);
    blanks(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) return false;
    c->at += length;
    return true;
}

/* A text in single or double quotes, without escapes. */
static bool take_text(struct cursor *c, char *text, size_t size)
{
    blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
    const char *stop = memchr(c->at + 1, *c->at, (size_t)(c->end - c->at - 1));
    if (stop == NULL || (size_t)(stop - c->at) > size) return false;
    const size_t length = (size_t)(stop - c->at - 1);
    memcpy(text, c->at + 1, length);
    text[length] = '\0';
    c->at = stop + 1;
    return true;
}

static bool take_number(struct cursor *c, uint64_t *value)
{
    blanks(c);
    if (c->at == c->end || *c->at < '0' || *c->at > '9') return false;
    for (*value = 0; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (*value > UINT64_MAX / 10 - 9) return false;
        else *value = 10 * *value + (uint64_t)(*c->at - '0');
    return true;
}

static const char *read_shape(struct cursor *c, struct npy *npy)
{
    if (!take(c, '(')) return "its shape is no tuple";
    for (npy->rank = 0; !take(c, ')'); npy->rank++) {
        if (npy->rank == NPY_RANK) return "it has more than 8 dimensions";
        if (!take_number(c, &npy->shape[npy->rank])) return "its shape is no tuple of numbers";
        if (!take(c, ',') && (npy->rank == 0 || c->at == c->end || *c->at != ')'))
            return "its shape is no tuple of numbers";
    }
    return NULL;
}

static const char *read_descr(struct cursor *c, struct npy *npy)
{
    char text[16];
    if (!take_text(c, text, sizeof text)) return "its elements have a type that is not read here";
    if (text[0] == '>') return "it is big endian; little endian is read";
    struct cursor number = { text + 2, text + strlen(text) };
    uint64_t bytes;
    if (strchr("<|=", text[0]) == NULL || text[0] == '\0' || text[1] == '\0' || strchr("biufcV", text[1]) == NULL ||
        !take_number(&number, &bytes) || number.at != number.end || bytes == 0 || bytes > 16)
        return "its elements have a type that is not read here";
    npy->kind = text[1];
    npy->item_bytes = (uint32_t)bytes;
    return NULL;
}

static const char *read_dictionary(struct cursor *c, struct npy *npy)
{
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    int seen = 0;
    bool fortran = false;
    if (!take(c, '{')) return "its header is no dictionary";
    while (!take(c, '}')) {
        char key[16];
        const char *wrong = NULL;
        int which = 0;
        if (!take_text(c, key, sizeof key) || !take(c, ':')) return "its header is no dictionary";
        if (strcmp(key, "descr") == 0) which = DESCR, wrong = read_descr(c, npy);
        else if (strcmp(key, "shape") == 0) which = SHAPE, wrong = read_shape(c, npy);
        else if (strcmp(key, "fortran_order") == 0) which = ORDER, fortran = take_word(c, "True");
        if (which == ORDER && !fortran && !take_word(c, "False")) return "its fortran_order is neither True nor False";
        if (wrong != NULL) return wrong;
        if (which == 0 || (seen & which) != 0) return "its header has an unknown key, or one twice";
        seen |= which;
        if (!take(c, ',') && (c->at == c->end || *c->at != '}')) return "its header is no dictionary";
    }
    blanks(c);
    if (c->at != c->end) return "its header has something behind the dictionary";
    if (seen != (DESCR | ORDER | SHAPE)) return "its header lacks descr, fortran_order or shape";
    return fortran && npy->rank > 1 ? "it is in Fortran order; C order is read" : NULL;
}

/* Its size in bytes, or false where it exceeds what is there. */
static bool fits(const struct npy *npy, uint64_t available, uint64_t *bytes)
{
    *bytes = npy->item_bytes;
    for (uint32_t i = 0; i < npy->rank; i++)
        if (npy->shape[i] == 0) *bytes = 0;
    for (uint32_t i = 0; i < npy->rank && *bytes != 0; i++) {
        if (npy->shape[i] > available / *bytes) return false;
        *bytes *= npy->shape[i];
    }
    return *bytes <= available;
}

const char *npy_read(struct npy *npy, const void *bytes, size_t count)
{
    const uint8_t *b = bytes;
    *npy = (struct npy){ 0 };
    if (count < 10 || memcmp(b, "\x93NUMPY", 6) != 0) return "it is no .npy file";
    const bool first = b[6] == 1;
    if (b[6] < 1 || b[6] > 3 || b[7] != 0) return "its version is none of 1.0, 2.0, 3.0";
    const size_t begin = first ? 10 : 12;
    if (count < begin) return "it ends within its header";
    const uint64_t length =
        first ? b[8] | (uint64_t)b[9] << 8 : b[8] | (uint64_t)b[9] << 8 | (uint64_t)b[10] << 16 | (uint64_t)b[11] << 24;
    if (length > count - begin) return "it ends within its header";
    struct cursor c = { (const char *)b + begin, (const char *)b + begin + length };
    const char *wrong = read_dictionary(&c, npy);
    if (wrong != NULL) return wrong;
    const uint64_t available = count - begin - length;
    if (!fits(npy, available, &npy->data_bytes)) return "it ends before its last element";
    if (npy->data_bytes != available) return "it has bytes behind its last element";
    npy->data = b + begin + length;
    return NULL;
}

int npy_write_header(FILE *file, const char *descr, uint32_t rank, const uint64_t *shape)
{
    char text[320];
    int used = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (uint32_t i = 0; i < rank; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%llu%s", (unsigned long long)shape[i],
                         rank == 1      ? ","
                         : i + 1 < rank ? ", "
                                        : "");
    used += snprintf(text + used, sizeof text - (size_t)used, "), }");
    while ((10 + used + 1) % 64 != 0) text[used++] = ' ';
    text[used++] = '\n';
    const uint8_t head[10] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)used, (uint8_t)(used >> 8) };
    return fwrite(head, 1, sizeof head, file) == sizeof head && fwrite(text, 1, (size_t)used, file) == (size_t)used;
}
