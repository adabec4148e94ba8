/* Fuzz target: any bytes are read as PTX, within small limits. */
#include "ptx/ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ptx_limits limits = {
        .bytes = 1 << 20, .arena_bytes = 32 << 20, .registers = 1 << 16, .instructions = 1 << 16, .depth = 16
    };
    struct ptx_error error;
    ptx_release(ptx_read("fuzz", (const char *)data, size, &limits, &error));
    return 0;
}
