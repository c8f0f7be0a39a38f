# SPDX-License-Identifier: MIT
"""GPU times: what ran, against what the programs counted, the events' and the GPU's own clock, and
PyTorch's profiler; attaching to what runs, and leaving it as it was."""

import collections
import glob
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time

import programs
from torch_cases import Loop
from tracing import Recorded, difference, equal, without_blanks

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_models.py")
LAUNCH_NS = 20000
CLOCKS_NS = 100000  # what is kept: of clocks of host and GPU
NEAR = 0.02, 2000  # a duration may be off by the larger of these: a share, and ns
IN_FLIGHT = 100  # ten launches of the graph of ten nodes
CUPTI = "/opt/nvidia/nsight-compute/*/host/target-linux-x64/libcupti.so.*"
KERNELS = """
    SELECT k.start, k.end, name.value, r.start, r.end, k.graphNodeId FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
    JOIN StringIds AS name ON name.id = k.demangledName
    LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r
        ON r.correlationId = k.correlationId AND r.globalTid >> 24 = k.globalPid >> 24
    ORDER BY k.start"""
COPIES = "SELECT copyKind, bytes, start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY"
DIRECTIONS = {1: "H2D", 2: "D2H", 8: "D2D", 9: "H2H", 10: "P2P"}


def close(duration, truth):
    share, ns = NEAR
    return abs(duration - truth) <= max(share * truth, ns)


class Kernel(collections.namedtuple("Kernel", "begin end name call_begin call_end node")):
    @property
    def ns(self):
        return self.end - self.begin


class Base:
    """A trace's activities, by way of the SQLite export."""

    def __init__(self, trace):
        path = trace.path + ".sqlite"
        trace.ask("export", trace.path + ".cuscope", "-o", path, "--force")
        self.base = sqlite3.connect(path)
        self.tables = {name for (name,) in self.base.execute("SELECT name FROM sqlite_master")}

    def rows(self, table, query):
        return self.base.execute(query).fetchall() if table in self.tables else []

    def kernels(self):
        return [Kernel(*row) for row in self.rows("CUPTI_ACTIVITY_KIND_KERNEL", KERNELS)]

    def copies(self):
        return self.rows("CUPTI_ACTIVITY_KIND_MEMCPY", COPIES)


def busy_in_steps(trace):
    """By gaps, from the middle one of the kernels on. Its Busy is of all time from the first work on, and from the copies of a model's
    parameters to its first step a host can take longer than 60 steps do."""
    kernels = Base(trace).kernels()
    if not kernels:
        return -1
    said = trace.ask("report", trace.path + ".cuscope", "gaps", "--format", "json", "--from", f"{kernels[len(kernels) // 2].begin}ns")
    gpus = json.loads(said)["gpus"] if said else []
    return gpus[0]["Busy (%)"] if gpus else -1


def ran(counts):
    """Kernels by name as the program counted them: launched, and as nodes of graphs."""
    expected = collections.Counter()
    for (name, captured), n in counts.counter("launch", lambda line: (line["kernel"], line["captured"])).items():
        expected[without_blanks(name)] += 0 if captured else n
    for name, n in counts.counter("node", lambda line: line["kernel"]).items():
        expected[without_blanks(name)] += n
    return +expected


def joined(kernels, attached=False):
    """Every kernel has its call, and none began before it by more than clocks differ. Where cuscope came later, graphs that were on their way
    have none."""
    alone = [k.name for k in kernels if k.call_begin is None]
    if attached and len(alone) <= IN_FLIGHT:
        alone = []
    if alone:
        yield f"{len(alone)} of {len(kernels)} kernels without their call: {alone[0]}"
    early = [k for k in kernels if k.call_begin is not None and k.begin < k.call_begin - CLOCKS_NS]
    for kernel in early[:3]:
        yield f"{kernel.name} began {kernel.call_begin - kernel.begin} ns before its call"
    backward = [k for k in kernels if k.end <= k.begin]
    if backward:
        yield f"{len(backward)} kernels end before they begin"


