# SPDX-License-Identifier: MIT
"""Libraries are found by what they hold, wherever they are and whenever they come."""

import os
import shutil
import signal

import checks
from harness import Failure, Places, Skip, alone, wait_until


def copy_of(case, library, name):
    """A file of its own, as another version or another container has it."""
    path = case.path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copy(Places.simcuda(library), path)
    return path


def test_dlopen_not_even_the_first_call_is_missed(case):
    """The program calls a library at once when dlopen returns; several times, since it is a race."""
    for round_ in range(10 if "STRESS" in os.environ else 3):
        result = case.trace("dlopen", "libcuda.so.1", "libcudart.so.13", name=f"round{round_}")
        checks.valid(result)
        checks.nothing_missed(result)
        checks.equal(f"cuInit by the program, round {round_}", 1,
                     result.names(nested=None)["cuInit"])
        checks.equal("cudaMalloc", 1, result.names(nested=None)["cudaMalloc"])


def test_dlopen_in_a_thread(case):
    result = case.trace("dlopen", "--thread", "libcuda.so.1", "libcudart.so.13")
    checks.calls(result)
    checks.nothing_missed(result)


def test_dlopen_with_all_signals_blocked(case):
    """A process is held by a signal; a program that blocks them all is no exception."""
    result = case.trace("dlopen", "--blocked", "libcuda.so.1", "libcudart.so.13")
    checks.calls(result)
    checks.nothing_missed(result)


def test_dlopen_of_copies_under_odd_names(case):
    """By content, not by name: a path with spaces, a newline, no suffix, in several copies."""
    paths = [copy_of(case, "push/libcuda.so.1", name) for name in
             ("a library", "x/not-cuda.bin", "new\nline/libcuda.so.1", "ünïcode/libcuda.so.999",
              "back\\slash/(deleted)")]
    paths += [copy_of(case, "libcudart.so.13", name) for name in
              ("venv/lib/libcudart-a1b2c3.so.13.0", "y/runtime")]
    result = case.trace("dlopen", *paths)
    checks.valid(result)
    checks.nothing_missed(result)
    names = result.names(nested=None)
    checks.equal("cuInit of each driver", 5, names["cuInit"])
    checks.equal("cudaMalloc of each runtime", 2, names["cudaMalloc"])
    checks.equal("libraries", {os.path.basename(p) for p in paths},
                 {c["lib"] for c in result.calls(nested=None)})


def test_several_versions_in_one_process(case):
    paths = [Places.simcuda("libcudart.so.12"), Places.simcuda("libcudart.so.13")]
    result = case.trace("dlopen", *paths, Places.simcuda("push", "libcuda.so.1"))
    checks.nothing_missed(result)
    checks.equal("one cudaMalloc of each", {"libcudart.so.12": 1, "libcudart.so.13": 1},
                 {lib: len(result.calls(name="cudaMalloc", lib=lib))
                  for lib in ("libcudart.so.12", "libcudart.so.13")})


def test_library_that_was_deleted_after_loading(case):
    path = copy_of(case, "push/libcuda.so.1", "gone.so")
    process = case.program("waitload", 30, path)
    wait_until(lambda: "ready" in process.out(), "it to wait")
    trace = case.start_trace(["--only", "cuDriverGetVersion"], ["-p", process.pid])
    case.attached(trace)
    process.signal(signal.SIGUSR1)
    wait_until(lambda: "loaded" in process.out(), "it to load")
    os.unlink(path)
    process.wait()
    result = case.result(trace)
    if not result.calls(name="cuDriverGetVersion"):
        raise Failure(f"no calls; missed: {result.summary['missed']['hooks']}")


def test_library_replaced_by_another_file_while_the_trace_runs(case):
    """An update of the driver: the new file is another module."""
    path = copy_of(case, "push/libcuda.so.1", "libcuda-update.so")
    first = case.path("first.sh")
    with open(first, "w") as file:
        file.write(f"{Places.program('dlopen')} '{path}'\ncp '{Places.simcuda('endbr/libcuda.so.1')}' "
                   f"'{path}.new'\nmv '{path}.new' '{path}'\n{Places.program('dlopen')} '{path}'\n")
    result = case.trace("/bin/sh", first)
    checks.nothing_missed(result)
    checks.equal("cuInit of both", 2, result.names()["cuInit"])


