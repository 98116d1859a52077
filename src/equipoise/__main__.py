"""``python -m equipoise`` is the command ``eq``."""

from equipoise.cli.main import main

if __name__ == "__main__":
    main()
