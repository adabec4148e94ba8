/* The numbers of a schedule. */
#ifndef CUDASIM_MACHINE_CORE_RANDOM_H
#define CUDASIM_MACHINE_CORE_RANDOM_H

#include "machine.h"
#include "simulator/random.h"

static inline uint64_t cluster_random(struct cluster *c)
{
    return random_next(&c->random);
}

#endif
