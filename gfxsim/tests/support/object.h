/* Code objects made here, without a compiler: one kernel "k" of the given words. */
#ifndef GFXSIM_TESTS_OBJECT_H
#define GFXSIM_TESTS_OBJECT_H

#include <stddef.h>
#include <stdint.h>

enum { OBJECT_MOST = 65536 };

/* Bytes written into `file`: an ELF with 32 VGPRs and 32 AGPRs a wave, 4096 bytes of LDS, 64 of scratch memory a
 * lane and 16 of arguments, whose address is in s[0:1]; the workgroup's x is in s2. */
size_t object_build(uint8_t file[OBJECT_MOST], const uint32_t *word, size_t words);

#endif
