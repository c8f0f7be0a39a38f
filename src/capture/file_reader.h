/* SPDX-License-Identifier: MIT */
/*
 * A thread that reads files of targets which take long, and looks whether those that are hooked
 * have changed: the capture's own thread has rings to read meanwhile.
 */
#pragma once

#include "probe/modules.h"

struct file_reader;

/* `found` is called on the thread when a file turned out to be a module. */
struct file_reader *file_reader_start(struct modules *modules, void (*found)(void *data),
                                      void *data);

/* There may be something to read. */
void file_reader_wake(struct file_reader *reader);

/*
 * Waits a moment for files that are still to be read. False where one takes longer than that (its
 * file system does not answer): the modules are the thread's then, and not to be freed. NULL is
 * allowed.
 */
bool file_reader_stop(struct file_reader *reader);
