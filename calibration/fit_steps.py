# ruff: noqa: T201 -- a script: printing is its result
"""Fit GPU families' figures to the cases of ``simkv validate``; print them, every residual, and errors left out.

    python calibration/fit_steps.py [FAMILY ...] [--cases FILE]

What is printed first is written into ``simkv/data/hardware.yaml`` by hand, rounded to three digits.
"""

from __future__ import annotations

import argparse
from math import sqrt
from statistics import fmean

from simkv.validation.families import Family, families, leave_one_out
from simkv.validation.fit import FIGURES
from simkv.validation.read import own_cases, read_cases


def shown(family: Family) -> str:
    """Return a family's figures and the residuals of its points."""
    lines = [f"{family.fitted.family}:"]
    lines += [f"  {figure} = {number:.4g}" for figure, number in family.fitted.figures.items()]
    for point in family.points:
        predicted = point.predict(family.fitted.figures)
        error = family.fitted.errors[point.id]
        lines.append(f"  {point.id:62s} {point.expected:10.4g} {predicted:10.4g} {error:+8.2%}")
    errors = list(family.fitted.errors.values())
    return "\n".join([*lines, f"  rms {sqrt(fmean(e * e for e in errors)):.2%}, largest {max(map(abs, errors)):.2%}"])


def main() -> None:
    """Fit the families asked for and print what is found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(FIGURES)}; all unless given")
    parser.add_argument("--cases", help="a file of cases instead of those that come with simkv")
    args = parser.parse_args()
    cases = own_cases() if args.cases is None else read_cases(args.cases)
    for name, family in families(cases).items():
        if not args.families or name in args.families:
            print(shown(family))
    for row in leave_one_out(cases):
        if not args.families or row["family"] in args.families:
            cells = [
                f"{name} {value:.1%}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()
            ]
            print("; ".join(cells))


if __name__ == "__main__":
    main()
