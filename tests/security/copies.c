// SPDX-License-Identifier: MIT
/*
 * copies PID FD: takes a descriptor of a process as cuscope takes those of nvidia-uvm, and asks
 * whether the process has it still. Says what came of it, by the name of a process of cuscope's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "probe/helper.h"
#include "probe/uvm_queue.h"

int main(int argc, char **argv)
{
	struct uvm_queue *queue;
	struct err err = { 0 };
	int rc, same;

	prctl(PR_SET_NAME, "cuscope");
	if (argc != 3 || helper_begin(&err))
		return 2;
	rc = uvm_queue_open(atoi(argv[1]), atoi(argv[2]), UVM_QUEUE_LEAST, NULL, &queue, &err);
	same = helper_same_file(atoi(argv[1]), atoi(argv[2]), 0);
	printf("%s; %s\n", rc ? err.text : "a queue",
	       same < 0 ? strerror(-same)
	       : same   ? "same"
	                : "other");
	helper_end();
	return 0;
}
