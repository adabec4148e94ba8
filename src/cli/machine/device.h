/* Products on a GPU for the command: its context, copies of what lies in host memory, and D back. */
#ifndef CLI_DEVICE_H
#define CLI_DEVICE_H

#include "cli/cli.h"

/* --device cpu, cuda or hip; 0 is the CPU. */
extern const struct cli_choices cli_devices;
#define CLI_DEVICE(settings, field) CLI_CHOICE(settings, field, &cli_devices)

/* NULL for the CPU, else a context of the first GPU.  Returns CLI_DONE, or prints and returns CLI_NO_DEVICE. */
int device_open(struct cli *cli, int device, bsm_context **gpu);

/* A host product and its twin in device memory. */
struct device_product {
    bsm_context *gpu;
    const bsm_matmul *host;
    bsm_sparse_matrix a, b;               /* or ordinary ones, as struct_size says */
    bsm_matrix c, d;
    bsm_matmul call;                      /* what the GPU is given */
    void *workspace;
    enum { DEVICE_POINTERS = 20 } most;
    void *memory[DEVICE_POINTERS];
    int count;
};

/* Copies everything that `host` names.  Free it also after a failure. */
bsm_status device_product_create(bsm_context *gpu, const bsm_matmul *host, struct device_product *product);
/* Device memory that is freed with the product. */
bsm_status device_product_allocate(struct device_product *product, size_t bytes, void **memory);
/* Waits, and copies D, its scales and amax into the host's. */
bsm_status device_product_read(const struct device_product *product);
void device_product_free(struct device_product *product);

#endif
