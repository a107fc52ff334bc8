"""The most memory torch holds at one time during a job, counted allocation by allocation."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.profiler import ProfilerActivity, profile


def peak_bytes(job: Callable[[], Any]) -> int:
    """Peak of live tensor memory during `job`, above what was live before it."""
    job()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        job()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        recorded.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    changes = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]")
    live = peak = 0
    for _, change in changes:
        live += change
        peak = max(peak, live)
    return peak
