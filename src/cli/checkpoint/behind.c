/* Work behind its caller, see behind.h. */
#include "behind.h"
#include "cli/matrices/matrices.h"
#include "threads.h"

#include <stdlib.h>

struct behind {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    behind_work *work;
    void *piece; /* handed over, and not done */
    int result;
    bool has_thread, ended;
};

/* There is one at a time. */
static struct behind *running;

static void *work_on_all(void *argument)
{
    struct behind *b = argument;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (b->piece == NULL && !b->ended) pthread_cond_wait(&b->moved, &b->lock);
        if (b->piece == NULL) break;
        void *piece = b->piece;
        const int before = b->result;
        pthread_mutex_unlock(&b->lock);
        const int result = b->work(piece, before == CLI_DONE);
        pthread_mutex_lock(&b->lock);
        if (before == CLI_DONE) b->result = result;
        b->piece = NULL;
        pthread_cond_broadcast(&b->moved);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void stop_running(void) { behind_end(running); }

struct behind *behind_start(struct cli *cli, behind_work *work)
{
    struct behind *b = cli_memory(cli, 1, sizeof *b);
    *b = (struct behind){ .work = work, .result = CLI_DONE };
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->moved, NULL);
    b->has_thread = threads_start(&b->thread, work_on_all, b);
    running = b;
    cli_without_memory(stop_running);
    return b;
}

int behind_give(struct behind *b, void *piece)
{
    if (!b->has_thread) {
        const int result = b->work(piece, b->result == CLI_DONE);
        if (b->result == CLI_DONE) b->result = result;
        return b->result;
    }
    pthread_mutex_lock(&b->lock);
    while (b->piece != NULL) pthread_cond_wait(&b->moved, &b->lock);
    b->piece = piece;
    const int result = b->result;
    pthread_cond_broadcast(&b->moved);
    pthread_mutex_unlock(&b->lock);
    return result;
}

int behind_end(struct behind *b)
{
    cli_without_memory(NULL);
    if (b->has_thread) {
        pthread_mutex_lock(&b->lock);
        b->ended = true;
        pthread_cond_broadcast(&b->moved);
        pthread_mutex_unlock(&b->lock);
        pthread_join(b->thread, NULL);
    }
    const int result = b->result;
    pthread_cond_destroy(&b->moved);
    pthread_mutex_destroy(&b->lock);
    free(b);
    return result;
}
