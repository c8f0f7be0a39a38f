// SPDX-License-Identifier: MIT
/*
 * A program with names that a demangler does not get through: each level has the one before it
 * twice, and nothing of it is printed.
 *
 *   riddles kernels N  launches N kernels that have such names, and two that do not
 *   riddles stacks     runs in a function of such a name until its input ends
 *   riddles calls      calls it a hundred times
 *
 * It brings its own driver, whose functions do nothing.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default"), noipa))
#define RIDDLE                                                                                     \
	"_Z1fDpFv1k1bIS_S_ES0_IS1_S1_ES0_IS2_S2_ES0_IS3_S3_ES0_IS4_S4_ES0_IS5_S5_ES0_"             \
	"IS6_S6_ES0_IS7_S7_ES0_IS8_S8_ES0_IS9_S9_ES0_ISA_SA_ES0_ISB_SB_ES0_ISC_SC_ES0"             \
	"_ISD_SD_ES0_ISE_SE_ES0_ISF_SF_ES0_ISG_SG_ES0_ISH_SH_ES0_ISI_SI_ES0_ISJ_SJ_ES"             \
	"0_ISK_SK_ES0_ISL_SL_ES0_ISM_SM_ES0_ISN_SN_ES0_ISO_SO_ES0_ISP_SP_ES0_ISQ_SQ_E"             \
	"S0_ISR_SR_ES0_ISS_SS_ES0_IST_ST_ES0_ISU_SU_EE"

EXPORT int cuInit(unsigned flags);
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
                          void **extra);
int riddle(int n) __asm__(RIDDLE);

int cuInit(unsigned flags)
{
	return flags ? 1 : 0; /* no locked instruction first: it cannot be probed */
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	*function = module;
	return name ? 0 : 1;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
	return function ? 0
	                : (int)(gx + gy + gz + bx + by + bz + shared + !!stream + !!params +
	                        !!extra);
}

static void launch(const char *name)
{
	static long made;
	void *function, *handle = (void *)(0x10000 + 256 * ++made);

	cuModuleGetFunction(&function, handle, name);
	cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

/* One more parameter each: all differ. */
static void kernels(long n)
{
	size_t len = strlen(RIDDLE);
	char *name = calloc(1, len + (size_t)n + 1);

	launch("_Z5firstIfEvPT_");
	strcpy(name, RIDDLE);
	for (long i = 0; i < n; i++) {
		name[len + (size_t)i] = 'i';
		launch(name);
	}
	launch("_Z4lastPKfi");
	free(name);
}

__attribute__((noipa)) int riddle(int n)
{
	volatile int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i;
	return sum;
}

static void stacks(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	puts("ready");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0)
		riddle(10000000);
}

int main(int argc, char **argv)
{
	cuInit(0);
	if (argc == 3 && !strcmp(argv[1], "kernels"))
		kernels(atol(argv[2]));
	else if (argc == 2 && !strcmp(argv[1], "stacks"))
		stacks();
	else
		for (int i = 0; i < 100; i++)
			riddle(i);
	return 0;
}
