/* What the targets of .safetensors and GGUF files check: what is accepted lies in the file, and its description comes
 * back the same when it is written.  Memory is bounded by the file's size. */
#ifndef FUZZ_CHECKPOINT_H
#define FUZZ_CHECKPOINT_H

#include "counted.h"

enum { ALLOWANCE = 1 << 20, PER_BYTE = 64 }; /* memory that reading may take: in all, and more for each byte of the
                                                file */

static bsm_context *context;

static bsm_tensor tensor_at(const bsm_checkpoint *checkpoint, int64_t index)
{
    bsm_tensor tensor = { .struct_size = sizeof tensor };
    REQUIRE(bsm_checkpoint_tensor(checkpoint, index, &tensor) == BSM_OK);
    return tensor;
}

static void check_tensor(const bsm_checkpoint *checkpoint, int64_t index, const uint8_t *data, size_t size)
{
    const bsm_tensor tensor = tensor_at(checkpoint, index);
    const uint8_t *at = tensor.data;
    REQUIRE(tensor.name != NULL && tensor.name[0] != '\0' && tensor.rank >= 0 && tensor.rank <= BSM_TENSOR_MAX_RANK &&
            tensor.bytes >= 0);
    for (int i = 0; i < tensor.rank; i++) REQUIRE(tensor.shape[i] >= 0);
    REQUIRE((int)tensor.type >= 0 && tensor.type < BSM_TENSOR_TYPE_COUNT
            && bsm_checkpoint_find(checkpoint, tensor.name) == index);
    REQUIRE(tensor.bytes == 0 || (at >= data && tensor.bytes <= data + size - at));
    volatile uint8_t sum = 0;
    for (int64_t i = 0; i < tensor.bytes; i++) sum = (uint8_t)(sum + at[i]);
}

/* A weight that is found lies in the file too. */
static void check_weight(const bsm_checkpoint *checkpoint, int64_t index, const uint8_t *data, size_t size)
{
    bsm_weight weight = { .struct_size = sizeof weight };
    int64_t bytes, scale_bytes;
    const bsm_status status = bsm_checkpoint_weight(checkpoint, index, &weight);
    REQUIRE(status == BSM_OK || status == BSM_EFILE || status == BSM_EALIGN || status == BSM_EUNSUPPORTED ||
            status == BSM_EOVERFLOW);
    if (status != BSM_OK || weight.convention == BSM_CONVENTION_NONE) return;
    REQUIRE(bsm_matrix_data_bytes(&weight.matrix, &bytes) == BSM_OK &&
            bsm_matrix_scale_bytes(&weight.matrix, &scale_bytes) == BSM_OK);
    const uint8_t *codes = weight.matrix.data, *scales = weight.matrix.scales;
    REQUIRE(bytes == 0 || (codes >= data && bytes <= data + size - codes));
    REQUIRE(scale_bytes == 0 || (scales >= data && scale_bytes <= data + size - scales));
    bsm_matrix tile;
    if (weight.tile_rows > 0 && weight.matrix.rows > 0 && weight.matrix.columns > 0) {
        const int64_t down = (weight.matrix.rows - 1) / weight.tile_rows,
                      across = (weight.matrix.columns - 1) / weight.tile_columns;
        REQUIRE(bsm_weight_tile(&weight, weight.matrix.batch - 1, down, across, &tile) == BSM_OK);
        const uint8_t *scale = (const uint8_t *)tile.tensor_scale;
        REQUIRE(bsm_matrix_data_bytes(&tile, &bytes) == BSM_OK && (uint8_t *)tile.data + bytes <= data + size);
        const bsm_tensor of_tiles = tensor_at(checkpoint, weight.tensor_scale);
        if (of_tiles.type == BSM_TENSOR_BF16 || of_tiles.type == BSM_TENSOR_F16) /* as fp32, in memory of the
                                                                                    checkpoint's */
            REQUIRE(tile.tensor_scale >= weight.tile_scales
                    && tile.tensor_scale - weight.tile_scales < of_tiles.bytes / 2);
        else REQUIRE(scale >= data && data + size - scale >= 4);
    }
}

/* Tensors that would lie unaligned are refused when they are written, so the answer may be that. */
static void write_and_read(const bsm_checkpoint *checkpoint, int64_t count)
{
    bsm_tensor *tensors = calloc((size_t)count + 1, sizeof *tensors);
    bsm_checkpoint *again;
    void *header;
    size_t header_bytes;
    int64_t bytes = 0;
    const bsm_checkpoint_kind kind = bsm_checkpoint_get_kind(checkpoint);
    REQUIRE(tensors != NULL);
    for (int64_t i = 0; i < count; i++) {
        tensors[i] = tensor_at(checkpoint, i);
        bytes += (tensors[i].bytes + 31) / 32 * 32;
    }
    const bsm_status status = bsm_checkpoint_header(context, kind, tensors, count, NULL, 0, &header, &header_bytes);
    REQUIRE(status == BSM_OK || status == BSM_EINVAL);
    if (status == BSM_OK) {
        uint8_t *file = calloc(header_bytes + (size_t)bytes + 1, 1);
        size_t used = header_bytes;
        REQUIRE(file != NULL);
        memcpy(file, header, header_bytes);
        for (int64_t i = 0; i < count; i++) {
            if (tensors[i].bytes > 0) memcpy(file + used, tensors[i].data, (size_t)tensors[i].bytes);
            used += (size_t)(kind == BSM_CHECKPOINT_GGUF ? (tensors[i].bytes + 31) / 32 * 32 : tensors[i].bytes);
        }
        REQUIRE(bsm_checkpoint_parse(context, file, used, &again) == BSM_OK
                && bsm_checkpoint_tensor_count(again) == count);
        for (int64_t i = 0; i < count; i++) {
            const bsm_tensor other = tensor_at(again, bsm_checkpoint_find(again, tensors[i].name));
            REQUIRE(other.type == tensors[i].type && other.rank == tensors[i].rank && other.bytes == tensors[i].bytes);
            REQUIRE(memcmp(other.shape, tensors[i].shape, sizeof other.shape) == 0);
            REQUIRE(other.bytes == 0 || memcmp(other.data, tensors[i].data, (size_t)other.bytes) == 0);
        }
        bsm_checkpoint_close(again);
        bsm_header_release(context, header, header_bytes);
        free(file);
    }
    free(tensors);
}

static void check_checkpoint(const uint8_t *data, size_t size)
{
    if (context == NULL) context = counted_context(INT64_MAX);
    bsm_checkpoint *checkpoint;
    const int64_t before = held;
    limit = before + PER_BYTE * (int64_t)size + ALLOWANCE;
    const bsm_status status = bsm_checkpoint_parse(context, data, size, &checkpoint);
    REQUIRE((status == BSM_OK) == (checkpoint != NULL));
    if (status == BSM_OK) {
        const int64_t count = bsm_checkpoint_tensor_count(checkpoint);
        for (int64_t i = 0; i < count; i++)
            check_tensor(checkpoint, i, data, size), check_weight(checkpoint, i, data, size);
        limit += 2 * PER_BYTE * (int64_t)size + ALLOWANCE;
        write_and_read(checkpoint, count);
        bsm_checkpoint_close(checkpoint);
    } else {
        REQUIRE(status == BSM_EFILE || status == BSM_EUNSUPPORTED);
        REQUIRE(bsm_last_error()[0] != '\0');
    }
    REQUIRE(held == before);
}

#endif
