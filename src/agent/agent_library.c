// SPDX-License-Identifier: MIT
#include "agent/agent_library.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/xalloc.h"

/* src/agent/module.mk puts them there. */
extern const char embedded_agent[], embedded_agent_end[];

#define NAME       "libcuscope-agent.so"
#define FOLDER     "cuscope-agent."
#define START_MOST 16384 /* linkers put the notes into the first pages */
#define ID_MOST    64

struct agent_library {
	char *path;
	char *folder; /* ours, to be removed; NULL: the file was there before */
	int lock;     /* of the folder, held while we run; -1: none */
};

const void *agent_library_bytes(size_t *bytes)
{
	*bytes = (size_t)(embedded_agent_end - embedded_agent);
	return embedded_agent;
}

/* ---- build ids ------------------------------------------------------------------------------- */

static size_t padded(uint32_t bytes)
{
	return ((size_t)bytes + 3) & ~(size_t)3;
}

/* Finds the id in notes; returns its length, 0: none. */
static size_t id_in_notes(const char *notes, size_t bytes, unsigned char id[ID_MOST])
{
	while (bytes >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name, all;

		memcpy(&note, notes, sizeof(note));
		name = padded(note.n_namesz);
		all = sizeof(note) + name + padded(note.n_descsz);
		if (all > bytes)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= ID_MOST) {
			memcpy(id, notes + sizeof(note) + name, note.n_descsz);
			return note.n_descsz;
		}
		notes += all;
		bytes -= all;
	}
	return 0;
}

/* The build id of a library that begins with `bytes` at `start`. */
static size_t build_id(const char *start, size_t bytes, unsigned char id[ID_MOST])
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (bytes < sizeof(header) || memcmp(start, ELFMAG, SELFMAG) != 0 ||
	    start[EI_CLASS] != ELFCLASS64)
		return 0;
	memcpy(&header, start, sizeof(header));
	for (size_t i = 0; i < header.e_phnum; i++) {
		size_t at = i * sizeof(segment), found;

		if (header.e_phoff > bytes || at + sizeof(segment) > bytes - header.e_phoff)
			return 0;
		memcpy(&segment, start + header.e_phoff + at, sizeof(segment));
		if (segment.p_type != PT_NOTE || segment.p_offset > bytes ||
		    segment.p_filesz > bytes - segment.p_offset)
			continue;
		found = id_in_notes(start + segment.p_offset, segment.p_filesz, id);
		if (found)
			return found;
	}
	return 0;
}

static size_t read_start(const char *path, char start[START_MOST], struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t got = 0;

	if (fd < 0)
		return 0;
	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode))
		got = read(fd, start, START_MOST);
	close(fd);
	return got > 0 ? (size_t)got : 0;
}

static bool is_same(const char *path, struct stat *st)
{
	unsigned char ours[ID_MOST], theirs[ID_MOST];
	char start[START_MOST];
	size_t bytes, length;
	const char *library = agent_library_bytes(&bytes);

	length = build_id(library, bytes, ours);
	bytes = read_start(path, start, st);
	return length && build_id(start, bytes, theirs) == length &&
	       memcmp(ours, theirs, length) == 0;
}

bool agent_library_is_at(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;

	return strcmp(slash ? slash + 1 : path, NAME) == 0 || is_same(path, &st);
}

/* ---- a file that is there -------------------------------------------------------------------- */

/* Root's or ours, and nobody else can put something else there. In /tmp everybody has his own. */
static bool is_guarded(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) &&
	       (!(st->st_mode & (S_IWGRP | S_IWOTH)) ||
	        (S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX));
}

/*
 * All folders above `path`: guarded, since anybody can give a file the build id that he likes; and
 * to be passed by everybody, since the command may run as another user (--user).
 */
static bool is_reachable(const char *path)
{
	char folder[PATH_MAX];
	struct stat st;

	snprintf(folder, sizeof(folder), "%s", path);
	for (char *slash = strrchr(folder, '/'); slash && slash != folder;
	     slash = strrchr(folder, '/')) {
		*slash = '\0';
		if (stat(folder, &st) < 0 || !(st.st_mode & S_IXOTH) || !is_guarded(&st))
			return false;
	}
	return true;
}

static bool may_execute(const char *path)
{
	struct statvfs fs;

	return statvfs(path, &fs) == 0 && !(fs.f_flag & ST_NOEXEC);
}

