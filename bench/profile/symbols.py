#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gives a library whose symbols were taken off (Debian's PyTorch) as many as it has functions, with long mangled names, as PyTorch's own
wheels have them.

    bench/profile/symbols.py LIBRARY OUTPUT

Functions are those of .eh_frame_hdr; those that are exported keep their names.
"""
import struct
import sys

MADE = b"_ZN2at6native12_GLOBAL__N_127vectorized_inner_reductionIZNS1_25kernel_of_number_%08dERNS_14TensorIteratorEEUlffE_" \
       b"E20reduced_float_typeILi4EEEvPPcPKllRKNS_3VecE"
NAME, TYPE, FLAGS, ADDRESS, OFFSET, SIZE = range(6)  # of a section header


def text_at(data, at):
    return bytes(data[at:data.index(b"\0", at)])


def exported(data, symbols, strings):
    """{address: name} of functions."""
    found = {}
    for at in range(symbols[OFFSET], symbols[OFFSET] + symbols[SIZE], 24):
        name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
        if info & 15 == 2 and section:
            found[value] = text_at(data, strings[OFFSET] + name)
    return found


def main():
    with open(sys.argv[1], "rb") as file:
        data = bytearray(file.read())
    headers, = struct.unpack_from("<Q", data, 40)
    count, names_at = struct.unpack_from("<HH", data, 60)
    sections = [list(struct.unpack_from("<IIQQQQIIQQ", data, headers + i * 64)) for i in range(count)]
    names = sections[names_at]
    by_name = {text_at(data, names[OFFSET] + section[NAME]): section for section in sections}
    table = by_name[b".eh_frame_hdr"]
    n, = struct.unpack_from("<I", data, table[OFFSET] + 8)
    starts = sorted({table[ADDRESS] + struct.unpack_from("<i", data, table[OFFSET] + 12 + 8 * i)[0] for i in range(n)})
    known = exported(data, by_name[b".dynsym"], by_name[b".dynstr"])
    symbols, strings = bytearray(24), bytearray(1)
    for i, (start, end) in enumerate(zip(starts, starts[1:] + [starts[-1] + 16])):
        symbols += struct.pack("<IBBHQQ", len(strings), 2, 0, sections.index(by_name[b".text"]), start, end - start)
        strings += known.get(start, MADE % i) + b"\0"
    more = bytes(data[names[OFFSET]:names[OFFSET] + names[SIZE]])
    places = []
    for content in (symbols, strings, more + b".symtab\0.strtab\0"):
        data += bytes(-len(data) % 16)
        places.append((len(data), len(content)))
        data += content
    names[OFFSET], names[SIZE] = places[2]
    sections.append([len(more), 2, 0, 0, *places[0], count + 1, 1, 8, 24])
    sections.append([len(more) + 8, 3, 0, 0, *places[1], 0, 0, 1, 0])
    data += bytes(-len(data) % 16)
    struct.pack_into("<Q", data, 40, len(data))
    struct.pack_into("<H", data, 60, len(sections))
    for section in sections:
        data += struct.pack("<IIQQQQIIQQ", *section)
    with open(sys.argv[2], "wb") as file:
        file.write(data)


main()
