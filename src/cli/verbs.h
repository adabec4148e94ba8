#ifndef CLI_VERBS_H
#define CLI_VERBS_H

/* The verbs, in the order of `blockscale help`: one line each. */
#define CLI_VERBS(X) \
    X(matmul) \
    X(quantize) \
    X(dequantize) \
    X(inspect) \
    X(convert) \
    X(layout) \
    X(verify) \
    X(bench) \
    X(demo) \
    X(info) \
    X(completion) \
    X(manual)

/* The list itself: NULL behind the last. */
extern const struct cli_verb *const cli_verbs[];

#endif
