/* SPDX-License-Identifier: MIT */
/*
 * One look at what a process has mapped: its files are read where they are new, and what the eBPF
 * programs are to know of it is put together.
 */
#pragma once

#include "unwind/code_tables.h"
#include "unwind/python_code.h"

struct looked_at { /* an executable mapping */
	uint64_t start, end;
	struct mapping mapping;
	char *path;
	struct code_table *table; /* NULL: none */
};

struct code_look {
	struct code_tables *all;
	pid_t pid;
	uint64_t person;  /* whose it is: person.h */
	unsigned program; /* the asker's own */
	struct looked_at at[UNWIND_MAPPINGS_MAX];
	size_t n;
	size_t n_without, seen, turn; /* of no file; of all; how often one took another's place */
	struct wire_code code;
	uint64_t sum; /* a number of it: another one is news; never 0 */
	struct code_table **tables;
	size_t n_tables;
	bool cut;          /* more are mapped than fit */
	uint64_t until_ns; /* new files are read, */
	const bool *ends;  /* or until this is set, on another thread */
	bool dear;         /* its user has no time left for them: account.h */
	bool late;         /* some were left for the next look */
	/* of Python */
	uint64_t runtime; /* in memory */
	uint32_t version, specific;
};

/*
 * NULL when the process has ended. What it holds of `tables` is the caller's to drop, and it to
 * free. New files are read for a second at most, until *ends, and as long as the user `person`
 * (person.h) has time left: then `late` is set, and another look goes on.
 */
struct code_look *code_look_at(struct code_tables *tables, pid_t pid, uint64_t person,
                               const bool *ends);

enum python_found {
	PYTHON_NONE,      /* none that is laid out so */
	PYTHON_NOT_BEGUN, /* it may be: another look tells, once it has begun */
	PYTHON_BEGUN,
};

/*
 * What the programs are to know of the Python of the process, but for PYTHON_NONE. The key of the
 * thread's state has a mark of being made, which tells whether this is the place where it should
 * be. The programs look at the mark as well: so they can be told before Python begins.
 */
enum python_found code_look_python(const struct code_look *look, const struct python_layout *layout,
                                   struct wire_python *python);
