"""``python -m firesteel`` is the command ``firesteel``."""

from firesteel.cli.main import main

if __name__ == "__main__":
    main(prog_name="firesteel")
