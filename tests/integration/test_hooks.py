# SPDX-License-Identifier: MIT
"""Hooks that users ask for: functions of any library, beside the calls of CUDA."""

import json
import os
import shutil

import checks
from harness import Failure, Places, Skip


def hooks(*specs):
    return [word for spec in specs for word in ("--hook", spec)]


def of(result, name):
    return result.calls(layer="hook", name=name)


def values(result, name):
    return [call["args"] for call in of(result, name)]


def test_hooks_tell_arguments_memory_and_results(case):
    folder = case.path("own")
    os.mkdir(folder, 0o700)
    table = os.path.join(folder, "nccl.hooks")
    with open(table, "w") as file:
        file.write("table sizes = 1 1 4 4 8 8 2\n"
                   "uprobe:libhooked.so:ncclAllReduce(count=arg2:u64, bytes=arg2*sizes(arg3):bytes, "
                   "stream=arg6:hex, result=ret:i32) as nccl if ret == 0 # a remark\n")
    os.chmod(table, 0o600)
    result = case.trace("hooked", options=["--hooks", table] + hooks(
        "uprobe:libhooked.so:hooked_fill(question=*arg0:u32, answer=arg0+4:u32@return, "
        "before=arg0+8->8:i16, after=arg0+8->8:i16@return, name=arg1:str, ret:i64)",
        "uentry:libhooked.so:hooked_recurse(depth=arg0:i32) if depth > 1",
        "uretprobe:libhooked.so:hooked_mark*",
        "usdt:libhooked.so:hooked:step(n=arg0:i32, square=arg1:u32, five=arg2:i64) as marks if n < -1"))
    checks.valid(result)
    checks.equal("collectives", [(10, 10, "0x77"), (11, 44, "0x77"), (12, 96, "0x77")],
                 [(a["count"], a["bytes"], a["stream"]) for a in values(result, "nccl.ncclAllReduce")])
    if min(call["duration_us"] for call in of(result, "nccl.ncclAllReduce")) < 200:
        raise Failure("a collective is shorter than it slept")
    fill = values(result, "hooked_fill")[0]
    checks.equal("memory", (21, 42, -3, -7, -89),
                 (fill["question"], fill["answer"], fill["before"], fill["after"], fill["ret"]))
    checks.equal("text", "a name\033[31m", fill["name"])
    checks.equal("a filter on entry", [3, 2], [a["depth"] for a in values(result, "hooked_recurse")])
    checks.equal("returns alone", [None] * 3, [c.get("duration_us") for c in of(result, "hooked_mark")])
    checks.equal("markers", [(-2, 4, -5), (-3, 9, -5)],
                 [(a["n"], a["square"], a["five"]) for a in values(result, "marks.hooked:step")])
    checks.equal("calls of CUDA", 0, result.summary["calls"]["total"])


def test_a_hooks_path_may_lead_over_links(case):
    """/usr/local/cuda is a link to the folder of one version; processes map files by the names that they have."""
    folder, link = case.path("versions"), case.path("link")
    os.symlink(os.path.abspath(Places.program("")), link)
    for name, module in (("file", "libhooked.so.1"), ("pattern", "libhook*.so.*")):
        result = case.trace("hooked", name=name, options=hooks(f"uprobe:{link}/{module}:hooked_fill"))
        checks.equal(f"calls by {name}", 1, len(of(result, "hooked_fill")))
    os.makedirs(folder)
    os.symlink(folder, case.path("empty"))
    result = case.trace("hooked", name="nobody", options=hooks(f"uprobe:{case.path('empty')}/libx.so:f"))
    told = json.dumps(result.summary["missed"]["hooks"])
    checks.contains("who has no such file", "no target has mapped", told)
    shutil.copy(Places.program("libhooked.so.1"), os.path.join(folder, "libx.so"))
    result = case.trace("hooked", name="other", options=hooks(f"uprobe:{case.path('empty')}/libx.so:f"))
    told = json.dumps(result.summary["missed"]["hooks"])
    checks.contains("its own name", f"{case.path('empty')}/libx.so, which is {folder}/libx.so", told)


