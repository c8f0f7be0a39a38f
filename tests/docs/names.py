#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How tests are called, in C as in Python: test_, then in words what holds: test_a_full_ring_is_counted."""

import glob
import os
import re

LIST = re.compile(r"struct CMUnitTest \w+\[\] = \{(.*?)\n\t?\};", re.S)
DEFINED = re.compile(r"#define(?:.*\\\n)*.*\n")


def unlike(root):
    """A sentence for each test of cmocka that is called otherwise. A macro may put test_ before the name."""
    for path in sorted(glob.glob(os.path.join(root, "tests", "**", "*.c"), recursive=True)):
        with open(path, encoding="utf-8") as source:
            text = source.read()
        for listed in LIST.findall(text):
            for name in re.findall(r"\b\w+\(\s*([a-z_]\w*)", DEFINED.sub("", listed)):
                if not name.startswith("test_") and f"void test_{name}(" not in text:
                    yield f"{os.path.relpath(path, root)}: {name} does not begin with test_"
