# SPDX-License-Identifier: MIT
"""Files that root has cuscope write, in folders where other users put links and pipes first."""

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile

import checks
from harness import Failure, Places, wait_until

NOBODY = 65534
TEXT = "of root\n"


@contextlib.contextmanager
def shared_folder():
    """A folder like /tmp, and beside it one of root's with a file that is not to be changed."""
    top = tempfile.mkdtemp(prefix="cuscope-shared-")
    os.chmod(top, 0o755)
    folder, root = os.path.join(top, "shared"), os.path.join(top, "root")
    os.mkdir(folder)
    os.chmod(folder, 0o1777)
    os.mkdir(root, 0o700)
    with open(os.path.join(root, "victim"), "w") as file:
        file.write(TEXT)
    try:
        yield folder, os.path.join(root, "victim"), os.path.join(root, "made")
    finally:
        shutil.rmtree(top)


@contextlib.contextmanager
def another_user(lines, **words):
    """Runs these lines of Python as somebody who is not root, until the end of the block."""
    source = "import os, time\n" + "\n".join(f"{key} = {value!r}" for key, value in words.items())
    process = subprocess.Popen(["python3", "-c", source + "\n" + lines], user=NOBODY, group=NOBODY,
                               extra_groups=[], stdout=subprocess.PIPE)
    try:
        if process.stdout.readline() != b"ready\n":
            raise Failure("the other user did not begin")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def trace_of(case, name="seed.cuscope"):
    path = case.path(name)
    if not os.path.exists(path):
        process = case.cuscope("record", "-o", path, "--", Places.program("memory"))
        checks.equal("status of the recording", 0, process.wait())
    return path


def writers(case, path):
    """Each way in which cuscope writes a file of that name."""
    seed, program = trace_of(case), ["--", Places.program("memory")]
    quick = ["--", Places.program("loop"), "1", "100"]
    return {
        "record": ["record", "-o", path, *program],
        "record --last": ["record", "--last", "10s", "-o", path, *program],
        "trace jsonl": ["trace", "--format", "jsonl", "-o", path, *program],
        "trace sqlite": ["trace", "--format", "sqlite", "-o", path, *program],
        "trace summary": ["trace", "--summary-only", "-o", path, *program],
        "trace --json-summary": ["trace", "--summary-only", "--json-summary", path, *program],
        "export csv": ["export", seed, "--format", "csv", "-o", path],
        "export sqlite": ["export", seed, "--format", "sqlite", "-o", path],
        "export svg": ["export", seed, "--format", "svg", "-o", path],
        "launches": ["launches", "-o", path, *quick],
        "memleak --plot": ["memleak", "--plot", path, *quick],
        "top": ["top", "--once", "--interval", "100ms", "--command-output", path, *quick],
    }


def with_force(arguments):
    return [arguments[0], "--force", *arguments[1:]]


def report_file(folder):
    return os.path.join(folder, "summary.json")


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


# ---- links -------------------------------------------------------------------------------------


def each_writer(case, check):
    """Calls check(name, arguments, path, victim, made) with a folder of its own for each."""
    for name in writers(case, "x"):
        with shared_folder() as (folder, victim, made):
            path = os.path.join(folder, "out")
            check(name, writers(case, path)[name], path, victim, made)
            checks.equal(f"{name}: what root's file says", TEXT, read(victim))


def test_a_symbolic_link_is_not_followed(case):
    def check(name, arguments, path, victim, made):
        for target in (victim, made):
            os.symlink(target, path)
            process = case.cuscope(*arguments)
            checks.equal(f"{name}: status", True, process.wait() != 0)
            checks.contains(name, "is a symbolic link, which is not followed", process.err())
            os.unlink(path)
        checks.equal(f"{name}: root's folder", ["victim"], os.listdir(os.path.dirname(victim)))
    each_writer(case, check)


def test_force_replaces_links_and_does_not_write_through_them(case):
    def check(name, arguments, path, victim, made):
        for link in (os.symlink, os.link):
            link(victim, path)
            process = case.cuscope(*with_force(arguments))
            checks.equal(f"{name}: status ({process.err()[-200:]})", 0, process.wait())
            checks.equal(f"{name}: a file", True, stat.S_ISREG(os.lstat(path).st_mode))
            checks.equal(f"{name}: of its own", 1, os.lstat(path).st_nlink)
            os.unlink(path)
    each_writer(case, check)


