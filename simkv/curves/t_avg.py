"""T_avg over p_hit: what an access takes, and what a decode step feels of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from simkv.curves import words
from simkv.curves.ask import Answers, Ask, Runs, at
from simkv.curves.house import NONE, residencies
from simkv.curves.kind import IN_BATCHES, Curve, Ground, Kind, Row, nothing_more
from simkv.curves.setting import Setting
from simkv.errors import InfeasibleError
from simkv.formulas.latency import average_latency
from simkv.formulas.overlap import step_ideal, step_serial
from simkv.results.quantity import digits

MARK = 0.9
"""The article: from here on hardly a request notices."""
FELT = 0.05
"""A step that takes this much longer is felt."""
ON_DEMAND, PREFETCH = "on demand", "prefetch"
_LINE_POINTS = 100
_NEAR = 0.01
"""A simulated p_hit this far from ``MARK`` is as good as there."""
_MOST_SPARSE = 32


class Forms(NamedTuple):
    """What the closed forms are drawn from (s)."""

    vram_s: float
    memory_s: float
    compute_s: float
    all_missed_s: float
    """Transfer of a step's reads if none of them hit."""

    def access_s(self, p_hit: float) -> float:
        """T_avg."""
        return average_latency(p_hit, self.vram_s, self.memory_s)

    def on_demand(self, p_hit: float) -> float:
        """T_step without overlap over T_c."""
        return step_serial(self.compute_s, (1 - p_hit) * self.all_missed_s) / self.compute_s

    def overlapped(self, p_hit: float) -> float:
        """T_step with perfect overlap over T_c."""
        return step_ideal(self.compute_s, (1 - p_hit) * self.all_missed_s) / self.compute_s

    def unfelt(self, overlap: bool) -> float:
        """Return the p_hit from which on a step takes at most ``FELT`` longer."""
        room_s = ((1 + FELT) if overlap else FELT) * self.compute_s
        return max(0.0, 1 - room_s / self.all_missed_s) if self.all_missed_s else 0.0


def _why_not(setting: Setting) -> str | None:
    if setting.kind == "batches":
        return f"{IN_BATCHES}p_hit"
    if setting.inline:
        return "the machine is abstract (hardware.step_time): reading its VRAM takes no time that is known, T_vram"
    return None


def house_size(ground: Ground) -> int:
    """Return how many sequences the house has: those that fit whole, so that all-resident can be compared with."""
    fits = max(1, ground.full.staged(1.0))
    return min(fits, _MOST_SPARSE) if ground.setting.kind == "sparse" else fits


def _shares(setting: Setting) -> list[float]:
    """Return every p, ``MARK`` among them: what is said of 90 % hits is simulated there."""
    return sorted({*residencies(setting), MARK})


def _first(ground: Ground) -> Sequence[Ask]:
    if ground.setting.kind == "replay":
        size = 0
    else:
        size = house_size(ground)
    kinds = ((ON_DEMAND, NONE), (PREFETCH, ground.full.own_prefetch()))
    return [
        Ask(f"{name} {p:g}", ground.full.case(p, size, prefetch), ground.setting.house_seeds)
        for p in _shares(ground.setting)
        for name, prefetch in kinds
    ]


def _draw(ground: Ground, answers: Answers) -> Curve:
    points = [(p, answers[f"{ON_DEMAND} {p:g}"], answers[f"{PREFETCH} {p:g}"]) for p in _shares(ground.setting)]
    points = [point for point in points if _hit(point[1]) is not None]
    if len(points) < 2:
        failed = next((runs.failure for runs in answers.values() if runs.failure), "fewer than two points came back")
        raise InfeasibleError(failed)
    forms = _forms(points)
    rows = [*_lines(forms), *_simulated(points, forms)]
    marks = _marks(forms, rows)
    own = ground.full.own_prefetch().split(":")[1].split(",")[0].strip(' "}')
    return Curve(
        name="t_avg",
        title=_title(marks),
        about=tuple(_about(ground, points, own)),
        reads=tuple(_reads(forms, marks, own)),
        parts=tuple(_parts(points, forms)),
        rows=tuple(rows),
        marks=marks | {"prefetch": own},
    )


Points = list[tuple[float, Runs, Runs]]
"""Residency, without prefetch, with."""


def _hit(runs: Runs) -> float | None:
    return runs.value(at("p_resident")) if runs else None


