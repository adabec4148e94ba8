/* Special registers.  One row each; the machine's instructions/threads/special.c says what they hold. */
#ifndef CUDASIM_PTX_SPECIAL_H
#define CUDASIM_PTX_SPECIAL_H

#include "ptx/type.h"

/*        id                    name                        type */
#define PTX_SPECIALS(X) \
        X(TID_X,                "%tid.x",                   U32) \
        X(TID_Y,                "%tid.y",                   U32) \
        X(TID_Z,                "%tid.z",                   U32) \
        X(NTID_X,               "%ntid.x",                  U32) \
        X(NTID_Y,               "%ntid.y",                  U32) \
        X(NTID_Z,               "%ntid.z",                  U32) \
        X(LANEID,               "%laneid",                  U32) \
        X(WARPID,               "%warpid",                  U32) \
        X(NWARPID,              "%nwarpid",                 U32) \
        X(CTAID_X,              "%ctaid.x",                 U32) \
        X(CTAID_Y,              "%ctaid.y",                 U32) \
        X(CTAID_Z,              "%ctaid.z",                 U32) \
        X(NCTAID_X,             "%nctaid.x",                U32) \
        X(NCTAID_Y,             "%nctaid.y",                U32) \
        X(NCTAID_Z,             "%nctaid.z",                U32) \
        X(SMID,                 "%smid",                    U32) \
        X(NSMID,                "%nsmid",                   U32) \
        X(GRIDID,               "%gridid",                  U64) \
        X(IS_EXPLICIT_CLUSTER,  "%is_explicit_cluster",     PRED) \
        X(CLUSTERID_X,          "%clusterid.x",             U32) \
        X(CLUSTERID_Y,          "%clusterid.y",             U32) \
        X(CLUSTERID_Z,          "%clusterid.z",             U32) \
        X(NCLUSTERID_X,         "%nclusterid.x",            U32) \
        X(NCLUSTERID_Y,         "%nclusterid.y",            U32) \
        X(NCLUSTERID_Z,         "%nclusterid.z",            U32) \
        X(CLUSTER_CTAID_X,      "%cluster_ctaid.x",         U32) \
        X(CLUSTER_CTAID_Y,      "%cluster_ctaid.y",         U32) \
        X(CLUSTER_CTAID_Z,      "%cluster_ctaid.z",         U32) \
        X(CLUSTER_NCTAID_X,     "%cluster_nctaid.x",        U32) \
        X(CLUSTER_NCTAID_Y,     "%cluster_nctaid.y",        U32) \
        X(CLUSTER_NCTAID_Z,     "%cluster_nctaid.z",        U32) \
        X(CLUSTER_CTARANK,      "%cluster_ctarank",         U32) \
        X(CLUSTER_NCTARANK,     "%cluster_nctarank",        U32) \
        X(LANEMASK_EQ,          "%lanemask_eq",             U32) \
        X(LANEMASK_LE,          "%lanemask_le",             U32) \
        X(LANEMASK_LT,          "%lanemask_lt",             U32) \
        X(LANEMASK_GE,          "%lanemask_ge",             U32) \
        X(LANEMASK_GT,          "%lanemask_gt",             U32) \
        X(CLOCK,                "%clock",                   U32) \
        X(CLOCK_HI,             "%clock_hi",                U32) \
        X(CLOCK64,              "%clock64",                 U64) \
        X(GLOBALTIMER,          "%globaltimer",             U64) \
        X(GLOBALTIMER_LO,       "%globaltimer_lo",          U32) \
        X(GLOBALTIMER_HI,       "%globaltimer_hi",          U32) \
        X(TOTAL_SMEM_SIZE,      "%total_smem_size",         U32) \
        X(AGGR_SMEM_SIZE,       "%aggr_smem_size",          U32) \
        X(DYNAMIC_SMEM_SIZE,    "%dynamic_smem_size",       U32)

enum special {
#define X(id, name, type) SPECIAL_##id,
    PTX_SPECIALS(X)
#undef X
    SPECIAL_COUNT
};

struct special_info { const char *name; enum ptx_type type; };
extern const struct special_info special_table[SPECIAL_COUNT];

/* SPECIAL_COUNT: no such register. */
enum special special_named(const char *name, size_t length);

#endif
