# SPDX-License-Identifier: MIT
"""A library gets into a process that runs, and the process does not notice.

tests/inject/target checks itself: results and times of its waits, registers, signals. It ends with
status 0 at SIGTERM when all was well.
"""

import os
import random
import shutil
import signal
import subprocess
import time

import checks
from harness import Failure, Places, Skip, alone, wait_until

NO_POINT = "no thread of process"


def program(name):
    return os.path.join(Places.build, "inject", name)


def start_target(case, work, threads=0, name="target", command=(), **options):
    target = case.start(*command, program(name), work, str(threads), **options)
    wait_until(lambda: "ready" in target.out() or target.process.poll() is not None, "the target")
    time.sleep(0.05)
    return target


def attach_command(pid, function="greet", limit_ms=10000, times=1, library=None, kill_us=0, older=0):
    return [program("attach"), str(pid), library or program("library.so"), function, str(limit_ms),
            str(times), str(kill_us), str(older)]


def attach(case, pid, *arguments, **options):
    """The lines of tests/inject/attach."""
    process = case.start(*attach_command(pid, *arguments, **options))
    process.wait()
    return process.out().splitlines()


def ends_well(target):
    target.signal(signal.SIGTERM)
    if target.wait() != 0:
        raise Failure(f"the target says: {target.out()[-300:]}")


def all_ok(lines, times):
    if len(lines) != times or not all(line.startswith("ok ") for line in lines):
        raise Failure(f"not {times} times ok: {lines[:5]}")


def says(lines, *parts):
    for part in parts:
        if not lines or not lines[0].startswith("error ") or part not in lines[0]:
            raise Failure(f"not said: {part}; but {lines[:3]}")


def has_descriptors(target, count):
    """Its thread closes the last one after it has told how it went."""
    def there():
        return len(os.listdir(f"/proc/{target.pid}/fd"))
    wait_until(lambda: there() == count, f"{count} descriptors, of {there()}")


# ---- where threads wait ----------------------------------------------------------------------------


def wait_test(work, threads):
    def test(case):
        target = start_target(case, work, threads)
        before = len(os.listdir(f"/proc/{target.pid}/fd"))
        lines = attach(case, target.pid, times=3)
        all_ok(lines, 3)
        has_descriptors(target, before)
        checks.equal("answers", ["hello 1", "hello 2", "hello 3"],
                     [" ".join(line.split()[2:]) for line in lines])
        ends_well(target)

    test.__name__ = f"test_inject_into_{'four_threads' if threads else 'a_main_thread'}_in_{work}"
    return test


for wait in ("poll", "ppoll", "select", "nanosleep", "sleep-until", "epoll", "read", "condition"):
    globals()[f"test_main_{wait}"] = wait_test(wait, 0)
    # their stacks are as small as can be
    globals()[f"test_threads_{wait}"] = wait_test(wait, 4)


def test_inject_again_and_again_into_one_sleep(case):
    """What is left of it is the kernel's to know, and it ends on time."""
    begin = time.monotonic()
    target = case.start("sleep", "2")
    time.sleep(0.3)
    all_ok(attach(case, target.pid, times=5), 5)
    checks.equal("sleep", 0, target.wait())
    took = time.monotonic() - begin
    if not 2 <= took < 2.5:
        raise Failure(f"it slept {took} s")


def test_inject_changes_no_register(case):
    """General, flags and vectors, around system calls of 2 ms."""
    target = start_target(case, "registers", 3)
    all_ok(attach(case, target.pid, times=100), 100)
    ends_well(target)


def test_inject_at_the_entry_of_a_call_where_no_thread_waits(case):
    target = start_target(case, "busy")
    all_ok(attach(case, target.pid, times=3), 3)
    ends_well(target)


def test_inject_beside_threads_that_allocate_all_the_time(case):
    target = start_target(case, "malloc", 3)
    all_ok(attach(case, target.pid, times=10), 10)
    ends_well(target)


