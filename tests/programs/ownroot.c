// SPDX-License-Identifier: MIT
/* ownroot COMMAND [ARG...]: a command in a mount namespace of its own, see own_root.h; status 77
 * where there is none. */
#include <stdio.h>

#include "own_root.h"

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (own_root()) {
		perror("ownroot: no mounts of a process's own here");
		return 77;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
