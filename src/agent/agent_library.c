// SPDX-License-Identifier: MIT
#include "agent/agent_library.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/guarded.h"
#include "base/xalloc.h"
#include "probe/elf_image.h"

/* src/agent/module.mk puts them there. */
extern const char embedded_agent[], embedded_agent_end[];

#define NAME       "libcuscope-agent.so"
#define START_MOST 16384 /* linkers put the notes into the first pages */
#define ID_MOST    64

struct agent_library {
	char *path;
};

const void *agent_library_bytes(size_t *bytes)
{
	*bytes = (size_t)(embedded_agent_end - embedded_agent);
	return embedded_agent;
}

/* ---- build ids ------------------------------------------------------------------------------- */

/* Finds the id in notes; returns its length, 0: none. */
static size_t id_in_notes(const char *notes, size_t bytes, unsigned char id[ID_MOST])
{
	struct elf_note note;

	while (elf_note_next(&notes, &bytes, &note)) {
		if (note.type != NT_GNU_BUILD_ID || note.bytes > ID_MOST)
			continue;
		memcpy(id, note.content, note.bytes);
		return note.bytes;
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

static size_t read_start(int fd, char start[START_MOST], struct stat *st)
{
	ssize_t got = 0;

	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode))
		got = pread(fd, start, START_MOST, 0);
	return got > 0 ? (size_t)got : 0;
}

static bool is_same(int fd, struct stat *st)
{
	unsigned char ours[ID_MOST], theirs[ID_MOST];
	char start[START_MOST];
	size_t bytes, length;
	const char *library = agent_library_bytes(&bytes);

	length = build_id(library, bytes, ours);
	bytes = read_start(fd, start, st);
	return length && build_id(start, bytes, theirs) == length &&
	       memcmp(ours, theirs, length) == 0;
}

bool agent_library_is_at(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;
	bool same;
	int fd;

	if (strcmp(slash ? slash + 1 : path, NAME) == 0)
		return true;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	same = fd >= 0 && is_same(fd, &st);
	if (fd >= 0)
		close(fd);
	return same;
}

/* ---- a file that is there -------------------------------------------------------------------- */

/* The command may run as another user (--user), or start some; those of others than root cannot. */
static bool for_all(void)
{
	return geteuid() == 0;
}

/* 0, or why a library in this folder would not do. */
static int check_folder(int folder)
{
	struct statvfs fs;

	if (fstatvfs(folder, &fs) < 0)
		return -errno;
	return fs.f_flag & ST_NOEXEC ? -ENOEXEC : 0;
}

