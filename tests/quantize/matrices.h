/* Sources and destinations for tests of whole matrices, with poison in everything that is not theirs. */
#ifndef BSM_TEST_MATRICES_H
#define BSM_TEST_MATRICES_H

#include "blockscale.h"
#include "matrix/matrix.h"
#include "matrix/reals.h"
#include "test.h"

enum { POISON = 0xa5 };

/* Numbers as they are meant: element (b, r, c) at [(b * rows + r) * columns + c]. */
struct numbers { int64_t rows, columns, batch; float *values; };

struct numbers numbers_make(int64_t rows, int64_t columns, int64_t batch);
static inline int64_t numbers_count(const struct numbers *n) { return n->rows * n->columns * n->batch; }

/* How a source (or a real destination) lies in memory. */
enum lie { LIE_TIGHT, LIE_PADDED, LIE_TRANSPOSED, LIE_ROWS_UPWARD, LIE_COLUMNS_BACKWARD, LIE_ALL_BACKWARD, LIE_COUNT };

/* A strided matrix of `type` in memory that ends at a guard page, NaN (or poison) between its elements.  The numbers
 * are rounded to the type, and replaced by what was stored. */
struct strided { bsm_real_matrix matrix; void *memory; size_t bytes; };
struct strided strided_make(bsm_real type, enum lie lie, struct numbers *n);
void strided_free(struct strided *s);
double strided_get(const struct strided *s, int64_t batch, int64_t row, int64_t column);
/* Whether all bytes that belong to no element are still poison. */
bool strided_rest_is_poison(const struct strided *s);

/* A destination in guarded memory, POISON everywhere; tensor_scale starts as `scale` (0: no pointer). */
struct target { bsm_matrix matrix; float tensor_scale; int64_t data_bytes, scale_bytes; };
bool target_make(struct test *t, struct target *target, bsm_matrix description, float scale);
void target_free(struct target *target);
bool target_is_untouched(const struct target *target);

/* Codes and scales as they are meant. */
struct coded { int64_t rows, columns, batch, scale_columns; uint32_t *codes; uint8_t *scales; };
struct coded coded_make(const bsm_matrix *description);
void coded_free(struct coded *coded);

/* Compares codes and scales one by one, padding scales with 0, and all other bytes with the poison. */
void check_target(struct test *t, const struct target *target, const struct coded *want);

/* Whether the library takes this format, packing and layout together. */
bool goes_together(bsm_format format, bsm_packing packing, bsm_scale_layout layout);

#endif
