"""Layers that train with block-scaled products.  What a product must give follows from its operands: these are
dequantized, multiplied in fp64, and the result may differ by the roundings of fp32 sums alone."""
from __future__ import annotations

import copy
import math
import pathlib
import re

import pytest

torch = pytest.importorskip("torch")

import blockscale                                                                       # noqa: E402
from blockscale.torch import recipes, training                                          # noqa: E402
from blockscale.torch.recipes import MXFP8BlockScaling, NVFP4BlockScaling, Recipe, Role  # noqa: E402

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
ROUNDING = {torch.float32: 2.0 ** -24, torch.bfloat16: 2.0 ** -8, torch.float16: 2.0 ** -11}


def inputs(tokens, k, n, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(tokens, k, generator=generator).to(dtype)
    weight = (torch.randn(n, k, generator=generator) / math.sqrt(k)).to(dtype)
    bias = torch.randn(n, generator=generator).to(dtype)
    dy = torch.randn(tokens, n, generator=generator).to(dtype)
    return x, weight, bias, dy


def run(x, weight, bias, dy, recipe, seed=5):
    """A pass forward and backward: y, dx, dw, db, and the seed that it drew."""
    torch.manual_seed(seed)
    drawn = training.new_seed(recipes.recipe_named(recipe))
    torch.manual_seed(seed)
    leaves = [None if leaf is None else leaf.clone().requires_grad_() for leaf in (x, weight, bias)]
    y = training.linear(leaves[0], leaves[1], leaves[2], recipe)
    y.backward(dy)
    return y.detach(), *(None if leaf is None else leaf.grad for leaf in leaves), drawn


def on_cpu(matrix):
    """The same matrix on the CPU, whose library dequantizes to fp64."""
    scale = None if matrix.tensor_scale is None else matrix.tensor_scale.cpu()
    return blockscale.from_parts(matrix.codes.cpu(), matrix.scales.cpu(), matrix.format, tensor_scale=scale,
                                 packing=matrix.packing, shape=matrix.shape)


def assert_product(got, a, b, bias=None):
    """got is a b^T, but for the roundings of fp32 sums over K terms, of the factor of tensor scales, of the bias and of
    the result's type."""
    got, bias = got.cpu(), None if bias is None else bias.cpu()
    a, b = (blockscale.dequantize(on_cpu(matrix), "float64") for matrix in (a, b))
    exact, magnitude = a @ b.t(), a.abs() @ b.abs().t()
    if bias is not None:
        exact, magnitude = exact + bias.double(), magnitude + bias.double().abs()
    unit = 2.0 ** -24
    terms = max(a.shape[1], 10 * -(-a.shape[1] // 16)) * (2 if got.dtype == torch.float16 else 1)     # of tensor cores
    allowed = (terms + 4) * unit * magnitude * 1.001 + ROUNDING[got.dtype] * exact.abs() * 1.01 + 2.0 ** -126
    assert got.shape == exact.shape
    worst = max(((got.double() - exact).abs() / allowed).flatten().tolist(), default=0.0)
    assert worst <= 1, f"beyond the bound by a factor of {worst:.3g}"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["MXFP8BlockScaling", "NVFP4BlockScaling"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("tokens, k, n", [(64, 96, 128), (50, 80, 48), (1, 32, 32), (33, 70, 26)])
def test_products(device, name, dtype, tokens, k, n):
    recipe = recipes.recipe_named(name)
    x, weight, bias, dy = (tensor.to(device) for tensor in inputs(tokens, k, n, dtype))
    y, dx, dw, db, seed = run(x, weight, bias, dy, recipe)
    operands = recipes.quantize_copies(x, recipe.input, recipe.signs, seed=seed)
    weights = recipes.quantize_copies(weight, recipe.weight, seed=seed + 2)
    gradient = recipes.quantize_copies(dy, recipe.gradient, recipe.signs, seed=seed + 4)
    assert_product(y, operands.rows, weights.rows, bias)
    assert_product(dx, gradient.rows, weights.columns)
    assert_product(dw, gradient.columns, operands.columns)
    assert torch.equal(db, dy.sum(0, dtype=torch.float32).to(dtype))
    assert y.dtype == dx.dtype == dw.dtype == db.dtype == dtype


@pytest.mark.parametrize("recipe", [
    MXFP8BlockScaling(), MXFP8BlockScaling(gradient_format="mxfp8_e5m2"), NVFP4BlockScaling(disable_rht=True),
    NVFP4BlockScaling(disable_rht=True, disable_stochastic_rounding=True, disable_2d_quantization=True)])
def test_numbers_that_formats_hold_give_the_gradients_of_autograd(recipe):
    """Whole numbers that lose nothing, whose sums are exact in fp32: every bit is autograd's in fp64."""
    generator = torch.Generator().manual_seed(3)
    tokens, k, n = 64, 96, 32

    def whole(rows, columns):
        values = torch.tensor([0., 1, -1, 2, -2, 3, -3, 4, -4, 6, -6])
        numbers = values[torch.randint(0, len(values), (rows, columns), generator=generator)]
        numbers[::8, ::8] = 6       # every block of either axis has it, so that all scales are alike
        for start in range(8):
            numbers[start::8, start::8] = 6
        return numbers

    x, weight, dy = whole(tokens, k), whole(n, k), whole(tokens, n)
    y, dx, dw, _, _ = run(x, weight, None, dy, recipe)
    exact = [leaf.double().requires_grad_() for leaf in (x, weight)]
    expected = torch.nn.functional.linear(*exact)
    expected.backward(dy.double())
    # One scale serves everything, but NVFP4's tensor scale is 6 / 2688, which fp32 rounds: then a few roundings show.
    exactly = recipe.name == "MXFP8BlockScaling"
    for got, want in ((y, expected), (dx, exact[0].grad), (dw, exact[1].grad)):
        if exactly:
            assert torch.equal(got.double(), want)
        else:
            assert ((got.double() - want).abs() <= 4 * 2.0 ** -24 * want.abs()).all()


def test_copies_are_the_quantizers_own():
    x = inputs(64, 96, 32, torch.bfloat16)[0]
    for role, signs in ((Role("mxfp8_e4m3"), (1,) * 16), (Role("nvfp4", squares=True), (1,) * 16),
                        (Role("nvfp4", rotated=True), NVFP4BlockScaling().signs),
                        (Role("nvfp4", rounding="stochastic"), (1,) * 16)):
        copies = recipes.quantize_copies(x, role, signs, seed=9)
        options = {"block_rows": 16} if role.squares else {}
        if role.rounding == "stochastic":
            options["rounding"] = "stochastic"
        turned = x.t().contiguous()
        if role.rotated:
            turned = blockscale.hadamard(turned, 16, signs=torch.tensor(signs, dtype=torch.int8))
        for copy_, source, seed in ((copies.rows, x, 9), (copies.columns, turned, 10)):
            if role.rounding == "stochastic":
                options["seed"] = seed
            expected = blockscale.quantize(source, role.format, **options)
            assert torch.equal(copy_.codes, expected.codes) and torch.equal(copy_.scales, expected.scales)
            if expected.tensor_scale is not None:
                assert torch.equal(copy_.tensor_scale, expected.tensor_scale)


def test_a_copy_alone_is_that_of_both():
    x = inputs(64, 96, 32, torch.bfloat16)[0]
    for role in (Role("mxfp8_e4m3"), Role("mxfp8_e5m2"), Role("nvfp4"), Role("nvfp4", squares=True)):
        together = recipes.quantize_copies(x, role)
        rows = recipes.quantize_copies(x, role, columns=False)
        columns = recipes.quantize_copies(x, role, rows=False)
        assert rows.columns is None and columns.rows is None
        for one, two in ((together.rows, rows.rows), (together.columns, columns.columns)):
            assert torch.equal(one.codes, two.codes) and torch.equal(one.scales, two.scales)


def test_what_the_names_stand_for():
    mxfp8, nvfp4 = MXFP8BlockScaling(), NVFP4BlockScaling()
    assert {mxfp8.input, mxfp8.weight, mxfp8.gradient} == {Role("mxfp8_e4m3")}
    assert nvfp4.input == Role("nvfp4", rotated=True) and nvfp4.weight == Role("nvfp4", squares=True)
    assert nvfp4.gradient == Role("nvfp4", rounding="stochastic", rotated=True)
    assert set(nvfp4.signs) == {1, -1} and nvfp4.signs != NVFP4BlockScaling(hadamard_seed=1).signs
    plain = NVFP4BlockScaling(disable_rht=True, disable_stochastic_rounding=True, disable_2d_quantization=True)
    assert {plain.input, plain.weight, plain.gradient} == {Role("nvfp4")}
    assert MXFP8BlockScaling(gradient_format="mxfp8_e5m2").gradient == Role("mxfp8_e5m2")


def test_squares_stand_for_the_same_numbers_both_ways():
    weight = inputs(1, 96, 64, torch.float32)[1]
    copies = recipes.quantize_copies(weight, Role("nvfp4", squares=True))
    assert torch.equal(copies.rows.dequantize(), copies.columns.dequantize().t())


def test_one_pass_makes_both_copies_of_mxfp8(monkeypatch):
    calls = []
    for name in ("quantize", "quantize_both"):
        original = getattr(blockscale, name)
        monkeypatch.setattr(blockscale, name, lambda *a, _n=name, _o=original, **k: (calls.append(_n), _o(*a, **k))[1])
    run(*inputs(32, 64, 32, torch.float32), "MXFP8BlockScaling")
    assert calls == ["quantize_both"] * 3


def test_what_nobody_wants_is_not_made(monkeypatch):
    calls = []
    original = blockscale.quantize
    monkeypatch.setattr(blockscale, "quantize", lambda *a, **k: (calls.append(k.get("axis")), original(*a, **k))[1])
    x, weight, _, _ = inputs(32, 64, 32, torch.float32)
    with torch.no_grad():
        training.linear(x, weight, None, "MXFP8BlockScaling")
    assert calls == [-1, -1]


@pytest.mark.parametrize("signs", [(1,) * 16, NVFP4BlockScaling(hadamard_seed=4).signs])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_rotation_of_gpus_is_the_librarys(signs, dtype):
    """Tensor cores multiply by a 16 x 16 matrix where the library rotates: the same but for roundings."""
    x = inputs(48, 70, 32, dtype)[0]
    library = recipes.rotate_tokens(x, signs)
    matrix = recipes._rotation(signs, torch.float64, torch.device("cpu"))
    product = (matrix @ x.double().view(3, 16, 70)).view(48, 70).t()
    bound = ROUNDING[dtype] * product.abs() * 1.01 + 1e-12
    assert ((library.double() - product).abs() <= bound).all()
    assert torch.equal(matrix @ matrix.t(), torch.eye(16, dtype=torch.float64))


def test_rotation_leaves_the_product():
    x, _, _, dy = inputs(64, 48, 32, torch.float64)
    signs = NVFP4BlockScaling().signs
    turned = recipes.rotate_tokens(dy, signs) @ recipes.rotate_tokens(x, signs).t()
    assert torch.allclose(turned, dy.t() @ x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_seeds_repeat_a_run(device):
    arguments = [tensor.to(device) for tensor in inputs(64, 96, 64, torch.bfloat16)]
    first, again, other = (run(*arguments, "NVFP4BlockScaling", seed) for seed in (1, 1, 2))
    for one, two in zip(first, again):
        assert one == two if isinstance(one, int) else torch.equal(one, two)
    assert torch.equal(first[0], other[0])          # nothing is drawn in the forward pass
    assert not torch.equal(first[1], other[1]) and not torch.equal(first[2], other[2])


def test_stochastic_gradients_are_right_in_the_mean():
    x, weight, _, dy = inputs(16, 32, 64, torch.float32)
    dy = dy.clamp(-1, 1)
    dy[:, ::16] = 1         # the largest of every block, with a scale that ue4m3 holds exactly: nothing is cut
    recipe = NVFP4BlockScaling(disable_rht=True)
    weights = recipes.quantize_copies(weight, recipe.weight).columns.dequantize("float64")
    exact = dy.double() @ weights.t()
    runs = torch.stack([run(x, weight, None, dy, recipe, seed)[1].double() for seed in range(400)])
    deviation = runs.std(0) / math.sqrt(400)
    off = (runs.mean(0) - exact).abs() / deviation
    assert off.max() < 6 and off.mean() < 1.2, f"{off.max():.2f} and {off.mean():.2f} deviations off"


def test_recomputed_layers_have_the_same_gradients():
    from torch.utils.checkpoint import checkpoint
    x, weight, bias, dy = inputs(32, 64, 32, torch.bfloat16)
    layer = training.Linear(64, 32, recipe="NVFP4BlockScaling", dtype=torch.bfloat16)
    gradients = []
    for recompute in (False, True):
        torch.manual_seed(7)
        leaf = x.clone().requires_grad_()
        layer.zero_grad()
        y = checkpoint(layer, leaf, use_reentrant=False) if recompute else layer(leaf)
        y.backward(dy)
        gradients.append((leaf.grad, layer.weight.grad, layer.bias.grad))
    for one, two in zip(*gradients):
        assert torch.equal(one, two)


@pytest.mark.parametrize("name, most", [("MXFP8BlockScaling", 1.04), ("NVFP4BlockScaling", 0.57)])
def test_what_is_kept_for_the_backward_pass_is_codes(name, most):
    x, weight, _, _ = inputs(256, 512, 256, torch.bfloat16)
    kept = []
    pack = lambda tensor: (kept.append(tensor), tensor)[1]      # noqa: E731
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        training.linear(x.requires_grad_(), weight.requires_grad_(), None, name)
    elements = x.numel() + weight.numel()
    assert sum(tensor.numel() * tensor.element_size() for tensor in kept) <= most * elements


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 128), torch.nn.Linear(128, 64, bias=False)
        self.head = torch.nn.Linear(64, 8)

    def forward(self, x):
        return self.head(self.second(torch.nn.functional.gelu(self.first(x))))


@pytest.mark.parametrize("name", ["MXFP8BlockScaling", "NVFP4BlockScaling"])
def test_convert(name):
    torch.manual_seed(0)
    model = Small()
    before = dict(model.named_parameters())
    reference = copy.deepcopy(model)
    assert training.convert_(model, name, filter=lambda module, name: "head" not in name) is model
    assert type(model.head) is torch.nn.Linear and type(model.first) is type(model.second) is training.Linear
    assert all(after is before[key] for key, after in model.named_parameters())
    model.load_state_dict(reference.state_dict())
    assert model.first.recipe.name == name and name in repr(model)
    x = torch.randn(4, 10, 64)
    assert model(x).shape == (4, 10, 8)
    error = (model(x) - reference(x)).norm() / reference(x).norm()
    assert 0 < error < (0.08 if name.startswith("MX") else 0.35)
    assert isinstance(training.convert_(torch.nn.Linear(32, 32), name), training.Linear)


@pytest.mark.parametrize("name", ["MXFP8BlockScaling", "NVFP4BlockScaling"])
def test_a_model_learns(name):
    torch.manual_seed(0)
    model = training.convert_(Small(), name)
    teacher = Small()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(60):
        x = torch.randn(64, 64)
        loss = (model(x) - teacher(x).detach()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])


def test_autocast():
    model = training.Linear(64, 32)
    x = torch.randn(8, 64, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        y = model(x)
    y.float().sum().backward()
    assert y.dtype == torch.bfloat16 and x.grad.dtype == torch.float32 and model.weight.grad.dtype == torch.float32


def test_no_tokens():
    y, dx, dw, db, _ = run(*inputs(0, 64, 32, torch.float32), "NVFP4BlockScaling")
    assert y.shape == (0, 32) and dx.shape == (0, 64) and not dw.any() and not db.any()


def test_refusals():
    x, weight, bias, _ = inputs(8, 64, 32, torch.float32)
    with pytest.raises(ValueError, match="float64"):
        training.linear(x.double(), weight)
    with pytest.raises(ValueError, match="x has the shape"):
        training.linear(x[:, :32], weight)
    with pytest.raises(ValueError, match="MXFP8BlockScaling or NVFP4BlockScaling"):
        training.linear(x, weight, None, "DelayedScaling")
    with pytest.raises(ValueError, match="both are rotated"):
        Recipe("r", Role("nvfp4", rotated=True), Role("nvfp4"), Role("nvfp4"))
    with pytest.raises(ValueError, match="signs"):
        Recipe("r", Role("nvfp4"), Role("nvfp4"), Role("nvfp4"), signs=(1, 2))
    leaf = x.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient, = torch.autograd.grad(training.linear(leaf, weight.requires_grad_()).square().sum(), leaf,
                                        create_graph=True)
        gradient.sum().backward()


def test_the_page():
    """The code on the page about training runs as it is written."""
    page = pathlib.Path(__file__).parents[3] / "docs" / "guide" / "training.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(block, names)      # noqa: S102
    assert type(names["model"][0]) is training.Linear and type(names["model"][3]) is torch.nn.Linear
