// SPDX-License-Identifier: MIT
#include "identity/process_labels.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PREFIX    "env_"
#define ID_DIGITS 64
#define ID_SHOWN  12

static bool is_variable(const char *name)
{
	if (!isalpha((unsigned char)name[0]) && name[0] != '_')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	return true;
}

int process_labels_choose(struct process_label_choice *choice, const char *variable,
                          struct err *err)
{
	if (!is_variable(variable) || strlen(PREFIX) + strlen(variable) >= PROCESS_LABEL_NAME)
		return err_set(
			err, EINVAL,
			"'%s' is no name of a variable that could be a label: letters, digits "
			"and _, at most %zu",
			variable, PROCESS_LABEL_NAME - strlen(PREFIX) - 1);
	for (size_t i = 0; i < choice->n; i++)
		if (!strcmp(process_labels_variable(choice, i), variable))
			return 0;
	if (choice->n == IDENTITY_CHOSEN)
		return err_set(err, E2BIG, "more than %d variables as labels, '%s' is one too many",
		               IDENTITY_CHOSEN, variable);
	snprintf(choice->labels[choice->n++], PROCESS_LABEL_NAME, PREFIX "%s", variable);
	return 0;
}

const char *process_labels_variable(const struct process_label_choice *choice, size_t i)
{
	return choice->labels[i] + strlen(PREFIX);
}

void process_labels_container(const struct process_identity *identity, char text[IDENTITY_ID])
{
	const char *id = identity->container_id;

	if (identity->container_name[0])
		snprintf(text, IDENTITY_ID, "%s", identity->container_name);
	else
		snprintf(text, IDENTITY_ID, "%.*s",
		         strlen(id) == ID_DIGITS ? ID_SHOWN : IDENTITY_ID, id);
}

static size_t add(struct process_label *labels, size_t n, const char *name, const char *value)
{
	if (!value[0])
		return n;
	labels[n] = (struct process_label){ name, value };
	return n + 1;
}

size_t process_labels(const struct process_identity *identity,
                      const struct process_label_choice *choice, struct process_label_texts *texts,
                      struct process_label labels[PROCESS_LABELS])
{
	size_t n = 0;

	snprintf(texts->pid, sizeof(texts->pid), "%d", identity->pid);
	process_labels_container(identity, texts->container);
	n = add(labels, n, "process", identity->name);
	n = add(labels, n, "pid", texts->pid);
	n = add(labels, n, "user", identity->user);
	n = add(labels, n, "container", texts->container);
	n = add(labels, n, "pod", identity->pod);
	n = add(labels, n, "namespace", identity->namespace);
	n = add(labels, n, "slurm_job", identity->slurm_job);
	n = add(labels, n, "slurm_step", identity->slurm_step);
	n = add(labels, n, "rank", identity->rank);
	for (size_t i = 0; i < choice->n; i++)
		n = add(labels, n, choice->labels[i], identity->chosen[i]);
	return n;
}
