# SPDX-License-Identifier: MIT
"""Perfetto's format: the golden outputs as protoc reads them, the format's rules, and the rules themselves."""

import os
import re
import subprocess

from case import GOLDEN, Failure, equal, hide_version

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema")


def script(name, *arguments):
    result = subprocess.run([os.path.join(SCHEMA, name), *arguments], capture_output=True, text=True)
    if result.returncode or result.stdout:
        raise Failure(f"{name} says: {(result.stdout + result.stderr)[:600]}")


def decoded(path):
    with open(path, "rb") as file:
        return subprocess.run(["protoc", f"--proto_path={SCHEMA}", "--decode=perfetto.protos.Trace",
                               "perfetto_subset.proto"], stdin=file, capture_output=True, text=True,
                              check=True).stdout


def packets(text):
    """One packet a line."""
    return [" ".join(packet.split()) for packet in re.split(r"^(?=packet )", text, flags=re.M) if packet]


def counters_of(path):
    """{"device": [(time, value)...]}, all processes together."""
    names, values = {}, {}
    for packet in packets(decoded(path)):
        described = re.search(r'uuid: (\d+) name: "live memory: (.*?)"', packet)
        if described:
            names[described[1]] = described[2]
        if "TYPE_COUNTER" in packet:
            track = re.search(r"track_uuid: (\d+)", packet)[1]
            time, value = (int(re.search(rf" {key}: (-?\d+)", packet)[1]) for key in ("timestamp", "counter_value"))
            if track in names:
                values.setdefault(names[track], []).append((time, value))
    return values


def test_perfetto_golden_outputs(case):
    for trace in ("plain", "gpu", "lost", "ranges", "stacks"):
        path = case.export(trace, trace + ".pftrace")
        script("perfetto.py", path)
        case.golden(trace + ".pftrace.txt", hide_version(case, "\n".join(packets(decoded(path))) + "\n"))


def test_perfetto_edges_obey_the_rules(case):
    for trace in ("edges", "hard stacks"):
        script("perfetto.py", case.export(trace, "edges.pftrace", "--force"))


def test_perfetto_of_all_golden_traces_obey_the_rules(case):
    traces = sorted(name[:-len(".cuscope")] for name in os.listdir(GOLDEN) if name.endswith(".cuscope"))
    for trace in traces:
        path = case.path(trace + ".all.pftrace")
        case.cuscope("export", case.trace(trace), "-o", path)  # of some it says what is missing
        script("perfetto.py", path)
    values = re.findall(r"double_counter_value: ([\d.e+-]+)", decoded(case.path("metrics.all.pftrace")))
    if len({float(value) for value in values}) < 10:
        raise Failure(f"metrics have the values {values[:20]}")


def test_perfetto_rows_hold_what_overlaps(case):
    lines = packets(decoded(case.export("edges", "edges.pftrace")))
    # two rows for the kernels of the first process and of the last one, one for each of the others
    equal("rows of stream 7", 6, sum('name: "stream 7"' in line for line in lines))
    equal("rows of waits for it", 2, sum('name: "waits for stream 7"' in line for line in lines))


def test_perfetto_an_arrow_leads_to_a_graphs_first_node_only(case):
    for trace in ("gpu", "edges"):
        lines = packets(decoded(case.export(trace, trace + ".pftrace")))
        ends = [word for line in lines for word in re.findall(r"terminating_flow_ids: (\d+)", line)]
        if not ends:
            raise Failure(f"{trace}: no flow ends")
        equal(f"flows of {trace} that end once", sorted(set(ends)), sorted(ends))


def test_perfetto_says_how_long_the_machine_had_slept(case):
    clocks = {}
    for trace in ("edges", "gpu"):  # the second does not know it
        snapshot = packets(decoded(case.export(trace, trace + ".pftrace")))[0]
        clocks[trace] = {int(clock): int(time) for clock, time in
                         re.findall(r"clock_id: (\d+) timestamp: (\d+)", snapshot)}
    equal("seconds", [3600, 0], [(times[6] - times[3]) / 1e9 for times in clocks.values()])


def test_perfetto_a_system_has_a_machine(case):
    described = {trace: next(packet for packet in packets(decoded(case.export(trace, trace + ".pftrace")))
                             if "system_info" in packet) for trace in ("edges", "lost")}
    equal("of a file that says it", True, 'machine: "x86_64"' in described["edges"])
    equal("of one that does not", False, "utsname" in described["lost"])


def test_perfetto_rules_see_what_is_broken(case):
    script("perfetto_broken.py", case.export("edges", "edges.pftrace"), case.export("stacks", "stacks.pftrace"))


def test_perfetto_endings_and_name_are_one_format(case):
    with open(case.export("gpu", "a.pftrace"), "rb") as file:
        expected = file.read()
    for path in (case.export("gpu", "b.perfetto-trace"), case.export("gpu", "c", "--format", "perfetto")):
        with open(path, "rb") as file:
            equal("bytes", expected, file.read())


def test_perfetto_parts_obey_the_rules(case):
    for part in (("--from", "5ms", "--to", "5.6ms"), ("--from", "12.53ms"), ("--min-duration", "50us"),
                 ("--pid", "5151"), ("--max-events", "20"), ("--failed",)):
        script("perfetto.py", "--open-flows", case.export("gpu", "part.pftrace", "--force", *part))


def test_perfetto_memory_is_that_of_all_calls_whatever_is_shown(case):
    counters = [counters_of(case.export("plain", f"{len(options)}.pftrace", *options))
                for options in ((), ("--failed",))]
    equal("values of counters", counters[0], counters[1])
    equal("kinds of memory", {"device", "host", "managed", "async", "array", "vmm", "vmm-va"}, set(counters[0]))


def test_perfetto_losses_are_seen(case):
    text = decoded(case.export("lost", "lost.pftrace"))
    for said in ('name: "lost"', 'string_value: "ring full'):
        if said not in text:
            raise Failure(f"{said} is not there")


def test_perfetto_has_what_no_number_tells(case):
    text = decoded(case.export("ranges", "ranges.pftrace"))
    for said in ('name: "missed"', 'string_value: "no_gpu_times"', 'string_value: "another profiler has CUPTI'):
        if said not in text:
            raise Failure(f"{said} is not there")