def test_files_in_a_folder_of_reports_go_through_no_link(case):
    seed = trace_of(case)
    with shared_folder() as (folder, victim, _):
        os.symlink(victim, report_file(folder))
        ask = ["report", seed, "summary", "--format", "json", "--output", folder]
        checks.equal("status", 1, case.cuscope(*ask).wait())
        checks.equal("status with --force", 0, case.cuscope(*ask, "--force").wait())
        checks.equal("the report", True, "cudaMalloc" in read(report_file(folder)))
        checks.equal("root's file", TEXT, read(victim))


def test_a_link_that_comes_while_cuscope_begins_is_not_followed(case):
    """The name is free for a moment, or thought to be: somebody puts a link there all the time."""
    plant = """
print("ready", flush=True)
while True:
    for name in (path, path + "-journal"):
        try:
            os.symlink(target, name)
        except OSError:
            pass
"""
    for name in ("trace sqlite", "trace jsonl", "record", "export sqlite"):
        with shared_folder() as (folder, victim, made):
            path = os.path.join(folder, "out")
            for _ in range(3):
                with another_user(plant, path=path, target=made):
                    case.cuscope(*writers(case, path)[name]).wait()
                    case.cuscope(*with_force(writers(case, path)[name])).wait()
                for left in os.listdir(folder):
                    os.unlink(os.path.join(folder, left))
            checks.equal(f"{name}: root's folder", ["victim"], os.listdir(os.path.dirname(victim)))


def test_a_folder_that_somebody_else_leads_elsewhere_is_refused(case):
    with shared_folder() as (folder, victim, _):
        link = os.path.join(folder, "link")
        with another_user('os.symlink(target, path)\nprint("ready", flush=True)\ntime.sleep(60)',
                          path=link, target=os.path.dirname(victim)):
            for name, arguments in writers(case, os.path.join(link, "made")).items():
                process = case.cuscope(*arguments)
                checks.equal(f"{name}: refused", True, process.wait() != 0)
                checks.contains(name, f"a link on the way belongs to user {NOBODY}", process.err())
        checks.equal("root's folder", ["victim"], os.listdir(os.path.dirname(victim)))


def test_what_lies_beside_a_database_is_neither_read_nor_removed(case):
    seed = trace_of(case)
    with shared_folder() as (folder, victim, _):
        path = os.path.join(folder, "out.sqlite")
        for ending in ("-journal", "-wal"):
            os.symlink(victim, path + ending)
        checks.equal("status", 0, case.cuscope("export", seed, "-o", path).wait())
        checks.equal("files", ["out.sqlite", "out.sqlite-journal", "out.sqlite-wal"],
                     sorted(os.listdir(folder)))
        checks.equal("root's file", TEXT, read(victim))


# ---- who may read them -------------------------------------------------------------------------


def test_what_is_written_is_for_its_owner_alone(case):
    def check(name, arguments, path, victim, made):
        process = case.cuscope(*arguments, umask=0o022)
        checks.equal(f"{name}: status ({process.err()[-200:]})", 0, process.wait())
        checks.equal(f"{name}: mode", oct(0o600), oct(mode(path)))
    each_writer(case, check)


def test_mode_says_who_else_may_read(case):
    def check(name, arguments, path, victim, made):
        process = case.cuscope(arguments[0], "--output-mode", "640", *arguments[1:], umask=0o077)
        checks.equal(f"{name}: status ({process.err()[-200:]})", 0, process.wait())
        checks.equal(f"{name}: mode", oct(0o640), oct(mode(path)))
    each_writer(case, check)
    for wrong in ("", "0888", "rw", "01777", "-1", "0077"):
        process = case.cuscope("record", "--output-mode", wrong, "--", "true")
        checks.equal(f"status of '{wrong}'", 2, process.wait())
        checks.contains("the sentence", "is no mode in octal digits", process.err())
    for command in ("record", "trace", "report", "export", "top", "watch", "profile"):
        process = case.cuscope(command, "--help")
        process.wait()
        checks.contains(f"{command} --help", "--output-mode=BITS", process.out())
        meant = re.findall(r"^ .*--mode=.*", process.out(), re.M)
        checks.equal(f"{command} --mode", command == "profile", bool(meant))