def _forms(points: Points) -> Forms:
    """Take T_vram, T_mem, T_c and the transfer of a miss from the point with the most misses."""
    runs = points[0][1]
    found = [runs.value(at("closed_form", key)) for key in ("t_vram_s", "t_mem_s", "t_compute_s", "t_transfer_s")]
    vram_s, memory_s, compute_s, transfer_s = (value or 0.0 for value in found)
    missed = 1 - (_hit(runs) or 0.0)
    return Forms(vram_s, memory_s, compute_s, transfer_s / missed if missed > 0 else 0.0)


def _lines(forms: Forms) -> Iterator[Row]:
    for k in range(_LINE_POINTS + 1):
        p_hit = k / _LINE_POINTS
        yield {
            "series": "closed form",
            "p_hit": p_hit,
            **_closed(forms, p_hit),
        }


def _closed(forms: Forms, p_hit: float) -> Row:
    return {
        "closed_t_avg_s": forms.access_s(p_hit),
        "step_on_demand": forms.on_demand(p_hit),
        "step_overlapped": forms.overlapped(p_hit),
    }


def _simulated(points: Points, forms: Forms) -> Iterator[Row]:
    whole = next((pair for p, *pair in points if p == 1.0), None)
    for p, without, ahead in points:
        for name, runs, reference in zip((ON_DEMAND, PREFETCH), (without, ahead), whole or (None, None), strict=True):
            if not runs:
                continue
            hit, service, step = without.over(at("p_resident")), runs.over(at("t_avg_s", "service")), None
            resident_s = reference.value(at("t_step_s")) if reference else runs.value(at("t_compute_s"))
            ratio = runs.over(at("t_step_s"))
            if ratio is not None and resident_s:
                step = ratio.times(1 / resident_s)
            yield {
                "series": name,
                "residency": p,
                **(hit.row("p_hit") if hit else {}),
                **(service.row("t_avg_s") if service else {}),
                "queued_s": runs.value(at("t_avg_s", "queued")),
                "exposed_s": runs.value(at("t_avg_s", "exposed")),
                "p_hit_in_time": runs.value(at("p_hit")),
                "t_step_s": runs.value(at("t_step_s")),
                "t_compute_s": runs.value(at("t_compute_s")),
                **(step.row("step_ratio") if step else {}),
                **_closed(forms, hit.mean if hit else 1.0),
            }


def _marks(forms: Forms, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "p_hit": MARK,
        "t_vram_s": forms.vram_s,
        "t_mem_s": forms.memory_s,
        "t_compute_s": forms.compute_s,
        "t_avg_s": forms.access_s(MARK),
        "closed_on_demand": forms.on_demand(MARK),
        "closed_overlapped": forms.overlapped(MARK),
        "simulated_on_demand": _between(rows, ON_DEMAND),
        "simulated_prefetch": _between(rows, PREFETCH),
        "simulated_at": _nearest(rows),
        "least_p_hit": min((row["p_hit"] for row in rows if row["series"] == ON_DEMAND), default=None),
        "unfelt_on_demand": forms.unfelt(False),
        "unfelt_overlapped": forms.unfelt(True),
    }


def _between(rows: Sequence[Row], series: str) -> float | None:
    """Return the simulated step at ``MARK``, between the two points beside it; None where they don't reach it."""
    points = sorted(
        (row["p_hit"], row["step_ratio"]) for row in rows if row["series"] == series and "step_ratio" in row
    )
    for (left, low), (right, high) in pairwise(points):
        if left <= MARK <= right and left < right:
            return float(low + (high - low) * (MARK - left) / (right - left))
    return None


def _nearest(rows: Sequence[Row]) -> float | None:
    """Return the simulated p_hit that is nearest to ``MARK``."""
    return min((row["p_hit"] for row in rows if row["series"] == ON_DEMAND), key=lambda p: abs(p - MARK), default=None)


def _title(marks: dict[str, Any]) -> str:
    demand, ahead = _felt(marks)
    first = words.longer(demand, "all-resident")
    if demand < 1 + FELT:
        return f"90 % hits can't be felt: a decode step is {first}"
    verdict = "can't be felt with prefetch" if ahead < 1 + FELT else "are felt"
    return f"90 % hits {verdict}: a decode step is {first}, with prefetch {words.longer(ahead)}"


def _felt(marks: dict[str, Any]) -> tuple[float, float]:
    """Return T_step at ``MARK`` over all-resident, on demand and with prefetch: simulated where it can be."""
    return (
        marks["simulated_on_demand"] or marks["closed_on_demand"],
        marks["simulated_prefetch"] or marks["closed_overlapped"],
    )


