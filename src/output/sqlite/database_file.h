/* SPDX-License-Identifier: MIT */
/*
 * SQLite's way to a database that is a descriptor. By its name it would be opened a second time. In
 * a folder that others may write somebody could have put a link there in between. A journal beside
 * it could be anybody's as well. Private to src/output.
 */
#ifndef CUSCOPE_OUTPUT_SQLITE_DATABASE_FILE_H
#define CUSCOPE_OUTPUT_SQLITE_DATABASE_FILE_H

#include <sqlite3.h>

/*
 * Opens the regular file behind `fd`, which stays the caller's, as a database without a journal and
 * without locks. What sqlite3_open_v2() returns; *handle is to be closed either way.
 */
int database_file_open(int fd, sqlite3 **handle);

#endif
