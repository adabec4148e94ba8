"""Layers of experts that train: their products are those of each expert's tokens alone, to the bit where scales are."""
from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

import blockscale                                                                        # noqa: E402
from blockscale.torch import grouped, recipes, training                                  # noqa: E402
from test_training import DEVICES, assert_product                                                 # noqa: E402

COUNTS = ([5, 0, 64, 27], [0, 0, 33], [32, 32], [7], [0, 1, 0, 0, 95, 31])


def make(counts, k, n, dtype, device="cpu"):
    made = make_on_cpu(counts, k, n, dtype)
    return [tensor.to(device) for tensor in made]


def make_on_cpu(counts, k, n, dtype):
    generator = torch.Generator().manual_seed(sum(counts))
    tokens, groups = sum(counts), len(counts)
    return (torch.randn(tokens, k, generator=generator).to(dtype),
            (torch.randn(groups, n, k, generator=generator) / math.sqrt(k)).to(dtype),
            torch.randn(groups, n, generator=generator).to(dtype),
            torch.randn(tokens, n, generator=generator).to(dtype))


def run(x, weight, bias, dy, counts, recipe, seed=5):
    torch.manual_seed(seed)
    leaves = [leaf.clone().requires_grad_() for leaf in (x, weight, bias)]
    y = grouped.grouped_linear(leaves[0], leaves[1], torch.tensor(counts, device=x.device), leaves[2], recipe)
    y.backward(dy)
    return y.detach(), *(leaf.grad for leaf in leaves)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_mxfp8_has_the_bits_of_each_expert_alone(device, counts, dtype):
    x, weight, bias, dy = make(counts, 96, 64, dtype, device)
    y, dx, dw, db = run(x, weight, bias, dy, counts, "MXFP8BlockScaling")
    first = 0
    for group, count in enumerate(counts):
        rows = slice(first, first + count)
        first += count
        leaves = [leaf.clone().requires_grad_() for leaf in (x[rows], weight[group], bias[group])]
        alone = training.linear(*leaves, "MXFP8BlockScaling")
        alone.backward(dy[rows])
        assert torch.equal(y[rows], alone) and torch.equal(dx[rows], leaves[0].grad)
        assert torch.equal(dw[group], leaves[1].grad)
        assert torch.allclose(db[group], leaves[2].grad, rtol=1e-5 if dtype == torch.float32 else 1e-2, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("counts", COUNTS)
def test_nvfp4_products(device, counts):
    x, weight, bias, dy = make(counts, 96, 64, torch.float32, device)
    recipe = training.NVFP4BlockScaling()
    torch.manual_seed(5)
    seed = training.new_seed(recipe)
    y, dx, dw, _ = run(x, weight, bias, dy, counts, recipe)
    rows, sizes, total = grouped.filled(torch.tensor(counts, device=device), x.shape[0])
    spread, dspread = x.new_zeros(total, 96).index_copy(0, rows, x), x.new_zeros(total, 64).index_copy(0, rows, dy)
    operands = recipes.quantize_copies(spread, recipe.input, recipe.signs, seed=seed)
    gradient = recipes.quantize_copies(dspread, recipe.gradient, recipe.signs, seed=seed + 4)
    first = at = 0
    for group, (count, size) in enumerate(zip(counts, sizes.tolist())):
        scale = recipes.quantize_copies(weight, recipe.weight).rows.tensor_scale
        role = recipe.weight
        kinds = {"tensor_scale": scale, "block_rows": 16}
        w_rows = blockscale.quantize(weight[group], role.format, **kinds)
        w_columns = blockscale.quantize(weight[group], role.format, axis=-2, **kinds)
        mine = slice(first, first + count)
        assert_product(y[mine], part(operands.rows, rows[mine]), w_rows, bias[group])
        assert_product(dx[mine], part(gradient.rows, rows[mine]), w_columns)
        assert_product(dw[group], run_of(gradient.columns, at, size), run_of(operands.columns, at, size))
        first, at = first + count, at + size


def part(matrix, rows):
    """Some rows of a quantized matrix."""
    return blockscale.from_parts(matrix.codes[rows], matrix.scales[rows], matrix.format,
                                 tensor_scale=matrix.tensor_scale, shape=(len(rows), matrix.columns))


def run_of(matrix, first, count):
    """Some columns of a quantized NVFP4 matrix."""
    return blockscale.from_parts(matrix.codes[:, first // 2:(first + count) // 2].contiguous(),
                                 matrix.scales[:, first // 16:(first + count) // 16].contiguous(), matrix.format,
                                 tensor_scale=matrix.tensor_scale, shape=(matrix.rows, count))


@pytest.mark.parametrize("counts", COUNTS)
def test_filled_groups_begin_with_blocks(counts):
    rows, sizes, total = grouped.filled(torch.tensor(counts), sum(counts))
    assert int(sizes.sum()) == total and total % 32 == 0
    starts = (sizes.cumsum(0) - sizes).tolist()
    assert all(start % 32 == 0 for start in starts)
    expected = [start + i for start, count in zip(starts, counts) for i in range(count)]
    assert rows.tolist() == expected


@pytest.mark.parametrize("name", ["MXFP8BlockScaling", "NVFP4BlockScaling"])
def test_experts(name):
    """A mixture beside the same in fp32, each token's experts one after the other."""
    torch.manual_seed(2)
    layer = grouped.Experts(5, 64, 96, recipe=name)
    x = torch.randn(40, 64)
    indices = torch.stack([torch.randperm(4)[:2] for _ in range(40)])       # expert 4 has no token
    weights = torch.rand(40, 2)
    results = []
    for plain in (False, True):
        leaf, scales = x.clone().requires_grad_(), weights.clone().requires_grad_()
        layer.zero_grad()
        if plain:
            rows = []
            for token, chosen, scale in zip(leaf, indices, scales):
                total = 0
                for expert, factor in zip(chosen.tolist(), scale):
                    gate, up = (layer.gate_up.weight[expert] @ token).chunk(2)
                    total = total + factor * (layer.down.weight[expert] @ (torch.nn.functional.silu(gate) * up))
                rows.append(total)
            y = torch.stack(rows)
        else:
            y = layer(leaf, indices, scales)
        y.square().sum().backward()
        results.append((y.detach(), leaf.grad, scales.grad, layer.gate_up.weight.grad, layer.down.weight.grad))
    most = 0.12 if name.startswith("MX") else 0.6
    for got, want in zip(*results):
        assert got.shape == want.shape
        error = ((got - want).norm() / want.norm()).item()
        assert 0 < error < most
    assert not results[0][3][4].any() and not results[0][4][4].any()


def test_nothing_waits_for_the_device(monkeypatch):
    """Filling reads no number: shapes alone decide what is allocated.  On the meta device reading would fail."""
    rows, sizes, total = grouped.filled(torch.empty(6, dtype=torch.int64, device="meta"), 100)
    assert rows.shape == (100,) and sizes.shape == (6,) and total == 128 + 5 * 32


def test_refusals():
    x, weight, bias, _ = make([8, 8], 64, 32, torch.float32)
    with pytest.raises(ValueError, match="counts are"):
        grouped.grouped_linear(x, weight, torch.tensor([8, 9]))
    with pytest.raises(ValueError, match="counts are"):
        grouped.grouped_linear(x, weight, torch.tensor([8, 8], dtype=torch.int32))
    with pytest.raises(ValueError, match="x has the shape"):
        grouped.grouped_linear(x[:, :32], weight, torch.tensor([8, 8]))
