/* The list of verbs. */
#include "cli.h"
#include "verbs.h"

#define X(name) extern const struct cli_verb cli_verb_##name;
CLI_VERBS(X)
#undef X

const char cli_about[] = "block-scaled matrices (MXFP8, MXFP6, MXFP4, MXINT8, NVFP4) and their products";
const char cli_exit_codes[] = "0 done, 1 a result differs, 2 wrong usage, 3 bad input or output, 4 no device.";

const struct cli_verb *const cli_verbs[] = {
#define X(name) &cli_verb_##name,
    CLI_VERBS(X)
#undef X
    NULL
};
