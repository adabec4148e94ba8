/* Writing past the caches: of what is larger than a core's caches and written once, lines need not be read first. */
#ifndef BSMI_CORE_STREAM_H
#define BSMI_CORE_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

/* Below, whoever reads it next is likely to find it in a cache. */
enum { BSMI_STREAMED_BYTES = 8 << 20, BSMI_LINE = 64 };

/* Of batch x rows x columns numbers of 4 bytes. */
static inline bool bsmi_is_streamed(int64_t batch, int64_t rows, int64_t columns)
{
#if defined(__x86_64__)
    int64_t count;
    return __builtin_mul_overflow(batch, rows, &count) || __builtin_mul_overflow(count, columns, &count)
        || count >= BSMI_STREAMED_BYTES / 4;
#else
    return (void)batch, (void)rows, (void)columns, false;
#endif
}

/* After such writes, before anybody is notified that they are done: they are in no order with others. */
static inline void bsmi_end_stream(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

#endif
