/* Kernels of the library, launched one by one through the driver table: on cudasim where BLOCKSCALE_LIBCUDA names it,
 * as make test does, else on a GPU.  Everything is synchronous, and everything that fails is a failure of the test. */
#ifndef BSM_TEST_DEVICE_H
#define BSM_TEST_DEVICE_H

#include "blockscale.h"
#include "cuda/params/kernels.h"
#include "device/matrix.h"
#include "matrix/matrix.h"
#include "matrix/reals.h"
#include "test.h"

/* Opens the device once in a process.  False, with the test skipped, where this build has no kernels or there is no
 * libcuda. */
bool device_open(struct test *t);
/* Not cudasim: larger sizes are run. */
bool device_is_real(void);

/* Device memory of exactly `bytes` bytes behind `offset` bytes of an aligned allocation, filled from host memory (NULL:
 * with `fill`).  Never NULL.  device_free_all ends the life of everything. */
void *device_copy(struct test *t, const void *from, size_t bytes, size_t offset);
void *device_fill(struct test *t, int fill, size_t bytes, size_t offset);
void device_write_word(struct test *t, uint32_t *to, uint32_t word);
void device_read(struct test *t, void *to, const void *from, size_t bytes);
void device_free_all(struct test *t);

/* Launches a kernel by its name and waits.  parameters: its struct. */
bool device_launch(struct test *t, const char *kernel, int ctas, int threads, const void *parameters);

/* A matrix in host memory with its twin on the device. */
struct twin {
    bsm_matrix host;
    struct bsmi_matrix resolved;          /* of the host's */
    struct bsmi_device_matrix device;
    int64_t data_bytes, scale_bytes;
    float tensor_scale;
};

enum { NO_LAYOUT = 4 };                   /* a number between layouts that is none: tests take rows padded to 16 bytes
                                             for it */

/* What a twin is like: pitches may be 0; offset: bytes by which data and scales are off an aligned address on the
 * device. */
struct twin_wish {
    bsm_format format;
    bsm_packing packing;
    bsm_scale_layout layout;
    int64_t rows, columns, batch, extra_pitch;      /* extra_pitch in units that every packing takes: 64 elements */
    int offset;
    float tensor_scale;                   /* 0: none */
    bsm_tensor_scale_use use;
};

/* Host bytes are random; false where format, packing and layout do not go together. */
bool twin_make(struct test *t, const struct twin_wish *wish, struct twin *twin);
/* Copies the host's bytes to new device memory, and sets device. */
void twin_upload(struct test *t, const struct twin_wish *wish, struct twin *twin);
/* Whether the device's bytes are the host's. */
bool twin_equal(struct test *t, const struct twin *twin, const char *what);
void twin_free(struct twin *twin);

/* "mxfp8_e4m3 bytes linear 3x65 ..." of a wish. */
const char *wish_text(const struct twin_wish *wish);

#endif
