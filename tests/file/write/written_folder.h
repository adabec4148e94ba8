/* What the tests of bsm_writer share: a folder of their own, weights of random codes and scales. */
#ifndef BSM_WRITTEN_FOLDER_H
#define BSM_WRITTEN_FOLDER_H

#include "blockscale.h"
#include "test.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static bsm_context *context;

static inline void enter(void)
{
    snprintf(folder, sizeof folder, "/tmp/blockscale-test-XXXXXX");
    if (mkdtemp(folder) == NULL) abort();
}

static inline const char *in_folder(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* Files and folders in a folder, which are removed if wanted; -1: there is no such folder. */
static inline int entries(const char *path, bool and_remove)
{
    DIR *directory = opendir(path);
    int count = 0;
    if (directory == NULL) return -1;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char inside[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        count++;
        if (snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) >= (int)sizeof inside) abort();
        if (and_remove && unlink(inside) != 0) entries(inside, true), rmdir(inside);
    }
    closedir(directory);
    return count;
}

static inline void leave(void)
{
    entries(folder, true);
    rmdir(folder);
}

static inline void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) abort();
}

/* The text of a file; "" where there is none. */
static inline const char *read_text(const char *name)
{
    static char text[1 << 16];
    FILE *file = fopen(in_folder(name), "r");
    const size_t bytes = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    if (file != NULL) fclose(file);
    text[bytes] = '\0';
    return text;
}

static inline bool exists(const char *name) { return access(in_folder(name), F_OK) == 0; }

#define GOOD(t, call) do { if ((call) != BSM_OK) FAIL(t, "%s: %s", #call, bsm_last_error()); } while (0)

/* Weights ---------------------------------------------------------------------------------------------------------- */

/* A weight with random codes and scales in memory of its own. */
struct made {
    bsm_writer_weight weight;
    bsm_matrix matrix;
    int64_t number, data_bytes, scale_bytes;
    float tensor_scale, input_scale;
};

static inline void *random_bytes(struct test *t, int64_t count)
{
    unsigned char *bytes = malloc((size_t)count + 1);
    for (int64_t i = 0; i < count; i++) bytes[i] = (unsigned char)rnd(t);
    return bytes;
}

static inline void announce(struct test *t, bsm_writer *writer, struct made *made)
{
    made->weight.struct_size = sizeof made->weight;
    GOOD(t, bsm_writer_add_weight(writer, &made->weight, &made->number, &made->matrix));
    GOOD(t, bsm_matrix_data_bytes(&made->matrix, &made->data_bytes));
    GOOD(t, bsm_matrix_scale_bytes(&made->matrix, &made->scale_bytes));
    made->matrix.data = random_bytes(t, made->data_bytes);
    made->matrix.scales = made->matrix.packing == BSM_PACKING_GGUF ? made->matrix.data
                          : made->scale_bytes > 0                  ? random_bytes(t, made->scale_bytes)
                                                                   : NULL;
    made->tensor_scale = 0.375f;
    made->input_scale = 1.5f;
    if (made->weight.tensor_scale) made->matrix.tensor_scale = &made->tensor_scale;
}

static inline void put(struct test *t, bsm_writer *writer, const struct made *made)
{
    const float *input_scale = made->weight.input_scale ? &made->input_scale : NULL;
    GOOD(t, bsm_writer_put_weight(writer, made->number, &made->matrix, input_scale));
}

static inline void forget(struct made *made)
{
    if (made->matrix.scales != made->matrix.data) free(made->matrix.scales);
    free(made->matrix.data);
}

/* What is written beside them. */
static const bsm_tensor passed_on = {
    .struct_size = sizeof passed_on, .name = "kept.weight", .type = BSM_TENSOR_F32, .gguf_type = -1, .rank = 2,
    .shape = { 2, 3 }
};

#endif
