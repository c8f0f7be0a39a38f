// SPDX-License-Identifier: MIT
/* Of inject.h: what can be known before any process is entered. */
#include "agent/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define SYS_PTRACE 19 /* linux/capability.h */

static bool has_capability(int number)
{
	unsigned long long mask = 0;
	char text[256];
	FILE *status = fopen("/proc/self/status", "re");

	while (status && fgets(text, sizeof(text), status) &&
	       sscanf(text, "CapEff: %llx", &mask) != 1)
		;
	if (status)
		fclose(status);
	return mask >> number & 1;
}

/* Yama's strictest setting, which stays until the machine is booted. */
static bool is_forbidden(void)
{
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope = '0';
	bool known = fd >= 0 && read(fd, &scope, 1) == 1;

	if (fd >= 0)
		close(fd);
	return known && scope == '3';
}

int inject_allowed(struct err *err)
{
#ifndef __x86_64__
	return err_set(err, ENOTSUP, "is there on x86-64 only");
#endif
	if (!has_capability(SYS_PTRACE))
		return err_set(err, EPERM, "needs CAP_SYS_PTRACE: run as root (sudo)");
	if (is_forbidden())
		return err_set(err, EPERM,
		               "needs ptrace, which is forbidden here until the next boot "
		               "(kernel.yama.ptrace_scope is 3): start them by cuscope");
	return 0;
}
