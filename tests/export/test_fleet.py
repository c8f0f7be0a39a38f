# SPDX-License-Identifier: MIT
"""The questions of docs/fleet.md, asked DuckDB of the ranks that ranks.c makes up: the page shows their answers."""

import json
import os
import re
import shutil
import subprocess

from case import Failure, equal
from test_parquet import UNKNOWN, answers, ask, read

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "fleet.md")
QUESTION = re.compile(r"^```sql\n(SELECT|WITH)(.*?)^```\n```\n(.*?)^```\n", re.M | re.S)
MACRO = re.compile(r"^```sql\n(CREATE MACRO.*?)^```\n", re.M | re.S)


def make(case, *settings):
    """Traces of two machines."""
    subprocess.run([os.path.join(case.build, "tests", "export", "ranks"), case.folder, *settings], check=True)
    return case.path("node1.cuscope"), case.path("node2.cuscope")


def ranks(case, *host):
    """Traces of two machines; what is exported of them."""
    make(case, *host)
    result = case.cuscope("export", case.path("node1.cuscope"), case.path("node2.cuscope"), "--format", "parquet", "-o", case.path("run1"))
    equal("export", (0, ""), (result.returncode, result.stderr))
    return case.path("run1")


def in_columns(names, rows):
    texts = [names, *([f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts)]
    return "".join("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() + "\n" for row in texts)


def test_fleet_answers_are_those_of_the_page(case):
    ranks(case)
    with open(PAGE) as file:
        page = file.read()
    macro, questions = MACRO.search(page)[1], [match[0] for match in QUESTION.finditer(page)]
    equal("questions", True, len(questions) >= 7)
    sql = [re.match(r"```sql\n(.*?)^```", question, re.M | re.S)[1] for question in questions]
    for question, (names, rows) in zip(questions, answers(case, macro, *sql)[1:]):
        shown = question.rsplit("```\n", 2)[1]
        answer = in_columns(names, rows)
        if case.write:
            page = page.replace(question, question[:-len(shown) - 4] + answer + "```\n")
        elif shown != answer:
            raise Failure(f"the page shows\n{shown}and the answer is\n{answer}")
    if case.write:
        with open(PAGE, "w") as file:
            file.write(page)


def test_fleet_waiting_beside_other_kernels_is_nobodys_fault(case):
    """By the report as by SQL: the same ranks are last as ever, and nobody waits for them."""
    with open(PAGE) as file:
        page = file.read()
    macro, late = MACRO.search(page)[1], re.search(r"### Who is late\?.*?```sql\n(.*?)^```", page, re.M | re.S)[1]
    for setting, waits in (("beside=0", {5: 222.0, 2: 20.5}), ("beside=1", {5: 0.0, 2: 0.0})):
        tree = ranks(case, setting)
        [names, rows] = answers(case, macro, late)[1]
        equal(f"others wait, of {setting}", waits, {row[names.index("rank")]: row[names.index("others_wait_ms")] for row in rows})
        said = case.cuscope("report", case.path("node1.cuscope"), case.path("node2.cuscope"), "ranks").stdout
        equal(f"named, of {setting}", setting == "beside=0", "comes late" in said)
        subprocess.run(["rm", "-r", tree], check=True)


def test_fleet_has_a_folder_for_each_rank(case):
    tree = ranks(case)
    equal("hosts", ["host=node1", "host=node2"], sorted(os.listdir(tree)))
    equal("ranks of the first", [*(f"rank={rank}" for rank in range(4)), "rank=" + UNKNOWN],
          sorted(os.listdir(os.path.join(tree, "host=node1"))))
    equal("ranks of the second", [f"rank={rank}" for rank in range(4, 8)], sorted(os.listdir(os.path.join(tree, "host=node2"))))
    [calls, processes] = ask(case, f"""SELECT rank, count(*) FROM read_parquet('{tree}/*/*/OSRT_API.parquet', hive_partitioning = true)
                                       GROUP BY 1 ORDER BY 1""",
                             f"SELECT name, rank FROM read_parquet('{tree}/*/*/PROCESSES.parquet', hive_partitioning = true) ORDER BY 2")
    equal("collectives", [(rank, 25) for rank in range(8)], calls)
    equal("processes", [*(("python3", rank) for rank in range(8)), ("bash", None)], processes)


def test_fleet_names_of_hosts_lead_nowhere(case):
    for host, folder in (("../../../x", "host=..%2F..%2F..%2Fx"), ("..", "host=.."), ("a/b", "host=a%2Fb"), ("", "host=" + UNKNOWN),
                         ("\x1b[31m\n", "host=%1B%5B31m%0A"), ("%41", "host=%2541"), ("x" * 500, "host=" + "x" * 195)):
        tree = ranks(case, host)
        equal(f"folders of {host!r}", sorted([folder, "host=node2"]), sorted(os.listdir(tree)))
        equal("beside", ["node1.cuscope", "node2.cuscope", "run1"], sorted(os.listdir(case.folder)))
        subprocess.run(["rm", "-r", tree], check=True)


def test_fleet_of_one_rank_is_what_one_says(case):
    subprocess.run([os.path.join(case.build, "tests", "export", "ranks"), case.folder], check=True)
    result = case.cuscope("export", case.path("node1.cuscope"), "--format", "parquet", "-o", case.path("one"), "--pid", "7402")
    equal("export", (0, ""), (result.returncode, result.stderr))
    equal("folders", ["rank=2"], os.listdir(case.path("one/host=node1")))
    result = case.cuscope("export", case.path("node1.cuscope"), "--format", "parquet", "-o", case.path("nine"), "--rank", "9")
    equal("export", (0, ""), (result.returncode, result.stderr))
    equal("folders", ["rank=9"], os.listdir(case.path("nine/host=node1")))
    [[_, rows]] = read(case, "hyparquet", case.path("nine/host=node1/rank=9/PROCESSES.parquet"))
    equal("processes", 5, len(rows))


LATE = "Rank 5 (node2, pid 7405) comes late to 33 % of 24 collectives, by 3.809 ms on average; 7 others wait for it, 60 % of the time"


def says(result, *words, status=0):
    equal("status", status, result.returncode)
    for text in words:
        if text not in result.stdout + result.stderr:
            raise Failure(f"{text!r} is not said: {result.stdout}{result.stderr}")


def test_fleet_of_machines_is_read_together(case):
    """Whatever their clocks say: an hour ahead, or behind."""
    for ahead in ("0", "3600000", "-700", "0.05"):
        files = make(case, f"ahead={ahead}")
        says(case.cuscope("report", *files, "ranks"), LATE, "asleep in data.py:9 fetch",
             "Clocks of 2 machines are compared by 24 collectives whose kernels end together: 95 % are within 1 ns")
        says(case.cuscope("why", *files), LATE, "data.py:9 fetch of python3 (node2, pid 7405, rank 5)")
    answer = json.loads(case.cuscope("why", *files, "--format", "json").stdout)
    equal("machines", [("node1", 0), ("node2", 24)], [(one["host"], one["collectives"]) for one in answer["machines"]])
    equal("who is late", ("5", "node2"), (answer["late"]["rank"], answer["late"]["host"]))


def test_fleet_lateness_below_the_error_of_clocks_is_inconclusive(case):
    files = make(case, "jitter=4000")
    says(case.cuscope("report", *files, "ranks"), "95 % are within 2.000 ms", "inconclusive, and not counted as late")


def test_fleet_without_a_common_clock_is_told_apart(case):
    for setting, words in (("untimed=1", "that needs GPU times of common collectives"),
                           ("job=3", "it is of another run: none of its communicators is one there")):
        files = make(case, setting)
        says(case.cuscope("report", *files, "ranks"), "node2.cuscope does not go with", words, status=1)
        says(case.cuscope("why", *files), "node2.cuscope is told apart from", words)


def test_fleet_recordings_that_are_given_twice_are_read_once(case):
    first, second = make(case)
    copy = case.path("copy.cuscope")
    shutil.copy(second, copy)
    once = case.cuscope("report", first, second, "ranks").stdout
    for again in (first, second, copy):
        twice = case.cuscope("report", first, second, again, "ranks")
        says(twice, "is read once: it is a recording that another file has")
        equal("report", once, twice.stdout)
        says(case.cuscope("why", first, second, again), LATE, "is told once")


def test_fleet_file_that_says_it_began_when_another_did_hides_it_from_nobody(case):
    first, second = make(case, "jitter=100")
    other = case.path("other.cuscope")
    os.rename(second, other)
    first, second = make(case)
    for files in ((first, second, other), (first, other, second)):
        words = "in which another one did, which it is no copy of"
        says(case.cuscope("report", *files, "ranks"), f"{os.path.basename(files[2])} does not go with", words, status=1)
        says(case.cuscope("why", *files), LATE, f"{os.path.basename(files[2])} is told apart from", words)


def test_fleet_with_a_file_that_is_cut_short(case):
    first, second = make(case)
    with open(second, "rb+") as file:
        file.truncate(2000)
    says(case.cuscope("why", first, second), "node2.cuscope has no end", "Rank 5 (node2, pid 7405) comes late", status=1)


def test_fleet_rank_of_a_file_is_chosen(case):
    """By what its processes said; a rank that none is of is no empty answer."""
    first, second = make(case)
    for command in (("report", first, "processes"), ("export", first, "--format", "csv"), ("why", first), ("timeline", first),
                    ("diff", first, first)):
        one = case.cuscope(*command, "--rank", "2")
        says(one)
        if "7402" not in one.stdout and command[0] in ("report", "export", "why") or "7401" in one.stdout:
            raise Failure(f"{command}: {one.stdout}")
        if command[0] != "export": # where it is what a rank is called, too
            says(case.cuscope(*command, "--rank", "7"), "no process that was recorded is of rank 7: there are 0, 1, 2, 3", status=1)
    says(case.cuscope("report", first, "--rank", "2", "--pid", "7401"), "no process of --pid is of rank 2", status=1)
    says(case.cuscope("why", first, second, "--rank", "2"), "--rank is of one file", status=2)
    says(case.cuscope("why", first, "--job", "2"), "--job is for watching what runs", status=2)
