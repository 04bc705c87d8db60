# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section 6.1 of TCP Nice's report: prefetching, with a threshold that nobody has to tune."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from matplotlib.figure import Figure

from ...claims.claim import Drawing, Measured, Table
from ...claims.claim import Judgement as Claim
from ...claims.legacy import Statement
from ...claims.paper import Paper
from . import browsing, claims, quality, replays
from .browsing import ALONE, BESIDE, DOWNLOAD_BYTES, HTTP2, LONGEST, THINK_S
from .replays import CABLE, CLIENTS, LOADS, MODEM, TRADE_OFF, Setting

PREAMBLE = f"""\
Section 6.1 of *System Support for Background Replication* on the Linux kernel in virtual time. The
report's clients replay IBM's web log, which is not public; here `netnice-prefetch replay` overlays
the busiest hours of the web log in `lab/data` on {CLIENTS} virtual clients, each with a cache, a
connection for demand and one for prefetches. The predictor is the report's PPM, has learned the
whole log, and predicts at the clients: *conservative* (probability .25 or more, after 1 s),
*aggressive* (.00001 or more, at once), and *perfect*, which lists only what the client will ask
for: the rest of the view whose page has come, and the next ten views. What it fetches still takes
the link's time, and demand does not wait for a prefetch under way but asks for the same anew.

nginx serves the objects in their logged sizes. Demand always passes `netnice-prefetch serve` and
leaves under Reno. Prefetches under *Nice* ask the same proxy, which answers them in the background,
under `nn_nice` with our defaults. Under *Reno* they go to a second port of nginx, since the proxy
never answers them in the foreground.

Paths are those of section 5 (`lab/scenarios/nice`): *cable* 1.5 Mbit/s, 30 ms, 40 packets; *modem*
56.6 kbit/s, 120 ms, 5 packets. The views of the log's busiest hour are spread over
{CABLE.duration_s} s on the cable and {MODEM.duration_s} s on the modem, so that demand takes about
10 % of the link. The trade-off (P3) has the {TRADE_OFF.hours} busiest hours in
{TRADE_OFF.duration_s} s, so that the link has less to spare; {LOADS[0].hours} to
{LOADS[-1].hours} of them show what growing demand does. A response time counts from asking to the
last byte, and is 0 from the cache; seeds decide which client does what, and when.

For P4 `netnice-prefetch evaluate` learns the log's first two days and compares what it would send
ahead with what people asked for on the third, each with a cache without bounds. *Precision* is how
much of what would be sent ahead was asked for, *recall* how much of what was asked for would have
been there. PPM is the proxy's predictor; *Markov* is a first-order chain, *popular* what was
requested most. Robots are left out, and requests of an hour are in the order that `Referer` tells.

For P5 headless Chromium walks through the same site, whose pages load the images, style sheets
and scripts that visitors of the log loaded with them. Each of a seed's {ALONE.walks} walks is what
one visitor looked at within one hour of the log's third day, at most {LONGEST} pages; the proxy has
learned the days before. A walk begins with an empty
cache, and each page is left {THINK_S:g} s after it is loaded. The proxy has its defaults (*Nice*),
suggests nothing (*none*), or is not there: then Chromium asks nginx itself (*direct*). *Perfect* is
*Nice* with a proxy that has learned the seed's walks and nothing else, and puts its whole list on
each page. Beside downloads, a second Chromium fetches a file of {DOWNLOAD_BYTES / 1000:g} kB again
and again. P5H has both browsers speak HTTP/2 over TLS with the proxy. Times to load are from
navigationStart to loadEventEnd. The guest's processor executes an instruction in a nanosecond, and
the browser needs .06 s of it even for a small page from the cache. Of pages, *late* are those that
Chromium asked for ahead, and yet loaded.
"""

