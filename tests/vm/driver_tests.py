# SPDX-License-Identifier: MIT
"""What cuscope sees of a driver's modules, on the stand-in of tests/vm/driver.

Modules are in /driver/FLAVOUR (see build-driver) and are loaded by a test itself: `with Driver("new"):`.
Where they could not be built, /driver/why says why, and all of this is skipped.
"""

import collections
import json
import os
import subprocess

from harness import Failure, Places, Skip, wait_until
import checks

FOLDER = "/driver"
TRACING = "/sys/kernel/tracing"
FUNCTIONS = {  # name in the newer flavour: in the older one
    "nvidia_open": None, "nvidia_close": None, "nvidia_unlocked_ioctl": None, "nvidia_poll": None, "nvidia_mmap": None,
    "nvidia_isr_msix": None, "nv_post_event": None, "nv_report_error": None,
    "uvm_unlocked_ioctl_entry": None, "uvm_vm_fault_entry": None, "uvm_va_space_cpu_fault_managed": None,
    "uvm_va_block_cpu_fault": None, "uvm_perf_event_notify": None, "uvm_api_migrate": None, "uvm_va_block_evict_chunks": None,
    "uvm_parent_gpu_service_replayable_faults": "uvm_gpu_service_replayable_faults",
    "uvm_tools_record_migration_begin": "uvm_tools_record_block_migration_begin",
    "uvm_tools_record_thrashing": None, "uvm_tools_record_throttling_start": None, "uvm_tools_record_gpu_fatal_fault": None,
}


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


def unloaded(module):
    """The kernel lets go of a module that fentry was on a moment after cuscope has ended."""
    if not os.path.exists("/sys/module/" + module.replace("-", "_")):
        return True
    return subprocess.run(["rmmod", module], stderr=subprocess.DEVNULL, check=False).returncode == 0


class Driver:
    """Both modules, from `with` to its end."""

    def __init__(self, flavour):
        self.folder = os.path.join(FOLDER, flavour)
        if not os.path.exists(self.folder):
            raise Skip(read(os.path.join(FOLDER, "why")).strip() if os.path.exists(FOLDER) else "no stand-in driver here")

    def __enter__(self):
        for module in ("nvidia", "nvidia-uvm"):
            subprocess.run(["insmod", os.path.join(self.folder, module + ".ko")], check=True)
        return self

    def __exit__(self, *_):
        wait_until(lambda: unloaded("nvidia-uvm") and unloaded("nvidia"), "the modules to be unloaded")


def exercise(*words):
    """The command of tests/vm/exercise.c."""
    return [os.path.join(Places.build, "tests/vm/exercise"), *words]


def kernel():
    return tuple(int(part) for part in os.uname().release.split("-")[0].split("+")[0].split(".")[:2])


def driver_has_what_the_real_one_has(flavour):
    def test(case):
        with Driver(flavour):
            traceable = read(TRACING + "/available_filter_functions")
            for new, old in FUNCTIONS.items():
                name = old if flavour == "old" and old else new
                checks.contains(f"functions that can be traced", rf"\n{name} \[nvidia(_uvm)?\]\n", traceable)
            event = os.path.exists(TRACING + "/events/nvidia/nvidia_dev_xid")
            checks.equal("the trace event of Xids", flavour != "old", event)
            checks.equal("types", flavour == "new" and kernel() >= (6, 12), os.path.exists("/sys/kernel/btf/nvidia_uvm"))
            run = subprocess.run(exercise("context", "alloc=3", "managed=16", "touch=16", "migrate", "touch=16", "gpufaults=8",
                                          "evict=2", "thrash=3", "fatal=1", "wait=2", "unknown=2", "xid=31"),
                                 capture_output=True, text=True, check=False)
            checks.equal(f"what was exercised ({run.stderr.strip()})", 0, run.returncode)
            log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
            checks.contains("the kernel's log", r"NVRM: Xid \(PCI:0000:00:00\): 31, pid=\d+, name=exercise, Channel 00000021", log)
    test.__name__ = f"test_driver_{flavour}_has_what_the_real_one_has"
    return test


# ---- what --kernel sees of them

# what comes last is known when its process has ended
WORDS = ("context", "managed=16", "touch=16", "migrate", "touch=16", "gpufaults=8", "evict=2", "thrash=3", "fatal=1", "wait=2",
         "xid=31")


