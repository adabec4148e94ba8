/* A kernel for each rule of docs/rules.md that breaks this rule and no other, and its right twin.  Both leave the same
 * numbers, under every schedule: what is broken has its usual effect. */
#ifndef CUDASIM_TESTS_RULES_EXAMPLES_H
#define CUDASIM_TESTS_RULES_EXAMPLES_H

#include "machine/core/rules.h"

/* Bodies of entry k as harness.h has it.  p0: NUMBERS numbers of 32 bits, p1: where the result goes, p2: a tensor map
 * over p0, of one dimension, in boxes of four, p3: SCRATCH_BYTES bytes of zeros. */
enum { NUMBERS = 128, BOX = 4, SCRATCH_BYTES = 512 };
struct rule_example {
    const char *wrong, *right;
    const char *device;
    uint32_t ctas, block;                 /* of a cluster */
    uint32_t results;                     /* words at p1 */
    float product;                        /* what each of them is; 0: the number in its place at p0 */
    bool chained;                         /* a launch from p0 to p3, and beside it one from p3 to p1 */
    uint32_t more_clusters;               /* than one */
};

/* By rule; a rule without an example has no texts. */
extern const struct rule_example rule_examples[RULE_COUNT];
extern const struct rule_example acquire_example; /* of RULE_TENSORMAP_FENCE: no map is where one is acquired */

uint32_t rule_example_number(uint32_t i); /* at p0 */
/* Whether p1 holds what the example leaves, right or wrong. */
bool rule_example_left(const struct rule_example *e, const uint32_t *results);

#endif
