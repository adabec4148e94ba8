/* Quantizing, dequantizing and converting scale layouts on a GPU. */
#ifndef BSMI_HIP_QUANTIZE_H
#define BSMI_HIP_QUANTIZE_H

#include "core/core.h"
#include "layout/request.h"
#include "quantize/request.h"

bsm_status bsmi_hip_quantize(bsm_context *context, const struct bsmi_quantize_request *request);
bsm_status bsmi_hip_quantize_both(bsm_context *context, const struct bsmi_quantize_request *rows,
                                  const struct bsmi_quantize_request *columns);
bsm_status bsmi_hip_dequantize(bsm_context *context, const struct bsmi_dequantize_request *request);
bsm_status bsmi_hip_convert_scales(bsm_context *context, const struct bsmi_convert_request *request);

#endif