def test_filters_decline_by_registers_by_memory_and_by_both(case):
    reduce = "uprobe:libhooked.so:ncclAllReduce(count=arg2, kind=arg3:i32, comm=arg5:hex, ret:i32) if "
    fill = "uprobe:libhooked.so:hooked_fill(question=*arg0:u32, deep=arg0+8->8:i16) if "
    jumps = ["uprobe:libhooked.so:hooked_jump", "uprobe:libhooked.so:hooked_mark(n=arg0:i32) if n < -1"]
    for name, of_reduce, counts, of_fill, fills in (
            ("registers", "count >= 11 and kind != 4", [11, 13], "question == 21", 1),
            ("return", "count >= 11 and kind < 6 and ret == 0", [11, 12], "deep > -3", 0),
            ("either", "count == 10 or kind == 6", [10, 13], "question > 20 and deep == -3", 1),
            ("not", "not count == 10 and not (kind == 4)", [11, 13], "question > 20 and deep == -4", 0)):
        result = case.trace("hooked", name=name, options=hooks(reduce + of_reduce, fill + of_fill, *jumps))
        checks.valid(result)
        checks.equal(of_reduce, counts, [a["count"] for a in values(result, "ncclAllReduce")])
        checks.equal(of_fill, fills, len(of(result, "hooked_fill")))
        checks.equal("marks", [-2, -3], [a["n"] for a in values(result, "hooked_mark")])
        checks.equal("calls that longjmp left", [None] * 3, [c.get("duration_us") for c in of(result, "hooked_jump")])


def test_operators_of_pytorch_have_their_names(case):
    """Those that the file names. Whether relu takes long enough to be told depends on what a probe costs here."""
    result = case.trace("torchops", options=["--hooks", "pytorch"])
    checks.valid(result)
    names = dict(result.names(layer="hook"))
    checks.equal("operators", {"aten.at::_ops::mm::call": 5, "aten.at::_ops::addmm::call": 2,
                               "aten.at::_ops::_local_scalar_dense::call": 1},
                 {name: count for name, count in names.items() if "relu" not in name})
    product = of(result, "aten.at::_ops::addmm::call")[0]
    if product["duration_us"] < 300:
        raise Failure("an operator is shorter than the one that it calls")
    checks.equal("what was not found", [], result.summary["missed"].get("hooks", []))


def test_a_longjmp_ends_a_hooked_call(case):
    result = case.trace("hooked", options=hooks("uprobe:libhooked.so:hooked_*"))
    checks.equal("calls", {"hooked_fill": 1, "hooked_recurse": 4, "hooked_jump": 3, "hooked_mark": 3},
                 dict(result.names(layer="hook")))
    checks.equal("durations of those that longjmp left", [None] * 3,
                 [call.get("duration_us") for call in of(result, "hooked_jump")])
    begins = [call["ts"] for call in of(result, "hooked_recurse")]
    checks.equal("inner calls end first", sorted(begins, reverse=True), begins)


def test_what_is_read_at_a_return_that_never_comes_is_0(case):
    result = case.trace("hooked", options=hooks("uprobe:libhooked.so:hooked_jump(to=arg0:u64, n=*arg0:bytes@return, result=ret:u64)"))
    jumps = values(result, "hooked_jump")
    checks.equal("values", [(True, 0, 0)] * 3, [(jump["to"] != 0, jump["n"], jump["result"]) for jump in jumps])


def test_a_hooked_call_that_hangs_is_told_at_the_end(case):
    result = case.trace("/bin/sleep", "3", options=["--duration", "1s"] + hooks("uprobe:libc.so.6:clock_nanosleep(clock=arg0:i32)"))
    checks.equal("calls", [0], [a["clock"] for a in values(result, "clock_nanosleep")])
    checks.equal("their durations", [None], [call.get("duration_us") for call in of(result, "clock_nanosleep")])


def test_hooks_beside_calls_of_cuda(case):
    options = hooks("uprobe:libcuda.so:cuMemAlloc_v2(bytes=arg1:bytes) as driver")
    result = case.trace("threads", "2", "5", options=options)
    checks.valid(result)
    checks.equal("calls", 10, len(result.calls(name="cuMemAlloc_v2", layer="driver")))
    checks.equal("hooked", 10, len(of(result, "driver.cuMemAlloc_v2")))
    sizes = [call["size"] for call in result.calls(name="cuMemAlloc_v2")]
    checks.equal("sizes", sorted(sizes), sorted(a["bytes"] for a in values(result, "driver.cuMemAlloc_v2")))


