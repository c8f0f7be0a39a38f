// SPDX-License-Identifier: MIT
#include "agent/inject_seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/array.h"
#include "base/xalloc.h"

#define FILTERS_MAX 64 /* a container's, a service's and a sandbox's are three */

#if defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#endif

/* ---- running one ----------------------------------------------------------------------------- */

struct machine {
	uint32_t a, x;
	uint32_t memory[BPF_MEMWORDS];
};

static uint32_t compute(uint16_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_MOD:
		return b ? a % b : 0;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	default:
		return -a; /* BPF_NEG */
	}
}

static bool compare(uint16_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	default:
		return a & b; /* BPF_JSET */
	}
}

/* Loads and stores; false for what seccomp has not. */
static bool move(struct machine *m, const struct sock_filter *insn, const struct seccomp_data *data)
{
	bool in_memory = insn->k < BPF_MEMWORDS;

	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		if (insn->k % 4 || insn->k >= sizeof(*data))
			return false;
		memcpy(&m->a, (const char *)data + insn->k, sizeof(m->a));
		return true;
	case BPF_LD | BPF_W | BPF_LEN:
		m->a = sizeof(*data);
		return true;
	case BPF_LDX | BPF_W | BPF_LEN:
		m->x = sizeof(*data);
		return true;
	case BPF_LD | BPF_IMM:
		m->a = insn->k;
		return true;
	case BPF_LDX | BPF_IMM:
		m->x = insn->k;
		return true;
	case BPF_LD | BPF_MEM:
		m->a = in_memory ? m->memory[insn->k] : 0;
		return in_memory;
	case BPF_LDX | BPF_MEM:
		m->x = in_memory ? m->memory[insn->k] : 0;
		return in_memory;
	case BPF_ST:
	case BPF_STX:
		if (in_memory)
			m->memory[insn->k] = insn->code == BPF_ST ? m->a : m->x;
		return in_memory;
	case BPF_MISC | BPF_TAX:
		m->x = m->a;
		return true;
	case BPF_MISC | BPF_TXA:
		m->a = m->x;
		return true;
	default:
		return false;
	}
}

