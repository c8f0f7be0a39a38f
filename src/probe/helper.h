/* SPDX-License-Identifier: MIT */
/*
 * Reads of targets that may never end, done by a process that can be given up.
 *
 * A page of a target can be one of a FUSE file, or be served by userfaultfd, whose server does not
 * answer; so can a file that it runs. Who reads it waits in the kernel, and not even SIGKILL ends
 * that. So cuscope itself reads neither the memory of targets nor files of file systems that
 * somebody serves. A process does, one at a time, and is waited for with a limit. One that does not
 * answer is left to its fate, the target is given up with a sentence, and another takes its place.
 * The limits are for a target, for the user who runs it, and for all. Who answers each time just
 * within the limit is asked a while later again: each user has an account of what cuscope has
 * waited for (account.h).
 *
 * That costs two switches of process, some 20 us. It is asked for names that the eBPF programs
 * could not read, for /proc/PID/maps, for files that no look has met before, and for what else
 * waits for an exec of the process to be over: helper_begin makes it who looks for base/process.h.
 *
 * There is one for the whole program, since what reads memory and files is far below what knows of
 * targets. Without helper_begin, and in a process that was forked since, everything is done here
 * and may hang. On any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

struct mapping;
struct root_file_rights;

/*
 * To be called before there is much in memory or open, and before there are threads: all helpers
 * are forked from what is there now. 0, or a negative errno with a sentence.
 */
int helper_begin(struct err *err);
void helper_end(void); /* for tests: programs end with it */

/* All of it (64 KiB at most) or false. */
bool helper_memory(pid_t pid, uint64_t address, void *to, size_t bytes);

/* A string of less than `size` bytes with its NUL; false when it is longer or cannot be read. */
bool helper_string(pid_t pid, uint64_t address, char *to, size_t size);

/* Which of `n` pages from an address on the process has a copy of its own of, or a guard page in
 * place of (MADV_GUARD_INSTALL, which Linux tells from 6.15 on), one byte for each. */
enum helper_page { HELPER_PAGE_ALIKE, HELPER_PAGE_OWN, HELPER_PAGE_GUARDED };
bool helper_private_pages(pid_t pid, uint64_t address, uint8_t *pages, size_t n);

/*
 * Executable mappings of files with an inode number, or one that overlayfs has made of it: at most
 * `most` of them, without their paths. How many, none of a thread of the kernel's, or a negative
 * errno: -ENOTTY where the kernel does not tell (before 6.11). Of a process with many mappings that
 * takes a third of reading its maps.
 */
int helper_code_of(pid_t pid, uint64_t inode, struct mapping *mappings, size_t most);

/*
 * Calls `each` with the text of /proc/PID/maps, in pieces that end anywhere, until it returns
 * non-zero, and returns that; or a negative errno. -E2BIG: there is more than that, and it is no
 * process of root's. 65,530 mappings of a file whose path has 4,000 letters are 230 MB, in 5 s.
 */
#define HELPER_MAPS_BYTES (32u << 20)
int helper_maps(pid_t pid, int (*each)(const char *text, size_t len, void *data), void *data);

/*
 * The file of a mapping, as mapping_open has it, or a regular file at a path under the root of the
 * process. A descriptor that the caller closes, or a negative errno; *by_map is what opening it by
 * map_files said. Of a file that somebody serves, it is one of O_PATH and read by helper_pread. So
 * nothing that is done with it, not even closing it, waits for that server.
 */
int helper_open_mapping(pid_t pid, const struct mapping *mapping, int *by_map);
int helper_open_in_root(pid_t pid, const char *path);

/* The file of a mapping of a process of `person` (person.h) that is gone, by its path under the
 * root of another, which is not to be blamed for what comes of it. */
int helper_open_gone(pid_t under, uint64_t person, const struct mapping *mapping);

/*
 * The first bytes of a regular file under the root of the process, read with its rights and none of
 * ours (mounts.h). What is read is never opened here. Bytes or a negative errno.
 */
ssize_t helper_read_in_root(pid_t pid, const char *path, const struct root_file_rights *rights,
                            char *to, size_t bytes);

/*
 * A descriptor of a process's, if it is of this character device: a descriptor that the caller
 * closes; -EPROTOTYPE: it is another file; or a negative errno. What else it may be, a file of
 * FUSE, say, is neither looked at nor closed here.
 */
int helper_copy_device(pid_t pid, int number, dev_t device);

/* Whether a thread has the file of `fd` at a number: 1, 0, or a negative errno. */
int helper_same_file(pid_t tid, int number, int fd);

/*
 * Closes a descriptor in a process that nobody waits for, and returns at once: of a socket in which
 * a stranger may have put descriptors. What is closed last can wait in the kernel for as long as
 * its maker likes (SO_LINGER, a serial line). -1 is nothing.
 */
void helper_let_go(int fd);

/*
 * Closes the file of a mapping, or one under the root of a process. Whoever closes a deleted file
 * last frees what it has, which took 50 s for 300,000 pieces on an ext4, and SIGKILL does not end
 * that. So such a one is let go of as above.
 */
void helper_close(int fd);

/* pread of a descriptor of those two, of a copy by helper_dup, or of any other. */
ssize_t helper_pread(int fd, void *to, size_t bytes, uint64_t offset);
int helper_dup(int fd); /* F_DUPFD_CLOEXEC */

/* Whether a read of it got no answer: what was made of the file is not all that is in it. */
bool helper_was_unanswered(int fd);

/*
 * Whether a process of a user's may serve a file that was opened by these: by FUSE, or by that
 * below an overlay of the user's. No probe may be put there. The kernel reads the page of a probe
 * while no process can fork, and would wait for that server: the whole machine with it.
 */
bool helper_is_users(int fd);

/* Who (person.h) a descriptor was opened for; PERSON_UNKNOWN where that is not known. */
uint64_t helper_mapped_by(int fd);

/*
 * Who is behind a process, as long as there is a helper; PERSON_UNKNOWN for this one. Whoever was
 * behind one that has ended is known for a minute; not once another process has its number, which
 * the last two tell.
 */
uint64_t helper_person_of(pid_t pid);
uint64_t helper_person_of_owner(uint32_t pid); /* of this one as well: for budgets */
void helper_process_ended(pid_t pid, uint64_t end_ns);
void helper_process_begun(pid_t pid);

/* A namespace of a process, "user", for who is to be blamed if that cannot be had: a descriptor, or
 * a negative errno. */
int helper_open_namespace(pid_t pid, const char *kind, uint64_t person);

/* fstat that takes what is known rather than ask the server of the file system. 0 or -1. */
int file_stat(int fd, struct stat *st);

/* How long this thread, and helpers for it, have had a processor. */
uint64_t helper_busy_ns(void);

/* Whether nothing of this process is read now; also when it has ended meanwhile. */
bool helper_gave_up(pid_t pid);

/* Reads that were not answered, or not tried for that reason; ever. */
uint64_t helper_unanswered(void);

/* A sentence on a target that was given up, or whose user has made cuscope wait too long, once
 * each; false: there is none. */
bool helper_news(pid_t *pid, char *text, size_t size);
