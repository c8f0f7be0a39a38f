# SPDX-License-Identifier: MIT
"""Bad input: one clear sentence with what to do, a status that is not 0, output that is valid."""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import checks
from harness import Failure, Places, Skip, alone, wait_until


def refuses(process, wanted, status=None, seconds=20):
    """It ends with another status than 0 and says what is wanted, in few lines, and only on stderr."""
    got = process.wait(seconds)
    if got == 0 or got < 0 or (status is not None and got != status):
        raise Failure(f"status {got}; it said {process.err()!r}")
    checks.contains("message", wanted, process.err())
    lines = process.err().strip().splitlines()
    if len(lines) > 2:
        raise Failure(f"{len(lines)} lines: {process.err()}")
    return process


def test_no_command_and_unknown_commands(case):
    process = case.cuscope("tarce", "--", "true")
    refuses(process, r"no command 'tarce'; did you mean 'trace'\?", 2)
    process = case.cuscope("qqqqqqq")
    refuses(process, r"no command 'qqqqqqq'", 2)
    process = case.cuscope()
    checks.equal("status without anything", 2, process.wait())
    checks.contains("usage", "usage: cuscope", process.err())


def test_unknown_options_get_the_nearest_name(case):
    for command, wanted in ((["trace", "--durration", "1s", "--", "true"], "--duration"),
                            (["trace", "--fromat=jsonl", "--", "true"], "--format"),
                            (["probes", "--olny", "x"], "--only")):
        refuses(case.cuscope(*command), f"did you mean '?{wanted}", 2)


def test_options_of_the_command_are_its_own(case):
    result = case.trace("/bin/sh", "-c", "exit 0")
    checks.equal("status", 0, result.status)
    process = case.cuscope("trace", "--summary-only", "-o", case.path("x"), "/bin/echo", "--duration",
                           "-p", "--help")
    checks.equal("status", 0, process.wait())
    checks.equal("output", "--duration -p --help\n", process.out())


def test_values_that_are_none(case):
    for options in (["--duration", "soon"], ["--duration", "-1s"], ["--duration", "0"],
                    ["--max-events", "many"], ["--max-events", "-5"], ["--max-events", "0"],
                    ["--min-duration", "10parsecs"], ["-p", "12x"], ["-p", ""], ["-p", "-1"], ["-p", "0"],
                    ["--class", "lunch"], ["--layer", "middle"], ["--format", "xml"],
                    ["--ring-size", "1"], ["--ring-size", "lots"], ["--max-overhead", "none"],
                    ["--color", "pink"], ["--without", "everything"]):
        target = [] if options[0] == "-p" else ["--", "true"]
        process = case.cuscope("trace", *options, *target)
        refuses(process, re.escape(options[1]) or "-p")


def test_no_target_and_two_targets(case):
    refuses(case.cuscope("trace"), "what is to be traced", 2)
    refuses(case.cuscope("trace", "--all", "-p", "1"), "one kind of target", 2)
    refuses(case.cuscope("trace", "-p", "1", "--", "true"), "one kind of target", 2)
    refuses(case.cuscope("trace", "--user", "nobody", "--all"), "--user goes with a command", 2)
    refuses(case.cuscope("trace", "--env", "A=1", "--all"), "--env goes with a command", 2)
    refuses(case.cuscope("trace", "--env", "=1", "--", "true"), "'=1' is no variable", 2)
    refuses(case.cuscope("trace", "--keep-env", "--", "true"), "--keep-env goes with --user", 2)


def test_no_such_pid(case):
    process = case.start("true")
    process.wait()
    refuses(case.cuscope("trace", "-p", process.pid), f"no process {process.pid}")


def test_command_that_does_not_exist(case):
    refuses(case.cuscope("trace", "--", "/no/such/program"), "/no/such/program.*No such file")
    refuses(case.cuscope("trace", "--", "no-such-program-at-all"), "no-such-program-at-all")
    path = case.path("no-exec")
    with open(path, "w") as file:
        file.write("text")
    refuses(case.cuscope("trace", "--", path), "Permission denied")
    refuses(case.cuscope("trace", "--", case.folder), "Permission denied|directory")


