// SPDX-License-Identifier: MIT
#include "identity/process_pod.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FILE_BYTES 512 /* a name and its newline are shorter */

bool process_pod_is_name(const char *text, size_t most, bool parts)
{
	size_t len = strlen(text);

	if (!len || len > most || text[0] == '-' || text[0] == '.' || text[len - 1] == '-' ||
	    text[len - 1] == '.')
		return false;
	return strspn(text, parts ? "abcdefghijklmnopqrstuvwxyz0123456789-."
	                          : "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static bool take(char *to, size_t room, const char *text, bool parts)
{
	if (!process_pod_is_name(text, room - 1, parts))
		return false;
	memcpy(to, text, strlen(text) + 1);
	return true;
}

/* A file with a name and nothing else. *gave_up: who serves the files of this process does not
 * answer, or was not asked for that reason. */
static bool take_file(const struct process_pod_files *files, const char *path, char *to,
                      size_t room, bool *gave_up)
{
	char text[FILE_BYTES + 1];
	ssize_t n = *gave_up ? -ETIMEDOUT : files->read(files->data, path, text, FILE_BYTES);

	*gave_up = n == -ETIMEDOUT;
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (text[n - 1] == '\n')
		text[n - 1] = '\0';
	return strlen(text) + 1 >= (size_t)n && take(to, room, text, room == IDENTITY_POD);
}

/* The folders are links that the kubelet exchanges; the files in them are links, too. */
void process_pod_find(const struct process_pod_words *words, const struct process_pod_files *files,
                      const char *node, struct process_identity *identity)
{
	char *pod = identity->pod, *space = identity->namespace;
	bool gave_up = false;

	if (!take(space, IDENTITY_LABEL, words->namespace, false) &&
	    !take_file(files, "/var/run/secrets/kubernetes.io/serviceaccount/..data/namespace",
	               space, IDENTITY_LABEL, &gave_up))
		take_file(files, "/etc/podinfo/..data/namespace", space, IDENTITY_LABEL, &gave_up);
	if (!take(pod, IDENTITY_POD, words->name, true) &&
	    !take_file(files, "/etc/podinfo/..data/name", pod, IDENTITY_POD, &gave_up) &&
	    !take_file(files, "/etc/hostname", pod, IDENTITY_POD, &gave_up))
		take(pod, IDENTITY_POD, words->hostname, true);
	if (!strcmp(pod, node))
		pod[0] = '\0'; /* it has the node's network, and its name */
	if (pod[0] || space[0])
		identity->pod_by = IDENTITY_OWN_WORD;
}
