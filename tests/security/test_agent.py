# SPDX-License-Identifier: MIT
"""The agent's library, that root's later children load by CUDA_INJECTION64_PATH."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import time

import checks
import gpu_trace
import test_inject
from harness import Failure, Places, alone, wait_until

NOBODY = "65534"

# In a mount namespace of its own: /run is mounted noexec, /var/lib is empty and has mode $1. Runs
# cuscope, and when it has ended what an attacker tries ($3) with the path that its command was told.
SCRIPT = """
mount -o bind,noexec /run /run && mount -t tmpfs -o mode=$1 t /var/lib || exit 99
TMPDIR=$2/tmp $2/cuscope record --force -o $2/trace.cuscope --gpu -- sh -c 'echo $CUDA_INJECTION64_PATH' >$2/path
python3 -c "$3" "$(cat $2/path)" $2/seen
"""

ATTACK = """
import os, sys
path, seen = sys.argv[1:]
if os.fork() == 0:
    os.setgroups([]), os.setgid({nobody}), os.setuid({nobody})
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        with open(path, 'w') as file:
            file.write('the attacker was here')
    except OSError as error:
        print('refused:', error, file=sys.stderr)
    os._exit(0)
os.wait()
with open(seen, 'w') as out:
    at = path
    while at:
        there = os.lstat(at or '/')
        print(at, there.st_uid, oct(there.st_mode), file=out)
        at = os.path.dirname(at) if at != '/' else ''
    with open(path, 'rb') as file:
        print('ELF' if file.read(4) == bytes([127]) + b'ELF' else 'the attacker\\'s', file=out)
""".replace("{nobody}", NOBODY)


def copy_without_library(case):
    """A cuscope in a folder that others may write to, so that it has to find another place."""
    shutil.copy(Places.cuscope(), case.path("cuscope"))
    shutil.copy(os.path.join(Places.build, "libcuscope-agent.so"), case.path("libcuscope-agent.so"))
    os.mkdir(case.path("tmp"))
    os.chmod(case.path("tmp"), 0o1777)


def run(case, mode):
    copy_without_library(case)
    return case.start(Places.program("ownroot"), "sh", "-c", SCRIPT, "sh", mode, case.folder, ATTACK)


def test_agent_library_cannot_be_replaced_when_cuscope_has_ended(case):
    process = run(case, "755")
    checks.equal("status", 0, process.wait())
    with open(case.path("seen")) as file:
        *folders, content = file.read().splitlines()
    checks.equal("what root's next child loads", "ELF", content)
    for line in folders:
        path, uid, mode = line.split()
        if int(uid) or int(mode, 8) & (stat.S_IWGRP | stat.S_IWOTH):
            raise Failure(f"others can change {line}")
    checks.equal("folders in TMPDIR", [], os.listdir(case.path("tmp")))


def test_agent_library_without_a_place_of_root_s_is_refused(case):
    process = run(case, "1777")
    process.wait()
    checks.contains("what it said", "no GPU times: there is no place for libcuscope-agent.so that "
                    "only root can change", process.err())
    with open(case.path("path")) as file:
        checks.equal("the command's path", "", file.readline().strip())
    checks.equal("folders in TMPDIR", [], os.listdir(case.path("tmp")))


def test_agent_is_loaded_by_a_child_of_another_user(case):
    """Who may not enter cuscope's folders is measured all the same."""
    case.env = {"SIMCUDA_TIME_SCALE": "0"}
    process = gpu_trace.start(case, ["--", "setpriv", "--reuid", NOBODY, "--clear-groups",
                                     Places.program("gpuloop"), "1", "20", "1"])
    checks.equal("status", 0, process.wait())
    if not gpu_trace.read(case).kernels:
        raise Failure(f"no kernels: {process.err()}")


ATTACKERS_LIBRARY = """
#include <stdio.h>
__attribute__((constructor)) static void attack(void) { fclose(fopen("ATTACKED", "w")); }
unsigned cuptiGetVersion(unsigned *version) { *version = 130000; return 0; }
"""


def in_attackers_folder(case, path, program, *arguments, status=0):
    """Root's program in a folder of somebody else's, where a libcupti.so.13 lies."""
    folder = case.path("folder")
    os.mkdir(folder)
    with open(case.path("attack.c"), "w") as file:
        file.write(ATTACKERS_LIBRARY.replace("ATTACKED", case.path("attacked")))
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder + "/libcupti.so.13",
                    case.path("attack.c")], check=True)
    env = dict(case.environment(), LD_LIBRARY_PATH=path)
    process = gpu_trace.start(case, ["--", *program, *arguments], cupti=None, cwd=folder, env=env)
    checks.equal("status", status, process.wait())
    checks.equal("the attacker's library was loaded", False, os.path.exists(case.path("attacked")))
    return process


