# SPDX-License-Identifier: MIT
"""memleak: memory that is live, by the function that allocated it."""

import json
import os
import signal
import threading
import time
import xml.etree.ElementTree

import checks
from harness import Counts, Failure, Places, alone, wait_until

GROW_CACHE = "leaky::Model::grow_cache(unsigned long)"
LOAD_WEIGHTS = "leaky::Model::load_weights(unsigned long)"
FORMAT = ["--format", "json"]


def read_pages(case):
    with open(case.path("pages.jsonl")) as lines:
        return [json.loads(line)["memory"] for line in lines]


def memleak(case, *program, options=(), status=0):
    """The pages of a program's run from its first call to its end."""
    process = case.cuscope("memleak", "-o", case.path("pages.jsonl"), *FORMAT, *options, "--",
                           program[0] if program[0][0] == "/" else Places.program(program[0]), *program[1:])
    ended = process.wait()
    if status is not None and ended != status:
        raise Failure(f"exit status {ended}, not {status}: {process.err()[-600:]}")
    return read_pages(case)


def functions(page):
    return {place["place"]["function"] for place in page["places"]
            if place["older_count"] or place["ended"]}


def place_of(page, function):
    found = [p for p in page["places"] if p["place"].get("function") == function]
    checks.equal(f"places in {function}", 1, len(found))
    return found[0]


@alone
def test_memleak_names_the_function_that_leaks(case):
    pages = memleak(case, "leak", "60", "40", options=["--interval", "300ms", "--older", "600ms"])
    full = [page for page in pages if any(p["trend"] == "suspect" for p in page["places"])]
    if not full:
        raise Failure(f"nobody was suspect on {len(pages)} pages")
    checks.equal("places", {GROW_CACHE, LOAD_WEIGHTS}, functions(full[-1]))
    checks.equal("trend of what leaks", "suspect", place_of(full[-1], GROW_CACHE)["trend"])
    checks.equal("trend of what is used", "steady", place_of(full[-1], LOAD_WEIGHTS)["trend"])


def test_memleak_tells_what_a_process_never_freed(case):
    pages = memleak(case, "leak", "20", "5", options=["--interval", "1m"])
    counts = Counts(case.path("counts"))
    process, = pages[-1]["processes"]
    live = counts.of("live")
    checks.equal("ended", True, process["ended"])
    checks.equal("not freed", {"count": live["count"], "bytes": live["bytes"]},
                 pages[-1]["kinds"][0]["released_by_exit"])
    checks.equal("places", {GROW_CACHE, LOAD_WEIGHTS}, functions(pages[-1]))
    checks.equal("of the cache", counts.of("allocs")["device 4096"],
                 place_of(pages[-1], GROW_CACHE)["count"])


def test_memleak_knows_what_other_threads_and_layers_freed(case):
    pages = memleak(case, "leak", "20", "5", options=["--interval", "1m"])
    counts = Counts(case.path("counts"))
    process, = pages[-1]["processes"]
    checks.equal("freed", sum(counts.of("frees").values()),
                 pages[-1]["kinds"][0]["freed"]["count"])
    checks.equal("unknown frees", 0, process["unknown_frees"])


def test_memleak_of_a_process_that_is_killed(case):
    pages = memleak(case, "leak", "10", "5", "crash", options=["--interval", "1m"], status=None)
    checks.equal("places", {GROW_CACHE, LOAD_WEIGHTS}, functions(pages[-1]))
    checks.equal("of the cache", 10, place_of(pages[-1], GROW_CACHE)["count"])


@alone
def test_memleak_tells_the_end_of_a_process_once_and_at_last(case):
    first = case.program("leak", 150, 20)
    second = case.program("leak", 250, 20)
    process = case.cuscope("memleak", "-o", case.path("pages.jsonl"), *FORMAT, "--interval", "100ms",
                           "--older", "1h", "-p", f"{first.pid},{second.pid}")
    first.wait()
    second.wait()
    process.wait()
    pages = read_pages(case)
    told = [page for page in pages
            if first.pid in {p["pid"] for p in page["places"] if p["ended"]}]
    checks.equal("pages that tell of it", 2, len(told))
    checks.equal("the last page is one", True, told[-1] == pages[-1])


def test_memleak_shows_whole_stacks(case):
    pages = memleak(case, "leak", "5", "5", options=["--interval", "1m", "--stacks"])
    place = place_of(pages[-1], GROW_CACHE)
    checks.equal("stack", ["cudaMalloc", GROW_CACHE, "main"], [f.get("function") for f in place["stack"]][:3])
    checks.equal("whole", True, place["stack_whole"])


def test_memleak_says_where_a_stack_is_cut_short(case):
    pages = memleak(case, "memory", options=["--interval", "1m"])
    for place in pages[-1]["places"]:
        checks.equal("whole, or not and why", not place["stack_whole"], "stack_ends_by" in place)


def leak_of_python():
    return os.path.join(Places.root, "tests/programs/leak.py")


def line_of_leak(name):
    with open(leak_of_python()) as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith(f"# at {name}"))


