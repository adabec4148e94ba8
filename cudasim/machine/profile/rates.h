/* Published rates of real devices, for estimates. */
#ifndef CUDASIM_MACHINE_PROFILE_RATES_H
#define CUDASIM_MACHINE_PROFILE_RATES_H

#include <stdint.h>

enum rate_engine {
    RATE_ISSUE,
    RATE_FP32,
    RATE_FP64,
    RATE_INTEGER,
    RATE_CONVERSION,
    RATE_SPECIAL,
    RATE_SHUFFLE,
    RATE_REDUX,
    RATE_SHARED,
    RATE_TENSOR,
    RATE_MEMORY,
    RATE_COUNT
};

struct rate { const char *engine; double per_clock; const char *source; };    /* per SM: threads, or bytes */

struct device_rates {
    const char *device;                   /* "sm_90a" */
    const char *card;
    uint32_t sms;
    double clock_hz, memory_bytes;        /* a second */
    struct rate rate[RATE_COUNT];         /* RATE_TENSOR and RATE_MEMORY: per_clock is not used */
};

/* NULL: nothing is known of it. */
const struct device_rates *rates_of(const char *device);
/* Operations (a product and a sum are two) a clock and SM for products of this type; 0: not published. */
double rate_of_products(const char *device, const char *type);

#endif