def test_inject_finds_no_point_in_an_allocator(case):
    target = start_target(case, "malloc")
    says(attach(case, target.pid, limit_ms=1000), NO_POINT, "in 1.0 s")
    ends_well(target)


def slow_malloc(case, ms, work="slow-malloc"):
    """Its main thread sleeps for that time with its allocator's lock, and then elsewhere."""
    return start_target(case, work, env=dict(case.environment(), LD_PRELOAD=program("slow_malloc.so"),
                                             SLOW_MALLOC_MS=str(ms)))


def test_inject_borrows_no_thread_that_sleeps_in_its_allocator(case):
    """It would wait for its own lock for good."""
    target = slow_malloc(case, 1000)
    all_ok(attach(case, target.pid, times=3), 3)
    ends_well(target)


def test_inject_says_that_a_thread_stays_in_its_allocator(case):
    target = slow_malloc(case, 4000)
    says(attach(case, target.pid, limit_ms=1000), "are in an allocator or the loader")
    ends_well(target)


def test_inject_gives_a_thread_back_that_waits_for_itself(case):
    """No stack shows that it has the lock: it is let out of the loader, and goes on."""
    target = slow_malloc(case, 0, "held-allocator")
    before = len(os.listdir(f"/proc/{target.pid}/fd"))
    says(attach(case, target.pid, limit_ms=2000), "in 2.0 s, since a lock", "given back to what it did")
    has_descriptors(target, before)
    ends_well(target)


def test_inject_takes_a_thread_whose_stack_is_not_known_late(case):
    target = start_target(case, "made-code")
    begin = time.monotonic()
    all_ok(attach(case, target.pid), 1)
    if time.monotonic() - begin < 0.9:
        raise Failure("at once")
    ends_well(target)


def test_inject_finds_no_point_where_nothing_is_called(case):
    target = start_target(case, "compute")
    says(attach(case, target.pid, limit_ms=1000), NO_POINT)
    ends_well(target)


WAITS = """#include <unistd.h>
int main(void)
{
	if (write(1, "ready\\n", 6) != 6)
		return 1;
	for (;;)
		pause();
}
"""


def test_inject_leaves_programs_with_thread_sanitizer_alone(case):
    """A thread that was borrowed for dlopen ended half of them. gcc's has a library of its own, clang's is in the program."""
    source = case.path("waits.c")
    with open(source, "w") as file:
        file.write(WAITS)
    for compiler in ("gcc", "clang"):
        path = case.path("waits-" + compiler)
        built = subprocess.run([compiler, "-fsanitize=thread", "-o", path, source], check=False, capture_output=True, text=True)
        if built.returncode:
            raise Skip(f"{compiler} has no ThreadSanitizer here: {built.stderr[-200:]}")
        target = case.start(path)
        wait_until(lambda: "ready" in target.out() or target.process.poll() is not None, "the program")
        says(attach(case, target.pid), "is built with ThreadSanitizer", "start the program with cuscope instead")
        checks.equal(f"status of {compiler}'s program, which goes on", None, target.process.poll())
        target.signal(signal.SIGTERM)
        target.wait()


def test_inject_where_the_main_thread_has_ended(case):
    target = start_target(case, "leaderless")
    all_ok(attach(case, target.pid, times=2), 2)
    checks.equal("it runs", None, target.process.poll())


# ---- signals -----------------------------------------------------------------------------------


def test_inject_loses_no_signal_of_ten_thousand_a_second(case):
    target = start_target(case, "signals")
    all_ok(attach(case, target.pid, times=30), 30)
    ends_well(target)


def test_inject_leaves_a_signals_eintr_to_the_wait(case):
    """epoll_wait has no end of its own; the signal comes while its thread is borrowed."""
    target = start_target(case, "epoll-signal")
    attaching = case.start(*attach_command(target.pid, "linger"))
    wait_until(lambda: "memfd:cuscope-test" in read(f"/proc/{target.pid}/maps"), "the library")
    time.sleep(0.1)
    target.signal(signal.SIGUSR1)
    checks.equal("attach", 0, attaching.wait())
    wait_until(lambda: "interrupted" in target.out(), "epoll_wait to end", 3)
    checks.equal("it runs", None, target.process.poll())


