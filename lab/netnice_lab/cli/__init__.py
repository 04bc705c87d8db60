# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The command ``netnice-lab``."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.progress import Progress

from .. import LabError, output, records, report, stats, vm
from ..engines import base as runs
from ..engines import kernel, sim
from ..experiment import Context
from ..scenario import find as find_scenario
from ..scenario import read as read_scenario
from ..scenario import variants as variants_of
from .claims import app as claims_app
from .claims import reproduce
from .console import (
    CORES,
    JOBS,
    MOST_SEEDS,
    SEEDS,
    open_streams,
    progress,
    stderr,
    stdout,
    tabulate,
)
from .matrix import matrix, search
from .saved import AS_JSON, display, plot, table, watched

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Measure background TCP, on the Linux kernel and in a packet-level simulator.\n\n"
    "Example: netnice-lab run k1 --engine sim --seeds 5\n\n"
    "The kernel runs in a virtual machine in virtual time: a slow computer measures what a fast "
    "one does.",
    epilog="Exit status: 0 all went well, 1 something failed (a sentence says what), 2 wrong usage "
    "or a scenario that is not valid.",
)
ONLY = typer.Option(
    "--only",
    metavar="NAME",
    help='Run only this background, beside "none" and "strict priority"; may be repeated.',
)
SET = typer.Option(
    "--set",
    metavar="KEY=VALUE",
    help="Set a key of the scenario, as in foreground.load=0.3; may be repeated.",
)


@app.command(name="vm")
def vm_command(
    command: Annotated[list[str], typer.Argument(help="The command and its arguments.")],
    timeout: Annotated[float, typer.Option(help="Stop the machine after this many seconds.")] = 600,
    memory: Annotated[str, typer.Option(help="Memory of the machine.")] = "1G",
    series: Annotated[
        str | None, typer.Option("--kernel", help="Debian's kernel: 6.1 or 6.12.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the machine's console on standard error.")
    ] = False,
) -> None:
    """Run a command as root in the virtual machine.

    Example: netnice-lab vm -- uname -r

    Its output and exit status are passed through. It has this computer's
    files; what it writes to most of them is thrown away. Standard input is
    empty.
    """
    ended = vm.run(
        command, timeout_s=timeout, memory=memory, verbose=verbose,
        stdout=vm.pass_through(sys.stdout.buffer), stderr=vm.pass_through(sys.stderr.buffer),
        series=series, say=stderr.print,
    )  # fmt: skip
    raise typer.Exit(ended.status)


class Engine(StrEnum):
    """What carries the traffic."""

    KERNEL = "kernel"
    SIM = "sim"
    BOTH = "both"


@app.command(name="run")
def run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A scenario: k1, or a TOML file.")],
    engine: Annotated[
        Engine,
        typer.Option(help="What runs it: the Linux kernel, the simulator, or both side by side."),
    ] = Engine.KERNEL,
    seeds: Annotated[int, SEEDS] = 3,
    first_seed: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_SEEDS,
            help="Begin with this seed, as for figures of seeds that nothing was tuned on.",
        ),
    ] = 1,
    seed: Annotated[int | None, typer.Option(min=0, help="Run with this one seed only.")] = None,
    only: Annotated[list[str] | None, ONLY] = None,
    overrides: Annotated[list[str] | None, SET] = None,
    module: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.ko",
            exists=True,
            dir_okay=False,
            help="Load a kernel module with a congestion control; may be repeated.",
        ),
    ] = None,
    jobs: Annotated[int, JOBS] = CORES,
    as_json: Annotated[bool, AS_JSON] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Save the result there, one for each engine; default: in results/."),
    ] = None,
    brief: Annotated[
        bool, typer.Option("--brief", help="Save no time of a single fetch: megabytes less.")
    ] = False,
) -> None:
    """Run a scenario with every background and seed, and print one table.

    Example: netnice-lab run k1 --seeds 5 --only 'nn_nice x16' --only 'lp x16'

    The result is saved: `table` and `plot` show it again.
    """
    for other in ("seeds", "first_seed") if seed is not None else ():
        source = context.get_parameter_source(other)
        if source is not None and source.name == "COMMANDLINE":
            option = f"--{other.replace('_', '-')}"
            raise LabError(f"--seed is one seed only. Leave {option} out, or --seed.", status=2)
    places = _places(out, engine)
    for place in filter(None, places.values()):
        output.require(place, find_scenario(file), *(module or []))
    scenario = read_scenario(file, overrides or [])
    names = only or []
    numbers = [seed] if seed is not None else list(range(first_seed, first_seed + seeds))
    variants = variants_of(scenario, names)
    on_kernel = kernel.Kernel(module or [])
    if engine is not Engine.SIM:
        on_kernel.plan(scenario, numbers, variants)
    total = len(numbers) * len(variants)
    results = {}
    with progress() as bar:
        if engine is not Engine.KERNEL:
            results[Engine.SIM] = runs.measure(
                sim.Simulation(), scenario, seeds=numbers, only=names, jobs=jobs, command=sys.argv,
                progress=_entries(bar, scenario.name, "simulated", total),
            )  # fmt: skip
        if engine is not Engine.SIM:
            vm.find_kernel(say=bar.console.print)
            results[Engine.KERNEL] = runs.measure(
                on_kernel, scenario, seeds=numbers, only=names, jobs=jobs, command=sys.argv,
                progress=_entries(bar, scenario.name, f"on {min(jobs, total)} VM(s)", total),
            )  # fmt: skip
    if brief:
        results = {
            name: its | {"runs": runs.shortened(its["runs"])} for name, its in results.items()
        }
    saved = []
    try:
        for name, result in results.items():
            saved.append(runs.save(result, places[name]))
            records.keep_runs(saved[-1].resolve(), result, overrides or [])
    finally:  # what took hours is shown also where it cannot be saved
        if engine is not Engine.BOTH:
            display(results[engine], as_json)
        else:
            _compare(results[Engine.KERNEL], results[Engine.SIM], as_json)
    stderr.print(f"saved {' and '.join(map(str, saved))}", soft_wrap=True)