def moved(counts, copies):
    """Copies by direction and size. Which way a default copy went only the GPU's side tells, and a copy from a
    device to itself is none between devices there: their sizes are compared without the direction."""
    lines = [c for c in counts.of("copy") if not c["captured"]] + counts.of("copy_node")
    unclear = {c["bytes"] for c in lines if c["direction"] in ("default", "P2P")}
    expected, seen = collections.Counter(), collections.Counter()
    for line in lines:
        direction = None if line["bytes"] in unclear else line["direction"]
        expected[direction, line["bytes"]] += line.get("times", 1)
    for kind, size, _begin, _end in copies:
        seen[None if size in unclear else DIRECTIONS.get(kind, kind), size] += 1
    yield from difference("copies", expected, seen)


def machine(base):
    """The GPUs of the machine, as nvidia-smi tells them."""
    out = subprocess.run(["nvidia-smi", "--query-gpu=name,uuid,pci.bus_id,memory.total", "--format=csv,noheader,nounits"],
                         capture_output=True, text=True, check=True).stdout
    expected = [[word.strip() for word in line.split(",")] for line in out.splitlines()]
    seen = base.rows("TARGET_INFO_GPU", "SELECT name, uuid, busLocation, totalMemory >> 20, smCount, computeMajor, "
                                        "maxRegistersPerSm FROM TARGET_INFO_GPU ORDER BY id")
    yield from equal("GPUs", [(name, uuid, bus[4:].upper(), int(mib)) for name, uuid, bus, mib in expected],
                     [(name, uuid, bus.upper(), mib) for name, uuid, bus, mib, *_rest in seen])
    for name, *_rest, multiprocessors, major, registers in seen:
        if name == "NVIDIA H200" and multiprocessors is not None:  # a static cuscope does not know
            yield from equal("of an H200", (132, 9, 65536), (multiprocessors, major, registers))


