/* The file of a run: a line of text, then numbers of 32 and 64 bits in the order of this machine, strings with their
 * lengths. */
#include "result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "cudasim calibration 1\n";

static void put_bytes(FILE *out, const void *bytes, size_t size)
{
    const uint64_t length = size;
    fwrite(&length, 1, sizeof length, out);
    if (size != 0) fwrite(bytes, 1, size, out);
}

static void put_text(FILE *out, const char *text) { put_bytes(out, text, text == NULL ? 0 : strlen(text)); }

bool result_write(const struct result *r, const char *file)
{
    FILE *out = fopen(file, "wb");
    if (out == NULL) return false;
    fwrite(magic, 1, sizeof magic - 1, out);
    put_text(out, r->device);
    put_text(out, r->date);
    put_bytes(out, &r->driver, sizeof r->driver);
    put_bytes(out, &r->count, sizeof r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        const struct record *one = &r->records[i];
        const uint64_t head[] = { (uint64_t)one->outcome, one->identity };
        put_bytes(out, head, sizeof head);
        put_text(out, one->name);
        put_text(out, one->form);
        put_text(out, one->sentence);
        put_bytes(out, one->bytes, one->size);
    }
    const bool failed = ferror(out) != 0;
    return fclose(out) == 0 && !failed;
}

/* NUL-terminated; NULL at the end of the file or where the length cannot be. */
static uint8_t *get_bytes(FILE *in, size_t *size)
{
    uint64_t length;
    if (fread(&length, 1, sizeof length, in) != sizeof length || length > UINT64_C(1) << 32) return NULL;
    uint8_t *bytes = malloc((size_t)length + 1);
    if (bytes == NULL || fread(bytes, 1, (size_t)length, in) != length) {
        free(bytes);
        return NULL;
    }
    bytes[length] = 0;
    *size = (size_t)length;
    return bytes;
}

static bool get_fixed(FILE *in, void *to, size_t size)
{
    size_t length = 0;
    uint8_t *bytes = get_bytes(in, &length);
    const bool good = bytes != NULL && length == size;
    if (good) memcpy(to, bytes, size);
    free(bytes);
    return good;
}

static bool get_text(FILE *in, char *to, size_t size)
{
    size_t length;
    uint8_t *bytes = get_bytes(in, &length);
    if (bytes != NULL) snprintf(to, size, "%s", (char *)bytes);
    free(bytes);
    return bytes != NULL;
}

static bool read_record(FILE *in, struct record *one)
{
    uint64_t head[2];
    size_t length;
    if (!get_fixed(in, head, sizeof head)) return false;
    one->outcome = (enum outcome)head[0], one->identity = head[1];
    one->name = (char *)get_bytes(in, &length);
    one->form = (char *)get_bytes(in, &length);
    one->sentence = (char *)get_bytes(in, &length);
    one->bytes = get_bytes(in, &one->size);
    return one->bytes != NULL && one->name != NULL && one->form != NULL && one->sentence != NULL;
}

static bool read_all(FILE *in, struct result *r)
{
    char start[sizeof magic];
    uint32_t count;
    if (fread(start, 1, sizeof magic - 1, in) != sizeof magic - 1 || memcmp(start, magic, sizeof magic - 1) != 0)
        return false;
    if (!get_text(in, r->device, sizeof r->device) || !get_text(in, r->date, sizeof r->date)) return false;
    if (!get_fixed(in, &r->driver, sizeof r->driver) || !get_fixed(in, &count, sizeof count) || count > 10000000)
        return false;
    r->records = calloc(count + 1, sizeof *r->records);
    if (r->records == NULL) return false;
    for (r->count = 0; r->count < count; r->count++)
        if (!read_record(in, &r->records[r->count])) return false;
    return true;
}

bool result_read(struct result *r, const char *file, const char **sentence)
{
    *r = (struct result){ .count = 0 };
    FILE *in = fopen(file, "rb");
    *sentence = "cannot be opened";
    if (in == NULL) return false;
    const bool good = read_all(in, r);
    fclose(in);
    *sentence = "is no result of cudasim-calibrate, or is cut short";
    return good;
}

void result_release(struct result *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        free(r->records[i].name), free(r->records[i].form), free(r->records[i].sentence), free(r->records[i].bytes);
    free(r->records);
    *r = (struct result){ .count = 0 };
}

const struct record *result_find(const struct result *r, const char *name)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (strcmp(r->records[i].name, name) == 0) return &r->records[i];
    return NULL;
}
