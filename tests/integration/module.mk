# SPDX-License-Identifier: MIT
# make test-integration    cuscope itself on the programs of tests/programs (root)
# make stress-long         the tests that are marked as such, which take 10 to 50 s each (root)
# make stress              all of it that takes long: storms of 4,000 short processes, agents that come and go (root)
# make stress-divert       functions diverted and put back a thousand times in a process that calls them all the time (root)
# make stress-in-process   all tests of integration and security with calls recorded inside (root)
# make stress-node         100,000 processes that the node agent sees come and go (root)
# make stress-gpu          agents that come and go a thousand times, and deaths at any moment (root)

test-integration: $(B)/cuscope programs simcuda simnvml security-programs planted-programs
	@tests/integration/run --build $(B)

stress-in-process: $(B)/cuscope programs simcuda simnvml inject-programs security-programs planted-programs
	tests/integration/run --build $(B) --in-process
	tests/integration/run --build $(B) --in-process --tests tests/security

stress-gpu: $(B)/cuscope programs simcuda
	GPU_ROUNDS=1000 tests/integration/run --build $(B) 'gpu_stress_*'

stress-divert: $(B)/cuscope programs simcuda
	STRESS_ROUNDS=1000 KILL_ROUNDS=100 tests/integration/run --build $(B) 'stress_divert_*'

stress-node: $(B)/cuscope programs simcuda
	NODE_PROCESSES=100000 tests/integration/run --build $(B) 'node_bounds_*'

stress-long: $(B)/cuscope programs simcuda simnvml security-programs planted-programs
	STRESS=1 tests/integration/run --build $(B) --marked
	STRESS=1 tests/integration/run --build $(B) 'dlopen_not_even_*'

stress-hooks: $(B)/cuscope programs security-programs
	STRESS_ROUNDS=1 tests/integration/run --build $(B) --tests tests/security 'a_file_with_symbols_*' 'threads_that_all_stand_*'

stress: stress-long stress-node stress-gpu stress-divert stress-hooks stress-in-process stress-vm
	STORM_PROCESSES=4000 tests/integration/run --build $(B) 'storm_*'

.PHONY: test-integration stress stress-long stress-node stress-gpu stress-divert stress-in-process
