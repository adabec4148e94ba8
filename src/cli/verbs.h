/* The verbs, in the order of `blockscale help`: one line each. */
#define CLI_VERBS(X) \
    X(matmul) \
    X(quantize) \
    X(dequantize) \
    X(layout) \
    X(verify) \
    X(bench) \
    X(demo) \
    X(info)
