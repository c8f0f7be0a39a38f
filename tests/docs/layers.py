#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who includes whom: a folder of src includes those above it in design.md's list only, and of src/bpf
four folders the headers that both sides share."""

import glob
import os
import re

READERS = ("probe", "unwind", "agent", "capture")
SHARED = ("bpf/wire", "bpf/unwind_search.h", "bpf/fold_transfers.h")


def broken(root):
    """A sentence for each include that goes down the list."""
    with open(os.path.join(root, "docs", "design.md"), encoding="utf-8") as page:
        order = re.findall(r"^src/(\w+)/ ", page.read(), re.M)
    for missing in set(os.listdir(os.path.join(root, "src"))) - set(order):
        yield f"design.md does not list src/{missing}"
    for path in sorted(glob.glob(os.path.join(root, "src", "**", "*.[ch]"), recursive=True)):
        name = os.path.relpath(path, os.path.join(root, "src"))
        folder = name.split("/")[0]
        with open(path, encoding="utf-8") as source:
            text = source.read()
        if "#include <uthash.h>" in text and name != "base/hash.h":
            yield f"src/{name} includes uthash.h: base/hash.h has it with a function that has a secret"
        included = re.findall(r'^#include "((\w+)/[^"]+)"', text, re.M)
        for header, other in included:
            if other == "bpf" != folder and (folder not in READERS or not header.startswith(SHARED)):
                yield f"src/{name} includes {header}: of src/bpf wire*.h, unwind_search.h and fold_transfers.h, in {', '.join(READERS)}"
            elif other != "bpf" and order.index(other) > order.index(folder):
                yield f"src/{name} includes {header}: src/{other} is below src/{folder}"
