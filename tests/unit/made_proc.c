// SPDX-License-Identifier: MIT
#include "unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "made_proc.h"

static char folder[] = "/tmp/cuscope-proc-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	return remove(path);
}

const char *made_proc_begin(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	assert_non_null(mkdtemp(folder));
	chmod(folder, 0755);
	made_proc_write("passwd", "root:x:0:0::/:/bin/sh\nann:x:1000:1000::/:/bin/sh\n", 49);
	return folder;
}

void made_proc_end(void)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void made_proc_write(const char *path, const void *data, size_t bytes)
{
	char whole[512];
	int fd;

	snprintf(whole, sizeof(whole), "%s/%s", folder, path);
	for (char *slash = whole + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(whole, 0755);
		*slash = '/';
	}
	unlink(whole);
	fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, bytes), bytes);
	close(fd);
}

static void write_of(pid_t pid, const char *name, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	made_proc_write(path, text, strlen(text));
}

static void write_words(pid_t pid, const char *name, const char *words)
{
	char path[64], text[4096];
	size_t len;

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	len = (size_t)snprintf(text, sizeof(text), "%s", words ? words : "");
	for (char *at = text; (at = strchr(at, '|'));)
		*at++ = '\0';
	made_proc_write(path, text, len + (len > 0));
}

void made_proc_add(const struct made_process *process)
{
	char text[1024];

	snprintf(text, sizeof(text),
	         "%d (a ) b) S 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 %lu 1 1 1 1 1 1 1 1 1 1 "
	         "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 %d %d %d %d 0\n",
	         process->pid, process->start_time, 1, 2, 1000, 5000);
	write_of(process->pid, "stat", text);
	snprintf(text, sizeof(text), "Name:\tx\nUid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\n",
	         process->uid, process->uid, process->uid, process->uid, process->uid, process->uid,
	         process->uid, process->uid);
	write_of(process->pid, "status", text);
	write_of(process->pid, "comm", process->comm ? process->comm : "made\n");
	write_of(process->pid, "cgroup", process->cgroup ? process->cgroup : "0::/\n");
	write_words(process->pid, "environ", process->environ);
	write_words(process->pid, "cmdline", process->cmdline);
}

void made_proc_remove(pid_t pid)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%d", folder, pid);
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
