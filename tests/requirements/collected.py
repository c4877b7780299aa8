"""A pytest plug-in that writes down which requirements each collected test holds."""

import json
import os
from pathlib import Path

import pytest

from perdure.testing.requirement import requirements_of

COLLECTED_FILE = "PERDURE_COLLECTED_FILE"


def pytest_collection_finish(session: pytest.Session) -> None:
    # Documentation examples have no function of their own, and so hold nothing.
    held = {item.nodeid: requirements_of(getattr(item, "function", None)) for item in session.items}
    Path(os.environ[COLLECTED_FILE]).write_text(json.dumps(held), encoding="utf-8")
