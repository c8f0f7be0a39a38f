/* SPDX-License-Identifier: MIT */
/* The golden trace `idle`: GPUs that are idle for every reason that there is. */
#ifndef TESTS_GOLDEN_IDLE_H
#define TESTS_GOLDEN_IDLE_H

struct scene;

void trace_idle(struct scene *scene);

#endif
