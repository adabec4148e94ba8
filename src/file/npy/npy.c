/* .npy files in and out. */
#include "npy.h"
#include "file/io/file.h"
#include "file/io/replace.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "data is copied as it lies in the file, which is little-endian");

/* Reading ---------------------------------------------------------------------------------------------------------- */

/* Empties the caller's struct, of which our version may be the shorter one. */
static bsm_status prepare(bsm_npy *array)
{
    if (array == NULL) return bsmi_fail(BSM_EINVAL, "array is NULL");
    if (array->struct_size < sizeof *array || array->struct_size > 65536)
        return bsmi_fail(BSM_EINVAL, "array->struct_size is %zu: set it to sizeof(bsm_npy), %zu", array->struct_size,
                         sizeof *array);
    memset((char *)array + sizeof array->struct_size, 0, array->struct_size - sizeof array->struct_size);
    return BSM_OK;
}

/* A failed array keeps nothing of what was read before the failure. */
static bsm_status give_up(bsm_npy *array, bsm_status status)
{
    prepare(array);
    return status;
}

/* The data fills the rest of the file exactly; memory for it. */
static bsm_status make_room(bsm_context *context, uint64_t rest, bsm_npy *array)
{
    if (rest < array->bytes)
        return bsmi_fail(BSM_EFILE,
                         "the shape needs %zu bytes of data, but the file has only %" PRIu64 ": it is cut off",
                         array->bytes, rest);
    if (rest > array->bytes)
        return bsmi_fail(BSM_EFILE, "%" PRIu64 " bytes stand behind the data that the shape needs",
                         rest - array->bytes);
    if (array->bytes == 0) return BSM_OK;
    array->data = bsmi_allocate(context, array->bytes);
    if (array->data == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for %zu bytes of data", array->bytes);
    return BSM_OK;
}

bsm_status bsm_npy_parse(bsm_context *context, const void *file, size_t file_bytes, bsm_npy *array)
{
    struct bsmi_npy_preamble preamble = { 0, 0 };
    bsm_status status = prepare(array);
    if (status != BSM_OK) return status;
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if (file == NULL && file_bytes > 0) return bsmi_fail(BSM_EINVAL, "file is NULL with file_bytes=%zu", file_bytes);
    status = bsmi_npy_read_preamble(file, file_bytes, &preamble);
    if (status != BSM_OK) return status;
    const char *text = (const char *)file + preamble.header_at;
    status = bsmi_npy_read_header(text, preamble.header_bytes, array);
    if (status == BSM_OK) status = make_room(context, file_bytes - preamble.header_at - preamble.header_bytes, array);
    if (status != BSM_OK) return give_up(array, status);
    if (array->bytes > 0) memcpy(array->data, text + preamble.header_bytes, array->bytes);
    return BSM_OK;
}

/* The header's text, from the descriptor into memory for the time of parsing. */
static bsm_status read_header(bsm_context *context, int descriptor, const char *path, size_t bytes, bsm_npy *array)
{
    char *text = bsmi_allocate(context, bytes);
    if (text == NULL && bytes > 0) return bsmi_fail(BSM_ENOMEM, "no memory for a header of %zu bytes", bytes);
    bsm_status status = bsmi_read_exactly(descriptor, path, text, bytes);
    if (status == BSM_OK) status = bsmi_npy_read_header(text, bytes, array);
    bsmi_release(context, text, bytes);
    return status;
}

static bsm_status read_open_file(bsm_context *context, int descriptor, const char *path, uint64_t file_bytes,
                                 bsm_npy *array)
{
    unsigned char start[BSMI_NPY_PREAMBLE];
    struct bsmi_npy_preamble preamble = { 0, 0 };
    size_t read = BSMI_MIN(file_bytes, (uint64_t)10);
    bsm_status status = bsmi_read_exactly(descriptor, path, start, read);
    if (status == BSM_OK && read == 10 && start[6] != 1
        && file_bytes >= BSMI_NPY_PREAMBLE) /* the longer one of later versions */
        status = bsmi_read_exactly(descriptor, path, start + 10, 2);
    if (status == BSM_OK) status = bsmi_npy_read_preamble(start, file_bytes, &preamble);
    if (status == BSM_OK) status = read_header(context, descriptor, path, preamble.header_bytes, array);
    if (status == BSM_OK) status = make_room(context, file_bytes - preamble.header_at - preamble.header_bytes, array);
    if (status == BSM_OK) status = bsmi_read_exactly(descriptor, path, array->data, array->bytes);
    return status;
}

bsm_status bsm_npy_read(bsm_context *context, const char *path, bsm_npy *array)
{
    int descriptor = -1;
    uint64_t file_bytes = 0;
    bsm_status status = prepare(array);
    if (status != BSM_OK) return status;
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if (path == NULL || path[0] == '\0') return bsmi_fail(BSM_EINVAL, "path is %s", path == NULL ? "NULL" : "empty");
    status = bsmi_open_file(path, &descriptor, &file_bytes);
    if (status != BSM_OK) return status;
    status = read_open_file(context, descriptor, path, file_bytes, array);
    close(descriptor);
    if (status == BSM_OK) return BSM_OK;
    if (status != BSM_EIO) bsmi_fail(status, "%.256s: %s", path, bsm_last_error());   /* those of EIO name it */
    bsm_npy_release(context, array);
    return give_up(array, status);
}

void bsm_npy_release(bsm_context *context, bsm_npy *array)
{
    if (context == NULL || array == NULL) return;
    bsmi_release(context, array->data, array->bytes);
    array->data = NULL;
    array->bytes = 0;
}

/* Writing ---------------------------------------------------------------------------------------------------------- */

static bsm_status check_array(bsm_npy_type type, int rank, const int64_t *shape, int64_t *bytes)
{
    if (bsm_npy_type_bytes((int)type) == 0) return bsmi_fail(BSM_EINVAL, "type=%d is no type of .npy files", (int)type);
    if (rank < 0 || rank > BSM_NPY_MAX_RANK)
        return bsmi_fail(BSM_EINVAL, "rank=%d: an array has 0 to %d dimensions", rank, BSM_NPY_MAX_RANK);
    if (shape == NULL && rank > 0) return bsmi_fail(BSM_EINVAL, "shape is NULL with rank=%d", rank);
    for (int i = 0; i < rank; i++)
        if (shape[i] < 0) return bsmi_fail(BSM_EINVAL, "shape[%d]=%" PRId64 " is negative", i, shape[i]);
    if (bsmi_npy_shape_bytes(rank, shape, bsm_npy_type_bytes((int)type), bytes))
        return bsmi_fail(BSM_EOVERFLOW, "the shape multiplies to more bytes than 63 bits count");
    return BSM_OK;
}

/* The dict, as NumPy words it; returns its length. */
static size_t print_dict(bsm_npy_type type, int rank, const int64_t *shape, char *text, size_t room)
{
    size_t n = (size_t)snprintf(text, room, "{'descr': '%s', 'fortran_order': False, 'shape': (", bsmi_npy_descr(type));
    for (int i = 0; i < rank; i++)
        n += (size_t)snprintf(text + n, room - n, "%" PRId64 "%s", shape[i],
                              i + 1 < rank ? ", "
                              : rank == 1  ? ","
                                           : "");
    return n + (size_t)snprintf(text + n, room - n, "), }");
}

/* NumPy leaves blanks for the first dimension to grow to 21 digits in place, and ends the head on a multiple of 64
 * bytes (with 64 blanks more where it is one already); doing the same gives the same file. */
static size_t padded_length(size_t dict, int rank, const int64_t *shape)
{
    const size_t growth = rank == 0 ? 0 : 21 - (size_t)snprintf(NULL, 0, "%" PRId64, shape[0]);
    return (10 + dict + growth + 1) / 64 * 64 + 64;
}

bsm_status bsm_npy_header(bsm_npy_type type, int rank, const int64_t *shape, void *header, size_t room, size_t *bytes)
{
    char dict[BSM_NPY_MAX_HEADER];
    int64_t data_bytes;
    if (header == NULL || bytes == NULL)
        return bsmi_fail(BSM_EINVAL, "%s is NULL", header == NULL ? "header" : "bytes");
    const bsm_status status = check_array(type, rank, shape, &data_bytes);
    if (status != BSM_OK) return status;
    const size_t length = print_dict(type, rank, shape, dict, sizeof dict), total = padded_length(length, rank, shape);
    if (room < total) return bsmi_fail(BSM_EINVAL, "room=%zu: this header has %zu bytes", room, total);
    unsigned char *out = header;
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (unsigned char)((total - 10) & 255);
    out[9] = (unsigned char)((total - 10) >> 8);
    memcpy(out + 10, dict, length);
    memset(out + 10 + length, ' ', total - 10 - length);
    out[total - 1] = '\n';
    *bytes = total;
    return BSM_OK;
}

bsm_status bsm_npy_write(const char *path, bsm_npy_type type, int rank, const int64_t *shape, const void *data)
{
    unsigned char header[BSM_NPY_MAX_HEADER];
    size_t header_bytes;
    int64_t data_bytes;
    if (path == NULL || path[0] == '\0') return bsmi_fail(BSM_EINVAL, "path is %s", path == NULL ? "NULL" : "empty");
    bsm_status status = check_array(type, rank, shape, &data_bytes);
    if (status != BSM_OK) return status;
    if (data == NULL && data_bytes > 0)
        return bsmi_fail(BSM_EINVAL, "data is NULL, but the shape needs %" PRId64 " bytes", data_bytes);
    status = bsm_npy_header(type, rank, shape, header, sizeof header, &header_bytes);
    if (status != BSM_OK) return status;
    const struct bsmi_piece pieces[] = { { header, header_bytes }, { data, (size_t)data_bytes } };
    return bsmi_write_file(path, pieces, 2);
}
