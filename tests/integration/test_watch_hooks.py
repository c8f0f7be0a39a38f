# SPDX-License-Identifier: MIT
"""Hooks of one's own in the watch tools: what the kernel added up is what the program did."""

import json
import os
import signal
import subprocess
import time

import checks
from harness import Failure, Places, Skip, alone, wait_until
from test_watch import ALL, TOOLS, nothing_missed, start, watch

TABLE = ("table sizes = 1 1 4 4 8 8 2\n"
         "uprobe:libhooked.so:ncclAllReduce(count=arg2:u64, bytes=arg2*sizes(arg3):bytes, result=ret:i32) as nccl if ret == 0\n")
HOOKS = ("uprobe:libhooked.so:hooked_fill(question=*arg0:u32, name=arg1:str)",
         "uentry:libhooked.so:hooked_recurse(depth=arg0:i32) if depth > 1",
         "uretprobe:libhooked.so:hooked_mark",
         "uprobe:libhooked.so:hooked_jump(bytes=*arg0:bytes@return)",  # which is never known
         "usdt:libhooked.so:hooked:step(n=arg0:i32) as marks if n < -1")
WANTED = {"nccl.ncclAllReduce": 3, "hooked_fill": 1, "hooked_recurse": 2, "hooked_mark": 3, "hooked_jump": 3,
          "marks.hooked:step": 2}


def words(*specs):
    return [word for spec in specs for word in ("--hook", spec)]


def file_of_hooks(case, text=TABLE):
    folder = case.path("own")
    os.makedirs(folder, 0o700, exist_ok=True)
    path = os.path.join(folder, "own.hooks")
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o600)
    return ["--hooks", path]


def rows_of(page):
    return {row["hook"]: row for row in page["hooks"]["rows"]}


def calls_of(page):
    return {name: row["calls"] for name, row in rows_of(page).items()}


def hooked_is_right(pages):
    rows = rows_of(pages.last)
    nothing_missed(pages)
    checks.equal("calls", WANTED, calls_of(pages.last))
    checks.equal("in all", sum(WANTED.values()), pages.last["hooks"]["calls"])
    checks.equal("bytes", {"nccl.ncclAllReduce": 10 + 44 + 96, "hooked_jump": 0}, {name: row["bytes"] for name, row in rows.items() if "bytes" in row})
    checks.equal("unfinished", {"hooked_jump": 3}, {name: row["unfinished"] for name, row in rows.items() if row["unfinished"]})
    checks.equal("that have times", {"nccl.ncclAllReduce", "hooked_fill"}, {name for name, row in rows.items() if "call_ns" in row})
    own = rows["nccl.ncclAllReduce"]
    if not 3 * 200_000 <= own["call_ns"] or not 200_000 <= own["mean_call_ns"] <= own["max_call_ns"] <= own["call_ns"]:
        raise Failure(f"collectives sleep for 200 us: {own}")
    checks.equal("libraries", {"libhooked.so.1"}, {row["library"] for row in rows.values()})
    checks.equal("processes", {"hooked"}, {row["process"] for row in rows.values()})


def test_watch_hooks_are_added_up(case):
    for tools in (*TOOLS, ALL):
        hooked_is_right(watch(case, tools, "hooked", options=file_of_hooks(case) + words(*HOOKS), name=f"pages.{tools}"))


def test_watch_hooks_with_each_mechanism(case):
    for without in ("session", "session,multi", "session,multi,cookie"):
        hooked_is_right(watch(case, "launches", "hooked", name=f"pages.{without}",
                              options=["--without", without, *file_of_hooks(case), *words(*HOOKS)]))


def test_watch_hooks_beside_what_the_tools_add_up(case):
    """On functions that a tool looks at as well: neither takes a call from the other. (Grids times a number of a table.)"""
    table = "table weights = 0 10 100\nuprobe:libcuda.so:cuLaunchKernel(bytes=arg1*weights(arg2):bytes) as weighed\n"
    pages = watch(case, ALL, "threads", "2", "5", options=file_of_hooks(case, table) + words(
        "uprobe:libcuda.so:cuMemAlloc_v2(bytes=arg1:bytes) as own if bytes > 4096",
        "tracepoint:sched:sched_process_exec(filename) as programs"))
    nothing_missed(pages)
    rows = rows_of(pages.last)
    checks.equal("calls", {"weighed.cuLaunchKernel": 20, "own.cuMemAlloc_v2": 5, "programs.sched_process_exec": 1}, calls_of(pages.last))
    checks.equal("sums", (5 * 8192, 5 * (7 * 10 + 1 * 10 + 7 * 100 + 2 * 10)),
                 (rows["own.cuMemAlloc_v2"]["bytes"], rows["weighed.cuLaunchKernel"]["bytes"]))
    checks.equal("allocations", 10, sum(row["allocated"]["count"] for row in pages.last["memory"]["kinds"]))
    checks.equal("launches", 20, pages.last["launches"]["kernel_launches"])


