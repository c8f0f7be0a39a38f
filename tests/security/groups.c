// SPDX-License-Identifier: MIT
/*
 * groups GROUPS CHILDREN: processes of a user's that have so many groups, which the kernel writes
 * to whoever asks for a line of their status.
 * groups descriptors CHILDREN: that have 19,900 descriptors of a file in 900 folders, whose path
 * the kernel makes for whoever asks for a link. They are made in the working folder.
 *
 * All call cuInit, and wait for the end of the input.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define USER        1234
#define DESCRIPTORS 19900
#define FOLDERS     900

static int become(size_t n)
{
	gid_t *groups = calloc(n, sizeof(*groups));

	for (size_t i = 0; i < n; i++)
		groups[i] = (gid_t)(4000000000 + i);
	return setgroups(n, groups) || setgid(USER) || setuid(USER);
}

static int open_deep(void)
{
	const struct rlimit files = { DESCRIPTORS + 64, DESCRIPTORS + 64 };
	int fd;

	if (setrlimit(RLIMIT_NOFILE, &files))
		return -1;
	for (int i = 0; i < FOLDERS; i++)
		if (mkdir("d", 0755) || chdir("d"))
			return -1;
	fd = open("file", O_RDWR | O_CREAT | O_EXCL, 0600);
	for (int i = 1; i < DESCRIPTORS && fd >= 0; i++)
		if (dup(fd) < 0)
			return -1;
	return fd;
}

int main(int argc, char **argv)
{
	int (*init)(unsigned flags);
	void *driver;
	char none;

	if (argc != 3 || (!strcmp(argv[1], "descriptors") && open_deep() < 0) ||
	    become((size_t)atol(argv[1]))) {
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
