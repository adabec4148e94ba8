/* Threads that help a caller with its work. */
#ifndef BSMI_POOL_H
#define BSMI_POOL_H

enum { BSMI_MOST_THREADS = 1024 };       /* callers included */

/* Calls work(argument, 0) here, and work(argument, 1), work(argument, 2), ... up to `helpers` on threads of the pool
 * that find time for it before the one here returns; waits for those.  So the work must be shared out by itself, and
 * be complete when number 0 has returned and all that began have.  In a child of fork, within such work, and where no
 * thread can be had, number 0 does it alone.  On threads of somebody else (bsm_set_parallel) number 0 may be another
 * thread than the one here. */
typedef void bsmi_work(void *argument, int number);
void bsmi_pool_run(int helpers, bsmi_work *work, void *argument);

/* Processors that this process may use, at least 1. */
int bsmi_processors(void);

#endif
