# SPDX-License-Identifier: MIT
"""Stacks frame by frame: what cuscope walks is what the program's own unwinder sees at the same call."""

import os
import shutil
import subprocess

import checks
import stack_points
from harness import Failure, Places, Skip

WAYS = {"constructor", "recursion", "alloca", "aligned", "arguments", "tail-call", "thunk", "destructor", "catch", "rethrow",
        "signal", "signal-stack", "fault", "qsort", "sort", "tree", "objects", "function", "once", "library", "coroutine",
        "context", "thread", "thread-exit", "interrupts"}


def recorded(case, *ways, turns=20, library="libframelib.so"):
    own, path, export = case.path("own"), case.path("points.cuscope"), case.path("points.jsonl")
    process = case.cuscope("record", "--stacks=allocations", "-o", path, "--", Places.program("stackpoints"), own, str(turns),
                           Places.program(library), *ways)
    checks.equal("status of the recording", 0, process.wait())
    checks.equal("status of the export", 0, case.cuscope("export", "--format", "jsonl", "-o", export, path).wait())
    points, _ = stack_points.own(own)
    return points, stack_points.of_cuscope(export)


def test_stack_frames_are_those_of_the_programs_own_unwinder(case):
    """Each way is there, and of all stacks 99.5 % are whole and right. What is wrong is named."""
    points, seen = recorded(case)
    compared = stack_points.Comparison(points, seen)
    checks.equal("ways", WAYS, set(compared.points))
    print(f"{compared.right.total()} of {compared.points.total()} stacks, {compared.frames} frames")
    if compared.share() < 99.5:
        raise Failure(f"{compared.share():.2f} % of {compared.points.total()} stacks are right: {compared.wrong[:5]}")


def test_stack_frames_of_the_programs_own_unwinder_are_those_of_gdb(case):
    """What the others are compared with, at each point of one run."""
    if not shutil.which("gdb"):
        raise Skip("gdb is not installed: what the program sees of its own stack was not compared with it")
    own, by_gdb = case.path("own"), case.path("by_gdb")
    process = case.start("gdb", "-batch", "-nx", "-x", os.path.join(Places.root, "tests/integration/gdb_points.py"), "--args",
                         Places.program("stackpoints"), own, "5", Places.program("libframelib.so"),
                         env=dict(case.environment(), GDB_POINTS=by_gdb))
    checks.equal("status", 0, process.wait())
    points, maps = stack_points.own(own)
    seen = stack_points.of_gdb(by_gdb, maps)
    checks.equal("points", sorted(points), sorted(seen))
    checks.equal("those that differ", [], [(number, points[number], seen[number]) for number in points
                                           if stack_points.differs_by_gdb(points[number], seen[number])][:1])


def test_stack_frames_of_an_interrupted_function_are_named_by_where_it_was(case):
    """The signal comes at the first instruction of the function: one byte before it is another's."""
    points, seen = recorded(case, "fault", turns=3)
    faults = [seen[number] for number, point in points.items() if point.way == "fault"]
    checks.equal("points", 3, len(faults))
    for stack in faults:
        handler = stack.names.index("step_over(int, siginfo_t*, void*)")
        checks.equal("who was interrupted", "fault()", stack.names[handler + 2])


def test_stack_frames_of_a_context_end_with_it(case):
    """makecontext() returns to code whose unwind table leads on to memory that is no frame."""
    points, seen = recorded(case, "context", turns=3)
    stacks = [seen[number] for number, point in points.items() if point.way == "context"]
    checks.equal("whole", [True] * 9, [stack.whole for stack in stacks])
    checks.equal("the last of them", {"run_other()", "_start"},
                 {stack.names[-2] if stack.names[-1] is None else stack.names[-1] for stack in stacks})


BY_POINTERS = "frame pointers where code has no unwind tables"


def stacks_of(case, way, library):
    points, seen = recorded(case, way, turns=10, library=library)
    found = [(point, seen[number]) for number, point in points.items() if point.way == way]
    checks.equal("points", 10, len(found))
    return found


def check_followed(found, between):
    """libgcc sees no further than the code without tables; cuscope sees who called it, and says by what."""
    for point, stack in found:
        inner = len(stack.names) - stack.names[::-1].index("dive(unsigned int)")
        checks.equal("up to there", point.frames[:inner], stack.frames[:inner])
        checks.equal("from there on", between, stack.names[inner:inner + len(between)])
        checks.equal("its begin", "_start", stack.names[-1])
        checks.equal("how whole it is", (False, BY_POINTERS), (stack.whole, stack.ends_at))


def test_stack_frames_go_on_where_a_library_has_no_tables(case):
    check_followed(stacks_of(case, "library", "libframebare.so"), ["deeper", "call_back", "in_library()", "main"])
    info = case.cuscope("info", case.path("points.cuscope"))
    checks.equal("status", 0, info.wait())
    checks.contains("what info says", "rely on " + BY_POINTERS, info.out())


def test_stack_frames_go_on_where_a_part_of_a_library_has_no_tables(case):
    check_followed(stacks_of(case, "library", "libframegap.so"), ["deeper", "call_back", "in_library()", "main"])


def test_stack_frames_go_on_where_code_was_made_at_run_time(case):
    """A walk that ends in memory that is new has it looked for: the first stacks may be cut."""
    check_followed(stacks_of(case, "bare", "libframelib.so")[5:], [None, "in_made_code()", "main"])


def test_stack_frames_without_tables_and_frame_pointers_are_not_said_to_be_whole(case):
    for point, stack in stacks_of(case, "library", "libframenone.so"):
        inner = len(stack.names) - stack.names[::-1].index("dive(unsigned int)")
        checks.equal("up to there", point.frames[:inner], stack.frames[:inner])
        checks.equal("whole", False, stack.whole)


def test_stack_frames_of_a_file_with_more_rules_than_files_have(case):
    """Rules are kept for all files and to the end, so one file must not take the room of all."""
    with open(case.path("many.s"), "w") as code:
        print(".text\nmany:\n.cfi_startproc", file=code)
        for number in range(20000):
            print(f"nop\n.cfi_def_cfa_offset {16 + 8 * number}", file=code)
        print("ret\n.cfi_endproc\n.globl main\nmain:\n.cfi_startproc\n1: jmp 1b\n.cfi_endproc", file=code)
        print('.section .note.GNU-stack,""', file=code)
    if os.uname().machine != "x86_64":
        raise Skip("the file is made for x86-64")
    subprocess.run(["gcc", "-o", case.path("many"), case.path("many.s")], check=True)
    program = case.start(case.path("many"))
    process = case.cuscope("profile", "--mode", "cpu", "--duration", "1s", "-p", program.pid)
    checks.equal("status", 0, process.wait())
    checks.contains("what it says", "1 file had no room for its unwind table: stacks end there", process.out())
