# SPDX-License-Identifier: MIT
"""Calls that are recorded inside of processes, with NVIDIA's own libraries: PyTorch trainings while it goes on and off, a program
with threads, signals and children, exceptions, and each function of the libraries by itself.

INSIDE_SECONDS: how long the training is traced on and off (60). CALL_ALL: the program of tests/divert, where it was brought along.
"""

import collections
import json
import os
import re
import subprocess
import sys
import threading
import time

import library_code
import programs
from tracing import Recorded, Trace, difference, equal

HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN = os.path.join(HERE, "torch_train.py")
DIVERTED = re.compile(r"(\d+) functions of (\S+) are recorded inside of process (\d+) from (\d+) ms on; its threads were stopped for ([\d.]+) ms")
KEPT = re.compile(r"cuscope: (.* (?:keeps|kept) its probes.*)")
TOLD = re.compile(r"(\d+) calls of (\d+) functions were recorded inside of (\d+) process\S*; threads were stopped for ([\d.]+) ms")
INSIDE_PARTS = ("inside-program", "inside-torch", "inside-ddp", "inside-libraries")
CHUNK = 25  # steps between two looks at the losses
IDLE_SECONDS = 1.5
INSIDE_SECONDS, QUIET_SECONDS = 20, 1.5
CALL_ALL_SECONDS = 240
PORT = 29531
# NCCL must not use multicast here: see its manual.
NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}


