#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is given to users beside the program: completions, manual pages, packages.

    tests/shipped/check.py BUILD [NAME...]      a NAME is a glob on the names of tests

Each test is a function test_* of a module test_*.py beside this file and takes the build folder. Ends with
"N passed, N failed[, N skipped]".
"""

import fnmatch
import glob
import importlib
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True


class Skipped(Exception):
    """Why a test cannot run here."""


def tests():
    for path in sorted(glob.glob(os.path.join(HERE, "test_*.py"))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        for name, value in list(vars(module).items()):
            if name.startswith("test_") and callable(value):
                yield name, value


def run(test, build):
    """"passed", "failed" or "skipped", after a line that says why."""
    try:
        test(build)
        return "passed"
    except Skipped as why:
        print(f"SKIP: {test.__name__}: {why}", flush=True)
        return "skipped"
    except Exception as error:
        print(f"FAIL: {test.__name__}: {error}", flush=True)
        if not isinstance(error, AssertionError):
            traceback.print_exc(file=sys.stdout)
        return "failed"


def main():
    build, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["*"]
    ends = [run(test, build) for name, test in tests()
            if any(fnmatch.fnmatch(name.removeprefix("test_"), one) for one in wanted)]
    skipped = f", {ends.count('skipped')} skipped" if "skipped" in ends else ""
    print(f"{ends.count('passed')} passed, {ends.count('failed')} failed{skipped}")
    return 1 if "failed" in ends or not ends else 0


if __name__ == "__main__":
    sys.modules["check"] = sys.modules["__main__"]  # so that there is one Skipped
    sys.exit(main())
