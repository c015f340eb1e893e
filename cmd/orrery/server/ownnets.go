package server

import (
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Own networks. A container has to listen on all addresses, or no published port reaches it. With the well-known key,
// or without credentials, everybody who reaches such a port is let in. With --own-networks only clients of the networks
// that the machine's interfaces are on are served: in a container, its bridge network. There are the other containers,
// and the host, from which published ports arrive. A client elsewhere, whose address the port's forwarding keeps, is
// refused.

// ownNetworks is a listener that closes connections from elsewhere.
type ownNetworks struct {
	net.Listener
	networks []netip.Prefix
	log      *slog.Logger
	told     time.Time // when a refusal was logged last; only Accept's goroutine uses it
}

// networksOf returns the networks of this machine's interfaces, without links to the internet: global addresses of IPv6
// and public ones of IPv4.
func networksOf(addrs []net.Addr) (out []netip.Prefix) {
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && (p.Addr().IsPrivate() || p.Addr().IsLoopback() || p.Addr().IsLinkLocalUnicast()) {
			out = append(out, p.Masked())
		}
	}
	return out
}

// onlyOwnNetworks limits a listener to clients of the machine's networks.
func onlyOwnNetworks(l net.Listener, log *slog.Logger) (net.Listener, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	return &ownNetworks{Listener: l, networks: networksOf(addrs), log: log}, nil
}

// Accept implements net.Listener.
func (o *ownNetworks) Accept() (net.Conn, error) {
	for {
		c, err := o.Listener.Accept()
		if err != nil || o.has(c.RemoteAddr()) {
			return c, err
		}
		if now := wall.Now(); now.Sub(o.told) >= refusalPause {
			o.told = now
			o.log.Warn("A client of another network was refused, because the key is the well-known one: give a key",
				"client", c.RemoteAddr().String())
		}
		_ = c.Close()
	}
}

// has reports whether a client is on one of the networks.
func (o *ownNetworks) has(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return false
	}
	client := at.Addr().Unmap().WithZone("")
	if client.IsLoopback() {
		return true
	}
	for _, p := range o.networks {
		if p.Contains(client) {
			return true
		}
	}
	return false
}

// open reports whether an API lets clients in who know no secret.
func (c *Config) open() bool { return !c.Auth || c.Key == WellKnownKey }
