# SPDX-License-Identifier: MIT
"""The html page of a trace, read as its script reads it: the index, and the rows of blocks."""

import base64
import hashlib
import itertools
import json
import re
import zlib

from case import Failure, equal

BINS = 64


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def bits(data, n):
    """Numbers of so many bits each, as bytes say that come first; then all bits but the highest ones, the lowest first."""
    at, all_bits, values = 0, int.from_bytes(data[n:], "little"), []
    for length in data[:n]:
        values.append(1 << length - 1 | all_bits >> at & (1 << length - 1) - 1 if length else 0)
        at += max(length - 1, 0)
    equal("bytes of a column of bits", len(data), n + (at + 7) // 8)
    return values


def numbers(data, n, kind, begin, durations):
    if kind == "bits":
        return bits(data, n)
    if kind == "bits delta":
        return list(itertools.accumulate(bits(data, n), initial=begin))[1:]
    at, values, before = 0, [], begin if kind in ("delta", "gap") else 0
    for i in range(n):
        value, at = varint(data, at)
        if kind in ("sdelta", "gap"):
            value = value >> 1 ^ -(value & 1)
        if kind in ("delta", "sdelta", "gap"):
            value += before
            before = value + (durations[i] if kind == "gap" else 0)
        values.append(value)
    equal("bytes of a column", len(data), at)
    return values



class Pair:
    """The page of two recordings: a page of each, and what differs."""

    def __init__(self, path):
        self.sides = Page(path), Page(path, True)
        self.differs = json.loads(self.sides[0].element("pair", "application/json"))
        self.tables = {table["key"]: table for table in self.differs["tables"]}

    def check(self):
        for page in self.sides:
            page.check()
        equal("blocks", sum(len(page.packed) for page in self.sides), self.sides[0].text.count('<script type="text/plain"'))


class Page:
    """Of one recording; of two the first, and with `other` the second."""

    def __init__(self, path, other=False):
        with open(path, encoding="utf-8", newline="") as file:
            self.text = file.read()
        self.index = json.loads(self.element("index-other" if other else "index", "application/json"))
        self.packed = dict(re.findall(rf'<script type="text/plain" id="{"other-" if other else ""}b(\d+)">([A-Za-z0-9+/=]*)</script>\n',
                                      self.text))
        self.sizes = {name: [column for column, _ in columns].index("dur")
                      for name, columns in self.index["columns"].items() if "dur" in dict(columns)}

    def element(self, name, kind):
        found = re.findall(f'<script type="{kind}" id="{name}">(.*?)</script>', self.text, re.S)
        equal(f"elements {name}", 1, len(found))
        return found[0]

    def bytes_of(self, number):
        return zlib.decompress(base64.b64decode(self.packed[str(number)]))

    def block(self, about):
        """Its rows as dicts, and where what the columns are does not fill it a failure."""
        track = self.index["tracks"][about["track"]]
        columns, data = self.index["columns"][track["kind"]], self.bytes_of(about["id"])
        n, at = varint(data, 0)
        equal("rows", about["rows"], n)
        pieces = []
        for _ in columns:
            length, at = varint(data, at)
            pieces.append(data[at:at + length])
            at += length
        count, at = varint(data, at)
        texts = []
        for _ in range(count):
            length, at = varint(data, at)
            texts.append(data[at:at + length].decode())
            at += length
        equal("bytes of a block", len(data), at)
        durations = numbers(pieces[1], n, dict(columns)["dur"], 0, None) if "dur" in dict(columns) else None
        values = {name: numbers(piece, n, kind, about["begin"], durations)
                  for (name, kind), piece in zip(columns, pieces)}
        for name, kind in columns:
            if kind == "name":
                values[name] = [self.index["names"][number] for number in values[name]]
            elif kind == "text":
                values[name] = [texts[number - 1] if number else None for number in values[name]]
        return [dict(zip(values, row)) for row in zip(*values.values())]

    def rows(self, kind):
        """All of one kind, with their tracks."""
        for about in self.index["blocks"]:
            track = self.index["tracks"][about["track"]]
            if track["kind"] == kind:
                for row in self.block(about):
                    yield track, row

    def stacks(self):
        """Lists of frames' words, by number."""
        frames, stacks = {}, {}
        for part in self.index["frames"]:
            data = self.bytes_of(part["block"])
            n, at = varint(data, 0)
            equal("frames", part["n"], n)
            for number in range(part["first"], part["first"] + n):
                _, at = varint(data, at)
                words = []
                for _ in range(2):
                    length, at = varint(data, at)
                    words.append(data[at:at + length].decode())
                    at += length
                frames[number] = words
            equal("bytes of frames", len(data), at)
        for part in self.index["stacks"]:
            data = self.bytes_of(part["block"])
            n, at = varint(data, 0)
            for number in range(part["first"], part["first"] + n):
                count, at = varint(data, at)
                stacks[number] = []
                for _ in range(count):
                    frame, at = varint(data, at)
                    stacks[number].append(frames[frame])
            equal("bytes of stacks", len(data), at)
        return stacks

    def check(self):
        """That each part of it is as it says, and that a browser runs its script and nothing else."""
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', self.text).group(1)
        style = re.search(r"<style>(.*?)</style>", self.text, re.S).group(1)
        scripts = re.findall(r"<script>(.*?)</script>", self.text, re.S)
        equal("scripts", 1, len(scripts))
        for name, body in (("style-src", style), ("script-src", scripts[0])):
            digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
            if f"{name} 'sha256-{digest}'" not in policy:
                raise Failure(f"the policy {policy} has not the hash of what is in the page: {name} {digest}")
        if "default-src 'none'" not in policy:
            raise Failure(f"the policy lets something be asked for: {policy}")
        blocks, indexes = self.text.count('<script type="text/plain"'), 3 if self.index.get("pair") else 1
        equal("elements", 1 + indexes + blocks, self.text.count("<script"))
        equal("ends of elements", 1 + indexes + blocks, self.text.count("</script>"))
        for track in self.index["tracks"]:
            blocks = [self.index_block(number) for number in track["blocks"]]
            equal(f"rows of {track['title']}", track["rows"], sum(block["rows"] for block in blocks))
        for about in self.index["blocks"]:
            self.check_block(about)
        self.stacks()

    def index_block(self, number):
        return next(block for block in self.index["blocks"] if block["id"] == number)

    def check_block(self, about):
        rows = self.block(about)
        equal("order", sorted(row["begin"] for row in rows), [row["begin"] for row in rows])
        equal("begin", about["begin"], rows[0]["begin"])
        if "dur" not in rows[0]:
            return
        equal("end", about["end"], max(row["begin"] + row["dur"] for row in rows))
        sums = {}
        calls = self.index["tracks"][about["track"]]["kind"] == "call"
        for row in rows:
            n, ns, most = sums.setdefault(row["name"], (0, 0, 0))
            if calls and row["depth"]:
                continue
            sums[row["name"]] = (n + 1, ns + row["dur"], max(most, row["dur"]))
        told = {self.index["names"][name]: tuple(rest) for name, *rest in about["sums"]}
        equal("sums", sums, told)
        bins = base64.b64decode(about["bins"])
        equal("bins", 3 * BINS, len(bins))
        numbers_of = [row.get("correlation") for row in rows if row.get("correlation")]
        equal("correlations", (min(numbers_of, default=0), max(numbers_of, default=0)), (about["c0"], about["c1"]))
