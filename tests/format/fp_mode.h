/* The floating-point modes a caller's thread can be in: rounding directions, and on x86-64 flush-to-zero with
 * denormals-are-zero. */
#ifndef BSM_TEST_FP_MODE_H
#define BSM_TEST_FP_MODE_H

#include <fenv.h>

struct fp_mode_state { fenv_t environment; };

enum { FP_MODE_UPWARD, FP_MODE_DOWNWARD, FP_MODE_TOWARD_ZERO, FP_MODE_FLUSH, FP_MODE_UPWARD_FLUSH };

#ifdef __SSE2__
#include <xmmintrin.h>
enum { fp_mode_count = 5 };
static inline void fp_mode_flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
#else
enum { fp_mode_count = 3 };
static inline void fp_mode_flush(void) { }
#endif

static inline const char *fp_mode_name(int mode)
{
    static const char *const names[] = { "upward", "downward", "toward zero", "flush", "upward and flush" };
    return names[mode];
}

static inline struct fp_mode_state fp_mode_enter(int mode)
{
    static const int directions[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST, FE_UPWARD };
    struct fp_mode_state before;
    fegetenv(&before.environment);
    fesetround(directions[mode]);
    if (mode >= FP_MODE_FLUSH) fp_mode_flush();
    return before;
}

static inline void fp_mode_leave(struct fp_mode_state before) { fesetenv(&before.environment); }

#endif