def test_what_hooks_do_not_find_is_told(case):
    result = case.trace("hooked", options=hooks(
        "uprobe:libhooked.so:ncclAllReduc", "uprobe:libhooked.so:*", "uprobe:libnowhere.so:f")
        + ["--hook-limit", "3"])
    told = {hook.get("name"): hook["why"] for hook in result.summary["missed"]["hooks"]}
    checks.contains("a near name", "did you mean 'ncclAllReduce'?", told["ncclAllReduc"])
    checks.contains("a limit", "more than 3 functions match: none of them is hooked", told["*"])
    checks.contains("a library", "no target has mapped libnowhere.so", told["f"])
    checks.equal("hooked", 0, len(result.calls(layer="hook")))


def test_of_two_hooks_at_one_place_the_second_is_told_of(case):
    result = case.trace("hooked", options=hooks(
        "uprobe:libhooked.so:hooked_recurse(depth=arg0:i32) as first",
        "uprobe:libhooked.so:hooked_recurse(all=arg0:u64) as second", "uentry:libhooked.so:hooked_*"))
    checks.equal("the first", [0, 1, 2, 3], sorted(a["depth"] for a in values(result, "first.hooked_recurse")))
    checks.equal("the second", [], of(result, "second.hooked_recurse"))
    checks.equal("others of its pattern", 3, len(of(result, "hooked_mark")))
    told = {hook.get("name"): hook["why"] for hook in result.summary["missed"]["hooks"]}
    for name in ("hooked_recurse", "hooked_*"):
        checks.contains(name, "its place has a hook already, of which there is one for each place: 'hooked_recurse' of --hook",
                        told[name])


def test_mistakes_in_hooks_end_it_before_anything_is_traced(case):
    process = case.cuscope("trace", *hooks("uprobe:libhooked.so:f(n=arg0:i33)"), "--", "/bin/true")
    checks.equal("status", 2, process.wait())
    checks.equal("told", "cuscope trace: --hook: 'i33' is no type: did you mean 'i32'? (i8 to i64, u8 to u64, "
                 "hex, bytes, ptr, str, char[N])\n"
                 "  uprobe:libhooked.so:f(n=arg0:i33)\n"
                 "                               ^\n", process.err())


def test_a_recording_has_hooks_in_all_exports(case):
    recorded = case.path("x.cuscope")
    process = case.cuscope("record", "-o", recorded, *hooks("uprobe:libhooked.so:hooked_fill(name=arg1:str)"),
                           "--", Places.program("hooked"))
    checks.equal("status", 0, process.wait())
    for name in ("x.csv", "x.json", "x.jsonl", "x.log"):
        process = case.cuscope("export", recorded, "-o", case.path(name))
        checks.equal(name, 0, process.wait())
        with open(case.path(name), errors="replace") as file:
            text = file.read()
        checks.contains(name, "hooked_fill", text)
        if not name.endswith("json"):
            checks.contains(name + ": its text", "a name", text)
        if "\033" in text:
            raise Failure(f"{name} has an escape that the program chose")


def test_tracepoints_are_hooked_for_targets_alone(case):
    result = case.trace("hooked", options=hooks(
        "tracepoint:syscalls:sys_enter_clock_nanosleep(clock=which_clock) as nap",
        "tracepoint:sched:sched_process_exec(filename)"))
    checks.valid(result)
    checks.equal("naps", [0] * 4, [a["clock"] for a in values(result, "nap.sys_enter_clock_nanosleep")])
    checks.equal("programs", [Places.program("hooked")], [a["filename"] for a in values(result, "sched_process_exec")])
    checks.equal("processes", 1, len({call["pid"] for call in result.calls(layer="hook")}))


def test_mistakes_in_hooks_of_the_kernel_show_what_there_is(case):
    for spec, told in (("tracepoint:sched:sched_switch(next_pdi)", "no field 'next_pdi': did you mean 'next_pid'?"),
                       ("tracepoint:sched:sched_swich", "no tracepoint 'sched_swich' in sched: did you mean 'sched_switch'?"),
                       ("tracepoint:shced:x", "there is no group of tracepoints 'shced'"),
                       ("tracepoint:syscalls:*", "a pattern stands for 512 at most: --hook-limit raises that"),
                       ("tracepoint:sched:sched_switch(x=prev_comm:u32)", "'x' is text")):
        process = case.cuscope("trace", *hooks(spec), "--", "/bin/true")
        checks.equal("status", 2, process.wait())
        checks.contains(spec, told, process.err())


