# SPDX-License-Identifier: MIT
"""The tests a second time with --in-process (run --in-process): what a test checks of a trace holds
whoever saw the calls.

Each start of cuscope gets the option, where its command has it. A command that it starts waits in
cuInit (SIMCUDA_WAIT) until its driver is diverted, as most programs of tests end sooner than that.
After each test it is counted how many calls were recorded inside. inside_left_out.py names the tests
that do not run so, and why.
"""

import fnmatch
import glob
import json
import os
import re
import threading
import time

from inside_left_out import LEFT_OUT

# Commands that have the option.
COMMANDS = ("record", "trace", "top", "memleak", "launches", "bandwidth", "watch")

# What --in-process does not go with, and what it does already.
EXCLUDED = ("--no-returns", "--max-overhead", "--in-process", "--no-in-process", "--help", "--usage", "--version")

# How long a command waits to be diverted. One that keeps its probes says so, and goes on at once.
WAIT_SECONDS = 3

SETTLED = re.compile(r"are recorded inside of process|keeps its probes|no calls were recorded inside")
TOLD = re.compile(r"(\d+) calls of \d+ functions were recorded inside of \d+ process")


def is_excluded(words):
    return any(word.split("=")[0] in EXCLUDED for word in words)


def with_option(words, cuscope):
    """The words of a command with --in-process behind cuscope's command; the same where it gets none."""
    for place, word in enumerate(words[:-1]):
        if word == cuscope and words[place + 1] in COMMANDS:
            end = words.index("--") if "--" in words[place:] else len(words)
            if is_excluded(words[place:end]):
                return words
            behind = place + (3 if words[place + 1] == "watch" else 2)  # watch's tools are a word of their own
            return words[:behind] + ["--in-process"] + words[behind:]
    return [in_script(word, cuscope) for word in words]


def in_script(word, cuscope):
    """A shell's command line."""
    commands = "|".join(COMMANDS)
    if is_excluded(word.split()):
        return word
    return re.sub(rf"({re.escape(cuscope)} (?:{commands}))(?= |$)", r"\1 --in-process", word)


def wait(process):
    """Until its first target is diverted, or known not to be."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end and process.process.poll() is None and not SETTLED.search(process.err()):
        time.sleep(0.005)


def let_go(process, path):
    """Lets the command of `process` go on then."""
    def run():
        try:
            wait(process)
            open(path, "w").close()
        except OSError:  # the test is over, and its folder elsewhere
            pass

    threading.Thread(target=run, daemon=True).start()


def full_name(test):
    return test.__module__.removeprefix("test_") + ":" + test.__name__.removeprefix("test_")


class Tally:
    """What the tests of a run recorded inside."""

    def __init__(self):
        self.lock = threading.Lock()
        self.asked = self.told = self.plain = 0
        self.calls = self.inside = 0
        self.nothing = []
        self.left_out = {}  # reason: names

    def sort_out(self, tests, wanted, folder):
        """Those of `wanted` that are not left out. A row of the list that names no test is an error."""
        rows = LEFT_OUT[folder]
        for row in rows:
            if not any(fnmatch.fnmatchcase(full_name(test), row) for test in tests):
                raise SystemExit(f"inside_left_out.py: {row} names no test")
        run = []
        for test in wanted:
            reason = next((why for row, why in rows.items() if fnmatch.fnmatchcase(full_name(test), row)), None)
            if reason:
                self.left_out.setdefault(reason, []).append(test.__name__.removeprefix("test_"))
            else:
                run.append(test)
        return run

    def add(self, name, case):
        """Of a test that has ended: a word for its line."""
        asked = [process for process in case.started if process.inside]
        told = sum(int(number) for process in asked for number in TOLD.findall(process.err()))
        with self.lock:
            if not asked:
                self.plain += 1
                return "has no command with --in-process"
            self.asked += 1
            self.told += told > 0
            self.inside += told
            self.calls += max(told, calls_told(case.folder))
            if not told:
                self.nothing.append(name)
        return f"{told} calls inside"

    def say(self):
        for reason, names in sorted(self.left_out.items()):
            print(f"left out: {len(names)}, as {reason}: {', '.join(names)}")
        print(f"inside: in {self.told} of {self.asked} tests with --in-process calls were recorded inside, "
              f"{self.inside} of {self.calls} calls; {self.plain} tests have no command with it")
        if self.nothing:
            print(f"nothing was recorded inside in: {', '.join(sorted(self.nothing))}")


def calls_told(folder):
    """The calls of all summaries that a test has left."""
    total = 0
    for path in glob.glob(os.path.join(folder, "*.json")):
        try:
            with open(path) as file:
                total += json.load(file)["calls"]["total"]
        except (ValueError, KeyError, TypeError, OSError):
            pass
    return total
