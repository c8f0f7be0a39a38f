/* SPDX-License-Identifier: MIT */
/*
 * Who a process is, for metrics: its user, container, pod, job and rank.
 *
 * All strings are valid UTF-8 without control characters, end within their room, and are "" where
 * nothing is known. What a process, its user or its container can make up is marked as that:
 * IDENTITY_OWN_WORD. It is good for a label's value and for nothing else.
 */
#ifndef CUSCOPE_IDENTITY_PROCESS_IDENTITY_H
#define CUSCOPE_IDENTITY_PROCESS_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

#endif