@alone
def test_loaded_later_in_a_running_process(case):
    """Hooked within 200 ms, and said so."""
    process = case.program("waitload", 30)
    wait_until(lambda: "ready" in process.out(), "it to wait")
    trace = case.start_trace(["--only", "cuDriverGetVersion"], ["-p", process.pid])
    case.attached(trace)
    process.signal(signal.SIGUSR1)
    process.wait()
    result = case.result(trace)
    checks.valid(result)
    late = result.counts.of("late")["cuDriverGetVersion"]
    seen = len(result.calls(name="cuDriverGetVersion"))
    if seen < late or not late:
        raise Failure(f"{seen} calls seen, {late} were made 200 ms after loading")
    hooks = result.summary["missed"]["hooks"]
    if not any(h.get("pid") == process.pid and "late" in str(h) for h in hooks):
        raise Failure(f"not said to be hooked late: {hooks}")
    checks.contains("text", "hooked late", result.out + result.err)


def test_library_in_another_mount_namespace(case):
    """As in a container: its path means nothing outside."""
    if case.start(Places.program("ownroot"), "true").wait():
        raise Skip("no mount namespaces here")
    inside = case.path("inside")
    os.makedirs(inside)
    copy = copy_of(case, "push/libcuda.so.1", "hidden/libcuda.so.1")
    script = (f"mount -t tmpfs none {inside} && cp '{copy}' {inside}/libcuda.so.1 && "
              f"exec '{Places.program('dlopen')}' {inside}/libcuda.so.1")
    result = case.trace(Places.program("ownroot"), "/bin/sh", "-c", script)
    checks.valid(result)
    checks.nothing_missed(result)
    checks.equal("cuInit", 1, result.names()["cuInit"])


def test_chroot(case):
    root = case.path("root")
    os.makedirs(root + "/lib64")
    os.makedirs(root + "/tmp")
    os.chmod(root + "/tmp", 0o777)
    text = case.start("ldd", Places.program("dlopen"))
    text.wait()
    for word in text.out().split():
        if word.startswith("/"):
            os.makedirs(root + os.path.dirname(word), exist_ok=True)
            shutil.copy(word, root + word)
    shutil.copy(Places.program("dlopen"), root + "/app")
    shutil.copy(Places.simcuda("push/libcuda.so.1"), root + "/cuda-in-here")
    case.env["SAMPLE_COUNTS"] = "/tmp/counts"
    result = case.trace("/usr/sbin/chroot", root, "/app", "/cuda-in-here")
    checks.nothing_missed(result)
    checks.equal("cuInit", 1, result.names()["cuInit"])
    checks.equal("library", {"cuda-in-here"}, {c["lib"] for c in result.calls()})


def test_hooks_are_attached_once_for_all_processes(case):
    result = case.trace("/bin/sh", "-c", f"for i in 1 2 3 4 5; do {Places.program('threads')} 1 1; done")
    checks.everything(result)
    checks.equal("processes", 5, len(result.counts.pids()))


def two_overlays(case, *arguments):
    """What a shell runs in a mount namespace of its own: `threads` with each of two containers' library."""
    if case.start(Places.program("ownroot"), "true").wait():
        raise Skip("no mount namespaces here")
    folders = {name: case.path(name) for name in ("lower", "up1", "work1", "one", "up2", "work2", "two")}
    for path in folders.values():
        os.mkdir(path)
    shutil.copy(Places.simcuda("push", "libcuda.so.1"), folders["lower"])
    script = " && ".join(
        f"mount -t overlay overlay -o lowerdir={folders['lower']},upperdir={folders['up' + n]},"
        f"workdir={folders['work' + n]} {folders[name]}" for n, name in (("1", "one"), ("2", "two")))
    words = " ".join(map(str, arguments))
    script += "".join(f" && LD_LIBRARY_PATH={folders[name]} {Places.program('threads')} {words}"
                      for name in ("one", "two"))
    return Places.program("ownroot"), "/bin/sh", "-c", script


def test_one_library_seen_through_two_overlays(case):
    """Two containers of one image: two inodes, but the kernel puts both probes into the one below."""
    command = two_overlays(case, 2, 10)
    result = case.trace(*command, name="session")
    checks.everything(result)
    os.remove(case.path("counts"))
    result = case.trace(*command, name="multi", options=["--without", "session"])
    checks.everything(result)


@alone
def test_one_library_seen_through_two_overlays_on_a_busy_machine(case):
    """The kernel takes the processor away between the two programs of a trap, for milliseconds."""
    command = two_overlays(case, 8, 1000 if "STRESS" in os.environ else 100)
    busy = [case.start("/bin/sh", "-c", "while :; do :; done", name=f"busy{i}")
            for i in range(2 * os.cpu_count())]
    for name, options in (("multi", ["--without", "session"]), ("entries", ["--no-returns"]), ("session", [])):
        result = case.trace(*command, name=name, options=options)
        checks.nothing_missed(result)
        checks.calls(result)
        os.remove(case.path("counts"))
    for process in busy:
        process.stop()
