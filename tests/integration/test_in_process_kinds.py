# SPDX-License-Identifier: MIT
"""Calls recorded inside of processes that are traced, frozen, confined or otherwise seldom: each is recorded inside, or keeps its probes and a
sentence says why. The program goes on, each call is told once, and its code at the end is that of its file."""

import collections
import os
import shutil
import signal
import subprocess
import time

import checks
from harness import Failure, Places, Skip, alone, wait_until
from test_in_process import INSIDE, attach, is_as_in_its_file, is_inside, told_inside

NAMES = ("cuMemAlloc_v2", "cuLaunchKernel", "cuMemFree_v2")  # of each round of tests/programs/loop.c
NOBODY = 65534


def needs(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Skip(f"{tool} is not here")


def loop(case, *before, seconds=300, name=None):
    """A program that makes 300 rounds of calls a second, started by `before`."""
    words = [*before, Places.program("loop"), str(seconds), "300"]
    program = case.start(*words, name=name, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out() or program.process.poll() is not None, "the program", 30)
    if program.process.poll() is not None:
        raise Failure(f"the program ended: {program.err()[-600:]}")
    return program


def child_of(process):
    """The pid of the one program that it started."""
    def find():
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as children:
            return children.read().split()

    return int(wait_until(find, "the child")[0])


def maps_of(pid):
    with open(f"/proc/{pid}/maps") as maps:
        return maps.read()


def status_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return status.read()


def goes_on(program):
    """It does, and ends well when its input does: all of its calls were answered."""
    if program.process.poll() is not None:
        raise Failure(f"the program ended: {program.err()[-600:]}")
    program.process.stdin.close()
    checks.equal("status of the program", 0, program.wait())


def once(result, pid, least=100):
    """No call of a thread lies in another one, as one that is told twice would, and each name is there as often as the others."""
    calls = [call for call in result.calls(pid=pid) if call["name"] in NAMES and not call.get("nested")]
    threads = collections.defaultdict(list)
    for call in calls:
        threads[call["tid"]].append(call)
    for own in threads.values():
        own.sort(key=lambda call: call["ts"])
        for call, after in zip(own, own[1:]):
            if call["ts"] + call.get("dur", 0) > after["ts"] + 0.002:
                raise Failure(f"told twice: {call} and {after}")
    counts = collections.Counter(call["name"] for call in calls)
    if min(counts[name] for name in NAMES) < least or max(counts.values()) - min(counts.values()) > 2:
        raise Failure(f"calls of {pid}: {counts}; {result.err[-600:]}")


def stop(case, trace, seconds=60):
    """Its end, by the user's wish."""
    trace.signal(signal.SIGINT)
    result = case.result(trace, seconds=seconds)
    checks.valid(result)
    return result


def beside(case, pid, *sentences, least=100):
    """One that keeps its probes, beside one that is recorded inside. The result."""
    other = loop(case, name="other")
    trace = case.start_trace(["--in-process"], ["-p", f"{other.pid},{pid}"])
    is_inside(trace)
    time.sleep(1.5)
    result = stop(case, trace)
    checks.equal("processes inside", 1, told_inside(result.err)[2])
    once(result, other.pid)
    if least:
        once(result, pid, least)
    for sentence in sentences:
        checks.contains("it says", sentence, result.err + str(result.summary["missed"]))
    goes_on(other)
    return result


# ---- tracers ------------------------------------------------------------------------------------


@alone  # valgrind runs what it reads, and there it meets breakpoints of other traces of the same file
def test_in_process_kinds_under_valgrind(case):
    """Its code is not what the processor runs. (The simulated driver has no memory to give there.)"""
    needs("valgrind")
    program = case.start("valgrind", "--tool=none", "-q", Places.program("tight"), "0")
    wait_until(lambda: "libcuda.so.1" in maps_of(program.pid), "the driver", 30)
    trace = case.start_trace(["--in-process"], ["-p", str(program.pid)])
    checks.equal("status", 1, trace.wait())
    checks.contains("it says", "runs under valgrind, .* it is not traced", trace.err())
    wait_until(program.out, "a line of the program", 50)
    checks.equal("it runs", None, program.process.poll())


def test_in_process_kinds_started_under_strace(case):
    needs("strace")
    program = loop(case, "strace", "-qq", "-f", "-o", "/dev/null", "-e", "trace=none")
    beside(case, child_of(program), "strace")
    goes_on(program)


def test_in_process_kinds_a_command_that_is_strace(case):
    """It can trace nothing while it is held itself. Its child has the agent by its environment, and nobody can stop it."""
    needs("strace")
    trace = case.start_trace(["--in-process", "--no-hold"], ["--", "strace", "-qq", "-f", "-o", "/dev/null", "-e", "trace=none",
                                                           Places.program("loop"), "3", "300"], stdin=subprocess.PIPE)
    result = case.result(trace)
    checks.equal("status", 0, result.status)
    once(result, *result.counts.pids())
    checks.contains("it says", "keeps its probes: .*strace", result.err)


def test_in_process_kinds_under_gdb_that_was_there_before(case):
    needs("gdb")
    program = case.start("gdb", "-q", "-batch", "-ex", "run", "--args", Places.program("loop"), "60", "300", stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program", 30)
    beside(case, child_of(program), "gdb")
    program.process.stdin.close()
    checks.equal("status of gdb", 0, program.wait())
    checks.contains("the program ended", "exited normally", program.out())


@alone
def test_in_process_kinds_under_gdb_that_comes_later(case):
    """While gdb has it nobody else can put its entries back. Who waits for that does so for 10 s."""
    needs("gdb")
    program = loop(case)
    trace = attach(case, program)
    gdb = case.start("gdb", "-q", "-nx", "-batch", "-p", str(program.pid), "-ex", "continue")
    try:
        wait_until(lambda: f"TracerPid:\t{gdb.pid}" in status_of(program.pid) and "t (tracing" not in status_of(program.pid), "gdb", 30)
        time.sleep(1)
        result = stop(case, trace)
    finally:
        gdb.stop()  # before the program, whose end nobody else is told of
    once(result, program.pid)
    checks.contains("it says", "gdb", result.err)
    is_as_in_its_file(program)
    goes_on(program)


# ---- frozen -------------------------------------------------------------------------------------


class Freezer:
    """A group whose processes can be frozen: of version 2 (`unified`), or of version 1."""

    def __init__(self, case, version):
        root = {1: "/sys/fs/cgroup/freezer", 2: "/sys/fs/cgroup/unified"}[version]
        if version == 2 and os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            root = "/sys/fs/cgroup"
        self.folder = os.path.join(root, f"cuscope-test-{os.getpid()}-{os.path.basename(case.folder)[-40:]}")
        self.version = version
        try:
            os.mkdir(self.folder)
        except OSError as error:
            raise Skip(f"no freezer of version {version}: {error}") from None
        self.file, self.words = (("freezer.state", ("THAWED", "FROZEN")), ("cgroup.freeze", ("0", "1")))[version - 1]
        if not os.path.exists(os.path.join(self.folder, self.file)):
            os.rmdir(self.folder)
            raise Skip(f"no freezer of version {version}")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return file.read()

    def add(self, pid):
        self.write("cgroup.procs", str(pid))

    def freeze(self, frozen=True):
        self.write(self.file, self.words[frozen])
        if self.version == 1:
            wait_until(lambda: self.read(self.file).strip() == self.words[frozen], "the freezer")
        else:
            wait_until(lambda: f"frozen {int(frozen)}" in self.read("cgroup.events"), "the freezer")

    def end(self):
        self.write(self.file, self.words[0])
        for pid in self.read("cgroup.procs").split():
            with open(os.path.join(self.folder, "..", "cgroup.procs"), "w") as file:
                file.write(pid)
        os.rmdir(self.folder)


def frozen_before(case, version):
    freezer = Freezer(case, version)
    try:
        program = loop(case)
        freezer.add(program.pid)
        freezer.freeze()
        trace = case.start_trace(["--in-process"], ["-p", str(program.pid)])
        time.sleep(3)
        if INSIDE.search(trace.err()):
            raise Failure(f"it was diverted while it was frozen: {trace.err()}")
        freezer.freeze(False)
        wait_until(lambda: "are recorded inside of process" in trace.err() or "keeps its probes" in trace.err(), "a sentence", 30)
        time.sleep(1)
        result = stop(case, trace)
        once(result, program.pid)
        is_as_in_its_file(program)
        goes_on(program)
    finally:
        freezer.end()


def frozen_later(case, version):
    freezer = Freezer(case, version)
    try:
        program = loop(case)
        freezer.add(program.pid)
        trace = attach(case, program)
        time.sleep(1)
        freezer.freeze()
        begin = time.monotonic()
        result = stop(case, trace)
        took = time.monotonic() - begin
        if took > 40:
            raise Failure(f"it waited for {took:.0f} s")
        once(result, program.pid, 50)
        freezer.freeze(False)
        is_as_in_its_file(program)
        goes_on(program)
    finally:
        freezer.end()


@alone
def test_in_process_kinds_frozen_while_cuscope_comes(case):
    frozen_before(case, 2)


@alone
def test_in_process_kinds_frozen_while_cuscope_goes(case):
    frozen_later(case, 2)


@alone
def test_in_process_kinds_frozen_by_the_old_freezer_while_cuscope_comes(case):
    frozen_before(case, 1)


@alone
def test_in_process_kinds_frozen_by_the_old_freezer_while_cuscope_goes(case):
    frozen_later(case, 1)


# ---- confined -----------------------------------------------------------------------------------


def make_root(case):
    """A folder with the program, its libraries and nothing else."""
    root = case.path("root")
    libraries = subprocess.run(["ldd", Places.program("loop")], capture_output=True, text=True, check=True,
                               env=case.environment()).stdout.split()
    folder = os.path.dirname(next(word for word in libraries if word.startswith("/") and "libc.so" in word))
    libraries += [f"{folder}/{name}" for name in ("libdl.so.2", "libpthread.so.0")]  # the agent's
    own = [os.path.abspath(path) for path in (Places.program("loop"), Places.simcuda("push", "libcuda.so.1"))]
    for path in [word for word in libraries if word.startswith("/")] + own:
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, root + path)
    return root


def in_root(case, script="exec"):
    needs("chroot")
    root = make_root(case)
    case.env["LD_LIBRARY_PATH"] = os.path.abspath(Places.simcuda("push"))
    case.env["SAMPLE_COUNTS"] = "/counts"
    return loop(case, Places.program("ownroot"), "sh", "-c", script.replace("ROOT", root) + ' "$@"', "sh", "chroot", root)


def test_in_process_kinds_in_a_chroot_without_proc(case):
    beside(case, in_root(case).pid, "sees no /proc, as in a chroot without one")


@alone
def test_in_process_kinds_a_setuid_program(case):
    """It is entered as any other. What its own user has started is not believed about its agent."""
    needs("setpriv", "ldconfig")
    copy = shutil.copy(Places.program("loop"), case.path("loop"))
    os.chmod(copy, 0o4755)
    with open(case.path("ld.conf"), "w") as file:  # LD_LIBRARY_PATH is left out for it
        file.write("".join(f"{folder}\n" for folder in Places.libraries().split(":")))
    subprocess.run(["ldconfig", "-X", "-C", case.path("cache"), "-f", case.path("ld.conf")], check=True, stderr=subprocess.DEVNULL)
    script = f"mount --bind {case.path('cache')} /etc/ld.so.cache || exit 77; " \
             f"exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups {copy} 60 300"
    case.env["SAMPLE_COUNTS"] = case.path("counts")
    program = case.start(Places.program("ownroot"), "sh", "-c", script, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out() or program.process.poll() is not None, "the program")
    if program.process.poll() == 77:
        raise Skip("nothing can be mounted here")
    checks.contains("its users", f"Uid:\t{NOBODY}\t0\t0", status_of(program.pid))
    trace = attach(case, program)
    time.sleep(1)
    result = stop(case, trace)
    once(result, program.pid)
    is_as_in_its_file(program)
    goes_on(program)


NARROW = """
void _start(void)
{
	for (;;)
		__asm__ volatile("int $0x80" : : "a"(29) : "memory"); /* pause */
}
"""


def test_in_process_kinds_beside_a_32_bit_process(case):
    """One without a C library, which needs no packages for it."""
    with open(case.path("narrow.c"), "w") as file:
        file.write(NARROW)
    built = subprocess.run(["gcc", "-m32", "-nostdlib", "-static", "-o", case.path("narrow"), case.path("narrow.c")], check=False,
                           capture_output=True, text=True)
    if built.returncode:
        raise Skip("no 32-bit program can be built here")
    try:
        narrow = case.start(case.path("narrow"))
    except OSError as error:
        raise Skip(f"32-bit programs do not run here: {error}") from None
    beside(case, narrow.pid, least=0)
    checks.equal("it runs", None, narrow.process.poll())


# ---- files --------------------------------------------------------------------------------------


@alone
def test_in_process_kinds_an_executable_on_fuse(case):
    """Root's own: into others' no probes are put either (tests/security/test_hang.py)."""
    server = Places.program("hostile-fuse")
    if not os.path.exists("/dev/fuse") or not os.path.exists(server):
        raise Skip("no FUSE, or no server (make security-programs)")
    os.makedirs(case.path("mount"))
    serving = case.start(server, case.path("mount"), Places.program("loop"), "60", "0")
    try:
        wait_until(lambda: "ready" in serving.out() or serving.process.poll() is not None, "the server")
        if serving.process.poll() is not None:
            raise Skip("FUSE cannot be mounted here")
        program = case.start(case.path("mount/file"), "60", "300", stdin=subprocess.PIPE)
        wait_until(lambda: "ready" in program.out(), "the program")
        trace = attach(case, program)
        time.sleep(1)
        once(stop(case, trace), program.pid)
        is_as_in_its_file(program)
        goes_on(program)
    finally:
        serving.stop()
        subprocess.run(["umount", "-l", case.path("mount")], stderr=subprocess.DEVNULL, check=False)


@alone
def test_in_process_kinds_a_library_that_a_process_has_twice(case):
    program = case.program("twice", 300, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program")
    trace = case.start_trace(["--in-process", "--all-calls"], ["-p", str(program.pid)])
    wait_until(lambda: "keeps its probes" in trace.err() or "recorded inside of" in trace.err(), "a sentence", 20)
    time.sleep(1)
    result = stop(case, trace)
    checks.contains("it says", "keeps its probes: the process has it twice", result.err)
    names = result.names()
    if abs(names["cuDriverGetVersion"] - 2 * names["cuMemAlloc_v2"]) > 4:
        raise Failure(f"calls of both are not told: {names}")
    goes_on(program)


def test_in_process_one_library_in_two_containers(case):
    """Two files by overlay, which are one to the kernel: each call meets the probes of both, and an agent tells of it. It is told once."""
    if case.start(Places.program("ownroot"), "true").wait():
        raise Skip("no mount namespaces here")
    folders = {name: case.path(name) for name in ("lower", "up1", "work1", "one", "up2", "work2", "two")}
    for path in folders.values():
        os.mkdir(path)
    shutil.copy(Places.simcuda("push", "libcuda.so.1"), folders["lower"])
    script = " && ".join(
        f"mount -t overlay overlay -o lowerdir={folders['lower']},upperdir={folders['up' + n]},"
        f"workdir={folders['work' + n]} {folders[name]}" for n, name in (("1", "one"), ("2", "two")))
    for name in ("one", "two"):
        script += f"\nLD_LIBRARY_PATH={folders[name]} {Places.program('threads')} 2 25 &"
    case.env["SAMPLE_WAIT"] = case.path("go")
    trace = case.start_trace(["--in-process"], ["--", Places.program("ownroot"), "sh", "-c", script + "\nwait"])
    is_inside(trace, 2)
    open(case.path("go"), "w").close()
    result = case.result(trace)
    checks.valid(result)
    checks.everything(result)
    checks.equal("calls that look nested", [], [call["name"] for call in result.calls() if call["depth"]])
    checks.equal("processes inside", 2, told_inside(result.err)[2])
