/* Heapsort. */
#include "sort.h"

static void swap(unsigned char *a, unsigned char *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const unsigned char kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

/* Restores the heap below `parent`: every child is at most its parent. */
static void sift_down(unsigned char *base, size_t parent, size_t count, size_t size,
                      int (*compare)(const void *, const void *))
{
    for (;;) {
        size_t child = 2 * parent + 1;
        if (child >= count) return;
        if (child + 1 < count && compare(base + child * size, base + (child + 1) * size) < 0) child++;
        if (compare(base + parent * size, base + child * size) >= 0) return;
        swap(base + parent * size, base + child * size, size);
        parent = child;
    }
}

void bsmi_sort(void *base, size_t count, size_t size, int (*compare)(const void *a, const void *b))
{
    for (size_t parent = count / 2; parent-- > 0;) sift_down(base, parent, count, size, compare);
    for (size_t end = count; end > 1; end--) {
        swap(base, (unsigned char *)base + (end - 1) * size, size);
        sift_down(base, 0, end - 1, size, compare);
    }
}
