/* The numbers of a schedule. */
#ifndef SIMULATOR_RANDOM_H
#define SIMULATOR_RANDOM_H

#include <stdint.h>

/* splitmix64 */
static inline uint64_t random_mixed(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline uint64_t random_next(uint64_t *state)
{
    return random_mixed(*state += UINT64_C(0x9e3779b97f4a7c15));
}

#endif
