/* Images that a caller hands over: which text is in them, and what the reader says of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/core/driver.h"
#include "image/fatbin.h"

struct log log_of(unsigned count, const CUjit_option *options, void *const *values)
{
    struct log log = { NULL, NULL, 0, 0 };
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log.error = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) log.error_size = (size_t)(uint32_t)(uintptr_t)values[i];
        if (options[i] == CU_JIT_INFO_LOG_BUFFER) log.info = values[i];
        if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) log.info_size = (size_t)(uint32_t)(uintptr_t)values[i];
    }
    if (log.error != NULL && log.error_size != 0) *log.error = '\0';
    if (log.info != NULL && log.info_size != 0) *log.info = '\0';
    return log;
}

void log_end(const struct log *log, unsigned count, const CUjit_option *options, void **values)
{
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES && log->error != NULL && log->error_size != 0)
            values[i] = (void *)(uintptr_t)strlen(log->error);
        if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES && log->info != NULL && log->info_size != 0)
            values[i] = (void *)(uintptr_t)strlen(log->info);
    }
}

static void say_error(const struct log *log, const char *text)
{
    if (log->error != NULL && log->error_size != 0) snprintf(log->error, log->error_size, "%s", text);
    driver_say("cudasim: %s\n", text);
}

/* The reader's text, of which *own is to be freed; NULL after saying why there is none. */
static const char *text_of(const void *image, const struct device_limits *device, const struct log *log,
                           size_t *length, char **own)
{
    char sentence[256] = "this image is a cubin, and PTX is what runs here";
    const enum image_kind kind = image_kind(image);
    *own = kind == IMAGE_FATBIN ? fatbin_text(image, device, length, sentence, sizeof sentence) : NULL;
    if (kind == IMAGE_TEXT) *length = strlen(image);
    else if (*own == NULL) say_error(log, sentence);
    return kind == IMAGE_TEXT ? image : *own;
}

bool module_runs(const struct module *module, const struct device_limits *device, const struct log *log)
{
    char text[160];
    if (device_runs(device, module->sm, module->suffix)) return true;
    snprintf(text, sizeof text, "the module's target sm_%u%.1s does not run on %s (CUDASIM_DEVICE)", module->sm,
             &module->suffix, device->name);
    say_error(log, text);
    return false;
}

CUresult module_read(const void *image, const struct device_limits *device, const struct log *log,
                     struct module **module)
{
    size_t length;
    char *own;
    struct ptx_error error;
    const char *source = text_of(image, device, log, &length, &own);
    if (source == NULL) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *module = ptx_read("ptx", source, length, NULL, &error);
    free(own);
    if (*module == NULL) {
        say_error(log, error.text);
        return CUDA_ERROR_INVALID_PTX;
    }
    if (!module_runs(*module, device, log)) {
        ptx_release(*module);
        return CUDA_ERROR_INVALID_PTX;
    }
    driver_mutate(*module);
    return CUDA_SUCCESS;
}

char *file_read(const char *name)
{
    FILE *file = fopen(name, "rb");
    if (file == NULL) return NULL;
    char *text = NULL;
    size_t used = 0, capacity = 0;
    for (;;) {
        if (capacity - used < 4096) {
            char *larger = realloc(text, capacity = capacity * 2 + 65536);
            if (larger == NULL) break;
            text = larger;
        }
        const size_t got = fread(text + used, 1, capacity - used - 8, file);
        used += got;
        if (got == 0) break;
    }
    if (text != NULL) memset(text + used, 0, 8);
    fclose(file);
    return text;
}