def _about(ground: Ground, points: Points, own: str) -> Iterator[str]:
    first = points[0][1].summaries[0]
    size = first["requests"]["finished"]
    same = "the most that fit whole" if ground.setting.kind != "sparse" or size < _MOST_SPARSE else "at most 32"
    yield from words.of_house(ground.full, f"the same {words.sequences(size)} at each p ({same})")
    yield words.of_seeds(ground.setting.house_seeds, ground.setting.house_drawn)
    yield (
        f"p goes over {words.listed(p for p, *_ in points)}; p_hit is the share of reads that lie in VRAM as a step "
        f"begins. Each p runs without prefetch (on demand) and with prefetch {own}."
    )


def _reads(forms: Forms, marks: dict[str, Any], own: str) -> Iterator[str]:
    if forms.vram_s:
        yield (
            f"A miss takes {words.time(forms.memory_s)}, a hit {words.time(forms.vram_s)}: "
            f"{digits(forms.memory_s / forms.vram_s)} times as long. At 90 % hits an access takes "
            f"{words.time(marks['t_avg_s'])} on average, {digits(marks['t_avg_s'] / forms.vram_s)} times a hit's."
        )
    yield (
        f"At 90 % hits a decode step on demand is {words.longer(marks['closed_on_demand'], 'all-resident')} by the "
        f"closed form T_c + T_t{_simulated_at(marks, 'simulated_on_demand')}; with perfect overlap it is "
        f"{words.longer(marks['closed_overlapped'], 'all-resident')} by the closed form max(T_c, T_t), with prefetch "
        f"{own}{_simulated_at(marks, 'simulated_prefetch', '')}."
    )
    if marks["simulated_on_demand"] is None:
        yield f"No simulated point comes down to 90 %: p_hit is at least {words.percent(marks['least_p_hit'])}."
    yield _verdict(marks)


def _simulated_at(marks: dict[str, Any], key: str, before: str = ",") -> str:
    if marks[key] is None:
        return f"{before} not simulated"
    near = abs(marks["simulated_at"] - MARK) <= _NEAR
    return f"{before} {words.longer(marks[key])} {'simulated' if near else 'on the line between simulated points'}"


def _verdict(marks: dict[str, Any]) -> str:
    demand, ahead = _felt(marks)
    bound = (
        "By the closed forms a step stays within 5 % of all-resident on demand "
        f"{_from(marks['unfelt_on_demand'])}, with perfect overlap {_from(marks['unfelt_overlapped'])}"
    )
    holds = "holds here" if demand < 1 + FELT else "holds here with prefetch, not without"
    if ahead >= 1 + FELT and demand >= 1 + FELT:
        holds = "doesn't hold here"
    return f'That "90 % hits can\'t be felt" {holds}. {bound}.'


def _from(p_hit: float) -> str:
    return f"from p_hit = {words.percent(p_hit)} on" if p_hit > 0 else "at any p_hit"


def _parts(points: Points, forms: Forms) -> Iterator[str]:
    runs = points[0][1]
    service, p_hit = runs.value(at("t_avg_s", "service")), _hit(runs) or 0.0
    formula = forms.access_s(p_hit)
    if service is not None and formula:
        yield _of_service(service / formula - 1, points[0][0])
    queued, exposed = (runs.value(at("t_avg_s", key)) for key in ("queued", "exposed"))
    if queued and exposed is not None:
        yield (
            f"T_avg knows no queue: at p = {points[0][0]:g} a miss comes after those asked for with it, which makes "
            f"{words.time(queued)} of waiting a read. Since they come one after another, the GPU waits "
            f"{words.time(exposed)} a read, and that is what a step feels."
        )
    notes = [note for _, *pair in points for one in pair if one and (note := words.step_note(one.summaries[0]))]
    if notes:
        yield f"Where a step parts most from its closed form: {max(notes, key=_parted)}"
    else:
        yield "Steps are as long as their closed forms, to 1 %."


def _of_service(gap: float, p: float) -> str:
    if abs(gap) < 0.01:
        return "What reads take by themselves lies on the line of T_avg, to 1 %."
    where = "below" if gap < 0 else "above"
    why = (
        "the line has a descriptor for each piece, and pieces that stream together share one"
        if gap < 0
        else "transfers carry more than bytes over bandwidth and one descriptor a piece"
    )
    return f"What reads take by themselves lies up to {abs(100 * gap):.0f} % {where} the line (p = {p:g}): {why}."


def _parted(note: str) -> float:
    """Return by how many percent a step's note says that it parts."""
    inside = note[note.find("(") + 1 : note.find("%")]
    try:
        return abs(float(inside.strip()))
    except ValueError:
        return 0.0


T_AVG = Kind("t_avg", True, _why_not, _first, nothing_more, _draw)
