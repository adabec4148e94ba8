/* The contexts that are current to the calling host thread. */
#ifndef CUDASIM_DRIVER_CORE_CURRENT_H
#define CUDASIM_DRIVER_CORE_CURRENT_H

#include "driver.h"

enum { CONTEXT_STACK = 64 };
struct CUctx_st *current_get(void);
void current_set(struct CUctx_st *context);
bool current_push(struct CUctx_st *context);
bool current_pop(struct CUctx_st **context);

#endif
