# SPDX-License-Identifier: MIT
"""memleak: memory that is live, by the function that allocated it."""

import json
import os
import signal
import threading
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
                           Places.program(program[0]), *program[1:])
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
    checks.equal("stack", [GROW_CACHE, "main"], [f.get("function") for f in place["stack"]][:2])
    checks.equal("whole", True, place["stack_whole"])


def test_memleak_says_where_a_stack_is_cut_short(case):
    pages = memleak(case, "memory", options=["--interval", "1m"])
    for place in pages[-1]["places"]:
        checks.equal("whole, or not and why", not place["stack_whole"], "stack_ends_in" in place)


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
