# SPDX-License-Identifier: MIT
"""Runs cuscope on the programs of tests/programs, and reads what both say afterwards.

A test is a function that takes a Case, its own folder and the ways to start things in it, and
raises Failure where something is not as it should be. Every wait has a limit.
"""

import collections
import contextlib
import glob
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import inside

LIMIT_SECONDS = 60


class Failure(Exception):
    pass


class Skip(Exception):
    """Something that the test needs is not on this machine."""


def alone(test):
    """Marks a test that measures time, or would see the programs of others."""
    test.alone = True
    return test


def stress(why):
    """Marks a test for `make stress`: `why` says how long it takes, and what else looks at the same."""
    def mark(test):
        test.stress = why
        return test
    return mark


class Places:
    """Where things are; set once by run."""

    root = build = None
    in_process = False  # each trace is started with --in-process

    @classmethod
    def cuscope(cls):
        return os.path.join(cls.build, "cuscope")

    @classmethod
    def program(cls, name):
        return os.path.join(cls.build, "programs", name)

    @classmethod
    def simcuda(cls, *path):
        return os.path.join(cls.build, "simcuda", *path)

    @classmethod
    def libraries(cls, shape="push"):
        return cls.simcuda(shape) + ":" + cls.simcuda()


def environment(shape="push", **more):
    """Work of the simulated device takes no time, unless a test wants it to."""
    base = dict(os.environ, LD_LIBRARY_PATH=Places.libraries(shape), SIMCUDA_TIME_SCALE="0")
    base.pop("NO_COLOR", None)
    base.update(more)
    return base


class Process:
    """A program that runs, its standard output and error in files."""

    def __init__(self, folder, name, command, env, stdin=subprocess.DEVNULL, **options):
        self.command = command
        self.inside = False  # --in-process was added
        self.paths = [os.path.join(folder, name + ending) for ending in (".out", ".err")]
        with open(self.paths[0], "w") as out, open(self.paths[1], "w") as err:
            self.process = subprocess.Popen(command, stdin=stdin, stdout=options.pop("stdout", out),
                                            stderr=err, env=env, **options)
        self.pid = self.process.pid

    def out(self):
        with open(self.paths[0], errors="replace") as file:
            return file.read()

    def err(self):
        with open(self.paths[1], errors="replace") as file:
            return file.read()

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=LIMIT_SECONDS):
        """Its exit status, negative for a signal as subprocess has it."""
        seconds *= patience
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.stop()
            raise Failure(f"{self.command} did not end within {seconds} s; it said: "
                          f"{(self.out() + self.err())[-600:]}") from None

    def stop(self):
        """With all that it began: a program that goes on would count what it does with the next try's."""
        if self.process.poll() is None:
            below = descendants(self.process.pid)
            self.process.kill()
            self.process.wait()
            for pid in below:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if self.process.stdin:
            self.process.stdin.close()


def descendants(pid):
    """The processes below one, as far as they can be seen."""
    parents = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path, errors="replace") as file:
            words = file.read().rpartition(") ")
            parents[int(words[0].split()[0])] = int(words[2].split()[1])
    found = [pid]
    for above in found:
        found += [below for below, parent in parents.items() if parent == above]
    return found[1:]


# How much longer than here a machine may take for anything.
patience = 1


def wait_until(condition, what, seconds=15):
    """Looks every 5 ms; returns what the condition returned."""
    seconds *= patience
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise Failure(f"waited {seconds} s in vain: {what}")


def links_of(pid):
    """What a process has open, by name; descriptors that are closed meanwhile are left out."""
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return links


class Counts:
    """What the processes of a program say that they did: see tests/programs/sample.h."""

    def __init__(self, path):
        self.processes = []
        if os.path.exists(path):
            with open(path) as lines:
                self.processes = [json.loads(line) for line in lines]

    def of(self, section):
        """A section, all processes together."""
        counter = collections.Counter()
        for process in self.processes:
            counter.update(process.get(section, {}))
        return collections.Counter({key: n for key, n in counter.items() if n})

    def pids(self):
        return {process["pid"] for process in self.processes}


