/* Which clusters share SMs: see sms.h. */
#include "sms.h"

#include <stdlib.h>
#include <string.h>

bool sms_open(struct sm_set *sets, uint32_t count, uint32_t sms, uint32_t limit)
{
    for (uint32_t i = 0; i < count; i++) {
        sets[i] = (struct sm_set){ .sms = sms, .limit = limit < MOST_PER_SM ? limit : MOST_PER_SM };
        sets[i].columns = calloc(sms, sizeof *sets[i].columns);
        if (sets[i].columns == NULL) return false;
    }
    return true;
}

void sms_close(struct sm_set *sets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) free(sets[i].columns);
}

void sms_place(struct sm_set *sets, uint32_t count, struct cluster *cluster, bool packed)
{
    struct sm_set *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (sets[i].clusters == sets[i].limit) continue;
        if (best == NULL || (packed ? sets[i].clusters > best->clusters : sets[i].clusters < best->clusters))
            best = &sets[i];
    }
    cluster->sms = best;
    if (best != NULL) best->cluster[best->clusters++] = cluster;
}

static void forget(struct sm_columns *sm, const struct cta *cta)
{
    for (uint32_t c = 0; c < TENSOR_COLUMNS; c++)
        if (sm->holder[c] == cta) sm->holder[c] = NULL;
    if (sm->permit == cta) sm->permit = NULL;
}

void sms_leave(struct cluster *cluster)
{
    struct sm_set *set = cluster->sms;
    if (set == NULL) return;
    for (uint32_t i = 0; i < cluster->ctas; i++) forget(&set->columns[i], &cluster->cta[i]);
    sms_event(cluster);
    for (uint32_t i = 0; i < set->clusters; i++)
        if (set->cluster[i] == cluster) {
            set->cluster[i] = set->cluster[--set->clusters];
            break;
        }
    cluster->sms = NULL;
}

struct sm_columns *sms_of(const struct cta *cta) { return &cta->cluster->sms->columns[cta->rank]; }

void sms_event(const struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->sms->clusters; i++) {
        cluster_event(cluster->sms->cluster[i]);
        cluster->sms->cluster[i]->starved = false;
    }
}

static bool waits_for_columns(const struct cluster *c)
{
    for (uint32_t i = 0; i < c->ctas; i++)
        for (uint32_t j = 0; j < c->cta[i].warps; j++)
            for (uint32_t g = 0; g < c->cta[i].warp[j].group_count; g++) {
                const struct group *group = &c->cta[i].warp[j].groups[g];
                if (group->blocked && group->wait.kind == WAIT_TENSOR_MEMORY) return true;
            }
    return false;
}

bool sms_may_wait(struct cluster *c)
{
    if (c->sms == NULL || !waits_for_columns(c)) return false;
    c->starved = true;
    for (uint32_t i = 0; i < c->sms->clusters; i++)
        if (!c->sms->cluster[i]->starved) return true;
    return false;
}
