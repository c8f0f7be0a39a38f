/* SPDX-License-Identifier: MIT */
/*
 * The files that processes run, as the eBPF programs know them: the rows of each in a map of its
 * own, made once for all who map it. Beside them, what else user space wants to know of a file:
 * where Python's runtime is in it, and how glibc lays out a thread's own data.
 *
 * Files belong to those who are watched and are read as elf_image.h says. Rows are limited: 96 MiB
 * for the files that one process was first to bring, 256 MiB for all. Of these, and of the numbers
 * of files and rules, one user but root has three quarters. A file without room is walked to, and
 * not through.
 *
 * Not for several threads at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire_stacks.h"
#include "probe/maps.h"

struct code_tables;

/* A file that is held. */
struct code_table;

/* Functions of files that are probed besides, for whose stacks they have. */
enum code_mark {
	CODE_BACKWARD, /* PyTorch's autograd engine: a backward pass begins */
	CODE_WALKS,    /* the agent's library: it asks for the stack of its thread */
};

/*
 * Told of a file of this process that has such a function, and where. The descriptor of a probe
 * there, which is closed when nobody holds the file any more; negative: there is none. Where one is
 * there already `fd` is -1: it is this process's as well, and what is returned means nothing.
 */
typedef int (*code_tables_marked)(void *data, pid_t pid, enum code_mark mark, int fd,
                                  uint64_t offset);

/*
 * Descriptors of the programs' maps "unwind_files" and "unwind_rules"; they stay the caller's.
 * `marked` may be NULL.
 */
struct code_tables *code_tables_new(int files_map, int rules_map, code_tables_marked marked,
                                    void *data);
void code_tables_free(struct code_tables *tables);

/* No probe stays, and none is made any more. */
void code_tables_unmark(struct code_tables *tables);

/* For tests, before there are any; 0: as it is. */
void code_tables_limit(struct code_tables *tables, size_t process_bytes, size_t bytes,
                       size_t rules);

/*
 * The file of a mapping of `pid`, a process of `person` (person.h), read where it is new: some 10
 * ms for a MiB of .eh_frame. The vdso (no file) as well. NULL for other memory, and for a file that
 * cannot be opened or, without `may_read`, is new. To be dropped once for each time.
 */
struct code_table *code_tables_hold(struct code_tables *tables, pid_t pid, uint64_t person,
                                    const struct mapping *mapping, bool may_read);
void code_tables_drop(struct code_tables *tables, struct code_table **dropped, size_t n);

/*
 * Gives the programs the tables of all files that were held since. Each change of a map of maps
 * waits some 10 ms for all programs that run, so those of a process are one change.
 */
void code_tables_tell(struct code_tables *tables);

/* Its number for the programs: UNWIND_FILE_BARE where it has no tables, UNWIND_FILE_NONE where they
 * are not to be had. */
uint32_t code_table_number(const struct code_table *table);

/* What to take from an address of this mapping to have the address that the rows are for. */
uint64_t code_table_bias(const struct code_table *table, const struct mapping *mapping);

/* Addresses as linked; 0: not in this file. */
struct code_facts {
	uint64_t base;            /* of the file: what linked addresses count from */
	uint64_t python_runtime;  /* _PyRuntime */
	uint32_t python_version;  /* Py_Version, as 0x030c01f0; 0: from before 3.11, or none */
	uint32_t specific_offset; /* glibc's _thread_db_pthread_specific: where a thread has them */
};

const struct code_facts *code_table_facts(const struct code_table *table);

struct code_figures {
	size_t files;           /* with rows, now */
	uint64_t rows;          /* of these */
	size_t bytes;           /* of memory in the kernel */
	uint64_t ns;            /* spent on making them, ever */
	uint64_t tables_ever;   /* tables that were made */
	size_t bytes_most;      /* of memory at a time */
	uint64_t without_room;  /* files that had none, ever */
	uint64_t unreadable;    /* files whose rows could not be made, ever */
	uint64_t without_probe; /* times that a share of probes was used up, ever */
};

void code_tables_figures(const struct code_tables *tables, struct code_figures *figures);
