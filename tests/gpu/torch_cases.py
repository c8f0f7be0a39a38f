# SPDX-License-Identifier: MIT
"""PyTorch traced: started by cuscope, and attached to while it runs."""

import collections
import json
import os
import subprocess
import sys
import time

from tracing import Trace, difference, equal, without_blanks

LOOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_loop.py")
ATTACH_SECONDS = 1.5  # far more than attaching takes: nothing tells from outside that it is done
ADD = "CUDAFunctorOnSelf_add<float>"


class Loop:
    """torch_loop.py serve. Started early: importing torch takes as long as most other tests."""

    def __init__(self, folder, name="torch-serve"):
        self.log = open(os.path.join(folder, name + ".log"), "w+")
        self.process = subprocess.Popen([sys.executable, LOOP, "serve"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.pid = None  # until it is ready

    def wait(self):
        if self.pid is None:
            self.pid = json.loads(self.process.stdout.readline())["pid"]

    def send(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, command):
        self.send(command)
        return self.answer()

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


class Torch:
    def __init__(self, cuscope, folder, report):
        self.cuscope, self.folder, self.report = cuscope, folder, report
        self.loop = Loop(folder)
        self.profile_path = os.path.join(folder, "torch-profile.json")
        self.profiled = subprocess.Popen([sys.executable, LOOP, "model", self.profile_path],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def trace(self, name, options=(), target=(), env=None):
        return Trace(self.cuscope, self.folder, name, options, target, env)

    def run(self):
        self.known()
        self.model()
        self.loop.wait()
        self.attached()
        self.attached_running()
        self.all_calls()
        self.killed()
        self.report.test("torch: the loop ended as it should", equal("status", 0, self.loop.close()))

    # ---- started by cuscope ----

    def known(self):
        path = os.path.join(self.folder, "torch-known.counts")
        trace = self.trace("torch-known", target=["--", sys.executable, LOOP, "known"],
                           env={"SAMPLE_COUNTS": path}).finish()
        problems = list(trace.problems())
        self.report.test("torch known: runs", problems)
        if problems:
            return
        with open(path) as text:
            counts = json.load(text)
        self.report.test("torch known: nothing lost", trace.lost())
        self.report.test("torch known: launches by kernel", self.by_part(counts["kernels"], trace))
        seen = {d: [v["count"], v["bytes"]]
                for d, v in trace.summary["transfers"]["directions"].items()}
        self.report.test("torch known: copies", equal("copies", counts["copies"], seen))
        mallocs = [c["size"] for c in trace.did_work() if c["name"] == "cudaMalloc"]
        self.report.test("torch known: device memory",
                         equal("cudaMalloc", counts["mallocs"], [len(mallocs), sum(mallocs)]))

    @staticmethod
    def by_part(expected, trace):
        """Launches by a part of the kernel's name, and no others."""
        seen = collections.Counter()
        for name, n in trace.launches().items():
            part = next((p for p in expected if without_blanks(p) in without_blanks(name)), name)
            seen[part] += n
        yield from difference("kernels", collections.Counter(expected), seen)
        yield from trace.unresolved()

    def model(self):
        """Kernels, grids and blocks as PyTorch's profiler saw them run in another process."""
        trace = self.trace("torch-model", target=["--", sys.executable, LOOP, "model"]).finish()
        problems = list(trace.problems())
        if self.profiled.wait() != 0:
            problems.append("the profiled run failed")
        self.report.test("torch model: runs", problems)
        if problems:
            return
        with open(self.profile_path) as text:
            profile = json.load(text)
        expected = collections.Counter((without_blanks(name), tuple(grid), tuple(block))
                                       for name, grid, block in profile)
        seen = collections.Counter(
            (without_blanks(c.get("kernel", "")), tuple(c["grid"]), tuple(c["block"]))
            for c in trace.did_work() if c.get("op") == "launch" and not c.get("captured"))
        self.report.test(f"torch model: {len(profile)} launches as the profiler saw them",
                         difference("kernels", expected, seen))
        self.report.test("torch model: nothing lost", trace.lost())
        self.report.test("torch model: all kernels have names", trace.unresolved())

    # ---- attached to ----

    def attach(self, name, *options):
        trace = self.trace(name, ["-p", str(self.loop.pid), *options])
        time.sleep(ATTACH_SECONDS)
        return trace

    def exact(self, name, *options, launches=20000):
        trace = self.attach(name, *options)
        self.loop.ask(f"launch {launches}")
        trace.finish(interrupt=True)
        problems = list(trace.problems())
        self.report.test(f"{name}: runs", problems)
        if not problems:
            self.report.test(f"{name}: launches", self.by_part({ADD: launches}, trace))
            self.report.test(f"{name}: nothing lost", trace.lost())
        return trace

    def attached(self):
        self.exact("torch-attached")
        self.exact("torch-attached-no-returns", "--no-returns")

    def attached_running(self):
        """In the middle of a loop: names come from handles that were made long before."""
        self.loop.send("busy 4")
        time.sleep(0.5)
        trace = self.trace("torch-running", ["-p", str(self.loop.pid), "--duration", "2s"]).finish()
        made = self.loop.answer()["launches"]
        problems = list(trace.problems())
        if not problems:
            seen = trace.launches()
            n = sum(n for name, n in seen.items() if ADD in name)
            if not 0 < n < made:
                problems.append(f"{n} of {made} launches seen in 2 of 4 s")
            problems += equal("other kernels", 0, sum(seen.values()) - n)
            problems += trace.unresolved()
            problems += trace.lost("no_entry")
        self.report.test("torch-running: launches with names", problems)

    def all_calls(self):
        """Getters are hooked, or unhooked again by the governor, which says so; launches stay."""
        trace = self.exact("torch-all-calls", "--all-calls", launches=100000)
        unhooked = {h.get("name") for h in trace.summary.get("missed", {}).get("hooks", ())
                    if h["kind"] == "unhooked"}
        known = set(trace.functions()) | unhooked
        self.report.test("torch-all-calls: getters seen",
                         [] if "cudaGetDevice" in known else ["no word of cudaGetDevice"])

    def killed(self):
        """kill -9 of cuscope leaves the program running, and it can be attached to again."""
        trace = self.trace("torch-killed", ["-p", str(self.loop.pid)])
        self.loop.send("busy 3")
        time.sleep(ATTACH_SECONDS)
        trace.process.kill()
        trace.process.wait()
        trace.log.close()
        self.report.test("torch-killed: the loop goes on",
                         [] if self.loop.answer()["launches"] else ["no launches"])
        self.exact("torch-attached-again")