def test_under_sudo_a_file_belongs_to_who_called_it(case):
    with shared_folder() as (folder, _, _):
        path = os.path.join(folder, "out")
        for name, arguments in writers(case, path).items():
            process = case.cuscope(*arguments, env={**case.environment(), "SUDO_UID": str(NOBODY),
                                                    "SUDO_GID": str(NOBODY)})
            checks.equal(f"{name}: status ({process.err()[-200:]})", 0, process.wait())
            checks.equal(f"{name}: owner", (NOBODY, NOBODY),
                         (os.stat(path).st_uid, os.stat(path).st_gid))
            os.unlink(path)


# ---- what is no regular file -------------------------------------------------------------------


def test_pipes_and_devices_are_written_to_as_they_are(case):
    seed = trace_of(case)
    fifo = case.path("fifo.csv")
    os.mkfifo(fifo)
    reader = subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE, text=True)
    checks.equal("status", 0, case.cuscope("export", seed, "-o", fifo).wait())
    checks.equal("through a named pipe", "time_ns", reader.communicate(timeout=20)[0][:7])
    checks.equal("the pipe", True, stat.S_ISFIFO(os.stat(fifo).st_mode))
    for arguments in (["export", seed, "--format", "csv", "-o"],
                      ["trace", "--format", "csv", "-o"]):
        rest = ["--", Places.program("memory")] if arguments[0] == "trace" else []
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"):
            process = case.cuscope(*arguments, name, *rest)
            checks.equal(f"status with {name}", 0, process.wait())
            checks.equal(f"through {name}", True, "time_ns," in process.out())
        checks.equal("status with /dev/null", 0, case.cuscope(*arguments, "/dev/null", *rest).wait())
    checks.equal("/dev/null", True, stat.S_ISCHR(os.stat("/dev/null").st_mode))


def test_a_pipe_that_somebody_planted_gets_nothing(case):
    seed = trace_of(case)
    with shared_folder() as (folder, _, _):
        path = os.path.join(folder, "out.csv")
        listen = 'os.mkfifo(path)\nos.chmod(path, 0o666)\nprint("ready", flush=True)\nopen(path).read()'
        with another_user(listen, path=path):
            process = case.cuscope("export", seed, "-o", path)
            checks.equal("status", 1, process.wait())
            checks.contains("the sentence", f"belongs to user {NOBODY}", process.err())


def test_no_pipe_is_waited_for_in_place_of_a_file_that_is_read(case):
    """Nobody may ever write into it."""
    fifo, folded = case.path("fifo"), case.path("before.folded")
    os.mkfifo(fifo)
    with open(folded, "w") as file:
        file.write("main;step 10\n")
    for arguments in (["profile", "--diff", fifo, folded], ["profile", "--diff", folded, fifo], ["probes", fifo],
                      ["report", fifo], ["diff", fifo, fifo], ["info", fifo]):
        process = case.cuscope(*arguments)
        checks.equal(f"status of {arguments[0]}", 1, process.wait())
        checks.contains(arguments[0], "fifo is (not a|no) regular file", process.err())


# ---- endings -----------------------------------------------------------------------------------


def test_a_recording_that_is_killed_is_there_under_its_name(case):
    for options in ([], ["--force"]):
        path = case.path("killed.cuscope")
        process = case.cuscope("record", "--no-stacks", *options, "-o", path, "--", Places.program("loop"), "60",
                               "2000", stdin=subprocess.PIPE)
        wait_until(lambda: "ready" in process.out(), "the program to begin")
        wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 20000, "the file")
        process.signal(signal.SIGKILL)
        process.wait()
        told = case.cuscope("info", "--json", path)
        told.wait()
        checks.equal("events", True, json.loads(told.out())["calls"] > 1000)
        checks.equal("nothing else", [], [f for f in os.listdir(case.folder) if f.endswith(".tmp")])


