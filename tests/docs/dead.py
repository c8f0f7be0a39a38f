#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions that no program uses, by what the objects of a build define and refer to. One that a test looks in by has "tests" in
what its header says of it. Static functions are the compiler's to tell."""

import glob
import os
import re
import subprocess
import tempfile

# What is called by its name and by no object: by the loader, CUPTI, NVTX, a borrowed thread; and a place for debuggers.
ENTRIES = {"main", "InitializeInjection", "InitializeInjectionNvtx2", "cuscope_agent_enter", "cuscope_agent_walk", "probe_thunks_end"}


def symbols(objects):
    """What each object defines of functions, and what each refers to that others define."""
    defined, wanted = {}, set()
    done = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        where, kind, name = re.match(r"(.*?):\s*(?:[0-9a-f]+)? *(\w) (\S+)", line).groups()
        if kind == "T":
            defined[name] = where
        elif kind == "U":
            wanted.add(name)
    return defined, wanted


def code(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def looks_in(name, headers):
    """Whether the paragraph of a header that declares it speaks of tests."""
    return any(re.search(rf"\b{name}\(", paragraph) and re.search(r"\btests?\b", paragraph)
               for text in headers for paragraph in text.split("\n\n"))


def dead(root, build):
    """A sentence for each function of src that nothing calls, or only its own file."""
    sources = {os.path.relpath(path, root): open(path, encoding="utf-8").read()
               for path in glob.glob(os.path.join(root, "src", "**", "*.[chS]"), recursive=True)}
    tests = set(re.findall(r"\w+", " ".join(open(path, encoding="utf-8").read() for folder in ("tests", "bench")
                                            for path in glob.glob(os.path.join(root, folder, "**", "*.[ch]"), recursive=True))))
    objects = {}
    for place in ("", "agent", "nvml"):
        for path in glob.glob(os.path.join(build, place, "src", "**", "*.o"), recursive=True):
            source = os.path.relpath(path, os.path.join(build, place))[:-1]
            for ending in "cS":
                if source + ending in sources:  # not what was left by a file that is gone
                    objects[path] = source + ending
    defined, wanted = symbols(list(objects))
    headers = [text for path, text in sources.items() if path.endswith(".h")]
    for name in sorted(set(defined) - wanted - ENTRIES):
        path = objects[defined[name]]
        is_used = len(re.findall(rf"\b{name}\b", code(sources[path]))) > 1
        if is_used and name not in tests:
            yield f"{path}: {name} is called in this file only: static"
        elif not is_used and not (name in tests and looks_in(name, headers)):
            yield f"{path}: {name} is called by no program; if a test looks in by it, its header says so"
    if len(defined) < 2:
        yield f"only {len(defined)} functions were found in {build}"


PLANTED = {
    "src/a.h": "int used(void);\nint looked(void); /* for tests */\n\nint forgotten(void);\nint untold(void);\nint alone(void);\n",
    "src/a.c": '#include "a.h"\nint used(void) { return alone(); }\nint looked(void) { return 1; }\n'
               "int forgotten(void) { return 2; } /* forgotten() */\nint untold(void) { return 3; }\nint alone(void) { return 4; }\n",
    "src/b.c": '#include "a.h"\nint main(void) { return used(); }\n',
    "tests/unit/test_a.c": '#include "../../src/a.h"\nint test(void) { return looked() + untold(); }\n',
}


def blind():
    """What of a planted tree is told, and should not be, or the other way round."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in PLANTED.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        os.makedirs(os.path.join(root, "build", "src"))
        for name in ("a", "b"):
            subprocess.run(["gcc", "-O2", "-c", f"src/{name}.c", "-o", f"build/src/{name}.o"], cwd=root, check=True)
        told = {sentence.split()[1] for sentence in dead(root, os.path.join(root, "build"))}
    for name in sorted(told ^ {"forgotten", "untold", "alone"}):
        yield f"{name}, which was planted, is {'told' if name in told else 'not told'}"
