# SPDX-License-Identifier: MIT
"""Tables of calls, read as Python reads them."""

import csv
import gzip

from case import Failure, equal


def rows_of(path, opener=open):
    with opener(path, "rt", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def test_csv_is_what_it_was(case):
    with open(case.export("gpu", "gpu.csv")) as file:
        case.golden("gpu.csv", file.read())


def test_csv_has_a_row_for_each_call_and_activity(case):
    rows = rows_of(case.export("gpu", "gpu.csv"))
    equal("rows of the GPU", 14, sum(row["layer"] == "gpu" for row in rows))
    equal("calls", 102, sum(row["layer"] != "gpu" for row in rows))
    if any(None in row or None in row.values() for row in rows):
        raise Failure("a row has more or fewer fields than the header")


def test_csv_sizes_are_numbers(case):
    """A column each: "196 1 1" is a date to DuckDB."""
    rows = rows_of(case.export("gpu", "gpu.csv"))
    columns = [f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"]
    for row in rows:
        kernel = row["function"] == "kernel" or row["kernel"]
        equal(f"sizes of {row['function']}", [bool(kernel)] * 6, [row[column].isdigit() for column in columns])


def test_csv_names_with_commas_stay_in_one_field(case):
    rows = rows_of(case.export("plain", "plain.csv"))
    kernels = {row["kernel"] for row in rows if row["class"] == "launch"}
    equal("kernels", {"", "vectorAdd(float const*, float const*, float*, int)",
                      "void cutlass::gemm<cutlass::arch::Sm80, 128, 64>(cutlass::Params)",
                      "void softmax<__half, 4>(__half*, int)", "train+0x1234"}, kernels)


def test_csv_joins_activities_to_calls(case):
    rows = rows_of(case.export("gpu", "gpu.csv"))
    calls = {(row["pid"], row["correlation"]): row for row in rows if row["layer"] != "gpu"}
    for row in rows:
        if row["layer"] == "gpu" and row["function"] == "kernel" and row["pid"] == "4242":
            equal("call", "cudaLaunchKernel", calls[row["pid"], row["correlation"]]["function"])


def test_csv_calls_have_the_numbers_of_their_stacks(case):
    rows = rows_of(case.export("stacks", "stacks.csv"))
    equal("stacks of launches", ["2", "4", ""], [row["stack"] for row in rows if row["function"] == "cudaLaunchKernel"])
    equal("stacks of kernels", {""}, {row["stack"] for row in rows if row["layer"] == "gpu"})


def test_csv_compressed(case):
    plain = rows_of(case.export("plain", "plain.csv"))
    equal("rows", plain, rows_of(case.export("plain", "plain.csv.gz"), gzip.open))


def test_csv_on_standard_output(case):
    result = case.cuscope("export", case.trace("plain"), "--format", "csv")
    with open(case.export("plain", "plain.csv")) as file:
        equal("text", file.read(), result.stdout)
