# The project's tasks. `uv run just` lists them; `uv run just check` is what CI runs.

set shell := ["bash", "-euo", "pipefail", "-c"]

_list:
    @just --list --unsorted

# everything that must hold before a change lands
check: lint types imports pytest-only cover

# style, unused code, unsafe constructs, workflows
lint:
    uv run --frozen ruff check
    uv run --frozen ruff format --check
    uv run --frozen zizmor --offline --no-progress --quiet .github/workflows

# put right what can be put right by itself
fix:
    uv run --frozen ruff check --fix
    uv run --frozen ruff format

# mypy --strict on sources, infrastructure and tests
types:
    uv run --frozen mypy

# the walls between domain, adapters, entrypoints and infrastructure
imports:
    uv run --frozen lint-imports

# the Lambda bundle, and its size
bundle architecture="arm64":
    uv run --frozen python -m infra.bundle --architecture {{ architecture }}

# the CloudFormation template, checked by cdk-nag and cfn-lint; options as `-c stage=prod`
synth *options:
    uv run --frozen -- npx --yes aws-cdk@2.1148.1 synth --quiet --no-notices {{ options }}
    uv run --frozen cfn-lint cdk.out/*.template.json

# the real stack on an emulator, by the CDK command line
e2e:
    uv run --frozen pytest tests/infra tests/e2e

# all tests
test *arguments:
    uv run --frozen pytest {{ arguments }}

proofs := "tests/models tests/simulation tests/peers"
proofs_apart := "--ignore tests/models --ignore tests/simulation --ignore tests/peers"

# all tests, with branch coverage (the proofs without, which it would slow down): the domain whole, the rest at least 95 %
cover:
    uv run --frozen pytest -n auto --cov --cov-report= {{ proofs_apart }}
    uv run --frozen coverage report --include='src/domain/*' --fail-under=100
    uv run --frozen coverage report --fail-under=95
    uv run --frozen pytest -n auto {{ proofs }}

bare := "UV_PROJECT_ENVIRONMENT=.venv-pytest uv run --frozen --no-default-groups --only-group test pytest -q"

# in an environment that holds pytest and nothing else: domain, walls, the contract of the memory store (under 1 s); then
# the stores that need no more than that
pytest-only:
    {{ bare }} tests/domain tests/architecture tests/contract -k "not sqlite"
    {{ bare }} tests/contract tests/adapters/stores/test_memory.py -k "sqlite or lock"

# the story in two seconds
demo:
    uv run --frozen onejob demo

# kill -9 two runs over one file, so many times (CI: 4); the counts are printed
kill-test kills="50" seed="1":
    ONEJOB_KILLS={{ kills }} ONEJOB_SEED={{ seed }} uv run --frozen pytest -q -s tests/entrypoints/test_run_killed.py

# three `onejob work` over a queue of so many jobs and a fifth of duplicates, killed, cut off from store and queue, suspended
# and clock-stepped (CI: 300); the counts are printed
work-proof jobs="10000" seed="1":
    ONEJOB_WORK_JOBS={{ jobs }} ONEJOB_SEED={{ seed }} uv run --frozen pytest -q -s tests/entrypoints/test_work_killed.py

# deterministic simulation: so many seeds, each a run of the real code in a world of its own (the long run, in
# stretches: 2000000 --resume simulated.json)
simulate seeds="20000" *options:
    uv run --frozen python -m tests.simulation --seeds {{ seeds }} {{ options }}

# is every bug that is planted in a copy of the source found: by its near tests, and by the simulator? With a number: in
# how many of so many seeds
planted seeds="": planted-near
    uv run --frozen python -m tests.simulation.planted {{ if seeds == "" { "" } else { "--seeds " + seeds } }}

# just those that near tests must find (about a minute); with words the bugs whose names have one of them
planted-near *words:
    uv run --frozen python -m tests.planted.near {{ words }}

# requests made from its OpenAPI document against `onejob serve`, so many of a kind (CI: 10): no error of the server, no
# answer that the document does not have, nothing taken that it forbids
http-fuzz examples="2000" seed="1":
    ONEJOB_HTTP_EXAMPLES={{ examples }} ONEJOB_SEED={{ seed }} uv run --frozen pytest -q -s tests/entrypoints/test_serve.py -k made_from_the_document

# `onejob run` of 100,000 small jobs: rate and memory, beside what the disk can do
bench-run jobs="100000":
    uv run --frozen python benchmarks/run_file.py {{ jobs }}

# the same faults against onejob, Powertools and idemkit: writes docs/peers.md (about 3 minutes)
peers *options:
    uv run --frozen python -m benchmarks.peers {{ options }}

# beside bare Powertools, idemkit and two queues: a table with goals, JSON and a plot in benchmarks/results (--quick: 3 minutes)
bench *options:
    PYTHONPATH=src:. uv run --frozen --group bench python -m benchmarks {{ options }}

# every store against the model of its port, in so many new lives each (CI: a few hundred, always the same)
models lives="2000":
    ONEJOB_MODEL_LIVES={{ lives }} uv run --frozen pytest -q -s tests/models/test_store_model.py -k model_of_its_port

# every schedule of two workers and four deliveries, with a kill and a lapse anywhere (CI: those with few preemptions)
schedules:
    ONEJOB_ALL_SCHEDULES=1 uv run --frozen pytest -q -s --durations=5 tests/models/test_every_schedule.py -k promise

# mutation testing of domain and SQS with the fast tests (minutes); what may survive stands in docs/mutants.md
mutate *names:
    uv run --frozen mutmut run {{ names }}
    uv run --frozen mutmut results