def test_watch_hooks_of_the_kernel(case):
    if not os.path.exists("/sys/bus/event_source/devices/kprobe"):
        raise Skip("this kernel has no kprobes")
    pages = watch(case, "launches", "threads", "1", "1", options=words(
        "kprobe:vfs_open(ret:i32) as opens", "kprobe:vfs_read if duration < 0ns", "kentry:vfs_write(bytes=arg2:bytes)"))
    opens = rows_of(pages.last)["opens.vfs_open"]
    if not opens["calls"] or opens["unfinished"] or not 0 < opens["mean_call_ns"] <= opens["max_call_ns"]:
        raise Failure(f"opens: {opens}")
    checks.equal("processes", {"threads"}, {row["process"] for row in pages.last["hooks"]["rows"]})
    reads = rows_of(pages.last).get("vfs_read", {"calls": 0, "unfinished": 0})  # for whose return the kernel had no room
    checks.equal("that no filter let through", reads["unfinished"], reads["calls"])
    written = rows_of(pages.last)["vfs_write"]
    if not written["bytes"] or "call_ns" in written:
        raise Failure(f"writes: {written}")


def more_pages(case, n):
    def count():
        return sum(1 for _ in open(case.path("pages"))) if os.path.exists(case.path("pages")) else 0
    before = count()
    wait_until(lambda: count() >= before + n, "pages")


def test_watch_hooks_of_a_running_process_page_by_page(case):
    loop = case.program("loop", 60, 200, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in loop.out(), "the program to begin")
    loop.signal(signal.SIGSTOP)  # both hooks are there, or none, when it launches
    process = start(case, "launches", ["-p", str(loop.pid)], ["--interval", "300ms", *words("uprobe:libcuda.so:cuLaunchKernel as own")])
    more_pages(case, 1)
    loop.signal(signal.SIGCONT)
    more_pages(case, 4)
    loop.signal(signal.SIGSTOP)
    more_pages(case, 2)
    process.signal(signal.SIGINT)
    checks.equal("status", 0, process.wait())
    pages = [json.loads(line) for line in open(case.path("pages"))]
    calls = [calls_of(page).get("own.cuLaunchKernel", 0) for page in pages]
    checks.equal("calls grow", sorted(calls), calls)
    for page, before, now in zip(pages[1:], calls, calls[1:]):
        rate = rows_of(page)["own.cuLaunchKernel"]["calls_per_second"]
        if now > before and abs(rate * page["interval_s"] - (now - before)) > 0.02 * (now - before) + 1:
            raise Failure(f"{now - before} calls in {page['interval_s']} s, {rate} a second")
    launches = pages[-1]["launches"]["kernel_launches"]
    if abs(launches - calls[-1]) > 2:
        raise Failure(f"{launches} launches, {calls[-1]} hooked")
    if calls[-1] < 4:
        raise Failure(f"{calls[-1]} calls only")
    loop.signal(signal.SIGCONT)
    loop.process.stdin.close()


def test_watch_hooks_of_libraries_that_are_opened_late(case):
    pages = watch(case, "launches", "dlopen", "libcuda.so.1", "libcudart.so.13",
                  options=words("uprobe:libcuda.so:cuInit as own", "uprobe:libcudart.so:cudaMalloc as own"))
    checks.equal("calls, that of the runtime as well", {"own.cuInit": 2, "own.cudaMalloc": 1}, calls_of(pages.last))
    nothing_missed(pages)


def test_watch_hooks_by_process(case):
    """Processes that fork, exec and end: each has its row, and one number may be of two programs."""
    program = Places.program("hooked")
    script = f"{program} 3 & {program} 5 & wait; exec {program} 7"
    process = start(case, "launches", ["--", "/bin/sh", "-c", script], words("uprobe:libhooked.so:hooked_recurse if arg0 == 0"))
    checks.equal("status", 0, process.wait())
    last = json.loads(list(open(case.path("pages")))[-1])
    checks.equal("calls", [4, 6, 8], sorted(row["calls"] for row in last["hooks"]["rows"]))
    checks.equal("ended", [True] * 3, [row["ended"] for row in last["hooks"]["rows"]])


