/* Sorting without memory of its own, in n log n whatever the input: hostile files are sorted too. */
#ifndef BSMI_SORT_H
#define BSMI_SORT_H

#include <stddef.h>

/* Heapsort; not stable.  compare is as qsort's. */
void bsmi_sort(void *base, size_t count, size_t size, int (*compare)(const void *a, const void *b));

#endif
