/* Checks of shared memory: reading what nothing wrote. */
#include "machine/checks.h"

#include <stdlib.h>
#include <string.h>

bool shadow_open(struct shadow *shadow, uint32_t bytes)
{
    *shadow = (struct shadow){ .state = calloc(1, bytes + 1) };
    return shadow->state != NULL;
}

void shadow_close(struct shadow *shadow)
{
    free(shadow->state), free(shadow->writer), free(shadow->reader), free(shadow->pending);
    *shadow = (struct shadow){ 0 };
}

static uint32_t unwritten(const uint8_t *state, uint32_t bytes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < bytes; i++) count += (state[i] & SHADOW_WRITTEN) == 0;
    return count;
}

trap checks_shared(struct warp *w, const struct insn *in, uint32_t lanes, const struct access *a)
{
    const bool check = w->cta->cluster->grid->machine->options.check_uninitialised;
    FOR_LANES(l, lanes) {
        if (a->owner[l] == NULL) continue;
        uint8_t *state = a->owner[l]->shadow.state + a->offset[l];
        if (a->reads && check) {
            const uint32_t missing = unwritten(state, a->bytes);
            if (missing != 0)
                return warp_fault(w, in, l, REPORT_UNINITIALISED,
                                  "reads %u bytes at shared address 0x%llx, of which nothing has written %u", a->bytes,
                                  (unsigned long long)a->address[l], missing);
        }
        if (a->writes)
            for (uint32_t i = 0; i < a->bytes; i++)
                state[i] = (uint8_t)((state[i] & ~SHADOW_ASYNC_WRITE) | SHADOW_WRITTEN | SHADOW_UNFENCED);
    }
    return TRAP_NONE;
}

/* ---- happens-before: clocks.c and race.c take these over ---- */

struct async_token { struct warp *warp; const struct insn *in; uint32_t lane; };

void checks_release(struct warp *w, uint32_t lanes, uint64_t object) { (void)w, (void)lanes, (void)object; }
void checks_acquire(struct warp *w, uint32_t lanes, uint64_t object) { (void)w, (void)lanes, (void)object; }
void checks_fence(struct warp *w, uint32_t lanes) { (void)w, (void)lanes; }
void checks_proxy_fence(struct warp *w, uint32_t lanes) { (void)w, (void)lanes; }

struct async_token *async_begin(struct warp *w, const struct insn *in, uint32_t lanes, enum proxy proxy)
{
    struct async_token *token = malloc(sizeof *token);
    (void)proxy;
    if (token != NULL) *token = (struct async_token){ .warp = w, .in = in, .lane = (uint32_t)__builtin_ctz(lanes) };
    return token;
}

trap async_reads(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes)
{
    const bool check = cta->cluster->grid->machine->options.check_uninitialised;
    const uint32_t missing = check ? unwritten(cta->shadow.state + offset, bytes) : 0;
    if (missing == 0) return TRAP_NONE;
    return warp_fault(token->warp, token->in, token->lane, REPORT_UNINITIALISED,
                      "reads %u bytes at shared address 0x%x, of which nothing has written %u", bytes, cta->shared_base | offset,
                      missing);
}

trap async_writes(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes)
{
    (void)token, (void)cta, (void)offset, (void)bytes;
    return TRAP_NONE;
}

trap async_adds(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes)
{
    return async_reads(token, cta, offset, bytes);
}

void async_written(struct cta *cta, uint32_t offset, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) cta->shadow.state[offset + i] |= SHADOW_WRITTEN;
}

void async_publish(struct async_token *token, uint64_t object) { (void)token, (void)object; }
void async_follow(struct async_token *later, const struct async_token *earlier) { (void)later, (void)earlier; }
void async_end(struct async_token *token) { free(token); }
bool clocks_open(struct cluster *cluster) { (void)cluster; return true; }
void clocks_close(struct cluster *cluster) { (void)cluster; }
