/* Products of operands stored in another way than K-major and in full: the bits of the product of the same numbers
 * stored so, by every kernel, also with weights packed once. */
#ifndef STORED_H
#define STORED_H

#include "naive.h"

enum { STORED_M = 37, STORED_N = 71 };

struct stored_pair { bsm_format a, b; };
enum { STORED_PAIRS = 9 };
extern const struct stored_pair stored_pairs[STORED_PAIRS];

struct stored_operand { struct operand plain, other; };

/* A random operand, and the same numbers stored in the other way. */
typedef struct stored_operand stored_make(struct test *t, bsm_format format, int64_t rows, int64_t batch);

struct stored_problem { struct stored_operand a, b; struct operand d, want; };

void stored_problem_make(struct test *t, struct stored_problem *p, stored_make *make, int pair, int64_t m,
                         int64_t batch);
void stored_problem_free(struct stored_problem *p);

/* All of these pairs by every kernel that serves them. */
void stored_by_every_kernel(struct test *t, stored_make *make);

#endif