def test_memleak_names_the_line_of_python_that_leaks(case):
    """With the whole stack: native frames below it and the lines that led there."""
    pages = memleak(case, "/usr/bin/python3", leak_of_python(), "40", "15", options=["--interval", "200ms", "--older", "0s"])
    line = line_of_leak("fill_cache")
    place, = [place for place in pages[-1]["places"] if place["ended"]]
    checks.equal("what was never freed", (f"Cache.fill_cache (leak.py:{line})", 40, 40 * 4096),
                 (place["place_name"], place["count"], place["bytes"]))
    python = [(f["function"], os.path.basename(f["file"])) for f in place["stack"] if "line" in f]
    checks.equal("Python's part of the stack", [("Cache.fill_cache", "leak.py"), ("main", "leak.py"), ("<module>", "leak.py")],
                 python)
    checks.equal("innermost frame, whole", ("cuMemAlloc_v2", True), (place["stack"][0]["function"], place["stack_whole"]))


def test_memleak_of_many_deep_places(case):
    """Each of a thousand places is told apart, 490 frames down, with what it holds."""
    pages = memleak(case, "places", "1000", "490", "3", "keep", options=["--interval", "1m", "--stacks"])
    left = [place for place in pages[-1]["places"] if place["ended"]]
    checks.equal("places, their allocations, whole stacks", (1000, {3}, {True}),
                 (len(left), {place["count"] for place in left}, {place["stack_whole"] for place in left}))
    checks.equal("without a stack, too fast", (0, 0), (pages[-1]["without_stack"], pages[-1]["too_fast_for_stacks"]))


# Each allocation is made by a function whose code object is new, has a name that nobody should print, and is gone when cuscope
# comes to read it: another one lies at its address by then.
CHANGING = r"""
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
def allocate():
    cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(256))
for n in range(int(sys.argv[1])):
    def caller():
        allocate()
    name = "\x1b[31m\n" + chr(97 + n % 26) * (n % 3000)
    caller.__code__ = caller.__code__.replace(co_name=name, co_filename="/tmp/\x1b]0;" + name, co_firstlineno=n + 1)
    caller()
    del caller
time.sleep(0.3)
"""


def test_memleak_of_a_python_whose_code_changes(case):
    for form in ("table", "json"):
        process = case.cuscope("memleak", "--format", form, "--interval", "100ms", "--older", "0s", "--stacks", "--",
                               "/usr/bin/python3", "-c", CHANGING, 3000)
        checks.equal("status", 0, process.wait())
        if "\x1b" in process.out():
            raise Failure("a name of the target reaches the terminal")
    page = json.loads(process.out().splitlines()[-1])["memory"]
    held = [place for place in page["places"] if place["ended"]]
    checks.equal("allocations", (3000, 3000 * 256), (sum(p["count"] for p in held), sum(p["bytes"] for p in held)))


def test_memleak_of_a_storm_of_allocations(case):
    """Only stacks are left out, and counted: what is held is exact."""
    pages = memleak(case, "places", "10", "5", "6000", "keep", options=["--interval", "1m"])
    left = [place for place in pages[-1]["places"] if place["ended"]]
    without = sum(place["count"] for place in left if "stack" not in place)
    checks.equal("allocations", 60000, sum(place["count"] for place in left))
    checks.equal("without a stack", pages[-1]["too_fast_for_stacks"], without)
    if not 0 < without < 50000:
        raise Failure(f"{without} of 60000 allocations have no stack")


@alone
def test_memleak_of_a_running_process(case):
    leak = case.program("leak", 400, 10)
    process = case.cuscope("memleak", "-o", case.path("pages.jsonl"), *FORMAT, "--interval",
                           "200ms", "--older", "0s", "-p", leak.pid)
    wait_until(lambda: os.path.exists(case.path("pages.jsonl"))
               and GROW_CACHE in open(case.path("pages.jsonl")).read(), "the place")
    process.signal(signal.SIGINT)
    process.wait()
    leak.stop()
    checks.equal("weights, which are older than the watch", False,
                 any(LOAD_WEIGHTS in functions(page) for page in read_pages(case)))


