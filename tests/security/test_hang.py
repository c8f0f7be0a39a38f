# SPDX-License-Identifier: MIT
"""Targets whose memory and files do not answer: cuscope gives them up and goes on.

Who reads such a page, or opens such a file, waits in the kernel, and SIGKILL does not end it."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time

import checks
from harness import Failure, Places, Skip, alone, links_of, wait_until

CALLS = 2000
MADE = 1 + 2 * CALLS  # cuInit, then a name and a launch each
LIMIT = 20            # the file system is gone after 30 s: it is not to be what ends the wait


@contextlib.contextmanager
def serve(case, content, *user, folder=None):
    """A file that no process of cuscope's gets an answer about."""
    if not os.path.exists("/dev/fuse"):
        raise Skip("no /dev/fuse")
    folder = folder or case.path("mount")
    os.makedirs(folder)
    server = case.program("hostile-fuse", folder, content, 30, *user, name="server")
    try:
        wait_until(lambda: "ready" in server.out() or server.process.poll() is not None, "the server")
        if "ready" not in server.out():
            raise Skip(f"FUSE cannot be mounted here: {server.err()}")
        yield server, os.path.join(folder, "file")
    finally:
        server.stop()
        subprocess.run(["umount", "-l", folder], stderr=subprocess.DEVNULL, check=False)


def text_of(case, text):
    path = case.path("content")
    with open(path, "w") as file:
        file.write(text)
    return path


def end_within(case, trace, seconds, server=None):
    """Its result. Where it hangs, the file system has to end first, or nothing ever does."""
    try:
        trace.process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        with open(f"/proc/{trace.pid}/stat") as stat:
            state = stat.read().rsplit(")", 1)[1].split()[0]
        trace.signal(9)
        time.sleep(1)
        ended = trace.process.poll() is not None
        if server:
            server.stop()
        raise Failure(f"cuscope hangs (state {state}); SIGKILL ended it: {ended}") from None
    return case.result(trace, seconds=1)


def check_given_up(result, calls=MADE):
    checks.equal("status", 0, result.status)
    checks.equal("calls", calls, result.summary["calls"]["total"])
    checks.equal("complete", False, result.summary["missed"]["complete"])
    if not result.summary["missed"]["lost"]["no_answer"]:
        raise Failure(f"nothing is counted: {result.summary['missed']}")
    checks.contains("what the user is told", "could not be read within .* s", result.err)
    checks.equal("the list of what was missed", 1, len(result.said("no_answer")))


def test_a_kernel_name_in_a_file_that_is_never_read(case):
    with serve(case, text_of(case, "_Z8unreadv")) as (server, file):
        trace = case.start_trace(["--layer", "driver"],
                                 ["--", Places.program("hostile-hangs"), "memory", file, CALLS])
        check_given_up(end_within(case, trace, LIMIT, server))


def test_a_kernel_name_in_a_page_that_is_never_served(case):
    trace = case.start_trace(["--layer", "driver"],
                             ["--", Places.program("hostile-hangs"), "page", "-", CALLS])
    check_given_up(end_within(case, trace, LIMIT))


def test_a_mapped_file_that_cannot_be_opened(case):
    """A held command: what it maps is looked into before it goes on."""
    with serve(case, Places.simcuda("push", "libcuda.so.1")) as (server, file):
        trace = case.start_trace(["--layer", "driver"],
                                 ["--", Places.program("hostile-hangs"), "code", file, CALLS])
        result = end_within(case, trace, LIMIT, server)
        check_given_up(result)
        checks.contains("the server", "no answer to process", server.err())


def mapped_driver(case, *user):
    """A trace of a program that maps a driver from FUSE; what was hooked of that."""
    with serve(case, Places.simcuda("push", "libcuda.so.1"), *user) as (server, file):
        trace = case.start_trace(["--layer", "driver"],
                                 ["--", Places.program("hostile-hangs"), "code", file, CALLS])
        result = end_within(case, trace, LIMIT, server)
    checks.equal("status", 0, result.status)
    checks.equal("calls", MADE, result.summary["calls"]["total"])
    return result.said("FUSE")


def test_no_probe_is_put_into_a_file_that_a_user_serves(case):
    """Its page would be read while no process of the machine can fork."""
    checks.equal("misses", 1, len(mapped_driver(case, 1000)))


