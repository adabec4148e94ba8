/* Published rates.  Each with its source; what no source states is not here. */
#include "rates.h"

#include <stddef.h>
#include <string.h>

#define GUIDE "CUDA C++ Programming Guide, arithmetic instructions, 9.0"

static const struct device_rates devices[] = {
    { .device = "sm_90a",
      .card = "H200 SXM",
      .sms = 132,
      .clock_hz = 1.83e9,                 /* 989 TFLOP/s of bf16 = 132 SMs x 4096 x 1.83 GHz */
      .memory_bytes = 4.8e12,
      .rate = {
          [RATE_ISSUE]      = { "issue slots",         128, "4 schedulers of one warp instruction a clock" },
          [RATE_FP32]       = { "fp32, fp16 and bf16", 128, GUIDE },
          [RATE_FP64]       = { "fp64",                64,  GUIDE },
          [RATE_INTEGER]    = { "integer and logic",   64,  GUIDE },
          [RATE_CONVERSION] = { "conversions",         16,  GUIDE ", the slowest of them" },
          [RATE_SPECIAL]    = { "special functions",   16,  GUIDE },
          [RATE_SHUFFLE]    = { "shuffles",            32,  GUIDE },
          [RATE_REDUX]      = { "redux",               16,  GUIDE },
          [RATE_SHARED]     = { "shared memory",       128, "32 banks of 4 bytes a clock" },
          [RATE_TENSOR]     = { "tensor cores",        0,   "NVIDIA H100 data sheet, dense" },
          [RATE_MEMORY]     = { "device memory",       0,   "NVIDIA H200 data sheet, 4.8 TB/s" },
      } },
};

static const struct {
    const char *device, *type;
    double operations;
} products[] = {
    { "sm_90a", "f16", 4096 },  { "sm_90a", "bf16", 4096 }, { "sm_90a", "tf32", 2048 }, { "sm_90a", "e4m3", 8192 },
    { "sm_90a", "e5m2", 8192 }, { "sm_90a", "s8", 8192 },   { "sm_90a", "u8", 8192 },   { "sm_90a", "f64", 256 },
};

const struct device_rates *rates_of(const char *device)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (strcmp(devices[i].device, device) == 0) return &devices[i];
    return NULL;
}

double rate_of_products(const char *device, const char *type)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (strcmp(products[i].device, device) == 0 && strcmp(products[i].type, type) == 0)
            return products[i].operations;
    return 0;
}
