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

/* The clocks are joined where races are watched. */
void checks_release(struct warp *w, uint32_t lanes, uint64_t object) { (void)w, (void)lanes, (void)object; }
void checks_acquire(struct warp *w, uint32_t lanes, uint64_t object) { (void)w, (void)lanes, (void)object; }
