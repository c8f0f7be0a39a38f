# SPDX-License-Identifier: MIT
"""Debug information of hostile files: what reads it has no rights, and nobody else waits for it."""

import os
import subprocess
import time

import checks
import profiles
from harness import Failure, Places, alone, links_of, wait_until

READER = "cuscope-lines"
# An inlined function for each of 40,000, with 400,000 stretches that it could be at.
BOMB = r'''
#include <poll.h>
#include <stdio.h>
__asm__(".text\n.globl spin\n.type spin, %function\nspin: .cfi_startproc\nmov $20000000, %ecx\n1: dec %ecx\njnz 1b\nret\n.cfi_endproc\n"
        "spun: .size spin, spun - spin\n"
        ".section .debug_abbrev\n"
        ".uleb128 1, 0x11\n.byte 1\n.uleb128 0x11, 1, 0x12, 1, 0, 0\n"
        ".uleb128 2, 0x2e\n.byte 1\n.uleb128 0x11, 1, 0x12, 1, 0, 0\n"
        ".uleb128 3, 0x1d\n.byte 0\n.uleb128 0x55, 0x17, 0, 0, 0\n"
        ".section .debug_info\n.long 2f - 0f\n0: .short 4\n.long .debug_abbrev\n.byte 8\n"
        ".uleb128 1\n.quad spin, spun\n.uleb128 2\n.quad spin, spun\n"
        ".rept 40000\n.uleb128 3\n.long 0\n.endr\n.uleb128 0, 0\n2:\n"
        ".section .debug_ranges\n.rept 400000\n.quad 1, 2\n.endr\n.quad 0, 0\n.text\n");
void spin(void);
int main(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	puts("ready");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0)
		spin();
	return 0;
}
'''


def status_of(pid):
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def readers_of(cuscope):
    """Its children of that name."""
    found = []
    for name in os.listdir("/proc"):
        try:
            status = status_of(name) if name.isdigit() else {}
        except (FileNotFoundError, ProcessLookupError):
            continue
        if status.get("Name") == READER and status.get("PPid") == str(cuscope):
            found.append(name)
    return found


@alone
def test_what_reads_debug_information_may_do_nothing(case):
    """Of the process as it is while it has a file open."""
    program = profiles.started(case, Places.program("inlined"))
    process = case.cuscope("profile", "-F", 999, "--duration", "4s", "-o", case.path("p.folded"), "-p", program.pid)
    # one that has just been started has its rights yet, and no file read
    wait_until(lambda: any(status_of(pid)["Seccomp"] == "2" for pid in readers_of(process.pid)), "a reader")
    time.sleep(0.5)
    readers = readers_of(process.pid)
    if not readers or len(readers) > 3:
        raise Failure(f"{len(readers)} readers")
    for reader in readers:
        status = status_of(reader)
        for key, value in (("Uid", "65534\t" * 3 + "65534"), ("Gid", "65534\t" * 3 + "65534"), ("NoNewPrivs", "1"),
                           ("Seccomp", "2"), ("Threads", "1"), *((f"Cap{kind}", "0" * 16)
                                                                 for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"))):
            checks.equal(key, value, status[key])
        checks.equal("groups", "", status["Groups"].strip())
        with open(f"/proc/{reader}/limits") as file:
            limits = file.read()
        for limit in (r"Max cpu time +60 +60", r"Max file size +0 +0", r"Max processes +0 +0", r"Max core file size +0 +0",
                      r"Max address space +\d+ +\d+", r"Max open files +16 +16"):
            checks.contains("limits", limit, limits)
        open_files = links_of(reader)
        for name in open_files:
            if not name.startswith(("socket:", "/dev/null")) and not os.path.isfile(name):
                raise Failure(f"it has {name} open: {open_files}")
        checks.equal("sockets", 1, sum(name.startswith("socket:") for name in open_files))
        with open(f"/proc/{reader}/environ", "rb") as file:
            checks.equal("environment", b"", file.read())
    checks.equal("status", 0, process.wait(20))
    checks.equal("readers after it", [], readers_of(process.pid))
    profiles.ended(program)


@alone
def test_readers_end_with_cuscope(case):
    """However that ends."""
    program = profiles.started(case, Places.program("inlined"))
    process = case.cuscope("profile", "-F", 999, "--duration", "20s", "-o", case.path("p.folded"), "-p", program.pid)
    wait_until(lambda: readers_of(process.pid), "a reader")
    readers = readers_of(process.pid)
    process.signal(9)
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in readers), "its end", 5)
    profiles.ended(program)


@alone
def test_debug_information_that_takes_for_ever(case):
    """The file is given up, that is told, and another program's lines are there."""
    source, bomb = case.path("bomb.c"), case.path("bomb")
    with open(source, "w") as file:
        file.write(BOMB)
    subprocess.run(["gcc", "-O1", "-no-pie", "-o", bomb, source], check=True)
    os.chown(bomb, 1000, 1000)
    hostile = profiles.started(case, bomb)
    victim = profiles.started(case, Places.program("inlined"), name="victim")
    begin = time.monotonic()
    path = case.path("p.pb.gz")
    process = case.cuscope("profile", "-F", 999, "--duration", "5s", "-o", path, "-p", f"{hostile.pid},{victim.pid}")
    checks.equal("status", 0, process.wait(30))
    if time.monotonic() - begin > 12:
        raise Failure(f"it took {time.monotonic() - begin:.1f} s")
    checks.contains("what is told", "bomb: reading its debug information takes too long: no more lines of it",
                    process.err())
    profile = profiles.Profile(path)
    checks.contains("what is missing", "places? of native code (are without lines|is without its line): the debug information", profile.said())
    right = sum(n for stack, n in profile.stacks.items() if any(frame.name == "innermost" for frame in stack))
    if right < 20:
        raise Failure(f"{right} samples of the other program have their lines")
    profiles.ended(victim)
    profiles.ended(hostile)


@alone
def test_sections_that_unpack_without_end(case):
    """100 KB that become 700 MiB: more than it may have."""
    bomb = case.path("bomb")
    zeros = case.path("zeros")
    subprocess.run(f"head -c 700M /dev/zero | xz -0 > {zeros}.xz", shell=True, check=True)
    subprocess.run(["objcopy", "-S", "--add-section", f".gnu_debugdata={zeros}.xz", Places.program("inlined"), bomb],
                   check=True)
    hostile = profiles.started(case, bomb)
    victim = profiles.started(case, Places.program("inlined"), name="victim")
    path = case.path("p.pb.gz")
    process = case.cuscope("profile", "-F", 999, "--duration", "5s", "-o", path, "-p", f"{hostile.pid},{victim.pid}")
    most = 0
    while process.process.poll() is None:
        for reader in readers_of(process.pid):
            try:
                most = max(most, int(status_of(reader)["VmHWM"].split()[0]))
            except (FileNotFoundError, ProcessLookupError, KeyError):
                pass
        time.sleep(0.05)
    checks.equal("status", 0, process.wait(30))
    if not 0 < most < 700 * 1024:
        raise Failure(f"{most // 1024} MiB of memory in a reader")
    profile = profiles.Profile(path)
    if not any(frame.name == "innermost" for stack in profile.stacks for frame in stack):
        raise Failure(f"no lines of the other program: {profile.said()}")
    profiles.ended(victim)
    profiles.ended(hostile)
