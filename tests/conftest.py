"""Fixtures that several folders of tests share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
pytest_plugins = ["postgres_fixture"]
