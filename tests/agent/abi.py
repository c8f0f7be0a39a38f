#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Our CUPTI headers against the real ones, wherever a toolkit has them: layouts and numbers by the
compiler (abi.c, abi_pm.c), the numbers and argument shapes of calls here. Prints what was compared, or that
nothing was. usage: abi.py CC"""
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
CALL = re.compile(r'CALL\((\d+), (\w+), (\w+), "(\w+)"\)')
EIGHT = ("size_t", "unsigned long long", "CUdeviceptr", "CUstream", "CUfunction", "CUarray",
         "CUcontext", "CUgraphExec", "cudaStream_t", "cudaArray_t", "cudaArray_const_t",
         "cudaGraphExec_t")
SHAPES = {"unsigned int": "u", "int": "u", "cudaMemcpyKind": "u", "CUdeviceptr_v1": "u",
          "unsigned short": "h", "unsigned char": "b", "cudaPitchedPtr": "qqqq",
          "cudaExtent": "qqq", **{name: "q" for name in EIGHT}}


def toolkits():
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    homes += sorted(glob.glob("/usr/local/cuda*"))
    seen = {}
    for home in homes:
        for cupti in ("include", "extras/CUPTI/include", "targets/*/include"):
            for header in glob.glob(f"{home}/{cupti}/cupti.h"):
                include = os.path.realpath(os.path.dirname(header))
                seen.setdefault(include, [include, os.path.realpath(f"{home}/include")])
    return list(seen.values())


def find(directories, name):
    for directory in directories:
        path = os.path.join(directory, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
    return ""


def shape_of(field):
    field = re.sub(r"\b(const|struct|enum|__cudaRestrict\w*)\b", "", field).strip()
    if "*" in field:
        return "q"
    return SHAPES[field.rsplit(" ", 1)[0].strip()]


def real_calls(directories, domain):
    """number: (name as exported, shape or None where the headers have lost it)"""
    text = find(directories, f"cupti_{domain}_cbid.h")
    structs = {}
    for name in ("generated_cuda_meta.h", "generated_cuda_runtime_api_meta.h",
                 "generated_cudart_removed_meta.h"):
        for match in re.finditer(r"typedef struct (\w+)_params_st \{(.*?)\}",
                                 find(directories, name), re.S):
            structs[match[1]] = [f.strip() for f in match[2].split(";") if f.strip()]
    calls = {}
    for name, number in re.findall(rf"CUPTI_{domain.upper()}_TRACE_CBID_(\w+)\s*=\s*(\d+)", text):
        exported = re.sub(r"_v\d{4,}$", "", name) if domain == "runtime" else name
        calls[int(number)] = (exported, structs.get(name))
    return calls


def our_calls(domain):
    with open(f"{SOURCE}/src/agent/lib/cupti_calls.h", encoding="utf-8") as file:
        table = file.read().split(f"#define CUPTI_{domain.upper()}_CALLS")[1].split("\n\n")[0]
    return [(int(n), name, shape) for n, name, _, shape in CALL.findall(table)]


def compare_calls(directories):
    wrong, compared = [], 0
    for domain in ("driver", "runtime"):
        real = real_calls(directories, domain)
        for number, name, shape in our_calls(domain):
            if number not in real:
                continue
            exported, fields = real[number]
            if exported != name:
                wrong.append(f"{domain} {number} is {exported}, not {name}")
            elif fields is not None and "".join(map(shape_of, fields)) != shape:
                wrong.append(f"{name} has the shape {''.join(map(shape_of, fields))}, not {shape}")
            compared += 1
    return compared, wrong


def compiles(directories):
    with tempfile.TemporaryDirectory() as empty:
        # CUDA 13.0's header for C includes one of C++, of which it uses nothing
        with open(f"{empty}/string", "w", encoding="utf-8"):
            pass
        command = sys.argv[1].split() + ["-std=gnu17", "-w", "-fsyntax-only", f"-I{SOURCE}/src", f"-I{empty}"]
        command += [f"-I{directory}" for directory in directories]
        return not subprocess.run(command + [f"{HERE}/abi.c", f"{HERE}/abi_pm.c"], check=False).returncode


def main():
    found = toolkits()
    if not found:
        print("SKIP: agent abi: no cupti.h in CUDA_HOME or /usr/local/cuda*")
        return 0
    failed = 0
    for directories in found:
        version = re.search(r"define CUPTI_API_VERSION (\d+)", find(directories, "cupti_version.h"))
        if not version or int(version[1]) < 18:
            print(f"SKIP: agent abi: {directories[0]} is older than CUDA 11.8")
            continue
        compiled = compiles(directories)
        compared, wrong = compare_calls(directories)
        for line in wrong:
            print(f"agent abi: {line}")
        good = compiled and compared and not wrong
        print(f"{'ok   agent abi: agrees with' if good else 'FAIL: agent abi: differs from'} {directories[0]}, {compared} calls compared")
        failed += not good
    return 1 if failed else 0


sys.exit(main())
