/* SPDX-License-Identifier: MIT */
/*
 * Name and namespace of a pod, by what one of its processes sees: variables and files that the
 * kubelet puts into containers. The container can change all of them, so this is its own word. The
 * kubelet's answer (process_kubelet.h) is not.
 */
#ifndef CUSCOPE_IDENTITY_PROCESS_POD_H
#define CUSCOPE_IDENTITY_PROCESS_POD_H

#include "identity/process_identity.h"

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

#endif
