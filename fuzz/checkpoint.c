/* The readers of .safetensors and GGUF files: any bytes. */
#include "checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_checkpoint(data, size);
    return 0;
}
