/* SPDX-License-Identifier: MIT */
/*
 * What a file is asked for beside its rows: functions that are probed (enum code_mark), with the
 * shares that users have of these probes, and facts. Private to code_tables.c.
 */
#pragma once

#include "base/quota.h"
#include "unwind/code_tables.h"

struct elf_image;

/* Probes in files: of each process that an agent was put into there is one in its library, of a
 * command and its children one in theirs. Each takes the kernel some 40 ms. */
#define CODE_MARKS_PROBES 64

struct code_marks {
	code_tables_marked marked; /* NULL: no file is asked */
	void *data;
	struct quota shares;
	uint64_t refused; /* times that a share was used up */
};

/* Of a file. */
struct marked_place {
	enum code_mark mark;
	uint64_t at; /* offset of the function; 0: the file has none */
	int probe;   /* there; -1: none */
	uint64_t person;
	uint32_t pid; /* whose share it is of */
};

void code_marks_init(struct code_marks *marks, code_tables_marked marked, void *data);

void code_mark_find(const struct code_marks *marks, struct marked_place *place,
                    const struct elf_image *image, const char *path);

/*
 * For each who holds the file: the first may have had no share left, or be no target, and a probe
 * is in the file, for all. The kernel's time counts as that of who is looked at, though it sleeps
 * meanwhile.
 */
void code_mark_probe(struct code_marks *marks, struct marked_place *place, pid_t pid,
                     uint64_t person, int fd);

/* The probe, if there was one, is closed. */
void code_mark_closed(struct code_marks *marks, struct marked_place *place);

void code_facts_find(struct code_facts *facts, const struct elf_image *image);
