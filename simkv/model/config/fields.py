"""The values of one mapping of a configuration: by name, by older names, by the class's default.

What was read is remembered: a key that speaks of the cache and that nobody read is no plain model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simkv.errors import InputError, Problem
from simkv.model.config.source import Path, Source

MOST = 10**9
"""Above any width, vocabulary or number of experts there will be."""
MOST_TOKENS = 10**12
MOST_LAYERS = 10_000

OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "hidden_size": ("n_embd", "n_embed", "d_model"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "attention_heads"),
    "num_key_value_heads": ("num_kv_heads", "n_kv_heads", "n_head_kv", "kv_n_heads", "num_attention_groups"),
    "head_dim": ("kv_channels", "attention_head_dim", "d_kv"),
    "intermediate_size": ("n_inner", "ffn_hidden_size", "ffn_dim", "d_ff", "inner_hidden_size", "block_ff_dim"),
    "vocab_size": ("padded_vocab_size",),
    "max_position_embeddings": (
        "n_positions", "n_ctx", "seq_length", "max_seq_len", "max_sequence_length", "model_max_length",
        "max_target_positions",
    ),
    "tie_word_embeddings": ("tie_embedding",),
    "sliding_window": ("attention_window_size", "sliding_window_size"),
    "dtype": ("torch_dtype",),
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": (
        "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "moe_k",
    ),
    "moe_intermediate_size": ("expert_ffn_hidden_size",),
    "n_shared_experts": ("num_shared_experts", "moe_num_shared_experts", "num_shared_expert"),
    "shared_expert_intermediate_size": (
        "moe_shared_expert_intermediate_size", "share_expert_dim", "shared_intermediate_size",
    ),
    "moe_latent_size": ("routed_expert_hidden_size",),
    "dense_intermediate_size": ("intermediate_size_mlp", "prefix_dense_intermediate_size"),
    "layer_types": ("layers_block_type",),
    "sliding_window_pattern": ("_sliding_window_pattern",),
    "linear_conv_kernel_dim": ("short_conv_kernel_size",),
    "n_groups": ("mamba_n_groups", "mamba_num_groups"),
    "conv_kernel": ("mamba_d_conv",),
    "ssm_state_size": ("mamba_d_state", "state_size", "mamba_state_dim"),
    "mamba_num_heads": ("mamba_n_heads",),
    "mamba_head_dim": ("mamba_d_head",),
    "mamba_expand": ("expand",),
    "time_step_rank": ("mamba_dt_rank",),
    "mamba_ssm_cache_dtype": ("mamba_ssm_dtype",),
}  # fmt: skip
"""What the same thing is called elsewhere: other classes, older files."""

BY_DEFAULT = ", the class's default"
_QUIET = frozenset({"decoder_sparse_step", "expert_layer_period", "expert_layer_offset"})
"""Defaults that change nothing unless a file says otherwise."""

ALWAYS_WRITTEN = frozenset({
    "num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size",
    "max_position_embeddings", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim",
})  # fmt: skip
"""Left out by nested configurations only: at the top of a file their absence is a fault, not a default."""


class Fields:
    """One mapping of a configuration file; ``defaults`` are the class's, where a file leaves a key out."""

    def __init__(
        self,
        values: Mapping[str, Any],
        source: Source,
        path: Path = (),
        defaults: Mapping[str, Any] | None = None,
        notes: list[str] | None = None,
    ) -> None:
        self.values = values
        self.source = source
        self.path = path
        self.defaults = defaults or {}
        self.notes: list[str] = [] if notes is None else notes
        self.read: set[str] = set()

    def with_defaults(self, defaults: Mapping[str, Any]) -> Fields:
        """Return the same mapping with the defaults of its class."""
        return Fields(self.values, self.source, self.path, defaults, self.notes)

    def key_of(self, name: str) -> str | None:
        """Return the key under which the file has ``name``, null or not; one with a value comes first."""
        names = [key for key in (name, *OTHER_NAMES.get(name, ())) if key in self.values]
        self.read.update(names)
        return next((key for key in names if self.values[key] is not None), names[0] if names else None)

    def get(self, name: str) -> Any:
        """Return the value of ``name``; None where the file has none."""
        key = self.key_of(name)
        return None if key is None else self.values[key]

    def count(self, name: str, least: int = 1, most: int = MOST) -> int:
        """Return a whole number that must be there, or have a default of the class."""
        found = self.maybe(name, least, most)
        if found is None:
            mend = f"add {name}, or name the file of the whole model"
            raise self.fail(name, "is missing", mend) if self.key_of(name) is None else self.fail(name, "is null", mend)
        return found

    def maybe(self, name: str, least: int = 1, most: int = MOST) -> int | None:
        """Return a whole number; None where the file says null or false, or neither file nor class has one.

        A list that has the same number for every layer counts as that number.
        """
        if self.key_of(name) is None:
            return self._default(name)
        value = self.get(name)
        if value is None or value is False:
            return None
        if isinstance(value, list) and value:
            if any(item != value[0] for item in value):
                raise self.fail(name, "differs from layer to layer", "such a model can't be sized")
            value = value[0]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.fail(name, "is not a whole number", "see the model's own file")
        if not least <= value <= most:
            raise self.fail(name, f"is outside {least} to {most}", "see the model's own file")
        return value

    def _default(self, name: str) -> int | None:
        value = self.defaults.get(name)
        if value is None or (name in ALWAYS_WRITTEN and not self.path):
            return None
        if name not in _QUIET:
            self.note(f"{name} {value}{BY_DEFAULT}")
        return int(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a truth value; the class's default, else ``default``, where the file has none."""
        value = self.get(name)
        if value is None:
            return bool(self.defaults.get(name, default))
        if isinstance(value, int) and value in (0, 1):
            return bool(value)
        raise self.fail(name, "is not true or false", "see the model's own file")

    def word(self, name: str) -> str:
        """Return a text; empty where the file has none."""
        value = self.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.fail(name, "is not a text", "see the model's own file")
        return value

    def items(self, name: str) -> list[Any] | None:
        """Return a list; None where the file has none, or an empty one."""
        value = self.get(name)
        if not value and (value is None or isinstance(value, list)):
            return None
        if not isinstance(value, list):
            raise self.fail(name, "is not a list", "see the model's own file")
        return value

    def counts(self, name: str, most: int = MOST) -> list[int] | None:
        """Return a list of whole numbers from 0; None where the file has none."""
        found = self.items(name)
        if found and not all(isinstance(item, int) and 0 <= item <= most for item in found):
            raise self.fail(name, "holds something else than whole numbers", "see the model's own file")
        return found

    def section(self, name: str) -> Fields | None:
        """Return a mapping inside this one; None where the file has none."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.fail(name, "is not an object", "see the model's own file")
        return Fields(value, self.source, (*self.path, self.key_of(name) or name), None, self.notes)

    def unread(self) -> list[str]:
        """Return the keys with a value that nobody asked for."""
        return [key for key, value in self.values.items() if key not in self.read and value]

    def note(self, text: str) -> None:
        """Remember an assumption, once."""
        if printable(text) not in self.notes:
            self.notes.append(printable(text))

    def fail(self, name: str, what: str, mend: str) -> InputError:
        """Return the error for ``name``, with its place in the file and its value."""
        key = self.key_of(name)
        path = (*self.path, key or name)
        shown = "" if key is None or self.values[key] is None else _short(self.values[key])
        line = self.source.line_of(path) if self.source.text else None
        return InputError(
            Problem(printable(what), printable(mend), self.source.file, line, printable(".".join(path)), shown)
        )


def printable(text: str) -> str:
    """Return the text with what can't be printed escaped."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _short(value: Any) -> str:
    text = printable(value if isinstance(value, str) else repr(value))
    return text if len(text) <= 60 else f"{text[:57]}..."
