"""Products: matmul and the exact sums that its kernels are tested against."""
from __future__ import annotations

from typing import Any, Literal, overload

from . import _arrays, _context
from ._arrays import Array
from ._errors import InvalidError, check
from ._library import NULL, lib
from ._product import describe, operand
from .matrix import Matrix
from .plans import Packed, Plan, cached, pointer_of, remembered
from .quantization import real_struct


def matmul(a: Matrix | Array, b: Matrix | Array, *, out: Matrix | Array = None, out_dtype: Any = None,
           alpha: Any = None, alpha_per: str | None = None, c: Any = None, beta: Any = None, bias: Any = None,
           bias_per: str | None = None, activation: str = "none", gate: str = "none", groups: Any = None,
           group_columns: Any = None, amax: Any = None, compute: str = "exact", order: str = "k",
           panels: Packed | None = None, plan: Plan | None = None, out_recipe: str | None = None,
           out_layout: str = "linear",
           out_packing: str | None = None, out_tensor_scale: Any = None, out_saturate: bool = True,
           out_nonfinite: str = "propagate") -> Any:
    """D = activation(alpha A B^T + beta C + bias): A is M x K, B is N x K, D is M x N.

    a, b        a Matrix of any format, or an array of bf16, fp16, fp32, float8_e4m3fn or float8_e5m2 numbers (which is
                taken as it is: see plain()).  (rows, K), or (batch, rows, K): batches are equal, or one operand has
                none and goes with every matrix of the other.  Any two formats; fp32 on the CPU alone.
    out         an array (or Matrix) of D's shape to write to; None makes one of a's library on a's device.
    out_dtype   of a new D: "float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", a type of NumPy or
                PyTorch, or a block format ("mxfp8_e4m3"), which gives a Matrix with blocks along N.  None: float32;
                PyTorch on a GPU: bfloat16.
    alpha       a number, or an fp32 array that broadcasts against (batch, M, N): one number, (N,) for the columns,
                (M, 1) for the rows, (batch, 1, 1).  alpha_per names it: "tensor", "row", "column", "batch".
    c, beta     an array (M, N) or (batch, M, N) of fp32, bf16 or fp16; beta is a number (None with c: 1).  c may be
                out itself.
    bias        fp32, bf16 or fp16, added before the activation: (N,) or (M, 1), or (batch, N), (batch, M, 1); bias_per
                names it: "column", "row".
    activation  "none", "relu", "gelu", "gelu_tanh", "silu", "swiglu_clamped" (gpt-oss, gated).
    gate        "none"; "interleaved": columns 2j and 2j + 1 of the product are gate and up; "split": j and N/2 + j.
                D = activation(gate) * up then has N/2 columns.
    groups      rows of A of each group (a sequence, or an int64 array on a's device; their sum is M): group g
                multiplies with matrix g of b, which has three dimensions.  a, c and out have two.
    group_columns   columns of each group, likewise (their sum is K): a and b have two dimensions and hold the columns
                of all groups one after the other, D is (groups, M, N).  Gradients of experts' weights.  Groups begin
                with a block: but for the last one their columns are multiples of 32.
    amax        fp32 array of one element, which receives the largest magnitude of the result before it is rounded.
    compute     "exact": every product of operands is exact, sums are fp32; "fast" permits operands to be rounded;
                "tf32" permits Blackwell to clear the low 13 bits of two fp32 operands, which GPUs refuse without.
    order       "k": one order of sums for any M and N, that of the machine; "any" permits others; "portable": the same
                bits on every machine.
    panels      prepacked b: pack(), Plan.pack().
    plan        what plan() made for these shapes: then only addresses are looked at, and all options but alpha, c,
                beta, bias, groups, group_columns, amax and panels are the plan's.
    out_recipe, out_layout, out_packing, out_tensor_scale, out_nonfinite, out_saturate   of a D in a block format (or
                fp8): as recipe, layout ... of quantize(); the tensor scale is a number or an fp32 array, never
                computed.

    Returns D.  The same operands give the same bits for any M, N, batch and number of threads.  On a GPU the work goes
    into the current stream of the arrays' library, and nothing waits for it; alpha, beta and groups that are numbers
    are written to the GPU first (arrays on the GPU are not).
    InvalidError (a ValueError) names the argument, its value and the rule; UnsupportedError says what no kernel serves;
    DeviceError, MemoryError_."""
    if plan is not None:
        return plan.run(a, b, out, alpha=alpha, c=c, beta=beta, bias=bias, groups=groups, group_columns=group_columns,
                        amax=amax, panels=panels)
    if (alpha is None and beta is None and c is None and bias is None and groups is None and group_columns is None
            and amax is None and out_tensor_scale is None):
        known = remembered(a, b, out, (out_dtype, activation, gate, compute, order, out_recipe, out_layout, out_packing,
                                       out_saturate, out_nonfinite))
        if known is not None:
            return known.run(a, b, out, panels=panels)
    d = describe(a, b, out=out, out_dtype=out_dtype, alpha=alpha, alpha_per=alpha_per, c=c, beta=beta, bias=bias,
                 bias_per=bias_per, activation=activation, gate=gate, groups=groups, group_columns=group_columns,
                 amax=amax, compute=compute, order=order, out_recipe=out_recipe, out_layout=out_layout,
                 out_packing=out_packing, out_tensor_scale=out_tensor_scale, out_saturate=out_saturate,
                 out_nonfinite=out_nonfinite, make=True)
    kernel = cached(d)
    if panels is not None:
        d.product.b_panels = pointer_of(panels, d.device)
    kernel.run(d.product, d.stream)
    _context.settle(d.library, d.device, d.stream)
    return d.out


@overload
def exact_matmul(a: Matrix | Array, b: Matrix | Array, dtype: Any = ..., magnitude: Literal[False] = ...) -> Array: ...


@overload
def exact_matmul(a: Matrix | Array, b: Matrix | Array, dtype: Any = ..., *,
                 magnitude: Literal[True]) -> tuple[Array, Array]: ...


def exact_matmul(a: Matrix | Array, b: Matrix | Array, dtype: Any = "float32",
                 magnitude: bool = False) -> Array | tuple[Array, Array]:
    """The exact sums of A B^T, each rounded once to dtype: what every kernel is tested against.  Slow, CPU alone.

    a (M, K), b (N, K): a Matrix or an array of plain numbers; no batches.  Tensor scales have no part in it.
    dtype      "float32", "float16", "bfloat16" or "float64".
    magnitude  True returns (sums, sums of |a||b|): the unit of a kernel's error is 2^-24 times the latter.
    NaN where a product is NaN or infinities of both signs meet; an exact zero is +0."""
    of_a, of_b = operand(a, "a"), operand(b, "b")
    if of_a.device != _arrays.CPU or of_b.device != _arrays.CPU:
        raise InvalidError("a and b lie on a GPU: exact sums are computed on the CPU")
    name = _arrays.dtype_name(dtype)
    shape = (of_a.rows, of_b.rows)
    if len(of_a.shape) == 3 or len(of_b.shape) == 3:
        raise InvalidError(f"a has the shape {of_a.shape} and b {of_b.shape}: one matrix of a batch at a time")
    made = [_arrays.empty(of_a.library, _arrays.CPU, shape, name) for _ in range(2 if magnitude else 1)]
    structs = [real_struct(_arrays.view(x, "out"), "out") for x in made]
    from ._context import context
    check(lib.bsm_matmul_exact(context(_arrays.CPU), of_a._c, of_b._c, structs[0], structs[1] if magnitude else NULL))
    return (made[0], made[1]) if magnitude else made[0]
