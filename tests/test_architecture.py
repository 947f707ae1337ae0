"""Holds the code to the floors of docs/architecture.md: every import, also those inside functions."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "simkv"
HEAVY = {"pandas", "matplotlib", "pyarrow", "scipy", "torch", "dask", "distributed", "weasyprint"}
"""Never imported when a module is loaded, only inside the function that needs them."""


@dataclass(frozen=True)
class Row:
    """One row of the floor table: modules that may import one another and every lower floor."""

    floor: int
    modules: tuple[str, ...]
    outside: frozenset[str]


@dataclass(frozen=True)
class Import:
    """``importer`` (dotted, without ``simkv.``) imports ``target``, at load time or inside a function."""

    importer: str
    target: str
    at_load: bool
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


@cache
def rows() -> tuple[Row, ...]:
    """Read the floor table."""
    found = []
    for line in (ROOT / "docs" / "architecture.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[0].isdigit():
            modules = tuple(name.rstrip("/").removesuffix(".py") for name in re.findall(r"`([^`]+)`", cells[1]))
            found.append(Row(int(cells[0]), modules, frozenset(re.findall(r"[A-Za-z]\w*(?:\.[a-z]+)?", cells[3]))))
    return tuple(found)


def row_of(module: str) -> Row:
    """Return the row of a dotted module name."""
    for row in rows():
        if module.split(".")[0] in row.modules:
            return row
    raise AssertionError(f"simkv.{module} has no floor in docs/architecture.md")


def module_name(path: Path) -> str:
    """Return the dotted name within simkv; '' for simkv itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """Return every module of the package by dotted name."""
    return {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def _targets(node: ast.Import | ast.ImportFrom, importer: str) -> Iterator[str]:
    """Yield the dotted modules that a statement imports; ``from simkv import x`` is ``simkv.x``."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level:
        raise AssertionError(f"simkv.{importer}:{node.lineno}: write imports in full, not relative")
    else:
        base = node.module or ""
        whole = [f"{base}.{alias.name}" for alias in node.names]
        names = [name if name.removeprefix("simkv.") in modules() else base for name in whole]
    yield from dict.fromkeys(names)


def _typing_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _walk(node: ast.AST, importer: str, at_load: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if _typing_only(child):
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            for target in _targets(child, importer):
                yield Import(importer, target, at_load, child.lineno)
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _walk(child, importer, at_load and not inside)


@cache
def imports() -> tuple[Import, ...]:
    """Return every import of the package that is carried out, ``__future__`` left out."""
    found = []
    for name, path in modules().items():
        tree = ast.parse(path.read_text("utf-8"), str(path))
        found += [i for i in _walk(tree, name, True) if i.target != "__future__"]
    return tuple(found)


def inner() -> list[Import]:
    """Return imports of simkv's own modules, ``target`` without ``simkv.``; the bare package (version) left out."""
    found = [i for i in imports() if i.target.startswith("simkv.")]
    return [Import(i.importer, i.target.removeprefix("simkv."), i.at_load, i.line) for i in found]


def outer() -> list[Import]:
    """Return imports of third-party packages."""
    return [i for i in imports() if i.target.split(".")[0] not in sys.stdlib_module_names | {"simkv"}]


def test_table_floors_cover_every_module() -> None:
    assert [row.floor for row in rows()] == sorted(row.floor for row in rows())
    for name in modules():
        if name:
            row_of(name)


def test_imports_point_down_or_stay_in_their_row() -> None:
    wrong = []
    for i in inner():
        here, there = row_of(i.importer), row_of(i.target)
        if there.floor >= here.floor and there is not here:
            wrong.append(f"{i}, from floor {here.floor} to {there.floor}")
    assert not wrong, "\n".join(wrong)


def test_imports_make_no_circle() -> None:
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for i in inner():
        if i.target in graph and i.target != i.importer:
            graph[i.importer].add(i.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None


def test_imports_from_outside_are_those_of_the_table() -> None:
    wrong = []
    for i in outer():
        allowed = row_of(i.importer).outside
        target = i.target.replace("pydantic_core", "pydantic")
        if not any(target == name or target.startswith(name + ".") for name in allowed):
            wrong.append(str(i))
    assert not wrong, "\n".join(wrong)


def test_imports_simpy_only_in_sim() -> None:
    assert [str(i) for i in outer() if i.target.split(".")[0] == "simpy" and not i.importer.startswith("sim.")] == []


def test_imports_heavy_only_inside_functions() -> None:
    assert [str(i) for i in outer() if i.target.split(".")[0] in HEAVY and i.at_load] == []


def test_imports_simulator_never_uses_its_oracles() -> None:
    oracles = {"formulas.queueing", "formulas.cache"}
    wrong = [i for i in inner() if i.importer.split(".")[0] in {"sim", "kvcache"} and i.target in oracles]
    assert [str(i) for i in wrong] == []


def test_package_itself_imports_nothing() -> None:
    """But for ``importlib``, by which it looks up a name of ``api`` when that is first asked for."""
    assert [str(i) for i in imports() if i.importer == "" and (i.at_load or i.target != "importlib")] == []


def test_package_loaded_loads_nothing_of_its_own() -> None:
    code = "import sys; before = set(sys.modules); import simkv; dir(simkv); print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["simkv"]


def test_package_names_those_of_the_public_interface() -> None:
    import simkv
    import simkv.api

    assert simkv.__all__ == simkv.api.__all__
    assert [name for name in simkv.__all__ if getattr(simkv, name) is not getattr(simkv.api, name)] == []
    assert set(simkv.__all__) <= set(dir(simkv))


def test_public_interface_loaded_loads_nothing_heavy() -> None:
    code = "import sys, simkv.api; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {name.split(".")[0] for name in loaded.split()} & HEAVY == set()


def test_command_line_loaded_loads_nothing_heavy() -> None:
    code = "import sys, simkv.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {name.split(".")[0] for name in loaded.split()} & (HEAVY | {"simpy"}) == set()


def test_version_equals_that_of_the_project_file() -> None:
    import simkv

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert simkv.__version__ == project["version"]


def test_reading_guide_names_every_module() -> None:
    """Packages as ``name/``, modules of the first level by name."""
    import simkv

    first = {name.split(".")[0] for name in modules() if name}
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    named = {f"{name}/" if name in packages else name for name in first}
    assert named - set(re.findall(r"[a-z_]+/?", simkv.__doc__ or "")) == set()


@pytest.mark.parametrize("package", ["jobs", "sweeps", "curves", "api"])
def test_module_table_names_every_module(package: str) -> None:
    table = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    modules_there = {path.stem for path in (PACKAGE / package).glob("*.py")} - {"__init__"}
    assert set(re.findall(rf"`{package}/(\w+)`", table)) == modules_there


def test_invariants_named_files_exist() -> None:
    text = (ROOT / "INVARIANTS.md").read_text("utf-8")
    paths = set(re.findall(r"`((?:simkv|tests)/[\w/.]+\.py)", text))
    assert paths
    assert {path for path in paths if not (ROOT / path).exists()} == set()


def test_invariants_named_tests_exist() -> None:
    """A law that claims a test by name has it."""
    text = (ROOT / "INVARIANTS.md").read_text("utf-8")
    claims = re.findall(r"`(tests/\w+\.py)::(\w+)`", text)
    assert [f"{path}::{name}" for path, name in claims if f"def {name}(" not in (ROOT / path).read_text("utf-8")] == []
