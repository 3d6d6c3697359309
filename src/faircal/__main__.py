"""``python -m faircal`` is the command ``faircal``."""

from faircal.cli.main import main

if __name__ == "__main__":
    main()