def test_inject_makes_no_eintr_of_its_own(case):
    target = start_target(case, "epoll-signal")
    all_ok(attach(case, target.pid, times=5), 5)
    time.sleep(0.1)
    checks.equal("what it says", "ready\n", target.out())


def test_inject_waits_for_a_stopped_process(case):
    target = start_target(case, "poll")
    target.signal(signal.SIGSTOP)
    time.sleep(0.05)
    attaching = case.start(*attach_command(target.pid))
    time.sleep(0.3)
    target.signal(signal.SIGCONT)
    checks.equal("attach", 0, attaching.wait())
    ends_well(target)


def test_inject_says_that_a_process_is_stopped(case):
    target = start_target(case, "poll", 2)
    target.signal(signal.SIGSTOP)
    time.sleep(0.05)
    says(attach(case, target.pid, limit_ms=500), "is stopped")
    target.signal(signal.SIGCONT)
    ends_well(target)


# ---- what cannot be attached to --------------------------------------------------------------------


def test_inject_refuses_a_static_program(case):
    target = start_target(case, "poll", name="target-static")
    says(attach(case, target.pid), "static program")
    ends_well(target)


def test_inject_refuses_a_program_of_musl(case):
    loader = case.path("ld-musl-x86_64.so.1")
    shutil.copy(program("library.so"), loader)
    target = start_target(case, "musl", name="target-static",
                          env=dict(case.environment(), TARGET_LOADS=loader))
    says(attach(case, target.pid), "musl")
    ends_well(target)


def test_inject_names_another_tracer(case):
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    target = start_target(case, "poll", 2)
    strace = case.start("strace", "-f", "-o", "/dev/null", "-p", str(target.pid))
    wait_until(lambda: f"TracerPid:\t{strace.pid}" in read(f"/proc/{target.pid}/status"), "strace")
    says(attach(case, target.pid), f"traced by process {strace.pid} (strace)")
    strace.stop()
    all_ok(attach(case, target.pid), 1)
    ends_well(target)


def test_inject_says_that_it_may_not(case):
    target = start_target(case, "poll")
    attaching = case.start(*attach_command(target.pid), user="nobody", group="nogroup")
    attaching.wait()
    says(attaching.out().splitlines(), "permission", "root")
    ends_well(target)


def test_inject_says_that_there_is_no_process(case):
    target = start_target(case, "poll")
    ends_well(target)
    says(attach(case, target.pid), f"no process has the pid {target.pid}")


def test_inject_refuses_a_thread_of_the_kernel(case):
    says(attach(case, 2), "process 2")


def filtered(case, answer):
    target = start_target(case, "seccomp", env=dict(case.environment(), TARGET_FILTER=answer))
    wait_until(lambda: "Seccomp:\t2" in read(f"/proc/{target.pid}/status"), "the filter")
    return target


def test_inject_does_not_set_off_a_filter_that_kills(case):
    target = filtered(case, "kill")
    says(attach(case, target.pid), "seccomp filter", "memfd_create")
    ends_well(target)


def test_inject_says_what_a_filter_forbids(case):
    target = filtered(case, "error")
    says(attach(case, target.pid), "memfd", "not permitted")
    ends_well(target)


def test_inject_behind_a_filter_that_allows(case):
    target = filtered(case, "allow")
    all_ok(attach(case, target.pid, times=3), 3)
    ends_well(target)


def test_inject_passes_on_what_the_loader_says(case):
    garbage = case.path("garbage.so")
    with open(garbage, "wb") as file:
        file.write(b"\x7fELF" + bytes(4000))
    target = start_target(case, "poll")
    says(attach(case, target.pid, library=garbage), "the loader of process", "ELF")
    has_descriptors(target, 3 + inherited())
    ends_well(target)


