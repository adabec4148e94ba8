"""Models of transformers, quantized while they are loaded, and quantized checkpoints on blockscale's kernels.

    import blockscale.torch.transformers as bst

    model = AutoModelForCausalLM.from_pretrained(path, quantization_config=bst.BlockscaleConfig("mxfp4"))
    model.save_pretrained("quantized")                    # later: from_pretrained("quantized")

Importing this module registers the method "blockscale", and "modelopt" where transformers has none of that name, so
that ModelOpt's checkpoints are found.  transformers has loaders of its own for compressed-tensors' and gpt-oss'
checkpoints; `take_over()` has them loaded here instead:

    bst.take_over()                                       # or take_over("mxfp4") for gpt-oss alone
    model = AutoModelForCausalLM.from_pretrained("gpt-oss-20b")

Weights are multiplied as they lie in the file, on every device that the library computes on."""
from __future__ import annotations

import os
import re
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.core_model_loading import ConversionOps
from transformers.quantizers import auto
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

import blockscale

from .._errors import InvalidError, UnsupportedError
from . import _weights, models
from .experts import PROJECTIONS, Experts
from .linear import Linear

METHOD = "blockscale"
FOREIGN = ("modelopt", "compressed-tensors", "mxfp4")     # quant_method of the checkpoints of others
_IGNORED_KEYS = (r"\.input_scale$", r"\.input_global_scale$", r"\.[kv]_scale$", r"\.output_scale$", r"\.weight_shape$")


class BlockscaleConfig(QuantizationConfigMixin):
    """What from_pretrained quantizes, and how.

    format                  of the weights: "mxfp4", "nvfp4", "mxfp8_e4m3", ...
    modules_to_not_convert  what stays as it is, beside the head, tied weights and routers: names of layers or of what
                            holds them, whole or in part ("self_attn"), or regular expressions of such
    activations, prepack    as of blockscale.torch.Linear;  recipe  as of blockscale.quantize
    convention              as of blockscale.torch.Linear: whose names save_pretrained writes
    experts                 whether mixture-of-experts layers are quantized, too

    The configuration of a checkpoint that another program wrote is kept and saved again as it was."""

    def __init__(self, format: str = "mxfp4", modules_to_not_convert: list[str] | None = None, *,
                 activations: str | None = None, recipe: str = "default", convention: str = "modelopt",
                 experts: bool = True, prepack: bool | str | None = None, quant_method: str = METHOD) -> None:
        if quant_method != METHOD:
            raise InvalidError(f"quant_method={quant_method!r}: it is {METHOD!r}")
        self.quant_method: Any = METHOD
        self.format = _weights.weight_format(format).name
        self.modules_to_not_convert = modules_to_not_convert
        self.activations, self.recipe, self.convention = activations, recipe, convention
        self.experts, self.prepack = experts, prepack
        self.checkpoint: dict[str, Any] | None = None

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], return_unused_kwargs: bool = False, **kwargs: Any) -> Any:
        """A configuration of blockscale, or one of FOREIGN."""
        method = config_dict.get("quant_method", METHOD)
        if method == METHOD:
            known = {name: value for name, value in config_dict.items() if name != "checkpoint"}
            config = cls(**known)
        else:
            config = cls()
            config.checkpoint = dict(config_dict)
        return (config, kwargs) if return_unused_kwargs else config

    def to_dict(self) -> dict[str, Any]:
        """What config.json holds."""
        if self.checkpoint is not None:
            return dict(self.checkpoint)
        return {name: value for name, value in self.__dict__.items() if name != "checkpoint"}


def _split(name: str) -> tuple[str, str]:
    """A tensor's name as its module's and its own."""
    module, _, last = name.rpartition(".")
    return module, last


