// SPDX-License-Identifier: MIT
#include "node/recorder_child.h"

#include <string.h>
#include <unistd.h>

#include "node/recorder_process.h"

#define PATIENCE_NS 5000000000ull /* for one that takes its probes away */

int recorder_child_start(struct recorder_child *child, const struct recorder_settings *settings,
                         int spool, struct err *err)
{
	struct recorder_message setup = { .kind = RECORDER_SETUP, .setup = *settings };
	char name[] = RECORDER_NAME, *argv[] = { name, NULL };
	const struct worker_program program = { .argv = argv,
		                                .environment = environ,
		                                .with = spool };
	int rc;

	*child = (struct recorder_child){ 0 };
	rc = worker_start(&child->worker, &program);
	if (rc)
		return err_set(err, rc, "starting the recorder: %s", strerror(-rc));
	recorder_send(child->worker.socket, &setup);
	return 0;
}

void recorder_child_stop(struct recorder_child *child, uint64_t now_ns)
{
	if (!child->worker.pid || child->worker.socket < 0)
		return;
	close(child->worker.socket);
	child->worker.socket = -1;
	child->ready = false;
	child->end_by_ns = now_ns + PATIENCE_NS;
}

bool recorder_child_ended(struct recorder_child *child, uint64_t now_ns)
{
	bool late = child->end_by_ns && now_ns >= child->end_by_ns;

	if (!child->worker.pid)
		return true;
	if (!(late ? worker_kill(&child->worker, 0, NULL) : worker_ended(&child->worker, 0, NULL)))
		return false;
	*child = (struct recorder_child){ .worker = child->worker };
	return true;
}
