// SPDX-License-Identifier: MIT OR GPL-2.0-only
// One run of a [bottleneck] scenario in ns-3; prints what it measured as JSON.
//
// Senders and receivers are two nodes on one link: a dumbbell whose access links are infinitely
// fast. The link towards the receivers has the bottleneck's rate and queue; back it has no limit.
// Every default is that of the profile ns2: initial window 2, NewReno without SACK, one ACK for
// each packet, RTO of at least 1 s, time stamps. A full packet is mss_bytes + 54 on the link: 2
// of PPP, 20 of IPv4, 20 of TCP, 12 of the time stamps. Any attribute of ns-3 can be changed, as
// in `--ns3::TcpSocketBase::Sack=true`.
//
// ns-3 puts fq_codel and a device queue of 100 packets in front of a link unless told otherwise.
// Without flow control at the device (DisableFlowControl) it installs no queue discipline, and
// what waits for the link is in the device queue given here and nowhere else.

#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <deque>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

using namespace ns3;

namespace {

constexpr uint64_t kEndless = std::numeric_limits<uint64_t>::max();
constexpr uint8_t kBackgroundTos = 0x04; // DSCP LE (RFC 8622)
constexpr uint16_t kForegroundPort = 80;
constexpr uint16_t kBackgroundPort = 81;
constexpr uint32_t kPppBytes = 2;
constexpr uint32_t kIpBytes = 20; // ns-3 sends no IP options

/// The bottleneck's queue: drop-tail with room for so many packets of data. With strict priority
/// each class has that room, and the background leaves only when nothing else waits.
///
/// Packets without data, which open and close connections, leave first and need no room: the
/// profile has no handshake, and no flow is to be late for a lost SYN.
class BottleneckQueue : public Queue<Packet>
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("netnice::BottleneckQueue")
                               .SetParent<Queue<Packet>>()
                               .AddConstructor<BottleneckQueue>();
        return id;
    }

    BottleneckQueue()
    {
        SetMaxSize(QueueSize("1000000p")); // DoEnqueue must not drop: the bands have the limits
    }

    void Configure(uint32_t limit, bool priority)
    {
        m_limit = limit;
        m_priority = priority;
    }

    bool Enqueue(Ptr<Packet> packet) override
    {
        const Band band = BandOf(*packet);
        if (band != CONTROL && m_waiting[band] >= m_limit)
        {
            DropBeforeEnqueue(packet);
            return false;
        }
        m_waiting[band]++;
        const uint32_t before = std::accumulate(m_waiting, m_waiting + band + 1, 0U) - 1;
        const auto &all = GetContainer();
        return DoEnqueue(before == GetNPackets() ? all.end() : std::next(all.begin(), before),
                         packet);
    }

    Ptr<Packet> Dequeue() override
    {
        Forget();
        return DoDequeue(GetContainer().begin());
    }

    Ptr<Packet> Remove() override
    {
        Forget();
        return DoRemove(GetContainer().begin());
    }

    Ptr<const Packet> Peek() const override
    {
        return DoPeek(GetContainer().begin());
    }

    /// Packets of data that wait.
    uint32_t Data() const
    {
        return m_waiting[FIRST] + m_waiting[LAST];
    }

    /// In the order in which they leave.
    enum Band
    {
        CONTROL,
        FIRST,
        LAST,
        BANDS
    };

    /// The band of a packet as the link carries it: with headers of PPP, IPv4 and TCP.
    Band BandOf(const Packet &packet) const
    {
        constexpr uint32_t tos = kPppBytes + 1, dataOffset = kPppBytes + kIpBytes + 12;
        uint8_t start[dataOffset + 1];
        packet.CopyData(start, sizeof start);
        const uint32_t tcpBytes = start[dataOffset] / 16 * 4; // its upper half, in words of 4
        if (packet.GetSize() <= kPppBytes + kIpBytes + tcpBytes)
        {
            return CONTROL;
        }
        return m_priority && start[tos] == kBackgroundTos ? LAST : FIRST;
    }

  private:
    /// The first packet leaves.
    void Forget()
    {
        uint32_t *band = std::find_if(m_waiting, m_waiting + BANDS, [](uint32_t n) { return n; });
        if (band != m_waiting + BANDS)
        {
            (*band)--;
        }
    }

    uint32_t m_limit = 0;
    bool m_priority = false;
    uint32_t m_waiting[BANDS] = {};
};

