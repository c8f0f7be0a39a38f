// SPDX-License-Identifier: MIT
/*
 * SQLite's way to a database that is a descriptor. By its name it would be opened a second time. In
 * a folder that others may write somebody could have put a link there in between. A journal beside
 * it could be anybody's as well. Private to src/output.
 */
#include "output/sqlite/database.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"

#define NAME         "cuscope-descriptor"
#define SECTOR_BYTES 4096

/* First: what SQLite sees. */
struct database_file {
	sqlite3_file base;
	int fd, error; /* the last one, for sentences */
};

static struct database_file *file_of(sqlite3_file *base)
{
	return (struct database_file *)base;
}

/* The descriptor is the caller's. */
static int close_nothing(sqlite3_file *base)
{
	return SQLITE_OK;
}

static int failed(struct database_file *file, int code)
{
	file->error = errno;
	return errno == ENOSPC || errno == EDQUOT ? SQLITE_FULL : code;
}

/* What lies behind the end reads as zeros. */
static int read_at(sqlite3_file *base, void *into, int bytes, sqlite3_int64 offset)
{
	struct database_file *file = file_of(base);
	char *at = into;

	while (bytes > 0) {
		ssize_t n = pread(file->fd, at, (size_t)bytes, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(file, SQLITE_IOERR_READ);
		if (!n) {
			memset(at, 0, (size_t)bytes);
			return SQLITE_IOERR_SHORT_READ;
		}
		at += n;
		offset += n;
		bytes -= (int)n;
	}
	return SQLITE_OK;
}

static int write_at(sqlite3_file *base, const void *data, int bytes, sqlite3_int64 offset)
{
	struct database_file *file = file_of(base);
	const char *at = data;

	while (bytes > 0) {
		ssize_t n = pwrite(file->fd, at, (size_t)bytes, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(file, SQLITE_IOERR_WRITE);
		at += n;
		offset += n;
		bytes -= (int)n;
	}
	return SQLITE_OK;
}

static int cut(sqlite3_file *base, sqlite3_int64 size)
{
	struct database_file *file = file_of(base);

	return ftruncate(file->fd, size) ? failed(file, SQLITE_IOERR_TRUNCATE) : SQLITE_OK;
}

/* Whoever gives the file its name sees to that. */
static int sync_nothing(sqlite3_file *base, int flags)
{
	return SQLITE_OK;
}

static int tell_size(sqlite3_file *base, sqlite3_int64 *size)
{
	struct database_file *file = file_of(base);
	struct stat st;

	if (fstat(file->fd, &st))
		return failed(file, SQLITE_IOERR_FSTAT);
	*size = st.st_size;
	return SQLITE_OK;
}

/* Nobody else has the file while it is written. */
static int lock_nothing(sqlite3_file *base, int level)
{
	return SQLITE_OK;
}

static int reserved_by_nobody(sqlite3_file *base, int *reserved)
{
	*reserved = 0;
	return SQLITE_OK;
}

static int control(sqlite3_file *base, int operation, void *argument)
{
	if (operation != SQLITE_FCNTL_LAST_ERRNO)
		return SQLITE_NOTFOUND;
	*(int *)argument = file_of(base)->error;
	return SQLITE_OK;
}

static int sector(sqlite3_file *base)
{
	return SECTOR_BYTES;
}

static int no_characteristics(sqlite3_file *base)
{
	return 0;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = close_nothing,
	.xRead = read_at,
	.xWrite = write_at,
	.xTruncate = cut,
	.xSync = sync_nothing,
	.xFileSize = tell_size,
	.xLock = lock_nothing,
	.xUnlock = lock_nothing,
	.xCheckReservedLock = reserved_by_nobody,
	.xFileControl = control,
	.xSectorSize = sector,
	.xDeviceCharacteristics = no_characteristics,
};

/* ---- opening --------------------------------------------------------------------------------- */

static sqlite3_vfs *usual(sqlite3_vfs *vfs)
{
	return vfs->pAppData;
}

/* Only the database is ours: sorting has files without names, which SQLite makes safely. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *out)
{
	uint64_t fd;

	if (!name && !(flags & SQLITE_OPEN_MAIN_DB))
		return usual(vfs)->xOpen(usual(vfs), name, base, flags, out);
	if (!name || !(flags & SQLITE_OPEN_MAIN_DB) || !parse_number(name, INT32_MAX, &fd))
		return SQLITE_CANTOPEN;
	*file_of(base) = (struct database_file){ { &methods }, (int)fd, 0 };
	if (out)
		*out = flags;
	return SQLITE_OK;
}

static int delete_nothing(sqlite3_vfs *vfs, const char *name, int sync)
{
	return SQLITE_OK;
}

/* No journal of another's can be there. */
static int access_nothing(sqlite3_vfs *vfs, const char *name, int flags, int *there)
{
	*there = 0;
	return SQLITE_OK;
}

static int same_name(sqlite3_vfs *vfs, const char *name, int room, char *full)
{
	return snprintf(full, (size_t)room, "%s", name) < room ? SQLITE_OK : SQLITE_CANTOPEN;
}

static sqlite3_vfs *our_vfs(void)
{
	static sqlite3_vfs vfs;
	sqlite3_vfs *found = sqlite3_vfs_find(NULL);

	if (vfs.zName || !found)
		return vfs.zName ? &vfs : NULL;
	vfs = *found; /* clock, randomness */
	vfs.zName = NAME;
	vfs.pNext = NULL;
	vfs.pAppData = found;
	vfs.szOsFile = found->szOsFile > (int)sizeof(struct database_file)
	                       ? found->szOsFile
	                       : (int)sizeof(struct database_file);
	vfs.xOpen = open_file;
	vfs.xDelete = delete_nothing;
	vfs.xAccess = access_nothing;
	vfs.xFullPathname = same_name;
	return &vfs;
}

int database_file_open(int fd, sqlite3 **handle)
{
	sqlite3_vfs *vfs = our_vfs();
	char name[16];
	int rc = vfs ? sqlite3_vfs_register(vfs, 0) : SQLITE_NOMEM;

	*handle = NULL;
	if (rc != SQLITE_OK)
		return rc;
	snprintf(name, sizeof(name), "%d", fd);
	return sqlite3_open_v2(name, handle,
	                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
	                       NAME);
}
