// SPDX-License-Identifier: MIT
/*
 * Makes a file of many pieces with holes between them, which a file system takes long to free: who
 * does that waits in the kernel, and no signal ends it.
 *
 *   pieces add FILE N     appends N of them
 *   pieces free FILE N    the same; deletes the file, and prints how many seconds it took to free
 * it pieces hole FILE N    the same, with none of it in memory; says "ready", and waits for a line.
 *                         Then it maps FILE for execution while a hole is punched into all pieces,
 *                         which keeps readers waiting, and prints how many seconds that took
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PIECE 4096

static int file;
static off_t from;
static long pieces;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void add(const char *path)
{
	static char piece[PIECE];

	file = open(path, O_RDWR | O_CLOEXEC);
	if (file < 0)
		fail(path);
	from = lseek(file, 0, SEEK_END) / PIECE * PIECE + 2 * PIECE;
	memset(piece, 'x', sizeof(piece));
	for (long i = 0; i < pieces; i++)
		if (pwrite(file, piece, PIECE, from + i * 2 * PIECE) != PIECE)
			fail("pwrite");
	if (fsync(file))
		fail("fsync");
}

static void tell(const char *what, double begin)
{
	printf("%s %.3f\n", what, seconds() - begin);
	fflush(stdout);
}

static void *punch(void *data)
{
	double begin = seconds();

	if (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, pieces * 2 * PIECE))
		fail("fallocate");
	tell("punched", begin);
	return data;
}

static void hole(void)
{
	const struct timespec moment = { .tv_nsec = 200000000 };
	pthread_t thread;

	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	printf("ready\n");
	fflush(stdout);
	getchar();
	pthread_create(&thread, NULL, punch, NULL);
	nanosleep(&moment, NULL);
	if (mmap(NULL, PIECE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
		fail("mmap");
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	double begin;

	if (argc != 4)
		return 2;
	pieces = atol(argv[3]);
	add(argv[2]);
	if (!strcmp(argv[1], "hole"))
		hole();
	if (strcmp(argv[1], "free"))
		return 0;
	begin = seconds();
	unlink(argv[2]);
	close(file);
	tell("freed", begin);
	return 0;
}
