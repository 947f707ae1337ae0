"""The block player: a recording's window as shelves of blocks that move; start with ``player.py``."""

from simkv.report.player.player import player

__all__ = ["player"]
