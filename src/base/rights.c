// SPDX-License-Identifier: MIT
#include "base/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"

#define CAPABILITY_MAX 63
#define DESCRIPTORS    16

int rights_limit(int which, uint64_t most)
{
	const struct rlimit limit = { most, most };

	return setrlimit(which, &limit) ? -errno : 0;
}

static int become(uid_t real, uid_t user, gid_t group)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (geteuid() == 0) {
		for (int capability = 0; capability <= CAPABILITY_MAX; capability++)
			prctl(PR_CAPBSET_DROP, capability, 0, 0, 0); /* those that there are */
		if (setgroups(0, NULL) || setresgid(group, group, group) ||
		    setresuid(real, user, user))
			return -errno;
	}
	return syscall(SYS_capset, &head, none) ? -errno : 0;
}

int rights_become(uid_t user, gid_t group)
{
	return become(user, user, group);
}

/* ptrace(2) and /proc want all three to be the caller's. */
int rights_become_unseen(void)
{
	return become(RIGHTS_NOBODY, RIGHTS_NOBODY_ELSE, RIGHTS_NOBODY);
}

int rights_close(void)
{
	if (prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_PDEATHSIG, SIGKILL) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return 0;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int limit_resources(uint64_t bytes)
{
	int rc = rights_limit(RLIMIT_FSIZE, 0);

#ifndef __SANITIZE_ADDRESS__ /* which has terabytes of address space */
	rc = rc ? rc : rights_limit(RLIMIT_AS, bytes);
#endif
	rc = rc ? rc : rights_limit(RLIMIT_CORE, 0);
	rc = rc ? rc : rights_limit(RLIMIT_NPROC, 0);
	return rc ? rc : rights_limit(RLIMIT_NOFILE, DESCRIPTORS);
}

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1),                                    \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Memory, but none that is run. The third argument has the protection. */
#define ALLOW_DATA(name)                                                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 4),                                    \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),        \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),                             \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),                                      \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

#ifndef __SANITIZE_ADDRESS__ /* which asks for more */
#ifdef __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE AUDIT_ARCH_X86_64
#endif

static const struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(read),
	ALLOW(pread64),
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(write),
	ALLOW(lseek),
	ALLOW(fstat),
	ALLOW(newfstatat), /* what fstat is in glibc */
	ALLOW(fcntl),
	ALLOW(close),
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(madvise),
	ALLOW(brk),
	ALLOW(futex),
	ALLOW(getrandom),
	ALLOW(sysinfo), /* qsort of glibc asks how much memory there is */
	ALLOW(clock_gettime),
	ALLOW(setitimer),
	ALLOW(exit),
	ALLOW(exit_group),
	ALLOW_DATA(mmap),
	ALLOW_DATA(mprotect),
	/* Libraries ask for more than they need: for other files, say. */
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
};

static int filter_calls(void)
{
	const struct sock_fprog program = { ARRAY_SIZE(filter), (struct sock_filter *)filter };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}
#else
static int filter_calls(void)
{
	return 0;
}
#endif

int rights_give_up(uint64_t bytes)
{
	int rc = limit_resources(bytes);

	rc = rc ? rc : rights_become(RIGHTS_NOBODY, RIGHTS_NOBODY);
	rc = rc ? rc : rights_close();
	return rc ? rc : filter_calls();
}
