// SPDX-License-Identifier: MIT
#include "stack/lines/debug_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/folder.h"
#include "base/rights.h"
#include "base/xalloc.h"
#include "probe/roots_path.h"
#include "stack/lines/debug_file.h"

#define CPU_SECONDS 60
#define DESCRIPTORS 64
#define LOOK_MS     50
#define LEAVING_MS  200
#define MEMORY_FD   3  /* of the process: the file system in memory */
#define HIGH_FD     16 /* and from where on it has what it needs meanwhile */
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
	snprintf(size, sizeof(size), "%llu", (unsigned long long)DEBUG_FETCH_FILE_BYTES);
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
	*to++ = xasprintf("DEBUGINFOD_MAXSIZE=%llu", (unsigned long long)DEBUG_FETCH_FILE_BYTES);
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

/* ---- the process: between fork and exec, with nothing but system calls --------------------- */

static int give_up_rights(const struct debug_fetcher *fetcher)
{
	int rc = rights_limit(RLIMIT_CPU, CPU_SECONDS);

	rc = rc ? rc : rights_limit(RLIMIT_FSIZE, DEBUG_FETCH_FILE_BYTES);
	rc = rc ? rc : rights_limit(RLIMIT_CORE, 0);
	rc = rc ? rc : rights_limit(RLIMIT_NOFILE, DESCRIPTORS);
	rc = rc ? rc : rights_become(fetcher->user, fetcher->group);
	return rc ? rc : rights_close();
}

/* It has /dev/null and the file system in memory, and nothing else. */
static int take_descriptors(const struct debug_fetcher *fetcher)
{
	int program = fcntl(fetcher->program, F_DUPFD_CLOEXEC, HIGH_FD);
	int memory = fcntl(fetcher->memory, F_DUPFD_CLOEXEC, HIGH_FD);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < MEMORY_FD; fd++)
		if (dup2(null, fd) < 0)
			return -1;
	if (fetcher->memory >= 0 && dup2(memory, MEMORY_FD) < 0)
		return -1;
	for (int fd = fetcher->memory >= 0 ? MEMORY_FD + 1 : MEMORY_FD; fd < 1024; fd++)
		if (fd != program)
			close(fd);
	syscall(SYS_close_range, program < 1024 ? 1024 : program + 1, ~0u, 0);
	return program;
}

static void run(const struct debug_fetcher *fetcher, char *const argv[])
{
	int program = take_descriptors(fetcher);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	umask(077);
	setsid();
	setpriority(PRIO_PROCESS, 0, 10);
	if (program < 0 || chdir("/") || give_up_rights(fetcher))
		_exit(1);
	syscall(SYS_execveat, program, "", argv, fetcher->environment, AT_EMPTY_PATH);
	_exit(1);
}

/* ---- fetching ------------------------------------------------------------------------------ */

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* 0: it has ended. */
static int wait_for_end(int pidfd, unsigned ms, const bool *stop)
{
	struct pollfd one = { .fd = pidfd, .events = POLLIN };
	uint64_t until = now_ms() + ms;

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		if (poll(&one, 1, LOOK_MS) > 0)
			return 0;
		if (now_ms() > until)
			return -ETIMEDOUT;
	}
	return -ECANCELED;
}

/* By its pidfd: another thread that waits for all children may have been told of its end. */
static int run_to_end(const struct debug_fetcher *fetcher, char *const argv[], unsigned ms,
                      const bool *stop)
{
	struct pollfd one = { .events = POLLIN };
	pid_t pid = fork();
	int rc;

	if (pid == 0)
		run(fetcher, argv);
	if (pid < 0)
		return -errno;
	one.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (one.fd < 0) /* not by its number, which may be another's by now; it ends by itself */
		return errno == ESRCH ? 0 : -errno;
	rc = wait_for_end(one.fd, ms, stop);
	if (rc) {
		syscall(SYS_pidfd_send_signal, one.fd, SIGKILL, NULL, 0);
		poll(&one, 1, LEAVING_MS);
	}
	waitid(P_PIDFD, (id_t)one.fd, NULL, WEXITED | WNOHANG);
	close(one.fd);
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
