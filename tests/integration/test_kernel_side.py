# SPDX-License-Identifier: MIT
"""--kernel: system calls to the NVIDIA driver. There is none here, so two devices that anybody may open stand for its
devices, and the simulated libcuda makes its calls on them."""

import contextlib
import json
import os

import checks
from harness import Failure, Places, links_of, wait_until

STAND_INS = {"CUSCOPE_NVIDIA_DEVICES": "1:3=nvidiactl,1:5=nvidia-uvm", "SIMCUDA_DRIVER": "/dev/null,/dev/zero"}
OF_INIT = ["open nvidiactl", "open nvidia-uvm", "RM_ALLOC NV01_ROOT_CLIENT", "RM_ALLOC KEPLER_CHANNEL_GROUP_A",
           "RM_CONTROL SET_TIMESLICE (TSG)", "RM_CONTROL GPFIFO_SCHEDULE (TSG)", "RM_CONTROL 0x12345678",
           "ioctl 0x46/0x63 (nvidiactl)", "RM_CONTROL (not read)", "mmap nvidia-uvm", "poll nvidiactl"]
OF_ALLOC = ["RM_ALLOC NV01_MEMORY_LOCAL_USER", "UVM_RELEASE_VA", "UVM_RELEASE_VA"]


def kernel_side(result):
    return [event for event in result.events if event["type"] == "kernel_side"]


def inside(call, calls):
    end = call["ts"] + call["duration_us"] / 1000
    return [c for c in calls if c["tid"] == call["tid"] and call["ts"] <= c["ts"] and
            c["ts"] + c["duration_us"] / 1000 <= end]


def check_init(calls):
    checks.equal("calls within cuInit", OF_INIT, [c["name"] for c in calls])
    checks.equal("depths", {1}, {c["depth"] for c in calls})
    named = {c["name"]: c for c in calls}
    timeslice = named["RM_CONTROL SET_TIMESLICE (TSG)"]
    checks.equal("what its parameters say", 2048, timeslice["args"]["timeslice_us"])
    checks.equal("what the null device says", (-25, "ENOTTY"), (timeslice["retval"], timeslice["error"]))
    checks.equal("through XFER_CMD", "0xcaf00007", named["RM_CONTROL GPFIFO_SCHEDULE (TSG)"]["args"]["object"])
    checks.equal("a mapping", 65536, named["mmap nvidia-uvm"]["args"]["length"])
    checks.equal("a wait", {"descriptors": 1, "timeout_ms": 1}, named["poll nvidiactl"]["args"])


def check_alloc(calls, size):
    checks.equal("calls within an allocation", OF_ALLOC, [c["name"] for c in calls])
    memory, well, refused = calls
    checks.equal("bytes asked of the driver", size, memory["args"]["size"])
    checks.equal("bytes of the range", size, well["args"]["length"])
    checks.equal("statuses", [(0, None), (0x51, "NV_ERR_NO_MEMORY")], [(c["retval"], c.get("error")) for c in (well, refused)])
    if well["args"]["base"] == "0x7f0000000000":
        raise Failure("the block was not read again at the exit")


def test_kernel_side_calls_are_decoded_inside_of_the_calls_that_made_them(case):
    case.env.update(STAND_INS)
    result = case.trace("threads", "1", "3", options=["--kernel"])
    checks.valid(result)
    calls = kernel_side(result)
    [init] = result.calls(name="cuInit")
    check_init(inside(init, calls))
    allocations = result.calls(name="cuMemAlloc_v2")
    for allocation in allocations:
        check_alloc(inside(allocation, calls), allocation["size"])
    checks.equal("all of them", len(OF_INIT) + 3 * len(OF_ALLOC), len(calls))
    checks.equal("arguments that could not be read", 1, result.summary["missed"]["lost"]["unreadable"])
    checks.equal("the summary's count", len(calls), result.summary["driver_calls"]["count"])
    checks.equal("libraries", {"nvidia", "nvidia-uvm"}, {c["lib"] for c in calls})


def test_kernel_side_is_left_alone_without_the_option(case):
    case.env.update(STAND_INS)
    result = case.trace("threads", "1", "1")
    checks.everything(result)
    checks.equal("calls of the kernel side", 0, len(kernel_side(result)))