class Result:
    """What came of a trace: status, what it printed, its events and its summary."""

    def __init__(self, process, status, path, counts, lines=True):
        self.status, self.out, self.err = status, process.out(), process.err()
        self.path, self.counts = path, Counts(counts)
        self.lines, self.events, self.summary = [], [], {}
        if lines and os.path.exists(path + ".jsonl"):
            with open(path + ".jsonl") as file:
                self.lines = file.read().splitlines()
            self.events = [json.loads(line) for line in self.lines]
        if os.path.exists(path + ".json"):
            with open(path + ".json") as file:
                self.summary = json.load(file)

    def calls(self, **wanted):
        """The calls whose keys have these values; None stands for a key that is not there."""
        return [e for e in self.events if e.get("phase") in ("X", "E")
                and all(e.get(key) == value for key, value in wanted.items())]

    def names(self, **wanted):
        return collections.Counter(call["name"] for call in self.calls(**wanted))

    def said(self, kind):
        """Functions and processes in the list of what was missed, of one kind (hooked_late...)."""
        return [hook for hook in self.summary["missed"]["hooks"] if kind in json.dumps(hook)]


class Case:
    """One test: its folder, and the programs it started, which end with it."""

    def __init__(self, folder, options=()):
        """`options`: for every trace, before its own."""
        self.folder = folder
        self.options = options
        self.started = []
        self.shape = "push"
        self.env = {}
        self.alone = False  # no other test runs beside it
        os.makedirs(folder)
        os.chmod(folder, 0o777)

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, counts="counts"):
        return environment(self.shape, **{"SAMPLE_COUNTS": self.path(counts), **self.env})

    def start(self, *command, name=None, **options):
        """Any program; `name` is that of its output files."""
        name = name or f"{len(self.started)}-{os.path.basename(command[0])}"
        options.setdefault("env", self.environment())
        words = inside.with_option(list(command), Places.cuscope()) if Places.in_process else list(command)
        if words == list(command):
            process = Process(self.folder, name, words, **options)
        else:
            process = self.start_inside(name, words, **options)
        self.started.append(process)
        return process

    def start_inside(self, name, words, env, **options):
        path = self.path(f"{name}.go")
        process = Process(self.folder, name, words, env={**env, "SIMCUDA_WAIT": path}, **options)
        process.inside = True
        inside.let_go(process, path)
        return process

    def program(self, program, *arguments, **options):
        return self.start(Places.program(program), *map(str, arguments), **options)

    def cuscope(self, *arguments, **options):
        return self.start(Places.cuscope(), *map(str, arguments), **options)

    def start_trace(self, options=(), target=(), name="trace", **more):
        """cuscope trace with events and summary in files."""
        return self.cuscope("trace", "-o", self.path(name + ".jsonl"), "--json-summary",
                            self.path(name + ".json"), *self.options, *options, *target,
                            **more)

    def result(self, process, name="trace", seconds=LIMIT_SECONDS, lines=True):
        """Waits for its end; `lines`: whether its events are wanted."""
        return Result(process, process.wait(seconds), self.path(name), self.path("counts"), lines)

    def trace(self, program, *arguments, options=(), status=0, name="trace", lines=True, **more):
        """Traces a program of tests/programs from its first call to its end."""
        command = program if program.startswith("/") else Places.program(program)
        process = self.start_trace(options, ["--", command, *arguments], name, **more)
        result = self.result(process, name, lines=lines)
        if status is not None and result.status != status:
            raise Failure(f"exit status {result.status}, not {status}: "
                          f"{(result.err + result.out)[-600:]}")
        return result

    def attached(self, process):
        """Waits until a trace of processes that run has begun: its first line is written then."""
        path = next(word for word in process.command if word.endswith(".jsonl"))
        wait_until(lambda: (os.path.exists(path) and os.path.getsize(path) > 0)
                   or process.process.poll() is not None, "the trace to begin")
        if process.process.poll() is not None:
            raise Failure(f"it ended: {process.err()}")
        if process.inside:
            inside.wait(process)

    def end(self):
        for process in self.started:
            process.stop()


