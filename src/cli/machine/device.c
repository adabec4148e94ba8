/* Products on a GPU for the command. */
#include "device.h"

#include <string.h>

/* Backends that a device is asked for by, in the order of their numbers among the choices. */
static const bsm_backend backends[] = { BSM_BACKEND_CPU, BSM_BACKEND_CUDA, BSM_BACKEND_HIP };
enum { BACKENDS = sizeof backends / sizeof backends[0] };

static const char *device_name(int value)
{
    return value >= 0 && value < BACKENDS ? bsm_backend_name((int)backends[value]) : NULL;
}

static int device_from_name(const char *name)
{
    for (int i = 0; i < BACKENDS; i++)
        if (strcmp(name, device_name(i)) == 0) return i;
    return -1;
}

const struct cli_choices cli_devices = { device_name, device_from_name, 0, BACKENDS };

int device_open(struct cli *cli, int device, bsm_context **gpu)
{
    const bsm_context_options options = { .struct_size = sizeof options, .backend = backends[device] };
    *gpu = NULL;
    if (device == 0 || bsm_context_create(&options, gpu) == BSM_OK) return CLI_DONE;
    cli_bad_input(cli, "--device %s: %s", device_name(device), bsm_last_error());
    return CLI_NO_DEVICE;
}

bsm_status device_product_allocate(struct device_product *p, size_t bytes, void **memory)
{
    const bsm_status status = bsm_device_allocate(p->gpu, bytes, memory);
    if (status == BSM_OK && *memory != NULL) p->memory[p->count++] = *memory;
    return status;
}

/* NULL for NULL and for no bytes. */
static bsm_status copy(struct device_product *p, const void *host, size_t bytes, void *pointer_to_device)
{
    void *device = NULL;
    bsm_status status = BSM_OK;
    if (host != NULL && bytes > 0) {
        status = device_product_allocate(p, bytes, &device);
        if (status == BSM_OK) status = bsm_device_write(p->gpu, device, host, bytes);
    }
    *(void **)pointer_to_device = device;
    return status;
}

static bsm_status copy_matrix(struct device_product *p, const bsm_matrix *host, bsm_matrix *device)
{
    int64_t data_bytes = 0, scale_bytes = 0;
    *device = *host;
    bsm_status status = bsm_matrix_data_bytes(host, &data_bytes);
    if (status == BSM_OK) status = bsm_matrix_scale_bytes(host, &scale_bytes);
    if (status == BSM_OK) status = copy(p, host->data, (size_t)data_bytes, &device->data);
    if (status == BSM_OK) status = copy(p, host->scales, (size_t)scale_bytes, &device->scales);
    if (host->packing == BSM_PACKING_GGUF) device->scales = device->data;
    if (status == BSM_OK) status = copy(p, host->tensor_scale, sizeof(float), &device->tensor_scale);
    return status;
}

/* A or B, whose metadata are checked while the host has them. */
static bsm_status copy_operand(struct device_product *p, const bsm_matrix *host, bsm_sparse_matrix *device)
{
    int64_t bytes = 0;
    bsm_status status = copy_matrix(p, host, &device->matrix);
    if (status != BSM_OK || host->struct_size != sizeof *device) return status;
    const bsm_sparse_matrix *sparse = (const bsm_sparse_matrix *)host;
    const bsm_matrix matrix = device->matrix;
    *device = *sparse, device->matrix = matrix;
    status = bsm_matrix_check_metadata(host);
    if (status == BSM_OK) status = bsm_matrix_metadata_bytes(host, &bytes);
    return status == BSM_OK ? copy(p, sparse->metadata, (size_t)bytes, &device->metadata) : status;
}

static int64_t numbers_per(const bsm_matmul *host, bsm_per per)
{
    const int64_t matrices = host->groups > 0 ? host->groups : host->d->batch > 1 ? host->d->batch : 1;
    return per == BSM_PER_ROW      ? host->a->rows
           : per == BSM_PER_COLUMN ? host->b->rows
           : per == BSM_PER_BATCH  ? matrices
                                   : 1;
}

bsm_status device_product_create(bsm_context *gpu, const bsm_matmul *host, struct device_product *p)
{
    *p = (struct device_product){ .gpu = gpu, .host = host, .call = *host };
    const size_t bias_bytes = (size_t)numbers_per(host, host->bias_per) * bsm_real_bytes((int)host->bias_type);
    bsm_status status = copy_operand(p, host->a, &p->a);
    if (status == BSM_OK) status = copy_operand(p, host->b, &p->b);
    if (status == BSM_OK) status = copy_matrix(p, host->d, &p->d);
    if (status == BSM_OK && host->c != NULL) status = copy_matrix(p, host->c, &p->c);
    if (status == BSM_OK)
        status = copy(p, host->alpha, (size_t)numbers_per(host, host->alpha_per) * sizeof(float), &p->call.alpha);
    if (status == BSM_OK) status = copy(p, host->beta, sizeof(float), &p->call.beta);
    if (status == BSM_OK) status = copy(p, host->bias, bias_bytes, &p->call.bias);
    if (status == BSM_OK) status = copy(p, host->amax, sizeof(float), &p->call.amax);
    if (status == BSM_OK)
        status = copy(p, host->group_rows, (size_t)host->groups * sizeof(int64_t), &p->call.group_rows);
    p->call.a = &p->a.matrix, p->call.b = &p->b.matrix, p->call.d = &p->d, p->call.c = host->c != NULL ? &p->c : NULL;
    return status;
}

bsm_status device_product_read(const struct device_product *p)
{
    int64_t data_bytes = 0, scale_bytes = 0;
    bsm_status status = bsm_matrix_data_bytes(p->host->d, &data_bytes);
    if (status == BSM_OK) status = bsm_matrix_scale_bytes(p->host->d, &scale_bytes);
    if (status == BSM_OK) status = bsm_device_read(p->gpu, p->host->d->data, p->d.data, (size_t)data_bytes);
    if (status == BSM_OK) status = bsm_device_read(p->gpu, p->host->d->scales, p->d.scales, (size_t)scale_bytes);
    if (status == BSM_OK && p->host->amax != NULL)
        status = bsm_device_read(p->gpu, p->host->amax, p->call.amax, sizeof(float));
    return status == BSM_OK ? bsm_context_synchronize(p->gpu) : status;
}

void device_product_free(struct device_product *p)
{
    while (p->count > 0) (void)bsm_device_release(p->gpu, p->memory[--p->count]);
}
