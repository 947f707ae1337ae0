"""``simkv`` and ``python -m simkv``: the command line, and Ctrl-C while it is still being loaded."""


def main() -> None:
    """Run the command line; ends the process."""
    try:
        from simkv.cli import main as run

        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
