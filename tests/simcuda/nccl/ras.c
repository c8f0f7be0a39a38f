// SPDX-License-Identifier: MIT
/* RAS, as NCCL 2.28.9 answers: lines of text on localhost:28028, by whichever process came first.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm.h"

#define PORT 28028

static const char *const function_names[NCCL_COUNTED] = { "Broadcast", "Reduce", "AllGather",
	                                                  "ReduceScatter", "AllReduce" };

static bool answers(const char *how)
{
	const char *wanted = getenv("SIMNCCL_RAS");

	return wanted && !strcmp(wanted, how);
}

static void write_rank(FILE *out, const struct shared_rank *of, int rank)
{
	int lie = answers("lie");

	fprintf(out,
	        "        {\n          \"rank\": %d,\n          \"host\": \"%s\",\n          "
	        "\"pid\": "
	        "%d,\n          \"cuda_dev\": %d,\n          \"nvml_dev\": %d,\n          "
	        "\"status\": "
	        "{\n            \"init_state\": 0,\n            \"async_error\": 0,\n            "
	        "\"finalize_called\": false,\n            \"destroy_flag\": false,\n            "
	        "\"abort_flag\": false\n          },\n          \"collective_counts\": {\n",
	        lie ? rank + 1 : rank, of->host, lie ? of->pid + 1 : of->pid, of->device,
	        of->device);
	for (int i = 0; i < NCCL_COUNTED; i++)
		fprintf(out, "            \"%s\": %llu%s\n", function_names[i],
		        (unsigned long long)__atomic_load_n(&of->counts[i], __ATOMIC_ACQUIRE) +
		                (lie ? 7 : 0),
		        i + 1 < NCCL_COUNTED ? "," : "");
	fprintf(out, "          }\n        }");
}

/* The real one lacks a comma there, too. */
static void write_missing(FILE *out, const struct shared_rank *of, int rank)
{
	fprintf(out,
	        "        {\n          \"rank\": %d,\n          \"host\": \"%s\",\n          "
	        "\"pid\": "
	        "%d,\n          \"cuda_dev\": %d,\n          \"nvml_dev\": %d\n          "
	        "\"status\": "
	        "{\n            \"unresponsive\": true,\n            \"considered_dead\": false\n"
	        "          }\n        }",
	        rank, of->host, of->pid, of->device, of->device);
}

static void write_comm(FILE *out, const struct shared *shared, bool first)
{
	int ranks = (int)shared->size, missing = answers("missing") ? ranks - 1 : ranks;

	fprintf(out,
	        "%s    {\n      \"hash\": \"0x%llx\",\n      \"secondary_hash\": \"0x%llx:0x%x\",\n"
	        "      \"size\": %d,\n      \"ranks_count\": %d,\n      \"missing_ranks_count\": "
	        "%d,\n"
	        "      \"ranks\": [\n",
	        first ? "" : ",\n", (unsigned long long)shared->hash,
	        (unsigned long long)shared->hash ^ 0x5555, shared->of[0].pid, ranks, missing,
	        ranks - missing);
	for (int i = 0; i < missing; i++) {
		fputs(i ? ",\n" : "", out);
		write_rank(out, &shared->of[i], i);
	}
	fputs("\n      ],\n      \"missing_ranks\": [\n", out);
	for (int i = missing; i < ranks; i++)
		write_missing(out, &shared->of[i], i);
	fputs("\n      ]\n    }", out);
}

/* Those of the job, of any of its processes. Returns how many; `out` NULL: they are only counted.
 */
static int each_comm(FILE *out)
{
	DIR *folder = opendir(comm_folder());
	int n = 0;

	for (const struct dirent *entry; folder && (entry = readdir(folder));) {
		struct shared shared;
		int fd;

		if (strncmp(entry->d_name, COMM_FILE, sizeof(COMM_FILE) - 1) != 0)
			continue;
		fd = openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC);
		if (read(fd, &shared, sizeof(shared)) == (ssize_t)sizeof(shared) && comms &&
		    shared.magic == comms->magic) {
			if (out)
				write_comm(out, &shared, !n);
			n++;
		}
		close(fd);
	}
	if (folder)
		closedir(folder);
	return n;
}

static void write_status(FILE *out)
{
	pthread_mutex_lock(&comms_lock);
	fprintf(out,
	        "{\n  \"nccl_version\": \"2.28.9\",\n  \"cuda_runtime_version\": 13000,\n  "
	        "\"cuda_driver_version\": 13000,\n  \"timestamp\": \"2026-01-01 00:00:00\",\n  "
	        "\"communicators_count\": %d,\n  \"communicators\": [\n",
	        each_comm(NULL));
	each_comm(out);
	pthread_mutex_unlock(&comms_lock);
	fputs("\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.001,\n    \"timeouts_count\": "
	      "0\n"
	      "  }\n}\n",
	      out);
}

static void write_huge(FILE *out)
{
	fputs("{\n  \"nccl_version\": \"", out);
	for (size_t i = 0; i < 1u << 30; i += 64)
		if (fputs("0123456789012345678901234567890123456789012345678901234567890123", out) <
		    0)
			return;
}

static void serve(FILE *in, FILE *out)
{
	char line[256];

	while (fgets(line, sizeof(line), in)) {
		if (answers("hang"))
			pause();
		if (!strncasecmp(line, "client protocol ", 16)) {
			fputs("SERVER PROTOCOL 2\n", out);
		} else if (!strncasecmp(line, "set format json", 15) ||
		           !strncasecmp(line, "timeout ", 8)) {
			fputs("OK\n", out);
		} else if (!strncasecmp(line, "status", 6) ||
		           !strncasecmp(line, "verbose status", 14)) {
			if (answers("huge"))
				write_huge(out);
			else
				write_status(out);
			return; /* the real one closes behind its answer */
		} else {
			fprintf(out, "ERROR: Unknown command %s", line);
		}
		fflush(out);
	}
}

/* With SIMNCCL_RAS_ONLY="FIRST-LAST" it answers these, and closes what comes before and after. */
static bool is_answered(int number)
{
	const char *only = getenv("SIMNCCL_RAS_ONLY");
	int first, last;

	return !only || sscanf(only, "%d-%d", &first, &last) != 2 ||
	       (number >= first && number <= last);
}

static void *ras_run(void *data)
{
	int listening = (int)(intptr_t)data, number = 0, fd;

	while ((fd = accept(listening, NULL, NULL)) >= 0) {
		FILE *in = fdopen(fd, "r"), *out = fdopen(dup(fd), "w");

		if (in && out && is_answered(++number))
			serve(in, out);
		if (out)
			fclose(out);
		if (in)
			fclose(in);
	}
	return NULL;
}

static void ras_listen(void)
{
	const char *enabled = getenv("NCCL_RAS_ENABLE"), *address = getenv("NCCL_RAS_ADDR");
	const char *colon = address ? strrchr(address, ':') : NULL;
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_port = htons(colon ? (uint16_t)atoi(colon + 1) : PORT),
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd, on = 1;
	pthread_t thread;

	if (enabled && !strcmp(enabled, "0"))
		return;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 8)) {
		close(fd);
		return; /* another one of the job answers */
	}
	signal(SIGPIPE, SIG_IGN);
	if (!pthread_create(&thread, NULL, ras_run, (void *)(intptr_t)fd))
		pthread_detach(thread);
}

void ras_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, ras_listen);
}
