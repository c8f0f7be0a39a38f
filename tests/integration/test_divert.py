# SPDX-License-Identifier: MIT
"""`cuscope probes --divert`: which entries could be diverted, why others could not, and files that are made to mislead."""

import os
import random
import re
import subprocess
import time

import checks
from harness import Failure, Places, Skip, wait_until

HEAD = r"^(\S+): .*, (\d+) functions, (\d+) could be diverted$"
ROW = r"^  (\w+) +\w+ +(?:on|off|hidden|no driver) +0x[0-9a-f]+ +(yes|no) +(\S.*)$"


def listed(case, path, *words, seconds=20):
    """{function: (yes or no, why)}"""
    if os.uname().machine != "x86_64":
        raise Skip("entries are moved on x86-64 only")
    process = case.cuscope("probes", "--divert", path, *words)
    checks.equal("status", 0, process.wait(seconds))
    head = re.search(HEAD, process.out(), re.M)
    rows = re.findall(ROW, process.out(), re.M)
    if not head or len(rows) != len(process.out().splitlines()) - 2:
        raise Failure(f"no such list: {process.out()[:700]!r}")
    if not words:
        checks.equal("functions", int(head[2]), len(rows))
        checks.equal("of them", int(head[3]), sum(row[1] == "yes" for row in rows))
    return {name: (answer, why) for name, answer, why in rows}


def library(case, functions, flags=()):
    """A driver with functions in assembly code beside the two that make it one."""
    text = ""
    for name, body in {"cuInit": "mov $1, %eax; ret", "cuLaunchKernel": "mov $2, %eax; ret", **functions}.items():
        text += (f".globl {name}\n.type {name}, @function\n.balign 16\n{name}: .cfi_startproc\n{body}\n"
                 f".cfi_endproc\n.size {name}, . - {name}\n")
    with open(case.path("driver.s"), "w") as file:
        file.write(text)
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,-Bsymbolic", "-o", case.path("driver.so"), case.path("driver.s"), *flags],
                   check=True, capture_output=True)
    return case.path("driver.so")


def test_all_functions_of_the_simulated_drivers_could_be_diverted(case):
    for shape, why in (("push", r"^\d+ bytes at \+[12], behind the probe"), ("endbr", r"at \+[56], behind the probe"),
                       ("stub", r"^10 bytes at \+0, before the probe")):
        answers = listed(case, Places.simcuda(f"{shape}/libcuda.so.1"))
        checks.equal(f"{shape}: refused", {}, {name: said for name, said in answers.items() if said[0] == "no"})
        for name, said in answers.items():
            checks.contains(f"{shape}: {name}", why, said[1])


def test_why_an_entry_could_not_be_diverted(case):
    answers = listed(case, library(case, {
        "cuA": "push %rbp; mov %rsp, %rbp; push %r15; pop %r15; pop %rbp; ret",
        "cuB": "sub $8, %rsp; call cuA; add $8, %rsp; ret",
        "cuC": "push %rbp; mov %rsp, %rbp; 1: push %r15; dec %edi; jne 1b; leave; ret",
        "cuD": "xor %eax, %eax; ret; 1: mov $1, %eax; ret",
        "cuE": "push %rbp; mov %rsp, %rbp; push %r15; lea 1f(%rip), %rdx; movslq (%rdx,%rdi,4), %rax\n"
               "add %rdx, %rax; jmp *%rax\n1:",
        "cuF": "2: mov $39, %eax; mov 2b + 1(%rip), %eax; ret",
        "cuG": "syscall; ret; nop; nop; nop",
        "cuH": "push %rbp; mov %rsp, %rbp; push %r15; .byte 6; ret",
        "cuI": "push %rbp; mov %rsp, %rbp; push %r15; ret",
        "cuJ": ".byte 0xe9; .long cuI + 4 - (. + 4)",
        "cuK": "xor %eax, %eax; ret",
    }))
    for name, answer, why in (("cuA", "yes", r"5 bytes at \+1, behind the probe"), ("cuB", "no", r"it calls .*, at \+4"),
                              ("cuC", "no", "a jump leads into"), ("cuD", "no", r"a return or jump ends .*, at \+3"),
                              ("cuE", "no", "through a table"), ("cuF", "no", "as data, at .5"),
                              ("cuG", "no", "depends on its place"), ("cuH", "no", "cannot be decoded"),
                              ("cuI", "no", r"a jump leads into its first bytes, at \+4"), ("cuJ", "no", r"a kernel probe has to lie .*, at \+0"),
                              ("cuK", "no", "too short")):
        checks.equal(name, answer, answers[name][0])
        checks.contains(name, why, answers[name][1])


