/* Wait states between what writes a register and what reads it. */
#include "hazards.h"

#include "report.h"

static uint32_t passed(const struct wave *w, const struct written *last) { return w->state - last->at - 1; }

static bool enough(struct wave *w, const struct insn *in, const struct written *last, uint32_t wanted, char letter,
                   uint32_t number, const char *writer)
{
    if (last->by == WRITER_NONE || passed(w, last) >= wanted || !wave_options(w)->check_hazards) return true;
    wave_fault(w, in, NO_LANE, REPORT_HAZARD, "reads or writes %c%u %u wait states behind %s; %u are demanded", letter,
               number, passed(w, last), writer, wanted);
    return false;
}

/* A matrix instruction of N passes: its result may be read by others N + 3 wait states later, one more where N is not
 * 2; as C of a matrix instruction at once if C is just that result, and N + 1 later (one more again) if the tuples
 * overlap otherwise. */
static uint32_t behind_matrix(const struct written *last, uint32_t row, uint32_t dwords, enum reader reader)
{
    const uint32_t more = last->passes != 2;
    if (reader != READER_MATRIX_C) return last->passes + 3 + more;
    return last->first == row && last->dwords == dwords ? 0 : last->passes + 1 + more;
}

static uint32_t behind_vector(const struct written *last, enum reader reader)
{
    switch (reader) {
    case READER_DPP: return 2;
    case READER_LANE: return 1;
    case READER_PERMLANE: return 2;
    case READER_TRANSCENDENTAL: return last->by == WRITER_PARTIAL ? 1 : 0;
    case READER_VALU: return last->by == WRITER_TRANSCENDENTAL || last->by == WRITER_PARTIAL ? 1 : 0;
    default: return 0;
    }
}

bool hazard_vgpr(struct wave *w, const struct insn *in, uint32_t row, uint32_t dwords, enum reader reader)
{
    for (uint32_t i = row; i < row + dwords; i++) {
        const struct written *last = &w->vgpr_written[i];
        if (last->by == WRITER_NONE) continue;
        const bool matrix = last->by == WRITER_MATRIX;
        const uint32_t wanted = matrix ? behind_matrix(last, row, dwords, reader) : behind_vector(last, reader);
        if (!enough(w, in, last, wanted, i < AGPR ? 'v' : 'a', i % AGPR,
                    matrix ? "the matrix instruction that writes it" : "the vector instruction that writes it"))
            return false;
    }
    return true;
}

static bool by_vector(struct wave *w, const struct insn *in, uint32_t index, uint32_t dwords, uint32_t wanted)
{
    for (uint32_t i = index; i < index + dwords; i++) {
        const struct written *last = &w->sgpr_written[i];
        if (last->by == WRITER_VALU && !enough(w, in, last, wanted, 's', i, "the vector instruction that writes it"))
            return false;
    }
    return true;
}

bool hazard_sgpr_as_data(struct wave *w, const struct insn *in, uint32_t index, uint32_t dwords)
{
    return by_vector(w, in, index, dwords, 2);
}
bool hazard_sgpr_as_lane(struct wave *w, const struct insn *in, uint32_t index)
{
    return by_vector(w, in, index, 1, 4);
}
bool hazard_sgpr_as_address(struct wave *w, const struct insn *in, uint32_t index, uint32_t dwords)
{
    return by_vector(w, in, index, dwords, 5);
}

bool hazard_vcc_div_fmas(struct wave *w, const struct insn *in) { return by_vector(w, in, VCC, 2, 4); }

bool hazard_m0(struct wave *w, const struct insn *in)
{
    const struct written *last = &w->sgpr_written[M0];
    return last->by != WRITER_SALU || enough(w, in, last, 1, 's', M0, "the scalar instruction that writes M0");
}

bool hazard_exec_dpp(struct wave *w, const struct insn *in)
{
    const struct written *last = &w->sgpr_written[EXEC];
    return last->by != WRITER_VALU || enough(w, in, last, 5, 's', EXEC, "the vector instruction that writes EXEC");
}