def test_watch_hooks_send_nothing_for_a_call(case):
    """Rings of 64 KiB would lose most of half a million records while nobody reads them."""
    process = start(case, "launches", ["--", Places.program("hooked"), "500000"],
                    ["--ring-size", "64KiB", *words("uprobe:libhooked.so:hooked_recurse(depth=arg0:i32)")])
    time.sleep(0.2)
    process.signal(signal.SIGSTOP)
    time.sleep(1)
    process.signal(signal.SIGCONT)
    checks.equal("status", 0, process.wait())
    last = json.loads(list(open(case.path("pages")))[-1])
    checks.equal("calls", {"hooked_recurse": 500004}, calls_of(last))
    checks.equal("lost", 0, last["missed"]["lost"]["ring_full"])


def test_watch_hooks_without_returns(case):
    options = ["--no-returns", *words("uprobe:libhooked.so:hooked_recurse(depth=arg0:i32)")]
    row = rows_of(watch(case, "launches", "hooked", options=options).last)["hooked_recurse"]
    checks.equal("calls", 4, row["calls"])
    checks.equal("times", False, any(key.endswith("_ns") for key in row))


@alone
def test_watch_hooks_of_all_processes(case):
    """Of one that does not use CUDA, too."""
    process = start(case, "launches", ["--all"], ["--interval", "300ms", *words("uprobe:libhooked.so:hooked_fill")])
    wait_until(lambda: os.path.exists(case.path("pages")) and os.path.getsize(case.path("pages")), "a page")
    ran = case.program("hooked")
    time.sleep(1)
    checks.equal("status of the program", 0, ran.wait())
    for _ in range(3):  # its library is known by then at the latest
        again = case.start(Places.program("hooked"), name="again")
        checks.equal("status of the program", 0, again.wait())
        time.sleep(0.3)
    process.signal(signal.SIGINT)
    checks.equal("status", 0, process.wait())
    last = json.loads(list(open(case.path("pages")))[-1])
    if not any(row["pid"] == again.pid and row["calls"] == 1 for row in last["hooks"]["rows"]):
        raise Failure(f"no row of {again.pid}: {last['hooks']}")


def test_watch_hooks_and_calls_recorded_inside(case):
    pages = watch(case, "launches", "threads", "2", "5", options=["--in-process", *words("uprobe:libcuda.so:cuMemAlloc_v2(n=arg1:bytes) as own")])
    checks.equal("calls", {"own.cuMemAlloc_v2": 10}, calls_of(pages.last))
    checks.equal("bytes", 5 * 4096 + 5 * 8192, rows_of(pages.last)["own.cuMemAlloc_v2"]["bytes"])
    checks.equal("launches", 20, pages.last["launches"]["kernel_launches"])


def test_watch_hooks_as_a_table(case):
    process = case.cuscope("launches", *file_of_hooks(case), *words("uprobe:libhooked.so:hooked_jump", "uprobe:libnowhere.so:f"),
                           "--", Places.program("hooked"))
    checks.equal("status", 0, process.wait())
    checks.contains("the page", r"\nHooks: 6 calls, [\d.]+ a second\n  PROCESS +CALLS +/S  UNFINISHED +BYTES +NOW +IN CALLS +MEAN +LONGEST  HOOK\n"
                                r"  \d+ \(hooked\) +3 +[\d.]+ +- +150 B .*  nccl.ncclAllReduce\n"
                                r"  \d+ \(hooked\) +3 +[\d.]+ +3 .*  hooked_jump\n", process.out())
    checks.contains("what was not found", "not hooked: f: no target has mapped libnowhere.so", process.out())


def test_watch_hooks_bad_input(case):
    for options, told in ((["--hook", "uprobe:libhooked.so:f(n=arg0:i33)"], r"--hook: 'i33' is no type: .*\n  uprobe:.*\n {31}\^\n$"),
                          (["--hook", "tracepoint:shced:x"], "there is no group of tracepoints 'shced'"),
                          (["--hooks", "nothing"], "nothing"), (["--hook-limit", "9000"], "'9000' is no number from 1 to 8192"),
                          (["--no-returns", "--hook", "uretprobe:libx.so:f"], "--hook: this hook needs returns, which --no-returns does not record"),
                          (["--format", "classic", "--hook", "uprobe:libx.so:f"], "--format classic has no lines for hooks; table and json do")):
        process = case.cuscope("launches", *options, "--", "/bin/true")
        checks.equal(f"status of {options}", 2, process.wait())
        checks.contains(f"{options}", told, process.err())
    pages = watch(case, "memleak", "hooked", options=["--hook-limit", "3", *words("uprobe:libhooked.so:*")])
    checks.contains("a limit", "more than 3 functions match: none of them is hooked", pages.last["missed"]["hooks"][0]["why"])
    checks.equal("calls", 0, pages.last["hooks"]["calls"])
