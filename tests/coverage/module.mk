# SPDX-License-Identifier: MIT
# make coverage     which lines of each folder of src the tests reach, and which functions none does; as root those of the
#                   integration and security tests as well. COVERAGE_PARTS names other parts of the test suite.

COVERAGE_PARTS ?= unit golden export $(if $(filter 0,$(shell id -u)),integration security)

# Only src is instrumented: the programs that are traced are as they are. What ends by _exit() writes its counts as well.
ifdef COVERAGE
# Who has become another user cannot write his counts, and is not to say so where a test reads what is said.
export GCOV_ERROR_FILE := /dev/null
$(LIB_OBJ) $(CLI_OBJ) $(AGENT_T_LIB): override CFLAGS += --coverage -fprofile-update=atomic
override LDFLAGS += --coverage
$(B)/cuscope $(B)/tests/unit/%: override LDFLAGS += -Wl,--wrap=_exit
$(B)/libcuscope.a: $(B)/tests/coverage/exit.o
endif

coverage:
	@find build/coverage -name '*.gcda' -delete 2>/dev/null || :
	$(MAKE) B=build/coverage COVERAGE=1 CFLAGS='-O0 -g' all programs simcuda simnvml
	-$(MAKE) B=build/coverage COVERAGE=1 CFLAGS='-O0 -g' agent-tests
	-$(MAKE) B=build/coverage COVERAGE=1 CFLAGS='-O0 -g' test TEST_PARTS='$(COVERAGE_PARTS)'
	tests/coverage/report build/coverage

.PHONY: coverage
