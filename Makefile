# make demo       set up and run the main job on simulated data
# make test       set up and run the tests
# make test-docs  set up and run every page of the documentation (CI runs both)
# make test-fast  the tests of data and numerics, while you work
# make docs       build the documentation in site/, offline
# make check      format, lint, types, import rules
# make format     rewrite the files in our style
# make size       lines, files, class names used twice: fails beyond the limits
# make hops       functions and files that fit, score, audit and benchmark enter, likewise (a minute)
# make bench      the benchmarks: fails where something got slower (make bench PARTS="fit pairs")
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Hundreds of processes import the same files in the tests: compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-docs test-fast docs check format size hops bench clean

$(BIN)/python:
	$(PYTHON) -m venv .venv

# One stamp a set of extras, so that `make demo` installs no more than it needs.
.venv/base: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable ".[fast,figures]"
	@touch $@
# facenet-pytorch brings MTCNN's weights, and a reference for the tests; the torch that it asks for is
# too old, so it comes without what it depends on.
.venv/test: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable ".[test,fast,figures,torch,embed,onnx,serve,postgres,spark,docs]"
	$(PIP) --no-deps facenet-pytorch
	@touch .venv/base .venv/docs $@
# The browser of the tests, where there is none yet. Without one they are skipped; in CI they fail.
AS_ROOT = $$(test "$$(id -u)" = 0 || echo sudo -n) env DEBIAN_FRONTEND=noninteractive
.venv/browser: $(BIN)/python
	@command -v chromium >/dev/null \
	  || { $(AS_ROOT) apt-get -qq update && $(AS_ROOT) apt-get -qq install --yes chromium; } >/dev/null \
	  || echo "make: no browser for the tests: install chromium (Debian: apt-get install chromium)" >&2
	@if command -v chromium >/dev/null; then touch $@; fi
# Java, for Spark, likewise; one apt-get at a time.
.venv/java: $(BIN)/python | .venv/browser
	@command -v java >/dev/null \
	  || { $(AS_ROOT) apt-get -qq update && $(AS_ROOT) apt-get -qq install --yes openjdk-17-jre-headless; } >/dev/null \
	  || echo "make: no Java for the tests of Spark: install Java 17 (Debian: apt-get install openjdk-17-jre-headless)" >&2
	@if command -v java >/dev/null; then touch $@; fi
.venv/check: .venv/base
	$(PIP) --editable ".[test,check,fast,figures,torch,embed,onnx,serve,postgres,spark,docs]"
	@touch $@

demo: .venv/base
	$(BIN)/faircal demo

# Packages and browser are set up side by side.
.PHONY: set-up
set-up:
	@$(MAKE) --no-print-directory --jobs=2 .venv/test .venv/browser .venv/java

# A thread a process, so that three share two cores well: many tests wait for Java, browsers and services.
PYTEST = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile
test: set-up
	$(PYTEST) --ignore tests/docs
test-docs: set-up
	$(PYTEST) tests/docs
test-fast: .venv/test
	$(PYTEST) $(addprefix tests/,_base calibrators compute data metrics model)

.venv/docs: .venv/base
	$(PIP) --editable ".[docs]"
	@touch $@

docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "site/index.html"

check: .venv/check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/check
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

size: $(BIN)/python
	@$(BIN)/python tools/size.py

hops: .venv/base
	@$(BIN)/python tools/hops.py $(WITH)

bench: .venv/test
	$(BIN)/python -m benchmarks $(PARTS)

clean:
	rm -rf .venv build dist site faircal-demo
