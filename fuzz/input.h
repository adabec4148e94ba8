/* What the fuzz targets share: numbers out of the input's bytes, and a check that stops the program.
 *
 * A target is one file with LLVMFuzzerTestOneInput.  It is linked with libFuzzer by `make fuzz`, and with replay.c by
 * `make test`, which runs the inputs in fuzz/corpus and what is near them. */
#ifndef BSM_FUZZ_INPUT_H
#define BSM_FUZZ_INPUT_H

#include "blockscale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, bsm_last_error()); \
            abort(); \
        } \
    } while (0)

struct input { const uint8_t *data; size_t size; };

/* The next bytes as a little-endian number; zeros behind the end. */
static inline uint64_t take(struct input *in, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes && in->size > 0; i++, in->data++, in->size--) value |= (uint64_t)*in->data << 8 * i;
    return value;
}

static inline int pick(struct input *in, int choices) { return (int)(take(in, 1) % (unsigned)choices); }

/* Mostly a small size, sometimes anything. */
static inline int64_t take_size(struct input *in, int small)
{
    const int first = pick(in, 256);
    if (first < 248) return first % small;
    static const int64_t special[] = { -1, INT32_MAX, (int64_t)1 << 32, INT64_MAX, INT64_MIN, INT64_MAX / 2 };
    return first < 254 ? special[first - 248] : (int64_t)take(in, 8);
}

/* Mostly 0 (the default), else a size. */
static inline int64_t take_pitch(struct input *in, int small) { return pick(in, 3) != 0 ? 0 : take_size(in, small); }

/* Repeatable bytes for buffers (splitmix64). */
static inline void fill(unsigned char *bytes, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        bytes[i] = (unsigned char)(z >> 56);
    }
}

/* Exactly `bytes` bytes, so that AddressSanitizer sees the first one behind them; NULL for 0. */
static inline unsigned char *buffer_of(int64_t bytes, uint64_t seed)
{
    unsigned char *memory = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (memory != NULL) fill(memory, bytes, seed);
    return memory;
}

static inline bsm_context *context_of(int threads, bool portable_only)
{
    bsm_context *context;
    const bsm_context_options options = { .struct_size = sizeof options, .threads = threads,
                                          .portable_only = portable_only };
    REQUIRE(bsm_context_create(&options, &context) == BSM_OK);
    return context;
}

/* A layout of any kind, its parameters mostly as they should be. */
static inline bsm_scale_layout take_layout(struct input *in)
{
    bsm_scale_layout layout = { .kind = (bsm_layout)pick(in, BSM_LAYOUT_COUNT + 1) };
    if (layout.kind < BSM_LAYOUT_COUNT && bsm_layout_name((int)layout.kind) == NULL)      /* a number that is none */
        return (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR, .pitch = BSM_PITCH_PADDED_16 };
    const bool tiles = layout.kind == BSM_LAYOUT_TILES, odd = pick(in, 16) == 15;
    if (tiles != odd) layout.tile_rows = take_size(in, 9), layout.tile_columns = take_size(in, 9);
    if (layout.kind == BSM_LAYOUT_LINEAR || odd) layout.pitch = take_pitch(in, 64);
    return layout;
}

/* A matrix of which nothing but the pointers is decided: a format that exists, and the rest mostly legal. */
static inline bsm_matrix take_matrix(struct input *in, int64_t rows, int64_t columns)
{
    bsm_matrix m = { .struct_size = sizeof m, .format = (bsm_format)(1 + pick(in, BSM_FORMAT_COUNT - 1)), .rows = rows,
                     .columns = columns };
    m.packing = (bsm_packing)(pick(in, 2) != 0 ? 0 : pick(in, BSM_PACKING_COUNT));
    m.scale_layout = pick(in, 3) != 0 ? (bsm_scale_layout){ 0 } : take_layout(in);
    if (m.packing == BSM_PACKING_GGUF)
        m.scale_layout =
            (bsm_scale_layout){ .kind = m.format == BSM_NVFP4 ? BSM_LAYOUT_GGUF_NVFP4 : BSM_LAYOUT_GGUF_MXFP4 };
    m.pitch = take_pitch(in, 128);
    m.batch = pick(in, 4) != 0 ? 0 : take_size(in, 4);
    m.batch_pitch = take_pitch(in, 255);
    m.scale_batch_pitch = take_pitch(in, 255);
    return m;
}

/* Gives a description exact buffers; false (and nothing allocated) if it has none, or would need more than 64 KiB. */
static inline bool give_buffers(bsm_matrix *m, uint64_t seed)
{
    int64_t data_bytes, scale_bytes;
    if (bsm_matrix_data_bytes(m, &data_bytes) != BSM_OK || bsm_matrix_scale_bytes(m, &scale_bytes) != BSM_OK)
        return false;
    REQUIRE(data_bytes >= 0 && scale_bytes >= 0);
    if (data_bytes > 65536 || scale_bytes > 65536) return false;
    m->data = buffer_of(data_bytes, seed);
    m->scales = buffer_of(scale_bytes, seed + 1);
    return true;
}

static inline void free_buffers(bsm_matrix *m)
{
    free(m->data);
    if (m->scales != m->data) free(m->scales);
}

#endif
