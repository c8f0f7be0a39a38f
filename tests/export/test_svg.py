# SPDX-License-Identifier: MIT
"""Pictures of memory: well-formed, and shown by a browser."""

import os
import re
import shutil
import struct
import subprocess
import xml.etree.ElementTree
import zlib

from case import Failure, Skip, equal

SVG = "{http://www.w3.org/2000/svg}"
DEVICE = (0x42, 0x69, 0xD0)  # the colour of device memory


def browse(case, picture, *options):
    """Headless Chromium on a picture: what it prints."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or \
        shutil.which("google-chrome")
    if not browser:
        raise Skip("no Chromium")
    result = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         "--window-size=960,760", f"--user-data-dir={case.path('profile')}", *options,
         "file://" + picture],
        capture_output=True, text=True, timeout=120, cwd=case.folder)
    equal("status of the browser", 0, result.returncode)
    return result.stdout


def unfilter(kind, line, above, size):
    """One line of a PNG."""
    for i in range(len(line)):
        a = line[i - size] if i >= size else 0
        b = above[i]
        c = above[i - size] if i >= size else 0
        if kind == 1:
            line[i] = line[i] + a & 255
        elif kind == 2:
            line[i] = line[i] + b & 255
        elif kind == 3:
            line[i] = line[i] + (a + b) // 2 & 255
        elif kind == 4:
            p = a + b - c
            nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))
            line[i] = line[i] + nearest[2] & 255
    return line


def colours(path):
    """How many pixels of a PNG have each colour."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed, counts = 8, b"", {}
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, _, form = struct.unpack(">IIBB", data[at + 8:at + 18])
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += length + 12
    size = {2: 3, 6: 4}[form]
    stride, raw = width * size, zlib.decompress(packed)
    above = bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        above = unfilter(raw[start], bytearray(raw[start + 1:start + 1 + stride]), above, size)
        for x in range(0, stride, size):
            colour = tuple(above[x:x + 3])
            counts[colour] = counts.get(colour, 0) + 1
    return counts


def test_svg_is_what_it_was(case):
    with open(case.export("gpu", "gpu.svg")) as file:
        case.golden("gpu.svg", file.read())


def test_svg_is_well_formed_and_needs_nothing_else(case):
    for trace in ("plain", "gpu", "lost"):
        path = case.export(trace, trace + ".svg")
        root = xml.etree.ElementTree.parse(path).getroot()
        equal("root", SVG + "svg", root.tag)
        if any(element.tag == SVG + "script" for element in root.iter()):
            raise Failure("a script")
        with open(path) as file:
            links = re.findall(r"(?:href|src|url\()[^>]*", file.read())
        equal("links", [], links)


def test_svg_tells_peak_kinds_processes_and_failures(case):
    root = xml.etree.ElementTree.parse(case.export("plain", "plain.svg")).getroot()
    texts = [element.text for element in root.iter(SVG + "text")]
    titles = [element.text for element in root.iter(SVG + "title")]
    for wanted in ("CUDA memory over time: peak 5.08 MiB after 10.13 ms, 512 KiB live at the end",
                   "device, peak 3.5 MiB", "managed, peak 64 KiB", "physical (VMM), peak 2 MiB",
                   "python3 (5151), peak 5.08 MiB", "vectorAdd (4242), peak 3.19 MiB",
                   "peak 5.08 MiB"):
        equal(wanted, True, wanted in texts)
    equal("failures", 4, sum(title.startswith("An allocation failed: 1 TiB (device) by vectorAdd")
                             for title in titles))  # two, in both panels


def test_svg_says_what_was_missed(case):
    root = xml.etree.ElementTree.parse(case.export("lost", "lost.svg")).getroot()
    notes = [element.text for element in root.iter(SVG + "text") if element.get("class") == "note"]
    equal("notes", 1, len(notes))
    if "4663 lost, 1 late while it was recorded" not in notes[0]:
        raise Failure(f"the note is {notes[0]!r}")


def test_svg_is_shown_by_a_browser(case):
    path = case.export("plain", "plain.svg")
    document = browse(case, path, "--dump-dom")
    if "parsererror" in document:
        raise Failure("the browser found an error")
    equal("areas", 8, len(re.findall(r'<path class="area', document)))
    browse(case, path, "--screenshot=" + case.path("light.png"))
    browse(case, path, "--screenshot=" + case.path("dark.png"),
           "--blink-settings=preferredColorScheme=0")
    light, dark = colours(case.path("light.png")), colours(case.path("dark.png"))
    equal("background", [(255, 255, 255), (0x16, 0x18, 0x1D)],
          [max(light, key=light.get), max(dark, key=dark.get)])
    for name, counts in (("light", light), ("dark", dark)):
        if counts.get(DEVICE, 0) < 10000:
            raise Failure(f"{name}: {counts.get(DEVICE, 0)} pixels of device memory")
