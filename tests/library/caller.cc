// SPDX-License-Identifier: MIT OR GPL-2.0-only
// libnetnice from C++: a flow that meets a queue yields.
#include <netnice.h>

#include <cstdio>
#include <stdexcept>
#include <vector>

namespace {

void must(int error)
{
	if (error)
		throw std::runtime_error(netnice_strerror(error));
}

} // namespace

int main()
{
	std::vector<uint64_t> flow(netnice_flow_size() / 8);
	netnice_answer answer{};
	netnice_now now{};

	now.mss = 1200;
	must(netnice_init(flow.data(), 8 * flow.size(), netnice_class("idle")));
	must(netnice_start(flow.data(), &now, 10, &answer));
	// 2 s of 50 ms round trips without a queue, then 2 s with one of 100 ms
	uint64_t quiet = 0;
	for (uint32_t i = 0; i < 4000; i++) {
		now.now_us += 1000;
		now.rtt_us = now.srtt_us = i < 2000 ? 50000 : 150000;
		now.acked = 2;
		now.una += 2;
		now.inflight = answer.window;
		now.nxt = now.una + answer.window;
		must(netnice_ack(flow.data(), &now, &answer));
		must(netnice_send(flow.data(), &now, &answer));
		quiet = i < 2000 ? answer.cwnd_q16 : quiet;
	}
	std::printf("%s window\n", answer.cwnd_q16 < quiet / 4 ? "smaller" : "no smaller");
}
