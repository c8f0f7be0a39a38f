# SPDX-License-Identifier: MIT
"""Starts `cuscope agent`, the node agent, and reads what it serves."""

import http.client
import os
import re
import socket

from harness import Failure, Places, wait_until

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
LIBRARIES = (("push", "libcuda.so.1"), ("libcudart.so.12",), ("libcudart.so.13",))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def parse(text):
    """{(name, ((label, value), ...)): value}, checked as a scraper would."""
    values, done, family = {}, set(), None
    for line in text.splitlines():
        if line.startswith("#"):
            words = line.split(" ", 3)
            if words[1] == "TYPE":
                if words[2] in done:
                    raise Failure(f"the family {words[2]} is there twice")
                family = words[2]
                done.add(family)
            continue
        found = SAMPLE.match(line)
        if not found:
            raise Failure(f"no sample: {line!r}")
        name, labels, value = found.groups()
        if not name.startswith(family):
            raise Failure(f"{name} is not of {family}, whose values these are")
        pairs = tuple(sorted(LABEL.findall(labels or "")))
        if labels and ",".join(f'{k}="{v}"' for k, v in LABEL.findall(labels)) != labels:
            raise Failure(f"broken labels: {line!r}")
        if (name, pairs) in values:
            raise Failure(f"a series is there twice: {line!r}")
        values[name, pairs] = float(value)
    return values


class Node:
    """One that runs. `settings` is an INI file's text."""

    def __init__(self, case, settings="", options=(), name="node", wait=True):
        self.case, self.port = case, free_port()
        self.config = case.path(name + ".ini")
        os.chmod(case.folder, 0o755)
        self.write(settings)
        libraries = [w for path in LIBRARIES for w in ("--library", Places.simcuda(*path))]
        self.process = case.start(Places.cuscope(), "agent", "--listen", f"127.0.0.1:{self.port}",
                                  "--config", self.config, *libraries, *options, name=name)
        if wait:
            self.begun()

    def write(self, settings):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("[agent]\nage = 0\ninterval = 200ms\ntop = 200\n" if not settings else settings)
        os.chmod(self.config, 0o644)

    def begun(self):
        def serves():
            if self.process.process.poll() is not None:
                raise Failure(f"it ended: {self.process.err()}")
            try:
                return self.get("/healthz")[0] == 200
            except OSError:
                return False
        wait_until(serves, "the agent to serve", 30)
        return self

    def get(self, path="/metrics", method="GET", headers=None, timeout=10):
        """Status, headers, text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode("utf-8")
        finally:
            connection.close()

    def metrics(self):
        status, _, text = self.get()
        if status != 200:
            raise Failure(f"status {status}: {text}")
        return parse(text)

    def of(self, pid, metrics=None):
        """{name: value} of a process; labels other than its own are behind the name."""
        found = {}
        for (name, labels), value in (metrics or self.metrics()).items():
            labels = dict(labels)
            if labels.pop("pid", None) != str(pid) or not name.startswith("cuscope_process_"):
                continue
            more = [labels[key] for key in ("direction", "kind") if key in labels]
            found[" ".join([name.removeprefix("cuscope_process_"), *more])] = value
        return found