def test_inject_passes_on_what_the_function_returns(case):
    target = start_target(case, "poll")
    says(attach(case, target.pid, "refuse"), "could not start", "not supported")
    has_descriptors(target, 3 + inherited())
    ends_well(target)


def test_inject_another_library_of_the_same_name(case):
    """The loader knows libraries by their names first, and descriptors' numbers come again."""
    other = case.path("other.so")
    with open(program("library.so"), "rb") as file:
        library = file.read()
    checks.equal("places of the word", 1, library.count(b"hello"))
    with open(other, "wb") as file:
        file.write(library.replace(b"hello", b"salut"))
    target = start_target(case, "poll")
    answers = [attach(case, target.pid, library=path)[0].split()[2:]
               for path in (None, other, None, other)]
    checks.equal("answers", [["hello", "1"], ["salut", "1"], ["hello", "2"], ["salut", "2"]], answers)
    ends_well(target)


def test_inject_says_that_there_is_no_memory(case):
    target = start_target(case, "poll")
    subprocess.run(["prlimit", f"--pid={target.pid}", "--as=4096:"], check=True)
    says(attach(case, target.pid), "320 KiB", "memory")
    subprocess.run(["prlimit", f"--pid={target.pid}", "--as=unlimited:"], check=True)
    ends_well(target)


def test_inject_says_that_there_is_no_descriptor(case):
    target = start_target(case, "poll")
    subprocess.run(["prlimit", f"--pid={target.pid}", "--nofile=4:"], check=True)
    says(attach(case, target.pid), "sockets", "open files")
    has_descriptors(target, 3 + inherited())
    ends_well(target)


def test_inject_a_function_that_makes_a_thread(case):
    """It has the socket, and ends when we close ours."""
    target = start_target(case, "poll", 2)
    lines = attach(case, target.pid, "stay", times=3)
    all_ok(lines, 3)
    checks.equal("answers", ["stays 1", "stays 2", "stays 3"],
                 [" ".join(line.split()[2:]) for line in lines])
    wait_until(lambda: len(os.listdir(f"/proc/{target.pid}/task")) == 3, "the thread to end")
    has_descriptors(target, 3 + inherited())
    ends_well(target)


def test_inject_says_that_a_function_is_missing(case):
    target = start_target(case, "poll")
    says(attach(case, target.pid, "nowhere"), "nowhere")
    ends_well(target)


def test_inject_does_not_wait_for_the_loaders_lock(case):
    """Another thread has it for a second and a half: the limit holds, and nothing is left later."""
    own = case.path("own.so")
    shutil.copy(program("library.so"), own)
    target = start_target(case, "loader", env=dict(case.environment(), TARGET_LOADS=own,
                                                   LIBRARY_TAKES_MS="1500"))
    before = len(os.listdir(f"/proc/{target.pid}/fd"))
    says(attach(case, target.pid, limit_ms=500), "lock", "0.5 s")
    wait_until(lambda: "loaded" in target.out(), "the lock to be free")
    has_descriptors(target, before)
    ends_well(target)


# ---- other surroundings ----------------------------------------------------------------------------


def test_inject_into_another_pid_and_mount_namespace(case):
    """Where neither the file nor the pid means anything to us."""
    inside = case.path("inside")
    os.makedirs(inside)
    shutil.copy(program("target"), inside)
    script = f"mount --bind {inside} /mnt && exec /mnt/target poll 2"
    outer = case.start(Places.program("ownroot"), "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh",
                       "-c", script)
    child = wait_until(lambda: read(f"/proc/{outer.pid}/task/{outer.pid}/children").split(),
                       "the namespace")[0]
    wait_until(lambda: "ready" in outer.out(), "the target")
    all_ok(attach(case, int(child), times=3), 3)
    os.kill(int(child), signal.SIGTERM)
    checks.equal("the target", 0, outer.wait())


