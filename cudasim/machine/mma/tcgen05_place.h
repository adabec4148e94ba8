/* Where the operands of a tcgen05.mma lie. */
#ifndef CUDASIM_MACHINE_MMA_TCGEN05_PLACE_H
#define CUDASIM_MACHINE_MMA_TCGEN05_PLACE_H

#include "tcgen05_product.h"

/* Sixteen lanes of each 32: M = 64 without .ws. */
bool product_is_half(const struct tcgen05_product *p);
/* Columns of D that one lane holds are N / parts; each part of D has lanes of its own, and a copy of A there. */
uint32_t product_parts(const struct tcgen05_product *p);
/* The lane of a row in part `part`. */
uint32_t product_lane(const struct tcgen05_product *p, uint32_t row, uint32_t part, uint32_t first_lane);
bool product_lane_disabled(const struct tcgen05_product *p, uint32_t cta, uint32_t lane);

/* How elements lie in a chunk of shared memory: `per_chunk` fields of `bits` bits in the first `bytes` bytes. */
struct element_storage { uint32_t bits, per_chunk, bytes; };
struct element_storage storage_of(enum tcgen05_kind kind, enum tensor_format format);

/* The 4 bits of a row's metadata for its stored element e: `shift` up in the cell at (lane, column), from the first
 * column on. */
void metadata_place(const struct tcgen05_product *p, uint32_t row, uint32_t e, uint32_t *lane, uint32_t *column,
                    uint32_t *shift);
/* The index in k that a stored element has by its 4 bits of metadata; -1: illegal. */
int metadata_index(enum tcgen05_kind kind, uint32_t e, uint32_t bits);

/* Areas of tensor memory that an instruction uses in one CTA; D whole, whichever lanes are disabled. */
enum product_operand { PRODUCT_D, PRODUCT_A, PRODUCT_SFA, PRODUCT_SFB, PRODUCT_METADATA };
struct product_area { enum product_operand operand; struct tensor_area area; };
enum { PRODUCT_AREAS = 6 };
uint32_t product_areas(const struct tcgen05_product *p, struct product_area area[PRODUCT_AREAS]);
const char *product_operand_name(enum product_operand operand);

/* The columns of B that a zero-column mask descriptor makes zero (9.7.16.10.4).  False: illegal, or not known, and
 * why. */
bool zero_columns_of(uint64_t descriptor, uint32_t m, uint32_t n, uint32_t zero[MMA_COLUMNS / 32], char *sentence,
                     size_t size);

#endif