OVERLAY = """
cd $1 && mkdir fuse empty overlay
$2/hostile-fuse fuse $3 20 0 0 > out &
until grep -q ready out; do kill -0 $! || exit 77; sleep 0.05; done
mount -t overlay -o lowerdir=fuse:empty none overlay || exit 77
$2/hostile-hangs code overlay/file $4
status=$?
kill $!
exit $status
"""


def test_no_probe_is_put_into_an_overlay_of_a_users(case):
    """It may lie on a file system that the user serves, and does so here."""
    trace = case.start_trace(["--layer", "driver"],
                             ["--", Places.program("ownroot"), "unshare", "-U", "-r", "-m", "sh", "-c", OVERLAY, "sh", case.folder,
                              os.path.dirname(Places.program("hostile-fuse")),
                              Places.simcuda("push", "libcuda.so.1"), CALLS])
    result = end_within(case, trace, LIMIT)
    if result.status == 77:
        raise Skip("no FUSE, or overlay, in a user namespace here")
    checks.equal("calls", MADE, result.summary["calls"]["total"])
    checks.equal("misses", 1, len(result.said("FUSE")))


def test_a_file_that_root_serves_is_hooked(case):
    checks.equal("misses", 0, len(mapped_driver(case, 0)))


def test_one_that_hangs_does_not_cost_another_its_names(case):
    """Both are targets of one trace; the harmless one has all its kernels by name."""
    with serve(case, text_of(case, "_Z8unreadv")) as (server, file):
        script = case.path("both.sh")
        with open(script, "w") as out:
            program = Places.program("hostile-hangs")
            out.write(f"{program} memory {file} {CALLS}\n{program} none - {CALLS}\n")
        trace = case.start_trace(["--layer", "driver"], ["--", "/bin/sh", script])
        result = end_within(case, trace, LIMIT, server)
        check_given_up(result, 2 * MADE)
        named = sum(call.get("kernel") == "harmless()" for call in result.calls(name="cuLaunchKernel"))
        checks.equal("launches by name", CALLS, named)


def pages_of(case):
    """64 pages with a kernel's name each."""
    path = case.path("pages")
    with open(path, "wb") as file:
        for page in range(64):
            file.write(f"_Z5late{page % 10}v".encode().ljust(4096, b"\0"))
    return path


def test_a_server_that_is_always_just_in_time_is_not_waited_for_for_ever(case):
    """0.4 s each, of 0.5: its user has a second of the capture's time. What root runs has its names."""
    with serve(case, pages_of(case), 1234, 400) as (server, file):
        program = Places.program("hostile-hangs")
        script = case.path("both.sh")
        with open(script, "w") as out:
            out.write(f"setpriv --reuid 1234 --clear-groups {program} pages {file} 64\n{program} none - {CALLS}\n")
        trace = case.start_trace(["--layer", "driver"], ["--", "/bin/sh", script])
        result = end_within(case, trace, LIMIT, server)
        late = server.err().count("late answer")
    checks.equal("status", 0, result.status)
    checks.equal("calls", MADE + 2 * 64 + 1, result.summary["calls"]["total"])
    if late > 5:
        raise Failure(f"{late} late answers were waited for")
    if result.summary["missed"]["lost"]["texts"] < 64 - late:
        raise Failure(f"not each is counted: {late} late answers, {result.summary['missed']}")
    named = sum(call.get("kernel") == "harmless()" for call in result.calls(name="cuLaunchKernel"))
    checks.equal("launches by name", CALLS, named)


CONTAINER = """
import ctypes, os, sys
begin, go = os.pipe(), os.pipe()
container = os.fork()
if container:
    os.read(begin[0], 1)
    for kind in "uid", "gid":
        with open(f"/proc/{container}/{kind}_map", "w") as file:
            file.write("0 100000 10")
    os.write(go[1], b"x")
    os.waitpid(container, 0)
    sys.exit()
ctypes.CDLL(None).unshare(0x10000000)
os.write(begin[1], b"x")
os.read(go[0], 1)
for user in 1, 2:
    if not os.fork():
        os.setgroups([]), os.setuid(user)
        os.execv(sys.argv[1], sys.argv[1:])
os.wait(), os.wait()
"""


