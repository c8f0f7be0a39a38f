# SPDX-License-Identifier: MIT
"""
Metrics of a GPU by NVML's GPM while PyTorch does one thing: what each load has to show, what nvidia-smi says of the
same seconds, and what findings make of it. Needs a cuscope that is linked dynamically: a static one cannot load NVML.
"""

import json
import os
import statistics
import subprocess
import sys
import time

LOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "metrics_load.py")
SECONDS = 8
SMI = ("utilization.gpu", "clocks.sm")

# By load: least and most of each metric, in percent, while the GPU was busy; and what findings say that bounds it. On an H200
# bf16 had 96 SM, 93 tensor, 16 DRAM; fp32 97 SM, 77 FP32, 5 DRAM; the sum 99 SM, 87 DRAM.
LOADS = {
    "bf16": ({"SM active": (80, 100), "Tensor cores": (70, 100), "FP32 pipe": (0, 10), "DRAM bandwidth": (0, 50)},
             "its tensor cores"),
    "fp32": ({"SM active": (80, 100), "Tensor cores": (0, 5), "FP32 pipe": (55, 100), "DRAM bandwidth": (0, 40)},
             "its FP32 pipes, while the tensor cores are idle"),
    "add": ({"SM active": (80, 100), "Tensor cores": (0, 5), "DRAM bandwidth": (65, 100)}, "its memory"),
}
# Percent of a CPU. Ten readings a second are 0.24 ms each, metric 1 takes 0.9 to 1.8 ms once a second, and one of some 120
# readings took 27 ms: see docs/gpu.md.
COST = 1.5
CLOSE = 5  # percentage points, of nvidia-smi's number


def mean(numbers):
    return sum(numbers) / len(numbers) if numbers else None


class Load:
    """One load under `cuscope record`, and nvidia-smi beside it for the time in which it is steady."""

    def __init__(self, cuscope, folder, name):
        self.cuscope, self.path = cuscope, os.path.join(folder, f"metrics-{name}.cuscope")
        self.smi = []
        self.status, self.said = self.run(name)

    def run(self, name):
        ready = self.path + ".ready"
        record = subprocess.Popen([self.cuscope, "record", "--force", "-o", self.path, "--gpu-metrics", "--", sys.executable, LOAD,
                                   name, str(SECONDS), ready], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while record.poll() is None and not os.path.exists(ready):
            time.sleep(0.05)
        time.sleep(2)
        end = time.monotonic() + SECONDS - 4
        while record.poll() is None and time.monotonic() < end:
            out = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=" + ",".join(SMI), "--format=csv,noheader,nounits"],
                                 capture_output=True, text=True, check=False).stdout.strip()
            self.smi += [dict(zip(SMI, map(float, out.split(","))))] if out else []
            time.sleep(0.2)
        said = record.communicate(timeout=120)[0]
        return record.returncode, said

    def report(self, name):
        done = subprocess.run([self.cuscope, "report", self.path, name, "--format", "json"], capture_output=True, text=True,
                              check=False)
        return json.loads(done.stdout)

    def shares(self):
        return {row["Metric"]: row["While Busy (%)"] for row in self.report("gpu_metrics")["shares"] if row["GPU"] == 0}

    def steady(self):
        """An engine's use in the middle of the run, as nvidia-smi has it: how long the load takes to begin differs."""
        done = subprocess.run([self.cuscope, "export", self.path, "--format", "jsonl", "-o", "-"], capture_output=True,
                              text=True, check=False)
        samples = [json.loads(line) for line in done.stdout.splitlines() if '"gpu_metrics"' in line]
        # what was read in a second that was cut short has none
        samples = [sample["graphics_percent"] for sample in samples if sample["gpu"] == 0 and "graphics_percent" in sample]
        middle = samples[len(samples) // 3:-len(samples) // 6]
        return statistics.median(middle) if middle else None


class Metrics:
    def __init__(self, cuscope, folder, report):
        self.cuscope, self.folder, self.report = cuscope, folder, report

    def run(self):
        for name, (limits, finding) in LOADS.items():
            load = Load(self.cuscope, self.folder, name)
            problems = [] if load.status == 0 else [f"status {load.status}: {load.said[-300:]}"]
            self.report.test(f"metrics {name}: runs", problems)
            if problems:
                continue
            self.report.test(f"metrics {name}: what the load shows", self.in_limits(load, limits))
            self.report.test(f"metrics {name}: as nvidia-smi", self.as_smi(load))
            self.report.test(f"metrics {name}: the finding", self.found(load, finding))
            self.report.test(f"metrics {name}: cost", self.cheap(load))

    def in_limits(self, load, limits):
        shares = load.shares()
        if not shares:
            yield "there are no metrics: is this cuscope a static one?"
        for metric, (least, most) in limits.items():
            if metric not in shares:
                yield f"{metric} is not told"
            elif not least <= shares[metric] <= most:
                yield f"{metric}: {shares[metric]:.1f} %, should be {least} to {most}"

    def as_smi(self, load):
        theirs, ours = mean([row["utilization.gpu"] for row in load.smi]), load.steady()
        if theirs is None or ours is None:
            yield f"nvidia-smi: {theirs}, cuscope: {ours}"
        elif abs(theirs - ours) > CLOSE:
            yield f"busy: {ours:.1f} %, nvidia-smi has {theirs:.1f}"

    def found(self, load, finding):
        found = [row["Finding"] for row in load.report("findings")["findings"] if row["Cause"] == "bound"]
        if len(found) != 1 or not found[0].startswith(f"what bounds kernels: {finding} ("):
            yield f"{found}, should be {finding}"

    def cheap(self, load):
        done = subprocess.run([self.cuscope, "info", "--json", load.path], capture_output=True, text=True, check=False)
        info = json.loads(done.stdout)
        told = info.get("gpu_metrics")
        if not told:
            yield "info tells of no metrics"
            return
        percent = 100 * told["cpu_ns"] / info["duration_ns"]
        print(f"     {percent:.3f} % of a CPU, {told['gpm_samples']} samples, {told['missed_moments']} moments missed", flush=True)
        if percent > COST:
            yield f"reading took {percent:.2f} % of a CPU"
        if told["missed_moments"] > told["gpm_samples"] / 20:
            yield f"{told['missed_moments']} moments of {told['gpm_samples']} were missed"