def test_agent_loads_nothing_from_the_folder_that_a_process_is_in(case):
    """By an empty part of LD_LIBRARY_PATH, which many have: "/usr/local/cuda/lib64:"."""
    process = in_attackers_folder(case, ":" + Places.libraries(), [Places.program("gpuloop")],
                                  "1", "20", "1")
    checks.contains("what it found", r"by \S*/simcuda/libcupti.so.13", process.err())


def test_agent_loads_nothing_beside_a_runtime_of_a_relative_path(case):
    """The program has loaded ./libcudart.so.13 in its own folder and then gone elsewhere."""
    move = ("import ctypes, os; os.chdir('%s'); ctypes.CDLL('./libcudart.so.13'); "
            "os.chdir('%s'); ctypes.CDLL('libcudart.so.13').cudaFree(None)")
    lone = case.path("lone")  # has a runtime and a driver, and no libcupti
    os.mkdir(lone)
    for name in ("libcudart.so.13", "push/libcuda.so.1"):
        shutil.copy(Places.simcuda(name), lone)
    in_attackers_folder(case, lone, [sys.executable, "-c", move % (lone, case.path("folder"))],
                        status=1)  # and so there are no GPU times


def test_agent_is_written_to_no_file_that_the_target_puts_in_place_of_its_memfd(case):
    """Of a tmpfs: there a file has seals, as a memfd has."""
    swap = f"/dev/shm/cuscope-test-swap.{os.getpid()}"
    env = dict(case.environment(), TARGET_SWAP=swap)
    refused = 0
    try:
        for _ in range(100):
            target = test_inject.start_target(case, "swap", env=env)
            lines = test_inject.attach(case, target.pid)
            refused += "has put another file in place of a memfd" in lines[0]
            target.stop()
            checks.equal("bytes in the target's file", 0, os.path.getsize(swap))
            if refused == 3:
                return
        raise Failure("the target was never quick enough")
    finally:
        if os.path.exists(swap):
            os.unlink(swap)


HOSTILE = 12  # processes, more than are entered at once


@alone
def test_processes_that_hold_up_who_enters_them_leave_room_for_others(case):
    """Each for the 10 s after which it is given up, all of one user."""
    env = case.environment()
    env.pop("SAMPLE_COUNTS")  # a file of root's

    def as_user(uid, name, **more):
        return case.start("setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", Places.program("loop"), "60", "20",
                          name=name, stdin=subprocess.PIPE, env=env | more)
    hostile = [as_user(1234, f"hostile-{i}", LD_PRELOAD=Places.program("slow_loader.so")) for i in range(HOSTILE)]
    wait_until(lambda: all("ready" in process.out() for process in hostile), "them to run", 30)
    for process in hostile:
        process.signal(signal.SIGUSR1)
    trace = case.start_trace(["--gpu"], ["--all"])
    time.sleep(3)  # they are being entered
    victim = as_user(1235, "victim")
    wait_until(lambda: f"GPU times of process {victim.pid} by" in trace.err(), "another's process to be measured", 5)
    trace.signal(signal.SIGINT)
    for process in [victim, *hostile]:
        process.process.kill()
    trace.wait()
    if any(f"GPU times of process {process.pid} by" in trace.err() for process in hostile):
        raise Failure(f"they hold up nobody: {trace.err()}")