def test_a_filter_on_a_function_of_the_kernel_leaves_who_called_it_alone(case):
    if not os.path.exists("/sys/bus/event_source/devices/kprobe"):
        raise Skip("this kernel has no kprobes")
    result = case.trace("threads", "1", "1", options=hooks("kprobe:do_sys_openat2(ret:i32)", "kprobe:path_openat if arg0 == 1"))
    checks.equal("declined calls", [], of(result, "path_openat"))
    if not of(result, "do_sys_openat2"):
        raise Failure("no call of the outer function is there")
    checks.equal("calls without an end", [], [c for c in of(result, "do_sys_openat2") if c.get("duration_us") is None])


def listed(case, *words):
    """Rows of `cuscope probes`, by the name in them, and what it said."""
    process = case.cuscope("probes", "--format", "json", *words)
    status = process.wait()
    rows = json.loads(process.out()) if status == 0 else []
    return {row.get("Function") or row.get("Tracepoint") or row.get("Marker"): row for row in rows}, status, process.err()


def test_what_a_hook_stands_for_is_listed(case):
    library = os.path.join(Places.build, "programs", "libhooked.so.1")
    rows, status, told = listed(case, f"uprobe:{library}:hooked_*")
    checks.equal(f"status ({told})", 0, status)
    checks.equal("functions, but no parts of them", ["hooked_fill", "hooked_jump", "hooked_mark", "hooked_recurse"], sorted(rows))
    checks.equal("that can be hooked", {"yes"}, {row["Hook"] for row in rows.values()})
    checks.equal("in a file", ["ncclAllReduce"], list(listed(case, library, "uretprobe:libhooked.so:nccl*")[0]))
    marker = listed(case, f"usdt:{library}:hooked:*(n=arg0)")[0]["hooked:step"]
    checks.equal("a marker", ("yes", "arg0:i32 arg1:u32 arg2:u64"), (marker["Hook"], marker["Arguments"]))
    marker = listed(case, f"usdt:{library}:hooked:*(n=arg7)")[0]["hooked:step"]
    checks.equal("what it does not have", ("no", "the marker has no arg7"), (marker["Hook"], marker["Why Not"]))
    fields = listed(case, "tracepoint:sched:sched_switch")[0]["sched_switch"]["Fields"]
    checks.contains("fields of a tracepoint", "prev_comm:char\\[16\\] prev_pid:i32", fields)
    rows = listed(case, "kprobe:do_sys_open*")[0]
    probes = os.path.exists("/sys/bus/event_source/devices/kprobe")
    checks.equal("a function of the kernel", ("vmlinux", "yes" if probes else "no"),
                 (rows["do_sys_openat2"]["Module"], rows["do_sys_openat2"]["Hook"]))
    if not probes:
        checks.contains("why not", "this kernel has no kprobes", rows["do_sys_openat2"]["Why Not"])
    checks.equal("a process", [], list(listed(case, "-p", str(os.getpid()), "uprobe:libhooked.so:*")[0]))


def test_lists_of_hooks_are_bounded_and_say_what_is_wrong(case):
    rows, status, told = listed(case, "kprobe:*")
    checks.equal("status", 0, status)
    checks.equal("rows", 8192, len(rows))
    checks.contains("the rest", r"\d+ match, of which 8192 are listed. A hook's pattern stands for 512 at most", told)
    library = os.path.join(Places.build, "programs", "libhooked.so.1")
    for words, expected, sentence in (
            (["kprobe:nosuchfunctio*"], 1, "there is no function of the kernel 'nosuchfunctio\\*' .*\n  kprobe:nosuchfunctio\\*\n         \\^\n"),
            (["kprob:x"], 2, "'kprob' is no kind of hook: did you mean 'kprobe'\\?"),
            ([f"uprobe:{library}:hooked_fil"], 1, "nothing there is called 'hooked_fil': did you mean 'hooked_fill'\\?"),
            ([f"uprobe:{library}:hooked_mark.cold"], 1, "nothing there is called 'hooked_mark.cold'"),
            ([library, "uprobe:libx.so:f"], 1, "a hook on 'libx.so' is not for a file that is called "),
            (["uprobe:libnowhere.so:f"], 1, "no libnowhere.so in the usual places of libraries"),
            (["uprobe:/nowhere/x.so:f"], 1, "cannot open /nowhere/x.so: No such file"),
            ([library, "kprobe:f"], 1, "a hook of the kernel is not looked for in files"),
            (["tracepoint:shced:*"], 1, "there is no group of tracepoints 'shced'"),
            (["cuMem*"], 2, "--format is for lists of hooks")):
        _, status, told = listed(case, *words)
        checks.equal(f"status of {words}", expected, status)
        checks.contains(f"{words}", sentence, told)


