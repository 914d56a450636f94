"""Fixtures that several folders of tests share."""

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
for each in (signal.SIGINT, signal.SIGHUP):  # ignored in a shell's background, also by our children
    if signal.getsignal(each) is signal.SIG_IGN:
        signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)
pytest_plugins = ["postgres_fixture"]
