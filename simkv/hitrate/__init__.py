"""Hit rate over capacity of a trace, policy by policy, without time: ``simkv hitrate``.

``references`` makes block references of prompts, ``capacities`` reads how large caches are to be,
``counting`` replays them, ``study`` puts the answer together.
"""

from simkv.hitrate.capacities import Capacities
from simkv.hitrate.counting import Rules
from simkv.hitrate.references import References, collect, load
from simkv.hitrate.study import CHOICES, study

__all__ = ["CHOICES", "Capacities", "References", "Rules", "collect", "load", "study"]
