/* What a step of K costs on each GEMM instance, in nanoseconds: struct bsmi_gemm_cost.  Measured on one H200
 * (docs/design/hopper.md), tiles of 256 rows and more at the clock that its power limit leaves. */
#ifndef BSMI_CUDA_COSTS_H
#define BSMI_CUDA_COSTS_H

/*                                                      step  in_l2  in_l2_behind */
#define BSMI_COST_128x256_2x1                         {  680 }
#define BSMI_COST_late_rows_128x256_2x1               {  690 }
#define BSMI_COST_128x224_2x1                         {  614 }
#define BSMI_COST_128x224_1x2                         {  645 }
#define BSMI_COST_128x192_2x1                         {  525 }
#define BSMI_COST_128x128_1x1                         {  366,   340 }
#define BSMI_COST_128x96_1x1                          {  330,   235 }
#define BSMI_COST_128x64_1x1                          {  275,   175,   160 }
#define BSMI_COST_64x128_1x1                          {  265,   245 }
#define BSMI_COST_64x96_1x1                           {  225,   152,   195 }
#define BSMI_COST_64x48_1x1                           {  140,   125 }
/* Not measured: those of the same tiles without groups. */
#define BSMI_COST_column_groups_128x256_2x1           {  680 }
#define BSMI_COST_column_groups_128x128_1x1           {  366,   340 }
#define BSMI_COST_int8_128x256_2x1                    {  400 }

#define BSMI_COST_mxfp4_128x64_1x1                    {  330 }
#define BSMI_COST_mxfp4_256x64_1x2                    {  485,   520 }
#define BSMI_COST_mxfp4_256x128_1x1                   {  880 }
#define BSMI_COST_nvfp4_128x64_1x1                    {  350 }
#define BSMI_COST_nvfp4_256x64_1x2                    {  500,   520 }
#define BSMI_COST_nvfp4_256x128_1x1                   {  885 }
#define BSMI_COST_bytes_64x64_1x1                     {  280 }
#define BSMI_COST_bytes_128x64_1x1                    {  380 }
#define BSMI_COST_bytes_256x64_1x2                    {  470 }
#define BSMI_COST_stream_64x64_1x1                    {  290 }
#define BSMI_COST_stream_128x64_1x1                   {  390 }
#define BSMI_COST_stream_256x64_1x1                   {  510 }

#define BSMI_COST_mxfp4_64x64_1x1_registers           {  250 }
#define BSMI_COST_nvfp4_64x64_1x1_registers           {  262 }
#define BSMI_COST_mxfp4_64x64_1x1_registers_4k        {  420, .alone = 385 }
#define BSMI_COST_nvfp4_64x64_1x1_registers_4k        {  450, .alone = 390 }
#define BSMI_COST_mxfp4_16x64_1x1_interleaved         {  140 }
#define BSMI_COST_mxfp4_32x64_1x1_interleaved         {  165 }
#define BSMI_COST_nvfp4_16x64_1x1_interleaved         {  155 }
#define BSMI_COST_nvfp4_32x64_1x1_interleaved         {  212 }
#define BSMI_COST_mxfp4_16x64_prepacked               {   70, .tile = 1050 }
#define BSMI_COST_mxfp4_32x64_prepacked               {   86, .tile = 1520 }
#define BSMI_COST_mxfp4_64x64_prepacked               {  145 }
#define BSMI_COST_nvfp4_16x64_prepacked               {   84, .tile = 1050 }
#define BSMI_COST_nvfp4_32x64_prepacked               {  101, .tile = 1520 }
#define BSMI_COST_nvfp4_64x64_prepacked               {  148 }
/* Measured on an H100, whose power limit left a clock of 1.6 to 1.9 GHz. */
#define BSMI_COST_mxfp4_64x128_rows_prepacked         {  258, .tile = 1500 }
#define BSMI_COST_mxfp4_128x64_rows_prepacked         {  233, .tile = 3480, .single = 226 }
#define BSMI_COST_mxfp4_256x64_rows_prepacked         {  356, .tile = 3480 }
#define BSMI_COST_mxfp4_128x128_rows_prepacked        {  346, .tile = 3480 }
#define BSMI_COST_mxfp4_256x128_rows_prepacked        {  680, .tile = 240, .half = 500 }
#define BSMI_COST_nvfp4_64x128_rows_prepacked         {  286, .tile = 1500 }
#define BSMI_COST_nvfp4_128x64_rows_prepacked         {  242, .tile = 3480, .single = 246 }
#define BSMI_COST_nvfp4_256x64_rows_prepacked         {  362, .tile = 3480 }
#define BSMI_COST_nvfp4_128x128_rows_prepacked        {  386, .tile = 3480 }
#define BSMI_COST_nvfp4_256x128_rows_prepacked        {  695, .tile = 240, .half = 520 }
/* K in two parts: in turn, as the same kernels with one (not measured); a step of one CTA's part, on an H100. */
#define BSMI_COST_mxfp4_16x64_split_k                 {   70 }
#define BSMI_COST_mxfp4_32x64_split_k                 {   86 }
#define BSMI_COST_nvfp4_16x64_split_k                 {   84 }
#define BSMI_COST_nvfp4_32x64_split_k                 {  101 }
#define BSMI_COST_mxfp4_64x128_split_k                {  295 }
#define BSMI_COST_mxfp4_128x128_split_k               {  392 }
#define BSMI_COST_nvfp4_64x128_split_k                {  303 }
#define BSMI_COST_nvfp4_128x128_split_k               {  412 }
/* Fitted to groups of rows of gpt-oss and DeepSeek-V3, on an H100; single: to 1 to 256 rows of 13 sizes of weights. */
#define BSMI_COST_mxfp4_64x256_groups_prepacked \
    {  550, .narrow = 420, .tile = 1180, .single = 480, .single_narrow = 400 }
#define BSMI_COST_nvfp4_64x256_groups_prepacked \
    {  590, .narrow = 460, .tile = 1180, .single = 525, .single_narrow = 440 }
#define BSMI_COST_mxfp4_32x256_groups_prepacked       {  500, .narrow = 310, .tile = 2070 }
#define BSMI_COST_nvfp4_32x256_groups_prepacked       {  540, .narrow = 350, .tile = 2070 }

#endif