class Gpu:
    def __init__(self, cuscope, folder, report, binaries):
        self.cuscope, self.folder, self.report, self.binaries = cuscope, folder, report, binaries

    def record(self, name, command, options=(), env=None):
        return Recorded(self.cuscope, self.folder, name, ["--gpu", *options], ["--", *command], env).finish()

    def problems(self, trace):
        yield from trace.problems()
        for hook in trace.summary.get("missed", {}).get("hooks", ()):
            if hook["kind"] == "no_gpu_times":
                yield f"no GPU times: {hook}"

    def run(self, torch):
        for program in ("launches-shared", "launches-static", "threads-shared", "threads-ptds", "graphs-shared",
                        "copies-shared", "driver"):
            self.counted(program)
        self.ends()
        self.clocks()
        self.versions()
        if torch:
            self.profiler()
            self.models()
            self.attached(torch)

    def counted(self, program, name=None, options=()):
        name = name or "gpu-" + program
        path = os.path.join(self.folder, name + ".counts")
        trace = self.record(name, [os.path.join(self.binaries, program)], options, {"SAMPLE_COUNTS": path})
        problems = list(self.problems(trace))
        self.report.test(f"{name}: runs", problems)
        if problems:
            return
        counts, base = programs.Counts(path), Base(trace)
        kernels = base.kernels()
        seen = collections.Counter(without_blanks(k.name) for k in kernels)
        self.report.test(f"{name}: kernels that ran", difference("kernels", ran(counts), seen))
        self.report.test(f"{name}: kernels and their calls", joined(kernels))
        self.report.test(f"{name}: copies that ran", moved(counts, base.copies()))
        self.report.test(f"{name}: nothing lost", trace.lost())

    def ends(self):
        """However a program ends, the agent's last flush comes before CUPTI's destructors: no program
        is harmed, and each launch has its kernel or is counted as not recorded."""
        program = os.path.join(self.binaries, "ends")
        for how, times in (("wait", 5), ("return", 20), ("static", 20), ("thread", 20), ("now", 5), ("kill", 5)):
            harmed, unequal, without = [], [], []
            codes = {subprocess.run([program, how], check=False, stderr=subprocess.DEVNULL).returncode for _ in range(5)}
            alone = {128 - code if code < 0 else code for code in codes}
            if how == "thread":  # dies by itself: libcudart is taken down under the thread that launches
                alone.add(0)
            for turn in range(times):
                trace = self.record(f"gpu-ends-{how}", [program, how])
                launches = trace.summary.get("launches", {}).get("kernels", 0)
                lost = trace.summary.get("missed", {}).get("lost", {}).get("gpu_not_recorded", -1)
                kernels = len(Base(trace).kernels())
                harmed += [] if trace.status in alone else [f"status of turn {turn}: {trace.status}, alone {sorted(alone)}"]
                unequal += equal(f"kernels and launches without in turn {turn}", launches, kernels + lost)
                without += equal(f"launches without in turn {turn}", 0, lost) if how == "wait" else ()
                print(f"     gpu-ends-{how}: {launches} launches, {kernels} kernels", flush=True)
            self.report.test(f"gpu-ends-{how}: as without cuscope", harmed)
            self.report.test(f"gpu-ends-{how}: launches and kernels add up", unequal)
            self.report.test(f"gpu-ends-{how}: all that was waited for is there", without)

    def clocks(self):
        """Durations by the GPU's own clock, and by events around the kernels."""
        path = os.path.join(self.folder, "gpu-timed.truth")
        trace = self.record("gpu-timed", [os.path.join(self.binaries, "timed"), path])
        problems = list(self.problems(trace))
        self.report.test("gpu-timed: runs", problems)
        if problems:
            return
        with open(path) as lines:
            truths = [json.loads(line) for line in lines]
        kernels = [kernel for kernel in Base(trace).kernels() if kernel.name.startswith("spin")][1:]  # the first warms up
        self.report.test("gpu-timed: the machine's GPUs", machine(Base(trace)))
        self.report.test("gpu-timed: kernels", equal("kernels", len(truths), len(kernels)))
        self.report.test("gpu-timed: as the GPU's clock says", [
            f"{kernel.ns} ns, by the kernel itself {truth['kernel']}"
            for kernel, truth in zip(kernels, truths) if not close(kernel.ns, truth["kernel"])])
        self.report.test("gpu-timed: as events say", self.events(kernels, truths))

    @staticmethod
    def events(kernels, truths):
        """Medians of 20: between two events lies what the GPU waits for the kernel's launch as well, 2 to 11 us
        as the host was fast or slow."""
        by_length = collections.defaultdict(list)
        for kernel, truth in zip(kernels, truths):
            by_length[truth["length"]].append((kernel.ns, truth["event"]))
        for length, pairs in by_length.items():
            mine, event = (statistics.median(column) for column in zip(*pairs))
            if length >= 500000 and not (close(mine, event) or 0 < event - mine <= LAUNCH_NS):
                yield f"{mine} ns, by events {event}"

    def versions(self):
        """Other CUPTIs, where the machine has them: those of the driver's major version and the one before work,
        older ones are refused (with this driver they crash programs, or count wrong)."""
        paths = {path.rsplit("libcupti.so.", 1)[1]: path for path in sorted(glob.glob(CUPTI))}
        for version, path in paths.items():
            if version.startswith(("12.", "13.")):
                self.counted("driver", "gpu-cupti-" + version, ["--cupti", path])
            elif version.startswith("11."):
                trace = self.record("gpu-cupti-" + version, [os.path.join(self.binaries, "driver")],
                                    ["--cupti", path], {"SAMPLE_COUNTS": "/dev/null"})
                self.report.test(f"gpu-cupti-{version}: is refused", trace.broken or (
                    [] if trace.status == 1 and "does not fit" in trace.text else [trace.text[-500:]]))
        if not paths:
            print("     other CUPTIs were not tried: there are none here")

    def profiler(self):
        """The same steps, in processes before and after under PyTorch's profiler: medians by kernel. The GPU's clock may
        differ between the two by more than cuscope is allowed to; what lies between them is right."""
        path = os.path.join(self.folder, "gpu-profile.json")
        truths, problems = [], []
        self.profiled(path, truths, problems)
        trace = self.record("gpu-torch", [sys.executable, MODEL, "small", "50"])
        self.profiled(path, truths, problems)
        problems += self.problems(trace)
        self.report.test("gpu-torch: runs", problems)
        if problems:
            return
        truth, later = truths
        kernels = Base(trace).kernels()
        self.report.test("gpu-torch: kernels and their calls", joined(kernels))
        self.report.test("gpu-torch: nothing lost", trace.lost())
        seen = collections.defaultdict(list)
        for kernel in kernels:
            seen[without_blanks(kernel.name)].append(kernel.ns)
        problems, compared = [], 0
        for name, durations in truth.items():
            mine = seen.get(without_blanks(name), [])
            compared += len(mine)
            if len(mine) != len(durations):
                problems.append(f"{len(mine)} of {len(durations)} runs of {name}")
                continue
            median, around = statistics.median(mine), sorted(map(statistics.median, (durations, later.get(name, durations))))
            if not around[0] < median < around[1] and not any(close(median, one) for one in around):
                problems.append(f"{median} ns, profiler {around[0]} and {around[1]}: {name}")
        self.report.test(f"gpu-torch: {compared} durations as the profiler has them", problems)

    @staticmethod
    def profiled(path, truths, problems):
        ran = subprocess.run([sys.executable, MODEL, "small", "50", path], capture_output=True, text=True, check=False)
        if ran.returncode:
            problems.append("the profiled run failed: " + ran.stderr[-300:])
            return
        with open(path) as text:
            truths.append(json.load(text))

    def models(self):
        """What gaps and findings say of a model that waits for launches and one that waits for the GPU."""
        for size, steps, wanted in (("small", "200", (0, 50)), ("large", "60", (90, 100.1))):
            trace = self.record(f"gpu-{size}", [sys.executable, MODEL, size, steps])
            problems = list(self.problems(trace))
            self.report.test(f"gpu-{size}: runs", problems)
            for name in ("gaps", "findings", "overlap", "cuda_gpu_kern_sum", "cuda_kern_exec_sum", "overview"):
                text = trace.ask("report", trace.path + ".cuscope", name)
                with open(os.path.join(self.folder, f"gpu-{size}.{name}.txt"), "w") as out:
                    out.write(text)
            busy = -1 if trace.broken else busy_in_steps(trace)
            self.report.test(f"gpu-{size}: gaps says busy for {wanted} % in the later steps", trace.broken or (
                [] if wanted[0] <= busy < wanted[1] else [f"busy for {busy} %"]))

    # ---- attached ----

    @staticmethod
    def rate(loop, seconds=2.0):
        answer = loop.ask(f"busy {seconds}")
        return answer["seconds"] / answer["launches"] * 1e6

    @classmethod
    def beside(cls, loop, control):
        """us a launch, and that divided by a loop's that nobody traces: medians of short windows in
        turns, since the machine itself gets slower and faster."""
        pairs = [(cls.rate(loop, 0.3), cls.rate(control, 0.3)) for _ in range(12)]
        return (statistics.median(mine for mine, _ in pairs),
                statistics.median(mine / other for mine, other in pairs))

    def attached(self, torch):
        """us a launch before, while and after; nothing of the agent's runs on afterwards. A hook that stayed would
        cost each of the three rounds afterwards a quarter at least; two loops alone drift apart by a tenth."""
        control = Loop(self.folder, "torch-control")
        torch.loop.wait()
        control.wait()
        before, as_control = self.beside(torch.loop, control)
        trace = Recorded(self.cuscope, self.folder, "gpu-attached", ["--gpu"], ["-p", str(torch.loop.pid)])
        time.sleep(2.5)
        during = self.rate(torch.loop)
        launches = torch.loop.ask("launch 20000")["launches"]
        trace.finish(interrupt=True)
        after, then_as_control = min((self.beside(torch.loop, control) for _ in range(3)), key=lambda pair: pair[1])
        control.close()
        problems = list(self.problems(trace))
        self.report.test("gpu-attached: runs", problems)
        print(f"     us a launch: {before:.2f} before, {during:.2f} attached, {after:.2f} after; times that of a loop "
              f"beside it: {as_control:.3f} before, {then_as_control:.3f} after", flush=True)
        if problems:
            return
        kernels = Base(trace).kernels()
        self.report.test("gpu-attached: kernels and their calls", joined(kernels))
        if len(kernels) < launches:
            self.report.test("gpu-attached: kernels", [f"{len(kernels)} kernels, {launches} launches at least"])
        # work that was asked for before the attach has no call
        self.report.test("gpu-attached: nothing lost", trace.lost("no_entry", "gpu_no_call"))
        self.report.test("gpu-attached: as fast as before", [] if then_as_control < as_control * 1.15 else [
            f"{as_control:.3f} times a loop beside it before, {then_as_control:.3f} after"])
        self.report.test("gpu-attached: no thread stays", self.threads(torch))
        self.killed(torch)

    @staticmethod
    def threads(torch):
        for path in glob.glob(f"/proc/{torch.loop.pid}/task/*/comm"):
            with open(path) as comm:
                name = comm.read().strip()
            if name.startswith("cuscope"):
                yield f"a thread {name} is still there"

    def killed(self, torch):
        """kill -9 of cuscope: the agent leaves by itself, and can be asked in again."""
        trace = Recorded(self.cuscope, self.folder, "gpu-killed", ["--gpu"], ["-p", str(torch.loop.pid)])
        torch.loop.send("busy 4")
        time.sleep(2.5)
        trace.process.kill()
        trace.process.wait()
        trace.log.close()
        self.report.test("gpu-killed: the loop goes on", [] if torch.loop.answer()["launches"] else ["no launches"])
        self.report.test("gpu-killed: no thread stays", self.threads(torch))
        trace = Recorded(self.cuscope, self.folder, "gpu-again", ["--gpu"], ["-p", str(torch.loop.pid)])
        time.sleep(2.5)
        torch.loop.ask("launch 5000")
        trace.finish(interrupt=True)
        problems = list(self.problems(trace))
        kernels = [] if problems else Base(trace).kernels()
        self.report.test("gpu-again: 5000 kernels", problems or equal("kernels", 5000, len(kernels)))
        self.graphs(torch)

    def graphs(self, torch):
        """A graph that was made before cuscope came outlives its going; a wrong leave is a GPU fault."""
        torch.loop.ask("graph 1")
        before = torch.loop.ask("graph 2")
        for turn in range(5):
            trace = Recorded(self.cuscope, self.folder, "gpu-graph", ["--gpu"], ["-p", str(torch.loop.pid)])
            torch.loop.send("graph 4")
            time.sleep(2.5)
            trace.finish(interrupt=True)
            replays = torch.loop.answer()["launches"]
            problems = list(self.problems(trace))
            kernels = [] if problems else Base(trace).kernels()
            self.report.test(f"gpu-graph {turn}: nodes of the graph have its launch", problems or joined(kernels, attached=True))
            self.report.test(f"gpu-graph {turn}: nodes", problems or (
                [] if 0 < len(kernels) <= replays * 10 else [f"{len(kernels)} nodes in {replays} replays"]))
        after = torch.loop.ask("graph 2")
        print("     us a replay: "
              f"{before['seconds'] / before['launches'] * 1e6:.2f} before, "
              f"{after['seconds'] / after['launches'] * 1e6:.2f} after", flush=True)
        self.report.test("gpu-graph: the loop goes on", [] if after["launches"] else ["no replays"])
