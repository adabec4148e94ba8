"""Makes a failing problem smaller while it still fails: features are dropped one by one, sizes are cut."""
import copy


def _without(problem, *path):
    it = copy.deepcopy(problem)
    place = it
    for key in path[:-1]:
        place = place.get(key) or {}
    if path[-1] not in place or place[path[-1]] in (None, {}, []):
        return None
    del place[path[-1]]
    return it


def _with(problem, value, *path):
    it = copy.deepcopy(problem)
    place = it
    for key in path[:-1]:
        if place.get(key) is None:
            return None
        place = place[key]
    if place.get(path[-1]) == value or path[-1] not in place:
        return None
    place[path[-1]] = value
    return it


def _single(problem):
    """One matrix instead of a batch or groups."""
    if problem.get("kind") != "product" or (not problem.get("groups")
                                            and problem["a"]["batch"] == problem["b"]["batch"] == 1):
        return None
    it = copy.deepcopy(problem)
    it["groups"] = None
    for operand in ("a", "b", "c"):
        if it.get(operand):
            it[operand]["batch"] = 1
    return it


def _cut(problem, key, size):
    """A size made smaller; rows of groups with it."""
    if not 0 < size < problem.get(key, 0) or (key == "n" and problem.get("gate", "none") != "none" and size % 2):
        return None
    sparse = any("sparsity" in problem.get(x, {}).get("storage", {}) for x in "ab")
    if key == "k" and sparse and size % (64 if problem.get("along_k") else 8):
        return None
    it = copy.deepcopy(problem)
    it[key] = size
    if key == "m" and it.get("groups"):
        more = problem["m"] - size
        for group in range(len(it["groups"]) - 1, -1, -1):
            less = min(more, it["groups"][group])
            it["groups"][group] -= less
            more -= less
    if key == "k" and it.get("along_k"):
        ends = [min(size, sum(problem["along_k"][: group + 1])) for group in range(len(it["along_k"]))]
        it["along_k"] = [end - first for first, end in zip([0] + ends, ends)]
    return it


def _without_stretches(problem):
    """All of K in place of groups along it."""
    if not problem.get("along_k"):
        return None
    it = copy.deepcopy(problem)
    it["along_k"] = None
    if it.get("c"):
        it["c"]["batch"] = 1
    return it


def _drop_empty_groups(problem):
    groups = problem.get("groups")
    if not groups or 0 not in groups or len(groups) < 2:
        return None
    it = copy.deepcopy(problem)
    it["groups"] = [rows for rows in groups if rows] or [0]
    it["b"]["batch"] = len(it["groups"])
    return it


SIZES = [1, 2, 4, 8, 16, 17, 32, 33, 48, 64, 65, 96, 97, 128, 129, 192, 256]


def candidates(problem):
    """Simpler problems, the boldest first."""
    for key in ("relation", "c", "beta", "bias", "alpha", "amax", "activation", "gate", "threads", "compute", "order",
                "kernel"):
        if key == "beta" and problem.get("c"):
            it = _without(problem, "c")
            yield it and _without(it, "beta")
        elif key == "gate" and problem.get("activation") == "swiglu_clamped":
            it = _without(problem, "gate")
            yield it and _without(it, "activation")
        else:
            yield _without(problem, key)
    yield _single(problem)
    yield _without_stretches(problem)
    yield _drop_empty_groups(problem)
    yield _with(problem, "multiply", "via")
    yield _with(problem, "plan", "via")
    yield _with(problem, 1, "repeats")
    for matrix in ("a", "b", "c", "d", "source", "rows_to", "columns_to"):
        if not problem.get(matrix):
            continue
        yield _without(problem, matrix, "storage")
        for key in ("pitch", "misalign", "scale_misalign", "interleave", "batch_gap", "scale_batch_gap", "say_pitch",
                    "layout", "packing", "aligned", "major", "sparsity", "metadata_gap"):
            yield _without(problem, matrix, "storage", key)
        yield _without(problem, matrix, "tensor_scale")
        yield _with(problem, "integers", matrix, "data")
    yield _with(problem, "fp32", "d", "format") and _plain_d(problem)
    for key in ("m", "n", "k", "rows", "columns"):
        for size in SIZES:
            yield _cut(problem, key, size)
        yield _cut(problem, key, problem.get(key, 0) - 1)


def _plain_d(problem):
    it = copy.deepcopy(problem)
    it["d"] = {"format": "fp32", "storage": {}}
    return it


def shrink(problem, still_fails, limit):
    """The smallest problem found with `limit` questions."""
    asked, again = 0, True
    while again and asked < limit:
        again = False
        for candidate in candidates(problem):
            if not candidate or asked >= limit:
                continue
            asked += 1
            if still_fails(candidate):
                problem, again = candidate, True
                break
    return problem
