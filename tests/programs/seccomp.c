// SPDX-License-Identifier: MIT
/*
 * seccomp: allows itself the system calls that it and the libraries need, the process being killed
 * on any other, then makes CUDA calls, before and after.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "sample.h"

static const int allowed[] = {
	SYS_read,
	SYS_write,
	SYS_close,
	SYS_fstat,
	SYS_mmap,
	SYS_munmap,
	SYS_mprotect,
	SYS_brk,
	SYS_futex,
	SYS_openat,
	SYS_newfstatat,
	SYS_exit,
	SYS_exit_group,
	SYS_rt_sigreturn,
	SYS_rt_sigprocmask,
	SYS_madvise,
	SYS_getpid,
	SYS_gettid,
	SYS_clock_gettime,
	SYS_clock_nanosleep,
	SYS_nanosleep,
	SYS_clone3,
	SYS_clone,
	SYS_set_robust_list,
	SYS_rseq,
	SYS_sched_yield,
	SYS_lseek,
	SYS_getrandom,
	SYS_mremap,
	SYS_prctl,
	SYS_restart_syscall,
	SYS_tgkill,
	SYS_sched_getaffinity,
};

#define COUNT (sizeof(allowed) / sizeof(allowed[0]))

static void restrict_self(void)
{
	struct sock_filter filter[COUNT + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { .len = COUNT + 3, .filter = filter };

	for (unsigned i = 0; i < COUNT; i++)
		filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
		                                             (unsigned)allowed[i],
		                                             (unsigned char)(COUNT - i), 0);
	filter[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	filter[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		sample_fail("no filter: %d", errno);
}

static void use(struct kernels *kernels, size_t bytes)
{
	struct shape shape = { { 3, 1, 1 }, { 32, 1, 1 }, 0 };
	CUdeviceptr memory;

	DRIVER(cuMemAlloc_v2, &memory, bytes);
	count_alloc("device", bytes);
	sample_launch(kernels->tick, TICK_NAME, shape, NULL);
	DRIVER(cuCtxSynchronize);
	DRIVER(cuMemFree_v2, memory);
	count_free("device", bytes);
}

int main(void)
{
	struct kernels kernels;

	sample_context();
	sample_kernels(&kernels);
	use(&kernels, 1000);
	restrict_self();
	for (size_t i = 0; i < 10; i++)
		use(&kernels, 2000 + i);
	return sample_end();
}
