// SPDX-License-Identifier: MIT
/*
 * seccomp [ROUNDS]: a sandboxed program, as browsers and container runtimes make them. Its filter
 * allows what the program itself needs and kills it for any other system call: also for the one,
 * number 335, that a return probe makes in a traced program since Linux 6.11.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "gpu.h"

static const int allowed[] = {
	SYS_read,
	SYS_write,
	SYS_openat,
	SYS_close,
	SYS_fstat,
	SYS_newfstatat,
	SYS_lseek,
	SYS_mmap,
	SYS_mprotect,
	SYS_munmap,
	SYS_mremap,
	SYS_brk,
	SYS_madvise,
	SYS_pread64,
	SYS_readlinkat,
	SYS_fcntl,
	SYS_ioctl,
	SYS_faccessat,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_sigaltstack,
	SYS_restart_syscall,
	SYS_futex,
	SYS_clone,
	SYS_clone3,
	SYS_set_robust_list,
	SYS_set_tid_address,
	SYS_rseq,
	SYS_exit,
	SYS_exit_group,
	SYS_getpid,
	SYS_getppid,
	SYS_gettid,
	SYS_tgkill,
	SYS_getrandom,
	SYS_prctl,
	SYS_prlimit64,
	SYS_sched_yield,
	SYS_sched_getaffinity,
	SYS_nanosleep,
	SYS_clock_nanosleep,
	SYS_clock_gettime,
	SYS_memfd_create,
	SYS_ftruncate,
	SYS_sysinfo,
	SYS_uname,
	SYS_getcwd,
	SYS_getuid,
	SYS_geteuid,
	SYS_gettimeofday,
	SYS_writev,
	SYS_getdents64,
#ifdef __x86_64__
	SYS_open,
	SYS_stat,
	SYS_access,
	SYS_readlink,
	SYS_arch_prctl,
#endif
};

#define N_ALLOWED (sizeof(allowed) / sizeof(allowed[0]))

static void install_filter(void)
{
	struct sock_filter code[2 * N_ALLOWED + 2];
	size_t n = 0;
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < N_ALLOWED; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned int)allowed[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	struct sock_fprog program = { .len = (unsigned short)n, .filter = code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		sample_die("no seccomp filter: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20;
	struct gpu gpu;
	install_filter();
	gpu_open(&gpu);
	gpu_work(&gpu, rounds);
	gpu_close(&gpu);
	sample_finish();
	return 0;
}
