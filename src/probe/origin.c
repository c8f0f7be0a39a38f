// SPDX-License-Identifier: MIT
#include "probe/origin.h"

void origin_save(struct origin *origin)
{
	getrlimit(RLIMIT_NOFILE, &origin->files);
	getrlimit(RLIMIT_MEMLOCK, &origin->locked_memory);
	sigaction(SIGPIPE, NULL, &origin->pipe);
	sigaction(SIGCHLD, NULL, &origin->child);
	sigaction(SIGXFSZ, NULL, &origin->file_size);
	sigprocmask(SIG_SETMASK, NULL, &origin->mask);
}

void origin_restore(const struct origin *origin)
{
	setrlimit(RLIMIT_NOFILE, &origin->files);
	setrlimit(RLIMIT_MEMLOCK, &origin->locked_memory);
	sigaction(SIGPIPE, &origin->pipe, NULL);
	sigaction(SIGCHLD, &origin->child, NULL);
	sigaction(SIGXFSZ, &origin->file_size, NULL);
	sigprocmask(SIG_SETMASK, &origin->mask, NULL);
}
