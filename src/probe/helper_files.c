// SPDX-License-Identifier: MIT
/* Of helper.h: files, and what is known of those that are open. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "probe/helper.h"
#include "probe/helper_inside.h"
#include "probe/maps.h"
#include "probe/person.h"
#include "probe/mounts.h"

#define NOTES_MAX   16384 /* descriptors; those beyond are opened for their path only */
#define CACHED_NS   20000000ull
#define FREED_BYTES ((uint64_t)8 << 20) /* of a deleted file that is freed here at most */

/* What is known of a descriptor that was opened for a target. */
struct note {
	pid_t pid;
	uint32_t number; /* of the opening: a descriptor may be another file's by now */
	uint64_t person;
	bool is_path, is_roots, of_gone, unanswered;
};

static struct {
	struct note notes[NOTES_MAX];
	uint32_t openings;
	/* the last piece of a file that was read: tables are read a few bytes at a time */
	bool any_cached;
	int cached_fd;
	uint32_t cached_number;
	uint64_t cached_at, cached_len, cached_ns;
	char cached[HELPER_BYTES];
} files;

void files_end(void)
{
	files.any_cached = false;
}

/* ---- files --------------------------------------------------------------------------------- */

static void note_opening(int fd, const struct note *note)
{
	if (fd < 0 || fd >= NOTES_MAX)
		return;
	files.notes[fd] = *note;
	files.notes[fd].number = ++files.openings;
}

void helper_note(int fd, pid_t pid, uint64_t person)
{
	helper_lock();
	note_opening(fd, &(struct note){ .pid = pid, .person = person, .is_path = true });
	helper_unlock();
}

/* What was asked for by `request`: the descriptor, or what went wrong. */
static int open_file(const struct helper_request *request, uint64_t person, int *by_map)
{
	const struct helper_answer *answer;
	int fd, rc;

	rc = (int)helper_ask(-1, &fd, &answer);
	if (by_map)
		*by_map = answer->by_map;
	if (!rc && fd < 0)
		rc = -EMFILE;
	if (!rc && fd >= NOTES_MAX && answer->is_path) {
		close(fd); /* it could not be told from others */
		rc = -EMFILE;
	}
	if (rc)
		return rc;
	note_opening(fd, &(struct note){ .pid = request->pid,
	                                 .person = person,
	                                 .is_path = answer->is_path,
	                                 .is_roots = answer->is_roots,
	                                 .of_gone = request->of_gone });
	return fd;
}

static int put_path(struct helper_request *request, const char *path)
{
	size_t len = strlen(path);

	if (len >= sizeof(request->path))
		return -ENAMETOOLONG;
	memcpy(request->path, path, len + 1);
	return 0;
}

static int open_mapping(pid_t pid, uint64_t person, bool gone, const struct mapping *mapping,
                        int *by_map)
{
	struct helper_request *request = helper_request(HELPER_OPEN_MAPPING, pid, person);

	request->of_gone = gone;
	request->mapping = *mapping;
	put_path(request, mapping->path); /* without it, by map_files only */
	return open_file(request, person, by_map);
}

int helper_open_mapping(pid_t pid, const struct mapping *mapping, int *by_map)
{
	int fd;

	helper_lock();
	fd = open_mapping(pid, helper_person(pid), false, mapping, by_map);
	helper_unlock();
	return fd;
}

int helper_open_gone(pid_t under, uint64_t person, const struct mapping *mapping)
{
	int by_map, fd;

	helper_lock();
	fd = open_mapping(under, person, true, mapping, &by_map);
	helper_unlock();
	return fd;
}

int helper_open_in_root(pid_t pid, const char *path)
{
	struct helper_request *request;
	uint64_t person;
	int fd;

	helper_lock();
	person = helper_person(pid);
	request = helper_request(HELPER_OPEN_IN_ROOT, pid, person);
	fd = put_path(request, path);
	if (!fd)
		fd = open_file(request, person, NULL);
	helper_unlock();
	return fd;
}

ssize_t helper_read_in_root(pid_t pid, const char *path, const struct root_file_rights *rights,
                            char *to, size_t bytes)
{
	struct helper_request *request;
	int64_t n;

	if (bytes > HELPER_BYTES)
		return -EINVAL;
	helper_lock();
	request = helper_request(HELPER_READ_IN_ROOT, pid, helper_person(pid));
	request->address = rights->user | (uint64_t)rights->group << 32;
	request->bytes = bytes;
	n = put_path(request, path);
	if (!n)
		n = helper_ask_for(-1, to);
	helper_unlock();
	return (ssize_t)n;
}

int helper_dup(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return copy;
	helper_lock();
	if (copy < NOTES_MAX)
		files.notes[copy] = fd < NOTES_MAX ? files.notes[fd] : (struct note){ 0 };
	helper_unlock();
	return copy;
}

/* With the lock. A number that was closed may be one by now that was not opened here. */
static struct note note_of(int fd)
{
	struct note note = { 0 };
	int flags;

	if (!helper_is_there() || fd < 0 || fd >= NOTES_MAX || !files.notes[fd].pid)
		return note;
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0 && !(flags & O_PATH) == !files.notes[fd].is_path)
		note = files.notes[fd];
	return note;
}

static struct note take_note(int fd)
{
	struct note note;

	helper_lock();
	note = note_of(fd);
	helper_unlock();
	return note;
}

uint64_t helper_mapped_by(int fd)
{
	struct note note = take_note(fd);

	return note.pid ? note.person : PERSON_UNKNOWN;
}

bool helper_was_unanswered(int fd)
{
	struct note note = take_note(fd);

	return note.is_path && note.unanswered;
}

bool helper_is_users(int fd)
{
	struct note note = take_note(fd);

	return note.is_path && !note.is_roots;
}

