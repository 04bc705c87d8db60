// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Sends packets in the background to a peer on this host that returns the first 4 bytes of each: udp PORT PACKETS */
#include <arpa/inet.h>
#include <netnice.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MSS = 1200, MANY = 1 << 16, REORDERED = 3, TIMEOUT_MS = 1000 };

static uint64_t flow[NETNICE_FLOW_WORDS], sent_us[MANY]; /* 0: not out */
static struct netnice_now now = { .mss = MSS };
static struct netnice_answer answer;
static uint32_t delivered, lost, recovery;

static void must(int error)
{
	if (error)
		exit(fprintf(stderr, "udp: %s\n", netnice_strerror(error)));
}

static uint64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* What is out below `end` is lost. That is one event for all that was out at the time. */
static void lose(uint32_t end)
{
	for (; now.una < end; now.una++)
		if (sent_us[now.una])
			sent_us[now.una] = 0, now.lost++, now.inflight--, lost++;
	if (now.lost && end > recovery) {
		must(netnice_event(flow, NETNICE_LOSS, &now, &answer));
		recovery = now.nxt;
	}
}

static void delivered_one(uint32_t number)
{
	now.rtt_us = (uint32_t)(now.now_us - sent_us[number]);
	now.srtt_us = now.srtt_us ? (7 * now.srtt_us + now.rtt_us) / 8 : now.rtt_us;
	sent_us[number] = 0, now.acked = 1, now.inflight--, delivered++;
	if (number >= REORDERED)
		lose(number - REORDERED + 1);
	must(netnice_ack(flow, &now, &answer));
	now.acked = now.lost = now.rtt_us = 0;
}

int main(int argc, char **argv)
{
	uint32_t total = argc > 2 ? (uint32_t)atoi(argv[2]) % MANY : 0, packet[MSS / 4] = { 0 }, burst = 0;
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct pollfd in = { .fd = socket(AF_INET, SOCK_DGRAM, 0), .events = POLLIN };
	uint64_t next_us = 0; /* when the next burst may begin */

	peer.sin_port = htons((uint16_t)atoi(argc > 1 ? argv[1] : "0"));
	if (connect(in.fd, (struct sockaddr *)&peer, sizeof(peer)))
		return 1;
	now.now_us = clock_us();
	must(netnice_init(flow, sizeof(flow), netnice_class("idle")));
	must(netnice_start(flow, &now, 10, &answer));
	while (now.now_us = clock_us(), delivered + lost < total) {
		while (now.nxt < total && now.inflight < answer.window && (burst || now.now_us >= next_us)) {
			if (!burst) { /* a new one: what is the gap after it? */
				must(netnice_send(flow, &now, &answer));
				burst = answer.gap_us ? answer.burst : 1;
				next_us = now.now_us + answer.gap_us;
			}
			packet[0] = now.nxt;
			if (write(in.fd, packet, sizeof(packet)) < 0)
				return 1;
			sent_us[now.nxt++] = now.now_us;
			now.inflight++, burst--;
		}
		int gap = now.nxt < total && now.inflight < answer.window;

		if (poll(&in, 1, gap ? (int)((next_us - now.now_us) / 1000 + 1) : TIMEOUT_MS)) {
			if (read(in.fd, packet, 4) == 4 && packet[0] < now.nxt && sent_us[packet[0]])
				now.now_us = clock_us(), delivered_one(packet[0]);
		} else if (!gap) {
			lose(now.nxt);
			must(netnice_event(flow, NETNICE_TIMEOUT, &now, &answer));
		}
	}
	must(netnice_close(flow, &now));
	printf("%u packets delivered, %u lost\n", delivered, lost);
	return 0;
}
