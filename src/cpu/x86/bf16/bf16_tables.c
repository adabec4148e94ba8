/* Products of e2m1's codes and scales, made once for the whole process. */
#if defined(__x86_64__)
#include "bf16_tables.h"

#include "core/core.h"
#include "format/format.h"

#include <math.h>
#include <pthread.h>

static struct bsmi_bf16_tables tables;

/* The upper half of a number that bf16 holds; what is less or more than its numbers is read of no row. */
static uint16_t bf16_of(double number) { return (uint16_t)(bsmi_float_bits((float)number) >> 16); }

static void set_bytes(uint8_t *bytes, uint32_t code, uint16_t word)
{
    bytes[code] = (uint8_t)word;
    bytes[16 + code] = (uint8_t)(word >> 8);
}

static void fill(void)
{
    for (uint32_t code = 0; code < 16; code++) {
        const double value = bsm_element_decode(BSM_E2M1, code);
        for (int scale = 0; scale < 128; scale++) {
            const uint16_t word = bf16_of(value * bsmi_ue4m3_to_float((uint8_t)scale));
            tables.nvfp4[scale][code] = word;
            set_bytes(tables.nvfp4_bytes[scale], code, word);
        }
        for (int less = 0; less < BSMI_FP4_SCALES && value != 0; less++)
            set_bytes(tables.fp4_bytes[less], code, bf16_of(ldexp(value, BSMI_FP4_LIFT - less)));
    }
}

const struct bsmi_bf16_tables *bsmi_bf16_tables(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    return &tables;
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
