/* SPDX-License-Identifier: MIT */
/* What a target does: its waits, and what all of its works need. */
#ifndef CUSCOPE_TESTS_INJECT_TARGET_H
#define CUSCOPE_TESTS_INJECT_TARGET_H

/* Says what is not as it should be, and ends the program. */
__attribute__((format(printf, 1, 2), noreturn)) void wrong(const char *format, ...);

double now(void); /* in seconds */

extern _Thread_local int epoll_fd; /* of begin_epoll */

/* Waits of 0.2 s, each of which checks its result and its time; begin_*: what it opens first. */
void work_poll(void);
void work_ppoll(void);
void work_select(void);
void work_nanosleep(void);
void work_sleep_until(void);
void begin_epoll(void);
void work_epoll(void);
void begin_read(void);
void work_read(void);
void work_condition(void);

#endif
