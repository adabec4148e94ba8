/* What the tests of checkpoint files share: files put together byte by byte, and reading them under watch. */
#ifndef BSM_CHECKPOINT_BYTES_H
#define BSM_CHECKPOINT_BYTES_H

#include "blockscale/checkpoint.h"
#include "counted.h"
#include "test.h"

#include <stdlib.h>
#include <time.h>

enum { BYTES_ROOM = 1 << 16 };
struct bytes {
    unsigned char at[BYTES_ROOM];
    size_t count;
};

static inline void put(struct bytes *b, const void *bytes, size_t count)
{
    if (count > sizeof b->at - b->count) abort();
    memcpy(b->at + b->count, bytes, count);
    b->count += count;
}

static inline void put_number(struct bytes *b, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) put(b, &(unsigned char){ (unsigned char)(number >> 8 * i) }, 1);
}

/* Byte i of a tensor's data is 7 i + 3. */
static inline void put_pattern(struct bytes *b, size_t count)
{
    for (size_t i = 0; i < count; i++) put_number(b, 7 * i + 3, 1);
}

static inline bool is_pattern(const void *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (((const unsigned char *)data)[i] != (unsigned char)(7 * i + 3)) return false;
    return true;
}

/* A .safetensors file: the header's text, its length as stated, data_bytes bytes. */
static inline void put_safetensors(struct bytes *b, const char *header, uint64_t stated, size_t data_bytes)
{
    b->count = 0;
    put_number(b, stated, 8);
    put(b, header, strlen(header));
    put_pattern(b, data_bytes);
}

enum { MOST_MEMORY = 1 << 20 }; /* bytes that a small file may cost */
static const double MOST_SECONDS = 0.01;

static inline double thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Parses a copy that ends at an inaccessible page.  The status; a checkpoint that opened is looked at whole and
 * closed.  Fails on memory kept or misused, on more of it than MOST_MEMORY, and on a failure without a sentence or
 * slower than MOST_SECONDS. */
static inline bsm_status parse_watched(struct test *t, const void *file, size_t bytes)
{
    struct counted counted = { .calls = 0 };
    const bsm_allocator allocator = counted_allocator(&counted);
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 1, .allocator = &allocator };
    bsm_context *context;
    bsm_checkpoint *checkpoint;
    if (bsm_context_create(&options, &context) != BSM_OK) abort();
    unsigned char *copy = guarded_at_end(bytes, 1, 0);
    if (bytes > 0) memcpy(copy, file, bytes);
    const double start = thread_seconds();
    const bsm_status status = bsm_checkpoint_parse(context, copy, bytes, &checkpoint);
    const double seconds = thread_seconds() - start;
    CHECK(t, (status == BSM_OK) == (checkpoint != NULL));
    CHECK(t, counted.most_bytes <= MOST_MEMORY);
    if (!(seconds <= MOST_SECONDS)) FAIL(t, "took %.4f s", seconds);
    if (status != BSM_OK) CHECK(t, bsm_last_error()[0] != '\0' && (status == BSM_EFILE || status == BSM_EUNSUPPORTED));
    for (int64_t i = 0; i < bsm_checkpoint_tensor_count(checkpoint); i++) {
        bsm_tensor tensor = { .struct_size = sizeof tensor };
        CHECK(t,
              bsm_checkpoint_tensor(checkpoint, i, &tensor) == BSM_OK && tensor.name[0] != '\0' && tensor.bytes >= 0);
        CHECK(t, bsm_checkpoint_find(checkpoint, tensor.name) == i);
        const unsigned char *data = tensor.data;
        CHECK(t, tensor.bytes == 0 || (data >= copy && tensor.bytes <= copy + bytes - data));
    }
    bsm_checkpoint_close(checkpoint);
    bsm_context_destroy(context);
    CHECK(t, counted.live == 0 && counted.errors == 0);
    guarded_free(copy);
    return status;
}

/* Every cut within the first `needed` bytes is refused; every flipped bit of the first head_bytes gives a status, and
 * no harm. */
static inline void cut_and_flip(struct test *t, const void *file, size_t bytes, size_t needed, size_t head_bytes)
{
    unsigned char *damaged = malloc(bytes);
    if (damaged == NULL) abort();
    memcpy(damaged, file, bytes);
    CHECK(t, parse_watched(t, damaged, bytes) == BSM_OK);
    for (size_t cut = 0; cut < needed; cut++)
        if (parse_watched(t, damaged, cut) == BSM_OK) FAIL(t, "cut at byte %zu: accepted", cut);
    for (size_t bit = 0; bit < 8 * head_bytes; bit++) {
        damaged[bit / 8] = (unsigned char)(damaged[bit / 8] ^ 1u << bit % 8);
        parse_watched(t, damaged, bytes);
        damaged[bit / 8] = (unsigned char)(damaged[bit / 8] ^ 1u << bit % 8);
    }
    free(damaged);
}

/* The n-th allocation fails, once and from then on: BSM_ENOMEM, and nothing is kept. */
static inline void fail_allocations(struct test *t, const void *file, size_t bytes)
{
    for (int forever = 0; forever < 2; forever++)
        for (int64_t n = 1, last = 0; !last; n++) {
            struct counted counted = { .calls = 0 };
            const bsm_allocator allocator = counted_allocator(&counted);
            const bsm_context_options options = { .struct_size = sizeof options, .threads = 1,
                                                  .allocator = &allocator };
            bsm_context *context;
            bsm_checkpoint *checkpoint;
            if (bsm_context_create(&options, &context) != BSM_OK) abort();
            counted.fail_at = counted.calls + n, counted.forever = forever;
            const bsm_status status = bsm_checkpoint_parse(context, file, bytes, &checkpoint);
            last = counted.calls < counted.fail_at;
            CHECK(t, status == (last ? BSM_OK : BSM_ENOMEM) && (checkpoint != NULL) == last);
            bsm_checkpoint_close(checkpoint);
            bsm_context_destroy(context);
            CHECK(t, counted.live == 0 && counted.errors == 0);
        }
}

#endif
