/* One block: the function that quantizers, epilogues and other backends share. */
#ifndef BSMI_BLOCK_H
#define BSMI_BLOCK_H

#include "matrix/matrix.h"
#include "quantizer.h"

/* What quantizing counted; added up over blocks and threads. */
struct bsmi_block_stats {
    int64_t elements, blocks, saturated_elements, flushed_blocks, nan_blocks;
    double signal, noise, amax;
    int64_t scale_histogram[256];
};

/* One element: the real number, what its code stands for, and whether it was cut to the largest code. */
static inline void bsmi_count_element(struct bsmi_block_stats *stats, double value, double decoded, bool cut)
{
    if (!isfinite(value)) return;
    stats->saturated_elements += cut;
    if (!isfinite(decoded)) return;
    stats->signal += value * value;
    stats->noise += (value - decoded) * (value - decoded);
}

/* A float as a double, exact also where the thread treats subnormals as zero. */
double bsmi_widen(float value);

/* Fills a quantizer for blocks of `format`; recipe DEFAULT becomes the format's.  tensor_scale is the host value.
 * Fails (with name, the argument the recipe came from) for a recipe that does not give the format's scale type. */
bsm_status bsmi_block_quantizer_make(const char *name, bsm_format format, bsm_recipe recipe, bsm_rounding rounding,
                                     uint64_t seed, bsm_nonfinite nonfinite, float tensor_scale,
                                     bsm_tensor_scale_use use, struct bsmi_block_quantizer *quantizer);

/* What a recipe must know of the numbers that share a scale: their largest finite magnitude, and whether all are
 * finite. */
struct bsmi_block_scan { double amax; bool nonfinite; };

/* Adds count values to a scan that starts as zeros. */
void bsmi_scan_block(const double *x, int count, struct bsmi_block_scan *scan);

/* bsmi_quantize_block of values that were scanned, alone or with others that share their scale. */
uint8_t bsmi_quantize_scanned_block(const struct bsmi_block_quantizer *quantizer, const double *x, int count,
                                    const struct bsmi_block_scan *scan, uint64_t index, uint8_t *codes,
                                    struct bsmi_block_stats *stats);

/* Quantizes count (1 .. 32) values into codes and returns the scale code.  index: the number of x[0] for stochastic
 * rounding.  stats may be NULL.  Default floating-point mode. */
uint8_t bsmi_quantize_block(const struct bsmi_block_quantizer *quantizer, const float *x, int count, uint64_t index,
                            uint8_t *codes, struct bsmi_block_stats *stats);

#endif