FORGED = "NVRM: Xid (PCI:0000:00:00): 79, pid=1, name=init, GPU has fallen off the bus."  # not by the kernel


def traced(case, command, go=None):
    """The events of the layer kernel that `trace --kernel` tells of, and its summary. `go`, where it is given, is called
    with cuscope's process, and then the command has a line on its standard input."""
    path = case.path("trace.jsonl")
    process = case.start(Places.cuscope(), "trace", *case.options, "--kernel", "-o", path, "--", *command,
                         stdin=subprocess.PIPE if go else subprocess.DEVNULL)
    if go:
        go(process)
        process.process.stdin.write(b"go\n")
        process.process.stdin.flush()
    status = process.wait()
    checks.equal(f"status ({(process.out() + process.err())[-600:]})", 0, status)
    events = [json.loads(line) for line in read(path).splitlines()]
    checks.equal("processes that came again after their end", [], came_again(events))
    return [event for event in events if event.get("layer") == "kernel"], events[-1]


def came_again(events):
    """What comes late of a process that has ended is to be of that one, and not of a new one, which has no end."""
    told = [event for event in events if event.get("type") == "process" and event["pid"]]
    pids = [(event["pid"], event["op"]) for event in told]
    return sorted({pid for pid, op in pids if op == "start" and pids.count((pid, op)) > pids.count((pid, "exit"))})


def total(events, name, key="count"):
    return sum(int(event["args"][key]) for event in events if event["name"] == "sum of " + name and event["pid"])


def all_is_seen(events, summary):
    checks.equal("faults of the host", 32, total(events, "CPU fault (write)"))
    checks.equal("their migrations", 32 * 4096, total(events, "migration GPU0 to CPU (fault)", "bytes"))
    checks.equal("faults of the GPU", 8, total(events, "GPU fault (GPU0)"))
    checks.equal("their migrations", 8 * 65536, total(events, "migration CPU to GPU0 (fault)", "bytes"))
    checks.equal("the call that migrates", 16 * 4096, total(events, "migration CPU to GPU0 (migrate call)", "bytes"))
    checks.equal("evictions", 2 * 65536, total(events, "migration GPU0 to CPU (eviction)", "bytes"))
    checks.equal("thrashing", 3, total(events, "thrashing"))
    checks.equal("throttling", 3, total(events, "throttling (GPU0)"))
    checks.equal("fatal faults", 1, total(events, "fatal GPU fault (GPU0)"))
    checks.equal("a sample of faults", True, any(e["name"] == "CPU fault (write)" and e["tid"] for e in events))
    waits = [e["args"] for e in events if e["name"] == "wait for the driver"]
    checks.equal("waits", True, 1 <= len(waits) <= 2)
    # on a slow machine the interrupt may come before the thread waits
    checks.equal("interrupt, then event", True, all(int(w["to_interrupt_ns"]) <= int(w["to_event_ns"]) for w in waits))
    checks.equal("event, then end", True, all(int(w["to_event_ns"]) and int(w["to_run_ns"]) for w in waits))
    xids = [e for e in events if e["name"].startswith("Xid ")]
    checks.equal("Xids", ["Xid 31 (GPU memory page fault)"], [e["name"] for e in xids])
    checks.contains("its text", r"^pid=\d+, name=exercise, Channel 00000021$", xids[0]["args"]["text"])
    checks.equal("whose it is", xids[0]["args"]["of_pid"], xids[0]["pid"])
    checks.equal("what was lost", 0, summary["lost"]["no_room"])


def driver_is_seen(flavour):
    def test(case):
        with Driver(flavour):
            events, summary = traced(case, ["/bin/sh", "-c", f"echo '{FORGED}' >/dev/kmsg; exec {' '.join(exercise(*WORDS))}"])
            all_is_seen(events, summary)
    test.__name__ = f"test_driver_{flavour}_is_seen"
    return test