def test_command_that_does_not_exist_leaves_valid_output(case):
    process = case.start_trace([], ["--", "/no/such/program"])
    process.wait()
    path = case.path("trace.jsonl")
    if os.path.exists(path):
        with open(path) as file:
            for line in file:
                json.loads(line)


def test_user_that_does_not_exist(case):
    refuses(case.cuscope("trace", "--user", "nobody-here", "--", "true"), "no user 'nobody-here'")


def test_not_root(case):
    """Says which capabilities are wanted, and that sudo gives them."""
    os.chmod(case.folder, 0o777)
    process = case.start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                         Places.cuscope(), "trace", "--", "true")
    refuses(process, r"(?s)(root|sudo).*CAP_|CAP_.*(root|sudo)")
    checks.equal("sentences", 1, len(process.err().splitlines()))


def test_without_the_capability_to_attach(case):
    """Said at once, rather than found in every feature that seems to be missing."""
    os.chmod(case.folder, 0o777)
    process = case.start("setpriv", "--bounding-set=-perfmon,-sys_admin",
                         Places.cuscope(), "trace", "--", "true")
    refuses(process, r"CAP_PERFMON")
    checks.equal("sentences", 1, len(process.err().splitlines()))


def test_targets_that_are_nothing(case):
    refuses(case.cuscope("trace", "--name", ""), "'' is no name", 2)
    refuses(case.cuscope("trace", "--cgroup", ""), "'' is no path", 2)
    refuses(case.cuscope("trace", "--class", "foo", "--", "true"), r"'foo' \(launch, memory", 2)
    refuses(case.cuscope("trace", "-p", "2"), "thread of the kernel")


@alone
def test_of_many_processes_under_valgrind_the_last_miss_stands_for_all_others(case):
    os.mkdir(case.path("valgrind"))
    program = shutil.copy("/bin/sleep", case.path("valgrind/memcheck-amd64-linux"))
    result = case.trace("/bin/sh", "-c", f"for i in $(seq 70); do {program} 0.3 & done; wait")
    told = [hook for hook in result.summary["missed"]["hooks"] if "valgrind" in hook["why"]]
    checks.equal("misses", 65, len(told))
    checks.contains("the last", "more processes than these run under valgrind", told[-1]["why"])


@alone
def test_valgrind_is_not_traced(case):
    """Breakpoints would end it: a command is refused, and a process that is met is left alone."""
    if not os.path.exists("/usr/bin/valgrind"):
        raise Skip("valgrind is not installed")
    refuses(case.cuscope("trace", "--", "valgrind", Places.program("threads")), "valgrind")
    # of its own: probes of a trace before, of the same file, would end it as well
    shutil.copy(Places.simcuda("push", "libcuda.so.1"), case.folder)
    case.env = {"LD_LIBRARY_PATH": case.folder}
    result = case.trace("/usr/bin/env", "valgrind", "-q", Places.program("tight"), "10")
    checks.contains("what it said", r"process \d+ runs under valgrind", result.err)
    checks.equal("calls", 0, result.summary["calls"]["total"])
    checks.equal("complete", False, result.summary["missed"]["complete"])
    program = case.start("valgrind", "-q", "sleep", "60")
    wait_until(lambda: "valgrind/" in os.readlink(f"/proc/{program.pid}/exe"), "valgrind to begin")
    refuses(case.cuscope("trace", "-p", program.pid), "runs under valgrind")


def test_probes_without_root(case):
    """Reading a file needs no privileges."""
    process = case.start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                         Places.cuscope(), "probes", Places.simcuda("push/libcuda.so.1"), "cuMemAlloc*")
    checks.equal("status", 0, process.wait())
    checks.contains("list", r"cuMemAlloc_v2\s+memory\s+on", process.out())


