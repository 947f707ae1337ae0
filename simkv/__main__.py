"""``python -m simkv`` is the command line."""

from simkv.cli import main

main()
