# SPDX-License-Identifier: MIT
"""A user who wants that calls are not seen: his own, or those of others."""

import os
import shutil
import signal
import subprocess
import time

import checks
from harness import Failure, Places, wait_until

BUILD = "gcc -shared -nostdlib -fPIC -o {path} {source}"


def many_functions(case, name, count):
    """A libcuda of its own with that many functions."""
    source, path = case.path(name + ".s"), case.path(name + ".so")
    with open(source, "w") as file:
        file.write(".text\n")
        for function in ["cuInit", "cuLaunchKernel"] + [f"cuF{i}" for i in range(count)]:
            file.write(f".globl {function}\n.type {function},@function\n{function}: push %rbp\npop %rbp\n"
                       f"xor %eax,%eax\nret\n.size {function},.-{function}\n")
    subprocess.run(BUILD.format(path=path, source=source).split(), check=True, timeout=60)
    return path


def test_a_library_with_all_functions_there_are_does_not_take_all_hooks(case):
    """16,302 functions in its own libcuda: another program in the same trace is traced all the same."""
    path = many_functions(case, "greedy", 16300)
    script = (f"python3 -c \"import ctypes; ctypes.CDLL('{path}')\"; {Places.program('threads')} 1 2")
    result = case.trace("/bin/sh", "-c", script)
    checks.valid(result)
    checks.calls(result)
    told = [hook for hook in result.summary["missed"]["hooks"] if hook["kind"] == "not_hooked"]
    if not told or "one file has 2,048 hooks at most" not in told[0]["why"]:
        raise Failure(f"not told: {result.summary['missed']}")
    checks.equal("complete", False, result.summary["missed"]["complete"])


def test_a_number_of_a_deleted_file_is_not_taken_for_that_file(case):
    """A file that is no library is executed and deleted until a libcuda has its inode number."""
    harmless, library = case.path("harmless"), case.path("libcuda.so.1")
    for round_ in range(200):
        shutil.copy("/bin/true", harmless)
        number = os.stat(harmless).st_ino
        os.unlink(harmless)
        shutil.copy(Places.simcuda("push", "libcuda.so.1"), library)
        same = os.stat(library).st_ino == number
        os.unlink(library)
        if same:
            break
    else:
        raise Failure("numbers are not used again on this file system: the test says nothing")
    script = (f"cp /bin/true {harmless}; {harmless}; sleep 1.2; {harmless}; rm {harmless}; "
              f"cp {Places.simcuda('push', 'libcuda.so.1')} {library}; "
              f"LD_LIBRARY_PATH={case.folder} {Places.program('threads')} 1 2")
    result = case.trace("/bin/sh", "-c", script)
    checks.everything(result)


def test_a_library_that_is_overwritten_in_place_is_hooked_anew(case):
    library = case.path("libcuda.so.1")
    shutil.copy(Places.simcuda("push", "libcuda.so.1"), library)
    program = f"LD_LIBRARY_PATH={case.folder} {Places.program('threads')} 1 2"
    result = case.trace("/bin/sh", "-c", f"{program}; cat {Places.simcuda('endbr', 'libcuda.so.1')} >{library}; "
                        f"sleep 1.5; {program}")
    checks.valid(result)
    checks.calls(result)
    checks.contains("text", "written anew while it was hooked", result.out)


def test_a_user_without_hooks_does_not_take_anothers_library_from_him(case):
    """He maps it first: it is refused to him, and not to whom it belongs."""
    os.chmod(case.folder, 0o777)
    libraries = [many_functions(case, f"greedy{i}", 2100) for i in range(4)]
    owners = case.path("owners")
    os.mkdir(owners)
    library = shutil.copy(Places.simcuda("push", "libcuda.so.1"), owners)
    for path, owner in [(owners, 1235), (library, 1235), *((path, 1234) for path in libraries)]:
        os.chmod(path, 0o755)
        os.chown(path, owner, owner)
    time.sleep(1.2)  # what was just written is read again in any case
    load = "; ".join(f"ctypes.CDLL('{path}')" for path in [*libraries, library])
    result = case.trace("/bin/sh", "-c",
                        f"setpriv --reuid 1234 --clear-groups /usr/bin/python3 -c \"import ctypes; {load}\"; sleep 0.5; "
                        f"LD_LIBRARY_PATH={owners} setpriv --reuid 1235 --clear-groups {Places.program('threads')} 1 2",
                        options=["--layer", "driver"])
    told = [hook for hook in result.summary["missed"]["hooks"] if "8,192 hooks at most" in hook["why"]]
    checks.equal("refused", 1, len(told))
    if result.summary["launches"]["kernels"] < 2:
        raise Failure(f"the owner's launches were not seen: {result.summary['missed']}")
