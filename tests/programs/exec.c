// SPDX-License-Identifier: MIT
/*
 * exec: works (4 rounds), runs itself in a child (7 rounds), and then becomes itself again under
 * the same pid (11 rounds). The working process, the child and the successor each write their
 * counts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"

static void become(const char *mode)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (len > 0) {
		path[len] = '\0';
		execl(path, path, mode, (char *)NULL);
	}
	sample_die("cannot exec: %s", strerror(errno));
}

static void work(int rounds)
{
	struct gpu gpu;
	gpu_open(&gpu);
	gpu_work(&gpu, rounds);
	sample_finish();
}

int main(int argc, char **argv)
{
	int status;
	if (argc > 1) {
		work(strcmp(argv[1], "child") == 0 ? 7 : 11);
		return 0;
	}
	work(4);
	pid_t pid = fork();
	if (pid == 0)
		become("child");
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		sample_die("the child failed");
	become("successor");
	return 1;
}