class _Quantize(ConversionOps):
    """Puts codes and scales in the place of a weight that has been read."""

    def __init__(self, config: BlockscaleConfig, transposed: set[str]) -> None:
        self.config, self.transposed = config, transposed

    @torch.no_grad()
    def convert(self, input_dict: dict[str, Any], source_patterns: list[str], target_patterns: list[str],
                **arguments: Any) -> dict[str, Any]:
        """{name of the weight: numbers} to {names of buffers: tensors}."""
        model: nn.Module = arguments["model"]
        full_layer_name: str = arguments["full_layer_name"]
        missing_keys: set[str] | None = arguments.get("missing_keys")
        (value,) = input_dict.values()
        weight: Tensor = value[0] if isinstance(value, list) else value
        name, last = _split(full_layer_name)
        module = model.get_submodule(name)
        if isinstance(module, Linear):
            made = module.quantize_weight(weight, self.config.recipe)
        else:
            assert isinstance(module, Experts)
            if name in self.transposed:
                weight = weight.transpose(1, 2)
            made = module.quantize_weight(last, weight, self.config.recipe)
        if last in module._parameters:      # it stood there for the loader alone
            del module._parameters[last]
            if missing_keys is not None:
                missing_keys.discard(full_layer_name)
        return {f"{name}.{part}": tensor for part, tensor in made.items()}


class BlockscaleHfQuantizer(HfQuantizer):
    """What transformers calls while it loads a model with a BlockscaleConfig."""

    requires_calibration = False
    quantization_config: BlockscaleConfig

    def __init__(self, quantization_config: BlockscaleConfig, **kwargs: Any) -> None:
        super().__init__(quantization_config, **kwargs)
        self.transposed: set[str] = set()       # experts whose weights the file has as (experts, columns, rows)

    def param_needs_quantization(self, model: PreTrainedModel, param_name: str, **_: Any) -> bool:
        """Whether the numbers of a parameter are to become codes."""
        if self.pre_quantized:
            return False
        name, last = _split(param_name)
        module = model.get_submodule(name)
        return (isinstance(module, Linear) and last == "weight") or (
            isinstance(module, Experts) and last in PROJECTIONS)

    def get_quantize_ops(self) -> ConversionOps:
        """What a weight goes through."""
        return _Quantize(self.quantization_config, self.transposed)

    def _process_model_before_weight_loading(self, model: PreTrainedModel, checkpoint_files: list[str] | None = None,
                                             **_: Any) -> None:
        if self.quantization_config.checkpoint is None:
            self._replace_by_config(model)
        else:
            _replace_by_checkpoint(model, self.quantization_config, checkpoint_files or [])
            model._keys_to_ignore_on_load_unexpected = set(_IGNORED_KEYS) | set(
                model._keys_to_ignore_on_load_unexpected or ())

    def _replace_by_config(self, model: PreTrainedModel) -> None:
        config = self.quantization_config
        fp32 = None if model._keep_in_fp32_modules is None else list(model._keep_in_fp32_modules)
        kept = self.get_modules_to_not_convert(model, config.modules_to_not_convert, fp32, add_default_skips=True)
        skipped = re.compile("|".join(rf"(?:^|\.)(?:{pattern})(?:\.|$)" for pattern in kept) or "(?!)")
        for name, module in list(model.named_modules()):
            if not name or skipped.search(name) or not models.default_filter(module, name):
                continue
            made: nn.Module | None = None
            if type(module) is nn.Linear and models.fits(module, config.format):
                linear = made = _linear_like(module, config.format, config.convention, config)
                if not self.pre_quantized:
                    _expect_numbers(linear, module.weight)
            elif config.experts:
                made = models.experts_like(module, config.format, prepack=config.prepack)
                if made is not None and not self.pre_quantized:
                    if getattr(module, "is_transposed", False):
                        self.transposed.add(name)
                    for projection in PROJECTIONS:      # the loader reads into what has this name
                        made.register_parameter(projection, getattr(module, projection))
            if made is not None:
                models.replace(model, name, made)

    def _process_model_after_weight_loading(self, model: PreTrainedModel, **_: Any) -> PreTrainedModel:
        return model

    def is_serializable(self) -> bool:
        """Quantized models can be saved."""
        return True

    @property
    def is_trainable(self) -> bool:
        """Products of these layers have no gradients; blockscale.torch.training has layers that do."""
        return False

    @property
    def is_compileable(self) -> bool:
        """Layers are single operators to torch.compile."""
        return True


def _expect_numbers(linear: Linear, weight: Tensor) -> None:
    """Has the loader find a tensor of numbers under the name of the weight, whose type it casts to, until codes take
    its place."""
    if "weight" in linear.names:
        linear._buffers["weight"] = weight.detach()
    else:
        linear.register_parameter("weight", nn.Parameter(weight.detach(), requires_grad=False))