uint32_t seccomp_answer(const struct sock_filter *filter, size_t n, const struct seccomp_data *data)
{
	struct machine m = { 0 };

	for (size_t i = 0; i < n; i++) { /* jumps go forward only */
		const struct sock_filter *insn = &filter[i];
		uint32_t operand = BPF_SRC(insn->code) == BPF_X ? m.x : insn->k;

		switch (BPF_CLASS(insn->code)) {
		case BPF_RET:
			return BPF_RVAL(insn->code) == BPF_A ? m.a : insn->k;
		case BPF_ALU:
			m.a = compute(insn->code, m.a, operand);
			break;
		case BPF_JMP:
			if (BPF_OP(insn->code) == BPF_JA)
				i += insn->k;
			else
				i += compare(insn->code, m.a, operand) ? insn->jt : insn->jf;
			break;
		default:
			if (!move(&m, insn, data))
				return SECCOMP_RET_KILL_PROCESS;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* ---- what will be called --------------------------------------------------------------------- */

/* By the code, the steps, and the loader for a library; arguments as filters may look at them. */
static const struct needed {
	const char *name;
	int call;
	uint64_t arg[6];
} needed[] = {
	{ "rt_sigprocmask", SYS_rt_sigprocmask, { 0, 0, 0, 8 } },
	{ "rt_sigpending", SYS_rt_sigpending, { 0, 8 } },
	{ "rt_sigaction", SYS_rt_sigaction, { 1, 0, 0, 8 } },
	{ "mmap",
	  SYS_mmap,
	  { 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1ull } },
	{ "memfd_create", SYS_memfd_create, { 0, MFD_CLOEXEC } },
	{ "socketpair", SYS_socketpair, { AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC } },
	{ "close", SYS_close, { 3 } },
	{ "getpid", SYS_getpid, { 0 } },
	{ "openat", SYS_openat, { (uint32_t)AT_FDCWD, 0, O_RDONLY | O_CLOEXEC } },
	{ "read", SYS_read, { 3 } },
	{ "pread64", SYS_pread64, { 3 } },
	{ "newfstatat", SYS_newfstatat, { 3, 0, 0, AT_EMPTY_PATH } },
	{ "fstat", SYS_fstat, { 3 } },
	{ "mmap of code",
	  SYS_mmap,
	  { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, 3 } },
	{ "mprotect", SYS_mprotect, { 4096, 4096, PROT_READ } },
	{ "munmap", SYS_munmap, { 4096, 4096 } },
	{ "futex", SYS_futex, { 0, 128 } },
	{ "clock_gettime", SYS_clock_gettime, { CLOCK_REALTIME } },
	{ "sendto", SYS_sendto, { 3, 0, 8, MSG_NOSIGNAL } },
};

/* Whether the thread would not live on as if nothing had been. */
static bool is_deadly(uint32_t answer)
{
	uint32_t action = answer & SECCOMP_RET_ACTION_FULL;

	return action == SECCOMP_RET_KILL_PROCESS || action == SECCOMP_RET_KILL_THREAD ||
	       action == SECCOMP_RET_TRAP;
}

static const char *forbidden_by(const struct sock_filter *filter, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		struct seccomp_data data = { .nr = needed[i].call, .arch = NATIVE_ARCH };

		memcpy(data.args, needed[i].arg, sizeof(data.args));
		if (is_deadly(seccomp_answer(filter, n, &data)))
			return needed[i].name;
	}
	return NULL;
}

/* ---- those of a thread ----------------------------------------------------------------------- */

static bool lets_read(const struct sock_filter *filter, size_t n)
{
	const struct seccomp_data data = { .nr = SYS_process_vm_readv,
		                           .arch = NATIVE_ARCH,
		                           .args = { 1, 4096, 1, 4096, 1, 0 } };
	uint32_t action = seccomp_answer(filter, n, &data) & SECCOMP_RET_ACTION_FULL;

	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

bool seccomp_may_read(pid_t tid, unsigned mode)
{
	struct sock_filter *filter;
	bool may = true;
	long n = 0;

	if (mode != SECCOMP_MODE_FILTER)
		return mode == SECCOMP_MODE_DISABLED;
	for (long i = 0; i < FILTERS_MAX && may; i++) {
		n = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, i, NULL);
		if (n < 0 || n > BPF_MAXINSNS)
			break;
		filter = xcalloc((size_t)n + 1, sizeof(*filter));
		may = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, i, filter) == n &&
		      lets_read(filter, (size_t)n);
		free(filter);
	}
	return may && n < 0 && errno == ENOENT; /* that was the last one */
}

int seccomp_check(pid_t pid, pid_t tid, unsigned mode, struct err *err)
{
	struct sock_filter *filter = NULL;
	const char *forbidden = NULL;
	long n = 0;

	if (mode == SECCOMP_MODE_STRICT)
		return err_set(err, EPERM,
		               "process %d runs in seccomp's strict mode, in which it can load "
		               "nothing",
		               pid);
	if (mode == SECCOMP_MODE_DISABLED)
		return 0;
	for (long i = 0; i < FILTERS_MAX && !forbidden; i++) {
		n = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, i, NULL);
		if (n < 0 || n > BPF_MAXINSNS)
			break;
		filter = xcalloc((size_t)n + 1, sizeof(*filter));
		if (ptrace(PTRACE_SECCOMP_GET_FILTER, tid, i, filter) == n)
			forbidden = forbidden_by(filter, (size_t)n);
		free(filter);
	}
	if (forbidden)
		return err_set(
			err, EPERM,
			"process %d has a seccomp filter that would end it for %s, which "
			"loading a library takes; start it with cuscope, or without the filter",
			pid, forbidden);
	if (n < 0 && errno == ENOENT)
		return 0;
	return err_set(err, EPERM,
	               "process %d has a seccomp filter that cannot be read (%s), and might be "
	               "ended by it; run as root outside of containers",
	               pid, strerror(errno));
}
