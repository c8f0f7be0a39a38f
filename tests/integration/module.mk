# SPDX-License-Identifier: MIT
# make test-integration    cuscope itself on the programs of tests/programs (root)
# make stress              all of it that takes long: storms of 4,000 short processes, agents that come and go (root)
# make stress-gpu          agents that come and go a thousand times, and deaths at any moment (root)

test-integration: $(B)/cuscope programs simcuda simnvml
	@tests/integration/run --build $(B)

stress-gpu: $(B)/cuscope programs simcuda
	GPU_ROUNDS=1000 tests/integration/run --build $(B) 'gpu_stress_*'

stress: stress-gpu
	STORM_PROCESSES=4000 tests/integration/run --build $(B) 'storm_*'

.PHONY: test-integration stress stress-gpu
