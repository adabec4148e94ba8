/* The index of a sharded checkpoint: any text.  What is accepted names files of one folder, sorted, each once. */
#include "counted.h"

#include "file/read/shard_index.h"

enum { ALLOWANCE = 1 << 20, PER_BYTE = 64 }; /* memory that reading may take: in all, and more for each byte of the
                                                text */

static bsm_context *context;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bsmi_shard_index index;
    if (context == NULL) context = counted_context(INT64_MAX);
    const int64_t before = held;
    limit = before + PER_BYTE * (int64_t)size + ALLOWANCE;
    const bsm_status status = bsmi_shard_index_read(context, (const char *)data, size, &index);
    if (status != BSM_OK) {
        REQUIRE((status == BSM_EFILE || status == BSM_EUNSUPPORTED) && bsm_last_error()[0] != '\0'
                && index.files == NULL && held == before);
        return 0;
    }
    REQUIRE(index.file_count > 0);
    for (int i = 0; i < index.file_count; i++) {
        REQUIRE(index.files[i][0] != '\0' && strchr(index.files[i], '/') == NULL && strcmp(index.files[i], "..") != 0);
        REQUIRE(i == 0 || strcmp(index.files[i - 1], index.files[i]) < 0);
    }
    bsmi_shard_index_close(context, &index);
    REQUIRE(held == before);
    return 0;
}
