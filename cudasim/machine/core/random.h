/* The numbers of a schedule. */
#ifndef CUDASIM_MACHINE_CORE_RANDOM_H
#define CUDASIM_MACHINE_CORE_RANDOM_H

#include "machine.h"

/* splitmix64 */
static inline uint64_t random_mixed(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline uint64_t cluster_random(struct cluster *c)
{
    return random_mixed(c->random += UINT64_C(0x9e3779b97f4a7c15));
}

#endif
