/* Mapped bytes are brought into memory by a thread of its own, ahead of whoever works on them: the disk does not wait
 * for the processor, nor the other way round. */
#ifndef CLI_AHEAD_H
#define CLI_AHEAD_H

#include <stdint.h>

struct ahead;
struct ahead_range { const void *data; int64_t bytes; };

/* The ranges are worked on in this order, and stay mapped until ahead_end; they are not copied.  NULL where there is no
 * thread to be had: then nothing is read ahead, and the functions below do nothing. */
struct ahead *ahead_start(const struct ahead_range *ranges, int64_t count);

/* Work on this range begins: what lies up to 512 MiB behind its beginning is read. */
void ahead_begin(struct ahead *ahead, int64_t range);

/* Its whole pages are given back: they do not count as memory of this process any more, and may stay in the system's
 * cache.  May be called without ahead_start. */
void ahead_give_back(const struct ahead_range *range);

void ahead_end(struct ahead *ahead);

#endif
