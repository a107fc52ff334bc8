"""The explorer under load: many users at once on one small model, then requests that mean harm.

    python benchmarks/load.py [--users 50] [--seconds 60]

Starts `normlens serve` as a user would, on a free port of this computer. Each user asks for a trace of a text of their
own, follows the job, fetches the header and every chunk of the result, and begins again. The users run on the same
cores. From the tenth second on no process may grow by more than 5 %.
"""

import argparse
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

MODEL = "all-MiniLM-L6-v2"
SETTLED, FLAT = 10.0, 1.05  # seconds until memory is compared, and how much of it there may be at the end
WORDS = "the a cat dog fox mat tree river quick old sat slept ran jumped over under on and or but while it was".split()


class User:
    """One person with one browser: a connection that is kept, one run at a time."""

    def __init__(self, host: str, number: int) -> None:
        self.host, self.number = host, number
        self.random = random.Random(number)
        self.connection = http.client.HTTPConnection(host, timeout=60)
        self.counts: Counter[str] = Counter()
        self.latencies: list[float] = []
        self.problems: list[str] = []

    def call(self, method: str, path: str, body: object = None) -> tuple[int, bytes, str | None]:
        self.counts["requests"] += 1
        headers = {} if body is None else {"Content-Type": "application/json"}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self.connection.getresponse()
        return response.status, response.read(), response.headers["retry-after"]

    def once(self) -> None:
        """One text, from the question to the last chunk."""
        text = " ".join(self.random.choices(WORDS, k=self.random.randint(4, 14)))
        begun = time.perf_counter()
        status, body, again = self.call("POST", "/api/jobs", {"model": MODEL, "text": text})
        if status in (429, 503):
            self.counts["refusals"] += 1
            time.sleep(float(again or 1))
            return
        job = self.json(status, body, 202)
        while job["state"] in ("waiting", "running"):
            job = self.json(*self.call("GET", f"/api/jobs/{job['id']}?after={job['version']}")[:2], 200)
        if job["state"] != "done":
            raise ValueError(f"{job}")
        header = self.json(*self.call("GET", f"/api/results/{job['id']}/header")[:2], 200)
        for number in range(len(header["panels"])):
            status, body, _ = self.call("GET", f"/api/results/{job['id']}/chunks/{number}")
            if status != 200 or not body:
                raise ValueError(f"chunk {number}: {status}")
        self.latencies.append(time.perf_counter() - begun)

    def json(self, status: int, body: bytes, wanted: int) -> dict:
        if status != wanted:
            raise ValueError(f"{status} {body[:200]!r}")
        return json.loads(body)

    def live(self, until: float) -> None:
        while time.perf_counter() < until:
            try:
                self.once()
            except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
                self.problems.append(f"{type(error).__name__}: {error}")
                self.connection.close()


def resident(pid: int) -> dict[int, float]:
    """Megabytes of the server and of its workers, by process."""
    sizes = {pid: _size(pid)}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            sizes[int(folder.name)] = _size(int(folder.name))
    return sizes


def _size(pid: int) -> float:
    try:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1e3 if found else 0.0


JSON = {"Content-Type": "application/json"}
FILE = {"Content-Type": "application/octet-stream"}
HOSTILE: list[tuple[str, str, str, bytes | None, dict[str, str], tuple[int, ...]]] = [
    ("oversized body", "POST", "/api/jobs", b" " * 1_000_000, JSON, (413,)),
    ("malformed JSON", "POST", "/api/jobs", b"{{{", JSON, (400,)),
    ("nested JSON", "POST", "/api/jobs", b"[" * 200_000, JSON, (400,)),
    ("a form", "POST", "/api/jobs", b"text=a", {"Content-Type": "application/x-www-form-urlencoded"}, (415,)),
    ("a model not named", "POST", "/api/jobs", b'{"model":"/etc","text":"a"}', JSON, (403,)),
    ("a path", "GET", "/assets/../../../../etc/passwd", None, {}, (404,)),
    ("an encoded path", "GET", "/assets/%2e%2e%2f%2e%2e%2fetc%2fpasswd", None, {}, (404,)),
    ("a path for a result", "GET", "/api/results/..%2f..%2f..%2fetc/header", None, {}, (404,)),
    ("another host", "GET", "/api/models", None, {"Host": "evil.example"}, (421,)),
    ("another origin", "POST", "/api/jobs", b"{}", JSON | {"Origin": "http://evil.example"}, (403,)),
    ("another site", "GET", "/api/models", None, {"Sec-Fetch-Site": "cross-site"}, (403,)),
    ("another method", "TRACE", "/api/jobs", None, {}, (405,)),
    ("a long head", "GET", "/", None, {"X": "a" * 100_000}, (400, 431)),
    ("a file that is no trace", "POST", "/api/open", b"\xff" * 100_000, FILE, (202,)),
    ("20,001 characters", "POST", "/api/jobs", json.dumps({"model": MODEL, "text": "a" * 20_001}).encode(),
     JSON, (422,)),
]  # fmt: skip


