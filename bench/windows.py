# SPDX-License-Identifier: MIT
"""Windows in turns, with something and without, in one process: what steps within one took longer than those right before and after it.
A machine gets slower and faster by a third within seconds, and so only neighbours are compared."""

import bisect
import collections
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import time

MARGIN_NS, LEAST_STEPS, RESAMPLES = 40_000_000, 4, 2000
POLL_S = 0.05
END_S = 3
TURN_S = 40  # a cuscope that needs longer for one window is ended


class Over(Exception):
    """Time is over, or somebody asks for an end."""


@contextlib.contextmanager
def limited(seconds):
    """Whatever happens within, it is over after so many seconds, or at SIGINT and SIGTERM: an Over ends it, which is not told further."""
    def over(*_):
        raise Over

    before = {number: signal.signal(number, over) for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM)}
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    except Over:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


class Steps:
    def __init__(self, steps, middle=statistics.mean):
        self.steps, self.middle = steps, middle
        self.begins = [begin for begin, _ in steps]

    def within(self, begin, end):
        """The mean, or `middle`, of the steps that lie in there wholly, in ms; None for too few."""
        some = self.steps[bisect.bisect_left(self.begins, begin + MARGIN_NS):bisect.bisect_right(self.begins, end - MARGIN_NS)]
        took = [(e - b) / 1e6 for b, e in some if e <= end - MARGIN_NS]
        return self.middle(took) if len(took) >= LEAST_STEPS else None


