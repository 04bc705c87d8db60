// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * A congestion control for picoquic, which takes them as a table of functions:
 *
 *	picoquic_set_congestion_algorithm_ex(cnx, &netnice_algorithm_for_picoquic, "threshold=0.1");
 *
 * picoquic's pacing has a timer, so a gap becomes a rate whose quantum is one burst. It may still send
 * a burst after it rested, as its bucket fills meanwhile: one burst at most.
 *
 * Compiled against picoquic of August 2026, and not run.
 */
#include <netnice.h>
#include <stdlib.h>

#include "picoquic_internal.h"
#include "cc_common.h"

struct yields {
	uint64_t flow[NETNICE_FLOW_WORDS];
	struct netnice_now now;
	struct netnice_answer answer;
	uint64_t recovery; /* packets before this number are accounted for by a loss */
};

/* What the answer means to picoquic: bytes in transit, and a rate whose quantum is a burst. */
static void obey(picoquic_path_t *path, struct yields *y)
{
	uint64_t burst = y->answer.burst * path->send_mtu;

	path->cwin = y->answer.window * path->send_mtu;
	path->is_cc_data_updated = 1;
	if (y->answer.gap_us)
		picoquic_update_pacing_rate(path, burst * 1e6 / (double)y->answer.gap_us, burst);
	else
		picoquic_update_pacing_data(path, y->answer.flags & NETNICE_SLOW_START);
}

static void begin(picoquic_path_t *path, char const *settings, uint64_t now)
{
	struct yields *y = calloc(1, sizeof(*y));

	path->congestion_alg_state = y;
	if (!y)
		return;
	y->now.now_us = now;
	y->now.mss = (uint32_t)path->send_mtu;
	netnice_init(y->flow, sizeof(y->flow), netnice_class("idle"));
	if (settings)
		netnice_set(y->flow, settings);
	netnice_start(y->flow, &y->now, 10, &y->answer);
	obey(path, y);
}

static void tell(picoquic_cnx_t *cnx, picoquic_path_t *path, picoquic_congestion_notification_t what,
		 picoquic_per_ack_state_t *ack, uint64_t now)
{
	struct yields *y = path->congestion_alg_state;
	int event = -1;

	if (!y)
		return;
	y->now.now_us = now;
	y->now.mss = (uint32_t)path->send_mtu;
	y->now.inflight = (uint32_t)((path->bytes_in_transit + path->send_mtu - 1) / path->send_mtu);
	y->now.una = (uint32_t)picoquic_cc_get_ack_number(cnx, path) + 1;
	y->now.nxt = (uint32_t)picoquic_cc_get_sequence_number(cnx, path);
	y->now.srtt_us = (uint32_t)path->smoothed_rtt;
	switch (what) {
	case picoquic_congestion_notification_acknowledgement:
		y->now.rtt_us = (uint32_t)ack->rtt_measurement;
		y->now.acked = (uint32_t)((ack->nb_bytes_acknowledged + path->send_mtu - 1) / path->send_mtu);
		y->now.flags = (ack->is_app_limited ? NETNICE_ACK_APP_LIMITED : 0) |
			       (picoquic_cc_get_ack_number(cnx, path) < y->recovery ? NETNICE_ACK_HOLD : 0);
		netnice_ack(y->flow, &y->now, &y->answer);
		y->now.rtt_us = y->now.acked = y->now.lost = y->now.flags = 0;
		netnice_send(y->flow, &y->now, &y->answer);
		break;
	case picoquic_congestion_notification_repeat:
		y->now.lost++;
		event = NETNICE_LOSS;
		break;
	case picoquic_congestion_notification_ecn_ec:
		event = NETNICE_ECN;
		break;
	case picoquic_congestion_notification_timeout:
		event = NETNICE_TIMEOUT;
		break;
	case picoquic_congestion_notification_spurious_repeat:
		netnice_event(y->flow, NETNICE_UNDO, &y->now, &y->answer);
		break;
	default:
		return;
	}
	if (event >= 0 && ack->lost_packet_number >= y->recovery) {
		y->recovery = picoquic_cc_get_sequence_number(cnx, path);
		if (event == NETNICE_TIMEOUT)
			netnice_event(y->flow, NETNICE_LOSS, &y->now, &y->answer);
		netnice_event(y->flow, (enum netnice_event)event, &y->now, &y->answer);
	}
	obey(path, y);
}

static void end(picoquic_path_t *path)
{
	free(path->congestion_alg_state);
	path->congestion_alg_state = NULL;
}

static void observe(picoquic_path_t *path, uint64_t *state, uint64_t *parameter)
{
	struct yields *y = path->congestion_alg_state;

	*state = y->answer.flags;
	*parameter = y->answer.gap_us;
}

picoquic_congestion_algorithm_t netnice_algorithm_for_picoquic = {
	"netnice", 100, PICOQUIC_ECN_ECT_0, begin, tell, end, observe
};