def _linear_like(module: nn.Linear, format: str, convention: str, config: BlockscaleConfig) -> Linear:
    made = Linear(module.in_features, module.out_features, format, module.bias is not None,
                  activations=config.activations, prepack=config.prepack, convention=convention,
                  device=module.weight.device, dtype=module.weight.dtype)
    made.training = module.training
    return made


def _checkpoint_path(files: list[str]) -> str:
    """What blockscale.open takes: the only file, or the index of several."""
    if len(files) == 1:
        return files[0]
    folder = os.path.dirname(files[0]) if files else ""
    index = os.path.join(folder, "model.safetensors.index.json")
    if not os.path.exists(index):
        raise UnsupportedError(f"the checkpoint has {len(files)} files and no {index}")
    return index


def _module_name(model: PreTrainedModel, name: str) -> str | None:
    """The module of a weight, whose name in the file has the base model's prefix or has not."""
    prefix = f"{model.base_model_prefix}."
    for candidate in (name, prefix + name, name.removeprefix(prefix)):
        try:
            model.get_submodule(candidate)
            return candidate
        except AttributeError:
            pass
    return None


def _replace_by_checkpoint(model: PreTrainedModel, config: BlockscaleConfig, files: list[str]) -> None:
    """Layers as the file has them: formats come from its tensors, not from the words of its configuration."""
    with blockscale.open(_checkpoint_path(files)) as checkpoint:
        for name, weight in checkpoint.items():
            if weight.convention == "plain":
                continue
            if weight.convention == "gpt_oss":
                _replace_experts(model, name, config)
            elif weight.convention in ("modelopt", "compressed_tensors"):
                _replace_linear(model, name, weight, config)
            else:
                raise UnsupportedError(f"{name} has the convention {weight.convention}: models are loaded from "
                                       "ModelOpt's, compressed-tensors' and gpt-oss' checkpoints")


def _replace_experts(model: PreTrainedModel, name: str, config: BlockscaleConfig) -> None:
    found = _module_name(model, name.rpartition(".")[0])
    module = None if found is None else model.get_submodule(found)
    if found is None or isinstance(module, Experts):
        return
    assert module is not None
    made = models.experts_like(module, "mxfp4", prepack=config.prepack)
    if made is None:
        raise UnsupportedError(f"{found} is a {type(module).__name__}, whose activation blockscale's experts have not")
    models.replace(model, found, made)


def _replace_linear(model: PreTrainedModel, name: str, weight: Any, config: BlockscaleConfig) -> None:
    found = _module_name(model, name)
    if found is None:
        raise UnsupportedError(f"{name} is quantized, and {type(model).__name__} has no module of that name")
    module = model.get_submodule(found)
    if type(module) is not nn.Linear:
        raise UnsupportedError(f"{name} is quantized, and {found} is a {type(module).__name__}: only linear layers are")
    rows, columns = weight.shape
    if weight.tile_rows > 0 and (weight.tile_rows < rows or weight.tile_columns < columns):
        raise UnsupportedError(f"{name} has fp32 scales of tiles: quantize the checkpoint by `blockscale quantize`")
    method = (config.checkpoint or {}).get("quant_method")
    convention = "compressed_tensors" if method == "compressed-tensors" else "modelopt"
    models.replace(model, found, _linear_like(module, weight.format, convention, config))


def take_over(*methods: str) -> None:
    """Has checkpoints of these quantization methods ("mxfp4", "compressed-tensors", "modelopt"; none: of all three)
    loaded by blockscale instead of transformers' own loaders, for the rest of the process."""
    for method in methods or FOREIGN:
        if method not in FOREIGN:
            raise InvalidError(f"method={method!r} is not known: use one of {', '.join(FOREIGN)}")
        auto.AUTO_QUANTIZATION_CONFIG_MAPPING[method] = BlockscaleConfig


def _register() -> None:
    if METHOD in auto.AUTO_QUANTIZATION_CONFIG_MAPPING:
        return
    auto.register_quantization_config(METHOD)(BlockscaleConfig)
    auto.register_quantizer(METHOD)(BlockscaleHfQuantizer)
    if "modelopt" not in auto.AUTO_QUANTIZATION_CONFIG_MAPPING:
        take_over("modelopt")


_register()
