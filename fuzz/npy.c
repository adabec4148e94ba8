/* The .npy reader: any bytes.  What is accepted is whole, and comes back the same when it is written. */
#include "counted.h"

#include <unistd.h>

enum { ALLOWANCE = 1 << 20 };            /* bytes beyond the file that reading it may take */

static bsm_context *context;

static size_t size_of(bsm_npy_type type)
{
    static const size_t sizes[BSM_NPY_TYPE_COUNT] = {
        [BSM_NPY_FP16] = 2,  [BSM_NPY_FP32] = 4,  [BSM_NPY_FP64] = 8,  [BSM_NPY_INT8] = 1,
        [BSM_NPY_UINT8] = 1, [BSM_NPY_BYTES] = 1, [BSM_NPY_WORDS] = 2, [BSM_NPY_UINT16] = 2
    };
    REQUIRE((int)type >= 0 && type < BSM_NPY_TYPE_COUNT);
    return sizes[type];
}

static void check_whole(const bsm_npy *array)
{
    size_t bytes = size_of(array->type);
    REQUIRE(array->rank >= 0 && array->rank <= BSM_NPY_MAX_RANK);
    for (int i = 0; i < array->rank; i++) {
        REQUIRE(array->shape[i] >= 0);
        bytes *= (size_t)array->shape[i];
    }
    REQUIRE(bytes == array->bytes && (bytes == 0) == (array->data == NULL));
    REQUIRE((uintptr_t)array->data % 64 == 0 && memchr(array->descr, 0, sizeof array->descr) != NULL);
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < bytes; i++) sum = (unsigned char)(sum + ((const unsigned char *)array->data)[i]);
}

static void write_and_read(const bsm_npy *array)
{
    char path[64];
    bsm_npy again = { .struct_size = sizeof again };
    snprintf(path, sizeof path, "/tmp/blockscale-fuzz-%ld.npy", (long)getpid());
    REQUIRE(bsm_npy_write(path, array->type, array->rank, array->shape, array->data) == BSM_OK);
    REQUIRE(bsm_npy_read(context, path, &again) == BSM_OK);
    unlink(path);
    REQUIRE(again.type == array->type && again.rank == array->rank && again.bytes == array->bytes
            && !again.fortran_order);
    REQUIRE(memcmp(again.shape, array->shape, (size_t)array->rank * sizeof(int64_t)) == 0);
    REQUIRE(array->bytes == 0 || memcmp(again.data, array->data, array->bytes) == 0);
    bsm_npy_release(context, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (context == NULL) context = counted_context(ALLOWANCE);
    bsm_npy array = { .struct_size = sizeof array };
    const int64_t before = held;
    limit = before + (int64_t)size + ALLOWANCE;
    const bsm_status status = bsm_npy_parse(context, data, size, &array);
    if (status == BSM_OK) {
        check_whole(&array);
        limit += 2 * ((int64_t)size + ALLOWANCE);
        if (size % 8 == 0) write_and_read(&array);
        bsm_npy_release(context, &array);
    } else {
        REQUIRE(status == BSM_EFILE || status == BSM_EUNSUPPORTED || status == BSM_EOVERFLOW);
        REQUIRE(bsm_last_error()[0] != '\0');
    }
    REQUIRE(held == before);
    return 0;
}
