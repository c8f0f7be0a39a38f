# SPDX-License-Identifier: MIT
"""Exports that cannot be written: one sentence, and nothing left behind."""

import os
import subprocess

from case import Failure, Skip, equal

NAMES = ("x.sqlite", "x.csv", "x.svg", "x.pftrace", "x.json", "x.json.gz", "x.jsonl")


class SmallDisk:
    """A file system that is full after so many bytes."""

    def __init__(self, case, size):
        self.path, self.size = case.path("disk"), size

    def __enter__(self):
        os.mkdir(self.path)
        if os.geteuid() != 0 or subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={self.size}", "tmpfs", self.path],
                capture_output=True).returncode:
            raise Skip("cannot mount a small disk")
        return self.path

    def __exit__(self, *_):
        subprocess.run(["umount", self.path], check=True)


def test_refused_where_the_folder_is_not_there(case):
    for name in NAMES:
        case.refused("plain", case.path("none/" + name), "No such file or directory")


def test_refused_where_the_folder_cannot_be_written(case):
    """/proc refuses root, too."""
    for name in NAMES:
        result = case.cuscope("export", case.trace("plain"), "-o", "/proc/" + name)
        equal("status", 1, result.returncode)
        equal("lines", 1, result.stderr.count("\n"))
        if "cannot write" not in result.stderr:
            raise Failure(result.stderr)


def test_refused_by_a_full_disk(case):
    with SmallDisk(case, "8k") as disk:
        for name in NAMES:
            if not name.endswith(".gz"):  # fits
                case.refused("plain", os.path.join(disk, name), "No space left on device")


def test_a_database_goes_to_a_file_only(case):
    result = case.cuscope("export", case.trace("plain"), "--format", "sqlite")
    equal("status", 2, result.returncode)
    equal("standard output", "", result.stdout)
    os.mkfifo(case.path("pipe.sqlite"))
    case.refused("plain", case.path("pipe.sqlite"), "no ordinary file")


def test_a_file_that_exists_stays_as_it_is(case):
    for name in NAMES:
        with open(case.path(name), "w") as file:
            file.write("mine")
        case.refused("plain", case.path(name), "exists already")
        with open(case.path(name)) as file:
            equal(name, "mine", file.read())
