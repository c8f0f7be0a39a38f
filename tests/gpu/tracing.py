# SPDX-License-Identifier: MIT
"""Running cuscope on a program, and reading what both say afterwards."""

import collections
import json
import os
import re
import signal
import subprocess

TIMEOUT_SECONDS = 90


class Report:
    """One line a test; a test that failed is followed by what was wrong."""

    def __init__(self):
        self.passed = self.failed = 0

    def test(self, name, problems):
        problems = list(problems)
        if problems:
            self.failed += 1
            print(f"FAIL {name}", *problems[:12], sep="\n       ", flush=True)
        else:
            self.passed += 1
            print(f"ok   {name}", flush=True)

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed else 0


def base_name(function):
    """The name as programs write it: cuMemAlloc for cuMemAlloc_v2, cudaMemcpy for its _ptds."""
    return re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", function)


def without_blanks(name):
    """Demanglers differ in "> >" and ">>"."""
    return name.replace(" ", "")


def difference(what, expected, seen):
    """Two counters that should be equal, as sentences about where they are not."""
    if expected == seen:
        return
    for key, n in sorted((expected - seen).items(), key=repr)[:5]:
        yield f"{what}: {n} of {expected[key]} not seen: {key}"
    for key, n in sorted((seen - expected).items(), key=repr)[:5]:
        yield f"{what}: seen {n} times too often: {key}"


def equal(what, expected, seen):
    if expected != seen:
        yield f"{what}: {seen}, should be {expected}"


class Trace:
    """One run of `cuscope trace`, its lines and its summary. Options as on the command line."""

    def __init__(self, cuscope, folder, name, options=(), target=(), env=None):
        self.cuscope, self.path = cuscope, os.path.join(folder, name)
        self.command = [cuscope, *self.outputs(), "--force", *options, *target]
        self.log = open(self.path + ".log", "w+")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=subprocess.STDOUT,
                                        env=dict(os.environ, **(env or {})))
        self.calls, self.summary, self.broken = [], {}, []

    def outputs(self):
        return ["trace", "--format", "jsonl", "-o", self.path + ".jsonl",
                "--json-summary", self.path + ".json"]

    def finish(self, interrupt=False):
        """Waits for it, after Ctrl-C where asked for; then calls, summary and status are there."""
        if interrupt and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.status = self.process.wait(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.status = self.process.wait()
            self.broken.append(f"did not end within {TIMEOUT_SECONDS} s")
        self.log.seek(0)
        self.text = self.log.read()
        self.log.close()
        self.read()
        return self

    def read(self):
        try:
            with open(self.path + ".jsonl") as lines:
                events = [json.loads(line) for line in lines]
            self.calls = [e for e in events if e.get("phase") == "X"]
            whole = {e["kernel"]: e["name"] for e in events if e.get("type") == "kernel_name"}
            for call in self.calls:
                if "kernel" in call:
                    call["kernel"] = whole.get(call["kernel"], call["kernel"])
            with open(self.path + ".json") as text:
                self.summary = json.load(text)
        except (OSError, ValueError) as error:
            self.broken.append(f"output: {error}")

    def problems(self, status=0):
        """Whatever would make the other checks of this trace meaningless."""
        yield from self.broken
        if self.status != status:
            yield f"exit status {self.status}, should be {status}"
        if self.status != status or self.broken:
            said = self.text.partition("=== TRACE SUMMARY")[0].strip().splitlines()
            yield "it said: " + " / ".join(said[-3:])

    def lost(self, *allowed):
        """Reasons for lost events, but for what the way of attaching explains."""
        missed = self.summary.get("missed", {"lost": {"summary": 1}})
        for reason, n in missed["lost"].items():
            if n and reason not in ("late", *allowed):
                yield f"lost: {n} events: {reason}"

    def unresolved(self):
        missed = self.summary.get("missed", {})
        yield from equal("launches of unresolved kernels", 0, missed.get("unresolved_launches"))

    def did_work(self):
        """The calls that count: made by the program itself, not failed."""
        return [c for c in self.calls if not c.get("nested") and "error" not in c]

    def launches(self):
        """The kernels that ran, by name, as the summary counts them."""
        return collections.Counter({k["name"]: k["launches"]
                                    for k in self.summary.get("kernels", []) if k["launches"]})

    def functions(self):
        return {base_name(f["name"]): f for f in self.summary.get("functions", [])}


class Recorded(Trace):
    """The same by way of a trace file: what is asked of it is read from that."""

    def outputs(self):
        return ["record", "-o", self.path + ".cuscope"]

    def read(self):
        path = self.path + ".cuscope"
        self.ask("export", path, "-o", self.path + ".jsonl", "--force")
        with open(self.path + ".json", "w") as out:
            self.ask("report", path, "summary", "--format", "json", out=out)
        super().read()

    def ask(self, *words, out=subprocess.PIPE):
        done = subprocess.run([self.cuscope, *words], stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            self.broken.append(f"{words[0]}: status {done.returncode}: {done.stderr.strip()}")
        return done.stdout