def test_probes_of_a_process(case):
    """What it has loaded, and once each."""
    program = case.program("loop", 600, stdin=subprocess.PIPE)
    wait_until(lambda: "libcuda.so.1" in open(f"/proc/{program.pid}/maps").read(), "the driver to be loaded")
    process = case.cuscope("probes", "-p", program.pid, "--", "cuMemAlloc_v2")
    checks.equal("status", 0, process.wait())
    checks.equal("places", 1, len(re.findall(r"cuMemAlloc_v2\s+memory\s+on", process.out())))
    refuses(case.cuscope("probes", "-p", os.getpid()), "none of these processes has loaded CUDA")


def test_output_file_that_exists(case):
    path = case.path("there.jsonl")
    with open(path, "w") as file:
        file.write("precious\n")
    marker = case.path("ran")
    process = case.cuscope("trace", "-o", path, "--", "touch", marker)
    refuses(process, r"there\.jsonl exists.*--force")
    with open(path) as file:
        checks.equal("content", "precious\n", file.read())
    checks.equal("the command ran", False, os.path.exists(marker))
    process = case.cuscope("trace", "--force", "-o", path, "--", Places.program("threads"), "1", "1")
    checks.equal("status with --force", 0, process.wait())
    with open(path) as file:
        checks.contains_not("content", "precious", file.read())


def test_json_summary_that_cannot_be_written(case):
    """Known before the program runs for an hour."""
    marker = case.path("ran")
    process = case.cuscope("trace", "--json-summary", case.path("no/such/folder/s.json"), "--", "touch",
                           marker)
    refuses(process, "no/such/folder")
    checks.equal("the command ran", False, os.path.exists(marker))


def test_output_that_cannot_be_written(case):
    refuses(case.cuscope("trace", "-o", case.path("no/folder/t.jsonl"), "--", "true"), "no/folder")
    refuses(case.cuscope("trace", "-o", case.folder, "--", "true"), "directory")


def test_full_disk(case):
    """Where not even the first line can be written, the command is not started."""
    marker = case.path("ran")
    process = case.cuscope("trace", "--format", "jsonl", "-o", "/dev/full", "--", "touch", marker)
    refuses(process, "No space left on device")
    checks.equal("the command ran", False, os.path.exists(marker))


def test_full_disk_later_leaves_whole_lines_and_the_command_running(case):
    folder = case.path("small")
    os.makedirs(folder)
    if case.start("mount", "-t", "tmpfs", "-o", "size=64k", "none", folder).wait():
        raise Skip("no tmpfs can be mounted")
    try:
        process = case.cuscope("trace", "-o", folder + "/t.jsonl", "--", "/bin/sh", "-c",
                               f"{Places.program('threads')} 4 400; touch {case.path('end')}")
        refuses(process, "No space left on device")
        checks.equal("the command came to its end", True, os.path.exists(case.path("end")))
        with open(folder + "/t.jsonl") as file:
            text = file.read()
        for line in text.splitlines():
            json.loads(line)
        checks.equal("ends with a whole line", "\n", text[-1])
    finally:
        case.end()
        subprocess.run(["umount", folder], check=True)


def test_a_summary_says_what_could_not_be_written(case):
    """On a full disk, whether that shows while the program runs or at the end, nothing is called complete."""
    folder = case.path("small")
    os.makedirs(folder)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=False).returncode:
        raise Skip("no tmpfs can be mounted")
    program = ["--", Places.program("threads"), "4", "400"]
    try:
        for name in ("t.jsonl", "t.csv", "t.log", "t.txt", "t.sqlite", "t.pftrace", "t.json"):
            path = os.path.join(folder, name)
            process = case.cuscope("trace", "--force", "--json-summary", case.path("s.json"), "-o", path, *program)
            refuses(process, "cannot write .*No space left on device")
            text = process.out() + process.err()
            checks.contains(f"the summary beside {name}", r"not whole: cannot write .*No space left", text)
            with open(case.path("s.json")) as file:
                missed = json.load(file)["missed"]
            checks.equal("complete", False, missed["complete"])
            checks.equal("why", 1, len([hook for hook in missed["hooks"] if hook["kind"] == "failed"]))
            if "nothing was lost" in text:
                raise Failure("nothing was lost, it says")
            if os.path.exists(path):
                os.unlink(path)
        process = case.cuscope("trace", "--summary-only", "--json-summary", "/dev/full", *program)
        refuses(process, "cannot write /dev/full: No space left on device")
        checks.contains("the text beside it", "not whole: cannot write /dev/full", process.out())
    finally:
        case.end()
        subprocess.run(["umount", folder], check=True)


