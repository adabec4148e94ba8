/* The machine, in words. */
#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

/* The processor's name, as Linux tells it; false, and "unknown processor", where it does not. */
bool machine_processor(char *name, size_t bytes);

#endif