def test_one_with_many_uids_is_waited_for_like_one(case):
    """Two processes of one user namespace, of a user each: together they get what one would."""
    with serve(case, pages_of(case), 1234, 400) as (server, file):
        trace = case.start_trace(["--layer", "driver"],
                                 ["--", Places.program("ownroot"), "python3", "-c", CONTAINER, Places.program("hostile-hangs"),
                                  "pages", file, 32])
        result = end_within(case, trace, LIMIT, server)
        late = server.err().count("late answer")
    checks.equal("calls", 2 * (1 + 2 * 32), result.summary["calls"]["total"])
    if not 2 <= late <= 4:  # each for itself would be six
        raise Failure(f"{late} late answers were waited for")


def test_a_slow_disk_is_not_taken_for_that(case):
    """Mapped by a server of root's, 25 ms a page: all is read."""
    with serve(case, pages_of(case), 0, 25) as (server, file):
        trace = case.start_trace(["--layer", "driver"],
                                 ["--", Places.program("hostile-hangs"), "pages", file, 64])
        result = end_within(case, trace, LIMIT, server)
        late = server.err().count("late answer")
    checks.equal("complete", True, result.summary["missed"]["complete"])
    if late < 64:
        raise Failure(f"only {late} answers were late: the test says nothing")


def look_in(case, through_link):
    """A trace by root whose LD_LIBRARY_PATH leads to a user's server, from a folder of root's."""
    with tempfile.TemporaryDirectory(dir="/run") as roots:
        place = os.path.join(roots, "place")
        mount = case.path("mount") if through_link else place
        with serve(case, text_of(case, "nothing"), 1234, -1, folder=mount) as (server, _):
            if through_link:
                os.symlink(mount, place)
            trace = case.start_trace(["--duration", 0.5], ["--name", "nobody-is-called-so"],
                                     env=dict(case.environment(), LD_LIBRARY_PATH=place))
            result = end_within(case, trace, LIMIT, server)
    checks.equal("status", 0, result.status)


def test_a_folder_of_libraries_that_hangs(case):
    look_in(case, through_link=False)


def test_a_link_of_roots_to_a_folder_of_libraries_that_hangs(case):
    look_in(case, through_link=True)


def test_nothing_of_cuscope_stays_behind(case):
    """A helper that waits has nothing of the trace open: what reads its output sees the end."""
    with serve(case, text_of(case, "_Z8unreadv")) as (server, file):
        trace = case.start_trace(["--layer", "driver"],
                                 ["--", Places.program("hostile-hangs"), "memory", file, CALLS])
        end_within(case, trace, LIMIT, server)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/comm") as comm:
                    if comm.read().strip() != "cuscope-read":
                        continue
                fds = links_of(pid)
            except OSError:
                continue
            bad = [fd for fd in fds if not fd.startswith(("/dev/null", "socket:", f"/proc/{pid}/schedstat"))]
            if bad and "mount" not in " ".join(bad):
                raise Failure(f"process {pid} still has open: {bad}")
        server.stop()


LIST = """
mount -t tmpfs none /home && mkdir -p /home/u/conda/lib || exit 77
cp $2 $1/library && $3/hostile-fuse /home/u/conda/lib $1/library 30 1000 -1 > $1/out &
until grep -q ready $1/out; do kill -0 $! || exit 77; sleep 0.05; done
timeout -k 1 10 $4 doctor; timeout -k 1 10 $4 probes
echo over
kill $!
"""


def test_doctor_does_not_look_into_a_folder_that_a_user_serves(case):
    """Nor does probes: who waits there can be ended by nobody."""
    process = case.start(Places.program("ownroot"), "sh", "-c", LIST, "sh", case.folder, Places.simcuda("libcudart.so.13"),
                         os.path.dirname(Places.program("hostile-fuse")), os.path.join(Places.build, "cuscope"))
    status = process.wait(LIMIT)
    if status == 77:
        raise Skip("no FUSE here")
    checks.contains("the end", "over", process.out())
    checks.contains("doctor's page", "cost of a call", process.out())


