"""Attacks on the network: a box reaches nothing but its own loopback, by no kind of socket."""

from inside import *  # noqa: F403

AF_VSOCK, AF_ALG, AF_PACKET, AF_NETLINK = 40, 38, 17, 16
IPPROTO_MPTCP = 262


def knock(family, kind, address, protocol=0):
    with socket.socket(family, kind, protocol) as client:
        client.settimeout(2)
        client.connect(address)
        return f"connected to {address!r}"


@attack("network", control=True)
def reach_host_loopback_tcp(context):
    """Connects to a service on the host's 127.0.0.1. Promise: own network namespace."""
    return knock(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", context["tcp_port"]))


@attack("network")
def reach_host_addresses_tcp(context):
    """Connects to the same service by every other address of the host. Promise: no route."""
    return first_that_works(context["addresses"], lambda address: knock(socket.AF_INET, socket.SOCK_STREAM, (address, context["tcp_port"])))


@attack("network", control=True)
def reach_host_loopback_tcp6(context):
    """Connects to a service on the host's ::1. Promise: IPv6 is closed too."""
    if not context["tcp6_port"]:
        return "no IPv6 here" if os.getuid() == 0 and "control" in context else None
    return knock(socket.AF_INET6, socket.SOCK_STREAM, ("::1", context["tcp6_port"]))


@attack("network", control=True)
def reach_host_loopback_mptcp(context):
    """The same by MPTCP, which passes Landlock's TCP rules. Promise: no route is the boundary."""
    try:
        return knock(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", context["tcp_port"]), IPPROTO_MPTCP)
    except OSError as error:
        if "control" in context and error.errno in (errno.EPROTONOSUPPORT, errno.ENOPROTOOPT, errno.EINVAL):
            return "no MPTCP in this kernel"
        raise


@attack("network")
def send_host_loopback_udp(context):
    """Sends datagrams to the host's loopback; nobody answers, the host's own socket tells. Promise: own namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"knock", ("127.0.0.1", context["udp_port"]))
    return None


@attack("network", control=True)
def reach_host_abstract_socket(context):
    """Connects to an abstract Unix socket of the host. Promise: own network namespace, and a Landlock scope."""
    return knock(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + context["abstract"])


@attack("network", control=True)
def reach_host_path_socket(context):
    """Connects to a Unix socket of the host by its path. Promise: the path is not there."""
    return first_that_works([context["path_socket"], "/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/private"], lambda path: knock(socket.AF_UNIX, socket.SOCK_STREAM, path))


@attack("network")
def reach_outside(context):
    """TCP, UDP and ICMP towards the world, broadcast and multicast too. Promise: no route out."""
    targets = ["192.0.2.1", "8.8.8.8", "169.254.169.254", "10.0.2.2", "172.17.0.1", "255.255.255.255", "224.0.0.1"]

    def attempt(target):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            client.sendto(b"knock", (target, 53))
        return "sent"

    return first_that_works(targets, attempt)


@attack("network")
def reach_outside_ipv6(context):
    """The same by IPv6, link-local and multicast. Promise: no route out."""
    def attempt(target):
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client:
            client.sendto(b"knock", target)
        return "sent"

    return first_that_works([("2001:db8::1", 53), ("fe80::1", 53, 0, 2), ("fe80::1", 53, 0, 1), ("::ffff:192.0.2.1", 53), ("64:ff9b::c000:201", 53)], attempt)


@attack("network")
def resolve_names(context):
    """Asks for a name. Promise: no DNS inside."""
    try:
        return str(socket.getaddrinfo("example.com", 80))
    except socket.gaierror:
        return None


@attack("network", control=True)
def open_raw_sockets(context):
    """Raw and packet sockets. Promise: no capability, and none of these kinds."""
    return first_that_works(
        [(socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET, socket.SOCK_RAW, 255), (socket.AF_INET6, socket.SOCK_RAW, 58), (AF_PACKET, socket.SOCK_RAW, 0), (AF_PACKET, socket.SOCK_DGRAM, 0)],
        lambda words: str(socket.socket(*words)),
    )


@attack("network")
def see_interfaces(context):
    """Lists interfaces by three ways. Promise: loopback and nothing else."""
    names = {name for _, name in socket.if_nameindex()} | {line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line}
    return f"sees {names}" if names - {"lo"} else None


@attack("network")
def change_interfaces(context):
    """Gives loopback an address and makes a device and a route. Promise: no capability over the network."""
    SIOCSIFADDR, SIOCADDRT, SIOCSIFFLAGS = 0x8916, 0x890B, 0x8914
    request = struct.pack("16sHH4s16x", b"lo", socket.AF_INET, 0, bytes([10, 0, 0, 1]))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        return first_that_works([SIOCSIFADDR, SIOCSIFFLAGS, SIOCADDRT], lambda number: fcntl.ioctl(client, number, request + bytes(80)))


@attack("network")
def make_interface_by_netlink(context):
    """RTM_NEWLINK of a dummy device. Promise: no capability over the network."""
    info = struct.pack("HH", 10, 1) + b"dummy\0\0\0"[:6] + b"\0\0"
    body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + struct.pack("HH", 4 + len(info), 18) + info
    with socket.socket(AF_NETLINK, socket.SOCK_RAW, 0) as client:
        client.settimeout(2)
        client.send(struct.pack("IHHII", 16 + len(body), 16, 0x605, 1, 0) + body)
        answer = client.recv(4096)
    error = struct.unpack_from("i", answer, 16)[0]
    return "made an interface" if error == 0 else None


@attack("network", needs="seccomp")
def reach_vsock(context):
    """AF_VSOCK, which no network namespace covers: the hypervisor, or the host's own services. Promise: denied family."""
    with socket.socket(AF_VSOCK, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        try:
            client.connect((1, context["vsock_port"]))  # 1 is this machine; the hypervisor, 2, is not ours to knock at
            return "connected to the host by vsock"
        except OSError:
            return "made a vsock socket"


@attack("network", needs="seccomp")
def open_strange_families(context):
    """Every address family but Unix, IPv4, IPv6 and netlink. Promise: kernel code that few have looked at is closed."""
    made = []
    for family in set(range(3, 50)) - {socket.AF_INET6, AF_NETLINK, AF_VSOCK}:
        for kind in (1, 2, 3, 5):
            try:
                socket.socket(family, kind).close()
                made.append((family, kind))
            except OSError:
                pass
    return f"made {made}" if made else None


@attack("network", needs="seccomp")
def open_strange_protocols(context):
    """SCTP, DCCP, UDP-Lite, MPTCP. Promise: TCP and UDP only."""
    return first_that_works([(2, 1, 132), (2, 1, 262), (2, 6, 33), (2, 2, 136), (2, 5, 132), (10, 1, 262)], lambda words: str(socket.socket(*words)))


@attack("network", needs="seccomp")
def open_strange_netlink(context):
    """Netlink beyond routing: audit, crypto, netfilter, uevents, connector. Promise: NETLINK_ROUTE only."""
    return first_that_works(range(1, 23), lambda protocol: str(socket.socket(AF_NETLINK, socket.SOCK_RAW, protocol)))