def test_a_command_that_cannot_run_costs_no_file(case):
    for arguments in (["record", "-o"], ["trace", "--format", "csv", "-o"]):
        path = case.path("old")
        with open(path, "w") as file:
            file.write(TEXT)
        process = case.cuscope(*with_force(arguments), path, "--", "/nowhere/to/be/found")
        checks.equal("failed", True, process.wait() != 0)
        checks.equal("the old file", TEXT, read(path))
        process = case.cuscope(*arguments, case.path("new"), "--", "/nowhere/to/be/found")
        checks.equal("failed", True, process.wait() != 0)
        checks.equal("no new one", False, os.path.exists(case.path("new")))


def limited(case, *arguments):
    """With a limit of 64 KiB for each file, whose signal would end cuscope in the middle."""
    return case.start("bash", "-c", 'ulimit -f 64; exec "$@"', "bash", Places.cuscope(),
                      *arguments, name=f"{len(case.started)}-limited", stdin=subprocess.PIPE)


def test_the_limit_of_a_files_size_ends_with_a_sentence_and_what_is_whole(case):
    loop = ["--", Places.program("loop"), "2", "100000"]
    jsonl, recorded = case.path("out.jsonl"), case.path("out.cuscope")
    process = limited(case, "trace", "-o", jsonl, *loop)
    checks.equal("status", 1, process.wait())
    checks.contains("the sentence", "cannot write .*: File too large", process.err())
    for line in read(jsonl).splitlines():
        json.loads(line)
    checks.equal("the last line is whole", "\n", read(jsonl)[-1])
    process = limited(case, "record", "-o", recorded, *loop)
    checks.equal("status", 1, process.wait())
    checks.contains("the sentence", "cannot write .*: File too large", process.err())
    told = case.cuscope("info", "--json", recorded)
    told.wait()
    checks.equal("cut, and not damaged", (True, None),
                 tuple(json.loads(told.out())[key] for key in ("cut_short", "damage")))
    full, little = case.path("full.cuscope"), case.path("little.cuscope")
    process = case.cuscope("record", "-o", full, *loop, stdin=subprocess.PIPE)
    checks.equal("status", 0, process.wait())
    process = case.cuscope("record", "-o", little, "--", Places.program("threads"), "2", "40")
    checks.equal("status", 0, process.wait())
    process = limited(case, "export", little, "-o", case.path("little.sqlite"))  # all is written in the end
    checks.equal("status of little.sqlite", 1, process.wait())
    checks.contains("the sentence of little.sqlite", "cannot write .*: File too large", process.err())
    for name in ("out.sqlite", "out.json", "out.pftrace", "out.csv"):
        process = limited(case, "export", full, "-o", case.path(name))
        checks.equal(f"status of {name}", 1, process.wait())
        checks.contains(f"the sentence of {name}", "cannot write .*: File too large", process.err())
        checks.equal(f"no {name}", False, os.path.exists(case.path(name)))


def test_a_program_keeps_its_own_fate_at_the_limit(case):
    """What cuscope ignores for itself, the command does not inherit."""
    program = 'open("/proc/self/status").read()'
    read_it = f"import sys; print([l for l in {program}.splitlines() if l.startswith('SigIgn')])"
    plain = case.start("python3", "-c", read_it)
    plain.wait()
    traced = case.cuscope("trace", "--summary-only", "-o", case.path("s"), "--", "python3", "-c", read_it)
    traced.wait()
    checks.equal("ignored signals", plain.out().strip(), traced.out().strip().splitlines()[0])


def test_an_unknown_ending_is_an_error(case):
    for arguments in (["trace", "-o", case.path("x.xml"), "--", Places.program("memory")],
                      ["trace", "-o", case.path("x"), "--", Places.program("memory")],
                      ["export", trace_of(case), "-o", case.path("x.pftraec")]):
        process = case.cuscope(*arguments)
        checks.equal("status", 2, process.wait())
        checks.contains("the sentence", r"has the ending of no format \(\.txt, .*\.pftrace.*\): "
                        "--format chooses one", process.err())
        checks.equal("no file", [], [f for f in os.listdir(case.folder) if f.startswith("x")])
