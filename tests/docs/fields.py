# SPDX-License-Identifier: MIT
"""The fields of events, as trace/fields.h lists them: docs/trace-format.md has each value, some view reads each field, run_record.c
has each field of a run, and docs/csv.md has csv's columns."""

import glob
import os
import re

SECTIONS = {"CALL": "call", "ACTIVITY": "activity", "RANGE": "range", "SAMPLE": "sample", "METRICS": "metrics of a GPU", "STALL": "stall"}
HEADERS = ("src/cuda/api.h", "src/trace/event.h", "src/trace/stack.h", "src/gpus/gpu_metrics.h")
ARRAYS = ("U32", "U64", "MEASURE")
OTHER_BITS = {29, 30, 31}  # correlation, end, text: told in another way than values


def source(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def size_of(name, headers):
    """Of an array: a number, a macro or the last name of an enum."""
    if name.isdigit():
        return int(name)
    macro = re.search(rf"#define {name}\s+(\d+)", headers)
    if macro:
        return int(macro.group(1))
    names = re.search(rf"enum \w+ {{([^}}]*)\b{name}\b\s*}}", headers).group(1)
    return len(re.findall(r"^\t\w+,", names, re.M))


def fields(root):
    """{"CALL": [(id, member, values)]}"""
    text, headers = source(root, "src/trace/fields.h"), "".join(source(root, path) for path in HEADERS)
    found = {}
    for kind, rows in re.findall(r"#define (\w+)_FIELDS\(F\)((?:.*\\\n)*.*)", text):
        for name, member, form in re.findall(r"\bF\(\w+, (\w+), ([\w.]+), (\w+)", rows):
            array = form in ARRAYS and re.search(rf"\b{member.split('.')[-1]}\[(\w+)\]", headers)
            found.setdefault(kind, []).append((name, member, size_of(array.group(1), headers) if array else 1))
    return found


def bits_of_page(page, section):
    """Those in the first cells of a section's table."""
    article = "" if section.startswith("metrics") else "an " if section == "activity" else "a "
    table = page.split(f"### Values of {article}{section}\n")[1].split("\n#")[0]
    bits = []
    for cell in re.findall(r"^\| ([\d to,]+) \|", table, re.M):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", cell):
            bits += range(int(first), int(last or first) + 1)
    return bits


def columns_of_csv(root):
    return re.findall(r"\bC\(\w+, (\w+)\)", source(root, "src/output/csv.c"))


def broken(root):
    """A sentence for each field that lacks something."""
    written = "".join(source(root, f"src/trace/{name}.c") for name in ("run_record", "run_identity"))
    tags = re.search(r"enum run_field \{(.*?)\n\}", source(root, "src/trace/format.h"), re.S).group(1)
    for tag in re.findall(r"^\t(RUN_\w+)", tags, re.M):
        if not re.search(rf"\b{tag}\b", written):
            yield f"src/trace/format.h: {tag} is in no row of run_record.c: files have it, and it is neither written nor read"
    if ",".join(columns_of_csv(root)) + "\n" not in source(root, "docs/csv.md"):
        yield "docs/csv.md: its header is not that of src/output/csv.c"
    page = source(root, "docs/trace-format.md")
    views = "".join(source(root, path) for path in glob.glob(os.path.join(root, "src", "*", "**", "*.[ch]"), recursive=True)
                    if os.path.relpath(path, root).split(os.sep)[1] in ("analysis", "account", "output", "report"))
    for kind, rows in fields(root).items():
        told = sorted(bit for bit in bits_of_page(page, SECTIONS[kind]) if bit not in OTHER_BITS)
        count = sum(values for _, _, values in rows)
        if told != list(range(count)):
            yield f"docs/trace-format.md: the values of {SECTIONS[kind]} are bits 0 to {count - 1}; it has {told}"
        for name, member, _ in rows:
            if not re.search(rf"\b{name}\b|(?:->|\.){re.escape(member)}\b", views):
                yield f"src/trace/fields.h: {name} ({member}) is in files, and no view of src reads it"