def test_driver_that_is_loaded_later_is_seen(case):
    driver = Driver("plain")
    load = " && ".join(f"insmod {driver.folder}/{module}.ko" for module in ("nvidia", "nvidia-uvm"))

    def wait_for_hooks(process):
        told = [f"functions of {module}, which was loaded later, are hooked" for module in ("nvidia", "nvidia_uvm")]
        wait_until(lambda: all(line in process.err() for line in told) or process.process.poll() is not None,
                   "the modules to be hooked", 60)
        if process.process.poll() is not None:
            raise Failure(f"it ended: {process.out() + process.err()}")

    try:
        all_is_seen(*traced(case, ["/bin/sh", "-c", f"{load} && exec {' '.join(exercise('stop', *WORDS))}"], wait_for_hooks))
    finally:
        driver.__exit__()


def report(case, name):
    process = case.cuscope("report", case.path("run.cuscope"), name)
    checks.equal(f"status ({process.err()})", 0, process.wait())
    return process.out()


def test_driver_is_seen_in_reports(case):
    with Driver("plain"):
        process = case.start(Places.cuscope(), "record", *case.options, "--kernel", "-o", case.path("run.cuscope"), "--",
                             *exercise(*WORDS))
        checks.equal(f"status ({process.err()})", 0, process.wait())
    uvm, xids, errors = report(case, "uvm"), report(case, "xids"), report(case, "errors")
    channels = report(case, "channels")
    print(uvm + xids + errors + channels, flush=True)
    checks.contains("a group of channels, which ends with its process",
                    r"exit +\d+ +group +0x5c\w+ +0x5c\w+ +- +- +- +2\.000 ms +CILP +- +KEPLER_CHANNEL_GROUP_A\n", channels)
    checks.contains("its channel", r"exit +\d+ +channel +0x5c\w+ +0x5c\w+ +GR0 +33 +0x30021 +- +- +- +HOPPER_CHANNEL_GPFIFO_A\n",
                    channels)
    checks.contains("faults", r"\n +\d+ +32 .* CPU fault \(write\)\n", uvm)
    checks.contains("evictions", r"\n +\d+ +2 +128.00 KiB .* migration GPU0 to CPU \(eviction\)\n", uvm)
    checks.contains("the allocation", r"\n +\d+ +32 +8 +576.00 KiB +256.00 KiB +128.00 KiB +3 +0x7e0000000000 +64.00 KiB +"
                                      r"cudaMallocManaged", uvm)
    checks.contains("the Xid", r"\n +[\d.]+ +\d+ +31  GPU memory page fault +1 +cudaDeviceSynchronize +cudaErrorIllegalAddress +"
                               r"pid=", xids)
    checks.contains("what failed of it", r"cudaDeviceSynchronize failed in process \d+ with Xid 31, GPU memory page fault", errors)


def test_driver_functions_are_told_by_doctor(case):
    with Driver("new"):
        process = case.cuscope("doctor", *case.options)
        checks.equal("status", 0, process.wait())
        way = "fentry" if kernel() >= (6, 12) else "kprobe"
        checks.contains("a function", rf"ok +driver function +uvm_perf_event_notify \(GPU faults, migrations\): {way}\n", process.out())
        checks.contains("Xids", r"ok +driver function +nvidia:nvidia_dev_xid \(Xids\): trace event\n", process.out())


def listed(case, spec):
    process = case.cuscope("probes", "--format", "json", spec)
    status = process.wait()
    return (json.loads(process.out()) if status == 0 else []), process.err()


def expected_of(names):
    """Why each of these functions cannot be hooked, by the kernel's own lists; None: it can."""
    traceable = {line.split()[0] for line in read(TRACING + "/available_filter_functions").splitlines()}
    forbidden = {line.split("\t")[-1] for line in read("/sys/kernel/debug/kprobes/blacklist").splitlines()}
    symbols = [line.split() for line in read("/proc/kallsyms").splitlines()]
    functions = [symbol[2] for symbol in symbols if symbol[1] in "tTwW"]
    twice = {name for name, count in collections.Counter(functions).items() if count > 1}
    return {name: "the kernel has several functions of this name" if name in twice
            else "the kernel lets nobody probe it (blacklist)" if name in forbidden
            else "it is not traceable: not among available_filter_functions" if name not in traceable
            else None for name in names}


