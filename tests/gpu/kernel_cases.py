# SPDX-License-Identifier: MIT
"""The kernel side on a real driver: system calls by name, inside of the calls of CUDA that made them; and hooks of one's own on NVIDIA's
libraries in PyTorch, against what the programs did."""

import collections
import json
import os
import re
import subprocess
import sys

from tracing import Trace, equal

HOOKED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_hooked.py")
HOOK_FILES = ("nccl", "cublas", "cudnn", "pytorch")
NAMED_PERCENT = 95
NUMBER = re.compile(r"0x[0-9a-f]+")
IOCTL = re.compile(r"^(RM_|UVM_|NV_|ioctl)")
# Calls of which each has to make some system call to the driver, and how often managed.cu allocates. Its first call initialises CUDA, so
# cuInit lies in a cudaMalloc.
OPENED, ALLOCATIONS = ("cuInit", "cudaMalloc"), 8
# Of managed.cu, too; and how much the driver moves with a page that is asked for.
MANAGED_BYTES, TURNS, LOOKED_AT_MOST = 64 << 20, 3, 2 << 20


def of_driver(trace):
    return [call for call in trace.calls if call.get("type") == "kernel_side"]


def of_cuda(trace, name):
    return [call for call in trace.calls if call["name"] == name and call.get("type") not in ("kernel_side", "hook")]


def inside(call, calls):
    """Those of `calls` that lie within the time of `call`, of its thread."""
    begin, end = call["ts"] * 1e3, call["ts"] * 1e3 + call["duration_us"]
    return [one for one in calls if one["tid"] == call["tid"] and begin <= one["ts"] * 1e3 and
            one["ts"] * 1e3 + one.get("duration_us", 0) <= end + 0.001]


def named(trace):
    ioctls = [call["name"] for call in of_driver(trace) if IOCTL.match(call["name"])]
    strange = collections.Counter(name for name in ioctls if NUMBER.search(name))
    percent = 100 * (1 - sum(strange.values()) / max(len(ioctls), 1))
    print(f"     {len(ioctls)} ioctls, {percent:.1f} % with a name; the others: {dict(strange.most_common(8))}", flush=True)
    if percent < NAMED_PERCENT:
        yield f"{percent:.1f} % of the ioctls have a name, should be {NAMED_PERCENT}: {strange.most_common(8)}"
    if len(ioctls) < 100:
        yield f"only {len(ioctls)} ioctls"


def nested(trace):
    calls = of_driver(trace)
    for name in OPENED:
        outer = of_cuda(trace, name)
        made = [inside(call, calls) for call in outer]
        if not outer:
            yield f"no {name}"
            continue
        first = next((some for some in made if some), [])
        print(f"     {len(outer)} {name}: {[len(some) for some in made]} calls in the driver, as {[one['name'] for one in first[:6]]}", flush=True)
        if not all(made):
            yield f"{sum(not some for some in made)} of {len(outer)} {name} have no call in the driver"
        if any(one["depth"] <= call["depth"] for call, some in zip(outer, made) for one in some):
            yield f"calls in the driver within {name} are not nested in it"


def sums(trace):
    """{event: (count, bytes)} of what is told in sums."""
    found = collections.defaultdict(lambda: [0, 0])
    for call in of_driver(trace):
        if call["name"].startswith("sum of "):
            found[call["name"][len("sum of "):]][0] += call["args"]["count"]
            found[call["name"][len("sum of "):]][1] += call["args"]["bytes"]
    return found


def managed(trace):
    """All pages go to the GPU in each turn, and all but those of the last come back; the host touches one more to look at it."""
    found = sums(trace)
    print(f"     of managed memory: {dict(found)}", flush=True)
    moved = {way: sum(n for name, (_, n) in found.items() if name.startswith("migration " + way)) for way in ("CPU to GPU0", "GPU0 to CPU")}
    yield from equal("bytes to the GPU", TURNS * MANAGED_BYTES, moved["CPU to GPU0"])
    back = moved["GPU0 to CPU"] - (TURNS - 1) * MANAGED_BYTES
    if not 0 < back <= LOOKED_AT_MOST:
        yield f"{moved['GPU0 to CPU']} bytes to the host, should be {(TURNS - 1) * MANAGED_BYTES} and those around one page"
    for name, least in (("CPU fault (write)", TURNS), ("CPU fault (read)", 1), ("GPU fault (GPU0)", TURNS)):
        if found[name][0] < least:
            yield f"{found[name][0]} of {name}"