def test_closed_pipe(case):
    command = (f"{Places.cuscope()} trace --format jsonl -- {Places.program('threads')} 8 500 "
               f"2> {case.path('err')} | head -n 1; echo ${{PIPESTATUS[0]}}")
    process = case.start("/bin/bash", "-c", command)
    process.wait(30)
    first, status = process.out().splitlines()
    json.loads(first)
    with open(case.path("err")) as file:
        text = file.read()
    checks.contains("message", "closed", text)
    lines = [line for line in text.splitlines() if line.startswith("cuscope:")]
    checks.equal("lines, but for the word that it waits", 1,
                 len([line for line in lines if "waiting for the command" not in line]))
    checks.equal("status is not 0", True, status != "0")
    checks.equal("the program came to its end", 1,
                 len(open(case.path("counts")).read().splitlines()))


def test_no_cuda_in_the_target_with_a_timeout(case):
    sleeper = case.start("sleep", "30")
    begin = time.monotonic()
    process = case.cuscope("trace", "--timeout", "500ms", "-p", sleeper.pid)
    checks.equal("status is not 0", True, process.wait(10) != 0)
    checks.contains("message", r"no CUDA library was loaded within 0\.5 s", process.err())
    if time.monotonic() - begin > 4:
        raise Failure("took too long")


def test_no_cuda_in_the_target_is_waited_for_with_a_notice(case):
    sleeper = case.start("sleep", "30")
    process = case.cuscope("trace", "-p", sleeper.pid)
    wait_until(lambda: "has not loaded CUDA yet" in process.err(), "the notice")
    process.signal(signal.SIGINT)
    checks.equal("status", 0, process.wait(10))


def test_no_cuda_in_a_command_with_a_timeout(case):
    process = case.cuscope("trace", "--timeout", "300ms", "--", "sleep", "1")
    process.wait(10)
    checks.contains("message", "no CUDA library was loaded", process.err())


def elf_header(**fields):
    """A hand-made ELF header, and nothing that it points at."""
    values = {"phoff": 64, "shoff": 0, "phnum": 0, "shnum": 0, **fields}
    return b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, values["phoff"], values["shoff"], 0, 64, 56, values["phnum"],
        64, values["shnum"], 0)


def assembled(case, name, text, tools, *link):
    """A file made by an assembler and a linker of another architecture."""
    source = case.path(name + ".s")
    with open(source, "w") as file:
        file.write(text)
    for command in ([*tools[0], "-o", source + ".o", source],
                    [*tools[1], *link, "-o", case.path(name), source + ".o"]):
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Skip(f"{command[0]}: {error}") from None
    return case.path(name)


I386 = (["as", "--32"], ["ld", "-m", "elf_i386"])
ARM64 = (["aarch64-linux-gnu-as"], ["aarch64-linux-gnu-ld"])


def test_probes_of_files_that_are_none(case):
    with open(Places.simcuda("push/libcuda.so.1"), "rb") as file:
        good = file.read()
    files = {
        "empty": b"",
        "text": b"no ELF at all\n" * 100,
        "magic": b"\x7fELF",
        "header": elf_header(),
        "cut": good[:5000],
        "sections-far": elf_header(shoff=1 << 60, shnum=65535),
        "segments-far": elf_header(phoff=(1 << 64) - 8, phnum=65535),
        "big-endian": good[:5] + b"\x02" + good[6:],
    }
    for name, content in files.items():
        path = case.path(name)
        with open(path, "wb") as file:
            file.write(content)
        process = case.cuscope("probes", path)
        refuses(process, name)
    refuses(case.cuscope("probes", case.path("missing")), "missing")
    refuses(case.cuscope("probes", case.folder), os.path.basename(case.folder))