def test_driver_functions_that_can_be_hooked_are_listed(case):
    with Driver("new"):
        rows, told = listed(case, "kprobe:nvidia:nv*")
        functions = {row["Function"]: row for row in rows}
        checks.equal(f"a function of the driver ({told})", ("yes", "nvidia", None),
                     tuple(functions["nvidia_open"][key] for key in ("Hook", "Module", "Why Not")))
    checks.contains("a module that is gone", "the module 'nvidia' is not loaded: a hook on it waits until it is",
                    listed(case, "kprobe:nvidia:nv*")[1])
    rows, told = listed(case, "kprobe:*")
    checks.contains("the rest", "match, of which 8192 are listed", told)
    why = {row["Function"]: row["Why Not"] for row in rows}
    checks.equal("each reason", expected_of(why), why)
    checks.equal("that are hooked", {None: "yes"}, {row["Why Not"]: row["Hook"] for row in rows if row["Hook"] == "yes"})
    if "the kernel lets nobody probe it (blacklist)" not in why.values():
        raise Failure("none is on the kernel's blacklist")


IN_CUINIT = ["open nvidiactl", "open nvidia0", "open nvidia-uvm", "CHECK_VERSION_STR", "RM_ALLOC NV01_ROOT_CLIENT",
             "RM_ALLOC NV01_DEVICE_0", "RM_ALLOC NV20_SUBDEVICE_0", "RM_ALLOC FERMI_VASPACE_A", "UVM_INITIALIZE",
             "UVM_REGISTER_GPU", "RM_ALLOC KEPLER_CHANNEL_GROUP_A", "RM_ALLOC HOPPER_CHANNEL_GPFIFO_A",
             "RM_ALLOC HOPPER_COMPUTE_A", "RM_CONTROL GPFIFO_GET_WORK_SUBMIT_TOKEN (channel)",
             "RM_CONTROL SET_TIMESLICE (TSG)", "RM_CONTROL GR_SET_CTXSW_PREEMPTION_MODE", "RM_CONTROL GPFIFO_SCHEDULE (TSG)",
             "RM_ALLOC HOPPER_USERMODE_A", "RM_MAP_MEMORY", "mmap nvidia0", "RM_CONTROL PERF_BOOST"]


def test_driver_calls_are_decoded(case):
    """Before cuscope the modules are loaded, and their devices' numbers are those that they got."""
    with Driver("new"):
        words = exercise("context", "alloc=3", "managed=16", "migrate", "wait=2", "unknown=2")
        result = case.trace(words[0], *words[1:], options=["--kernel"])
    checks.valid(result)
    calls = [event for event in result.events if event["type"] == "kernel_side"]
    named = {call["name"]: call for call in calls}
    checks.equal("calls within cuInit", IN_CUINIT, [call["name"] for call in calls][:len(IN_CUINIT)])
    checks.equal("the token", "0x30021", named["RM_CONTROL GPFIFO_GET_WORK_SUBMIT_TOKEN (channel)"]["args"]["token"])
    checks.equal("the time slice", 2000, named["RM_CONTROL SET_TIMESLICE (TSG)"]["args"]["timeslice_us"])
    checks.equal("a handle that the driver gave", named["RM_ALLOC KEPLER_CHANNEL_GROUP_A"]["args"]["object"],
                 named["RM_CONTROL GPFIFO_SCHEDULE (TSG)"]["args"]["object"])
    names = [call["name"] for call in calls]
    checks.equal("allocations, by XFER_CMD", 3, names.count("RM_ALLOC NV01_MEMORY_LOCAL_USER"))
    checks.equal("a migration", 65536, named["UVM_MIGRATE"]["args"]["length"])
    checks.equal("waits", 2, names.count("poll nvidiactl"))
    unknown = {name for name in names if name.startswith("ioctl ")}
    checks.equal("unknown numbers", {"ioctl 0x46/0xc7 (nvidiactl)", "ioctl 0x53/0x02 (nvidiactl)", "ioctl 1999 (nvidia-uvm)"},
                 unknown)
    checks.equal("what failed", unknown - {"ioctl 0x53/0x02 (nvidiactl)"}, {call["name"] for call in calls if call["retval"]})


FLAVOURS = ("new", "plain", "old")
TESTS = tuple(driver_has_what_the_real_one_has(flavour) for flavour in FLAVOURS) + \
    tuple(driver_is_seen(flavour) for flavour in FLAVOURS) + \
    (test_driver_that_is_loaded_later_is_seen, test_driver_is_seen_in_reports,
     test_driver_functions_are_told_by_doctor, test_driver_functions_that_can_be_hooked_are_listed, test_driver_calls_are_decoded)
