/* SPDX-License-Identifier: MIT */
/*
 * What files say of their functions (entry_file.h), for as long as they stay as they are. A library
 * is mapped by many processes, and decoding its functions and looking through its code takes tens
 * of milliseconds. So it is done once for each file, and by another thread where the asker can
 * wait. Of an owner one file is looked at at a time: one that takes long makes nobody else wait.
 *
 * 16 files and 16 MiB of code are kept, those that were asked for last.
 */
#ifndef CUSCOPE_DIVERT_JUDGED_FILES_H
#define CUSCOPE_DIVERT_JUDGED_FILES_H

#include "divert/divert.h"
#include "divert/entry_file.h"

struct judged_files;

struct judged_files *judged_files_new(void);

/* Does not wait for the other thread, which ends by itself. */
void judged_files_free(struct judged_files *files);

/*
 * Whether judged_files_get will answer at once, or has to be asked all the same. False: another
 * thread is at work; ask again in a few milliseconds.
 */
bool judged_files_ready(struct judged_files *files, const struct divert_module *module,
                        const struct divert_function *functions, size_t count);

/*
 * The answers for functions of a module, in their order, with the code of those that can be moved.
 * They stay until judged_files_get is called again. 0, or a negative errno as entry_file_judge.
 */
int judged_files_get(struct judged_files *files, const struct divert_module *module,
                     const struct divert_function *functions, size_t count,
                     const struct entry_function **judged, struct err *err);

#endif
