# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The command ``netnice-lab``."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from . import LabError, report, vm
from . import run as runs
from .scenario import read as read_scenario

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Measure background TCP on the real Linux kernel, in a virtual machine in virtual time.",
)
# A table in a file or a pipe keeps its columns.
stdout = Console(width=None if sys.stdout.isatty() else 110)
stderr = Console(stderr=True)
CORES = os.cpu_count() or 1

VMS = typer.Option("--jobs", "-j", min=1, help="Virtual machines at a time.")
AS_JSON = typer.Option("--json", help="Print the result as JSON instead of a table.")


@app.command(name="vm", epilog="Example: netnice-lab vm -- uname -r")
def vm_command(
    command: Annotated[list[str], typer.Argument(help="The command and its arguments.")],
    timeout: Annotated[float, typer.Option(help="Kill the VM after so many seconds.")] = 600,
    memory: Annotated[str, typer.Option(help="Memory of the VM.")] = "1G",
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the VM's console on stderr.")
    ] = False,
) -> None:
    """Run a command as root in the VM; its output and exit status are passed through.

    The VM sees this machine's files, and throws away what is written to most of them; standard
    input is empty.
    """
    ended = vm.run(
        command, timeout_s=timeout, memory=memory, verbose=verbose,
        stdout=vm.pass_through(sys.stdout.buffer), stderr=vm.pass_through(sys.stderr.buffer),
        say=stderr.print,
    )  # fmt: skip
    raise typer.Exit(ended.status)


@app.command(epilog="Example: netnice-lab run k1 --seeds 5 --only 'nn_nice x16' --only 'lp x16'")
def run(
    file: Annotated[Path, typer.Argument(help="A scenario: k1, or a TOML file.")],
    engine: Annotated[str, typer.Option(help="What carries the traffic.")] = "kernel",
    seeds: Annotated[int, typer.Option(min=1, help="Run with seeds 1 to N.")] = 3,
    seed: Annotated[int | None, typer.Option(help="Run with this one seed instead.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this background (repeatable); none and strict priority stay.",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set a scenario key, as in foreground.load=0.3 (repeatable).",
        ),
    ] = None,
    module: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.ko",
            exists=True,
            dir_okay=False,
            help="Load a kernel module with a congestion control (repeatable).",
        ),
    ] = None,
    jobs: Annotated[int, VMS] = CORES,
    as_json: Annotated[bool, AS_JSON] = False,
    out: Annotated[Path | None, typer.Option(help="Result file; default: in results/.")] = None,
) -> None:
    """Run a scenario with every background and seed; save the result, print one table."""
    if engine != "kernel":
        raise LabError(f"There is no engine {engine!r}. Use --engine kernel.")
    scenario = read_scenario(file, overrides or [])
    numbers = [seed] if seed is not None else list(range(1, seeds + 1))
    total = len(numbers) * len(scenario.variants(only or []))
    with _progress() as bar:
        vm.find_kernel(bar.console.print)
        task = bar.add_task(f"{scenario.name} on {min(jobs, total)} VM(s)", total=total)

        def advance(entry: dict[str, Any]) -> None:
            done = f"{scenario.name}: {entry['background']}, seed {entry['seed']}"
            bar.update(task, advance=1, description=done)

        result = runs.run(
            scenario, seeds=numbers, only=only or [], modules=module or [], vms=jobs,
            command=sys.argv, progress=advance,
        )  # fmt: skip
    saved = runs.save(result, out)
    _show(result, as_json)
    stderr.print(f"saved {saved}", soft_wrap=True)


@app.command(epilog="Example: netnice-lab table results/k1-kernel-*.json")
def table(
    result: Annotated[Path, typer.Argument(help="A saved result.")],
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Print the table of a saved result."""
    _show(runs.load(result), as_json)


@app.command(epilog="Example: netnice-lab plot results/k1-kernel-*.json --out k1.svg")
def plot(
    result: Annotated[Path, typer.Argument(help="A saved result.")],
    out: Annotated[Path | None, typer.Option(help="SVG file; default: beside the result.")] = None,
) -> None:
    """Draw harm to the foreground against use of spare bandwidth, from a saved result."""
    from .plot import harm_and_share  # noqa: PLC0415 (matplotlib takes long to import)

    path = out or result.with_suffix(".svg")
    harm_and_share(runs.load(result), path)
    stderr.print(f"drew {path}", soft_wrap=True)


@app.command(epilog="Example: netnice-lab demo --source /usr/share/doc --size 20")
def demo(
    source: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="The directory to replicate.")
    ] = Path("/usr/share/doc"),
    size: Annotated[
        float, typer.Option(min=0.1, help="Replicate at most so many MB of it.")
    ] = 20.0,
    seed: Annotated[int, typer.Option(help="Seed of what the users fetch.")] = 1,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a key of the demo's scenario."),
    ] = None,
    jobs: Annotated[int, VMS] = CORES,
    as_json: Annotated[bool, AS_JSON] = False,
    out: Annotated[Path, typer.Option(help="Directory for demo.svg and demo.json.")] = runs.RESULTS,
) -> None:
    """Replicate a directory with rsync while users fetch web pages, and show what they notice.

    Four times: no replication, plain rsync, netnice run -- rsync, a router with strict priority.
    """
    from . import demo as show  # noqa: PLC0415 (matplotlib takes long to import)

    scenario = read_scenario(Path("demo"), overrides or [])
    chosen = show.select(source.resolve(), int(size * 1e6))
    with _progress() as bar:
        vm.find_kernel(bar.console.print)
        task = bar.add_task("demo", total=4)
        result = show.run(
            scenario, seed=seed, source=chosen, vms=jobs, command=sys.argv,
            progress=lambda name: bar.update(task, advance=1, description=f"demo: {name}"),
        )  # fmt: skip
    saved = runs.save(result, out / "demo.json")
    show.figure(result, out / "demo.svg")
    if as_json:
        print(json.dumps(result))
    else:
        stdout.print(show.table(result))
        stdout.print(show.sentence(result))
    stderr.print(f"saved {saved} and {out / 'demo.svg'}", soft_wrap=True)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=stderr,
    )  # fmt: skip


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(result))
        return
    stdout.print(report.table(result))
    if text := report.sentence(result):
        stdout.print(text)


def main() -> None:
    """Run the command line; errors are sentences on stderr and exit status 1."""
    # A terminated lab must stop its virtual machines as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        app(standalone_mode=True)
    except LabError as error:
        stderr.print(f"netnice-lab: {error}", style="red", soft_wrap=True, markup=False)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    sys.argv[0] = shlex.quote("netnice-lab")
    main()
