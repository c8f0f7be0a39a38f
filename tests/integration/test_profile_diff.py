# SPDX-License-Identifier: MIT
"""`cuscope profile --diff`: two profiles as folded stacks."""

import checks


def folded(case, name, text):
    path = case.path(name)
    with open(path, "w") as file:
        file.write(text)
    return path


def compare(case, *arguments, status=0):
    process = case.cuscope("profile", "--diff", *arguments)
    checks.equal("status", status, process.wait())
    return process


def both(case):
    return (folded(case, "before.folded", "main;step;load 300\nmain;step;work 700\n"),
            folded(case, "after.folded", "main;step;load 600\nmain;step;work 400\n"))


def test_profile_diff_tells_which_function_changed(case):
    said = compare(case, *both(case)).out()
    checks.contains("what grew", r"30.0 %\s+60.0 %\s+\+30.0\s+600.00 us\s+load", said)
    checks.contains("what shrank", r"70.0 %\s+40.0 %\s+-30.0\s+400.00 us\s+work", said)


def test_profile_diff_as_folded_stacks_has_both_times(case):
    path = case.path("change.folded")
    compare(case, *both(case), "-o", path)
    with open(path) as file:
        checks.equal("lines", ["main;step;load 300 600", "main;step;work 700 400"], sorted(file.read().splitlines()))


def test_profile_diff_refuses_what_it_cannot_compare(case):
    before, after = both(case)
    for arguments, status, words in (
            ((before,), 2, "compared with what"),
            ((before, after, "-o", case.path("x.html")), 2, ".svg and .folded"),
            ((before, after, "-p", "1"), 2, "no process"),
            *(((before, after, option), 2, "option of taking a profile") for option in (
                "--mode=gpu", "--per-process", "--per-thread", "--off-cpu", "--duration=1s", "--ring-size=1M", "--without=session")),
            ((before, case.path("none")), 1, "cannot open"),
            ((before, folded(case, "bad.folded", "no number\n")), 1, "does not end with a number"),
            ((before, "/tmp"), 1, "folder")):
        checks.contains("what it said", words, compare(case, *arguments, status=status).err())
