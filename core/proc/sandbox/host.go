package sandbox

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Host is an entry of an allow-list: a name, all names below one, or addresses.
type Host struct {
	Name   string       // in lower case, without trailing dot; "" for addresses
	Below  bool         // all names below Name, but not Name itself
	Prefix netip.Prefix // if Name is empty
	Port   uint16       // 0 = 80 and 443
}

// ParseHost parses an entry of an allow-list: "example.org", "*.example.org",
// "192.0.2.7", "2001:db8::1" or "10.1.0.0/16", followed by ":port" for ports
// other than 80 and 443, which requires brackets around an IPv6 address.
func ParseHost(text string) (Host, error) {
	fail := func(why string) (Host, error) {
		return Host{}, fmt.Errorf("invalid host %q: %s; expected a name, *.suffix, an address or a network such as 10.0.0.0/8, with an optional :port", text, why)
	}
	var h Host
	name := text
	if host, port, ok := cutPort(text); ok {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return fail("the port is not a number from 1 to 65535")
		}
		name, h.Port = host, uint16(n)
	}
	if prefix, err := netip.ParsePrefix(name); err == nil {
		h.Prefix = prefix.Masked()
		return h, nil
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		addr = addr.Unmap()
		h.Prefix = netip.PrefixFrom(addr, addr.BitLen())
		return h, nil
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	name, h.Below = strings.CutPrefix(name, "*.")
	if name == "" {
		return fail("the name is missing")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return fail(fmt.Sprintf("invalid label %q", label))
		}
	}
	h.Name = name
	return h, nil
}

// cutPort removes a port. An IPv6 address without brackets has none.
func cutPort(text string) (host, port string, ok bool) {
	if strings.HasPrefix(text, "[") || strings.Count(text, ":") == 1 {
		if host, port, err := net.SplitHostPort(text); err == nil {
			return host, port, true
		}
	}
	return text, "", false
}

// fits reports whether the entry includes the port.
func (h Host) fits(port uint16) bool {
	return h.Port == port || h.Port == 0 && (port == 80 || port == 443)
}

// names reports whether the entry matches a name in lower case.
func (h Host) names(name string) bool {
	if h.Below {
		return h.Name != "" && strings.HasSuffix(name, "."+h.Name)
	}
	return h.Name != "" && name == h.Name
}

// Lists reports whether an allow-list, in which "*" is all, includes a host with an
// optional port.
func Lists(list []string, host string) bool {
	wanted, err := ParseHost(host)
	if err != nil {
		return slices.Contains(list, "*")
	}
	if wanted.Port == 0 {
		wanted.Port = 443
	}
	return slices.ContainsFunc(list, func(text string) bool {
		h, err := ParseHost(text)
		return text == "*" || err == nil && h.fits(wanted.Port) &&
			(h.names(wanted.Name) && !wanted.Below || wanted.Name == "" && h.holds(wanted.Prefix.Addr()) || h == wanted)
	})
}

// loopback reports whether the entry is this machine.
func (h Host) loopback() bool {
	return h.Name == "localhost" || h.Name == "" && h.Prefix.Addr().IsLoopback()
}

// holds reports whether the entry contains an address.
func (h Host) holds(addr netip.Addr) bool { return h.Name == "" && h.Prefix.Contains(addr) }
