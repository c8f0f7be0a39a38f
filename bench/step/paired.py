# SPDX-License-Identifier: MIT
"""The method of bench/step and bench/ddp: short windows of steps of two training processes in turns.

A machine gets slower and faster by a third within seconds, and what tracing adds is a few per cent. So a window of
the process that is traced is compared with one right before it of another process that nobody traces: a pair. Two
processes are never equally fast, so pairs while cuscope is attached are compared with pairs before and after.
"""

import collections
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time

DIVERTED = re.compile(r"(\d+) functions of (\S+) are recorded inside of process (\d+) from (\d+) ms on; its threads were stopped for ([\d.]+) ms")
STOP_SECONDS = 60
IDLE_SECONDS = 1.0    # nobody steps: all steps are seen then
QUIET_SECONDS = 0.7   # nothing was said for so long: no library is on its way any more
READY_SECONDS = 15
SKIP = 2              # steps before each window that do not count: caches hold the other process's
RESAMPLES = 1000

Way = collections.namedtuple("Way", "name words settle")


def diverted(text):
    """(functions, library, pid, ms from the start on, ms of the stop) of each library recorded inside, as cuscope says."""
    return [(int(n), library, int(pid), int(ms), float(stop)) for n, library, pid, ms, stop in DIVERTED.findall(text)]


def summary_of(cuscope, path):
    return json.loads(subprocess.run([cuscope, "report", path, "summary", "--format", "json"],
                                     check=True, capture_output=True, text=True).stdout)


def lost(summary):
    return sum(n for reason, n in summary["missed"]["lost"].items() if reason != "late")


class SessionFailed(Exception):
    """cuscope did not do its work; the trainings go on."""


class Session:
    """cuscope attached to a training. `words`: its command line, with OUT for where it writes."""

    def __init__(self, cuscope, words, pids, output):
        self.words, self.output, self.steps = words, output, 0
        self.cuscope = cuscope
        command = [cuscope, *(word.replace("OUT", output) for word in words), "-p", ",".join(map(str, pids)), "--force"]
        self.log = open(output + ".log", "w+")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def said(self):
        with open(self.log.name) as log:
            return log.read()

    def diverted(self):
        return diverted(self.said())

    def is_up(self):
        """Whether it waits for signals: before, one would end it without a word."""
        try:
            with open(f"/proc/{self.process.pid}/status") as status:
                masks = re.findall(r"Sig(?:Blk|Cgt):\s*(\w+)", status.read())
        except OSError:
            return False
        return any(int(mask, 16) >> signal.SIGINT - 1 & 1 for mask in masks)

    def wait(self, step, settle, libraries):
        """Until hooks are in and `libraries` are recorded inside, 0: none. `step` runs some steps and says how many."""
        deadline = time.monotonic() + READY_SECONDS
        while not self.is_up() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(IDLE_SECONDS)
        begin = changed = time.monotonic()
        said = self.said()
        while time.monotonic() - begin < READY_SECONDS:
            self.steps += step()
            now, text = time.monotonic(), self.said()
            if text != said:
                said, changed = text, now
            if self.process.poll() is not None:
                raise SessionFailed(f"{' '.join(self.process.args)}: {text[-2000:]}")
            if now - begin >= settle and now - changed >= QUIET_SECONDS and len(self.diverted()) >= libraries:
                return
        print(f"{' '.join(self.words)}: {len(self.diverted())} of {libraries} libraries are recorded inside after {READY_SECONDS} s",
              file=sys.stderr, flush=True)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        if status != 0:
            raise SessionFailed(f"{' '.join(self.process.args)}: status {status}: {self.said()[-2000:]}")
        self.log.close()

    def summary(self):
        if self.words[0] == "record":
            return summary_of(self.cuscope, self.output + ".cuscope")
        if self.words[0] == "watch":
            with open(self.output + ".pages") as pages:
                text = pages.read().splitlines()[-1]
        else:
            with open(self.output + ".json") as file:
                text = file.read()
        return json.loads(text)

    def digest(self):
        """What shows that cuscope did its work while steps were measured."""
        summary, steps = self.summary(), max(self.steps, 1)
        calls, launches = summary.get("calls", {}).get("total"), summary["launches"]
        return {"calls_a_step": calls and calls / steps,
                "launches_a_step": (launches["kernels"] if calls else launches["kernel_launches"]) / steps,
                "lost": lost(summary),
                "unhooked": sum(hook["kind"] == "unhooked" for hook in summary["missed"]["hooks"]),
                "diverted": self.diverted()}


