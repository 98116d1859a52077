"""Settings shared by all tests."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # tests/reference.py is imported by its name

os.environ["EQUIPOISE_CACHE"] = (
    "off"  # no test looks into, or leaves anything in, the cache of whoever runs it
)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in a shell's background; what the tests start and interrupt would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("default")