/* "" where cuscope cannot tell where it lies. */
static void own_folder(char folder[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
	char *slash;

	folder[length > 0 ? length : 0] = '\0';
	slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
}

static char *find_beside(void)
{
	static const char *const places[] = { "%s/" NAME, "%s/../lib/cuscope/" NAME };
	char folder[PATH_MAX];

	own_folder(folder);
	for (size_t i = 0; *folder && i < sizeof(places) / sizeof(*places); i++) {
		char *named = xasprintf(places[i], folder), *path = realpath(named, NULL);
		struct stat st;

		free(named);
		if (path && is_same(path, &st) && is_guarded(&st) && st.st_mode & S_IROTH &&
		    is_reachable(path) && may_execute(path))
			return path;
		free(path);
	}
	return NULL;
}

/* ---- a file made for this run ---------------------------------------------------------------- */

/*
 * Folders of runs that were killed. A run holds a lock on its folder while it lasts, so what can be
 * locked is nobody's. Only what we made ourselves is touched.
 */
static void sweep(const char *parent)
{
	DIR *folder = opendir(parent);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		struct stat st;
		int fd;

		if (strncmp(entry->d_name, FOLDER, strlen(FOLDER)) != 0)
			continue;
		fd = openat(dirfd(folder), entry->d_name,
		            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
		    flock(fd, LOCK_EX | LOCK_NB) == 0) {
			unlinkat(fd, NAME, 0);
			unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
		}
		close(fd);
	}
	if (folder)
		closedir(folder);
}

static int write_library(const char *path)
{
	size_t bytes;
	const char *from = agent_library_bytes(&bytes);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), rc = 0;

	if (fd < 0)
		return -errno;
	while (bytes && !rc) {
		ssize_t n = write(fd, from, bytes);

		if (n < 0 && errno != EINTR)
			rc = -errno;
		from += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
	}
	if (fchmod(fd, 0644) < 0 && !rc) /* whatever the umask says */
		rc = -errno;
	close(fd);
	return rc;
}

/* Into a fresh folder below `parent`. A neighbour may sweep it before it is locked: -ENOENT. */
static int make_in(struct agent_library *library, const char *parent)
{
	int rc = 0;

	library->folder = xasprintf("%s/" FOLDER "XXXXXX", parent);
	if (!mkdtemp(library->folder)) {
		rc = -errno;
		free(library->folder);
		library->folder = NULL;
		return rc;
	}
	library->lock = open(library->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	library->path = xasprintf("%s/" NAME, library->folder);
	if (library->lock < 0 || flock(library->lock, LOCK_SH | LOCK_NB) < 0 ||
	    fchmod(library->lock, 0755) < 0)
		rc = -errno;
	return rc ? rc : write_library(library->path);
}

static void forget(struct agent_library *library)
{
	if (library->folder) {
		unlink(library->path);
		rmdir(library->folder);
	}
	if (library->lock >= 0)
		close(library->lock);
	free(library->path);
	free(library->folder);
	library->path = library->folder = NULL;
	library->lock = -1;
}

static int try_in(struct agent_library *library, const char *parent)
{
	int rc = -ENOENT;

	sweep(parent);
	for (int tries = 0; tries < 3 && rc == -ENOENT; tries++) {
		rc = make_in(library, parent);
		if (rc)
			forget(library);
	}
	return rc;
}

static int make_file(struct agent_library *library, const char *named)
{
	char *parent = realpath(named, NULL), *below;
	int rc = -EACCES;

	if (!parent)
		return -errno;
	below = xasprintf("%s/", parent);
	if (may_execute(parent) && is_reachable(below))
		rc = try_in(library, parent);
	free(below);
	free(parent);
	return rc;
}

/* /run is root's and forgotten at the next start, but mounted noexec on some systems. */
static int make_somewhere(struct agent_library *library, struct err *err)
{
	const char *parents[] = { "/run/cuscope", getenv("TMPDIR"), "/tmp", "/var/tmp" };
	int rc = -ENOENT;

	if (geteuid() == 0 && mkdir(parents[0], 0755) == 0)
		chmod(parents[0], 0755);
	for (size_t i = 0; i < sizeof(parents) / sizeof(*parents); i++) {
		rc = parents[i] && *parents[i] == '/' ? make_file(library, parents[i]) : -ENOENT;
		if (!rc)
			return 0;
	}
	return err_set(err, rc,
	               "cannot put " NAME " where the command can load it (/run/cuscope, TMPDIR, "
	               "/tmp and /var/tmp were tried): %s; name a folder by TMPDIR that everybody "
	               "may enter and that is not mounted noexec",
	               strerror(-rc));
}

int agent_library_open(struct agent_library **library_out, struct err *err)
{
	struct agent_library *library = xcalloc(1, sizeof(*library));
	int rc = 0;

	library->lock = -1;
	library->path = find_beside();
	if (!library->path)
		rc = make_somewhere(library, err);
	if (rc) {
		free(library);
		library = NULL;
	}
	*library_out = library;
	return rc;
}

const char *agent_library_path(const struct agent_library *library)
{
	return library->path;
}

void agent_library_free(struct agent_library *library)
{
	if (library)
		forget(library);
	free(library);
}
