/* What B's rows hold, and how far 128 bytes of a row reach.  Scales lie as 128x4 (docs/guide/layouts.md): pieces of 512
 * bytes, each four scale columns of 128 rows. */
#pragma once

/* e2m1: blocks of 32 with e8m0, and blocks of 16 with ue4m3. */
struct codes_mxfp4 { static constexpr bool NIBBLES = true, MICRO = false, STREAM = false; };
struct codes_nvfp4 { static constexpr bool NIBBLES = true, MICRO = true, STREAM = false; };
/* 8 and 6 bits, blocks of 32 with e8m0: a byte each, and 6 bits one behind another. */
struct codes_bytes { static constexpr bool NIBBLES = false, MICRO = false, STREAM = false; };
struct codes_stream { static constexpr bool NIBBLES = false, MICRO = false, STREAM = true; };
