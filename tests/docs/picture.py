#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the picture in README.md: what `cuscope timeline` and `report gaps` print of a trace, as SVG.

    tests/docs/picture.py build/cuscope > docs/timeline.svg

The trace, streams.cuscope, was recorded on the simulated driver: three streams that wait for each other
and the default stream. check.py holds the picture to what this prints.
"""

import html
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TRACE = "streams.cuscope"
WINDOW = ["--from", "134.6ms", "--to", "143.1ms"]
CHART = ["timeline", TRACE, *WINDOW, "--width", "132", "--top", "0"]
GAPS = ["report", TRACE, "gaps"]

LEFT, TOP, WIDTH = 24, 20, 920
LINE = 19  # from one line of text to the next
NAMES, CELL, HEIGHT = 150, 7, 26  # room for a lane's name; a column of the chart
BLOCKS = " ▁▂▃▄▅▆▇█"
COLORS = {"S": "#d9a53f", "K": "#56b06c", "T": "#5b8dd9", "M": "#45b1b8", "Q": "#b98bd0", "I": "#8b949e", "C": "#c96f6f",
          "L": "#8f7a5c"}
OTHER, TEXT, DIM, BACK, GRID = "#8b949e", "#d6dbe1", "#8b949e", "#14181d", "#262c34"
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">
<title>cuscope timeline: a thread and four streams of a GPU</title>
<style>text{{font:13px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}}</style>
<rect width="{width}" height="{height}" rx="8" fill="{back}"/>"""


def printed(cuscope, words):
    """What a command says, run beside the trace."""
    done = subprocess.run([os.path.abspath(cuscope), *words], cwd=HERE, check=True, text=True,
                          stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8"})
    return done.stdout.split("\n")


class Picture:
    def __init__(self):
        self.parts, self.y = [], TOP

    def text(self, x, text, color=TEXT, anchor="start"):
        self.parts.append(f'<text x="{x}" y="{self.y}" fill="{color}" text-anchor="{anchor}">{html.escape(text)}</text>')

    def command(self, words):
        self.y += LINE
        self.text(LEFT, "$ cuscope " + " ".join(words), TEXT)

    def lane(self, name, heights, letters, share):
        """Each letter's columns as one path: a bar from the lane's floor, as high as its block."""
        self.y += HEIGHT + 14
        paths = {}
        for column, letter in enumerate(letters):
            height = BLOCKS.index(heights[column]) * HEIGHT / 8 if column < len(heights) else 0
            if letter != "." and height:
                x = LEFT + NAMES + column * CELL
                paths.setdefault(letter, []).append(f"M{x} {self.y}v{-height:g}h{CELL}v{height:g}z")
        end = LEFT + NAMES + len(letters) * CELL
        self.parts.append(f'<path d="M{LEFT + NAMES} {self.y + 0.5}H{end}" stroke="{GRID}"/>')
        for letter, path in sorted(paths.items()):
            self.parts.append(f'<path fill="{COLORS.get(letter, OTHER)}" d="{"".join(path)}"/>')
        self.text(LEFT, name)
        self.text(WIDTH - LEFT, share, TEXT, "end")

    def axis(self, ticks, first):
        self.y += LINE + 4
        for tick in re.finditer(r"[\d.]+ \w+", ticks):
            self.text(LEFT + NAMES + (tick.start() - first) * CELL, tick.group(), DIM)

    def legend(self, names):
        self.y += LINE + 8
        x = LEFT + NAMES
        for letter, name in names:
            self.parts.append(f'<rect x="{x}" y="{self.y - 10}" width="11" height="11" fill="{COLORS.get(letter, OTHER)}"/>')
            self.text(x + 17, name, DIM)
            x += 17 + 8 * len(name) + 26

    def svg(self):
        height = self.y + TOP
        return "\n".join([HEAD.format(width=WIDTH, height=height, back=BACK), *self.parts, "</svg>"]) + "\n"


def draw_chart(picture, lines):
    lanes = [(heights, re.match(r"  (\S.*?)\s{2,}([A-Z.]{20,})\s+([\d.]+ %)$", line))
             for heights, line in zip(lines, lines[1:])]
    lanes = [(heights, lane) for heights, lane in lanes if lane]
    first = lanes[0][1].start(2)
    picture.command(CHART[:2] + WINDOW)
    picture.axis(lines[2], first)
    for heights, lane in lanes:
        picture.lane(lane.group(1), heights[first:], lane.group(2), lane.group(3))
    legend = next(line for line in lines if line.startswith("height:"))
    picture.legend(re.findall(r"([A-Z]) (\w+)", lines[lines.index(legend) - 1]))


def draw(cuscope):
    picture = Picture()
    draw_chart(picture, printed(cuscope, CHART))
    picture.y += 8
    picture.command(GAPS)
    lines = printed(cuscope, GAPS)
    causes = lines[lines.index("Why they were idle"):]
    for line in causes[:causes.index("")]:
        picture.y += LINE
        picture.text(LEFT, line)
    return picture.svg()


if __name__ == "__main__":
    sys.stdout.write(draw(sys.argv[1]))
