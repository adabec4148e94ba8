"""Layers over several processes, by gloo: the bits of one process where the order of sums allows, bounds elsewhere.

Each test runs its function in 2 and in 4 processes; what one process would give is computed in each of them."""
from __future__ import annotations

import datetime
import functools
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist                                                        # noqa: E402
import torch.multiprocessing as multiprocessing                                         # noqa: E402
from torch import nn                                                                    # noqa: E402
from torch.distributed.device_mesh import init_device_mesh                              # noqa: E402
from torch.distributed.tensor import Replicate, Shard                                   # noqa: E402
from torch.distributed.tensor.parallel import parallelize_module                        # noqa: E402

import blockscale                                                                       # noqa: E402
from blockscale.torch import distributed, recipes, training                             # noqa: E402

if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

FORMATS = ("mxfp8_e4m3", "mxfp4", "nvfp4", "mxfp6_e2m3")


MOST = 4
_workers: list = []     # processes that stay: starting one takes seconds


def _serve(rank, tasks, results):
    """A process: runs functions of this file by name until there are no more."""
    torch.set_num_threads(1)
    blockscale.set_threads(1)
    for ranks, path, name, arguments in iter(tasks.get, None):
        try:
            dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=ranks,
                                    timeout=datetime.timedelta(seconds=60))
            torch.manual_seed(0)        # every process draws the same whole tensors, and takes its part
            globals()[name](rank, ranks, *arguments)
            dist.barrier()
            results.put((rank, None))
        except BaseException:
            results.put((rank, traceback.format_exc()))
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()


