/* blockscale: block-scaled matrices (MXFP8, MXFP6, MXFP4, MXINT8, NVFP4) and their products.
 *
 * This header is the contract: what is not written in it, or in the small headers it includes, is not public.
 * It can be included from C99, C11 and C++17.
 *
 * In one page:
 *   - a bsm_matrix describes codes and scales that lie in the caller's memory: format, packing, scale layout;
 *   - bsm_quantize turns real numbers into such a matrix, bsm_dequantize turns it back;
 *   - bsm_sparsify keeps half of the numbers (2:4) and quantizes these;
 *   - bsm_multiply computes D = act(alpha (A x SA)(B x SB)^T + beta C + bias), every product of operands exact;
 *   - bsm_checkpoint_open maps .safetensors and GGUF files: named tensors, without a copy,
 *     and bsm_checkpoint_find_weight finds the matrices that they make (gpt-oss, ModelOpt, compressed-tensors,
 *     DeepSeek, GGUF);
 *   - bsm_writer_create writes such files: quantized weights, config.json and the rest of a model's folder;
 *   - bsm_matmul_exact gives the exact sum, rounded once: the definition that every kernel is tested against.
 *
 * The library never prints, never exits, and allocates only through the context's allocator.
 */
#ifndef BLOCKSCALE_H
#define BLOCKSCALE_H

#include "blockscale/status.h"
#include "blockscale/context.h"
#include "blockscale/device.h"
#include "blockscale/format.h"
#include "blockscale/scale_layout.h"
#include "blockscale/scale_copy.h"
#include "blockscale/matrix.h"
#include "blockscale/quantize.h"
#include "blockscale/sparsity.h"
#include "blockscale/matmul.h"
#include "blockscale/profile.h"
#include "blockscale/npy.h"
#include "blockscale/checkpoint.h"
#include "blockscale/weight.h"
#include "blockscale/writer.h"

#endif