def hostile(host: str) -> int:
    """Each is refused, and the next good request is served. Returns how many were not."""
    wrong = 0
    good = User(host, 9999)
    for what, method, path, body, headers, wanted in HOSTILE:
        connection = http.client.HTTPConnection(host, timeout=30)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            said, status = (
                json.loads(response.read() or b"{}") if "json" in str(response.headers) else {},
                response.status,
            )
        except (ConnectionError, http.client.HTTPException) as error:
            said, status = {"what": f"no answer: {type(error).__name__}"}, 0
        if status == 202:
            while said["state"] in ("waiting", "running"):
                said = json.loads(good.call("GET", f"/api/jobs/{said['id']}?after={said['version']}")[1])
        connection.close()
        before = len(good.latencies)
        good.once()
        served = len(good.latencies) > before
        right = status in wanted and said.get("state") != "done" and served
        wrong += not right
        next_one = "the next good request is served" if served else "THE NEXT GOOD REQUEST IS NOT SERVED"
        print(f"  {what:24} {status}  {said.get('what', '')[:60]:60}  {next_one if right else 'WRONG'}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    command = [sys.executable, "-m", "normlens", "serve", "--port", "0", "--preload"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        host = server.stdout.readline().split()[1].removeprefix("http://").rstrip("/")
        begun = time.perf_counter()
        User(host, 0).once()
        print(
            f"http://{host}, {os.cpu_count()} cores; first trace after {time.perf_counter() - begun:.1f} s", flush=True
        )
        wrong = under_load(host, server.pid, options.users, options.seconds)
        print("hostile requests:")
        wrong += hostile(host)
    finally:
        server.send_signal(2)
        code = server.wait(20)
    print(f"stopped by Ctrl-C with code {code}; {'all as it should be' if not wrong else f'{wrong} WRONG'}")
    return min(wrong, 1)


def under_load(host: str, pid: int, count: int, seconds: float) -> int:
    users = [User(host, number) for number in range(1, count + 1)]
    begun = time.perf_counter()
    threads = [threading.Thread(target=user.live, args=(begun + seconds,)) for user in users]
    for thread in threads:
        thread.start()
    sizes = []
    for moment in (min(SETTLED, seconds / 6), seconds / 2, seconds):
        time.sleep(max(0.0, begun + moment - time.perf_counter()))
        sizes.append(resident(pid))
        workers = sum(sizes[-1].values()) - sizes[-1][pid]
        print(f"  at {moment:3.0f} s: server {sizes[-1][pid]:6.1f} MB, workers {workers:7.1f} MB", flush=True)
    grown = [
        f"process {one} grew from {sizes[0][one]:.1f} to {size:.1f} MB"
        for one, size in sizes[-1].items()
        if one in sizes[0] and size > FLAT * sizes[0][one]  # a worker that was started anew is not compared
    ]
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    latencies = sorted(one for user in users for one in user.latencies)
    total = sum((user.counts for user in users), Counter())
    problems = [one for user in users for one in user.problems]
    print(f"{count} users, {took:.0f} s: {len(latencies)} traces ({len(latencies) / took:.1f} a second), "
          f"{total['requests']} requests, {total['refusals']} declared refusals, {len(problems)} errors")  # fmt: skip
    if len(latencies) > 1:
        print(f"  from question to last chunk: median {statistics.median(latencies):.2f} s, "
              f"95 % within {latencies[int(0.95 * len(latencies))]:.2f} s, longest {latencies[-1]:.2f} s")  # fmt: skip
    for one in [*grown, *problems[:5]]:
        print(f"  ERROR {one}")
    return len(problems) + len(grown)


if __name__ == "__main__":
    sys.exit(main())
