/* SPDX-License-Identifier: MIT */
/* From when on a finding is told. One table, so that they can be weighed against each other. */
#ifndef CUSCOPE_REPORT_FINDINGS_FINDINGS_LIMITS_H
#define CUSCOPE_REPORT_FINDINGS_FINDINGS_LIMITS_H

/* ---- of all rules ---- */

/* Of the process's time: what costs less is not worth a change of the program. */
#define LIMIT_LOST_SHARE 0.01

/* Launches before a loop is spoken of. The last half of the launches or more counts there, from the
 * last but one power of two on. That leaves out what happens once, while caches and pools fill:
 * PyTorch allocates between kernels in its first step and then never again. */
#define LIMIT_LOOP_LAUNCHES 64

/* Rounds of a loop that show the same: fewer can be chance. */
#define LIMIT_LOOP_ROUNDS 10

/* ---- copies ---- */

/* Below, the time of a copy is that of asking for it: at 25 GB/s 64 KiB take 2.6 us. */
#define LIMIT_SMALL_COPY (64 << 10)

/* Small copies in a row, of one thread in one direction with nothing between them: two or three
 * are what a kernel's arguments need. */
#define LIMIT_SMALL_ROW 4

/* ---- waiting ---- */

/* Polls in a row by one thread: fewer are a look, not a wait. */
#define LIMIT_POLLS 16

/* ---- kernels ---- */

/* A launch costs the host 2 to 5 us, and through a framework 10: kernels that run no longer leave
 * the GPU waiting for the host. */
#define LIMIT_SHORT_KERNEL_NS 10000

#define LIMIT_SHORT_KERNELS 200 /* of them */
#define LIMIT_SHORT_SHARE   0.5 /* of all kernels */

/* Longer, the host did something else than launching: that is the report gaps' business. */
#define LIMIT_LAUNCH_GAP_NS 1000000

/* From calls alone: launches of a process, their share of its time, and the share of it at most
 * that its threads wait for the GPU. A launch that takes longer than LIMIT_BLOCKED_NS waits for
 * room in a full queue, so the GPU is behind and not the host. A small transformer trained by
 * PyTorch on an H200, whose GPU is idle 83 % of the time, spends 11 % of the host's in launches. */
#define LIMIT_MANY_LAUNCHES 1000
#define LIMIT_LAUNCH_SHARE  0.05
#define LIMIT_WAIT_SHARE    0.1
#define LIMIT_BLOCKED_NS    50000

/* Launches in a row that make a sequence, and the share of launches that repeat one. */
#define LIMIT_SEQUENCE      8
#define LIMIT_REPEATS_SHARE 0.5

/* ---- streams and overlap ---- */

/* Changes between threads or streams, of all work: forward and backward threads of PyTorch hand
 * over twice a step of hundreds of launches, and depend on each other. */
#define LIMIT_CHANGES_SHARE 0.05

/* Share of the time of copies, or of communication, in which kernels ran as well. */
#define LIMIT_COPY_OVERLAP          0.1
#define LIMIT_COMMUNICATION_OVERLAP 0.5

/* Use of a window below which it is told: nsys' gpu_time_util has the same. */
#define LIMIT_USE 0.5

/* Use of a window that counts as none: what an edge of a bin can bring in. */
#define LIMIT_NO_USE 0.002

/* Share of the windows with work below which those without count, too. */
#define LIMIT_WINDOWS_WITH_WORK (1.0 / 3)

/* ---- the host ---- */

/* Of the host's time in gaps: a wait that is less of it is not what the GPU waits for. */
#define LIMIT_HOST_WAIT_SHARE 0.2

/* ---- metrics of GPUs ---- */

/* Samples in which the GPU was busy: two seconds of them, at ten a second. */
#define LIMIT_METRICS_SAMPLES 20

/* Percent of the time that it has to be busy for: else what it is bound by is not its problem. */
#define LIMIT_BUSY 50.0

/* Percent of what a part can do, from which on it is what the GPU is bound by. On an H200, a matrix
 * product had 93 of the tensor cores in bf16 and 77 of the FP32 pipe, a sum 87 of the memory. */
#define LIMIT_BOUND 60.0

/* Below, a part is as good as unused. */
#define LIMIT_UNUSED 20.0

/* With all parts unused: busy as good as always, and multiprocessors that have a warp. */
#define LIMIT_FULLY_BUSY 90.0
#define LIMIT_FEW_SM     50.0

/* Bytes a second in one direction, beside parts that are unused: 60 % of 16 lanes of PCIe 3, and a
 * third of two links of NVLink 4. From the last one on a rate is worth to be said. */
#define LIMIT_PCIE_RATE   10e9
#define LIMIT_NVLINK_RATE 16e9
#define LIMIT_RATE_SAID   1e9

#endif
