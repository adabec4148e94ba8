/* Texts from files of strangers, before a terminal sees them. */
#ifndef CLI_MASK_H
#define CLI_MASK_H

#include <stdbool.h>
#include <stdint.h>

/* The character of UTF-8 at text, which is not at its end; -1 where there is none.  *bytes: how many to go on by. */
int32_t mask_character(const char *text, int *bytes);

/* Whether a character would move the cursor, change colours, break the line or turn the direction of what follows. */
bool mask_is_unseen(int32_t character);

/* Puts a question mark for each of these, and for each byte that is no UTF-8.  Never longer than before. */
void mask_text(char *text);

#endif