def test_kernel_side_is_in_recordings(case):
    case.env.update(STAND_INS)
    path = case.path("run.cuscope")
    process = case.cuscope("record", "--kernel", "-o", path, "--", Places.program("threads"), "1", "2")
    checks.equal("status of record", 0, process.wait())
    process = case.cuscope("info", path, "--json")
    checks.equal("status of info", 0, process.wait())
    told = json.loads(process.out())
    checks.equal("calls of the kernel side", len(OF_INIT) + 2 * len(OF_ALLOC), told["kernel_side"])
    checks.equal("waits from this length on are told, too", 10000, told["stacks"]["blocked_least_ns"])
    process = case.cuscope("report", path, "kernel", "--format", "json")
    checks.equal("status of report", 0, process.wait())
    made = {row["Name"]: row["Driver Calls"] for row in json.loads(process.out())["cuda_calls"]}
    checks.equal("what CUDA calls made them", {"cuInit": len(OF_INIT), "cuMemAlloc_v2": 2 * len(OF_ALLOC)}, made)


def holders_of_events(parent):
    """Children of a process that have perf events."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat") as stat:
            if int(stat.read().rpartition(")")[2].split()[1]) == parent and any("perf_event" in link for link in links_of(pid)):
                found.append(int(pid))
    return found


def test_kernel_side_of_a_command_that_outlives_its_trace_is_over(case):
    """The tracepoints are those of system calls of the whole machine: nobody is to pay for them until the command ends."""
    case.env.update(STAND_INS)
    process = case.cuscope("trace", "--kernel", "--duration", "300ms", "--", "sleep", "60")
    wait_until(lambda: "waiting for the command" in process.err(), "the end of the trace")
    wait_until(lambda: not holders_of_events(process.pid), "nobody to have events of it")
    process.stop()


def test_kernel_side_refuses_stand_ins_that_make_no_sense(case):
    case.env["CUSCOPE_NVIDIA_DEVICES"] = "1:3=radeon"
    process = case.cuscope("trace", "--kernel", "--", "true")
    checks.equal("status", 1, process.wait())
    checks.contains("what is said", "there is no device 'radeon'", process.err())


def test_kernel_side_of_a_flood_is_told_or_counted_as_lost(case):
    """Each call with a number of its own, through a ring that is too small; every second one says that it is 4 GiB long."""
    case.env.update(STAND_INS)
    made = 30000
    result = case.trace("driverflood", "/dev/null", str(made), options=["--kernel", "--ring-size", "64KiB"])
    lost = result.summary["missed"]["lost"]
    calls = [call for call in kernel_side(result) if not call["name"].startswith("open ")]
    checks.equal("calls seen and lost", made, len(calls) + lost["ring_full"])
    if len({call["name"] for call in calls}) > 1025:
        raise Failure(f"{len({call['name'] for call in calls})} names are kept")
    if len(calls) > 2100 and not any(call["name"] == "[others]" for call in calls):
        raise Failure("those beyond the limit have no name in common")
    checks.equal("parameters that lead nowhere are counted", True, lost["unreadable"] > 0)


def test_kernel_side_sees_devices_however_they_were_opened(case):
    """By any system call that opens, by a link and by another folder; and descriptors that were made of others."""
    case.env.update(STAND_INS)
    result = case.trace("devicefds", "/dev/null", case.folder, options=["--kernel"])
    calls = [call for call in kernel_side(result) if "nvidiactl" in call["name"]]
    opens = [call for call in calls if call["name"] == "open nvidiactl"]
    checks.equal("descriptors that were used", [f"ioctl 0x46/0x{0x60 + i:02x} (nvidiactl)" for i in range(10)],
                 [call["name"] for call in calls if call["name"].startswith("ioctl ")])
    checks.equal("opens", 6, len(opens))
    checks.equal("closes, but for those of many at once", 1, len([c for c in calls if c["name"] == "close nvidiactl"]))
    checks.equal("what was lost", {"ring_full": 0, "threads_full": 0},
                 {key: result.summary["missed"]["lost"][key] for key in ("ring_full", "threads_full")})
