"""A client that speaks plain HTTP, so that the tests see what any program would see."""

import http.client
import json
import time

from normlens.explorer import Limits

QUICK = Limits(tokens=300, memory=3_000_000_000, grace_seconds=1.0, upload=5_000_000)


class Client:
    """Requests to one explorer; every answer is (status, body), with JSON read."""

    def __init__(self, link: str) -> None:
        self.host = link.removeprefix("http://").split("/")[0]

    def send(self, method: str, path: str, body=None, **headers):
        connection = http.client.HTTPConnection(self.host, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            got = response.read()
            self.headers = response.headers
            return response.status, json.loads(got) if response.headers.get_content_subtype() == "json" else got
        finally:
            connection.close()

    def get(self, path: str, **headers):
        return self.send("GET", path, **headers)

    def post(self, path: str, value, **headers):
        return self.send("POST", path, json.dumps(value), **({"Content_Type": "application/json"} | headers))

    def follow(self, job: dict, until: str = "", seconds: float = 60) -> dict:
        """Ask about a job until it is over, or reaches the stage `until`."""
        end = time.monotonic() + seconds
        while job["state"] in ("waiting", "running") and (not until or job.get("stage") != until):
            assert time.monotonic() < end, job
            status, job = self.get(f"/api/jobs/{job['id']}?after={job['version']}")
            assert status == 200, job
        return job

    def run(self, **question) -> dict:
        status, job = self.post("/api/jobs", question)
        assert status == 202, job
        return self.follow(job)

    def open(self, content: bytes) -> dict:
        status, job = self.send("POST", "/api/open", content, Content_Type="application/octet-stream")
        assert status == 202, job
        return self.follow(job)
