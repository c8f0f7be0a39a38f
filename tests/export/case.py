# SPDX-License-Identifier: MIT
"""What the export tests share."""

import difflib
import os
import subprocess

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")


class Failure(Exception):
    pass


class Skip(Exception):
    """Something that the test needs is not on this machine."""


def equal(what, expected, seen):
    if expected != seen:
        raise Failure(f"{what}: {seen!r}, should be {expected!r}")


def hide_version(case, text):
    """A golden output outlives the version that it was made with."""
    version = case.cuscope("--version").stdout.split()[-1]
    return text.replace(f'"{version}"', '"VERSION"').replace(f"cuscope {version}", "cuscope VERSION")


class Case:
    """A folder of its own, and cuscope in it."""

    def __init__(self, folder, build, write):
        self.folder, self.build, self.write = folder, build, write

    def path(self, name):
        return os.path.join(self.folder, name)

    def trace(self, name):
        """A golden one, or one that is made here: "edges", and "hard stacks"."""
        programs = {"edges": "edges", "events": "events", "hard stacks": "stacks"}
        if name not in programs:
            return os.path.join(GOLDEN, name + ".cuscope")
        path = self.path(name.replace(" ", "_") + ".cuscope")
        subprocess.run([os.path.join(self.build, "tests", "export", programs[name]), path], check=True)
        return path

    def cuscope(self, *arguments, **options):
        """The finished process; times of day are UTC's."""
        return subprocess.run([os.path.join(self.build, "cuscope"), *arguments],
                              capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, TZ="UTC"), **options)

    def export(self, trace, name, *options):
        """Writes a golden trace to a file and returns its path."""
        path = self.path(name)
        result = self.cuscope("export", self.trace(trace), "-o", path, *options)
        if result.returncode or result.stderr:
            raise Failure(f"export ended with {result.returncode}: {result.stderr}")
        return path

    def refused(self, trace, path, sentence):
        """An export that cannot be: one sentence, status 1, and nothing left behind."""
        folder = os.path.dirname(path)
        before = sorted(os.listdir(folder)) if os.path.isdir(folder) else None
        result = self.cuscope("export", self.trace(trace), "-o", path)
        equal("status", 1, result.returncode)
        if sentence not in result.stderr or result.stderr.count("\n") != 1:
            raise Failure(f"it said {result.stderr!r}, should be one sentence with {sentence!r}")
        if before is not None:
            equal("files", before, sorted(os.listdir(folder)))

    def golden(self, name, text):
        """Compares with tests/golden/NAME."""
        path = os.path.join(GOLDEN, name)
        if self.write:
            with open(path, "w") as file:
                file.write(text)
        with open(path) as file:
            lines = list(difflib.unified_diff(file.read().splitlines(), text.splitlines(),
                                              "golden", "now", lineterm="", n=0))
        if lines:
            raise Failure(f"{name} is another ({len(lines)} lines of difference): " +
                          "; ".join(lines[2:8]))
