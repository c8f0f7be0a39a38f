# SPDX-License-Identifier: MIT
"""The html page of two recordings: of each it has what a page of one has, and between them what `diff` says."""

import json
import os
import re

from case import Failure, equal
from page_file import Page, Pair
from test_bounds import bomb
from test_fleet import make
from test_incomplete import cut, damaged


def pair(case, a, b, *options, command="export", status=0):
    path = case.path("both.html")
    result = case.cuscope(command, a, b, "-o", path, "--force", *options)
    equal(f"status ({result.stderr})", status, result.returncode)
    found = Pair(path)
    found.check()
    return found


def traces(case, *names):
    return [case.trace(name) for name in names]


def test_pair_has_what_two_pages_have(case):
    """Bytes of blocks, rows of tables, all of the index but its title."""
    for names in (("host_line", "gpu"), ("plain", "metrics"), ("host_empty", "lost")):
        for name, found in zip(names, pair(case, *traces(case, *names)).sides):
            alone = Page(case.export(name, "alone.html", "--force"))
            equal("blocks of " + name, alone.packed, found.packed)
            equal("title", case.trace(name), found.index.pop("title"))
            equal("pair", True, found.index.pop("pair"))
            alone.index.pop("title")
            equal("index of " + name, alone.index, found.index)


def test_pair_has_the_tables_of_diff(case):
    both = traces(case, "host_line", "host_waits")
    found = pair(case, *both)
    said = json.loads(case.cuscope("diff", *both, "--format", "json").stdout)
    equal("tables", list(said), list(found.tables))
    for key, rows in said.items():
        equal(key, [list(row.values()) for row in rows], found.tables[key]["rows"])
        equal(f"columns of {key}", list(rows[0]), [column["name"] for column in found.tables[key]["columns"]])
    equal("command", "cuscope diff " + " ".join(both), found.differs["command"])


def test_pair_knows_when_the_first_steps_begin(case):
    """At a launch; nothing is said where one of the two has no steps."""
    found = pair(case, *traces(case, "host_line", "host_waits"))
    for page, begin in zip(found.sides, found.differs["first_steps_ns"]):
        if begin not in [row["begin"] for _, row in page.rows("call")]:
            raise Failure(f"no call begins at {begin}")
    equal("without steps", None, pair(case, *traces(case, "host_line", "gpu")).differs.get("first_steps_ns"))


def test_pair_of_a_file_and_itself_differs_in_nothing(case):
    found = pair(case, *traces(case, "host_line", "host_line"))
    for key, table in found.tables.items():
        changes = [i for i, column in enumerate(table["columns"]) if "Change" in column["name"]]
        for row in table["rows"]:
            if any(row[i] for i in changes):
                raise Failure(f"{key}: {row}")
    equal("words", ["a step takes as long (10.000 ms to 10.000 ms), of the same"], found.tables["verdict"]["rows"][0])


def test_pair_of_hard_names_holds_none_of_them_as_markup(case):
    for names in (("edges", "events"), ("hard stacks", "edges")):
        found = pair(case, *traces(case, *names))
        if re.search(r"<(img|b|i|svg|a)\b", found.sides[0].text):
            raise Failure(f"markup of {names} in the page")


def test_pair_of_parts_and_of_names(case):
    both = traces(case, "plain", "gpu")
    found = pair(case, *both, "cuda_gpu_mem_size_sum", "--from", "4ms", "--to", "7ms", "--top", "3", command="diff")
    equal("tables", ["verdict", "why", "cuda_gpu_mem_size_sum"], list(found.tables))
    few, many = (sum(1 for page in its.sides for _ in page.rows("call")) for its in (found, pair(case, *both)))
    if not 0 < few < many:
        raise Failure(f"{few} calls of {many}")


def test_pair_of_one_rank_of_each(case):
    path, _ = make(case)
    for command in ("export", "diff"):
        for page in pair(case, path, path, "--rank", "1", command=command).sides:
            equal(f"ranks by {command}", {"1"}, {page.index["processes"][track["process"]]["rank"] for track, _ in page.rows("call")})


def test_pair_is_the_same_by_either_command(case):
    both = traces(case, "gpu", "ranks")
    equal("pages", pair(case, *both).sides[0].text, pair(case, *both, command="diff").sides[0].text)


def test_pair_of_what_is_cut_or_damaged_is_whole_and_says_so(case):
    for make in (cut, damaged):
        bad = make(case)
        for both in ((bad, case.trace("plain")), (case.trace("plain"), bad), (bad, bad)):
            found = pair(case, *both, status=1)
            for path, page in zip(both, found.sides):
                equal(f"missed of {path}", path == bad, bool(page.index["missed"]))


def test_pair_that_is_too_large_says_so(case):
    """The first leaves room for the second."""
    path = bomb(case, "launches")
    found = pair(case, path, path, "--max-size", "200K", status=1)
    for page in found.sides:
        equal("calls", True, 0 < sum(track["rows"] for track in page.index["tracks"]) < 1000000)
        equal("missed", True, bool(page.index["missed"]))


def test_pair_is_refused(case):
    plain, out = case.trace("plain"), case.path("none.html")
    for words, status, sentence in ((["export", plain, plain, plain, "-o", out], 2, "is a third one"),
                                    (["export", plain, case.path("nothing"), "-o", out], 1, "No such file"),
                                    (["export", case.path("nothing"), plain, "-o", out], 1, "No such file"),
                                    (["export", plain, __file__, "-o", out], 1, "no trace"),
                                    (["diff", plain, plain, "-o", case.path("none.csv")], 2, "ending .html"),
                                    (["diff", plain, plain, "cuda_api_summ", "-o", out], 2, "did you mean"),
                                    (["diff", plain, plain, "--format", "csv", "-o", out], 2, "--format")):
        result = case.cuscope(*words)
        equal(f"status of {words}", status, result.returncode)
        if sentence not in result.stderr:
            raise Failure(f"{words}: {result.stderr}")
        equal("left behind", False, os.path.exists(out))
    own = case.path("own.html")
    os.link(plain, own) if os.stat(plain).st_dev == os.stat(case.folder).st_dev else os.symlink(plain, own)
    equal("itself", 1, case.cuscope("export", case.trace("gpu"), plain, "-o", own, "--force").returncode)
    equal("the trace", True, os.path.getsize(plain) > 0)
