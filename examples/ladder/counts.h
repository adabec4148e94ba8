/* What a launch on cudasim executed, from the simulator's profile: counts, no times. */
#ifndef LADDER_COUNTS_H
#define LADDER_COUNTS_H

/* Asks for profiles; before the device is opened.  On a GPU nothing writes any. */
void counts_begin(void);

/* Prints what the last launch executed. */
void counts_print(void);

#endif