def test_probes_of_a_32_bit_library(case):
    path = assembled(case, "i386.so", ".globl cuInit\ncuInit: ret\n", I386, "-shared")
    refuses(case.cuscope("probes", path), "32-bit")


def test_probes_of_a_library_of_another_machine(case):
    path = assembled(case, "arm64.so", ".globl cuInit\ncuInit: ret\n", ARM64, "-shared")
    refuses(case.cuscope("probes", path), "(?i)arm64|aarch64")


def test_32_bit_target(case):
    path = assembled(case, "pauses", ".globl _start\n_start: mov $29, %eax\nint $0x80\njmp _start\n",
                     I386)
    try:
        target = case.start(path)
    except OSError as error:
        raise Skip(f"32-bit programs do not run here: {error}") from None
    process = case.cuscope("trace", "-p", target.pid, "--timeout", "500ms")
    checks.equal("status is not 0", True, process.wait() != 0)
    checks.contains("message", "32-bit", process.err())
    checks.equal("it runs", None, target.process.poll())


def test_probes_of_a_library_without_cuda(case):
    process = case.cuscope("probes", "/bin/ls")
    process.wait()
    checks.contains("message", r"(?i)no CUDA|holds no|/bin/ls", process.err() + process.out())


def test_corrupt_library_in_a_target_is_told_and_harms_nothing(case):
    """A library whose section headers are nonsense, which the loader does not mind."""
    with open(Places.simcuda("push/libcuda.so.1"), "rb") as file:
        data = bytearray(file.read())
    struct.pack_into("<Q", data, 40, 1 << 60)  # e_shoff
    struct.pack_into("<H", data, 60, 65535)    # e_shnum
    path = case.path("sections-are-nonsense.so")
    with open(path, "wb") as file:
        file.write(data)
    result = case.trace("dlopen", path)
    checks.valid(result)
    if result.names()["cuInit"] != 1:
        hooks = json.dumps(result.summary["missed"]["hooks"])
        checks.contains("not hooked, and why", "sections-are-nonsense", hooks)


def test_help_and_version_everywhere(case):
    for arguments in (["--help"], ["--version"], ["help"], ["trace", "--help"], ["probes", "--help"],
                      ["doctor", "--help"], ["trace", "--version"]):
        process = case.cuscope(*arguments)
        checks.equal(f"status of {arguments}", 0, process.wait())
        checks.equal(f"stderr of {arguments}", "", process.err())
        if len(process.out()) < 10:
            raise Failure(f"{arguments} says nothing")