/// What a class of traffic did; packets are those first sent in the measured window.
struct Class
{
    uint64_t sent = 0;
    uint64_t acknowledged = 0;
    double rttSumS = 0;        // from the first transmission to the ACK, of those acknowledged
    uint64_t retransmits = 0;  // in the whole run
    uint64_t goodputBytes = 0; // handed to the receiver in the measured window
};

/// The measured window.
struct Window
{
    Time begin, end;

    bool Contains(Time t) const
    {
        return begin <= t && t < end;
    }
};

/// The sending end of one flow.
class Sender
{
  public:
    Sender(uint64_t bytes, Class &stats, const Window &window)
        : m_left(bytes), m_stats(stats), m_window(window)
    {
    }

    void Start(Ptr<Socket> socket, const InetSocketAddress &to)
    {
        m_socket = socket;
        socket->TraceConnectWithoutContext("Tx", MakeCallback(&Sender::Sent, this));
        socket->TraceConnectWithoutContext("Rx", MakeCallback(&Sender::Received, this));
        socket->SetConnectCallback(MakeCallback(&Sender::Fill, this), Failed("connect"));
        socket->SetSendCallback(MakeCallback(&Sender::Room, this));
        socket->SetCloseCallbacks(MakeCallback(&Sender::Closed, this), Failed("close"));
        NS_ABORT_MSG_IF(socket->Bind() != 0, "a flow found no free port");
        NS_ABORT_MSG_IF(socket->Connect(to) != 0, "a flow cannot reach its receiver");
    }

  private:
    struct Outstanding
    {
        SequenceNumber32 end;
        Time firstSent;
    };

    static Callback<void, Ptr<Socket>> Failed(const char *what)
    {
        return Callback<void, Ptr<Socket>>([what](Ptr<Socket>) {
            NS_FATAL_ERROR("a connection failed to " << what);
        });
    }

    void Fill(Ptr<Socket> socket)
    {
        // In multiples of a segment, so that only the last one of a flow is short.
        constexpr uint32_t segments = 64;
        UintegerValue segment;
        socket->GetAttribute("SegmentSize", segment);
        const auto chunk = static_cast<uint32_t>(segments * segment.Get());
        while (m_left > 0)
        {
            const auto size = static_cast<uint32_t>(std::min<uint64_t>(chunk, m_left));
            if (socket->GetTxAvailable() < size)
            {
                return;
            }
            NS_ABORT_MSG_IF(socket->Send(Create<Packet>(size)) != static_cast<int>(size),
                            "a socket took less than it had room for");
            m_left -= m_left == kEndless ? 0 : size;
        }
        socket->Close();
    }

    void Room(Ptr<Socket> socket, uint32_t)
    {
        if (m_left > 0)
        {
            Fill(socket);
        }
    }

    void Closed(Ptr<Socket>)
    {
        m_socket = nullptr;
    }

    void Sent(Ptr<const Packet> packet, const TcpHeader &header, Ptr<const TcpSocketBase>)
    {
        if (packet->GetSize() == 0)
        {
            return;
        }
        const SequenceNumber32 end = header.GetSequenceNumber() + packet->GetSize();
        if (m_any && end <= m_highest)
        {
            m_stats.retransmits++;
            return;
        }
        m_any = true;
        m_highest = end;
        m_outstanding.push_back({end, Simulator::Now()});
        m_stats.sent += m_window.Contains(Simulator::Now());
    }

    void Received(Ptr<const Packet>, const TcpHeader &header, Ptr<const TcpSocketBase>)
    {
        if (!(header.GetFlags() & TcpHeader::ACK))
        {
            return;
        }
        while (!m_outstanding.empty() && m_outstanding.front().end <= header.GetAckNumber())
        {
            const Time sent = m_outstanding.front().firstSent;
            m_outstanding.pop_front();
            if (m_window.Contains(sent))
            {
                m_stats.acknowledged++;
                m_stats.rttSumS += (Simulator::Now() - sent).GetSeconds();
            }
        }
    }

    Ptr<Socket> m_socket;
    uint64_t m_left;
    Class &m_stats;
    const Window &m_window;
    bool m_any = false; // whether m_highest means anything
    SequenceNumber32 m_highest;
    std::deque<Outstanding> m_outstanding;
};

/// The receiving end of a class.
class Sink
{
  public:
    Sink(Class &stats, const Window &window) : m_stats(stats), m_window(window)
    {
    }

