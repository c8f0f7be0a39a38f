// SPDX-License-Identifier: MIT
#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/xalloc.h"

#define LINKS_MAX 40 /* as the kernel has it */

static bool number_of(const char *variable, uint64_t *number)
{
	const char *text = getenv(variable);

	return text && parse_number(text, UINT32_MAX - 1, number);
}

bool folder_sudo_user(uid_t *user, gid_t *group)
{
	uint64_t uid, gid;

	if (geteuid() || !number_of("SUDO_UID", &uid) || !number_of("SUDO_GID", &gid))
		return false;
	*user = (uid_t)uid;
	*group = (gid_t)gid;
	return true;
}

bool folder_trusts(uid_t user)
{
	uid_t sudo;
	gid_t group;

	return !user || user == geteuid() || (folder_sudo_user(&sudo, &group) && user == sudo);
}

/* Where a walk is: the folder so far, and what of the path is still to be gone. */
struct folder_walk {
	const char *path; /* as the user gave it, for sentences */
	int fd;
	char *rest;
	unsigned links;
};

static int begin(struct folder_walk *walk)
{
	int fd = open(walk->rest[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (walk->fd >= 0)
		close(walk->fd);
	walk->fd = fd;
	return 0;
}

/* Puts what a link says before what is left of the path. */
static int follow(struct folder_walk *walk, int link, const struct stat *st, struct err *err)
{
	char target[4096], *rest;
	ssize_t len;
	int rc = 0;

	if (!geteuid() && !folder_trusts(st->st_uid))
		return err_set(err, EPERM,
		               "cannot write %s: a link on the way belongs to user %u, who can "
		               "point it anywhere; give the folder's own name",
		               walk->path, (unsigned)st->st_uid);
	len = readlinkat(link, "", target, sizeof(target));
	if (len < 0 || len == sizeof(target) || ++walk->links > LINKS_MAX)
		return err_set(err, len < 0 ? errno : ELOOP, "cannot write %s: %s", walk->path,
		               strerror(len < 0 ? errno : ELOOP));
	rest = xasprintf("%.*s/%s", (int)len, target, walk->rest);
	free(walk->rest);
	walk->rest = rest;
	if (rest[0] == '/')
		rc = begin(walk);
	return rc ? err_set(err, rc, "cannot write %s: %s", walk->path, strerror(-rc)) : 0;
}

/* What is no folder: a link that is followed, or the end of the way. */
static int step_over_link(struct folder_walk *walk, const char *part, struct err *err)
{
	int fd = openat(walk->fd, part, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return err_set(err, errno, "cannot write %s: %s", walk->path, strerror(errno));
	rc = S_ISLNK(st.st_mode)
	             ? follow(walk, fd, &st, err)
	             : err_set(err, ENOTDIR, "cannot write %s: %s", walk->path, strerror(ENOTDIR));
	close(fd);
	return rc;
}

/* One part of the path, which is not its last. O_DIRECTORY has what is mounted on
 * demand mounted. */
static int step(struct folder_walk *walk, const char *part, struct err *err)
{
	int fd = openat(walk->fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return step_over_link(walk, part, err);
	if (fd < 0)
		return err_set(err, errno, "cannot write %s: %s", walk->path, strerror(errno));
	close(walk->fd);
	walk->fd = fd;
	return 0;
}

/* Takes the first part off the rest; NULL where it is the last one. */
static char *next_part(struct folder_walk *walk)
{
	char *at = walk->rest + strspn(walk->rest, "/"), *slash = strchr(at, '/'), *part, *rest;

	if (!slash)
		return NULL;
	part = xstrndup(at, (size_t)(slash - at));
	rest = xstrdup(slash + strspn(slash, "/"));
	free(walk->rest);
	walk->rest = rest;
	return part;
}

static int walk_to_end(struct folder_walk *walk, struct err *err)
{
	char *part;
	int rc = 0;

	while (!rc && (part = next_part(walk))) {
		rc = step(walk, part, err);
		free(part);
	}
	return rc;
}

/* A path that ends in none is that of a folder. */
static bool is_name(const char *part)
{
	return *part && strcmp(part, ".") && strcmp(part, "..");
}

int folder_open(const char *path, char **name, struct err *err)
{
	struct folder_walk walk = { .path = path, .fd = -1, .rest = xstrdup(path) };
	int rc = *path ? begin(&walk) : -ENOENT;
	const char *last;

	if (rc)
		err_set(err, rc, "cannot write '%s': %s", path, strerror(-rc));
	else
		rc = walk_to_end(&walk, err);
	last = walk.rest + strspn(walk.rest, "/");
	if (!rc && !is_name(last))
		rc = err_set(err, EISDIR, "cannot write %s: %s", path, strerror(EISDIR));
	if (!rc)
		*name = xstrdup(last);
	free(walk.rest);
	if (rc && walk.fd >= 0)
		close(walk.fd);
	return rc ? rc : walk.fd;
}