class CuptiAlone:
    """CUPTI's kernel activities in a training, whose records nobody reads: what GPU times cost whoever measures them. Instead of a
    Session."""

    def __init__(self, library, training):
        if not library:
            raise SessionFailed("CUPTI alone: its library could not be built")
        self.library, self.training, self.steps = library, training, 0
        self.switch(True)

    def switch(self, on):
        status = self.training.cupti(self.library, on)
        if status:
            raise SessionFailed(f"CUPTI alone, {'on' if on else 'off'}: status {status}")

    def wait(self, step, settle, _libraries):
        begin = time.monotonic()
        while time.monotonic() - begin < settle:
            self.steps += step()

    def stop(self):
        self.switch(False)

    @staticmethod
    def diverted():
        return []

    @staticmethod
    def digest():
        return {"calls_a_step": None, "launches_a_step": None}


class Pairs:
    """Windows in turns: of the process that nobody traces, and of the one that is traced."""

    def __init__(self, control, subject):
        self.control, self.subject = control, subject

    def some(self, size, steps, n):
        """[{"ms": ratio, "cpu_ms": ratio, "control": window, "subject": window}, ...]"""
        pairs = []
        for _ in range(n):
            control = self.control.window(size, steps, SKIP)
            subject = self.subject.window(size, steps, SKIP)
            pairs.append({"control": control, "subject": subject,
                          **{key: subject[key] / max(control[key], 1e-9) for key in ("ms", "cpu_ms")}})
        return pairs


def level(pairs, key):
    return statistics.median(pair[key] for pair in pairs)


def percents(session, key):
    """Of each pair of a session, per cent over the pairs before and after it."""
    bare = level(session["bare"], key)
    return [(pair[key] / bare - 1) * 100 for pair in session["traced"]]


def resampled(session):
    return {name: random.choices(session[name], k=len(session[name])) for name in ("bare", "traced")}


def overhead(sessions, key):
    """(median of all pairs in per cent over bare, its least, its most): 95 % of resamples of sessions and of their pairs are in between."""
    if not sessions:
        return None

    def middle(some):
        return statistics.median(percent for session in some for percent in percents(session, key))

    random.seed(0)
    medians = sorted(middle([resampled(s) for s in random.choices(sessions, k=len(sessions))]) for _ in range(RESAMPLES))
    return middle(sessions), medians[RESAMPLES * 25 // 1000], medians[RESAMPLES * 975 // 1000 - 1]


def difference(traced, bare):
    """(median of the first less that of the second, its least, its most), as above; of lists of numbers, one each session."""
    def middle(some):
        return statistics.median(statistics.median(first) - statistics.median(second) for first, second in some)

    def again(samples):
        return random.choices(samples, k=len(samples))

    random.seed(0)
    sessions = list(zip(traced, bare))
    medians = sorted(middle([(again(first), again(second)) for first, second in again(sessions)]) for _ in range(RESAMPLES))
    return middle(sessions), medians[RESAMPLES * 25 // 1000], medians[RESAMPLES * 975 // 1000 - 1]


class Clock:
    """How long a benchmark may still begin something."""

    def __init__(self, minutes):
        self.end = time.monotonic() + minutes * 60

    def over(self):
        return time.monotonic() > self.end


class Attaching:
    """Sessions in turns on two trainings that take turns as the one that is traced."""

    def __init__(self, options, work, trainings, clock):
        self.options, self.work, self.trainings, self.clock = options, work, trainings, clock
        self.raw = None  # raw.c of bench/gpu, built
        self.libraries = {}  # of each way, how many were recorded inside at the most
        self.sessions = collections.defaultdict(list)  # (size, way): what `session` returns
        self.done = 0

    def session(self, way, pairs, size, measure):
        """cuscope attached while `measure` runs."""
        self.done += 1
        output = os.path.join(self.work, f"session{self.done % 2}")
        session = CuptiAlone(self.raw, pairs.subject) if way.words is None else Session(self.options.cuscope, way.words, pairs.subject.pids, output)
        chunk = max(self.options.window[size] // 4, 2)

        def step():
            pairs.subject.window(size, chunk)
            return chunk

        inside = "--in-process" in (way.words or ())
        session.wait(step, way.settle, max(self.libraries.get(way.name, 0), 1) if inside else 0)
        result = measure()
        session.stop()
        self.libraries[way.name] = max(self.libraries.get(way.name, 0), len(session.diverted()))
        return session, result

    def round(self, size, ways, turn):
        """Each way once, with bare pairs before and after each."""
        roles = self.trainings if turn % 2 else self.trainings[::-1]
        pairs, steps, n = Pairs(*roles), self.options.window[size], self.options.pairs
        before = pairs.some(size, steps, n)
        start = turn * (len(ways) // 2 + 1) % len(ways)
        for way in ways[start:] + ways[:start]:
            if self.clock.over():
                return
            try:
                session, traced = self.session(way, pairs, size, lambda: pairs.some(size, steps, n))
                session.steps += n * (steps + SKIP)
                found = session.digest()
            except (SessionFailed, subprocess.SubprocessError, OSError, ValueError) as error:
                print(f"{way.name}: a session failed: {error}", file=sys.stderr, flush=True)
                continue
            after = pairs.some(size, steps, n)
            self.sessions[size, way.name].append({"bare": before + after, "traced": traced, **found})
            before = after
