/* SPDX-License-Identifier: MIT */
/*
 * Name and namespace of a pod, by what one of its processes sees: variables and files that the
 * kubelet puts into containers. The container can change all of them, so this is its own word. The
 * kubelet's answer (process_kubelet.h) is not.
 */
#ifndef CUSCOPE_IDENTITY_PROCESS_POD_H
#define CUSCOPE_IDENTITY_PROCESS_POD_H

#include "identity/process_identity.h"

#include "base/err.h"

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

#endif
