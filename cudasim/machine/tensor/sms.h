/* SMs that the CTAs of several clusters share: who holds which columns of tensor memory, and who may allocate.
 *
 * The clusters of a host thread are placed on sets of as many SMs as a cluster has CTAs: CTA rank i of each lies on SM
 * i of the set.  A CTA that executes tcgen05.alloc takes the permit of its SM, and keeps it until it relinquishes it or
 * ends; meanwhile the allocations of others wait, as they do for columns (PTX ISA 9.7.16.7.1). */
#ifndef CUDASIM_MACHINE_TENSOR_SMS_H
#define CUDASIM_MACHINE_TENSOR_SMS_H

#include "machine/core/machine.h"

enum { MOST_PER_SM = 32, TENSOR_COLUMNS = 512 };

struct sm_columns {
    const struct cta *holder[TENSOR_COLUMNS];
    const struct cta *permit;             /* NULL: nobody has it */
};

struct sm_set {
    uint32_t sms, clusters, limit;        /* limit: clusters that fit together */
    struct cluster *cluster[MOST_PER_SM];
    struct sm_columns *columns;           /* [sms] */
};

/* sets: [count], zeroed.  False: no host memory. */
bool sms_open(struct sm_set *sets, uint32_t count, uint32_t sms, uint32_t limit);
void sms_close(struct sm_set *sets, uint32_t count);
/* The cluster is placed on a set that has room: the emptiest, or (packed) the fullest. */
void sms_place(struct sm_set *sets, uint32_t count, struct cluster *cluster, bool packed);
void sms_leave(struct cluster *cluster);

/* The SM of a CTA. */
struct sm_columns *sms_of(const struct cta *cta);
/* Something may be free now that another cluster on the same SMs waits for. */
void sms_event(const struct cluster *cluster);
/* Nothing in the cluster can go on.  True: it waits for tensor memory that another cluster, which can still go on, may
 * free. */
bool sms_may_wait(struct cluster *cluster);

#endif
