/* The list of verbs. */
#include "cli.h"
#include "verbs.h"

#define X(name) extern const struct cli_verb cli_verb_##name;
CLI_VERBS(X)
#undef X

const struct cli_verb *const cli_verbs[] = {
#define X(name) &cli_verb_##name,
    CLI_VERBS(X)
#undef X
    NULL
};
