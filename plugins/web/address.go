package web

import (
	"fmt"
	"net/netip"
)

// special4 are the IPv4 networks that are not public, from
// https://www.iana.org/assignments/iana-ipv4-special-registry, and the addresses
// of cloud metadata services.
var special4 = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
	"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // Azure
)

// special6 are the networks within global6 that are not public, from
// https://www.iana.org/assignments/iana-ipv6-special-registry. They include
// those that embed an IPv4 address, 6to4 and Teredo.
var special6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")

var (
	global6 = netip.MustParsePrefix("2000::/3")     // all public addresses
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // embeds an IPv4 address in the last four bytes
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

// checkAddress returns an error if an address is not public.
func checkAddress(given netip.Addr) error {
	a := given.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	special := special4
	if a.Is6() {
		special = special6
	}
	public := a.IsValid() && a.Zone() == "" && (a.Is4() || global6.Contains(a))
	for _, p := range special {
		public = public && !p.Contains(a)
	}
	if !public {
		return fmt.Errorf("%s is not a public internet address", given)
	}
	return nil
}
