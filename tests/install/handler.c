/* Ends by exit(7) in a signal's handler, in the middle of work on several threads: nothing may wait there for threads
 * or for locks. */
#include <blockscale.h>

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 256, COLUMNS = 1024 };
static float numbers[ROWS * COLUMNS];
static unsigned char codes[ROWS * COLUMNS], scales[ROWS * COLUMNS / 32];

static void end(int signal)
{
    (void)signal;
    exit(7);
}

int main(void)
{
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 4 };
    const bsm_real_matrix from = { .struct_size = sizeof from, .rows = ROWS, .columns = COLUMNS, .data = numbers, .row_stride = COLUMNS, .column_stride = 1 };
    const bsm_matrix to = { .struct_size = sizeof to, .format = BSM_MXFP8_E4M3, .rows = ROWS, .columns = COLUMNS, .data = codes, .scales = scales };
    bsm_context *context;
    if (bsm_context_create(&options, &context) != BSM_OK) return 1;
    signal(SIGALRM, end);
    ualarm(10000, 0);
    while (bsm_quantize(context, &from, NULL, &to, NULL) == BSM_OK) { }
    return 2;
}
