# SPDX-License-Identifier: MIT
"""The code of a process's libraries, compared byte for byte with their files.

    library_code.py PID NAME...     libraries whose file's name begins with NAME and .so
"""

import os
import struct
import sys

CHUNK = 1 << 20
PROGRAM_LOAD, EXECUTABLE = 1, 1


def mapped(pid, names):
    """(begin, end, offset, path) of each executable part of these libraries."""
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            words = line.split(maxsplit=5)
            path = words[5].strip() if len(words) > 5 else ""
            if "x" in words[1] and any(os.path.basename(path).startswith(name + ".so") for name in names):
                begin, end = (int(word, 16) for word in words[0].split("-"))
                yield begin, end, int(words[2], 16), path


def code_segments(file):
    """(offset, bytes) of each executable segment of an ELF file."""
    header = file.read(64)
    if header[:5] != b"\x7fELF\x02":
        raise ValueError("no 64-bit ELF file")
    at, = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    for i in range(count):
        file.seek(at + i * size)
        kind, flags, offset, _, _, in_file, _, _ = struct.unpack("<IIQQQQQQ", file.read(56))
        if kind == PROGRAM_LOAD and flags & EXECUTABLE:
            yield offset, in_file


def differences(pid, part, memory):
    """(address, bytes in memory, bytes in the file) of what differs in one part."""
    begin, end, offset, path = part
    with open(path, "rb") as file:
        for start, size in list(code_segments(file)):
            first, last = max(start, offset), min(start + size, offset + end - begin)
            for at in range(first, last, CHUNK):
                n = min(CHUNK, last - at)
                file.seek(at)
                memory.seek(begin + at - offset)
                wanted, is_there = file.read(n), memory.read(n)
                for i in range(n) if wanted != is_there else ():
                    if wanted[i] != is_there[i]:
                        yield begin + at - offset + i, is_there[i:i + 8], wanted[i:i + 8]


def compare(pid, names):
    """Bytes that were compared, by path, and sentences on what differs."""
    compared, problems = {}, []
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for part in mapped(pid, names):
            compared[part[3]] = compared.get(part[3], 0) + part[1] - part[0]
            found = list(differences(pid, part, memory))
            if found:
                address, is_there, wanted = found[0]
                problems.append(f"{os.path.basename(part[3])}: {len(found)} bytes differ, the first at {address:#x} "
                                f"(offset {address - part[0] + part[2]:#x}): {is_there.hex()}, in the file {wanted.hex()}")
    return compared, problems


def main():
    compared, problems = compare(int(sys.argv[1]), sys.argv[2:])
    for path, size in compared.items():
        print(f"{path}: {size >> 10} KiB compared")
    print(*problems, sep="\n")
    sys.exit(1 if problems or not compared else 0)


if __name__ == "__main__":
    main()