@alone
def test_memleak_tells_what_no_call_holds(case):
    """NVML's figure of a process less what its calls hold, and how much of that was there at first."""
    def tell(text):
        with open(case.path("gpu.new"), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(case.path("gpu.new"), case.path("gpu"))

    def told(part):
        return [p["by_nvml"] for page in read_pages(case) for p in page["processes"] if part in p.get("by_nvml", {})]

    def begin():
        process = case.cuscope("memleak", "-o", case.path("pages.jsonl"), *FORMAT, "--interval", "200ms", "-p", leak.pid)
        wait_until(lambda: os.path.exists(case.path("pages.jsonl")) and any(p["processes"] for p in read_pages(case)), "its calls")
        return process

    case.env.update(LD_LIBRARY_PATH=Places.libraries() + ":" + os.path.join(Places.build, "simnvml"), SIMNVML_FILE=case.path("gpu"))
    leak = case.program("leak", 1000, 10)
    tell("processes 0\n")
    process = begin()
    checks.equal("figures of NVML, who knows nothing of it", [], told("rest"))
    tell(f"processes 1\npid {leak.pid}\nprocess_mib 500\n")
    wait_until(lambda: told("first_rest"), "what was there at first")
    tell(f"processes 1\npid {leak.pid}\nprocess_mib 580\n")
    wait_until(lambda: told("rest")[-1]["bytes"] == 580 << 20, "the second reading")
    first, last = told("rest")[0], told("rest")[-1]
    process.signal(signal.SIGINT)
    process.wait()
    for one in (first, last):
        checks.equal("the rest", one["bytes"] - one["held_by_calls"], one["rest"])
    checks.equal("what was there at first", [first["rest"]] * 2, [first["first_rest"], last["first_rest"]])
    if last["held_by_calls"] < 3000 or not last["all_calls_seen"]:
        raise Failure(f"its calls: {last}")
    os.unlink(case.path("pages.jsonl"))
    process = begin()  # now NVML knows it from the begin: what it had then is not known
    wait_until(lambda: told("rest"), "NVML's figure")
    process.signal(signal.SIGINT)
    process.wait()
    leak.stop()
    checks.equal("what was there at first", [], told("first_rest"))


@alone
def test_a_recording_tells_what_no_call_holds(case):
    """NVML's figure of a process at its first, largest and last reading, less what its calls held then."""
    def tell(text):
        with open(case.path("gpu.new"), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(case.path("gpu.new"), case.path("gpu"))

    def report(*options):
        process = case.cuscope("report", case.path("run.cuscope"), "memory", *options)
        if process.wait():
            raise Failure(process.err())
        return process.out()

    case.env.update(LD_LIBRARY_PATH=Places.libraries() + ":" + os.path.join(Places.build, "simnvml"), SIMNVML_FILE=case.path("gpu"))
    leak = case.program("leak", 2000, 10)
    tell("processes 0\n")
    recording = case.cuscope("record", "-o", case.path("run.cuscope"), "-p", leak.pid)
    for mib in (500, 580, 540):
        time.sleep(4.5)  # it is asked every 3 s
        tell(f"processes 1\npid {leak.pid}\nprocess_mib {mib}\n")
    time.sleep(4.5)
    recording.signal(signal.SIGINT)
    checks.equal("status of record", 0, recording.wait())
    leak.stop()
    rows = json.loads(report("--format", "json"))["no_call"]
    checks.equal("moments", ["first", "most", "last"], [row["Moment"] for row in rows])
    checks.equal("NVML's figures", [500 << 20, 580 << 20, 540 << 20], [row["By NVML (bytes)"] for row in rows])
    for row in rows:
        checks.equal("the rest", row["By NVML (bytes)"] - row["By Calls (bytes)"], row["Rest (bytes)"])
    held = [row["By Calls (bytes)"] for row in rows]
    if not 4096 <= held[0] < held[1] < held[2]:
        raise Failure(f"what calls held grew by 4 KiB a round, and not so: {held}")
    text = report()
    if "Memory that no call holds" not in text or "NVML knew before" in text:
        raise Failure(f"the table of a process that NVML did not know at first: {text}")


@alone
def test_memleak_plot_is_whole_at_any_moment(case):
    path, torn, seen = case.path("memory.svg"), [], set()
    done = threading.Event()

    def look():
        while not done.is_set():
            try:
                with open(path) as file:
                    text = file.read()
            except FileNotFoundError:
                continue
            seen.add(text)
            try:
                xml.etree.ElementTree.fromstring(text)
            except xml.etree.ElementTree.ParseError as error:
                torn.append(error)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        memleak(case, "leak", "60", "20", options=["--interval", "50ms", "--plot", path])
    finally:
        done.set()
        reader.join()
    checks.equal("torn pictures", [], torn)
    if len(seen) < 3:
        raise Failure(f"only {len(seen)} pictures were drawn")
    checks.equal("files beside it", [], [name for name in os.listdir(case.folder)
                                         if "memory.svg" in name and name != "memory.svg"])


def test_memleak_keeps_a_picture_that_is_there(case):
    path = case.path("memory.svg")
    with open(path, "w") as file:
        file.write("mine")
    process = case.cuscope("memleak", "--plot", path, "--", Places.program("leak"), "1", "1")
    checks.equal("status", 1, process.wait())
    checks.equal("sentence", f"cuscope: {path} exists already: --force overwrites it\n",
                 process.err())
    with open(path) as file:
        checks.equal("the picture", "mine", file.read())


def test_memleak_table_names_places(case):
    process = case.cuscope("memleak", "--interval", "1m", "--", Places.program("leak"), "5", "5")
    checks.equal("status", 0, process.wait())
    for text in (GROW_CACHE, LOAD_WEIGHTS, "it had not freed 6 allocations, 3.02 MiB",
                 "PLACES OF WHAT WAS NOT FREED"):
        checks.equal(f"'{text}' in the page", True, text in process.out())
    checks.equal("borrow in the page", False, "borrow" in process.out())
