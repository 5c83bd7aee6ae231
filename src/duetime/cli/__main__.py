"""`python -m duetime.cli`, the same as `duetime`."""

from __future__ import annotations

from duetime.cli import main

if __name__ == "__main__":
    main(prog_name="duetime")
