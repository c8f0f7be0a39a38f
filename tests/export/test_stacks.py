# SPDX-License-Identifier: MIT
"""Recordings with stacks: profiles of a part of them, and their stacks in every format."""

from case import equal


def heaviest(case, *options):
    """What `cuscope profile` prints of the golden trace with stacks: its title, and (share's time, function)."""
    result = case.cuscope("profile", case.trace("stacks"), *options)
    equal(f"what is said of {options}", (0, ""), (result.returncode, result.stderr))
    lines = result.stdout.splitlines()
    return lines[0].split(": ")[-1], [" ".join(line.split()[2:]) for line in lines if " % " in line[:10]]


def test_stacks_profile_of_a_part(case):
    equal("up to 1 ms", ("2.000 ms on CPUs", ["1.000 ms worker", '1.000 ms Net.forward (ä "1".py)']),
          heaviest(case, "--to", "1ms"))
    equal("from 3.6 ms on", "1.000 ms on CPUs, 3.250 ms blocked", heaviest(case, "--from", "3600us")[0])
    equal("between", "1.000 ms on CPUs", heaviest(case, "--from", "2450us", "--to", "3000us", "--mode", "cpu")[0])
    equal("beyond its end", "no samples", heaviest(case, "--from", "1h")[0])


def test_stacks_profile_of_some_processes(case):
    whole = heaviest(case)
    equal("its process", whole, heaviest(case, "--pid", "4242,5151"))
    equal("another one", "no samples", heaviest(case, "-p", "1")[0])


def test_stacks_profile_lasts_as_long_as_the_part(case):
    for options, said in (((), "5.000 ms"), (("--from", "1ms", "--to", "3ms"), "2.000 ms"), (("--to", "1h"), "5.000 ms"),
                          (("--from", "4ms"), "1.000 ms")):
        lines = case.cuscope("profile", case.trace("stacks"), *options).stdout.splitlines()
        equal(f"duration with {options}", True, said + " at 1000 samples a second" in lines[1])


def test_stacks_profile_options_that_do_not_go_together(case):
    trace = case.trace("stacks")
    for said, options in (("--to is not later than --from", (trace, "--from", "2ms", "--to", "1ms")),
                          ("'soon' is no time since the trace's begin", (trace, "--from", "soon")),
                          ("'x' is no list of process ids", (trace, "--pid", "x")),
                          ("--from is for a trace file, which is none of the arguments", ("--from", "1ms", "--all")),
                          ("--to is for a trace file, which is none of the arguments", ("--to", "1ms", "--all")),
                          ("(there are .folded, .svg, .html, .pb.gz, .speedscope.json)", (trace, "-o", "x.png")),
                          ("of its processes --pid chooses some", (trace, "--all"))):
        result = case.cuscope("profile", *options)
        equal(f"status of {options}", 2, result.returncode)
        equal(f"what is said of {options}: {result.stderr}", True, said in result.stderr)
