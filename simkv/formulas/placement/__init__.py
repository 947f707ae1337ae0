"""Batch-mode serving with weights, KV and activations spread over GPU, CPU and disk, as FlexGen does it.

``policy`` where things lie; ``layer`` one layer's bytes; ``rates`` how fast they move and are computed with;
``blocks`` the schedule, block by block; ``published`` FlexGen's own closed form; ``memory`` what a tier must hold.

Source: FlexGen (ICML 2023, arXiv 2303.06865), sections 4 and A; its repository's experimental/cost_model.py and
flex_opt.py.
"""

from simkv.formulas.placement.blocks import Block, Job, blocks, schedule_s
from simkv.formulas.placement.layer import LayerShape, layer_shape
from simkv.formulas.placement.memory import Need, Room, check_memory, needs
from simkv.formulas.placement.policy import BatchPolicy, Placement, Share, by_matrices
from simkv.formulas.placement.published import Published, published
from simkv.formulas.placement.rates import Rates, flexgen_t4, hardware_rates, mapped_bytes_per_s

__all__ = [
    "BatchPolicy", "Block", "Job", "LayerShape", "Need", "Placement", "Published", "Rates", "Room", "Share",
    "blocks", "by_matrices", "check_memory", "flexgen_t4", "hardware_rates", "layer_shape", "mapped_bytes_per_s",
    "needs", "published", "schedule_s",
]  # fmt: skip
