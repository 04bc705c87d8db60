# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section 6.1 of TCP Nice's report: prefetching, with a threshold that nobody has to tune."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure

from ..claim import Claim
from ..paper import Drawing, Extra, Measured, Paper, Statement, Table
from . import browsing, claims
from .browsing import ALONE, BESIDE, DOWNLOAD_BYTES, LONGEST, THINK_S
from .replays import CABLE, CLIENTS, MODEM, TRADE_OFF, Setting, measure

PREAMBLE = f"""\
Section 6.1 of *System Support for Background Replication* on the Linux kernel in virtual time. The
report's clients replay IBM's web log, which is not public; here `netnice-prefetch replay` overlays
the busiest hours of the web log in `lab/data` on {CLIENTS} virtual clients, each with a cache, a
connection for demand and one for prefetches. The predictor is the report's PPM, has learned the
whole log, and predicts at the clients: *conservative* (probability .25 or more, after 1 s),
*aggressive* (.00001 or more, at once), and *perfect*, which knows the client's next ten views.

nginx serves the objects in their logged sizes. Demand always passes `netnice-prefetch serve` and
leaves under Reno. Prefetches under *Nice* ask the same proxy, which answers them in the background,
under `nn_nice` with our defaults. Under *Reno* they go to a second port of nginx, since the proxy
never answers them in the foreground.

Paths are those of section 5 (`lab/scenarios/nice`): *cable* 1.5 Mbit/s, 30 ms, 40 packets; *modem*
56.6 kbit/s, 120 ms, 5 packets. The views of the log's busiest hour are spread over
{CABLE.duration_s} s on the cable and {MODEM.duration_s} s on the modem, so that demand takes about
10 % of the link. The trade-off (P3) has the {TRADE_OFF.hours} busiest hours in
{TRADE_OFF.duration_s} s, so that the link has less to spare. A response time counts from asking
to the last byte, and is 0 from the cache; seeds decide which client does what, and when.

For P5 headless Chromium walks through the same site, whose pages load the images, style sheets
and scripts that visitors of the log loaded with them. Each of a seed's {ALONE.walks} walks
({BESIDE.walks} beside downloads) is what one visitor looked at within one hour of the log's third
day, at most {LONGEST} pages; the proxy has learned the days before. A walk begins with an empty
cache, and each page is left {THINK_S:g} s after it is loaded. The proxy has its defaults, or
suggests nothing (*none*). Beside downloads, a second Chromium fetches a file of
{DOWNLOAD_BYTES / 1000:g} kB again and again. Times to load are from navigationStart to
loadEventEnd. The guest's processor executes an instruction in a nanosecond, and the browser needs
.06 s of it even for a small page from the cache.
"""

COLUMNS = (
    "prefetches", "mean s", "over none", "p95 s", "from cache %", "demand % of link", "ahead MB",
    "used MB", "dropped %", "views left",
)  # fmt: skip
CAPTION = (
    "Response times; what demand took of the link, what was fetched ahead and used; dropped packets"
)
BROWSERS = (ALONE.name, BESIDE.name)
BROWSER_COLUMNS = (
    "prefetches", "load s (geometric)", "over none", "load s (mean)", "over none", "p95 s",
    "from cache %", "demand MB", "answers ahead", "ahead MB", "download s", "over none",
)  # fmt: skip
BROWSER_CAPTION = "Times to load, pages from the cache, what was sent, times of downloads"


def statement(
    name: str,
    setting: Setting,
    claim: Callable[[Measured], Claim],
    figure: str,
    caption: str,
    draw: Callable[[Measured], Figure],
) -> Statement:
    """Return a claim that rests on one experiment, with a figure and the table of its trials."""
    table = Table(CAPTION, COLUMNS, partial(claims.rows, experiment=setting.name))
    return Statement(name, (setting.name,), claim, (Drawing(figure, caption, draw),), (table,))


PAPER_PREFETCH = Paper(
    name="prefetch",
    title="Prefetching in the background",
    preamble=PREAMBLE,
    experiments=lambda: (),
    statements=(
        statement(
            "P1", CABLE, claims.p1, "figure-8", "Figure 8: mean response time on a cable",
            partial(claims.bars, experiment=CABLE.name),
        ),
        statement(
            "P2", MODEM, claims.p2, "figure-9", "Figure 9: mean response time on a modem",
            partial(claims.bars, experiment=MODEM.name),
        ),
        statement(
            "P3", TRADE_OFF, claims.p3, "trade-off",
            "Mean response time on a cable over the predictor's threshold", claims.trade_off,
        ),
        Statement(
            "P5", BROWSERS, claims.p5,
            (Drawing("browser", "Time to load a page in Chromium", claims.browser_bars),),
            (Table(BROWSER_CAPTION, BROWSER_COLUMNS, claims.browser_rows),),
        ),
    ),
    extras=(
        *(Extra(s.name, partial(measure, s)) for s in (CABLE, MODEM, TRADE_OFF)),
        *(Extra(s.name, partial(browsing.measure, s)) for s in (ALONE, BESIDE)),
    ),
)  # fmt: skip