@app.command(name="sweep")
def sweep(
    file: Annotated[Path, typer.Argument(help="A scenario: k1, or a TOML file.")],
    vary: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=V1,V2,...",
            help="Values of a key of the scenario; may be repeated: every combination is run.",
        ),
    ],
    seeds: Annotated[int, SEEDS] = 3,
    only: Annotated[list[str] | None, ONLY] = None,
    overrides: Annotated[list[str] | None, SET] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Dask scheduler; default: this computer's cores.",
        ),
    ] = None,
    jobs: Annotated[int, JOBS] = CORES,
    as_json: Annotated[bool, AS_JSON] = False,
    out: Annotated[Path | None, typer.Option(help="Save it there; default: in results/.")] = None,
) -> None:
    """Simulate a scenario with every combination of settings, and print one table.

    Example: netnice-lab sweep k1 --vary foreground.load=0.3,0.5 --only 'nn_nice x16'

    The result is saved: `table` shows it again.
    """
    from .. import sweep as sweeps  # noqa: PLC0415 (has the name of the command)

    if out:
        output.require(out, find_scenario(file))
    with progress() as bar:
        task = bar.add_task(f"{file.stem}: simulations")
        result = sweeps.run(
            file, overrides=overrides or [], vary=vary, seeds=range(1, seeds + 1), only=only or [],
            scheduler=scheduler, jobs=jobs, command=sys.argv,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    try:
        saved = runs.save(result, out)
        records.keep_data(saved.resolve(), result, None)
    finally:
        display(result, as_json)
    stderr.print(f"saved {saved}", soft_wrap=True)


@app.command(name="validate")
def validate(
    measure: Annotated[
        bool, typer.Option("--measure", help="Run the kernel first, and save its results.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Measure only this background; the others' results stay. May be repeated.",
        ),
    ] = None,
    seeds: Annotated[int, SEEDS] = 5,
    jobs: Annotated[int, JOBS] = CORES,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Compare the simulator with the kernel, and write docs/validation.md.

    Example: netnice-lab validate --measure --seeds 5

    Without --measure it compares with the kernel's saved results. Exit
    status 1: somewhere the two differ by more than 15 %, and
    docs/data/validation/causes.toml has no cause.
    """
    from .. import validate as checks  # noqa: PLC0415 (has the name of the command)

    with progress() as bar:
        if measure:
            vm.find_kernel(say=bar.console.print)
            numbers = range(1, seeds + 1)
            plan = checks.planned(only or [], numbers)
            total = sum(
                len(n) * len(variants_of(table.scenario, names)) for table, names, n in plan
            )
            checks.measure(
                numbers, only=only or [], vms=jobs, command=sys.argv,
                progress=_entries(bar, "validation", f"on {min(jobs, total)} VM(s)", total),
            )  # fmt: skip
        rows = checks.compare(jobs=jobs, command=sys.argv)
    text = checks.markdown(rows)
    output.write(checks.DOCUMENT, text)
    if as_json:
        keys = ("table", "background", "compared", "agrees", "cause")
        print(json.dumps([{key: getattr(row, key) for key in keys} for row in rows]))
    else:
        print(text)
    if any(not row.agrees and row.cause is None for row in rows):
        raise typer.Exit(1)


@app.command(name="limit")
def limit(
    measure: Annotated[
        bool, typer.Option("--measure", help="Simulate first, and save the results.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Measure only this network; may be repeated."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=2, max=MOST_SEEDS, help="Take so many seeds, from 101 on; default: as published."
        ),
    ] = None,
    jobs: Annotated[int, JOBS] = CORES,
) -> None:
    """Compare all with an oracle that is a round trip late, and write docs/evaluation.md.

    Example: netnice-lab limit --measure --only k1

    Without --measure it writes section and figures of the saved results.
    """
    from ..limit import page, study  # noqa: PLC0415 (scipy takes long to import)

    names = only or list(study.NETWORKS)
    for name in names:
        if name not in study.NETWORKS:
            known = ", ".join(study.NETWORKS)
            raise LabError(f"No network of the limit is called {name!r}. Known: {known}.")
    with progress() as bar:
        for name in names if measure else ():
            task = bar.add_task(f"limit: {name}", total=None)
            study.run(
                name,
                Context(
                    seeds=seeds, jobs=jobs, command=sys.argv,
                    progress=lambda _, done, total, task=task: bar.update(  # type: ignore[misc]
                        task, completed=done, total=total
                    ),
                ),
            )  # fmt: skip
    page.publish()
    for name in names:
        stdout.print(f"{name}\n{page.distances(study.load(name))}")


app.add_typer(claims_app, name="claims")
app.command(name="reproduce")(reproduce)
app.command(name="matrix")(matrix)
app.command(name="search")(search)
app.command(name="table")(table)
app.command(name="plot")(plot)
app.command(name="watched")(watched)


@app.command(name="demo")
def demo(
    source: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="The directory to copy.")
    ] = Path("/usr/share/doc"),
    size: Annotated[
        float, typer.Option(min=0.1, help="Copy at most this much of it, in MB.")
    ] = 20.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what the users fetch.")] = 1,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a key of the demo's scenario."),
    ] = None,
    jobs: Annotated[int, JOBS] = CORES,
    as_json: Annotated[bool, AS_JSON] = False,
    out: Annotated[Path, typer.Option(help="Directory for demo.svg and demo.json.")] = runs.RESULTS,
) -> None:
    """Copy a directory with rsync while users fetch web pages, and show what they notice.

    Example: netnice-lab demo --source /usr/share/doc --size 20

    Four runs: no copy, plain rsync, netnice run -- rsync, and rsync behind a
    router with strict priority.
    """
    from .. import demo as show  # noqa: PLC0415 (matplotlib takes long to import)

    for name in ("demo.json", "demo.svg"):
        output.require(out / name)
    scenario = read_scenario(Path("demo"), overrides or [])
    chosen = show.select(source.resolve(), int(size * 1e6))
    with progress() as bar:
        vm.find_kernel(say=bar.console.print)
        task = bar.add_task("demo", total=4)
        result = show.run(
            scenario, seed=seed, source=chosen, vms=jobs, command=sys.argv,
            progress=lambda name: bar.update(task, advance=1, description=f"demo: {name}"),
        )  # fmt: skip
    try:
        saved = runs.save(result, out / "demo.json")
        records.keep_data(saved.resolve(), result, None)
        show.figure(result, out / "demo.svg")
    finally:
        display(result, as_json)
    stderr.print(f"saved {saved} and {out / 'demo.svg'}", soft_wrap=True)


def _places(out: Path | None, engine: Engine) -> dict[Engine, Path | None]:
    """Return where each engine's result goes; a device or a pipe takes both."""
    if engine is not Engine.BOTH:
        return {engine: out}
    both = (Engine.KERNEL, Engine.SIM)
    if out is None or not output.is_file(out):
        return dict.fromkeys(both, out)
    return {name: out.with_stem(f"{out.stem}-{name}") for name in both}


def _compare(on_kernel: dict[str, Any], simulated: dict[str, Any], as_json: bool) -> None:
    if as_json:
        both = {"kernel": on_kernel, "sim": simulated}
        comparison = stats.compare(*(its["summary"] for its in both.values()))
        print(json.dumps({"schema": 1, "kind": "engines", **both, "comparison": comparison}))
    else:
        tabulate(report.engines(on_kernel, simulated))


def _entries(bar: Progress, name: str, how: str, total: int) -> Callable[[dict[str, Any]], None]:
    """Return what advances a new line of `bar` by each finished run."""
    task = bar.add_task(f"{name} {how}", total=total)

    def advance(entry: dict[str, Any]) -> None:
        done = f"{name} {how}: {entry['background']}, seed {entry['seed']}"
        bar.update(task, advance=1, description=done)

    return advance


def _fail(sentence: str, status: int) -> NoReturn:
    stderr.print(f"netnice-lab: {sentence}", style="red", soft_wrap=True)
    sys.exit(status)


def main() -> None:
    """Run the command line; errors are sentences on stderr."""
    open_streams()
    # A terminated lab must stop its virtual machines as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        app(standalone_mode=True)
    except LabError as error:
        _fail(str(error), error.status)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:  # a full disk, a directory that nobody may write to
        at = f"{error.filename}: " if error.filename else ""
        _fail(f"{at}{error.strerror or error}.", 1)


if __name__ == "__main__":
    sys.argv[0] = shlex.quote("netnice-lab")
    main()
