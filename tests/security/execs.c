// SPDX-License-Identifier: MIT
/*
 * execs FILE: executes another program, with FILE open, which is closed by that. Of a file system
 * whose server does not answer then, the exec is never over.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 2 || open(argv[1], O_RDONLY | O_CLOEXEC) < 0) {
		perror("execs");
		return 1;
	}
	execl("/bin/sleep", "sleep", "100", (char *)NULL);
	perror("execs");
	return 1;
}
