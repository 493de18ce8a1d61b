# mobpriv: `make book` builds the book, `make test` tests it, `make help` lists the rest.
# Needs Python 3.11, 3.12, 3.13 or 3.14 and nothing else; say which with PYTHON=/path/to/python.

SHELL := /bin/bash
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
WORKERS ?= 2
STARTED := $(shell date +%s)
# behind a command: how long all that was to be made took, and its exit code
TOOK = code=$$?; seconds=$$(($$(date +%s) - $(STARTED))); echo "make $@: $$((seconds / 60)) min $$((seconds % 60)) s"; exit $$code

.DEFAULT_GOAL := help
.PHONY: help book course test lint format bench real cluster count lock clean pdf release site-test environment

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 14

book: $(STAMP)  ## run every notebook on the embedded data and build the book
	@$(PY) -m mobpriv.cli book --workers $(WORKERS); $(TOOK)

course: $(STAMP)  ## the student and the teacher edition of the course, from the notebooks that make book ran
	@$(PY) -m mobpriv.cli course --workers $(WORKERS); $(TOOK)

pdf: $(STAMP)  ## print the whole built book to one PDF (needs Chromium)
	@$(PY) -m mobpriv.book.pdf; $(TOOK)

release: $(STAMP)  ## from a clean tree and its built book: wheel, sdist, book, PDF and certificates in dist/
	@$(PY) -m mobpriv.book.release; $(TOOK)

test: lint  ## lint and all tests (the built book has its own: make site-test)
	@# one more than cores: a test that starts a process or a kernel leaves a core idle
	@$(PY) -m pytest -n $$(($(WORKERS) + 1)) --dist worksteal --ignore tests/site $(ARGS); $(TOOK)

lint: $(STAMP)  ## formatting and lint only
	@$(PY) -m ruff format --check
	@$(PY) -m ruff check
	@$(PY) -m mobpriv.book.prose

site-test: $(STAMP)  ## open the built book in a headless browser: links, requests, scripts, accessibility
	@# one more than cores: a browser that waits leaves a core idle
	@$(PY) -m pytest -n $$(($(WORKERS) + 1)) --dist worksteal tests/site $(ARGS); $(TOOK)

format: $(STAMP)  ## format the code, strip the notebooks
	@$(PY) -m ruff format
	@$(PY) -m ruff check --fix
	@$(PY) -m nbstripout --keep-id notebooks/*.ipynb

bench: $(STAMP)  ## speed and memory beside the peers; with DATA=FILE also whole experiments on that file
	@for table in benchmarks/bench_*.py; do echo "$$table"; $(PY) "$$table" || exit 1; done
	@test -z "$(DATA)" || { $(PY) benchmarks/bench_ground.py "$(DATA)" && $(PY) benchmarks/whole.py "$(DATA)"; }

real: $(STAMP)  ## the long runs on real data that rewrite book/results: make real DATA=DIR
	@test -n "$(DATA)" || { echo "make real needs DATA=DIR, the folder with cabspotting.parquet, geolife.parquet, …" >&2; exit 2; }
	@$(PY) -m mobpriv.cli real "$(DATA)" --workers $(WORKERS); $(TOOK)

cluster: $(STAMP)  ## two Dask workers on this computer, for the functions that end in _on_cluster; Ctrl+C ends them
	@$(PY) -c 'import signal; from distributed import LocalCluster; \
	  cluster = LocalCluster(n_workers=2, threads_per_worker=1, scheduler_port=8786, dashboard_address=None); \
	  print(cluster.scheduler_address, flush=True); signal.pause()'

count:  ## lines of code of the package, the tests and the notebooks
	@for part in mobpriv tests; do echo "$$part: $$(git ls-files "$$part/*.py" | xargs cat | wc -l) lines"; done
	@python3 -c 'import glob, json; \
	  cells = [c for f in glob.glob("notebooks/*.ipynb") for c in json.load(open(f))["cells"] if c["cell_type"] == "code"]; \
	  size = lambda cells: sum(len("".join(c["source"]).splitlines()) for c in cells); \
	  drawing = [c for c in cells if "figure" in c["metadata"].get("tags", ())]; \
	  print(f"notebooks: {size(cells)} lines, {size(drawing)} of them in cells that draw")'

lock: $(STAMP)  ## pin requirements.lock again from pyproject.toml
	@$(PY) -m uv pip compile pyproject.toml --all-extras --universal --upgrade --no-header --no-annotate \
	  --no-emit-index-url --quiet --output-file requirements.lock

environment: $(STAMP)  ## create .venv with the pinned packages

clean:  ## remove what was built (not .venv, not book/results)
	rm -rf book/_build _build dist book/notebooks book/_generated course .pytest_cache .ruff_cache .hypothesis runs
	find mobpriv tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp makes a second call instant; a changed lock or pyproject.toml installs again. uv trusts the system's certificates, as pip
# does: behind a proxy it would fail.
$(STAMP): requirements.lock pyproject.toml
	@chosen=""; \
	for candidate in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python; do \
	  if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1; then \
	    chosen="$$candidate"; break; fi; \
	done; \
	if [ -z "$$chosen" ] && [ ! -x $(PY) ]; then \
	  echo "mobpriv needs Python 3.11, 3.12, 3.13 or 3.14 with venv (python3 here: $$(python3 --version 2>&1)): install one (Debian, Ubuntu: apt install python3-venv; macOS: brew install python@3.14) or say where one is, make PYTHON=/path/to/python3" >&2; exit 1; fi; \
	test -x $(PY) || { echo "creating $(VENV) with $$chosen"; "$$chosen" -m venv $(VENV); } || exit 1; \
	echo "installing the pinned packages"; \
	{ $(PY) -m pip install --quiet --disable-pip-version-check uv && \
	  UV_SYSTEM_CERTS=1 $(PY) -m uv pip install --quiet --python $(PY) --requirement requirements.lock; } || \
	{ echo "uv could not, so pip does: a minute or two"; \
	  $(PY) -m pip install --quiet --disable-pip-version-check --requirement requirements.lock; } && \
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . && \
	find mobpriv -name '*.nb[ci]' -delete  # compiled functions name modules that may have moved
	@touch $@