@pytest.fixture(scope="module", autouse=True)
def workers():
    """Four processes for all tests of this file."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    for rank in range(MOST):
        tasks = context.Queue()
        process = context.Process(target=_serve, args=(rank, tasks, results), daemon=True)
        process.start()
        _workers.append((process, tasks, results))
    yield
    for process, tasks, _ in _workers:
        tasks.put(None)
    for process, _, _ in _workers:
        process.join(30)
    _workers.clear()


def processes(ranks, function, *arguments):
    """Runs a function of this file in `ranks` processes; a failure in one is a failure here, with its words."""
    with tempfile.TemporaryDirectory() as folder:
        for _, tasks, _ in _workers[:ranks]:
            tasks.put((ranks, os.path.join(folder, "store"), function.__name__, arguments))
        answers = [_workers[0][2].get(timeout=240) for _ in range(ranks)]
    failures = [f"rank {rank}: {words}" for rank, words in answers if words is not None]
    assert not failures, "\n".join(failures)


def mine(x, rank, ranks, dim=0):
    return x.chunk(ranks, dim)[rank].contiguous()


both = pytest.mark.parametrize("ranks", [2, 4])


# Collectives ----------------------------------------------------------------------------------------------------------

def gathers(rank, ranks):
    x = torch.randn(64 * ranks, 128 * ranks).bfloat16()
    x[3, 5] = 40        # NVFP4's tensor scale is that of rank 0's shard, and of everybody
    narrow = blockscale.quantize(x[:, :32 * ranks], "mxfp8_e4m3")       # a scale in each row of a rank
    got = distributed.gather_columns(blockscale.quantize(mine(x[:, :32 * ranks], rank, ranks, 1), "mxfp8_e4m3")).wait()
    assert torch.equal(got.codes, narrow.codes) and torch.equal(got.scales, narrow.scales)
    for name in FORMATS:
        whole = blockscale.quantize(x, name)
        local = distributed.quantize_shard(mine(x, rank, ranks), name)
        columns = distributed.quantize_shard(mine(x, rank, ranks, 1), name)
        for got, expected in ((distributed.gather_rows(local).wait(), whole),
                              (distributed.gather_columns(columns).wait(), whole)):
            assert got.shape == expected.shape
            assert torch.equal(got.codes, expected.codes) and torch.equal(got.scales, expected.scales)
            if name == "nvfp4":
                assert torch.equal(got.tensor_scale, expected.tensor_scale)


@both
def test_gathered_codes_are_those_of_the_whole(ranks):
    processes(ranks, gathers)


def bytes_moved(rank, ranks):
    """What goes through torch.distributed, counted at its call."""
    moved = []
    original = dist.all_gather_into_tensor

    def counted(whole, part, **options):
        moved.append(part.numel() * part.element_size())
        return original(whole, part, **options)

    dist.all_gather_into_tensor = counted
    x = torch.randn(64, 1024).bfloat16()
    for name, least in (("mxfp8_e4m3", 1.9), ("nvfp4", 3.5), ("mxfp4", 3.7)):
        moved.clear()
        distributed.gather_rows(distributed.quantize_shard(x, name)).wait()
        assert x.numel() * 2 / sum(moved) > least
    dist.all_gather_into_tensor = original


def test_fewer_bytes_than_bf16():
    processes(2, bytes_moved)


# Layers that multiply -------------------------------------------------------------------------------------------------

def column(rank, ranks, name, dtype, overlap):
    linear, x = nn.Linear(256, 96 * ranks).to(dtype), torch.randn(24 * ranks, 256).to(dtype)
    whole = torch.empty(x.shape[0], linear.out_features, dtype=dtype)
    blockscale.matmul(blockscale.quantize(x, name), blockscale.quantize(linear.weight.detach(), name), out=whole,
                      bias=linear.bias.detach())
    layer = distributed.ColumnParallelLinear.from_float(linear, name, overlap=overlap)
    assert torch.equal(layer(mine(x, rank, ranks)), mine(whole, rank, ranks, 1))
    everywhere = distributed.ColumnParallelLinear.from_float(linear, name, gather=False)
    assert torch.equal(everywhere(x.view(4, -1, 256)).flatten(0, 1), mine(whole, rank, ranks, 1))
    again = distributed.ColumnParallelLinear.from_float(nn.Linear(256, 96 * ranks).to(dtype), name)
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again(mine(x, rank, ranks)), mine(whole, rank, ranks, 1))


@both
@pytest.mark.parametrize("name, dtype, overlap", [("mxfp8_e4m3", torch.bfloat16, False), ("nvfp4", torch.float32, True),
                                                  ("mxfp4", torch.bfloat16, True), ("nvfp4", torch.bfloat16, False)])
def test_column_parallel_has_the_bits_of_one_process(ranks, name, dtype, overlap):
    processes(ranks, column, name, dtype, overlap)


def row(rank, ranks, name, dtype, reduce_dtype):
    linear, x = nn.Linear(64 * ranks, 96).to(dtype), torch.randn(24 * ranks, 64 * ranks).to(dtype)
    a, b = (blockscale.quantize(part, name).dequantize("float64") for part in (x, linear.weight.detach()))
    exact = a @ b.t()
    magnitude = a.abs() @ b.abs().t()
    # Each rank: a chain of fp32 sums, rounded to reduce_dtype; ranks - 1 additions in it; the bias and x's type.
    step = {torch.bfloat16: 2.0 ** -8, torch.float32: 2.0 ** -24}
    sums = sum((a[:, part] @ b[:, part].t()).abs() for part in torch.arange(64 * ranks).chunk(ranks))
    bound = (64 + 4) * 2.0 ** -24 * magnitude + ranks * step[reduce_dtype] * 1.1 * sums
    expected = exact + linear.bias.detach().double()
    bound = bound + (2 * step[dtype] + step[reduce_dtype]) * 1.1 * (expected.abs() + exact.abs() + bound)
    layer = distributed.RowParallelLinear.from_float(linear, name, reduce_dtype=reduce_dtype)
    local = mine(x, rank, ranks, 1)
    y = layer(local)
    assert y.dtype == dtype and y.shape == (24, 96)
    assert ((y.double() - mine(expected, rank, ranks)).abs() <= mine(bound, rank, ranks)).all()
    everywhere = distributed.RowParallelLinear.from_float(linear, name, reduce_dtype=reduce_dtype, scatter=False)
    assert ((everywhere(local).double() - expected).abs() <= bound).all()


@both
@pytest.mark.parametrize("name, dtype, reduce_dtype", [
    ("mxfp8_e4m3", torch.bfloat16, torch.bfloat16), ("nvfp4", torch.float32, torch.float32),
    ("mxfp4", torch.bfloat16, torch.float32)])
def test_row_parallel_is_within_its_bound(ranks, name, dtype, reduce_dtype):
    processes(ranks, row, name, dtype, reduce_dtype)


def exact_rows(rank, ranks):
    """Whole numbers, whose sums are exact in fp32: then every rank count gives the same bits."""
    values = torch.tensor([0., 1, -1, 2, -2, 3, 4, -6])
    x = values[torch.randint(0, 8, (8 * ranks, 32 * ranks))]
    linear = nn.Linear(32 * ranks, 48, bias=False)
    linear.weight.data = values[torch.randint(0, 8, (48, 32 * ranks))]
    layer = distributed.RowParallelLinear.from_float(linear, "mxfp4", reduce_dtype=torch.float32)
    assert torch.equal(layer(mine(x, rank, ranks, 1)), mine(x @ linear.weight.detach().t(), rank, ranks))


@both
def test_row_parallel_of_exact_sums(ranks):
    processes(ranks, exact_rows)


class Feed(nn.Module):
    def __init__(self, width, kind=nn.Linear):
        super().__init__()
        self.up, self.down = kind(width, 4 * width), kind(4 * width, width)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)))


def styles(rank, ranks, name):
    if rank:
        torch.manual_seed(100 + rank)       # the parameters of rank 0 count
    model = Feed(64)
    torch.manual_seed(1)
    x = torch.randn(16 * ranks, 64)
    source = [parameter.detach().clone() for parameter in model.parameters()]
    for parameter in source:
        dist.broadcast(parameter, 0)
    mesh = init_device_mesh("cpu", (ranks,))
    parallel = parallelize_module(model, mesh, {"up": distributed.ColwiseParallel(name),
                                                "down": distributed.RowwiseParallel(name, reduce_dtype=torch.float32)})
    assert type(parallel.up) is distributed.ColumnParallelLinear
    assert not list(parallel.parameters())
    h = torch.empty(16 * ranks, 256)
    blockscale.matmul(blockscale.quantize(x, name), blockscale.quantize(source[0], name), out=h, bias=source[1])
    h = torch.nn.functional.gelu(h)
    y = blockscale.matmul(blockscale.quantize(h, name), blockscale.quantize(source[2], name), bias=source[3],
                          out_dtype="float32")
    got = parallel(mine(x, rank, ranks))
    assert torch.allclose(got, mine(y, rank, ranks), rtol=0, atol=2e-5 * y.abs().max().item())


@both
@pytest.mark.parametrize("name", ["mxfp8_e4m3", "nvfp4"])
def test_styles_of_dtensor(ranks, name):
    processes(ranks, styles, name)


def experts(rank, ranks, name):
    count, hidden, inner, tokens = 5, 64, 32 * ranks, 8 * ranks
    gate_up, down = torch.randn(count, 2 * inner, hidden) / 8, torch.randn(count, hidden, inner) / 8
    x, weights = torch.randn(tokens, hidden), torch.rand(tokens, 2)
    indices = torch.stack([torch.randperm(4)[:2] for _ in range(tokens)])
    layer = distributed.ParallelExperts(gate_up, down, name, reduce_dtype=torch.float32)
    got = layer(*(mine(part, rank, ranks) for part in (x, indices, weights)))
    w1, w2 = (blockscale.quantize(weight, name).dequantize("float64") for weight in (gate_up, down))
    xq = blockscale.quantize(x, name).dequantize("float64")
    h = torch.empty(tokens, 2, inner)
    for token in range(tokens):
        for slot in range(2):
            gate, up = (w1[indices[token, slot]] @ xq[token]).chunk(2)
            h[token, slot] = (torch.nn.functional.silu(gate) * up).float()
    hq = blockscale.quantize(h.view(2 * tokens, inner), name).dequantize("float64").view(tokens, 2, inner)
    y = torch.stack([sum(weights[t, s].double() * (w2[indices[t, s]] @ hq[t, s]) for s in range(2))
                     for t in range(tokens)])
    # h comes from sums in another order: single codes of it may be neighbours, some 2^-3 of one number apart.
    error = (got.double() - mine(y, rank, ranks)).norm() / mine(y, rank, ranks).norm()
    assert error < 2e-3, error


@both
@pytest.mark.parametrize("name", ["mxfp8_e4m3", "nvfp4"])
def test_experts(ranks, name):
    processes(ranks, experts, name)


# Layers that train ----------------------------------------------------------------------------------------------------

def train(rank, ranks, name):
    recipe = recipes.recipe_named(name) if name.startswith("MX") else \
        training.NVFP4BlockScaling(disable_stochastic_rounding=True)
    model = training.convert_(Feed(32 * ranks), recipe)
    x, dy = torch.randn(64 * ranks, 32 * ranks), torch.randn(64 * ranks, 32 * ranks)
    parameters = [parameter.detach().clone() for parameter in model.parameters()]
    one = training.convert_(Feed(32 * ranks), recipe)
    one.load_state_dict(model.state_dict())
    mesh = init_device_mesh("cpu", (ranks,))
    parallel = parallelize_module(model, mesh, {"up": distributed.ColwiseParallel(),
                                                "down": distributed.RowwiseParallel(reduce_dtype=torch.float32)})
    # The column-parallel layer alone: the bits of one process, but for dX, a sum over ranks.
    whole, part = x.clone().requires_grad_(), mine(x, rank, ranks).requires_grad_()
    h = torch.randn(64 * ranks, 128 * ranks)
    expected, got = one.up(whole), parallel.up(part)
    assert torch.equal(got, mine(expected, rank, ranks, 1))
    expected.backward(h)
    got.backward(mine(h, rank, ranks, 1))
    assert torch.equal(parallel.up.weight.grad.full_tensor(), one.up.weight.grad)
    assert torch.equal(parallel.up.bias.grad.full_tensor(), one.up.bias.grad)
    close = dict(rtol=0, atol=1e-5 * whole.grad.abs().max().item())
    assert torch.allclose(part.grad, mine(whole.grad, rank, ranks), **close)
    # The row-parallel layer alone: gradients have the bits of one process, and Y is a sum over ranks.
    whole, part = h.clone().requires_grad_(), mine(h, rank, ranks, 1).requires_grad_()
    expected, got = one.down(whole), parallel.down(part)
    assert torch.allclose(got, mine(expected, rank, ranks), rtol=0, atol=1e-5 * expected.abs().max().item())
    expected.backward(dy)
    got.backward(mine(dy, rank, ranks))
    assert torch.equal(part.grad, mine(whole.grad, rank, ranks, 1))
    assert torch.equal(parallel.down.weight.grad.full_tensor(), one.down.weight.grad)
    assert torch.allclose(parallel.down.bias.grad.full_tensor(), one.down.bias.grad, rtol=1e-5, atol=1e-4)
    # Both in a row, and a step of an optimizer over DTensors.
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=1e-2)
    parallel(mine(x, rank, ranks)).backward(mine(dy, rank, ranks))
    optimizer.step()
    assert all(not torch.equal(after.full_tensor(), before)
               for after, before in zip(parallel.parameters(), parameters))


@both
@pytest.mark.parametrize("name", ["MXFP8BlockScaling", "NVFP4BlockScaling"])
def test_training(ranks, name):
    processes(ranks, train, name)


def stochastic(rank, ranks):
    """Ranks whose generators are in the same state still round independently, and a seed repeats a run."""
    layer = training.Linear(64, 64, bias=False, recipe="NVFP4BlockScaling")
    shared = parallelize_module(layer, init_device_mesh("cpu", (ranks,)), distributed.RowwiseParallel())
    gradients = []
    for _ in range(2):
        torch.manual_seed(3)
        x = torch.ones(32 * ranks, 64 // ranks).requires_grad_()
        shared(x).backward(torch.linspace(-1, 1, 64).repeat(32, 1))     # each rank's tokens are the same
        gradients.append(x.grad)
    assert torch.equal(*gradients)
    parts = gradients[0].chunk(ranks)
    assert not torch.equal(parts[0], parts[1])


def test_stochastic_rounding_differs_by_rank():
    processes(2, stochastic)


# What is refused ------------------------------------------------------------------------------------------------------

def refused(rank, ranks):
    mesh = init_device_mesh("cpu", (ranks,))
    cases = [
        (lambda: distributed.ColumnParallelLinear.from_float(nn.Linear(64, 33), "mxfp8_e4m3"), "33 output features"),
        (lambda: distributed.RowParallelLinear.from_float(nn.Linear(96, 32), "mxfp8_e4m3"), "96 input features"),
        (lambda: distributed.reduce_scatter_rows(torch.zeros(3, 4)), "3 rows are scattered"),
        (lambda: distributed.gather_columns(blockscale.quantize(torch.zeros(4, 48), "mxfp8_e4m3")), "48 columns"),
        (lambda: distributed.gather_rows(blockscale.quantize(torch.zeros(4, 48), "mxfp4", layout="128x4")), "128x4"),
        (lambda: distributed.ColwiseParallel("mxfp4", input_layouts=Shard(1)), "input_layouts"),
        (lambda: parallelize_module(nn.Linear(64, 64), mesh, distributed.ColwiseParallel()), "format is None"),
        (lambda: parallelize_module(training.Linear(64, 64), mesh,
                                    distributed.ColwiseParallel(input_layouts=Replicate())), "tokens"),
        (lambda: parallelize_module(training.Linear(64, 48), mesh, distributed.ColwiseParallel()), "48 features"),
    ]
    for call, words in cases:
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(NotImplementedError, match="LayerNorm"):
        parallelize_module(nn.LayerNorm(64), mesh, distributed.RowwiseParallel("mxfp4"))


def test_refusals():
    processes(2, refused)


# FSDP2 ----------------------------------------------------------------------------------------------------------------

class Blocks(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.blocks = nn.ModuleList(Feed(width) for _ in range(2))
        self.head = nn.Linear(width, 8)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def fsdp_steps(rank, ranks, name, both, reshard):
    from torch.distributed.fsdp import fully_shard

    from blockscale.torch import fsdp
    recipe = recipes.recipe_named(name) if name.startswith("MX") else \
        training.NVFP4BlockScaling(disable_stochastic_rounding=True)
    wanted = dict(filter=lambda layer, name: name.startswith("blocks"))
    model, one = (training.convert_(Blocks(32 * ranks), recipe, **wanted) for _ in range(2))
    one.load_state_dict(model.state_dict())
    fsdp.quantize_gathers_(model, both)
    mesh = init_device_mesh("cpu", (ranks,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh, reshard_after_forward=reshard)
    moved = []
    original = fsdp.ShardedWeight.fsdp_pre_all_gather

    @functools.wraps(original)
    def counted(*arguments):
        parts, described = original(*arguments)
        moved.append(sum(part.numel() * part.element_size() for part in parts))
        return parts, described

    fsdp.ShardedWeight.fsdp_pre_all_gather = counted
    optimizers = [torch.optim.AdamW(module.parameters(), lr=1e-3) for module in (model, one)]
    for step in range(3):
        torch.manual_seed(step)
        x = torch.randn(32 * ranks, 32 * ranks)         # every rank's batch is the same: the mean of gradients is each
        y, expected = model(x), one(x)
        # The bits of one process: codes are the same, and so are the sums.
        assert torch.equal(y, expected)
        y.square().sum().backward()
        moved_in_passes = list(moved)
        expected.square().sum().backward()
        for got, want in zip(model.parameters(), one.parameters()):
            full = got.grad.full_tensor()
            assert torch.allclose(full, want.grad, rtol=1e-6, atol=1e-6 * want.grad.abs().max().item())
            want.grad.copy_(full)       # a mean of equal numbers may round: from here on both have the same
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        for got, want in zip(model.parameters(), one.parameters()):
            full = got.full_tensor()
            full = full._numbers if isinstance(full, fsdp.ShardedWeight) else full
            assert torch.equal(full, want)
        if step == 0:
            weights = sum(layer.weight.numel() for layer in one.modules() if isinstance(layer, training.Linear))
            # Two gathers of a copy each, or one of both: beside 2 bytes a number of bf16 in each gather.
            assert sum(moved_in_passes) <= 2 * (1.04 if name.startswith("MX") else 0.57) * weights / ranks
            assert len(moved_in_passes) == (8 if reshard else 4)
    fsdp.ShardedWeight.fsdp_pre_all_gather = original
    state = model.state_dict()
    assert set(state) == set(one.state_dict())


@both
@pytest.mark.parametrize("name, twice, reshard", [
    ("MXFP8BlockScaling", False, True), ("NVFP4BlockScaling", False, True), ("NVFP4BlockScaling", True, False)])
def test_fsdp_has_the_bits_of_one_process(ranks, name, twice, reshard):
    processes(ranks, fsdp_steps, name, twice, reshard)


# The example ----------------------------------------------------------------------------------------------------------

def test_the_example():
    root = pathlib.Path(__file__).parents[3]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path),
                       CUDA_VISIBLE_DEVICES="")
    done = subprocess.run([sys.executable, str(root / "python" / "examples" / "two_processes.py")], env=environment,
                          capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(line.partition(":")[0] for line in done.stdout.splitlines()) == [
        "rank 0 of 2 on cpu", "rank 1 of 2 on cpu"]