    void Listen(Ptr<Node> node, uint16_t port)
    {
        m_listener = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        NS_ABORT_MSG_IF(m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), port)) != 0 ||
                            m_listener->Listen() != 0,
                        "cannot listen on port " << port);
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address &>(),
                                      MakeCallback(&Sink::Accepted, this));
    }

  private:
    void Accepted(Ptr<Socket> socket, const Address &)
    {
        socket->SetRecvCallback(MakeCallback(&Sink::Read, this));
        const auto close = [](Ptr<Socket> s) { s->Close(); };
        socket->SetCloseCallbacks(Callback<void, Ptr<Socket>>(close),
                                  Callback<void, Ptr<Socket>>(close));
    }

    void Read(Ptr<Socket> socket)
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            if (packet->GetSize() == 0)
            {
                return;
            }
            m_stats.goodputBytes += m_window.Contains(Simulator::Now()) ? packet->GetSize() : 0;
        }
    }

    Ptr<Socket> m_listener;
    Class &m_stats;
    const Window &m_window;
};

/// The link from the senders to the receivers.
class Bottleneck
{
  public:
    explicit Bottleneck(const Window &window) : m_window(window)
    {
    }

    void Watch(Ptr<NetDevice> device, Ptr<BottleneckQueue> queue)
    {
        m_queue = queue;
        device->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Bottleneck::Carried, this));
        queue->TraceConnectWithoutContext("Drop", MakeCallback(&Bottleneck::Dropped, this));
        queue->TraceConnectWithoutContext("PacketsInQueue",
                                          MakeCallback(&Bottleneck::Changed, this));
    }

    /// Packets of data that it has carried in the whole run.
    uint64_t Data() const
    {
        return m_data;
    }

    /// Mean number of packets waiting, over the measured window.
    double MeanPackets()
    {
        Changed(0, 0);
        return m_area / (m_window.end - m_window.begin).GetSeconds();
    }

    uint64_t Drops() const
    {
        return m_drops;
    }

  private:
    void Carried(Ptr<const Packet> packet)
    {
        m_data += m_queue->BandOf(*packet) != BottleneckQueue::CONTROL;
    }

    void Dropped(Ptr<const Packet>)
    {
        m_drops++;
    }

    void Changed(uint32_t, uint32_t)
    {
        const Time until = Min(Simulator::Now(), m_window.end);
        const Time from = Max(m_since, m_window.begin);
        m_area += until > from ? m_waiting * (until - from).GetSeconds() : 0;
        m_since = Simulator::Now();
        m_waiting = m_queue->Data();
    }

    Ptr<BottleneckQueue> m_queue;
    uint64_t m_drops = 0;
    const Window &m_window;
    uint64_t m_data = 0;
    uint32_t m_waiting = 0;
    Time m_since;
    double m_area = 0; // packets x seconds
};

void SetTcpDefaults()
{
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    // Nobody gives up, however many packets are lost in a row.
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::ConnCount", UintegerValue(1000));
    // Neither buffer may hold a flow back.
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 << 20));
    // ns-3 looks at all sockets for each packet, also at those in TIME_WAIT (4 minutes).
    Config::SetDefault("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(0.01));
}

void PrintClass(const char *name, const Class &c, double measureS)
{
    // JSON has no NaN: without packets there is no mean
    const auto meanMs = c.rttSumS * 1e3 / static_cast<double>(c.acknowledged);
    std::printf("\"%s\": {\"packets\": %lu, \"unacknowledged\": %lu, \"retransmits\": %lu, "
                "\"goodput_mbit\": %.6f, \"packet_rtt_mean_ms\": %s}, ",
                name,
                c.sent,
                c.sent - c.acknowledged,
                c.retransmits,
                static_cast<double>(c.goodputBytes) * 8e-6 / measureS,
                c.acknowledged ? std::to_string(meanMs).c_str() : "null");
}

} // namespace

