#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every script and every C file says in its first lines what it is for; a .c may leave that to its own header."""

import glob
import os
import re

FOLDERS = ("src", "tests", "bench", "examples", "packaging")
COMMENT = re.compile(r"\s*(/\*|//)")
SCRIPT = re.compile(r'(#(?!!)|"""|@)')


def lines_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return [line for line in file.read(4000).split("\n") if "SPDX" not in line and not line.startswith("#!")]


def says_in_c(path):
    if COMMENT.match(lines_of(path)[0]):
        return True
    stem = os.path.splitext(os.path.basename(path))[0]
    header = os.path.join(os.path.dirname(path), stem + ".h")
    return not path.endswith(".h") and os.path.exists(header) and bool(COMMENT.match(lines_of(header)[0]))


def is_script(path):
    if path.endswith((".py", ".sh", ".mk")):
        return True
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def silent(root):
    """A sentence for each file that does not say it."""
    for folder in FOLDERS:
        for path in sorted(glob.glob(os.path.join(root, folder, "**", "*"), recursive=True)):
            if not os.path.isfile(path):
                continue
            says = says_in_c(path) if path.endswith((".c", ".h", ".cc", ".cu")) else not is_script(path) or SCRIPT.match(lines_of(path)[0])
            if not says:
                yield f"{os.path.relpath(path, root)} does not say what it is for"
