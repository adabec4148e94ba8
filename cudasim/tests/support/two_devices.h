/* Two devices for tests: their primary contexts with kernels, a stream and 32 words of memory each, and what is said on
 * stderr meanwhile.  With CUDASIM_TEST_LIBRARY they are the first two GPUs, of which neither faults nor words are
 * asked. */
#ifndef CUDASIM_TESTS_SUPPORT_TWO_DEVICES_H
#define CUDASIM_TESTS_SUPPORT_TWO_DEVICES_H

#include "tests/support/driver_api.h"

enum { DEVICES = 2, WORDS = 32, BYTES = 4 * WORDS };

/* Of 32 threads: add(p) adds 1 to each word, copy(p, q) copies words from q to p.  Of one: late(p) reads a word before
 * it waits for the grid in front, bulk(p) has TMA write 5 to four words. */
struct device_parts {
    CUcontext context;
    CUfunction add, copy, late, bulk;
    CUstream stream;
    CUdeviceptr words;                    /* 100 each on the first device, 200 on the second */
};
extern struct device_parts on[DEVICES];
extern const char two_devices_text[];     /* PTX of the kernels */

/* Before anything asks the driver: two simulated devices, three schedules of each launch, reports on stderr. */
void two_devices_set(void);
/* Both devices anew, the first one's context current. */
void two_devices_begin(struct test *t);
/* One device anew. */
void open_device(struct test *t, int device);
/* Its context becomes the current one. */
void use(struct test *t, int device);
CUresult add(int device, CUdeviceptr at);
CUresult bulk(int device, CUdeviceptr at);
/* All words, when both streams are done. */
bool holds(struct test *t, CUdeviceptr at, uint32_t want);

/* Between them stderr goes to a file; what came is what SAYS looks at. */
void listen_begin(struct test *t);
void listen_end(void);
extern char said[8192];
#define SAYS(t, sentence) \
    do { \
        if (driver_is_simulated() && strstr(said, sentence) == NULL) \
            FAIL(t, "it does not say \"%s\" but:\n%s", sentence, said); \
    } while (0)

/* The kernel's access is refused, in words; the other device, whose context is current then, is none the worse for
 * it. */
void refused(struct test *t, int device, CUresult (*launch)(int, CUdeviceptr), CUdeviceptr at, const char *sentence);

#endif