def plain_name(test):
    return test.__name__.removeprefix("test_")


def put_off(command):
    """Whether tests/tally runs this when the whole suite has ended: one command of each part."""
    path = os.environ.get("SECOND_TRIES")
    if not path or os.path.exists(path):
        return False
    with open(path, "w") as file:
        file.write(shlex.join(command) + "\n")
    return True


class Runner:
    """Runs tests and sums up, one line each. One that fails is run once more when nothing else runs: at the end of
    the whole suite where this is a part of it, else at the end of these tests. What it failed by at first is said,
    and that it failed at all is in the closing lines."""

    def __init__(self, folder, tally=None, command=None, again=False):
        """`tally`: of what is recorded inside, where that is asked for. `command`: runs those whose names are added, `again`."""
        self.folder, self.tally, self.command = folder, tally, command
        self.counts = {"ok": 0, "FAIL": 0, "SKIP": 0}
        self.again = None  # tests to be run once more; None: no more
        self.twice = []
        self.lock = threading.Lock()
        if not again:
            shutil.rmtree(folder, ignore_errors=True)

    def run_all(self, tests, workers=4):
        """Four at a time, also on two CPUs: a test mostly waits for the kernel to take probes away."""
        self.again = []
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(self.run, [t for t in tests if not hasattr(t, "alone")]))
        for test in tests:
            if hasattr(test, "alone"):
                self.run(test)
        again, self.again = self.again, None
        if not again or not self.command or not put_off([*self.command, *(plain_name(test) for test in again)]):
            self.run_again(again)

    def run_again(self, tests):
        """Second tries, one after the other; files of the first are kept."""
        for test in tests:
            folder = os.path.join(self.folder, plain_name(test))
            if os.path.exists(folder):
                os.rename(folder, folder + ".once")
            self.run(test)
        self.twice = [plain_name(test) for test in tests]

    def failed(self, test, name, reason):
        if self.again is None or name != plain_name(test):
            self.say("FAIL", f"FAIL: {name}: {reason}")
            return
        self.again.append(test)
        with self.lock:
            print(f"once {name}: {reason}".replace("\n", " / "), flush=True)

    def run(self, test, name=None, options=()):
        name = name or plain_name(test)
        case = Case(os.path.join(self.folder, name), options)
        case.alone = hasattr(test, "alone")
        begin = time.monotonic()
        try:
            if hasattr(test, "stress") and "STRESS" not in os.environ:
                raise Skip(f"{test.stress}: make stress")
            test(case)
            counted = f", {self.tally.add(name, case)}" if self.tally else ""
            self.say("ok", f"ok   {name} ({time.monotonic() - begin:.1f} s{counted})")
        except Skip as reason:
            self.say("SKIP", f"SKIP: {name}: {reason}")
        except (Failure, AssertionError) as reason:
            self.failed(test, name, reason)
        except Exception as error:  # what cuscope wrote was not even readable
            line = error.__traceback__
            while line.tb_next:
                line = line.tb_next
            self.failed(test, name, f"{type(error).__name__}: {error} "
                                    f"({line.tb_frame.f_code.co_name}:{line.tb_lineno})")
        finally:
            case.end()

    def say(self, outcome, line):
        with self.lock:
            self.counts[outcome] += 1
            print(line.replace("\n", " / "), flush=True)

    def end(self):
        if self.tally:
            self.tally.say()
        if self.twice:
            print(f"run twice, as they failed once: {', '.join(self.twice)}", flush=True)
        skipped = f", {self.counts['SKIP']} skipped" if self.counts["SKIP"] else ""
        print(f"{self.counts['ok']} passed, {self.counts['FAIL']} failed{skipped}", flush=True)
        return 1 if self.counts["FAIL"] else 0


def fail_at_signal(number, frame):
    raise SystemExit(f"stopped by signal {number}")


signal.signal(signal.SIGTERM, fail_at_signal)
# A shell starts what it puts into the background without job control with both ignored, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # under nohup; a handler is not inherited
    signal.signal(signal.SIGHUP, lambda number, frame: None)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema"))