static bool is_cached(int fd, const struct note *note, uint64_t offset)
{
	return files.any_cached && files.cached_fd == fd && files.cached_number == note->number &&
	       offset >= files.cached_at && offset - files.cached_at < files.cached_len &&
	       clock_now_ns() - files.cached_ns < CACHED_NS;
}

/* The piece of the file that begins at `offset`. */
static int fill_cache(int fd, const struct note *note, uint64_t offset)
{
	struct helper_request *request = helper_request(HELPER_PREAD, note->pid, note->person);
	int64_t n;

	files.any_cached = false;
	request->address = offset;
	request->bytes = HELPER_BYTES;
	request->is_roots = note->is_roots;
	request->of_gone = note->of_gone;
	n = helper_ask_for(fd, files.cached);
	if (n < 0)
		return (int)n;
	files.any_cached = true;
	files.cached_fd = fd;
	files.cached_number = note->number;
	files.cached_at = offset;
	files.cached_len = (uint64_t)n;
	files.cached_ns = clock_now_ns();
	return 0;
}

/* Of a copy, too: who reads a file keeps one of its own. */
static void note_unanswered(uint32_t number)
{
	for (size_t i = 0; i < NOTES_MAX; i++)
		if (files.notes[i].number == number)
			files.notes[i].unanswered = true;
}

static ssize_t pread_aside(int fd, const struct note *note, void *to, size_t bytes, uint64_t offset)
{
	uint64_t into;
	int rc;

	if (!is_cached(fd, note, offset)) {
		rc = fill_cache(fd, note, offset);
		if (rc == -ETIMEDOUT)
			note_unanswered(note->number);
		if (rc) {
			errno = -rc;
			return -1;
		}
	}
	into = offset - files.cached_at;
	if (into >= files.cached_len)
		return 0;
	if (bytes > files.cached_len - into)
		bytes = files.cached_len - into;
	memcpy(to, files.cached + into, bytes);
	return (ssize_t)bytes;
}

ssize_t helper_pread(int fd, void *to, size_t bytes, uint64_t offset)
{
	struct note note;
	ssize_t n = -1;

	helper_lock();
	note = note_of(fd);
	if (note.is_path)
		n = pread_aside(fd, &note, to, bytes, offset);
	helper_unlock();
	return note.is_path ? n : pread(fd, to, bytes, (off_t)offset);
}

void helper_close(int fd)
{
	struct stat st;

	if (fd < 0)
		return;
	if (file_stat(fd, &st) == 0 && !st.st_nlink && (uint64_t)st.st_blocks * 512 > FREED_BYTES)
		helper_let_go(fd);
	else
		close(fd);
}

/* ---- stat ---------------------------------------------------------------------------------- */

static int known_stat(int folder, const char *path, int flags, struct stat *st)
{
	struct statx x;

	if (statx(folder, path, flags | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &x))
		return -1;
	memset(st, 0, sizeof(*st));
	st->st_dev = makedev(x.stx_dev_major, x.stx_dev_minor);
	st->st_ino = x.stx_ino;
	st->st_mode = x.stx_mode;
	st->st_uid = x.stx_uid;
	st->st_gid = x.stx_gid;
	st->st_nlink = x.stx_nlink;
	st->st_size = (off_t)x.stx_size;
	st->st_blocks = (blkcnt_t)x.stx_blocks;
	st->st_mtim = (struct timespec){ x.stx_mtime.tv_sec, x.stx_mtime.tv_nsec };
	st->st_ctim = (struct timespec){ x.stx_ctime.tv_sec, x.stx_ctime.tv_nsec };
	return 0;
}

int file_stat(int fd, struct stat *st)
{
	return known_stat(fd, "", AT_EMPTY_PATH, st);
}

/* Of helper.h: which code of files a process has mapped, as the kernel tells it one by one. */

/* Of linux/fs.h since 6.11. */
struct procmap_query {
	uint64_t size, query_flags, query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};

#define PROCMAP_QUERY      _IOWR('f', 17, struct procmap_query)
#define PROCMAP_WRITABLE   0x02
#define PROCMAP_EXECUTABLE 0x04
#define PROCMAP_SHARED     0x08
#define PROCMAP_OR_NEXT    0x10
#define PROCMAP_OF_FILE    0x20

static struct mapping mapping_of(const struct procmap_query *query)
{
	return (struct mapping){
		.start = query->vma_start,
		.end = query->vma_end,
		.offset = query->vma_offset,
		.dev = makedev(query->dev_major, query->dev_minor),
		.inode = query->inode,
		.writable = query->vma_flags & PROCMAP_WRITABLE,
		.executable = true,
		.private = !(query->vma_flags & PROCMAP_SHARED),
	};
}

int64_t helper_code_by(pid_t tid, const struct helper_request *request, char *to)
{
	struct procmap_query query = { .size = sizeof(query),
		                       .query_flags = PROCMAP_EXECUTABLE | PROCMAP_OF_FILE |
		                                      PROCMAP_OR_NEXT };
	size_t have = 0;
	char path[64];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", request->pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (!(rc = ioctl(fd, PROCMAP_QUERY, &query)) &&
	       have + sizeof(struct mapping) <= HELPER_BYTES) {
		struct mapping mapping = mapping_of(&query);

		/* overlayfs puts the number of a layer above the file's */
		if (!((query.inode ^ request->address) << 16)) {
			memcpy(to + have, &mapping, sizeof(mapping));
			have += sizeof(mapping);
		}
		query.query_addr = query.vma_end;
	}
	rc = rc && errno != ENOENT ? -errno : 0;
	close(fd);
	return rc ? rc : (int64_t)have;
}
