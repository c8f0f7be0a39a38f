// SPDX-License-Identifier: MIT
/* Any bytes as paths of cgroups, an environment and a command line: texts end, and are harmless. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "identity/process_read.h"
#include "identity/process_identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, size_t room)
{
	if (strnlen(text, room) == room)
		abort();
	while (*text) {
		unsigned code;
		size_t len = text_utf8(text, &code);

		if (!len || text_is_hostile(code))
			abort();
		text += len;
	}
}

static void check_cgroup(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1); /* of just this size, for AddressSanitizer */
	struct process_cgroup cgroup;

	memcpy(text, data, size);
	text[size] = '\0';
	process_cgroups_parse(text, &cgroup);
	check(cgroup.runtime, sizeof(cgroup.runtime));
	check(cgroup.container_id, sizeof(cgroup.container_id));
	check(cgroup.pod_uid, sizeof(cgroup.pod_uid));
	check(cgroup.qos, sizeof(cgroup.qos));
	check(cgroup.slurm_job, sizeof(cgroup.slurm_job));
	check(cgroup.slurm_step, sizeof(cgroup.slurm_step));
	check(cgroup.unit, sizeof(cgroup.unit));
	if (!cgroup.container_id[0] != !cgroup.container_by ||
	    !cgroup.pod_uid[0] != !cgroup.pod_by || !cgroup.slurm_job[0] != !cgroup.slurm_by)
		abort();
	free(text);
}

static void check_words(const uint8_t *data, size_t size)
{
	char *block = malloc(size ? size : 1), rank[8], other[IDENTITY_POD], command[32];
	const struct process_variable wanted[] = { { "RANK", rank, sizeof(rank) },
		                                   { "A", other, sizeof(other) } };

	memcpy(block, data, size);
	process_environ_find(block, size, wanted, 2);
	process_command_parse(block, size, command, sizeof(command));
	check(rank, sizeof(rank));
	check(other, sizeof(other));
	check(command, sizeof(command));
	if (process_pod_is_name(other, 253, true) && strpbrk(other, "\"\\\n =/"))
		abort();
	free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_cgroup(data, size);
	check_words(data, size);
	return 0;
}
