// SPDX-License-Identifier: MIT
#include "base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For a file system that has no O_TMPFILE. */
static int open_in_tmp(void)
{
	FILE *file = tmpfile();
	int fd = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 0) : -1;

	if (file)
		fclose(file);
	return fd;
}

int temporary_open(struct err *err)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	folder = folder && *folder ? folder : "/var/tmp";
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = open_in_tmp();
	if (fd < 0)
		return err_set(err, errno,
		               "cannot make a temporary file in %s: %s (TMPDIR chooses another "
		               "place)",
		               folder, strerror(errno));
	return fd;
}
