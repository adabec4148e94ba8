/* The reader of GGUF files: magic and version 3, then any bytes. */
#include "checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t start[8] = { 'G', 'G', 'U', 'F', 3, 0, 0, 0 };
    uint8_t *file = file_room(sizeof start + size);
    if (file == NULL) return 0;
    memcpy(file, start, sizeof start);
    memcpy(file + sizeof start, data, size);
    check_checkpoint(file, sizeof start + size);
    return 0;
}
