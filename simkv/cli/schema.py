"""``simkv schema``: the JSON Schema of scenario files, for editors."""

from __future__ import annotations

import typer


def schema() -> None:
    """Print the JSON Schema of scenario files."""
    import json

    from simkv.scenario.jsonschema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
