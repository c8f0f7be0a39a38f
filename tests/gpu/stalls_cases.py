# SPDX-License-Identifier: MIT
"""Why kernels wait, on programs that are known to wait for one thing (stalls.cu): started, entered while they run, and beside a
device that is reset; what it costs; and that results stay what they were."""

import json
import os
import re
import statistics
import subprocess
import time

SECONDS = 5
# By kind: one of these is the reason that most samples of waiting have.
REASONS = {
    "chase": ("long_scoreboard",),
    "bank": ("short_scoreboard", "mio_throttle"),
    "barrier": ("barrier",),
    "tensor": ("math_pipe_throttle",),
}
LEAST = 40  # percent of the kernel's samples
MOST_FOREIGN = 5  # percent of a graph's
ISSUED = ("selected", "not_selected")
# A started program of empty kernels, launched as fast as they can be: what its launches a second may lose of those under --gpu.
COST = 5


SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stalls.cu")


def body(kind):
    """The lines of a kernel."""
    with open(SOURCE) as source:
        lines = source.read().split("\n")
    begin = next(i for i, line in enumerate(lines) if line.startswith(f"__global__ void {kind}("))
    return range(begin + 1, lines.index("}", begin) + 2)


class Stalls:
    def __init__(self, cuscope, folder, report, binaries):
        self.cuscope, self.folder, self.report = cuscope, folder, report
        self.program = os.path.join(binaries, "stalls")

    def run(self):
        for kind in REASONS:
            self.kind(kind)
        self.graph()
        self.entered()
        self.reset()
        self.cost()

    def record(self, name, options, command):
        """(status, what was said, path)"""
        path = os.path.join(self.folder, f"stalls-{name}.cuscope")
        done = subprocess.run([self.cuscope, "record", "--force", "-o", path, *options, *command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        return done.returncode, done.stdout, path

    def reported(self, path):
        done = subprocess.run([self.cuscope, "report", path, "stalls", "--format", "json"], capture_output=True, text=True, check=True)
        print(done.stderr.rstrip())
        return json.loads(done.stdout)

    def windows(self, path):
        """The events of whole windows, and the samples of kernels in all."""
        done = subprocess.run([self.cuscope, "export", path, "--format", "jsonl", "-o", "-"], capture_output=True, text=True,
                              check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines() if '"type":"stall"' in line]
        return ([line for line in lines if "kernel" not in line],
                sum(line["samples"] for line in lines if "kernel" in line))

    def told(self, path, kind, started=True):
        """What is wrong with what is told of the kernel of that name. One that was entered has loaded its module before."""
        tables = self.reported(path)
        rows = [row for row in tables["reasons"] if row["Name"].startswith(kind + "(")]
        for row in rows[:6]:
            print(f"       {row['Of Kernel (%)']:5.1f} % {row['Reason']}: {row['The Kernel']}")
        waits = [row for row in rows if row["Reason"] not in ISSUED]
        if not waits:
            yield f"no samples of {kind}"
            return
        if waits[0]["Reason"] not in REASONS[kind]:
            yield f"{kind} waits for {waits[0]['Reason']} most often"
        if waits[0]["Of Kernel (%)"] < LEAST:
            yield f"only {waits[0]['Of Kernel (%)']} % of its samples"
        yield from self.lines(tables["places"], kind, waits[0]["Reason"], started)

    def lines(self, places, kind, reason, started):
        place = next(row for row in places if row["Name"].startswith(kind + "(") and row["Reason"] == reason)
        print(f"       most at {place['Offset']}, {place['Line']}")
        if not place["Offset"]:
            yield "no offset"
        if started and kind != "tensor":  # whose line is in the toolkit's mma.hpp
            path, _, line = (place["Line"] or "").rpartition(":")
            if os.path.basename(path) != "stalls.cu" or not int(line or 0) in body(kind):
                yield f"it waits at {place['Line']}, not in stalls.cu, lines {body(kind)}"

    def counted(self, path, most_foreign=100):
        windows, samples = self.windows(path)
        whole = sum(window["samples"] for window in windows)
        known = samples + sum(window.get("dropped", 0) + window.get("foreign", 0) for window in windows)
        costs = [window["cost_us"] / 1000 for window in windows]
        print(f"       {len(windows)} windows, {whole} samples, {samples} of kernels, CUPTI's calls {statistics.median(costs or [0]):.2f} ms "
              f"in the middle, {max(costs or [0]):.2f} ms at most")
        if not windows:
            yield "no windows"
        elif not 0.9 * whole <= known <= 1.1 * whole:
            yield f"of {whole} samples {known} are told of"
        foreign = sum(window.get("foreign", 0) for window in windows)
        if 100 * foreign > most_foreign * whole:
            yield f"of {whole} samples {foreign} are nobody's"

    def kind(self, kind):
        status, said, path = self.record(kind, ["--stalls"], ["--", self.program, kind, str(SECONDS)])
        self.report.test(f"stalls {kind}: runs", [f"status {status}: {said}"] if status or "no stall reasons" in said else [])
        self.report.test(f"stalls {kind}: the reason", self.told(path, kind))
        self.report.test(f"stalls {kind}: all samples are told of", self.counted(path))

    def graph(self):
        """Kernels of a graph, which the program makes at once: it waits until sampling was enabled."""
        status, said, path = self.record("graph", ["--stalls"], ["--", self.program, "graph", str(SECONDS)])
        self.report.test("stalls graph: runs", [f"status {status}: {said}"] if status else [])
        self.report.test("stalls graph: the reason", self.told(path, "barrier"))
        self.report.test("stalls graph: all samples are told of", self.counted(path, MOST_FOREIGN))

    def entered(self):
        """Beside one that was left alone: the same result."""
        alone = subprocess.run([self.program, "chase", "2"], capture_output=True, text=True, check=True).stdout
        running = subprocess.Popen([self.program, "chase", str(3 * SECONDS)], stdout=subprocess.PIPE, text=True)
        time.sleep(2)
        status, said, path = self.record("entered", ["--stalls", "--duration", f"{SECONDS}s"], ["-p", str(running.pid)])
        out = running.communicate(timeout=60)[0]
        print(f"       {said.strip()}")
        rates = [int(rate) for rate in re.findall(r"launches (\d+)", out)]
        print(f"       launches a second: {rates}")
        self.report.test("stalls entered: runs", [f"status {status}: {said}"] if status or running.returncode else [])
        self.report.test("stalls entered: the reason", self.told(path, "chase", started=False))
        same = re.findall("result.*", alone) == re.findall("result.*", out)
        self.report.test("stalls entered: the result is the same", [] if same else [alone, out])

    def reset(self):
        status, said, path = self.record("reset", ["--stalls"], ["--", self.program, "reset", str(SECONDS)])
        print(f"       {said.strip()}")
        self.report.test("stalls reset: the program goes on", [f"status {status}: {said}"] if status else [])

    def rate(self, options):
        status, said, _ = self.record("cost", options, ["--", self.program, "empty", str(2 * SECONDS)])
        rates = [int(rate) for rate in re.findall(r"launches (\d+)", said)]
        return statistics.median(rates[2:]) if status == 0 and len(rates) > 4 else None

    def cost(self):
        """In turns, so that the machine's wandering is in both."""
        rates = [(self.rate(["--gpu"]), self.rate(["--stalls"])) for _ in range(2)]
        print(f"       launches a second with --gpu and with --stalls: {rates}")
        if not all(map(all, rates)):
            self.report.test("stalls: what they cost", ["a run failed"])
            return
        lost = 100 * (1 - statistics.mean(with_stalls / without for without, with_stalls in rates))
        self.report.test(f"stalls: what they cost, {lost:.1f} % of launches", [] if lost < COST else [f"{lost:.1f} %"])
