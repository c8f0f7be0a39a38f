# SPDX-License-Identifier: MIT
"""The real libcudart of an installed CUDA toolkit: its calls fail for want of a driver."""

import glob
import os
import shutil
import subprocess

import checks
from harness import Places, Skip


def real_runtime():
    for path in glob.glob("/usr/local/cuda*/lib*/libcudart.so.1*") + \
            glob.glob("/usr/local/cuda*/targets/*/lib/libcudart.so.1*"):
        return os.path.realpath(path)
    raise Skip("no CUDA toolkit in /usr/local/cuda")


def test_real_runtime_without_a_driver_shows_the_error_by_name(case):
    library = real_runtime()
    case.env["LD_LIBRARY_PATH"] = "/nowhere"
    result = case.trace("toolkit", library)
    checks.valid(result)
    checks.nothing_missed(result)
    checks.errors(result)
    checks.equal("calls", {"cudaMalloc": 2, "cudaMemcpy": 1},
                 {name: result.names()[name] for name in ("cudaMalloc", "cudaMemcpy")})


def test_real_runtime_on_the_simulated_driver_or_its_refusal(case):
    """Whatever it makes of that driver, the program and cuscope agree on what its calls returned."""
    library = real_runtime()
    result = case.trace("toolkit", library, "any")
    checks.valid(result)
    checks.equal("missed", 0, sum(result.summary["missed"]["lost"].values()))
    checks.errors(result)


def test_probes_of_the_real_runtime(case):
    process = case.cuscope("probes", real_runtime())
    checks.equal("status", 0, process.wait())
    checks.contains("list", r"cudaMalloc\s+memory\s+on\s+0x[0-9a-f]+\s+\S+\s+cheap", process.out())
    checks.contains("list", r"cudaGetDevice\s+\w+\s+off", process.out())


def test_real_static_runtime_by_nvcc(case):
    if not os.access("/usr/local/cuda/bin/nvcc", os.X_OK):
        raise Skip("no nvcc in /usr/local/cuda/bin")
    source = case.path("real.cu")
    with open(source, "w") as file:
        file.write("__global__ void twice(float *p, int n) { if (n) *p *= 2; }\n"
                   "int main() { void *p; int bad = cudaMalloc(&p, 1 << 20);\n"
                   "twice<<<3, 64>>>((float *)p, 1); return bad ? 17 : 0; }\n")
    nvcc = case.start("/usr/local/cuda/bin/nvcc", "-arch=sm_80", "-o", case.path("real"), source)
    if nvcc.wait(120):
        raise Skip(f"nvcc cannot build: {nvcc.err()[-200:]}")
    case.env["LD_LIBRARY_PATH"] = "/nowhere"
    result = case.trace(case.path("real"), status=17)
    checks.valid(result)
    failed = result.calls(name="cudaMalloc")
    checks.equal("cudaMalloc", 1, len(failed))
    checks.equal("error", "cudaErrorInsufficientDriver", failed[0]["error"])
    checks.equal("library", "real", failed[0]["lib"])


def test_real_static_runtime_stripped(case):
    """What is found without symbols lies where they say."""
    archive = os.path.join(os.path.dirname(real_runtime()), "libcudart_static.a")
    if not os.path.exists(archive) or not shutil.which("gcc"):
        raise Skip("no libcudart_static.a beside libcudart, or no gcc")
    source, program, stripped = (case.path(name) for name in ("real.c", "real", "stripped"))
    with open(source, "w") as file:
        file.write("int cudaMalloc(void **, unsigned long);\n"
                   "int main(void) { void *p; for (int i = 0; i < 20; i++) cudaMalloc(&p, 4096); return 0; }\n")
    subprocess.run(["gcc", "-o", program, source, archive, "-lpthread", "-ldl", "-lrt"], check=True)
    subprocess.run(["strip", "-o", stripped, program], check=True)
    lists = []
    for path in (program, stripped):
        process = case.cuscope("probes", path)
        checks.equal("status", 0, process.wait())
        lists.append({line.split()[0]: line.split()[3] for line in process.out().splitlines()[2:]})
    with_symbols, without = lists
    checks.equal("functions elsewhere", {}, {name: at for name, at in without.items() if with_symbols.get(name) != at})
    checks.equal("all but few", True, len(without) > 0.9 * len(with_symbols))
    case.env["LD_LIBRARY_PATH"] = "/nowhere"
    result = case.trace(stripped)
    checks.nothing_missed(result)
    checks.equal("calls", 20, result.names()["cudaMalloc"])
