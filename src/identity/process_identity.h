/* SPDX-License-Identifier: MIT */
/*
 * Who a process is, for metrics: its user, container, pod, job and rank.
 *
 * All strings are valid UTF-8 without control characters, end within their room, and are "" where
 * nothing is known. What a process, its user or its container can make up is marked as that:
 * IDENTITY_OWN_WORD. It is good for a label's value and for nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define IDENTITY_NAME    64  /* with the NUL, as are all of these */
#define IDENTITY_ID      72  /* 64 digits, or a name */
#define IDENTITY_POD     254 /* a DNS subdomain */
#define IDENTITY_LABEL   64  /* a DNS label */
#define IDENTITY_NUMBER  16
#define IDENTITY_COMMAND 96
#define IDENTITY_VALUE   128 /* of a variable that the user chose */
#define IDENTITY_CHOSEN  16  /* such variables */

enum identity_source {
	IDENTITY_UNKNOWN,
	IDENTITY_CGROUP,   /* a cgroup that root has made: the runtime's, or Slurm's */
	IDENTITY_KUBELET,  /* the kubelet's answer */
	IDENTITY_OWN_WORD, /* its environment, its files, or a cgroup that its user has made */
};

struct process_identity {
	pid_t pid;
	uint64_t start_time; /* in clock ticks since boot, as /proc/PID/stat has it */

	char name[IDENTITY_NAME];       /* /proc/PID/comm */
	char command[IDENTITY_COMMAND]; /* "python3 train.py": program, and an interpreter's script
	                                 */

	uint32_t uid; /* the real one, in our user namespace */
	char user[IDENTITY_NAME];

	char runtime[IDENTITY_NUMBER];    /* "docker", "containerd", "cri-o", "podman", ... */
	char container_id[IDENTITY_ID];   /* 64 digits, or the name that LXC and nspawn have */
	char container_name[IDENTITY_ID]; /* by the kubelet only */
	enum identity_source container_by;

	char pod_uid[40];
	char qos[IDENTITY_NUMBER]; /* "guaranteed", "burstable", "besteffort" */
	enum identity_source pod_uid_by;
	char pod[IDENTITY_POD];
	char namespace[IDENTITY_LABEL];
	enum identity_source pod_by; /* of these two */

	char unit[IDENTITY_VALUE]; /* systemd's, of what is in no container and no job */

	char slurm_job[IDENTITY_NUMBER], slurm_step[IDENTITY_NUMBER];
	enum identity_source slurm_by;

	/* Always its own word. */
	char slurm_user[IDENTITY_NAME];
	char rank[IDENTITY_NUMBER], local_rank[IDENTITY_NUMBER], world_size[IDENTITY_NUMBER];
	char chosen[IDENTITY_CHOSEN][IDENTITY_VALUE];

	bool environment_read; /* false: it was refused, or the process has none */
	bool environment_cut;  /* it is longer than what is looked at */
};

/* Variables of an environment, as /proc/PID/environ has it: NAME=VALUE, each with a NUL. */

#define PROCESS_VARIABLES 64 /* that can be looked for at once */

struct process_variable {
	const char *name;
	char *value; /* "" where there is none; made harmless, and cut to its room */
	size_t room;
};

/* At most PROCESS_VARIABLES of them. As getenv does, the first of a name counts. The block need not
 * end with a NUL. */
void process_environ_find(const char *block, size_t bytes, const struct process_variable *wanted,
                          size_t n);

/* Bytes of a stranger as text, up to a NUL: what is no character or a control is \xNN, and what
 * does not fit into `room` is left out from the first character on that does not. */
void process_text(char *to, size_t room, const char *from, size_t bytes);

/*
 * Names of users by their uids, from the machine's file of users. Names are kept for some minutes,
 * those of a bounded number of uids. A uid of a range that a user was given (/etc/subuid), as the
 * processes of his containers have, counts as that user.
 *
 * Not for several threads at a time.
 */

#define PROCESS_USERS_MAX 1024 /* whose names are kept */

struct process_users;

/* `passwd`: instead of the machine's, for tests; NULL: that. */
struct process_users *process_users_new(const char *passwd);
void process_users_free(struct process_users *users);

/* The number itself where there is no name. `now_ns`: CLOCK_MONOTONIC. */
void process_users_name(struct process_users *users, uint32_t uid, uint64_t now_ns, char *name,
                        size_t room);

/*
 * Name and namespace of a pod, by what one of its processes sees: variables and files that the
 * kubelet puts into containers. The container can change all of them, so this is its own word. The
 * kubelet's answer (process_kubelet.h) is not.
 */

/* Of its environment; "" where there is none. */
struct process_pod_words {
	char name[IDENTITY_POD];        /* POD_NAME */
	char namespace[IDENTITY_LABEL]; /* POD_NAMESPACE */
	char hostname[IDENTITY_POD];    /* HOSTNAME */
};

/* Reads the first bytes of a file as the process sees it: as many, or a negative errno. */
struct process_pod_files {
	ssize_t (*read)(void *data, const char *path, char *to, size_t bytes);
	void *data;
};

/* Sets pod, namespace and pod_by. `node`: this machine's name, which is no pod's. */
void process_pod_find(const struct process_pod_words *words, const struct process_pod_files *files,
                      const char *node, struct process_identity *identity);

/* As Kubernetes has it: small letters, digits and "-", and "." in a name of more parts. */
bool process_pod_is_name(const char *text, size_t most, bool parts);

/* ---- process labels ------------------------------------------------------------------------ */

/*
 * The labels of a process's metrics. Their names stay as they are: dashboards join by them.
 *
 *   process, pid, user, container, pod, namespace, slurm_job, slurm_step, rank
 *
 * and one for each variable that the user chose: "env_" and its name.
 */

#define PROCESS_LABELS     (9 + IDENTITY_CHOSEN)
#define PROCESS_LABEL_NAME 80

/* Which variables become labels. All 0: none. */
struct process_label_choice {
	size_t n;
	char labels[IDENTITY_CHOSEN][PROCESS_LABEL_NAME]; /* "env_TEAM" */
};

/* The same name twice is one label. 0, or a negative errno with a sentence. */
int process_labels_choose(struct process_label_choice *choice, const char *variable,
                          struct err *err);

/* The variable behind a label. */
const char *process_labels_variable(const struct process_label_choice *choice, size_t i);

struct process_label {
	const char *name, *value; /* of the choice or static; of the identity or the texts */
};

struct process_label_texts {
	char pid[IDENTITY_NUMBER], container[IDENTITY_ID];
};

/*
 * The labels that have a value, in the order above: as many as are returned. Values are valid UTF-8
 * without control characters; quotes and backslashes are whoever's that writes them to escape.
 */
size_t process_labels(const struct process_identity *identity,
                      const struct process_label_choice *choice, struct process_label_texts *texts,
                      struct process_label labels[PROCESS_LABELS]);

/* The value of label `container`: its name where the kubelet has told it, else its id, 12 digits
 * of it as docker shows them. */
void process_labels_container(const struct process_identity *identity, char text[IDENTITY_ID]);