def test_the_agent_says_why_it_has_no_hooks(case):
    for option in ("--hook", "--hooks"):
        process = case.cuscope("agent", option, "uprobe:libx.so:f")
        checks.equal("status", 2, process.wait())
        checks.contains("told", f"cuscope agent: there is no option '{option}' here: the agent looks at programs that use CUDA alone, and hooks "
                                "may be of any; launches and watch have it", process.err())


def test_text_is_read_from_whose_memory_a_hook_of_the_kernel_says(case):
    """The same path: behind the address that the program gives, and where the kernel has copied it to."""
    if not os.path.exists("/sys/bus/event_source/devices/kprobe"):
        raise Skip("this kernel has no kprobes")
    path = "/nowhere/of-the-program"
    result = case.trace("/bin/cat", path, status=None, options=hooks(
        "kentry:do_sys_openat2(path=arg1:str) as given", "kentry:do_sys_openat2(path=arg1:kstr) as wrong",
        "kentry:do_filp_open(path=*arg1:kstr) as copied", "kentry:do_filp_open(path=*arg1:str) as wrong"))
    if not of(result, "given.do_sys_openat2"):
        raise Skip("this kernel opens files without do_sys_openat2, as Linux 7.2 does")
    for name in ("given.do_sys_openat2", "copied.do_filp_open"):
        checks.contains(name, path, " ".join(a["path"] for a in values(result, name)))
    for name in ("wrong.do_sys_openat2", "wrong.do_filp_open"):
        checks.equal(name, [], [a["path"] for a in values(result, name) if not a["path"].startswith("0x")])
        if not of(result, name):
            raise Failure(f"no call of {name}")


def entries(case, program, *arguments, hook, name):
    """A span that is only its entry, of a program that a return probe would end: why, and how many calls."""
    result = case.trace(program, *arguments, options=["--hook", hook])
    checks.valid(result)
    seen = result.calls(name=name)
    checks.equal("calls of which a return was seen", 0, sum("duration_us" in call for call in seen))
    told = [hook for hook in result.said("entry_only") if hook.get("name") == name]
    checks.equal("it is told", 1, len(told))
    return told[0]["why"], len(seen)


def test_a_function_of_go_is_hooked_at_its_entry_alone(case):
    """Its stacks move, and it does not know the return address that a probe puts there."""
    why, calls = entries(case, "gostack", "30", hook="uprobe:gostack:step(n=arg0)", name="step")
    checks.contains("why", "code of Go", why)
    checks.equal("calls", 30, calls)


def test_functions_of_go_are_told_of_once(case):
    """step and main: of a whole program of Go it would be thousands of lines."""
    result = case.trace("gostack", "30", options=["--hook", "uprobe:gostack:[sm][ta][ei]*"])
    told = result.said("entry_only")
    checks.equal("told", 1, len(told))
    checks.contains("why", "^and 1 more: it is of a file with code of Go", told[0]["why"])


def test_a_return_of_go_is_not_hooked(case):
    result = case.trace("gostack", "30", options=["--hook", "uretprobe:gostack:step"])
    told = [hook for hook in result.said("not_hooked") if hook.get("name") == "step"]
    checks.contains("it says", "code of Go", told[0]["why"] if told else "")


def test_an_entry_of_go_is_hooked_as_any(case):
    result = case.trace("gostack", "30", options=["--hook", "uentry:gostack:step(n=arg0)"])
    checks.equal("calls", 30, len(result.calls(name="step")))
    checks.nothing_missed(result)


def test_a_function_that_keeps_its_return_address_is_hooked_at_its_entry_alone(case):
    """setjmp: a longjmp would go to the probe's address, and the kernel end the program by SIGILL."""
    why, calls = entries(case, "longjmp", "5", hook="uprobe:libc.so.6:_setjmp()", name="_setjmp")
    checks.contains("why", "keeps its return address", why)
    checks.equal("it made some", True, calls >= 30)


def test_a_function_that_begins_an_exception_is_hooked_at_its_entry_alone(case):
    path = Places.program("framethrow")
    result = case.trace("framethrow", "20", options=["--hook", "uprobe:libstdc++.so.6:__cxa_throw()"], status=None)
    alone = case.start(path, "20")
    checks.equal("it ends as without a hook", alone.wait(), result.status)
    checks.equal("it is told", ["__cxa_throw"], [hook["name"] for hook in result.said("entry_only")])
