"""Measures this machine and checks the model against it.

``measure/`` times copies, matrix products, attention, drives; ``fit/`` turns samples into the figures of a profile;
``imports/`` reads figures that other tools measured; ``verify/`` runs a small real decode with KV in several tiers and
compares it with the simulator. ``plan`` lists what is measured, ``session`` takes it and ``partial`` keeps it,
``environment`` says on which machine, ``assemble`` makes a profile of all that. The only importer of torch, which
``backend`` imports inside functions: fitting and importing work without it.
"""
