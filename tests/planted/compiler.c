// SPDX-License-Identifier: MIT
/* Stands in for NVIDIA's runtime compiler, whose name it has: without debug information, as that.
 */
static volatile double sink;

void nvrtcCompileProgram(double rounds);

static void __attribute__((noinline)) optimize(double rounds)
{
	for (double i = 0; i < rounds; i++)
		sink += i * 0.5;
}

void nvrtcCompileProgram(double rounds)
{
	optimize(rounds);
	sink = 0;
}
