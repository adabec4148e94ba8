/* A thread that leaves signals to the thread that the command began with: its handlers remove outputs. */
#ifndef CLI_THREADS_H
#define CLI_THREADS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

static inline bool threads_start(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS), sigdelset(&all, SIGSEGV), sigdelset(&all, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(thread, NULL, run, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

#endif