class Kernel:
    def __init__(self, cuscope, folder, report, binaries):
        self.cuscope, self.folder, self.report, self.binaries = cuscope, folder, report, binaries

    def run(self, has_torch):
        self.driver()
        self.sums()
        if has_torch:
            self.hooks()

    def test(self, name, trace, *checks):
        problems = list(trace.problems())
        self.report.test(f"{name}: runs", problems)
        if problems:
            return
        self.report.test(f"{name}: nothing lost", trace.lost())
        for check in checks:
            self.report.test(f"{name}: {check.__name__}", check(trace))

    def driver(self):
        program = os.path.join(self.binaries, "managed")
        trace = Trace(self.cuscope, self.folder, "kernel-side", ["--kernel"], ["--", program], {"SAMPLE_COUNTS": "/dev/null"}).finish()
        self.test("kernel side", trace, named, nested, managed)

    def sums(self):
        """The report of a recording, which adds calls in the driver up by the call of CUDA."""
        path, program = os.path.join(self.folder, "kernel-side.cuscope"), os.path.join(self.binaries, "managed")
        done = subprocess.run([self.cuscope, "record", "--force", "--kernel", "-o", path, "--", program], capture_output=True, text=True,
                              check=False, env=dict(os.environ, SAMPLE_COUNTS="/dev/null"))
        report = subprocess.run([self.cuscope, "report", path, "kernel"], capture_output=True, text=True, check=False)
        with open(path + ".report.txt", "w") as out:
            out.write(done.stderr + report.stdout + report.stderr)
        rows = [line.split() for line in report.stdout.splitlines() if line.endswith(" cudaMalloc")]
        print(f"     {rows}", flush=True)
        self.report.test("kernel side: the report has what cudaMalloc asked of the driver",
                         [] if len(rows) == 1 and int(rows[0][6]) == ALLOCATIONS and int(rows[0][5]) >= ALLOCATIONS else [f"rows: {rows}"])

    def hooks(self):
        options = [word for name in HOOK_FILES for word in ("--hooks", name)]
        trace = Trace(self.cuscope, self.folder, "hooks", options, ["--", sys.executable, HOOKED]).finish()
        told = next((json.loads(line) for line in trace.text.splitlines() if line.startswith('{"products"')), None)
        self.test("hooks on PyTorch", trace)
        self.report.test("hooks on PyTorch: as often as called", self.counts(trace, told))

    @staticmethod
    def counts(trace, told):
        if not told:
            yield f"the program said nothing: {trace.text[:300]}"
            return
        calls = collections.Counter(call["name"] for call in trace.calls if call.get("type") == "hook")
        print(f"     {dict(calls.most_common(24))}", flush=True)
        products = sum(n for name, n in calls.items() if re.match(r"cublas(Lt)?\.cublas(Lt)?(Sgemm|Gemm|Matmul)", name))
        yield from equal("products by cuBLAS", told["products"], products)
        yield from equal("operators mm", told["products"], sum(n for name, n in calls.items() if name.endswith("mm::call")))
        runs = calls["cudnn.cudnnBackendExecute"] + calls["cudnn.cudnnConvolutionForward"]
        yield from equal("convolutions by cuDNN", told["convolutions"], runs)
        sums = [call for call in trace.calls if call["name"] == "nccl.ncclAllReduce"]
        yield from equal("sums by NCCL", told["sums"], len(sums))
        yield from equal("bytes of each", [told["bytes"]] * len(sums), [call["args"]["bytes"] for call in sums])
        for hook in trace.summary.get("missed", {}).get("hooks", ()):
            print(f"     {hook}", flush=True)
