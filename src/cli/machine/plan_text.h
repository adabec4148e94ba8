/* Plans for people: what bsm_plan_describe says of one, in a line or whole. */
#ifndef CLI_PLAN_TEXT_H
#define CLI_PLAN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { PLAN_TEXT_BYTES = 1024 };           /* holds every description */

/* "kernel, tile: reason" out of a description, in at most `columns` columns: with the reason's first words alone,
 * without the tile, or without the reason where that is too long.  Of a description without a kernel it takes the
 * beginning. */
void plan_in_short(const char *description, int columns, char *text, size_t bytes);

/* Prints `label` and behind it the plan in short; verbose: the whole description, in lines that begin below its first
 * word. */
void plan_print(const char *label, const char *description, bool verbose);

/* Whether the plan's kernel multiplies rows as int8 where their scales allow it; bench counts the rows that do. */
bool plan_multiplies_int8_rows(const char *description);

#endif