def check_locked_mappings(case):
    """A user's process has the lock of its mappings as long as his FUSE takes nothing of what it has written there, and has the command's
    library mapped. No process of the machine can fork while a probe waits for that lock."""
    folder = case.path("locked")
    os.makedirs(folder)
    os.makedirs(case.path("lib"))
    library = shutil.copy(Places.simcuda("push", "libcuda.so.1"), case.path("lib"))
    case.env["LD_LIBRARY_PATH"] = case.path("lib") + ":" + Places.simcuda()
    server = case.program("hostile-fuse", folder, pages_of(case), 19, 1234, -3, name="server")
    wait_until(lambda: "ready" in server.out() or server.process.poll() is not None, "the server")
    if "ready" not in server.out():
        raise Skip(f"FUSE cannot be mounted here: {server.err()}")
    os.chmod(case.folder, 0o755)
    env = case.environment()
    env.pop("SAMPLE_COUNTS", None)  # a file of root's
    slow = case.path("slow")
    os.makedirs(slow)
    slow_server = case.program("hostile-fuse", slow, pages_of(case), 40, 1235, -3, name="slow-server")
    wait_until(lambda: "ready" in slow_server.out(), "the other server")
    script = ("import mmap, os; page = mmap.mmap(os.open(os.sys.argv[1], os.O_RDWR), 4096); page[0] = 1; "
              "print('writes', flush=True); page.flush()")
    writer = case.start("setpriv", "--reuid", "1235", "--regid", "1235", "--clear-groups", "/usr/bin/python3", "-c", script,
                        os.path.join(slow, "file"), name="writer", env=env)
    wait_until(lambda: "writes" in writer.out(), "the other to write")
    locker = case.start("setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups", Places.program("hostile-mappings"),
                        "locks", os.path.join(folder, "file"), library, name="locker", stdin=subprocess.PIPE, env=env)
    wait_until(lambda: "ready" in locker.out() or locker.process.poll() is not None, "its mappings to be locked")
    time.sleep(0.2)
    trace = case.start_trace(["--layer", "driver"], ["--", Places.program("loop"), "1", "100"])
    begin = time.monotonic()
    result = end_within(case, trace, LIMIT)
    took = time.monotonic() - begin
    is_served = server.process.poll() is None
    is_slow_served = slow_server.process.poll() is None
    slow_server.stop()
    writer.wait()
    subprocess.run(["umount", "-l", slow], stderr=subprocess.DEVNULL, check=False)
    locker.process.stdin.close()
    locker.wait()
    server.stop()
    subprocess.run(["umount", "-l", folder], stderr=subprocess.DEVNULL, check=False)
    checks.equal("status", 0, result.status)
    checks.equal("calls", result.counts.of("calls").get("cuMemFree_v2"), result.names()["cuMemFree_v2"])
    checks.equal("the connection goes on", False, is_served)
    checks.equal("that of a user whose process waits, too, and holds nobody up", True, is_slow_served)
    if result.err:  # another session of cuscope's may have ended it
        checks.contains("what was ended", "FUSE connection [0-9]+ of user 1234 was ended", result.err)
    if not 3 < took < 12:  # a training that reads from a slow store is not to lose it
        raise Failure(f"it took {took:.1f} s")


@alone
def test_a_probe_that_waits_for_locked_mappings_does_not_stop_the_machine(case):
    check_locked_mappings(case)


@alone
def test_nor_where_hundreds_of_threads_wait_for_files(case):
    """They were there first, and hide the one that waits with its mappings locked from nobody."""
    folder = case.path("many")
    os.makedirs(folder)
    server = case.program("hostile-fuse", folder, pages_of(case), 60, 1234, -2, name="server-of-many")
    wait_until(lambda: "ready" in server.out() or server.process.poll() is not None, "the server of many")
    if "ready" not in server.out():
        raise Skip(f"FUSE cannot be mounted here: {server.err()}")
    os.chmod(case.folder, 0o755)
    env = case.environment()
    env.pop("SAMPLE_COUNTS", None)
    script = ("import os, threading; close = lambda: os.close(os.open(os.sys.argv[1], os.O_RDONLY)); "
              "[threading.Thread(target=close).start() for _ in range(600)]; print('waits', flush=True)")
    many = case.start("setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups", "/usr/bin/python3", "-c", script,
                      os.path.join(folder, "file"), name="many", env=env)
    try:
        wait_until(lambda: "waits" in many.out(), "the threads")
        check_locked_mappings(case)
    finally:
        server.process.kill()
        server.process.wait()
        subprocess.run(["umount", "-l", folder], stderr=subprocess.DEVNULL, check=False)
        many.process.kill()
