# SPDX-License-Identifier: MIT
# make test-page           the page's modules in node, and pages in a browser without a window
# make page-checkers       gets axe, which looks for what keeps people from using a page, from npm, for the test that otherwise says SKIP

test-page: $(B)/cuscope programs planted-programs simcuda simnvml $(B)/bench/training $(addprefix $(B)/tests/export/,bombs edges events hard profiles ranks stacks)
	@tests/page/run --build $(B)

page-checkers:
	@mkdir -p $(B)/page-checkers
	cp tests/page/checkers/package.json tests/page/checkers/package-lock.json $(B)/page-checkers/
	npm ci --prefix $(B)/page-checkers --no-audit --no-fund --silent || { rm -rf $(B)/page-checkers/node_modules; exit 1; }

.PHONY: test-page page-checkers