int main(int argc, char *argv[])
{
    double rateMbit = 4, rttMs = 100, warmupS = 3, measureS = 30, drainS = 30;
    double startS = 0, staggerS = 0;
    uint32_t limit = 50, flows = 0, segment = 1024;
    bool priority = false;
    std::string schedule, foregroundControl = "TcpNewReno", control = "TcpNewReno";
    std::string recoveryName = "TcpClassicRecovery";

    SetTcpDefaults();
    CommandLine cmd(__FILE__);
    cmd.AddValue("rate-mbit", "rate of the bottleneck", rateMbit);
    cmd.AddValue("rtt-ms", "two-way propagation", rttMs);
    cmd.AddValue("limit-packets", "room in the queue, of each band under priority", limit);
    cmd.AddValue("priority", "serve the foreground first", priority);
    cmd.AddValue("mss-bytes", "payload of a full packet", segment);
    cmd.AddValue("warmup-s", "start of the measured window", warmupS);
    cmd.AddValue("measure-s", "length of the measured window", measureS);
    cmd.AddValue("drain-s", "time after the measured window", drainS);
    cmd.AddValue("recovery", "how a window falls after a loss", recoveryName);
    cmd.AddValue("schedule", "foreground flows, a line each: start in s, bytes", schedule);
    cmd.AddValue("foreground-control", "control of the foreground", foregroundControl);
    cmd.AddValue("control", "control of the background", control);
    cmd.AddValue("flows", "number of background flows, which are endless", flows);
    cmd.AddValue("start-s", "start of the first one", startS);
    cmd.AddValue("stagger-s", "time from each start to the next", staggerS);
    cmd.Parse(argc, argv);
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));

    NodeContainer nodes(2);
    PointToPointHelper link;
    link.DisableFlowControl();
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(std::llround(rateMbit * 1e6))));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(std::llround(rttMs * 500))));
    auto devices = link.Install(nodes);
    const auto queue = CreateObject<BottleneckQueue>();
    queue->Configure(limit, priority);
    devices.Get(0)->SetAttribute("TxQueue", PointerValue(queue));
    devices.Get(1)->SetAttribute("DataRate", StringValue("1000Gbps"));

    InternetStackHelper().Install(nodes);
    const auto interfaces = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
    for (uint32_t i = 0; i < 2; i++)
    {
        const auto traffic = nodes.Get(i)->GetObject<TrafficControlLayer>();
        NS_ABORT_MSG_IF(traffic->GetRootQueueDiscOnDevice(devices.Get(i)),
                        "ns-3 put a queue discipline in front of the link");
    }

    const Window window{Seconds(warmupS), Seconds(warmupS + measureS)};
    Bottleneck bottleneck(window);
    bottleneck.Watch(devices.Get(0), queue);
    Class foreground, background;
    Sink foregroundSink(foreground, window), backgroundSink(background, window);
    foregroundSink.Listen(nodes.Get(1), kForegroundPort);
    backgroundSink.Listen(nodes.Get(1), kBackgroundPort);

    std::vector<std::unique_ptr<Sender>> senders;
    const auto tcp = nodes.Get(0)->GetObject<TcpL4Protocol>();
    const auto recovery = TypeId::LookupByName("ns3::" + recoveryName);
    const auto add = [&](double atS, uint64_t bytes, bool low) {
        const auto type = TypeId::LookupByName("ns3::" + (low ? control : foregroundControl));
        senders.push_back(std::make_unique<Sender>(bytes, low ? background : foreground, window));
        const auto port = low ? kBackgroundPort : kForegroundPort;
        InetSocketAddress to(interfaces.GetAddress(1), port);
        to.SetTos(low ? kBackgroundTos : 0); // connecting takes it from here
        Simulator::Schedule(Seconds(atS), [=, sender = senders.back().get()] {
            sender->Start(tcp->CreateSocket(type, recovery), to);
        });
    };
    if (!schedule.empty())
    {
        std::ifstream file(schedule);
        double atS = 0;
        uint64_t bytes = 0;
        while (file >> atS >> bytes)
        {
            add(atS, bytes, false);
        }
        NS_ABORT_MSG_IF(!file.eof(), schedule << " is not a schedule: write \"start_s bytes\"");
    }
    for (uint32_t i = 0; i < flows; i++)
    {
        add(startS + i * staggerS, kEndless, true);
    }

    Simulator::Stop(Seconds(warmupS + measureS + drainS));
    const std::clock_t began = std::clock();
    Simulator::Run();
    const double cpuS = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;

    std::printf("{");
    PrintClass("foreground", foreground, measureS);
    PrintClass("background", background, measureS);
    std::printf("\"queue\": {\"drops\": %lu, \"mean_packets\": %.6f}, "
                "\"carried_packets\": %lu, \"cpu_s\": %.6f}\n",
                bottleneck.Drops(),
                bottleneck.MeanPackets(),
                bottleneck.Data(),
                cpuS);
    Simulator::Destroy();
    return 0;
}
