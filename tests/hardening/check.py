#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the built files to the flags of the Makefile: what runs as root or inside of targets is hardened.

    tests/hardening/check.py BUILD DIST_PROGRAM

The program of `make dist` is made here; it needs a static libZydis, whose source comes from the machine's Debian or Ubuntu
mirror. Where that cannot be had it is a SKIP, which says why.
"""

import os
import platform
import re
import subprocess
import sys

# How the compiler's work looks in the code, since a stripped program names no functions.
CODE = {
    "x86_64": {"stack protector": r"%fs:0x28", "probes of large frames": r"or[ql]\s+\$0x0,(0x[0-9a-f]+)?\(%[re]sp\)",
               "marks of branch targets": r"\bendbr64"},
    "aarch64": {"stack protector": None, "probes of large frames": r"str\s+xzr, \[sp, #1024\]",
                "marks of branch targets": r"\bbti\b|\bpaciasp\b|hint\s+#0x(19|22)"},
}
LEAST = {"stack protector": 100, "probes of large frames": 1, "marks of branch targets": 100}
OVERFLOW = b"buffer overflow detected"  # printed by glibc's __chk_fail, which only checked calls bring into a static program


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def segments(file):
    return output("readelf", "-lW", file)


def linked(file, library=False):
    """What the linker did: {property: is it there}"""
    headers, dynamic = segments(file), output("readelf", "-dW", file)
    stack = re.search(r"GNU_STACK.*\s(R?W?E?)\s+0x", headers)
    writable_code = re.findall(r"^\s+LOAD\s.*\sRWE\s", headers, re.M)
    return {
        "its place is chosen at each start (PIE)": library or "PIE" in dynamic,
        "addresses of functions are read-only once it runs (RELRO)": "GNU_RELRO" in headers,
        "and are all found at the start (BIND_NOW)": bool(re.search(r"FLAGS_1.*\bNOW\b", dynamic)),
        "its stack cannot be executed": bool(stack) and "E" not in stack.group(1),
        "no memory is writable and executable": not writable_code,
        "its code needs no relocation": "TEXTREL" not in dynamic,
    }


def compiled(file):
    """What the compiler did, by the code that it made."""
    code = output("objdump", "-d", "--no-show-raw-insn", file)
    return {f"{what} are in its code" if what.endswith("s") else f"{what} is in its code":
            len(re.findall(pattern, code)) >= LEAST[what]
            for what, pattern in CODE.get(platform.machine(), {}).items() if pattern}


def checked_calls(file):
    return "_chk@" in output("nm", "-D", file)


def wants_only(file, newest):
    needed = set(re.findall(r"NEEDED.*\[(.*?)\.so", output("readelf", "-dW", file)))
    versions = [(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", output("objdump", "-T", file))]
    return needed <= {"libc", "libdl", "libpthread"} and max(versions) <= newest


def objects_marked(archive):
    """Each object says that it can live with CET; a linker passes that on when the system's own objects say so too."""
    told = re.split(r"^File: ", output("readelf", "-nW", archive), flags=re.M)[1:]
    names = [text.split("\n", 1)[0] for text in told if not re.search(r"IBT, SHSTK", text)]
    if names:
        print(f"  without the note: {len(names)}, the first of them {names[0]}")
    return len(told) > 100 and not names


def system_marked(compiler):
    start = output(*compiler.split(), "-print-file-name=Scrt1.o").strip()
    return "IBT" in output("readelf", "-nW", start)


def checks(build, dist):
    program, agent = os.path.join(build, "cuscope"), os.path.join(build, "libcuscope-agent.so")
    for file, library in ((program, False), (agent, True)):
        properties = {**linked(file, library), "it calls the checked functions of libc (FORTIFY_SOURCE)": checked_calls(file),
                      **({} if library else compiled(file))}
        if library:
            properties["it has a stack protector"] = "__stack_chk" in output("nm", "-D", file)
        yield from ((file, what, good) for what, good in properties.items())
    nvml = os.path.join(build, "cuscope-nvml")
    yield from ((nvml, what, good) for what, good in {
        **linked(nvml), "it calls the checked functions of libc (FORTIFY_SOURCE)": checked_calls(nvml),
        "it wants the C library alone, of 2.34 or older": wants_only(nvml, (2, 34))}.items())
    if platform.machine() == "x86_64":
        archive = os.path.join(build, "libcuscope.a")
        yield archive, "every object is marked for CET", objects_marked(archive)
        if system_marked(os.environ.get("CC", "gcc")):
            yield program, "it is marked for CET, as this system's start files are", "IBT" in output("readelf", "-nW", program)
    if dist:
        with open(dist, "rb") as whole:
            overflow = OVERFLOW in whole.read()
        yield from ((dist, what, good) for what, good in {
            **linked(dist), **compiled(dist), "it calls the checked functions of libc (FORTIFY_SOURCE)": overflow,
            "it is static": "INTERP" not in segments(dist)}.items())
        if os.geteuid() == 0:
            yield dist, "it has GPU figures, by the program that it carries", asks_nvml(dist, build)


def asks_nvml(program, build):
    """With the simulated NVML, which a static program cannot load itself."""
    environment = {**os.environ, "LD_LIBRARY_PATH": os.path.abspath(os.path.join(build, "simnvml"))}
    done = subprocess.run([program, "top", "--all", "--once", "--format", "json"], env=environment, capture_output=True, text=True,
                          timeout=60, check=False)
    return "NVIDIA Simulated 0" in done.stdout


def make_dist(dist):
    done = subprocess.run([os.environ.get("MAKE", "make"), "--no-print-directory", "-s", dist], capture_output=True, text=True)
    if done.returncode == 0:
        return dist
    words = done.stderr + done.stdout
    reason = re.search(r"^zydis-static: (?!with a)(.*)", words, re.M)
    if not reason:
        print(words)
        return None
    print(f"SKIP: hardening of {dist}: no static libZydis: {reason.group(1)}")
    return ""


def main():
    build, dist = sys.argv[1:]
    made = make_dist(dist)
    passed, failed, skipped = 0, 0, made == ""
    if made is None:
        print(f"FAIL: hardening: {dist} cannot be built")
        failed = 1
    for file, what, good in checks(build, made):
        passed, failed = passed + bool(good), failed + (not good)
        if not good:
            print(f"FAIL: hardening: {file}: not so: {what}")
    print(f"{passed} passed, {failed} failed" + (", 1 skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