static int open_library(int folder)
{
	int fd = openat(folder, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Nobody else can change it, and everybody can read it. */
static bool is_usable(const struct stat *st)
{
	return S_ISREG(st->st_mode) && guarded(st) && (!for_all() || st->st_mode & S_IROTH);
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

static bool is_in(const char *path)
{
	int folder = guarded_open(path, for_all()), fd = -1;
	struct stat st;
	bool found;

	if (folder >= 0 && !check_folder(folder))
		fd = open_library(folder);
	found = fd >= 0 && is_same(fd, &st) && is_usable(&st);
	if (fd >= 0)
		close(fd);
	if (folder >= 0)
		close(folder);
	return found;
}

/* Anybody can give a file the build id that he likes: where it lies is what counts. */
static char *find_beside(void)
{
	static const char *const places[] = { "%s", "%s/../lib/cuscope" };
	char own[PATH_MAX];

	own_folder(own);
	for (size_t i = 0; *own && i < ARRAY_SIZE(places); i++) {
		char *named = xasprintf(places[i], own), *folder = realpath(named, NULL);
		char *path = folder && is_in(folder) ? xasprintf("%s/" NAME, folder) : NULL;

		free(named);
		free(folder);
		if (path)
			return path;
	}
	return NULL;
}

/* ---- a file that is made --------------------------------------------------------------------- */

/* Byte for byte: it may have been cut short by a full disk, or be of a run that was killed. */
static bool is_whole(int folder)
{
	size_t bytes, at = 0;
	const char *ours = agent_library_bytes(&bytes);
	AT_END(at_end_close) int fd = open_library(folder);
	char part[START_MOST];
	ssize_t got = 0;
	struct stat st;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) < 0 || !is_usable(&st) || (size_t)st.st_size != bytes)
		bytes = SIZE_MAX;
	while (bytes != SIZE_MAX && (got = pread(fd, part, sizeof(part), (off_t)at)) > 0) {
		if ((size_t)got > bytes - at || memcmp(ours + at, part, (size_t)got) != 0)
			break;
		at += (size_t)got;
	}
	return at == bytes;
}

static int write_library(int fd)
{
	size_t bytes;
	const char *from = agent_library_bytes(&bytes);

	while (bytes) {
		ssize_t n = write(fd, from, bytes);

		if (n < 0 && errno != EINTR)
			return -errno;
		from += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
	}
	return fchmod(fd, 0644) < 0 ? -errno : 0; /* whatever the umask says */
}

/* Under another name first: others may be about to load it. */
static int make_library(int folder)
{
	char name[64];
	int fd, rc;

	snprintf(name, sizeof(name), NAME ".%d", getpid());
	unlinkat(folder, name, 0); /* of a run that was killed */
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	rc = write_library(fd);
	close(fd);
	if (!rc && renameat(folder, name, folder, NAME) < 0)
		rc = -errno;
	if (rc)
		unlinkat(folder, name, 0);
	return rc;
}

/* A folder for each build: several versions of cuscope do not get in each other's way. */
static void build_name(char name[2 * ID_MOST + 8])
{
	unsigned char id[ID_MOST];
	size_t bytes, length;
	const char *library = agent_library_bytes(&bytes);
	int n = snprintf(name, 8, "agent");

	length = build_id(library, bytes, id);
	for (size_t i = 0; i < length; i++)
		n += snprintf(name + n, 4, i ? "%02x" : "-%02x", id[i]);
}

/* The folder below `parent`, as a descriptor; *path is it, to be freed. */
static int make_folder(const char *parent, char **path)
{
	char name[2 * ID_MOST + 8], *real = realpath(parent, NULL);
	int fd = real ? guarded_open(real, for_all()) : -errno;
	const char *const below[] = { "cuscope", name };

	build_name(name);
	*path = real ? xasprintf("%s/cuscope/%s", real, name) : NULL;
	free(real);
	if (fd >= 0 && check_folder(fd)) { /* not even a folder is made there */
		close(fd);
		return -ENOEXEC;
	}
	for (size_t i = 0; i < 2 && fd >= 0; i++) {
		int next = guarded_make(fd, below[i], for_all());

		close(fd);
		fd = next;
	}
	return fd;
}

static int make_in(struct agent_library *library, const char *parent)
{
	AT_END(at_end_free) char *path = NULL;
	int folder = make_folder(parent, &path), rc = folder < 0 ? folder : check_folder(folder);

	if (!rc && !is_whole(folder)) {
		rc = make_library(folder);
		if (!rc && !is_whole(folder))
			rc = -EIO;
	}
	if (!rc)
		library->path = xasprintf("%s/" NAME, path);
	if (folder >= 0)
		close(folder);
	return rc;
}

static const char *reason(int rc)
{
	if (rc == -ENOEXEC)
		return "mounted noexec";
	return rc == -EACCES ? "not only root's to change, or not for all to enter" : strerror(-rc);
}

/* /run is forgotten at the next start of the machine, but mounted noexec on some systems. */
static int make_somewhere(struct agent_library *library, struct err *err)
{
	char own[32];
	const char *parents[] = { "/run", "/var/lib" };
	size_t n = ARRAY_SIZE(parents);
	AT_END(buf_free) struct buf tried = { 0 };
	int rc = -ENOENT;

	if (geteuid() != 0) { /* with capabilities alone */
		snprintf(own, sizeof(own), "/run/user/%u", geteuid());
		parents[0] = own;
		n = 1;
	}
	for (size_t i = 0; i < n && rc; i++) {
		rc = make_in(library, parents[i]);
		if (rc)
			buf_printf(&tried, "%s%s is %s", i ? ", " : "", parents[i], reason(rc));
	}
	if (rc)
		err_set(err, rc,
		        "there is no place for " NAME " that only root can change (%s); install "
		        "cuscope with its library (`make install`) in such a place",
		        tried.data);
	return rc;
}

int agent_library_open(struct agent_library **library_out, struct err *err)
{
	struct agent_library *library = xcalloc(1, sizeof(*library));
	int rc = 0;

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
		free(library->path);
	free(library);
}
