# SPDX-License-Identifier: MIT
"""A terminal of 40 columns: no line runs over, and none is broken within a word."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

from harness import Failure, Places

COLUMNS = 40
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")


def shown(case, *command, columns=COLUMNS):
    """What a command writes to a terminal of that width, without colours and what moves the cursor."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    process = subprocess.Popen([*command], stdin=subprocess.DEVNULL, stdout=end, stderr=subprocess.DEVNULL,
                               env=dict(case.environment(), TERM="xterm", LC_ALL="C.UTF-8"))
    os.close(end)
    pieces = []
    try:
        while piece := os.read(terminal, 65536):
            pieces.append(piece)
    except OSError:  # the other end is closed
        pass
    process.wait(timeout=60)
    os.close(terminal)
    text = b"".join(pieces).decode(errors="replace").replace("\r\n", "\n")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def check_lines(what, text, least=1, columns=COLUMNS):
    lines = text.split("\n")
    if len(lines) < least:
        raise Failure(f"{what}: {len(lines)} lines only: {text[-300:]!r}")
    for line in lines:
        # a word that is wider than the terminal stays whole, alone in its line
        if len(line) > columns and len(line.split()) > 1:
            raise Failure(f"{what}: {len(line)} columns: {line!r}")


def reports():
    text = subprocess.run([Places.cuscope(), "report", "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z][a-z_]+)  ", text[text.index("Reports:"):], re.M)


def test_narrow_reports(case):
    for name in reports():
        for trace in ("gpu", "lost", "ranges"):
            text = shown(case, Places.cuscope(), "report", os.path.join(GOLDEN, trace + ".cuscope"), name, "--nested")
            check_lines(f"report {name} of {trace}", text)


def test_narrow_commands_on_files(case):
    file, other = os.path.join(GOLDEN, "gpu.cuscope"), os.path.join(GOLDEN, "plain.cuscope")
    for command in (("info", file), ("timeline", file), ("diff", other, file), ("export", file, "--format", "table")):
        check_lines(command[0], shown(case, Places.cuscope(), *command), 10)


def test_narrow_doctor(case):
    check_lines("doctor", shown(case, Places.cuscope(), "doctor", columns=80), 10, 80)


def test_narrow_probes(case):
    """Their table is for whoever puts its lines through grep: wide where it goes to a pipe."""
    library = Places.simcuda("push/libcuda.so.1")
    for options in ((), ("--divert",)):
        check_lines("probes", shown(case, Places.cuscope(), "probes", *options, library, "cuStream*", columns=80), 10, 80)
    text = subprocess.run([Places.cuscope(), "probes", library, "cuStream*"], capture_output=True, text=True, check=True,
                          env={name: value for name, value in case.environment().items() if name != "COLUMNS"}).stdout
    if not all(" push " in line for line in text.split("\n") if "cuStreamCreate " in line):
        raise Failure(f"a function is in several lines: {text[:300]!r}")


def test_narrow_help(case):
    """What goes on in a next line stands below what it goes on with."""
    text = subprocess.run([Places.cuscope(), "report", "--help"], capture_output=True, text=True, check=True).stdout
    listed = text[text.index("Reports:"):text.index("\n(*)")].split("\n")[1:]
    wrong = [line for line in listed if len(line) > 80 or not re.match(r"  \w+ +\w| {25,27}\S", line)]
    if len(listed) < 40 or wrong:
        raise Failure(f"lines of reports: {wrong}")


def test_narrow_without_a_terminal(case):
    """COLUMNS says how wide a page may be where no terminal does: pages that are kept, or read by another program."""
    file, other = os.path.join(GOLDEN, "gpu.cuscope"), os.path.join(GOLDEN, "plain.cuscope")
    for command in (("diff", other, file), ("report", file, "gaps"), ("info", file), ("doctor",)):
        for columns, least in (("80", 0), ("", 81)):
            text = subprocess.run([Places.cuscope(), *command], capture_output=True, text=True, check=False,
                                  env={**case.environment(), "COLUMNS": columns}).stdout
            if columns:
                check_lines(command[0], text, 10, 80)
            elif max(map(len, text.split("\n"))) < least:
                raise Failure(f"{command} would fit 80 columns anyhow")


def test_narrow_words_stay_whole(case):
    """The same words, in the same order, as where there is room; but for names, which are cut."""
    trace = os.path.join(GOLDEN, "plain.cuscope")
    narrow = shown(case, Places.cuscope(), "report", trace, "summary").split()
    wide = subprocess.run([Places.cuscope(), "report", trace, "summary"], capture_output=True, text=True, check=True,
                          env=case.environment()).stdout.split()
    whole = {word.strip("(),") for word in wide}
    broken = [word for word in narrow if word.strip("(),") not in whole and "..." not in word]
    if broken:
        raise Failure(f"no words of the whole page: {broken[:10]}")


def test_narrow_trace(case):
    text = shown(case, Places.cuscope(), "trace", *case.options, "--", Places.program("memory"))
    check_lines("trace", text, 30)


def test_narrow_live_tools(case):
    for tool in ("memleak", "launches", "bandwidth"):
        text = shown(case, Places.cuscope(), tool, *case.options, "--", Places.program("loop"), "2000")
        check_lines(tool, text, 5)
