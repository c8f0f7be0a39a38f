# SPDX-License-Identifier: MIT
# make test-integration    cuscope itself on the programs of tests/programs (root)
# make stress              all of it that takes long: storms of 4,000 short processes, agents that come and go (root)
# make stress-divert       functions diverted and put back a thousand times in a process that calls them all the time (root)
# make stress-gpu          agents that come and go a thousand times, and deaths at any moment (root)

test-integration: $(B)/cuscope programs simcuda simnvml
	@tests/integration/run --build $(B)

stress-gpu: $(B)/cuscope programs simcuda
	GPU_ROUNDS=1000 tests/integration/run --build $(B) 'gpu_stress_*'

stress-divert: $(B)/cuscope programs simcuda
	STRESS_ROUNDS=1000 tests/integration/run --build $(B) 'stress_divert_*'

stress: stress-gpu stress-divert
	STORM_PROCESSES=4000 tests/integration/run --build $(B) 'storm_*'

.PHONY: test-integration stress stress-gpu stress-divert