def test_entries_of_a_process_and_by_name(case):
    program = case.program("loop", 600, stdin=subprocess.PIPE)
    wait_until(lambda: "libcuda.so.1" in open(f"/proc/{program.pid}/maps").read(), "the driver to be loaded")
    process = case.cuscope("probes", "--divert", "-p", program.pid, "--", "cuMemAlloc_v2")
    checks.equal("status", 0, process.wait())
    checks.contains("list", r"cuMemAlloc_v2 +memory +on +0x[0-9a-f]+ +yes", process.out())
    checks.equal("rows", 1, len(re.findall(ROW, process.out(), re.M)))


def test_all_functions_do_the_same_when_they_are_diverted(case):
    """Each is called with zeroes in a process of its own; then all are diverted in one process and put back."""
    if os.uname().machine != "x86_64":
        raise Skip("entries are moved on x86-64 only")
    for file in ("push/libcuda.so.1", "endbr/libcuda.so.1", "stub/libcuda.so.1", "libcudart.so.13", "libcudart.so.12"):
        process = case.start(os.path.join(Places.build, "tests/divert/call_all"), Places.simcuda(file))
        checks.equal(f"status of {file}", 0, process.wait(120))
        # of the simulated runtimes, those that are one jump, a return, or begin with another register's value
        refused = 5 if "cudart" in file else 0
        checks.contains(file, rf"\d+ functions: \d\d\d called alike, {refused} not diverted, 0 otherwise; put back", process.out())


def test_damaged_code_and_tables_end_in_answers(case):
    """Bytes of the driver are overwritten, in its code and all over it: every list is whole, or refused in a sentence."""
    with open(Places.simcuda("endbr/libcuda.so.1"), "rb") as file:
        good = file.read()
    made = random.Random(1)
    answered = 0
    for turn in range(30):
        data = bytearray(good)
        for _ in range(1 << made.randrange(4, 15)):
            data[made.randrange(0x1000 if turn % 3 else 64, len(data))] = made.randrange(256)
        with open(case.path("damaged.so"), "wb") as file:
            file.write(data)
        process = case.cuscope("probes", "--divert", case.path("damaged.so"))
        status = process.wait(20)
        if status not in (0, 1) or (status and len(process.err().splitlines()) > 2):
            raise Failure(f"turn {turn}: status {status}: {process.err()[-500:]}")
        answered += status == 0
    if answered < 10:
        raise Failure(f"only {answered} of 30 were answered")


def test_a_library_made_to_take_time_is_answered_soon(case):
    """5,000 functions of 256 KiB of nops, one in the other, as are their frames; and 50,000 jumps into the first of them."""
    count = 5000
    names = "".join(f".globl cuF{i}\n.type cuF{i}, @function\n.set cuF{i}, begin + {i * 7}\n.size cuF{i}, 262144\n"
                    for i in range(count))
    frames = "".join(f".long 20, . - cie\n.long begin + {i} - ., 262144\n.byte 0\n.balign 4\n.long 0\n"
                     for i in range(0, 20000, 4))
    path = library(case, {"cuNops": f"begin: .fill 300000, 1, 0x90\nret\n{names}",
                          "cuJumps": ".rept 50000\n.byte 0xe9\n.long begin + 8 - (. + 4)\n.endr\n.section .eh_frame, \"a\"\n"
                                     "cie: .long 12, 0\n.byte 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b\n"
                                     f".balign 4\n{frames}.text"})
    begin = time.monotonic()
    answers = listed(case, path, seconds=60)
    took = time.monotonic() - begin
    checks.equal("functions", count + 3, len(answers))  # cuNops is cuF0
    checks.equal("too large", True, sum("too large" in why for _, why in answers.values()) > count - 100)
    checks.equal("jumped into", ("no", "a jump leads into its first bytes, at +1"), answers["cuF1"])
    if took > 20:
        raise Failure(f"it took {took:.1f} s")
