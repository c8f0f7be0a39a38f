// SPDX-License-Identifier: MIT
#include "stack/lines/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPABILITY_MAX 63

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
