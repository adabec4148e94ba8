/* What the tests of weights share: a checkpoint put together in memory, and weights found in it. */
#ifndef BSM_MADE_CHECKPOINT_H
#define BSM_MADE_CHECKPOINT_H

#include "blockscale/weight.h"
#include "test.h"

#include <stdlib.h>

/* A checkpoint in memory ------------------------------------------------------------------------------------------- */

enum { MOST_TENSORS = 8, MOST_BYTES = 1 << 16 };
struct made {
    bsm_tensor tensors[MOST_TENSORS];
    int count;
    const bsm_metadata *metadata;
    int64_t metadata_count;
    _Alignas(64) unsigned char file[MOST_BYTES];
    size_t bytes;
    bsm_checkpoint *checkpoint;
};
static struct made made;
static bsm_context *context;

static inline void start(void) { made.count = 0, made.metadata_count = 0; }

/* Widest numbers are to be added first.  data: NULL for random bytes. */
static inline void add(const char *name, bsm_tensor_type type, int rank, const int64_t *shape, const void *data)
{
    bsm_tensor *t = &made.tensors[made.count++];
    *t = (bsm_tensor){ .struct_size = sizeof *t, .name = name, .type = type, .gguf_type = -1, .rank = rank,
                       .data = data };
    for (int i = 0; i < rank; i++) t->shape[i] = shape[i];
}
#define ADD(name, type, data, ...) \
    add(name, BSM_TENSOR_##type, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), \
        (const int64_t[]){ __VA_ARGS__ }, data)

static inline void finish(struct test *t, bsm_checkpoint_kind kind)
{
    void *header;
    size_t header_bytes;
    if (bsm_checkpoint_header(context, kind, made.tensors, made.count, made.metadata, made.metadata_count, &header,
                              &header_bytes) != BSM_OK) {
        fprintf(stderr, "%s\n", bsm_last_error());
        abort();
    }
    memcpy(made.file, header, header_bytes);
    bsm_header_release(context, header, header_bytes);
    for (size_t i = header_bytes; i < MOST_BYTES; i++) made.file[i] = (unsigned char)rnd(t);
    for (made.bytes = header_bytes; bsm_checkpoint_parse(context, made.file, made.bytes, &made.checkpoint) != BSM_OK;
         made.bytes++)
        if (made.bytes == MOST_BYTES) abort();
    for (int i = 0; i < made.count; i++) {
        bsm_tensor found = { .struct_size = sizeof found };
        CHECK(t,
              bsm_checkpoint_tensor(made.checkpoint, bsm_checkpoint_find(made.checkpoint, made.tensors[i].name), &found)
                  == BSM_OK);
        if (made.tensors[i].data != NULL)
            memcpy((void *)(uintptr_t)found.data, made.tensors[i].data, (size_t)found.bytes);
    }
    /* Once more, now that the bytes are there. */
    bsm_checkpoint_close(made.checkpoint);
    CHECK(t, bsm_checkpoint_parse(context, made.file, made.bytes, &made.checkpoint) == BSM_OK);
}

static inline void end(void) { bsm_checkpoint_close(made.checkpoint); }

static inline const unsigned char *bytes_of(const char *name)
{
    bsm_tensor found = { .struct_size = sizeof found };
    if (bsm_checkpoint_tensor(made.checkpoint, bsm_checkpoint_find(made.checkpoint, name), &found) != BSM_OK) abort();
    return found.data;
}

static inline bsm_weight weight_called(struct test *t, const char *name, bsm_convention convention, bsm_format format)
{
    bsm_weight weight = { .struct_size = sizeof weight };
    const bsm_status status = bsm_checkpoint_find_weight(made.checkpoint, name, &weight);
    if (status != BSM_OK) FAIL(t, "%s: %s", name, bsm_last_error());
    else if (weight.convention != convention || weight.matrix.format != format)
        FAIL(t, "%s: convention %d, format %d", name, (int)weight.convention, (int)weight.matrix.format);
    CHECK(t, weight.name_length == (int64_t)strlen(name) && strncmp(weight.name, name, strlen(name)) == 0);
    return weight;
}

#endif
