"""Ends the demo without a traceback if Ctrl-C comes while its modules are being loaded."""

import sys


def show_error(kind, error, trace):
    if issubclass(kind, KeyboardInterrupt):
        print("\nCanceled.", file=sys.stderr)
        return
    sys.__excepthook__(kind, error, trace)


sys.excepthook = show_error
