// SPDX-License-Identifier: MIT
/*
 * groups GROUPS CHILDREN: processes of a user's that have so many groups, which the kernel writes
 * to whoever asks for a line of their status. All call cuInit, and wait for the end of the input.
 */
#include <dlfcn.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define USER 1234

static int become(size_t n)
{
	gid_t *groups = calloc(n, sizeof(*groups));

	for (size_t i = 0; i < n; i++)
		groups[i] = (gid_t)(4000000000 + i);
	return setgroups(n, groups) || setgid(USER) || setuid(USER);
}

int main(int argc, char **argv)
{
	int (*init)(unsigned flags);
	void *driver;
	char none;

	if (argc != 3 || become((size_t)atol(argv[1]))) {
		perror("groups");
		return 1;
	}
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	*(void **)&init = driver ? dlsym(driver, "cuInit") : NULL;
	if (!init)
		return 1;
	init(0);
	for (int i = 0; i < atoi(argv[2]); i++) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			init(0);
			pause();
		}
	}
	puts("ready");
	fflush(stdout);
	while (read(0, &none, 1) > 0)
		;
	return 0;
}