def spread(values):
    """(median, and what 95 % of the medians of resamples lie between)."""
    random.seed(0)
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return statistics.median(values), medians[RESAMPLES * 25 // 1000], medians[RESAMPLES * 975 // 1000 - 1]


def spread_words(values, digits=1):
    middle, least, most = spread(values)
    return f"{middle:.{digits}f} ({least:.{digits}f} to {most:.{digits}f})"


class Processes:
    """A process and all that are ever seen below it."""

    def __init__(self, pid):
        self.pid, self.ns = pid, {}

    def cpu_ns(self):
        """The processor time that they took, also those that have ended."""
        found = [self.pid]
        while found:
            one = found.pop()
            with contextlib.suppress(OSError):
                self.ns[one] = time.clock_gettime_ns(~one << 3 | 2)
                for task in os.listdir(f"/proc/{one}/task"):
                    with open(f"/proc/{one}/task/{task}/children") as children:
                        found += map(int, children.read().split())
        return sum(self.ns.values())


class Failed(Exception):
    pass


def end_process(process):
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    process.kill()
    process.wait()


class Run:
    """One run of cuscope, to its end: when it recorded, and the processor time that it took."""

    def __init__(self, cuscope, words, pid, window_s, path):
        self.path, self.window_ns = path, round(window_s * 1e9)
        words = [*words, "--force", "-o", path, "-p", str(pid), "--duration", f"{window_s:g}s"]
        with open(path + ".said", "w+") as said:
            begin = time.monotonic()
            process = subprocess.Popen([cuscope, *words], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            try:
                self.follow(process, begin + TURN_S)
            finally:
                if process.returncode is None:
                    end_process(process)
            self.took_s = time.monotonic() - begin
            if process.returncode:
                said.seek(0)
                raise Failed(f"status {process.returncode} after {self.took_s:.1f} s: {' | '.join(said.read().splitlines())[:500]}")
        info = json.loads(subprocess.run([cuscope, "info", "--json", path], check=True, capture_output=True, text=True).stdout)
        end = info["begin_ns"] + info["duration_ns"]  # the duration begins when all is in, some time after the recording
        self.on = end - self.window_ns, end

    def follow(self, process, deadline):
        self.samples, processes = [], Processes(process.pid)
        while time.monotonic() < deadline:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = usage.ru_utime + usage.ru_stime
                return
            self.samples.append((time.monotonic_ns(), processes.cpu_ns()))
            time.sleep(POLL_S)

    def cpu_percent(self):
        """Of one processor, in the window alone."""
        within = [one for one in self.samples if self.on[0] <= one[0] <= self.on[1]]
        if len(within) < 2:
            return None
        (begin, before), (end, after) = within[0], within[-1]
        return (after - before) * 100 / (end - begin)


class Turns:
    """Ways in turns, each for a window, with as long a time without any before and after it. A way is "none", the words of a command of
    cuscope, or one that `switch` turns on and off in the process itself: switch(way, on)."""

    def __init__(self, cuscope, pid, window_s, folder, switch=None):
        self.cuscope, self.pid, self.window_s, self.switch = cuscope, pid, window_s, switch
        self.path = os.path.join(folder, "turn.cuscope")
        self.turns = []  # (way, quiet before, window, its run or None); what is quiet after it is before the next one
        self.under_way = None
        self.failures, self.longest_s = collections.defaultdict(list), {}
        self.rest()

    def rest(self):
        begin = time.monotonic_ns()
        time.sleep(self.window_s)
        self.quiet = begin, time.monotonic_ns()

    def once(self, way, own):
        run, begin, quiet = None, time.monotonic(), self.quiet
        if way == "none" or way in own:
            if way in own:
                self.switch(way, True)
            on_begin = time.monotonic_ns()
            time.sleep(self.window_s)
            on = on_begin, time.monotonic_ns()
            if way in own:
                self.switch(way, False)
        else:
            run = Run(self.cuscope, way.split(), self.pid, self.window_s, self.path)
            on = run.on
        self.rest()
        self.turns.append((way, quiet, on, self.quiet, run))
        self.longest_s[way] = max(self.longest_s.get(way, 0), time.monotonic() - begin)

    def take(self, ways, rounds, deadline, own=()):
        """All ways once a round, in another order each time, until a turn would not end before the deadline. One that failed twice is
        left out from then on."""
        order = random.Random(0)
        for _ in range(rounds):
            ways = [way for way in ways if len(self.failures[way]) < 2]
            for way in order.sample(ways, len(ways)):
                if time.monotonic() + self.longest_s.get(way, 3 * self.window_s) > deadline:
                    return
                self.under_way = way
                try:
                    self.once(way, own)
                except (Failed, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
                    self.failures[way].append(str(error))
                    self.rest()
                self.under_way = None

    def percents(self, way, steps):
        """Of each window of a way, what its steps took longer than those around it."""
        found = []
        for before, on, after in (turn[1:4] for turn in self.turns if turn[0] == way):
            least, middle, most = (steps.within(*part) for part in (before, on, after))
            if least and middle and most:
                found.append((middle / ((least + most) / 2) - 1) * 100)
        return found

    def bare_ms(self, way, steps):
        """The median of a step without anything, around the windows of this way."""
        found = [ms for turn in self.turns if turn[0] == way for ms in (steps.within(*turn[1]), steps.within(*turn[3])) if ms]
        return statistics.median(found) if found else None

    def row(self, way, steps):
        """As HEADER says."""
        values, runs = self.percents(way, steps), [turn[4] for turn in self.turns if turn[0] == way and turn[4]]
        shares = [share for share in (run.cpu_percent() for run in runs) if share is not None]
        bare = self.bare_ms(way, steps)
        return [way, str(len(values)), f"{bare:.4g}" if bare else None, spread_words(values) if values else None,
                spread_words(shares) if shares else None, *(f"{statistics.median(getattr(run, name) for run in runs):.1f}" if runs else None
                                                            for name in ("cpu_s", "took_s"))]


    def wrongs(self):
        last = [f"{self.under_way}: time was over"] if self.under_way else []
        return [f"{way}: {wrong}" for way, wrongs in self.failures.items() for wrong in wrongs] + last


HEADER = ["in windows of", "windows", "ms a step around them", "a step is longer by %", "cuscope's CPU meanwhile, % of one",
          "its CPU in all, s", "it took, s"]
