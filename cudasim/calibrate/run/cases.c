/* Cases: keeping them, their input, their text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/families/families.h"

static char *copy(const char *text)
{
    char *kept = text == NULL ? NULL : strdup(text);
    if (text != NULL && kept == NULL) abort();
    return kept;
}

void calibration_add(struct calibration *c, const struct calibration_case *one)
{
    if (c->count == c->capacity) {
        c->capacity = c->capacity * 2 + 256;
        c->cases = realloc(c->cases, c->capacity * sizeof *c->cases);
        if (c->cases == NULL) abort();
    }
    struct calibration_case *kept = &c->cases[c->count++];
    *kept = *one;
    kept->name = copy(one->name), kept->form = copy(one->form), kept->body = copy(one->body),
    kept->before = copy(one->before);
    kept->module = copy(one->module);
    kept->target = copy(one->target == NULL ? "sm_90a" : one->target), kept->describe = copy(one->describe);
    for (int i = 0; i < 3; i++) {
        if (kept->grid[i] == 0) kept->grid[i] = 1;
        if (kept->block[i] == 0) kept->block[i] = i == 0 ? 32 : 1;
    }
    if (kept->version == 0) kept->version = 90;
    if (kept->launches == 0) kept->launches = 1;
}

/* The members are const for the families; what was copied is freed here. */
static void forget(struct calibration_case *c)
{
    const char *const owned[] = { c->name, c->form, c->body, c->before, c->module, c->target, c->describe };
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free((void *)(uintptr_t)owned[i]);
}

void calibration_drop(struct calibration *c, uint32_t first)
{
    while (c->count > first) forget(&c->cases[--c->count]);
}

void calibration_release(struct calibration *c)
{
    calibration_drop(c, 0);
    free(c->cases);
    *c = (struct calibration){ .count = 0 };
}

/* Two rows may have a form in common. */
static bool known(const struct calibration *c, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(c->cases[i].name, name) == 0) return true;
    return false;
}

/* Whether the name contains one of the texts, between which '|' stands. */
static bool chosen(const char *name, const char *only)
{
    while (only != NULL) {
        const size_t length = strcspn(only, "|");
        for (const char *at = name; strlen(at) >= length; at++)
            if (strncmp(at, only, length) == 0) return true;
        if (only[length] == '\0') return false;
        only += length + 1;
    }
    return true;
}

void calibration_collect(struct calibration *c, const char *only)
{
    for (calibration_family *const *family = calibration_families; *family != NULL; family++) (*family)(c);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const char *name = c->cases[i].name;
        if (!chosen(name, only) || known(c, kept, name)) forget(&c->cases[i]);
        else c->cases[kept++] = c->cases[i];
    }
    c->count = kept;
}

/* splitmix64 */
uint64_t calibration_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Eight bytes at a time, each step one to one; not against malice. */
uint64_t calibration_hash(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (hash ^= size; size != 0; size -= size < 8 ? size : 8, at += 8) {
        uint64_t word = 0;
        memcpy(&word, at, size < 8 ? size : 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 29;
    }
    return hash;
}

void calibration_fill(const struct calibration_case *c, uint8_t *input)
{
    if (c->fill != NULL) {
        c->fill(c, input);
        return;
    }
    uint64_t state = calibration_hash(1, c->name, strlen(c->name));
    for (size_t i = 0; i < c->input_bytes; i++) input[i] = (uint8_t)(calibration_random(&state) >> 32);
}

uint64_t calibration_identity(const struct calibration_case *c)
{
    uint8_t *input = malloc(c->input_bytes + 1);
    char *entry = calibration_entry(c, 0);
    if (input == NULL) abort();
    calibration_fill(c, input);
    uint64_t hash = calibration_hash(2, input, c->input_bytes);
    hash = calibration_hash(hash, entry, strlen(entry));
    const uint64_t shape[] = { c->grid[0],  c->grid[1],  c->grid[2],          c->block[0],          c->block[1],
                               c->block[2], c->dynamic_shared, c->output_bytes, (uint64_t)c->maps };
    hash = calibration_hash(hash, shape, sizeof shape);
    if (c->launches > 1) hash = calibration_hash(hash, &c->launches, sizeof c->launches);
    for (int i = 0; i < c->maps; i++) {
        const struct calibration_map *m = &c->map[i];
        const uint64_t kind[] = { m->data_type, m->rank, m->in_output, m->offset, m->interleave, m->swizzle, m->fill };
        hash = calibration_hash(hash, kind, sizeof kind);
        hash = calibration_hash(hash, m->size, sizeof m->size);
        hash = calibration_hash(hash, m->stride, sizeof m->stride);
        hash = calibration_hash(hash, m->box, sizeof m->box);
        hash = calibration_hash(hash, m->element_stride, sizeof m->element_stride);
    }
    free(input), free(entry);
    return hash;
}

static void put_numbered(FILE *out, const char *text, uint32_t number)
{
    for (; text != NULL && *text != '\0'; text++) {
        if (*text == '$') fprintf(out, "%u", number);
        else fputc(*text, out);
    }
}

char *calibration_entry(const struct calibration_case *c, uint32_t number)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) abort();
    put_numbered(out, c->module, number);
    fprintf(out, ".visible .entry c%u(.param .u64 in, .param .u64 out", number);
    for (int i = 0; i < c->maps; i++) fprintf(out, ", .param .align 64 .b8 map%d[128]", i);
    fprintf(out, ")\n%s\n{\n", c->before == NULL ? "" : c->before);
    put_numbered(out, c->body, number);
    fputs("\nret;\n}\n", out);
    if (fclose(out) != 0) abort();
    return text;
}
