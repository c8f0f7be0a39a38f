/* SPDX-License-Identifier: MIT */
/*
 * Reads who a process is. Files of /proc/PID are opened under one descriptor of that folder, so all
 * that is read is of one process even when its number is given to another meanwhile. What needs the
 * memory of the process is read aside (probe/helper.h), which may take as long as that has limits.
 *
 * Not for several threads at a time.
 */
#pragma once

#include <stddef.h>

#include "identity/process_identity.h"

#define PROCESS_ENVIRONMENT (256u << 10) /* bytes of it that are looked at */

struct process_reader_options {
	struct process_label_choice choice; /* variables whose values become labels */
	/* For tests: a made /proc with files "environ" and "cmdline", and a file of users. */
	const char *made_proc, *made_users;
};

struct process_reader;

/* Copies the options, but not the strings in them. NULL: /proc cannot be opened. */
struct process_reader *process_reader_new(const struct process_reader_options *options);
void process_reader_free(struct process_reader *reader);

void process_reader_choose(struct process_reader *reader,
                           const struct process_label_choice *choice);

/*
 * False: the process is gone. Who has begun after `latest` is another process with its number; in
 * clock ticks since boot, 0: whenever.
 */
bool process_reader_read(struct process_reader *reader, pid_t pid, uint64_t latest,
                         struct process_identity *identity);

/* Only what tells whether to read again: a hash of name and cgroups. False as above. */
bool process_reader_look(const struct process_reader *reader, pid_t pid, uint64_t latest,
                         uint64_t *hash);

/* ---- process command ----------------------------------------------------------------------- */

/*
 * A process's command in a few words: "python3 train.py", where its name alone is python3. No more
 * of a command line is shown, since passwords stand there.
 */

/* Of /proc/PID/cmdline: words, each with a NUL. Harmless, and cut to its room. */
void process_command_parse(const char *words, size_t bytes, char *command, size_t room);

/* ---- process cgroup ------------------------------------------------------------------------- */

struct process_cgroup {
	char runtime[IDENTITY_NUMBER], container_id[IDENTITY_ID];
	char pod_uid[40], qos[IDENTITY_NUMBER];
	char slurm_job[IDENTITY_NUMBER], slurm_step[IDENTITY_NUMBER];
	char unit[IDENTITY_VALUE];
	enum identity_source container_by, pod_by, slurm_by;
};

/* Of one path. */
void process_cgroup_parse(const char *path, struct process_cgroup *cgroup);

/*
 * Of the text of /proc/PID/cgroup, which has a line for each hierarchy. What one line does not tell
 * is taken from the others. The text is changed.
 */
void process_cgroups_parse(char *text, struct process_cgroup *cgroup);