def test_help_has_something_below_each_heading(case):
    """Options of two groups with one number all stood below the second heading, and the first was empty."""
    listed = subprocess.run([Places.cuscope(), "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z]+)  ", listed, re.M)
    checks.equal("commands", True, {"trace", "profile", "watch", "doctor"} <= set(commands))
    for command in commands:
        text = subprocess.run([Places.cuscope(), command, "--help"], capture_output=True, text=True, check=True).stdout
        empty = re.findall(r"^ (\w.*:)\n(?!  )", text, re.M)
        checks.equal(f"headings of {command} with nothing below", [], empty)
        where = {option: heading for heading, body in re.findall(r"^ (\w.*:)\n((?:  .*\n)+)", text, re.M)
                 for option in re.findall(r"^  .*--(hook|only|from)=", body, re.M)}
        for option, heading in (("hook", "Hooks of your own"), ("only", "Which functions"), ("from", "Which part")):
            if option in where:
                checks.contains(f"{command}: the heading of --{option}", heading, where[option])


def test_help_by_its_short_name(case):
    for arguments in (["trace", "-h"], ["profile", "-p", "1", "-h"], ["report", "-h"]):
        process = case.cuscope(*arguments)
        checks.equal(f"status of {arguments}", 0, process.wait())
        checks.contains(f"{arguments}", "^Usage: cuscope " + arguments[0], process.out())
    process = case.cuscope("profile", "-F", "49", "--", "echo", "-h")
    process.wait()
    checks.equal("of a command it is the command's", "-h\n", process.out()[:3])


@alone
def test_no_probe_is_left_in_the_kernel_by_a_short_run(case):
    """What tries the kernel's features is taken away on threads, which the end of the program killed."""
    def leaks():
        log = subprocess.run(["dmesg"], capture_output=True, text=True)
        if log.returncode:
            raise Skip("the kernel's log cannot be read")
        return log.stdout.count("leaking uprobe")

    before = leaks()
    for round_ in range(10):
        case.cuscope("doctor", "--without", "btf", name=f"doctor{round_}").wait()
    checks.equal("leaked probes", before, leaks())


def test_doctor(case):
    process = case.cuscope("doctor")
    checks.equal("status", 0, process.wait())
    words = {line.split()[0] for line in process.out().splitlines() if line.split()}
    if not words - {"Tracing"} <= {"ok", "degraded", "missing"}:
        raise Failure(f"lines that begin with {words}")
    for line in ("ringbuf", "privileges", "NVIDIA driver", "lockdown"):
        checks.contains("doctor", line, process.out())


def test_a_pid_namespace_of_its_own_is_told(case):
    if case.start(Places.program("ownroot"), "unshare", "--pid", "--fork", "--mount-proc", "true").wait():
        raise Skip("no pid namespaces here")
    process = case.start(Places.program("ownroot"), "unshare", "--pid", "--fork", "--mount-proc", Places.cuscope(),
                         "trace", "--", "/bin/true")
    checks.equal("status", 1, process.wait(10))
    checks.contains("what to do", "--pid=host", process.err())


def test_a_time_namespace_of_its_own_is_told(case):
    if case.start("unshare", "--time", "true").wait():
        raise Skip("no time namespaces here")
    process = case.start("/usr/bin/unshare", "--time", "--monotonic", "1000", "--fork", Places.cuscope(),
                         "trace", "--", "/bin/true")
    checks.equal("status", 1, process.wait(10))
    checks.contains("what to do", "runs in a time namespace.*outside of that", process.err())


def test_a_thread_is_no_process(case):
    python = case.start(sys.executable, "-c", "import threading, time\n"
                        "threading.Thread(target=time.sleep, args=(20,)).start()")
    threads = wait_until(lambda: (lambda all: all if len(all) > 1 else None)(
        os.listdir(f"/proc/{python.pid}/task")), "its thread")
    other = next(tid for tid in threads if int(tid) != python.pid)
    trace = case.cuscope("trace", "-p", other)
    checks.equal("status", 1, trace.wait(10))
    checks.contains("what to do", f"-p {python.pid}", trace.err())


def test_a_trace_that_could_not_begin_leaves_no_file(case):
    trace = case.cuscope("trace", "-o", case.path("calls.jsonl"), "-p", 99999999)
    checks.equal("status", 1, trace.wait(10))
    checks.equal("files", False, os.path.exists(case.path("calls.jsonl")))


def test_closed_standard_output(case):
    trace = case.start("/bin/sh", "-c", f"{Places.cuscope()} trace -- {Places.program('threads')} 1 3 >&-")
    checks.equal("status", 0, trace.wait(10))
    checks.equal("complaints", "", trace.err())


def test_rings_that_there_is_no_address_space_for(case):
    """256 MiB are mapped twice."""
    process = case.start("/bin/sh", "-c", 'ulimit -v 400000 && exec "$@"', "sh", Places.cuscope(), "trace", "--ring-size", "256MiB",
                         "--", "/bin/true")
    checks.equal("status", 1, process.wait())
    checks.contains("what is said", "cuscope: loading the eBPF programs.*: Cannot allocate memory", process.err())
