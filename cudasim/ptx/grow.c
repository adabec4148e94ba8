/* Arrays of a module that grow while it is read. */
#include "ptx/reader.h"

#include <stdlib.h>
#include <string.h>

bool reader_grow(struct reader *r, void **array, uint32_t count, uint32_t *capacity, size_t element, uint32_t limit,
                 const char *what)
{
    if (count < *capacity) return !r->failed;
    if (count >= limit) {
        reader_fail(r, "this module has more than %u %s", limit, what);
        return false;
    }
    const uint32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *larger = realloc(*array, wanted * element);
    if (larger == NULL) {
        reader_fail(r, "no memory for the %s of this module", what);
        return false;
    }
    memset((char *)larger + *capacity * element, 0, (wanted - *capacity) * element);
    *array = larger;
    *capacity = wanted;
    return !r->failed;
}
