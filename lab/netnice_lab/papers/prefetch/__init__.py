# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section 6.1 of TCP Nice's report: prefetching, with a threshold that nobody has to tune."""

from __future__ import annotations

from ...claims.paper import Paper, of_modules
from . import browsers, browsing, quality, replayed, replays
from .browsing import ALONE, DOWNLOAD_BYTES, LONGEST, THINK_S
from .replays import CABLE, CLIENTS, LOADS, MODEM, TRADE_OFF

PREAMBLE = f"""\
Section 6.1 of *System Support for Background Replication* on the Linux kernel in virtual time.

**Clients.** The report's clients replay IBM's web log, which is not public. Here
`netnice-prefetch replay` lays the busiest hours of the web log in `lab/data` on {CLIENTS} virtual
clients. Each has a cache, a connection for demand and one for prefetches. As in the report, the
clients predict with PPM, which has learned the whole log: *conservative* (probability .25 or more,
after 1 s), *aggressive* (.00001 or more, at once), and *perfect*, which lists only what the client
will ask for: the rest of the view whose page has come, and the next ten views. What a client
fetches still takes the link's time. Demand does not wait for a prefetch under way, but asks for
the same again.

**Servers.** nginx serves the objects in their logged sizes. Demand always passes
`netnice-prefetch serve`, and leaves under Reno. Prefetches under *Nice* ask the same proxy, which
answers them in the background, under `nn_nice` with our defaults. Under *Reno* they go to a second
port of nginx, since the proxy never answers them in the foreground.

**Paths** are those of section 5 (`lab/scenarios/nice`): *cable* has 1.5 Mbit/s, 30 ms and 40
packets, *modem* 56.6 kbit/s, 120 ms and 5 packets. The views of the log's busiest hour are spread
over {CABLE.duration_s} s on the cable and {MODEM.duration_s} s on the modem, so that demand takes
about 10 % of the link. The trade-off (P3) has the {TRADE_OFF.hours} busiest hours in
{TRADE_OFF.duration_s} s, so that the link has less to spare; {LOADS[0].hours} to {LOADS[-1].hours}
of them show what growing demand does.

**Numbers.** A response time is from asking to the last byte; it is 0 from the cache. Seeds decide
which client does what, and when.

**Predictors** (P4): `netnice-prefetch evaluate` learns the log's first two days. It compares what
it would send ahead with what people asked for on the third day, each with a cache without bounds.
*Precision* is how much of what would be sent ahead was asked for, *recall* how much of what was
asked for would have been there. PPM is the proxy's predictor, *Markov* a first-order chain,
*popular* what was requested most. Robots are left out. `Referer` gives the order of an hour's
requests.

**Browsers** (P5): headless Chromium walks through the same site. Its pages load the images, style
sheets and scripts that visitors of the log loaded with them. Each of a seed's {ALONE.walks} walks
is what one visitor looked at within one hour of the log's third day, at most {LONGEST} pages. The
proxy has learned the days before. A walk begins with an empty cache, and each page is left
{THINK_S:g} s after it is loaded. The proxy has its defaults (*Nice*), suggests nothing (*none*),
or is not there: then Chromium asks nginx itself (*direct*). *Perfect* is *Nice* with a proxy that
has learned only the seed's walks, and puts its whole list on each page. Beside downloads, a second
Chromium fetches a file of {DOWNLOAD_BYTES / 1000:g} kB again and again. In P5H both browsers speak
HTTP/2 over TLS with the proxy. Times to load are from navigationStart to loadEventEnd. The guest's
processor executes an instruction in a nanosecond, so the browser needs .06 s even for a small page
from the cache. A page is *late* if Chromium had asked for it ahead and loaded it nevertheless.
"""

REPRODUCTION = Paper(
    name="prefetch",
    title="Prefetching in the background",
    preamble=PREAMBLE,
    experiments=lambda: [*replays.EXPERIMENTS, quality.EXPERIMENT, *browsing.EXPERIMENTS],
    claims=of_modules(replayed, quality, browsers),
)