def test_inject_into_a_program_that_ends_at_once(case):
    """Success or a sentence; never a wait."""
    for _ in range(20):
        target = case.start(program("target"), "exit")
        begin = time.monotonic()
        lines = attach(case, target.pid, limit_ms=5000)
        if time.monotonic() - begin > 4 or len(lines) != 1:
            raise Failure(f"{time.monotonic() - begin} s, {lines}")
        checks.equal("the target", 0, target.wait())


def test_inject_into_a_program_that_execs_all_the_time(case):
    target = start_target(case, "exec")
    lines = attach(case, target.pid, limit_ms=3000, times=20)
    checks.equal("lines", 20, len(lines))
    if not any(line.startswith("ok") for line in lines):
        raise Failure(f"not once: {lines[:3]}")
    checks.equal("it runs", None, target.process.poll())


def test_inject_by_two_at_once(case):
    """Each may bring the library at first; from then on they use what is there."""
    target = start_target(case, "registers", 3)
    both = [case.start(*attach_command(target.pid, times=100)) for _ in range(2)]
    for attaching in both:
        attaching.wait()
        all_ok(attaching.out().splitlines(), 100)
    code = [line for line in read(f"/proc/{target.pid}/maps").splitlines()
            if "memfd:cuscope-test" in line and "r-xp" in line]
    if len(code) > 2:
        raise Failure(f"{len(code)} copies of the library")
    ends_well(target)


def test_inject_into_a_program_that_forks_all_the_time(case):
    """A child has the sockets of the moment in which it was made, for as long as it lives."""
    target = start_target(case, "fork")
    all_ok(attach(case, target.pid, times=50), 50)
    lines = attach(case, target.pid, "linger", times=3)
    all_ok(lines, 3)
    if min(float(line.split()[1]) for line in lines) > 750000:
        raise Failure(f"the children were waited for: {lines}")
    ends_well(target)


HOG = """
import os, time
os.sched_setaffinity(0, {0})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
for _ in range(30):
    end = time.monotonic() + 0.15
    while time.monotonic() < end:
        pass
    time.sleep(0.0003)
"""


@alone
def test_inject_into_a_thread_that_gets_no_processor(case):
    """Mostly: it is let go whenever it comes, and not kept stopped."""
    target = start_target(case, "registers", 1)
    subprocess.run(["taskset", "-a", "-c", "-p", "0", str(target.pid)], check=True,
                   stdout=subprocess.DEVNULL)
    hog = case.start("python3", "-c", HOG)
    time.sleep(0.1)
    if hog.process.poll() is not None:
        raise Skip("no right to take a processor")
    all_ok(attach(case, target.pid, times=4), 4)
    hog.stop()
    ends_well(target)


# ---- what is left --------------------------------------------------------------------------------


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def inherited():
    """Descriptors above 2 that every program started here has."""
    process = subprocess.run(["ls", "/proc/self/fd"], capture_output=True, text=True, check=True)
    return len(process.stdout.split()) - 4  # 0, 1, 2 and the folder


def belongings(pid):
    status = read(f"/proc/{pid}/status")
    memory = int(status.split("RssAnon:")[1].split()[0])
    return {"descriptors": sorted(os.listdir(f"/proc/{pid}/fd")),
            "mappings": len(read(f"/proc/{pid}/maps").splitlines()),
            "threads": len(os.listdir(f"/proc/{pid}/task"))}, memory


@alone
def test_inject_a_thousand_times_leaves_nothing(case):
    """Under load; the first time brings the library, which stays."""
    target = start_target(case, "registers", 4)
    all_ok(attach(case, target.pid, times=5), 5)
    before, memory = belongings(target.pid)
    lines = attach(case, target.pid, times=1000)
    all_ok(lines, 1000)
    after, memory_after = belongings(target.pid)
    checks.equal("belongings", before, after)
    if memory_after > memory + 64:
        raise Failure(f"{memory} KiB before, {memory_after} after")
    ends_well(target)
    took = sorted(float(line.split()[1]) for line in lines)
    case_note = f"median {took[500]:.0f} us, longest {took[-1]:.0f} us"
    with open(case.path("stopped"), "w") as file:
        file.write(case_note + "\n")
    if took[500] > 10000:
        raise Failure(f"a thread was away too long: {case_note}")


