"""The `warptape` command."""

import signal
import sys

from . import _native


def main() -> int:
    """Runs the command with the arguments of this process, and returns its exit status."""
    # The command watches for signals itself. Python's own handler would only act once the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.main(["warptape", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