class Training:
    """torch_train.py, one process or two."""

    def __init__(self, folder, name, ranks=0, port=0):
        self.processes, self.logs = [], []
        for rank in range(max(ranks, 1)):
            self.logs.append(os.path.join(folder, f"{name}-{rank}.log"))
            log = open(self.logs[-1], "w")
            words = [str(rank), str(port)] if ranks else []
            self.processes.append(subprocess.Popen([sys.executable, TRAIN, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                   stderr=log, text=True, env=dict(os.environ, **NO_MULTICAST)))

    def wait(self):
        self.pids = [about["pid"] for about in self.answers()]

    def answers(self):
        lines = [process.stdout.readline() for process in self.processes]
        if not all(lines):
            raise RuntimeError("a training ended: " + " / ".join(self.said()))
        return [json.loads(line) for line in lines]

    def said(self):
        for path in self.logs:
            with open(path) as log:
                yield log.read()[-400:]

    def send(self, steps):
        for process in self.processes:
            process.stdin.write(f"train {steps}\n")
            process.stdin.flush()

    def close(self):
        for process in self.processes:
            process.stdin.close()
        return [process.wait(timeout=60) for process in self.processes]

    def kill(self):
        for process in self.processes:
            process.kill()
            process.wait()


class Twins:
    """Two trainings with the same seed, of which cuscope comes to the first: their losses, step by step, in a thread of its own."""

    def __init__(self, traced, alone):
        self.traced, self.alone = traced, alone
        self.steps, self.problems, self.over = 0, [], False

    def train(self, steps):
        for training in (self.traced, self.alone):
            training.send(steps)
        mine, others = self.traced.answers(), self.alone.answers()
        for rank, (losses, expected) in enumerate(zip(mine, others)):
            first = next((i for i in range(steps) if losses[i] != expected[i]), None)
            if first is not None:
                self.problems.append(f"process {rank}, step {self.steps + first}: {float.fromhex(losses[first])!r}, "
                                     f"alone {float.fromhex(expected[first])!r}")
        self.steps += steps
        self.last = float.fromhex(mine[0][-1])

    def go(self):
        try:
            while not self.over and len(self.problems) < 12:
                self.train(CHUNK)
        except (RuntimeError, OSError) as error:
            self.problems.append(str(error))

    def __enter__(self):
        self.over = False
        self.thread = threading.Thread(target=self.go)
        self.thread.start()
        return self

    def __exit__(self, *_error):
        self.over = True
        self.thread.join()


def inside_said(text):
    """{library: [(functions, pid, ms until then, ms of the stop), ...]}"""
    found = collections.defaultdict(list)
    for functions, library, pid, ms, stop in DIVERTED.findall(text):
        found[library].append((int(functions), int(pid), int(ms), float(stop)))
    return found


def wait_inside(trace, libraries=1):
    """Until so many libraries are recorded inside and nothing more is said; how many."""
    begin = changed = time.monotonic()
    said = ""
    while time.monotonic() - begin < INSIDE_SECONDS and trace.process.poll() is None:
        time.sleep(0.05)
        with open(trace.path + ".log") as log:
            text = log.read()
        now = time.monotonic()
        if text != said:
            said, changed = text, now
        if len(DIVERTED.findall(said)) >= libraries and now - changed > QUIET_SECONDS:
            break
    return len(DIVERTED.findall(said))


def was_inside(trace):
    """Sentences, if nothing was recorded inside or something was lost or given up."""
    told = TOLD.search(trace.text)
    if not told or not int(told.group(1)):
        said = trace.text.partition("=== TRACE SUMMARY")[0].strip().splitlines()
        yield "no calls were recorded inside: " + " / ".join(said[-4:])
    yield from trace.lost()
    for hook in trace.summary.get("missed", {}).get("hooks", ()):
        if hook["kind"] != "hooked_late":
            yield f"hooks: {hook}"


class Summed(Recorded):
    """A trace file, of which only the summary is asked for."""

    def read(self):
        text = self.ask("report", self.path + ".cuscope", "summary", "--format", "json")
        if text:
            self.summary = json.loads(text)


class Inside:
    def __init__(self, cuscope, folder, report, binaries):
        self.cuscope, self.folder, self.report, self.binaries = cuscope, folder, report, binaries
        self.seconds = float(os.environ.get("INSIDE_SECONDS", "60"))
        self.stops, self.begins = collections.defaultdict(list), collections.defaultdict(list)

    def run(self, parts, has_torch):
        if "inside-program" in parts:
            self.program()
            self.exceptions()
        if "inside-torch" in parts and has_torch:
            self.training("inside-torch")
        if "inside-ddp" in parts and has_torch:
            gpus = int(subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.device_count())"],
                                      capture_output=True, text=True, check=True).stdout)
            if gpus < 2:
                print(f"     two processes were not tried: this machine has {gpus} GPU", flush=True)
            else:
                self.training("inside-ddp", ranks=2)
        self.times()
        if "inside-libraries" in parts:
            self.libraries()

    def keep_times(self, trace):
        for library, all_of in inside_said(trace.text).items():
            self.stops[library] += [stop for *_, stop in all_of]
            self.begins[library] += [ms for _, _, ms, _ in all_of]

    # ---- a program that counts what it does ----

    def once(self, name, words, way, options, inside):
        """A trace of `inside`, which waits until its libraries are recorded inside."""
        counts, go = (os.path.join(self.folder, f"{name}.{ending}") for ending in ("counts", "go"))
        for path in (counts, go):
            if os.path.exists(path):
                os.unlink(path)
        if not inside:
            open(go, "w").close()
        trace = way(self.cuscope, self.folder, name, options, ["--", *words], {"SAMPLE_COUNTS": counts, "SAMPLE_WAIT": go})
        if inside:
            wait_inside(trace)
            open(go, "w").close()
        return trace.finish(), counts

    def program(self):
        for linked in ("shared", "static"):
            words = [os.path.join(self.binaries, f"inside-{linked}")]
            by_probes, _ = self.once(f"inside-{linked}-probes", words, Trace, [], False)
            for way in (Trace, Recorded):
                name = f"inside-{linked}" + ("" if way is Trace else "-recorded")
                trace, counts = self.once(name, words, way, ["--in-process"], True)
                problems = [*by_probes.problems(), *trace.problems()]
                self.report.test(f"{name}: runs", problems)
                if problems:
                    continue
                self.keep_times(trace)
                self.report.test(f"{name}: recorded inside, nothing lost", was_inside(trace))
                for check in (programs.launches, programs.launch_totals, programs.copies, programs.memory, programs.errors,
                              programs.calls, programs.durations):
                    self.report.test(f"{name}: {check.__name__.replace('_', ' ')}", check(programs.Counts(counts), trace))
                self.report.test(f"{name}: the calls that probes tell of", difference("calls", self.told(by_probes), self.told(trace)))

    @staticmethod
    def told(trace):
        """What each call was, but for addresses and times."""
        return collections.Counter(
            (c["name"], bool(c.get("nested")), c.get("kernel"), tuple(c.get("grid", ())), tuple(c.get("block", ())), c.get("size"),
             c.get("direction"), c.get("error")) for c in trace.calls)

    def exceptions(self):
        words = [os.path.join(self.binaries, "inside-shared"), "throws"]
        try:
            alone = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
            said = alone.stdout.strip()
        except subprocess.TimeoutExpired:
            said = "nothing within 30 s"
        if said != "caught 10":
            print(f"     exceptions through calls were not tried: alone, the program says: {said or alone.returncode}", flush=True)
            return
        trace, _ = self.once("inside-throws", words, Trace, ["--in-process"], True)
        self.report.test("inside-throws: as without cuscope", [*trace.problems(), *([] if "caught 10" in trace.text else [trace.text[:300]])])
        self.report.test("inside-throws: recorded inside", was_inside(trace))

    # ---- PyTorch ----

    def attach(self, name, training, *options):
        return Summed(self.cuscope, self.folder, name, options, ["-p", ",".join(map(str, training.pids))])

    def training(self, name, ranks=0):
        trainings = Training(self.folder, name, ranks, PORT), Training(self.folder, name + "-alone", ranks, PORT + 1)
        try:
            for training in trainings:
                training.wait()
            self.twins(name, *trainings, ranks)
        except RuntimeError as error:
            self.report.test(f"{name}: runs", [str(error)])
            for training in trainings:
                training.kill()

    def twins(self, name, traced, alone, ranks):
        twins = Twins(traced, alone)
        twins.train(2 * CHUNK)
        self.report.test(f"{name}: two trainings without cuscope have the same losses", twins.problems)
        if not twins.problems:
            per_step = self.a_step(name, twins)
            libraries = self.on_and_off(name, twins)
            self.same_code(name, traced, libraries)
            self.exact(name, twins, per_step, libraries)
        codes = [*traced.close(), *alone.close()]
        self.report.test(f"{name}: the trainings end as they should", equal("statuses", [0] * len(codes), codes))

    def a_step(self, name, twins):
        """Launches of a step by kernel, as probes tell of them."""
        trace = self.attach(f"{name}-probes", twins.traced)
        time.sleep(IDLE_SECONDS)
        twins.train(4 * CHUNK)
        time.sleep(0.2)
        trace.finish(interrupt=True)
        self.report.test(f"{name}: by probes", [*trace.problems(), *trace.lost()])
        return {kernel: n / (4 * CHUNK) for kernel, n in trace.launches().items()}

    def exact(self, name, twins, per_step, libraries):
        """All steps are inside of the trace, the later ones when all libraries are: each launch is told once."""
        trace = self.attach(f"{name}-exact", twins.traced, "--in-process")
        time.sleep(IDLE_SECONDS)
        before = twins.steps
        with twins:
            wait_inside(trace, libraries)
            time.sleep(2)
        time.sleep(0.2)
        trace.finish(interrupt=True)
        steps = twins.steps - before
        expected = collections.Counter({kernel: round(n * steps) for kernel, n in per_step.items()})
        self.report.test(f"{name}: {sum(expected.values())} launches, each once",
                         [*trace.problems(), *was_inside(trace), *([] if steps else ["no steps"]), *difference("launches", expected, trace.launches())])
        self.report.test(f"{name}: losses of {twins.steps} steps", twins.problems)

    def on_and_off(self, name, twins):
        """cuscope comes and goes while the training runs; how many libraries were recorded inside at once."""
        on, off = (10, 10) if self.seconds >= 300 else (4, 2)
        end, turn, libraries, problems, kept, calls = time.monotonic() + self.seconds, 0, 0, [], [], 0
        with twins:
            while time.monotonic() < end:
                turn += 1
                trace = self.attach(f"{name}-on", twins.traced, "--in-process")
                time.sleep(on)
                trace.finish(interrupt=True)
                self.keep_times(trace)
                problems += [f"turn {turn}: {what}" for what in (*trace.problems(), *was_inside(trace))]
                kept += [f"turn {turn}: {line}" for line in KEPT.findall(trace.text)]
                libraries = max(libraries, len(DIVERTED.findall(trace.text)))
                told = TOLD.search(trace.text)
                calls += int(told.group(1)) if told else 0
                time.sleep(off)
        print(f"     {name}: {turn} times on for {on} s and off for {off} s, {twins.steps} steps, last loss {twins.last!r}; {calls} calls were "
              f"recorded inside, of {libraries} libraries", flush=True)
        for line in kept:
            print(f"     {name}: {line}", flush=True)
        self.report.test(f"{name}: {turn} times on and off, nothing lost", problems)
        self.report.test(f"{name}: the same losses to the last digit", twins.problems)
        return libraries

    def same_code(self, name, training, libraries):
        names = sorted({library.split(".so")[0] for library in self.begins})
        for pid in training.pids:
            for _ in range(10):  # another session's breakpoints may still be there
                compared, problems = library_code.compare(pid, names)
                if not problems:
                    break
                time.sleep(1)
            for path, size in compared.items():
                print(f"     {name}: {size >> 10} KiB of code of {path} compared with the file", flush=True)
            self.report.test(f"{name}: code of {len(compared)} libraries is that of their files",
                             problems or ([] if compared and libraries else ["nothing was compared"]))

    # ---- times ----

    def times(self):
        for library, begins in sorted(self.begins.items()):
            stops = sorted(self.stops[library])
            print(f"     {library}: {len(begins)} times recorded inside, {min(begins)} to {max(begins)} ms after the start; threads were "
                  f"stopped for {stops[0]} to {stops[-1]} ms, half of the times at most {stops[len(stops) // 2]}", flush=True)
            print("     stops, ms:", *stops, flush=True)

    # ---- each function by itself ----

    def libraries(self):
        """Rows for docs/results/in-process.md."""
        text = subprocess.run([self.cuscope, "doctor"], capture_output=True, text=True, check=False).stdout
        paths = dict.fromkeys(re.findall(r"library +(/\S+): (?:driver|runtime)", text))
        print("| library | functions | can be diverted | refused | called alike, otherwise |\n|---|---|---|---|---|", flush=True)
        for path in paths:
            print(self.row(path), flush=True)

    def row(self, path):
        done = subprocess.run([self.cuscope, "probes", "--divert", path], capture_output=True, text=True, check=False)
        lines = re.findall(r"^  (?!FUNCTION)\S+ .* (yes|no)  +(.*)$", done.stdout, re.MULTILINE)
        refused = collections.Counter(re.sub(r", at .*", "", why) for can, why in lines if can == "no")
        name = os.path.basename(path)
        self.report.test(f"probes --divert {name}", [] if done.returncode == 0 and lines else [done.stderr[-300:]])
        why = "; ".join(f"{n}: {text}" for text, n in refused.items())
        return f"| {name} | {len(lines)} | {sum(can == 'yes' for can, _ in lines)} | {why} | {self.call_all(path)} |"

    def call_all(self, path):
        """Each function with arguments of zero, as it was and diverted. No GPU is shown to the runtime, which would make a context
        in each of its processes."""
        program = os.environ.get("CALL_ALL")
        if not program:
            return ""
        name = os.path.basename(path)
        env = dict(os.environ, CUDA_VISIBLE_DEVICES="") if "cudart" in name else None
        try:
            done = subprocess.run([program, path], capture_output=True, text=True, timeout=CALL_ALL_SECONDS, env=env, check=False)
        except subprocess.TimeoutExpired:
            self.report.test(f"call_all {name}", [f"not done after {CALL_ALL_SECONDS} s"])
            return "not done"
        self.report.test(f"call_all {name}", [] if done.returncode in (0, 77) else [done.stdout[-600:] + done.stderr[-300:]])
        return (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1].partition(": ")[2]
