// SPDX-License-Identifier: MIT
#include "stack/lines/debug_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/folder.h"
#include "base/rights.h"
#include "base/worker.h"
#include "base/xalloc.h"
#include "probe/mounts.h"
#include "stack/lines/debug_file.h"

#define CPU_SECONDS 60
#define LEAVING_MS  200
#define OWN_WORDS   8

/* Of ours, what a client of HTTP wants to know besides. */
static const char *const handed_on[] = {
	"http_proxy", "https_proxy", "HTTPS_PROXY",  "all_proxy",     "ALL_PROXY",
	"no_proxy",   "NO_PROXY",    "SSL_CERT_DIR", "SSL_CERT_FILE",
};

struct debug_fetcher {
	int program;
	int memory; /* -1: into a user's cache */
	uid_t user;
	gid_t group;
	char *environment[OWN_WORDS + ARRAY_SIZE(handed_on) + 1];
};

/* ---- beginning and end --------------------------------------------------------------------- */

bool debug_fetch_is_asked(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && urls[strspn(urls, " \t\n")];
}

/* A negative *fd: it is there, and others than root can change it. */
static const char *open_program(int *fd)
{
	static const char *const paths[] = { "/usr/bin/debuginfod-find",
		                             "/usr/local/bin/debuginfod-find" };
	const char *refused = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		*fd = roots_path_open(paths[i]);
		if (*fd >= 0)
			return paths[i];
		if (!refused && !access(paths[i], F_OK))
			refused = paths[i];
	}
	return refused;
}

const char *debug_fetch_program(bool *refused)
{
	int fd = -1;
	const char *path = open_program(&fd);

	*refused = path && fd < 0;
	if (fd >= 0)
		close(fd);
	return path;
}

static bool configure(int fs, const char *key, const char *value)
{
	return !syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, value, 0);
}

/* Mounted nowhere: a descriptor is the only way there. */
static int make_memory(uid_t user, gid_t group)
{
	char owner[16], owner_group[16], size[24];
	int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC), fd = -1;

	if (fs < 0)
		return -1;
	snprintf(owner, sizeof(owner), "%u", user);
	snprintf(owner_group, sizeof(owner_group), "%u", group);
	snprintf(size, sizeof(size), "%lu", DEBUG_FETCH_FILE_BYTES);
	if (configure(fs, "uid", owner) && configure(fs, "gid", owner_group) &&
	    configure(fs, "mode", "0700") && configure(fs, "size", size) &&
	    configure(fs, "nr_inodes", "4096") &&
	    !syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
		                  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	close(fs);
	return fd;
}

static void make_environment(struct debug_fetcher *fetcher, const char *cache)
{
	char **to = fetcher->environment;

	*to++ = xstrdup("PATH=/usr/bin:/bin");
	*to++ = xasprintf("DEBUGINFOD_URLS=%s", getenv("DEBUGINFOD_URLS"));
	*to++ = xasprintf("DEBUGINFOD_CACHE_PATH=%s", cache);
	*to++ = xasprintf("DEBUGINFOD_MAXTIME=%d", DEBUG_FETCH_MS / 1000);
	*to++ = xasprintf("DEBUGINFOD_TIMEOUT=%d", DEBUG_FETCH_MS / 1000);
	*to++ = xasprintf("DEBUGINFOD_MAXSIZE=%lu", DEBUG_FETCH_FILE_BYTES);
	*to++ = xstrdup("DEBUGINFOD_RETRY_LIMIT=1");
	for (size_t i = 0; i < ARRAY_SIZE(handed_on); i++) {
		const char *value = getenv(handed_on[i]);

		if (value)
			*to++ = xasprintf("%s=%s", handed_on[i], value);
	}
}

struct debug_fetcher *debug_fetcher_new(const char **why)
{
	struct debug_fetcher *fetcher = xcalloc(1, sizeof(*fetcher));
	bool sudo = folder_sudo_user(&fetcher->user, &fetcher->group) && fetcher->user;
	char *cache = sudo || geteuid() ? debug_file_cache() : NULL;

	*why = NULL;
	fetcher->memory = -1;
	if (!sudo)
		fetcher->user = fetcher->group = RIGHTS_NOBODY;
	if (open_program(&fetcher->program) && fetcher->program < 0)
		*why = ": DEBUGINFOD_URLS is set, but " DEBUG_FETCH_REFUSED;
	else if (fetcher->program < 0)
		*why = ": DEBUGINFOD_URLS is set, but debuginfod-find is not installed "
		       "(debuginfod, elfutils-debuginfod-client)";
	else if (!cache)
		fetcher->memory = make_memory(fetcher->user, fetcher->group);
	if (!*why && !cache && fetcher->memory < 0)
		*why = ": a file system in memory to fetch them into is refused";
	if (!*why)
		make_environment(fetcher, cache ? cache : "/proc/self/fd/3");
	free(cache);
	if (!*why)
		return fetcher;
	debug_fetcher_free(fetcher);
	return NULL;
}

void debug_fetcher_free(struct debug_fetcher *fetcher)
{
	if (!fetcher)
		return;
	if (fetcher->program >= 0)
		close(fetcher->program);
	if (fetcher->memory >= 0)
		close(fetcher->memory);
	for (char **word = fetcher->environment; *word; word++)
		free(*word);
	free(fetcher);
}

/* ---- fetching ------------------------------------------------------------------------------ */

static int run_to_end(const struct debug_fetcher *fetcher, char *const argv[], unsigned ms,
                      const bool *stop)
{
	const struct worker_command command = { .program = fetcher->program,
		                                .argv = argv,
		                                .environment = fetcher->environment,
		                                .fds = { -1, -1, -1, fetcher->memory },
		                                .nice = 10,
		                                .cpu_s = CPU_SECONDS,
		                                .file_bytes = DEBUG_FETCH_FILE_BYTES,
		                                .user = fetcher->user,
		                                .group = fetcher->group };
	struct worker worker;
	int rc = worker_run(&worker, &command);

	if (rc) /* it has ended and another thread was told, or it ends by itself */
		return rc == -ESRCH ? 0 : rc;
	rc = worker_wait(worker.pidfd, ms, stop);
	if (!worker_kill(&worker, LEAVING_MS, NULL))
		close(worker.pidfd);
	return rc;
}

static int open_fetched(const struct debug_fetcher *fetcher, const char *hex, const uint8_t *id,
                        size_t id_bytes)
{
	int folder, fd;

	if (fetcher->memory < 0)
		return debug_file_cached(id, id_bytes);
	folder = openat(fetcher->memory, hex, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = folder < 0 ? -1 : openat(folder, "debuginfo", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (folder >= 0)
		close(folder);
	return fd;
}

int debug_fetch(struct debug_fetcher *fetcher, const uint8_t *id, size_t id_bytes, unsigned ms,
                const bool *stop)
{
	char hex[2 * DEBUG_ID_MAX + 1], name[] = "debuginfod-find", what[] = "debuginfo";
	char *const argv[] = { name, what, hex, NULL };
	int rc, fd;

	if (!debug_file_hex(id, id_bytes, hex))
		return -ENOENT;
	rc = run_to_end(fetcher, argv, ms, stop);
	if (rc)
		return rc;
	fd = open_fetched(fetcher, hex, id, id_bytes);
	if (fd < 0)
		return -ENOENT;
	if (debug_file_is_of(fd, id, id_bytes))
		return fd;
	close(fd);
	return -EBADMSG;
}