def attachers():
    """Processes that attach, anybody's."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if read(f"/proc/{pid}/comm").strip() == "cuscope-attach":
            found.append(int(pid))
    return found


def attachers_of(library_folder):
    """Those whose program is this build's."""
    found = []
    for pid in attachers():
        try:
            if os.readlink(f"/proc/{pid}/exe").startswith(library_folder):
                found.append(pid)
        except OSError:
            pass
    return found


@alone
def test_inject_survives_kill_9_of_who_asked(case):
    """A hundred times at random moments: what was begun ends, and the target holds."""
    target = start_target(case, "registers", 3)
    all_ok(attach(case, target.pid, times=5), 5)
    before, _ = belongings(target.pid)
    for _ in range(100):
        asking = case.start(*attach_command(target.pid))
        time.sleep(random.uniform(0, 0.02))
        asking.signal(signal.SIGKILL)
        asking.wait()
    wait_until(lambda: not attachers_of(Places.build), "the attaching to end")
    wait_until(lambda: belongings(target.pid)[0] == before, "nothing to be left")
    all_ok(attach(case, target.pid), 1)
    ends_well(target)


@alone
def test_inject_survives_kill_9_of_who_attaches(case):
    """The process with the ptrace itself, some of five hundred times: its thread goes back alone."""
    target = start_target(case, "registers", 3)
    all_ok(attach(case, target.pid, times=5), 5)
    before, _ = belongings(target.pid)
    lines = attach(case, target.pid, times=500, kill_us=3000)
    killed = sum("was killed" in line for line in lines)
    if len(lines) != 500 or not 20 < killed < 500:
        raise Failure(f"{killed} of {len(lines)} were killed: {lines[:3]}")
    wait_until(lambda: not attachers_of(Places.build), "the attaching to end")
    wait_until(lambda: belongings(target.pid)[0] == before, "nothing to be left")
    all_ok(attach(case, target.pid), 1)
    ends_well(target)


def test_inject_leaves_another_process_with_the_pid_alone(case):
    """One that was wanted has ended meanwhile: whoever has its number now is not entered."""
    target = start_target(case, "registers", 3)
    before, _ = belongings(target.pid)
    says(attach(case, target.pid, older=1), "has ended, and another one may have its number")
    wait_until(lambda: not attachers_of(Places.build), "the attaching to end")
    if belongings(target.pid)[0] != before:
        raise Failure("something is left in it")
    all_ok(attach(case, target.pid), 1)
    ends_well(target)


@alone
def test_inject_survives_kill_9_of_the_target(case):
    for _ in range(100):
        target = case.start(program("target"), "registers", "2")
        wait_until(lambda t=target: "ready" in t.out(), "the target")
        asking = case.start(*attach_command(target.pid))
        time.sleep(random.uniform(0, 0.02))
        target.signal(signal.SIGKILL)
        target.wait()
        begin = time.monotonic()
        asking.wait()
        if time.monotonic() - begin > 3:
            raise Failure("it did not notice")
        if not asking.out().startswith(("ok", "error")):
            raise Failure(f"it says {asking.out()!r} {asking.err()!r}")
    wait_until(lambda: not attachers_of(Places.build), "the attaching to end")


def test_inject_takes_no_descriptors_of_the_target(case):
    """Whoever attaches would have to close them, which waits for whoever made the file."""
    target = start_target(case, "sends")
    for _ in range(20):
        attach(case, target.pid, "linger")
        time.sleep(0.5)
        if len(target.out().splitlines()) > 1:
            break
    checks.equal("what became of it", ["ready", "dropped"], target.out().splitlines())