COLUMNS = (
    "prefetches", "mean s", "over none", "p95 s", "from cache %", "demand % of link", "ahead MB",
    "used MB", "dropped %", "views left",
)  # fmt: skip
CAPTION = (
    "Response times; what demand took of the link, what was fetched ahead and used; dropped packets"
)
LOADS_CAPTION = "The aggressive strategy on a cable as demand grows, hours of the log overlaid"
BROWSERS = (ALONE, BESIDE)
BROWSER_COLUMNS = (
    "prefetches", "load s (geometric)", "over none", "over direct", "load s (mean)", "over none",
    "p95 s", "from cache %", "demand MB", "answers ahead", "ahead MB", "download s", "over none",
)  # fmt: skip
BROWSER_CAPTION = "Times to load, pages from the cache, what was sent, times of downloads"
KIND_COLUMNS = (
    "prefetches", "pages", "number", "load s without", "load s", "over none", "ms longer (mean)",
    "kB without", "kB", "kB ahead",
)  # fmt: skip
KIND_CAPTION = "Pages of all seeds by how they came, and the same pages without prefetching (none)"


def statement(
    name: str,
    setting: Setting,
    claim: Callable[[Measured], Claim],
    figure: str,
    caption: str,
    draw: Callable[[Measured], Figure],
    loads: bool = False,
) -> Statement:
    """Return a claim that rests on one experiment, with a figure and the table of its trials.

    With `loads` its cause rests on growing demand too, which is shown if it is on the same path.
    """
    needs, drawings = [setting.name], [Drawing(figure, caption, draw)]
    tables = [Table(CAPTION, COLUMNS, partial(claims.rows, experiment=setting.name))]
    if loads:
        needs.append(LOADS[0].name)
    if loads and setting.path == LOADS[0].path:
        drawings.append(Drawing("loads", LOADS_CAPTION, claims.growing))
        tables.append(Table(LOADS_CAPTION, ("hours", *COLUMNS), claims.load_rows))
    return Statement(name, needs, claim, drawings, tables)


def browsed(
    name: str,
    settings: Sequence[browsing.Setting],
    claim: Callable[[Measured], Claim],
    *drawings: Drawing,
) -> Statement:
    """Return a claim that rests on browsers, with tables of all trials, and the first's pages."""
    tables = (
        Table(BROWSER_CAPTION, BROWSER_COLUMNS, partial(claims.browser_rows, settings=settings)),
        Table(KIND_CAPTION, KIND_COLUMNS, partial(claims.kind_rows, settings=settings[:1])),
    )
    return Statement(name, [setting.name for setting in settings], claim, drawings, tables)


REPRODUCTION = Paper(
    name="prefetch",
    title="Prefetching in the background",
    preamble=PREAMBLE,
    experiments=lambda: [
        *replays.EXPERIMENTS, quality.EXPERIMENT, *browsing.EXPERIMENTS,
    ],
    claims=(
        statement(
            "P1", CABLE, claims.p1, "figure-8", "Figure 8: mean response time on a cable",
            partial(claims.bars, experiment=CABLE.name), loads=True,
        ),
        statement(
            "P2", MODEM, claims.p2, "figure-9", "Figure 9: mean response time on a modem",
            partial(claims.bars, experiment=MODEM.name), loads=True,
        ),
        statement(
            "P3", TRADE_OFF, claims.p3, "trade-off",
            "Mean response time on a cable over the predictor's threshold", claims.trade_off,
        ),
        Statement(
            "P4", (quality.NAME,), quality.p4,
            tables=(
                Table(quality.CAPTION, quality.COLUMNS, quality.table),
                Table(quality.VARIED_CAPTION, quality.VARIED_COLUMNS, quality.varied),
            ),
        ),
        browsed(
            "P5", BROWSERS, claims.p5,
            Drawing("browser", "Time to load a page in Chromium", claims.browser_bars),
        ),
        browsed("P5H", (HTTP2,), claims.p5h),
    ),
)  # fmt: skip
