/* The reader of .safetensors files: a length that fits, then a header and data of any bytes.  The first two bytes say
 * how much of the input is header. */
#include "checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const size_t bytes = size - 2, header = (size_t)(data[0] | data[1] << 8) % (bytes + 1);
    uint8_t *file = file_room(8 + bytes);
    if (file == NULL) return 0;
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)header >> 8 * i);
    memcpy(file + 8, data + 2, bytes);
    check_checkpoint(file, 8 + bytes);
    return 0;
}
