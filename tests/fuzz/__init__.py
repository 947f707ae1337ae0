"""Hostile input, generated from seeds and fed to the command line: ``python -m tests.fuzz --inputs 2000 --jobs 2``.

A *generator* is a function ``(rng, folder) -> Command``, registered by name in a dict of its module that
``__main__.GENERATORS`` lists (``asked.Generator``). It draws everything from ``rng``, writes whatever files it needs
into ``folder`` (an empty one, and the command's working directory), and returns the command line to ask, with what
its answer must hold (``asked.Command``). The same name and seed give the same input.

``driver`` forks a process with everything imported for each input, holds it to limits of memory and time, and judges
what came of it: an allowed exit code, a message with a mend where it is 2 or 3, no traceback, nothing half written.
``report`` adds up; each failure is told with the command that reproduces it:
``python -m tests.fuzz --only scenario --seed 17 --inputs 1 --show``.

To add a generator: write ``def my_thing(rng, folder) -> Command`` in a module of this folder, give the module a dict
``GENERATORS = {"my-thing": my_thing}``, and add the module to the tuple ``MODULES`` in ``__main__``.
"""
