// SPDX-License-Identifier: MIT
/*
 * Kernels before 5.15 do not tell a program which of its probes was hit. There every function gets
 * a program of its own, a dozen instructions long: it leaves the function's cookie in the scratch
 * of this CPU (probe handlers run there with preemption off) and goes on to call_enter.
 */
#include "probe/programs.h"

#include <linux/bpf.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/array.h"

#define INSN(op, d, s, o, i)                                                                       \
	((struct bpf_insn){                                                                        \
		.code = (op), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (int)(i) })
#define MOVE(d, s)     INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define MOVE_IMM(d, i) INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define CALL(helper)   INSN(BPF_JMP | BPF_CALL, 0, 0, 0, helper)
#define LOAD_64(d, s, value)                                                                       \
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, s, 0, (uint32_t)(value)),                               \
		INSN(0, 0, 0, 0, (uint64_t)(value) >> 32)

/*
 * Loads a stub that stores `cookie` in the first word of per-CPU map `scratch_fd` and tail-calls
 * slot 0 of program array `exit_fd`, whose programs are of the same type. Returns a descriptor that
 * the caller closes, or -errno.
 */
static int stub_load(bool tracepoint, int scratch_fd, int exit_fd, uint64_t cookie)
{
	const struct bpf_insn insns[] = {
		MOVE(6, 1),
		INSN(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0), /* key 0 */
		LOAD_64(1, BPF_PSEUDO_MAP_FD, scratch_fd),
		MOVE(2, 10),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),
		CALL(BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 8, 0), /* no scratch: leave */
		LOAD_64(1, 0, cookie),
		INSN(BPF_STX | BPF_MEM | BPF_DW, 0, 1, 0, 0),
		MOVE(1, 6),
		LOAD_64(2, BPF_PSEUDO_MAP_FD, exit_fd),
		MOVE_IMM(3, 0),
		CALL(BPF_FUNC_tail_call),
		MOVE_IMM(0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	return bpf_prog_load(tracepoint ? BPF_PROG_TYPE_TRACEPOINT : BPF_PROG_TYPE_KPROBE,
	                     "cuscope_stub", "Dual MIT/GPL", insns, ARRAY_SIZE(insns), NULL);
}

int programs_stub(struct programs *p, const char *exit, uint64_t cookie, struct err *err)
{
	int fd = stub_load(!strcmp(exit, "trace_exit"), programs_map(p, "scratch"),
	                   programs_map(p, exit), cookie);

	return fd < 0 ? err_set(err, fd, "loading a stub: %s", strerror(-fd)) : fd;
}
